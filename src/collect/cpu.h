/* The cpu collector: samples of running code, with stacks.
 *
 *     cpu_start()       opens events and rings; a spawned target must be held still
 *     collector_cpu.drain() … .stop() … .finish() … .close()
 *
 * collector_cpu.start() is cpu_start() with the defaults, for a spawned target. Between
 * rounds a caller sleeps in poll() with cpu_poll_fds(): a ring that is half full wakes it. */
#pragma once

#include "collect/collectors.h"
#include "collect/perf_event.h"

#include <poll.h>

extern const struct collector_ops collector_cpu;

enum cpu_scope {
    CPU_SPAWNED,  /* a held process: sampled from its exec on, with all it starts */
    CPU_ATTACHED, /* a running process: all its threads, and what they start from now on */
    CPU_SYSTEM,
    CPU_CGROUP,
};

enum { CPU_RATE_HZ_MAX = 50000, CPU_RATE_HZ = 999, CPU_EMBED_FUNCTIONS = 32 };

struct cpu_opts {
    enum cpu_scope scope;
    int pid;             /* CPU_SPAWNED, CPU_ATTACHED */
    const char *command; /* of a spawned target; borrowed */
    const char *cgroup;  /* path of its folder */
    uint32_t rate_hz;
    enum perf_stacks stacks;
    const char *cache_dir; /* borrowed; NULL: no cache */
    bool debuginfod;
    bool no_symbols;
};

MUST_USE int cpu_start(const struct cpu_opts *opts, struct sink *sink, struct collector **ret,
                       struct why *why);

/* The rings' fds; at most `max`. */
size_t cpu_poll_fds(const struct collector *collector, struct pollfd *fds, size_t max);

/* Figures so far, for progress and for the line of honesty. */
struct cpu_counts {
    uint64_t samples;
    uint64_t complete;
    uint64_t truncated;
    uint64_t lost;
    uint64_t throttled;
    uint64_t sampled_ns;
};
void cpu_counts(const struct collector *collector, struct cpu_counts *ret);
const struct perf_plan *cpu_plan(const struct collector *collector);
/* Why stacks deeper than a slice end as truncated; NULL: they do not. */
const char *cpu_deep_na(const struct collector *collector);
