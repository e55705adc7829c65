/* Opening a recording, and what is looked up in it all the time. */
#include "store/reader.h"

#include "store/db.h"
#include "store/reader_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES_MAX = 4096, META_BYTES_MAX = 256 };

int reader_damage(const struct recording *recording, struct why *why, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return why_set(why, WHY_FAILED, EBADMSG, "copy the file again, or record again",
                   "'%s': damaged %s", recording->path, text);
}

int reader_fail(const struct recording *recording, int rc, struct why *why)
{
    return db_why(recording->db, rc, "read", recording->path, why);
}

/* A value of meta as text in the arena; `fallback` when there is none. Out of memory is no
 * such case: a recording must not look cut off because of it. */
static int meta_text(struct recording *recording, const char *key, const char *fallback,
                     const char **ret, struct why *why)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(recording->db, "SELECT value FROM meta WHERE key = ?1", -1, &stmt,
                                NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    if ((rc & 0xff) == SQLITE_NOMEM || sqlite3_errcode(recording->db) == SQLITE_NOMEM)
        return why_nomem(why);
    if (text)
        text = arena_dup_len(&recording->arena, text, strnlen(text, META_BYTES_MAX));
    *ret = text ? text : fallback;
    return 0;
}

static int refuse_newer(struct recording *recording, struct why *why)
{
    return why_set(why, WHY_DENIED, EOPNOTSUPP, "read it with that whyslow, or install a newer one",
                   "'%s' has schema %u, written by whyslow %s; this whyslow reads schemas up to %u",
                   recording->path, recording->schema, recording->writer_version,
                   recording->version);
}

/* Our tables must be tables: a view in their place could do anything. */
static int tables_check(struct recording *recording, struct why *why)
{
    for (const struct schema_table *table = schema_tables; table->name; table++) {
        bool plain = true;
        int rc = table->made ? SQLITE_OK : db_is_plain_table(recording->db, table->name, &plain);
        if (rc != SQLITE_OK)
            return reader_fail(recording, rc, why);
        if (!plain)
            return reader_damage(recording, why, "schema: there is no table '%s'", table->name);
    }
    return 0;
}

static int size_load(struct recording *recording, struct why *why)
{
    int64_t pages = 0, page_bytes = 0;
    int rc = db_int(recording->db, "PRAGMA page_count", &pages);
    if (rc == SQLITE_OK)
        rc = db_int(recording->db, "PRAGMA page_size", &page_bytes);
    recording->size_bytes = (uint64_t)pages * (uint64_t)page_bytes;
    return rc == SQLITE_OK ? 0 : reader_fail(recording, rc, why);
}

static int counts_load(struct recording *recording, struct why *why)
{
    static const char *const names[RECORDING_TABLES] = {
        [RECORDING_TEXT] = "text",
        [RECORDING_PROCESS] = "process",
        [RECORDING_THREAD] = "thread",
        [RECORDING_IMAGE] = "image",
        [RECORDING_MAPPING] = "mapping",
        [RECORDING_FRAME] = "frame",
        [RECORDING_FUNCTION] = "function",
        [RECORDING_STACK] = "stack",
        [RECORDING_SERIES] = "series",
        [RECORDING_OBJECT] = "object",
        [RECORDING_WAIT] = "wait",
        [RECORDING_CALL] = "call",
        [RECORDING_DEVICE] = "device",
        [RECORDING_CONNECTION] = "connection",
        [RECORDING_REQUEST] = "request",
        [RECORDING_HEAP_SITE] = "heap_site_chunk",
        [RECORDING_HEAP_SNAPSHOT] = "heap_snapshot",
    };
    for (size_t i = 0; i < RECORDING_TABLES; i++) {
        char sql[80];
        snprintf(sql, sizeof(sql), "SELECT ifnull(%s, 0) FROM %s",
                 i == RECORDING_HEAP_SITE ? "sum(sites)" : "max(id)", names[i]);
        int64_t max;
        int rc = db_int(recording->db, sql, &max);
        if (rc != SQLITE_OK)
            return reader_fail(recording, rc, why);
        if (max < 0 || max > INT32_MAX)
            return reader_damage(recording, why, "table '%s': id %lld", names[i], (long long)max);
        recording->counts[i] = (uint32_t)max;
    }
    return 0;
}

