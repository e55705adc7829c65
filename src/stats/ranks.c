/* Sums of doubled ranks are small whole numbers, so that their exact distribution is a table
 * filled one value at a time instead of 2^n cases gone through one by one. */
#include "stats/ranks.h"

#include "stats/random.h"
#include "stats/resample.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLIPS_MAX = 20000, FLIPS_MIN = 2000, FLIP_WORK = 20000000 };

int ranks_doubled(const double *values, size_t count, uint32_t *ret)
{
    if (count > RANKS_MAX)
        return -EINVAL;
    struct resample order;
    int r = resample_init(&order, values, count);
    if (r < 0)
        return r;
    uint32_t *by_place = order.counts;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && order.sorted[end] == order.sorted[i];)
            end++;
        /* Ranks i+1 to end share their mean: (i + 1 + end) / 2. */
        for (size_t k = i; k < end; k++)
            by_place[k] = (uint32_t)(i + 1 + end);
    }
    for (size_t i = 0; i < count; i++)
        ret[i] = by_place[order.places[i]];
    resample_deinit(&order);
    return 0;
}

/* The chance that the sum of the ranks with a plus is as far from its middle as `plus`. */
static int flips_exact(const uint32_t *ranks, size_t count, uint64_t plus, double *ret_p)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += ranks[i];
    double *chance = calloc(total + 1, sizeof(*chance));
    if (!chance)
        return -ENOMEM;
    chance[0] = 1;
    size_t reach = 0;
    for (size_t i = 0; i < count; i++) {
        reach += ranks[i];
        for (size_t sum = reach + 1; sum-- > 0;)
            chance[sum] = (chance[sum] + (sum >= ranks[i] ? chance[sum - ranks[i]] : 0)) / 2;
    }
    /* Distances from the middle, doubled once more to stay whole. */
    int64_t seen = llabs(2 * (int64_t)plus - (int64_t)total);
    double p = 0;
    for (size_t sum = 0; sum <= total; sum++)
        if (llabs(2 * (int64_t)sum - (int64_t)total) >= seen)
            p += chance[sum];
    free(chance);
    *ret_p = fmin(1, p);
    return 0;
}

static double flips_sampled(const uint32_t *ranks, size_t count, uint64_t plus, uint64_t seed)
{
    assert(count > 0);
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += ranks[i];
    int64_t seen = llabs(2 * (int64_t)plus - (int64_t)total);
    size_t rounds = FLIP_WORK / count;
    rounds = rounds < FLIPS_MIN ? FLIPS_MIN : rounds > FLIPS_MAX ? FLIPS_MAX : rounds;
    size_t as_far = 0;
    for (size_t round = 0; round < rounds; round++) {
        uint64_t sum = 0, bits = 0;
        for (size_t i = 0; i < count; i++) {
            if (i % 64 == 0)
                bits = random_next(&seed);
            sum += (bits >> (i % 64) & 1) ? ranks[i] : 0;
        }
        as_far += llabs(2 * (int64_t)sum - (int64_t)total) >= seen;
    }
    /* The order that was seen is one of the possible ones: p is never 0. */
    return (double)(as_far + 1) / (double)(rounds + 1);
}

int ranks_sign_flip(const double *values, size_t count, uint64_t seed, double *ret_p)
{
    if (count == 0 || count > RANKS_MAX)
        return -EINVAL;
    double *sizes = malloc(count * sizeof(*sizes));
    uint32_t *ranks = malloc(count * sizeof(*ranks));
    size_t used = 0;
    int r = sizes && ranks ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (!isfinite(values[i]))
            r = -EINVAL;
        else if (values[i] != 0)
            sizes[used++] = fabs(values[i]);
    }
    double p = 1;
    if (r == 0 && used > 0) {
        r = ranks_doubled(sizes, used, ranks);
        uint64_t plus = 0;
        size_t at = 0;
        for (size_t i = 0; r == 0 && i < count; i++) {
            if (values[i] == 0)
                continue;
            plus += values[i] > 0 ? ranks[at] : 0;
            at++;
        }
        if (r == 0 && used <= RANKS_EXACT_BLOCKS)
            r = flips_exact(ranks, used, plus, &p);
        else if (r == 0)
            p = flips_sampled(ranks, used, plus, seed);
    }
    free(sizes);
    free(ranks);
    if (r == 0)
        *ret_p = p;
    return r;
}

