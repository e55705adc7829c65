/* What the files of the user tier of locks share; nobody else includes this.
 *
 * locks_user.c         the collector's life, places of the shared memory
 * locks_user_off.c     when threads were off the CPU
 * locks_user_rows.c    records and sums to rows of waits and holds
 * locks_user_stacks.c  stacks walked, and taught to the target */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "collect/cpu.h"
#include "collect/lock_names.h"
#include "collect/locks_user.h"
#include "collect/preload_ring.h"
#include "collect/stacks.h"

enum {
    LOCKS_THREADS_MAX = 1 << 20,     /* whose ids are kept */
    LOCKS_OFF_THREADS_MAX = 4096,    /* whose times off the CPU are kept */
    LOCKS_STACKS_MAX = 1 << 16,      /* of one place */
    LOCKS_KEPT_BYTES_MAX = 64 << 20, /* slices of stacks that the target recognises */
};

/* A stack that a thread told. */
struct lock_stack {
    uint32_t number; /* the record's */
    uint32_t id;     /* the sink's */
    uint64_t generation;
    /* Of those that were taught: walked again when what is mapped has changed. */
    struct preload_stack *kept;
    unsigned known; /* where it was taught */
};

struct lock_sum { /* beside a row of the place: as it was read last */
    struct preload_row row;
    uint32_t stack; /* the sink's */
    uint32_t wait;  /* the same; 0: none yet */
};

struct lock_place {
    bool lived;
    uint32_t pid, tid, serial;
    struct preload_ring ring;
    uint64_t dropped, dropped_ns, skipped, recognised; /* as counted so far */
    uint32_t process, thread;                          /* sink ids; 0 until needed */
    VEC(struct lock_stack) stacks;
    uint32_t last_number;  /* of stacks */
    unsigned known_next;   /* of the known stacks, which is given up next */
    uint64_t next_ns;      /* of the first record that was left in the ring */
    uint64_t sums_ns;      /* when they were read last */
    uint64_t added;        /* to its rows, as read so far */
    struct lock_sum *sums; /* one a row; NULL until there is something in them */
};

struct lock_off_at {
    struct lock_off *off; /* of one thread */
};
struct lock_offs {
    struct map_u64 tids; /* to index + 1 */
    VEC(struct lock_off_at) threads;
};

struct collector {
    struct preload *preload;
    struct sink *sink;
    struct stacks *stacks;
    struct lock_names *names;
    int timer_fd;
    uint32_t series;
    bool stopped;
    struct lock_place *places; /* PRELOAD_THREADS_MAX */
    struct map_u64 threads;    /* pid << 32 | tid to the sink's id, also of some that have ended */
    struct map_u64 pids;       /* of processes with a place */
    struct map_u64 homes;      /* pid << 32 | tid of threads that have, or had, a place */
    struct preload_taken taken;
    struct unwind_trace trace;
    bool switches; /* are told */
    struct lock_offs offs;
    size_t kept_bytes;
    uint64_t sweep_ns;
    uint64_t fresh[PRELOAD_THREADS_MAX / 64]; /* places to look at */
    struct map_u64 newest;                    /* pid << 32 | tid to serial, while sweeping */
    bool hurry;                               /* something is to be learnt, or a ring is filling */
    char na[256];

    uint64_t waits, wait_ns, holds, stacks_walked, complete, recognised, walked_again, skipped;
    uint64_t dropped, dropped_ns, broken, refused, homeless, open;
};

/* locks_user_off.c */
/* As the kernel tells it, in the order of time. 0 or -ENOMEM. */
MUST_USE int lock_offs_switch(struct lock_offs *offs, uint64_t time_ns, int tid, bool out);
/* False: not known, or no longer. */
bool lock_offs_between(const struct lock_offs *offs, int tid, uint64_t start_ns, uint64_t end_ns,
                       uint64_t *ret_ns);
void lock_offs_deinit(struct lock_offs *offs);

/* locks_user_stacks.c */
/* A stack record: walked, and taught if the walk can be recognised. */
MUST_USE int lock_stack_take(struct collector *c, struct lock_place *place,
                             const struct preload_taken *taken);
/* The sink's stack of a number; 0: not known. */
MUST_USE int lock_stack_id(struct collector *c, struct lock_place *place, uint32_t number,
                           uint64_t time_ns, uint32_t *ret_stack);
/* Its record is still in the ring, behind what was read. */
bool lock_stack_is_coming(const struct lock_place *place, uint32_t number);
void lock_stacks_deinit(struct collector *c, struct lock_place *place);

/* locks_user_rows.c */
/* The sink's ids of the process and thread: while they are there. */
MUST_USE int lock_place_ids(struct collector *c, struct lock_place *place, uint64_t time_ns);
MUST_USE int lock_wait_take(struct collector *c, struct lock_place *place,
                            const struct preload_wait *wait, bool is_open);
/* A thread that may be named by a wait after its end. */
MUST_USE int lock_thread_note(struct collector *c, uint32_t pid, uint32_t tid, uint64_t time_ns);
/* What was added up in the place since the last time. */
MUST_USE int lock_sums_take(struct collector *c, struct lock_place *place);
