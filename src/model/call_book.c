/* Calls, devices, connections and requests, interned by their fields. */
#include "model/call_book.h"

#include "base/macros.h"

#include <errno.h>
#include <string.h>

/* Compared as bytes, so every byte has a meaning. */
struct call_key {
    uint32_t thread, stack, object, error, flags;
    int32_t syscall;
};

struct device_key {
    uint32_t number, op;
};

struct request_key {
    uint32_t protocol, role, thread, stack, peer, text, result;
};

static int name_keep(struct call_book *book, struct str name, struct str *ret)
{
    const char *copy = arena_dup_len(&book->names, name.data, name.len);
    if (arena_failed(&book->names))
        return -ENOMEM;
    *ret = (struct str){copy, name.len};
    return 0;
}

/* The id of a key; *ret_new says that a row must follow. -E2BIG when there is room for none. */
static int key_id(struct intern *keys, struct str bytes, size_t max, uint32_t *ret_id,
                  bool *ret_new)
{
    if (keys->len >= max && intern_find(keys, bytes) == 0)
        return -E2BIG;
    return intern_add(keys, bytes, ret_id, ret_new);
}

int call_book_call(struct call_book *book, const struct call_info *info, uint32_t *ret_id)
{
    struct call_key key = {info->thread, info->stack, info->object,
                           info->error,  info->flags, info->syscall};
    /* First the room: a key without its row would shift every id behind it. */
    if (VEC_RESERVE(&book->calls, book->calls.len + 1) < 0)
        return -ENOMEM;
    uint32_t id;
    bool fresh;
    int r = key_id(&book->call_keys, (struct str){(const char *)&key, sizeof(key)},
                   CALL_BOOK_CALLS_MAX, &id, &fresh);
    if (r < 0)
        return r;
    if (fresh)
        book->calls.data[book->calls.len++] = (struct call_row){.info = *info, .dirty = true};
    *ret_id = id;
    return 0;
}

int call_book_device(struct call_book *book, const struct device_info *info, uint32_t *ret_id)
{
    struct device_key key = {info->number, (uint32_t)info->op};
    struct device_row row = {.info = *info, .dirty = true};
    if ((unsigned)info->op >= DEVICE_OPS)
        return -EINVAL;
    if (VEC_RESERVE(&book->devices, book->devices.len + 1) < 0 ||
        name_keep(book, info->name, &row.info.name) < 0)
        return -ENOMEM;
    uint32_t id;
    bool fresh;
    int r = key_id(&book->device_keys, (struct str){(const char *)&key, sizeof(key)},
                   CALL_BOOK_DEVICES_MAX, &id, &fresh);
    if (r < 0)
        return r;
    if (fresh) {
        book->devices.data[book->devices.len++] = row;
    } else if (book->devices.data[id - 1].info.name.len == 0 && info->name.len > 0) {
        book->devices.data[id - 1].info.name = row.info.name;
        book->devices.data[id - 1].dirty = true;
    }
    *ret_id = id;
    return 0;
}

int call_book_connection(struct call_book *book, const struct connection_info *info,
                         uint32_t *ret_id)
{
    struct connection_row row = {.info = *info, .dirty = true};
    if (book->connections.len >= CALL_BOOK_CONNECTIONS_MAX)
        return -E2BIG;
    if (name_keep(book, info->peer, &row.info.peer) < 0 ||
        name_keep(book, info->service, &row.info.service) < 0 ||
        VEC_PUSH(&book->connections, row) < 0)
        return -ENOMEM;
    *ret_id = (uint32_t)book->connections.len;
    return 0;
}

int call_book_connection_end(struct call_book *book, uint32_t connection,
                             const struct connection_end *end)
{
    if (connection == 0 || connection > book->connections.len)
        return -EINVAL;
    struct connection_row *row = &book->connections.data[connection - 1];
    if (end->service.len > 0 && name_keep(book, end->service, &row->info.service) < 0)
        return -ENOMEM;
    row->info.flags |= end->flags;
    row->closed_ns = end->closed_ns;
    row->requests = end->requests;
    row->bytes_out = end->bytes_out;
    row->bytes_in = end->bytes_in;
    row->dirty = true;
    return 0;
}

int call_book_request(struct call_book *book, const struct request_info *info, uint32_t *ret_id)
{
    struct request_key key = {(uint32_t)info->protocol,
                              (uint32_t)info->role,
                              info->thread,
                              info->stack,
                              info->peer,
                              info->text,
                              info->result};
    if (VEC_RESERVE(&book->requests, book->requests.len + 1) < 0)
        return -ENOMEM;
    uint32_t id;
    bool fresh;
    int r = key_id(&book->request_keys, (struct str){(const char *)&key, sizeof(key)},
                   CALL_BOOK_REQUESTS_MAX, &id, &fresh);
    if (r < 0)
        return r;
    if (fresh)
        book->requests.data[book->requests.len++] = (struct request_row){.info = *info,
                                                                         .dirty = true};
    *ret_id = id;
    return 0;
}

