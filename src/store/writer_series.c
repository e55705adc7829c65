/* From buffered columns to chunks and totals.
 *
 * A buffer is written when it is full, and at every commit. A commit that finds
 * only a few samples leaves its chunk open: the next one writes the row anew
 * with more in it. So slow series do not end as thousands of tiny chunks, and
 * no commit writes more than SEAL_SAMPLES again. */
#include "store/writer_parts.h"

#include <errno.h>

enum { SEAL_SAMPLES = 4096 };

int series_buffer_init(struct series_buffer *buffer, enum series_kind kind)
{
    *buffer = (struct series_buffer){.kind = kind};
    return chunk_columns_init(&buffer->columns, CHUNK_SAMPLES);
}

void series_buffer_deinit(struct series_buffer *buffer)
{
    chunk_columns_deinit(&buffer->columns);
    map_u64_deinit(&buffer->total_ids);
    VEC_FREE(&buffer->totals);
    VEC_FREE(&buffer->dirty);
}

static struct total *total_at(struct series_buffer *buffer, uint32_t thread, uint32_t stack)
{
    bool fresh;
    uint64_t *id = map_u64_at(&buffer->total_ids, (uint64_t)thread << 32 | stack, &fresh);
    if (!id)
        return NULL;
    if (fresh) {
        *id = buffer->totals.len;
        struct total total = {.thread = thread, .stack = stack};
        if (buffer->totals.len >= WRITER_TOTALS_MAX || VEC_PUSH(&buffer->totals, total) < 0)
            return NULL;
    }
    struct total *total = &buffer->totals.data[*id];
    if (!total->dirty) {
        if (VEC_PUSH(&buffer->dirty, (uint32_t)*id) < 0)
            return NULL;
        total->dirty = true;
    }
    return total;
}

/* Levels have no meaningful sum: of these the highest is kept. */
static void total_add(struct total *total, enum series_kind kind, uint64_t weight)
{
    total->count++;
    if (kind == SERIES_LEVEL)
        total->weight = MAX(total->weight, weight);
    else if (__builtin_add_overflow(total->weight, weight, &total->weight) ||
             total->weight > INT64_MAX)
        total->weight = INT64_MAX; /* 292 years of nanoseconds: SQLite counts no further */
}

static int totals_count(struct series_buffer *buffer)
{
    const struct chunk_columns *columns = &buffer->columns;
    for (uint32_t i = buffer->counted; i < columns->samples; i++) {
        struct total *total = total_at(buffer, columns->thread[i], columns->stack[i]);
        if (!total)
            return buffer->totals.len >= WRITER_TOTALS_MAX ? -E2BIG : -ENOMEM;
        total_add(total, buffer->kind, columns->weight[i]);
    }
    buffer->counted = columns->samples;
    return 0;
}

/* The buffer as a row: a new one, or the one that holds its head already. */
static int chunk_write(struct recording_writer *writer, uint32_t series)
{
    struct series_buffer *buffer = &writer->series.data[series - 1];
    const void *data = NULL;
    size_t size = 0;
    uint64_t start_ns = 0, end_ns = 0;
    int r = totals_count(buffer);
    if (r == 0)
        r = chunk_encode(&writer->encoder, &buffer->columns, &data, &size, &start_ns, &end_ns);
    if (r < 0)
        return writer_fail_errno(writer, -r, "add samples to");
    struct str blob = {data, size};
    if (buffer->chunk != 0)
        return writer_put(writer, SQL_CHUNK_UPDATE, "iiiib", buffer->chunk, (int64_t)start_ns,
                          (int64_t)end_ns, (int64_t)buffer->columns.samples, blob);
    r = writer_put(writer, SQL_CHUNK_ADD, "iiiiib", (int64_t)series, (int64_t)start_ns,
                   (int64_t)end_ns, (int64_t)buffer->columns.samples, (int64_t)CHUNK_CODEC, blob);
    if (r == 0)
        buffer->chunk = sqlite3_last_insert_rowid(writer->db);
    return r;
}

int series_seal(struct recording_writer *writer, uint32_t series)
{
    struct series_buffer *buffer = &writer->series.data[series - 1];
    int r = chunk_write(writer, series);
    if (r < 0)
        return r;
    buffer->columns.samples = 0;
    buffer->counted = 0;
    buffer->chunk = 0;
    return 0;
}

int series_flush(struct recording_writer *writer, uint32_t series)
{
    struct series_buffer *buffer = &writer->series.data[series - 1];
    if (buffer->columns.samples > buffer->counted) {
        int r = buffer->columns.samples >= SEAL_SAMPLES ? series_seal(writer, series)
                                                        : chunk_write(writer, series);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < buffer->dirty.len; i++) {
        struct total *total = &buffer->totals.data[buffer->dirty.data[i]];
        const int64_t row[] = {series, total->thread, total->stack, (int64_t)total->count,
                               (int64_t)total->weight};
        int r = writer_bulk_put(writer, BULK_TOTAL, row);
        if (r < 0)
            return r;
        total->dirty = false;
    }
    buffer->dirty.len = 0;
    return 0;
}
