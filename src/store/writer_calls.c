/* Calls, devices, connections and requests of a recording. They are added up in memory
 * (call_book.h); those that changed become rows at a commit. Requests that are told one by one
 * are rows at once, many at a time. */
#include "store/schema.h"
#include "store/wait_buckets.h"
#include "store/writer_parts.h"

#include <assert.h>
#include <errno.h>

static struct recording_writer *of(struct sink *sink)
{
    return (struct recording_writer *)sink; /* the sink is its first member */
}

/* The row was made, or is about to change: into the list of those to be written, once. */
static int note(struct recording_writer *writer, struct dirty_rows *dirty, bool listed, size_t at)
{
    return !listed && VEC_PUSH(dirty, (uint32_t)at) < 0 ? writer_settle(writer, -ENOMEM) : 0;
}

int writer_call(struct sink *sink, const struct call_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (info->thread == 0 || info->thread > writer->threads ||
        info->stack > writer->interned.stacks.len || info->object > writer->book.objects.len)
        return -EINVAL;
    size_t before = writer->calls.calls.len;
    uint32_t id;
    int r = writer_settle(writer, call_book_call(&writer->calls, info, &id));
    if (r == 0)
        r = note(writer, &writer->calls_dirty, writer->calls.calls.len == before, before);
    if (r == 0)
        *ret_id = id;
    return r;
}

int writer_call_add(struct sink *sink, uint32_t call, const struct call_tally *tally)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (call == 0 || call > writer->calls.calls.len)
        return -EINVAL;
    int r = note(writer, &writer->calls_dirty, writer->calls.calls.data[call - 1].dirty, call - 1);
    return r < 0 ? r : call_book_call_add(&writer->calls, call, tally);
}

/* There are few: those that changed are looked for among all. */
int writer_device(struct sink *sink, const struct device_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (info->name.len > INTERNED_TEXT_BYTES_MAX)
        return -E2BIG;
    writer->devices_dirty = true;
    return writer_settle(writer, call_book_device(&writer->calls, info, ret_id));
}

int writer_device_add(struct sink *sink, uint32_t device, const struct device_tally *tally)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    writer->devices_dirty = true;
    return call_book_device_add(&writer->calls, device, tally);
}

int writer_connection(struct sink *sink, const struct connection_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (!schema_request_protocol_name(info->protocol) || !schema_request_role_name(info->role) ||
        info->process > writer->processes || info->object > writer->book.objects.len)
        return -EINVAL;
    if (info->peer.len > INTERNED_TEXT_BYTES_MAX || info->service.len > INTERNED_TEXT_BYTES_MAX)
        return -E2BIG;
    uint32_t id;
    int r = writer_settle(writer, call_book_connection(&writer->calls, info, &id));
    if (r == 0)
        r = note(writer, &writer->connections_dirty, false, id - 1);
    if (r == 0)
        *ret_id = id;
    return r;
}

int writer_connection_end(struct sink *sink, uint32_t connection, const struct connection_end *end)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (connection == 0 || connection > writer->calls.connections.len)
        return -EINVAL;
    if (end->service.len > INTERNED_TEXT_BYTES_MAX)
        return -E2BIG;
    int r = note(writer, &writer->connections_dirty,
                 writer->calls.connections.data[connection - 1].dirty, connection - 1);
    return r < 0 ? r
                 : writer_settle(writer, call_book_connection_end(&writer->calls, connection, end));
}

static bool request_is_good(const struct recording_writer *writer, const struct request_info *info)
{
    size_t texts = writer->interned.texts.len;
    return schema_request_protocol_name(info->protocol) && schema_request_role_name(info->role) &&
           info->thread <= writer->threads && info->stack <= writer->interned.stacks.len &&
           info->peer <= texts && info->text <= texts && info->result <= texts;
}

int writer_request(struct sink *sink, const struct request_info *info, uint32_t *ret_id)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (!request_is_good(writer, info))
        return -EINVAL;
    size_t before = writer->calls.requests.len;
    uint32_t id;
    int r = writer_settle(writer, call_book_request(&writer->calls, info, &id));
    if (r == 0)
        r = note(writer, &writer->requests_dirty, writer->calls.requests.len == before, before);
    if (r == 0)
        *ret_id = id;
    return r;
}

int writer_request_add(struct sink *sink, uint32_t request, const struct request_tally *tally)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    if (request == 0 || request > writer->calls.requests.len)
        return -EINVAL;
    int r = note(writer, &writer->requests_dirty, writer->calls.requests.data[request - 1].dirty,
                 request - 1);
    return r < 0 ? r : call_book_request_add(&writer->calls, request, tally);
}

/* SQLite counts to 2^63 - 1; in nanoseconds that are 292 years. */
static int64_t bounded(uint64_t number)
{
    return (int64_t)MIN(number, (uint64_t)INT64_MAX);
}

int writer_request_event(struct sink *sink, const struct request_event *event)
{
    struct recording_writer *writer = of(sink);
    if (writer->error)
        return writer->error;
    struct request_event kept = *event;
    if (event->payload > writer->interned.texts.len ||
        !call_book_event_settle(&writer->calls, &kept))
        return -EINVAL;
    if (writer->request_events >= writer->request_events_max) {
        writer->request_events_lost++;
        return 0;
    }
    const int64_t row[] = {(int64_t)++writer->request_events,
                           kept.request,
                           kept.connection,
                           (int64_t)kept.start_ns,
                           (int64_t)(kept.first_byte_ns - kept.start_ns),
                           (int64_t)(kept.end_ns - kept.first_byte_ns),
                           bounded(kept.bytes_out),
                           bounded(kept.bytes_in),
                           (int64_t)kept.parameters,
                           kept.flags,
                           kept.payload};
    return writer_bulk_put(writer, BULK_REQUEST_EVENT, row);
}

