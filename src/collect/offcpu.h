/* The offcpu and locks collectors: where threads wait, for what, and who ends it.
 *
 * One engine serves both: a lock that is waited for is a wait. It follows the cpu collector
 * (target->cpu), whose stacks, threads and order of events it shares, and writes
 *
 *     objects and rows of waits (model/wait.h), long waits one by one
 *     series "offcpu": ns off the CPU by thread and stack, in the order of time
 *     series "running": ns on a CPU by thread, without stacks
 *     counters waits.*: seen, recognised, verified, read again, lost; own costs
 *     document "waits": the tier, why not a higher one, what could not be known
 *
 * Kernel tier: BPF (offcpu_kernel*.c, bpf/offcpu.bpf.c). User tier: switch records and a reader
 * of blocked threads (offcpu_user*.c), and for locks the preload library (locks_user*.c). */
#pragma once

#include "collect/collectors.h"

#include <poll.h>

extern const struct collector_ops collector_offcpu;

struct offcpu_opts {
    bool waits;     /* every wait */
    bool locks;     /* with owners and hold times of locks; alone: only waits for locks */
    enum tier tier; /* TIER_NONE: the best; else this one or an error */
};

/* The tier that offcpu_start() will try first: the user tier wants cpu_opts.switches. */
enum tier offcpu_plan(const struct offcpu_opts *opts);

/* A spawned target must be held still. Without `opts->tier` a tier that cannot be had gives way
 * to the next, and the recording says why. */
MUST_USE int offcpu_start(const struct offcpu_opts *opts, const struct collector_target *target,
                          struct sink *sink, struct collector **ret, struct why *why);
/* What wakes a caller that sleeps in poll(); at most `max`. */
size_t offcpu_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max);
enum tier offcpu_tier(const struct collector *collector);
/* NULL: it is the best there is. */
const char *offcpu_not_higher(const struct collector *collector);
