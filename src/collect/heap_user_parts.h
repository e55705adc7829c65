/* What the files of the user tier of the heap share; nobody else includes this.
 *
 * heap_user.c          the collector's life
 * heap_user_windows.c  which process a window is of, and when it is read to the end
 * heap_user_stacks.c   nodes of its tree to stacks of the sink; threads
 * heap_user_rows.c     cells to sites, processes, moments and snapshots
 * heap_user_log.c      every event, where that was asked for
 * heap_user_facts.c    the last words: counters, the document, why nothing was seen
 * heap_user_tick.c     the clock of lifetimes
 *
 * All in a window is hostile: where its parts lie is read once and checked, counts are bounded by
 * that, parents are below their children, and nothing is read twice that must be the same. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "collect/cpu.h"
#include "collect/heap_user.h"
#include "collect/stacks.h"

#include <pthread.h>

enum {
    HEAP_CHAIN_MAX = HEAP_FRAMES_MAX + 8, /* nodes of a stack, the call and its end with them */
    HEAP_WINDOWS_LIVE_MAX = 1 << 14,      /* mapped at once: address space */
    HEAP_THREADS_KEPT_MAX = 1 << 20,      /* ids of threads that have ended, of one process */
    HEAP_UNCOVERED_MAX = 5,               /* programs that are named */
    HEAP_MOMENTS_EACH = 2048,             /* of a process, before they become half as many */
};

/* An image as a window told it, checked. */
struct heap_seen_image {
    uint64_t start, end, load;
    uint16_t epoch, gone_epoch;
    uint32_t index; /* in the window */
    uint32_t image; /* of `stacks`; UINT32_MAX: it could not be had */
};

struct heap_seen_node {
    uint32_t stack;      /* of the sink; 0: not made yet */
    uint16_t epoch;      /* of its outermost */
    uint8_t is_complete; /* it reaches the root */
    uint8_t kind;        /* enum heap_kind */
};

/* A cell, and what was told of it last. */
struct heap_seen_cell {
    uint32_t site; /* 0: none yet */
    uint32_t head; /* cells that give the same site are a list: index + 1 of its first … */
    uint32_t next; /* … and of the next; 0: none */
    uint32_t stack;
    uint8_t kind;
    bool dirty; /* of a head: something in the list is new */
    uint64_t allocations, frees;
    int64_t peak_count, peak_bytes;
};

/* Where the parts lie, checked. */
struct heap_layout {
    const struct heap_thread_place *threads;
    const struct heap_image *images;
    const struct heap_node *nodes;
    const struct heap_cell *cells;
    uint32_t threads_max, images_max, nodes_max, cells_max;
};

/* Where the reading of one thread's log stands. */
struct heap_log_place {
    uint32_t tick;
    bool is_amid; /* an allocation: its second word is to come */
    uint64_t address;
};

struct heap_window {
    uint32_t index;
    uint32_t pid;
    uint64_t start_ns;
    const struct heap_process *shared;
    struct heap_layout at;
    bool is_foreign;  /* `stacks` has not heard of its process, or no longer */
    uint32_t process; /* of the sink; 0: nothing was counted so far */
    VEC(struct heap_seen_image) images;
    uint32_t images_read;
    size_t image_last; /* found last */
    VEC(struct heap_seen_node) nodes;
    VEC(struct heap_seen_cell) cells;
    struct map_u64 sites;   /* of the sink to index + 1 of the first cell */
    struct map_u64 threads; /* tid to the sink's id */
    uint64_t moments, moment_ns;
    VEC(struct heap_log_place) log_places;
};

struct heap_window_at {
    struct heap_window *it;
};

struct heap_pending {
    uint32_t index;
    uint64_t since_ns;
};

struct heap_ticker {
    pthread_t thread;
    bool running;
    uint32_t over; /* atomic */
    struct heap_header *header;
};

struct heap_uncovered {
    char exe[128];
    char why[256];
};

