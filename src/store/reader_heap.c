/* Chunks of heap events: fetch, decode, check. */
#include "store/db.h"
#include "store/heap_chunk.h"
#include "store/reader_parts.h"

#include <errno.h>
#include <stdlib.h>

struct heap_cursor {
    struct recording *recording;
    sqlite3_stmt *stmt;
    struct heap_decoder decoder;
    bool done;  /* SQLite would start over */
    int64_t id; /* of the chunk before: they rise, unless pages lead in circles */
};

int heap_cursor_open(struct recording *recording, struct heap_cursor **ret, struct why *why)
{
    struct heap_cursor *cursor = calloc(1, sizeof(*cursor));
    if (!cursor || heap_decoder_init(&cursor->decoder) < 0) {
        free(cursor);
        return why_nomem(why);
    }
    cursor->recording = recording;
    cursor->id = INT64_MIN;
    int rc = sqlite3_prepare_v2(recording->db,
                                "SELECT id, events, codec, data FROM heap_chunk ORDER BY id", -1,
                                &cursor->stmt, NULL);
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
    free(cursor);
}

/* The checksum guards against accidents, not against a forged file. */
static const char *content_check(const struct recording *recording,
                                 const struct heap_decoder *decoder)
{
    for (uint32_t i = 0; i < decoder->count; i++) {
        const struct heap_event *event = &decoder->events[i];
        if (event->thread == 0 || event->thread > recording->counts[RECORDING_THREAD])
            return "it names a thread that does not exist";
        if (event->stack > recording->counts[RECORDING_STACK])
            return "it names a stack that does not exist";
        if (event->time_ns > INT64_MAX)
            return "a time is impossible";
    }
    return NULL;
}

static int chunk_read(struct heap_cursor *cursor, struct why *why)
{
    struct recording *recording = cursor->recording;
    int64_t id = sqlite3_column_int64(cursor->stmt, 0);
    const void *data = sqlite3_column_blob(cursor->stmt, 3);
    size_t size = (size_t)sqlite3_column_bytes(cursor->stmt, 3);
    const char *damage = id <= cursor->id ? "it is out of order" : "it has no data";
    if (!data && sqlite3_errcode(recording->db) == SQLITE_NOMEM)
        return why_nomem(why);
    int r = -EBADMSG;
    if (data && size > 0 && id > cursor->id)
        r = heap_decode(&cursor->decoder, sqlite3_column_int64(cursor->stmt, 2), data, size,
                        sqlite3_column_int64(cursor->stmt, 1), &damage);
    if (r == -ENOMEM)
        return why_nomem(why);
    if (r == 0) {
        damage = content_check(recording, &cursor->decoder);
        r = damage ? -EBADMSG : 0;
    }
    cursor->id = id;
    return r == 0 ? 0 : reader_damage(recording, why, "heap chunk %lld: %s", (long long)id, damage);
}

int heap_cursor_next(struct heap_cursor *cursor, const struct heap_event **ret, size_t *ret_count,
                     struct why *why)
{
    if (cursor->done)
        return 0;
    int rc = sqlite3_step(cursor->stmt);
    cursor->done = rc != SQLITE_ROW;
    if (rc == SQLITE_DONE)
        return 0;
    if (rc != SQLITE_ROW)
        return reader_fail(cursor->recording, rc, why);
    int r = chunk_read(cursor, why);
    if (r < 0)
        return r;
    *ret = cursor->decoder.events;
    *ret_count = cursor->decoder.count;
    return 1;
}

int recording_heap_events(struct recording *recording, uint64_t *ret, struct why *why)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    uint64_t sum = 0;
    int rc = sqlite3_prepare_v2(recording->db, "SELECT id, events FROM heap_chunk ORDER BY id", -1,
                                &stmt, NULL);
    int64_t before = INT64_MIN;
    if (rc != SQLITE_OK)
        return reader_fail(recording, rc, why);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(stmt, 0), events = sqlite3_column_int64(stmt, 1);
        if (id <= before || events < 1 || events > HEAP_CHUNK_EVENTS)
            return reader_damage(recording, why, "table 'heap_chunk', row %lld", (long long)id);
        before = id;
        sum += (uint64_t)events;
    }
    if (rc != SQLITE_DONE)
        return reader_fail(recording, rc, why);
    *ret = sum;
    return 0;
}
