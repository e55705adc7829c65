/* Walks in an image, with any bytes as registers and stack. */
#pragma once

#include "unwind/unwind.h"

#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 512, STACK = 0x7000000, MAPPED = 0x400000 };

static inline void fuzz_walk(const struct unwind_image *image, enum unwind_machine machine,
                             const uint8_t *stack, size_t stack_len)
{
    struct unwind_space *space = NULL;
    struct unwind_cache *cache = NULL;
    if (unwind_space_new(machine, &space) < 0 || unwind_cache_new(&cache) < 0)
        abort();
    for (uint64_t offset = 0; offset < 0x10000; offset += 0x1000)
        if (unwind_space_map(space, MAPPED + offset, 0x1000, offset, image, 1) < 0)
            abort();
    struct unwind_registers registers = {.known = UINT32_MAX};
    struct unwind_frame frames[64];
    struct unwind_result result;
    for (unsigned round = 0; round < 64; round++) {
        uint16_t where = 0;
        if (2 * (round + 1) <= stack_len)
            memcpy(&where, stack + 2 * round, sizeof(where));
        for (unsigned i = 0; i < UNWIND_REGISTERS; i++)
            registers.reg[i] = STACK + (where + i * 8) % STACK_BYTES;
        registers.reg[machine == UNWIND_X86_64 ? 7 : 31] = STACK;
        registers.pc = MAPPED + where;
        struct unwind_slice slice = {STACK, stack, stack_len};
        unwind_walk(space, &registers, &slice, round % 2 ? cache : NULL, frames, 64, &result);
        if (result.count > 64 || result.end >= UNWIND_ENDS)
            abort();
    }
    unwind_cache_free(cache);
    unwind_space_free(space);
}
