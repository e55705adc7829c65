/* What bpf/offcpu.bpf.c and collect/offcpu_kernel*.c say to each other.
 *
 * Plain structs of fixed size: one side is compiled for the machine, the other for BPF. Thread
 * and process ids are those of our PID namespace unless they are called kernel ids. A stack is
 * named by a ref, a number that the program gives out with its first copy. */
#pragma once

#include <stdint.h>

enum {
    OFFCPU_THREADS_MAX = 16384,
    OFFCPU_TALLIES_MAX = 8192, /* in each of two maps, by turns */
    OFFCPU_BUCKETS = 128,      /* as WAIT_BUCKETS of the model */
    OFFCPU_KERNEL_FRAMES = 48,
    OFFCPU_KERNEL_STACKS_MAX = 4096,
    OFFCPU_KERNEL_KNOWN_MAX = 2048,
    OFFCPU_KERNEL_SLOTS = 32,
    OFFCPU_KERNEL_WORDS = 512, /* of a kernel stack that can be recognised */
    OFFCPU_KERNEL_ALIKE = 8,
    OFFCPU_KNOWN_MAX = 8192,
    OFFCPU_KNOWN_LONG_MAX = 1024,
    OFFCPU_KNOWN_SLOTS = 64,
    OFFCPU_KNOWN_SLOTS_LONG = 256,
    OFFCPU_KNOWN_ALIKE = 32, /* stacks of the same pc and sp */
    OFFCPU_HEAD_BYTES_MAX =
        4096, /* of a stack, read at once to compare; what is above one by one */
    OFFCPU_PAGE_BYTES = 4096,
    OFFCPU_COPY_PAGES_SHORT = 1,
    OFFCPU_COPY_PAGES = 4,
    OFFCPU_COPY_PAGES_DEEP = 16,
    OFFCPU_COPIES_A_ROUND = 192, /* of one thread: a program that never stops surprising us */
    OFFCPU_CALLS_MAX = 512,
    OFFCPU_ASKED_MAX = 8192, /* sockets, and processes */
    OFFCPU_COST_EVERY = 64,  /* so many runs of the program: one is timed */
    OFFCPU_REGISTERS = 32,
};

/* What is known about a system call, by its number. Arguments count from 1; 0: none. */
struct offcpu_call {
    uint8_t fd;    /* this argument is what is waited for */
    uint8_t limit; /* this one is a time limit: */
    uint8_t limit_kind;
    uint8_t kind; /* enum offcpu_call_kind, several */
};
enum offcpu_limit_kind {
    OFFCPU_LIMIT_POINTER, /* not NULL: limited */
    OFFCPU_LIMIT_MS,      /* an int, not negative: limited */
    OFFCPU_LIMIT_ALWAYS,
};
enum offcpu_call_kind {
    OFFCPU_CALL_FUTEX = 1 << 0,
    OFFCPU_CALL_SENDS = 1 << 1,    /* may wake a peer on this machine, by way of a soft interrupt */
    OFFCPU_CALL_RECEIVES = 1 << 2, /* may be woken so */
    OFFCPU_CALL_WAIT4 = 1 << 3,
    OFFCPU_CALL_WAITID = 1 << 4,
    OFFCPU_CALL_ASKS = 1 << 5, /* waits for peers: recv, poll, epoll, select */
};
_Static_assert(sizeof(struct offcpu_call) == 4, "shared with BPF");

enum offcpu_scope {
    OFFCPU_TREE, /* of the process `root` */
    OFFCPU_MACHINE,
    OFFCPU_CGROUP,
};

