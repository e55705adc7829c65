/* The heap of a recording. Sites, processes and moments are kept in memory (heap_book.h); those
 * that changed become rows at a commit. What lived at a snapshot is rows at once, many at a time;
 * single events are columns (writer_heap_events.c). */
#include "store/schema.h"
#include "store/wait_buckets.h"
#include "store/writer_parts.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static struct recording_writer *of(struct sink *sink)
{
    return (struct recording_writer *)sink; /* the sink is its first member */
}

static int note(struct recording_writer *writer, struct dirty_rows *dirty, bool listed, size_t at)
{
    return !listed && VEC_PUSH(dirty, (uint32_t)at) < 0 ? writer_settle(writer, -ENOMEM) : 0;
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
    if (r == 0)
        r = note(writer, &writer->heap_sites_dirty, writer->heap.sites.len == before, before);
    if (r == 0)
        *ret_id = id;
    return r;
}

int writer_heap_site_set(struct sink *sink, uint32_t site, const struct heap_tally *tally)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (site == 0 || site > writer->heap.sites.len)
        return -EINVAL;
    bool listed = writer->heap.sites.data[site - 1].dirty, changed = false;
    int r = heap_book_site_set(&writer->heap, site, tally, &changed);
    return r < 0 ? r : note(writer, &writer->heap_sites_dirty, listed || !changed, site - 1);
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

int writer_heap_snapshot(struct sink *sink, const struct heap_snapshot_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (!heap_snapshot_is_good(info) || info->process > writer->processes)
        return -EINVAL;
    if (writer->heap_snapshots >= HEAP_BOOK_SNAPSHOTS_MAX)
        return -E2BIG;
    int r = writer_put(writer, SQL_HEAP_SNAPSHOT, "iiis", (int64_t)writer->heap_snapshots + 1,
                       (int64_t)info->process, (int64_t)info->time_ns,
                       str_from(schema_heap_why_name(info->why)));
    if (r == 0)
        *ret_id = ++writer->heap_snapshots;
    return r;
}

int writer_heap_snapshot_row(struct sink *sink, const struct heap_snapshot_row *row)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (row->snapshot == 0 || row->snapshot > writer->heap_snapshots ||
        row->stack > writer->interned.stacks.len)
        return -EINVAL;
    if (writer->heap_snapshot_rows >= writer->heap_snapshot_rows_max) {
        writer->heap_snapshot_rows_lost++;
        return 0;
    }
    writer->heap_snapshot_rows++;
    const int64_t values[] = {row->snapshot, row->stack, row->count, row->bytes};
    return writer_bulk_put(writer, BULK_HEAP_SNAPSHOT_ROW, values);
}

/* SQLite counts to 2^63 - 1. */
static int64_t bounded(uint64_t number)
{
    return (int64_t)MIN(number, (uint64_t)INT64_MAX);
}

static int site_put(struct recording_writer *writer, size_t at)
{
    struct heap_site_row *row = &writer->heap.sites.data[at];
    const struct heap_tally *tally = &row->tally;
    assert(row->dirty);
    row->dirty = false;
    return writer_put(
        writer, SQL_HEAP_SITE, "iiisiiiiiiiiiiiiiiid", (int64_t)at + 1, (int64_t)row->info.thread,
        (int64_t)row->info.stack, str_from(schema_heap_kind_name(row->info.kind)),
        bounded(tally->allocations), bounded(tally->allocated_bytes), bounded(tally->frees),
        bounded(tally->freed_bytes), bounded(tally->temporary), bounded(tally->temporary_bytes),
        tally->peak_count, tally->peak_bytes, bounded(tally->grown), bounded(tally->grown_bytes),
        bounded(tally->moved), bounded(tally->chain_max), bounded(tally->size_max),
        bounded(tally->lived_ns), bounded(tally->samples), tally->variance);
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
    int r = dirty_flush(writer, &writer->heap_sites_dirty, site_put);
    if (r == 0)
        r = dirty_flush(writer, &writer->heap_processes_dirty, process_put);
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
    VEC_FREE(&writer->heap_sites_dirty);
    VEC_FREE(&writer->heap_processes_dirty);
    writer_heap_events_deinit(writer);
}