struct collector {
    struct heap_opts opts;
    struct preload_heap *preload;
    struct sink *sink;
    struct stacks *stacks;
    struct heap_ticker ticker;
    bool blind, stopped, over;
    int root_pid;
    const char *root_command;
    bool snapshot_wanted;
    uint64_t snapshot_ns, read_ns, tick_ns; /* when the next is due */
    uint32_t windows_seen;
    VEC(struct heap_pending) pending;
    VEC(struct heap_window_at) windows;
    struct map_u64 programs; /* pid to HEAP_PROGRAM_…, since its last exec */
    uint32_t entry_frames[HEAP_BRK + 1];
    VEC(uint32_t) dirty;                 /* scratch: cells */
    struct heap_logs *logs;              /* NULL: not asked for */
    struct heap_logs_piece *log_waiting; /* whose windows have no process yet */
    struct heap_logs_piece **log_waiting_end;
    size_t log_waiting_bytes;
    struct heap_uncovered uncovered_named[HEAP_UNCOVERED_MAX];
    size_t uncovered_count;
    char na[768];

    uint64_t own_start_ns;
    uint64_t processes, threads, uncovered, unmatched, unfinished, malformed, left_out;
    uint64_t stacks_told, stacks_complete;
    uint64_t allocations, allocated_bytes, frees, mapped;
    uint64_t unseen_frees, inherited_frees, failed, no_cell, no_entry, missed, nested, lost;
    uint64_t walks, frames, recognised, no_rules, snapshots;
    uint64_t events, events_lost;
    bool nodes_full, cells_full;
};
enum { HEAP_PROGRAM_BEGAN = 1, HEAP_PROGRAM_COVERED = 2 };

/* heap_user_windows.c */
/* Those taken before `time_ns` whose processes are known by then. UINT64_MAX: all. */
MUST_USE int heap_windows_look(struct collector *c, uint64_t time_ns);
/* A process becomes another program, or ends: what it was is read to the end. */
MUST_USE int heap_windows_end(struct collector *c, int pid, uint64_t time_ns);
/* Those of processes that are gone without our being told. */
MUST_USE int heap_windows_sweep(struct collector *c);
MUST_USE int heap_windows_end_all(struct collector *c);
void heap_windows_deinit(struct collector *c);
/* The layout, if it makes sense: 0 or -EBADMSG. */
MUST_USE int heap_layout_check(const struct heap_process *process, const void *window,
                               struct heap_layout *ret);

/* heap_user_stacks.c */
MUST_USE int heap_images_read(struct collector *c, struct heap_window *window);
MUST_USE int heap_node_stack(struct collector *c, struct heap_window *window, uint32_t node,
                             struct heap_seen_node *ret);
/* Asks for the process's id; 0 or the sink's error. */
MUST_USE int heap_process_need(struct collector *c, struct heap_window *window);
MUST_USE int heap_thread_need(struct collector *c, struct heap_window *window, uint32_t tid,
                              uint32_t *ret_thread);
/* It ends: its id can be asked for for the last time. */
MUST_USE int heap_thread_note(struct collector *c, struct heap_window *window, uint64_t time_ns,
                              uint32_t tid);

/* heap_user_rows.c */
MUST_USE int heap_cells_read(struct collector *c, struct heap_window *window);
MUST_USE int heap_process_read(struct collector *c, struct heap_window *window, bool is_last);
MUST_USE int heap_moment_read(struct collector *c, struct heap_window *window, uint64_t now_ns,
                              bool is_gone);
MUST_USE int heap_snapshot_read(struct collector *c, struct heap_window *window, uint64_t now_ns,
                                enum heap_snapshot_why why);

/* heap_user_log.c; without a log all of them do nothing */
MUST_USE int heap_log_start(struct collector *c, struct why *why);
MUST_USE int heap_log_take(struct collector *c); /* what is there */
MUST_USE int heap_log_window_end(struct collector *c, const struct heap_window *window);
void heap_log_stop(struct collector *c);
void heap_log_free(struct collector *c);

/* heap_user_facts.c */
uint64_t heap_own_cpu_ns(void);
/* At the start, so that it is there after a kill, and with the figures at the end. */
MUST_USE int heap_facts_put(struct collector *c, bool is_last);
void heap_program_begins(struct collector *c, int pid);
void heap_program_ends(struct collector *c, int pid);
/* Why nothing was seen; into c->na, which stays empty when something was. */
void heap_na_find(struct collector *c);

/* heap_user_tick.c */
MUST_USE int heap_ticker_start(struct heap_ticker *ticker, struct heap_header *header);
void heap_ticker_stop(struct heap_ticker *ticker);
