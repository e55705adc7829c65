/* Waits made by hand, as waits_load() would hand them out: threads, rows and events in the
 * words of a test. Times are milliseconds. Aborts beyond its bounds: it is test code. */
#pragma once

#include "analyze/waits_load.h"

#include <stdlib.h>

enum { MADE_MAX = 4096, MADE_MS = 1000000 };

struct made_waits {
    struct waits waits;
    struct profile_process processes[64];
    struct profile_thread profile_threads[256];
    struct waits_thread threads[256];
    struct object_info objects[256];
    struct wait_row rows[MADE_MAX];
    struct wait_event events[MADE_MAX];
};

static inline uint64_t made_ns(double ms)
{
    return (uint64_t)(ms * MADE_MS);
}

/* Nothing but the entries that stand for "none". */
static inline struct made_waits *made_waits_new(double end_ms)
{
    struct made_waits *made = calloc(1, sizeof(*made));
    if (!made)
        abort();
    made->waits = (struct waits){
        .profile = {.processes = made->processes,
                    .process_count = 1,
                    .threads = made->profile_threads,
                    .thread_count = 1},
        .threads = made->threads,
        .objects = made->objects,
        .object_count = 1,
        .rows = made->rows,
        .row_count = 1,
        .events = made->events,
        .end_ns = made_ns(end_ms),
        .root_process = 1,
        .root_thread = 1,
    };
    return made;
}

static inline uint32_t made_waits_process(struct made_waits *made, uint32_t parent)
{
    uint32_t id = (uint32_t)made->waits.profile.process_count++;
    if (id >= 64)
        abort();
    made->processes[id] = (struct profile_process){.pid = 1000 * id, .parent = parent};
    return id;
}

/* The first of a process is its main thread. */
static inline uint32_t made_waits_thread(struct made_waits *made, uint32_t process, double start_ms,
                                         double end_ms)
{
    uint32_t id = (uint32_t)made->waits.profile.thread_count++, before = 0;
    if (id >= 256)
        abort();
    for (uint32_t i = 1; i < id; i++)
        before += made->profile_threads[i].process == process;
    made->profile_threads[id] = (struct profile_thread){
        .process = process, .tid = 1000 * process + before, .name = STR("t")};
    made->threads[id] = (struct waits_thread){
        .start_ns = made_ns(start_ms),
        .end_ns = made_ns(end_ms),
        .ended = made_ns(end_ms) < made->waits.end_ns,
    };
    return id;
}

static inline uint32_t made_waits_row(struct made_waits *made, const struct wait_info *info)
{
    for (uint32_t i = 1; i < made->waits.row_count; i++)
        if (memcmp(&made->rows[i].info, info, sizeof(*info)) == 0)
            return i;
    if (made->waits.row_count >= MADE_MAX)
        abort();
    made->rows[made->waits.row_count].info = *info;
    return (uint32_t)made->waits.row_count++;
}

/* A wait of `thread` that `waker` ended (0: nobody of the tree). */
static inline uint32_t made_waits_blocked(struct made_waits *made, uint32_t thread, uint32_t waker)
{
    struct wait_info info;
    memset(&info, 0, sizeof(info));
    info.kind = WAIT_BLOCKED;
    info.thread = thread;
    info.waker_thread = waker;
    return made_waits_row(made, &info);
}

static inline void made_waits_event(struct made_waits *made, uint32_t row, double start_ms,
                                    double wake_ms, double run_ms)
{
    if (made->waits.event_count >= MADE_MAX)
        abort();
    made->events[made->waits.event_count++] = (struct wait_event){
        row, made_ns(start_ms), made_ns(wake_ms), made_ns(run_ms)};
    wait_tally_one(&made->rows[row].tally, made_ns(start_ms), made_ns(wake_ms) - made_ns(start_ms));
}

/* A long wait, on a CPU again at once. */
static inline uint32_t made_waits_long(struct made_waits *made, uint32_t thread, uint32_t waker,
                                       double start_ms, double wake_ms)
{
    uint32_t row = made_waits_blocked(made, thread, waker);
    made_waits_event(made, row, start_ms, wake_ms, wake_ms);
    return row;
}

/* `count` waits that were only added up, from first to last. */
static inline void made_waits_short(struct made_waits *made, uint32_t row, uint64_t count,
                                    double total_ms, double first_ms, double last_ms)
{
    struct wait_tally tally = {
        .count = count,
        .total_ns = made_ns(total_ms),
        .max_ns = made_ns(total_ms) / count,
        .first_ns = made_ns(first_ms),
        .last_ns = made_ns(last_ms),
    };
    tally.buckets[wait_bucket(tally.max_ns)] = (uint32_t)count;
    wait_tally_add(&made->rows[row].tally, &tally);
}

/* The run queue's row of a thread. */
static inline uint32_t made_waits_runq(struct made_waits *made, uint32_t thread, double total_ms)
{
    struct wait_info info;
    memset(&info, 0, sizeof(info));
    info.kind = WAIT_RUNQ;
    info.thread = thread;
    uint32_t row = made_waits_row(made, &info);
    made_waits_short(made, row, 1, total_ms, 0, total_ms);
    made->threads[thread].runq_ns += made_ns(total_ms);
    return row;
}
