/* The clock of lifetimes: a thread writes how many ticks have passed, so that the target needs no
 * clock of its own at every call. */
#include "collect/heap_user_parts.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <time.h>

enum { STACK_BYTES = 64 << 10 };

static void *ticker_run(void *context)
{
    struct heap_ticker *ticker = context;
    struct heap_header *header = ticker->header;
    uint64_t start_ns = header->start_ns;
    while (!__atomic_load_n(&ticker->over, __ATOMIC_RELAXED)) {
        uint64_t now_ns = clock_mono_ns();
        uint64_t tick = (now_ns - start_ns) / HEAP_TICK_NS;
        __atomic_store_n(&header->tick, (uint32_t)tick, __ATOMIC_RELAXED);
        uint64_t next_ns = start_ns + (tick + 1) * HEAP_TICK_NS;
        struct timespec until = {.tv_sec = (time_t)(next_ns / NS_PER_SEC),
                                 .tv_nsec = (long)(next_ns % NS_PER_SEC)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    return NULL;
}

int heap_ticker_start(struct heap_ticker *ticker, struct heap_header *header)
{
    sigset_t all, before;
    pthread_attr_t attr;
    ticker->header = header;
    if (pthread_attr_init(&attr) != 0)
        return -ENOMEM;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    /* Signals are for the thread that waits for them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = -pthread_create(&ticker->thread, &attr, ticker_run, ticker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    ticker->running = r == 0;
    return r;
}

void heap_ticker_stop(struct heap_ticker *ticker)
{
    if (!ticker->running)
        return;
    ticker->running = false;
    __atomic_store_n(&ticker->over, 1, __ATOMIC_RELAXED);
    pthread_join(ticker->thread, NULL);
}
