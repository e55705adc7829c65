/* What the parts of the heap library share: hooks (heap_hooks*.c), walk (heap_walk*.c), book
 * (heap_book*.c) and the life of a process and its threads in it (heap_life.c).
 *
 *     hook → the real call → heap_enter() → heap_walk() → heap_book_allocated() → heap_leave()
 *
 * A library of its own, apart from that for locks and I/O: it lives in somebody else's malloc().
 * It allocates nothing but by mmap(), prints nothing, keeps errno, calls nothing that could
 * allocate or take the loader's lock, and works in any thread at any time: before constructors,
 * after destructors, in signal handlers, after fork() and vfork(), on small stacks of its own
 * making (a hook uses less than 1 KiB of the caller's stack). */
#pragma once

#include "format/heap.h"

#include <stdbool.h>
#include <stddef.h>

/* What the parts share is the library's own: no way round through its table of symbols. */
#pragma GCC visibility push(hidden)

#define EXPORT      __attribute__((visibility("default")))
#define NOINLINE    __attribute__((noinline))
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Where a hook was called: what its caller has in registers once it returns. Hooks are compiled
 * with a frame pointer, so that all three can be had without a slow look at anything. */
struct heap_at {
    uint64_t pc; /* return address */
    uint64_t sp;
    uint64_t fp;
    enum heap_entry entry;
};
#if defined(__x86_64__)
#define HEAP_HERE(which)                                                                           \
    ((struct heap_at){                                                                             \
        .pc = ((const uint64_t *)__builtin_frame_address(0))[1],                                   \
        .sp = (uint64_t)__builtin_frame_address(0) + 16,                                           \
        .fp = ((const uint64_t *)__builtin_frame_address(0))[0],                                   \
        .entry = (which),                                                                          \
    })
#elif defined(__aarch64__)
/* x29 and x30 are saved at the frame; where the caller's sp was is told by the CFA. */
#define HEAP_HERE(which)                                                                           \
    ((struct heap_at){                                                                             \
        .pc = ((const uint64_t *)__builtin_frame_address(0))[1],                                   \
        .sp = (uint64_t)__builtin_dwarf_cfa(),                                                     \
        .fp = ((const uint64_t *)__builtin_frame_address(0))[0],                                   \
        .entry = (which),                                                                          \
    })
#else
#error "the preload library knows x86_64 and aarch64"
#endif

/* ---- life (heap_life.c) ---- */

/* A thread in this process. In memory of the library's own, not in TLS: a thread with the
 * smallest stack there is must not notice. */
enum { HEAP_LATER_MAX = 64 };
struct heap_walker; /* heap_walk.h: the last stack, frame by frame */
struct heap_thread {
    uint64_t generation; /* of the process it belongs to */
    struct heap_thread_place *place;
    uint16_t place_index;
    bool alone; /* no other thread counts in this process: no atomics are needed */
    struct heap_walker *walker;
    /* The book's; all 0 when a thread is made. Who takes a dead thread's place in the same process
     * may keep cell_of and cell_any: its cells go on. */
    uint32_t *cell_of;      /* node to cell + 1; one for each node, touched as needed */
    uint32_t cell_any;      /* cell + 1 of node 1: where all goes that has no cell of its own */
    uint64_t entry_base;    /* what its entries have in common */
    const void *recent[16]; /* memory allocated last, newest at recent_next - 1 */
    uint32_t recent_next;
    int64_t countdown; /* bytes until the next sample */
    uint64_t random;
    uint64_t *log; /* NULL: none yet */
    uint32_t log_tick;
    bool log_over; /* nobody reads it, or there was no room for one */
    /* What signal handlers did while this thread was counting. */
    uint32_t later_count;
    struct heap_later {
        void *memory;
        uint64_t size;
        bool freed; /* and is to be given back then, not before */
    } later[HEAP_LATER_MAX];
};

