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

const struct schema_step schema_steps[] = {
    {step_1},
    {step_2},
    {step_3},
};
const unsigned schema_version = ARRAY_SIZE(schema_steps);

const struct schema_table schema_tables[] = {
    {"meta", "about the recording itself: who wrote it, when, and whether it was finished"},
    {"series", "what was sampled: name, unit and meaning of a weight"},
    {"total", "count and weight per series, thread and stack: the profile, ready to sum"},
    {"sample", "every single sample in time, unpacked from chunk while you read"},
    {"wait", "waits that are alike, added up: thread, stack, object, who ended it, how long"},
    {"wait_event", "long waits one by one: off the CPU, blocked for, then ready to run for"},
    {"object", "what is waited for: files, pipes, sockets, locks, children"},
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
};
static const char *const wait_kinds[] = {
    [WAIT_BLOCKED] = "blocked", [WAIT_RUNQ] = "runq", [WAIT_HOLD] = "hold"};

NAMES(schema_unit, enum unit, units)
NAMES(schema_image_kind, enum image_kind, image_kinds)
NAMES(schema_frame_kind, enum frame_kind, frame_kinds)
NAMES(schema_series_kind, enum series_kind, series_kinds)
NAMES(schema_object_kind, enum object_kind, object_kinds)
NAMES(schema_wait_kind, enum wait_kind, wait_kinds)