/* Histograms as they stand in a row; the bytes live as long as this. */
struct histograms {
    unsigned char bucket_bytes[WAIT_BUCKETS_BYTES_MAX], size_bytes[CALL_SIZES_BYTES_MAX];
    struct str buckets, sizes;
};

static void histograms_encode(struct histograms *to, const uint32_t *buckets, const uint32_t *sizes)
{
    to->buckets = (struct str){(const char *)to->bucket_bytes,
                               wait_buckets_encode(buckets, to->bucket_bytes)};
    if (sizes)
        to->sizes = (struct str){(const char *)to->size_bytes,
                                 call_sizes_encode(sizes, to->size_bytes)};
}

static int call_put(struct recording_writer *writer, size_t at)
{
    struct call_row *row = &writer->calls.calls.data[at];
    const struct call_info *info = &row->info;
    const struct call_tally *tally = &row->tally;
    struct histograms histograms;
    histograms_encode(&histograms, tally->buckets, tally->sizes);
    assert(row->dirty);
    row->dirty = false;
    return writer_put(writer, SQL_CALL, "iiiiiiiiiiiiiiiiiiibb", (int64_t)at + 1,
                      (int64_t)info->thread, (int64_t)info->stack, (int64_t)info->object,
                      (int64_t)info->syscall, (int64_t)info->error, (int64_t)info->flags,
                      bounded(tally->count), bounded(tally->total_ns), bounded(tally->max_ns),
                      bounded(tally->first_ns), bounded(tally->last_ns), bounded(tally->bytes),
                      bounded(tally->asked_bytes), bounded(tally->partial), bounded(tally->placed),
                      bounded(tally->sequential), bounded(tally->missed),
                      bounded(tally->missed_bytes), histograms.buckets, histograms.sizes);
}

static int device_put(struct recording_writer *writer, size_t at)
{
    struct device_row *row = &writer->calls.devices.data[at];
    const struct device_tally *tally = &row->tally;
    struct histograms histograms;
    if (!row->dirty)
        return 0;
    histograms_encode(&histograms, tally->buckets, tally->sizes);
    row->dirty = false;
    return writer_put(writer, SQL_DEVICE, "iissiiiiiiiibb", (int64_t)at + 1,
                      (int64_t)row->info.number, str_from(schema_device_op_name(row->info.op)),
                      row->info.name, bounded(tally->count), bounded(tally->bytes),
                      bounded(tally->total_ns), bounded(tally->max_ns), bounded(tally->first_ns),
                      bounded(tally->last_ns), bounded(tally->depth_ns), bounded(tally->depth_max),
                      histograms.buckets, histograms.sizes);
}

static int connection_put(struct recording_writer *writer, size_t at)
{
    struct connection_row *row = &writer->calls.connections.data[at];
    const struct connection_info *info = &row->info;
    assert(row->dirty);
    row->dirty = false;
    return writer_put(writer, SQL_CONNECTION, "iiissiiiiiiss", (int64_t)at + 1,
                      (int64_t)info->process, (int64_t)info->object,
                      str_from(schema_request_protocol_name(info->protocol)),
                      str_from(schema_request_role_name(info->role)), (int64_t)info->flags,
                      bounded(info->opened_ns), bounded(row->closed_ns), bounded(row->requests),
                      bounded(row->bytes_out), bounded(row->bytes_in), info->peer, info->service);
}

static int request_put(struct recording_writer *writer, size_t at)
{
    struct request_row *row = &writer->calls.requests.data[at];
    const struct request_info *info = &row->info;
    const struct request_tally *tally = &row->tally;
    struct histograms histograms;
    histograms_encode(&histograms, tally->buckets, NULL);
    assert(row->dirty);
    row->dirty = false;
    return writer_put(writer, SQL_REQUEST, "issiiiiiiiiiiiiiiiiib", (int64_t)at + 1,
                      str_from(schema_request_protocol_name(info->protocol)),
                      str_from(schema_request_role_name(info->role)), (int64_t)info->thread,
                      (int64_t)info->stack, (int64_t)info->peer, (int64_t)info->text,
                      (int64_t)info->result, bounded(tally->count), bounded(tally->total_ns),
                      bounded(tally->max_ns), bounded(tally->first_byte_ns),
                      bounded(tally->first_ns), bounded(tally->last_ns), bounded(tally->bytes_out),
                      bounded(tally->bytes_in), bounded(tally->failed), bounded(tally->reused),
                      bounded(tally->unanswered), bounded(tally->parameters), histograms.buckets);
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

int writer_calls_flush(struct recording_writer *writer)
{
    int r = dirty_flush(writer, &writer->calls_dirty, call_put);
    for (size_t i = 0; writer->devices_dirty && i < writer->calls.devices.len && r == 0; i++)
        r = device_put(writer, i);
    writer->devices_dirty = false;
    if (r == 0)
        r = dirty_flush(writer, &writer->connections_dirty, connection_put);
    if (r == 0)
        r = dirty_flush(writer, &writer->requests_dirty, request_put);
    if (r == 0 && writer->request_events_lost > 0) {
        r = sink_counter(&writer->sink, "loss.request_events", UNIT_COUNT,
                         writer->request_events_lost);
        writer->request_events_lost = 0;
    }
    return r;
}

void writer_calls_deinit(struct recording_writer *writer)
{
    call_book_deinit(&writer->calls);
    VEC_FREE(&writer->calls_dirty);
    VEC_FREE(&writer->connections_dirty);
    VEC_FREE(&writer->requests_dirty);
}
