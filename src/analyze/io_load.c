/* A recording's calls and requests become arrays indexed by id.
 *
 * names (profile_load) → target → texts → objects → rows → events */
#include "analyze/io_load.h"

#include "analyze/profile_load.h"
#include "analyze/target_load.h"
#include "model/wait_book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* As the writer has them; a forged file may not make us eat the machine. */
enum { EVENTS_MAX = 1 << 20 };

struct loader {
    struct arena *arena;
    struct recording *recording;
    struct io *io;
    struct why *why;
    bool events_sorted;
    struct target_facts target;
    VEC(struct str) texts;
    VEC(struct object_info) objects;
    VEC(struct call_row) calls;
    VEC(struct device_row) devices;
    VEC(struct connection_row) connections;
    VEC(struct request_row) requests;
    VEC(struct request_event) events;
};

static int too_many(struct loader *loader, const char *what)
{
    return why_set(loader->why, WHY_FAILED, E2BIG, "record for a shorter time",
                   "'%s' has more %s than this whyslow can hold", recording_path(loader->recording),
                   what);
}

static struct str keep_text(struct loader *loader, struct str text)
{
    return (struct str){arena_dup_len(loader->arena, text.data, text.len), text.len};
}

#define PUSH(loader, vec, row) (VEC_PUSH(&(loader)->vec, row) < 0 ? why_nomem((loader)->why) : 0)

static int add_text(void *context, const struct recorded_text *row)
{
    struct loader *loader = context;
    struct str text = keep_text(loader, row->text);
    return PUSH(loader, texts, text);
}

static int add_object(void *context, const struct recorded_object *row)
{
    struct loader *loader = context;
    struct object_info info = row->info;
    if (loader->objects.len > WAIT_BOOK_OBJECTS_MAX)
        return too_many(loader, "objects");
    info.name = keep_text(loader, info.name);
    return PUSH(loader, objects, info);
}

static int add_call(void *context, const struct recorded_call *recorded)
{
    struct loader *loader = context;
    struct call_row row = {.info = recorded->info, .tally = recorded->tally};
    if (loader->calls.len > CALL_BOOK_CALLS_MAX)
        return too_many(loader, "rows of calls");
    return PUSH(loader, calls, row);
}

static int add_device(void *context, const struct recorded_device *recorded)
{
    struct loader *loader = context;
    struct device_row row = {.info = recorded->info, .tally = recorded->tally};
    if (loader->devices.len > CALL_BOOK_DEVICES_MAX)
        return too_many(loader, "devices");
    row.info.name = keep_text(loader, row.info.name);
    return PUSH(loader, devices, row);
}

static int add_connection(void *context, const struct recorded_connection *recorded)
{
    struct loader *loader = context;
    struct connection_row row = {
        .info = recorded->info,
        .closed_ns = recorded->closed_ns,
        .requests = recorded->requests,
        .bytes_out = recorded->bytes_out,
        .bytes_in = recorded->bytes_in,
    };
    if (loader->connections.len > CALL_BOOK_CONNECTIONS_MAX)
        return too_many(loader, "connections");
    row.info.peer = keep_text(loader, row.info.peer);
    row.info.service = keep_text(loader, row.info.service);
    return PUSH(loader, connections, row);
}

static int add_request(void *context, const struct recorded_request *recorded)
{
    struct loader *loader = context;
    struct request_row row = {.info = recorded->info, .tally = recorded->tally};
    if (loader->requests.len > CALL_BOOK_REQUESTS_MAX)
        return too_many(loader, "rows of requests");
    return PUSH(loader, requests, row);
}

static int add_event(void *context, const struct request_event *event)
{
    struct loader *loader = context;
    size_t len = loader->events.len;
    if (len >= EVENTS_MAX)
        return too_many(loader, "single requests");
    if (len > 0 && loader->events.data[len - 1].start_ns > event->start_ns)
        loader->events_sorted = false;
    return PUSH(loader, events, *event);
}

static int add_document(void *context, const struct recorded_document *row)
{
    struct loader *loader = context;
    if (str_is(row->name, "target"))
        target_facts_read(row->json, &loader->target);
    if (str_is(row->name, "io"))
        loader->io->facts_json = keep_text(loader, row->json);
    if (str_is(row->name, "files"))
        loader->io->files_json = keep_text(loader, row->json);
    return 0;
}

/* The 0th entries stand for "none". */
static int load_tables(struct loader *loader)
{
    struct recording *recording = loader->recording;
    struct str no_text = STR("");
    struct object_info no_object = {.name = STR("")};
    struct call_row no_call = {0};
    struct device_row no_device = {.info.name = STR("")};
    struct connection_row no_connection = {.info = {.peer = STR(""), .service = STR("")}};
    struct request_row no_request = {0};
    if (VEC_PUSH(&loader->texts, no_text) < 0 || VEC_PUSH(&loader->objects, no_object) < 0 ||
        VEC_PUSH(&loader->calls, no_call) < 0 || VEC_PUSH(&loader->devices, no_device) < 0 ||
        VEC_PUSH(&loader->connections, no_connection) < 0 ||
        VEC_PUSH(&loader->requests, no_request) < 0)
        return why_nomem(loader->why);
    int r = recording_each_document(recording, add_document, loader, loader->why);
    if (r == 0)
        r = recording_each_text(recording, add_text, loader, loader->why);
    if (r == 0)
        r = recording_each_object(recording, add_object, loader, loader->why);
    if (r == 0)
        r = recording_each_call(recording, add_call, loader, loader->why);
    if (r == 0)
        r = recording_each_device(recording, add_device, loader, loader->why);
    if (r == 0)
        r = recording_each_connection(recording, add_connection, loader, loader->why);
    if (r == 0)
        r = recording_each_request(recording, add_request, loader, loader->why);
    if (r == 0)
        r = recording_each_request_event(recording, add_event, loader, loader->why);
    return r;
}

