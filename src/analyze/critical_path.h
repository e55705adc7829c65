/* The critical path: what the end of the command had to wait for, from its end to its beginning.
 *
 * Walked backwards from the end of the root's main thread. While a thread ran, the path is its
 * own time. Where it waited and a thread of the tree ended the wait, the path goes on in that
 * thread, at the moment of the wake-up, back to the beginning of the wait: a wait is charged to
 * what its waker did meanwhile, and that again to its wakers. Where nobody of the tree ended it
 * (disk, network, timer), the wait itself is on the path. Time between being woken and running
 * is run-queue time on the path. Waits that were only added up (too short to be told one by
 * one) are charged in proportion within the window they fell into. */
#pragma once

#include "analyze/waits_load.h"

enum path_what { PATH_RUNNING, PATH_RUNQ, PATH_WAIT };

struct path_step { /* in the order of time, without gaps, from the first to the last */
    enum path_what what;
    uint32_t thread;
    uint32_t wait; /* row of PATH_WAIT */
    uint64_t start_ns, end_ns;
};

struct path_share { /* steps that are alike, the largest first */
    enum path_what what;
    uint32_t thread;
    uint32_t wait; /* row; 0 for running and run queue */
    uint64_t ns;
    uint64_t steps;
};

struct critical_path {
    struct path_step *steps;
    size_t step_count;
    struct path_share *shares;
    size_t share_count;
    uint64_t ns;     /* sum of all */
    const char *na;  /* why there is none; NULL */
    uint64_t *waits; /* ns on the path by row id: also waits that were charged on to a waker */
};

/* 0 or -ENOMEM. The whole machine has no end to walk back from: `na`. */
MUST_USE int critical_path_build(struct arena *arena, const struct waits *waits,
                                 struct critical_path *ret);

/* What the end really hung on: where a wait leads to a waker, that one is followed on to its own
 * beginning, or to the wait before, and nobody comes back to who waited. Of two threads that work
 * at once and are joined the shorter first, only the longer is on it: making the other faster
 * would gain nothing. What is ranked by the time it could save uses this one. */
MUST_USE int critical_chain_build(struct arena *arena, const struct waits *waits,
                                  struct critical_path *ret);