/* .rodata: set before the program is loaded. */
struct offcpu_config {
    uint64_t long_ns;   /* waits from here on are told one by one */
    uint64_t cgroup_id; /* OFFCPU_CGROUP, with its depth below the root */
    uint32_t cgroup_level;
    uint32_t scope;
    uint32_t root;   /* process */
    uint32_t own;    /* our own process: not recorded */
    uint32_t pid_ns; /* inode of our PID namespace; 0: the first one */
    uint32_t ring_bytes;
    uint32_t kernel_stack_bytes; /* of a thread: THREAD_SIZE */
    uint32_t waits, locks;       /* what was asked for, 0 or 1 */
    uint32_t kernel_recognise;   /* 1: as kernel_known.h does */
    struct offcpu_call calls[OFFCPU_CALLS_MAX];
};
_Static_assert(sizeof(struct offcpu_config) == 56 + 4 * OFFCPU_CALLS_MAX, "shared with BPF");

/* Map "control", one element. */
struct offcpu_control {
    uint64_t round; /* which of the two maps of tallies is written to: its lowest bit */
    uint64_t woken_ns;
};
_Static_assert(sizeof(struct offcpu_control) == 16, "shared with BPF");

enum { OFFCPU_OBJECT_OURS = 0xffff }; /* object_kind of waits before us: a number of user space */
enum { OFFCPU_KIND_RUNNING = 3 };     /* beside enum wait_kind: time on a CPU, told at the end */

/* All waits that are alike. */
struct offcpu_key {
    uint64_t stack, waker_stack; /* refs; 0: not known */
    uint64_t object;             /* inode, address or pid */
    uint32_t object_device;
    uint16_t object_kind, object_flags;
    uint32_t tid, tgid;
    uint32_t waker_tid, waker_tgid; /* 0: none, or none that is recorded */
    int32_t kernel_stack;           /* in the map "kernel_stacks"; negative: none */
    int32_t syscall;
    uint32_t flags;            /* enum wait_flag */
    uint8_t kind;              /* enum wait_kind */
    uint8_t detail;            /* enum wait_futex */
    uint16_t exec, waker_exec; /* how often they had become another program, lowest bits */
    uint16_t unused;
    uint32_t unused_too; /* keys are compared byte by byte: no gaps */
};
_Static_assert(sizeof(struct offcpu_key) == 72, "shared with BPF");

/* As struct wait_tally. */
struct offcpu_tally {
    uint64_t count, total_ns, max_ns, first_ns, last_ns, owned_ns, owner_off_ns;
    uint32_t buckets[OFFCPU_BUCKETS];
};
_Static_assert(sizeof(struct offcpu_tally) == 56 + 4 * OFFCPU_BUCKETS, "shared with BPF");

/* As wait_bucket(), which a test holds it to. BPF has no instruction that counts zeroes, and
 * clang 14 never ends when asked for one. */
static inline uint32_t offcpu_bucket(uint64_t ns)
{
    uint32_t octave = 0;
    if (ns < 256)
        return 0;
    for (uint32_t step = 32; step > 0; step /= 2)
        if (ns >> octave >> step)
            octave += step;
    uint32_t bucket = (octave - 8) * 4 + (uint32_t)(ns >> (octave - 2) & 3);
    return bucket < OFFCPU_BUCKETS ? bucket : OFFCPU_BUCKETS - 1;
}

enum offcpu_thread_flag {
    OFFCPU_THREAD_READY = 1 << 0,    /* off the CPU, but not blocked */
    OFFCPU_THREAD_LEFT_OUT = 1 << 1, /* this wait is not asked for */
    OFFCPU_THREAD_EXITED = 1 << 2,
    OFFCPU_THREAD_FILLED = 1 << 3, /* by user space, which cannot know `exec` */
};

