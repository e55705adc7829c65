/* A and B measured side by side, block for block: what is their ratio?
 *
 * In each block both were run once, in random order, so that whatever the machine did at
 * the time fell on both. The figure of a block is log(b/a). Estimate: the median of the
 * figures. Interval: bootstrap over blocks (resample.h). p: sign flips (ranks.h).
 *
 * For another share than 0.5 a block has no figure of its own: the estimate is the ratio of
 * the two sides' quantiles, the bootstrap draws whole blocks, and p comes from swapping A
 * and B inside blocks at random. */
#pragma once

#include "base/macros.h"
#include "stats/ratio.h"

enum { BLOCKS_MAX = 100000 };

/* `a[i]` and `b[i]` are of the same block. -EINVAL for none, too many, a negative value or
 * one that is not finite; -EDOM where a ratio does not exist: a 0 against more than 0, or
 * any 0 with another share than 0.5. A block with 0 on both sides shows no difference. */
MUST_USE int blocks_compare(const double *a, const double *b, size_t count,
                            const struct ratio_opts *opts, struct ratio *ret);
