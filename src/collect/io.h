/* The io collector: what threads ask of the kernel, of files, devices and peers.
 *
 * It follows the cpu collector (target->cpu), whose stacks, threads and order of events it
 * shares, and writes
 *
 *     objects, rows of calls and devices (model/call.h)
 *     connections, rows of requests, requests one by one (model/request.h)
 *     series "io": ns in calls by thread and stack
 *     counters io.*: calls, lost, folded, what cannot be seen inside; own costs
 *     document "io": {"tier", "why_not_higher", "stacks", "requests", "na": [{"what", "reason"}]}
 *     document "files": notes on file systems (collect/files_look.h)
 *
 * Kernel tier: BPF (io_kernel*.c, bpf/io.bpf.c), devices (devices.h). User tier: the preload
 * library (io_user*.c, preload/io*.c). Both hand what is said on sockets to io_requests.h. */
#pragma once

#include "collect/collectors.h"

#include <poll.h>

extern const struct collector_ops collector_io;

struct io_opts {
    bool calls;     /* false: the axis is not asked for */
    bool stacks;    /* with the stack of every call */
    bool requests;  /* what is said on sockets, taken apart */
    bool payloads;  /* keep what requests say, without secrets */
    enum tier tier; /* TIER_NONE: the best; else this one or an error */
    /* A power of two from 64 KiB on, with as few cells as can be: for tests of what happens when
     * there is no room. 0: as is good. */
    uint32_t ring_bytes;
};

/* The tier that io_start() will try first: the user tier wants our library in a target that we
 * start, before it is held. */
enum tier io_plan(const struct io_opts *opts);

/* A spawned target must be held still. Without `opts->tier` a tier that cannot be had gives way
 * to the next, and the recording says why. */
MUST_USE int io_start(const struct io_opts *opts, const struct collector_target *target,
                      struct sink *sink, struct collector **ret, struct why *why);
/* What wakes a caller that sleeps in poll(); at most `max`. */
size_t io_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max);
enum tier io_tier(const struct collector *collector);
/* NULL: it is the best there is. */
const char *io_not_higher(const struct collector *collector);
