/* Histogram and run order in plain characters. */
#include "present/plot.h"

#include "stats/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BINS_MAX = 12, BAR_COLUMNS = 40, ORDER_COLUMNS = 60, ORDER_ROWS = 8, LABEL_COLUMNS = 10 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* NULL when out of memory, which the arena remembers. */
static double *sorted_copy(struct arena *arena, const double *values, size_t count)
{
    double *copy = arena_alloc(arena, count * sizeof(*copy));
    if (copy) {
        memcpy(copy, values, count * sizeof(*copy));
        qsort(copy, count, sizeof(*copy), compare);
    }
    return copy;
}

static struct value too_few(struct arena *arena)
{
    struct value list = value_list(arena);
    value_append(&list, value_na("fewer than two runs"));
    return list;
}

static void bar_append(struct arena *arena, struct value *list, const char *label, size_t count,
                       size_t most)
{
    char bar[BAR_COLUMNS + 1];
    size_t len = most > 0 ? (count * BAR_COLUMNS + most - 1) / most : 0;
    memset(bar, '#', len);
    bar[len] = '\0';
    value_append(list, value_text(arena_printf(arena, "%*s  %s%s%zu", LABEL_COLUMNS, label, bar,
                                               len > 0 ? " " : "", count)));
}

struct value plot_histogram(struct arena *arena, const double *values, size_t count, enum unit unit)
{
    if (count < 2)
        return too_few(arena);
    struct value list = value_list(arena);
    double *sorted = sorted_copy(arena, values, count);
    if (!sorted)
        return list;
    /* To p99, so that one slow run does not push all others into one line. */
    double low = sorted[0], high = percentile_sorted(sorted, count, 0.99);
    size_t bins = high > low ? MIN(MAX(count / 4, (size_t)4), (size_t)BINS_MAX) : 1;
    double step = (high - low) / (double)bins;
    size_t counts[BINS_MAX] = {0}, beyond = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        if (sorted[i] > high) {
            beyond++;
            continue;
        }
        size_t bin = step > 0 ? MIN((size_t)((sorted[i] - low) / step), bins - 1) : 0;
        counts[bin]++;
        most = MAX(most, counts[bin]);
    }
    char label[48];
    for (size_t i = 0; i < bins; i++) {
        units_format(low + (double)i * step, unit, label, sizeof(label));
        bar_append(arena, &list, label, counts[i], most);
    }
    if (beyond > 0) {
        char from[48];
        units_format(high, unit, from, sizeof(from));
        value_append(&list,
                     value_text(arena_printf(
                         arena, "%*s  beyond, up to %s: %zu", LABEL_COLUMNS, from,
                         units_format(sorted[count - 1], unit, label, sizeof(label)), beyond)));
    }
    return list;
}

/* The median of the runs that share a column. */
static double column_value(struct arena *arena, const double *values, size_t begin, size_t end)
{
    double *sorted = sorted_copy(arena, values + begin, end - begin);
    return sorted ? percentile_sorted(sorted, end - begin, 0.5) : 0;
}

struct value plot_order(struct arena *arena, const double *values, size_t count, enum unit unit)
{
    if (count < 2)
        return too_few(arena);
    struct value list = value_list(arena);
    size_t columns = MIN(count, (size_t)ORDER_COLUMNS);
    double points[ORDER_COLUMNS], low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < columns; i++) {
        points[i] = column_value(arena, values, i * count / columns, (i + 1) * count / columns);
        low = fmin(low, points[i]);
        high = fmax(high, points[i]);
    }
    char rows[ORDER_ROWS][ORDER_COLUMNS + 1], label[48];
    memset(rows, ' ', sizeof(rows));
    for (size_t i = 0; i < columns; i++) {
        double share = high > low ? (points[i] - low) / (high - low) : 0;
        rows[ORDER_ROWS - 1 - (size_t)lround(share * (ORDER_ROWS - 1))][i] = '*';
    }
    for (size_t r = 0; r < ORDER_ROWS; r++) {
        size_t len = columns;
        while (len > 0 && rows[r][len - 1] == ' ')
            len--;
        rows[r][len] = '\0';
        bool edge = r == 0 || r == ORDER_ROWS - 1;
        if (edge)
            units_format(r == 0 ? high : low, unit, label, sizeof(label));
        value_append(&list, value_text(arena_printf(arena, "%*s |%s", LABEL_COLUMNS,
                                                    edge ? label : "", rows[r])));
    }
    return list;
}
