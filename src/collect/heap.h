/* The heap collector: what a program allocates, by stack.
 *
 *     heap_plan()    which engine it will be
 *     heap_start()   with the library in the target (heap_user.h), or by the kernel (heap_kernel.h)
 *
 * The library counts in the target and is the default; what it cannot be put into (a program that
 * runs, is static or has a malloc() of its own) the kernel tells of, with root. Writes sites,
 * processes, snapshots and moments (model/heap.h), the document "heap" (tier, mode, why not
 * more) and counters heap.*. */
#pragma once

#include "collect/collectors.h"

#include <poll.h>

extern const struct collector_ops collector_heap; /* start: with the defaults, spawned */

struct heap_opts {
    bool on;
    enum tier tier;            /* TIER_NONE: the best */
    uint64_t sample_bytes;     /* 0: exact */
    uint64_t snapshot_ns;      /* 0: none by time */
    uint32_t temporary_within; /* 0: 1 */
    bool log;                  /* every event is kept */
};

struct preload_heap;

/* The engine for a program that is about to be started: TIER_USER or TIER_KERNEL; TIER_NONE with
 * the reason and the remedy when neither can see it. `program` NULL: one that runs already. */
enum tier heap_plan(const struct heap_opts *opts, const char *program, struct why *why);

/* `preload` NULL: the kernel's engine. */
MUST_USE int heap_start(const struct heap_opts *opts, struct preload_heap *preload,
                        const struct collector_target *target, struct sink *sink,
                        struct collector **ret, struct why *why);
size_t heap_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max);
/* What lives now is kept (SIGUSR2). */
void heap_snapshot(struct collector *collector);
/* After stop: why nothing was seen; NULL: something was. An empty result is an error. */
const char *heap_na(const struct collector *collector);
const char *heap_tier(const struct collector *collector); /* "user" or "kernel" */
