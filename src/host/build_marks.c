/* Symbols, needed libraries and strings that give a build away: sanitizers,
 * instrumentation, and the language where no debug information names it.
 * A new mark is one row. */
#include "host/build_internal.h"

#include <ctype.h>

enum mark_group { MARK_SANITIZER, MARK_INSTRUMENTED, MARK_LANGUAGE, MARK_ASSERT };

enum mark_where {
    MARK_ANY,       /* in the file or asked for by it */
    MARK_REFERENCE, /* asked for, or part of a program that has no loader to ask:
                     * the library that offers it is not marked by that */
    MARK_UNDEFINED, /* asked for only: a static library brings it along unused */
};

struct mark {
    enum mark_group group;
    enum mark_where where;
    const char *symbol; /* a trailing '*' matches any end */
    const char *name;
};

static const struct mark marks[] = {
    {MARK_SANITIZER, MARK_ANY, "__asan_init", "address"},
    {MARK_SANITIZER, MARK_ANY, "__hwasan_init", "hwaddress"},
    {MARK_SANITIZER, MARK_ANY, "__tsan_init", "thread"},
    {MARK_SANITIZER, MARK_ANY, "__msan_init", "memory"},
    {MARK_SANITIZER, MARK_ANY, "__lsan_init", "leak"},
    {MARK_SANITIZER, MARK_ANY, "__ubsan_handle_*", "undefined"},
    {MARK_INSTRUMENTED, MARK_ANY, "__gcov_init", "gcov"},
    {MARK_INSTRUMENTED, MARK_ANY, "__gcov_merge_*", "gcov"},
    {MARK_INSTRUMENTED, MARK_ANY, "llvm_gcov_init", "gcov"},
    {MARK_INSTRUMENTED, MARK_ANY, "__llvm_profile_runtime", "llvm profile"},
    {MARK_INSTRUMENTED, MARK_ANY, "__llvm_profile_instrument_*", "llvm profile"},
    {MARK_INSTRUMENTED, MARK_REFERENCE, "mcount", "gprof (-pg)"},
    {MARK_INSTRUMENTED, MARK_REFERENCE, "_mcount", "gprof (-pg)"},
    {MARK_INSTRUMENTED, MARK_REFERENCE, "__monstartup", "gprof (-pg)"},
    {MARK_INSTRUMENTED, MARK_UNDEFINED, "__fentry__", "gprof (-pg -mfentry)"},
    {MARK_INSTRUMENTED, MARK_UNDEFINED, "__cyg_profile_func_enter", "-finstrument-functions"},
    {MARK_INSTRUMENTED, MARK_ANY, "__xray_init", "XRay"},
    {MARK_LANGUAGE, MARK_ANY, "rust_eh_personality", "Rust"},
    {MARK_LANGUAGE, MARK_ANY, "__rust_alloc", "Rust"},
    {MARK_LANGUAGE, MARK_ANY, "caml_main", "OCaml"},
    {MARK_LANGUAGE, MARK_ANY, "hs_main", "Haskell"},
    {MARK_LANGUAGE, MARK_ANY, "_d_run_main", "D"},
    {MARK_LANGUAGE, MARK_ANY, "_gfortran_set_args", "Fortran"},
    {MARK_LANGUAGE, MARK_ANY, "__gxx_personality_v0", "C++"},
    {MARK_LANGUAGE, MARK_ANY, "_ZNSt*", "C++"},
    {MARK_ASSERT, MARK_UNDEFINED, "__assert_fail", ""},
    {MARK_ASSERT, MARK_UNDEFINED, "__assert_perror_fail", ""},
    {MARK_ASSERT, MARK_UNDEFINED, "__assert", ""},
    {MARK_ASSERT, MARK_UNDEFINED, "_ZSt21__glibcxx_assert_fail*", ""},
};

struct needed_mark {
    enum mark_group group;
    const char *library; /* how its name starts */
    const char *name;
};

