/* Source lines and disassembly of the hottest functions, put into a recording: whoever reads
 * it later, on another machine, has neither the sources nor the binary.
 *
 *     n = embed_choose(all, count, &weight, 50);      over all images of a recording
 *     embed_hot(symbols, fd, image, those of one image, …);
 *
 * Files are hostile: everything is bounded, a source must be a regular file found through the
 * target's root, and one that is newer than the binary is left out, since its lines are not
 * those that were compiled. Instructions are in Intel's syntax on x86_64; targets of calls and
 * jumps are named. */
#pragma once

#include "base/macros.h"
#include "model/sink.h"
#include "symbolize/symbols.h"

struct embed_function {
    uint32_t image; /* the caller's, for embed_choose(); not read by embed_hot() */
    uint64_t start; /* ELF vaddr */
    uint64_t size_bytes;
    uint64_t weight; /* self */
};

/* Heaviest first. Returns how many of them are worth it: at most `max`, and no more than it
 * takes to cover 95% of `whole`, the weight of all samples; below EMBED_SHARE_MIN of it nobody
 * looks at the instructions. */
#define EMBED_SHARE_MIN 0.01
size_t embed_choose(struct embed_function *functions, size_t count, uint64_t whole, size_t max);

struct embed_opts {
    const char *root; /* where the target's file system begins; NULL: "/" */
    bool no_source;
    bool no_code;
};

struct embed_counts {
    size_t functions; /* with instructions */
    size_t instructions;
    size_t source_lines;
    size_t files_missing; /* not found, not regular, too large */
    size_t files_newer;   /* than the binary */
    const char *code_na;  /* why there are no instructions; NULL if there are */
};

/* `fd` is the image's, -1 if there is none (then no instructions). What cannot be read is
 * counted and left out; only a failing sink or lack of memory is an error. */
MUST_USE int embed_hot(struct symbols *symbols, int fd, uint32_t image,
                       const struct embed_function *functions, size_t count,
                       const struct embed_opts *opts, struct sink *sink, struct embed_counts *ret);
