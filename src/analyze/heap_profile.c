/* Sites as totals of a profile. What lives is known only of all threads together: one may free
 * what another allocated, so that its own figure is negative. */
#include "analyze/heap_load.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

static const struct measure {
    const char *series, *about;
    enum unit unit;
    bool together; /* sites of all threads of a process */
} measures[HEAP_MEASURES] = {
    [HEAP_BY_BYTES] = {"heap_bytes", "bytes allocated, freed or not", UNIT_BYTES, false},
    [HEAP_BY_COUNT] = {"heap_count", "allocations", UNIT_COUNT, false},
    [HEAP_BY_PEAK] = {"heap_peak", "bytes that lived at the peak of their process", UNIT_BYTES,
                      true},
    [HEAP_BY_LEAK] = {"heap_leak", "bytes that were not freed at the end", UNIT_BYTES, true},
    [HEAP_BY_TEMPORARY] = {"heap_temporary", "allocations that were freed right after", UNIT_COUNT,
                           false},
};

struct group {
    uint32_t thread, stack;
    int64_t count, weight;
    uint64_t most; /* allocated there by `thread`: it stands for all of them */
};

struct groups {
    struct map_u64 at; /* process, or thread, and stack to index */
    VEC(struct group) rows;
};

static void figures(const struct heap_tally *tally, enum heap_measure measure, int64_t *ret_count,
                    int64_t *ret_weight)
{
    switch (measure) {
    case HEAP_BY_PEAK:
        *ret_count = tally->peak_count;
        *ret_weight = tally->peak_bytes;
        break;
    case HEAP_BY_LEAK:
        *ret_count = (int64_t)tally->allocations - (int64_t)tally->frees;
        *ret_weight = (int64_t)tally->allocated_bytes - (int64_t)tally->freed_bytes;
        break;
    case HEAP_BY_TEMPORARY:
        *ret_count = *ret_weight = (int64_t)tally->temporary;
        break;
    case HEAP_BY_COUNT:
        *ret_count = *ret_weight = (int64_t)tally->allocations;
        break;
    default:
        *ret_count = (int64_t)tally->allocations;
        *ret_weight = (int64_t)tally->allocated_bytes;
    }
}

static int site_add(struct groups *groups, const struct heap_site *site, enum heap_measure measure)
{
    uint32_t whose = measures[measure].together ? site->process : site->info.thread;
    bool fresh;
    uint64_t *at = map_u64_at(&groups->at, (uint64_t)whose << 32 | site->info.stack, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        *at = groups->rows.len;
        struct group group = {.thread = site->info.thread, .stack = site->info.stack};
        if (VEC_PUSH(&groups->rows, group) < 0)
            return -ENOMEM;
    }
    struct group *group = &groups->rows.data[*at];
    int64_t count = 0, weight = 0;
    figures(&site->tally, measure, &count, &weight);
    group->count += count;
    group->weight += weight;
    if (site->tally.allocated_bytes > group->most) {
        group->most = site->tally.allocated_bytes;
        group->thread = site->info.thread;
    }
    return 0;
}

/* Negative sums are cut off here and no earlier. A weight has a count: what has none is taken for
 * a stack of another series. */
static void totals_make(const struct groups *groups, struct profile *profile)
{
    for (size_t i = 0; i < groups->rows.len; i++) {
        const struct group *group = &groups->rows.data[i];
        struct profile_total total = {.thread = group->thread, .stack = group->stack};
        total.weight = (uint64_t)MAX(group->weight, (int64_t)0);
        total.count = (uint64_t)MAX(group->count, total.weight > 0 ? (int64_t)1 : (int64_t)0);
        if (total.count == 0)
            continue;
        profile->weight += total.weight;
        profile->count += total.count;
        profile->totals[profile->total_count++] = total;
    }
}

int heap_profile(struct arena *arena, const struct heap *heap, enum heap_measure measure,
                 struct profile *ret)
{
    struct groups groups = {0};
    struct profile profile = heap->profile;
    profile.series = measures[measure].series;
    profile.about = measures[measure].about;
    profile.unit = measures[measure].unit;
    profile.start_ns = heap->start_ns;
    profile.end_ns = heap->end_ns;
    profile.weight = profile.count = profile.total_count = profile.sample_count = 0;
    profile.sample_time_ns = profile.sample_weight = NULL;
    profile.sample_thread = profile.sample_stack = NULL;
    int r = 0;
    for (size_t i = 1; i < heap->site_count && r == 0; i++)
        if (heap->sites[i].info.kind == HEAP_KIND_HEAP)
            r = site_add(&groups, &heap->sites[i], measure);
    profile.totals = arena_alloc(arena, (groups.rows.len + 1) * sizeof(*profile.totals));
    if (r == 0 && !profile.totals)
        r = -ENOMEM;
    if (r == 0) {
        totals_make(&groups, &profile);
        *ret = profile;
    }
    map_u64_deinit(&groups.at);
    VEC_FREE(&groups.rows);
    return r;
}
