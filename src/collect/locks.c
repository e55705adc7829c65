/* Lock waits and who held the lock: what can be had. They are collected with all waits (offcpu.h),
 * and without privileges by a library in the target (locks_user.h). */
#include "collect/locks.h"

#include "collect/tiers.h"

static void locks_probe(struct arena *arena, struct collector_probe *ret)
{
    static const struct tier_step steps[] = {
        {TIER_KERNEL, {probe_bpf_tracing}, "futex waits of any process, with holder and stacks"},
        {TIER_USER, {probe_preload}, "pthread locks of programs that load our library"},
        {0},
    };
    tiers_probe(arena, steps, ret);
}

const struct collector_ops collector_locks = {
    .name = "locks",
    .summary = "lock waits, hold times and holders",
    .built = true,
    .probe = locks_probe,
};
