/* Locks of a recording, one row each, those that were waited for longest first.
 *
 * A lock is a futex or a lock of the kernel; words that belong to one glibc lock (the two of a
 * condition variable, those of an rwlock) are one. Waits that are no waits for a lock (joins,
 * idle workers) are left out and counted. */
#pragma once

#include "analyze/lock_sites.h"
#include "analyze/wait_classes.h"
#include "analyze/waits_load.h"

/* Stacks that are alike, by time. */
struct lock_stack {
    uint32_t stack;
    uint64_t count;
    uint64_t ns;
};

/* Of what is known of holders the first that explains the waits. */
enum lock_holders {
    LOCK_HOLDERS_NONE,
    LOCK_HOLDERS_HELD,      /* where it was released, by the time it was held */
    LOCK_HOLDERS_WAKER,     /* where it was handed over, by the time that others had waited */
    LOCK_HOLDERS_MEANWHILE, /* where those who handed it over were off the CPU meanwhile */
};

struct lock_row {
    uint32_t object; /* the first of it: "l12" to people */
    enum object_kind object_kind;
    uint64_t address;
    uint32_t process;  /* of a futex */
    const char *name;  /* its symbol, or "in queue_push (queue.c:41)", or its address */
    bool named;        /* by a symbol */
    uint32_t function; /* the first-use site: who waited for it longest; 0: not known */
    enum lock_kind kind;
    struct wait_tally waits;
    uint32_t threads; /* that waited */
    double mean_waiters;
    struct wait_tally holds; /* count 0: not known */
    double off_cpu_hold_pct; /* NaN: not known */
    struct lock_stack *waiters;
    size_t waiter_count;
    struct lock_stack *holders;
    size_t holder_count;
    enum lock_holders holders_are;
};

struct lock_table {
    struct lock_row *rows;
    size_t count;
    uint32_t *of_wait;                    /* by wait row: index + 1 into rows; 0: not of a lock */
    uint64_t wall_ns;                     /* of the recording */
    uint64_t left_out_count, left_out_ns; /* waits at futexes that are no locks, or idle */
};

/* 0 or -ENOMEM. `classes` may be NULL: then only joins are left out. */
MUST_USE int lock_table_build(struct arena *arena, const struct waits *waits,
                              const struct wait_classes *classes, struct lock_table *ret);

/* "l12" or "12" or a name; -ENOENT or -EINVAL (ambiguous) with the ids in `why`. */
MUST_USE int lock_table_choose(const struct lock_table *table, const char *text, size_t *ret,
                               struct why *why);
