/* Waits and objects, interned by their fields. */
#include "model/wait_book.h"

#include "base/macros.h"

#include <errno.h>
#include <string.h>

/* Compared as bytes, so every byte has a meaning. */
struct object_key {
    uint32_t kind, process;
    uint64_t key;
};

struct wait_key {
    uint32_t kind, thread, stack, waker_thread, waker_stack, object, flags, detail;
    int32_t syscall;
};

static int name_keep(struct wait_book *book, struct str name, struct str *ret)
{
    const char *copy = arena_dup_len(&book->names, name.data, name.len);
    if (arena_failed(&book->names))
        return -ENOMEM;
    *ret = (struct str){copy, name.len};
    return 0;
}

int wait_book_object(struct wait_book *book, const struct object_info *info, uint32_t *ret_id)
{
    struct object_key key = {(uint32_t)info->kind, info->process, info->key};
    struct str bytes = {(const char *)&key, sizeof(key)};
    if (book->objects.len >= WAIT_BOOK_OBJECTS_MAX && intern_find(&book->object_keys, bytes) == 0)
        return -E2BIG;
    bool fresh;
    uint32_t id;
    int r = intern_add(&book->object_keys, bytes, &id, &fresh);
    if (r < 0)
        return r;
    if (fresh) {
        struct object_row row = {.info = *info, .dirty = true};
        r = name_keep(book, info->name, &row.info.name);
        if (r < 0 || VEC_PUSH(&book->objects, row) < 0)
            return -ENOMEM;
        *ret_id = id;
        return 0;
    }
    struct object_row *row = &book->objects.data[id - 1];
    if ((row->info.flags | info->flags) != row->info.flags) {
        row->info.flags |= info->flags;
        row->dirty = true;
    }
    if (row->info.name.len == 0 && info->name.len > 0) {
        r = name_keep(book, info->name, &row->info.name);
        if (r < 0)
            return r;
        row->dirty = true;
    }
    *ret_id = id;
    return 0;
}

int wait_book_object_name(struct wait_book *book, uint32_t object, struct str name)
{
    if (object == 0 || object > book->objects.len)
        return -EINVAL;
    struct object_row *row = &book->objects.data[object - 1];
    int r = name_keep(book, name, &row->info.name);
    if (r == 0)
        row->dirty = true;
    return r;
}

int wait_book_wait(struct wait_book *book, const struct wait_info *info, uint32_t *ret_id)
{
    struct wait_key key = {
        .kind = (uint32_t)info->kind,
        .thread = info->thread,
        .stack = info->stack,
        .waker_thread = info->waker_thread,
        .waker_stack = info->waker_stack,
        .object = info->object,
        .flags = info->flags,
        .detail = info->detail,
        .syscall = info->syscall,
    };
    if (info->object > book->objects.len)
        return -EINVAL;
    struct str bytes = {(const char *)&key, sizeof(key)};
    if (book->waits.len >= WAIT_BOOK_WAITS_MAX && intern_find(&book->wait_keys, bytes) == 0)
        return -E2BIG;
    bool fresh;
    uint32_t id;
    int r = intern_add(&book->wait_keys, bytes, &id, &fresh);
    if (r < 0)
        return r;
    struct wait_row row = {.info = *info, .dirty = true};
    if (fresh && VEC_PUSH(&book->waits, row) < 0)
        return -ENOMEM;
    *ret_id = id;
    return 0;
}

void wait_tally_add(struct wait_tally *to, const struct wait_tally *tally)
{
    if (tally->count == 0)
        return;
    if (to->count == 0 || tally->first_ns < to->first_ns)
        to->first_ns = tally->first_ns;
    to->last_ns = MAX(to->last_ns, tally->last_ns);
    to->count += tally->count;
    to->total_ns += tally->total_ns;
    to->max_ns = MAX(to->max_ns, tally->max_ns);
    to->owned_ns += tally->owned_ns;
    to->owner_off_ns += tally->owner_off_ns;
    for (unsigned i = 0; i < WAIT_BUCKETS; i++)
        to->buckets[i] += tally->buckets[i];
}

void wait_tally_one(struct wait_tally *to, uint64_t start_ns, uint64_t ns)
{
    struct wait_tally one = {
        .count = 1,
        .total_ns = ns,
        .max_ns = ns,
        .first_ns = start_ns,
        .last_ns = start_ns + ns,
    };
    one.buckets[wait_bucket(ns)] = 1;
    wait_tally_add(to, &one);
}

int wait_book_add(struct wait_book *book, uint32_t wait, const struct wait_tally *tally)
{
    if (wait == 0 || wait > book->waits.len)
        return -EINVAL;
    wait_tally_add(&book->waits.data[wait - 1].tally, tally);
    book->waits.data[wait - 1].dirty = true;
    return 0;
}

bool wait_event_settle(struct wait_event *event)
{
    if (event->run_ns < event->start_ns || event->run_ns > INT64_MAX)
        return false;
    if (event->wake_ns < event->start_ns || event->wake_ns > event->run_ns)
        event->wake_ns = event->run_ns;
    return true;
}

void wait_book_deinit(struct wait_book *book)
{
    intern_deinit(&book->object_keys);
    intern_deinit(&book->wait_keys);
    arena_deinit(&book->names);
    VEC_FREE(&book->objects);
    VEC_FREE(&book->waits);
}
