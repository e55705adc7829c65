/* What the files of the cpu collector share; nobody else includes this.
 *
 * cpu.c         the collector's life
 * cpu_events.c  opening events and rings, taking turns between periods, larger slices
 * cpu_records.c what the records in the rings mean
 * cpu_tree.c    which processes are ours, where all are heard
 * cpu_cycles.c  cycles as time
 * cpu_account.c CPU time by the kernel's books, and what a sample costs
 * cpu_blind.c   without events: who is there, from /proc
 *
 * cpu_deep.h stands apart: what lies beyond the slice. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "collect/cpu.h"
#include "collect/cpu_deep.h"
#include "collect/perf_ring.h"
#include "collect/stacks.h"

enum {
    CPU_SETS = 3, /* of sampling events, each with a period of its own */
    CPU_SLICE_BYTES_MIN = 16 << 10,
    CPU_TURN_SAMPLES_MIN = 50, /* fewer do not tell whether the slice is too small */
};

struct cpu_set {
    uint64_t period; /* ns, or Hz for cycles */
    uint32_t slice_bytes;
    uint32_t generation; /* each opening of a set has a number of its own, from 1 */
    VEC(int) fds;
};

struct collector {
    struct cpu_opts opts;
    struct sink *sink;
    struct stacks *stacks;
    struct perf_plan plan;
    uint64_t registers_mask;
    uint64_t sample_type;
    uint32_t series;

    int *cpus;
    size_t cpu_count;
    int *ring_fds; /* one a CPU */
    struct perf_rings rings;
    size_t rings_asked_bytes;
    VEC(int) sideband_fds;
    /* A thread that appears while events are opened may be covered twice: by events of its own
     * and by those it inherited, and hands both on. The first that brings a sample of it is
     * its source; samples from another are dropped. */
    bool may_double;
    bool wide;              /* announcements come from every process: see cpu_tree.c */
    struct map_u64 tree;    /* pid to 1: one of ours */
    struct map_u64 owners;  /* event id to generation << 32 | tid it was opened for */
    struct map_u64 covered; /* generation << 32 | tid to 1: has events of its own */
    struct map_u64 sources; /* generation << 32 | tid to owner */
    uint32_t generations;
    struct cpu_set sets[CPU_SETS];
    size_t set_count;
    size_t active; /* the set that samples */
    uint32_t slice_bytes;
    bool slice_stays;      /* a larger one could not be had */
    const char *sets_na;   /* why there is only one; NULL */
    struct cpu_deep *deep; /* NULL: */
    char deep_na[512];     /* why not; with a remedy */
    uint64_t deep_counts[CPU_DEEP_COUNTS];
    int cgroup_fd;
    uint64_t random;
    uint64_t turn_ns; /* when the next set takes over */
    bool begun;       /* the target has begun */
    bool processes_started;
    bool halted, stopped;

    double ns_per_cycle; /* PERF_CYCLES: as last seen */
    uint64_t cycles_seen, cycles_running_ns;
    uint64_t own_start_ns;
    uint64_t own_ns;
    uint64_t start_ns;
    uint64_t sample_cost_ns; /* of the kernel for one sample, estimated; 0: not known */
    bool account_known;
    uint64_t account_start_ns, account_last_ns;

    uint64_t samples, complete, truncated, no_user, sampled_ns, user_ns;
    uint64_t deep_complete; /* of the complete ones: only thanks to what lay beyond the slice */
    uint64_t ends[UNWIND_ENDS];
    uint64_t lost_counted; /* by the events themselves; lost, lost_samples: as records tell */
    uint64_t lost, lost_samples, throttled, unthrottled, malformed, refused, doubled;
    uint64_t turn_samples, turn_truncated; /* since the last turn */

    struct cpu_blind *blind; /* there are no events, and none are needed; NULL: there are */
    char blind_na[512];      /* why */

    struct cpu_follower followers[CPU_FOLLOWERS_MAX];
    size_t follower_count;
};

/* cpu_events.c */
MUST_USE int cpu_events_open(struct collector *c, struct why *why);
MUST_USE int cpu_events_enable(struct collector *c, struct why *why);
void cpu_samples_disable(struct collector *c); /* announcements go on */
void cpu_events_disable(struct collector *c);
/* What rings had no room for; whole once the events are disabled. */
uint64_t cpu_events_lost(const struct collector *c);
void cpu_events_close(struct collector *c);
/* Once a second: another period, and a larger slice if stacks were cut off. */
void cpu_turn(struct collector *c, uint64_t now_ns);

/* A thread has ended, or is another program now: what was known of its events is void. */
void cpu_source_forget(struct collector *c, int tid);
/* The sample is a second one of the same moment. */
bool cpu_is_doubled(struct collector *c, uint64_t id, int tid);

/* cpu_tree.c */
int cpu_tree_begin(struct collector *c); /* negative: out of memory */
/* An announcement about a process of ours. Follows forks. */
bool cpu_tree_concerns(struct collector *c, const struct perf_event_header *header);

/* cpu_cycles.c */
void cpu_cycles_begin(struct collector *c);
void cpu_cycles_look(struct collector *c); /* once a second */

/* cpu_account.c */
void cpu_account_begin(struct collector *c);
void cpu_account_look(struct collector *c); /* while the target is there */
/* CPU time of what was recorded, by the kernel's books. False: not known. */
bool cpu_account_get(const struct collector *c, uint64_t *ret_ns);
/* What a sample costs the kernel. Only while no event of the target writes to the rings. */
void cpu_calibrate(struct collector *c);

/* cpu_blind.c */
MUST_USE int cpu_blind_open(struct collector *c); /* what it made is closed by cpu_blind_close() */
void cpu_blind_close(struct cpu_blind *blind);    /* NULL is fine */
/* Looks whether it is time, or `last`. */
MUST_USE int cpu_blind_scan(struct collector *c, uint64_t now_ns, bool last);

/* cpu_records.c */
MUST_USE int cpu_followers_tell(struct collector *c, uint64_t time_ns);
MUST_USE int cpu_tasks_tell(struct collector *c, uint64_t time_ns, enum cpu_task task, uint32_t pid,
                            uint32_t tid);
/* Takes what is in the rings; `all` when nobody writes any more. */
MUST_USE int cpu_records_take(struct collector *c, bool all);
