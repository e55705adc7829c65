/* Runs in the order they were made: do they depend on each other, do they go
 * somewhere, have they settled?
 *
 * Pure functions over doubles; input is left alone. Not-a-number is refused. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>

enum { SERIES_WARMUP_WINDOW = 3 };

/* Correlation of each run with the next, on ranks (so that one outlier does not make it), and
 * where it would lie in 99% of independent series: |lag1| <= limit. NaN under 10 runs. */
struct series_dependence {
    double lag1;
    double limit;
};

/* Spearman's rank correlation of the runs with their order, and how many standard
 * deviations that is for runs without a trend. NaN under 10 runs, or when all are equal. */
struct series_trend {
    double rho;
    double z;
};

MUST_USE int series_dependence(const double *values, size_t count, struct series_dependence *ret);
MUST_USE int series_trend(const double *values, size_t count, struct series_trend *ret);

/* Has a warm-up ended? True when the median of the last three runs is not below the median of
 * the three before by more than `tolerance` (0.02: 2%): what still falls is still warming up.
 * False under six runs. */
bool series_settled(const double *values, size_t count, double tolerance);
