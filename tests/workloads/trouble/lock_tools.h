/* What the programs of locks and threads share: work of a fixed size, and threads that begin
 * together. Work is counted in turns, not in time: mended and planted programs do the same. */
#pragma once

#include "../apart.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 64 };

/* Some microseconds of CPU time: about one a unit. */
static uint64_t APART burn(uint64_t seed, long units)
{
    uint64_t x = seed | 1;
    for (long i = 0; i < units * 350; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static inline void sleep_us(long us)
{
    struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        ;
}

static inline void threads_run(void *(*run)(void *), int count)
{
    pthread_t threads[THREADS_MAX];
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i) != 0)
            abort();
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}
