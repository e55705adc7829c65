/* What threads ask of the kernel: which engine, and words about it. */
#include "collect/io.h"

#include "collect/io_kernel.h"
#include "collect/io_user.h"
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

static void io_probe(struct arena *arena, struct collector_probe *ret)
{
    static const struct tier_step steps[] = {
        {TIER_KERNEL,
         {probe_bpf_tracing},
         "every read, write and sync with file, latency and stack; device latency"},
        {TIER_USER, {probe_preload}, "I/O calls of programs that load our library"},
        {0},
    };
    tiers_probe(arena, steps, ret);
}

static int io_begin(struct collector *c, uint64_t start_ns, struct why *why)
{
    return c->ops->begin ? c->ops->begin(c->inner, start_ns, why) : 0;
}

static int io_drain(struct collector *c, struct why *why)
{
    return c->ops->drain(c->inner, why);
}

static int io_stop(struct collector *c, struct why *why)
{
    return c->ops->stop(c->inner, why);
}

static int io_finish(struct collector *c, struct why *why)
{
    return c->ops->finish(c->inner, why);
}

static void io_close(struct collector *c)
{
    if (!c)
        return;
    if (c->inner)
        c->ops->close(c->inner);
    free(c);
}

static int kernel_start(struct collector *c, const struct io_opts *opts,
                        const struct collector_target *target, struct sink *sink, struct why *why)
{
    c->ops = &io_kernel_ops;
    c->poll_fds = io_kernel_poll_fds;
    c->tier = TIER_KERNEL;
    return io_kernel_start(opts, target, sink, &c->inner, why);
}

static int user_start(struct collector *c, const struct io_opts *opts,
                      const struct collector_target *target, struct sink *sink, struct why *why)
{
    c->ops = &io_user_ops;
    c->poll_fds = io_user_poll_fds;
    c->tier = TIER_USER;
    int r = io_user_start(opts, target, sink, &c->inner, why);
    if (r == 0 && opts->tier == TIER_USER)
        snprintf(c->not_higher, sizeof(c->not_higher), "the user tier was asked for");
    if (r == 0)
        io_user_why_not(c->inner, c->not_higher);
    return r;
}

enum tier io_plan(const struct io_opts *opts)
{
    struct probe probe = {0};
    if (opts->tier != TIER_NONE)
        return opts->tier;
    probe_bpf_tracing(&probe);
    return probe.ok ? TIER_KERNEL : TIER_USER;
}

/* Whoever asked for the best tier is told why there is none at all. */
static int both_denied(const struct collector *c, int r, struct why *why)
{
    struct why user = *why;
    return why_set(why, user.kind, -r, user.remedy,
                   "%.350s; the kernel's help is not to be had: %.350s", user.what, c->not_higher);
}

/* What is known at the start, so that it is there after a kill; the engine's own takes its place
 * at the end. */
static int tier_put(const struct collector *c, struct sink *sink, struct why *why)
{
    char json[64];
    snprintf(json, sizeof(json), "{\"tier\":\"%s\"}", tier_name(c->tier));
    int r = sink_document(sink, "io", str_from(json));
    return r < 0 ? why_errno(why, -r, NULL, "cannot write to the recording") : 0;
}

int io_start(const struct io_opts *opts, const struct collector_target *target, struct sink *sink,
             struct collector **ret, struct why *why)
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
    if (r < 0 && c->not_higher[0])
        r = both_denied(c, r, why);
    if (r == 0)
        r = tier_put(c, sink, why);
    if (r < 0) {
        io_close(c);
        return r;
    }
    *ret = c;
    return 0;
}

static int io_start_default(const struct collector_target *target, struct sink *sink,
                            struct collector **ret, struct why *why)
{
    struct io_opts opts = {.calls = true, .stacks = true, .requests = true};
    return io_start(&opts, target, sink, ret, why);
}

size_t io_poll_fds(const struct collector *c, struct pollfd *fds, size_t max)
{
    return c->poll_fds(c->inner, fds, max);
}

enum tier io_tier(const struct collector *c)
{
    return c->tier;
}

const char *io_not_higher(const struct collector *c)
{
    return c->not_higher[0] ? c->not_higher : NULL;
}

const struct collector_ops collector_io = {
    .name = "io",
    .summary = "bytes, calls and latency, by file and stack",
    .built = true,
    .probe = io_probe,
    .start = io_start_default,
    .begin = io_begin,
    .drain = io_drain,
    .stop = io_stop,
    .finish = io_finish,
    .close = io_close,
};
