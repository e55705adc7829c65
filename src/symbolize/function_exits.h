/* Where a function leaves.
 *
 * Whoever wants to know when a function is over can ask the kernel for its return (uretprobe),
 * which puts an address of its own into the stack for as long as it runs: nobody can walk the
 * stack past it then. A probe on each way out leaves the stack alone. */
#pragma once

#include "symbolize/elf_file.h"

enum function_exit_kind {
    FUNCTION_RETURNS,
    FUNCTION_JUMPS, /* to an address outside: another function, or a part of this one elsewhere */
    FUNCTION_JUMPS_ANYWHERE, /* by a register: a switch, or a function by its pointer */
};

struct function_exit {
    uint64_t address; /* of the instruction */
    enum function_exit_kind kind;
    uint64_t target; /* of FUNCTION_JUMPS */
};

enum { FUNCTION_EXITS_MAX = 64, FUNCTION_EXITS_BYTES_MAX = 64 * 1024 };

/* How many are in `exits`. -ENOTSUP: its bytes are not all there, or not all of them code;
 * -E2BIG: more than fit; -ENOENT: it never leaves. */
MUST_USE int function_exits(struct elf_file *file, uint64_t start, uint64_t size_bytes,
                            struct function_exit exits[FUNCTION_EXITS_MAX], size_t *ret_count);
