/* Promises of host/build_info.h that need no compiler: the parsers on made-up
 * input. Real builds are judged in tests/readers/build_info.py. */
#include "unit.h"

#include "base/fd.h"
#include "host/build_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void the_checksum_is_the_debuglink_one(void **state)
{
    (void)state;
    assert_int_equal(build_crc32(0, "123456789", 9), 0xcbf43926u);
    assert_int_equal(build_crc32(0, "", 0), 0);
    /* In parts as well as whole. */
    uint32_t crc = build_crc32(0, "The quick brown fox", 19);
    crc = build_crc32(crc, " jumps over the lazy dog", 24);
    assert_int_equal(crc, 0x414fa339u);
}

static void the_last_level_wins(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    assert_string_equal(build_flags_level(&arena, STR("GNU C17 12.2.0 -O2 -g -Os")), "-Os");
    assert_string_equal(build_flags_level(&arena, STR("cc -O")), "-O1");
    assert_string_equal(build_flags_level(&arena, STR("cc -Ofast -g")), "-Ofast");
    assert_null(build_flags_level(&arena, STR("GNU C17 12.2.0 -g")));
    assert_null(build_flags_level(&arena, STR("")));
    assert_true(build_flags_has(STR("a -flto=auto b"), "-flto"));
    assert_false(build_flags_has(STR("a -fno-lto b"), "-flto"));
}

static void a_tally_is_sorted_and_bounded(void **state)
{
    (void)state;
    struct build_tally tally = {0};
    char names[40][8];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(names[i], sizeof(names[i]), "n%zu", i);
        build_tally_add(&tally, names[i], i + 1);
    }
    build_tally_add(&tally, "n3", 1000);
    build_tally_sort(&tally);
    assert_int_equal(tally.len, BUILD_TALLY_MAX);
    assert_string_equal(tally.rows[0].name, "n3");
    assert_int_equal(tally.rows[0].bytes, 1004);
    assert_int_equal(tally.bytes, 40 * 41 / 2 + 1000); /* what did not fit is in the sum */
}

static void go_settings_are_found_by_their_key(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct build_go go = {
        .settings = "path\tx\nbuild\t-compiler=gc\nbuild\t-gcflags=\"all=-N -l\"\n"};
    assert_string_equal(build_go_setting(&arena, &go, "-gcflags"), "all=-N -l");
    assert_string_equal(build_go_setting(&arena, &go, "-compiler"), "gc");
    assert_string_equal(build_go_setting(&arena, &go, "-ldflags"), "");
}

/* A made-up ELF file: .text, .eh_frame and whatever is named, no program headers. */
struct maker {
    unsigned char bytes[8192];
    size_t len;
    Elf64_Shdr sections[8];
    size_t section_count;
    char names[256];
    size_t names_len;
};

static void maker_section(struct maker *maker, const char *name, uint64_t address, const void *data,
                          size_t size)
{
    Elf64_Shdr *header = &maker->sections[maker->section_count++];
    *header = (Elf64_Shdr){
        .sh_name = (Elf64_Word)maker->names_len,
        .sh_type = SHT_PROGBITS,
        .sh_flags = address ? SHF_ALLOC : 0,
        .sh_addr = address,
        .sh_offset = maker->len,
        .sh_size = size,
        .sh_addralign = 1,
    };
    maker->names_len += (size_t)sprintf(maker->names + maker->names_len, "%s", name) + 1;
    if (data)
        memcpy(maker->bytes + maker->len, data, size);
    maker->len += size;
    maker->len = (maker->len + 7) & ~(size_t)7;
}

static void maker_begin(struct maker *maker)
{
    *maker = (struct maker){.len = sizeof(Elf64_Ehdr), .section_count = 1, .names_len = 1};
}

static void maker_end(struct maker *maker, unsigned machine, const char *path)
{
    maker_section(maker, ".shstrtab", 0, maker->names, sizeof(maker->names));
    maker->sections[maker->section_count - 1].sh_type = SHT_STRTAB;
    memcpy(maker->bytes + maker->sections[maker->section_count - 1].sh_offset, maker->names,
           sizeof(maker->names));
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = (Elf64_Half)machine,
        .e_version = EV_CURRENT,
        .e_shoff = maker->len,
        .e_ehsize = sizeof(header),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = (Elf64_Half)maker->section_count,
        .e_shstrndx = (Elf64_Half)(maker->section_count - 1),
    };
    memcpy(maker->bytes, &header, sizeof(header));
    memcpy(maker->bytes + maker->len, maker->sections, maker->section_count * sizeof(Elf64_Shdr));
    maker->len += maker->section_count * sizeof(Elf64_Shdr);
    assert_int_equal(file_write_atomic(path, maker->bytes, maker->len, NULL), 0);
}

