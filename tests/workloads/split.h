/* Four functions that burn 50, 30, 15 and 5 parts of CPU time, by the thread's own clock. */
#pragma once

#include <time.h>

extern volatile unsigned long split_sum;
extern long split_part_ns; /* of CPU time, for one part in a hundred */

/* Every copy has its own burner: a share is that of the function and all below it. */
static inline long split_clock(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static inline void split_burn(int parts)
{
    long end = split_clock() + parts * split_part_ns;
    while (split_clock() < end)
        for (int i = 0; i < 20000; i++)
            split_sum += (unsigned long)i;
}

/* The empty asm keeps calls from becoming jumps, which would take the caller off the stack. */
/* NOLINTBEGIN(bugprone-macro-parentheses): how a function is declared cannot stand in them */
#define SPLIT(kind, how)                                                                           \
    how void kind##_50(void)                                                                       \
    {                                                                                              \
        split_burn(50);                                                                            \
        __asm__ volatile("" ::: "memory");                                                         \
    }                                                                                              \
    how void kind##_30(void)                                                                       \
    {                                                                                              \
        split_burn(30);                                                                            \
        __asm__ volatile("" ::: "memory");                                                         \
    }                                                                                              \
    how void kind##_15(void)                                                                       \
    {                                                                                              \
        split_burn(15);                                                                            \
        __asm__ volatile("" ::: "memory");                                                         \
    }                                                                                              \
    how void kind##_5(void)                                                                        \
    {                                                                                              \
        split_burn(5);                                                                             \
        __asm__ volatile("" ::: "memory");                                                         \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

#define SPLIT_CALL(kind)                                                                           \
    do {                                                                                           \
        kind##_50();                                                                               \
        kind##_30();                                                                               \
        kind##_15();                                                                               \
        kind##_5();                                                                                \
    } while (0)
