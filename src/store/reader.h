/* Reading a recording.
 *
 * The user's file is never changed: an older schema is migrated in a temporary
 * copy, a newer one is refused by name. A recording that is still being
 * written, or was cut off, opens with everything up to its last commit.
 *
 * The file is not trusted: every id, count and length is checked, and damage is
 * -EBADMSG with a `why` that names the place. Ids that a callback is given are
 * in range. Texts in rows are valid during the callback only.
 *
 * A recording belongs to one thread. */
#pragma once

#include "base/why.h"
#include "model/sink.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

struct recording;

MUST_USE int recording_open(const char *path, struct recording **ret, struct why *why);
void recording_close(struct recording *recording); /* NULL is fine */

/* False: it is still being written, or was cut off (crash, kill, disk full). */
bool recording_finished(const struct recording *recording);
/* The whyslow that wrote it; "unknown" if the file does not say. */
const char *recording_writer_version(const struct recording *recording);
unsigned recording_schema(const struct recording *recording); /* of the file, before migration */

/* How many there are: ids go from 1 to this. */
enum recording_table {
    RECORDING_TEXT,
    RECORDING_PROCESS,
    RECORDING_THREAD,
    RECORDING_IMAGE,
    RECORDING_MAPPING,
    RECORDING_FRAME,
    RECORDING_FUNCTION,
    RECORDING_STACK,
    RECORDING_SERIES,
    RECORDING_OBJECT,
    RECORDING_WAIT,
    RECORDING_CALL,
    RECORDING_DEVICE,
    RECORDING_CONNECTION,
    RECORDING_REQUEST,
    RECORDING_HEAP_SITE,
    RECORDING_HEAP_SNAPSHOT,
    RECORDING_TABLES,
};
uint32_t recording_count(const struct recording *recording, enum recording_table table);

struct recorded_series {
    uint32_t id;
    struct series_info info;
    uint64_t samples;
    uint64_t start_ns, end_ns; /* of the first and last sample; 0 without one */
};
/* Loaded at opening; NULL when there is none. Valid until recording_close(). */
const struct recorded_series *recording_series(const struct recording *recording, uint32_t id);
const struct recorded_series *recording_series_find(const struct recording *recording,
                                                    const char *name);

/* Samples in blocks, in the order they were given within a chunk and chunks in
 * the order of their earliest sample. Both ends of the range are included. */
struct sample_block {
    size_t count;
    const uint64_t *time_ns;
    const uint32_t *thread;
    const uint32_t *stack;
    const uint64_t *weight;
};
struct sample_cursor;
#define SAMPLES_ALL 0, UINT64_MAX
MUST_USE int sample_cursor_open(struct recording *recording, uint32_t series, uint64_t from_ns,
                                uint64_t to_ns, struct sample_cursor **ret, struct why *why);
/* 1 with a block that is valid until the next call, 0 at the end, -errno. */
MUST_USE int sample_cursor_next(struct sample_cursor *cursor, struct sample_block *ret,
                                struct why *why);
void sample_cursor_close(struct sample_cursor *cursor); /* NULL is fine */

/* What is packed of the heap, in blocks. Events: those of a thread in their order, those of a
 * block put together by thread. */
enum heap_rows { HEAP_ROWS_SITES, HEAP_ROWS_SNAPSHOTS, HEAP_ROWS_EVENTS };
struct heap_block {
    size_t count;
    const struct recorded_heap_site *sites; /* one of the three */
    const struct heap_snapshot_row *rows;
    const struct heap_event *events;
};
struct heap_cursor;
MUST_USE int heap_cursor_open(struct recording *recording, enum heap_rows kind,
                              struct heap_cursor **ret, struct why *why);
/* 1 with a block that is valid until the next call, 0 at the end, -errno. */
MUST_USE int heap_cursor_next(struct heap_cursor *cursor, struct heap_block *ret, struct why *why);
void heap_cursor_close(struct heap_cursor *cursor); /* NULL is fine */
/* How many there are; none is unpacked. */
MUST_USE int recording_heap_events(struct recording *recording, uint64_t *ret, struct why *why);

/* The frames of a stack, innermost first. Returns how many there are; at most
 * `max` are stored. Loads the stack table on first use. */
MUST_USE int recording_stack(struct recording *recording, uint32_t stack, uint32_t *ret_frames,
                             size_t max, struct why *why);
/* Caller's stack (0 at the root) and frame of a stack. */
MUST_USE int recording_stack_node(struct recording *recording, uint32_t stack, uint32_t *ret_parent,
                                  uint32_t *ret_frame, struct why *why);

