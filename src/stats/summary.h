/* What a handful of measured runs says, and how sure it is.
 *
 * Percentiles: linear interpolation between order statistics at position
 * p*(n-1) (Hyndman & Fan type 7; R's and NumPy's default). A percentile p is
 * `carried` by the sample when at least one value is expected beyond it, that is
 * n*(1-p) >= 1; otherwise the largest values stand in for it and it must be shown
 * as conservative.
 *
 * Interval of the median: the pair of order statistics (l, n+1-l), l as large
 * as possible, whose binomial coverage is at least 95%. It assumes independent
 * runs and nothing else: no normal distribution, no symmetry. Under 6 runs no
 * such pair exists, and there is no interval.
 *
 * Drift: median of the last third of the runs against median of the first
 * third, in percent of the first. Runs are in the order they were made.
 *
 * All functions leave their input alone; `values` of length 0 is refused with
 * -EINVAL. Not-a-number is refused too. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SUMMARY_RUNS_MAX = 1000000 };

struct summary {
    size_t count;
    double min, max, mean, median;
    double p5, p95, p99, p99_9, p99_99;
    bool p5_carried, p95_carried, p99_carried, p99_9_carried, p99_99_carried;
    bool has_interval;
    double median_low, median_high; /* 95% */
    double stddev;                  /* of the sample (n-1); NaN for one run, which says nothing */
    double cv_percent;              /* stddev / mean; NaN for one run, or when the mean is 0 */
    double mad;                     /* median distance from the median, unscaled; NaN for one run */
    double drift_percent;           /* NaN under 6 runs, or when the first third's median is 0 */
    size_t outliers;                /* beyond 3.5 robust deviations; kept in every figure */
};

MUST_USE int summary_make(const double *values, size_t count, struct summary *ret);

/* Ascending. */
void sort_in_place(double *values, size_t count);
/* Sorts them; count >= 1. */
double median_in_place(double *values, size_t count);

/* `sorted` ascending, count >= 1, 0 <= share <= 1. */
double percentile_sorted(const double *sorted, size_t count, double share);

/* Ranks (from 1) of the order statistics that bound the median with at least
 * 95% coverage; -ERANGE when `count` is too small. */
MUST_USE int median_interval_ranks(size_t count, size_t *ret_low, size_t *ret_high);

/* A bootstrap percentile interval (95%) of the median of `values`: for the
 * cases where order statistics are too coarse. The generator starts from
 * `seed`, so that the same runs always give the same interval. -EINVAL or -ENOMEM. */
MUST_USE int median_bootstrap(const double *values, size_t count, uint64_t seed, double *ret_low,
                              double *ret_high);
