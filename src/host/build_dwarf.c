/* What the compile units of a program say about how they were made.
 *
 * Shares are by bytes of code, over the program's own units only: start-up
 * files, assembler and a language's prebuilt library were built by others. */
#include "host/build_internal.h"

#include "base/map.h"

#include <dwarf.h>

enum {
    UNIT_RANGES_MAX = 65536,
    UNIT_DIES_MAX = 20000,
    DIES_MAX = 400000,
    DIE_DEPTH_MAX = 24,
};

void build_tally_add(struct build_tally *tally, const char *name, uint64_t bytes)
{
    tally->bytes += bytes;
    for (size_t i = 0; i < tally->len; i++)
        if (strcmp(tally->rows[i].name, name) == 0) {
            tally->rows[i].bytes += bytes;
            return;
        }
    if (tally->len < BUILD_TALLY_MAX) { /* beyond: counted in the sum, as "other" */
        tally->rows[tally->len].name = name;
        tally->rows[tally->len++].bytes = bytes;
    }
}

void build_tally_sort(struct build_tally *tally)
{
    for (size_t i = 1; i < tally->len; i++)
        for (size_t k = i; k > 0 && tally->rows[k].bytes > tally->rows[k - 1].bytes; k--) {
            __typeof__(tally->rows[0]) swap = tally->rows[k];
            tally->rows[k] = tally->rows[k - 1];
            tally->rows[k - 1] = swap;
        }
}

const char *build_flags_level(struct arena *arena, struct str flags)
{
    struct str word;
    struct str last = {NULL, 0};
    while ((word = str_word(&flags)).len > 0)
        if (str_starts(word, "-O") && word.len <= 6)
            last = word;
    if (!last.data)
        return NULL;
    return last.len == 2 ? "-O1" : arena_dup_len(arena, last.data, last.len);
}

bool build_flags_has(struct str flags, const char *prefix)
{
    struct str word;
    while ((word = str_word(&flags)).len > 0)
        if (str_starts(word, prefix))
            return true;
    return false;
}

static const char *language_name(int language)
{
    static const struct {
        int first;
        int last;
        const char *name;
    } languages[] = {
        {0x0001, 0x0002, "C"},
        {0x0003, 0x0003, "Ada"},
        {0x0004, 0x0004, "C++"},
        {0x0005, 0x0006, "COBOL"},
        {0x0007, 0x0008, "Fortran"},
        {0x0009, 0x0009, "Pascal"},
        {0x000a, 0x000a, "Modula-2"},
        {0x000b, 0x000b, "Java"},
        {0x000c, 0x000c, "C"},
        {0x000d, 0x000d, "Ada"},
        {0x000e, 0x000e, "Fortran"},
        {0x0010, 0x0010, "Objective-C"},
        {0x0011, 0x0011, "Objective-C++"},
        {0x0013, 0x0013, "D"},
        {0x0014, 0x0014, "Python"},
        {0x0015, 0x0015, "OpenCL"},
        {0x0016, 0x0016, "Go"},
        {0x0018, 0x0018, "Haskell"},
        {0x0019, 0x001a, "C++"},
        {0x001b, 0x001b, "OCaml"},
        {0x001c, 0x001c, "Rust"},
        {0x001d, 0x001d, "C"},
        {0x001e, 0x001e, "Swift"},
        {0x001f, 0x001f, "Julia"},
        {0x0021, 0x0021, "C++"},
        {0x0022, 0x0023, "Fortran"},
        {0x0027, 0x0027, "Zig"},
        {0x0028, 0x0028, "Crystal"},
        {0x002a, 0x002b, "C++"},
        {0x002c, 0x002c, "C"},
        {0x002d, 0x002d, "Fortran"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(languages); i++)
        if (language >= languages[i].first && language <= languages[i].last)
            return languages[i].name;
    return NULL;
}

/* The compiler's name without the switches behind it. */
static const char *compiler_name(struct arena *arena, const char *producer)
{
    const char *rustc = strstr(producer, "(rustc version ");
    if (rustc) {
        size_t len = strlen(rustc);
        return arena_dup_len(arena, rustc + 1, rustc[len - 1] == ')' ? len - 2 : len - 1);
    }
    size_t len = strlen(producer);
    static const char *const ends[] = {" -", " /", ";"};
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        const char *end = strstr(producer, ends[i]);
        if (end)
            len = MIN(len, (size_t)(end - producer));
    }
    return arena_dup_len(arena, producer, len);
}

