/* One function, or one line, has the time: cpu-hot KIND MILLISECONDS.
 *
 *     function   a loop of several lines has 80%
 *     line       one line of a function has 80%
 *     helper     comparisons by the C library, called from one function, have 80%
 *     spread     three functions with 25% each: none is enough
 *     wait       the function runs for 5% of the time, the rest is sleep
 *     flat       eight functions share all */
#include "flat.h"

#include <stdio.h>
#include <stdlib.h>

/* Four loops: some processors take interrupts at a loop's branch only, so that of one loop one line
 * would seem to have it all. */
static NOINLINE uint64_t crunch(uint64_t x, unsigned rounds)
{
    uint64_t sum = 0, low = x | 1;
    for (unsigned i = 0; i < rounds / 4; i++) {
        x ^= x << 13;
        sum += x & 0xff;
    }
    for (unsigned i = 0; i < rounds / 4; i++) {
        x ^= x >> 7;
        low = low * 5 + x;
    }
    for (unsigned i = 0; i < rounds / 4; i++) {
        x = (x ^ x << 17) + i;
        sum ^= x >> 3;
    }
    for (unsigned i = 0; i < rounds / 4; i++) {
        x = (x ^ x >> 11) * 0x9e3779b97f4a7c15;
        sum += x >> 5;
    }
    return x + sum + low;
}

static NOINLINE uint64_t divide(uint64_t x, unsigned rounds)
{
    uint64_t by = x | 1;
    for (unsigned i = 0; i < rounds; i++)
        x = (x / by) * (x % (by + i)) + (x / (i + 3)) * (x % (i + 7)) + 0x123456789abcdef;
    return x;
}

static NOINLINE uint64_t search(const char *text, size_t size, unsigned rounds)
{
    uint64_t found = 0;
    for (unsigned i = 0; i < rounds; i++)
        found += memcmp(text, text + size, size - i % 2) == 0;
    return found;
}

static NOINLINE uint64_t mix_one(uint64_t x, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        x = (x ^ (x << 3)) * 0x9e3779b97f4a7c15 + (x >> 17) + i;
    return x;
}

static NOINLINE uint64_t mix_two(uint64_t x, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        x = (x ^ (x << 5)) * 0xbf58476d1ce4e5b9 + (x >> 19) + i;
    return x;
}

static NOINLINE uint64_t mix_three(uint64_t x, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        x = (x ^ (x << 7)) * 0x94d049bb133111eb + (x >> 23) + i;
    return x;
}

static uint64_t until(uint64_t end, uint64_t x, uint64_t (*work)(uint64_t, unsigned))
{
    while (cpu_ns() < end)
        x = work(x, 50000);
    return x;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "flat";
    unsigned ms = argc > 2 ? (unsigned)atoi(argv[2]) : 400;
    uint64_t x = 1, part = ms * UINT64_C(1000000) / 20;
    char *text = calloc(2, 65536);
    for (unsigned i = 0; i < 20 && text; i++) {
        uint64_t start = cpu_ns();
        if (strcmp(kind, "function") == 0)
            x = until(start + part * 8 / 10, x, crunch);
        else if (strcmp(kind, "line") == 0)
            x = until(start + part * 8 / 10, x, divide);
        else if (strcmp(kind, "helper") == 0)
            while (cpu_ns() < start + part * 8 / 10)
                x += search(text, 65536, 50);
        else if (strcmp(kind, "spread") == 0) {
            x = until(start + part * 25 / 100, x, mix_one);
            x = until(start + part * 50 / 100, x, mix_two);
            x = until(start + part * 75 / 100, x, mix_three);
        } else if (strcmp(kind, "wait") == 0) {
            x = until(start + part / 20, x, crunch);
            nanosleep(&(struct timespec){.tv_nsec = (long)(part * 95 / 100)}, NULL);
            continue;
        }
        while (cpu_ns() < start + part)
            for (unsigned k = 0; k < 8; k++)
                x = flat_round(x);
    }
    free(text);
    printf("%s\n", x == 42 ? "42" : "done");
    return 0;
}
