/* Signal handlers that allocate and free, at any moment, in all threads; linked with an allocator
 * that allows it. Says what it did itself: allocations, bytes, frees.
 *
 *     heap-hooks-signals            all handlers return
 *     heap-hooks-signals longjmp    some leave with siglongjmp(), also out of the library */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, SIGNALS = 6000, ROUND = 200 };

static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_calloc)(size_t, size_t) = calloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static void (*volatile do_free)(void *) = free;

static atomic_long allocations, bytes, frees, signals;
static atomic_bool stop;
static bool leaves;
static __thread sigjmp_buf out;
static __thread volatile sig_atomic_t can_leave;

static void count(long size)
{
    allocations++;
    bytes += size;
}

static void handle(int number)
{
    (void)number;
    long turn = signals++;
    count(24);
    void *a = do_malloc(24);
    count(100);
    void *b = do_calloc(10, 10);
    count(200);
    frees++;
    b = do_realloc(b, 200);
    frees++;
    do_free(a);
    frees++;
    do_free(b);
    if (leaves && can_leave && turn % 3 == 0)
        siglongjmp(out, 1);
}

/* As much of the time as can be is spent in the library. */
static void allocate(unsigned depth)
{
    void *memory[8];
    if (depth > 0) {
        allocate(depth - 1);
        return;
    }
    for (size_t i = 0; i < 8; i++) {
        count(16);
        memory[i] = do_malloc(16);
    }
    for (size_t i = 0; i < 8; i++) {
        frees++;
        do_free(memory[i]);
    }
}

static void *work(void *arg)
{
    volatile unsigned depth = 0;
    while (!stop) {
        can_leave = 0;
        if (sigsetjmp(out, 1) == 0)
            can_leave = leaves;
        for (unsigned i = 0; i < ROUND && !stop; i++)
            allocate(depth = (depth + 7) % 20);
    }
    can_leave = 0;
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    struct sigaction action = {.sa_handler = handle};
    leaves = argc > 1 && strcmp(argv[1], "longjmp") == 0;
    sigaction(SIGUSR1, &action, NULL);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            abort();
    for (unsigned i = 0; signals < SIGNALS; i++) {
        struct timespec wait = {.tv_nsec = 20000};
        pthread_kill(threads[i % THREADS], SIGUSR1);
        nanosleep(&wait, NULL);
    }
    stop = true;
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    /* What comes after is counted as ever. */
    leaves = false;
    stop = false;
    for (unsigned i = 0; i < 100; i++)
        allocate(i % 10);
    printf("%ld %ld %ld\n", (long)allocations, (long)bytes, (long)frees);
    return 0;
}