static const char *attr_text(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attr;
    const char *text = dwarf_attr(die, name, &attr) ? dwarf_formstring(&attr) : NULL;
    return text ? text : "";
}

static uint64_t unit_bytes(Dwarf_Die *die)
{
    ptrdiff_t offset = 0;
    Dwarf_Addr base;
    Dwarf_Addr start;
    Dwarf_Addr end;
    uint64_t sum = 0;
    for (unsigned i = 0; i < UNIT_RANGES_MAX; i++) {
        offset = dwarf_ranges(die, offset, &base, &start, &end);
        if (offset <= 0)
            break;
        /* What the linker dropped stands at 0. */
        if (start != 0 && end > start)
            sum += end - start;
    }
    return sum;
}

struct compile_unit {
    Dwarf_Die die;      /* with the information: the split unit's where there is one */
    Dwarf_Die skeleton; /* with the addresses */
    const char *producer;
    const char *name;
    const char *folder;
    int language;
    uint64_t bytes;
    Dwarf_Off abbreviations;
    bool is_split;
    bool is_llvm;
};

struct dwarf_walk {
    struct build_elf *file;
    struct build_dwarf *ret;
    struct map_u64 abbreviations; /* offset → who uses it, see unit_module() */
    uint64_t dies;
    uint64_t typed; /* parameters and base types seen: more than line tables */
};

static bool unit_is_assembler(const struct compile_unit *unit)
{
    return unit->language == 0x8001 /* DW_LANG_Mips_Assembler, what everyone writes */ ||
           strncmp(unit->producer, "GNU AS", 6) == 0;
}

/* Prebuilt parts that come with the compiler or the C library. */
static bool unit_is_runtime(const struct compile_unit *unit)
{
    if (strstr(unit->producer, "rustc"))
        return strncmp(unit->folder, "/rustc/", 7) == 0 ||
               strncmp(unit->folder, "/rust/deps", 10) == 0 ||
               strncmp(unit->name, "/rustc/", 7) == 0 || strncmp(unit->name, "library/", 8) == 0 ||
               strstr(unit->folder, "/library/std") || strstr(unit->name, "/library/std/src") ||
               strstr(unit->name, "/library/core/src") ||
               strstr(unit->name, "/library/alloc/src") ||
               strstr(unit->name, "/compiler_builtins-") || strstr(unit->folder, "/build/rustc-") ||
               strstr(unit->folder, "/usr/src/rustc-");
    if (strncmp(unit->producer, "Go ", 3) == 0)
        return strcmp(unit->name, "runtime") == 0 || strncmp(unit->name, "runtime/", 8) == 0 ||
               strncmp(unit->name, "internal/", 9) == 0;
    return str_ends(str_from(unit->folder), "/csu") || strstr(unit->folder, "/glibc-") ||
           strstr(unit->folder, "/libgcc") || strstr(unit->folder, "/libstdc++-v3") ||
           strstr(unit->folder, "/compiler-rt");
}

/* Unoptimized code keeps each variable in its stack slot as long as it lives;
 * optimized code keeps it in registers, changes its place, or knows its value. */
static void evidence_variable(struct dwarf_walk *walk, Dwarf_Die *die)
{
    Dwarf_Attribute attr;
    Dwarf_Block block;
    if (!dwarf_attr(die, DW_AT_location, &attr))
        return;
    if (dwarf_formblock(&attr, &block) != 0) {
        walk->ret->variables_moving++; /* no expression: a location list */
        return;
    }
    uint8_t first = block.length > 0 ? block.data[0] : DW_OP_addr;
    if (first == DW_OP_fbreg || (first >= DW_OP_breg0 && first <= DW_OP_breg31))
        walk->ret->variables_fixed++;
    else if (first != DW_OP_addr && first != DW_OP_addrx && first != DW_OP_GNU_addr_index)
        walk->ret->variables_moving++;
}

static void evidence_die(struct dwarf_walk *walk, Dwarf_Die *die, bool is_llvm, bool in_function)
{
    switch (dwarf_tag(die)) {
    case DW_TAG_subprogram:
        walk->ret->functions++;
        /* gcc writes it for leaf functions at -O0, too. */
        if (is_llvm && (dwarf_hasattr(die, DW_AT_call_all_calls) ||
                        dwarf_hasattr(die, DW_AT_GNU_all_call_sites)))
            walk->ret->calls_described++;
        break;
    case DW_TAG_inlined_subroutine:
        walk->ret->inlined++;
        break;
    case DW_TAG_formal_parameter:
        walk->typed++;
        evidence_variable(walk, die);
        break;
    case DW_TAG_variable:
        if (in_function)
            evidence_variable(walk, die);
        break;
    case DW_TAG_base_type:
        walk->typed++;
        break;
    default:
        break;
    }
}

