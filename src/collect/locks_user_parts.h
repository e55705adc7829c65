/* What the files of the user tier of locks share; nobody else includes this.
 *
 * locks_user.c         the collector's life, places of the shared memory
 * locks_user_rows.c    records to rows of waits and holds
 * locks_user_stacks.c  stacks walked, and taught to the target */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "collect/cpu.h"
#include "collect/locks_user.h"
#include "collect/preload_ring.h"
#include "collect/stacks.h"

enum {
    LOCKS_ROWS = 32,                 /* of a thread, added up here before they are told */
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
    unsigned set, way;
};

struct lock_row {  /* alike waits or holds of one thread, not all told yet */
    uint16_t kind; /* enum preload_kind; 0: not used */
    uint8_t lock, flags;
    uint32_t stack, other;
    uint64_t object;
    uint32_t wait; /* the sink's row */
    struct wait_tally tally;
};

struct lock_place {
    bool lived;
    uint32_t pid, tid, serial;
    struct preload_ring ring;
    uint64_t dropped, dropped_ns, skipped, recognised; /* as counted so far */
    bool waited;
    uint32_t process, thread; /* sink ids; 0 until needed */
    VEC(struct lock_stack) stacks;
    uint8_t ways[PRELOAD_KNOWN_SETS]; /* the next to be given up */
    struct lock_row *rows;            /* LOCKS_ROWS; NULL until there is one */
};

struct collector {
    struct preload *preload;
    struct sink *sink;
    struct stacks *stacks;
    int timer_fd;
    uint32_t series;
    bool stopped;
    struct lock_place *places; /* PRELOAD_THREADS_MAX */
    struct map_u64 waited;     /* pid << 32 | tid of threads that told a wait */
    struct preload_taken taken;
    struct unwind_trace trace;
    size_t kept_bytes;
    uint64_t flush_ns, sweep_ns;
    bool hurry; /* something is to be learnt, or a ring is filling */
    char na[256];

    uint64_t waits, wait_ns, holds, stacks_walked, complete, recognised, walked_again, skipped;
    uint64_t dropped, dropped_ns, broken, refused, homeless, open;
};

/* locks_user_stacks.c */
/* A stack record: walked, and taught if the walk can be recognised. */
MUST_USE int lock_stack_take(struct collector *c, struct lock_place *place,
                             const struct preload_taken *taken);
/* The sink's stack of a number; 0: not known. */
MUST_USE int lock_stack_id(struct collector *c, struct lock_place *place, uint32_t number,
                           uint64_t time_ns, uint32_t *ret_stack);
void lock_stacks_deinit(struct collector *c, struct lock_place *place);

/* locks_user_rows.c */
MUST_USE int lock_row_add(struct collector *c, struct lock_place *place,
                          const struct preload_wait *wait, bool is_open);
/* Tells the sink what was added up. */
MUST_USE int lock_rows_flush(struct collector *c, struct lock_place *place);
