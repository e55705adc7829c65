/* Packed rows of the heap: fetch, unpack, check. Sites and rows of snapshots are columns
 * (heap_rows.h), events are chunks of their own (heap_chunk.h). */
#include "store/db.h"
#include "store/heap_chunk.h"
#include "store/heap_rows.h"
#include "store/reader_parts.h"

#include <errno.h>
#include <stdlib.h>

struct heap_cursor {
    struct recording *recording;
    enum heap_rows kind;
    sqlite3_stmt *stmt;
    struct heap_decoder decoder; /* of events */
    struct unpacker unpacker;    /* of the others */
    void *rows;
    size_t cap;  /* bytes of `rows` */
    bool done;   /* SQLite would start over */
    bool last;   /* a chunk of sites that was not full: none may follow */
    uint32_t id; /* of the chunk before: they rise by one, unless pages lead in circles */
};

static const struct {
    const char *sql; /* id, rows, codec, data */
    const char *name;
} sources[] = {
    [HEAP_ROWS_SITES] = {"SELECT id, sites, codec, data FROM heap_site_chunk ORDER BY id",
                         "heap site chunk"},
    [HEAP_ROWS_SNAPSHOTS] = {"SELECT id, rows, codec, data FROM heap_snapshot ORDER BY id",
                             "heap snapshot"},
    [HEAP_ROWS_EVENTS] = {"SELECT id, events, codec, data FROM heap_chunk ORDER BY id",
                          "heap chunk"},
};

int heap_cursor_open(struct recording *recording, enum heap_rows kind, struct heap_cursor **ret,
                     struct why *why)
{
    struct heap_cursor *cursor = calloc(1, sizeof(*cursor));
    if (!cursor || (kind == HEAP_ROWS_EVENTS && heap_decoder_init(&cursor->decoder) < 0)) {
        free(cursor);
        return why_nomem(why);
    }
    cursor->recording = recording;
    cursor->kind = kind;
    int rc = sqlite3_prepare_v2(recording->db, sources[kind].sql, -1, &cursor->stmt, NULL);
    if (rc != SQLITE_OK) {
        int r = reader_fail(recording, rc, why);
        heap_cursor_close(cursor);
        return r;
    }
    *ret = cursor;
    return 0;
}

void heap_cursor_close(struct heap_cursor *cursor)
{
    if (!cursor)
        return;
    db_finalize(&cursor->stmt);
    heap_decoder_deinit(&cursor->decoder);
    unpacker_deinit(&cursor->unpacker);
    free(cursor->rows);
    free(cursor);
}

static int rows_reserve(struct heap_cursor *cursor, size_t bytes)
{
    if (bytes <= cursor->cap)
        return 0;
    free(cursor->rows);
    cursor->rows = malloc(bytes);
    cursor->cap = cursor->rows ? bytes : 0;
    return cursor->rows ? 0 : -ENOMEM;
}

/* The checksum guards against accidents, not against a forged file. */
static const char *ids_check(const struct recording *recording, uint32_t thread, uint32_t stack)
{
    if (thread == 0 || thread > recording->counts[RECORDING_THREAD])
        return "it names a thread that does not exist";
    if (stack > recording->counts[RECORDING_STACK])
        return "it names a stack that does not exist";
    return NULL;
}

/* What a row of the table holds, as it came out of it. */
struct content {
    const void *data;
    size_t size;
    int64_t codec, rows;
};

static int sites_read(struct heap_cursor *cursor, const struct content *content,
                      struct heap_block *ret, const char **ret_damage)
{
    uint32_t count = (uint32_t)content->rows;
    if (content->rows > HEAP_SITES_EACH || cursor->last) {
        *ret_damage = "its number of rows is impossible";
        return -EBADMSG;
    }
    int r = unpack(&cursor->unpacker, content->codec, content->data, content->size,
                   HEAP_SITE_COLUMNS, content->rows, ret_damage);
    if (r == 0)
        r = rows_reserve(cursor, count * sizeof(struct recorded_heap_site));
    if (r < 0)
        return r;
    struct recorded_heap_site *sites = cursor->rows;
    const char *damage = heap_sites_make(cursor->unpacker.values, count,
                                         (cursor->id - 1) * HEAP_SITES_EACH + 1, sites);
    for (uint32_t i = 0; i < count && !damage; i++)
        damage = ids_check(cursor->recording, sites[i].info.thread, sites[i].info.stack);
    cursor->last = count < HEAP_SITES_EACH;
    *ret_damage = damage;
    *ret = (struct heap_block){.count = count, .sites = sites};
    return damage ? -EBADMSG : 0;
}

static int snapshot_read(struct heap_cursor *cursor, const struct content *content,
                         struct heap_block *ret, const char **ret_damage)
{
    uint32_t count = (uint32_t)content->rows;
    *ret = (struct heap_block){0};
    if (content->rows == 0)
        return 0;
    int r = unpack(&cursor->unpacker, content->codec, content->data, content->size,
                   HEAP_SNAPSHOT_COLUMNS, content->rows, ret_damage);
    if (r == 0)
        r = rows_reserve(cursor, count * sizeof(struct heap_snapshot_row));
    if (r < 0)
        return r;
    struct heap_snapshot_row *rows = cursor->rows;
    const char *damage = heap_snapshot_make(cursor->unpacker.values, count, cursor->id, rows);
    for (uint32_t i = 0; i < count && !damage; i++)
        damage = ids_check(cursor->recording, 1, rows[i].stack);
    *ret_damage = damage;
    *ret = (struct heap_block){.count = count, .rows = rows};
    return damage ? -EBADMSG : 0;
}

