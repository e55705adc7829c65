/* Bootstrap and permutation over blocks; see blocks.h. */
#include "stats/blocks.h"

#include "stats/random.h"
#include "stats/ranks.h"
#include "stats/resample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static void interval_take(double *logs, size_t rounds, size_t count, double confidence,
                          struct ratio *ret)
{
    resample_interval(logs, rounds, count, confidence, &ret->low, &ret->high);
    ret->low = exp(ret->low);
    ret->high = exp(ret->high);
    ret->has_interval = true;
}

/* The usual question: medians, through the figures of the blocks. */
static int figures_compare(const double *figures, size_t count, const struct ratio_opts *opts,
                           struct ratio *ret)
{
    struct resample resample;
    int r = resample_init(&resample, figures, count);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        resample_add(&resample, i);
    ret->ratio = exp(resample_quantile(&resample, 0.5));
    size_t rounds = resample_rounds(count);
    bool enough = count >= ratio_count_min(0.5, opts->confidence);
    double *logs = enough ? malloc(rounds * sizeof(*logs)) : NULL;
    if (enough && !logs)
        r = -ENOMEM;
    uint64_t state = opts->seed;
    for (size_t round = 0; logs && round < rounds; round++) {
        resample_clear(&resample);
        for (size_t i = 0; i < count; i++)
            resample_add(&resample, random_below(&state, count));
        logs[round] = resample_quantile(&resample, 0.5);
    }
    if (logs)
        interval_take(logs, rounds, count, opts->confidence, ret);
    free(logs);
    resample_deinit(&resample);
    return r;
}

static int medians_compare(const double *a, const double *b, size_t count,
                           const struct ratio_opts *opts, struct ratio *ret)
{
    double *figures = malloc(count * sizeof(*figures));
    if (!figures)
        return -ENOMEM;
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        if ((a[i] == 0) != (b[i] == 0))
            r = -EDOM;
        figures[i] = a[i] == 0 ? 0 : log(b[i] / a[i]);
    }
    if (r == 0)
        r = figures_compare(figures, count, opts, ret);
    double shift = log(opts->threshold);
    for (size_t i = 0; r == 0 && i < count; i++)
        figures[i] -= shift;
    if (r == 0)
        r = ranks_sign_flip(figures, count, opts->seed, &ret->p);
    free(figures);
    return r;
}

/* The sides of a tail: their values in logs, so that a difference is a ratio. */
struct sides {
    struct resample a, b;         /* one side each */
    struct resample all_a, all_b; /* both sides' values (A's first), dealt to A and to B */
    double *rounds_logs;
};

static void sides_deinit(struct sides *sides)
{
    resample_deinit(&sides->a);
    resample_deinit(&sides->b);
    resample_deinit(&sides->all_a);
    resample_deinit(&sides->all_b);
    free(sides->rounds_logs);
}

/* A is moved up by the threshold: if B is that much slower, both sides are alike then. */
static int sides_init(struct sides *sides, const double *a, const double *b, size_t count,
                      double threshold)
{
    double *logs = malloc(2 * count * sizeof(*logs));
    if (!logs)
        return -ENOMEM;
    int r = 0;
    for (size_t i = 0; i < count; i++) {
        if (a[i] == 0 || b[i] == 0)
            r = -EDOM;
        logs[i] = log(a[i]) + log(threshold);
        logs[count + i] = log(b[i]);
    }
    if (r == 0)
        r = resample_init(&sides->a, logs, count);
    if (r == 0)
        r = resample_init(&sides->b, logs + count, count);
    if (r == 0)
        r = resample_init(&sides->all_a, logs, 2 * count);
    if (r == 0)
        r = resample_init(&sides->all_b, logs, 2 * count);
    if (r == 0 && !(sides->rounds_logs = malloc(RESAMPLE_ROUNDS_MAX * sizeof(double))))
        r = -ENOMEM;
    free(logs);
    return r;
}

static double sides_difference(const struct sides *sides, double share)
{
    return resample_quantile(&sides->b, share) - resample_quantile(&sides->a, share);
}

/* How often do swaps inside blocks part the sides as far as they are? */
static double sides_swap(struct sides *sides, size_t count, double share, double seen,
                         uint64_t *state)
{
    size_t rounds = resample_rounds(4 * count), as_far = 0;
    for (size_t round = 0; round < rounds; round++) {
        resample_clear(&sides->all_a);
        resample_clear(&sides->all_b);
        uint64_t bits = 0;
        for (size_t i = 0; i < count; i++) {
            if (i % 64 == 0)
                bits = random_next(state);
            bool swap = bits >> (i % 64) & 1;
            resample_add(&sides->all_a, swap ? count + i : i);
            resample_add(&sides->all_b, swap ? i : count + i);
        }
        double difference = resample_quantile(&sides->all_b, share) -
                            resample_quantile(&sides->all_a, share);
        as_far += fabs(difference) >= fabs(seen);
    }
    return (double)(as_far + 1) / (double)(rounds + 1);
}

static int tails_compare(const double *a, const double *b, size_t count,
                         const struct ratio_opts *opts, struct ratio *ret)
{
    struct sides sides = {0};
    int r = sides_init(&sides, a, b, count, opts->threshold);
    if (r < 0) {
        sides_deinit(&sides);
        return r;
    }
    for (size_t i = 0; i < count; i++) {
        resample_add(&sides.a, i);
        resample_add(&sides.b, i);
    }
    double seen = sides_difference(&sides, opts->share);
    ret->ratio = exp(seen) * opts->threshold;
    uint64_t state = opts->seed;
    ret->p = sides_swap(&sides, count, opts->share, seen, &state);
    size_t rounds = count >= ratio_count_min(opts->share, opts->confidence) ? resample_rounds(count)
                                                                            : 0;
    for (size_t round = 0; round < rounds; round++) {
        resample_clear(&sides.a);
        resample_clear(&sides.b);
        for (size_t i = 0; i < count; i++) {
            size_t block = random_below(&state, count);
            resample_add(&sides.a, block);
            resample_add(&sides.b, block);
        }
        sides.rounds_logs[round] = sides_difference(&sides, opts->share) + log(opts->threshold);
    }
    if (rounds > 0)
        interval_take(sides.rounds_logs, rounds, count, opts->confidence, ret);
    sides_deinit(&sides);
    return 0;
}

int blocks_compare(const double *a, const double *b, size_t count, const struct ratio_opts *opts,
                   struct ratio *ret)
{
    if (count == 0 || count > BLOCKS_MAX)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(a[i]) || !isfinite(b[i]) || a[i] < 0 || b[i] < 0)
            return -EINVAL;
    struct ratio ratio = {.count = count, .p = 1};
    int r = opts->share == 0.5 ? medians_compare(a, b, count, opts, &ratio)
                               : tails_compare(a, b, count, opts, &ratio);
    if (r == 0)
        *ret = ratio;
    return r;
}
