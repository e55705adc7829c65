/* What a program does with memory: rows that collectors count and the recording keeps.
 *
 * A site is a thread at a stack: what it allocated there, and what it freed of what was allocated
 * there, by whomever. Of one stack the sites of all threads of a process together say what lives.
 * Facts only: what is a leak worth a line, what is temporary too often, is for analyze/ to say.
 *
 * Tallies are whole, not additions: whoever counts hands over what it has counted so far, again
 * and again, and the last one stays. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Stored by name. */
enum heap_kind {
    HEAP_KIND_HEAP = 0, /* malloc() and its relatives, operator new */
    HEAP_KIND_MAP = 1,  /* mmap(), mremap(), brk() by the program itself: apart from the heap */
    HEAP_KIND_UNMAP = 2,
    HEAP_KINDS
};

struct heap_site_info {
    uint32_t thread; /* ids of the sink */
    uint32_t stack;  /* innermost: the function that was called; 0: not known */
    enum heap_kind kind;
};

/* When sampled these are estimates: sums of what the samples stand for, rounded. */
struct heap_tally {
    uint64_t allocations, allocated_bytes;
    uint64_t frees, freed_bytes;         /* by this thread, of memory of this stack */
    uint64_t temporary, temporary_bytes; /* of the frees: right after, by the same thread */
    int64_t peak_count, peak_bytes;      /* its share of what lived at the process's peak */
    uint64_t grown, grown_bytes;         /* of the allocations: realloc() to a larger size */
    uint64_t moved;                      /* of those: not where it was */
    uint64_t chain_max;                  /* so often the same memory was grown in turn */
    uint64_t size_max;
    uint64_t lived_ns; /* of all frees together, to a few milliseconds each */
    uint64_t samples;  /* what the figures rest on; equal to allocations unless sampled */
    double variance;   /* of allocated_bytes; 0 unless sampled */
};

/* Size in bytes: bucket 0 is none, bucket n from 2^(n-1) on. Life in units of life_unit_ns. */
enum { HEAP_SIZE_BUCKETS = 48, HEAP_LIFE_BUCKETS = 24 };

struct heap_process_tally { /* one a process of the sink */
    uint64_t peak_bytes, peak_count;
    uint64_t peak_ns;                          /* when */
    uint64_t unseen_frees;                     /* of memory that was not seen allocated */
    uint64_t inherited_frees, inherited_bytes; /* of memory that a fork left to it */
    uint64_t failed;                           /* calls that returned NULL */
    uint64_t life_unit_ns;
    uint64_t sizes[HEAP_SIZE_BUCKETS]; /* of allocations */
    uint64_t lives[HEAP_LIFE_BUCKETS]; /* of what was freed */
};

/* What lives at a moment. */
enum heap_snapshot_why { HEAP_SNAPSHOT_TIMER = 0, HEAP_SNAPSHOT_SIGNAL = 1, HEAP_SNAPSHOT_WHYS };
struct heap_snapshot_info {
    uint32_t process;
    uint64_t time_ns;
    enum heap_snapshot_why why;
};
struct heap_snapshot_row { /* of all threads together; only what is not 0 */
    uint32_t snapshot;     /* id */
    uint32_t stack;
    int64_t count, bytes;
};

/* Memory over time: one row a moment and process. Level series could not be joined. */
struct heap_moment {
    uint32_t process;
    uint64_t time_ns;
    uint64_t live_bytes;
    uint64_t rss_bytes; /* 0: not known */
};

/* --log: an event of one thread, in the order of the thread. */
enum heap_event_kind { HEAP_EVENT_ALLOCATED = 0, HEAP_EVENT_FREED = 1 };
struct heap_event {
    uint32_t thread;
    uint32_t stack; /* that allocated */
    enum heap_event_kind kind;
    uint64_t address;
    uint64_t size;
    uint64_t time_ns; /* to the library's tick */
};
