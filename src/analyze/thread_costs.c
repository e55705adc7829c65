/* Totals by thread and leaf function, then by group and leaf function. */
#include "analyze/thread_costs.h"

#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

/* Adds up by one kind of owner: threads or groups. */
struct owners {
    struct thread_cost *costs; /* [id] */
    size_t count;
    struct map_u64 weight_at; /* owner and function to self weight */
};

static int owner_add(struct owners *owners, uint32_t id, uint32_t function,
                     const struct profile_total *total)
{
    struct thread_cost *cost = &owners->costs[id];
    cost->id = id;
    cost->weight += total->weight;
    cost->count += total->count;
    uint64_t *weight = map_u64_at(&owners->weight_at, (uint64_t)id << 32 | function, NULL);
    if (!weight)
        return -ENOMEM;
    *weight += total->weight;
    /* Weights only grow, so the heaviest is the last that overtook. */
    bool heavier = *weight > cost->top_weight ||
                   (*weight == cost->top_weight && function < cost->top_function);
    if (heavier || cost->top_function == function) {
        cost->top_weight = *weight;
        cost->top_function = function;
    }
    return 0;
}

static int costs_order(const void *left, const void *right)
{
    const struct thread_cost *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static size_t owners_rank(struct owners *owners)
{
    size_t kept = 0;
    for (size_t i = 0; i < owners->count; i++)
        if (owners->costs[i].count > 0)
            owners->costs[kept++] = owners->costs[i];
    if (kept > 1)
        qsort(owners->costs, kept, sizeof(*owners->costs), costs_order);
    return kept;
}

static int gather(const struct profile *profile, struct owners *threads, struct owners *groups)
{
    for (size_t i = 0; i < profile->total_count; i++) {
        const struct profile_total *total = &profile->totals[i];
        const struct profile_frame *leaf = &profile->frames[profile->stacks[total->stack].frame];
        uint32_t function = profile->places[leaf->places].function;
        uint32_t thread = profile_life(profile, total->thread);
        uint32_t group = profile->threads[thread].group;
        if (threads->costs[thread].count == 0)
            groups->costs[group].threads++;
        threads->costs[thread].threads = 1;
        int r = owner_add(threads, thread, function, total);
        if (r == 0)
            r = owner_add(groups, group, function, total);
        if (r < 0)
            return r;
    }
    return 0;
}

int thread_costs_build(struct arena *arena, const struct profile *profile, struct thread_costs *ret)
{
    struct owners threads = {.count = profile->thread_count};
    struct owners groups = {.count = profile->thread_group_count};
    threads.costs = arena_alloc(arena, threads.count * sizeof(*threads.costs));
    groups.costs = arena_alloc(arena, groups.count * sizeof(*groups.costs));
    int r = threads.costs && groups.costs ? gather(profile, &threads, &groups) : -ENOMEM;
    if (r == 0)
        *ret = (struct thread_costs){
            .groups = groups.costs,
            .group_count = owners_rank(&groups),
            .threads = threads.costs,
            .thread_count = owners_rank(&threads),
        };
    map_u64_deinit(&threads.weight_at);
    map_u64_deinit(&groups.weight_at);
    return r;
}
