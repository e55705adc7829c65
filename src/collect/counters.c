/* Hardware counters. Probed here; the counting is not in this version. */
#include "collect/counters.h"

#include "collect/tiers.h"

static void counters_probe(struct arena *arena, struct collector_probe *ret)
{
    static const struct tier_step steps[] = {
        {TIER_KERNEL,
         {probe_perf_pmu, probe_perf_system},
         "cycles, instructions, cache and branch events of any process"},
        {TIER_USER, {probe_perf_pmu}, "the same for own processes"},
        {0},
    };
    tiers_probe(arena, steps, ret);
}

const struct collector_ops collector_counters = {
    .name = "counters",
    .summary = "instructions, cache and branch misses",
    .built = false,
    .probe = counters_probe,
};
