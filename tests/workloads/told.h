/* Sleeps that last until whoever records us has looked.
 *
 * Without privileges threads are looked at now and then, and no sleep is so long that a busy
 * machine lets a look happen in it. With UNTIL_TOLD in the environment the first long sleep of a
 * process ends with SIGUSR1, which the test sends once it knows of a look (tests/truth/seen.py).
 * Nothing else in the process is interrupted by that signal. */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { TOLD_LONG_MS = 50, TOLD_NEVER_S = 3600 };

static volatile sig_atomic_t told_by_now;
static int told_at_all;

static void told_handler(int signal)
{
    (void)signal;
    told_by_now = 1;
}

static inline void told_listen(int how)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(how, &one, NULL);
}

__attribute__((constructor)) static void told_begin(void)
{
    struct sigaction action = {.sa_handler = told_handler};
    told_at_all = getenv("UNTIL_TOLD") != NULL;
    if (!told_at_all)
        return;
    told_listen(SIG_BLOCK);
    sigaction(SIGUSR1, &action, NULL);
}

/* Whether a wait of so many ms has to last until we are told. */
static inline int told_waits(long ms)
{
    return told_at_all && !told_by_now && ms >= TOLD_LONG_MS;
}

/* A signal may come before it sleeps: then the next one ends it. */
static inline void told_sleep(void)
{
    struct timespec ts = {TOLD_NEVER_S, 0};
    told_listen(SIG_UNBLOCK);
    nanosleep(&ts, NULL);
    told_listen(SIG_BLOCK);
}
