/* The functions behind the hooks.
 *
 * One row of NEXT_FUNCTIONS each: what it returns, its name, its arguments. `next.name` is the
 * definition that the program would have got without us; NULL where this libc has none. */
#pragma once

#include "core.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#define NEXT_FUNCTIONS(ROW)                                                                        \
    ROW(pthread_mutex_lock, (pthread_mutex_t *))                                                   \
    ROW(pthread_mutex_trylock, (pthread_mutex_t *))                                                \
    ROW(pthread_mutex_timedlock, (pthread_mutex_t *, const struct timespec *))                     \
    ROW(pthread_mutex_clocklock, (pthread_mutex_t *, clockid_t, const struct timespec *))          \
    ROW(pthread_mutex_unlock, (pthread_mutex_t *))                                                 \
    ROW(pthread_rwlock_rdlock, (pthread_rwlock_t *))                                               \
    ROW(pthread_rwlock_tryrdlock, (pthread_rwlock_t *))                                            \
    ROW(pthread_rwlock_timedrdlock, (pthread_rwlock_t *, const struct timespec *))                 \
    ROW(pthread_rwlock_clockrdlock, (pthread_rwlock_t *, clockid_t, const struct timespec *))      \
    ROW(pthread_rwlock_wrlock, (pthread_rwlock_t *))                                               \
    ROW(pthread_rwlock_trywrlock, (pthread_rwlock_t *))                                            \
    ROW(pthread_rwlock_timedwrlock, (pthread_rwlock_t *, const struct timespec *))                 \
    ROW(pthread_rwlock_clockwrlock, (pthread_rwlock_t *, clockid_t, const struct timespec *))      \
    ROW(pthread_rwlock_unlock, (pthread_rwlock_t *))                                               \
    ROW(pthread_spin_lock, (pthread_spinlock_t *))                                                 \
    ROW(pthread_spin_trylock, (pthread_spinlock_t *))                                              \
    ROW(pthread_spin_unlock, (pthread_spinlock_t *))                                               \
    ROW(pthread_cond_wait, (pthread_cond_t *, pthread_mutex_t *))                                  \
    ROW(pthread_cond_timedwait, (pthread_cond_t *, pthread_mutex_t *, const struct timespec *))    \
    ROW(pthread_cond_clockwait,                                                                    \
        (pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *))                 \
    ROW(pthread_cond_signal, (pthread_cond_t *))                                                   \
    ROW(pthread_cond_broadcast, (pthread_cond_t *))                                                \
    ROW(sem_wait, (sem_t *))                                                                       \
    ROW(sem_trywait, (sem_t *))                                                                    \
    ROW(sem_timedwait, (sem_t *, const struct timespec *))                                         \
    ROW(sem_clockwait, (sem_t *, clockid_t, const struct timespec *))                              \
    ROW(sem_post, (sem_t *))                                                                       \
    ROW(pthread_barrier_wait, (pthread_barrier_t *))                                               \
    ROW(pthread_join, (pthread_t, void **))                                                        \
    ROW(pthread_tryjoin_np, (pthread_t, void **))                                                  \
    ROW(pthread_timedjoin_np, (pthread_t, void **, const struct timespec *))

/* NOLINTBEGIN(bugprone-macro-parentheses): how a function is declared cannot stand in them */
struct next {
#define NEXT_MEMBER(name, arguments) int(*name) arguments;
    NEXT_FUNCTIONS(NEXT_MEMBER)
#undef NEXT_MEMBER
};
/* NOLINTEND(bugprone-macro-parentheses) */
extern struct next next;

/* Where glibc keeps the id of a thread in what a pthread_t points to; 0: not known. */
extern uint32_t hooks_tid_offset;

/* What a hook does while the library is off, or not yet on: a constructor of another library
 * may lock before ours has run. */
#define PASS(name, ...)                                                                            \
    do {                                                                                           \
        if (UNLIKELY(!core_on)) {                                                                  \
            if (UNLIKELY(!next.name))                                                              \
                (void)hooks_resolve();                                                             \
            return next.name ? next.name(__VA_ARGS__) : hooks_missing();                           \
        }                                                                                          \
    } while (0)

/* ENOSYS, for a function that this libc does not have. */
int hooks_missing(void);

/* Where libc would refuse a time before it looks at the lock, trying first would not. */
static inline bool time_is_valid(const struct timespec *time)
{
    return time && time->tv_nsec >= 0 && time->tv_nsec < 1000000000;
}
