/* The memory shared by whyslow and the library that counts allocations in the target (preload/).
 *
 * One sparse file without a name, made by whyslow. A header, then a window for each process: exec
 * and fork take the next one. In its window a process keeps what it has counted; whyslow reads
 * it while it is written and after its writer is dead, however it died, and gives the window's
 * memory back once it is read to the end.
 *
 *     header | window 0 | window 1 | …        window: process | threads | images | hash | nodes |
 * cells
 *
 * Counting is done in the target, at the moment: a stack is a node of a tree, and each thread has
 * a cell of its own for each stack that it allocates or frees memory of. So nothing is lost,
 * nobody waits for whyslow, and memory grows with distinct stacks, not with calls
 * (docs/decisions/0020-heap-counted-in-the-target.md). What a thread writes, only it writes, but
 * for what is said to be shared.
 *
 * Readers: all of it may be garbage, and may change at any time. Numbers are 8-byte words written
 * whole; those that belong together may be of two moments. */
#pragma once

#include <stdint.h>

#define HEAP_VARIABLE "WHYSLOW_HEAP"
#define HEAP_MAGIC    UINT64_C(0x7061656877737968)

enum { HEAP_VERSION = 1 };

enum {
    HEAP_HEADER_BYTES = 1 << 20,
    HEAP_WINDOWS_MAX = 1 << 16,
    HEAP_THREADS_MAX = 4096, /* of a process at once; more share the last place */
    HEAP_IMAGES_MAX = 4096,
    HEAP_NODES_MAX = 1 << 20,
    HEAP_CELLS_MAX = 1 << 20, /* 128 MiB of address space, which a program may limit for itself */
    HEAP_FOLD_FROM = 1 << 12, /* nodes, from which on recursion is folded */
    HEAP_FRAMES_MAX = 512,    /* of a stack; what lies further out is left out */
    HEAP_PATH_MAX = 232,
    HEAP_SIZES = 48, /* buckets: 0 is none, n from 2^(n-1) bytes on */
    HEAP_LIVES = 24, /* buckets: 0 is less than a tick, n from 2^(n-1) ticks on */
    HEAP_TICK_NS = 4000000,
};
#define HEAP_WINDOW_BYTES (UINT64_C(1) << 30)
#define HEAP_FILE_BYTES   (HEAP_HEADER_BYTES + HEAP_WINDOWS_MAX * HEAP_WINDOW_BYTES)

struct heap_header {
    uint64_t magic;
    uint32_t version;
    uint32_t temporary_within; /* allocations of the thread; 1: freed before its next one */
    uint64_t sample_bytes;     /* 0: every call; else one in so many bytes, on average */
    uint32_t log;              /* every event is told, too (heap_log) */
    uint32_t windows_max;      /* that fit into the file; at most HEAP_WINDOWS_MAX */
    /* Shared: */
    uint32_t over;    /* whyslow has stopped: nothing more is to be counted */
    uint32_t windows; /* taken so far; may exceed the maximum: those went uncounted */
    uint32_t tick;    /* of HEAP_TICK_NS since start_ns; whyslow's, for lifetimes */
    uint32_t refused; /* processes that have no window: no memory, or no room to map it */
    uint64_t start_ns;
};

/* What a call is. The node of a stack's innermost frame says it with its pc. */
enum heap_entry {
    HEAP_MALLOC,
    HEAP_CALLOC,
    HEAP_REALLOC,
    HEAP_REALLOCARRAY,
    HEAP_POSIX_MEMALIGN,
    HEAP_ALIGNED_ALLOC,
    HEAP_MEMALIGN,
    HEAP_VALLOC,
    HEAP_PVALLOC,
    HEAP_NEW,           /* operator new, in all its forms */
    HEAP_NEW_ARRAY,     /* operator new[] */
    HEAP_ENTRIES_COUNT, /* above: the heap */
    HEAP_MMAP = 32,     /* from here on: apart from it */
    HEAP_MUNMAP,
    HEAP_MREMAP,
    HEAP_BRK,
};

/* A call: its caller's, or the root (parent 0). A node's parent has a lower number. Number 0 is
 * none; number 1 is "somewhere": calls of which no stack could be had, or kept. */
struct heap_node {
    uint64_t pc;     /* return address; of the innermost: enum heap_entry. Written last */
    uint32_t parent; /* node */
    uint32_t next;   /* in the chain of its hash; the library's own */
    uint32_t folded; /* not 0: this step leads back to that node, of the same function */
    uint8_t leaf;    /* 1: `pc` is an enum heap_entry */
    uint8_t end;     /* of the outermost: enum heap_end */
    uint16_t epoch;  /* of the outermost: which images the pcs are of */
};
enum heap_end { HEAP_END_ROOT, HEAP_END_NO_RULE, HEAP_END_BAD_STACK, HEAP_END_TOO_DEEP };

/* An image that a walk went through. dlclose() begins an epoch: what lay there before stays
 * true for nodes of the epochs before. */
struct heap_image {
    uint64_t start, end; /* start is written last */
    uint64_t load;       /* what its addresses count from: pc - load is the ELF vaddr */
    uint16_t epoch;      /* the first in which it is there */
    uint16_t gone_epoch; /* the first in which it is not; 0: it still is */
    uint32_t unused;
    char path[HEAP_PATH_MAX]; /* empty: the program itself, if it is not known better; the vDSO is
                                 "[vdso]" */
};

