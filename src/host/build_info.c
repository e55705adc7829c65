/* From what the parsers found to the facts of struct build_info, each with its
 * evidence. Nothing here reads a file but through the build_*.c parsers. */
#include "host/build_internal.h"

#include <errno.h>
#include <math.h>

enum { SCRIPT_DEPTH_MAX = 4 };

/* Everything the parsers found about one binary. */
struct findings {
    struct arena *arena;
    struct build_elf *file;
    struct build_marks marks;
    struct build_go go;
    struct build_cfi cfi;
    struct build_debug_file debug_file;
    struct build_dwarf dwarf;
    bool has_dwarf;
    bool debug_symbols;   /* the separate file has a symbol table */
    unsigned dwarf_pct;   /* of the code that debug information describes */
    bool dwarf_thin;      /* so little of it that it says nothing of the whole */
    const char *no_dwarf; /* why nothing can be told from debug information */
};

static struct build_fact fact(enum build_tri answer, const char *because)
{
    return (struct build_fact){answer, because};
}

static unsigned percent(uint64_t part, uint64_t whole)
{
    return whole ? (unsigned)((double)part * 100 / (double)whole + 0.5) : 0;
}

static bool level_is_slow(const char *level)
{
    return strcmp(level, "-O0") == 0 || strcmp(level, "-Og") == 0 || strcmp(level, "-N") == 0;
}

/* A tally as "-O2 (mixed: -O0 in 12% of the code)"; under 1% is noise. */
static const char *levels_text(struct arena *arena, const struct build_tally *levels)
{
    const char *text = levels->rows[0].name;
    const char *others = "";
    for (size_t i = 1; i < levels->len; i++) {
        unsigned share = percent(levels->rows[i].bytes, levels->bytes);
        if (share > 0)
            others = arena_printf(arena, "%s%s%s in %u%% of the code", others, *others ? ", " : "",
                                  *levels->rows[i].name ? levels->rows[i].name : "not recorded",
                                  share);
    }
    return *others ? arena_printf(arena, "%s (mixed: %s)", text, others) : text;
}

static void optimization_recorded(const struct findings *found, struct build_info *info)
{
    const struct build_tally *levels = &found->dwarf.levels;
    uint64_t slow = 0;
    for (size_t i = 0; i < levels->len; i++)
        slow += level_is_slow(levels->rows[i].name) ? levels->rows[i].bytes : 0;
    info->optimization = levels_text(found->arena, levels);
    info->optimized = fact(
        slow * 2 > levels->bytes ? BUILD_NO : BUILD_YES,
        arena_printf(found->arena, "the switches recorded in DW_AT_producer of %u compile unit%s%s",
                     found->dwarf.flags_units, found->dwarf.flags_units == 1 ? "" : "s",
                     slow > 0 && slow != levels->bytes ? ", weighted by code size" : ""));
}

/* clang and rustc record no level; what they did to the variables shows it. */
static void optimization_evidence(const struct findings *found, struct build_info *info)
{
    const struct build_dwarf *dwarf = &found->dwarf;
    struct arena *arena = found->arena;
    const char *who = dwarf->compilers.len > 0 ? dwarf->compilers.rows[0].name : "the compiler";
    uint64_t variables = dwarf->variables_fixed + dwarf->variables_moving;
    /* A few moving variables are found in unoptimized code, too: newer LLVM describes the
     * time before a slot is filled. */
    if ((variables > 0 && dwarf->variables_moving * 4 >= variables) || dwarf->calls_described > 0 ||
        (variables == 0 && dwarf->inlined > 0)) {
        info->optimization = "optimized, level not recorded";
        info->optimized = fact(
            BUILD_YES,
            arena_printf(arena,
                         "%s records no level; %llu of %llu variables are kept in registers, %llu "
                         "calls are inlined, which -O0 does not do",
                         who, (unsigned long long)dwarf->variables_moving,
                         (unsigned long long)variables, (unsigned long long)dwarf->inlined));
        return;
    }
    if (dwarf->variables_fixed > 0) {
        info->optimization = "not optimized, level not recorded";
        info->optimized = fact(
            BUILD_NO, arena_printf(arena,
                                   "%s records no level; %llu of %llu variables looked at keep "
                                   "one stack slot all their life, as at -O0",
                                   who, (unsigned long long)dwarf->variables_fixed,
                                   (unsigned long long)variables));
        return;
    }
    info->optimization_na = arena_printf(
        arena, "%s records no level, and the debug information shows no variables or inlined calls",
        who);
    info->optimized = fact(BUILD_UNKNOWN, info->optimization_na);
}

