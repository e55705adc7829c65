/* Locks that have an owner: mutexes, locks for readers and writers, spin locks.
 *
 * Each is tried first (but see mutex_try()). That takes it exactly as locking would when it is
 * free; when it is not, or when there is anything to say about it (an owner that locks again, one
 * that died), libc's own function decides, and only a lock that was busy is timed. */
#include "hooks.h"

#include <errno.h>

static bool is_taken(int r)
{
    return r == 0 || r == EOWNERDEAD;
}

/* A recursive mutex is held from its first lock to its last unlock. */
static bool is_outermost(const pthread_mutex_t *mutex)
{
    return mutex->__data.__count <= 1;
}

static uint32_t mutex_owner(const pthread_mutex_t *mutex)
{
    return (uint32_t)__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
}

static uint32_t rwlock_owner(const pthread_rwlock_t *lock)
{
    return (uint32_t)__atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED);
}

enum { MUTEX_ROBUST = 16, MUTEX_PRIORITY_INHERIT = 32 }; /* in glibc's __kind */
enum { LOCK_TID_MASK = 0x3fffffff };

static unsigned mutex_flags(const pthread_mutex_t *mutex)
{
    return mutex->__data.__kind & MUTEX_PRIORITY_INHERIT ? PRELOAD_PRIORITY : 0;
}

/* glibc's trylock leaves a robust mutex locked that nobody made consistent: whoever locks it
 * then waits for ever instead of being told. So these are only looked at. */
static inline int mutex_try(pthread_mutex_t *mutex)
{
    if (UNLIKELY(mutex->__data.__kind & MUTEX_ROBUST))
        return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) & LOCK_TID_MASK ? EBUSY
                                                                                        : EAGAIN;
    return next.pthread_mutex_trylock(mutex);
}

/* The end of an attempt that had to wait; what it brought goes to the program as it is. */
static void attempt_end(struct core_wait *wait, int r, unsigned flags)
{
    if (is_taken(r))
        core_wait_end(wait, flags);
    else if (r == ETIMEDOUT)
        core_wait_end(wait, flags | PRELOAD_EXPIRED);
    else
        core_wait_forget(wait);
    if (is_taken(r) && wait->end_ns > 0)
        core_hold_begin(wait->object, wait->lock, wait->end_ns, 0);
}

/* `call` is what to do when the lock is busy. It stands in the hook itself, since the stack
 * begins there (CORE_HERE). */
#define ATTEMPT(try, call, kind, lock, owner, flags)                                               \
    do {                                                                                           \
        int r_ = (try);                                                                            \
        if (LIKELY(r_ == 0)) {                                                                     \
            core_hold_maybe((lock), (kind));                                                       \
            return 0;                                                                              \
        }                                                                                          \
        if (r_ == EOWNERDEAD)                                                                      \
            return r_;                                                                             \
        if (r_ != EBUSY)                                                                           \
            return (call);                                                                         \
        struct core_wait wait_;                                                                    \
        CORE_WAIT_BEGIN(&wait_, (kind), (lock), (owner));                                          \
        r_ = (call);                                                                               \
        attempt_end(&wait_, r_, (flags));                                                          \
        return r_;                                                                                 \
    } while (0)

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    PASS(pthread_mutex_lock, mutex);
    ATTEMPT(mutex_try(mutex), next.pthread_mutex_lock(mutex), PRELOAD_MUTEX, mutex,
            mutex_owner(mutex), mutex_flags(mutex));
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    PASS(pthread_mutex_trylock, mutex);
    int r = next.pthread_mutex_trylock(mutex);
    if (r == 0)
        core_hold_maybe(mutex, PRELOAD_MUTEX);
    return r;
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *abstime)
{
    PASS(pthread_mutex_timedlock, mutex, abstime);
    if (!time_is_valid(abstime))
        return next.pthread_mutex_timedlock(mutex, abstime);
    ATTEMPT(mutex_try(mutex), next.pthread_mutex_timedlock(mutex, abstime), PRELOAD_MUTEX, mutex,
            mutex_owner(mutex), mutex_flags(mutex) | PRELOAD_LIMITED);
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clockid,
                                   const struct timespec *abstime)
{
    PASS(pthread_mutex_clocklock, mutex, clockid, abstime);
    if (!next.pthread_mutex_clocklock)
        return hooks_missing();
    if (!time_is_valid(abstime) || (clockid != CLOCK_MONOTONIC && clockid != CLOCK_REALTIME))
        return next.pthread_mutex_clocklock(mutex, clockid, abstime);
    ATTEMPT(mutex_try(mutex), next.pthread_mutex_clocklock(mutex, clockid, abstime), PRELOAD_MUTEX,
            mutex, mutex_owner(mutex), mutex_flags(mutex) | PRELOAD_LIMITED);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    PASS(pthread_mutex_unlock, mutex);
    struct core_hold hold;
    if (LIKELY(core_self.held_count == 0) || !is_outermost(mutex) || !core_hold_take(mutex, &hold))
        return next.pthread_mutex_unlock(mutex);
    int r = next.pthread_mutex_unlock(mutex);
    if (r == 0)
        CORE_HOLD_END(&hold);
    return r;
}

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock)
{
    PASS(pthread_rwlock_rdlock, rwlock);
    ATTEMPT(next.pthread_rwlock_tryrdlock(rwlock), next.pthread_rwlock_rdlock(rwlock), PRELOAD_READ,
            rwlock, rwlock_owner(rwlock), 0);
}

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *rwlock, const struct timespec *abstime)
{
    PASS(pthread_rwlock_timedrdlock, rwlock, abstime);
    if (!time_is_valid(abstime))
        return next.pthread_rwlock_timedrdlock(rwlock, abstime);
    ATTEMPT(next.pthread_rwlock_tryrdlock(rwlock), next.pthread_rwlock_timedrdlock(rwlock, abstime),
            PRELOAD_READ, rwlock, rwlock_owner(rwlock), PRELOAD_LIMITED);
}

EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *rwlock, clockid_t clockid,
                                      const struct timespec *abstime)
{
    PASS(pthread_rwlock_clockrdlock, rwlock, clockid, abstime);
    if (!next.pthread_rwlock_clockrdlock)
        return hooks_missing();
    if (!time_is_valid(abstime) || (clockid != CLOCK_MONOTONIC && clockid != CLOCK_REALTIME))
        return next.pthread_rwlock_clockrdlock(rwlock, clockid, abstime);
    ATTEMPT(next.pthread_rwlock_tryrdlock(rwlock),
            next.pthread_rwlock_clockrdlock(rwlock, clockid, abstime), PRELOAD_READ, rwlock,
            rwlock_owner(rwlock), PRELOAD_LIMITED);
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock)
{
    PASS(pthread_rwlock_wrlock, rwlock);
    ATTEMPT(next.pthread_rwlock_trywrlock(rwlock), next.pthread_rwlock_wrlock(rwlock),
            PRELOAD_WRITE, rwlock, rwlock_owner(rwlock), 0);
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *rwlock, const struct timespec *abstime)
{
    PASS(pthread_rwlock_timedwrlock, rwlock, abstime);
    if (!time_is_valid(abstime))
        return next.pthread_rwlock_timedwrlock(rwlock, abstime);
    ATTEMPT(next.pthread_rwlock_trywrlock(rwlock), next.pthread_rwlock_timedwrlock(rwlock, abstime),
            PRELOAD_WRITE, rwlock, rwlock_owner(rwlock), PRELOAD_LIMITED);
}

EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *rwlock, clockid_t clockid,
                                      const struct timespec *abstime)
{
    PASS(pthread_rwlock_clockwrlock, rwlock, clockid, abstime);
    if (!next.pthread_rwlock_clockwrlock)
        return hooks_missing();
    if (!time_is_valid(abstime) || (clockid != CLOCK_MONOTONIC && clockid != CLOCK_REALTIME))
        return next.pthread_rwlock_clockwrlock(rwlock, clockid, abstime);
    ATTEMPT(next.pthread_rwlock_trywrlock(rwlock),
            next.pthread_rwlock_clockwrlock(rwlock, clockid, abstime), PRELOAD_WRITE, rwlock,
            rwlock_owner(rwlock), PRELOAD_LIMITED);
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *rwlock)
{
    PASS(pthread_rwlock_tryrdlock, rwlock);
    int r = next.pthread_rwlock_tryrdlock(rwlock);
    if (r == 0)
        core_hold_maybe(rwlock, PRELOAD_READ);
    return r;
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *rwlock)
{
    PASS(pthread_rwlock_trywrlock, rwlock);
    int r = next.pthread_rwlock_trywrlock(rwlock);
    if (r == 0)
        core_hold_maybe(rwlock, PRELOAD_WRITE);
    return r;
}

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *rwlock)
{
    PASS(pthread_rwlock_unlock, rwlock);
    struct core_hold hold;
    if (LIKELY(core_self.held_count == 0) || !core_hold_take(rwlock, &hold))
        return next.pthread_rwlock_unlock(rwlock);
    int r = next.pthread_rwlock_unlock(rwlock);
    if (r == 0)
        CORE_HOLD_END(&hold);
    return r;
}

/* Who waits for one of these runs meanwhile: whyslow is told of the kind. */
EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
    PASS(pthread_spin_lock, lock);
    ATTEMPT(next.pthread_spin_trylock(lock), next.pthread_spin_lock(lock), PRELOAD_SPIN,
            (const void *)lock, 0, 0);
}

EXPORT int pthread_spin_trylock(pthread_spinlock_t *lock)
{
    PASS(pthread_spin_trylock, lock);
    int r = next.pthread_spin_trylock(lock);
    if (r == 0)
        core_hold_maybe((const void *)lock, PRELOAD_SPIN);
    return r;
}

EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    PASS(pthread_spin_unlock, lock);
    struct core_hold hold;
    if (LIKELY(core_self.held_count == 0) || !core_hold_take((const void *)lock, &hold))
        return next.pthread_spin_unlock(lock);
    int r = next.pthread_spin_unlock(lock);
    if (r == 0)
        CORE_HOLD_END(&hold);
    return r;
}
