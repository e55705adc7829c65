/* The cpu collector: samples of running code, with stacks.
 *
 *     cpu_start()       opens events and rings; a spawned target must be held still
 *     collector_cpu.begin() samples count from now on; of a spawned target from its exec on
 *     collector_cpu.drain() …
 *     cpu_halt()            no samples and no account from now on; announcements go on
 *     collector_cpu.stop() … .finish() … .close()
 *
 * collector_cpu.start() is cpu_start() with the defaults, for a spawned target. Between
 * rounds a caller sleeps in poll() with cpu_poll_fds(): a ring that is half full wakes it. */
#pragma once

#include "collect/collectors.h"
#include "collect/perf_event.h"

#include <poll.h>

extern const struct collector_ops collector_cpu;

enum { CPU_RATE_HZ_MAX = 50000, CPU_RATE_HZ = 999, CPU_EMBED_FUNCTIONS = 32 };

struct cpu_opts {
    enum target_scope scope;
    int pid;             /* TARGET_SPAWNED, TARGET_ATTACHED */
    const char *command; /* of a spawned target; borrowed */
    const char *cgroup;  /* path of its folder */
    uint32_t rate_hz;
    enum perf_stacks stacks;
    const char *cache_dir; /* borrowed; NULL: no cache */
    bool debuginfod;
    bool no_symbols;
    bool no_code;    /* the instructions of hot functions are left to who reads the files later */
    bool no_samples; /* only what processes do, for collectors that follow; no series "cpu" */
    bool switches;   /* with every switch of a thread on and off the CPU, for followers */
};

MUST_USE int cpu_start(const struct cpu_opts *opts, struct sink *sink, struct collector **ret,
                       struct why *why);

void cpu_halt(struct collector *collector);

enum cpu_task { CPU_TASK_FORK, CPU_TASK_EXEC, CPU_TASK_EXIT };

/* Other collectors share the process tree, the mappings and the names of this one, and learn of
 * what happens in the order of time: a stack can only be walked while the mappings are those of
 * its moment. */
struct cpu_follower {
    void *context;
    /* All that happened before `time_ns` has been told to stacks, nothing after: take what is
     * up to there. Called before each announcement, and at the end of every drain. */
    int (*until)(void *context, uint64_t time_ns);
    /* A thread left the CPU or came to it; NULL unless asked for with `switches`. */
    int (*on_switch)(void *context, uint64_t time_ns, int pid, int tid, bool out, bool preempted);
    /* A thread or process is about to begin, become another program or end: told before stacks
     * learns of it, after `until`. NULL: not wanted. */
    int (*on_task)(void *context, uint64_t time_ns, enum cpu_task task, int pid, int tid);
};
enum { CPU_FOLLOWERS_MAX = 4 };
void cpu_follow(struct collector *collector, const struct cpu_follower *follower);
struct stacks *cpu_stacks(struct collector *collector);
bool cpu_has_switches(const struct collector *collector);
/* Why no event could be opened; NULL: they were. Only where `no_samples` was asked for: then
 * processes are followed by reading /proc now and then. */
const char *cpu_events_na(const struct collector *collector);

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
