/* Ranks, and two correlations of them. */
#include "stats/series.h"

#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { RUNS_MIN = 10 };

struct ranked {
    double value;
    size_t index;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Ranks from 1; equal values share the mean of theirs. malloc'ed; NULL when out of memory. */
static double *ranks_make(const double *values, size_t count)
{
    struct ranked *order = malloc(count * sizeof(*order));
    double *ranks = malloc(count * sizeof(*ranks));
    if (!order || !ranks) {
        free(order);
        free(ranks);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        order[i] = (struct ranked){values[i], i};
    qsort(order, count, sizeof(*order), by_value);
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && order[end].value == order[i].value)
            end++;
        for (size_t j = i; j < end; j++)
            ranks[order[j].index] = ((double)i + 1 + (double)end) / 2;
        i = end;
    }
    free(order);
    return ranks;
}

static int check(const double *values, size_t count)
{
    if (count == 0 || count > SUMMARY_RUNS_MAX)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return -EINVAL;
    return 0;
}

static double squares_about_mean(const double *values, size_t count)
{
    double mean = ((double)count + 1) / 2, sum = 0; /* of ranks, ties or not */
    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sum;
}

int series_dependence(const double *values, size_t count, struct series_dependence *ret)
{
    int r = check(values, count);
    if (r < 0)
        return r;
    struct series_dependence result = {NAN, NAN};
    if (count >= RUNS_MIN) {
        double *ranks = ranks_make(values, count);
        if (!ranks)
            return -ENOMEM;
        double mean = ((double)count + 1) / 2, sum = 0;
        for (size_t i = 0; i + 1 < count; i++)
            sum += (ranks[i] - mean) * (ranks[i + 1] - mean);
        double all = squares_about_mean(ranks, count);
        result.lag1 = all > 0 ? sum / all : NAN;
        result.limit = 2.576 / sqrt((double)count);
        free(ranks);
    }
    *ret = result;
    return 0;
}

int series_trend(const double *values, size_t count, struct series_trend *ret)
{
    int r = check(values, count);
    if (r < 0)
        return r;
    struct series_trend result = {NAN, NAN};
    if (count >= RUNS_MIN) {
        double *ranks = ranks_make(values, count);
        if (!ranks)
            return -ENOMEM;
        double mean = ((double)count + 1) / 2, sum = 0, order = 0;
        for (size_t i = 0; i < count; i++) {
            sum += (ranks[i] - mean) * ((double)i + 1 - mean);
            order += ((double)i + 1 - mean) * ((double)i + 1 - mean);
        }
        double all = squares_about_mean(ranks, count);
        if (all > 0) {
            result.rho = sum / sqrt(all * order);
            result.z = result.rho * sqrt((double)count - 1);
        }
        free(ranks);
    }
    *ret = result;
    return 0;
}

static double median_of_three(const double *v)
{
    return fmax(fmin(v[0], v[1]), fmin(fmax(v[0], v[1]), v[2]));
}

bool series_settled(const double *values, size_t count, double tolerance)
{
    if (count < 2 * SERIES_WARMUP_WINDOW)
        return false;
    double before = median_of_three(values + count - 6),
           after = median_of_three(values + count - 3);
    return after >= before * (1 - tolerance);
}
