/* One source, built in three ways (with and without optimization, stripped): cpu-build KIND ROUNDS.
 *
 *     own    its own code has the time
 *     flat   the same, and no function of it has much
 *     libc   the C library has it */
#include "flat.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static NOINLINE uint64_t table_sum(const uint32_t *table, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += table[i] ^ (sum & 0xff);
    return sum;
}

static NOINLINE void table_step(uint32_t *table, size_t count)
{
    for (size_t i = 1; i < count; i++)
        table[i] = table[i] * 3 + (uint32_t)i;
}

static NOINLINE unsigned table_odd(const uint32_t *table, size_t count)
{
    unsigned odd = 0;
    for (size_t i = 0; i < count; i++)
        odd += table[i] & 1;
    return odd;
}

static NOINLINE void table_turn(uint32_t *table, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        uint32_t kept = table[i];
        table[i] = table[count - 1 - i];
        table[count - 1 - i] = kept;
    }
}

enum { TABLE = 4096 };

static uint64_t work(uint32_t *table)
{
    table_step(table, TABLE);
    table_turn(table, TABLE);
    return table_sum(table, TABLE) + table_odd(table, TABLE);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
    bool flat = argc > 1 && strcmp(argv[1], "flat") == 0;
    bool libc = argc > 1 && strcmp(argv[1], "libc") == 0;
    size_t size = 1 << 22;
    char *buffer = libc ? calloc(1, size) : NULL;
    static uint32_t table[TABLE];
    uint64_t state = 1;
    for (unsigned i = 0; i < rounds; i++) {
        if (buffer) {
            memset(buffer, (int)i, size);
            state += (uint64_t)buffer[i % size];
        } else {
            state += flat ? flat_round(state) : work(table);
        }
    }
    free(buffer);
    printf("%s\n", state == 42 ? "42" : "done");
    return 0;
}