static int events_read(struct heap_cursor *cursor, const struct content *content,
                       struct heap_block *ret, const char **ret_damage)
{
    struct heap_decoder *decoder = &cursor->decoder;
    int r = heap_decode(decoder, content->codec, content->data, content->size, content->rows,
                        ret_damage);
    if (r < 0)
        return r;
    const char *damage = NULL;
    for (uint32_t i = 0; i < decoder->count && !damage; i++) {
        const struct heap_event *event = &decoder->events[i];
        damage = ids_check(cursor->recording, event->thread, event->stack);
        if (!damage && event->time_ns > INT64_MAX)
            damage = "a time is impossible";
    }
    *ret_damage = damage;
    *ret = (struct heap_block){.count = decoder->count, .events = decoder->events};
    return damage ? -EBADMSG : 0;
}

static int content_read(struct heap_cursor *cursor, const struct content *content,
                        struct heap_block *ret, const char **ret_damage)
{
    if (cursor->kind == HEAP_ROWS_SITES)
        return sites_read(cursor, content, ret, ret_damage);
    if (cursor->kind == HEAP_ROWS_SNAPSHOTS)
        return snapshot_read(cursor, content, ret, ret_damage);
    return events_read(cursor, content, ret, ret_damage);
}

static int block_read(struct heap_cursor *cursor, struct heap_block *ret, struct why *why)
{
    struct recording *recording = cursor->recording;
    int64_t id = sqlite3_column_int64(cursor->stmt, 0);
    struct content content = {.data = sqlite3_column_blob(cursor->stmt, 3),
                              .size = (size_t)sqlite3_column_bytes(cursor->stmt, 3),
                              .codec = sqlite3_column_int64(cursor->stmt, 2),
                              .rows = sqlite3_column_int64(cursor->stmt, 1)};
    if (!content.data && sqlite3_errcode(recording->db) == SQLITE_NOMEM)
        return why_nomem(why);
    const char *damage = "it is out of order";
    int r = -EBADMSG;
    if (id == (int64_t)cursor->id + 1 && id <= INT32_MAX) {
        cursor->id = (uint32_t)id;
        damage = "it has no data";
        if (content.size > 0 || (content.rows == 0 && cursor->kind == HEAP_ROWS_SNAPSHOTS))
            r = content_read(cursor, &content, ret, &damage);
    }
    if (r == -ENOMEM)
        return why_nomem(why);
    return r == 0 ? 0
                  : reader_damage(recording, why, "%s %lld: %s", sources[cursor->kind].name,
                                  (long long)id, damage);
}

int heap_cursor_next(struct heap_cursor *cursor, struct heap_block *ret, struct why *why)
{
    struct heap_block block = {0};
    while (!cursor->done && block.count == 0) {
        int rc = sqlite3_step(cursor->stmt);
        cursor->done = rc != SQLITE_ROW;
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            return reader_fail(cursor->recording, rc, why);
        int r = rc == SQLITE_ROW ? block_read(cursor, &block, why) : 0;
        if (r < 0)
            return r;
    }
    if (block.count == 0)
        return 0;
    *ret = block;
    return 1;
}

int recording_each_heap_site(struct recording *recording,
                             int (*fn)(void *context, const struct recorded_heap_site *row),
                             void *context, struct why *why)
{
    struct heap_cursor *cursor;
    struct heap_block block;
    int r = heap_cursor_open(recording, HEAP_ROWS_SITES, &cursor, why);
    if (r < 0)
        return r;
    while ((r = heap_cursor_next(cursor, &block, why)) > 0)
        for (size_t i = 0; i < block.count && r >= 0; i++)
            r = MIN(fn(context, &block.sites[i]), 0);
    heap_cursor_close(cursor);
    return r;
}

int recording_each_heap_snapshot_row(struct recording *recording,
                                     int (*fn)(void *context, const struct heap_snapshot_row *row),
                                     void *context, struct why *why)
{
    struct heap_cursor *cursor;
    struct heap_block block;
    int r = heap_cursor_open(recording, HEAP_ROWS_SNAPSHOTS, &cursor, why);
    if (r < 0)
        return r;
    while ((r = heap_cursor_next(cursor, &block, why)) > 0)
        for (size_t i = 0; i < block.count && r >= 0; i++)
            r = MIN(fn(context, &block.rows[i]), 0);
    heap_cursor_close(cursor);
    return r;
}

int recording_heap_events(struct recording *recording, uint64_t *ret, struct why *why)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    uint64_t sum = 0;
    int rc = sqlite3_prepare_v2(recording->db, "SELECT id, events FROM heap_chunk ORDER BY id", -1,
                                &stmt, NULL);
    int64_t before = 0;
    if (rc != SQLITE_OK)
        return reader_fail(recording, rc, why);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(stmt, 0), events = sqlite3_column_int64(stmt, 1);
        if (id != before + 1 || events < 1 || events > HEAP_CHUNK_EVENTS)
            return reader_damage(recording, why, "table 'heap_chunk', row %lld", (long long)id);
        before = id;
        sum += (uint64_t)events;
    }
    if (rc != SQLITE_DONE)
        return reader_fail(recording, rc, why);
    *ret = sum;
    return 0;
}
