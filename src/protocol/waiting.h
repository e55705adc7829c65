/* Requests of one connection without an answer yet, oldest first; each protocol has its own struct
 * for them and owns what the pointers point at. */
#pragma once

#include "base/macros.h"

#include <stddef.h>
#include <stdint.h>

struct waiting {
    void **rows;
    uint32_t count, room;
    size_t memory; /* of all of them, as those who push say */
};

/* PROTOCOL_BROKEN: there are PROTOCOL_PENDING_MAX, or they would take more than `memory_max`
 * together; or -ENOMEM. */
MUST_USE int waiting_push(struct waiting *waiting, void *row, size_t memory, size_t memory_max);
/* Takes one off the list, which keeps its order. */
void waiting_pull(struct waiting *waiting, uint32_t at, size_t memory);
/* Of the list itself: what is on it must be gone by then. */
void waiting_deinit(struct waiting *waiting);
