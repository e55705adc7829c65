/* Parts of locks, and what a holder did while others waited.
 *
 * Where nobody saw a lock being released, its holder is known by name only: it ended the wait.
 * But where it was off the CPU meanwhile was seen, if it was: that is where it held the lock. */
#include "analyze/lock_parts.h"

#include <errno.h>
#include <stdlib.h>

enum { LOOKS_MAX = 1 << 22 }; /* at events of holders, in all */

int lock_part_add(lock_parts *parts, uint32_t lock, uint32_t id, const struct wait_tally *tally)
{
    struct lock_part part = {lock, id, tally->count, tally->total_ns};
    return id ? VEC_PUSH(parts, part) : 0;
}

static int part_order(const void *a, const void *b)
{
    const struct lock_part *x = a, *y = b;
    if (x->lock != y->lock)
        return x->lock < y->lock ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static int part_order_ns(const void *a, const void *b)
{
    const struct lock_part *x = a, *y = b;
    if (x->lock != y->lock)
        return x->lock < y->lock ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

void lock_parts_merge(lock_parts *parts)
{
    if (parts->len == 0)
        return;
    qsort(parts->data, parts->len, sizeof(*parts->data), part_order);
    size_t kept = 0;
    for (size_t i = 1; i < parts->len; i++) {
        struct lock_part *last = &parts->data[kept];
        const struct lock_part *part = &parts->data[i];
        if (part->lock == last->lock && part->id == last->id) {
            last->count += part->count;
            last->ns += part->ns;
        } else {
            parts->data[++kept] = *part;
        }
    }
    parts->len = kept + 1;
    qsort(parts->data, parts->len, sizeof(*parts->data), part_order_ns);
}

int lock_parts_take(struct arena *arena, lock_parts *parts, uint32_t lock, struct lock_stack **ret,
                    size_t *ret_count)
{
    size_t first = parts->taken, end = first;
    while (end < parts->len && parts->data[end].lock == lock)
        end++;
    struct lock_stack *stacks = arena_alloc(arena, MAX(end - first, (size_t)1) * sizeof(*stacks));
    if (!stacks)
        return -ENOMEM;
    for (size_t i = first; i < end; i++)
        stacks[i - first] = (struct lock_stack){parts->data[i].id, parts->data[i].count,
                                                parts->data[i].ns};
    parts->taken = end;
    *ret = stacks;
    *ret_count = end - first;
    return 0;
}

/* Events by thread and time. */
struct seen {
    uint32_t thread, stack;
    uint64_t start_ns, end_ns;
};

static int seen_order(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* The first of a thread that begins at a time or later. */
static size_t seen_from(const struct seen *seen, size_t count, uint32_t thread, uint64_t time_ns)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool before = seen[middle].thread < thread ||
                      (seen[middle].thread == thread && seen[middle].start_ns < time_ns);
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

static int wait_look(const struct seen *seen, size_t count, const struct wait_event *event,
                     uint32_t waker, uint32_t lock, size_t *looks, lock_parts *parts)
{
    size_t at = seen_from(seen, count, waker, event->start_ns);
    /* Also the one that began before and went on; a thread's do not overlap. */
    if (at > 0 && seen[at - 1].thread == waker)
        at--;
    for (; at < count && seen[at].thread == waker && seen[at].start_ns < event->wake_ns; at++) {
        uint64_t start_ns = MAX(seen[at].start_ns, event->start_ns);
        uint64_t end_ns = MIN(seen[at].end_ns, event->wake_ns);
        if ((*looks)++ >= LOOKS_MAX)
            return 0;
        struct wait_tally tally = {.count = 1, .total_ns = end_ns - MIN(start_ns, end_ns)};
        int r = tally.total_ns > 0 ? lock_part_add(parts, lock, seen[at].stack, &tally) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static const struct wait_info *event_row(const struct waits *waits, size_t event)
{
    uint32_t row = waits->events[event].wait;
    return &waits->rows[row < waits->row_count ? row : 0].info;
}

int lock_meanwhile_find(const struct waits *waits, const uint32_t *of_wait, lock_parts *parts)
{
    struct seen *seen = calloc(MAX(waits->event_count, (size_t)1), sizeof(*seen));
    if (!seen)
        return -ENOMEM;
    for (size_t i = 0; i < waits->event_count; i++) {
        const struct wait_info *info = event_row(waits, i);
        seen[i] = (struct seen){info->thread, info->stack, waits->events[i].start_ns,
                                waits->events[i].wake_ns};
    }
    qsort(seen, waits->event_count, sizeof(*seen), seen_order);
    size_t looks = 0;
    int r = 0;
    for (size_t i = 0; i < waits->event_count && r == 0; i++) {
        const struct wait_event *event = &waits->events[i];
        const struct wait_info *info = event_row(waits, i);
        if (event->wait < waits->row_count && of_wait[event->wait] && info->waker_thread &&
            info->waker_stack == 0)
            r = wait_look(seen, waits->event_count, event, info->waker_thread,
                          of_wait[event->wait] - 1, &looks, parts);
    }
    free(seen);
    return r;
}
