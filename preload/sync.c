/* What is waited for until somebody rings: conditions, semaphores, barriers, ends of threads.
 *
 * Conditions are given to libc as they are: a wait for one is a wait. The others are tried
 * first where that changes nothing. Cancellation may leave any of these calls by unwinding
 * through the hook: nothing of ours is held then. */
#include "hooks.h"

#include <errno.h>

/* The mutex is given back while its owner sleeps, and taken again before it goes on. */
struct given_back {
    struct core_hold hold;
    bool timed;
};

static void give_back(struct given_back *given, pthread_mutex_t *mutex)
{
    given->timed = core_self.held_count > 0 && core_hold_take(mutex, &given->hold);
}

static void condition_begin(const struct given_back *given, const pthread_cond_t *condition,
                            const struct core_wait *wait)
{
    if (given->timed)
        core_hold_end_at(&given->hold, wait->stack);
    core_ring_forget(condition);
}

static void condition_end(const struct given_back *given, pthread_mutex_t *mutex,
                          struct core_wait *wait, int r, unsigned flags)
{
    if (r != 0 && r != ETIMEDOUT && r != EOWNERDEAD) {
        core_wait_forget(wait);
        return;
    }
    if (r == ETIMEDOUT)
        flags |= PRELOAD_EXPIRED;
    else
        wait->other = core_ring_by(wait->object);
    core_wait_end(wait, flags);
    if (given->timed && wait->end_ns > 0)
        core_hold_begin(mutex, given->hold.held.kind, wait->end_ns, given->hold.held.flags);
}

#define CONDITION_WAIT(condition, mutex, call, flags)                                              \
    do {                                                                                           \
        struct given_back given_;                                                                  \
        struct core_wait wait_;                                                                    \
        give_back(&given_, (mutex));                                                               \
        CORE_WAIT_BEGIN(&wait_, PRELOAD_CONDITION, (condition), 0);                                \
        condition_begin(&given_, (condition), &wait_);                                             \
        int r_ = (call);                                                                           \
        condition_end(&given_, (mutex), &wait_, r_, (flags));                                      \
        return r_;                                                                                 \
    } while (0)

EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    PASS(pthread_cond_wait, cond, mutex);
    CONDITION_WAIT(cond, mutex, next.pthread_cond_wait(cond, mutex), 0);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *abstime)
{
    PASS(pthread_cond_timedwait, cond, mutex, abstime);
    CONDITION_WAIT(cond, mutex, next.pthread_cond_timedwait(cond, mutex, abstime), PRELOAD_LIMITED);
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock_id,
                                  const struct timespec *abstime)
{
    PASS(pthread_cond_clockwait, cond, mutex, clock_id, abstime);
    if (!next.pthread_cond_clockwait)
        return hooks_missing();
    CONDITION_WAIT(cond, mutex, next.pthread_cond_clockwait(cond, mutex, clock_id, abstime),
                   PRELOAD_LIMITED);
}

EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
    PASS(pthread_cond_signal, cond);
    core_ring(cond);
    return next.pthread_cond_signal(cond);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
    PASS(pthread_cond_broadcast, cond);
    core_ring(cond);
    return next.pthread_cond_broadcast(cond);
}

static void semaphore_end(struct core_wait *wait, int r, unsigned flags)
{
    int saved = errno;
    if (r == 0) {
        wait->other = core_ring_by(wait->object);
        core_wait_end(wait, flags);
    } else if (saved == ETIMEDOUT) {
        core_wait_end(wait, flags | PRELOAD_EXPIRED);
    } else if (saved == EINTR) {
        core_wait_end(wait, flags); /* by a signal: nobody rang */
    } else {
        core_wait_forget(wait);
    }
    errno = saved;
}

