/* Whether another thread sleeps in a call by now.
 *
 * Who is to be waited for must not come before whoever waits does: on a machine that is kept from
 * its work no time is long enough for that. /proc/PID/task/TID/syscall names a call only of a
 * thread that has left the CPU in it, so what was read there has happened. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ASLEEP_ANY ((unsigned long)-1)

/* `first`: the call's first argument, or any. Where that cannot be read it counts as asleep: then
 * only time can tell. System calls are made directly, so that no recorded function is called. */
static inline int asleep_in(long pid, long tid, long call, unsigned long first)
{
    char path[64], text[128], *end = text;
    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/syscall", pid, tid);
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 1;
    long n = syscall(SYS_read, fd, text, sizeof(text) - 1);
    syscall(SYS_close, fd);
    if (n < 0)
        return 1;
    text[n] = 0;
    long number = strtol(text, &end, 10);
    if (end == text || number != call) /* "running", or elsewhere */
        return 0;
    return first == ASLEEP_ANY || strtoul(end, NULL, 16) == first;
}

/* Each look after twice as long: of one thread only so many stacks are copied before whyslow has
 * come by, and it is those of other waits that are to be seen. */
static inline void asleep_wait(long pid, long tid, long call, unsigned long first)
{
    struct timespec pause = {0, 1000000};
    while (!asleep_in(pid, tid, call, first)) {
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
        pause.tv_nsec *= pause.tv_nsec < 50000000 ? 2 : 1;
    }
}

/* The first thread of this process waits for a lock, a condition, a semaphore or a barrier. */
static inline void asleep_wait_main(const volatile void *futex)
{
    asleep_wait(getpid(), getpid(), SYS_futex, futex ? (unsigned long)futex : ASLEEP_ANY);
}
