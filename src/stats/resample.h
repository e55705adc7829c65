/* A sample from which values are drawn again and again, and the quantiles of what was drawn.
 *
 * Sorted once; a draw is then a counter, and a quantile one walk over the counters: a
 * bootstrap of n values costs n a round instead of a sort. For blocks.c and samples.c. */
#pragma once

#include "base/macros.h"

#include <stddef.h>
#include <stdint.h>

struct resample {
    double *sorted;
    uint32_t *places; /* where the i-th value stands in `sorted` */
    uint32_t *counts; /* how often each place was drawn */
    size_t count;
    size_t drawn;
};

/* -EINVAL for none, more than 2^31 or a value that is not finite; -ENOMEM. */
MUST_USE int resample_init(struct resample *resample, const double *values, size_t count);
void resample_clear(struct resample *resample);
void resample_add(struct resample *resample, size_t index);
/* Of the values drawn since the last clear, at least one; as percentile_sorted(). */
double resample_quantile(const struct resample *resample, double share);
void resample_deinit(struct resample *resample); /* zeroed or half built is fine */

/* The tail to cut off on each side of a bootstrap distribution for an interval of
 * `confidence`. Bootstrap intervals of few values are too narrow, since the spread of
 * n values is estimated with n in the place of n-1 and from the values themselves; the
 * tail is made as much smaller as Student's t is wider than the normal distribution
 * (Hesterberg 2015, "expanded percentile"). `count` is at least 2. */
double resample_tail(size_t count, double confidence);

/* Rounds to draw: enough for the tails of a 99% interval; fewer of large samples, whose
 * bootstrap distribution is smooth. */
enum { RESAMPLE_ROUNDS_MAX = 4000, RESAMPLE_ROUNDS_MIN = 1000 };
size_t resample_rounds(size_t count);

/* The interval of what `rounds` rounds over `count` values gave. Sorts `figures`. */
void resample_interval(double *figures, size_t rounds, size_t count, double confidence,
                       double *ret_low, double *ret_high);
