/* What threads tell of waits and holds, one by one or added up, becomes rows. */
#include "collect/locks_user_parts.h"
#include "model/wait_book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static uint32_t futex_detail(const struct preload_wait *wait)
{
    switch (wait->record.lock) {
    case PRELOAD_MUTEX:
        return wait->record.flags & PRELOAD_PRIORITY ? WAIT_FUTEX_PI : WAIT_FUTEX_VALUE_2;
    case PRELOAD_BARRIER:
        return WAIT_FUTEX_VALUE_0;
    case PRELOAD_SPIN:
        return WAIT_FUTEX_OTHER;
    default:
        return WAIT_FUTEX_BITSET;
    }
}

int lock_thread_note(struct collector *c, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
    uint32_t thread;
    if (tid > INT32_MAX || !stacks_has_thread(c->stacks, (int)pid, (int)tid))
        return 0;
    int r = stacks_thread(c->stacks, time_ns, (int)pid, (int)tid, &thread);
    if (r < 0)
        return r;
    if (c->threads.len >= LOCKS_THREADS_MAX)
        return -E2BIG;
    uint64_t *known = map_u64_at(&c->threads, (uint64_t)pid << 32 | tid, NULL);
    if (!known)
        return -ENOMEM;
    *known = thread;
    return 0;
}

/* The target says who: believed if there is such a thread in the same process, or was. */
static int thread_named(struct collector *c, const struct preload_place *place, uint32_t tid,
                        uint64_t time_ns, uint32_t *ret_thread)
{
    if (tid == 0 || tid == place->tid)
        return 0;
    int r = lock_thread_note(c, place->pid, tid, time_ns);
    const uint64_t *known = map_u64_find(&c->threads, (uint64_t)place->pid << 32 | tid);
    if (r == 0 && known)
        *ret_thread = (uint32_t)*known;
    return r;
}

static int row_make(struct collector *c, struct preload_place *place,
                    const struct preload_wait *wait, uint32_t stack, bool is_open,
                    uint32_t *ret_wait)
{
    struct object_info object = {.kind = OBJECT_FUTEX, .key = wait->object};
    struct wait_info info = {
        .kind = wait->record.kind == PRELOAD_HOLD ? WAIT_HOLD : WAIT_BLOCKED,
        .stack = stack,
        .syscall = wait->record.lock == PRELOAD_SPIN || wait->record.kind == PRELOAD_HOLD
                       ? WAIT_SYSCALL_NONE
                       : SYS_futex,
        .flags = (wait->record.flags & PRELOAD_LIMITED ? WAIT_LIMITED : 0u) |
                 (wait->record.flags & PRELOAD_EXPIRED ? WAIT_BY_INTERRUPT : 0u) |
                 (wait->record.flags & PRELOAD_SAMPLED ? WAIT_SAMPLED : 0u) |
                 (is_open ? WAIT_OPEN : 0u),
        .detail = wait->record.kind == PRELOAD_HOLD ? 0 : futex_detail(wait),
    };
    int r = preload_place_ids(&c->places, place, wait->start_ns);
    if (r < 0)
        return r;
    info.thread = place->thread;
    object.process = place->process;
    r = sink_object(c->sink, &object, &info.object);
    if (r == 0)
        r = lock_names_see(c->names, c->stacks, (int)place->pid, wait->object, info.object);
    if (r == 0 && !(wait->record.flags & PRELOAD_EXPIRED))
        r = thread_named(c, place, wait->other, wait->start_ns, &info.waker_thread);
    return r < 0 ? r : sink_wait(c->sink, &info, ret_wait);
}

