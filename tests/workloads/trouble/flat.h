/* Work that no function and no line has much of: what stands around planted trouble.
 *
 * Amounts are given in CPU time where shares matter, so that these are the same on a slow machine;
 * in rounds where the same work has to be done by a mended program. */
#pragma once

#include <stdint.h>
#include <string.h>
#include <time.h>

#ifdef __clang__ /* it makes no clones */
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

/* Eight functions of one line each, with different constants so that none is folded. */
#define FLAT(name, a, b, c)                                                                        \
    static NOINLINE uint64_t name(uint64_t x)                                                      \
    {                                                                                              \
        for (unsigned i = 0; i < 1000; i++)                                                        \
            x = (x ^ (x << (a))) * (c) + (x >> (b)) + i;                                           \
        return x;                                                                                  \
    }
FLAT(flat_one, 3, 17, 0x9e3779b97f4a7c15)
FLAT(flat_two, 5, 19, 0xbf58476d1ce4e5b9)
FLAT(flat_three, 7, 23, 0x94d049bb133111eb)
FLAT(flat_four, 9, 29, 0xd6e8feb86659fd93)
FLAT(flat_five, 11, 31, 0xa0761d6478bd642f)
FLAT(flat_six, 13, 37, 0xe7037ed1a0b428db)
FLAT(flat_seven, 15, 41, 0x8ebc6af09c88c6e3)
FLAT(flat_eight, 17, 43, 0x589965cc75374cc3)

/* Its own CPU time: a busy machine changes nothing. A system call, so asked rarely. */
static inline uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* One round: some 15 us. */
static inline uint64_t flat_round(uint64_t x)
{
    x = flat_two(flat_one(x));
    x = flat_four(flat_three(x));
    x = flat_six(flat_five(x));
    return flat_eight(flat_seven(x));
}

static inline uint64_t flat_ms(uint64_t x, unsigned ms)
{
    uint64_t end = cpu_ns() + ms * UINT64_C(1000000);
    while (cpu_ns() < end)
        for (unsigned i = 0; i < 8; i++)
            x = flat_round(x);
    return x;
}
