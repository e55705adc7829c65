/* Requests that are alike are one row. Sums are kept here and reach the sink about once a second:
 * a request costs one lookup by the hash of its texts. */
#include "collect/io_requests_parts.h"

#include <errno.h>
#include <string.h>

#define FOLDED_TEXT STR("(further requests)")

static uint64_t request_hash(const struct request_info *info, struct str text, struct str result)
{
    uint64_t hash = hash_bytes(text.data, text.len);
    hash = hash_u64(hash ^ hash_bytes(result.data, result.len));
    hash = hash_u64(hash ^ ((uint64_t)info->thread << 32 | info->stack));
    return hash_u64(
        hash ^ ((uint64_t)info->peer << 32 | (uint64_t)info->protocol << 8 | (uint64_t)info->role));
}

static bool row_is(const struct io_row *row, const struct request_info *info, struct str text,
                   struct str result)
{
    return row->info.thread == info->thread && row->info.stack == info->stack &&
           row->info.peer == info->peer && row->info.protocol == info->protocol &&
           row->info.role == info->role && str_eq(row->text, text) && str_eq(row->result, result);
}

static int row_make(struct io_rows *rows, const struct request_info *info, struct str text,
                    struct str result, struct io_row *ret)
{
    struct io_row row = {.info = *info};
    int r = sink_text(rows->sink, text, &row.info.text);
    if (r == 0)
        r = sink_text(rows->sink, result, &row.info.result);
    if (r == 0)
        r = sink_request(rows->sink, &row.info, &row.id);
    if (r < 0)
        return r;
    row.text = (struct str){arena_dup_len(&rows->texts, text.data, text.len), text.len};
    row.result = (struct str){arena_dup_len(&rows->texts, result.data, result.len), result.len};
    if (arena_failed(&rows->texts))
        return -ENOMEM;
    *ret = row;
    return 0;
}

static bool rows_full(const struct io_rows *rows)
{
    return rows->rows.len >= IO_ROWS_MAX || rows->texts.used_bytes >= IO_ROW_TEXTS_BYTES;
}

/* The index of a request's row. */
static int row_find(struct io_rows *rows, const struct request_info *info, struct str text,
                    struct str result, uint32_t *ret)
{
    uint64_t hash = request_hash(info, text, result);
    uint64_t *slot = map_u64_find(&rows->hashes, hash), first = slot ? *slot : 0;
    for (uint64_t at = first; at != 0; at = rows->rows.data[at - 1].next)
        if (row_is(&rows->rows.data[at - 1], info, text, result)) {
            *ret = (uint32_t)(at - 1);
            return 0;
        }
    if (rows_full(rows) && !str_eq(text, FOLDED_TEXT)) {
        struct request_info folded = {.protocol = info->protocol, .role = info->role};
        rows->folded++;
        return row_find(rows, &folded, FOLDED_TEXT, (struct str){"", 0}, ret);
    }
    struct io_row row;
    int r = row_make(rows, info, text, result, &row);
    if (r < 0)
        return r;
    row.next = first;
    slot = map_u64_at(&rows->hashes, hash, NULL);
    if (!slot || VEC_PUSH(&rows->rows, row) < 0)
        return -ENOMEM;
    *slot = rows->rows.len;
    *ret = (uint32_t)(rows->rows.len - 1);
    return 0;
}

/* How many of a row's parameters are different: each is remembered once, up to a bound. */
static int parameters_add(struct io_rows *rows, uint32_t index, uint64_t parameters)
{
    struct io_row *row = &rows->rows.data[index];
    if (parameters == 0 || row->parameters >= REQUEST_PARAMETERS)
        return 0;
    uint64_t key = hash_u64(parameters + hash_u64(index + UINT64_C(1)));
    bool fresh = false;
    if (rows->parameters.len >= IO_PARAMETERS_MAX) {
        rows->parameters_left_out += map_u64_find(&rows->parameters, key) ? 0 : 1;
        return 0;
    }
    if (!map_u64_at(&rows->parameters, key, &fresh))
        return -ENOMEM;
    row->parameters += fresh;
    row->tally.parameters += fresh;
    return 0;
}

