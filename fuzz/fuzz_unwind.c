/* Any bytes as an image, then any bytes as registers and stack in it.
 *
 * The last 512 bytes of the input are the stack; what is before them is the file. */
#include "unwind/unwind.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STACK_BYTES = 512, STACK = 0x7000000, MAPPED = 0x400000 };

static void walk(const struct unwind_image *image, const uint8_t *stack, size_t stack_len)
{
    struct unwind_space *space = NULL;
    struct unwind_cache *cache = NULL;
    if (unwind_space_new(UNWIND_X86_64, &space) < 0 || unwind_cache_new(&cache) < 0)
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
        registers.reg[7] = STACK;
        registers.pc = MAPPED + where;
        struct unwind_slice slice = {STACK, stack, stack_len};
        unwind_walk(space, &registers, &slice, round % 2 ? cache : NULL, frames, 64, &result);
        if (result.count > 64 || result.end >= UNWIND_ENDS)
            abort();
    }
    unwind_cache_free(cache);
    unwind_space_free(space);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct unwind_image *image = NULL;
    size_t stack_len = size < 2 * STACK_BYTES ? size / 2 : STACK_BYTES;
    struct why why = {0};
    if (unwind_image_load_memory(data, size - stack_len, &image, &why) < 0) {
        if (why.what[0] == 0)
            abort(); /* refused without a word */
        return 0;
    }
    walk(image, data + size - stack_len, stack_len);
    unwind_image_free(image);
    return 0;
}
