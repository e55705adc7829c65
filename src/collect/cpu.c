/* Samples of the running program's stacks. Probed here; the sampling itself is not in this
 * version. */
#include "collect/cpu.h"

#include "collect/tiers.h"

static void cpu_probe(struct arena *arena, struct collector_probe *ret)
{
    static const struct tier_step steps[] = {
        {TIER_KERNEL,
         {probe_perf_system, probe_perf_kernel},
         "sampled stacks of any process, kernel frames included"},
        {TIER_USER, {probe_perf_own}, "sampled stacks of own processes, user space only"},
        {TIER_FLOOR, {probe_preload}, "samples by a timer inside the program, own threads only"},
        {0},
    };
    tiers_probe(arena, steps, ret);
}

const struct collector_ops collector_cpu = {
    .name = "cpu",
    .summary = "where CPU time goes, by call stack",
    .built = false,
    .probe = cpu_probe,
};
