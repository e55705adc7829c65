/* Rows of the heap in memory. Shared by every implementation of model/sink.h, as call_book.h is.
 * Ids count from 1.
 *
 * Tallies are replaced, not added to; one that says nothing new is known as such, so that
 * whoever counts may hand over everything it has, again and again. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "model/heap.h"

/* Bounds, so that a target cannot make us eat the machine: some 500 MiB at worst. */
enum {
    HEAP_BOOK_SITES_MAX = 1 << 21,
    HEAP_BOOK_PROCESSES_MAX = 1 << 16,
    HEAP_BOOK_SNAPSHOTS_MAX = 1 << 20,
    HEAP_BOOK_MOMENTS_MAX = 1 << 20,     /* of all processes together */
    HEAP_BOOK_PROCESS_MOMENTS = 20 << 10 /* of one; beyond it two and two become one */
};

struct heap_site_row {
    struct heap_site_info info;
    struct heap_tally tally;
};

/* A process: its tally, and its memory over time. Of moments that became one the higher is
 * kept. */
struct heap_process_book {
    uint32_t process;
    bool known; /* it has a tally */
    struct heap_process_tally tally;
    VEC(struct heap_moment) moments;
    uint32_t merged;  /* so many that are told become one; 0: one */
    uint32_t pending; /* of these, in the last one so far; 0: the next begins another */
    /* For whoever writes it down: */
    bool dirty, tally_dirty;
    size_t clean; /* moments at the front that did not change */
    bool thinned; /* since it was written: there are fewer */
};

struct heap_book {
    struct map_u64 site_ids[HEAP_KINDS]; /* thread and stack to id */
    VEC(struct heap_site_row) sites;     /* sites.data[id - 1] */
    struct map_u64 process_at;           /* id of the sink to index + 1 */
    VEC(struct heap_process_book) processes;
    size_t moments; /* of all of them */
};

/* Each returns 0, -ENOMEM, -EINVAL when an id was never given out or a figure is none, or -E2BIG
 * beyond the bounds. Ids of others (threads, stacks, processes) are the caller's to check. */
MUST_USE int heap_book_site(struct heap_book *book, const struct heap_site_info *info,
                            uint32_t *ret_id);
/* *ret_changed: it says something new. */
MUST_USE int heap_book_site_set(struct heap_book *book, uint32_t site,
                                const struct heap_tally *tally, bool *ret_changed);
/* *ret_at: where in `processes`. */
MUST_USE int heap_book_process_set(struct heap_book *book, uint32_t process,
                                   const struct heap_process_tally *tally, size_t *ret_at);
/* One that is not later than the last of its process is merged with it. */
MUST_USE int heap_book_moment(struct heap_book *book, const struct heap_moment *moment,
                              size_t *ret_at);
/* Kinds and times that can be written down. */
bool heap_snapshot_is_good(const struct heap_snapshot_info *info);
bool heap_event_is_good(const struct heap_event *event);
void heap_book_deinit(struct heap_book *book);
