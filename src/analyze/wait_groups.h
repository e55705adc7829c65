/* Waits that are alike for people: one class, call and stack, whatever the thread, the object
 * and the waker. What `whyslow waits` ranks. */
#pragma once

#include "analyze/wait_classes.h"

struct wait_group {
    uint32_t id;    /* of its first row: the same for one recording */
    uint32_t row;   /* the heaviest one of its heaviest object: speaks for the group */
    uint32_t waker; /* a row of its heaviest waker's stack; 0: no waker is known */
    enum wait_class class;
    uint32_t threads, objects, wakers; /* different ones; wakers: their stacks */
    uint64_t path_ns;                  /* on the critical path */
    struct wait_tally tally;
};

struct wait_groups {
    struct wait_group *groups; /* the longest first */
    size_t count;
    uint32_t *of_row;       /* by row id: index into groups, plus one; 0: in none */
    struct wait_tally runq; /* the run queue's rows together */
    struct wait_tally idle; /* all that is idle */
};

/* Neither run queue, nor holds, nor what the kernel tells of its own locks beside the waits.
 * `path` may be NULL. 0 or -ENOMEM. */
MUST_USE int wait_groups_build(struct arena *arena, const struct waits *waits,
                               const struct wait_classes *classes, const struct critical_path *path,
                               struct wait_groups *ret);
