/* Where threads wait, for what, and who wakes them: which engine, and words about it. */
#include "collect/offcpu.h"

#include "collect/locks_user.h"
#include "collect/offcpu_kernel.h"
#include "collect/offcpu_user.h"
#include "collect/tiers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct collector {
    const struct collector_ops *ops; /* of the engine */
    struct collector *inner;
    size_t (*poll_fds)(const struct collector *inner, struct pollfd *fds, size_t max);
    enum tier tier;
    char not_higher[512];
};

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

static int offcpu_begin(struct collector *c, uint64_t start_ns, struct why *why)
{
    return c->ops->begin ? c->ops->begin(c->inner, start_ns, why) : 0;
}

static int offcpu_drain(struct collector *c, struct why *why)
{
    return c->ops->drain(c->inner, why);
}

static int offcpu_stop(struct collector *c, struct why *why)
{
    return c->ops->stop(c->inner, why);
}

static int offcpu_finish(struct collector *c, struct why *why)
{
    return c->ops->finish(c->inner, why);
}

static void offcpu_close(struct collector *c)
{
    if (!c)
        return;
    if (c->inner)
        c->ops->close(c->inner);
    free(c);
}

static int kernel_start(struct collector *c, const struct offcpu_opts *opts,
                        const struct collector_target *target, struct sink *sink, struct why *why)
{
    c->ops = &offcpu_kernel_ops;
    c->poll_fds = offcpu_kernel_poll_fds;
    c->tier = TIER_KERNEL;
    return offcpu_kernel_start(opts, target, sink, &c->inner, why);
}

static int user_start(struct collector *c, const struct offcpu_opts *opts,
                      const struct collector_target *target, struct sink *sink, struct why *why)
{
    c->ops = &offcpu_user_ops;
    c->poll_fds = offcpu_user_poll_fds;
    int r = offcpu_user_start(opts, target, sink, &c->inner, why);
    if (r < 0)
        return r;
    c->tier = offcpu_user_tier(c->inner);
    if (target->locks) {
        offcpu_user_leave_out(c->inner, locks_user_covered, target->locks);
        locks_user_series(target->locks, offcpu_user_series(c->inner));
    }
    if (c->not_higher[0])
        offcpu_user_why_not(c->inner, c->not_higher);
    const char *na = offcpu_user_not_higher(c->inner);
    snprintf(c->not_higher, sizeof(c->not_higher), "%s", na ? na : "");
    return 0;
}

enum tier offcpu_plan(const struct offcpu_opts *opts)
{
    struct probe probe = {0};
    if (opts->tier != TIER_NONE)
        return opts->tier;
    probe_bpf_tracing(&probe);
    return probe.ok ? TIER_KERNEL : TIER_USER;
}

int offcpu_start(const struct offcpu_opts *opts, const struct collector_target *target,
                 struct sink *sink, struct collector **ret, struct why *why)
{
    struct collector *c = calloc(1, sizeof(*c));
    if (!c)
        return why_nomem(why);
    int r = -ENOTSUP;
    if (opts->tier == TIER_NONE || opts->tier == TIER_KERNEL) {
        struct why denied = {0};
        r = kernel_start(c, opts, target, sink, &denied);
        if (r < 0 && opts->tier == TIER_KERNEL)
            *why = denied;
        else if (r < 0)
            snprintf(c->not_higher, sizeof(c->not_higher), "%.300s%s%.200s", denied.what,
                     denied.remedy[0] ? "; " : "", denied.remedy);
    }
    if (r < 0 && opts->tier != TIER_KERNEL)
        r = user_start(c, opts, target, sink, why);
    if (r < 0) {
        offcpu_close(c);
        return r;
    }
    *ret = c;
    return 0;
}

static int offcpu_start_default(const struct collector_target *target, struct sink *sink,
                                struct collector **ret, struct why *why)
{
    struct offcpu_opts opts = {.waits = true};
    return offcpu_start(&opts, target, sink, ret, why);
}

size_t offcpu_poll_fds(const struct collector *c, struct pollfd *fds, size_t max)
{
    return c->poll_fds(c->inner, fds, max);
}

enum tier offcpu_tier(const struct collector *c)
{
    return c->tier;
}

const char *offcpu_not_higher(const struct collector *c)
{
    return c->not_higher[0] ? c->not_higher : NULL;
}

const struct collector_ops collector_offcpu = {
    .name = "offcpu",
    .summary = "where threads wait, and for what",
    .built = true,
    .probe = offcpu_probe,
    .start = offcpu_start_default,
    .begin = offcpu_begin,
    .drain = offcpu_drain,
    .stop = offcpu_stop,
    .finish = offcpu_finish,
    .close = offcpu_close,
};