static void evidence_children(struct dwarf_walk *walk, Dwarf_Die *parent, bool is_llvm,
                              uint64_t dies_max, unsigned depth, bool in_function)
{
    Dwarf_Die child;
    if (depth >= DIE_DEPTH_MAX || dwarf_child(parent, &child) != 0)
        return;
    do {
        if (walk->dies++ >= dies_max || (walk->dies % 512 == 0 && build_elf_late(walk->file)))
            return;
        evidence_die(walk, &child, is_llvm, in_function);
        evidence_children(walk, &child, is_llvm, dies_max, depth + 1,
                          in_function || dwarf_tag(&child) == DW_TAG_subprogram);
    } while (dwarf_siblingof(&child, &child) == 0);
}

/* False when the unit says nothing that can be used. */
static bool unit_read(struct dwarf_walk *walk, Dwarf *dwarf, Dwarf_Off offset,
                      struct compile_unit *unit)
{
    uint8_t type = 0;
    Dwarf_Half version;
    Dwarf_Die split = {0};
    if (!dwarf_offdie(dwarf, offset, &unit->skeleton) ||
        dwarf_cu_info(unit->skeleton.cu, &version, &type, NULL, &split, NULL, NULL, NULL) != 0)
        return false;
    if (dwarf_tag(&unit->skeleton) == DW_TAG_partial_unit) {
        walk->ret->rewritten = true;
        return false;
    }
    if (type != DW_UT_compile && type != DW_UT_skeleton)
        return false;
    walk->ret->units++;
    unit->die = unit->skeleton;
    unit->is_split = type == DW_UT_skeleton;
    if (unit->is_split) {
        walk->ret->split_units++;
        if (!split.cu) {
            const char *name = attr_text(&unit->skeleton, DW_AT_dwo_name);
            if (!*name)
                name = attr_text(&unit->skeleton, DW_AT_GNU_dwo_name);
            if (walk->ret->dwo_missing++ == 0)
                walk->ret->dwo_missing_name = arena_dup(walk->file->arena, name);
            return false;
        }
        unit->die = split;
    }
    unit->producer = attr_text(&unit->die, DW_AT_producer);
    unit->name = attr_text(&unit->die, DW_AT_name);
    unit->folder = attr_text(unit->is_split ? &unit->skeleton : &unit->die, DW_AT_comp_dir);
    unit->language = dwarf_srclang(&unit->die);
    unit->is_llvm = strstr(unit->producer, "clang") || strstr(unit->producer, "LLVM");
    unit->bytes = MAX(unit_bytes(&unit->skeleton), 1u); /* data only: still a vote */
    build_tally_add(&walk->ret->versions,
                    version >= 5   ? "5"
                    : version == 4 ? "4"
                    : version == 3 ? "3"
                                   : "2",
                    unit->bytes);
    return true;
}

static void unit_flags(struct dwarf_walk *walk, const struct compile_unit *unit)
{
    struct build_dwarf *ret = walk->ret;
    struct str flags = str_from(unit->producer);
    bool go = strncmp(unit->producer, "Go ", 3) == 0;
    bool recorded = strstr(unit->producer, " -") || go;
    ret->flags_units += recorded;
    if (strncmp(unit->producer, "GNU GIMPLE", 10) == 0 || strcmp(unit->name, "<artificial>") == 0 ||
        build_flags_has(flags, "-flto") || build_flags_has(flags, "-fltrans"))
        ret->lto_units++;
    if (build_flags_has(flags, "-fno-omit-frame-pointer"))
        ret->keep_fp_units++;
    const char *level = recorded ? build_flags_level(walk->file->arena, flags) : NULL;
    if (go)
        level = build_flags_has(flags, "-N") ? "-N" : "default";
    else if (recorded && !level)
        level = "-O0"; /* the switches are there, and none of them is -O */
    build_tally_add(&ret->levels, level ? level : "", unit->bytes);
}

/* LLVM writes one abbreviation table a module: units that share one were merged into
 * it before code was made. A prebuilt library's own units may share, too, which says
 * nothing of the program; one of the program's must be among them. */
