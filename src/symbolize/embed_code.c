/* Bytes of a function, disassembled by capstone, with names for where calls and jumps go. */
#include "symbolize/disassembler.h"
#include "symbolize/embed_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FUNCTION_BYTES_MAX = 64 * 1024, INSTRUCTIONS_MAX = 200000, SYMBOL_CHARS_MAX = 200 };

struct coder {
    struct embedding *embedding;
    struct disassembler code;
    struct elf_file file;
    uint8_t bytes[FUNCTION_BYTES_MAX];
};

static size_t code_read(struct coder *coder, const struct embed_function *function)
{
    uint64_t offset;
    size_t want = (size_t)MIN(function->size_bytes, (uint64_t)FUNCTION_BYTES_MAX);
    size_t len = elf_file_code(&coder->file, function->start, want, &offset);
    if (len == 0)
        return 0;
    ssize_t got = pread(coder->embedding->fd, coder->bytes, len, (off_t)offset);
    return got > 0 ? (size_t)got : 0;
}

static int code_emit(struct coder *coder)
{
    struct embedding *embedding = coder->embedding;
    const cs_insn *insn = coder->code.insn;
    char text[512];
    int len = snprintf(text, sizeof(text), "%s%s%s", insn->mnemonic, insn->op_str[0] ? " " : "",
                       insn->op_str);
    uint64_t target;
    struct symbol found[SYMBOLS_INLINE_MAX];
    if (insn->id != 0 && disassembler_target(&coder->code, &target)) {
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
           cs_disasm_iter(coder->code.capstone, &bytes, &left, &address, coder->code.insn)) {
        int r = embedding->opts->no_code ? 0 : code_emit(coder);
        if (r == 0)
            r = embed_line_want(embedding, coder->code.insn->address);
        if (r < 0)
            return r;
    }
    return embed_function_want(embedding, function, first);
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
    if (disassembler_open(coder->file.header.e_machine, &coder->code) < 0) {
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
    disassembler_close(&coder->code);
    elf_file_close(&coder->file);
    free(coder);
    return r;
}
