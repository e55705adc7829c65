/* The line of honesty for waits: how they were seen, and how far that can be trusted.
 *
 * Whoever records writes the counters, zeros too: what has no counter was not measured and is
 * "n/a: reason".
 *
 *     waits.seen                  waits that were counted, with a stack or without
 *     waits.stacks_recognised     stacks the kernel knew again,
 *           slots_verified        and how much it compared for that
 *     waits.stacks_copied         stacks copied to be walked; of these,
 *           stacks_read_again     those that stood where others are known, but were none of them
 *     waits.stacks_unlearnable    stacks that cannot be known again by their slots
 *     waits.stacks_walked,        stacks walked, and those that reached their root; without the
 *           stacks_complete       first: complete, truncated and end.* make up all
 *     waits.blocked_ns,           user tier: time off the CPU, and how much of it was looked at,
 *           observed_ns, alike_ns or is as seen nearby
 *     waits.own_ns, kernel_ns     what it cost
 *     loss.wait_*, waits.lost.*   what was lost, by cause: whole waits, or parts of them (parts[]
 *                                 in wait_honesty.c)
 *
 * The user tier has some of these without "stacks_".
 *
 * Tier and why it is no higher one are in the document "waits", why no holds were timed in
 * "locks". */
#pragma once

#include "analyze/honesty.h"

struct wait_honesty {
    struct honesty_figure seen, recognised, verified_slots, copied, read_again, unlearnable;
    struct honesty_figure walked, complete, incomplete, own_ns, kernel_ns;
    struct honesty_figure lost,
        parts_lost; /* waits; waits without their stack, waker or own times */
    struct honesty_figure blocked_ns, observed_ns, alike_ns;
    const char *tier;       /* "kernel"; NULL: the recording does not say */
    const char *not_higher; /* NULL: it is the best, or nobody said why */
    const char *holds_na;   /* why holds of locks were not timed; NULL: they were, or nobody said */
    bool finished;
};

/* Texts live in the arena. */
MUST_USE int wait_honesty_load(struct arena *arena, struct recording *recording,
                               struct wait_honesty *ret, struct why *why);

/* A map: tier, why_not_higher, waits, recognised_pct, verified_slots, copied, read_again,
 * unlearnable, complete_pct, observed_pct, alike_pct, lost, parts_lost, own_cpu_ms, kernel_ms. */
struct value wait_honesty_value(struct arena *arena, const struct wait_honesty *honesty);
/* The same in one sentence; "" when out of memory. */
const char *wait_honesty_line(struct arena *arena, const struct wait_honesty *honesty);
/* Both into a report's map: `honesty` for machines, `honesty_line` for people. */
void wait_honesty_put(struct arena *arena, struct value *root, const struct wait_honesty *honesty);
