/* A recording's waits become arrays indexed by id.
 *
 * names (profile_load) → target → objects → rows → events → lives of threads */
#include "analyze/waits_load.h"

#include "analyze/profile_load.h"
#include "analyze/target_load.h"
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As the writer has them; a forged file may not make us eat the machine. */
enum { EVENTS_MAX = 1 << 22 };

struct loader {
    struct arena *arena;
    struct recording *recording;
    struct waits *waits;
    struct why *why;
    uint32_t running; /* id of the series, 0 if there is none */
    bool events_sorted;
    struct target_facts target;
    VEC(struct object_info) objects;
    VEC(struct wait_row) rows;
    VEC(struct wait_event) events;
    VEC(struct waits_thread) threads;
};

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int too_many(struct loader *loader, const char *what)
{
    return why_set(loader->why, WHY_FAILED, E2BIG, "record for a shorter time",
                   "'%s' has more %s than this whyslow can hold", recording_path(loader->recording),
                   what);
}

static int add_object(void *context, const struct recorded_object *row)
{
    struct loader *loader = context;
    struct object_info info = row->info;
    if (loader->objects.len > WAIT_BOOK_OBJECTS_MAX)
        return too_many(loader, "objects");
    info.name.data = arena_dup_len(loader->arena, info.name.data, info.name.len);
    return VEC_PUSH(&loader->objects, info) < 0 ? why_nomem(loader->why) : 0;
}

static int add_wait(void *context, const struct recorded_wait *recorded)
{
    struct loader *loader = context;
    struct wait_row row = {.info = recorded->info, .tally = recorded->tally};
    if (loader->rows.len > WAIT_BOOK_WAITS_MAX)
        return too_many(loader, "waits");
    return VEC_PUSH(&loader->rows, row) < 0 ? why_nomem(loader->why) : 0;
}

static int add_event(void *context, const struct wait_event *event)
{
    struct loader *loader = context;
    size_t len = loader->events.len;
    if (len >= EVENTS_MAX)
        return too_many(loader, "single waits");
    if (len > 0 && loader->events.data[len - 1].run_ns > event->run_ns)
        loader->events_sorted = false;
    return VEC_PUSH(&loader->events, *event) < 0 ? why_nomem(loader->why) : 0;
}

static int add_thread(void *context, const struct recorded_thread *row)
{
    struct loader *loader = context;
    struct waits_thread thread = {
        .start_ns = row->info.start_ns,
        .end_ns = row->ended ? row->end_ns : UINT64_MAX,
        .ended = row->ended,
    };
    return VEC_PUSH(&loader->threads, thread) < 0 ? why_nomem(loader->why) : 0;
}

static int add_total(void *context, const struct recorded_total *row)
{
    struct loader *loader = context;
    if (row->series != loader->running || row->thread >= loader->threads.len)
        return 0;
    struct waits_thread *thread = &loader->threads.data[row->thread];
    thread->running_ns = add_saturated(thread->running_ns, row->weight);
    return 0;
}

static int add_document(void *context, const struct recorded_document *row)
{
    struct loader *loader = context;
    if (str_is(row->name, "target"))
        target_facts_read(row->json, &loader->target);
    if (str_is(row->name, "waits"))
        loader->waits->facts_json = (struct str){
            arena_dup_len(loader->arena, row->json.data, row->json.len), row->json.len};
    return 0;
}

/* The 0th entries stand for "none". */
static int load_tables(struct loader *loader)
{
    struct recording *recording = loader->recording;
    struct object_info none = {.name = STR("")};
    struct wait_row no_row = {0};
    struct waits_thread no_thread = {0};
    if (VEC_PUSH(&loader->objects, none) < 0 || VEC_PUSH(&loader->rows, no_row) < 0 ||
        VEC_PUSH(&loader->threads, no_thread) < 0)
        return why_nomem(loader->why);
    int r = recording_each_document(recording, add_document, loader, loader->why);
    if (r == 0)
        r = recording_each_object(recording, add_object, loader, loader->why);
    if (r == 0)
        r = recording_each_wait(recording, add_wait, loader, loader->why);
    if (r == 0)
        r = recording_each_wait_event(recording, add_event, loader, loader->why);
    if (r == 0)
        r = recording_each_thread(recording, add_thread, loader, loader->why);
    if (r == 0)
        r = recording_each_total(recording, add_total, loader, loader->why);
    return r;
}

/* A file without the document, or of a recorder that was killed, still has times in it. */
static void span_find(struct loader *loader)
{
    struct waits *waits = loader->waits;
    uint64_t start_ns = UINT64_MAX, end_ns = 0;
    for (size_t i = 1; i < loader->rows.len; i++) {
        const struct wait_tally *tally = &loader->rows.data[i].tally;
        if (tally->count == 0)
            continue;
        start_ns = MIN(start_ns, tally->first_ns);
        end_ns = MAX(end_ns, tally->last_ns);
    }
    for (size_t i = 0; i < loader->events.len; i++)
        end_ns = MAX(end_ns, loader->events.data[i].run_ns);
    /* To stop takes a while, and what still waits goes on waiting until then. */
    if (waits->end_ns > 0)
        waits->end_ns = MAX(waits->end_ns, end_ns);
    for (size_t i = 1; i < loader->threads.len; i++) {
        const struct waits_thread *thread = &loader->threads.data[i];
        if (thread->start_ns > 0)
            start_ns = MIN(start_ns, thread->start_ns);
        if (thread->ended)
            end_ns = MAX(end_ns, thread->end_ns);
    }
    uint32_t count = recording_count(loader->recording, RECORDING_SERIES);
    for (uint32_t id = 1; id <= count; id++) {
        const struct recorded_series *series = recording_series(loader->recording, id);
        end_ns = MAX(end_ns, series ? series->end_ns : 0);
    }
    if (waits->start_ns == 0)
        waits->start_ns = start_ns == UINT64_MAX ? 0 : start_ns;
    if (waits->end_ns == 0)
        waits->end_ns = end_ns;
    waits->end_ns = MAX(waits->end_ns, waits->start_ns);
}

