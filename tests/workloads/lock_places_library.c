/* Locks of a shared library. */
#include "lock_places.h"

pthread_mutex_t library_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct lock_places_state library_state; /* .bss, local */

void *lock_places_library_global(void)
{
    return &library_mutex;
}

void *lock_places_library_member(void)
{
    return &library_state.mutex;
}
