/* Bootstrap and permutation over two independent samples; see samples.h. */
#include "stats/samples.h"

#include "stats/random.h"
#include "stats/ranks.h"
#include "stats/resample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    struct resample a, b;
    double share;
};

/* log(B/A) of the quantiles drawn. */
static int pair_figure(const struct pair *pair, double *ret)
{
    double a = resample_quantile(&pair->a, pair->share);
    double b = resample_quantile(&pair->b, pair->share);
    if ((a == 0) != (b == 0))
        return -EDOM;
    *ret = a == 0 ? 0 : log(b) - log(a);
    return 0;
}

static void draw_all(struct resample *sample)
{
    resample_clear(sample);
    for (size_t i = 0; i < sample->count; i++)
        resample_add(sample, i);
}

static void draw_again(struct resample *sample, uint64_t *state)
{
    resample_clear(sample);
    for (size_t i = 0; i < sample->count; i++)
        resample_add(sample, random_below(state, sample->count));
}

static int interval_make(struct pair *pair, const struct ratio_opts *opts, uint64_t *state,
                         struct ratio *ret)
{
    size_t rounds = resample_rounds(pair->a.count + pair->b.count);
    double *figures = malloc(rounds * sizeof(*figures));
    int r = figures ? 0 : -ENOMEM;
    for (size_t round = 0; r == 0 && round < rounds; round++) {
        draw_again(&pair->a, state);
        draw_again(&pair->b, state);
        r = pair_figure(pair, &figures[round]);
    }
    if (r == 0) {
        resample_interval(figures, rounds, ret->count, opts->confidence, &ret->low, &ret->high);
        ret->low = exp(ret->low);
        ret->high = exp(ret->high);
        ret->has_interval = true;
    }
    free(figures);
    return r;
}

/* Deals all values anew to A and to B: how often are the quantiles as far apart? `all` holds
 * A's values first. */
static int labels_deal(const double *all, size_t a_count, size_t count,
                       const struct ratio_opts *opts, uint64_t *state, double *ret_p)
{
    struct pair dealt = {.share = opts->share};
    uint32_t *cards = malloc(count * sizeof(*cards));
    int r = cards ? resample_init(&dealt.a, all, count) : -ENOMEM;
    if (r == 0)
        r = resample_init(&dealt.b, all, count);
    size_t rounds = resample_rounds(4 * count), as_far = 0;
    double seen = 0, figure = 0;
    for (size_t i = 0; r == 0 && i < count; i++)
        cards[i] = (uint32_t)i;
    for (size_t round = 0; r == 0 && round <= rounds; round++) {
        resample_clear(&dealt.a);
        resample_clear(&dealt.b);
        for (size_t i = 0; i < count; i++) {
            /* Round 0 is the deal that was seen. */
            size_t other = round ? i + random_below(state, count - i) : i;
            uint32_t card = cards[other];
            cards[other] = cards[i];
            cards[i] = card;
            resample_add(i < a_count ? &dealt.a : &dealt.b, card);
        }
        r = pair_figure(&dealt, &figure);
        if (round == 0)
            seen = fabs(figure);
        as_far += r == 0 && fabs(figure) >= seen;
    }
    resample_deinit(&dealt.a);
    resample_deinit(&dealt.b);
    free(cards);
    if (r == 0)
        *ret_p = (double)as_far / (double)(rounds + 1);
    return r;
}

/* A is moved by the threshold first: if B is that much slower, both are alike then. */
static int p_make(const double *a, size_t a_count, const double *b, size_t b_count,
                  const struct ratio_opts *opts, uint64_t *state, double *ret_p)
{
    double *all = malloc((a_count + b_count) * sizeof(*all));
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < a_count; i++)
        all[i] = a[i] * opts->threshold;
    memcpy(all + a_count, b, b_count * sizeof(*b));
    int r = opts->share == 0.5 ? ranks_two_samples(all, a_count, all + a_count, b_count, ret_p)
                               : labels_deal(all, a_count, a_count + b_count, opts, state, ret_p);
    free(all);
    return r;
}

static bool is_usable(const double *values, size_t count)
{
    if (count == 0 || count > SAMPLES_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]) || values[i] < 0)
            return false;
    return true;
}

int samples_compare(const double *a, size_t a_count, const double *b, size_t b_count,
                    const struct ratio_opts *opts, struct ratio *ret)
{
    if (!is_usable(a, a_count) || !is_usable(b, b_count))
        return -EINVAL;
    struct ratio ratio = {.count = a_count < b_count ? a_count : b_count, .p = 1};
    struct pair pair = {.share = opts->share};
    uint64_t state = opts->seed;
    double figure = 0;
    int r = resample_init(&pair.a, a, a_count);
    if (r == 0)
        r = resample_init(&pair.b, b, b_count);
    if (r == 0) {
        draw_all(&pair.a);
        draw_all(&pair.b);
        r = pair_figure(&pair, &figure);
    }
    ratio.ratio = exp(figure);
    if (r == 0 && ratio.count >= ratio_count_min(opts->share, opts->confidence))
        r = interval_make(&pair, opts, &state, &ratio);
    if (r == 0)
        r = p_make(a, a_count, b, b_count, opts, &state, &ratio.p);
    resample_deinit(&pair.a);
    resample_deinit(&pair.b);
    if (r == 0)
        *ret = ratio;
    return r;
}
