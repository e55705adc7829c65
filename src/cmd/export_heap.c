/* Heap rows to a profile with one value, or with pprof's four. */
#include "cmd/export_heap.h"

#include "analyze/heap_load.h"
#include "base/map.h"

#include <errno.h>
#include <string.h>

enum { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE, VALUES };

static const struct export_value types[VALUES] = {
    [ALLOC_OBJECTS] = {"alloc_objects", "count"},
    [ALLOC_SPACE] = {"alloc_space", "bytes"},
    [INUSE_OBJECTS] = {"inuse_objects", "count"},
    [INUSE_SPACE] = {"inuse_space", "bytes"},
};

/* What was called, innermost in every stack: pprof then counts for who called it. */
static const char called[] = "malloc|calloc|realloc|reallocarray|posix_memalign|aligned_alloc|"
                             "memalign|valloc|pvalloc|operator new(\\[\\])?";

static const struct measure {
    const char *series;
    enum heap_measure measure;
} measures[] = {
    {"heap_bytes", HEAP_BY_BYTES},         {"heap_count", HEAP_BY_COUNT},
    {"heap_peak", HEAP_BY_PEAK},           {"heap_leak", HEAP_BY_LEAK},
    {"heap_temporary", HEAP_BY_TEMPORARY},
};

static const struct measure *measure_of(const char *series)
{
    for (size_t i = 0; i < ARRAY_SIZE(measures); i++)
        if (strcmp(measures[i].series, series) == 0)
            return &measures[i];
    return NULL;
}

bool export_is_heap(struct recording *recording, const char *series)
{
    if (strcmp(series, "heap") == 0 || measure_of(series))
        return true;
    /* Nobody asked for CPU time by name, and there is none. */
    return strcmp(series, "cpu") == 0 && !recording_series_find(recording, series) &&
           !recording_series_find(recording, "offcpu") && !recording_series_find(recording, "io") &&
           recording_count(recording, RECORDING_HEAP_SITE) > 0;
}

/* A total for each process and stack: who frees need not be who allocated. */
struct rows {
    struct profile_total *totals;
    int64_t (*values)[VALUES];
    uint64_t *most; /* bytes of the thread that stands for all */
    size_t count;
    struct map_u64 at;
};

static int site_add(struct rows *rows, const struct heap_site *site)
{
    bool fresh;
    uint64_t *at = map_u64_at(&rows->at, (uint64_t)site->process << 32 | site->info.stack, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh)
        *at = rows->count++;
    struct profile_total *total = &rows->totals[*at];
    const struct heap_tally *tally = &site->tally;
    if (fresh || tally->allocated_bytes > rows->most[*at]) {
        rows->most[*at] = tally->allocated_bytes;
        total->thread = site->info.thread;
    }
    total->stack = site->info.stack;
    total->count += tally->allocations;
    total->weight += tally->allocated_bytes;
    int64_t *values = rows->values[*at];
    values[ALLOC_OBJECTS] += (int64_t)tally->allocations;
    values[ALLOC_SPACE] += (int64_t)tally->allocated_bytes;
    values[INUSE_OBJECTS] += (int64_t)(tally->allocations - tally->frees);
    values[INUSE_SPACE] += (int64_t)(tally->allocated_bytes - tally->freed_bytes);
    return 0;
}

static int rows_make(struct arena *arena, const struct heap *heap, struct rows *rows)
{
    size_t count = heap->site_count + 1;
    rows->totals = arena_alloc(arena, count * sizeof(*rows->totals));
    rows->values = arena_alloc(arena, count * sizeof(*rows->values));
    rows->most = arena_alloc(arena, count * sizeof(*rows->most));
    if (!rows->totals || !rows->values || !rows->most)
        return -ENOMEM;
    int r = 0;
    for (size_t i = 1; i < heap->site_count && r == 0; i++)
        if (heap->sites[i].info.kind == HEAP_KIND_HEAP)
            r = site_add(rows, &heap->sites[i]);
    map_u64_deinit(&rows->at);
    return r;
}

static int all_values(struct arena *arena, const struct heap *heap, struct profile *ret,
                      const struct export_values **ret_values)
{
    struct rows rows = {0};
    struct profile profile;
    struct export_values *values = ARENA_NEW(arena, struct export_values);
    int r = heap_profile(arena, heap, HEAP_BY_BYTES, &profile);
    if (r == 0)
        r = rows_make(arena, heap, &rows);
    uint64_t *flat = arena_alloc(arena, (rows.count + 1) * sizeof(*rows.values));
    if (r < 0 || !values || !flat)
        return -ENOMEM;
    /* Less than none is where counters are of two moments. */
    for (size_t i = 0; i < rows.count; i++)
        for (size_t v = 0; v < VALUES; v++)
            flat[i * VALUES + v] = (uint64_t)MAX(rows.values[i][v], (int64_t)0);
    profile.series = "heap";
    profile.totals = rows.totals;
    profile.total_count = rows.count;
    *values = (struct export_values){
        .types = types,
        .count = VALUES,
        .rows = flat,
        .main = types[INUSE_SPACE].type,
        .drop = called,
    };
    *ret = profile;
    *ret_values = values;
    return 0;
}

int export_heap_load(struct arena *arena, struct recording *recording, const char *series,
                     struct profile *ret, const struct export_values **ret_values, struct why *why)
{
    struct heap heap;
    const struct measure *measure = measure_of(series);
    int r = heap_load(arena, recording, &heap, why);
    if (r < 0)
        return r;
    r = measure ? heap_profile(arena, &heap, measure->measure, ret)
                : all_values(arena, &heap, ret, ret_values);
    if (r < 0)
        return why_nomem(why);
    if (ret->total_count == 0)
        return why_set(why, WHY_USAGE, ENODATA, "choose another series: heap, heap_bytes",
                       "'%s' has nothing of %s", recording_path(recording), series);
    return 0;
}
