/* Capstone, as we want it. */
#include "symbolize/disassembler.h"

#include <elf.h>
#include <errno.h>

int disassembler_open(unsigned elf_machine, struct disassembler *ret)
{
    *ret = (struct disassembler){.x86 = elf_machine == EM_X86_64};
    if (!ret->x86 && elf_machine != EM_AARCH64)
        return -ENOTSUP;
    cs_err error = ret->x86 ? cs_open(CS_ARCH_X86, CS_MODE_64, &ret->capstone)
                            : cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &ret->capstone);
    if (error != CS_ERR_OK)
        return error == CS_ERR_MEM ? -ENOMEM : -ENOTSUP;
    cs_option(ret->capstone, CS_OPT_DETAIL, CS_OPT_ON);
    cs_option(ret->capstone, CS_OPT_SKIPDATA, CS_OPT_ON);
    ret->insn = cs_malloc(ret->capstone);
    return ret->insn ? 0 : -ENOMEM;
}

void disassembler_close(struct disassembler *code)
{
    if (code->insn)
        cs_free(code->insn, 1);
    if (code->capstone)
        cs_close(&code->capstone);
    *code = (struct disassembler){0};
}

bool disassembler_target(const struct disassembler *code, uint64_t *ret)
{
    const cs_insn *insn = code->insn;
    if (!cs_insn_group(code->capstone, insn, CS_GRP_CALL) &&
        !cs_insn_group(code->capstone, insn, CS_GRP_JUMP))
        return false;
    if (code->x86) {
        const cs_x86 *x86 = &insn->detail->x86;
        if (x86->op_count != 1 || x86->operands[0].type != X86_OP_IMM)
            return false;
        *ret = (uint64_t)x86->operands[0].imm;
        return true;
    }
    const cs_arm64 *arm = &insn->detail->arm64;
    if (arm->op_count == 0 || arm->operands[arm->op_count - 1].type != ARM64_OP_IMM)
        return false;
    *ret = (uint64_t)arm->operands[arm->op_count - 1].imm;
    return true;
}
