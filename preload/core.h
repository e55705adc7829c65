/* What the families of hooks share: the memory that whyslow reads, a place in it for each
 * thread, stacks, waits and holds.
 *
 * The library lives in somebody else's program. It allocates nothing, prints nothing, holds no
 * lock, keeps errno, and never waits: what cannot be told is counted and left out. A hook that
 * interrupts another in the same thread (a signal handler's) is let through unseen. After a
 * fork, however it was made, the child takes places of its own; exec begins anew. */
#pragma once

#include "format/preload_io.h"

#include <stdbool.h>
#include <stddef.h>

#define EXPORT      __attribute__((visibility("default")))
#define NOINLINE    __attribute__((noinline))
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* False: hooks only pass on. True only once the functions behind them are known. */
extern bool core_on; /* those for locks */
extern bool core_io_on;
/* The process has begun to forbid itself system calls: ours must not be its end. */
extern bool core_sandboxed;
void core_settle(void); /* what is to be asked is asked now; it is sandboxed from then on */

enum { CORE_HELD_MAX = 16, CORE_RECENT = 16 };

struct core_held { /* a lock whose hold is timed */
    const void *lock;
    uint64_t since_ns;
    uint8_t kind;
    uint8_t flags;
};

struct core_recent { /* stacks told since whyslow has last read */
    uint64_t tag, tail;
    uint32_t told;
    uint32_t passed; /* over, since all that was told has been read */
};

/* A thread in one family of hooks. */
struct core_home {
    uint64_t generation; /* of the process in which `place` was taken */
    struct preload_thread *place;
    uint32_t stacks; /* told so far, for their numbers */
    uint32_t homeless;
    uint32_t recent_next;
    struct core_recent recent[CORE_RECENT];
};

struct core_self {
    uint32_t acquisitions; /* without a wait */
    uint32_t held_count;
    bool busy;         /* in here: a signal handler must not */
    uint32_t tid;      /* valid for tid_generation */
    uint32_t row_next; /* of waits and holds */
    uint32_t call_row_next;
    uint64_t tid_generation;
    struct core_home homes[PRELOAD_FAMILIES];
    struct core_held held[CORE_HELD_MAX];
};
extern __thread struct core_self core_self __attribute__((tls_model("initial-exec")));

/* The registers as they stand here, in the hook itself: the walk begins in its frame, so that
 * the innermost name of the stack is that of the function that was called. */
#if defined(__x86_64__)
#define CORE_HERE(registers)                                                                       \
    __asm__ volatile("leaq 0(%%rip), %%rax\n\t"                                                    \
                     "movq %%rax, 0(%0)\n\t"                                                       \
                     "movq %%rsp, 8(%0)\n\t"                                                       \
                     "movq %%rbx, 16(%0)\n\t"                                                      \
                     "movq %%rbp, 24(%0)\n\t"                                                      \
                     "movq %%r12, 32(%0)\n\t"                                                      \
                     "movq %%r13, 40(%0)\n\t"                                                      \
                     "movq %%r14, 48(%0)\n\t"                                                      \
                     "movq %%r15, 56(%0)\n\t"                                                      \
                     :                                                                             \
                     : "r"(registers)                                                              \
                     : "rax", "memory")
#elif defined(__aarch64__)
#define CORE_HERE(registers)                                                                       \
    __asm__ volatile("adr x16, .\n\t"                                                              \
                     "mov x17, sp\n\t"                                                             \
                     "stp x16, x17, [%0]\n\t"                                                      \
                     "stp x19, x20, [%0, 16]\n\t"                                                  \
                     "stp x21, x22, [%0, 32]\n\t"                                                  \
                     "stp x23, x24, [%0, 48]\n\t"                                                  \
                     "stp x25, x26, [%0, 64]\n\t"                                                  \
                     "stp x27, x28, [%0, 80]\n\t"                                                  \
                     "stp x29, x30, [%0, 96]\n\t"                                                  \
                     :                                                                             \
                     : "r"(registers)                                                              \
                     : "x16", "x17", "memory")