/* One CIE and an FDE for each instruction stream; functions are 0x100 bytes from 0x1000. */
static size_t frames_make(unsigned char *out, const unsigned char streams[][16], size_t count)
{
    static const unsigned char cie[] = {
        20,  0, 0, 0,    0,  0, 0,    0,    1, 'z',
        'R', 0, 4, 0x78, 30, 1, 0x03, 0x0c, 7, 8, /* udata4 addresses; base is register 7 + 8 */
        0,   0, 0, 0,
    };
    memcpy(out, cie, sizeof(cie));
    size_t at = sizeof(cie);
    for (size_t i = 0; i < count; i++) {
        uint32_t fde[4] = {4 + 8 + 1 + 15, (uint32_t)at + 4, 0x1000 + (uint32_t)i * 0x100, 0x100};
        memcpy(out + at, fde, sizeof(fde));
        out[at + 16] = 0; /* no augmentation data */
        memcpy(out + at + 17, streams[i], 15);
        at += 32;
    }
    memset(out + at, 0, 4); /* the end */
    return at + 4;
}

static void frames_read(const char *path, unsigned machine, const unsigned char streams[][16],
                        size_t count, struct build_cfi *ret)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct maker *maker = malloc(sizeof(*maker));
    assert_non_null(maker);
    unsigned char frames[1024];
    maker_begin(maker);
    maker_section(maker, ".text", 0x1000, NULL, 0x400);
    maker_section(maker, ".eh_frame", 0x3000, frames, frames_make(frames, streams, count));
    maker_end(maker, machine, path);
    free(maker);
    struct build_elf file = {0};
    struct why why = {0};
    if (build_elf_open(&arena, path, UINT64_MAX, &file, &why) < 0)
        fail_msg("%s", why.what);
    build_cfi_read(&file, ret);
    build_elf_close(&file);
    ret->table = ret->table ? ".eh_frame" : NULL; /* the arena goes away */
}

static void frame_rules_are_read_on_x86_64(void **state)
{
    static const unsigned char streams[4][16] = {
        {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6}, /* push rbp; base is rbp */
        {0x41, 0x0e, 16, 0x83, 2},                /* push rbx; base stays on rsp */
        {0},                                      /* a leaf: says nothing */
        {0x41, 0x0f, 2, 0x76, 0x10},              /* base is an expression */
    };
    struct build_cfi cfi;
    frames_read(*state, EM_X86_64, streams, 4, &cfi);
    assert_null(cfi.na);
    assert_int_equal(cfi.functions, 4);
    assert_int_equal(cfi.frames_read, 3);
    assert_int_equal(cfi.frames_kept, 1);
    assert_true(cfi.code_covered > 0.99);
}

static void frame_records_are_read_on_aarch64(void **state)
{
    static const unsigned char streams[4][16] = {
        {0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3}, /* stp x29, x30: side by side */
        {0x41, 0x0e, 32, 0x9e, 4, 0x93, 3}, /* x30 and x19: no record */
        {0x41, 0x0c, 29, 16},               /* base is x29, as clang writes it */
        {0x41, 0x0e, 32},                   /* a leaf with locals: says nothing */
    };
    struct build_cfi cfi;
    frames_read(*state, EM_AARCH64, streams, 4, &cfi);
    assert_int_equal(cfi.frames_read, 3);
    assert_int_equal(cfi.frames_kept, 2);
}

static void code_without_rows_is_not_covered(void **state)
{
    static const unsigned char streams[1][16] = {{0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6}};
    struct build_cfi cfi;
    frames_read(*state, EM_X86_64, streams, 1, &cfi);
    assert_true(cfi.code_covered > 0.24 && cfi.code_covered < 0.26);
    assert_int_equal(cfi.uncovered_bytes, 0x300);
}

static void an_unknown_machine_is_not_guessed_at(void **state)
{
    static const unsigned char streams[1][16] = {{0x41, 0x0d, 6}};
    struct build_cfi cfi;
    frames_read(*state, EM_S390, streams, 1, &cfi);
    assert_non_null(cfi.na);
    assert_int_equal(cfi.frames_read, 0);
}

/* This very test program: it has a build-id and a symbol table. */
static void copy_file(const char *from, const char *to)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct str bytes;
    assert_int_equal(file_read(&arena, from, 256 << 20, &bytes, NULL), 0);
    assert_int_equal(file_write_atomic(to, bytes.data, bytes.len, NULL), 0);
}

