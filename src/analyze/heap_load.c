/* A recording's heap rows become arrays indexed by id.
 *
 * names (profile_load) → target → sites, processes → snapshots, moments → sums that must hold */
#include "analyze/heap_load.h"

#include "analyze/profile_load.h"
#include "analyze/target_load.h"
#include "model/heap_book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As the writer has them; a forged file may not make us eat the machine. */
enum { SNAPSHOT_ROWS_MAX = 1 << 22 };

struct loader {
    struct arena *arena;
    struct recording *recording;
    struct heap *heap;
    struct why *why;
    struct target_facts target;
    VEC(struct heap_site) sites;
    VEC(struct heap_snapshot_rows) snapshots;
    VEC(struct heap_snapshot_row) rows; /* of all snapshots, in their order */
    VEC(struct heap_moment) moments;
};

static int too_many(struct loader *loader, const char *what)
{
    return why_set(loader->why, WHY_FAILED, E2BIG, "record for a shorter time",
                   "'%s' has more %s than this whyslow can hold", recording_path(loader->recording),
                   what);
}

#define PUSH(loader, vec, row) (VEC_PUSH(&(loader)->vec, row) < 0 ? why_nomem((loader)->why) : 0)

static int add_site(void *context, const struct recorded_heap_site *row)
{
    struct loader *loader = context;
    struct heap_site site = {.info = row->info, .tally = row->tally};
    if (loader->sites.len > HEAP_BOOK_SITES_MAX)
        return too_many(loader, "sites");
    site.process = loader->heap->profile.threads[row->info.thread].process;
    return PUSH(loader, sites, site);
}

static int add_process(void *context, const struct recorded_heap_process *row)
{
    struct loader *loader = context;
    loader->heap->processes[row->process] = (struct heap_process_row){.known = true,
                                                                      .tally = row->tally};
    return 0;
}

static int add_snapshot(void *context, const struct recorded_heap_snapshot *row)
{
    struct loader *loader = context;
    struct heap_snapshot_rows snapshot = {.info = row->info};
    if (loader->snapshots.len > HEAP_BOOK_SNAPSHOTS_MAX)
        return too_many(loader, "snapshots");
    return PUSH(loader, snapshots, snapshot);
}

/* They come by snapshot: those of one stand together. */
static int add_snapshot_row(void *context, const struct heap_snapshot_row *row)
{
    struct loader *loader = context;
    if (loader->rows.len >= SNAPSHOT_ROWS_MAX)
        return too_many(loader, "rows of snapshots");
    loader->snapshots.data[row->snapshot].count++;
    return PUSH(loader, rows, *row);
}

static int add_moment(void *context, const struct heap_moment *moment)
{
    struct loader *loader = context;
    if (loader->moments.len >= HEAP_BOOK_MOMENTS_MAX)
        return too_many(loader, "moments");
    return PUSH(loader, moments, *moment);
}

static int add_document(void *context, const struct recorded_document *row)
{
    struct loader *loader = context;
    if (str_is(row->name, "target"))
        target_facts_read(row->json, &loader->target);
    if (str_is(row->name, "heap"))
        loader->heap->facts_json = (struct str){
            arena_dup_len(loader->arena, row->json.data, row->json.len), row->json.len};
    return 0;
}

static int damaged(struct loader *loader, const char *what)
{
    return why_set(loader->why, WHY_FAILED, EBADMSG, "copy the file again, or record again",
                   "'%s': damaged %s", recording_path(loader->recording), what);
}

/* The 0th entries stand for "none". */
static int load_tables(struct loader *loader)
{
    struct recording *recording = loader->recording;
    struct heap *heap = loader->heap;
    struct heap_site no_site = {0};
    struct heap_snapshot_rows no_snapshot = {0};
    heap->process_count = heap->profile.process_count;
    heap->processes = arena_alloc(loader->arena, heap->process_count * sizeof(*heap->processes));
    if (!heap->processes || VEC_PUSH(&loader->sites, no_site) < 0 ||
        VEC_PUSH(&loader->snapshots, no_snapshot) < 0)
        return why_nomem(loader->why);
    int r = recording_each_heap_site(recording, add_site, loader, loader->why);
    if (r == 0)
        r = recording_each_heap_process(recording, add_process, loader, loader->why);
    if (r == 0)
        r = recording_each_heap_snapshot(recording, add_snapshot, loader, loader->why);
    /* Ids that a row was checked against are the highest ones: a forged table has fewer rows. */
    if (r == 0 &&
        loader->snapshots.len != (size_t)recording_count(recording, RECORDING_HEAP_SNAPSHOT) + 1)
        return damaged(loader, "table 'heap_snapshot'");
    if (r == 0)
        r = recording_each_heap_snapshot_row(recording, add_snapshot_row, loader, loader->why);
    if (r == 0)
        r = recording_each_heap_moment(recording, add_moment, loader, loader->why);
    if (r == 0)
        r = recording_heap_events(recording, &heap->event_count, loader->why);
    return r;
}

static uint64_t size_of(int64_t number)
{
    return number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
}