/* Ids that a row was checked against are the highest ones; a forged table may have fewer rows. */
static int ids_check(struct loader *loader)
{
    const struct {
        size_t have;
        enum recording_table table;
        const char *name;
    } tables[] = {
        {loader->texts.len, RECORDING_TEXT, "text"},
        {loader->objects.len, RECORDING_OBJECT, "object"},
        {loader->requests.len, RECORDING_REQUEST, "request"},
        {loader->connections.len, RECORDING_CONNECTION, "connection"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        if (tables[i].have != (size_t)recording_count(loader->recording, tables[i].table) + 1)
            return why_set(loader->why, WHY_FAILED, EBADMSG, "copy the file again, or record again",
                           "'%s': damaged table '%s'", recording_path(loader->recording),
                           tables[i].name);
    return 0;
}

/* A file without the document, or of a recorder that was killed, still has times in it. */
static void span_find(struct loader *loader)
{
    struct io *io = loader->io;
    uint64_t start_ns = UINT64_MAX, end_ns = 0;
    for (size_t i = 1; i < loader->calls.len; i++) {
        const struct call_tally *tally = &loader->calls.data[i].tally;
        if (tally->count == 0)
            continue;
        start_ns = MIN(start_ns, tally->first_ns);
        end_ns = MAX(end_ns, tally->last_ns);
    }
    for (size_t i = 1; i < loader->requests.len; i++) {
        const struct request_tally *tally = &loader->requests.data[i].tally;
        if (tally->count == 0)
            continue;
        start_ns = MIN(start_ns, tally->first_ns);
        end_ns = MAX(end_ns, tally->last_ns);
    }
    for (size_t i = 0; i < loader->events.len; i++) {
        start_ns = MIN(start_ns, loader->events.data[i].start_ns);
        end_ns = MAX(end_ns, loader->events.data[i].end_ns);
    }
    for (size_t i = 1; i < io->profile.thread_count; i++)
        if (io->profile.threads[i].start_ns > 0)
            start_ns = MIN(start_ns, io->profile.threads[i].start_ns);
    uint32_t count = recording_count(loader->recording, RECORDING_SERIES);
    for (uint32_t id = 1; id <= count && loader->target.end_ns == 0; id++) {
        const struct recorded_series *series = recording_series(loader->recording, id);
        end_ns = MAX(end_ns, series ? series->end_ns : 0);
    }
    io->start_ns = loader->target.start_ns;
    if (io->start_ns == 0)
        io->start_ns = start_ns == UINT64_MAX ? 0 : start_ns;
    /* To stop takes a while, and calls go on until then. */
    io->end_ns = MAX(MAX(loader->target.end_ns, end_ns), io->start_ns);
}

static int compare_events(const void *a, const void *b)
{
    const struct request_event *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
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
    struct io *io = loader->io;
    if (!loader->events_sorted)
        qsort(loader->events.data, loader->events.len, sizeof(loader->events.data[0]),
              compare_events);
#define KEEP(array, count, vec)                                                                    \
    (io->array = keep(loader, loader->vec.data, loader->vec.len, sizeof(loader->vec.data[0])),     \
     io->count = loader->vec.len)
    KEEP(texts, text_count, texts);
    KEEP(objects, object_count, objects);
    KEEP(calls, call_count, calls);
    KEEP(devices, device_count, devices);
    KEEP(connections, connection_count, connections);
    KEEP(requests, request_count, requests);
    KEEP(events, event_count, events);
#undef KEEP
    return arena_failed(loader->arena) ? why_nomem(loader->why) : 0;
}

static int load(struct loader *loader)
{
    struct recording *recording = loader->recording;
    if (!recording_series_find(recording, "io") &&
        recording_count(recording, RECORDING_CALL) == 0 &&
        recording_count(recording, RECORDING_REQUEST) == 0)
        return why_set(loader->why, WHY_USAGE, ENODATA,
                       "whyslow record --io -- COMMAND; or 'whyslow io -- COMMAND'",
                       "'%s' has no calls: it was recorded without --io",
                       recording_path(recording));
    struct profile_opts opts = {.series = "io", .names_only = true};
    int r = profile_load(loader->arena, recording, &opts, &loader->io->profile, loader->why);
    if (r == 0)
        r = load_tables(loader);
    if (r == 0)
        r = ids_check(loader);
    if (r < 0)
        return r;
    span_find(loader);
    target_facts_root(&loader->target, &loader->io->profile, &loader->io->root_process,
                      &loader->io->root_thread);
    return keep_all(loader);
}

int io_load(struct arena *arena, struct recording *recording, struct io *ret, struct why *why)
{
    struct io io = {.facts_json = STR(""), .files_json = STR("")};
    struct loader loader = {
        .arena = arena, .recording = recording, .io = &io, .why = why, .events_sorted = true};
    int r = load(&loader);
    VEC_FREE(&loader.texts);
    VEC_FREE(&loader.objects);
    VEC_FREE(&loader.calls);
    VEC_FREE(&loader.devices);
    VEC_FREE(&loader.connections);
    VEC_FREE(&loader.requests);
    VEC_FREE(&loader.events);
    if (r < 0)
        return r;
    *ret = io;
    return 0;
}
