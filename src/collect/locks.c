/* Lock waits and who held the lock: what can be had. They are collected with all waits (offcpu.h),
 * and without privileges by a library in the target (locks_user.h). */
#include "collect/locks.h"

#include "collect/offcpu.h"
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

static int locks_start(const struct collector_target *target, struct sink *sink,
                       struct collector **ret, struct why *why)
{
    struct offcpu_opts opts = {.locks = true};
    return offcpu_start(&opts, target, sink, ret, why);
}

static int locks_begin(struct collector *collector, uint64_t start_ns, struct why *why)
{
    return collector_offcpu.begin(collector, start_ns, why);
}

static int locks_drain(struct collector *collector, struct why *why)
{
    return collector_offcpu.drain(collector, why);
}

static int locks_stop(struct collector *collector, struct why *why)
{
    return collector_offcpu.stop(collector, why);
}

static int locks_finish(struct collector *collector, struct why *why)
{
    return collector_offcpu.finish(collector, why);
}

static void locks_close(struct collector *collector)
{
    collector_offcpu.close(collector);
}

const struct collector_ops collector_locks = {
    .name = "locks",
    .summary = "lock waits, hold times and holders",
    .built = true,
    .probe = locks_probe,
    .start = locks_start,
    .begin = locks_begin,
    .drain = locks_drain,
    .stop = locks_stop,
    .finish = locks_finish,
    .close = locks_close,
};
