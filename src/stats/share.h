/* How sure a share of samples is.
 *
 * A share is a proportion of samples, so its interval is Wilson's: it stays inside 0 to 1 and
 * holds for shares near the ends, where the usual plus-minus does not. Samples of unequal
 * weight carry less than their number says: the effective number is (Σw)²/Σw² (Kish), which
 * equals the number when all weights are equal.
 *
 * These intervals speak of sampling inside one recording. They know nothing of how much one
 * run of a program differs from the next. */
#pragma once

#include <stddef.h>

struct interval {
    double value;
    double low, high; /* 95% */
};

/* Effective number of samples from the sums of weights and of squared weights; 0 without. */
double effective_count(double sum, double sum_of_squares);
/* `share` in 0…1, `count` effective samples; (0, 1) without samples. */
struct interval share_interval(double share, double count);
struct interval interval_scale(struct interval interval, double factor);
/* after − before, from the two intervals (Newcombe's method 10 for shares; MOVER for scaled
 * ones). The two must be independent. */
struct interval interval_difference(struct interval before, struct interval after);
