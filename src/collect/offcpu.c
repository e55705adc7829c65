/* Where threads wait, for what, and who wakes them. Probed here; the collection is not in this
 * version. */
#include "collect/offcpu.h"

#include "collect/offcpu_user.h"
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

static int offcpu_drain(struct collector *collector, struct why *why)
{
    return offcpu_user_ops.drain(collector, why);
}

static int offcpu_stop(struct collector *collector, struct why *why)
{
    return offcpu_user_ops.stop(collector, why);
}

static int offcpu_finish(struct collector *collector, struct why *why)
{
    return offcpu_user_ops.finish(collector, why);
}

static void offcpu_close(struct collector *collector)
{
    offcpu_user_ops.close(collector);
}

const struct collector_ops collector_offcpu = {
    .name = "offcpu",
    .summary = "where threads wait, and for what",
    .built = false,
    .probe = offcpu_probe,
    .drain = offcpu_drain,
    .stop = offcpu_stop,
    .finish = offcpu_finish,
    .close = offcpu_close,
};

enum tier offcpu_plan(const struct offcpu_opts *opts)
{
    (void)opts;
    return TIER_USER;
}

int offcpu_start(const struct offcpu_opts *opts, const struct collector_target *target,
                 struct sink *sink, struct collector **ret, struct why *why)
{
    return offcpu_user_start(opts, target, sink, ret, why);
}

size_t offcpu_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max)
{
    return offcpu_user_poll_fds(collector, fds, max);
}

enum tier offcpu_tier(const struct collector *collector)
{
    return offcpu_user_tier(collector);
}

const char *offcpu_not_higher(const struct collector *collector)
{
    return offcpu_user_not_higher(collector);
}
