/* As much of ELF as unwinding needs: program headers, a few sections, the build-id.
 * 64 bits, little endian. Read with pread() into memory of our own: a file that is
 * rewritten while we look at it may confuse us, but cannot kill us as a mapping would. */
#pragma once

#include "base/macros.h"
#include "base/why.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ELF_PHDRS_MAX = 512,
    ELF_SHDRS_MAX = 65536,
    ELF_SECTION_MAX = 256 << 20, /* bytes; the largest .eh_frame known is a tenth of it */
    ELF_BUILD_ID_MAX = 32,
};

struct unwind_elf {
    int fd;               /* -1: bytes */
    const uint8_t *bytes; /* an image in memory */
    uint64_t size;
    Elf64_Ehdr header;
    Elf64_Phdr *phdrs;
    size_t phdrs_count;
    Elf64_Shdr *shdrs; /* NULL: none, or not readable */
    size_t shdrs_count;
    char *names; /* NUL-terminated */
    size_t names_len;
};

/* Part of a file, in memory of its own. */
struct elf_bytes {
    uint8_t *data;
    size_t len;
};

/* `bytes` NULL: from the fd. -EBADMSG if it is no ELF file or damaged, -ENOTSUP if it is
 * one of another width or byte order. Neither is kept beyond unwind_elf_close(). */
MUST_USE int unwind_elf_open(int fd, const void *bytes, size_t len, struct unwind_elf *ret,
                             struct why *why);
void unwind_elf_close(struct unwind_elf *file);

MUST_USE int unwind_elf_read(const struct unwind_elf *file, uint64_t offset, uint64_t size,
                             struct elf_bytes *ret, struct why *why);
void elf_bytes_free(struct elf_bytes *bytes);

/* NULL if there is none with bytes in the file. */
const Elf64_Shdr *unwind_elf_section(const struct unwind_elf *file, const char *name);
/* Its bytes, unpacked if they are compressed. */
MUST_USE int unwind_elf_section_read(const struct unwind_elf *file, const Elf64_Shdr *section,
                                     struct elf_bytes *ret, struct why *why);
/* 0 if it has none. */
size_t unwind_elf_build_id(const struct unwind_elf *file, uint8_t ret[ELF_BUILD_ID_MAX]);

/* unwind_elf_inflate.c: unpacks `type` (ELFCOMPRESS_*) to exactly `size` bytes. */
MUST_USE int unwind_elf_inflate(uint32_t type, const uint8_t *data, size_t len, uint8_t *ret,
                                size_t size, struct why *why);
