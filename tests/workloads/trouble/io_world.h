/* What the programs with planted I/O share: honest work that no place dominates, and the end of a
 * program when a call fails that must not. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static inline void must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    _exit(1);
}

/* Five functions with a fifth each, so that none of them is worth a suspicion. */
#define WORK(name, first, second)                                                                  \
    static NOINLINE uint64_t name(uint64_t value, long rounds)                                     \
    {                                                                                              \
        for (long i = 0; i < rounds; i++) {                                                        \
            value ^= value << (first);                                                             \
            value ^= value >> 7;                                                                   \
            value ^= value << (second);                                                            \
        }                                                                                          \
        return value;                                                                              \
    }
WORK(work_parse, 13, 17)
WORK(work_check, 11, 17)
WORK(work_sort, 13, 19)
WORK(work_merge, 9, 23)
WORK(work_print, 15, 21)

/* Some milliseconds, by rounds: the same in every mode, whatever else the machine does. */
static NOINLINE uint64_t work(double ms)
{
    long rounds = (long)(ms * 110000);
    uint64_t value = 88172645463325252u;
    value = work_parse(value, rounds);
    value = work_check(value, rounds);
    value = work_sort(value, rounds);
    value = work_merge(value, rounds);
    return work_print(value, rounds);
}

/* The answer depends on it: no compiler leaves it out. */
static inline int answer(uint64_t value)
{
    printf("%llu\n", (unsigned long long)value);
    return 0;
}
