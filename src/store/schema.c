/* The tables of a recording, and how an old file becomes a new one. */
#include "store/schema.h"

#include "store/db.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Rowid tables count ids from 1 in the order of writing. Tables that are only
 * ever reached through their key have no rowid: half the pages, one lookup.
 * The chunk's blob stands last, so that the columns before it are read without it. */
static const char step_1[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE text(id INTEGER PRIMARY KEY, text TEXT NOT NULL);"
    "CREATE TABLE process(id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, parent INTEGER NOT NULL,"
    "  start_ns INTEGER NOT NULL, end_ns INTEGER, wait_status INTEGER,"
    "  exe TEXT NOT NULL, command TEXT NOT NULL);"
    "CREATE TABLE thread(id INTEGER PRIMARY KEY, process INTEGER NOT NULL, tid INTEGER NOT NULL,"
    "  start_ns INTEGER NOT NULL, end_ns INTEGER, name TEXT NOT NULL);"
    "CREATE TABLE image(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, path TEXT NOT NULL,"
    "  build_id TEXT NOT NULL, size_bytes INTEGER NOT NULL);"
    "CREATE TABLE mapping(id INTEGER PRIMARY KEY, process INTEGER NOT NULL,"
    "  image INTEGER NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER,"
    "  address INTEGER NOT NULL, size_bytes INTEGER NOT NULL, file_offset INTEGER NOT NULL);"
    "CREATE TABLE frame(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, reason INTEGER NOT NULL,"
    "  image INTEGER NOT NULL, address INTEGER NOT NULL, name INTEGER NOT NULL);"
    "CREATE TABLE location(frame INTEGER NOT NULL, depth INTEGER NOT NULL,"
    "  function INTEGER NOT NULL, file INTEGER NOT NULL, line INTEGER NOT NULL,"
    "  PRIMARY KEY(frame, depth)) WITHOUT ROWID;"
    "CREATE TABLE stack(id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, frame INTEGER NOT NULL);"
    "CREATE TABLE series(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,"
    "  unit TEXT NOT NULL, about TEXT NOT NULL);"
    "CREATE TABLE total(series INTEGER NOT NULL, thread INTEGER NOT NULL, stack INTEGER NOT NULL,"
    "  count INTEGER NOT NULL, weight INTEGER NOT NULL,"
    "  PRIMARY KEY(series, thread, stack)) WITHOUT ROWID;"
    "CREATE TABLE chunk(id INTEGER PRIMARY KEY, series INTEGER NOT NULL, start_ns INTEGER NOT NULL,"
    "  end_ns INTEGER NOT NULL, samples INTEGER NOT NULL, codec INTEGER NOT NULL,"
    "  data BLOB NOT NULL);"
    "CREATE INDEX chunk_by_time ON chunk(series, start_ns, end_ns, samples);"
    "CREATE TABLE counter(name TEXT PRIMARY KEY, unit TEXT NOT NULL, value INTEGER NOT NULL)"
    "  WITHOUT ROWID;"
    "CREATE TABLE document(name TEXT PRIMARY KEY, json TEXT NOT NULL);"
    "CREATE TABLE source_line(file INTEGER NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL,"
    "  PRIMARY KEY(file, line)) WITHOUT ROWID;"
    "CREATE TABLE instruction(image INTEGER NOT NULL, address INTEGER NOT NULL,"
    "  size_bytes INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY(image, address))"
    "  WITHOUT ROWID;";

/* Functions became rows of their own: a location had only a name, and two static functions
 * of one name were one. What an old file knows is the name. */
static const char step_2[] =
    "CREATE TABLE function(id INTEGER PRIMARY KEY, name INTEGER NOT NULL,"
    "  linkage INTEGER NOT NULL, file INTEGER NOT NULL, line INTEGER NOT NULL,"
    "  image INTEGER NOT NULL, address INTEGER NOT NULL, size_bytes INTEGER NOT NULL);"
    "INSERT INTO function SELECT NULL, function, 0, 0, 0, 0, 0, 0 FROM location"
    "  WHERE function <> 0 GROUP BY function;"
    "UPDATE location SET function ="
    "  coalesce((SELECT id FROM function WHERE name = location.function), 0);";

/* Waits: what is waited for, rows that add up waits which are alike, and the long ones by
 * themselves. Of an event only the beginning is a time of the clock: the durations behind it
 * take half the bytes. */
static const char step_3[] =
    "CREATE TABLE object(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, flags INTEGER NOT NULL,"
    "  process INTEGER NOT NULL, key INTEGER NOT NULL, name TEXT NOT NULL);"
    "CREATE TABLE wait(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, thread INTEGER NOT NULL,"
    "  stack INTEGER NOT NULL, waker_thread INTEGER NOT NULL, waker_stack INTEGER NOT NULL,"
    "  object INTEGER NOT NULL, syscall INTEGER NOT NULL, flags INTEGER NOT NULL,"
    "  detail INTEGER NOT NULL, count INTEGER NOT NULL, total_ns INTEGER NOT NULL,"
    "  max_ns INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,"
    "  owned_ns INTEGER NOT NULL, owner_off_ns INTEGER NOT NULL, buckets BLOB NOT NULL);"
    "CREATE TABLE wait_event(id INTEGER PRIMARY KEY, wait INTEGER NOT NULL,"
    "  start_ns INTEGER NOT NULL, blocked_ns INTEGER NOT NULL, runq_ns INTEGER NOT NULL);";

/* Calls to the kernel, devices, connections and requests. Requests that are told one by one have
 * durations as waits do; the payload, which hardly anybody asks for, is a text. */
static const char step_4[] =
    "CREATE TABLE call(id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, stack INTEGER NOT NULL,"
    "  object INTEGER NOT NULL, syscall INTEGER NOT NULL, error INTEGER NOT NULL,"
    "  flags INTEGER NOT NULL, count INTEGER NOT NULL, total_ns INTEGER NOT NULL,"
    "  max_ns INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,"
    "  bytes INTEGER NOT NULL, asked_bytes INTEGER NOT NULL, partial INTEGER NOT NULL,"
    "  placed INTEGER NOT NULL, sequential INTEGER NOT NULL, missed INTEGER NOT NULL,"
    "  missed_bytes INTEGER NOT NULL, buckets BLOB NOT NULL, sizes BLOB NOT NULL);"
    "CREATE TABLE device(id INTEGER PRIMARY KEY, number INTEGER NOT NULL, op TEXT NOT NULL,"
    "  name TEXT NOT NULL, count INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    "  total_ns INTEGER NOT NULL, max_ns INTEGER NOT NULL, first_ns INTEGER NOT NULL,"
    "  last_ns INTEGER NOT NULL, depth_ns INTEGER NOT NULL, depth_max INTEGER NOT NULL,"
    "  buckets BLOB NOT NULL, sizes BLOB NOT NULL);"
    "CREATE TABLE connection(id INTEGER PRIMARY KEY, process INTEGER NOT NULL,"
    "  object INTEGER NOT NULL, protocol TEXT NOT NULL, role TEXT NOT NULL,"
    "  flags INTEGER NOT NULL, opened_ns INTEGER, closed_ns INTEGER, requests INTEGER NOT NULL,"
    "  bytes_out INTEGER NOT NULL, bytes_in INTEGER NOT NULL, peer TEXT NOT NULL,"
    "  service TEXT NOT NULL);"
    "CREATE TABLE request(id INTEGER PRIMARY KEY, protocol TEXT NOT NULL, role TEXT NOT NULL,"
    "  thread INTEGER NOT NULL, stack INTEGER NOT NULL, peer INTEGER NOT NULL,"
    "  text INTEGER NOT NULL, result INTEGER NOT NULL, count INTEGER NOT NULL,"
    "  total_ns INTEGER NOT NULL, max_ns INTEGER NOT NULL, first_byte_ns INTEGER NOT NULL,"
    "  first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, bytes_out INTEGER NOT NULL,"
    "  bytes_in INTEGER NOT NULL, failed INTEGER NOT NULL, reused INTEGER NOT NULL,"
    "  unanswered INTEGER NOT NULL, parameters INTEGER NOT NULL, buckets BLOB NOT NULL);"
    "CREATE TABLE request_event(id INTEGER PRIMARY KEY, request INTEGER NOT NULL,"
    "  connection INTEGER NOT NULL, start_ns INTEGER NOT NULL, first_byte_ns INTEGER NOT NULL,"
    "  rest_ns INTEGER NOT NULL, bytes_out INTEGER NOT NULL, bytes_in INTEGER NOT NULL,"
    "  parameters INTEGER NOT NULL, flags INTEGER NOT NULL, payload INTEGER NOT NULL);";

/* The heap. What grows with the stacks of a program is packed: sites, and what lived at a snapshot;
 * events lie in chunks as samples do. Moments are numbered in their process: when two and two
 * become one, rows are written anew from the beginning. */
static const char step_5[] =
    "CREATE TABLE heap_site_chunk(id INTEGER PRIMARY KEY, sites INTEGER NOT NULL,"
    "  codec INTEGER NOT NULL, data BLOB NOT NULL);"
    "CREATE TABLE heap_process(process INTEGER PRIMARY KEY, peak_bytes INTEGER NOT NULL,"
    "  peak_count INTEGER NOT NULL, peak_ns INTEGER NOT NULL, unseen_frees INTEGER NOT NULL,"
    "  inherited_frees INTEGER NOT NULL, inherited_bytes INTEGER NOT NULL,"
    "  failed INTEGER NOT NULL, life_unit_ns INTEGER NOT NULL, sizes BLOB NOT NULL,"
    "  lives BLOB NOT NULL);"
    "CREATE TABLE heap_snapshot(id INTEGER PRIMARY KEY, process INTEGER NOT NULL,"
    "  time_ns INTEGER NOT NULL, why TEXT NOT NULL, rows INTEGER NOT NULL,"
    "  codec INTEGER NOT NULL, data BLOB NOT NULL);"
    "CREATE TABLE heap_moment(process INTEGER NOT NULL, number INTEGER NOT NULL,"
    "  time_ns INTEGER NOT NULL, live_bytes INTEGER NOT NULL, rss_bytes INTEGER NOT NULL,"
    "  PRIMARY KEY(process, number)) WITHOUT ROWID;"
    "CREATE TABLE heap_chunk(id INTEGER PRIMARY KEY, events INTEGER NOT NULL,"
    "  codec INTEGER NOT NULL, data BLOB NOT NULL);";

const struct schema_step schema_steps[] = {
    {step_1}, {step_2}, {step_3}, {step_4}, {step_5},
};
const unsigned schema_version = ARRAY_SIZE(schema_steps);

const struct schema_table schema_tables[] = {
    {"meta", "about the recording itself: who wrote it, when, and whether it was finished"},
    {"series", "what was sampled: name, unit and meaning of a weight"},
    {"total", "count and weight per series, thread and stack: the profile, ready to sum"},
    {"sample", "every single sample in time, unpacked from chunk while you read",
     "SELECT ifnull(sum(samples), 0) FROM chunk", true},
    {"wait", "waits that are alike, added up: thread, stack, object, who ended it, how long"},
    {"wait_event", "long waits one by one: off the CPU, blocked for, then ready to run for"},
    {"call", "calls to the kernel that are alike, added up: thread, stack, object, bytes, time"},
    {"device", "block devices and their operations: how many, how large, how long"},
    {"connection", "connections on which requests were seen: peer, service, protocol"},
    {"request", "requests that are alike, added up: normalised text, peer, call site, time"},
    {"request_event", "requests one by one: up to the answer's first byte, then up to its last"},
    {"heap_site", "memory by thread and stack: allocated, freed, temporary, at the peak",
     "SELECT ifnull(sum(sites), 0) FROM heap_site_chunk", true},
    {"heap_process", "memory of a process: its peak, histograms of sizes and lifetimes"},
    {"heap_snapshot", "moments at which what lived was kept"},
    {"heap_snapshot_row", "what lived then, by stack",
     "SELECT ifnull(sum(rows), 0) FROM heap_snapshot", true},
    {"heap_moment", "memory over time: live on the heap, and resident"},
    {"heap_event", "allocations and frees one by one, unpacked from heap_chunk while you read",
     "SELECT ifnull(sum(events), 0) FROM heap_chunk", true},
    {"object", "what is waited for or asked: files, pipes, sockets, locks, children"},
    {"stack", "call stacks as a tree: a frame and the stack of its caller"},
    {"frame", "places in code: an address in an image, or a name"},
    {"location", "function, file and line of a frame, inlined functions first"},
    {"function", "functions: name, linkage name, where declared, image and address"},
    {"text", "function and file names, by id"},
    {"process", "processes of the target"},
    {"thread", "threads of the target"},
    {"image", "files with code, by path and build-id"},
    {"mapping", "where and when an image stood in a process"},
    {"counter", "losses, truncations and own costs, by name"},
    {"document", "embedded JSON texts, such as the fingerprint"},
    {"source_line", "source text around hot places"},
    {"instruction", "disassembly of hot functions"},
    {"chunk", "samples as stored: compressed columns"},
    {"heap_site_chunk", "heap sites as stored: compressed columns"},
    {"heap_chunk", "allocations and frees as stored: compressed columns"},
    {0},
};

static int step_apply(sqlite3 *db, const struct schema_step *step, unsigned to, struct why *why)
{
    char version[64];
    snprintf(version, sizeof(version), "PRAGMA user_version = %u", to);
    int rc = db_exec(db, "BEGIN IMMEDIATE");
    if (rc == SQLITE_OK)
        rc = db_exec(db, step->sql);
    if (rc == SQLITE_OK)
        rc = db_exec(db, version);
    if (rc == SQLITE_OK)
        rc = db_exec(db, "COMMIT");
    if (rc == SQLITE_OK)
        return 0;
    int error = db_errno(db, rc);
    why_set(why, WHY_FAILED, error, "record again, or report this: a migration must not fail",
            "cannot bring the recording from schema %u to %u: %s", to - 1, to, sqlite3_errmsg(db));
    if (!sqlite3_get_autocommit(db))
        (void)db_exec(db, "ROLLBACK");
    return -error;
}

int schema_migrate(sqlite3 *db, const struct schema_step *steps, unsigned count, struct why *why)
{
    int64_t version = 0;
    int rc = db_int(db, "PRAGMA user_version", &version);
    if (rc != SQLITE_OK)
        return db_why(db, rc, "read the schema version of", "the recording", why);
    if (version < 0 || version > count)
        return why_set(why, WHY_FAILED, EBADMSG, "use the whyslow that wrote it",
                       "schema %lld cannot be migrated to %u", (long long)version, count);
    for (unsigned at = (unsigned)version; at < count; at++) {
        int r = step_apply(db, &steps[at], at + 1, why);
        if (r < 0)
            return r;
    }
    return 0;
}

static int find(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (names[i] && strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

#define NAMES(prefix, type, names)                                                                 \
    const char *prefix##_name(type value)                                                          \
    {                                                                                              \
        return (size_t)value < ARRAY_SIZE(names) ? (names)[value] : NULL;                          \
    }                                                                                              \
    int prefix##_find(const char *name)                                                            \
    {                                                                                              \
        return find(names, ARRAY_SIZE(names), name);                                               \
    }

static const char *const units[] = {
    [UNIT_NONE] = "none", [UNIT_COUNT] = "count", [UNIT_BYTES] = "bytes",     [UNIT_KIB] = "kib",
    [UNIT_NS] = "ns",     [UNIT_MS] = "ms",       [UNIT_PERCENT] = "percent", [UNIT_HZ] = "hz",
};
_Static_assert(ARRAY_SIZE(units) == UNIT_KIB + 1, "a unit has a name in the file");
static const char *const image_kinds[] = {
    [IMAGE_FILE] = "file", [IMAGE_KERNEL] = "kernel", [IMAGE_VDSO] = "vdso", [IMAGE_JIT] = "jit"};
static const char *const frame_kinds[] = {
    [FRAME_USER] = "user",   [FRAME_KERNEL] = "kernel",   [FRAME_MANAGED] = "managed",
    [FRAME_NAMED] = "named", [FRAME_UNKNOWN] = "unknown",
};
static const char *const series_kinds[] = {[SERIES_SUM] = "sum", [SERIES_LEVEL] = "level"};
static const char *const object_kinds[] = {
    [OBJECT_NONE] = "none",
    [OBJECT_FILE] = "file",
    [OBJECT_DIRECTORY] = "directory",
    [OBJECT_BLOCK_DEVICE] = "block_device",
    [OBJECT_CHAR_DEVICE] = "char_device",
    [OBJECT_PIPE] = "pipe",
    [OBJECT_SOCKET] = "socket",
    [OBJECT_EVENT] = "event",
    [OBJECT_TIMER] = "timer",
    [OBJECT_POLL_SET] = "poll_set",
    [OBJECT_FUTEX] = "futex",
    [OBJECT_KERNEL_LOCK] = "kernel_lock",
    [OBJECT_PROCESS] = "process",
    [OBJECT_OTHER] = "other",
    [OBJECT_PATH] = "path",
};
static const char *const wait_kinds[] = {
    [WAIT_BLOCKED] = "blocked", [WAIT_RUNQ] = "runq", [WAIT_HOLD] = "hold"};
static const char *const device_ops[] = {[DEVICE_READ] = "read",
                                         [DEVICE_WRITE] = "write",
                                         [DEVICE_FLUSH] = "flush",
                                         [DEVICE_DISCARD] = "discard"};
_Static_assert(ARRAY_SIZE(device_ops) == DEVICE_OPS, "an operation has a name in the file");
static const char *const request_protocols[] = {
    [REQUEST_HTTP1] = "http",    [REQUEST_HTTP2] = "http2", [REQUEST_POSTGRESQL] = "postgresql",
    [REQUEST_MYSQL] = "mysql",   [REQUEST_REDIS] = "redis", [REQUEST_DNS] = "dns",
    [REQUEST_SQLITE] = "sqlite",
};
_Static_assert(ARRAY_SIZE(request_protocols) == REQUEST_PROTOCOLS, "and so has a protocol");
static const char *const request_roles[] = {
    [REQUEST_CLIENT] = "client", [REQUEST_SERVER] = "server", [REQUEST_INSIDE] = "inside"};
static const char *const heap_kinds[] = {
    [HEAP_KIND_HEAP] = "heap", [HEAP_KIND_MAP] = "map", [HEAP_KIND_UNMAP] = "unmap"};
_Static_assert(ARRAY_SIZE(heap_kinds) == HEAP_KINDS, "so has a kind of memory");
static const char *const heap_snapshot_whys[] = {
    [HEAP_SNAPSHOT_TIMER] = "timer", [HEAP_SNAPSHOT_SIGNAL] = "signal"};
_Static_assert(ARRAY_SIZE(heap_snapshot_whys) == HEAP_SNAPSHOT_WHYS, "and a reason to look");

NAMES(schema_unit, enum unit, units)
NAMES(schema_image_kind, enum image_kind, image_kinds)
NAMES(schema_frame_kind, enum frame_kind, frame_kinds)
NAMES(schema_series_kind, enum series_kind, series_kinds)
NAMES(schema_object_kind, enum object_kind, object_kinds)
NAMES(schema_wait_kind, enum wait_kind, wait_kinds)
NAMES(schema_device_op, enum device_op, device_ops)
NAMES(schema_request_protocol, enum request_protocol, request_protocols)
NAMES(schema_request_role, enum request_role, request_roles)
NAMES(schema_heap_kind, enum heap_kind, heap_kinds)
NAMES(schema_heap_why, enum heap_snapshot_why, heap_snapshot_whys)
