/* Any bytes as cached unwind rows, then as registers and stack of walks by them.
 *
 * Key and checksum are put right first: a fuzzer would never get
 * past them, somebody who means harm would. The last 128 bytes are the stack. */
#include "fuzz_walk.h"

#include "unwind/image.h"
#include "unwind/rows_file.h"

enum { HEADER_BYTES = 72, MACHINE_AT = 12, TABLES_AT = 16, BASE_AT = 24, SUM_AT = 64 };

static void walk_by(struct unwind_rows *rows, enum unwind_machine machine, const uint8_t *stack,
                    size_t stack_len)
{
    struct unwind_segment segment = {
        .file_size = 0x10000, .memory_size = 0x10000, .page = 0x1000, .executable = true};
    struct unwind_image image = {
        .machine = machine, .rows = *rows, .segments = &segment, .segments_count = 1};
    if (unwind_rows_index(&image.rows, &image.index) < 0)
        abort();
    fuzz_walk(&image, machine, stack, stack_len);
    free(image.index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t stack_len = MIN(size, (size_t)128);
    size -= stack_len;
    struct rows_key key = {.len = 4, .build_id = "abc"};
    struct unwind_rows rows;
    uint32_t machine = UNWIND_X86_64;
    uint64_t base = 0;
    uint8_t *bytes = malloc(size + 1);
    if (!bytes)
        abort();
    memcpy(bytes, data, size);
    if (size >= HEADER_BYTES) {
        uint64_t sum = rows_file_sum(bytes + HEADER_BYTES, size - HEADER_BYTES);
        memcpy(bytes + SUM_AT, &sum, sizeof(sum));
        memcpy(&machine, bytes + MACHINE_AT, sizeof(machine));
        memcpy(&key.tables, bytes + TABLES_AT, sizeof(key.tables));
        memcpy(&base, bytes + BASE_AT, sizeof(base));
    }
    machine = machine == UNWIND_AARCH64 ? UNWIND_AARCH64 : UNWIND_X86_64;
    if (rows_file_parse(bytes, size, &key, (enum unwind_machine)machine, base, &rows))
        walk_by(&rows, (enum unwind_machine)machine, data + size, stack_len);
    free(bytes);
    return 0;
}
