/* What bpf/contention.bpf.c and collect/kernel_locks.c say to each other.
 *
 * Plain structs of fixed size: one side is compiled for the machine, the other for BPF. */
#pragma once

#include <stdint.h>

enum {
    CONTENTION_THREADS_MAX = 16384, /* of a map of its own; as a rule it shares another's */
    CONTENTION_SLEEPS_MAX = 4096,   /* threads that wait for a sleeping lock at the same time */
    CONTENTION_TALLIES_MAX = 4096,
    CONTENTION_STACKS_MAX = 2048,
    CONTENTION_FRAMES = 32,
    CONTENTION_NESTED_MAX = 4, /* a thread, a soft and a hard interrupt in it, an NMI */
    CONTENTION_BUCKETS = 128,  /* as WAIT_BUCKETS of model/wait.h */
};

/* The kernel's own flags (LCB_F_…), and one of ours. */
enum contention_flag {
    CONTENTION_SPIN = 1 << 0,
    CONTENTION_READ = 1 << 1,
    CONTENTION_WRITE = 1 << 2,
    CONTENTION_RT = 1 << 3,
    CONTENTION_PERCPU = 1 << 4,
    CONTENTION_MUTEX = 1 << 5,
    CONTENTION_MMAP_LOCK = 1 << 16, /* it is the one of the process's address space */
};

/* .rodata: set before the program is loaded. */
struct contention_config {
    uint32_t pid_ns; /* inode of our PID namespace; 0: the first one */
    uint32_t unused;
};
_Static_assert(sizeof(struct contention_config) == 8, "shared with BPF");

/* Map "tallies": waits for one lock by one thread at one place. */
struct contention_key {
    uint64_t lock;
    uint32_t kernel_tid;
    int32_t stack; /* in the map "stacks"; negative: none */
    uint32_t flags;
    int32_t syscall; /* negative: none */
    uint32_t exec;   /* how often the thread had become another program, lowest 16 bits */
    uint32_t unused;
};
_Static_assert(sizeof(struct contention_key) == 32, "shared with BPF");

/* Only ever grows: a reader takes what is new since it last looked. */
struct contention_tally {
    uint64_t count, total_ns, max_ns, first_ns, last_ns;
    uint64_t spin_ns;   /* the part of total_ns spent on a CPU, trying */
    uint32_t tid, tgid; /* in our PID namespace */
    uint32_t buckets[CONTENTION_BUCKETS];
};
_Static_assert(sizeof(struct contention_tally) == 56 + 4 * CONTENTION_BUCKETS, "shared with BPF");

/* A wait that goes on; map "sleeps", by kernel thread id. */
struct contention_wait {
    uint64_t lock;
    uint64_t start_ns;
    uint64_t phase_ns; /* trying or sleeping since */
    uint64_t spin_ns;
    uint32_t flags;
    int32_t stack;
    int32_t syscall;
    uint32_t unused;
};
_Static_assert(sizeof(struct contention_wait) == 48, "shared with BPF");

/* As wait_bucket() of model/wait.h, without an instruction that BPF has not. */
static inline uint32_t contention_bucket(uint64_t ns)
{
    uint32_t octave = 0;
    if (ns < 256)
        return 0;
    for (uint32_t step = 32; step > 0; step /= 2)
        if (ns >> octave >> step)
            octave += step;
    uint32_t bucket = (octave - 8) * 4 + (uint32_t)(ns >> (octave - 2) & 3);
    return bucket < CONTENTION_BUCKETS ? bucket : CONTENTION_BUCKETS - 1;
}

/* Map "counts": one of each a CPU. */
enum contention_count {
    CONTENTION_WAITS,       /* that ended */
    CONTENTION_LOST,        /* waits that found no room */
    CONTENTION_LOST_NS,     /* how long they took, as far as known */
    CONTENTION_STACKS_FULL, /* waits whose stack found no room */
    CONTENTION_COUNTS,
};
