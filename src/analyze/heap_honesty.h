/* The line of honesty for the heap: how calls were counted, how far that can be trusted, and what
 * could not be seen at all.
 *
 * Whoever records writes the counters, zeros too: what has no counter was not measured and is
 * "n/a: reason".
 *
 *     heap.processes, heap.threads    that were counted
 *     heap.stacks, heap.incomplete    different ones, and those that do not reach their root
 *     heap.stacks_walked,             the same of the kernel tier: stacks that were new
 *        stacks_complete
 *     heap.frames, heap.recognised    frames walked anew, and found unchanged
 *     heap.stacks_copied,             the same of the kernel tier: whole stacks
 *        stacks_recognised
 *     heap.lost, heap.lost.*          calls that were counted nowhere, or without their stack
 *     heap.no_cell, heap.no_entry     calls for which there was no room
 *     heap.refused, heap.uncovered    processes and programs that were not counted
 *     heap.windows_unmatched,         processes whose counts could not be used
 *        heap.malformed
 *     heap.unseen_frees               of memory that was not seen allocated
 *     heap.missed_frees               memory that was handed out again without a free
 *     heap.inherited_frees            of memory that a fork left to a process
 *     heap.failed                     calls that returned NULL
 *     heap.own_ns, heap.kernel_ns     what it cost whyslow itself, and in the kernel
 *
 * The document "heap" has "tier", "why_not_higher", "mode", "sample_bytes" (0: every call),
 * "temporary_within", "cost_ns_per_call" and "na", a list of {"what", "reason"}. */
#pragma once

#include "analyze/honesty.h"
#include "analyze/io_facts.h"

struct heap_honesty {
    struct honesty_figure processes, threads, stacks, incomplete, walked, complete;
    struct honesty_figure fresh, recognised; /* frames, or stacks */
    struct honesty_figure lost, stacks_lost, no_cell, no_entry, refused, uncovered, unread;
    struct honesty_figure unseen_frees, missed_frees, inherited_frees, failed;
    struct honesty_figure own_ns, kernel_ns, call_ns, rusage_ns;
    struct io_facts facts;     /* tier, why not higher, what was not seen */
    uint64_t sample_bytes;     /* 0: every call */
    uint64_t temporary_within; /* 0: the recording does not say */
    bool mode_known;
    bool finished;
};

/* Texts live in the arena. */
MUST_USE int heap_honesty_load(struct arena *arena, struct recording *recording,
                               struct heap_honesty *ret, struct why *why);

/* A map: tier, why_not_higher, mode, sample_bytes, temporary_within, processes, threads, stacks,
 * complete_pct, recognised_pct, lost, stacks_lost, in_sums_only, unseen_frees, own_cpu_ms, own_pct,
 * kernel_ms, call_ns, unseen. */
struct value heap_honesty_value(struct arena *arena, const struct heap_honesty *honesty);
/* The same in one sentence; "" when out of memory. */
const char *heap_honesty_line(struct arena *arena, const struct heap_honesty *honesty);
/* Both into a report's map: `honesty` for machines, `honesty_line` for people. */
void heap_honesty_put(struct arena *arena, struct value *root, const struct heap_honesty *honesty);
/* What could not be seen, a row each: what, how much of it, why. */
struct value heap_honesty_unseen(struct arena *arena, const struct heap_honesty *honesty);
