/* Allocations by call stack: which engine, and words about it. */
#include "collect/heap.h"

#include "collect/heap_kernel.h"
#include "collect/heap_user.h"
#include "collect/tiers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct collector {
    const struct collector_ops *ops; /* of the engine */
    struct collector *inner;
    size_t (*poll_fds)(const struct collector *inner, struct pollfd *fds, size_t max);
    void (*snapshot)(struct collector *inner);
    const char *(*na)(const struct collector *inner);
    enum tier tier;
};

static void heap_probe(struct arena *arena, struct collector_probe *ret)
{
    /* The kernel sees more programs, but slows them down: the library is the better tier. */
    static const struct tier_step steps[] = {
        {TIER_USER,
         {probe_preload},
         "every allocation, exactly, of programs that load our library; with root also others"},
        {TIER_KERNEL, {probe_bpf_uprobe}, "allocations through uprobes: any process, but slow"},
        {0},
    };
    tiers_probe(arena, steps, ret);
}

static int heap_begin(struct collector *c, uint64_t start_ns, struct why *why)
{
    return c->ops->begin ? c->ops->begin(c->inner, start_ns, why) : 0;
}

static int heap_drain(struct collector *c, struct why *why)
{
    return c->ops->drain(c->inner, why);
}

static int heap_stop(struct collector *c, struct why *why)
{
    return c->ops->stop(c->inner, why);
}

static int heap_finish(struct collector *c, struct why *why)
{
    return c->ops->finish(c->inner, why);
}

static void heap_close(struct collector *c)
{
    if (!c)
        return;
    if (c->inner)
        c->ops->close(c->inner);
    free(c);
}

static bool user_can(const char *program, char *ret_why, size_t size)
{
    struct probe probe = {0};
    if (!preload_heap_fits(program, ret_why, size))
        return false;
    probe_preload(&probe);
    if (!probe.ok)
        snprintf(ret_why, size, "%s", probe.detail);
    return probe.ok;
}

enum tier heap_plan(const struct heap_opts *opts, const char *program, struct why *why)
{
    struct probe probe = {0};
    char user[512] = "it runs already: the library for the heap cannot be put into it any more";
    bool is_user = program && opts->tier != TIER_KERNEL && user_can(program, user, sizeof(user));
    if (is_user)
        return TIER_USER;
    if (opts->log) {
        why_set(why, WHY_DENIED, ENOTSUP, "leave --log out",
                "only the library in a program keeps every event, and it is of no use here: %s",
                program && opts->tier == TIER_KERNEL ? "the kernel tier was asked for" : user);
        return TIER_NONE;
    }
    if (opts->tier == TIER_USER) {
        why_set(why, WHY_DENIED, ENOTSUP,
                "as root leave '--tier user' out: the kernel tells of such programs",
                "allocations cannot be counted: %s", user);
        return TIER_NONE;
    }
    probe_bpf_uprobe(&probe);
    if (probe.ok)
        return TIER_KERNEL;
    const char *remedy = probe.remedy[0] ? probe.remedy
                                         : "record as root, or with CAP_BPF and CAP_PERFMON";
    if (opts->tier == TIER_KERNEL)
        why_set(why, WHY_DENIED, ENOTSUP, remedy, "the kernel cannot tell of allocations: %s",
                probe.detail);
    else
        why_set(why, WHY_DENIED, ENOTSUP, remedy,
                "allocations cannot be counted: %s; nor can the kernel tell of them: %s", user,
                probe.detail);
    return TIER_NONE;
}

int heap_start(const struct heap_opts *opts, struct preload_heap *preload,
               const struct collector_target *target, struct sink *sink, struct collector **ret,
               struct why *why)
{
    struct collector *c = calloc(1, sizeof(*c));
    if (!c)
        return why_nomem(why);
    int r;
    if (preload) {
        c->tier = TIER_USER;
        c->ops = &heap_user_ops;
        c->poll_fds = heap_user_poll_fds;
        c->snapshot = heap_user_snapshot;
        c->na = heap_user_na;
        r = heap_user_start(opts, preload, target, sink, &c->inner, why);
    } else {
        c->tier = TIER_KERNEL;
        c->ops = &heap_kernel_ops;
        c->poll_fds = heap_kernel_poll_fds;
        c->snapshot = heap_kernel_snapshot;
        c->na = heap_kernel_na;
        r = heap_kernel_start(opts, target, sink, &c->inner, why);
    }
    if (r < 0) {
        heap_close(c);
        return r;
    }
    *ret = c;
    return 0;
}

size_t heap_poll_fds(const struct collector *c, struct pollfd *fds, size_t max)
{
    return c->poll_fds(c->inner, fds, max);
}

void heap_snapshot(struct collector *c)
{
    c->snapshot(c->inner);
}

const char *heap_na(const struct collector *c)
{
    return c->na(c->inner);
}

const char *heap_tier(const struct collector *c)
{
    return tier_name(c->tier);
}

/* The library is put into a program before it begins: whoever spawns it has to (heap_plan()). */
static int heap_start_default(const struct collector_target *target, struct sink *sink,
                              struct collector **ret, struct why *why)
{
    struct heap_opts opts = {.on = true};
    return heap_start(&opts, NULL, target, sink, ret, why);
}

const struct collector_ops collector_heap = {
    .name = "heap",
    .summary = "allocations, peak and leaks, by call stack",
    .built = true,
    .probe = heap_probe,
    .start = heap_start_default,
    .begin = heap_begin,
    .drain = heap_drain,
    .stop = heap_stop,
    .finish = heap_finish,
    .close = heap_close,
};
