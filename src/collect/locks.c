/* Lock waits and who held the lock. Probed here; the collection is not in this version. */
#include "collect/locks.h"

#include "collect/tiers.h"

static void locks_probe(struct arena *arena, struct collector_probe *ret)
{
    static const struct tier_step steps[] = {
        {TIER_KERNEL,
         {probe_bpf_tracing, probe_bpf_uprobe},
         "futex waits of any process, with holder and stacks"},
        {TIER_USER, {probe_preload}, "pthread locks of programs that load our library"},
        {0},
    };
    tiers_probe(arena, steps, ret);
}

const struct collector_ops collector_locks = {
    .name = "locks",
    .summary = "lock waits, hold times and holders",
    .built = false,
    .probe = locks_probe,
};
