/* What the files of embed share.
 *
 * embed.c         choosing functions, one after the other
 * embed_code.c    bytes of a function to instructions
 * embed_source.c  lines wanted, and the files that have them */
#pragma once

#include "base/vec.h"
#include "symbolize/embed.h"
#include "symbolize/internal.h"

struct wanted_line {
    struct str file; /* borrowed from the symbols */
    uint32_t line;
};

struct embedding {
    struct symbols *symbols;
    int fd;
    uint32_t image;
    const struct embed_opts *opts;
    struct sink *sink;
    struct embed_counts counts;
    VEC(struct wanted_line) wanted;
};

/* Every address that an instruction of the function begins at, handed to embed_line_want(). */
MUST_USE int embed_code(struct embedding *embedding, const struct embed_function *functions,
                        size_t count);
/* Notes the lines that an address stands for. */
MUST_USE int embed_line_want(struct embedding *embedding, uint64_t vaddr);
/* All lines from the declaration to the last one seen, of the function itself. */
MUST_USE int embed_function_want(struct embedding *embedding, const struct embed_function *function,
                                 size_t first);
MUST_USE int embed_source(struct embedding *embedding);
