/* The dip by convex hulls, and the split of a sample in two by least squares. */
#include "stats/modes.h"

#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The empirical distribution at its distinct values: how many lie below, how many at most there. */
struct steps {
    size_t len;
    double *x, *below, *upto;
    size_t *convex, *concave; /* knots of the hulls: indexes, ascending */
};

static void steps_free(struct steps *s)
{
    free(s->x);
    free(s->convex);
}

static int steps_make(const double *sorted, size_t count, struct steps *s)
{
    *s = (struct steps){.x = malloc(3 * count * sizeof(double)),
                        .convex = malloc(2 * count * sizeof(size_t))};
    if (!s->x || !s->convex) {
        steps_free(s);
        return -ENOMEM;
    }
    s->below = s->x + count;
    s->upto = s->below + count;
    s->concave = s->convex + count;
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && sorted[end] == sorted[i])
            end++;
        s->x[s->len] = sorted[i];
        s->below[s->len] = (double)i;
        s->upto[s->len++] = (double)end;
        i = end;
    }
    return 0;
}

/* > 0 when b lies above the line from a to c. */
static double above_line(const double *x, const double *y, size_t a, size_t b, size_t c)
{
    return (y[b] - y[a]) * (x[c] - x[a]) - (y[c] - y[a]) * (x[b] - x[a]);
}

/* Knots of the hull of (x, y) on [low, high]: from below when sign is +1, from above when -1. */
static size_t hull_make(const double *x, const double *y, size_t low, size_t high, double sign,
                        size_t *knots)
{
    size_t len = 0;
    for (size_t i = low; i <= high; i++) {
        while (len >= 2 && sign * above_line(x, y, knots[len - 2], knots[len - 1], i) >= 0)
            len--;
        knots[len++] = i;
    }
    return len;
}

static double line_at(const double *x, const double *y, size_t a, size_t b, double at)
{
    return a == b ? y[a] : y[a] + (y[b] - y[a]) * (at - x[a]) / (x[b] - x[a]);
}

/* The widest gap between the hulls; narrows *low and *high to the knots around it. */
static double gap_find(const struct steps *s, size_t convex_len, size_t concave_len, size_t *low,
                       size_t *high)
{
    double widest = 0;
    size_t at_low = *low, at_high = *high;
    for (size_t i = 0, j = 0; i < convex_len; i++) { /* at the knots from below */
        size_t g = s->convex[i];
        while (j + 1 < concave_len && s->concave[j + 1] <= g)
            j++;
        size_t next = s->concave[j] == g ? j : MIN(j + 1, concave_len - 1);
        double gap = line_at(s->x, s->upto, s->concave[j], s->concave[next], s->x[g]) - s->below[g];
        if (gap > widest) {
            widest = gap;
            at_low = g;
            at_high = s->concave[next];
        }
    }
    for (size_t i = 0, j = 0; i < concave_len; i++) { /* and at those from above */
        size_t l = s->concave[i];
        while (j + 1 < convex_len && s->convex[j + 1] <= l)
            j++;
        size_t next = s->convex[j] == l ? j : MIN(j + 1, convex_len - 1);
        double gap = s->upto[l] - line_at(s->x, s->below, s->convex[j], s->convex[next], s->x[l]);
        if (gap > widest) {
            widest = gap;
            at_low = s->convex[j];
            at_high = l;
        }
    }
    *low = at_low;
    *high = at_high;
    return widest;
}

/* How far the steps rise above the convex hull on its left part, up to `end`. Not at `end` itself:
 * a hump may have any share of the runs at its top. */
static double left_miss(const struct steps *s, size_t convex_len, size_t end)
{
    double miss = 0;
    for (size_t i = 0; i + 1 < convex_len && s->convex[i] < end; i++)
        for (size_t j = s->convex[i]; j < s->convex[i + 1]; j++)
            miss = fmax(miss, s->upto[j] -
                                  line_at(s->x, s->below, s->convex[i], s->convex[i + 1], s->x[j]));
    return miss;
}

/* And how far they fall below the concave one from `begin` on. */
static double right_miss(const struct steps *s, size_t concave_len, size_t begin)
{
    double miss = 0;
    for (size_t i = 0; i + 1 < concave_len; i++)
        for (size_t j = s->concave[i] + 1; s->concave[i] >= begin && j <= s->concave[i + 1]; j++)
            miss = fmax(miss, line_at(s->x, s->upto, s->concave[i], s->concave[i + 1], s->x[j]) -
                                  s->below[j]);
    return miss;
}

double dip_of_sorted(const double *sorted, size_t count)
{
    struct steps s;
    if (steps_make(sorted, count, &s) < 0)
        return NAN;
    double dip = 1;
    size_t low = 0, high = s.len - 1;
    /* Each round narrows the interval or ends. */
    for (;;) {
        size_t convex_len = hull_make(s.x, s.below, low, high, 1, s.convex);
        size_t concave_len = hull_make(s.x, s.upto, low, high, -1, s.concave);
        size_t old_low = low, old_high = high;
        if (gap_find(&s, convex_len, concave_len, &low, &high) <= dip)
            break;
        dip = fmax(dip, left_miss(&s, convex_len, low));
        dip = fmax(dip, right_miss(&s, concave_len, high));
        if (low == old_low && high == old_high)
            break;
    }
    steps_free(&s);
    return dip / (2 * (double)count);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The number of values in the lower of two groups with the least squares about their means. */
static size_t split_find(const double *sorted, size_t count)
{
    double total = 0, left = 0, best = -1;
    size_t at = 1;
    for (size_t i = 0; i < count; i++)
        total += sorted[i];
    for (size_t i = 1; i < count; i++) {
        left += sorted[i - 1];
        double gap = left / (double)i - (total - left) / (double)(count - i);
        double between = gap * gap * (double)i * (double)(count - i);
        if (between > best && sorted[i] > sorted[i - 1]) {
            best = between;
            at = i;
        }
    }
    return at;
}

int modes_find(const double *values, size_t count, struct modes *ret)
{
    if (count == 0 || count > SUMMARY_RUNS_MAX)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return -EINVAL;
    double *sorted = malloc(count * sizeof(*sorted));
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, values, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare);
    struct modes modes = {.dip = dip_of_sorted(sorted, count)};
    size_t at = split_find(sorted, count);
    double median = percentile_sorted(sorted, count, 0.5);
    modes.low = percentile_sorted(sorted, at, 0.5);
    modes.high = at < count ? percentile_sorted(sorted + at, count - at, 0.5) : modes.low;
    modes.low_share = (double)at / (double)count;
    modes.two = count >= MODES_RUNS_MIN && modes.dip * sqrt((double)count) > MODES_LIMIT &&
                modes.high - modes.low >= 0.05 * fabs(median) && modes.low_share >= 0.1 &&
                modes.low_share <= 0.9;
    free(sorted);
    *ret = modes;
    return isnan(modes.dip) ? -ENOMEM : 0;
}
