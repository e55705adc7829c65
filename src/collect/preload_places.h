/* Places of the memory shared with the target: who lives there, what they tell, and when they
 * are gone; the stacks they tell, walked here and recognised there from then on.
 *
 *     preload_places_init()    one family of hooks; it follows the cpu collector by
 *     preload_places_until()   what was told before a time
 *     preload_places_tick()    places of dead threads are given free
 *     preload_places_count()   what threads counted themselves, at the end
 *     preload_places_deinit()
 *
 * Locks and I/O each have one, with places of their own. What the target writes is hostile: a
 * place that makes no sense is read no further. One thread. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "collect/preload_ring.h"
#include "collect/stacks.h"
#include "target/preload.h"

enum {
    PRELOAD_STACKS_MAX = 1 << 16,      /* of one place */
    PRELOAD_KEPT_BYTES_MAX = 64 << 20, /* slices of stacks that the target recognises */
};

/* A stack that a thread told. */
struct preload_told_stack {
    uint32_t number; /* the record's */
    uint32_t id;     /* the sink's */
    uint64_t generation;
    /* Of those that were taught: walked again when what is mapped has changed. */
    struct preload_stack *kept;
    unsigned known; /* where it was taught */
};

struct preload_place {
    bool lived;
    uint32_t pid, tid, serial;
    struct preload_ring ring;
    uint64_t dropped, dropped_ns, skipped, recognised; /* as counted so far */
    uint32_t process, thread;                          /* sink ids; 0 until needed */
    VEC(struct preload_told_stack) stacks;
    uint32_t last_number; /* of stacks */
    unsigned known_next;  /* of the known stacks, which is given up next */
    uint64_t next_ns;     /* of the first record that was left in the ring */
    uint64_t sums_ns;     /* when they were read last */
    uint64_t added;       /* to its rows, as read so far */
};

struct preload_places_ops {
    /* A record that is no stack. -EBADMSG: it makes no sense; -EINVAL, -E2BIG, -ESRCH, -ENOENT:
     * refused. Both are counted; what remains is a failure of the sink. The same holds below. */
    int (*record)(void *context, struct preload_place *place, const struct preload_taken *taken);
    /* What was added up since the last time; place->added says up to where. */
    int (*sums)(void *context, struct preload_place *place);
    int (*moved_in)(void *context, struct preload_place *place); /* NULL: not wanted */
    /* Nobody lives there any more, nobody writes: the rows are to be empty. */
    void (*moved_out)(void *context, struct preload_place *place);
};

struct preload_places {
    struct preload *preload;
    struct stacks *from;
    enum preload_family_name family;
    const struct preload_places_ops *ops;
    void *context;
    struct preload_place *places; /* PRELOAD_THREADS_MAX */
    struct preload_taken taken;
    struct unwind_trace trace;
    size_t kept_bytes;
    uint64_t sweep_ns;
    uint64_t fresh[PRELOAD_THREADS_MAX / 64]; /* places to look at */
    struct map_u64 newest;                    /* pid << 32 | tid to serial, while sweeping */
    bool hurry;                               /* something is to be learnt, or a ring is filling */

    uint64_t stacks_walked, complete, walked_again;
    uint64_t recognised, skipped, dropped, dropped_ns, broken, refused;
};

MUST_USE int preload_places_init(struct preload_places *places, struct preload *preload,
                                 struct stacks *stacks, enum preload_family_name family,
                                 const struct preload_places_ops *ops, void *context);
void preload_places_deinit(struct preload_places *places); /* after a failed init, too */

/* For cpu_follower.until. UINT64_MAX: all there is. */
MUST_USE int preload_places_until(struct preload_places *places, uint64_t time_ns);
void preload_places_tick(struct preload_places *places, uint64_t now_ns);
void preload_places_count(struct preload_places *places);
/* What cannot be had of one record is counted: 0; else as it is. */
MUST_USE int preload_places_outcome(struct preload_places *places, int r);
/* Places beyond have never been taken: not even a look makes memory of them. */
size_t preload_places_used(const struct preload_places *places);

/* The sink's ids of the process and thread: while they are there. */
MUST_USE int preload_place_ids(struct preload_places *places, struct preload_place *place,
                               uint64_t time_ns);
bool preload_place_is_gone(const struct preload_place *place);

/* preload_stacks.c */
/* A stack record: walked, and taught if the walk can be recognised. */
MUST_USE int preload_stack_take(struct preload_places *places, struct preload_place *place,
                                const struct preload_taken *taken);
/* The sink's stack of a number; 0: not known. */
MUST_USE int preload_stack_id(struct preload_places *places, struct preload_place *place,
                              uint32_t number, uint64_t time_ns, uint32_t *ret_stack);
/* Its record is still in the ring, behind what was read. */
bool preload_stack_is_coming(const struct preload_place *place, uint32_t number);
void preload_stacks_deinit(struct preload_places *places, struct preload_place *place);