/* Map "threads", by kernel thread id: what a thread is at. */
struct offcpu_thread {
    uint64_t since_ns;      /* taken up, or another program */
    uint64_t on_ns;         /* on a CPU since; 0: it is not */
    uint64_t off_ns;        /* off it since; 0: it is on one */
    uint64_t wake_ns;       /* woken; 0: not yet */
    uint64_t running_ns;    /* on a CPU, up to on_ns or off_ns */
    uint64_t off_total_ns;  /* the same off it */
    uint64_t kernel_ran_ns; /* on a CPU by the kernel's books, when it last left one */
    struct offcpu_key key;  /* of the wait that goes on */
    uint64_t owner_off_ns;  /* off_total_ns of the lock's owner when the wait began */
    uint64_t lock;          /* came back from a wait for this futex; 0: none */
    uint64_t lock_ns;       /* when */
    uint64_t lock_off_ns;   /* off_total_ns then */
    uint64_t round;         /* of `copies` */
    uint32_t owner; /* kernel id of the thread that holds what is waited for; 0: not known */
    uint32_t tid, tgid;
    uint32_t flags;
    uint32_t copies;
    uint32_t kernel_tgid;
    uint32_t exec; /* as in the key */
    /* A timer or a device ended the wait. Not a flag of the key: whoever wakes runs on another CPU,
     * and would bring back flags that the thread, on its way off the CPU, has just cleared. */
    uint32_t by_interrupt;
};
_Static_assert(sizeof(struct offcpu_thread) == 200, "shared with BPF");

/* Maps "known" and "known_long": stacks that were walked once. The same place with the same
 * values in all slots is the same stack (unwind/trace.h). */
struct offcpu_known_key {
    uint64_t pc, sp;
    uint32_t kernel_tgid;
    uint32_t exec;
    uint32_t alike; /* 0, 1, …: stacks that differ only in their slots */
    uint32_t unused;
};
_Static_assert(sizeof(struct offcpu_known_key) == 32, "shared with BPF");

enum { OFFCPU_KNOWN_LONG = 1 << 0, OFFCPU_KNOWN_FP = 1 << 1, OFFCPU_KNOWN_LR = 1 << 2 };

struct offcpu_known {
    uint64_t ref;
    uint64_t fp;         /* OFFCPU_KNOWN_FP: what the frame pointer must be */
    uint64_t lr;         /* OFFCPU_KNOWN_LR: the same of the link register, where there is one */
    uint32_t flags;      /* OFFCPU_KNOWN_LONG: slots are in "known_long", by the ref */
    uint32_t count;      /* of slots */
    uint32_t head_bytes; /* from sp up, a multiple of 8: where slots are compared at once */
    uint32_t head_count; /* so many of the slots lie there: they come first */
    uint64_t values[OFFCPU_KNOWN_SLOTS];
    uint32_t offsets[OFFCPU_KNOWN_SLOTS]; /* from sp */
};
_Static_assert(sizeof(struct offcpu_known) == 40 + 12 * OFFCPU_KNOWN_SLOTS, "shared with BPF");

struct offcpu_known_long {
    uint64_t values[OFFCPU_KNOWN_SLOTS_LONG];
    uint32_t offsets[OFFCPU_KNOWN_SLOTS_LONG];
};
_Static_assert(sizeof(struct offcpu_known_long) == 12 * OFFCPU_KNOWN_SLOTS_LONG, "shared with BPF");

/* Map "kernel_known": kernel stacks that were walked once. The same call with the same return
 * addresses in all slots is the same stack. Slots lie so far above the program's context, but for
 * the outermost, which lies so far below where the thread's kernel stack begins: in between the
 * kernel leaves some room, by chance, at every system call. */
struct offcpu_kernel_place {
    int32_t syscall;
    uint32_t object_kind; /* reading a pipe is not reading a socket */
    uint32_t alike;
    uint32_t unused;
};
_Static_assert(sizeof(struct offcpu_kernel_place) == 16, "shared with BPF");

struct offcpu_kernel_known {
    int32_t id; /* in the map "kernel_stacks" */
    uint32_t count;
    uint32_t head_bytes; /* of the stack from the context up: all slots lie there */
    uint32_t below_top;  /* bytes: where the outermost return address is */
    uint64_t top_value;
    uint64_t values[OFFCPU_KERNEL_SLOTS];
    uint16_t indexes[OFFCPU_KERNEL_SLOTS]; /* of words, from the context up */
};
_Static_assert(sizeof(struct offcpu_kernel_known) == 24 + 10 * OFFCPU_KERNEL_SLOTS,
               "shared with BPF");

