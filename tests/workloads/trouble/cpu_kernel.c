/* The kernel has the time: cpu-kernel KIND ROUNDS.
 *
 *     calls        random numbers, asked from the kernel again and again
 *     calls-some   the same with more work beside it: 40% of the CPU time
 *     faults       fresh memory, touched once, and larger pages were not asked for
 *     faults-huge  the same with larger pages: the mended program
 *     faults-few   the same memory, used a hundred times
 *     flat         neither */
#include "flat.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

static uint64_t state = 1;

static NOINLINE void ask(unsigned times)
{
    uint64_t bytes[128] = {0};
    for (unsigned i = 0; i < times; i++) {
        if (getrandom(bytes, sizeof(bytes), 0) < 0)
            abort();
        state ^= bytes[i % 128] & 1;
    }
}

static void calls(const char *kind, unsigned rounds)
{
    bool some = strcmp(kind, "calls-some") == 0;
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t start = cpu_ns();
        ask(200);
        uint64_t took = cpu_ns() - start, work = some ? took * 15 / 10 : took / 10;
        for (uint64_t end = cpu_ns() + work; cpu_ns() < end;)
            state = flat_round(state);
    }
}

static NOINLINE void table_fill(char *table, size_t size)
{
    for (size_t i = 0; i < size; i += 512)
        table[i] = (char)state;
}

static NOINLINE uint64_t table_use(const char *table, size_t size)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i += 4096)
        sum += (uint64_t)table[i];
    return sum;
}

static void faults(const char *kind, unsigned rounds)
{
    size_t size = rounds * (size_t)(1 << 20);
    char *table = mmap(NULL, size + (1 << 21), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    if (table == MAP_FAILED)
        abort();
    if (strcmp(kind, "faults-huge") == 0)
        madvise(table, size + (1 << 21), MADV_HUGEPAGE);
    table_fill(table, size);
    for (unsigned i = 0; i < (strcmp(kind, "faults-few") == 0 ? rounds * 200 : rounds * 2); i++)
        state = flat_round(state);
    state += table_use(table, size);
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "flat";
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 300;
    if (strncmp(kind, "calls", 5) == 0)
        calls(kind, rounds);
    else if (strncmp(kind, "faults", 6) == 0)
        faults(kind, rounds);
    else
        state = flat_ms(state, rounds);
    printf("%s\n", state == 42 ? "42" : "done");
    return 0;
}
