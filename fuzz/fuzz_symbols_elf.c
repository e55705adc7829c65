/* ELF and DWARF of an image that may be anything: opened, and asked about some addresses. */
#include "symbolize/internal.h"

#include "base/fd.h"
#include "symbolize/variables.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void span_ask(struct symbols *symbols, const struct elf_span *span)
{
    struct symbol found[SYMBOLS_INLINE_MAX];
    uint64_t step = (span->end - span->start) / 64 + 1;
    for (unsigned i = 0; i < 64; i++) {
        symbols_at(symbols, span->start + i, found, SYMBOLS_INLINE_MAX);
        symbols_at(symbols, span->start + i * step, found, 1 + i % SYMBOLS_INLINE_MAX);
    }
}

/* Where its variables lie, and what they are called. */
static void variables_ask(int fd, const struct image_info *info)
{
    struct variables_layout layout;
    struct variables *variables;
    struct variable found;
    uint64_t vaddr;
    if (variables_layout_read(fd, &layout) < 0 ||
        variables_open(fd, info, "/nonexistent", &variables) < 0)
        return;
    for (size_t i = 0; i < layout.count; i++)
        for (uint64_t step = 0; step < 64; step++)
            if (variables_layout_vaddr(&layout, 0x7f0000000000, layout.segments[i].file_offset,
                                       0x7f0000000000 + step * 64, &vaddr))
                variables_at(variables, vaddr, &found);
    variables_close(variables);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A root that is not there: names in the file must not lead us to real ones. */
    static const struct symbols_opts opts = {.lines = true, .root = "/nonexistent"};
    struct image_info info = {.kind = IMAGE_FILE, .path = STR("/nonexistent/image")};
    struct symbols *symbols;
    struct why why;
    AUTO(fd_close) int fd = memfd_create("image", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, data, size) < 0)
        return 0;
    variables_ask(fd, &info);
    if (symbols_open(fd, &info, &opts, &symbols, &why) < 0)
        return 0;
    for (size_t i = 0; i < symbols->elf.code_count; i++)
        span_ask(symbols, &symbols->elf.code[i]);
    symbols_close(symbols);
    return 0;
}
