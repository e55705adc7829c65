/* What the library in the target (preload/) and whyslow say to each other: one piece of memory
 * that both have mapped.
 *
 *     struct preload_header
 *     struct preload_thread[PRELOAD_THREADS_MAX]       of the hooks for locks
 *     struct preload_io_objects                        (format/preload_io.h)
 *     struct preload_io_thread[PRELOAD_THREADS_MAX]    of the hooks for I/O
 *
 * Each family of hooks has places of its own, so that whoever reads one family needs nothing of
 * the other. whyslow switches families on before the target begins.
 *
 * A thread of the target takes a place of its own when it first has something to tell, writes
 * records into the ring there, and never waits: what finds no room is counted. whyslow reads,
 * and gives the place free when the thread is gone. Both sides were built together; a library
 * that meets another version leaves the memory alone.
 *
 * Long waits are told one by one. Short ones and holds are added up in rows, so that their number
 * does not matter: whyslow reads the sums from time to time and says how far it has read. A row
 * is given to others only when all of it has been read.
 *
 * Stacks are recognised, not copied again and again. A stack that is not known goes through the
 * ring once, whyslow walks it (unwind/trace.h) and writes what the walk hung on into `known`:
 * a thread that finds the same pc, sp, registers and slots is at the same stack and tells only
 * its number. */
#pragma once

#include <stdint.h>

#define PRELOAD_VARIABLE "WHYSLOW_PRELOAD" /* in the environment: where the memory is */

enum {
    PRELOAD_MAGIC = 0x77737031,
    PRELOAD_VERSION = 3,
    PRELOAD_THREADS_MAX = 2048,
    PRELOAD_RING_BYTES = 4 << 20,   /* of which a thread uses `ring_limit` */
    PRELOAD_RING_LIMIT = 128 << 10, /* of all places but the first PRELOAD_RINGS_LARGE */
    PRELOAD_RINGS_LARGE = 128,
    PRELOAD_SLICE_BYTES = 16 << 10, /* of a stack, at most */
    PRELOAD_KNOWN = 128,            /* stacks of a thread, */
    PRELOAD_KNOWN_WAYS = 32,        /* in sets of so many */
    PRELOAD_KNOWN_SLOTS = 150,
    PRELOAD_REGISTERS = 12,
    PRELOAD_ROWS = 32,       /* of waits that are added up there, by what they have in common */
    PRELOAD_BUCKETS = 128,   /* of durations, as in model/wait.h */
    PRELOAD_HOLD_EVERY = 64, /* of acquisitions without a wait, how long each so-manieth is held */
};

/* The registers that calls preserve, by DWARF's numbers and in this order. */
#if defined(__aarch64__)
#define PRELOAD_REGISTER_NUMBERS                                                                   \
    {                                                                                              \
        19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30                                             \
    }
#else
#define PRELOAD_REGISTER_NUMBERS                                                                   \
    {                                                                                              \
        3, 6, 12, 13, 14, 15                                                                       \
    }
#endif

struct preload_registers {
    uint64_t pc, sp;
    uint64_t reg[PRELOAD_REGISTERS];
};

enum preload_family_name { PRELOAD_LOCK_HOOKS, PRELOAD_IO_HOOKS, PRELOAD_FAMILIES };

struct preload_family {
    uint32_t on;       /* by whyslow, before the target begins */
    uint32_t serial;   /* of the last place taken */
    uint64_t homeless; /* records of threads that found no place */
    /* A bit for each place in which something is new; taken away by whyslow before it looks. */
    uint64_t fresh[PRELOAD_THREADS_MAX / 64] __attribute__((aligned(128)));
};
_Static_assert(sizeof(struct preload_family) == 384, "shared with the target");

struct preload_header {
    uint32_t magic, version;
    uint64_t bytes;     /* of all */
    uint32_t over;      /* by whyslow: it takes nothing any more */
    uint32_t processes; /* that have the library: it counts itself in */
    struct preload_family families[PRELOAD_FAMILIES];
};
_Static_assert(sizeof(struct preload_header) == 128 + 2 * 384, "shared with the target");

enum preload_state {
    PRELOAD_FREE = 0,
    PRELOAD_TAKEN = 1, /* somebody is moving in */
    PRELOAD_LIVED = 2, /* pid, tid and serial are valid */
};

struct preload_known {
    uint32_t sequence;  /* odd while whyslow writes it; 0: never written */
    uint32_t number;    /* of the stack record it was learnt from; 0: nothing is here */
    uint32_t registers; /* bit n: reg[n] must be the same */
    uint32_t slots;
    struct preload_registers at;
    uint64_t values[PRELOAD_KNOWN_SLOTS];
    uint32_t offsets[PRELOAD_KNOWN_SLOTS]; /* from sp */
};
_Static_assert(sizeof(struct preload_known) == 1928, "shared with the target");

