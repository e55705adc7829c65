/* Finds the functions behind the hooks, once. */
#include "hooks.h"

#include <dlfcn.h>
#include <errno.h>

/* musl has none. */
#pragma weak dlvsym

struct next next;
uint32_t hooks_tid_offset;

/* Conditions changed their layout once: unversioned lookups must not find the old ones. */
static void *next_find(const char *name)
{
    static const char condition[] = "pthread_cond_";
    unsigned i = 0;
    while (condition[i] && name[i] == condition[i])
        i++;
    void *found = NULL;
#if defined(__x86_64__)
    if (!condition[i] && dlvsym)
        found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
#endif
    return found ? found : dlsym(RTLD_NEXT, name);
}

/* glibc tells debuggers: bits, number of elements, offset. */
static void tid_find(void)
{
    enum { OFFSET_MAX = 4096 };
    const uint32_t *field = dlsym(RTLD_DEFAULT, "_thread_db_pthread_tid");
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
        } found_ = {.object = next_find(#name)};                                                   \
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
