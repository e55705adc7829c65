/* Where collectors put what they see.
 *
 * A collector knows only this interface: the recording writer (store/) behind
 * it writes SQLite, the memory sink (model/sink_memory.h) lets a test look at
 * the samples. Ids are small numbers from 1; 0 means "none".
 *
 * Times are CLOCK_MONOTONIC nanoseconds. A sink belongs to one thread. Calls
 * return 0 or -errno; after a failure (disk full) the sink keeps what it has
 * committed, counts every further sample as dropped, and goes on returning the
 * error: a collector may stop, or go on and let the loss be counted. */
#pragma once

#include "base/macros.h"
#include "base/str.h"
#include "base/units.h"
#include "model/call.h"
#include "model/heap.h"
#include "model/request.h"
#include "model/wait.h"

#include <stdint.h>

struct process_info {
    uint32_t pid;
    uint32_t parent; /* id of the parent process in this sink, 0 if outside */
    uint64_t start_ns;
    struct str exe;
    struct str command; /* argv joined by blanks */
};

struct thread_info {
    uint32_t process; /* id */
    uint32_t tid;
    uint64_t start_ns;
    struct str name;
};

enum image_kind { IMAGE_FILE = 0, IMAGE_KERNEL = 1, IMAGE_VDSO = 2, IMAGE_JIT = 3 };

struct image_info {
    enum image_kind kind;
    struct str path;     /* as the target sees it */
    struct str build_id; /* lower-case hex, empty if it has none */
    uint64_t size_bytes;
};

/* Time-ranged: exec, dlopen and PID reuse end a mapping, and a later one may
 * stand at the same address. */
struct mapping_info {
    uint32_t process; /* id */
    uint32_t image;   /* id */
    uint64_t start_ns;
    uint64_t address;
    uint64_t size_bytes;
    uint64_t file_offset;
};

enum frame_kind {
    FRAME_USER = 0,
    FRAME_KERNEL = 1,
    FRAME_MANAGED = 2, /* an interpreter's or JIT's; `name` says which function */
    FRAME_NAMED = 3,   /* imported: a name without an address */
    FRAME_UNKNOWN = 4, /* the walk ended here; `reason` says why */
};

struct frame_info {
    enum frame_kind kind;
    uint32_t reason; /* why the walk ended, for FRAME_UNKNOWN; 0 otherwise */
    uint32_t image;  /* id, 0 if none */
    /* In the image's own address space (ELF vaddr). It is looked up as it stands: of a
     * caller it is the return address minus one, which lies in the call itself. */
    uint64_t address;
    uint32_t name; /* text id, for frames without an image */
};

/* A function of an image. What is not known is 0. */
struct function_info {
    uint32_t name;    /* text id, for people: demangled */
    uint32_t linkage; /* text id, as the linker knows it */
    uint32_t file;    /* text id: where it is declared */
    uint32_t line;
    uint32_t image;   /* id */
    uint64_t address; /* ELF vaddr of its first instruction; 0 for one seen only inlined */
    uint64_t size_bytes;
};

/* What a frame's address means, innermost inlined function first (depth 0). */
struct location_info {
    uint32_t frame; /* id */
    uint32_t depth;
    uint32_t function; /* id */
    uint32_t file;     /* text id, 0 if unknown */
    uint32_t line;     /* 0 if unknown */
};

enum series_kind {
    SERIES_SUM = 0,   /* weights add up: nanoseconds, bytes, calls */
    SERIES_LEVEL = 1, /* weights are readings of a level: RSS, queue depth */
};

struct series_info {
    const char *name; /* "cpu", "rss": lower case, stable, unique in a recording */
    enum series_kind kind;
    enum unit unit;
    const char *about; /* one sentence: what a weight means */
};

struct sample {
    uint32_t series; /* id */
    uint32_t thread; /* id */
    uint32_t stack;  /* id, 0 if the sample has none */
    uint64_t time_ns;
    uint64_t weight;
};

struct sink;