/* Where to look closer; never 0. Different stacks may have the same. */
static inline uint64_t preload_known_tag(uint64_t pc, uint64_t sp)
{
    return ((pc ^ sp << 17 ^ sp >> 13) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

/* The first of the PRELOAD_KNOWN_WAYS among which a stack with this tag may be. */
static inline unsigned preload_known_set(uint64_t tag)
{
    return (unsigned)(tag >> 32) % (PRELOAD_KNOWN / PRELOAD_KNOWN_WAYS) * PRELOAD_KNOWN_WAYS;
}

#define PRELOAD_LONG_NS 1000000u /* from here on a wait is told by itself */
/* The same of a hold, so that its holder's time off the CPU can be found. Below, there is none
 * worth speaking of: to go and come back takes about as long. */
#define PRELOAD_HOLD_LONG_NS 10000u

enum preload_kind {
    PRELOAD_PAD = 0, /* nothing, up to the end of the ring */
    PRELOAD_STACK = 1,
    PRELOAD_WAIT = 2,
    PRELOAD_HOLD = 3,  /* a lock was held from start_ns to end_ns */
    PRELOAD_CALL = 4,  /* format/preload_io.h */
    PRELOAD_PIECE = 5, /* the same */
};

enum preload_lock {
    PRELOAD_MUTEX,
    PRELOAD_READ, /* of a lock with readers and writers */
    PRELOAD_WRITE,
    PRELOAD_CONDITION,
    PRELOAD_SEMAPHORE,
    PRELOAD_BARRIER,
    PRELOAD_SPIN,
    PRELOAD_JOIN,
    PRELOAD_LOCKS,
};

enum preload_flag {
    PRELOAD_LIMITED = 1 << 0,  /* the call had a time limit */
    PRELOAD_EXPIRED = 1 << 1,  /* and it was reached */
    PRELOAD_SAMPLED = 1 << 2,  /* one of PRELOAD_HOLD_EVERY */
    PRELOAD_PRIORITY = 1 << 3, /* a mutex that hands on priorities */
    PRELOAD_SUMMED = 1 << 4,   /* a long hold that was added up for want of room */
};

struct preload_record {
    uint16_t kind; /* enum preload_kind */
    uint8_t lock;  /* enum preload_lock */
    uint8_t flags;
    uint32_t bytes; /* of the record, a multiple of 8 */
};

struct preload_stack { /* PRELOAD_STACK */
    struct preload_record record;
    uint32_t number; /* from 1, for this place */
    uint32_t slice_bytes;
    uint64_t time_ns;
    struct preload_registers at;
    /* and the slice, from at.sp upwards */
};
_Static_assert(sizeof(struct preload_stack) == 136, "shared with the target");

struct preload_wait { /* PRELOAD_WAIT, PRELOAD_HOLD */
    struct preload_record record;
    uint64_t object; /* address */
    uint64_t start_ns, end_ns;
    uint32_t other; /* thread id of the owner, or of whoever ended it; 0: not known */
    uint32_t stack; /* number of a stack record; 0: none */
};
_Static_assert(sizeof(struct preload_wait) == 40, "shared with the target");

struct preload_row {
    uint32_t sequence; /* odd while the thread writes it */
    uint16_t kind;     /* PRELOAD_WAIT, PRELOAD_HOLD; 0: never used */
    uint8_t lock, flags;
    uint32_t other, stack; /* as in struct preload_wait */
    uint64_t object;
    uint64_t count, total_ns, max_ns;
    uint64_t first_ns, last_ns;
    uint64_t taken; /* by whyslow: of `count`, how many it has read */
    uint32_t buckets[PRELOAD_BUCKETS];
};
_Static_assert(sizeof(struct preload_row) == 584, "shared with the target");

/* The same as wait_bucket(). */
static inline unsigned preload_bucket(uint64_t ns)
{
    if (ns < 256)
        return 0;
    unsigned octave = 63 - (unsigned)__builtin_clzll(ns);
    unsigned bucket = (octave - 8) * 4 + (unsigned)(ns >> (octave - 2) & 3);
    return bucket < PRELOAD_BUCKETS ? bucket : PRELOAD_BUCKETS - 1;
}

struct preload_thread {
    /* Written by the thread. */
    uint32_t state; /* enum preload_state; PRELOAD_FREE again by whyslow */
    uint32_t pid, tid;
    uint32_t serial;
    uint64_t since_ns;       /* when it was taken */
    uint64_t head;           /* bytes written since ever */
    uint64_t dropped;        /* records for which there was no room */
    uint64_t dropped_ns;     /* waits among them */
    uint64_t stacks_skipped; /* for the same reason, or told just before and not read yet */
    uint64_t recognised;
    uint64_t added;         /* to rows, since ever */
    uint64_t open_start_ns; /* the wait it is in; 0: none */
    uint64_t open_object;
    uint32_t open_lock; /* enum preload_lock */
    uint32_t open_other;
    uint32_t open_stack;
    uint32_t ring_limit; /* bytes that may wait to be read */
    /* The ring was begun anew: what was skipped for that is not counted until it has been read. */
    uint64_t anew_head, anew_bytes;
    /* Written by whyslow. */
    uint64_t tail __attribute__((aligned(128)));
    uint64_t known_tags[PRELOAD_KNOWN]; /* preload_known_tag() of each; 0: none */
    /* Written by the thread. */
    uint64_t row_tags[PRELOAD_ROWS] __attribute__((aligned(128)));
    struct preload_row rows[PRELOAD_ROWS];
    struct preload_known known[PRELOAD_KNOWN] __attribute__((aligned(4096)));
    uint8_t ring[PRELOAD_RING_BYTES] __attribute__((aligned(4096)));
} __attribute__((aligned(4096)));
_Static_assert(sizeof(struct preload_thread) == 66 * 4096 + PRELOAD_RING_BYTES,
               "shared with the target");

enum { PRELOAD_HEADER_BYTES = 4096 };
#define PRELOAD_LOCKS_BYTES (PRELOAD_THREADS_MAX * sizeof(struct preload_thread))
