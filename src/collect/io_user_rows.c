/* Calls, told one by one or added up in the target, become rows. */
#include "collect/io_user_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SAME(name) _Static_assert((int)PRELOAD_CALL_##name == (int)CALL_##name, "format and model")
SAME(SYNC);
SAME(DIRECT);
SAME(NONBLOCK);
SAME(CREATES);
SAME(SIZES);

enum { FLAGS = CALL_SYNC | CALL_DIRECT | CALL_NONBLOCK | CALL_CREATES };

static int row_make(struct collector *c, struct preload_place *place,
                    const struct preload_call_key *key, uint64_t time_ns, uint32_t stack,
                    uint32_t *ret_call)
{
    struct call_info info = {
        .stack = stack,
        .syscall = key->call,
        .error = key->error,
        .flags = key->flags & FLAGS,
    };
    int r = preload_place_ids(&c->places, place, time_ns);
    if (r < 0)
        return r;
    info.thread = place->thread;
    r = io_user_object(c, place, key->object, &info.object);
    if (r < 0)
        return r;
    return sink_call(c->sink, &info, ret_call);
}

/* Calls that were added up under their name alone are; so is what has a path or an fd, but no
 * number: by which name an fd goes by now is only likely to be the right one. */
static bool is_unattributed(const struct preload_call_key *key, uint32_t stack, uint32_t object)
{
    return key->flags & (PRELOAD_CALL_FOLDED | PRELOAD_CALL_NAMELESS) || stack == 0 ||
           (key->object != 0 && (object == 0 || key->object >> PRELOAD_FD_BITS == 0));
}

static int row_add(struct collector *c, const struct preload_place *place, uint32_t call,
                   uint32_t stack, const struct preload_call_key *key,
                   const struct call_tally *tally)
{
    int r = sink_call_add(c->sink, call, tally);
    if (r < 0)
        return r;
    uint32_t object = io_user_object_known(c, key->object);
    files_look_used(c->look, object, tally->total_ns, tally->bytes);
    c->calls += tally->count;
    c->unattributed += is_unattributed(key, stack, object) ? tally->count : 0;
    /* The kernel counts a call once the fd has been found. */
    if (key->flags & PRELOAD_CALL_READS && key->error != EBADF) {
        c->reads += tally->count;
        c->read_bytes += tally->bytes;
    }
    if (key->flags & PRELOAD_CALL_WRITES && key->error != EBADF) {
        c->writes += tally->count;
        c->write_bytes += tally->bytes;
    }
    if (tally->total_ns == 0)
        return 0;
    struct sample sample = {
        .series = c->series,
        .thread = place->thread,
        .stack = stack,
        .time_ns = tally->last_ns,
        .weight = tally->total_ns,
    };
    return sink_sample(c->sink, &sample);
}

static void tally_one(const struct preload_call *call, struct call_tally *ret)
{
    uint64_t ns = call->end_ns - call->start_ns;
    *ret = (struct call_tally){
        .count = 1,
        .total_ns = ns,
        .max_ns = ns,
        .first_ns = call->start_ns,
        .last_ns = call->end_ns,
        .bytes = call->bytes,
        .asked_bytes = call->asked,
        .partial = call->bytes > 0 && call->bytes < call->asked,
        .placed = call->key.flags & PRELOAD_CALL_PLACED ? 1 : 0,
        .sequential = call->key.flags & PRELOAD_CALL_SEQUENTIAL ? 1 : 0,
    };
    ret->buckets[wait_bucket(ns)] = 1;
    ret->sizes[call_size(call->bytes)] = 1;
}

static bool bytes_make_sense(const struct call_tally *tally)
{
    return tally->sequential <= tally->placed && tally->placed <= tally->count &&
           tally->partial <= tally->count;
}

int io_user_call_take(struct collector *c, struct preload_place *place,
                      const struct preload_call *call)
{
    struct call_tally one;
    uint32_t stack = 0, id = 0;
    tally_one(call, &one);
    if (!bytes_make_sense(&one))
        return -EBADMSG;
    int r = preload_stack_id(&c->places, place, call->key.stack, call->end_ns, &stack);
    if (r == 0)
        r = row_make(c, place, &call->key, call->start_ns, stack, &id);
    return r < 0 ? r : row_add(c, place, id, stack, &call->key, &one);
}

static bool is_same(const struct preload_call_key *a, const struct preload_call_key *b)
{
    return a->object == b->object && a->stack == b->stack && a->call == b->call &&
           a->error == b->error && a->flags == b->flags;
}

