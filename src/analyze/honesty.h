/* The line of honesty: how far a recording can be trusted, from its counters.
 *
 * Whoever records writes the counters, zeros too: what has no counter was not measured and
 * is "n/a: reason".
 *
 *     cpu.samples, cpu.complete, cpu.truncated, cpu.throttled   samples
 *     cpu.deep_complete                                         complete beyond perf's slice
 *     loss.* (but loss.wait_*)                                  samples that were lost, by cause
 *     cpu.sampled_ns, cpu.rusage_ns                             the target's CPU time, two ways
 *     cpu.own_ns, cpu.kernel_ns                                 what measuring cost */
#pragma once

#include "base/arena.h"
#include "model/value.h"
#include "store/reader.h"

struct honesty_figure {
    uint64_t value;
    bool known;
};

struct honesty {
    struct honesty_figure samples, complete, truncated, deep_complete, throttled, lost;
    struct honesty_figure sampled_ns, rusage_ns, own_ns, kernel_ns;
    bool finished;
};

MUST_USE int honesty_load(struct recording *recording, struct honesty *ret, struct why *why);

/* A map: samples, complete_pct, truncated_pct, deep_complete, lost, throttled,
 * sampled_cpu_ms, rusage_cpu_ms, overhead_pct. */
struct value honesty_value(struct arena *arena, const struct honesty *honesty);
/* The same in one sentence; "" when out of memory. */
const char *honesty_line(struct arena *arena, const struct honesty *honesty);
/* Both into a report's map: `honesty` for machines, `honesty_line` for people. */
void honesty_put(struct arena *arena, struct value *root, const struct honesty *honesty);
