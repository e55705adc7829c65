/* The rings the kernel writes samples into: one a CPU, read in place, merged by time.
 *
 *     perf_rings_map()      one ring a CPU, smaller when the kernel allows less
 *     perf_rings_begin()    looks at what is there, up to a horizon
 *     perf_rings_next()     the oldest record of all rings; valid until the next call
 *     perf_rings_end()      gives the space back
 *
 * The kernel writes while we read. `begin` takes the time first and the heads after it: a
 * record older than that time by a little is then in its ring for sure, so that what comes
 * out is in the order of time across CPUs. Younger ones wait for the next round, unless
 * `all` is asked for, when nobody writes any more.
 *
 * Only a record that wraps around the end of its ring is copied. Nothing is trusted but the
 * kernel: sizes are checked all the same, and a ring that makes no sense is emptied and
 * counted. One thread reads. */
#pragma once

#include "base/macros.h"
#include "base/why.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_ring {
    struct perf_event_mmap_page *page;
    uint8_t *data;
    size_t data_bytes; /* a power of two */
    uint64_t head;     /* as of begin */
    uint64_t tail;     /* how far we have read */
    uint64_t time_ns;  /* of the record at the tail, while it waits in the heap */
    int fd;            /* of the event that owns it: for poll(); not closed here */
    bool mapped;       /* by us: to be unmapped */
};

struct perf_rings {
    struct perf_ring *rings;
    size_t count;
    uint32_t *heap; /* indexes of rings with a record, the oldest first */
    size_t heap_len;
    uint64_t horizon_ns;
    uint64_t last_ns;  /* of the last record handed out */
    uint8_t *scratch;  /* for the record that wraps */
    uint32_t current;  /* the ring of the record handed out, UINT32_MAX if none */
    uint64_t late;     /* records that came out of order after all */
    uint64_t damaged;  /* rings emptied because a record made no sense */
    size_t data_bytes; /* of each */
};

enum {
    PERF_RING_BYTES_MIN = 128 << 10, /* holds at least one sample of any size */
    PERF_RECORD_BYTES_MAX = 1 << 16,
    /* SAMPLE: header, identifier, ip, pid and tid, then the time. */
    PERF_SAMPLE_TIME_AT = 32,
    /* Others end with pid and tid, time, identifier. */
    PERF_TRAILER_BYTES = 24,
};

/* `fds`: one event a CPU. Halves `data_bytes` until all can be mapped; what came of it is in
 * ret->data_bytes. -EPERM when not even the smallest is allowed. */
MUST_USE int perf_rings_map(const int *fds, size_t count, size_t data_bytes, struct perf_rings *ret,
                            struct why *why);
/* Rings made of plain memory, for tests: pages[i] is followed by its data. */
MUST_USE int perf_rings_adopt(struct perf_event_mmap_page *const *pages, size_t count,
                              size_t page_bytes, size_t data_bytes, struct perf_rings *ret);
void perf_rings_deinit(struct perf_rings *rings);

void perf_rings_begin(struct perf_rings *rings, uint64_t now_ns, bool all);
/* NULL when there is nothing more up to the horizon. */
const struct perf_event_header *perf_rings_next(struct perf_rings *rings, uint64_t *ret_time_ns);
void perf_rings_end(struct perf_rings *rings);

/* How long before now a record is certain to have been written: the time between taking the
 * clock and publishing the record, on a virtual CPU that may be taken away in between. */
#define PERF_RING_SETTLE_NS 5000000ull
