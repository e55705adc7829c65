/* Allocations by call stack. Probed here; the collection is not in this version. */
#include "collect/heap.h"

#include "collect/tiers.h"

static void heap_probe(struct arena *arena, struct collector_probe *ret)
{
    static const struct tier_step steps[] = {
        {TIER_USER, {probe_preload}, "every allocation of programs that load our library"},
        {TIER_KERNEL, {probe_bpf_uprobe}, "allocations through uprobes: any process, but slow"},
        {TIER_FLOOR, {NULL}, "memory of each process over time, without call stacks"},
        {0},
    };
    tiers_probe(arena, steps, ret);
}

const struct collector_ops collector_heap = {
    .name = "heap",
    .summary = "allocations, peak and leaks, by call stack",
    .built = false,
    .probe = heap_probe,
};
