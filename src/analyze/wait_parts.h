/* What the files about classes of waits share.
 *
 * wait_families.c  what kind of system call it is
 * wait_stacks.c    what the names on a stack say about a wait
 * wait_classes.c   the rules, one function a family, and the sums
 * wait_cause.c     the same for people
 * wait_where.c     a stack in a few words */
#pragma once

#include "analyze/waits_load.h"
#include "base/syscalls.h"

enum wait_family {
    FAMILY_OTHER, /* a call without a rule of its own */
    FAMILY_NONE,  /* in no system call */
    FAMILY_UNKNOWN,
    FAMILY_FUTEX,
    FAMILY_SLEEP,
    FAMILY_EPOLL,
    FAMILY_POLL, /* and select */
    FAMILY_SIGNAL,
    FAMILY_CHILD,
    FAMILY_ACCEPT,
    FAMILY_CONNECT,
    FAMILY_READ,
    FAMILY_WRITE,
    FAMILY_RECEIVE, /* of sockets and queues */
    FAMILY_SEND,
    FAMILY_COPY, /* sendfile, splice: either end may be waited for */
    FAMILY_FILE, /* names, directories, fsync, exec */
    FAMILY_LOCK, /* flock, semop */
    FAMILY_RING, /* io_uring, AIO */
    FAMILY_MEMORY,
    FAMILY_RESTART, /* the call before a signal, gone on with */
};

/* By number, on the machine of the recording. */
struct wait_families {
    enum syscall_machine machine;
    uint8_t of[SYSCALLS_MAX]; /* enum wait_family */
};
void wait_families_init(const struct waits *waits, struct wait_families *ret);
enum wait_family wait_family_of(const struct wait_families *families, int32_t syscall);
/* The same for a single call, without a table. */
enum wait_family wait_family_on(enum syscall_machine machine, int32_t syscall);
/* The machine that it was recorded on. */
enum syscall_machine profile_machine(const struct profile *profile);
enum syscall_machine wait_machine(const struct waits *waits);

/* What the innermost functions of a stack say: the first that says something counts. */
enum wait_sign {
    SIGN_NONE,
    SIGN_LOCK,      /* mutex, rwlock, barrier */
    SIGN_CONDITION, /* condition variables, parked threads */
    SIGN_SEMAPHORE,
    SIGN_JOIN,    /* the end of a thread */
    SIGN_GO_IDLE, /* Go's runtime has no goroutine for the thread */
};
struct wait_stack {
    enum wait_sign sign;
    bool
        surely_lock; /* an outer function whose only job is to get a lock: Python's, PostgreSQL's */
    bool kernel_lock; /* the kernel itself waits for one of its locks */
    bool exits;       /* of wakers: the end of a thread */
    bool pipe;        /* of wakers: a pipe was written to or closed */
};
/* Each stack is read once. Zeroed at first. */
struct wait_stacks {
    const struct profile *profile;
    uint8_t *known; /* by stack id; packed, 0: not read yet */
};
MUST_USE int wait_stacks_init(struct arena *arena, const struct profile *profile,
                              struct wait_stacks *ret);
struct wait_stack wait_stack_of(struct wait_stacks *stacks, uint32_t stack);
/* Without keeping it. */
struct wait_stack wait_stack_read(const struct profile *profile, uint32_t stack);
/* Part of a lock, sleep or wait itself: it tells nothing about who waits. */
bool wait_is_plumbing(struct str function);