/* chance[k][sum]: the share of all ways to draw k of the values whose ranks sum to `sum`. */
static int draws_exact(const uint32_t *ranks, size_t a_count, size_t count, uint64_t a_sum,
                       double *ret_p)
{
    size_t total = count * (count + 1); /* all doubled ranks; ties keep it */
    size_t width = total + 1;
    double *ways = calloc((a_count + 1) * width, sizeof(*ways));
    if (!ways)
        return -ENOMEM;
    ways[0] = 1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = a_count < i + 1 ? a_count : i + 1; k > 0; k--)
            for (size_t sum = total + 1; sum-- > ranks[i];)
                ways[k * width + sum] += ways[(k - 1) * width + sum - ranks[i]];
    double all = 0, as_far = 0;
    int64_t middle = (int64_t)(a_count * (count + 1)); /* of a doubled rank sum */
    int64_t seen = llabs((int64_t)a_sum - middle);
    for (size_t sum = 0; sum <= total; sum++) {
        double here = ways[a_count * width + sum];
        all += here;
        if (llabs((int64_t)sum - middle) >= seen)
            as_far += here;
    }
    free(ways);
    *ret_p = fmin(1, as_far / all);
    return 0;
}

/* Sum over groups of ties of t^3 - t. */
static double ties_sum(const uint32_t *ranks, size_t count)
{
    uint32_t *sorted = calloc(2 * count + 1, sizeof(*sorted));
    if (!sorted)
        return NAN;
    for (size_t i = 0; i < count; i++)
        sorted[ranks[i]]++;
    double sum = 0;
    for (size_t i = 0; i <= 2 * count; i++)
        sum += pow(sorted[i], 3) - sorted[i];
    free(sorted);
    return sum;
}

static double draws_normal(const uint32_t *ranks, size_t a_count, size_t b_count, uint64_t a_sum)
{
    double n = (double)a_count, m = (double)b_count, all = n + m;
    double u = (double)a_sum / 2 - n * (n + 1) / 2;
    double ties = ties_sum(ranks, a_count + b_count);
    double variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
    if (isnan(variance) || variance <= 0)
        return isnan(variance) ? NAN : 1; /* all values are equal */
    double z = fmax(0, fabs(u - n * m / 2) - 0.5) / sqrt(variance);
    return erfc(z / M_SQRT2);
}

int ranks_two_samples(const double *a, size_t a_count, const double *b, size_t b_count,
                      double *ret_p)
{
    if (a_count == 0 || b_count == 0 || a_count > RANKS_MAX / 2 || b_count > RANKS_MAX / 2)
        return -EINVAL;
    size_t count = a_count + b_count;
    double *all = malloc(count * sizeof(*all));
    uint32_t *ranks = calloc(count, sizeof(*ranks));
    int r = all && ranks ? 0 : -ENOMEM;
    double p = NAN;
    if (r == 0) {
        memcpy(all, a, a_count * sizeof(*a));
        memcpy(all + a_count, b, b_count * sizeof(*b));
        r = ranks_doubled(all, count, ranks);
    }
    if (r == 0) {
        uint64_t a_sum = 0;
        for (size_t i = 0; i < a_count; i++)
            a_sum += ranks[i];
        if (count <= RANKS_EXACT_SAMPLES)
            r = draws_exact(ranks, a_count, count, a_sum, &p);
        else
            p = draws_normal(ranks, a_count, b_count, a_sum);
        if (r == 0 && isnan(p))
            r = -ENOMEM;
    }
    free(all);
    free(ranks);
    if (r == 0)
        *ret_p = p;
    return r;
}
