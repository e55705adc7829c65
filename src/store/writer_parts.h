/* What the files of the writer share; nobody else includes this.
 *
 * writer.c         sink calls, commit, finish
 * writer_create.c  a new file, whole or not at all
 * writer_rows.c    prepared statements
 * writer_bulk.c    rows of the large tables, many at a time
 * writer_waits.c   objects, waits and events
 * writer_calls.c   calls, devices, connections and requests
 * writer_heap.c    sites, processes and snapshots of the heap
 * writer_heap_events.c  its single events
 * writer_series.c  sample buffers, chunks and totals: the hot path */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "model/call_book.h"
#include "model/heap_book.h"
#include "model/interned.h"
#include "model/wait_book.h"
#include "store/chunk.h"
#include "store/heap_chunk.h"
#include "store/packed.h"
#include "store/writer.h"

#include <sqlite3.h>

enum writer_sql {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_META,
    SQL_TEXT,
    SQL_PROCESS,
    SQL_PROCESS_PROGRAM,
    SQL_PROCESS_END,
    SQL_THREAD,
    SQL_THREAD_END,
    SQL_IMAGE,
    SQL_MAPPING,
    SQL_MAPPING_END,
    SQL_FRAME,
    SQL_STACK,
    SQL_FUNCTION,
    SQL_LOCATION,
    SQL_SOURCE_LINE,
    SQL_INSTRUCTION,
    SQL_SERIES,
    SQL_TOTAL,
    SQL_CHUNK_ADD,
    SQL_CHUNK_UPDATE,
    SQL_COUNTER,
    SQL_DOCUMENT,
    SQL_OBJECT,
    SQL_WAIT,
    SQL_WAIT_EVENT,
    SQL_CALL,
    SQL_DEVICE,
    SQL_CONNECTION,
    SQL_REQUEST,
    SQL_REQUEST_EVENT,
    SQL_HEAP_SITE_CHUNK,
    SQL_HEAP_PROCESS,
    SQL_HEAP_SNAPSHOT,
    SQL_HEAP_SNAPSHOT_ROWS,
    SQL_HEAP_MOMENT,
    SQL_HEAP_MOMENTS_CUT,
    SQL_HEAP_CHUNK_ADD,
    SQL_HEAP_CHUNK_UPDATE,
    SQL_COUNT,
};

enum {
    WRITER_SERIES_MAX = 256,
    WRITER_COUNTERS_MAX = 4096,
    WRITER_TOTALS_MAX = 1 << 23, /* per series */
    WRITER_ROWS_MAX = 1 << 24,   /* processes, threads and mappings, each */
    WRITER_BLOB_BYTES_MAX = 64 << 20,
    WRITER_WAIT_EVENTS_MAX = 1 << 22, /* some 120 MB of file */
    WRITER_REQUEST_EVENTS_MAX = 1 << 20,
    WRITER_HEAP_SNAPSHOT_ROWS_MAX = 1 << 22, /* some 20 MB of file */
};

enum writer_bulk_kind {
    BULK_FRAME,
    BULK_STACK,
    BULK_LOCATION,
    BULK_TOTAL,
    BULK_WAIT_EVENT,
    BULK_REQUEST_EVENT,
    BULK_HEAP_MOMENT,
    WRITER_BULKS,
};
enum { BULK_ROWS = 32, BULK_COLUMNS_MAX = 11 };

struct writer_bulk {
    sqlite3_stmt *many; /* BULK_ROWS at once */
    unsigned rows;      /* that wait */
    int64_t values[BULK_ROWS * BULK_COLUMNS_MAX];
};

struct total {
    uint32_t thread;
    uint32_t stack;
    uint64_t count;
    uint64_t weight; /* sum, or the highest level seen */
    bool dirty;
};

struct series_buffer {
    enum series_kind kind;
    struct chunk_columns columns; /* given, not yet in a sealed chunk */
    uint32_t counted;             /* of these, how many the totals include */
    int64_t chunk;                /* row that holds them so far; 0 if none */
    struct map_u64 total_ids;     /* thread and stack to index */
    VEC(struct total) totals;
    VEC(uint32_t) dirty; /* totals changed since the last commit */
};