/* Four thousand million calls of a kind are some hours of a busy program: stay at the top
 * instead of beginning anew. */
static void buckets_add(uint32_t *to, const uint32_t *buckets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (__builtin_add_overflow(to[i], buckets[i], &to[i]))
            to[i] = UINT32_MAX;
}

/* The earliest beginning and the latest end; `counted` says that `to` has some already. */
static void span_add(bool counted, uint64_t *first_ns, uint64_t *last_ns, uint64_t first,
                     uint64_t last)
{
    if (!counted || first < *first_ns)
        *first_ns = first;
    *last_ns = MAX(*last_ns, last);
}

void call_tally_add(struct call_tally *to, const struct call_tally *tally)
{
    if (tally->count == 0)
        return;
    span_add(to->count > 0, &to->first_ns, &to->last_ns, tally->first_ns, tally->last_ns);
    to->count += tally->count;
    to->total_ns += tally->total_ns;
    to->max_ns = MAX(to->max_ns, tally->max_ns);
    to->bytes += tally->bytes;
    to->asked_bytes += tally->asked_bytes;
    to->partial += tally->partial;
    to->placed += tally->placed;
    to->sequential += tally->sequential;
    to->missed += tally->missed;
    to->missed_bytes += tally->missed_bytes;
    buckets_add(to->buckets, tally->buckets, WAIT_BUCKETS);
    buckets_add(to->sizes, tally->sizes, CALL_SIZES);
}

/* The depth is known before the first request is answered: it counts without one. */
void device_tally_add(struct device_tally *to, const struct device_tally *tally)
{
    to->depth_ns += tally->depth_ns;
    to->depth_max = MAX(to->depth_max, tally->depth_max);
    if (tally->count == 0)
        return;
    span_add(to->count > 0, &to->first_ns, &to->last_ns, tally->first_ns, tally->last_ns);
    to->count += tally->count;
    to->bytes += tally->bytes;
    to->total_ns += tally->total_ns;
    to->max_ns = MAX(to->max_ns, tally->max_ns);
    buckets_add(to->buckets, tally->buckets, WAIT_BUCKETS);
    buckets_add(to->sizes, tally->sizes, CALL_SIZES);
}

void request_tally_add(struct request_tally *to, const struct request_tally *tally)
{
    if (tally->count == 0)
        return;
    span_add(to->count > 0, &to->first_ns, &to->last_ns, tally->first_ns, tally->last_ns);
    to->count += tally->count;
    to->total_ns += tally->total_ns;
    to->max_ns = MAX(to->max_ns, tally->max_ns);
    to->first_byte_ns += tally->first_byte_ns;
    to->bytes_out += tally->bytes_out;
    to->bytes_in += tally->bytes_in;
    to->failed += tally->failed;
    to->reused += tally->reused;
    to->unanswered += tally->unanswered;
    to->parameters = MIN(to->parameters + tally->parameters, (uint64_t)REQUEST_PARAMETERS);
    buckets_add(to->buckets, tally->buckets, WAIT_BUCKETS);
}

int call_book_call_add(struct call_book *book, uint32_t call, const struct call_tally *tally)
{
    if (call == 0 || call > book->calls.len)
        return -EINVAL;
    call_tally_add(&book->calls.data[call - 1].tally, tally);
    book->calls.data[call - 1].dirty = true;
    return 0;
}

int call_book_device_add(struct call_book *book, uint32_t device, const struct device_tally *tally)
{
    if (device == 0 || device > book->devices.len)
        return -EINVAL;
    device_tally_add(&book->devices.data[device - 1].tally, tally);
    book->devices.data[device - 1].dirty = true;
    return 0;
}

int call_book_request_add(struct call_book *book, uint32_t request,
                          const struct request_tally *tally)
{
    if (request == 0 || request > book->requests.len)
        return -EINVAL;
    request_tally_add(&book->requests.data[request - 1].tally, tally);
    book->requests.data[request - 1].dirty = true;
    return 0;
}

bool call_book_event_settle(const struct call_book *book, struct request_event *event)
{
    if (event->request == 0 || event->request > book->requests.len || event->connection == 0 ||
        event->connection > book->connections.len || event->end_ns < event->start_ns ||
        event->end_ns > INT64_MAX)
        return false;
    if (event->first_byte_ns < event->start_ns || event->first_byte_ns > event->end_ns)
        event->first_byte_ns = event->end_ns;
    return true;
}

void call_book_deinit(struct call_book *book)
{
    intern_deinit(&book->call_keys);
    intern_deinit(&book->device_keys);
    intern_deinit(&book->request_keys);
    arena_deinit(&book->names);
    VEC_FREE(&book->calls);
    VEC_FREE(&book->devices);
    VEC_FREE(&book->connections);
    VEC_FREE(&book->requests);
}