/* What a thread has in TLS, and no more. */
struct heap_self {
    struct heap_thread *thread; /* NULL: none yet */
    const uint64_t *busy;       /* mark in the frame of the hook that counts now; NULL: none */
    const void *last;           /* memory that a hook counted last, if functions nest */
    const void *freeing;        /* memory that an outer hook has counted as freed */
    bool later;                 /* something is left to do for whoever leaves */
    bool looking;               /* for the functions behind the hooks */
};
extern __thread struct heap_self heap_self __attribute__((tls_model("initial-exec")));

/* False: hooks only pass on. */
extern bool heap_on;
extern struct heap_header *heap_header;
/* Of this process; replaced in a child of fork(). */
extern struct heap_process *heap_process;
extern struct heap_node *heap_nodes;
extern struct heap_cell *heap_cells;
extern uint32_t *heap_hash; /* of nodes */
extern uint32_t heap_hash_mask;
/* In a page that a fork leaves empty in the child: 0 there until it has a window of its own. */
extern uint64_t *heap_generation;

/* glibc's word on whether there is one thread only; else it points to false. */
extern const char *heap_single;

/* Around everything that counts; NULL when it is not to be counted now: off, or a signal handler
 * has interrupted this thread in here (heap_hooks.c then puts it off until the outer one leaves).
 * `mark` lies in the caller's frame and stays there until heap_leave(): a handler that never
 * returns leaves one behind, which is then overwritten or in a frame that is gone.
 *
 * The functions behind the hooks are called outside of it: what they call in turn, and what a
 * handler does that interrupts them, is counted as any other call. */
NOINLINE struct heap_thread *heap_enter_slow(uint64_t *mark);
static inline uint64_t heap_mark(const uint64_t *mark)
{
    return (uint64_t)mark ^ UINT64_C(0x6865617020686f6f);
}
static inline struct heap_thread *heap_enter(uint64_t *mark)
{
    struct heap_self *self = &heap_self;
    struct heap_thread *thread = self->thread;
    if (UNLIKELY(!thread || self->busy ||
                 thread->generation != __atomic_load_n(heap_generation, __ATOMIC_RELAXED) ||
                 __atomic_load_n(&heap_header->over, __ATOMIC_RELAXED)))
        return heap_enter_slow(mark);
    *(volatile uint64_t *)mark = heap_mark(mark);
    self->busy = mark;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->alone = *(const volatile char *)heap_single != 0;
    return thread;
}
NOINLINE void heap_leave_slow(void);
static inline void heap_leave(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    heap_self.busy = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (UNLIKELY(heap_self.later))
        heap_leave_slow();
}

/* What is to be counted when the interrupted hook leaves, at no stack in particular; freed memory
 * is given back then. False: there is none, or no room; it is for the caller to go on. */
bool heap_put_off(void *memory, uint64_t size, bool freed);

void *heap_map(size_t bytes); /* private memory, zero, reserved only; NULL: none */
/* madvise() of what would be good but need not be: not once the program may have put up a filter.
 */
void heap_advise(const void *memory, size_t bytes, int advice);
long heap_raw6(long number, long a, long b, long c, long d, long e, long f); /* -errno */

/* ---- walk (heap_walk.c, heap_rules.c, heap_tree.c) ---- */

/* The node of the stack, with the call on top; never 0. Compares all of what it does not walk
 * anew. */
uint32_t heap_walk(struct heap_thread *thread, const struct heap_at *at);
/* The file that is run, for readers who come when the process is gone; empty: not known. */
extern char heap_program[HEAP_PATH_MAX];
struct heap_walker *heap_walker_make(void); /* NULL: no memory */
/* It is another thread's from now on, or was interrupted for ever: nothing in it holds. */
void heap_walker_forget(struct heap_walker *walker);
/* After dlclose() and dlopen(): what is known of code may be wrong. */
void heap_walk_images_changed(bool gone);
/* The process is a child of fork(): the tree begins anew, rules stay. */
void heap_walk_forked(void);

/* ---- book (heap_book.c) ---- */

