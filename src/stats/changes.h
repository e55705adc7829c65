/* Where a series of results changed for good: change points.
 *
 * E-divisive with permutations: the split with the largest energy distance
 * between the values before and after it is a change point if fewer than
 * `p_max` of the random orders of the same values have a split as good; then both
 * sides are searched in the same way. It assumes no distribution, and a single
 * outlier is no change: a side has at least CHANGES_SIDE_MIN values. */
#pragma once

#include "base/macros.h"

#include <stddef.h>
#include <stdint.h>

enum {
    CHANGES_VALUES_MAX = 400, /* look at the last so many: time grows with the square */
    CHANGES_SIDE_MIN = 3,
    CHANGES_MAX = 64,
};

struct change {
    size_t at;     /* index of the first value after the change */
    double p;      /* share of random orders with as good a split */
    double before; /* median since the change before, or the start */
    double after;  /* median up to the next change, or the end */
};

/* In the order of the series. `values` finite; p_max 0.01 or so: the number of random orders is
 * chosen for it. Returns how many there are, -EINVAL or -ENOMEM. */
MUST_USE int changes_find(const double *values, size_t count, double p_max, uint64_t seed,
                          struct change ret[CHANGES_MAX]);
