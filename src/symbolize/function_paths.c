/* Code read from where it is reached, one straight piece after another. */
#include "symbolize/function_paths.h"

#include "base/map.h"
#include "base/vec.h"
#include "symbolize/disassembler.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 4096,
    INSN_BYTES_MAX = 16,
    RELOCATIONS_MAX = 1 << 20,
    SKIPPED_MAX = 6, /* instructions before the one that is probed */
};

struct walking {
    struct elf_file *file;
    struct disassembler code;
    const uint64_t *known;
    size_t known_count;
    struct map_u64 seen; /* addresses that were read, or wait for it */
    VEC(uint64_t) waiting;
    struct function_paths *paths;
};

static bool is_known(const struct walking *walking, uint64_t address)
{
    for (size_t i = 0; i < walking->known_count; i++)
        if (walking->known[i] == address)
            return true;
    return false;
}

static void place_add(uint64_t *places, size_t *count, uint64_t address,
                      struct function_paths *paths)
{
    if (*count == FUNCTION_PATHS_MAX)
        paths->blind = true;
    else
        places[(*count)++] = address;
}

static int wait_add(struct walking *walking, uint64_t address)
{
    bool fresh;
    if (!map_u64_at(&walking->seen, address, &fresh))
        return -ENOMEM;
    return fresh ? VEC_PUSH(&walking->waiting, address) : 0;
}

static bool is_conditional(const struct disassembler *code)
{
    const cs_insn *insn = code->insn;
    if (code->x86)
        return insn->id != X86_INS_JMP;
    const cs_arm64 *arm = &insn->detail->arm64;
    return insn->id != ARM64_INS_B || (arm->cc != ARM64_CC_INVALID && arm->cc != ARM64_CC_AL);
}

/* ---- stubs: functions of the same file, called so that others may take their place ---- */

static bool symbol_at(struct elf_file *file, size_t index, uint64_t *ret)
{
    GElf_Shdr header;
    GElf_Sym symbol;
    Elf_Scn *scn = elf_file_section(file, ".dynsym", &header);
    Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
    if (!data || !gelf_getsym(data, (int)index, &symbol) || symbol.st_shndx == SHN_UNDEF)
        return false;
    *ret = symbol.st_value;
    return true;
}

static bool slot_look(struct elf_file *file, const char *section, uint64_t slot, uint64_t *ret)
{
    GElf_Shdr header;
    Elf_Scn *scn = elf_file_section(file, section, &header);
    Elf_Data *data = scn && header.sh_type == SHT_RELA ? elf_getdata(scn, NULL) : NULL;
    size_t count = data && header.sh_entsize > 0 ? header.sh_size / header.sh_entsize : 0;
    for (size_t i = 0; i < MIN(count, (size_t)RELOCATIONS_MAX); i++) {
        GElf_Rela rela;
        if (gelf_getrela(data, (int)i, &rela) && rela.r_offset == slot)
            return symbol_at(file, GELF_R_SYM(rela.r_info), ret);
    }
    return false;
}

/* jmp *slot(%rip) */
static bool stub_target(const struct walking *walking, uint64_t *ret)
{
    const cs_insn *insn = walking->code.insn;
    if (!walking->code.x86 || insn->detail->x86.op_count != 1 ||
        insn->detail->x86.operands[0].type != X86_OP_MEM ||
        insn->detail->x86.operands[0].mem.base != X86_REG_RIP)
        return false;
    uint64_t slot = insn->address + insn->size + (uint64_t)insn->detail->x86.operands[0].mem.disp;
    return slot_look(walking->file, ".rela.plt", slot, ret) ||
           slot_look(walking->file, ".rela.dyn", slot, ret);
}

/* 1: what follows is reached as well. */
static int jump_look(struct walking *walking)
{
    struct function_paths *paths = walking->paths;
    const struct disassembler *code = &walking->code;
    uint64_t target;
    if (!disassembler_target(code, &target) && !stub_target(walking, &target)) {
        place_add(paths->jumps, &paths->jump_count, code->insn->address, paths);
        return 0;
    }
    int r = 0;
    if (is_known(walking, target))
        place_add(paths->jumps, &paths->jump_count, code->insn->address, paths);
    else
        r = wait_add(walking, target);
    return r < 0 ? r : is_conditional(code);
}

static bool is_trap(const struct disassembler *code)
{
    return code->x86 && (code->insn->id == X86_INS_UD2 || code->insn->id == X86_INS_HLT);
}

static int instruction_look(struct walking *walking)
{
    struct function_paths *paths = walking->paths;
    const struct disassembler *code = &walking->code;
    uint64_t target;
    if (code->insn->id == 0) {
        paths->blind = true;
        return 0;
    }
    if (cs_insn_group(code->capstone, code->insn, CS_GRP_RET)) {
        place_add(paths->returns, &paths->return_count, code->insn->address, paths);
        return 0;
    }
    if (cs_insn_group(code->capstone, code->insn, CS_GRP_CALL)) {
        if (disassembler_target(code, &target) && is_known(walking, target))
            paths->calls_known = true;
        return 1;
    }
    if (cs_insn_group(code->capstone, code->insn, CS_GRP_JUMP))
        return jump_look(walking);
    return !is_trap(code);
}

