/* What a workload knows about its own waits, told as lines of JSON on stdout.
 *
 * The expected answer is what really happened, not what was planned: each wait is timed where
 * it happens. Wall time less CPU time is time off the CPU, blocked or ready; the voluntary
 * switches are the waits. A line is one write(), since threads and processes share stdout. */
#pragma once

#include "told.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000L

struct truth {
    long wall_ns, cpu_ns, calls, switches, longest_ns;
};

struct truth_span {
    long wall_ns, cpu_ns, switches;
};

static inline long truth_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static inline long truth_switches(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static inline struct truth_span truth_begin(void)
{
    struct truth_span span;
    span.switches = truth_switches();
    span.wall_ns = truth_clock(CLOCK_MONOTONIC);
    span.cpu_ns = truth_clock(CLOCK_THREAD_CPUTIME_ID);
    return span;
}

static inline void truth_end(struct truth *truth, const struct truth_span *span)
{
    long cpu_ns = truth_clock(CLOCK_THREAD_CPUTIME_ID) - span->cpu_ns;
    long wall_ns = truth_clock(CLOCK_MONOTONIC) - span->wall_ns;
    truth->wall_ns += wall_ns;
    truth->cpu_ns += cpu_ns;
    truth->switches += truth_switches() - span->switches;
    truth->calls++;
    if (wall_ns > truth->longest_ns)
        truth->longest_ns = wall_ns;
}

static inline void truth_write(const char *line, int length)
{
    if (length <= 0 || write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(9);
}

/* `function` is on the stack of every wait that was timed; tid 0: waits of many threads. */
static inline void truth_tell_of(const char *function, const struct truth *truth, long tid)
{
    char line[512];
    truth_write(
        line, snprintf(line, sizeof(line),
                       "{\"function\": \"%s\", \"pid\": %ld, \"tid\": %ld, \"off_ms\": %.6f, "
                       "\"wall_ms\": %.6f, \"calls\": %ld, \"switches\": %ld, "
                       "\"longest_ms\": %.6f}\n",
                       function, (long)getpid(), tid,
                       (double)(truth->wall_ns - truth->cpu_ns) / 1e6, (double)truth->wall_ns / 1e6,
                       truth->calls, truth->switches, (double)truth->longest_ns / 1e6));
}

static inline void truth_tell(const char *function, const struct truth *truth)
{
    truth_tell_of(function, truth, syscall(SYS_gettid));
}

/* How long a thread lived, as it saw it: less than it did, since it was begun and ended by
 * others; and what it spent on a CPU. */
static inline void truth_tell_life(long start_ns)
{
    char line[256];
    truth_write(line,
                snprintf(line, sizeof(line),
                         "{\"life\": %ld, \"pid\": %ld, \"life_ms\": %.6f, \"cpu_ms\": %.6f}\n",
                         syscall(SYS_gettid), (long)getpid(),
                         (double)(truth_clock(CLOCK_MONOTONIC) - start_ns) / 1e6,
                         (double)truth_clock(CLOCK_THREAD_CPUTIME_ID) / 1e6));
}

static inline void truth_tell_number(const char *name, double value)
{
    char line[256];
    truth_write(line,
                snprintf(line, sizeof(line), "{\"name\": \"%s\", \"value\": %.6f}\n", name, value));
}

static inline void truth_sleep(long ns)
{
    struct timespec ts = {ns / 1000000000L, ns % 1000000000L};
    if (told_waits(ns / NS_PER_MS))
        told_sleep();
    else
        nanosleep(&ts, NULL);
}

static inline void truth_burn(long ns)
{
    unsigned long sum = 0;
    long end = truth_clock(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (truth_clock(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 1000; i++)
            __asm__ volatile("" : "+r"(sum) : "r"(i));
}

static inline void truth_need(int good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}
