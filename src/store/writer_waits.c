/* Objects, waits and events of a recording. The first two are added up in memory (wait_book.h);
 * those that changed become rows at a commit. Events are rows at once, many at a time. */
#include "store/schema.h"
#include "store/wait_buckets.h"
#include "store/writer_parts.h"

#include <assert.h>
#include <errno.h>

static struct recording_writer *of(struct sink *sink)
{
    return (struct recording_writer *)sink; /* the sink is its first member */
}

int writer_object(struct sink *sink, const struct object_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (!schema_object_kind_name(info->kind) || info->process > writer->processes)
        return -EINVAL;
    if (info->name.len > INTERNED_TEXT_BYTES_MAX)
        return -E2BIG;
    writer->objects_dirty = true;
    return writer_settle(writer, wait_book_object(&writer->book, info, ret_id));
}

int writer_object_name(struct sink *sink, uint32_t object, struct str name)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (name.len > INTERNED_TEXT_BYTES_MAX)
        return -E2BIG;
    writer->objects_dirty = true;
    return writer_settle(writer, wait_book_object_name(&writer->book, object, name));
}

static bool wait_is_good(const struct recording_writer *writer, const struct wait_info *info)
{
    return schema_wait_kind_name(info->kind) && info->thread > 0 &&
           info->thread <= writer->threads && info->waker_thread <= writer->threads &&
           info->stack <= writer->interned.stacks.len &&
           info->waker_stack <= writer->interned.stacks.len;
}

int writer_wait(struct sink *sink, const struct wait_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (!wait_is_good(writer, info))
        return -EINVAL;
    size_t before = writer->book.waits.len;
    uint32_t id;
    int r = wait_book_wait(&writer->book, info, &id);
    if (r == 0 && writer->book.waits.len > before &&
        VEC_PUSH(&writer->waits_dirty, (uint32_t)before) < 0)
        r = -ENOMEM;
    if (r == 0)
        *ret_id = id;
    return writer_settle(writer, r);
}

int writer_wait_add(struct sink *sink, uint32_t wait, const struct wait_tally *tally)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (wait == 0 || wait > writer->book.waits.len)
        return -EINVAL;
    /* A row that is dirty stands in the list already. */
    if (!writer->book.waits.data[wait - 1].dirty && VEC_PUSH(&writer->waits_dirty, wait - 1) < 0)
        return writer_settle(writer, -ENOMEM);
    return writer_settle(writer, wait_book_add(&writer->book, wait, tally));
}

int writer_wait_event(struct sink *sink, const struct wait_event *event)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    struct wait_event kept = *event;
    if (event->wait == 0 || event->wait > writer->book.waits.len || !wait_event_settle(&kept))
        return -EINVAL;
    if (writer->wait_events >= writer->wait_events_max) {
        writer->wait_events_lost++;
        return 0;
    }
    const int64_t row[] = {(int64_t)++writer->wait_events, kept.wait, (int64_t)kept.start_ns,
                           (int64_t)(kept.wake_ns - kept.start_ns),
                           (int64_t)(kept.run_ns - kept.wake_ns)};
    return writer_bulk_put(writer, BULK_WAIT_EVENT, row);
}

static int objects_flush(struct recording_writer *writer)
{
    int r = 0;
    for (size_t i = 0; writer->objects_dirty && i < writer->book.objects.len && r == 0; i++) {
        struct object_row *row = &writer->book.objects.data[i];
        if (!row->dirty)
            continue;
        r = writer_put(writer, SQL_OBJECT, "isiiis", (int64_t)i + 1,
                       str_from(schema_object_kind_name(row->info.kind)), (int64_t)row->info.flags,
                       (int64_t)row->info.process, (int64_t)row->info.key, row->info.name);
        row->dirty = false;
    }
    writer->objects_dirty = false;
    return r;
}

/* SQLite counts to 2^63 - 1; in nanoseconds that are 292 years. */
static int64_t bounded(uint64_t number)
{
    return (int64_t)MIN(number, (uint64_t)INT64_MAX);
}

static int wait_put(struct recording_writer *writer, uint32_t id, const struct wait_row *row)
{
    const struct wait_info *info = &row->info;
    const struct wait_tally *tally = &row->tally;
    unsigned char bytes[WAIT_BUCKETS_BYTES_MAX];
    struct str buckets = {(const char *)bytes, wait_buckets_encode(tally->buckets, bytes)};
    return writer_put(writer, SQL_WAIT, "isiiiiiiiiiiiiiiib", (int64_t)id,
                      str_from(schema_wait_kind_name(info->kind)), (int64_t)info->thread,
                      (int64_t)info->stack, (int64_t)info->waker_thread, (int64_t)info->waker_stack,
                      (int64_t)info->object, (int64_t)info->syscall, (int64_t)info->flags,
                      (int64_t)info->detail, bounded(tally->count), bounded(tally->total_ns),
                      bounded(tally->max_ns), bounded(tally->first_ns), bounded(tally->last_ns),
                      bounded(tally->owned_ns), bounded(tally->owner_off_ns), buckets);
}

int writer_waits_flush(struct recording_writer *writer)
{
    int r = objects_flush(writer);
    for (size_t i = 0; i < writer->waits_dirty.len && r == 0; i++) {
        uint32_t at = writer->waits_dirty.data[i];
        struct wait_row *row = &writer->book.waits.data[at];
        assert(row->dirty);
        r = wait_put(writer, at + 1, row);
        row->dirty = false;
    }
    writer->waits_dirty.len = 0;
    if (r == 0 && writer->wait_events_lost > 0) {
        r = sink_counter(&writer->sink, "loss.wait_events", UNIT_COUNT, writer->wait_events_lost);
        writer->wait_events_lost = 0;
    }
    return r;
}
