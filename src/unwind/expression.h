/* DWARF expressions of unwind tables, evaluated at walk time. Core: no allocation,
 * bounded steps and stack, reads only registers and the slice. */
#pragma once

#include "unwind/unwind.h"

/* What an evaluation may read. */
struct unwind_reader {
    const struct unwind_registers *registers;
    const struct unwind_slice *slice;
    uint8_t pc_column; /* the register number that stands for the pc; 255: none */
};

/* The 8 bytes at an address. UNWIND_TRUNCATED above the slice, UNWIND_UNREADABLE below it
 * or too far above for any slice; UNWIND_ROOT (0) when read. */
enum unwind_end unwind_slice_read(const struct unwind_slice *slice, uint64_t address,
                                  uint64_t *ret);

/* `initial` is pushed first when not NULL (the CFA, for a register's expression). */
enum unwind_end unwind_expression(const uint8_t *bytes, size_t len,
                                  const struct unwind_reader *reader, const uint64_t *initial,
                                  uint64_t *ret);
