/* Names, files and lines for addresses of one image.
 *
 *     symbols_open()  finds and indexes what the image and its debug file tell
 *     symbols_at()    what an address means, inlined functions first
 *     symbols_emit()  the same for a batch of frames, into a sink
 *
 * Which kinds of image there are, and how each is read, is the table in
 * symbolizers.c. Indexed once, looked up by binary search; nothing is parsed
 * twice and no other program is run. What an index is worth keeping for goes to
 * the cache folder by build-id. Files are hostile: damage is skipped with a
 * finding in symbols_notes(), never a crash. Symbols belong to one thread. */
#pragma once

#include "base/why.h"
#include "model/sink.h"

#include <stdbool.h>
#include <stddef.h>

struct symbols;

struct symbols_opts {
    const char *cache_dir; /* NULL: no cache */
    const char *root;      /* where the target's file system begins ("/proc/7/root"); NULL: "/" */
    unsigned owner;        /* the user the target ran as: his perf map is believed, beside root's */
    bool debuginfod; /* may ask a server, with a time limit; false: the network is not touched */
    bool lines;      /* DWARF lines and inlined functions; false: function names only */
};

/* From an open file (kept open by us as a duplicate): the file may be gone from its path by
 * now. `info` names it; info->kind chooses the reader. For IMAGE_KERNEL the fd is -1
 * (addresses are those of /proc/kallsyms; an fd is a file of its form), for IMAGE_VDSO `fd` is -1
 * too (read from our own memory), for IMAGE_JIT it is the perf map, or -1 to look for it at
 * info->path. */
MUST_USE int symbols_open(int fd, const struct image_info *info, const struct symbols_opts *opts,
                          struct symbols **ret, struct why *why);
void symbols_close(struct symbols *symbols); /* NULL is fine */

/* A function around an address, and where in the source the address lies. Texts live as
 * long as the symbols; an empty text or line 0 means that it is not known. */
struct symbol {
    struct str name;    /* for people: demangled */
    struct str linkage; /* as the linker knows it; empty for some inlined functions */
    struct str file;    /* of the address */
    uint32_t line;
    struct str function_file; /* where the function is declared */
    uint32_t function_line;
    uint64_t start; /* ELF vaddr of the (outermost) function */
    uint64_t size_bytes;
};

enum { SYMBOLS_INLINE_MAX = 64 };

/* How many were stored, innermost inlined function first; 0 if nothing is known. */
size_t symbols_at(struct symbols *symbols, uint64_t vaddr, struct symbol *ret, size_t max);

struct symbols_frame {
    uint32_t frame;   /* id in the sink */
    uint64_t address; /* ELF vaddr, to look up as it is */
};
/* Sorts `frames`. Gives functions and locations of each to the sink; unknown ones get none. */
MUST_USE int symbols_emit(struct symbols *symbols, uint32_t image, struct symbols_frame *frames,
                          size_t count, struct sink *sink);

/* "DWARF", "symbol table", "separate debug file /usr/lib/debug/…", "kallsyms", "none": what
 * the names come from. */
const char *symbols_source(const struct symbols *symbols);
/* Findings for people: "stripped: install libfoo-dbgsym", "damaged .debug_line at 0x…"; ends
 * with NULL. */
const char *const *symbols_notes(const struct symbols *symbols);

/* C++ (old and new), Rust (both schemes), else the name itself. Hostile names are bounded:
 * recursion and length. The result lives in the arena. */
struct arena;
struct str symbol_demangle(struct arena *arena, struct str linkage);

/* The user's cache folder ("$XDG_CACHE_HOME/whyslow" or "~/.cache/whyslow"), made if need be
 * (0700); NULL when there is none: then nothing is cached. */
const char *symbols_cache_dir(char *buffer, size_t size);
/* The separate debug file of an image by build-id or debuglink, under `root` and /usr/lib/debug:
 * an open fd, or -ENOENT. `path` gets where it was. */
MUST_USE int symbols_debug_file(int fd, const struct image_info *info, const char *root, char *path,
                                size_t path_size);
