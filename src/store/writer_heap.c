/* The heap of a recording. Sites, processes and moments are kept in memory (heap_book.h); what
 * changed is written at a commit: of sites the chunks that they lie in. What lived at a snapshot is
 * one row; single events are columns of their own (writer_heap_events.c). */
#include "store/heap_rows.h"
#include "store/schema.h"
#include "store/wait_buckets.h"
#include "store/writer_parts.h"

#include <errno.h>

static struct recording_writer *of(struct sink *sink)
{
    return (struct recording_writer *)sink; /* the sink is its first member */
}

static int note(struct recording_writer *writer, struct dirty_rows *dirty, bool listed, size_t at)
{
    return !listed && VEC_PUSH(dirty, (uint32_t)at) < 0 ? writer_settle(writer, -ENOMEM) : 0;
}

/* The chunk that a site lies in is to be written. */
static int site_note(struct recording_writer *writer, size_t at)
{
    size_t chunk = at / HEAP_SITES_EACH;
    while (writer->heap_chunk_listed.len <= chunk)
        if (VEC_PUSH(&writer->heap_chunk_listed, false) < 0)
            return writer_settle(writer, -ENOMEM);
    bool listed = writer->heap_chunk_listed.data[chunk];
    writer->heap_chunk_listed.data[chunk] = true;
    return note(writer, &writer->heap_chunks_dirty, listed, chunk);
}

int writer_heap_site(struct sink *sink, const struct heap_site_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (info->thread == 0 || info->thread > writer->threads ||
        info->stack > writer->interned.stacks.len)
        return -EINVAL;
    size_t before = writer->heap.sites.len;
    uint32_t id;
    int r = writer_settle(writer, heap_book_site(&writer->heap, info, &id));
    if (r == 0 && writer->heap.sites.len > before)
        r = site_note(writer, before);
    if (r == 0)
        *ret_id = id;
    return r;
}

int writer_heap_site_set(struct sink *sink, uint32_t site, const struct heap_tally *tally)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    bool changed = false;
    int r = heap_book_site_set(&writer->heap, site, tally, &changed);
    return r < 0 || !changed ? r : site_note(writer, site - 1);
}

/* The process has something to write; whether it is in the list already it knows itself. */
static int process_note(struct recording_writer *writer, size_t at)
{
    struct heap_process_book *row = &writer->heap.processes.data[at];
    bool listed = row->dirty;
    row->dirty = true;
    return note(writer, &writer->heap_processes_dirty, listed, at);
}

int writer_heap_process_set(struct sink *sink, uint32_t process,
                            const struct heap_process_tally *tally)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (process == 0 || process > writer->processes)
        return -EINVAL;
    size_t at = 0;
    int r = writer_settle(writer, heap_book_process_set(&writer->heap, process, tally, &at));
    return r < 0 ? r : process_note(writer, at);
}

int writer_heap_moment(struct sink *sink, const struct heap_moment *moment)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (moment->process == 0 || moment->process > writer->processes)
        return -EINVAL;
    size_t at = 0;
    int r = writer_settle(writer, heap_book_moment(&writer->heap, moment, &at));
    if (r == -E2BIG) {
        writer->heap_moments_lost++;
        return 0;
    }
    return r < 0 ? r : process_note(writer, at);
}

/* What the last snapshot has so far, as one row. */
static int living_put(struct recording_writer *writer)
{
    size_t count = writer->heap_living.len;
    if (count == writer->heap_living_written)
        return 0;
    struct str blob;
    const void *data = NULL;
    int r = heap_snapshot_pack(&writer->packer, writer->heap_living.data, (uint32_t)count, &data,
                               &blob.len);
    if (r < 0)
        return writer_settle(writer, r);
    blob.data = data;
    writer->heap_living_written = count;
    return writer_put(writer, SQL_HEAP_SNAPSHOT_ROWS, "iib", (int64_t)writer->heap_snapshots,
                      (int64_t)count, blob);
}

int writer_heap_snapshot(struct sink *sink, const struct heap_snapshot_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (!heap_snapshot_is_good(info) || info->process > writer->processes)
        return -EINVAL;
    if (writer->heap_snapshots >= HEAP_BOOK_SNAPSHOTS_MAX)
        return -E2BIG;
    int r = living_put(writer);
    if (r == 0)
        r = writer_put(writer, SQL_HEAP_SNAPSHOT, "iiisib", (int64_t)writer->heap_snapshots + 1,
                       (int64_t)info->process, (int64_t)info->time_ns,
                       str_from(schema_heap_why_name(info->why)), (int64_t)PACKED_CODEC, STR(""));
    if (r < 0)
        return r;
    writer->heap_living.len = writer->heap_living_written = 0;
    *ret_id = ++writer->heap_snapshots;
    return 0;
}

int writer_heap_snapshot_row(struct sink *sink, const struct heap_snapshot_row *row)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (row->snapshot == 0 || row->snapshot != writer->heap_snapshots ||
        row->stack > writer->interned.stacks.len)
        return -EINVAL;
    if (writer->heap_snapshot_rows >= writer->heap_snapshot_rows_max ||
        writer->heap_living.len >= PACKED_ROWS_MAX) {
        writer->heap_snapshot_rows_lost++;
        return 0;
    }
    if (VEC_PUSH(&writer->heap_living, *row) < 0)
        return writer_settle(writer, -ENOMEM);
    writer->heap_snapshot_rows++;
    return 0;
}

