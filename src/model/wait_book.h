/* Rows of waits and what is waited for, added up in memory. Shared by every implementation of
 * model/sink.h, so that "the same wait gives the same id" means the same everywhere. Ids count
 * from 1. */
#pragma once

#include "base/arena.h"
#include "base/intern.h"
#include "base/vec.h"
#include "model/wait.h"

/* Bounds, so that a target cannot make us eat the machine: some 700 MiB at worst. */
enum { WAIT_BOOK_OBJECTS_MAX = 1 << 20, WAIT_BOOK_WAITS_MAX = 1 << 20 };

struct wait_row {
    struct wait_info info;
    struct wait_tally tally;
    bool dirty; /* for whoever writes it down */
};

struct object_row {
    struct object_info info;
    bool dirty;
};

struct wait_book {
    struct intern object_keys, wait_keys;
    struct arena names;
    VEC(struct object_row) objects; /* objects.data[id - 1] */
    VEC(struct wait_row) waits;
};

/* Each returns 0, -ENOMEM, -EINVAL when an id in it was never given out, or -E2BIG beyond the
 * bounds. Ids of processes, threads and stacks are the caller's to check. */
MUST_USE int wait_book_object(struct wait_book *book, const struct object_info *info,
                              uint32_t *ret_id);
MUST_USE int wait_book_object_name(struct wait_book *book, uint32_t object, struct str name);
MUST_USE int wait_book_wait(struct wait_book *book, const struct wait_info *info, uint32_t *ret_id);
MUST_USE int wait_book_add(struct wait_book *book, uint32_t wait, const struct wait_tally *tally);
void wait_tally_add(struct wait_tally *to, const struct wait_tally *tally);
/* One wait of its own. */
void wait_tally_one(struct wait_tally *to, uint64_t start_ns, uint64_t ns);
/* False for an event that ends before it begins, or after 2^63 ns. Whoever was not seen to be
 * woken meanwhile counts as woken when it ran. */
MUST_USE bool wait_event_settle(struct wait_event *event);
void wait_book_deinit(struct wait_book *book);