/* A thread that gets another name goes on as another row: the first life ends there. */
static int lives_split(struct loader *loader)
{
    const struct profile *profile = &loader->waits->profile;
    struct map_u64 last = {0};
    int r = 0;
    for (size_t i = 1; i < loader->threads.len && i < profile->thread_count && r == 0; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        uint64_t *at = map_u64_at(&last, (uint64_t)thread->process << 32 | thread->tid, NULL);
        if (!at) {
            r = why_nomem(loader->why);
            break;
        }
        struct waits_thread *before = &loader->threads.data[*at];
        if (*at != 0 && !before->ended)
            before->end_ns = MIN(before->end_ns, loader->threads.data[i].start_ns);
        *at = i;
    }
    map_u64_deinit(&last);
    return r;
}

/* Only what was recorded: a life may have begun long before and go on long after. */
static void lives_bound(struct loader *loader)
{
    const struct waits *waits = loader->waits;
    for (size_t i = 1; i < loader->threads.len; i++) {
        struct waits_thread *thread = &loader->threads.data[i];
        thread->start_ns = MIN(MAX(thread->start_ns, waits->start_ns), waits->end_ns);
        thread->end_ns = MAX(MIN(thread->end_ns, waits->end_ns), thread->start_ns);
    }
    for (size_t i = 1; i < loader->rows.len; i++) {
        const struct wait_row *row = &loader->rows.data[i];
        if (row->info.kind != WAIT_RUNQ || row->info.thread >= loader->threads.len)
            continue;
        struct waits_thread *thread = &loader->threads.data[row->info.thread];
        thread->runq_ns = add_saturated(thread->runq_ns, row->tally.total_ns);
    }
}

static int lives_count(struct loader *loader)
{
    struct waits *waits = loader->waits;
    struct map_u64 seen = {0};
    int r = 0;
    for (uint32_t i = 1; i < loader->threads.len && r == 0; i++) {
        const struct waits_thread *thread = &loader->threads.data[i];
        if (thread->end_ns > thread->start_ns &&
            !map_u64_at(&seen, profile_life(&waits->profile, i), NULL))
            r = why_nomem(loader->why);
    }
    waits->lives = seen.len;
    map_u64_deinit(&seen);
    return r;
}

static int compare_events(const void *a, const void *b)
{
    const struct wait_event *x = a, *y = b;
    if (x->run_ns != y->run_ns)
        return x->run_ns < y->run_ns ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
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
    struct waits *waits = loader->waits;
    if (!loader->events_sorted)
        qsort(loader->events.data, loader->events.len, sizeof(loader->events.data[0]),
              compare_events);
    waits->threads = keep(loader, loader->threads.data, loader->threads.len,
                          sizeof(loader->threads.data[0]));
    waits->objects = keep(loader, loader->objects.data, loader->objects.len,
                          sizeof(loader->objects.data[0]));
    waits->object_count = loader->objects.len;
    waits->rows = keep(loader, loader->rows.data, loader->rows.len, sizeof(loader->rows.data[0]));
    waits->row_count = loader->rows.len;
    waits->events = keep(loader, loader->events.data, loader->events.len,
                         sizeof(loader->events.data[0]));
    waits->event_count = loader->events.len;
    return arena_failed(loader->arena) ? why_nomem(loader->why) : 0;
}

static int load(struct loader *loader)
{
    struct recording *recording = loader->recording;
    const struct recorded_series *running = recording_series_find(recording, "running");
    loader->running = running && running->info.kind == SERIES_SUM ? running->id : 0;
    if (!recording_series_find(recording, "offcpu") &&
        recording_count(recording, RECORDING_WAIT) == 0)
        return why_set(loader->why, WHY_USAGE, ENODATA,
                       "whyslow record --offcpu --locks -- COMMAND; or 'whyslow waits -- COMMAND'",
                       "'%s' has no waits: it was recorded without them",
                       recording_path(recording));
    struct profile_opts opts = {.series = "offcpu", .names_only = true};
    int r = profile_load(loader->arena, recording, &opts, &loader->waits->profile, loader->why);
    if (r == 0)
        r = load_tables(loader);
    if (r == 0) {
        loader->waits->start_ns = loader->target.start_ns;
        loader->waits->end_ns = loader->target.end_ns;
        span_find(loader);
        r = lives_split(loader);
    }
    if (r < 0)
        return r;
    lives_bound(loader);
    r = lives_count(loader);
    if (r < 0)
        return r;
    target_facts_root(&loader->target, &loader->waits->profile, &loader->waits->root_process,
                      &loader->waits->root_thread);
    return keep_all(loader);
}

int waits_load(struct arena *arena, struct recording *recording, struct waits *ret, struct why *why)
{
    struct waits waits = {.facts_json = STR("")};
    struct loader loader = {
        .arena = arena, .recording = recording, .waits = &waits, .why = why, .events_sorted = true};
    int r = load(&loader);
    VEC_FREE(&loader.objects);
    VEC_FREE(&loader.rows);
    VEC_FREE(&loader.events);
    VEC_FREE(&loader.threads);
    if (r < 0)
        return r;
    *ret = waits;
    return 0;
}
