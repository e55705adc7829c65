/* Where threads wait, for what, and who wakes them. Probed here; the collection is not in this
 * version. */
#include "collect/offcpu.h"

#include "collect/tiers.h"

static void offcpu_probe(struct arena *arena, struct collector_probe *ret)
{
    static const struct tier_step steps[] = {
        {TIER_KERNEL, {probe_bpf_tracing}, "every wait with its stack, its cause and who ended it"},
        {TIER_USER,
         {probe_perf_switch, probe_remote_read},
         "waits of own threads, with the system call they sit in"},
        {TIER_FLOOR,
         {probe_remote_read},
         "the system calls threads sit in, looked at now and then"},
        {0},
    };
    tiers_probe(arena, steps, ret);
}

const struct collector_ops collector_offcpu = {
    .name = "offcpu",
    .summary = "where threads wait, and for what",
    .built = false,
    .probe = offcpu_probe,
};