static int series_row(struct recording *recording, sqlite3_stmt *stmt, struct why *why)
{
    const char *name = (const char *)sqlite3_column_text(stmt, 1);
    const char *kind = (const char *)sqlite3_column_text(stmt, 2);
    const char *unit = (const char *)sqlite3_column_text(stmt, 3);
    const char *about = (const char *)sqlite3_column_text(stmt, 4);
    uint32_t id = (uint32_t)recording->series.len + 1;
    if (sqlite3_column_int64(stmt, 0) != id || id > SERIES_MAX || !name || !kind || !unit ||
        !about || schema_series_kind_find(kind) < 0 || schema_unit_find(unit) < 0)
        return reader_damage(recording, why, "table 'series', row %u", id);
    struct recorded_series series = {
        .id = id,
        .info =
            {
                .name = arena_dup(&recording->arena, name),
                .kind = (enum series_kind)schema_series_kind_find(kind),
                .unit = (enum unit)schema_unit_find(unit),
                .about = arena_dup(&recording->arena, about),
            },
    };
    return VEC_PUSH(&recording->series, series) < 0 ? why_nomem(why) : 0;
}

/* Chunks come by series and time, as the index has them: the first one of a series is the
 * earliest. What does not rise has been there before. */
static int series_chunk(struct recording *recording, sqlite3_stmt *stmt, int64_t *before,
                        struct why *why)
{
    int64_t row[5];
    bool rises = false, equal = true;
    for (int i = 0; i < 5; i++) {
        row[i] = sqlite3_column_int64(stmt, i);
        rises = rises || (equal && row[i] > before[i]);
        equal = equal && row[i] == before[i];
        before[i] = row[i];
    }
    int64_t start_ns = row[1], end_ns = row[2], samples = row[3];
    if (row[0] < 1 || row[0] > (int64_t)recording->series.len)
        return rises ? 0 : reader_damage(recording, why, "index of chunks");
    struct recorded_series *series = &recording->series.data[row[0] - 1];
    if (!rises || start_ns < 0 || end_ns < start_ns || samples < 0 ||
        (uint64_t)samples > INT64_MAX - series->samples)
        return reader_damage(recording, why, "table 'chunk', row %lld", (long long)row[4]);
    if (series->samples == 0 && series->end_ns == 0)
        series->start_ns = (uint64_t)start_ns;
    series->end_ns = MAX(series->end_ns, (uint64_t)end_ns);
    series->samples += (uint64_t)samples;
    return 0;
}

