/* The line of honesty for waits: how they were seen, and how far that can be trusted.
 *
 * Whoever records writes the counters, zeros too: what has no counter was not measured and is
 * "n/a: reason".
 *
 *     waits.seen                         waits that were counted, with a stack or without
 *     waits.recognised, verified_slots   stacks the kernel knew again, and how much it compared
 *     waits.copied, read_again           stacks copied and walked; of these, those that stood
 *                                        where others are known, but were none of them
 *     waits.unlearnable                  stacks that cannot be known again by their slots
 *     waits.complete, truncated, end.*   stacks to their root, and those that are not, by cause
 *     waits.blocked_ns, observed_ns,     user tier: time off the CPU, and how much of it was
 *           alike_ns                     looked at, or is as seen nearby
 *     waits.own_ns, waits.kernel_ns      what it cost
 *     loss.wait_*                        what was lost, by cause
 *
 * Tier and why it is no higher one are in the document "waits". */
#pragma once

#include "analyze/honesty.h"

struct wait_honesty {
    struct honesty_figure seen, recognised, verified_slots, copied, read_again, unlearnable;
    struct honesty_figure complete, incomplete, lost, own_ns, kernel_ns;
    struct honesty_figure blocked_ns, observed_ns;
    const char *tier;       /* "kernel"; NULL: the recording does not say */
    const char *not_higher; /* NULL: it is the best, or nobody said why */
    bool finished;
};

/* Texts live in the arena. */
MUST_USE int wait_honesty_load(struct arena *arena, struct recording *recording,
                               struct wait_honesty *ret, struct why *why);

/* A map: tier, why_not_higher, waits, recognised_pct, verified_slots, copied, read_again,
 * unlearnable, complete_pct, observed_pct, lost, own_cpu_ms, kernel_ms. */
struct value wait_honesty_value(struct arena *arena, const struct wait_honesty *honesty);
/* The same in one sentence; "" when out of memory. */
const char *wait_honesty_line(struct arena *arena, const struct wait_honesty *honesty);
/* Both into a report's map: `honesty` for machines, `honesty_line` for people. */
void wait_honesty_put(struct arena *arena, struct value *root, const struct wait_honesty *honesty);