static int event_tell(struct io_rows *rows, const struct io_row *row,
                      const struct io_request *request)
{
    const struct protocol_request *said = request->said;
    uint64_t ns = said->end_ns - said->start_ns;
    if (rows->events >= IO_EVENTS_MAX ||
        (rows->events >= IO_EVENTS_FIRST && ns < IO_EVENT_LONG_NS)) {
        rows->events_left_out++;
        return 0;
    }
    struct request_event event = {
        .request = row->id,
        .connection = request->connection,
        .start_ns = said->start_ns,
        .first_byte_ns = said->first_byte_ns,
        .end_ns = said->end_ns,
        .bytes_out = said->bytes_out,
        .bytes_in = said->bytes_in,
        .parameters = said->parameters,
        .flags = said->flags,
    };
    int r = 0;
    if (request->payloads && said->payload.len > 0)
        r = sink_text(rows->sink, said->payload, &event.payload);
    rows->events++;
    return r < 0 ? r : sink_request_event(rows->sink, &event);
}

static void tally_add(struct request_tally *tally, const struct protocol_request *said)
{
    uint64_t ns = said->end_ns - said->start_ns;
    tally->first_ns = tally->count == 0 ? said->start_ns : MIN(tally->first_ns, said->start_ns);
    tally->last_ns = MAX(tally->last_ns, said->end_ns);
    tally->count++;
    tally->total_ns += ns;
    tally->max_ns = MAX(tally->max_ns, ns);
    if (said->first_byte_ns > said->start_ns)
        tally->first_byte_ns += said->first_byte_ns - said->start_ns;
    tally->bytes_out += said->bytes_out;
    tally->bytes_in += said->bytes_in;
    tally->failed += said->flags & REQUEST_FAILED ? 1 : 0;
    tally->reused += said->flags & REQUEST_REUSED ? 1 : 0;
    tally->unanswered += said->flags & REQUEST_UNANSWERED ? 1 : 0;
    tally->buckets[wait_bucket(ns)]++;
}

int io_rows_add(struct io_rows *rows, const struct io_request *request)
{
    const struct protocol_request *said = request->said;
    const struct request_info info = {
        .protocol = request->protocol,
        .role = request->role,
        .thread = request->thread,
        .stack = request->stack,
        .peer = request->peer,
    };
    uint32_t index;
    int r = row_find(rows, &info, said->text, said->result, &index);
    if (r < 0)
        return r;
    struct io_row *row = &rows->rows.data[index];
    if (row->tally.count == 0 && VEC_PUSH(&rows->dirty, index) < 0)
        return -ENOMEM;
    tally_add(&row->tally, said);
    rows->requests++;
    rows->unanswered += said->flags & REQUEST_UNANSWERED ? 1 : 0;
    r = parameters_add(rows, index, said->parameters);
    return r < 0 ? r : event_tell(rows, row, request);
}

int io_rows_flush(struct io_rows *rows, uint64_t now_ns)
{
    if (now_ns != 0 && now_ns < rows->flushed_ns + IO_ROWS_FLUSH_NS)
        return 0;
    rows->flushed_ns = now_ns;
    int r = 0;
    for (size_t i = 0; i < rows->dirty.len; i++) {
        struct io_row *row = &rows->rows.data[rows->dirty.data[i]];
        int failed = sink_request_add(rows->sink, row->id, &row->tally);
        r = r < 0 ? r : failed;
        row->tally = (struct request_tally){0};
    }
    rows->dirty.len = 0;
    return r;
}

void io_rows_deinit(struct io_rows *rows)
{
    VEC_FREE(&rows->rows);
    VEC_FREE(&rows->dirty);
    map_u64_deinit(&rows->hashes);
    map_u64_deinit(&rows->parameters);
    arena_deinit(&rows->texts);
}
