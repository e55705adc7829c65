/* Allocations and frees one by one, from a buffer to chunks.
 *
 * As with samples (writer_series.c) a commit that finds only a few leaves its chunk open: the next
 * one writes the row anew with more in it. Memory for it is taken with the first event. */
#include "store/writer_parts.h"

#include <errno.h>
#include <stdlib.h>

enum { SEAL_EVENTS = 16 * 1024 };

static struct recording_writer *of(struct sink *sink)
{
    return (struct recording_writer *)sink; /* the sink is its first member */
}

static int buffer_make(struct recording_writer *writer)
{
    struct heap_event_buffer *buffer = &writer->heap_events;
    buffer->events = malloc(HEAP_CHUNK_EVENTS * sizeof(*buffer->events));
    return buffer->events && heap_encoder_init(&buffer->encoder) == 0
               ? 0
               : writer_settle(writer, -ENOMEM);
}

/* The buffer as a row: a new one, or the one that holds its head already. */
static int chunk_write(struct recording_writer *writer, bool seal)
{
    struct heap_event_buffer *buffer = &writer->heap_events;
    struct str blob;
    const void *data = NULL;
    int r = heap_encode(&buffer->encoder, buffer->events, buffer->count, &data, &blob.len);
    if (r < 0)
        return writer_fail_errno(writer, -r, "add events to");
    blob.data = data;
    if (buffer->chunk != 0) {
        r = writer_put(writer, SQL_HEAP_CHUNK_UPDATE, "iib", buffer->chunk, (int64_t)buffer->count,
                       blob);
    } else {
        r = writer_put(writer, SQL_HEAP_CHUNK_ADD, "iib", (int64_t)buffer->count,
                       (int64_t)HEAP_CHUNK_CODEC, blob);
        buffer->chunk = sqlite3_last_insert_rowid(writer->db);
    }
    buffer->written = buffer->count;
    if (seal) {
        buffer->count = buffer->written = 0;
        buffer->chunk = 0;
    }
    return r;
}

int writer_heap_event(struct sink *sink, const struct heap_event *event)
{
    struct recording_writer *writer = of(sink);
    struct heap_event_buffer *buffer = &writer->heap_events;
    if (writer->error)
        return writer->error;
    if (!heap_event_is_good(event) || event->thread > writer->threads ||
        event->stack > writer->interned.stacks.len)
        return -EINVAL;
    int r = buffer->events ? 0 : buffer_make(writer);
    if (r < 0)
        return r;
    buffer->events[buffer->count++] = *event;
    return buffer->count == HEAP_CHUNK_EVENTS ? chunk_write(writer, true) : 0;
}

int writer_heap_events_flush(struct recording_writer *writer)
{
    const struct heap_event_buffer *buffer = &writer->heap_events;
    return buffer->count > buffer->written ? chunk_write(writer, buffer->count >= SEAL_EVENTS) : 0;
}

void writer_heap_events_deinit(struct recording_writer *writer)
{
    free(writer->heap_events.events);
    heap_encoder_deinit(&writer->heap_events.encoder);
}
