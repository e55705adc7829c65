/* Calls and requests made by hand, as io_load() would hand them out, in the words of a test. Times
 * are milliseconds. Aborts beyond its bounds: it is test code. */
#pragma once

#include "analyze/io_load.h"
#include "base/syscalls.h"
#include "model/call_book.h"

#include <stdlib.h>
#include <string.h>

enum { MADE_ROWS = 4096 };

struct made_io {
    struct io io;
    struct profile_process processes[2];
    struct profile_thread threads[8];
    struct object_info objects[MADE_ROWS];
    struct call_row calls[MADE_ROWS];
    struct device_row devices[8];
    struct connection_row connections[64];
    struct request_row requests[64];
    struct request_event events[MADE_ROWS];
    struct str texts[256];
};

static inline uint64_t made_io_ns(double ms)
{
    return (uint64_t)(ms * 1e6 + 0.5);
}

static inline size_t made_io_bound(size_t index, size_t bound)
{
    if (index >= bound)
        abort();
    return index;
}

/* A second of threads 1 to 7 of process 1 that did nothing. */
static inline struct made_io *made_io_new(void)
{
    struct made_io *made = calloc(1, sizeof(*made));
    if (!made)
        abort();
    made->io = (struct io){.profile = {.processes = made->processes,
                                       .process_count = 2,
                                       .threads = made->threads,
                                       .thread_count = 8},
                           .texts = made->texts,
                           .text_count = 1,
                           .objects = made->objects,
                           .object_count = 1,
                           .calls = made->calls,
                           .call_count = 1,
                           .devices = made->devices,
                           .device_count = 1,
                           .connections = made->connections,
                           .connection_count = 1,
                           .requests = made->requests,
                           .request_count = 1,
                           .events = made->events,
                           .end_ns = made_io_ns(1000)};
    for (uint32_t i = 1; i < 8; i++)
        made->threads[i] = (struct profile_thread){.process = 1, .tid = 100 + i};
    made->texts[0] = STR("");
    return made;
}

static inline int32_t made_io_syscall(const char *name)
{
    for (int32_t i = 0; name && i < SYSCALLS_MAX; i++)
        if (syscall_name(i) && strcmp(syscall_name(i), name) == 0)
            return i;
    if (name)
        abort();
    return CALL_NO_SYSCALL;
}

static inline uint32_t made_io_object(struct made_io *made, enum object_kind kind, uint32_t flags,
                                      const char *name)
{
    size_t id = made_io_bound(made->io.object_count++, MADE_ROWS);
    made->objects[id] = (struct object_info){
        .kind = kind, .flags = flags, .key = id, .name = str_from(name)};
    return (uint32_t)id;
}

/* `count` calls of `ms` and `bytes` each; NULL: page faults. */
static inline struct call_row *made_io_call(struct made_io *made, uint32_t thread, uint32_t stack,
                                            const char *name, uint32_t object, uint64_t count,
                                            double ms, uint64_t bytes)
{
    struct call_row *row = &made->calls[made_io_bound(made->io.call_count++, MADE_ROWS)];
    uint64_t ns = made_io_ns(ms);
    row->info = (struct call_info){.thread = thread,
                                   .stack = stack,
                                   .object = object,
                                   .syscall = made_io_syscall(name),
                                   .flags = name ? 0 : CALL_FAULT};
    row->tally = (struct call_tally){.count = count,
                                     .total_ns = ns * count,
                                     .max_ns = ns,
                                     .last_ns = ns,
                                     .bytes = bytes * count,
                                     .asked_bytes = bytes * count};
    row->tally.buckets[wait_bucket(ns)] = (uint32_t)count;
    row->tally.sizes[call_size(bytes)] = (uint32_t)count;
    return row;
}

static inline uint32_t made_io_text(struct made_io *made, const char *text)
{
    for (uint32_t i = 1; i < made->io.text_count; i++)
        if (str_is(made->texts[i], text))
            return i;
    size_t id = made_io_bound(made->io.text_count++, 256);
    made->texts[id] = str_from(text);
    return (uint32_t)id;
}

static inline uint32_t made_io_connection(struct made_io *made, enum request_protocol protocol,
                                          const char *peer, uint64_t opened_ns, uint64_t requests)
{
    size_t id = made_io_bound(made->io.connection_count++, 64);
    made->connections[id] = (struct connection_row){
        .info = {.process = 1,
                 .protocol = protocol,
                 .role = REQUEST_CLIENT,
                 .opened_ns = opened_ns,
                 .peer = str_from(peer),
                 .service = STR("")},
        .requests = requests,
    };
    return (uint32_t)id;
}

static inline uint32_t made_io_request(struct made_io *made, enum request_protocol protocol,
                                       uint32_t thread, uint32_t stack, const char *peer,
                                       const char *text, const char *result)
{
    size_t id = made_io_bound(made->io.request_count++, 64);
    made->requests[id].info = (struct request_info){.protocol = protocol,
                                                    .role = REQUEST_CLIENT,
                                                    .thread = thread,
                                                    .stack = stack,
                                                    .peer = made_io_text(made, peer),
                                                    .text = made_io_text(made, text),
                                                    .result = made_io_text(made, result)};
    return (uint32_t)id;
}

/* One request, in the tally of its row too; in the order of start_ms. */
static inline struct request_event *made_io_event(struct made_io *made, uint32_t request,
                                                  uint32_t connection, double start_ms, double ms,
                                                  uint64_t parameters)
{
    struct request_event *event = &made->events[made_io_bound(made->io.event_count++, MADE_ROWS)];
    uint64_t ns = made_io_ns(ms), start_ns = made_io_ns(start_ms);
    *event = (struct request_event){.request = request,
                                    .connection = connection,
                                    .start_ns = start_ns,
                                    .first_byte_ns = start_ns + ns / 2,
                                    .end_ns = start_ns + ns,
                                    .parameters = parameters};
    struct request_tally tally = {.count = 1,
                                  .total_ns = ns,
                                  .max_ns = ns,
                                  .first_byte_ns = ns / 2,
                                  .first_ns = start_ns,
                                  .last_ns = start_ns + ns,
                                  .parameters = parameters != 0};
    tally.buckets[wait_bucket(ns)] = 1;
    request_tally_add(&made->requests[request].tally, &tally);
    return event;
}
