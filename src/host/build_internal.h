/* What the build_*.c files share: one open ELF file, and the bounds on the work
 * done on it. For build_info.c and its tests only.
 *
 * A file under examination is hostile: sizes lie, tables point outside. So the
 * opener checks every table against the file's size once, and every loop after
 * it has a count limit and looks at the deadline. */
#pragma once

#include "host/build_info.h"

#include "base/clock.h"
#include "base/str.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <libelf.h>

enum {
    BUILD_SECTIONS_MAX = 1000000,
    BUILD_SYMBOLS_MAX = 4000000,
    BUILD_UNITS_MAX = 200000,
    BUILD_FDES_MAX = 4000000,
    BUILD_FDES_READ_MAX = 4096, /* frame rules looked at, spread evenly over all functions */
    BUILD_TIME_MS_MAX = 800,
};
/* A compressed section is unpacked whole, so what it claims to hold is limited. */
#define BUILD_UNPACKED_BYTES_MAX (256ull << 20)
#define BUILD_CRC_BYTES_MAX      (256ull << 20)

/* One ELF file, opened and checked. */
struct build_elf {
    struct arena *arena;
    const char *path;
    int fd;
    Elf *elf;
    GElf_Ehdr header;
    size_t section_count;
    uint64_t size_bytes;
    uint64_t deadline_ns;
    bool late; /* the deadline passed: what was found is a part */
};

MUST_USE int build_elf_open(struct arena *arena, const char *path, uint64_t deadline_ns,
                            struct build_elf *ret, struct why *why);
void build_elf_close(struct build_elf *file); /* one that was never opened (all zero) is fine */
bool build_elf_late(struct build_elf *file);
/* NULL when there is no such section, or it holds nothing in this file. */
Elf_Scn *build_elf_section(struct build_elf *file, const char *name, GElf_Shdr *ret);
/* The bytes as they stand in the file; empty when there are none. */
struct str build_elf_bytes(struct build_elf *file, const char *name);
/* Bytes that claim to come out of compressed sections whose names start with `prefix`. */
uint64_t build_elf_unpacked_bytes(struct build_elf *file, const char *prefix);
const char *build_elf_machine(const struct build_elf *file);
const char *build_elf_kind(struct build_elf *file, bool *ret_static);
const char *build_elf_build_id(struct build_elf *file); /* NULL when it has none */
/* Is this one of the architectures whose frame rules we read? */
bool build_elf_is_known_machine(const struct build_elf *file);

/* What symbol tables, needed libraries and strings give away. */
struct build_marks {
    size_t functions;         /* in .symtab */
    size_t dynamic_functions; /* in .dynsym */
    bool has_symtab;
    bool has_mini; /* .gnu_debugdata */
    bool thin_lto; /* a symbol promoted by ThinLTO */
    bool asserts;  /* the program calls assert's failure function */
    const char *sanitizers;
    const char *instrumented;
    const char *language; /* NULL when nothing gives it away */
    const char *language_because;
};
void build_marks_read(struct build_elf *file, struct build_marks *ret);

/* Go's own record of a build, in .go.buildinfo. */
struct build_go {
    bool found;
    const char *version;  /* "go1.22.1" */
    const char *settings; /* lines "build\t-gcflags=…"; "" when there are none */
};
void build_go_read(struct build_elf *file, struct build_go *ret);
/* The value of one setting without its quotes, or "". */
const char *build_go_setting(struct arena *arena, const struct build_go *go, const char *key);

/* The file with the debug information that was split off. `folder` is where the
 * system keeps such files: /usr/lib/debug, or a test's. */
struct build_debug_file {
    const char *path;    /* NULL when none was found */
    const char *because; /* how it was found, or why not */
    bool linked;         /* the binary names one, found or not */
};
void build_debug_find(struct build_elf *file, const char *folder, struct build_debug_file *ret);
uint32_t build_crc32(uint32_t crc, const void *data, size_t len);

/* How code is unwound, from .eh_frame and .debug_frame. */
struct build_cfi {
    size_t functions;    /* with a row in either table */
    size_t frames_read;  /* of those, looked at and building a frame */
    size_t frames_kept;  /* of those, with the frame pointer as base */
    double code_covered; /* 0 to 1 of the bytes in .text */
    uint64_t uncovered_bytes;
    const char *table; /* ".eh_frame", ".debug_frame", or NULL */
    const char *na;    /* why nothing could be read; NULL when it could */
};
void build_cfi_read(struct build_elf *file, struct build_cfi *ret);

/* What the compile units say. */
enum { BUILD_TALLY_MAX = 16 };
struct build_tally { /* shares by bytes of code, largest found by build_tally_sort() */
    struct {
        const char *name;
        uint64_t bytes;
    } rows[BUILD_TALLY_MAX];
    size_t len;
    uint64_t bytes;
};
void build_tally_add(struct build_tally *tally, const char *name, uint64_t bytes);
void build_tally_sort(struct build_tally *tally);

struct build_dwarf {
    unsigned units;
    unsigned own_units;       /* without start-up files, assembler and language runtimes */
    unsigned runtime_units;   /* the rest, assembler not counted */
    const char *rust_runtime; /* the rustc that made the standard library inside; NULL if none */
    unsigned split_units;     /* whose information stands in a .dwo file */
    unsigned dwo_missing;
    const char *dwo_missing_name;
    uint64_t code_bytes;       /* that any unit describes */
    struct build_tally levels; /* "-O2"; "" where none is recorded */
    struct build_tally languages;
    struct build_tally compilers;
    struct build_tally versions; /* "4", "5" */
    unsigned flags_units;        /* that record their switches */
    unsigned lto_units;
    unsigned keep_fp_units; /* -fno-omit-frame-pointer as the last word */
    unsigned llvm_units;
    bool llvm_shared; /* several LLVM units came out of one module */
    bool rewritten;   /* a tool merged the units: sharing proves nothing */
    /* Evidence where no level is recorded. */
    uint64_t functions;
    uint64_t variables_fixed;  /* of functions, in one stack slot all their life */
    uint64_t variables_moving; /* of functions, in registers, or at different places */
    uint64_t inlined;
    uint64_t calls_described; /* DW_AT_call_all_calls of LLVM, which it writes when it optimizes */
    bool lines_only;          /* no parameters and types: -g1, -gline-tables-only */
    const char *partial;      /* why only a part was looked at; NULL when all was */
    const char *damaged;      /* what is wrong; NULL when nothing is */
};
/* False when the file has no DWARF; *ret is zero then. */
bool build_dwarf_read(struct build_elf *file, struct build_dwarf *ret);
/* The last -O switch of a command line, "-O" as "-O1"; NULL when there is none. */
const char *build_flags_level(struct arena *arena, struct str flags);
bool build_flags_has(struct str flags, const char *prefix);

/* Script to interpreter: *ret_interpreter is NULL when `path` is no script. */
MUST_USE int build_script_read(struct arena *arena, const char *path, const char **ret_interpreter,
                               struct why *why);