/* Up to PIECE_BYTES from an address; how many. */
static size_t code_read(struct elf_file *file, uint64_t address, uint8_t *bytes, size_t want)
{
    uint64_t offset = 0;
    size_t len = MIN(elf_file_code(file, address, want, &offset), want);
    ssize_t n = len > 0 && file->fd >= 0 ? pread(file->fd, bytes, len, (off_t)offset) : 0;
    return n > 0 ? (size_t)n : 0;
}

/* One straight piece; what lies behind its bytes waits. */
static int piece_look(struct walking *walking, uint64_t address, size_t *steps)
{
    uint8_t buffer[PIECE_BYTES];
    const uint8_t *bytes = buffer;
    size_t left = code_read(walking->file, address, buffer, sizeof(buffer));
    bool cut = left == sizeof(buffer);
    int r = 1;
    if (left == 0)
        walking->paths->blind = true;
    while (r > 0 && left > 0) {
        bool fresh = true;
        if (cut && left < INSN_BYTES_MAX)
            return wait_add(walking, address);
        if (!cs_disasm_iter(walking->code.capstone, &bytes, &left, &address, walking->code.insn))
            break;
        r = instruction_look(walking);
        if (r > 0 && !map_u64_at(&walking->seen, address, &fresh))
            r = -ENOMEM;
        if (++*steps > FUNCTION_PATHS_STEPS_MAX) {
            walking->paths->blind = true;
            return MIN(r, 0);
        }
        if (!fresh)
            return 0; /* read already, or about to be */
    }
    return MIN(r, 0);
}

int function_paths(struct elf_file *file, uint64_t start, const uint64_t *known, size_t known_count,
                   struct function_paths *ret)
{
    struct walking walking = {
        .file = file, .known = known, .known_count = known_count, .paths = ret};
    size_t steps = 0;
    *ret = (struct function_paths){0};
    int r = disassembler_open(file->header.e_machine, &walking.code);
    if (r == 0)
        r = wait_add(&walking, start);
    while (r == 0 && walking.waiting.len > 0 && steps <= FUNCTION_PATHS_STEPS_MAX)
        r = piece_look(&walking, walking.waiting.data[--walking.waiting.len], &steps);
    disassembler_close(&walking.code);
    map_u64_deinit(&walking.seen);
    VEC_FREE(&walking.waiting);
    return r;
}

/* ---- where a probe costs least ---- */

/* As arch/x86/kernel/uprobes.c of Linux has them: push, jumps, calls, nop. */
static bool is_emulated(const cs_insn *insn)
{
    const uint8_t *bytes = insn->bytes;
    uint8_t first = bytes[0];
    if (first == 0x41 && insn->size == 2)
        return (bytes[1] & 0xf8) == 0x50;
    if (first == 0x0f)
        return (bytes[1] & 0xf0) == 0x80;
    return ((first & 0xf8) == 0x50 && insn->size == 1) || (first & 0xf0) == 0x70 || first == 0xe8 ||
           first == 0xe9 || first == 0xeb || (first == 0x90 && insn->size == 1);
}

/* Whether all that a probe looks at is the same after it. */
static bool is_harmless(const struct disassembler *code)
{
    static const char *const kept[] = {"rsp", "esp", "rdi", "edi", "di", "dil", "rsi", "esi",
                                       "si",  "sil", "rdx", "edx", "dx", "dl",  "dh"};
    cs_regs read, written;
    uint8_t read_count = 0, written_count = 0;
    if (code->insn->id == 0 || cs_insn_group(code->capstone, code->insn, CS_GRP_JUMP) ||
        cs_insn_group(code->capstone, code->insn, CS_GRP_CALL) ||
        cs_insn_group(code->capstone, code->insn, CS_GRP_RET) ||
        cs_regs_access(code->capstone, code->insn, read, &read_count, written, &written_count) !=
            CS_ERR_OK)
        return false;
    for (uint8_t i = 0; i < written_count; i++)
        for (size_t j = 0; j < ARRAY_SIZE(kept); j++)
            if (strcmp(cs_reg_name(code->capstone, written[i]), kept[j]) == 0)
                return false;
    return true;
}

/* Somebody who jumps there comes by more than once, or with other registers. */
static bool is_jumped_to(struct disassembler *code, uint64_t start, const uint8_t *bytes,
                         size_t left, uint64_t last)
{
    uint64_t address = start, target;
    while (left > 0 && cs_disasm_iter(code->capstone, &bytes, &left, &address, code->insn))
        if (cs_insn_group(code->capstone, code->insn, CS_GRP_JUMP) &&
            disassembler_target(code, &target) && target > start && target <= last)
            return true;
    return false;
}

uint64_t function_probe_at(struct elf_file *file, uint64_t start)
{
    uint8_t buffer[PIECE_BYTES];
    const uint8_t *bytes = buffer;
    struct disassembler code;
    uint64_t address = start, found = start;
    size_t read = code_read(file, start, buffer, sizeof(buffer)), left = read;
    if (file->header.e_machine != EM_X86_64 || disassembler_open(file->header.e_machine, &code) < 0)
        return start;
    for (int i = 0; i < SKIPPED_MAX && left > 0; i++) {
        if (!cs_disasm_iter(code.capstone, &bytes, &left, &address, code.insn))
            break;
        if (is_emulated(code.insn)) {
            found = code.insn->address;
            break;
        }
        if (!is_harmless(&code))
            break;
    }
    if (found != start && is_jumped_to(&code, start, buffer, read, found))
        found = start;
    disassembler_close(&code);
    return found;
}