/* What one thread did with memory of one stack. Frees count at the stack that allocated. */
struct heap_cell {
    uint32_t node;      /* 0: not yet; written last */
    uint16_t thread;    /* place */
    uint16_t chain_max; /* how often one piece of memory was grown in turn */
    uint64_t allocations, allocated_bytes;
    uint64_t frees, freed_bytes;
    uint64_t lived_ticks; /* of all frees together */
    uint64_t size_max;
    uint32_t epoch; /* of the peak: peak_* are what they were when it was left */
    uint32_t moved; /* reallocations that had to move */
    /* In a second line, since not every call comes here: */
    int64_t peak_count, peak_bytes;      /* allocated less freed by this thread, by then */
    uint64_t temporary, temporary_bytes; /* of the frees: right after it, by the same thread */
    uint64_t grown, grown_bytes;         /* of the allocations: reallocations to a larger size */
    double variance;                     /* of allocated_bytes, when sampled */
    uint32_t tid;                        /* whose it is; 0: of who lives in the place */
    uint32_t samples;                    /* what the figures rest on, when sampled */
};
_Static_assert(sizeof(struct heap_cell) == 128, "two lines of the cache");

enum heap_thread_state { HEAP_THREAD_FREE, HEAP_THREAD_TAKEN };

struct heap_thread_place {
    _Alignas(64) uint32_t state;
    uint32_t tid;
    uint32_t serial; /* counts those who have lived here */
    uint32_t began_tick;
    int64_t credit; /* its part of the room below the process's peak; shared */
    /* Frees of what was not seen allocated: before us, by the parent before a fork, by others. */
    uint64_t unseen_frees, inherited_frees, inherited_bytes;
    uint64_t no_cell;  /* calls counted at node 1, "somewhere": no room for a cell of their own */
    uint64_t no_entry; /* allocations that are not known when they are freed: no memory for it */
    uint64_t missed;   /* frees that nobody saw: the memory was handed out anew */
    uint64_t nested;   /* calls out of a signal handler that interrupted the library: counted */
    uint64_t lost;     /* calls counted nowhere: never in exact mode, we hope */
    uint64_t failed;   /* calls that returned NULL */
    uint64_t walks, frames, recognised; /* stacks; frames walked anew; frames found unchanged */
    uint64_t sizes[HEAP_SIZES];         /* of allocations */
    uint64_t lives[HEAP_LIVES];         /* of what was freed */
    uint64_t mapped, mapped_bytes;      /* mmap() and the like, called by the program itself */
    uint64_t unmapped, unmapped_bytes;
    /* Its log, if one is kept. Positions count words and only grow; whyslow writes `log_read`. */
    uint32_t log; /* which of the logs + 1; 0: none */
    uint32_t unused;
    uint64_t log_written, log_read;
    uint64_t log_lost; /* events that waited too long for room: whyslow was gone, or stood still */
};

/* A log is a ring of words. One word a free: HEAP_LOG_FREED | address. Two words an allocation:
 * HEAP_LOG_ALLOCATED | address, then node << 40 | size. A tick stands between events, once in
 * each: HEAP_LOG_TICK | tick. */
enum { HEAP_LOG_WORDS = 1 << 15, HEAP_LOG_SHIFT = 60 };
enum heap_log_word { HEAP_LOG_TICK = 1, HEAP_LOG_ALLOCATED = 2, HEAP_LOG_FREED = 3 };
#define HEAP_LOG_BYTES (HEAP_LOG_WORDS * UINT64_C(8))

/* The peak of the live bytes: exact, and so is what it is made of in a single thread. With several
 * each may be one call ahead or behind in it.
 *
 * What lives is told by the room below the peak: spare and all credits together. Room below 0 is a
 * peak in the making: heap_live_bytes() and heap_peak_bytes() say what it comes to, and cells are
 * as they stand (HEAP_AT_PEAK, to those who need an epoch for that). */
struct heap_process {
    uint64_t magic; /* HEAP_MAGIC, written last */
    uint32_t pid;
    uint32_t parent_window; /* of the process that forked; UINT32_MAX: began with exec */
    uint64_t start_ns;      /* CLOCK_MONOTONIC */
    /* Where the parts lie in this window, and how many fit; a target whose memory is limited
     * has smaller ones. */
    uint64_t threads_at, images_at, nodes_at, cells_at;
    uint64_t logs_at; /* 0: none are kept */
    uint32_t threads_max, images_max, nodes_max, cells_max;
    uint32_t logs_max, logs; /* the second is shared */
    /* Shared: */
    uint32_t threads, images, nodes, cells; /* used; entries are valid once their key is set */
    uint32_t image_epoch;
    uint32_t lock;     /* over what has to be done by one thread at a time */
    uint32_t no_rules; /* places in code of which no rule was found */
    /* In a line of its own: every call reads it. */
    _Alignas(64) uint64_t peak_bytes; /* so far */
    int64_t spare;                    /* room below the peak that no thread has for itself */
    uint32_t peak_epoch; /* which peak it is: cells of this epoch have kept what they had at it */
    uint32_t peak_tick;
};
enum { HEAP_AT_PEAK = 0xffffffff };

/* `room`: spare and the credits of all places that were ever taken, the dead ones' as well. */
static inline uint64_t heap_live_bytes(const struct heap_process *process, int64_t room)
{
    uint64_t live = process->peak_bytes - (uint64_t)room;
    return live >> 63 ? 0 : live;
}
static inline uint64_t heap_peak_bytes(const struct heap_process *process, int64_t room)
{
    return process->peak_bytes + (room < 0 ? -(uint64_t)room : 0);
}

static inline unsigned heap_bucket(uint64_t value, unsigned buckets)
{
    unsigned bucket = value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
    return bucket < buckets ? bucket : buckets - 1;
}
