/* Chunk by chunk: fetch, decode, check, narrow to the range that was asked for. */
#include "store/db.h"
#include "store/reader_parts.h"

#include <errno.h>
#include <stdlib.h>

struct sample_cursor {
    struct recording *recording;
    sqlite3_stmt *stmt;
    struct chunk_decoder decoder;
    uint32_t series;
    uint64_t from_ns;
    uint64_t to_ns;
    bool done;            /* SQLite would start over */
    int64_t start_ns, id; /* of the chunk before: they rise, unless pages lead in circles */
};

int sample_cursor_open(struct recording *recording, uint32_t series, uint64_t from_ns,
                       uint64_t to_ns, struct sample_cursor **ret, struct why *why)
{
    if (!recording_series(recording, series))
        return why_set(why, WHY_USAGE, EINVAL, "'whyslow query REC \"SELECT * FROM series\"'",
                       "'%s' has no series %u", recording->path, series);
    struct sample_cursor *cursor = calloc(1, sizeof(*cursor));
    if (!cursor || chunk_decoder_init(&cursor->decoder) < 0) {
        free(cursor);
        return why_nomem(why);
    }
    cursor->recording = recording;
    cursor->series = series;
    cursor->start_ns = cursor->id = INT64_MIN;
    cursor->from_ns = MIN(from_ns, (uint64_t)INT64_MAX);
    cursor->to_ns = MIN(to_ns, (uint64_t)INT64_MAX);
    int rc = sqlite3_prepare_v2(recording->db,
                                "SELECT id, start_ns, end_ns, samples, codec, data FROM chunk"
                                " WHERE series = ?1 AND start_ns <= ?3 AND end_ns >= ?2"
                                " ORDER BY start_ns, id",
                                -1, &cursor->stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(cursor->stmt, 1, series);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(cursor->stmt, 2, (int64_t)cursor->from_ns);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(cursor->stmt, 3, (int64_t)cursor->to_ns);
    if (rc != SQLITE_OK) {
        int r = reader_fail(recording, rc, why);
        sample_cursor_close(cursor);
        return r;
    }
    *ret = cursor;
    return 0;
}

void sample_cursor_close(struct sample_cursor *cursor)
{
    if (!cursor)
        return;
    db_finalize(&cursor->stmt);
    chunk_decoder_deinit(&cursor->decoder);
    free(cursor);
}

/* The checksum guards against accidents, not against a forged file: ids are
 * checked against the tables, the times against the row. Branch-free inside. */
static const char *content_check(const struct recording *recording,
                                 const struct chunk_columns *columns, uint64_t start_ns,
                                 uint64_t end_ns)
{
    uint64_t low = UINT64_MAX, high = 0, weight = 0;
    uint32_t thread = 0, stack = 0;
    for (uint32_t i = 0; i < columns->samples; i++) {
        low = MIN(low, columns->time_ns[i]);
        high = MAX(high, columns->time_ns[i]);
        thread = MAX(thread, columns->thread[i]);
        stack = MAX(stack, columns->stack[i]);
        weight |= columns->weight[i];
    }
    if (low != start_ns || high != end_ns)
        return "its samples are not from the time it names";
    if (thread > recording->counts[RECORDING_THREAD])
        return "it names a thread that does not exist";
    if (stack > recording->counts[RECORDING_STACK])
        return "it names a stack that does not exist";
    if (weight > INT64_MAX)
        return "a weight is impossible";
    return NULL;
}

static void narrow(struct chunk_columns *columns, uint64_t from_ns, uint64_t to_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < columns->samples; i++) {
        if (columns->time_ns[i] < from_ns || columns->time_ns[i] > to_ns)
            continue;
        columns->time_ns[kept] = columns->time_ns[i];
        columns->thread[kept] = columns->thread[i];
        columns->stack[kept] = columns->stack[i];
        columns->weight[kept] = columns->weight[i];
        kept++;
    }
    columns->samples = kept;
}

static int chunk_read(struct sample_cursor *cursor, struct why *why)
{
    struct recording *recording = cursor->recording;
    sqlite3_stmt *stmt = cursor->stmt;
    int64_t start = sqlite3_column_int64(stmt, 1), end = sqlite3_column_int64(stmt, 2);
    int64_t id = sqlite3_column_int64(stmt, 0);
    if (start < cursor->start_ns || (start == cursor->start_ns && id <= cursor->id))
        return reader_damage(recording, why, "chunk %lld of series %s: it is out of order",
                             (long long)id, recording_series(recording, cursor->series)->info.name);
    cursor->start_ns = start;
    cursor->id = id;
    const void *data = sqlite3_column_blob(stmt, 5);
    size_t size = (size_t)sqlite3_column_bytes(stmt, 5);
    const char *damage = "it has no data";
    int r = -EBADMSG;
    if (!data && sqlite3_errcode(recording->db) == SQLITE_NOMEM)
        return why_nomem(why);
    if (data && size > 0)
        r = chunk_decode(&cursor->decoder, sqlite3_column_int64(stmt, 4), data, size,
                         sqlite3_column_int64(stmt, 3), &damage);
    if (r == -ENOMEM)
        return why_nomem(why);
    if (r == 0) {
        damage = content_check(recording, &cursor->decoder.columns, (uint64_t)start, (uint64_t)end);
        r = damage ? -EBADMSG : 0;
    }
    if (r < 0)
        return reader_damage(recording, why, "chunk %lld of series %s: %s", (long long)id,
                             recording_series(recording, cursor->series)->info.name, damage);
    if ((uint64_t)start < cursor->from_ns || (uint64_t)end > cursor->to_ns)
        narrow(&cursor->decoder.columns, cursor->from_ns, cursor->to_ns);
    return 0;
}

int sample_cursor_next(struct sample_cursor *cursor, struct sample_block *ret, struct why *why)
{
    const struct chunk_columns *columns = &cursor->decoder.columns;
    if (cursor->done)
        return 0;
    do {
        int rc = sqlite3_step(cursor->stmt);
        cursor->done = rc != SQLITE_ROW;
        if (rc == SQLITE_DONE)
            return 0;
        if (rc != SQLITE_ROW)
            return reader_fail(cursor->recording, rc, why);
        int r = chunk_read(cursor, why);
        if (r < 0)
            return r;
    } while (columns->samples == 0);
    *ret = (struct sample_block){
        .count = columns->samples,
        .time_ns = columns->time_ns,
        .thread = columns->thread,
        .stack = columns->stack,
        .weight = columns->weight,
    };
    return 1;
}