struct sink_ops {
    int (*text)(struct sink *sink, struct str text, uint32_t *ret_id);
    int (*process)(struct sink *sink, const struct process_info *info, uint32_t *ret_id);
    int (*process_program)(struct sink *sink, uint32_t process, struct str exe, struct str command);
    int (*process_end)(struct sink *sink, uint32_t process, uint64_t end_ns, int wait_status);
    int (*thread)(struct sink *sink, const struct thread_info *info, uint32_t *ret_id);
    int (*thread_end)(struct sink *sink, uint32_t thread, uint64_t end_ns);
    int (*image)(struct sink *sink, const struct image_info *info, uint32_t *ret_id);
    int (*mapping)(struct sink *sink, const struct mapping_info *info, uint32_t *ret_id);
    int (*mapping_end)(struct sink *sink, uint32_t mapping, uint64_t end_ns);
    int (*frame)(struct sink *sink, const struct frame_info *info, uint32_t *ret_id);
    int (*stack)(struct sink *sink, uint32_t parent, uint32_t frame, uint32_t *ret_id);
    int (*function)(struct sink *sink, const struct function_info *info, uint32_t *ret_id);
    int (*location)(struct sink *sink, const struct location_info *info);
    int (*source_line)(struct sink *sink, uint32_t file, uint32_t line, struct str text);
    int (*instruction)(struct sink *sink, uint32_t image, uint64_t address, uint32_t size,
                       struct str text);
    int (*series)(struct sink *sink, const struct series_info *info, uint32_t *ret_id);
    int (*sample)(struct sink *sink, const struct sample *sample);
    int (*counter)(struct sink *sink, const char *name, enum unit unit, uint64_t add);
    int (*document)(struct sink *sink, const char *name, struct str json);
    int (*object)(struct sink *sink, const struct object_info *info, uint32_t *ret_id);
    int (*object_name)(struct sink *sink, uint32_t object, struct str name);
    int (*wait)(struct sink *sink, const struct wait_info *info, uint32_t *ret_id);
    int (*wait_add)(struct sink *sink, uint32_t wait, const struct wait_tally *tally);
    int (*wait_event)(struct sink *sink, const struct wait_event *event);
    int (*call)(struct sink *sink, const struct call_info *info, uint32_t *ret_id);
    int (*call_add)(struct sink *sink, uint32_t call, const struct call_tally *tally);
    int (*device)(struct sink *sink, const struct device_info *info, uint32_t *ret_id);
    int (*device_add)(struct sink *sink, uint32_t device, const struct device_tally *tally);
    int (*connection)(struct sink *sink, const struct connection_info *info, uint32_t *ret_id);
    int (*connection_end)(struct sink *sink, uint32_t connection, const struct connection_end *end);
    int (*request)(struct sink *sink, const struct request_info *info, uint32_t *ret_id);
    int (*request_add)(struct sink *sink, uint32_t request, const struct request_tally *tally);
    int (*request_event)(struct sink *sink, const struct request_event *event);
    int (*heap_site)(struct sink *sink, const struct heap_site_info *info, uint32_t *ret_id);
    int (*heap_site_set)(struct sink *sink, uint32_t site, const struct heap_tally *tally);
    int (*heap_process_set)(struct sink *sink, uint32_t process,
                            const struct heap_process_tally *tally);
    int (*heap_snapshot)(struct sink *sink, const struct heap_snapshot_info *info,
                         uint32_t *ret_id);
    int (*heap_snapshot_row)(struct sink *sink, const struct heap_snapshot_row *row);
    int (*heap_moment)(struct sink *sink, const struct heap_moment *moment);
    int (*heap_event)(struct sink *sink, const struct heap_event *event);
};

/* Embedded as the first member of what implements it. */
struct sink {
    const struct sink_ops *ops;
};

/* The same text, image, frame, function (by all fields) or stack (by parent and frame)
 * gives the same id every time. `parent` is the caller's stack, 0 at the root. */
