/* What is asked of perf_event_open, and how its refusals become words.
 *
 * A plan is decided once, by trying: the finest clock, kernel stacks or the reason why not,
 * build-ids in mapping records. Attributes are then made from it without looking at the
 * machine again. */
#pragma once

#include "base/macros.h"
#include "base/why.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

enum perf_clock {
    PERF_CPU_CLOCK, /* a timer: code that keeps interrupts off is charged where they come on */
    PERF_CYCLES,
};

enum perf_stacks {
    PERF_STACKS_SLICE, /* registers and a slice of the stack, unwound by us */
    PERF_STACKS_FP,    /* frame pointers, walked by the kernel */
    PERF_STACKS_NONE,
};

struct perf_plan {
    enum perf_clock clock;
    unsigned precise; /* precise_ip, of cycles */
    enum perf_stacks stacks;
    bool system;         /* every process of a CPU or cgroup, not one task and its children */
    bool kernel;         /* kernel code is sampled, with its stacks */
    char kernel_na[256]; /* why not */
    bool build_ids;      /* MMAP2 records tell them (Linux 5.12) */
    bool losses;         /* events count what their ring had no room for (Linux 6.0) */
    uint32_t rate_hz;
};

/* `stacks`, `system` and `rate_hz` are wishes; the rest is found out. Sampling that is
 * impossible is an error with the setting that would allow it. */
MUST_USE int perf_plan_make(enum perf_stacks stacks, bool system, uint32_t rate_hz,
                            struct perf_plan *ret, struct why *why);
/* "cycles:ppp" or "cpu-clock", ":u" without the kernel. */
const char *perf_plan_event(const struct perf_plan *plan, char *text, size_t size);

/* The registers we ask for and their order in a sample; unwind.h has its own. */
uint64_t perf_registers_mask(void);

/* The largest the kernel takes; it cuts so that the whole sample stays below 64 KiB. */
enum { PERF_SLICE_BYTES_MAX = 65528 };

/* The samples. `period`: nanoseconds for PERF_CPU_CLOCK, samples per second for PERF_CYCLES. */
struct perf_event_attr perf_attr_sampling(const struct perf_plan *plan, uint64_t period,
                                          uint32_t slice_bytes);
/* Fork, exec, exit, names and mappings; with `switches`, who leaves the CPU and comes to it. */
struct perf_event_attr perf_attr_sideband(const struct perf_plan *plan, bool switches);
/* Counts nothing: owns a ring. */
struct perf_event_attr perf_attr_ring(uint32_t watermark_bytes);

/* An fd, or -errno. */
MUST_USE int perf_event_open(struct perf_event_attr *attr, int pid, int cpu, unsigned long flags);
/* What its ring had no room for, of all that inherited it; 0 where events do not count that. */
uint64_t perf_event_lost(const struct perf_plan *plan, int fd);
/* The error of an open as words with a remedy. */
int perf_event_why(int error, const char *what, struct why *why);
/* -1000 when it cannot be read. */
int perf_event_paranoid(void);

/* CPUs that are there and on. The array is malloc'ed. */
MUST_USE int perf_cpus_read(int **ret, size_t *ret_count, struct why *why);
