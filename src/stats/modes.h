/* One hump or two: does a program have a fast and a slow way to run?
 *
 * Hartigan's dip: the largest distance between the runs' distribution and the
 * nearest one with a single hump, 1/(2n) to 1/4. Compared with what runs from a
 * flat distribution (the least favourable with one hump) show: sqrt(n) times the dip
 * stays below MODES_LIMIT in 99% of such samples of any size from 20 on (simulated;
 * tests/unit/test_modes.c checks it). A significant dip can still be of no interest,
 * so two humps are only claimed when they are apart and both are populated. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>

#define MODES_LIMIT 0.65

enum { MODES_RUNS_MIN = 20 };

struct modes {
    double dip;
    bool two; /* significant, medians at least 5% of the whole's apart, each with 10% of runs */
    double low, high; /* medians of the two groups, as the best split finds them */
    double low_share; /* of the runs, 0 to 1 */
};

/* -EINVAL for nothing, too much or not-a-number; `two` is false under 20 runs. */
MUST_USE int modes_find(const double *values, size_t count, struct modes *ret);

/* `sorted` ascending, count >= 1. NaN when out of memory. */
double dip_of_sorted(const double *sorted, size_t count);