MUST_USE static inline int sink_text(struct sink *sink, struct str text, uint32_t *ret_id)
{
    return sink->ops->text(sink, text, ret_id);
}
MUST_USE static inline int sink_process(struct sink *sink, const struct process_info *info,
                                        uint32_t *ret_id)
{
    return sink->ops->process(sink, info, ret_id);
}
/* What it runs, learnt after it was told: a sample can fall inside exec(). */
MUST_USE static inline int sink_process_program(struct sink *sink, uint32_t process, struct str exe,
                                                struct str command)
{
    return sink->ops->process_program(sink, process, exe, command);
}
MUST_USE static inline int sink_process_end(struct sink *sink, uint32_t process, uint64_t end_ns,
                                            int wait_status)
{
    return sink->ops->process_end(sink, process, end_ns, wait_status);
}
MUST_USE static inline int sink_thread(struct sink *sink, const struct thread_info *info,
                                       uint32_t *ret_id)
{
    return sink->ops->thread(sink, info, ret_id);
}
MUST_USE static inline int sink_thread_end(struct sink *sink, uint32_t thread, uint64_t end_ns)
{
    return sink->ops->thread_end(sink, thread, end_ns);
}
MUST_USE static inline int sink_image(struct sink *sink, const struct image_info *info,
                                      uint32_t *ret_id)
{
    return sink->ops->image(sink, info, ret_id);
}
MUST_USE static inline int sink_mapping(struct sink *sink, const struct mapping_info *info,
                                        uint32_t *ret_id)
{
    return sink->ops->mapping(sink, info, ret_id);
}
MUST_USE static inline int sink_mapping_end(struct sink *sink, uint32_t mapping, uint64_t end_ns)
{
    return sink->ops->mapping_end(sink, mapping, end_ns);
}
MUST_USE static inline int sink_frame(struct sink *sink, const struct frame_info *info,
                                      uint32_t *ret_id)
{
    return sink->ops->frame(sink, info, ret_id);
}
MUST_USE static inline int sink_stack(struct sink *sink, uint32_t parent, uint32_t frame,
                                      uint32_t *ret_id)
{
    return sink->ops->stack(sink, parent, frame, ret_id);
}
MUST_USE static inline int sink_function(struct sink *sink, const struct function_info *info,
                                         uint32_t *ret_id)
{
    return sink->ops->function(sink, info, ret_id);
}
MUST_USE static inline int sink_location(struct sink *sink, const struct location_info *info)
{
    return sink->ops->location(sink, info);
}
MUST_USE static inline int sink_source_line(struct sink *sink, uint32_t file, uint32_t line,
                                            struct str text)
{
    return sink->ops->source_line(sink, file, line, text);
}
MUST_USE static inline int sink_instruction(struct sink *sink, uint32_t image, uint64_t address,
                                            uint32_t size, struct str text)
{
    return sink->ops->instruction(sink, image, address, size, text);
}
MUST_USE static inline int sink_series(struct sink *sink, const struct series_info *info,
                                       uint32_t *ret_id)
{
    return sink->ops->series(sink, info, ret_id);
}
MUST_USE static inline int sink_sample(struct sink *sink, const struct sample *sample)
{
    return sink->ops->sample(sink, sample);
}
/* Adds to a named counter: losses, truncations, own CPU time ("loss.ring_full"). */
MUST_USE static inline int sink_counter(struct sink *sink, const char *name, enum unit unit,
                                        uint64_t add)
{
    return sink->ops->counter(sink, name, unit, add);
}
/* Embeds a JSON text under a name ("fingerprint"); the last one wins. */
MUST_USE static inline int sink_document(struct sink *sink, const char *name, struct str json)
{
    return sink->ops->document(sink, name, json);
}
/* Something that can be waited for; the same kind, process and key give the same id, flags are
 * joined. */
MUST_USE static inline int sink_object(struct sink *sink, const struct object_info *info,
                                       uint32_t *ret_id)
{
    return sink->ops->object(sink, info, ret_id);
}
/* What it is called, learnt later. */
MUST_USE static inline int sink_object_name(struct sink *sink, uint32_t object, struct str name)
{
    return sink->ops->object_name(sink, object, name);
}
/* A row of waits; the same fields give the same id. */
MUST_USE static inline int sink_wait(struct sink *sink, const struct wait_info *info,
                                     uint32_t *ret_id)
{
    return sink->ops->wait(sink, info, ret_id);
}
/* Adds to a row's tally: sums, the highest, the earliest and the latest. */
MUST_USE static inline int sink_wait_add(struct sink *sink, uint32_t wait,
                                         const struct wait_tally *tally)
{
    return sink->ops->wait_add(sink, wait, tally);
}
/* One wait with its times; its row's tally has it already. A wake_ns that does not lie between
 * the two others is taken as run_ns: nobody was seen to end the wait. */
