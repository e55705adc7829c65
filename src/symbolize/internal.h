/* What the kinds of symbolizer share: the symbols being built, and the row each adds to the
 * table in symbolizers.c. Private to symbolize/. */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "symbolize/elf_file.h"
#include "symbolize/symbols.h"

#include <assert.h>

/* A function as it will stand in the recording; records name it by index. */
struct symbol_function {
    struct str name;
    struct str linkage;
    struct str file;
    uint32_t line;
    uint64_t start; /* 0 for one seen only inlined */
    uint64_t size_bytes;
};

/* One level of what an address means. */
struct symbol_hit {
    uint32_t function; /* index into symbols->functions */
    struct str file;
    uint32_t line;
};

enum { SYMBOLS_NOTES_MAX = 16, SYMBOLIZERS_MAX = 8 };

struct symbols {
    struct arena arena;
    enum image_kind kind;
    const char *path;     /* as the target sees it */
    const char *build_id; /* "" if it has none */
    const char *root;     /* "" for the host's own */
    const char *cache_dir;
    unsigned owner; /* of the target */
    bool debuginfod;
    bool lines;
    struct elf_file elf;   /* the image; not open for the kernel and for JITs */
    struct elf_file debug; /* its separate debug file, if one was found */
    bool named_by_other;   /* some file that names sources is not trusted (base/trust.h) */
    bool named_by_many;    /* … and it is not `namer` alone who can change those */
    unsigned namer;
    const char *debug_path;     /* where that was */
    struct symbol_table *table; /* the ELF file's symbols, once they are read */
    VEC(struct symbol_function) functions;
    void *state[SYMBOLIZERS_MAX]; /* of each row; NULL: it knows nothing of this image */
    const char *source;
    const char *notes[SYMBOLS_NOTES_MAX + 1];
    size_t note_count;
    int fd; /* of a perf map or a kallsyms file; else -1 */
};

/* Opened in the order of the table, asked from its end: later rows know more. */
struct symbolizer {
    const char *name;
    unsigned kinds; /* bit n: images of kind n */
    /* 0 with *ret_state NULL when the image has nothing for it; damage is a note. */
    int (*open)(struct symbols *symbols, void **ret_state, struct why *why);
    /* Innermost first; how many. */
    size_t (*at)(struct symbols *symbols, void *state, uint64_t vaddr, struct symbol_hit *ret,
                 size_t max);
    void (*close)(void *state);
};

extern const struct symbolizer *const symbolizers[];
extern const size_t symbolizers_count;

extern const struct symbolizer symbolizer_unwind_ranges;
extern const struct symbolizer symbolizer_elf;
extern const struct symbolizer symbolizer_go;
extern const struct symbolizer symbolizer_dwarf;
extern const struct symbolizer symbolizer_kallsyms;
extern const struct symbolizer symbolizer_jitmap;

/* Said once; beyond SYMBOLS_NOTES_MAX the first ones are kept. */
void symbols_note(struct symbols *symbols, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The index, or UINT32_MAX when out of memory. */
uint32_t symbols_function_add(struct symbols *symbols, const struct symbol_function *function);
/* A perf map or symbol list of a file that grows; 0 or -errno. Regular files only. */
MUST_USE int symbols_read_all(int fd, size_t size_max, char **ret, size_t *ret_len);

/* "foo" of "foo.cold", "foo.part.0.constprop.1": what the compiler split or cloned it from. */
struct str symbol_base_name(struct str linkage);
/* Demangled, without the compiler's suffixes. */
struct str symbol_pretty(struct arena *arena, struct str linkage);

/* Opens a regular file inside `root` (symbolic links do not lead out of it), as
 * file_open_regular(); without `follow` a link as the last part of the path is refused. */
MUST_USE int root_open(const char *root, const char *path, bool follow);
/* Notes whose word it is what the sources are called: that of the file's owner. */
void symbols_named_by(struct symbols *symbols, int fd);
/* Fills symbols->debug and debug_path where the image has a separate file. */
void debug_file_find(struct symbols *symbols);
/* The supplementary file (dwz) that `file` names; -ENOENT if none. */
MUST_USE int debug_file_alternate(struct symbols *symbols, struct elf_file *file,
                                  struct elf_file *ret);
/* An open fd from a server, or -errno with a note. */
MUST_USE int debuginfod_fetch(struct symbols *symbols, const char *build_id);
