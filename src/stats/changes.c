/* The energy distance of every split at once: with the sums of distances inside the left
 * part, inside the right part and between them kept up to date, moving the split by one
 * value costs one pass over the row of distances. */
#include "stats/changes.h"

#include "stats/random.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct search {
    const double *values;
    double p_max;
    uint64_t random;
    double *distance; /* between values i and k, at i * span + k, of the segment at hand */
    size_t *order;
    double *scratch;
    struct change *found;
    size_t found_count;
};

struct split {
    size_t at; /* values on the left */
    double energy;
};

static double between(const struct search *search, size_t span, size_t i, size_t k)
{
    return search->distance[search->order[i] * span + search->order[k]];
}

/* The best split of the segment in its present order. */
static struct split best_split(const struct search *search, size_t span)
{
    double left = 0, right = 0, across = 0;
    for (size_t i = 0; i < span; i++)
        for (size_t k = i + 1; k < span; k++)
            right += between(search, span, i, k);
    struct split best = {0, -INFINITY};
    for (size_t at = 1; at <= span - CHANGES_SIDE_MIN; at++) {
        /* Value at-1 moves from the right part to the left one. */
        double to_left = 0, to_right = 0;
        for (size_t k = 0; k < at - 1; k++)
            to_left += between(search, span, at - 1, k);
        for (size_t k = at; k < span; k++)
            to_right += between(search, span, at - 1, k);
        left += to_left;
        right -= to_right;
        across += to_right - to_left;
        if (at < CHANGES_SIDE_MIN)
            continue;
        double m = (double)at, n = (double)(span - at);
        double energy = 2 * across / (m * n) - 2 * left / (m * m) - 2 * right / (n * n);
        energy *= m * n / (m + n);
        if (energy > best.energy)
            best = (struct split){at, energy};
    }
    return best;
}

static void shuffle(struct search *search, size_t span)
{
    for (size_t i = span - 1; i > 0; i--) {
        size_t k = (size_t)random_below(&search->random, i + 1);
        size_t swap = search->order[i];
        search->order[i] = search->order[k];
        search->order[k] = swap;
    }
}

/* Enough orders that p_max is reached with a few of them at least as good, and no more once
 * so many were as good that it cannot be reached. */
static double permutation_p(struct search *search, size_t span, double energy)
{
    size_t orders = (size_t)ceil(5 / search->p_max) - 1;
    size_t allowed = (size_t)(search->p_max * (double)(orders + 1));
    size_t as_good = 0, tried = 0;
    while (tried < orders && as_good <= allowed) {
        shuffle(search, span);
        /* Equal up to rounding is as good: sums depend on the order. */
        as_good += best_split(search, span).energy >= energy * (1 - 1e-9);
        tried++;
    }
    return (double)(as_good + 1) / (double)(tried + 1);
}

static void segment_load(struct search *search, size_t from, size_t span)
{
    for (size_t i = 0; i < span; i++) {
        search->order[i] = i;
        for (size_t k = 0; k < span; k++)
            search->distance[i * span + k] = fabs(search->values[from + i] -
                                                  search->values[from + k]);
    }
}

/* Segments still to be searched lie on a stack of our own: a change makes two of one. */
static void search_all(struct search *search, size_t count)
{
    struct {
        size_t from, to;
    } todo[CHANGES_MAX + 1];
    size_t todo_count = 1;
    todo[0].from = 0;
    todo[0].to = count;
    while (todo_count > 0 && search->found_count < CHANGES_MAX) {
        todo_count--;
        size_t from = todo[todo_count].from, to = todo[todo_count].to, span = to - from;
        if (span < 2 * CHANGES_SIDE_MIN)
            continue;
        segment_load(search, from, span);
        struct split split = best_split(search, span);
        if (split.energy <= 0)
            continue;
        double p = permutation_p(search, span, split.energy);
        if (p > search->p_max)
            continue;
        search->found[search->found_count++] = (struct change){.at = from + split.at, .p = p};
        if (todo_count + 2 <= CHANGES_MAX) {
            todo[todo_count].from = from;
            todo[todo_count++].to = from + split.at;
            todo[todo_count].from = from + split.at;
            todo[todo_count++].to = to;
        }
    }
}

static int earlier(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static double median_between(struct search *search, size_t from, size_t to)
{
    memcpy(search->scratch, search->values + from, (to - from) * sizeof(double));
    return median_in_place(search->scratch, to - from);
}

static void medians_fill(struct search *search, size_t count)
{
    for (size_t i = 0; i < search->found_count; i++) {
        struct change *change = &search->found[i];
        size_t from = i > 0 ? change[-1].at : 0;
        size_t to = i + 1 < search->found_count ? change[1].at : count;
        change->before = median_between(search, from, change->at);
        change->after = median_between(search, change->at, to);
    }
}

int changes_find(const double *values, size_t count, double p_max, uint64_t seed,
                 struct change ret[CHANGES_MAX])
{
    if (count > CHANGES_VALUES_MAX || !(p_max > 0 && p_max < 1))
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return -EINVAL;
    if (count < 2 * CHANGES_SIDE_MIN)
        return 0;
    struct change found[CHANGES_MAX];
    struct search search = {
        .values = values,
        .p_max = p_max,
        .random = seed,
        .distance = malloc(count * count * sizeof(double)),
        .order = malloc(count * sizeof(size_t)),
        .scratch = malloc(count * sizeof(double)),
        .found = found,
    };
    int r = -ENOMEM;
    if (search.distance && search.order && search.scratch) {
        search_all(&search, count);
        qsort(found, search.found_count, sizeof(found[0]), earlier);
        medians_fill(&search, count);
        memcpy(ret, found, search.found_count * sizeof(found[0]));
        r = (int)search.found_count;
    }
    free(search.distance);
    free(search.order);
    free(search.scratch);
    return r;
}
