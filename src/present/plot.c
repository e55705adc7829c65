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

/* The most of each column's time; NaN where there is nothing yet. */
static void over_time(const uint64_t *times_ns, const double *values, size_t count,
                      double points[ORDER_COLUMNS])
{
    uint64_t start = times_ns[0], span = MAX(times_ns[count - 1] - start, (uint64_t)1);
    double last = NAN;
    size_t at = 0;
    for (size_t c = 0; c < ORDER_COLUMNS; c++) {
        double most = NAN;
        for (; at < count; at++) {
            double share = (double)(times_ns[at] - start) / (double)span;
            if (MIN((size_t)(share * ORDER_COLUMNS), (size_t)ORDER_COLUMNS - 1) != c)
                break;
            most = fmax(most, values[at]); /* fmax() prefers what is a number */
            last = isnan(values[at]) ? last : values[at];
        }
        points[c] = isnan(most) ? last : most;
    }
}

static void rows_draw(char rows[ORDER_ROWS][ORDER_COLUMNS + 1], const double *points, double high,
                      char mark)
{
    for (size_t c = 0; c < ORDER_COLUMNS; c++)
        if (!isnan(points[c]))
            rows[ORDER_ROWS - 1 - (size_t)lround(points[c] / high * (ORDER_ROWS - 1))][c] = mark;
}

struct value plot_over_time(struct arena *arena, const uint64_t *times_ns, const double *first,
                            const double *second, size_t count, enum unit unit)
{
    struct value list = value_list(arena);
    double points[2][ORDER_COLUMNS], high = 0;
    char rows[ORDER_ROWS][ORDER_COLUMNS + 1], label[48], from[48], to[48];
    if (count < 2)
        return list;
    over_time(times_ns, first, count, points[0]);
    over_time(times_ns, second, count, points[1]);
    for (size_t c = 0; c < ORDER_COLUMNS; c++)
        high = fmax(high, fmax(points[0][c], points[1][c]));
    if (!(high > 0))
        return list;
    memset(rows, ' ', sizeof(rows));
    rows_draw(rows, points[1], high, 'o');
    rows_draw(rows, points[0], high, '*');
    for (size_t r = 0; r < ORDER_ROWS; r++) {
        size_t len = ORDER_COLUMNS;
        while (len > 0 && rows[r][len - 1] == ' ')
            len--;
        rows[r][len] = '\0';
        bool edge = r == 0 || r == ORDER_ROWS - 1;
        if (edge)
            units_format(r == 0 ? high : 0, unit, label, sizeof(label));
        value_append(&list, value_text(arena_printf(arena, "%*s |%s", LABEL_COLUMNS,
                                                    edge ? label : "", rows[r])));
    }
    units_format((double)times_ns[0], UNIT_NS, from, sizeof(from));
    units_format((double)times_ns[count - 1], UNIT_NS, to, sizeof(to));
    value_append(&list, value_text(arena_printf(arena, "%*s  %s%*s", LABEL_COLUMNS, "", from,
                                                ORDER_COLUMNS - (int)strlen(from), to)));
    return list;
}