struct counter_value {
    enum unit unit;
    uint64_t value;
    bool dirty;
};

/* Rows of a table in memory that changed since the last commit, by index; each once. */
struct dirty_rows {
    uint32_t *data;
    size_t len, cap;
};

struct heap_event_buffer {
    struct heap_event *events; /* HEAP_CHUNK_EVENTS; NULL before the first */
    uint32_t count;            /* given, not yet in a sealed chunk */
    uint32_t written;          /* of these, in the row so far */
    int64_t chunk;             /* row that holds them; 0 if none */
    struct heap_encoder encoder;
};

struct recording_writer {
    struct sink sink; /* first: the ops get this address */
    char *path;
    sqlite3 *db;
    sqlite3_stmt *sql[SQL_COUNT];
    struct writer_bulk bulks[WRITER_BULKS];
    bool in_transaction;
    uint64_t (*clock_ns)(void);
    uint64_t interval_ns;
    uint64_t due_ns;      /* when the next commit is */
    uint32_t since_clock; /* samples since the clock was last looked at */

    struct interned interned;
    size_t texts_written; /* heads of the interned tables that are rows already */
    size_t frames_written;
    size_t stacks_written;
    uint32_t processes, threads, mappings; /* how many: ids go from 1 to this */
    struct intern series_names;
    VEC(struct series_buffer) series;
    struct intern counter_names;
    VEC(struct counter_value) counters;
    struct chunk_encoder encoder;
    struct wait_book book;
    bool objects_dirty;        /* some of book.objects changed since the last commit */
    VEC(uint32_t) waits_dirty; /* indices of book.waits that did */
    uint32_t wait_events;      /* how many: ids go from 1 to this */
    uint32_t wait_events_max;  /* WRITER_WAIT_EVENTS_MAX; tests have less time */
    uint64_t wait_events_lost; /* beyond it, and not yet in the counter */
    struct call_book calls;
    struct dirty_rows calls_dirty, connections_dirty, requests_dirty;
    bool devices_dirty;
    uint32_t request_events, request_events_max;
    uint64_t request_events_lost;
    struct heap_book heap;
    struct dirty_rows heap_chunks_dirty, heap_processes_dirty;
    VEC(bool) heap_chunk_listed; /* whether it is in the first of these */
    struct packer packer;
    uint32_t heap_snapshots;                             /* how many: ids go from 1 to this */
    VEC(struct heap_snapshot_row) heap_living;           /* rows of the last snapshot */
    size_t heap_living_written;                          /* of these, in the file */
    uint32_t heap_snapshot_rows, heap_snapshot_rows_max; /* of all snapshots */
    uint64_t heap_snapshot_rows_lost, heap_moments_lost;
    struct heap_event_buffer heap_events;

    uint64_t given;     /* samples, good ones */
    uint64_t committed; /* of these, in the file */
    uint64_t invalid;   /* samples refused */
    int error;          /* the first failure, negative */
    struct why why;
    bool finished;
};

/* writer_rows.c */

/* 0, or a SQLite result code. */
MUST_USE int writer_prepare(struct recording_writer *writer);
void writer_unprepare(struct recording_writer *writer);
/* Binds and runs one row, beginning a transaction if there is none. `types` has
 * a letter an argument: i int64_t, s struct str (as text), b struct str (as
 * blob). 0, or -errno after writer_fail(). */
MUST_USE int writer_put(struct recording_writer *writer, enum writer_sql sql, const char *types,
                        ...);
/* A transaction if there is none. */
MUST_USE int writer_begin(struct recording_writer *writer);
/* Runs a statement that is bound; a SQLite result code. */
MUST_USE int writer_run(sqlite3_stmt *stmt);
/* Ends the recording: remembers why, rolls back to the last commit. Returns the error. */
int writer_fail(struct recording_writer *writer, int rc, const char *doing);
int writer_fail_errno(struct recording_writer *writer, int error, const char *doing);
/* A refused call (-EINVAL, -E2BIG) is the caller's matter; no memory ends the recording. */
int writer_settle(struct recording_writer *writer, int r);

