/* What lock_table.c and lock_holders.c share: stacks and threads of locks, put together by time. */
#pragma once

#include "analyze/lock_table.h"
#include "base/vec.h"

struct lock_part {
    uint32_t lock; /* number, before they are put in order */
    uint32_t id;   /* of a stack or thread */
    uint64_t count, ns;
};
typedef struct {
    struct lock_part *data;
    size_t len, cap;
    size_t taken; /* by lock_parts_take() */
} lock_parts;

/* 0 or -ENOMEM; nothing for the id 0. */
MUST_USE int lock_part_add(lock_parts *parts, uint32_t lock, uint32_t id,
                           const struct wait_tally *tally);
/* One for each id of a lock; by lock, and of each the largest first. */
void lock_parts_merge(lock_parts *parts);
/* Those of one lock after another. 0 or -ENOMEM. */
MUST_USE int lock_parts_take(struct arena *arena, lock_parts *parts, uint32_t lock,
                             struct lock_stack **ret, size_t *ret_count);

/* Where those were off the CPU who then ended waits for a lock, and of whom no stack is known:
 * `of_wait` has the number of its lock plus one for each row. 0 or -ENOMEM. */
MUST_USE int lock_meanwhile_find(const struct waits *waits, const uint32_t *of_wait,
                                 lock_parts *parts);