/* Go optimizes unless it is told not to. False when nothing says how it was built. */
static bool optimization_go(const struct findings *found, struct build_info *info)
{
    struct str flags = str_from(build_go_setting(found->arena, &found->go, "-gcflags"));
    const struct build_tally *levels = &found->dwarf.levels;
    bool recorded = strstr(found->go.settings, "build\t") != NULL;
    bool slow = levels->len > 0 && strcmp(levels->rows[0].name, "-N") == 0;
    struct str rest = flags;
    struct str word;
    bool no_inline = false;
    while ((word = str_word(&rest)).len > 0) { /* "all=-N -l" */
        slow = slow || str_is(word, "-N") || str_ends(word, "=-N");
        no_inline = no_inline || str_is(word, "-l") || str_ends(word, "=-l");
    }
    if (!recorded && levels->len == 0)
        return false;
    const char *because = recorded ? "the build settings in .go.buildinfo"
                                   : "the compile units, which would record -N";
    info->optimization = slow        ? "not optimized (-gcflags=-N)"
                         : no_inline ? "optimized without inlining (-gcflags=-l)"
                                     : "optimized (Go's default)";
    info->optimized = fact(slow ? BUILD_NO : BUILD_YES, because);
    return true;
}

/* -frecord-gcc-switches and -frecord-command-line, which outlive a strip -g. */
static bool optimization_section(const struct findings *found, struct build_info *info)
{
    struct str rest = build_elf_bytes(found->file, ".GCC.command.line");
    struct build_tally levels = {0};
    for (unsigned i = 0; rest.len > 0 && i < BUILD_UNITS_MAX; i++) {
        struct str line = str_cut(&rest, '\0');
        if (str_trim(line).len == 0)
            continue;
        const char *level = build_flags_level(found->arena, line);
        build_tally_add(&levels, level ? level : "-O0", 1);
    }
    if (levels.len == 0)
        return false;
    build_tally_sort(&levels);
    info->optimization = levels_text(found->arena, &levels);
    info->optimized = fact(level_is_slow(levels.rows[0].name) ? BUILD_NO : BUILD_YES,
                           "the command lines recorded in .GCC.command.line");
    return true;
}

static void optimization_fill(const struct findings *found, struct build_info *info)
{
    if (found->go.found && optimization_go(found, info))
        return;
    if (found->dwarf.own_units > 0 && !found->go.found && !found->dwarf_thin) {
        if (found->dwarf.levels.len > 0 && *found->dwarf.levels.rows[0].name)
            optimization_recorded(found, info);
        else if (!optimization_section(found, info))
            optimization_evidence(found, info);
        return;
    }
    if (optimization_section(found, info))
        return;
    const struct build_cfi *cfi = &found->cfi;
    bool frames_omitted = cfi->frames_read >= 8 && cfi->frames_kept * 2 < cfi->frames_read;
    info->optimization_na = arena_printf(
        found->arena, "%s, where compilers record it%s", found->no_dwarf,
        frames_omitted ? "; not -O0, since most functions leave the frame pointer out" : "");
    info->optimized = fact(BUILD_UNKNOWN, info->optimization_na);
}

static bool found_rust(const struct findings *found)
{
    return found->dwarf.rust_runtime ||
           (found->marks.language && strcmp(found->marks.language, "Rust") == 0);
}

static struct build_fact lto_fact(const struct findings *found)
{
    const struct build_dwarf *dwarf = &found->dwarf;
    if (dwarf->lto_units > 0 && !found->dwarf_thin)
        return fact(BUILD_YES, "-flto in DW_AT_producer, or units made at link time");
    /* Rust's own library comes so: its symbols say nothing of the program. */
    if (found->marks.thin_lto && !found_rust(found))
        return fact(BUILD_YES, "symbols that ThinLTO renamed (….llvm.NUMBER)");
    if (found->go.found)
        return fact(BUILD_NO, "Go has no link-time optimization");
    if (dwarf->own_units == 0 || found->dwarf_thin)
        return fact(BUILD_UNKNOWN,
                    arena_printf(found->arena, "%s, where compilers record it", found->no_dwarf));
    if (dwarf->llvm_shared && !dwarf->rewritten)
        return fact(BUILD_YES, "several compile units of LLVM came out of one module");
    if (dwarf->llvm_units > 0)
        return fact(BUILD_UNKNOWN, "clang and rustc do not record it, and nothing shows it");
    if (dwarf->flags_units > 0)
        return fact(BUILD_NO, "no -flto among the switches in DW_AT_producer");
    return fact(BUILD_UNKNOWN, "the compiler recorded no switches");
}