static int row_add(struct collector *c, const struct preload_place *place, uint32_t wait,
                   uint32_t stack, const struct preload_record *record,
                   const struct wait_tally *tally)
{
    int r = sink_wait_add(c->sink, wait, tally);
    if (r < 0)
        return r;
    if (record->kind == PRELOAD_HOLD) {
        c->holds += tally->count;
        return 0;
    }
    c->waits += tally->count;
    c->wait_ns += tally->total_ns;
    if (!c->series || record->lock == PRELOAD_SPIN || tally->total_ns == 0)
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

/* Who had the lock meanwhile, and how much of it off the CPU: of a hold the thread itself, of a
 * wait the owner seen at its beginning. */
static void tally_owned(const struct collector *c, const struct preload_place *place,
                        const struct preload_wait *wait, struct wait_tally *tally)
{
    bool has_owner = wait->record.lock == PRELOAD_MUTEX || wait->record.lock == PRELOAD_READ ||
                     wait->record.lock == PRELOAD_WRITE;
    uint32_t owner = wait->record.kind == PRELOAD_HOLD ? place->tid : has_owner ? wait->other : 0;
    uint64_t off_ns = 0;
    if (owner == 0 || owner > INT32_MAX ||
        !lock_offs_between(&c->offs, (int)owner, wait->start_ns, wait->end_ns, &off_ns))
        return;
    tally->owned_ns = tally->total_ns;
    tally->owner_off_ns = off_ns;
}

int lock_wait_take(struct collector *c, struct preload_place *place,
                   const struct preload_wait *wait, bool is_open)
{
    uint64_t ns = wait->end_ns - wait->start_ns;
    uint32_t stack = 0, id = 0;
    struct wait_tally one = {0};
    int r = preload_stack_id(&c->places, place, wait->stack, wait->end_ns, &stack);
    if (r == 0)
        r = row_make(c, place, wait, stack, is_open, &id);
    if (r < 0)
        return r;
    wait_tally_one(&one, wait->start_ns, ns);
    tally_owned(c, place, wait, &one);
    r = row_add(c, place, id, stack, &wait->record, &one);
    if (r < 0 || wait->record.kind == PRELOAD_HOLD || ns < PRELOAD_LONG_NS)
        return r;
    struct wait_event event = {
        .wait = id, .start_ns = wait->start_ns, .wake_ns = wait->end_ns, .run_ns = wait->end_ns};
    return sink_wait_event(c->sink, &event);
}

static bool is_same(const struct preload_row *a, const struct preload_row *b)
{
    return a->object == b->object && a->stack == b->stack && a->other == b->other &&
           a->kind == b->kind && a->lock == b->lock && a->flags == b->flags;
}

/* What came since the last reading. False: the target has written nonsense. */
static bool sum_since(const struct preload_row *now, const struct preload_row *before,
                      struct wait_tally *ret)
{
    _Static_assert((int)PRELOAD_BUCKETS == (int)WAIT_BUCKETS, "the same buckets");
    uint64_t in_buckets = 0;
    *ret = (struct wait_tally){
        .count = now->count - before->count,
        .total_ns = now->total_ns - before->total_ns,
        .max_ns = now->max_ns,
        .first_ns = now->first_ns,
        .last_ns = now->last_ns,
    };
    for (size_t i = 0; i < PRELOAD_BUCKETS; i++) {
        ret->buckets[i] = now->buckets[i] - before->buckets[i];
        in_buckets += ret->buckets[i];
    }
    return in_buckets == ret->count && now->count >= before->count &&
           now->total_ns >= before->total_ns && now->first_ns <= now->last_ns;
}

static int sum_take(struct collector *c, struct preload_place *place, struct preload_row *shared,
                    struct lock_sum *sum)
{
    struct preload_row now;
    struct wait_tally tally;
    uint32_t stack = 0;
    if (!preload_row_read(shared, &now))
        return 0;
    if (preload_stack_is_coming(place, now.stack))
        return -EAGAIN;
    if (!is_same(&now, &sum->row))
        *sum = (struct lock_sum){0};
    if (!sum_since(&now, &sum->row, &tally)) {
        place->ring.broken = true;
        return -EBADMSG;
    }
    if (c->switches && now.kind == PRELOAD_HOLD && !(now.flags & PRELOAD_SUMMED))
        tally.owned_ns = tally.total_ns; /* too short to go off the CPU and come back */
    __atomic_store_n(&shared->taken, now.count, __ATOMIC_RELEASE);
    sum->row = now;
    struct preload_wait like = {
        .record = {.kind = now.kind, .lock = now.lock, .flags = now.flags},
        .object = now.object,
        .start_ns = now.first_ns,
        .end_ns = now.last_ns,
        .other = now.other,
        .stack = now.stack,
    };
    int r = preload_stack_id(&c->places, place, now.stack, now.last_ns, &stack);
    if (r == 0 && (sum->wait == 0 || stack != sum->stack))
        r = row_make(c, place, &like, stack, false, &sum->wait);
    if (r < 0)
        return r;
    sum->stack = stack;
    return row_add(c, place, sum->wait, stack, &like.record, &tally);
}

int lock_sums_take(struct collector *c, struct preload_place *place)
{
    struct preload_thread *shared = place->ring.shared;
    struct lock_sum **sums = &c->sums[place - c->places.places];
    uint64_t added = __atomic_load_n(&shared->added, __ATOMIC_ACQUIRE);
    int failed = 0;
    if (added == place->added || place->ring.broken)
        return 0;
    if (!*sums)
        *sums = calloc(ARRAY_SIZE(shared->rows), sizeof(**sums));
    if (!*sums)
        return -ENOMEM;
    place->added = added;
    for (size_t i = 0; i < ARRAY_SIZE(shared->rows) && !place->ring.broken; i++) {
        int r = sum_take(c, place, &shared->rows[i], &(*sums)[i]);
        if (r == -EAGAIN)
            place->added = added - 1; /* look again, though nothing is new */
        else if (failed == 0)
            failed = r;
    }
    return failed;
}

void lock_sums_clear(struct collector *c, struct preload_place *place)
{
    struct preload_thread *shared = place->ring.shared;
    struct lock_sum *sums = c->sums[place - c->places.places];
    memset(shared->rows, 0, sizeof(shared->rows));
    if (sums)
        memset(sums, 0, ARRAY_SIZE(shared->rows) * sizeof(*sums));
}
