/* Bytes of a function, disassembled by capstone, with names for where calls and jumps go. */
#include "symbolize/embed_parts.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FUNCTION_BYTES_MAX = 64 * 1024, INSTRUCTIONS_MAX = 200000, SYMBOL_CHARS_MAX = 200 };

struct coder {
    struct embedding *embedding;
    csh capstone;
    cs_insn *insn;
    bool x86;
    struct elf_file file;
    uint8_t bytes[FUNCTION_BYTES_MAX];
};

/* Where the code of an address lies in the file; how many bytes of it are there. */
static size_t code_find(struct elf_file *file, uint64_t vaddr, size_t want, uint64_t *ret_offset)
{
    size_t count = 0;
    if (elf_getphdrnum(file->elf, &count) != 0)
        return 0;
    for (size_t i = 0; i < MIN(count, (size_t)UINT16_MAX); i++) {
        GElf_Phdr phdr;
        if (!gelf_getphdr(file->elf, (int)i, &phdr) || phdr.p_type != PT_LOAD ||
            vaddr - phdr.p_vaddr >= phdr.p_filesz)
            continue;
        uint64_t skip = vaddr - phdr.p_vaddr;
        if (phdr.p_offset > file->size_bytes || skip > file->size_bytes - phdr.p_offset)
            return 0;
        *ret_offset = phdr.p_offset + skip;
        return (size_t)MIN((uint64_t)want, phdr.p_filesz - skip);
    }
    return 0;
}

static size_t code_read(struct coder *coder, const struct embed_function *function)
{
    uint64_t offset;
    size_t want = (size_t)MIN(function->size_bytes, (uint64_t)FUNCTION_BYTES_MAX);
    size_t len = code_find(&coder->file, function->start, want, &offset);
    if (len == 0)
        return 0;
    ssize_t got = pread(coder->embedding->fd, coder->bytes, len, (off_t)offset);
    return got > 0 ? (size_t)got : 0;
}

/* The address that a call or jump names, if it names one. */
static bool target_of(const struct coder *coder, const cs_insn *insn, uint64_t *ret)
{
    if (!cs_insn_group(coder->capstone, insn, CS_GRP_CALL) &&
        !cs_insn_group(coder->capstone, insn, CS_GRP_JUMP))
        return false;
    if (coder->x86) {
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

static int code_emit(struct coder *coder, const cs_insn *insn)
{
    struct embedding *embedding = coder->embedding;
    char text[512];
    int len = snprintf(text, sizeof(text), "%s%s%s", insn->mnemonic, insn->op_str[0] ? " " : "",
                       insn->op_str);
    uint64_t target;
    struct symbol found[SYMBOLS_INLINE_MAX];
    if (insn->id != 0 && target_of(coder, insn, &target)) {
        size_t depth = symbols_at(embedding->symbols, target, found, SYMBOLS_INLINE_MAX);
        /* The outermost: a jump goes to a place in the function that was compiled. */
        const struct symbol *symbol = depth > 0 ? &found[depth - 1] : NULL;
        char shift[24] = "";
        if (symbol && target > symbol->start)
            snprintf(shift, sizeof(shift), "+0x%" PRIx64, target - symbol->start);
        if (symbol && symbol->name.len > 0)
            len += snprintf(text + len, sizeof(text) - (size_t)len, " <%.*s%s>",
                            (int)MIN(symbol->name.len, (size_t)SYMBOL_CHARS_MAX), symbol->name.data,
                            shift);
    }
    embedding->counts.instructions++;
    return sink_instruction(embedding->sink, embedding->image, insn->address, insn->size,
                            (struct str){text, MIN((size_t)len, sizeof(text) - 1)});
}

static int function_disassemble(struct coder *coder, const struct embed_function *function)
{
    struct embedding *embedding = coder->embedding;
    size_t left = code_read(coder, function);
    const uint8_t *bytes = coder->bytes;
    uint64_t address = function->start;
    size_t first = embedding->wanted.len;
    embedding->counts.functions += left > 0;
    while (left > 0 && embedding->counts.instructions < INSTRUCTIONS_MAX &&
           cs_disasm_iter(coder->capstone, &bytes, &left, &address, coder->insn)) {
        int r = embedding->opts->no_code ? 0 : code_emit(coder, coder->insn);
        if (r == 0)
            r = embed_line_want(embedding, coder->insn->address);
        if (r < 0)
            return r;
    }
    return embed_function_want(embedding, function, first);
}

static bool coder_open(struct coder *coder)
{
    bool arm = coder->file.header.e_machine == EM_AARCH64;
    coder->x86 = coder->file.header.e_machine == EM_X86_64;
    if (!coder->x86 && !arm)
        return false;
    cs_err error = coder->x86 ? cs_open(CS_ARCH_X86, CS_MODE_64, &coder->capstone)
                              : cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &coder->capstone);
    if (error != CS_ERR_OK)
        return false;
    cs_option(coder->capstone, CS_OPT_DETAIL, CS_OPT_ON);
    cs_option(coder->capstone, CS_OPT_SKIPDATA, CS_OPT_ON);
    coder->insn = cs_malloc(coder->capstone);
    return coder->insn != NULL;
}

/* Without instructions the lines are still known, byte by byte at a coarse step. */
static int lines_only(struct embedding *embedding, const struct embed_function *functions,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t first = embedding->wanted.len;
        uint64_t size = MIN(functions[i].size_bytes, (uint64_t)FUNCTION_BYTES_MAX);
        for (uint64_t at = 0; at < size; at += 4) {
            int r = embed_line_want(embedding, functions[i].start + at);
            if (r < 0)
                return r;
        }
        int r = embed_function_want(embedding, &functions[i], first);
        if (r < 0)
            return r;
    }
    return 0;
}

static int disassemble(struct coder *coder, const struct embed_function *functions, size_t count)
{
    struct embedding *embedding = coder->embedding;
    int copy = embedding->fd >= 0 ? fcntl(embedding->fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (copy < 0 || elf_file_open(copy, embedding->symbols->path, &coder->file, NULL) < 0) {
        embedding->counts.code_na = "the image's file cannot be read";
        return lines_only(embedding, functions, count);
    }
    if (!coder_open(coder)) {
        embedding->counts.code_na = "no disassembler for this kind of machine";
        return lines_only(embedding, functions, count);
    }
    for (size_t i = 0; i < count; i++) {
        int r = function_disassemble(coder, &functions[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

int embed_code(struct embedding *embedding, const struct embed_function *functions, size_t count)
{
    struct coder *coder = calloc(1, sizeof(*coder));
    if (!coder)
        return -ENOMEM;
    coder->embedding = embedding;
    coder->file = ELF_FILE_NONE;
    int r = disassemble(coder, functions, count);
    if (coder->insn)
        cs_free(coder->insn, 1);
    if (coder->capstone)
        cs_close(&coder->capstone);
    elf_file_close(&coder->file);
    free(coder);
    return r;
}
