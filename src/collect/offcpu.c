/* Where threads wait, for what, and who wakes them. Probed here; the collection is not in this
 * version. */
#include "collect/offcpu.h"

#include "collect/tiers.h"

#include <errno.h>

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

int offcpu_start(const struct offcpu_opts *opts, const struct collector_target *target,
                 struct sink *sink, struct collector **ret, struct why *why)
{
    (void)opts, (void)target, (void)sink, (void)ret;
    return why_set(why, WHY_DENIED, ENOTSUP, NULL, "waits are not in this version");
}

size_t offcpu_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max)
{
    (void)collector, (void)fds, (void)max;
    return 0;
}

enum tier offcpu_tier(const struct collector *collector)
{
    (void)collector;
    return TIER_NONE;
}

const char *offcpu_not_higher(const struct collector *collector)
{
    (void)collector;
    return NULL;
}