/* Checked once here, so that no later sum of parts can overflow, in whatever order. */
static int sums_check(struct loader *loader)
{
    uint64_t sums[16] = {0};
    bool over = false;
    for (size_t i = 1; i < loader->sites.len; i++) {
        const struct heap_tally *tally = &loader->sites.data[i].tally;
        const uint64_t parts[ARRAY_SIZE(sums)] = {tally->allocations,
                                                  tally->allocated_bytes,
                                                  tally->frees,
                                                  tally->freed_bytes,
                                                  tally->temporary,
                                                  tally->temporary_bytes,
                                                  size_of(tally->peak_count),
                                                  size_of(tally->peak_bytes),
                                                  tally->grown,
                                                  tally->grown_bytes,
                                                  tally->moved,
                                                  tally->lived_ns,
                                                  tally->samples};
        for (size_t at = 0; at < ARRAY_SIZE(sums); at++)
            over |= __builtin_add_overflow(sums[at], parts[at], &sums[at]) || sums[at] > INT64_MAX;
    }
    uint64_t lived[2] = {0};
    for (size_t i = 0; i < loader->rows.len; i++) {
        over |= __builtin_add_overflow(lived[0], size_of(loader->rows.data[i].count), &lived[0]);
        over |= __builtin_add_overflow(lived[1], size_of(loader->rows.data[i].bytes), &lived[1]);
        over |= lived[0] > INT64_MAX || lived[1] > INT64_MAX;
    }
    return over ? damaged(loader, "sites: they add up to more than any machine has") : 0;
}

static int compare_moments(const void *a, const void *b)
{
    const struct heap_moment *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->process > y->process) - (x->process < y->process);
}

/* A file without the document, or of a recorder that was killed, still has times in it. */
static void span_find(struct loader *loader)
{
    struct heap *heap = loader->heap;
    uint64_t start_ns = UINT64_MAX, end_ns = 0;
    if (loader->moments.len > 0) {
        start_ns = loader->moments.data[0].time_ns;
        end_ns = loader->moments.data[loader->moments.len - 1].time_ns;
    }
    for (size_t i = 1; i < loader->snapshots.len; i++)
        end_ns = MAX(end_ns, loader->snapshots.data[i].info.time_ns);
    for (size_t i = 1; i < heap->process_count; i++)
        end_ns = MAX(end_ns, heap->processes[i].tally.peak_ns);
    for (size_t i = 1; i < heap->profile.thread_count; i++)
        if (heap->profile.threads[i].start_ns > 0)
            start_ns = MIN(start_ns, heap->profile.threads[i].start_ns);
    heap->start_ns = loader->target.start_ns;
    if (heap->start_ns == 0)
        heap->start_ns = start_ns == UINT64_MAX ? 0 : start_ns;
    heap->end_ns = MAX(MAX(loader->target.end_ns, end_ns), heap->start_ns);
}

static void *keep(struct loader *loader, const void *data, size_t count, size_t size)
{
    void *copy = arena_alloc(loader->arena, MAX(count, (size_t)1) * size);
    if (copy && count > 0)
        memcpy(copy, data, count * size);
    return copy;
}

static int keep_all(struct loader *loader)
{
    struct heap *heap = loader->heap;
#define KEEP(vec) keep(loader, loader->vec.data, loader->vec.len, sizeof(loader->vec.data[0]))
    struct heap_snapshot_row *rows = KEEP(rows);
    heap->sites = KEEP(sites);
    heap->snapshots = KEEP(snapshots);
    heap->moments = KEEP(moments);
#undef KEEP
    if (arena_failed(loader->arena))
        return why_nomem(loader->why);
    heap->site_count = loader->sites.len;
    heap->snapshot_count = loader->snapshots.len;
    heap->moment_count = loader->moments.len;
    for (size_t i = 1; i < heap->snapshot_count; i++) {
        heap->snapshots[i].rows = rows;
        rows += heap->snapshots[i].count;
    }
    return 0;
}

static int nothing(struct loader *loader)
{
    const char *path = recording_path(loader->recording);
    if (loader->heap->facts_json.len > 0)
        return why_set(loader->why, WHY_NOTHING, ENODATA,
                       "record a program that allocates; 'whyslow doctor' says what can be seen",
                       "'%s' was recorded with --heap, but no allocation was seen", path);
    return why_set(loader->why, WHY_USAGE, ENODATA,
                   "whyslow record --heap -- COMMAND; or 'whyslow heap -- COMMAND'",
                   "'%s' has no allocations: it was recorded without --heap", path);
}

static int load(struct loader *loader)
{
    struct recording *recording = loader->recording;
    int r = recording_each_document(recording, add_document, loader, loader->why);
    if (r == 0 && recording_count(recording, RECORDING_HEAP_SITE) == 0)
        return nothing(loader);
    struct profile_opts opts = {.series = "heap", .names_only = true};
    if (r == 0)
        r = profile_load(loader->arena, recording, &opts, &loader->heap->profile, loader->why);
    if (r == 0)
        r = load_tables(loader);
    if (r == 0)
        r = sums_check(loader);
    if (r < 0)
        return r;
    if (loader->moments.len > 1)
        qsort(loader->moments.data, loader->moments.len, sizeof(loader->moments.data[0]),
              compare_moments);
    span_find(loader);
    uint32_t root_thread = 0;
    target_facts_root(&loader->target, &loader->heap->profile, &loader->heap->root_process,
                      &root_thread);
    return keep_all(loader);
}

int heap_load(struct arena *arena, struct recording *recording, struct heap *ret, struct why *why)
{
    struct heap heap = {.facts_json = STR("")};
    struct loader loader = {.arena = arena, .recording = recording, .heap = &heap, .why = why};
    int r = load(&loader);
    VEC_FREE(&loader.sites);
    VEC_FREE(&loader.snapshots);
    VEC_FREE(&loader.rows);
    VEC_FREE(&loader.moments);
    if (r < 0)
        return r;
    *ret = heap;
    return 0;
}