static const struct needed_mark needed_marks[] = {
    {MARK_SANITIZER, "libasan.so", "address"},
    {MARK_SANITIZER, "libclang_rt.asan", "address"},
    {MARK_SANITIZER, "libhwasan.so", "hwaddress"},
    {MARK_SANITIZER, "libclang_rt.hwasan", "hwaddress"},
    {MARK_SANITIZER, "libtsan.so", "thread"},
    {MARK_SANITIZER, "libclang_rt.tsan", "thread"},
    {MARK_SANITIZER, "libclang_rt.msan", "memory"},
    {MARK_SANITIZER, "liblsan.so", "leak"},
    {MARK_SANITIZER, "libubsan.so", "undefined"},
    {MARK_SANITIZER, "libclang_rt.ubsan", "undefined"},
    {MARK_LANGUAGE, "libstd-", "Rust"},
    {MARK_LANGUAGE, "libgfortran.so", "Fortran"},
    {MARK_LANGUAGE, "libgnat", "Ada"},
    {MARK_LANGUAGE, "libswiftCore", "Swift"},
    {MARK_LANGUAGE, "libphobos", "D"},
    {MARK_LANGUAGE, "libgo.so", "Go"},
    {MARK_LANGUAGE, "libstdc++.so", "C++"},
    {MARK_LANGUAGE, "libc++.so", "C++"},
};

enum { UBSAN_HANDLERS_MAX = 128, SCAN_BYTES_MAX = 64 << 20 };

struct mark_state {
    struct build_elf *file;
    struct build_marks *ret;
    bool library; /* a shared library, which may offer what it does not use */
    bool runtime; /* another sanitizer's run-time is part of the file */
    bool ubsan_undefined;
    uint64_t ubsan[UBSAN_HANDLERS_MAX];
    size_t ubsan_count;
};

/* Adds a name to a list joined by ", ", once. */
static void list_add(struct arena *arena, const char **list, const char *name)
{
    struct str rest = str_from(*list);
    while (rest.len > 0)
        if (str_is(str_trim(str_cut(&rest, ',')), name))
            return;
    *list = *list && **list ? arena_printf(arena, "%s, %s", *list, name) : name;
}

static void mark_found(struct mark_state *state, enum mark_group group, const char *name,
                       const char *because)
{
    struct arena *arena = state->file->arena;
    switch (group) {
    case MARK_SANITIZER:
        list_add(arena, &state->ret->sanitizers, name);
        break;
    case MARK_INSTRUMENTED:
        list_add(arena, &state->ret->instrumented, name);
        break;
    case MARK_ASSERT:
        state->ret->asserts = true;
        break;
    case MARK_LANGUAGE:
        if (!state->ret->language) {
            state->ret->language = name;
            state->ret->language_because = arena_dup(arena, because);
        }
        break;
    }
}

static bool mark_matches(const struct mark *mark, const char *name, size_t len)
{
    size_t want = strlen(mark->symbol);
    if (mark->symbol[want - 1] == '*')
        return len >= want - 1 && memcmp(name, mark->symbol, want - 1) == 0;
    return len == want && memcmp(name, mark->symbol, want) == 0;
}

