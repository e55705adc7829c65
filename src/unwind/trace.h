/* What the frames of a walk hang on: if all of it is the same again, so is the stack.
 *
 * A walk begins with a pc, a stack pointer and registers, and reads stack slots. Many of those
 * only restore registers that no frame further out makes use of: they may change from call to
 * call without meaning anything. What does matter are return addresses, and saved registers
 * from which a later frame was computed. A walk that is traced notes those: whoever finds the
 * same pc and sp, the same registers `registers_used` and the same values in all slots has
 * the same stack, by the very steps of the walk. Nothing is guessed. */
#pragma once

#include "unwind/unwind.h"

enum { UNWIND_TRACE_SLOTS = 256 };

struct unwind_trace_slot {
    uint64_t address;
    uint64_t value;
};

struct unwind_trace {
    bool usable;             /* complete to the root, all noted; else nothing below is of use */
    uint32_t registers_used; /* bit n: the value of register n at the beginning; not sp */
    uint32_t count;
    struct unwind_trace_slot slots[UNWIND_TRACE_SLOTS]; /* in the order of being needed */
};

/* As unwind_walk() without a cache. */
void unwind_walk_traced(const struct unwind_space *space, const struct unwind_registers *registers,
                        const struct unwind_slice *slice, struct unwind_frame *frames, size_t max,
                        struct unwind_result *ret, struct unwind_trace *ret_trace);
