/* Bytes of code to instructions, by capstone. */
#pragma once

#include "base/macros.h"

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stdint.h>

struct disassembler {
    csh capstone;
    cs_insn *insn; /* the one that cs_disasm_iter() has last read */
    bool x86;
};

/* -ENOTSUP for machines that we do not know; close it then, too. Bytes that are no instruction come
 * as one whose id is 0. */
MUST_USE int disassembler_open(unsigned elf_machine, struct disassembler *ret);
void disassembler_close(struct disassembler *code);

/* The address that a call or jump names, if it names one. */
bool disassembler_target(const struct disassembler *code, uint64_t *ret);