static void frame_pointers_fill(const struct findings *found, struct build_info *info)
{
    const struct build_cfi *cfi = &found->cfi;
    info->frame_pointer_share = NAN;
    if (found->go.found && build_elf_is_known_machine(found->file)) {
        info->frame_pointers = fact(BUILD_YES, "Go's compiler keeps them on this architecture");
        return;
    }
    if (cfi->frames_read == 0) {
        bool asked = found->dwarf.own_units > 0 &&
                     found->dwarf.keep_fp_units == found->dwarf.own_units;
        info->frame_pointers = asked ? fact(BUILD_YES, "-fno-omit-frame-pointer in DW_AT_producer")
                                     : fact(BUILD_UNKNOWN, cfi->na ? cfi->na
                                                           : cfi->table
                                                               ? "no function in the unwind tables "
                                                                 "builds a frame"
                                                               : "there are no unwind tables to "
                                                                 "read it from");
        return;
    }
    info->frame_pointer_share = (double)cfi->frames_kept / (double)cfi->frames_read;
    const char *sampled = cfi->functions > BUILD_FDES_READ_MAX
                              ? arena_printf(found->arena, " (a sample of %zu)", cfi->functions)
                              : "";
    info->frame_pointers = fact(
        info->frame_pointer_share >= 0.9 ? BUILD_YES : BUILD_NO,
        arena_printf(found->arena, "%zu of %zu functions with a frame%s keep it, by %s",
                     cfi->frames_kept, cfi->frames_read, sampled, cfi->table));
}

static struct build_fact unwind_fact(const struct findings *found)
{
    enum { START_UP_BYTES = 0x100 }; /* crt files, which have no rows */
    const struct build_cfi *cfi = &found->cfi;
    if (cfi->na)
        return fact(BUILD_UNKNOWN, cfi->na);
    if (!cfi->table)
        return fact(BUILD_NO, found->go.found
                                  ? "neither .eh_frame nor .debug_frame; Go's own table serves Go"
                                  : "neither .eh_frame nor .debug_frame has a row");
    const char *because = arena_printf(found->arena,
                                       "%s has rows for %zu functions, %.0f%% of the code",
                                       cfi->table, cfi->functions, cfi->code_covered * 100);
    bool covered = cfi->code_covered >= 0.8 || cfi->uncovered_bytes <= START_UP_BYTES;
    return fact(covered ? BUILD_YES : BUILD_NO, because);
}

static void symbols_fill(const struct findings *found, struct build_info *info)
{
    const struct build_marks *marks = &found->marks;
    struct arena *arena = found->arena;
    if (found->file->section_count == 0) {
        info->symbols = fact(BUILD_NO, "the file has no section headers");
        info->stripped = fact(BUILD_YES, "the file has no section headers");
        return;
    }
    info->stripped = marks->has_symtab ? fact(BUILD_NO, ".symtab is there")
                                       : fact(BUILD_YES, "there is no .symtab");
    if (marks->has_symtab && marks->functions > 0)
        info->symbols = fact(BUILD_YES,
                             arena_printf(arena, ".symtab names %zu functions", marks->functions));
    else if (found->debug_symbols)
        info->symbols = fact(BUILD_YES, arena_printf(arena, "in '%s'", found->debug_file.path));
    else if (marks->has_mini)
        info->symbols = fact(BUILD_YES, ".gnu_debugdata (mini debug information)");
    else
        info->symbols = fact(BUILD_NO,
                             arena_printf(arena, "only .dynsym, with %zu exported functions",
                                          marks->dynamic_functions));
}