#else
#error "the preload library knows x86_64 and aarch64"
#endif

/* A wait from here on; a blocking call follows, then core_wait_end() or nothing. */
struct core_wait {
    const void *object;
    uint64_t start_ns; /* 0: not recorded */
    uint64_t end_ns;   /* after core_wait_end() */
    uint32_t other;
    uint32_t stack;
    uint8_t lock;
};
#define CORE_WAIT_BEGIN(wait, kind, address, owner)                                                \
    do {                                                                                           \
        struct preload_registers registers_;                                                       \
        CORE_HERE(&registers_);                                                                    \
        core_wait_begin((wait), (kind), (address), (owner), &registers_);                          \
    } while (0)
void core_wait_begin(struct core_wait *wait, enum preload_lock lock, const void *object,
                     uint32_t other, const struct preload_registers *registers);
void core_wait_end(struct core_wait *wait, unsigned flags);
void core_wait_forget(const struct core_wait *wait); /* it was no wait */

/* A lock is held from now on (`since_ns` 0) or since a wait ended. */
void core_hold_begin(const void *lock, enum preload_lock kind, uint64_t since_ns, unsigned flags);
/* Each so-manieth acquisition that needed no wait. */
static inline void core_hold_maybe(const void *lock, enum preload_lock kind)
{
    if (UNLIKELY(++core_self.acquisitions % PRELOAD_HOLD_EVERY == 0))
        core_hold_begin(lock, kind, 0, PRELOAD_SAMPLED);
}

struct core_hold {
    struct core_held held;
    uint64_t end_ns;
};
/* Before the lock is given back: true when its hold was timed; it is over. */
bool core_hold_take(const void *lock, struct core_hold *ret);
/* After it was given back: telling costs those who wait for it nothing. */
#define CORE_HOLD_END(hold)                                                                        \
    do {                                                                                           \
        struct preload_registers registers_;                                                       \
        CORE_HERE(&registers_);                                                                    \
        core_hold_end((hold), &registers_);                                                        \
    } while (0)
void core_hold_end(const struct core_hold *hold, const struct preload_registers *registers);
/* The same at a stack that is told already. */
void core_hold_end_at(const struct core_hold *hold, uint32_t stack);

/* Who rang last: conditions and semaphores have no owner. The last one before the sleeper
 * looked; with several at the same moment it is one of them. */
void core_ring(const void *object);
void core_ring_forget(const void *object);
uint32_t core_ring_by(const void *object);

/* What the hooks for I/O need of the core: between core_enter() and core_leave() nothing else of
 * this thread comes in here. */
struct core_io {
    struct preload_io_objects *objects;
    uint32_t process; /* its id, as of the last place taken */
};
extern struct core_io core_io;
bool core_enter(struct core_self *self, bool *on); /* false: nothing may be recorded now */
void core_leave(struct core_self *self);
/* NULL when there is none, and then the record is counted. */
struct preload_thread *core_place(struct core_self *self, enum preload_family_name family);
/* The place taken before; NULL when the process is another by now. */
struct preload_thread *core_place_still(const struct core_self *self,
                                        enum preload_family_name family);
uint32_t core_stack(struct core_self *self, enum preload_family_name family,
                    struct preload_thread *place, const struct preload_registers *at,
                    uint64_t time_ns);
struct preload_record *core_ring_room(struct preload_thread *place, uint32_t bytes, uint32_t spare);
void core_ring_put(struct preload_thread *place, uint32_t bytes);
void core_place_mark(const struct preload_thread *place, enum preload_family_name family);
uint64_t core_now_ns(void);
long core_raw6(long number, long a, long b, long c, long d, long e, long f); /* -errno */
static inline long core_raw(long number, long a, long b, long c, long d)
{
    return core_raw6(number, a, b, c, d, 0, 0);
}

/* hooks.c: finds the functions behind the hooks; true when there is a libc that we know. */
bool hooks_resolve(void);
/* io_next.c: the same for I/O. */
void io_resolve(void);
