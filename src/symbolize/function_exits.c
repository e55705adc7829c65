/* All instructions of a function, looked at one by one. */
#include "symbolize/function_exits.h"

#include "symbolize/disassembler.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct leaving {
    struct disassembler code;
    uint64_t start, size_bytes;
    struct function_exit *exits;
    size_t count;
};

static int exit_add(struct leaving *leaving, enum function_exit_kind kind, uint64_t target)
{
    if (leaving->count == FUNCTION_EXITS_MAX)
        return -E2BIG;
    leaving->exits[leaving->count++] = (struct function_exit){
        .address = leaving->code.insn->address,
        .kind = kind,
        .target = target,
    };
    return 0;
}

static int instruction_look(struct leaving *leaving)
{
    const struct disassembler *code = &leaving->code;
    uint64_t target;
    if (code->insn->id == 0)
        return -ENOTSUP;
    if (cs_insn_group(code->capstone, code->insn, CS_GRP_RET))
        return exit_add(leaving, FUNCTION_RETURNS, 0);
    if (cs_insn_group(code->capstone, code->insn, CS_GRP_CALL) ||
        !cs_insn_group(code->capstone, code->insn, CS_GRP_JUMP))
        return 0;
    if (!disassembler_target(code, &target))
        return exit_add(leaving, FUNCTION_JUMPS_ANYWHERE, 0);
    return target - leaving->start < leaving->size_bytes
               ? 0
               : exit_add(leaving, FUNCTION_JUMPS, target);
}

static int bytes_look(struct leaving *leaving, const uint8_t *bytes)
{
    uint64_t address = leaving->start;
    size_t left = (size_t)leaving->size_bytes;
    int r = 0;
    while (r == 0 && left > 0) {
        if (!cs_disasm_iter(leaving->code.capstone, &bytes, &left, &address, leaving->code.insn))
            return -ENOTSUP;
        r = instruction_look(leaving);
    }
    return r == 0 && leaving->count == 0 ? -ENOENT : r;
}

int function_exits(struct elf_file *file, uint64_t start, uint64_t size_bytes,
                   struct function_exit exits[FUNCTION_EXITS_MAX], size_t *ret_count)
{
    uint64_t offset = 0;
    struct leaving leaving = {.start = start, .size_bytes = size_bytes, .exits = exits};
    if (size_bytes == 0 || size_bytes > FUNCTION_EXITS_BYTES_MAX || file->fd < 0 ||
        elf_file_code(file, start, (size_t)size_bytes, &offset) < size_bytes)
        return -ENOTSUP;
    uint8_t *bytes = malloc((size_t)size_bytes);
    if (!bytes)
        return -ENOMEM;
    int r = pread(file->fd, bytes, (size_t)size_bytes, (off_t)offset) == (ssize_t)size_bytes
                ? disassembler_open(file->header.e_machine, &leaving.code)
                : -ENOTSUP;
    if (r == 0)
        r = bytes_look(&leaving, bytes);
    disassembler_close(&leaving.code);
    free(bytes);
    if (r == 0)
        *ret_count = leaving.count;
    return r;
}
