/* What threads wait for: rows that collectors add up and analysis ranks.
 *
 * A row stands for all waits that are alike: the same thread at the same stack, on the same
 * object, ended by the same waker. Its tally grows while recording. Waits that are long enough
 * to matter for the critical path are told one by one as well (struct wait_event): they are in
 * the tally of their row, too. Facts only: which class a wait belongs to, and whether it is
 * idle, is for analyze/ to say. */
#pragma once

#include "base/str.h"

#include <stdint.h>

/* How the names of pipes end that whyslow itself reads: what the target prints into them. */
#define OBJECT_TO_WHYSLOW " to whyslow"

enum object_kind {
    OBJECT_NONE = 0,
    OBJECT_FILE = 1,
    OBJECT_DIRECTORY = 2,
    OBJECT_BLOCK_DEVICE = 3,
    OBJECT_CHAR_DEVICE = 4, /* terminals too */
    OBJECT_PIPE = 5,
    OBJECT_SOCKET = 6,
    OBJECT_EVENT = 7,    /* eventfd */
    OBJECT_TIMER = 8,    /* timerfd */
    OBJECT_POLL_SET = 9, /* epoll */
    OBJECT_FUTEX = 10,   /* key: the address in user space */
    /* Key: its address; name: its kind and a symbol, or the function that takes it. Rows of waits
     * for one say how long it took to get the lock, on the CPU or off it. What was off it is part
     * of another row: no sum of times has these rows. */
    OBJECT_KERNEL_LOCK = 11,
    OBJECT_PROCESS = 12, /* a child that is waited for; key: its pid, 0: any */
    OBJECT_OTHER = 13,
    /* A path that was asked for: failed lookups, stat, unlink. Key: a hash of it. */
    OBJECT_PATH = 14,
};

enum object_flag {
    OBJECT_CLIENT = 1 << 0,    /* a socket whose process asks: it connected */
    OBJECT_SERVER = 1 << 1,    /* a socket whose process answers: it was accepted */
    OBJECT_LISTENING = 1 << 2, /* connections come here */
    OBJECT_LOCAL = 1 << 3,     /* a Unix socket, or the peer is this machine */
};

struct object_info {
    enum object_kind kind;
    uint32_t flags;   /* enum object_flag */
    uint32_t process; /* id, for OBJECT_FUTEX and OBJECT_PROCESS; 0: the machine's */
    uint64_t key;     /* inode, address or pid: apart from others of the kind */
    /* "/var/lib/data", "127.0.0.1:6379", "unix:/run/x.sock", "pipe:[1234]", "[eventfd]"; of a
     * futex or kernel lock a symbol if known; empty if not. */
    struct str name;
};

enum wait_kind {
    WAIT_BLOCKED = 0, /* off the CPU until somebody ends it */
    WAIT_RUNQ = 1,    /* ready to run, no CPU free: one row a thread, without stack */
    WAIT_HOLD = 2,    /* no wait: how long a lock was held, by `thread`, released at `stack` */
};

enum wait_flag {
    WAIT_UNINTERRUPTIBLE = 1 << 0, /* state D */
    WAIT_IO = 1 << 1,              /* the kernel counts it as waiting for I/O */
    WAIT_FAULT = 1 << 2,           /* in a page fault, not in a system call */
    WAIT_BY_INTERRUPT = 1 << 3,    /* a timer or a device ended it: there is no waker */
    WAIT_LIMITED = 1 << 4,         /* the call had a time limit */
    WAIT_ASKED = 1 << 5,           /* a request of this process to a peer was unanswered then */
    WAIT_SAMPLED = 1 << 6,         /* user tier: stack and cause were seen, or are as seen nearby */
    WAIT_OPEN = 1 << 7,            /* not over when the recording ended */
};

/* wait_info.detail where the call is a futex. */
enum wait_futex {
    WAIT_FUTEX_OTHER = 0,
    WAIT_FUTEX_VALUE_2 = 1, /* FUTEX_WAIT for 2: glibc's mutex, Rust's and others' */
    WAIT_FUTEX_VALUE_0 = 2, /* FUTEX_WAIT for 0: glibc's barrier */
    WAIT_FUTEX_BITSET = 3,  /* condition variable, semaphore, rwlock, join of glibc */
    WAIT_FUTEX_PI = 4,
};

/* wait_info.detail of a row whose object is a kernel lock; bits. */
enum wait_kernel_lock {
    WAIT_LOCK_SPIN = 1 << 0, /* all of it on the CPU, trying; else it slept at least in part */
    WAIT_LOCK_READ = 1 << 1,
    WAIT_LOCK_WRITE = 1 << 2,
    WAIT_LOCK_RT = 1 << 3,
    WAIT_LOCK_PERCPU = 1 << 4,
    WAIT_LOCK_MUTEX = 1 << 5,
};

enum { WAIT_SYSCALL_NONE = -1, WAIT_SYSCALL_UNKNOWN = -2 };

struct wait_info {
    enum wait_kind kind;
    uint32_t thread;       /* ids of the sink */
    uint32_t stack;        /* kernel frames innermost, then user frames; 0: not known */
    uint32_t waker_thread; /* 0: none, outside of what is recorded, or not known */
    uint32_t waker_stack;
    uint32_t object; /* 0: none or not known */
    int32_t syscall; /* its number on this machine, or WAIT_SYSCALL_… */
    uint32_t flags;  /* enum wait_flag */
    uint32_t detail; /* enum wait_futex of a futex, wait_kernel_lock of a kernel lock; else 0 */
};

/* Durations from 256 ns to 18 minutes, four buckets an octave; what lies outside goes to the
 * first or last. Bucket b begins at wait_bucket_ns(b). */
enum { WAIT_BUCKETS = 128 };

static inline unsigned wait_bucket(uint64_t ns)
{
    if (ns < 256)
        return 0;
    unsigned octave = 63 - (unsigned)__builtin_clzll(ns);
    unsigned bucket = (octave - 8) * 4 + (unsigned)(ns >> (octave - 2) & 3);
    return bucket < WAIT_BUCKETS ? bucket : WAIT_BUCKETS - 1;
}

static inline uint64_t wait_bucket_ns(unsigned bucket)
{
    return (uint64_t)(4 + (bucket & 3)) << (bucket / 4 + 6);
}

struct wait_tally {
    uint64_t count;
    uint64_t total_ns;
    uint64_t max_ns;
    uint64_t first_ns, last_ns; /* beginning of the first and end of the last of them */
    /* Of locks: the part of total_ns with a known owner, and of it that with the owner off the
     * CPU. Of WAIT_HOLD: the part of which it is known, and the holder's time off the CPU. */
    uint64_t owned_ns, owner_off_ns;
    uint32_t buckets[WAIT_BUCKETS];
};

struct wait_event {
    uint32_t wait;     /* id of its row */
    uint64_t start_ns; /* off the CPU */
    uint64_t wake_ns;  /* woken */
    uint64_t run_ns;   /* on a CPU again */
};