static void unit_module(struct dwarf_walk *walk, const struct compile_unit *unit, bool own)
{
    enum { OWN = 1, SHARED = 2 };
    bool fresh;
    if (!unit->is_llvm || unit->is_split)
        return;
    uint64_t *seen = map_u64_at(&walk->abbreviations, unit->abbreviations, &fresh);
    if (!seen)
        return;
    *seen |= (own ? OWN : 0) | (fresh ? 0 : SHARED);
    if (*seen == (OWN | SHARED))
        walk->ret->llvm_shared = true;
}

static void unit_count(struct dwarf_walk *walk, struct compile_unit *unit)
{
    struct build_dwarf *ret = walk->ret;
    struct arena *arena = walk->file->arena;
    ret->code_bytes += unit->bytes;
    if (unit_is_assembler(unit))
        return;
    bool runtime = unit_is_runtime(unit);
    unit_module(walk, unit, !runtime);
    if (runtime) {
        ret->runtime_units++;
        if (!ret->rust_runtime && strstr(unit->producer, "rustc"))
            ret->rust_runtime = compiler_name(arena, unit->producer);
        return;
    }
    ret->own_units++;
    ret->llvm_units += unit->is_llvm;
    const char *language = language_name(unit->language);
    if (language)
        build_tally_add(&ret->languages, language, unit->bytes);
    if (*unit->producer)
        build_tally_add(&ret->compilers, compiler_name(arena, unit->producer), unit->bytes);
    unit_flags(walk, unit);
    /* Where switches are recorded, a look at a few functions is enough. */
    bool recorded = strstr(unit->producer, " -") != NULL;
    if (walk->dies < DIES_MAX && !(recorded && walk->typed > 0))
        evidence_children(walk, &unit->die, unit->is_llvm,
                          MIN(walk->dies + UNIT_DIES_MAX, (uint64_t)DIES_MAX), 0, false);
}

static void units_walk(struct dwarf_walk *walk, Dwarf *dwarf)
{
    Dwarf_Off offset = 0;
    struct build_dwarf *ret = walk->ret;
    for (unsigned i = 0;; i++) {
        Dwarf_Off next;
        size_t header_size;
        struct compile_unit unit = {0};
        int r = dwarf_next_unit(dwarf, offset, &next, &header_size, NULL, &unit.abbreviations, NULL,
                                NULL, NULL, NULL);
        if (r > 0)
            return;
        if (r < 0 || next <= offset) {
            ret->damaged = arena_printf(walk->file->arena,
                                        "the debug information is damaged at offset %#llx of "
                                        ".debug_info",
                                        (unsigned long long)offset);
            return;
        }
        if (i >= BUILD_UNITS_MAX || build_elf_late(walk->file)) {
            ret->partial = arena_printf(walk->file->arena, "only the first %u compile units", i);
            return;
        }
        if (unit_read(walk, dwarf, offset + header_size, &unit))
            unit_count(walk, &unit);
        offset = next;
    }
}

bool build_dwarf_read(struct build_elf *file, struct build_dwarf *ret)
{
    GElf_Shdr header;
    *ret = (struct build_dwarf){0};
    if (!build_elf_section(file, ".debug_info", &header) &&
        !build_elf_section(file, ".zdebug_info", &header))
        return false;
    if (build_elf_unpacked_bytes(file, ".debug") > BUILD_UNPACKED_BYTES_MAX) {
        ret->partial = "the debug information is compressed and too large to unpack; run "
                       "'objcopy --decompress-debug-sections' on it";
        return true;
    }
    struct dwarf_walk walk = {.file = file, .ret = ret};
    Dwarf *dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    if (!dwarf) {
        ret->damaged = arena_printf(file->arena, "the debug information cannot be read: %s",
                                    dwarf_errmsg(-1));
        return true;
    }
    ret->rewritten = build_elf_bytes(file, ".gnu_debugaltlink").len > 0 ||
                     build_elf_bytes(file, ".note.bolt_info").len > 0;
    units_walk(&walk, dwarf);
    dwarf_end(dwarf);
    map_u64_deinit(&walk.abbreviations);
    ret->lines_only = ret->own_units > 0 && walk.typed == 0;
    build_tally_sort(&ret->levels);
    build_tally_sort(&ret->languages);
    build_tally_sort(&ret->compilers);
    build_tally_sort(&ret->versions);
    return true;
}
