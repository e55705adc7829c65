/* Waiting for threads that compute: by asking without a pause, with pauses, or by waiting.
 *
 *     net_poll spin|sleep|wait MILLISECONDS
 *
 * A thread computes for every CPU, and half as many ask: spinning they take a third of the CPUs
 * from those they wait for, on any machine. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOT_INLINED __attribute__((noinline))

enum { THREADS_MAX = 256 };

static int ends[2];
static int steps, pause_us;
static uint64_t result;
static atomic_int left;

/* Different functions, so that none of them dominates. */
#define STEP(name, factor)                                                                         \
    static NOT_INLINED uint64_t name(uint64_t x)                                                   \
    {                                                                                              \
        for (int i = 0; i < 20000; i++)                                                            \
            x = x * (factor) + (x >> 31);                                                          \
        return x;                                                                                  \
    }
STEP(step_hash, 6364136223846793005u)
STEP(step_mix, 2862933555777941757u)
STEP(step_fold, 3202034522624059733u)
STEP(step_spread, 3935559000370003845u)
STEP(step_turn, 2685821657736338717u)

static void *work(void *context)
{
    uint64_t x = 1;
    for (int i = 0; i < steps; i++)
        x = step_turn(step_spread(step_fold(step_mix(step_hash(x)))));
    result = x;
    if (atomic_fetch_sub(&left, 1) == 1)
        close(ends[1]); /* whoever asks sees the end */
    return context;
}

static NOT_INLINED void *asked_again_and_again(void *context)
{
    struct pollfd fd = {.fd = ends[0], .events = POLLIN};
    struct timespec pause = {.tv_nsec = pause_us * 1000};
    while (poll(&fd, 1, 0) == 0)
        if (pause_us > 0)
            nanosleep(&pause, NULL);
    return context;
}

int main(int argc, char **argv)
{
    static pthread_t threads[THREADS_MAX];
    int count = 0, cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    char byte;
    if (argc != 3 || pipe(ends) != 0)
        return 2;
    cpus = cpus < THREADS_MAX / 2 ? cpus : THREADS_MAX / 2;
    left = cpus;
    steps = atoi(argv[2]) * 10; /* some 100 us each */
    pause_us = strcmp(argv[1], "sleep") == 0 ? 2000 : 0;
    for (int i = 0; i < cpus; i++)
        pthread_create(&threads[count++], NULL, work, NULL);
    if (strcmp(argv[1], "wait") != 0) {
        for (int i = 1; i < cpus / 2; i++)
            pthread_create(&threads[count++], NULL, asked_again_and_again, NULL);
        asked_again_and_again(NULL);
    }
    if (read(ends[0], &byte, 1) != 0)
        return 1;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("%llx\n", (unsigned long long)result);
    return 0;
}
