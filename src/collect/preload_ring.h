/* Reads what one thread of the target wrote into its place of the shared memory.
 *
 * The target may be broken or hostile: a record is copied before it is looked at, and one that
 * makes no sense ends the reading of that place until somebody else moves in. */
#pragma once

#include "base/macros.h"
#include "format/preload_io.h"

#include <stdbool.h>

struct preload_ring {
    struct preload_thread *shared;
    uint64_t tail;
    bool broken; /* what it wrote makes no sense */
};

struct preload_taken { /* a copy */
    union {
        struct preload_record record;
        struct preload_wait wait;
        struct preload_stack stack;
        struct preload_call call;
        struct preload_piece piece;
    };
    uint8_t slice[PRELOAD_SLICE_BYTES]; /* of a stack, or what a piece says */
};

/* 1: a record of before `until_ns` is in *ret. 0: there is none, and *ret_next_ns is the time of
 * the next one (UINT64_MAX: the ring is empty). -EBADMSG: the place is broken
 * now; said once. */
MUST_USE int preload_ring_next(struct preload_ring *ring, uint64_t until_ns,
                               struct preload_taken *ret, uint64_t *ret_next_ns);
/* A copy of a row of sums that is whole; false: the thread keeps writing it, or nothing is new. */
bool preload_row_read(const struct preload_row *row, struct preload_row *ret);
bool preload_call_row_read(const struct preload_call_row *row, struct preload_call_row *ret);

/* Records up to here need not be kept. */
void preload_ring_release(const struct preload_ring *ring);
/* Bytes that wait to be read. */
uint64_t preload_ring_used(const struct preload_ring *ring);
