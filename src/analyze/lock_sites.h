/* What the stack of a wait for a lock says: the kind of lock, and who wanted it. */
#pragma once

#include "base/arena.h"
#include "model/profile.h"

enum lock_kind {
    LOCK_UNKNOWN,
    LOCK_MUTEX,
    LOCK_PI_MUTEX,
    LOCK_RWLOCK_READ,
    LOCK_RWLOCK_WRITE,
    LOCK_RWLOCK, /* read and write */
    LOCK_CONDITION,
    LOCK_SEMAPHORE,
    LOCK_BARRIER,
    LOCK_ONCE,
    LOCK_JOIN,
    LOCK_GO_RUNTIME,
    LOCK_KERNEL_SPIN,
    LOCK_KERNEL_MUTEX,
    LOCK_KERNEL_RWSEM,
    LOCK_KERNEL_OTHER,
    LOCK_KINDS,
};
const char *lock_kind_name(enum lock_kind kind); /* "rwlock, read" */

/* Of a lock of the kernel from its name, which begins with what it is: "rwsem (read) …". */
enum lock_kind lock_kind_of_kernel(struct str name);

struct lock_site {
    enum lock_kind kind; /* LOCK_UNKNOWN: no function on the way tells */
    uint32_t function;   /* innermost that is no part of the locking; 0: none is known */
    struct str file;     /* and where in it */
    uint32_t line;
};

/* Of a stack in profile->stacks. For a kernel lock the innermost function of the kernel that is
 * no part of its locks; else kernel frames are passed over. */
struct lock_site lock_site_find(const struct profile *profile, uint32_t stack, bool kernel_lock);
/* Where a holder was: the innermost function that belongs neither to locks nor to the C or C++
 * library, for whoever sleeps or reads under a lock does so through these. */
struct lock_site lock_holder_find(const struct profile *profile, uint32_t stack, bool kernel_lock);
/* "queue_push (queue.c:41)", "malloc (libc.so.6)"; "" without a function. In the arena. */
const char *lock_site_text(struct arena *arena, const struct profile *profile,
                           const struct lock_site *site);
