/* Records of waits and holds become rows: added up here, told to the sink now and then. */
#include "base/clock.h"
#include "collect/locks_user_parts.h"
#include "model/wait_book.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONG_NS NS_PER_MS /* waits from here on are told one by one */

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

/* The target says who: believed if it is a thread of the same process, now or just before. */
static bool is_thread(const struct collector *c, const struct lock_place *place, uint32_t tid)
{
    if (tid == 0 || tid > INT32_MAX || tid == place->tid)
        return false;
    return map_u64_find(&c->waited, (uint64_t)place->pid << 32 | tid) ||
           syscall(SYS_tgkill, (int)place->pid, (int)tid, 0) == 0 || errno == EPERM;
}

static int place_ids(struct collector *c, struct lock_place *place, uint64_t time_ns)
{
    if (place->thread)
        return 0;
    int r = stacks_process(c->stacks, time_ns, (int)place->pid, &place->process);
    return r < 0 ? r
                 : stacks_thread(c->stacks, time_ns, (int)place->pid, (int)place->tid,
                                 &place->thread);
}

static int row_make(struct collector *c, struct lock_place *place, const struct preload_wait *wait,
                    uint32_t stack, bool is_open, uint32_t *ret_wait)
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
    int r = place_ids(c, place, wait->start_ns);
    if (r < 0)
        return r;
    info.thread = place->thread;
    object.process = place->process;
    r = sink_object(c->sink, &object, &info.object);
    if (r == 0 && !(wait->record.flags & PRELOAD_EXPIRED) && is_thread(c, place, wait->other))
        r = stacks_thread(c->stacks, wait->start_ns, (int)place->pid, (int)wait->other,
                          &info.waker_thread);
    return r < 0 ? r : sink_wait(c->sink, &info, ret_wait);
}

static int row_flush(struct collector *c, const struct lock_place *place, struct lock_row *row)
{
    if (row->tally.count == 0)
        return 0;
    int r = sink_wait_add(c->sink, row->wait, &row->tally);
    if (r == 0 && c->series && row->kind == PRELOAD_WAIT && row->lock != PRELOAD_SPIN &&
        row->tally.total_ns > 0) {
        struct sample sample = {
            .series = c->series,
            .thread = place->thread,
            .stack = row->stack,
            .time_ns = row->tally.last_ns,
            .weight = row->tally.total_ns,
        };
        r = sink_sample(c->sink, &sample);
    }
    row->tally = (struct wait_tally){0};
    return r;
}

int lock_rows_flush(struct collector *c, struct lock_place *place)
{
    int failed = 0;
    for (size_t i = 0; place->rows && i < LOCKS_ROWS; i++) {
        int r = row_flush(c, place, &place->rows[i]);
        if (failed == 0)
            failed = r;
    }
    return failed;
}

static bool row_is(const struct lock_row *row, const struct preload_wait *wait, uint32_t stack)
{
    return row->kind == wait->record.kind && row->lock == wait->record.lock &&
           row->flags == wait->record.flags && row->stack == stack && row->other == wait->other &&
           row->object == wait->object;
}

static size_t row_place(const struct preload_wait *wait, uint32_t stack)
{
    uint64_t key = wait->object ^ (uint64_t)stack << 20 ^ (uint64_t)wait->other << 40 ^
                   wait->record.kind;
    return (size_t)(hash_u64(key) % LOCKS_ROWS);
}

static int row_find(struct collector *c, struct lock_place *place, const struct preload_wait *wait,
                    uint32_t stack, struct lock_row **ret)
{
    if (!place->rows)
        place->rows = calloc(LOCKS_ROWS, sizeof(*place->rows));
    if (!place->rows)
        return -ENOMEM;
    struct lock_row *row = &place->rows[row_place(wait, stack)];
    *ret = row;
    if (row_is(row, wait, stack))
        return 0;
    int r = row_flush(c, place, row);
    if (r < 0)
        return r;
    struct lock_row fresh = {
        .kind = wait->record.kind,
        .lock = wait->record.lock,
        .flags = wait->record.flags,
        .stack = stack,
        .other = wait->other,
        .object = wait->object,
    };
    row->kind = 0;
    r = row_make(c, place, wait, stack, false, &fresh.wait);
    if (r == 0)
        *row = fresh;
    return r;
}

int lock_row_add(struct collector *c, struct lock_place *place, const struct preload_wait *wait,
                 bool is_open)
{
    uint64_t ns = wait->end_ns - wait->start_ns;
    uint32_t stack = 0, id = 0;
    int r = lock_stack_id(c, place, wait->stack, wait->end_ns, &stack);
    if (r < 0)
        return r;
    if (is_open) {
        struct wait_tally one = {0};
        wait_tally_one(&one, wait->start_ns, ns);
        r = row_make(c, place, wait, stack, true, &id);
        if (r == 0)
            r = sink_wait_add(c->sink, id, &one);
    } else {
        struct lock_row *row;
        r = row_find(c, place, wait, stack, &row);
        if (r == 0) {
            wait_tally_one(&row->tally, wait->start_ns, ns);
            id = row->wait;
        }
    }
    if (r < 0)
        return r;
    if (wait->record.kind == PRELOAD_HOLD) {
        c->holds++;
        return 0;
    }
    c->waits++;
    c->wait_ns += ns;
    if (ns < LONG_NS)
        return 0;
    struct wait_event event = {
        .wait = id, .start_ns = wait->start_ns, .wake_ns = wait->end_ns, .run_ns = wait->end_ns};
    return sink_wait_event(c->sink, &event);
}
