/* Finds the functions behind the hooks, once. */
#include "hooks.h"
#include "find.h"

#include <errno.h>

struct next next;
uint32_t hooks_tid_offset;

/* glibc tells debuggers: bits, number of elements, offset. */
static void tid_find(void)
{
    enum { OFFSET_MAX = 4096 };
    const uint32_t *field = find_first("_thread_db_pthread_tid").address;
    if (field && field[0] == 32 && field[1] == 1 && field[2] < OFFSET_MAX)
        hooks_tid_offset = field[2];
}

bool hooks_resolve(void)
{
    tid_find();
    io_resolve();
    /* NOLINTBEGIN(bugprone-macro-parentheses) */
#define NEXT_FIND(name, arguments)                                                                 \
    if (!next.name) {                                                                              \
        union {                                                                                    \
            void *object;                                                                          \
            int(*function) arguments;                                                              \
        } found_ = {.object = find_next(#name).address};                                           \
        next.name = found_.function;                                                               \
    }
    NEXT_FUNCTIONS(NEXT_FIND)
#undef NEXT_FIND
    /* NOLINTEND(bugprone-macro-parentheses) */
    /* What hooks call beside their own function; newer ones are called only by programs that
     * were linked against them. */
    return next.pthread_mutex_lock && next.pthread_mutex_trylock && next.pthread_mutex_unlock &&
           next.pthread_rwlock_tryrdlock && next.pthread_rwlock_trywrlock &&
           next.pthread_spin_trylock && next.sem_trywait && next.pthread_tryjoin_np;
}

int hooks_missing(void)
{
    return ENOSYS;
}
