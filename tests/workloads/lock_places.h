/* Locks in every place that a name can come from, for the tests of names. */
#pragma once

#include <pthread.h>

struct lock_places_state {
    long before[32];
    pthread_mutex_t mutex;
};

/* In the library: the addresses of its locks. */
void *lock_places_library_global(void);
void *lock_places_library_member(void);