static int series_load(struct recording *recording, struct why *why)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    AUTO(db_finalize) sqlite3_stmt *chunks = NULL;
    int64_t before[5] = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
    int r = 0;
    int rc = sqlite3_prepare_v2(recording->db,
                                "SELECT id, name, kind, unit, about FROM series ORDER BY id", -1,
                                &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(recording->db,
                                "SELECT series, start_ns, end_ns, samples, id FROM chunk"
                                " ORDER BY series, start_ns, end_ns, samples, id",
                                -1, &chunks, NULL);
    if (rc != SQLITE_OK)
        return reader_fail(recording, rc, why);
    while (r == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        r = series_row(recording, stmt, why);
    if (r == 0 && rc != SQLITE_DONE)
        return reader_fail(recording, rc, why);
    while (r == 0 && (rc = sqlite3_step(chunks)) == SQLITE_ROW)
        r = series_chunk(recording, chunks, before, why);
    if (r == 0 && rc != SQLITE_DONE)
        return reader_fail(recording, rc, why);
    return r;
}

static int load(struct recording *recording, struct why *why)
{
    struct identity identity;
    int r = identify_recording(recording->path, &identity, why);
    if (r == 0)
        r = reader_connect(recording->path, &identity, &recording->db, why);
    if (r < 0)
        return r;
    int64_t version;
    int rc = db_int(recording->db, "PRAGMA user_version", &version);
    if (rc != SQLITE_OK)
        return reader_fail(recording, rc, why);
    if (version < 1)
        return reader_damage(recording, why, "header: schema %lld", (long long)version);
    recording->schema = (unsigned)version;
    r = meta_text(recording, "writer", "of an unknown version", &recording->writer_version, why);
    if (r < 0)
        return r;
    if (recording->schema > recording->version)
        return refuse_newer(recording, why);
    if (recording->schema < recording->version)
        r = reader_migrate(recording, why);
    if (r == 0)
        r = tables_check(recording, why);
    if (r == 0)
        r = size_load(recording, why);
    if (r == 0)
        r = counts_load(recording, why);
    if (r == 0)
        r = series_load(recording, why);
    const char *finished = "0";
    if (r == 0)
        r = meta_text(recording, "finished", "0", &finished, why);
    recording->finished = strcmp(finished, "1") == 0;
    return r == 0 && arena_failed(&recording->arena) ? why_nomem(why) : r;
}

int recording_open(const char *path, struct recording **ret, struct why *why)
{
    return reader_open(path, schema_steps, schema_version, ret, why);
}

int reader_open(const char *path, const struct schema_step *steps, unsigned version,
                struct recording **ret, struct why *why)
{
    struct recording *recording = calloc(1, sizeof(*recording));
    if (!recording)
        return why_nomem(why);
    recording->steps = steps;
    recording->version = version;
    recording->path = strdup(path);
    int r = recording->path ? load(recording, why) : why_nomem(why);
    if (r < 0) {
        recording_close(recording);
        return r;
    }
    *ret = recording;
    return 0;
}

void recording_close(struct recording *recording)
{
    if (!recording)
        return;
    db_close(&recording->db);
    VEC_FREE(&recording->series);
    VEC_FREE(&recording->stacks);
    arena_deinit(&recording->arena);
    free(recording->path);
    free(recording);
}

bool recording_finished(const struct recording *recording)
{
    return recording->finished;
}

const char *recording_writer_version(const struct recording *recording)
{
    return recording->writer_version;
}

unsigned recording_schema(const struct recording *recording)
{
    return recording->schema;
}

uint32_t recording_count(const struct recording *recording, enum recording_table table)
{
    return recording->counts[table];
}

const struct recorded_series *recording_series(const struct recording *recording, uint32_t id)
{
    return id >= 1 && id <= recording->series.len ? &recording->series.data[id - 1] : NULL;
}

const struct recorded_series *recording_series_find(const struct recording *recording,
                                                    const char *name)
{
    for (size_t i = 0; i < recording->series.len; i++)
        if (strcmp(recording->series.data[i].info.name, name) == 0)
            return &recording->series.data[i];
    return NULL;
}

/* Rows 1, 2, 3, …, each pointing at an earlier one: then every walk ends. Memory is taken as
 * rows come: the highest id alone may lie. */
static int stacks_fill(struct recording *recording, sqlite3_stmt *stmt, struct why *why)
{
    uint32_t count = recording->counts[RECORDING_STACK];
    uint32_t frames = recording->counts[RECORDING_FRAME];
    uint32_t id = 0;
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        int64_t parent = sqlite3_column_int64(stmt, 1), frame = sqlite3_column_int64(stmt, 2);
        id++;
        if (sqlite3_column_int64(stmt, 0) != id || id > count || parent < 0 || parent >= id ||
            frame < 1 || frame > frames)
            return reader_damage(recording, why, "table 'stack', row %u", id);
        struct stack_node node = {(uint32_t)parent, (uint32_t)frame};
        if (VEC_PUSH(&recording->stacks, node) < 0)
            return why_nomem(why);
    }
    if (rc != SQLITE_DONE)
        return reader_fail(recording, rc, why);
    return id == count ? 0
                       : reader_damage(recording, why, "table 'stack': %u of %u rows", id, count);
}

static int stacks_load(struct recording *recording, struct why *why)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(recording->db, "SELECT id, parent, frame FROM stack ORDER BY id",
                                -1, &stmt, NULL);
    int r = rc == SQLITE_OK ? stacks_fill(recording, stmt, why) : reader_fail(recording, rc, why);
    recording->stacks_loaded = r == 0;
    if (r < 0)
        VEC_FREE(&recording->stacks);
    return r;
}

int recording_stack_node(struct recording *recording, uint32_t stack, uint32_t *ret_parent,
                         uint32_t *ret_frame, struct why *why)
{
    if (!recording->stacks_loaded) {
        int r = stacks_load(recording, why);
        if (r < 0)
            return r;
    }
    assert(recording->stacks.len == recording->counts[RECORDING_STACK]);
    if (stack == 0 || stack > recording->counts[RECORDING_STACK])
        return why_set(why, WHY_FAILED, EINVAL, NULL, "'%s' has no stack %u", recording->path,
                       stack);
    *ret_parent = recording->stacks.data[stack - 1].parent;
    *ret_frame = recording->stacks.data[stack - 1].frame;
    return 0;
}

int recording_stack(struct recording *recording, uint32_t stack, uint32_t *ret_frames, size_t max,
                    struct why *why)
{
    int depth = 0;
    while (stack != 0) {
        uint32_t frame = 0;
        int r = recording_stack_node(recording, stack, &stack, &frame, why);
        if (r < 0)
            return r;
        if ((size_t)depth < max)
            ret_frames[depth] = frame;
        depth++;
    }
    return depth;
}

sqlite3 *recording_db(struct recording *recording)
{
    return recording->db;
}

const char *recording_path(const struct recording *recording)
{
    return recording->path;
}