/* SQLite counts to 2^63 - 1. */
static int64_t bounded(uint64_t number)
{
    return (int64_t)MIN(number, (uint64_t)INT64_MAX);
}

static int site_chunk_put(struct recording_writer *writer, size_t chunk)
{
    size_t first = chunk * HEAP_SITES_EACH;
    uint32_t count = (uint32_t)MIN(writer->heap.sites.len - first, (size_t)HEAP_SITES_EACH);
    struct str blob;
    const void *data = NULL;
    writer->heap_chunk_listed.data[chunk] = false;
    int r = heap_sites_pack(&writer->packer, writer->heap.sites.data + first, count, &data,
                            &blob.len);
    if (r < 0)
        return writer_settle(writer, r);
    blob.data = data;
    return writer_put(writer, SQL_HEAP_SITE_CHUNK, "iiib", (int64_t)chunk + 1, (int64_t)count,
                      (int64_t)PACKED_CODEC, blob);
}

static struct str histogram(const uint64_t *buckets, uint32_t count, unsigned char *bytes)
{
    uint64_t kept[HEAP_SIZE_BUCKETS];
    for (uint32_t i = 0; i < count; i++)
        kept[i] = (uint64_t)bounded(buckets[i]);
    return (struct str){(const char *)bytes, heap_buckets_encode(kept, count, bytes)};
}

static int tally_put(struct recording_writer *writer, const struct heap_process_book *row)
{
    const struct heap_process_tally *tally = &row->tally;
    unsigned char sizes[HEAP_BUCKETS_BYTES_MAX], lives[HEAP_BUCKETS_BYTES_MAX];
    return writer_put(
        writer, SQL_HEAP_PROCESS, "iiiiiiiiibb", (int64_t)row->process, bounded(tally->peak_bytes),
        bounded(tally->peak_count), bounded(tally->peak_ns), bounded(tally->unseen_frees),
        bounded(tally->inherited_frees), bounded(tally->inherited_bytes), bounded(tally->failed),
        bounded(tally->life_unit_ns), histogram(tally->sizes, HEAP_SIZE_BUCKETS, sizes),
        histogram(tally->lives, HEAP_LIFE_BUCKETS, lives));
}

static int moments_put(struct recording_writer *writer, struct heap_process_book *row)
{
    int r = 0;
    if (row->thinned)
        r = writer_put(writer, SQL_HEAP_MOMENTS_CUT, "ii", (int64_t)row->process,
                       (int64_t)row->moments.len);
    row->thinned = false;
    for (; row->clean < row->moments.len && r == 0; row->clean++) {
        const struct heap_moment *moment = &row->moments.data[row->clean];
        const int64_t values[] = {row->process, (int64_t)row->clean, bounded(moment->time_ns),
                                  bounded(moment->live_bytes), bounded(moment->rss_bytes)};
        r = writer_bulk_put(writer, BULK_HEAP_MOMENT, values);
    }
    return r;
}

static int process_put(struct recording_writer *writer, size_t at)
{
    struct heap_process_book *row = &writer->heap.processes.data[at];
    int r = row->tally_dirty ? tally_put(writer, row) : 0;
    row->dirty = row->tally_dirty = false;
    return r < 0 ? r : moments_put(writer, row);
}

static int dirty_flush(struct recording_writer *writer, struct dirty_rows *dirty,
                       int (*put)(struct recording_writer *writer, size_t at))
{
    int r = 0;
    for (size_t i = 0; i < dirty->len && r == 0; i++)
        r = put(writer, dirty->data[i]);
    dirty->len = 0;
    return r;
}

static int lost_count(struct recording_writer *writer, const char *name, uint64_t *lost)
{
    int r = *lost > 0 ? sink_counter(&writer->sink, name, UNIT_COUNT, *lost) : 0;
    *lost = 0;
    return r;
}

int writer_heap_flush(struct recording_writer *writer)
{
    int r = dirty_flush(writer, &writer->heap_chunks_dirty, site_chunk_put);
    if (r == 0)
        r = dirty_flush(writer, &writer->heap_processes_dirty, process_put);
    if (r == 0)
        r = living_put(writer);
    if (r == 0)
        r = lost_count(writer, "loss.store_moments", &writer->heap_moments_lost);
    if (r == 0)
        r = lost_count(writer, "loss.store_snapshot_rows", &writer->heap_snapshot_rows_lost);
    if (r == 0)
        r = writer_heap_events_flush(writer);
    return r;
}

void writer_heap_deinit(struct recording_writer *writer)
{
    heap_book_deinit(&writer->heap);
    VEC_FREE(&writer->heap_chunks_dirty);
    VEC_FREE(&writer->heap_chunk_listed);
    VEC_FREE(&writer->heap_living);
    packer_deinit(&writer->packer);
    VEC_FREE(&writer->heap_processes_dirty);
    writer_heap_events_deinit(writer);
}