/* A semaphore that is free is taken without errno being touched, as libc does it. */
#define SEMAPHORE_WAIT(semaphore, call, flags)                                                     \
    do {                                                                                           \
        int saved_ = errno;                                                                        \
        if (next.sem_trywait(semaphore) == 0)                                                      \
            return 0;                                                                              \
        bool busy_ = errno == EAGAIN;                                                              \
        errno = saved_;                                                                            \
        if (!busy_)                                                                                \
            return (call);                                                                         \
        struct core_wait wait_;                                                                    \
        CORE_WAIT_BEGIN(&wait_, PRELOAD_SEMAPHORE, (semaphore), 0);                                \
        core_ring_forget(semaphore);                                                               \
        int r_ = (call);                                                                           \
        semaphore_end(&wait_, r_, (flags));                                                        \
        return r_;                                                                                 \
    } while (0)

EXPORT int sem_wait(sem_t *sem)
{
    PASS(sem_wait, sem);
    pthread_testcancel(); /* as libc does, also when the semaphore is free */
    SEMAPHORE_WAIT(sem, next.sem_wait(sem), 0);
}

EXPORT int sem_timedwait(sem_t *sem, const struct timespec *abstime)
{
    PASS(sem_timedwait, sem, abstime);
    if (!time_is_valid(abstime))
        return next.sem_timedwait(sem, abstime);
    pthread_testcancel();
    SEMAPHORE_WAIT(sem, next.sem_timedwait(sem, abstime), PRELOAD_LIMITED);
}

EXPORT int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *abstime)
{
    PASS(sem_clockwait, sem, clock, abstime);
    if (!next.sem_clockwait) {
        errno = hooks_missing();
        return -1;
    }
    if (!time_is_valid(abstime) || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
        return next.sem_clockwait(sem, clock, abstime);
    pthread_testcancel();
    SEMAPHORE_WAIT(sem, next.sem_clockwait(sem, clock, abstime), PRELOAD_LIMITED);
}

EXPORT int sem_post(sem_t *sem)
{
    PASS(sem_post, sem);
    core_ring(sem);
    return next.sem_post(sem);
}

/* Whoever comes last does not wait, and is told that it is the one (glibc 2.25 and newer). */
EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    PASS(pthread_barrier_wait, barrier);
    struct core_wait wait;
    CORE_WAIT_BEGIN(&wait, PRELOAD_BARRIER, barrier, 0);
    int r = next.pthread_barrier_wait(barrier);
    if (r == 0)
        core_wait_end(&wait, 0);
    else
        core_wait_forget(&wait);
    return r;
}

/* Only while it may be joined: then it is there. */
static uint32_t thread_id(pthread_t thread)
{
    uint32_t tid = 0;
    if (hooks_tid_offset != 0)
        tid = __atomic_load_n((const uint32_t *)((const char *)thread + hooks_tid_offset),
                              __ATOMIC_RELAXED);
    return tid;
}

#define JOIN(thread, result, call, flags)                                                          \
    do {                                                                                           \
        int r_ = next.pthread_tryjoin_np((thread), (result));                                      \
        if (r_ == 0)                                                                               \
            return 0;                                                                              \
        if (r_ != EBUSY)                                                                           \
            return (call);                                                                         \
        struct core_wait wait_;                                                                    \
        CORE_WAIT_BEGIN(&wait_, PRELOAD_JOIN, (const void *)(thread), thread_id(thread));          \
        r_ = (call);                                                                               \
        if (r_ == 0)                                                                               \
            core_wait_end(&wait_, (flags));                                                        \
        else if (r_ == ETIMEDOUT)                                                                  \
            core_wait_end(&wait_, (flags) | PRELOAD_EXPIRED);                                      \
        else                                                                                       \
            core_wait_forget(&wait_);                                                              \
        return r_;                                                                                 \
    } while (0)

EXPORT int pthread_join(pthread_t th, void **thread_return)
{
    PASS(pthread_join, th, thread_return);
    JOIN(th, thread_return, next.pthread_join(th, thread_return), 0);
}

EXPORT int pthread_timedjoin_np(pthread_t th, void **thread_return, const struct timespec *abstime)
{
    PASS(pthread_timedjoin_np, th, thread_return, abstime);
    if (!abstime)
        return next.pthread_timedjoin_np(th, thread_return, abstime);
    JOIN(th, thread_return, next.pthread_timedjoin_np(th, thread_return, abstime), PRELOAD_LIMITED);
}
