/* What the walk and the row builder know of a machine: register numbers, what a
 * call keeps, what a signal frame looks like. One row a machine. */
#pragma once

#include "unwind/unwind.h"

struct unwind_machine_info {
    uint16_t elf_machine; /* EM_* */
    uint8_t sp, fp;
    uint8_t registers;     /* DWARF numbers below this are registers that we keep */
    uint8_t lr;            /* holds a leaf's return address; UNWIND_REGISTERS: none does */
    uint32_t callee_saved; /* bit n: a call keeps register n (the stack pointer apart) */
    uint64_t address_mask; /* of a return address: bits above carry a signature */

    /* The frame that the kernel pushes for a signal handler, seen from the stack
     * pointer at the restorer: registers are saved at these offsets. */
    const uint16_t *signal_registers; /* one a register */
    uint16_t signal_pc;

    /* What a restorer's code looks like: rt_sigreturn's number, then the system call. */
    struct {
        uint8_t bytes[12];
        uint8_t len;
    } restorers[3];
};

const struct unwind_machine_info *unwind_machine_info(enum unwind_machine machine);
/* By ELF's e_machine; false for machines that we do not unwind. */
bool unwind_machine_of_elf(uint16_t elf_machine, enum unwind_machine *ret);
