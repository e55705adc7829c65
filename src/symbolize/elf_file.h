/* An ELF file that may be damaged, read section by section.
 *
 * Read with pread(), not mapped: a target that cuts its file short while we look at it must
 * not end us with SIGBUS. Bytes live as long as the file. */
#pragma once

#include "base/str.h"
#include "base/why.h"

#include <gelf.h>
#include <stdbool.h>

enum { ELF_CODE_SPANS_MAX = 16, ELF_UNPACKED_MAX = 16 };

struct elf_file {
    Elf *elf; /* NULL: not open */
    int fd;   /* -1 when read from memory */
    void *memory;
    uint64_t size_bytes;
    GElf_Ehdr header;
    size_t section_count;
    struct elf_span {
        uint64_t start, end;
    } code[ELF_CODE_SPANS_MAX]; /* segments that may be executed */
    size_t code_count;          /* 0: not told */
    /* To unpack the sections of a large file takes longer than all else that is done with it:
     * they are kept there by its build-id. NULL: not kept. */
    const char *cache_dir;
    struct elf_unpacked {
        const Elf_Scn *scn;
        char *data;
        size_t len;
    } unpacked[ELF_UNPACKED_MAX]; /* from the cache */
    size_t unpacked_count;
};

#define ELF_FILE_NONE ((struct elf_file){.fd = -1})

/* Takes over `fd` or `memory`, also on failure. `name` is for words only. */
MUST_USE int elf_file_open(int fd, const char *name, struct elf_file *ret, struct why *why);
MUST_USE int elf_file_open_memory(void *memory, size_t len, const char *name, struct elf_file *ret,
                                  struct why *why);
void elf_file_close(struct elf_file *file); /* a file that is not open is fine */

/* NULL when there is none; one without bytes in this file (SHT_NOBITS) is found, too. */
Elf_Scn *elf_file_section(struct elf_file *file, const char *name, GElf_Shdr *ret);
/* Does the section hold bytes? */
bool elf_file_has(struct elf_file *file, const char *name);
/* Unpacked where it is compressed, ".zdebug_…" stands in for ".debug_…". Empty when there is
 * none; what is wrong with it goes to *ret_problem (else left alone). */
struct str elf_file_bytes(struct elf_file *file, const char *name, const char **ret_problem);

enum { ELF_BUILD_ID_BYTES_MAX = 64 };
/* Lower-case hex; false when it has none. */
bool elf_file_build_id(struct elf_file *file, char text[2 * ELF_BUILD_ID_BYTES_MAX + 1]);
/* Is the address in a segment that may be executed? True for all in a file without segments. */
bool elf_file_executes(const struct elf_file *file, uint64_t vaddr);
/* Where in the file the code of an address lies; how many of the bytes that are wanted of it are
 * there. */
size_t elf_file_code(struct elf_file *file, uint64_t vaddr, size_t want, uint64_t *ret_offset);
