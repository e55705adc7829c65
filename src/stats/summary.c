/* Order statistics of runs. Pure functions over doubles. */
#include "stats/summary.h"

#include "stats/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BOOTSTRAP_ROUNDS = 2000, DRIFT_RUNS_MIN = 6 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_in_place(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
}

double median_in_place(double *values, size_t count)
{
    sort_in_place(values, count);
    return percentile_sorted(values, count, 0.5);
}

static double *sorted_copy(const double *values, size_t count)
{
    double *copy = malloc(count * sizeof(*copy));
    if (copy) {
        memcpy(copy, values, count * sizeof(*copy));
        qsort(copy, count, sizeof(*copy), compare);
    }
    return copy;
}

static bool is_usable(const double *values, size_t count)
{
    if (count == 0 || count > SUMMARY_RUNS_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

double percentile_sorted(const double *sorted, size_t count, double share)
{
    double at = share * (double)(count - 1);
    size_t below = (size_t)at;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

/* log of the binomial probability of k successes in n fair trials. */
static double log_choose_half(size_t n, size_t k)
{
    return lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) -
           (double)n * M_LN2;
}

int median_interval_ranks(size_t count, size_t *ret_low, size_t *ret_high)
{
    /* The interval (l, n+1-l) misses the median when fewer than l of the values
     * lie on one side: probability 2 * P(X <= l-1), X ~ B(n, 1/2). */
    double miss = 0;
    size_t low = 0;
    for (size_t k = 0; 2 * (k + 1) <= count + 1; k++) {
        miss += 2 * exp(log_choose_half(count, k));
        if (miss > 0.05)
            break;
        low = k + 1;
    }
    if (low == 0)
        return -ERANGE;
    *ret_low = low;
    *ret_high = count + 1 - low;
    return 0;
}

static double median_of(const double *values, size_t count, double *scratch)
{
    memcpy(scratch, values, count * sizeof(*scratch));
    return median_in_place(scratch, count);
}

static double drift_percent(const double *values, size_t count, double *scratch)
{
    if (count < DRIFT_RUNS_MIN)
        return NAN;
    size_t third = count / 3;
    double first = median_of(values, third, scratch);
    double last = median_of(values + count - third, third, scratch);
    return first == 0 ? NAN : (last - first) / first * 100;
}

static void spread_fill(struct summary *s, const double *values, double *scratch)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += values[i];
    s->mean = sum / (double)s->count;
    for (size_t i = 0; i < s->count; i++)
        squares += (values[i] - s->mean) * (values[i] - s->mean);
    s->stddev = s->count > 1 ? sqrt(squares / (double)(s->count - 1)) : NAN;
    s->cv_percent = s->mean != 0 ? s->stddev / fabs(s->mean) * 100 : NAN;
    for (size_t i = 0; i < s->count; i++)
        scratch[i] = fabs(values[i] - s->median);
    qsort(scratch, s->count, sizeof(*scratch), compare);
    s->mad = s->count > 1 ? percentile_sorted(scratch, s->count, 0.5) : NAN;
    /* 1.4826 MAD estimates a standard deviation, were the runs normal. */
    double limit = 3.5 * 1.4826 * s->mad;
    for (size_t i = 0; i < s->count; i++)
        s->outliers += s->mad > 0 && fabs(values[i] - s->median) > limit;
}

int summary_make(const double *values, size_t count, struct summary *ret)
{
    if (!is_usable(values, count))
        return -EINVAL;
    double *sorted = sorted_copy(values, count);
    double *scratch = malloc(count * sizeof(*scratch));
    if (!sorted || !scratch) {
        free(sorted);
        free(scratch);
        return -ENOMEM;
    }
    struct summary s = {
        .count = count,
        .min = sorted[0],
        .max = sorted[count - 1],
        .median = percentile_sorted(sorted, count, 0.5),
        .p5 = percentile_sorted(sorted, count, 0.05),
        .p95 = percentile_sorted(sorted, count, 0.95),
        .p99 = percentile_sorted(sorted, count, 0.99),
        .p99_9 = percentile_sorted(sorted, count, 0.999),
        .p99_99 = percentile_sorted(sorted, count, 0.9999),
        .p5_carried = count >= 20,
        .p95_carried = count >= 20,
        .p99_carried = count >= 100,
        .p99_9_carried = count >= 1000,
        .p99_99_carried = count >= 10000,
    };
    size_t low, high;
    if (median_interval_ranks(count, &low, &high) == 0) {
        s.has_interval = true;
        s.median_low = sorted[low - 1];
        s.median_high = sorted[high - 1];
    }
    spread_fill(&s, values, scratch);
    s.drift_percent = drift_percent(values, count, scratch);
    free(sorted);
    free(scratch);
    *ret = s;
    return 0;
}

int median_bootstrap(const double *values, size_t count, uint64_t seed, double *ret_low,
                     double *ret_high)
{
    if (!is_usable(values, count))
        return -EINVAL;
    double *draw = malloc(count * sizeof(*draw));
    double *medians = malloc(BOOTSTRAP_ROUNDS * sizeof(*medians));
    if (!draw || !medians) {
        free(draw);
        free(medians);
        return -ENOMEM;
    }
    for (size_t round = 0; round < BOOTSTRAP_ROUNDS; round++) {
        for (size_t i = 0; i < count; i++)
            draw[i] = values[random_next(&seed) % count];
        qsort(draw, count, sizeof(*draw), compare);
        medians[round] = percentile_sorted(draw, count, 0.5);
    }
    qsort(medians, BOOTSTRAP_ROUNDS, sizeof(*medians), compare);
    *ret_low = percentile_sorted(medians, BOOTSTRAP_ROUNDS, 0.025);
    *ret_high = percentile_sorted(medians, BOOTSTRAP_ROUNDS, 0.975);
    free(draw);
    free(medians);
    return 0;
}