static void a_debug_file_is_found_by_build_id_and_proved(void **state)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct build_elf file = {0};
    struct why why = {0};
    struct build_debug_file found;
    char folder[] = "/tmp/whyslow-debug-XXXXXX";
    assert_non_null(mkdtemp(folder));
    if (build_elf_open(&arena, "/proc/self/exe", UINT64_MAX, &file, &why) < 0)
        fail_msg("%s", why.what);
    const char *id = build_elf_build_id(&file);
    assert_non_null(id);
    build_debug_find(&file, folder, &found);
    assert_null(found.path);

    const char *sub = arena_printf(&arena, "%s/.build-id/%.2s", folder, id);
    const char *path = arena_printf(&arena, "%s/%s.debug", sub, id + 2);
    assert_int_equal(folder_make(sub, NULL), 0);
    copy_file("/bin/true", path);
    build_debug_find(&file, folder, &found);
    assert_null(found.path);
    assert_non_null(strstr(found.because, "another build-id"));

    copy_file("/proc/self/exe", path);
    build_debug_find(&file, folder, &found);
    assert_string_equal(found.path, path);
    assert_non_null(strstr(found.because, "build-id"));
    build_elf_close(&file);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(sub), 0);
    assert_int_equal(rmdir(arena_printf(&arena, "%s/.build-id", folder)), 0);
    assert_int_equal(rmdir(folder), 0);
    (void)state;
}

static void work_stops_at_the_deadline_and_says_so(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct build_elf file = {0};
    struct why why = {0};
    struct build_dwarf dwarf;
    if (build_elf_open(&arena, "/proc/self/exe", 1, &file, &why) < 0)
        fail_msg("%s", why.what);
    assert_true(build_dwarf_read(&file, &dwarf));
    assert_non_null(dwarf.partial);
    assert_true(file.late);
    build_elf_close(&file);
}

static void what_is_not_known_is_not_available_with_a_reason(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct build_info info = {
        .path = "x",
        .machine = "x86_64",
        .kind = "PIE",
        .language_na = "why language",
        .compiler_na = "why compiler",
        .optimization_na = "why level",
        .optimized = {BUILD_UNKNOWN, "why optimized"},
        .lto = {BUILD_UNKNOWN, "why lto"},
        .frame_pointers = {BUILD_UNKNOWN, "why frames"},
        .frame_pointer_share = __builtin_nan(""),
        .unwind_tables = {BUILD_UNKNOWN, "why tables"},
        .symbols = {BUILD_YES, "y"},
        .debug_info = {BUILD_NO, "why debug"},
        .split_debug = {BUILD_NO, "n"},
        .stripped = {BUILD_NO, "n"},
        .assertions = {BUILD_UNKNOWN, "why assertions"},
        .sanitizers = "",
        .instrumented = "",
        .sampled = "",
    };
    struct value map = build_info_value(&arena, &info);
    static const struct {
        const char *key;
        const char *reason;
    } wanted[] = {
        {"language", "why language"},
        {"compiler", "why compiler"},
        {"optimization", "why level"},
        {"optimized", "why optimized"},
        {"lto", "why lto"},
        {"frame_pointers", "why frames"},
        {"unwind_tables", "why tables"},
        {"frame_pointer_pct", "why frames"},
        {"dwarf_version", "why debug"},
        {"debug_info_where", "why debug"},
        {"assertions", "why assertions"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        const struct value *value = value_get(&map, wanted[i].key);
        assert_non_null(value);
        assert_int_equal(value->kind, VALUE_NA);
        assert_true(str_is(value->text, wanted[i].reason));
    }
    static const char *const keys[] = {"path",        "script",   "machine",    "kind",
                                       "static",      "build_id", "symbols",    "debug_info",
                                       "split_debug", "stripped", "sanitizers", "instrumented"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        assert_non_null(value_get(&map, keys[i]));
    assert_true(value_get(&map, "symbols")->truth);
    assert_false(value_get(&map, "debug_info")->truth);
}

static void outputs_stay_untouched_when_reading_fails(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct build_info info = {.path = "kept"};
    struct why why = {0};
    assert_int_equal(build_info_read(&arena, "/nowhere/at/all", &info, &why), -ENOENT);
    assert_string_equal(info.path, "kept");
    assert_int_equal(build_info_read(&arena, "/etc/passwd", &info, &why), -ENOEXEC);
    assert_string_equal(info.path, "kept");
    assert_true(why.remedy[0] != '\0');
    assert_int_equal(build_info_read(&arena, "/etc", &info, NULL), -EISDIR);
}

static int setup(void **state)
{
    static char path[] = "/tmp/whyslow-elf-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        return -1;
    close(fd);
    *state = path;
    return 0;
}

static int teardown(void **state)
{
    return unlink(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_is_the_debuglink_one),
        cmocka_unit_test(the_last_level_wins),
        cmocka_unit_test(a_tally_is_sorted_and_bounded),
        cmocka_unit_test(go_settings_are_found_by_their_key),
        cmocka_unit_test(frame_rules_are_read_on_x86_64),
        cmocka_unit_test(frame_records_are_read_on_aarch64),
        cmocka_unit_test(code_without_rows_is_not_covered),
        cmocka_unit_test(an_unknown_machine_is_not_guessed_at),
        cmocka_unit_test(a_debug_file_is_found_by_build_id_and_proved),
        cmocka_unit_test(work_stops_at_the_deadline_and_says_so),
        cmocka_unit_test(what_is_not_known_is_not_available_with_a_reason),
        cmocka_unit_test(outputs_stay_untouched_when_reading_fails),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