/* What came since the last reading. False: the target has written nonsense. */
static bool sum_since(const struct preload_call_row *now, const struct preload_call_row *before,
                      struct call_tally *ret)
{
    _Static_assert((int)PRELOAD_BUCKETS == (int)WAIT_BUCKETS, "the same buckets");
    uint64_t in_buckets = 0, in_sizes = 0;
    *ret = (struct call_tally){
        .count = now->count - before->count,
        .total_ns = now->total_ns - before->total_ns,
        .max_ns = now->max_ns,
        .first_ns = now->first_ns,
        .last_ns = now->last_ns,
        .bytes = now->bytes - before->bytes,
        .asked_bytes = now->asked - before->asked,
        .partial = now->partial - before->partial,
        .placed = now->placed - before->placed,
        .sequential = now->sequential - before->sequential,
    };
    for (size_t i = 0; i < PRELOAD_BUCKETS; i++) {
        ret->buckets[i] = now->buckets[i] - before->buckets[i];
        in_buckets += ret->buckets[i];
    }
    for (size_t i = 0; i < PRELOAD_CALL_SIZES; i++) {
        ret->sizes[i] = now->sizes[i] - before->sizes[i];
        in_sizes += ret->sizes[i];
    }
    return in_buckets == ret->count && in_sizes == ret->count && now->count >= before->count &&
           now->total_ns >= before->total_ns && now->bytes >= before->bytes &&
           now->first_ns <= now->last_ns && bytes_make_sense(ret);
}

static int sum_take(struct collector *c, struct preload_place *place,
                    struct preload_call_row *shared, struct io_user_sum *sum)
{
    struct preload_call_row now;
    struct call_tally tally;
    uint32_t stack = 0;
    if (!preload_call_row_read(shared, &now))
        return 0;
    if (preload_stack_is_coming(place, now.key.stack))
        return -EAGAIN;
    if (!is_same(&now.key, &sum->row.key) || now.count < sum->row.count)
        *sum = (struct io_user_sum){0};
    if (!sum_since(&now, &sum->row, &tally)) {
        place->ring.broken = true;
        return -EBADMSG;
    }
    __atomic_store_n(&shared->taken, now.count, __ATOMIC_RELEASE);
    sum->row = now;
    int r = preload_stack_id(&c->places, place, now.key.stack, now.last_ns, &stack);
    if (r == 0 && (sum->call == 0 || stack != sum->stack))
        r = row_make(c, place, &now.key, now.first_ns, stack, &sum->call);
    if (r < 0)
        return r;
    sum->stack = stack;
    return row_add(c, place, sum->call, stack, &now.key, &tally);
}

int io_user_sums_take(struct collector *c, struct preload_place *place)
{
    size_t index = (size_t)(place - c->places.places);
    struct preload_io_thread *shared = preload_io_place(c->preload, index);
    struct io_user_sum **sums = &c->sums[index];
    uint64_t added = __atomic_load_n(&shared->thread.added, __ATOMIC_ACQUIRE);
    int failed = 0;
    if (added == place->added || place->ring.broken)
        return 0;
    if (!*sums)
        *sums = calloc(PRELOAD_CALL_ROWS, sizeof(**sums));
    if (!*sums)
        return -ENOMEM;
    place->added = added;
    for (size_t i = 0; i < PRELOAD_CALL_ROWS && !place->ring.broken; i++) {
        int r = sum_take(c, place, &shared->rows[i], &(*sums)[i]);
        if (r == -EAGAIN)
            place->added = added - 1; /* look again, though nothing is new */
        else if (failed == 0)
            failed = r;
    }
    return failed;
}

/* Only what was used: the rest has never become memory. */
void io_user_sums_clear(struct collector *c, struct preload_place *place)
{
    size_t index = (size_t)(place - c->places.places);
    struct preload_io_thread *shared = preload_io_place(c->preload, index);
    memset(shared->row_tags, 0, sizeof(shared->row_tags));
    for (size_t i = 0; i < PRELOAD_CALL_ROWS; i++)
        if (shared->rows[i].used)
            memset(&shared->rows[i], 0, sizeof(shared->rows[i]));
    free(c->sums[index]);
    c->sums[index] = NULL;
}

void io_user_sums_deinit(struct collector *c)
{
    for (size_t i = 0; c->sums && i < PRELOAD_THREADS_MAX; i++)
        free(c->sums[i]);
    free(c->sums);
}
