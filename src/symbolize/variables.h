/* Variables of an image: where they lie in a process, and what stands at an address.
 *
 * The kernel announces executable mappings only. An image is loaded as a whole: from where its
 * code lies and its program headers follows where its data lie. Files are hostile: what is damaged
 * has no variables. */
#pragma once

#include "base/str.h"
#include "model/sink.h"

#include <stdbool.h>

enum { VARIABLES_SEGMENTS_MAX = 16 };

struct variables_layout {
    struct variables_segment {
        uint64_t vaddr, size_bytes; /* in memory */
        uint64_t file_offset, file_bytes;
        bool executable;
    } segments[VARIABLES_SEGMENTS_MAX];
    size_t count;
};
/* The fd stays the caller's. -ENOEXEC, -EBADMSG …: it has none. */
MUST_USE int variables_layout_read(int fd, struct variables_layout *ret);
/* The ELF address of what lies at `address` of a process where the bytes from `file_offset` on are
 * mapped, executable, at `mapped`. False: it is not of this image. */
bool variables_layout_vaddr(const struct variables_layout *layout, uint64_t mapped,
                            uint64_t file_offset, uint64_t address, uint64_t *ret_vaddr);

struct variables;

/* From symbol tables of the file and of its separate debug file, local variables too. The fd
 * stays the caller's. `root` as in symbols_opts. */
MUST_USE int variables_open(int fd, const struct image_info *info, const char *root,
                            struct variables **ret);
void variables_close(struct variables *variables); /* NULL is fine */

struct variable {
    struct str linkage; /* as the linker knows it; lives as long as the variables */
    uint64_t start;
    uint64_t size_bytes;
};
bool variables_at(const struct variables *variables, uint64_t vaddr, struct variable *ret);