static struct build_fact debug_info_fact(const struct findings *found)
{
    const struct build_dwarf *dwarf = &found->dwarf;
    struct arena *arena = found->arena;
    if (!found->has_dwarf)
        return fact(BUILD_NO, arena_printf(arena, "no .debug_info in the binary; %s",
                                           found->debug_file.because));
    if (dwarf->damaged && dwarf->own_units == 0)
        return fact(BUILD_NO, dwarf->damaged);
    if (dwarf->units == 0 && dwarf->partial)
        return fact(BUILD_YES, dwarf->partial);
    if (dwarf->own_units == 0 && dwarf->dwo_missing > 0)
        return fact(BUILD_NO,
                    arena_printf(arena,
                                 "it was split off to .dwo files, and %u of %u are missing ('%s')",
                                 dwarf->dwo_missing, dwarf->split_units, dwarf->dwo_missing_name));
    if (dwarf->own_units == 0)
        return fact(BUILD_NO, dwarf->runtime_units > 0
                                  ? "only prebuilt libraries carry debug information"
                                  : "only assembler files carry debug information");
    if (found->dwarf_thin)
        return fact(BUILD_NO, found->no_dwarf);
    if (dwarf->dwo_missing > 0)
        return fact(BUILD_YES,
                    arena_printf(arena, "%u of %u .dwo files are missing ('%s')",
                                 dwarf->dwo_missing, dwarf->split_units, dwarf->dwo_missing_name));
    if (dwarf->lines_only)
        return fact(BUILD_YES, "functions and lines only (-g1), no variables");
    return fact(BUILD_YES,
                arena_printf(arena, "%u compile unit%s with functions, lines and variables",
                             dwarf->own_units, dwarf->own_units == 1 ? "" : "s"));
}

static void debug_info_fill(const struct findings *found, struct build_info *info)
{
    const struct build_dwarf *dwarf = &found->dwarf;
    info->debug_info = debug_info_fact(found);
    if (info->debug_info.answer == BUILD_YES)
        info->debug_info_where = found->debug_file.path   ? found->debug_file.path
                                 : dwarf->split_units > 0 ? "in .dwo files"
                                                          : "in the binary";
    if (dwarf->versions.len > 0)
        info->dwarf_version = (unsigned)(dwarf->versions.rows[0].name[0] - '0');
    bool linked = found->debug_file.path || found->debug_file.linked;
    if (dwarf->split_units > 0)
        info->split_debug = fact(BUILD_YES, arena_printf(found->arena,
                                                         "%u skeleton units, %u .dwo files missing",
                                                         dwarf->split_units, dwarf->dwo_missing));
    else if (linked)
        info->split_debug = fact(BUILD_YES, found->debug_file.because);
    else
        info->split_debug = fact(BUILD_NO, found->has_dwarf ? "it is in the binary"
                                                            : found->debug_file.because);
}

static const char *tally_names(struct arena *arena, const struct build_tally *tally)
{
    const char *text = "";
    for (size_t i = 0; i < tally->len; i++)
        text = arena_printf(arena, "%s%s%s", text, *text ? ", " : "", tally->rows[i].name);
    return text;
}

/* The distinct texts of .comment; gcc's last, since its start-up files sign everything. */
static const char *comment_compilers(const struct findings *found)
{
    struct build_tally names = {0};
    for (unsigned pass = 0; pass < 2; pass++) {
        struct str rest = build_elf_bytes(found->file, ".comment");
        for (unsigned i = 0; rest.len > 0 && i < 4096; i++) {
            struct str line = str_trim(str_cut(&rest, '\0'));
            bool gcc = str_starts(line, "GCC:");
            if (line.len > 0 && line.len < 200 && gcc == (pass == 1) &&
                !str_starts(line, "Linker:"))
                build_tally_add(&names, arena_dup_len(found->arena, line.data, line.len), 1);
        }
    }
    return tally_names(found->arena, &names);
}

static void origin_fill(const struct findings *found, struct build_info *info)
{
    const struct build_dwarf *dwarf = &found->dwarf;
    if (found->go.found)
        info->language = "Go";
    else if (dwarf->languages.len > 0 && !found->dwarf_thin)
        info->language = tally_names(found->arena, &dwarf->languages);
    else if (found->marks.language)
        info->language = found->marks.language;
    else
        info->language_na = arena_printf(
            found->arena, "%s, and no mark of C++, Rust, Go or another language is there",
            found->no_dwarf);

    const char *comment = "";
    if (found->go.found && *found->go.version)
        info->compiler = found->go.version;
    else if (dwarf->compilers.len > 0 && !found->dwarf_thin)
        info->compiler = tally_names(found->arena, &dwarf->compilers);
    else if (*(comment = comment_compilers(found)) &&
             (!dwarf->rust_runtime || strstr(comment, "rustc")))
        info->compiler = comment;
    else if (dwarf->rust_runtime) /* older ones leave no mark in .comment, the linker's gcc does */
        info->compiler = arena_printf(found->arena, "%s (of the standard library inside)",
                                      dwarf->rust_runtime);
    else
        info->compiler_na = arena_printf(found->arena, "%s, and there is no .comment",
                                         found->no_dwarf);
}

