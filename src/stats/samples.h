/* Two separate sets of runs, made at different times: what is their ratio?
 *
 * Weaker than blocks.h, and to be called so: what changed on the machine between the two
 * sets looks like a difference between the programs. Estimate: ratio of the quantiles
 * (medians for share 0.5). Interval: bootstrap, each set drawn on its own. p:
 * Mann–Whitney for medians, labels dealt anew at random for other shares. */
#pragma once

#include "base/macros.h"
#include "stats/ratio.h"

enum { SAMPLES_MAX = 100000 };

/* -EINVAL as blocks_compare(); -EDOM when the quantile of A is 0 and that of B is not, or when
 * zeros are so common that the bootstrap meets them. All zeros on both sides have the ratio 1. */
MUST_USE int samples_compare(const double *a, size_t a_count, const double *b, size_t b_count,
                             const struct ratio_opts *opts, struct ratio *ret);