/* What is known of a piece of memory while it is allocated. */
struct heap_entry_row {
    uint64_t size : 38;
    uint64_t low : 2; /* bits of the address, from 8 bytes on */
    uint64_t place : 12;
    uint64_t generation : 8; /* low bits of the process's: another one is a parent's */
    uint64_t chain : 4;      /* grown by realloc() so often; 15 is 15 or more */
    uint32_t node;           /* 0: not allocated, as far as we know */
    uint32_t tick : 31;
    uint32_t rounded_up : 1; /* when sampled: how the number that it stands for was rounded */
};

/* Whether this one is to be counted: all of them, or by chance when sampled; counts down. Asked
 * once for every allocation, before the book is told of it. */
bool heap_book_wants_sample(struct heap_thread *thread);
static inline bool heap_book_wants(struct heap_thread *thread, uint64_t size)
{
    if (LIKELY(heap_header->sample_bytes == 0))
        return true;
    /* What has no bytes is taken for one: it could not be met by chance. */
    thread->countdown -= (int64_t)size + (size == 0);
    if (UNLIKELY(thread->countdown < 0) && heap_book_wants_sample(thread))
        return true;
    thread->recent[thread->recent_next++ % 16] = NULL;
    return false;
}
/* It will be told of this memory in a moment; the walk is time enough to have its entry at hand. */
void heap_book_expect(const void *memory);
/* Samples are taken. */
extern bool heap_sampling;
/* Then most calls are none, and it takes little to know: nothing that is shared is touched, and
 * what is counted down twice or not at all by a handler's leave is chance, too. False: the usual
 * way decides. */
static inline bool heap_book_passes(uint64_t size)
{
    struct heap_thread *thread = heap_self.thread;
    if (UNLIKELY(!thread || heap_self.busy))
        return false;
    int64_t left = thread->countdown - (int64_t)size - (size == 0);
    if (UNLIKELY(left < 0))
        return false;
    thread->countdown = left;
    thread->recent[thread->recent_next++ % 16] = NULL;
    return true;
}
/* No sample lies on its page. */
bool heap_book_is_unsampled(const void *memory);
/* After the real call has returned it. `size` is what was asked for. */
void heap_book_allocated(struct heap_thread *thread, const void *memory, uint64_t size,
                         uint32_t node);
/* Before the real free(). */
void heap_book_freed(struct heap_thread *thread, const void *memory);
/* realloc(): taken out before the real call … */
struct heap_entry_row heap_book_take(struct heap_thread *thread, const void *memory);
/* … and then put back as it was (it failed), or counted as a free and an allocation, in this
 * order; when it was not known (node 0) as an allocation only. `node` 0: the new one is not
 * wanted; `memory` NULL: there is none (realloc() to 0 bytes). */
void heap_book_put_back(struct heap_thread *thread, const void *memory,
                        const struct heap_entry_row *row);
void heap_book_reallocated(struct heap_thread *thread, const void *before,
                           const struct heap_entry_row *row, const void *memory, uint64_t size,
                           uint32_t node);
/* mmap() and the like, apart from the heap: calls and bytes at the stack, nothing lives. */
void heap_book_mapped(struct heap_thread *thread, uint64_t bytes, bool unmapped, uint32_t node);
void heap_book_forked(void); /* in the child: live bytes and their peak begin at 0 */
/* A signal handler has left a call of the book for good: what it held is given back. */
void heap_book_left(void);
/* Once a process; false: no memory. `apart`: pieces lie at least 32 bytes apart, as those of glibc
 * do. Should they not, they are told from each other all the same, if not so fast. */
bool heap_book_begin(bool apart);

/* ---- log (heap_log.c) ---- */

/* Every event is told, where that was asked for (header->log): the book calls it, a reallocation
 * is a free and an allocation. Waits for room while whyslow reads; gives up when it does not. */
void heap_log_allocated(struct heap_thread *thread, const void *memory, uint64_t size,
                        uint32_t node);
void heap_log_freed(struct heap_thread *thread, const void *memory);

/* ---- hooks (heap_hooks.c, heap_next.c) ---- */

bool heap_hooks_resolve(void);   /* finds the functions behind the hooks */
bool heap_hooks_are_first(void); /* malloc() is ours for all of the program */

#pragma GCC visibility pop
