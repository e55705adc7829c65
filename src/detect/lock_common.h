/* What one lock costs a run, and what a run without it would take: shared by the detectors of
 * locks.
 *
 * A lock's waits are not what mending it would save. Without it the work that was done under it is
 * still done, side by side now, on the CPUs there are. So the run is replayed without the waits for
 * it and the calls they take (analyze/what_if.h), and what that gains is bounded by the time in
 * which it was waited for (the window), less the least in which what was computed in it can be
 * computed on all CPUs. */
#pragma once

#include "detect/herd.h"

enum { LOCKS_LOOKED_AT_MAX = 8 }; /* of those that were waited for longest */

#define LOCK_DELAY_SHARE_MIN  0.10 /* the same with the way to a CPU afterwards: enough, too */
#define LOCK_THREAD_SHARE_MIN 0.02 /* waited, of the time of the threads that wanted it */
#define LOCK_PATH_SHARE_MIN   0.05 /* recoverable: enough with fewer waits than these */
#define LOCK_WAITERS_MIN      2.0  /* mean: from here on it is a convoy */
#define LOCK_OFF_CPU_PCT_MIN  20.0 /* of the hold: from here on it is I/O under a lock */
enum { LOCK_WAITS_MIN = 100 };

struct lock_look {
    const struct lock_row *row;
    uint32_t index;            /* into evidence->locks */
    uint64_t start_ns, end_ns; /* the window: of the recording */
    double wait_share;         /* waited, of the lives of the threads that wanted it */
    double thread_share;       /* the same with the way to a CPU */
    double mean_waiters;       /* in the window */
    double wait_mean_ns;       /* of the recording */
    double hold_mean_ns;       /* NaN: not known */
    uint64_t calls_samples;    /* CPU samples in its calls, taking and handing over */
    double busy_cpus;          /* of the run in the window, by CPU samples; NaN */
    uint64_t samples;          /* CPU samples in the window */
    /* Nanoseconds of the baseline; NaN where it is waited for too little to be looked at. */
    double window_ns;
    double gain_ns;  /* by the replay */
    double least_ns; /* all that was computed in the window, over all CPUs */
    struct estimate recoverable;
    struct place wanted; /* by whom, longest */
    struct place held;   /* where, longest; empty: not known */
    /* What threads waited for where they have the lock, or want it: not for a lock. */
    double under_ns; /* of the recording */
    uint64_t under_count;
    uint32_t under_row; /* the longest of these waits; 0: none */
};

enum lock_trouble {
    LOCK_FINE, /* `reason` says why */
    LOCK_IS_HOT,
    LOCK_IS_CONVOY,
    LOCK_HAS_IO,
    LOCK_OF_HERD, /* who is woken with many others wants it back: thundering_herd */
};

/* False: not a lock that one has and others wait for (a condition, a barrier), or out of memory,
 * which the arena tells. */
bool lock_look(const struct evidence *evidence, struct arena *arena, uint32_t index,
               struct lock_look *ret);
/* What it is, by the thresholds above. */
enum lock_trouble lock_judge(struct arena *arena, const struct lock_look *look,
                             const struct evidence *evidence, const struct herd *herd,
                             const char **ret_reason);

/* The detector that is asked for one of these troubles: a finding for each lock that has it, and
 * for the first that has another, or none, a dismissal. `describe` writes title, chain and advice.
 */
typedef void lock_describe(const struct evidence *evidence, const struct lock_look *look,
                           struct findings *findings, struct finding *finding);
MUST_USE int locks_judge(const struct evidence *evidence, const struct detector *self,
                         enum lock_trouble trouble, lock_describe *describe, struct findings *ret);

/* "12.5 ms". In the arena. */
const char *time_text(struct arena *arena, double ns);
const char *count_text(struct arena *arena, uint64_t count); /* "2,000" */
/* "l3", and the lock's name for a sentence: "table_mutex", "the lock in push (queue.c:41)". */
const char *lock_id(struct arena *arena, const struct lock_look *look);
const char *lock_name(struct arena *arena, const struct lock_look *look);
