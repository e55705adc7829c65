/* What the files of the user tier of locks share; nobody else includes this.
 *
 * locks_user.c         the collector's life
 * locks_user_off.c     when threads were off the CPU
 * locks_user_rows.c    records and sums to rows of waits and holds */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "collect/cpu.h"
#include "collect/lock_names.h"
#include "collect/locks_user.h"
#include "collect/preload_places.h"

enum {
    LOCKS_THREADS_MAX = 1 << 20,  /* whose ids are kept */
    LOCKS_OFF_THREADS_MAX = 4096, /* whose times off the CPU are kept */
};

struct lock_sum { /* beside a row of the place: as it was read last */
    struct preload_row row;
    uint32_t stack; /* the sink's */
    uint32_t wait;  /* the same; 0: none yet */
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
    struct preload_places places;
    struct lock_sum **sums; /* of each place, one a row; NULL until there is something in them */
    struct map_u64 threads; /* pid << 32 | tid to the sink's id, also of some that have ended */
    struct map_u64 pids;    /* of processes with a place */
    struct map_u64 homes;   /* pid << 32 | tid of threads that have, or had, a place */
    bool switches;          /* are told */
    struct lock_offs offs;
    char na[256];

    uint64_t waits, wait_ns, holds, homeless, open;
};

/* locks_user_off.c */
/* As the kernel tells it, in the order of time. 0 or -ENOMEM. */
MUST_USE int lock_offs_switch(struct lock_offs *offs, uint64_t time_ns, int tid, bool out);
/* False: not known, or no longer. */
bool lock_offs_between(const struct lock_offs *offs, int tid, uint64_t start_ns, uint64_t end_ns,
                       uint64_t *ret_ns);
void lock_offs_deinit(struct lock_offs *offs);

/* locks_user_rows.c */
MUST_USE int lock_wait_take(struct collector *c, struct preload_place *place,
                            const struct preload_wait *wait, bool is_open);
/* A thread that may be named by a wait after its end. */
MUST_USE int lock_thread_note(struct collector *c, uint32_t pid, uint32_t tid, uint64_t time_ns);
/* What was added up in the place since the last time. */
MUST_USE int lock_sums_take(struct collector *c, struct preload_place *place);
/* The rows are empty again. */
void lock_sums_clear(struct collector *c, struct preload_place *place);