static void debug_file_read(struct findings *found)
{
    AUTO(build_elf_close) struct build_elf debug = {.fd = -1};
    GElf_Shdr header;
    if (!found->debug_file.path || build_elf_open(found->arena, found->debug_file.path,
                                                  found->file->deadline_ns, &debug, NULL) < 0)
        return;
    found->debug_symbols = build_elf_section(&debug, ".symtab", &header) != NULL;
    found->has_dwarf = build_dwarf_read(&debug, &found->dwarf);
    found->file->late |= debug.late;
}

/* A library that was linked in with its debug information must not speak for a
 * program without. A static program is the other way round: its own part is small. */
static void thin_judge(struct findings *found)
{
    GElf_Shdr text;
    bool is_static;
    (void)build_elf_kind(found->file, &is_static);
    if (!found->has_dwarf || !build_elf_section(found->file, ".text", &text))
        return;
    found->dwarf_pct = percent(found->dwarf.code_bytes, text.sh_size);
    found->dwarf_thin = !is_static && found->dwarf_pct < 10 && text.sh_size > 65536 &&
                        found->dwarf.own_units > 0 && found->dwarf.dwo_missing == 0 &&
                        !found->dwarf.partial;
}

static void findings_collect(struct findings *found)
{
    struct build_elf *file = found->file;
    build_go_read(file, &found->go);
    build_marks_read(file, &found->marks);
    build_cfi_read(file, &found->cfi);
    found->debug_file.because = "not looked for";
    if (file->header.e_type == ET_REL) {
        found->no_dwarf = "an object file that is not linked yet";
        return;
    }
    found->has_dwarf = build_dwarf_read(file, &found->dwarf);
    if (!found->has_dwarf) {
        build_debug_find(file, "/usr/lib/debug", &found->debug_file);
        debug_file_read(found);
    }
    thin_judge(found);
    const struct build_dwarf *dwarf = &found->dwarf;
    found->no_dwarf = found->dwarf_thin
                          ? arena_printf(found->arena,
                                         "debug information describes only %u%% of the code",
                                         found->dwarf_pct)
                      : dwarf->damaged ? dwarf->damaged
                      : dwarf->partial ? dwarf->partial
                      : dwarf->dwo_missing > 0
                          ? "the .dwo files with the debug information are missing"
                      : found->has_dwarf ? "no debug information of the program's own code"
                                         : "no debug information";
}

static const char *sampled_text(const struct findings *found)
{
    if (found->dwarf.partial)
        return found->dwarf.partial;
    return found->file->late
               ? arena_printf(found->arena, "reading stopped after %d ms", BUILD_TIME_MS_MAX)
               : "";
}

static void info_fill(struct findings *found, struct build_info *info)
{
    info->path = found->file->path;
    info->machine = build_elf_machine(found->file);
    info->kind = build_elf_kind(found->file, &info->is_static);
    info->build_id = build_elf_build_id(found->file);
    info->sanitizers = found->marks.sanitizers;
    info->instrumented = found->marks.instrumented;
    info->assertions = found->marks.asserts
                           ? fact(BUILD_YES, "it calls the function of a failed assert()")
                       : info->is_static
                           ? fact(BUILD_UNKNOWN, "a static binary always holds that function")
                           : fact(BUILD_NO, "no call of a failed assert()");
    origin_fill(found, info);
    optimization_fill(found, info);
    info->lto = lto_fact(found);
    frame_pointers_fill(found, info);
    info->unwind_tables = unwind_fact(found);
    symbols_fill(found, info);
    debug_info_fill(found, info);
    info->sampled = sampled_text(found);
}

