/* What one process does with memory, counted from its allocations and frees in the order in which
 * they happened; for the kernel tier, which is told of each.
 *
 *     heap_count_allocated(), heap_count_freed(), heap_count_reallocated()
 *     heap_count_forked()    the child's account: what it inherits stays apart
 *     heap_count_put()       to the sink: all that is new since the last time
 *
 * What lived at the peak is known for each site: while live bytes are the peak, all is as it
 * stands; a site that changes after that keeps what it had. One thread. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "collect/heap_live.h"
#include "model/sink.h"

enum { HEAP_COUNT_SITES_MAX = 1 << 21, HEAP_COUNT_GONE_MAX = 1 << 20 };

struct heap_count_site {
    uint32_t thread, stack; /* ids of the sink */
    uint32_t id;            /* of the sink; 0: not told yet */
    uint32_t epoch;         /* of the peak: what the tally says of it was kept then */
    bool changed;           /* since it was put */
    struct heap_tally tally;
};

/* Shared by children that inherited the same. */
struct heap_inherited;

struct heap_count {
    uint32_t process; /* id of the sink; 0: not known yet */
    struct heap_live live;
    struct heap_inherited *inherited;
    struct map_u64 inherited_gone; /* addresses of what it has given back of that */
    struct map_u64 site_at;        /* thread << 32 | stack to index + 1 */
    VEC(struct heap_count_site) sites;
    struct heap_process_tally tally;
    uint64_t live_bytes, live_count;
    uint64_t peak_count;
    bool below_peak;    /* live bytes have been more than they are */
    uint32_t epoch;     /* so often the peak was left */
    uint64_t version;   /* counts changes of `live` */
    uint64_t forked_at; /* version of the last fork */
    struct heap_inherited *last_fork;
    uint32_t temporary_within;
    struct map_u64 gone; /* addresses that were seen freed; begins anew when it is full */
    uint64_t again;      /* frees of what was freed: the C library gives up a thread's spare ones */
    uint64_t missed;     /* memory that was allocated again without a free that was seen */
    uint64_t beyond; /* allocations beyond a bound: counted, but not known when they are freed */
    bool changed;
};

/* A thread's own state; the caller's to keep. */
struct heap_count_thread {
    uint32_t thread; /* id of the sink */
    uint32_t number; /* the caller's, from 1 */
    uint32_t serial; /* of its allocations */
};

struct heap_count_event {
    struct heap_count_thread *thread;
    uint64_t time_ns;
    uint64_t address;
    uint64_t size;
    uint32_t stack;
};

void heap_count_init(struct heap_count *count, uint32_t temporary_within);
void heap_count_deinit(struct heap_count *count);

/* -ENOMEM. What is beyond a bound is counted. */
MUST_USE int heap_count_allocated(struct heap_count *count, const struct heap_count_event *event);
/* *ret: what it was, for whoever tells of every event; address 0: nobody knows. */
MUST_USE int heap_count_freed(struct heap_count *count, const struct heap_count_event *event,
                              struct heap_live_entry *ret);
/* realloc() begins: its old memory is taken out, not yet counted as freed. address 0: not known. */
struct heap_live_entry heap_count_take(struct heap_count *count, uint64_t address);
/* It failed. */
MUST_USE int heap_count_put_back(struct heap_count *count, const struct heap_live_entry *old);
/* It is done: a free of what was at `before`, and an allocation. event->address 0: it was to
 * free. */
MUST_USE int heap_count_reallocated(struct heap_count *count, uint64_t before,
                                    const struct heap_live_entry *old,
                                    const struct heap_count_event *event);
/* `child` is initialised. */
MUST_USE int heap_count_forked(struct heap_count *parent, struct heap_count *child);

/* The process has ended: what lives is told already, and needs no more room. */
void heap_count_over(struct heap_count *count);

/* `all`: also sites that did not change: what they had at the peak may have. */
MUST_USE int heap_count_put(struct heap_count *count, struct sink *sink, bool all);
/* What lives now, by stack. */
MUST_USE int heap_count_snapshot(const struct heap_count *count, struct sink *sink,
                                 uint64_t time_ns, enum heap_snapshot_why why);