static void symbol_look(struct mark_state *state, const GElf_Sym *symbol, const char *name)
{
    size_t len = strcspn(name, "@"); /* newer linkers append the version */
    bool undefined = symbol->st_shndx == SHN_UNDEF;
    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        const struct mark *mark = &marks[i];
        if (!mark_matches(mark, name, len) || (mark->where == MARK_UNDEFINED && !undefined) ||
            (mark->where == MARK_REFERENCE && !undefined && state->library))
            continue;
        if (mark->group == MARK_SANITIZER && strcmp(mark->name, "undefined") == 0) {
            /* Other sanitizers bring these handlers along, so they are judged at the end;
             * the run-times themselves call those for control-flow checks. */
            if (strstr(name, "_cfi_"))
                continue;
            state->ubsan_undefined |= undefined;
            if (!undefined && state->ubsan_count < UBSAN_HANDLERS_MAX)
                state->ubsan[state->ubsan_count++] = symbol->st_value;
            continue;
        }
        if (mark->group == MARK_SANITIZER && !undefined)
            state->runtime = true;
        mark_found(state, mark->group, mark->name,
                   arena_printf(state->file->arena, "the symbol %.*s", (int)len, name));
    }
    if (name[0] == '_' && name[1] == 'R' && isdigit((unsigned char)name[2]) == 0 &&
        strncmp(name, "_RN", 3) == 0)
        mark_found(state, MARK_LANGUAGE, "Rust", "symbols mangled the Rust way");
}

static bool thin_lto_name(const char *name)
{
    const char *suffix = strstr(name, ".llvm.");
    return suffix && isdigit((unsigned char)suffix[6]);
}