/* Rows of the plain tables, in the order of their keys. A callback that returns
 * a negative number ends the loop with it. */
struct recorded_text {
    uint32_t id;
    struct str text;
};
struct recorded_process {
    uint32_t id;
    struct process_info info;
    bool ended;
    uint64_t end_ns;
    int wait_status;
};
struct recorded_thread {
    uint32_t id;
    struct thread_info info;
    bool ended;
    uint64_t end_ns;
};
struct recorded_image {
    uint32_t id;
    struct image_info info;
};
struct recorded_mapping {
    uint32_t id;
    struct mapping_info info;
    bool ended;
    uint64_t end_ns;
};
struct recorded_frame {
    uint32_t id;
    struct frame_info info;
};
struct recorded_function {
    uint32_t id;
    struct function_info info;
};
struct recorded_total {
    uint32_t series;
    uint32_t thread;
    uint32_t stack;
    uint64_t count;
    uint64_t weight; /* the sum; of a SERIES_LEVEL series the highest level */
};
struct recorded_object {
    uint32_t id;
    struct object_info info;
};
struct recorded_wait {
    uint32_t id;
    struct wait_info info;
    struct wait_tally tally;
};
struct recorded_call {
    uint32_t id;
    struct call_info info;
    struct call_tally tally;
};
struct recorded_device {
    uint32_t id;
    struct device_info info;
    struct device_tally tally;
};
struct recorded_connection {
    uint32_t id;
    struct connection_info info; /* flags and service as of its end */
    uint64_t closed_ns;          /* 0: it was still open */
    uint64_t requests, bytes_out, bytes_in;
};
struct recorded_request {
    uint32_t id;
    struct request_info info;
    struct request_tally tally;
};
struct recorded_heap_site {
    uint32_t id;
    struct heap_site_info info;
    struct heap_tally tally;
};
struct recorded_heap_process {
    uint32_t process;
    struct heap_process_tally tally;
};
struct recorded_heap_snapshot {
    uint32_t id;
    struct heap_snapshot_info info;
};
struct recorded_source_line {
    uint32_t file;
    uint32_t line;
    struct str text;
};
struct recorded_instruction {
    uint32_t image;
    uint64_t address;
    uint32_t size;
    struct str text;
};
struct recorded_counter {
    struct str name;
    enum unit unit;
    uint64_t value;
};
struct recorded_document {
    struct str name;
    struct str json;
};

#define RECORDING_EACH(noun, type)                                                                 \
    MUST_USE int recording_each_##noun(struct recording *recording,                                \
                                       int (*fn)(void *context, const __typeof__(type) *row),      \
                                       void *context, struct why *why)
RECORDING_EACH(text, struct recorded_text);
RECORDING_EACH(process, struct recorded_process);
RECORDING_EACH(thread, struct recorded_thread);
RECORDING_EACH(image, struct recorded_image);
RECORDING_EACH(mapping, struct recorded_mapping);
RECORDING_EACH(frame, struct recorded_frame);
RECORDING_EACH(function, struct recorded_function);
RECORDING_EACH(location, struct location_info);
RECORDING_EACH(total, struct recorded_total);
RECORDING_EACH(object, struct recorded_object);
RECORDING_EACH(wait, struct recorded_wait);
/* In the order they were told; start_ns <= wake_ns <= run_ns. */
RECORDING_EACH(wait_event, struct wait_event);
RECORDING_EACH(call, struct recorded_call);
RECORDING_EACH(device, struct recorded_device);
RECORDING_EACH(connection, struct recorded_connection);
RECORDING_EACH(request, struct recorded_request);
/* In the order they were told; start_ns <= first_byte_ns <= end_ns. */
RECORDING_EACH(request_event, struct request_event);
RECORDING_EACH(heap_site, struct recorded_heap_site);
RECORDING_EACH(heap_process, struct recorded_heap_process);
RECORDING_EACH(heap_snapshot, struct recorded_heap_snapshot);
/* By snapshot, in the order they were told. */
RECORDING_EACH(heap_snapshot_row, struct heap_snapshot_row);
/* By process and time. */
RECORDING_EACH(heap_moment, struct heap_moment);
RECORDING_EACH(source_line, struct recorded_source_line);
RECORDING_EACH(instruction, struct recorded_instruction);
RECORDING_EACH(counter, struct recorded_counter);
RECORDING_EACH(document, struct recorded_document);

/* The connection itself, read-only, for SQL that people type. */
sqlite3 *recording_db(struct recording *recording);
const char *recording_path(const struct recording *recording);