/* In the ring "told". */
enum offcpu_record {
    OFFCPU_COPY = 1,
    OFFCPU_EVENT = 2,
    OFFCPU_EXIT = 3, /* of a thread: its names can still be asked for */
    OFFCPU_KERNEL = 4,
    OFFCPU_FUTEX = 5, /* seen for the first time: its name can be asked for */
};
struct offcpu_head {
    uint32_t record; /* enum offcpu_record */
    uint32_t tid, tgid;
    uint32_t exec;
    uint64_t time_ns;
};
_Static_assert(sizeof(struct offcpu_head) == 24, "shared with BPF");

/* Where a stack is, for "known". Programs that stand where functions begin have few pcs and many
 * callers: there the caller is part of it. */
static inline uint64_t offcpu_place_pc(uint64_t pc, uint32_t caller)
{
    return pc ^ (uint64_t)caller << 32;
}

/* A stack that was not recognised, with the pages of it from sp up. */
struct offcpu_copy {
    struct offcpu_head head;
    uint64_t ref;
    uint32_t kernel_tgid;
    uint32_t alike; /* stacks of this place that it was compared with */
    uint32_t len;   /* bytes that could be read */
    uint32_t known; /* bit n: registers[n] */
    uint32_t kernel_tid;
    uint32_t caller;  /* lowest bits of its address, where it is part of the place; else 0 */
    uint64_t address; /* of bytes[0]: sp */
    uint64_t pc;
    uint64_t registers[OFFCPU_REGISTERS]; /* by DWARF's numbers */
    uint8_t bytes[];
};
_Static_assert(sizeof(struct offcpu_copy) == 72 + 8 * OFFCPU_REGISTERS, "shared with BPF");

/* A kernel stack that was walked, with its words. */
struct offcpu_kernel {
    struct offcpu_head head;
    struct offcpu_kernel_place place;
    int32_t id;
    uint32_t depth; /* bytes from the program's context to where the kernel stack begins */
    uint64_t words[OFFCPU_KERNEL_WORDS];
};
_Static_assert(sizeof(struct offcpu_kernel) == 48 + 8 * OFFCPU_KERNEL_WORDS, "shared with BPF");

struct offcpu_futex {
    struct offcpu_head head;
    uint64_t address;
};
_Static_assert(sizeof(struct offcpu_futex) == 32, "shared with BPF");

/* A long wait. Its tally is in no map. */
struct offcpu_event {
    struct offcpu_head head; /* time_ns: on a CPU again */
    struct offcpu_key key;
    uint64_t start_ns, wake_ns;
    uint64_t owned_ns, owner_off_ns;
};
_Static_assert(sizeof(struct offcpu_event) == 24 + 72 + 32, "shared with BPF");

/* Map "counts": one of each a CPU. */
enum offcpu_count {
    OFFCPU_WAITS,             /* ended */
    OFFCPU_RECOGNISED,        /* stacks */
    OFFCPU_VERIFIED,          /* slots that were compared for that */
    OFFCPU_COPIED,            /* stacks: first of their place */
    OFFCPU_READ_AGAIN,        /* stacks: none of those known at their place */
    OFFCPU_SPARED,            /* stacks not copied: the thread had enough of them this round */
    OFFCPU_UNREADABLE,        /* stacks of which nothing could be read */
    OFFCPU_RING_FULL,         /* stacks, events or ends that found no room */
    OFFCPU_THREADS_FULL,      /* threads that could not be taken up */
    OFFCPU_TALLIES_MERGED,    /* waits that were added up without their waker for want of room */
    OFFCPU_TALLIES_FULL,      /* waits that were lost for want of room */
    OFFCPU_KERNEL_FULL,       /* kernel stacks that could not be kept */
    OFFCPU_WAKERS,            /* wake-ups noted */
    OFFCPU_KERNEL_RECOGNISED, /* kernel stacks */
    OFFCPU_UNSEEN,            /* returns to a CPU that nobody told of; made up for by the books */
    OFFCPU_COST_NS,           /* of the programs, from those runs that were timed */
    OFFCPU_COUNTS,
};
