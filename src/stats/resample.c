/* See resample.h. */
#include "stats/resample.h"

#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND_WORK = 8000000 };

struct place {
    double value;
    uint32_t index;
};

static int place_compare(const void *a, const void *b)
{
    double x = ((const struct place *)a)->value, y = ((const struct place *)b)->value;
    return (x > y) - (x < y);
}

int resample_init(struct resample *resample, const double *values, size_t count)
{
    *resample = (struct resample){.count = count};
    if (count == 0 || count > INT32_MAX)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return -EINVAL;
    struct place *order = malloc(count * sizeof(*order));
    resample->sorted = malloc(count * sizeof(*resample->sorted));
    resample->places = malloc(count * sizeof(*resample->places));
    resample->counts = calloc(count, sizeof(*resample->counts));
    if (!order || !resample->sorted || !resample->places || !resample->counts) {
        free(order);
        resample_deinit(resample);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        order[i] = (struct place){values[i], (uint32_t)i};
    qsort(order, count, sizeof(*order), place_compare);
    for (size_t i = 0; i < count; i++) {
        resample->sorted[i] = order[i].value;
        resample->places[order[i].index] = (uint32_t)i;
    }
    free(order);
    return 0;
}

void resample_clear(struct resample *resample)
{
    memset(resample->counts, 0, resample->count * sizeof(*resample->counts));
    resample->drawn = 0;
}

void resample_add(struct resample *resample, size_t index)
{
    resample->counts[resample->places[index]]++;
    resample->drawn++;
}

double resample_quantile(const struct resample *resample, double share)
{
    double at = share * (double)(resample->drawn - 1);
    size_t below = (size_t)at, seen = 0, i = 0;
    while (i + 1 < resample->count && seen + resample->counts[i] <= below)
        seen += resample->counts[i++];
    double low = resample->sorted[i], high = low;
    /* The next drawn value: the same one once more, or the next that was drawn at all. */
    if (below + 1 < resample->drawn && seen + resample->counts[i] <= below + 1) {
        size_t next = i + 1;
        while (next + 1 < resample->count && resample->counts[next] == 0)
            next++;
        high = resample->sorted[next];
    }
    return low + (at - (double)below) * (high - low);
}

void resample_deinit(struct resample *resample)
{
    free(resample->sorted);
    free(resample->places);
    free(resample->counts);
    *resample = (struct resample){0};
}

/* P(T > t) for Student's t, by Simpson's rule over the density, from 0 to t. */
static double student_tail(double t, double freedom)
{
    enum { STEPS = 400 };
    double scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(freedom * M_PI);
    double width = t / STEPS, sum = 0;
    for (int i = 0; i <= STEPS; i++) {
        double x = i * width;
        double weight = i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2;
        sum += weight * scale * pow(1 + x * x / freedom, -(freedom + 1) / 2);
    }
    return 0.5 - sum * width / 3;
}

double resample_tail(size_t count, double confidence)
{
    double tail = (1 - confidence) / 2, n = (double)count;
    double low = 0, high = 100;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (student_tail(middle, n - 1) > tail)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * erfc(sqrt(n / (n - 1)) * low / M_SQRT2);
}

size_t resample_rounds(size_t count)
{
    size_t rounds = ROUND_WORK / (count ? count : 1);
    return rounds < RESAMPLE_ROUNDS_MIN   ? RESAMPLE_ROUNDS_MIN
           : rounds > RESAMPLE_ROUNDS_MAX ? RESAMPLE_ROUNDS_MAX
                                          : rounds;
}

static int figure_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void resample_interval(double *figures, size_t rounds, size_t count, double confidence,
                       double *ret_low, double *ret_high)
{
    qsort(figures, rounds, sizeof(*figures), figure_compare);
    double tail = resample_tail(count, confidence);
    *ret_low = percentile_sorted(figures, rounds, tail);
    *ret_high = percentile_sorted(figures, rounds, 1 - tail);
}
