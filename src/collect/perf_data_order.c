/* Events of several CPUs stand in the file as their buffers were emptied, not as they happened.
 * perf marks the end of each round over the buffers: after it, nothing older than the newest
 * event of the round before can come. Until then events wait here. */
#include "collect/perf_data_parts.h"

#include <errno.h>

static int earlier(const void *a, const void *b)
{
    const struct queued *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static size_t length_at(const struct perf_data *data, size_t offset)
{
    return perf_data_u16(data->bytes.data + offset + 6);
}

/* Those that wait move to the front, into fresh bytes: they are sorted by time, not by place,
 * so that moving one might overwrite another. */
static int compact(struct perf_data *data, size_t first)
{
    size_t count = data->queue.len - first, used = 0, size = 0;
    if (count == 0) {
        data->queue.len = data->bytes.len = 0;
        return 0;
    }
    struct queued *rest = data->queue.data + first;
    for (size_t i = 0; i < count; i++)
        size += length_at(data, rest[i].offset);
    uint8_t *copy = malloc(size);
    if (!copy)
        return why_nomem(data->why);
    for (size_t i = 0; i < count; i++) {
        size_t len = length_at(data, rest[i].offset);
        memcpy(copy + used, data->bytes.data + rest[i].offset, len);
        data->queue.data[i] = rest[i];
        data->queue.data[i].offset = used;
        used += len;
    }
    memcpy(data->bytes.data, copy, size);
    free(copy);
    data->bytes.len = size;
    data->queue.len = count;
    return 0;
}

static int deliver_first(struct perf_data *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct queued *event = &data->queue.data[i];
        if (event->time_ns < data->delivered_ns)
            perf_data_skip(data, "out_of_order");
        else
            data->delivered_ns = event->time_ns;
        const uint8_t *record = data->bytes.data + event->offset;
        int r = perf_data_deliver(data, record, length_at(data, event->offset));
        if (r < 0)
            return r;
    }
    return compact(data, count);
}

static void sort(struct perf_data *data)
{
    if (data->queue.len > 1)
        qsort(data->queue.data, data->queue.len, sizeof(struct queued), earlier);
}

int perf_data_queue(struct perf_data *data, const uint8_t *record, size_t len)
{
    uint64_t time_ns;
    /* What perf made up at the start (processes that ran already) has no time: it is of now. */
    if (!perf_data_time(data, record, len, &time_ns) || time_ns == 0 || time_ns == UINT64_MAX)
        return perf_data_deliver(data, record, len);
    if (data->bytes.len + len > PERF_DATA_QUEUE_BYTES_MAX) {
        perf_data_skip(data, "round_too_long");
        sort(data);
        int r = deliver_first(data, data->queue.len / 2 + 1);
        if (r < 0)
            return r;
    }
    if (VEC_RESERVE(&data->bytes, data->bytes.len + len) < 0)
        return why_nomem(data->why);
    struct queued event = {time_ns, data->number++, data->bytes.len};
    if (VEC_PUSH(&data->queue, event) < 0)
        return why_nomem(data->why);
    memcpy(data->bytes.data + data->bytes.len, record, len);
    data->bytes.len += len;
    data->latest_ns = MAX(data->latest_ns, time_ns);
    return 0;
}

int perf_data_round(struct perf_data *data)
{
    uint64_t limit_ns = data->round_ns;
    data->round_ns = data->latest_ns;
    sort(data);
    size_t count = 0;
    while (count < data->queue.len && data->queue.data[count].time_ns <= limit_ns)
        count++;
    return count > 0 ? deliver_first(data, count) : 0;
}

int perf_data_flush(struct perf_data *data)
{
    sort(data);
    return deliver_first(data, data->queue.len);
}