/* writer_bulk.c */
MUST_USE int writer_bulk_prepare(struct recording_writer *writer);
void writer_bulk_unprepare(struct recording_writer *writer);
/* A row in the order of its table's columns; written with others, by writer_bulk_flush() at
 * the latest. */
MUST_USE int writer_bulk_put(struct recording_writer *writer, enum writer_bulk_kind kind,
                             const int64_t *values);
MUST_USE int writer_bulk_flush(struct recording_writer *writer);

/* writer_series.c */
MUST_USE int series_buffer_init(struct series_buffer *buffer, enum series_kind kind);
void series_buffer_deinit(struct series_buffer *buffer);
/* The buffer is full: its samples become a chunk of their own. */
MUST_USE int series_seal(struct recording_writer *writer, uint32_t series);
/* Everything given so far goes into rows: the open chunk and the totals. */
MUST_USE int series_flush(struct recording_writer *writer, uint32_t series);

/* writer_waits.c: sink calls */
int writer_object(struct sink *sink, const struct object_info *info, uint32_t *ret_id);
int writer_object_name(struct sink *sink, uint32_t object, struct str name);
int writer_wait(struct sink *sink, const struct wait_info *info, uint32_t *ret_id);
int writer_wait_add(struct sink *sink, uint32_t wait, const struct wait_tally *tally);
int writer_wait_event(struct sink *sink, const struct wait_event *event);
/* Objects and waits that changed since the last commit become rows. */
MUST_USE int writer_waits_flush(struct recording_writer *writer);

/* writer_calls.c: sink calls */
int writer_call(struct sink *sink, const struct call_info *info, uint32_t *ret_id);
int writer_call_add(struct sink *sink, uint32_t call, const struct call_tally *tally);
int writer_device(struct sink *sink, const struct device_info *info, uint32_t *ret_id);
int writer_device_add(struct sink *sink, uint32_t device, const struct device_tally *tally);
int writer_connection(struct sink *sink, const struct connection_info *info, uint32_t *ret_id);
int writer_connection_end(struct sink *sink, uint32_t connection, const struct connection_end *end);
int writer_request(struct sink *sink, const struct request_info *info, uint32_t *ret_id);
int writer_request_add(struct sink *sink, uint32_t request, const struct request_tally *tally);
int writer_request_event(struct sink *sink, const struct request_event *event);
MUST_USE int writer_calls_flush(struct recording_writer *writer);
void writer_calls_deinit(struct recording_writer *writer);

/* writer_heap.c: sink calls */
int writer_heap_site(struct sink *sink, const struct heap_site_info *info, uint32_t *ret_id);
int writer_heap_site_set(struct sink *sink, uint32_t site, const struct heap_tally *tally);
int writer_heap_process_set(struct sink *sink, uint32_t process,
                            const struct heap_process_tally *tally);
int writer_heap_snapshot(struct sink *sink, const struct heap_snapshot_info *info,
                         uint32_t *ret_id);
int writer_heap_snapshot_row(struct sink *sink, const struct heap_snapshot_row *row);
int writer_heap_moment(struct sink *sink, const struct heap_moment *moment);
MUST_USE int writer_heap_flush(struct recording_writer *writer);
void writer_heap_deinit(struct recording_writer *writer);

/* writer_heap_events.c */
int writer_heap_event(struct sink *sink, const struct heap_event *event);
MUST_USE int writer_heap_events_flush(struct recording_writer *writer);
void writer_heap_events_deinit(struct recording_writer *writer);

/* writer_create.c */
/* *held: an fd that keeps others from sweeping it away, to be closed when it has been opened:
 * SQLite writes to -wal from then on. */
MUST_USE int writer_create_file(const char *path, const char *version, int *held, struct why *why);
/* What that made, where it comes to nothing. */
void writer_remove_file(const char *path);
MUST_USE int writer_open_file(const char *path, sqlite3 **ret, struct why *why);
