/* How many times as much B costs as A, and what may be said about it.
 *
 * Made by blocks.h (interleaved runs) or samples.h (two separate sets of runs). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ratio_opts {
    double share;      /* of the values compared: 0.5 medians, 0.95 the slow tail */
    double confidence; /* of the interval, such as 0.95 */
    double threshold;  /* the ratio that p is about: 1 asks whether there is a change at all */
    uint64_t seed;
};

struct ratio {
    size_t count;      /* blocks, or runs of the smaller sample */
    double ratio;      /* B / A */
    bool has_interval; /* enough values for one */
    double low, high;
    double p; /* two-sided, against opts.threshold */
};

enum verdict { VERDICT_UNKNOWN, VERDICT_FASTER, VERDICT_SLOWER, VERDICT_EQUIVALENT };

/* Values needed before anything is said: so many that chance makes them all fall on one side
 * less often than 1-confidence (2/2^n; 6 for 95%, 8 for 99%), and for a tail at least
 * RATIO_BEYOND_MIN beyond the quantile on each side (40 for p95, 200 for p99; simulated: the
 * interval then holds what it promises). */
enum { RATIO_BEYOND_MIN = 2 };
size_t ratio_count_min(double share, double confidence);

/* Faster or slower: the whole interval is beyond the margin and p is below 1-confidence;
 * p holds by design (ranks.h), the interval only nearly. Equivalent: the whole interval is
 * inside. `margin` 0.01 means ratios from 1/1.01 to 1.01. Small is good: B slower is a ratio
 * above 1. */
enum verdict ratio_verdict(const struct ratio *ratio, double margin, double confidence);
const char *verdict_name(enum verdict verdict);

/* The smallest change (0.02 is 2%) that would have been called faster or slower in four of
 * five such comparisons; NaN without an interval. */
double ratio_detectable(const struct ratio *ratio, double margin);