MUST_USE static inline int sink_wait_event(struct sink *sink, const struct wait_event *event)
{
    return sink->ops->wait_event(sink, event);
}
/* A row of calls (model/call.h), a device with an operation, a row of requests: the same fields
 * give the same id. Each has a tally, which only grows. */
MUST_USE static inline int sink_call(struct sink *sink, const struct call_info *info,
                                     uint32_t *ret_id)
{
    return sink->ops->call(sink, info, ret_id);
}
MUST_USE static inline int sink_call_add(struct sink *sink, uint32_t call,
                                         const struct call_tally *tally)
{
    return sink->ops->call_add(sink, call, tally);
}
MUST_USE static inline int sink_device(struct sink *sink, const struct device_info *info,
                                       uint32_t *ret_id)
{
    return sink->ops->device(sink, info, ret_id);
}
MUST_USE static inline int sink_device_add(struct sink *sink, uint32_t device,
                                           const struct device_tally *tally)
{
    return sink->ops->device_add(sink, device, tally);
}
/* A connection on which requests were seen: a new id every time. */
MUST_USE static inline int sink_connection(struct sink *sink, const struct connection_info *info,
                                           uint32_t *ret_id)
{
    return sink->ops->connection(sink, info, ret_id);
}
/* What is known of it when it is closed, or when the recording ends; at most once. */
MUST_USE static inline int sink_connection_end(struct sink *sink, uint32_t connection,
                                               const struct connection_end *end)
{
    return sink->ops->connection_end(sink, connection, end);
}
MUST_USE static inline int sink_request(struct sink *sink, const struct request_info *info,
                                        uint32_t *ret_id)
{
    return sink->ops->request(sink, info, ret_id);
}
MUST_USE static inline int sink_request_add(struct sink *sink, uint32_t request,
                                            const struct request_tally *tally)
{
    return sink->ops->request_add(sink, request, tally);
}
/* One request with its times; its row's tally has it already. */
MUST_USE static inline int sink_request_event(struct sink *sink, const struct request_event *event)
{
    return sink->ops->request_event(sink, event);
}
/* Where memory is allocated: the same fields give the same id. */
MUST_USE static inline int sink_heap_site(struct sink *sink, const struct heap_site_info *info,
                                          uint32_t *ret_id)
{
    return sink->ops->heap_site(sink, info, ret_id);
}
/* What was counted there so far, in place of what was said before; likewise of a process. */
MUST_USE static inline int sink_heap_site_set(struct sink *sink, uint32_t site,
                                              const struct heap_tally *tally)
{
    return sink->ops->heap_site_set(sink, site, tally);
}
MUST_USE static inline int sink_heap_process_set(struct sink *sink, uint32_t process,
                                                 const struct heap_process_tally *tally)
{
    return sink->ops->heap_process_set(sink, process, tally);
}
/* A new id every time; its rows follow, before the next one. */
MUST_USE static inline int sink_heap_snapshot(struct sink *sink,
                                              const struct heap_snapshot_info *info,
                                              uint32_t *ret_id)
{
    return sink->ops->heap_snapshot(sink, info, ret_id);
}
MUST_USE static inline int sink_heap_snapshot_row(struct sink *sink,
                                                  const struct heap_snapshot_row *row)
{
    return sink->ops->heap_snapshot_row(sink, row);
}
MUST_USE static inline int sink_heap_moment(struct sink *sink, const struct heap_moment *moment)
{
    return sink->ops->heap_moment(sink, moment);
}
MUST_USE static inline int sink_heap_event(struct sink *sink, const struct heap_event *event)
{
    return sink->ops->heap_event(sink, event);
}