/* Follows #! lines; *ret_path is the binary at their end. */
static int script_follow(struct arena *arena, const char *path, const char **ret_path,
                         const char **ret_script, struct why *why)
{
    const char *at = path;
    for (unsigned depth = 0; depth < SCRIPT_DEPTH_MAX; depth++) {
        const char *interpreter;
        int r = build_script_read(arena, at, &interpreter, why);
        if (r < 0) {
            if (depth > 0 && r == -ENOENT && why)
                why_set_remedy(why, "install the interpreter that '%s' names", path);
            return r;
        }
        if (!interpreter) {
            *ret_path = at;
            *ret_script = depth > 0 ? path : NULL;
            return 0;
        }
        at = interpreter;
    }
    return why_set(why, WHY_USAGE, ELOOP, "name the interpreter's program in the first line",
                   "'%s' is a script of a script, more than %d deep", path, SCRIPT_DEPTH_MAX);
}

int build_info_read(struct arena *arena, const char *path, struct build_info *ret, struct why *why)
{
    AUTO(build_elf_close) struct build_elf file = {.fd = -1};
    struct build_info info = {0};
    const char *binary = path;
    uint64_t deadline_ns = clock_mono_ns() + BUILD_TIME_MS_MAX * NS_PER_MS;
    int r = script_follow(arena, arena_dup(arena, path), &binary, &info.script, why);
    if (r < 0)
        return r;
    r = build_elf_open(arena, binary, deadline_ns, &file, why);
    if (r < 0)
        return r;
    struct findings found = {.arena = arena, .file = &file};
    findings_collect(&found);
    info_fill(&found, &info);
    if (arena_failed(arena))
        return why_nomem(why);
    *ret = info;
    return 0;
}

static void put_fact(struct value *map, const char *key, const char *title, const char *because_key,
                     const struct build_fact *fact_in)
{
    struct value value = fact_in->answer == BUILD_UNKNOWN
                             ? value_na(fact_in->because)
                             : value_bool(fact_in->answer == BUILD_YES);
    value_put(map, key, title, value);
    value_put_machine(map, because_key, value_text(fact_in->because));
}

static struct value text_or_na(const char *text, const char *reason)
{
    return text ? value_text(text) : value_na(reason);
}

struct value build_info_value(struct arena *arena, const struct build_info *info)
{
    struct value map = value_map(arena);
    value_put(&map, "path", NULL, value_text(info->path));
    value_put(&map, "script", NULL, text_or_na(info->script, "a binary, not a script"));
    value_put(&map, "machine", NULL, value_text(info->machine));
    value_put(&map, "kind", NULL, value_text(info->kind));
    value_put(&map, "static", NULL, value_bool(info->is_static));
    value_put(&map, "build_id", "build-id",
              text_or_na(info->build_id, "it was linked without --build-id"));
    value_put(&map, "language", NULL, text_or_na(info->language, info->language_na));
    value_put(&map, "compiler", NULL, text_or_na(info->compiler, info->compiler_na));
    value_put(&map, "optimization", NULL, text_or_na(info->optimization, info->optimization_na));
    put_fact(&map, "optimized", NULL, "optimized_because", &info->optimized);
    put_fact(&map, "lto", "link-time optimization", "lto_because", &info->lto);
    put_fact(&map, "frame_pointers", "frame pointers", "frame_pointers_because",
             &info->frame_pointers);
    value_put(&map, "frame_pointer_pct", "functions with frame pointer",
              isnan(info->frame_pointer_share)
                  ? value_na(info->frame_pointers.because)
                  : value_real(info->frame_pointer_share * 100, UNIT_PERCENT));
    put_fact(&map, "unwind_tables", "unwind tables", "unwind_tables_because", &info->unwind_tables);
    put_fact(&map, "symbols", NULL, "symbols_because", &info->symbols);
    put_fact(&map, "debug_info", "debug information", "debug_info_because", &info->debug_info);
    value_put(&map, "debug_info_where", "debug information is",
              text_or_na(info->debug_info_where, info->debug_info.because));
    value_put(&map, "dwarf_version", "DWARF version",
              info->dwarf_version ? value_uint(info->dwarf_version, UNIT_NONE)
                                  : value_na(info->debug_info.because));
    put_fact(&map, "split_debug", "debug information split off", "split_debug_because",
             &info->split_debug);
    put_fact(&map, "stripped", NULL, "stripped_because", &info->stripped);
    value_put(&map, "sanitizers", NULL, value_text(*info->sanitizers ? info->sanitizers : "none"));
    value_put(&map, "instrumented", NULL,
              value_text(*info->instrumented ? info->instrumented : "no"));
    put_fact(&map, "assertions", NULL, "assertions_because", &info->assertions);
    value_put_machine(&map, "sampled", value_text(info->sampled));
    return map;
}