static size_t symbols_scan(struct mark_state *state, const char *section)
{
    GElf_Shdr header;
    Elf_Scn *scn = build_elf_section(state->file, section, &header);
    Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
    size_t functions = 0;
    if (!data || header.sh_entsize == 0)
        return 0;
    size_t count = MIN(header.sh_size / header.sh_entsize, (size_t)BUILD_SYMBOLS_MAX);
    for (size_t i = 1; i < count; i++) {
        GElf_Sym symbol;
        if (i % 4096 == 0 && build_elf_late(state->file))
            break;
        if (!gelf_getsym(data, (int)i, &symbol))
            break;
        unsigned type = GELF_ST_TYPE(symbol.st_info);
        functions += (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF;
        const char *name = elf_strptr(state->file->elf, header.sh_link, symbol.st_name);
        if (!name || !*name)
            continue;
        /* Every mark starts with one of these; most names do not. */
        if (name[0] == '_' || name[0] == 'm' || name[0] == 'l' || name[0] == 'r' ||
            name[0] == 'c' || name[0] == 'h')
            symbol_look(state, &symbol, name);
        state->ret->thin_lto = state->ret->thin_lto || thin_lto_name(name);
    }
    return functions;
}

static void needed_scan(struct mark_state *state)
{
    GElf_Shdr header;
    Elf_Scn *scn = build_elf_section(state->file, ".dynamic", &header);
    Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
    if (!data || header.sh_entsize == 0)
        return;
    size_t count = MIN(header.sh_size / header.sh_entsize, (size_t)65536);
    for (size_t i = 0; i < count; i++) {
        GElf_Dyn entry;
        if (!gelf_getdyn(data, (int)i, &entry) || entry.d_tag == DT_NULL)
            return;
        const char *name = entry.d_tag == DT_NEEDED
                               ? elf_strptr(state->file->elf, header.sh_link, entry.d_un.d_val)
                               : NULL;
        for (size_t k = 0; name && k < ARRAY_SIZE(needed_marks); k++)
            if (strncmp(name, needed_marks[k].library, strlen(needed_marks[k].library)) == 0)
                mark_found(state, needed_marks[k].group, needed_marks[k].name,
                           arena_printf(state->file->arena, "it needs %s", name));
    }
}

static bool is_handler(const struct mark_state *state, uint64_t address)
{
    for (size_t i = 0; i < state->ubsan_count; i++)
        if (state->ubsan[i] == address)
            return true;
    return false;
}

static uint32_t u32_at(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Is one of the handlers called anywhere? Byte by byte on x86_64: a chance match
 * of four bytes with a handler's distance is next to impossible. */
static bool handlers_called(struct mark_state *state)
{
    GElf_Shdr text;
    if (!build_elf_is_known_machine(state->file) || !build_elf_section(state->file, ".text", &text))
        return false;
    struct str bytes = build_elf_bytes(state->file, ".text");
    size_t len = MIN(bytes.len, (size_t)SCAN_BYTES_MAX);
    const unsigned char *data = (const unsigned char *)bytes.data;
    bool arm = state->file->header.e_machine == EM_AARCH64;
    for (size_t i = 0; i + 8 <= len; i += arm ? 4 : 1) {
        if (i % (1 << 20) == 0 && build_elf_late(state->file))
            return false;
        if (arm && u32_at(data + i) >> 26 == 0x25) {
            int64_t words = (int32_t)(u32_at(data + i) << 6) >> 6;
            if (is_handler(state, text.sh_addr + i + (uint64_t)(words * 4)))
                return true;
        } else if (!arm && data[i] == 0xe8) {
            int32_t distance = (int32_t)u32_at(data + i + 1);
            if (is_handler(state, text.sh_addr + i + 5 + (uint64_t)(int64_t)distance))
                return true;
        }
    }
    return false;
}

/* A stripped program still holds the names of the files gcov writes to. */
static bool has_gcda_name(struct build_elf *file)
{
    struct str bytes = build_elf_bytes(file, ".rodata");
    const char *at = bytes.data;
    const char *end = bytes.data + MIN(bytes.len, (size_t)SCAN_BYTES_MAX);
    while (at < end && (at = memmem(at, (size_t)(end - at), ".gcda", 6))) {
        const char *start = at;
        while (start > bytes.data && start[-1] != '\0' && at - start < 4096)
            start--;
        if (*start == '/' && at - start > 2)
            return true;
        at++;
    }
    return false;
}

static void strings_scan(struct mark_state *state)
{
    struct build_elf *file = state->file;
    GElf_Shdr header;
    if (build_elf_section(file, "__llvm_prf_cnts", &header))
        mark_found(state, MARK_INSTRUMENTED, "llvm profile", "");
    if (build_elf_section(file, "xray_instr_map", &header))
        mark_found(state, MARK_INSTRUMENTED, "XRay", "");
    if (build_elf_section(file, "__sancov_guards", &header))
        mark_found(state, MARK_INSTRUMENTED, "coverage for fuzzing", "");
    if (!*state->ret->instrumented && has_gcda_name(file))
        mark_found(state, MARK_INSTRUMENTED, "gcov", "");
    if (state->ret->language && strcmp(state->ret->language, "C++") != 0)
        return;
    struct str comment = build_elf_bytes(file, ".comment");
    if (str_contains(comment, "rustc version")) {
        state->ret->language = "Rust";
        state->ret->language_because = "rustc's mark in .comment";
        return;
    }
    struct str rodata = build_elf_bytes(file, ".rodata");
    rodata.len = MIN(rodata.len, (size_t)SCAN_BYTES_MAX);
    if (!state->ret->language && memmem(rodata.data, rodata.len, "/library/core/src/", 18) &&
        memmem(rodata.data, rodata.len, "/rustc", 6)) {
        state->ret->language = "Rust";
        state->ret->language_because = "source paths of Rust's library among its strings";
    }
}

void build_marks_read(struct build_elf *file, struct build_marks *ret)
{
    *ret = (struct build_marks){.sanitizers = "", .instrumented = ""};
    bool is_static;
    struct mark_state state = {.file = file, .ret = ret};
    state.library = strcmp(build_elf_kind(file, &is_static), "shared library") == 0;
    GElf_Shdr header;
    ret->has_symtab = build_elf_section(file, ".symtab", &header) != NULL;
    ret->has_mini = build_elf_section(file, ".gnu_debugdata", &header) != NULL;
    needed_scan(&state);
    ret->dynamic_functions = symbols_scan(&state, ".dynsym");
    ret->functions = symbols_scan(&state, ".symtab");
    if (state.ubsan_undefined ||
        (state.ubsan_count > 0 && (!state.runtime || handlers_called(&state))))
        list_add(file->arena, &ret->sanitizers, "undefined");
    strings_scan(&state);
}
