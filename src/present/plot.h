/* Small drawings for a terminal, as lists of lines of at most 76 columns. */
#pragma once

#include "model/value.h"

/* How often which value came: one line a step from the least to p99, and one for what lies
 * beyond. "n/a" for fewer than two values. `values` are finite. */
struct value plot_histogram(struct arena *arena, const double *values, size_t count,
                            enum unit unit);

/* The values in their order, the first at the left; several share a column when there are many,
 * by their median. */
struct value plot_order(struct arena *arena, const double *values, size_t count, enum unit unit);

/* Two amounts over time on one scale from 0, '*' over 'o'; `times` rise, and what is NaN is not
 * drawn. A column has the most of its time; one without a moment stays as it was. */
struct value plot_over_time(struct arena *arena, const uint64_t *times_ns, const double *first,
                            const double *second, size_t count, enum unit unit);
