/* Names for addresses: the kinds of image, and what they do with hostile files. What compilers
 * write in full is held against other tools in tests/readers/symbols.py. */
#include "unit.h"

#include "base/arena.h"
#include "base/fd.h"
#include "model/sink_memory.h"
#include "symbolize/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct symbols_opts plain = {.lines = true};

static int file_with(const char *text, size_t len)
{
    int fd = memfd_create("symbols", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, len), 0);
    return fd;
}

static struct symbols *open_text(enum image_kind kind, const char *text, size_t len)
{
    struct image_info info = {.kind = kind, .path = STR("/tmp/some.map")};
    struct symbols *symbols = NULL;
    struct why why;
    int fd = file_with(text, len);
    assert_int_equal(symbols_open(fd, &info, &plain, &symbols, &why), 0);
    close(fd);
    return symbols;
}

static bool noted(const struct symbols *symbols, const char *part)
{
    for (const char *const *note = symbols_notes(symbols); *note; note++)
        if (strstr(*note, part))
            return true;
    return false;
}

static void assert_name_at(struct symbols *symbols, uint64_t address, const char *name)
{
    struct symbol found[SYMBOLS_INLINE_MAX];
    size_t count = symbols_at(symbols, address, found, SYMBOLS_INLINE_MAX);
    if (!name) {
        assert_int_equal(count, 0);
        return;
    }
    assert_int_equal(count, 1);
    if (!str_is(found[0].name, name))
        fail_msg("%#llx is '%.*s', not '%s'", (unsigned long long)address, STR_FMT(found[0].name),
                 name);
}

/* ---- this very program ---- */

static volatile int sink_value;
static inline __attribute__((always_inline)) void burn_inlined(int n)
{
    for (int i = 0; i < n; i++)
        sink_value += i;
}
enum { BURN_LINE = __LINE__ + 1 };
static __attribute__((noinline)) void burn(int n)
{
    burn_inlined(n);
    burn_inlined(n + 1);
}

static int base_of(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uint64_t *)base = info->dlpi_addr;
    return 1; /* the first is the program itself */
}

static struct symbols *open_self(const struct symbols_opts *opts, uint64_t *ret_burn)
{
    uint64_t base = 0;
    struct image_info info = {.kind = IMAGE_FILE, .path = STR("/proc/self/exe")};
    struct symbols *symbols;
    struct why why;
    dl_iterate_phdr(base_of, &base);
    *ret_burn = (uint64_t)(uintptr_t)burn - base;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(symbols_open(fd, &info, opts, &symbols, &why), 0);
    close(fd); /* the symbols have their own */
    return symbols;
}

static void our_own_functions_have_names_lines_and_inlined_calls(void **state)
{
    (void)state;
    uint64_t address;
    struct symbols *symbols = open_self(&plain, &address);
    struct symbol found[SYMBOLS_INLINE_MAX];
    assert_string_equal(symbols_source(symbols), "DWARF");
    assert_int_equal(symbols_at(symbols, address, found, SYMBOLS_INLINE_MAX), 1);
    assert_true(str_is(found[0].name, "burn") && str_is(found[0].linkage, "burn"));
    assert_true(str_ends(found[0].file, "test_symbols.c"));
    assert_int_equal(found[0].line, BURN_LINE + 1);
    assert_int_equal(found[0].function_line, BURN_LINE);
    assert_int_equal(found[0].start, address);
    uint64_t size = found[0].size_bytes;
    size_t inlined = 0;
    for (uint64_t at = address; at < address + size; at++) {
        size_t count = symbols_at(symbols, at, found, SYMBOLS_INLINE_MAX);
        assert_in_range(count, 1, 2);
        assert_true(str_is(found[count - 1].name, "burn"));
        assert_int_equal(found[0].start, address);
        if (count == 2) {
            assert_true(str_is(found[0].name, "burn_inlined"));
            assert_in_range(found[1].line, BURN_LINE + 2, BURN_LINE + 3);
            inlined++;
        }
    }
    assert_true(inlined > 0);
    symbols_close(symbols);
}

static void without_lines_only_the_symbol_table_speaks(void **state)
{
    (void)state;
    uint64_t address;
    struct symbols *symbols = open_self(&(struct symbols_opts){0}, &address);
    struct symbol found[4];
    assert_string_equal(symbols_source(symbols), "symbol table");
    assert_int_equal(symbols_at(symbols, address, found, 4), 1);
    assert_true(str_is(found[0].name, "burn"));
    assert_int_equal(found[0].line, 0);
    assert_int_equal(found[0].file.len, 0);
    symbols_close(symbols);
}

static void a_deep_chain_keeps_its_outermost_function(void **state)
{
    (void)state;
    uint64_t address;
    struct symbols *symbols = open_self(&plain, &address);
    struct symbol found[SYMBOLS_INLINE_MAX];
    for (uint64_t at = address; at < address + 64; at++) {
        if (symbols_at(symbols, at, found, SYMBOLS_INLINE_MAX) != 2)
            continue;
        assert_int_equal(symbols_at(symbols, at, found, 1), 1);
        assert_true(str_is(found[0].name, "burn"));
        symbols_close(symbols);
        return;
    }
    fail_msg("no inlined call in burn()");
}

/* ---- into a sink ---- */

static void a_batch_goes_to_the_sink_with_functions_once(void **state)
{
    (void)state;
    uint64_t address;
    struct symbols *symbols = open_self(&plain, &address);
    struct sink_memory memory = SINK_MEMORY_INIT;
    struct image_info image = {.kind = IMAGE_FILE, .path = STR("/proc/self/exe")};
    uint32_t image_id;
    enum { COUNT = 40 };
    struct symbols_frame frames[COUNT + 1];
    assert_int_equal(sink_image(&memory.sink, &image, &image_id), 0);
    for (uint32_t i = 0; i < COUNT; i++) { /* from the end: it sorts */
        struct frame_info frame = {.image = image_id, .address = address + COUNT - 1 - i};
        frames[i].address = frame.address;
        assert_int_equal(sink_frame(&memory.sink, &frame, &frames[i].frame), 0);
    }
    struct frame_info nowhere = {.image = image_id, .address = UINT64_MAX - 5};
    frames[COUNT].address = nowhere.address;
    assert_int_equal(sink_frame(&memory.sink, &nowhere, &frames[COUNT].frame), 0);
    uint32_t unknown = frames[COUNT].frame;
    assert_int_equal(symbols_emit(symbols, image_id, frames, COUNT + 1, &memory.sink), 0);
    assert_int_equal(memory.functions.len, 2); /* burn and burn_inlined */
    assert_true(memory.locations.len > COUNT);
    for (size_t i = 0; i < memory.locations.len; i++) {
        assert_int_not_equal(memory.locations.data[i].frame, unknown);
        const struct function_info *function = &memory.functions
                                                    .data[memory.locations.data[i].function - 1];
        struct str name = intern_get(&memory.interned.texts, function->name);
        bool outer = str_is(name, "burn");
        assert_true(outer || str_is(name, "burn_inlined"));
        assert_int_equal(function->address, outer ? address : 0); /* the other is only inlined */
        assert_int_equal(function->image, image_id);
        assert_true(str_ends(intern_get(&memory.interned.texts, function->file), "test_symbols.c"));
    }
    memory.error = -ENOSPC; /* a sink that fails says so through us */
    assert_int_equal(symbols_emit(symbols, image_id, frames, 1, &memory.sink), -ENOSPC);
    sink_memory_deinit(&memory);
    symbols_close(symbols);
}

static void names_are_passed_on_as_they_are_and_cut_beyond_a_mebibyte(void **state)
{
    (void)state;
    static const char odd[] = "<script>alert(1)</script>\x1b[31m\"\\; \xff";
    size_t len = 3 << 20;
    char *text = malloc(len);
    assert_non_null(text);
    memset(text, 'A', len);
    int head = snprintf(text, len, "1000 10 %s\n2000 10 ", odd);
    text[head] = 'A';
    text[len - 1] = '\n';
    struct symbols *symbols = open_text(IMAGE_JIT, text, len);
    struct sink_memory memory = SINK_MEMORY_INIT;
    struct image_info image = {.kind = IMAGE_JIT, .path = STR("x")};
    uint32_t image_id;
    struct symbols_frame frames[2] = {{0, 0x1001}, {0, 0x2001}};
    assert_int_equal(sink_image(&memory.sink, &image, &image_id), 0);
    for (size_t i = 0; i < 2; i++) {
        struct frame_info frame = {.image = image_id, .address = frames[i].address};
        assert_int_equal(sink_frame(&memory.sink, &frame, &frames[i].frame), 0);
    }
    assert_int_equal(symbols_emit(symbols, image_id, frames, 2, &memory.sink), 0);
    assert_int_equal(memory.functions.len, 2);
    struct str first = intern_get(&memory.interned.texts, memory.functions.data[0].name);
    struct str second = intern_get(&memory.interned.texts, memory.functions.data[1].name);
    assert_true(str_is(first, odd));
    assert_int_equal(second.len, INTERNED_TEXT_BYTES_MAX);
    sink_memory_deinit(&memory);
    symbols_close(symbols);
    free(text);
}

/* ---- the kernel ---- */

static void kallsyms_name_functions_modules_and_nothing_else(void **state)
{
    (void)state;
    static const char text[] = "ffffffff81000000 T _stext\n"
                               "ffffffff81000000 t first_local\n"
                               "ffffffff81000000 T first\n"
                               "ffffffff81000100 t second\n"
                               "not a line\n"
                               "ffffffff81000180 D data_here\n"
                               "ffffffff81000200 W weak_one\n"
                               "ffffffff81000300 T _etext\n"
                               "ffffffffc0000000 t probe_one\t[some_module]\n"
                               "ffffffffc0000040 t probe_two\t[some_module]\n"
                               "0000000000000010 A absolute\n";
    struct symbols *symbols = open_text(IMAGE_KERNEL, text, sizeof(text) - 1);
    assert_string_equal(symbols_source(symbols), "kallsyms");
    assert_name_at(symbols, 0xffffffff81000000, "first");
    assert_name_at(symbols, 0xffffffff810000ff, "first");
    assert_name_at(symbols, 0xffffffff81000100, "second");
    assert_name_at(symbols, 0xffffffff81000180, NULL); /* data */
    assert_name_at(symbols, 0xffffffff81000210, "weak_one");
    assert_name_at(symbols, 0xffffffff81000310, NULL); /* behind all code */
    assert_name_at(symbols, 0xffffffffc0000004, "probe_one [some_module]");
    assert_name_at(symbols, 0xffffffffc0000004, "probe_one [some_module]"); /* and again */
    assert_name_at(symbols, 0xffffffffc0000044, "probe_two [some_module]");
    assert_name_at(symbols, 0xffffffffc1000000, NULL); /* a mebibyte behind the last */
    assert_name_at(symbols, 0x10, NULL);
    struct symbol found;
    assert_int_equal(symbols_at(symbols, 0xffffffffc0000044, &found, 1), 1);
    assert_true(str_is(found.linkage, "probe_two"));
    assert_int_equal(found.start, 0xffffffffc0000040);
    symbols_close(symbols);
}

static void hidden_kernel_addresses_are_a_note_with_the_remedy(void **state)
{
    (void)state;
    static const char zeros[] = "0000000000000000 T _stext\n0000000000000000 t second\n";
    struct symbols *symbols = open_text(IMAGE_KERNEL, zeros, sizeof(zeros) - 1);
    assert_true(noted(symbols, "kptr_restrict"));
    assert_string_equal(symbols_source(symbols), "none");
    assert_name_at(symbols, 0, NULL);
    symbols_close(symbols);
    symbols = open_text(IMAGE_KERNEL, "", 0);
    assert_true(noted(symbols, "empty"));
    symbols_close(symbols);
}

/* ---- perf maps ---- */

static void of_overlapping_lines_in_a_perf_map_the_last_one_wins(void **state)
{
    (void)state;
    static const char text[] = "1000 100 outer one\n"
                               "0x1040 0x20 inner\n"
                               "10f0 40 next: a b c\r\n"
                               "2000 0 empty\n"
                               "zzz 10 not hex\n"
                               "3000 10\n"
                               "\n"
                               "fffffffffffffff0 ffffffffffffffff to the end\n"
                               "1000 10 replaced\n"
                               "5000 10 half a li";
    struct symbols *symbols = open_text(IMAGE_JIT, text, sizeof(text) - 1);
    assert_string_equal(symbols_source(symbols), "perf map");
    assert_name_at(symbols, 0xfff, NULL);
    assert_name_at(symbols, 0x1000, "replaced");
    assert_name_at(symbols, 0x1010, "outer one");
    assert_name_at(symbols, 0x1040, "inner");
    assert_name_at(symbols, 0x105f, "inner");
    assert_name_at(symbols, 0x1060, "outer one");
    assert_name_at(symbols, 0x10f0, "next: a b c");
    assert_name_at(symbols, 0x112f, "next: a b c");
    assert_name_at(symbols, 0x1130, NULL);
    assert_name_at(symbols, 0x2000, NULL);
    assert_name_at(symbols, 0x3000, NULL);
    assert_name_at(symbols, UINT64_MAX - 1, "to the end");
    assert_name_at(symbols, 0x5000, NULL); /* its line has no end yet */
    symbols_close(symbols);
}

static void a_perf_map_is_read_on_when_it_grows(void **state)
{
    (void)state;
    struct image_info info = {.kind = IMAGE_JIT, .path = STR("/tmp/perf-1.map")};
    struct symbols *symbols;
    struct why why;
    int fd = file_with("1000 10 one\n2000 10 tw", 22);
    assert_int_equal(symbols_open(fd, &info, &plain, &symbols, &why), 0);
    struct symbol early;
    assert_int_equal(symbols_at(symbols, 0x1000, &early, 1), 1);
    assert_name_at(symbols, 0x2000, NULL);
    for (int i = 0; i < 2000; i++) { /* enough to make every block move */
        char line[64];
        int n = snprintf(line, sizeof(line), "%s%x 10 grown%d\n", i ? "" : "o\n", 0x10000 + i * 16,
                         i);
        assert_int_equal(fd_write_all(fd, line, (size_t)n), 0);
        if (i % 500 == 0)
            assert_name_at(symbols, 0x2000, "two");
    }
    assert_name_at(symbols, 0x10000 + 1999 * 16, "grown1999");
    assert_true(str_is(early.name, "one")); /* texts live as long as the symbols */
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, "1000 10 new\n", 12, 0), 12);
    assert_name_at(symbols, 0x1000, "new");
    assert_name_at(symbols, 0x2000, NULL);
    assert_true(str_is(early.name, "one"));
    symbols_close(symbols);
    close(fd);
}

static void a_perf_map_that_is_not_there_is_a_note(void **state)
{
    (void)state;
    struct image_info info = {.kind = IMAGE_JIT, .path = STR("/nonexistent/perf-1.map")};
    struct symbols *symbols;
    struct why why;
    assert_int_equal(symbols_open(-1, &info, NULL, &symbols, &why), 0);
    assert_true(noted(symbols, "/nonexistent/perf-1.map"));
    assert_string_equal(symbols_source(symbols), "none");
    assert_name_at(symbols, 0x1000, NULL);
    symbols_close(symbols);
    info.path = STR("/dev"); /* no regular file */
    assert_int_equal(symbols_open(-1, &info, NULL, &symbols, &why), 0);
    assert_true(noted(symbols, "not a regular file"));
    symbols_close(symbols);
}

/* ---- the rest ---- */

static void the_vdso_is_read_from_our_own_memory(void **state)
{
    (void)state;
    struct image_info info = {.kind = IMAGE_VDSO, .path = STR("[vdso]")};
    struct symbols *symbols;
    struct why why;
    int r = symbols_open(-1, &info, &plain, &symbols, &why);
    if (r == -ENOENT)
        skip("this kernel maps no vDSO");
    assert_int_equal(r, 0);
    bool found = false;
    for (uint64_t at = 0; at < 0x4000 && !found; at += 16) {
        struct symbol symbol;
        found = symbols_at(symbols, at, &symbol, 1) == 1 && str_contains(symbol.name, "gettime");
    }
    assert_true(found);
    symbols_close(symbols);
}

static void what_is_no_elf_file_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "#!/bin/sh\n", "\177ELF", "\177ELF\2\1\1garbage"};
    struct image_info info = {.kind = IMAGE_FILE, .path = STR("/opt/app/thing")};
    struct symbols *symbols = NULL;
    struct why why;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        int fd = file_with(texts[i], strlen(texts[i]));
        assert_int_equal(symbols_open(fd, &info, &plain, &symbols, &why), -ENOEXEC);
        assert_non_null(strstr(why.what, "/opt/app/thing"));
        close(fd);
    }
    assert_int_equal(symbols_open(-1, &info, &plain, &symbols, &why), -EBADF);
    int folder = open("/", O_RDONLY | O_CLOEXEC);
    assert_int_equal(symbols_open(folder, &info, &plain, &symbols, &why), -ENOEXEC);
    close(folder);
    assert_null(symbols); /* untouched */
    symbols_close(NULL);
}

static void names_are_demangled_for_people(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"main", "main"},
        {"", ""},
        {"_ZN5space6Square4areaEv", "space::Square::area()"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi",
         "std::vector<int, std::allocator<int> >::push_back(int const&)"},
        {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
        {"_RNvC6_123foo3bar", "123foo::bar"},
        {"_RNvMs_C3appNtB4_1P3run", "<app::P>::run"},
        {"_Zgarbage", "_Zgarbage"},
        {"_R", "_R"},
        {"runtime.mallocgc", "runtime.mallocgc"},
    };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct str found = symbol_demangle(&arena, str_from(rows[i][0]));
        if (!str_is(found, rows[i][1]))
            fail_msg("%s gives '%.*s', not '%s'", rows[i][0], STR_FMT(found), rows[i][1]);
    }
}

static void hostile_names_do_not_unfold_without_end(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    size_t len = 200 << 10;
    char *name = malloc(len + 1);
    assert_non_null(name);
    static const char *const heads[] = {"_Z1fI", "_ZN", "_ZSt", "_RNv", "_RINv", "_Z3fooPPP"};
    static const char fills[] = {'P', 'I', 'S', 'N', 'T', '_', '9', 'L'};
    for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
        for (size_t k = 0; k < ARRAY_SIZE(fills); k++)
            for (size_t size = 100; size <= len; size *= 12) {
                memset(name, fills[k], size);
                memcpy(name, heads[i], strlen(heads[i]));
                struct str found = symbol_demangle(&arena, (struct str){name, size});
                assert_true(found.len <= 1 << 20);
            }
    /* Each pair doubles what the one before it means: 2^30 times as long if it were written
     * out. It is given up and shown as it is. */
    size_t at = (size_t)sprintf(name, "_Z1fSt4pairIiiE");
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (unsigned i = 0; i < 30; i++) {
        at += (size_t)sprintf(name + at, "S_IS%c_S%c_E", digits[i], digits[i]);
        struct str found = symbol_demangle(&arena, (struct str){name, at});
        assert_true(found.len <= 1 << 16);
        assert_int_equal(str_starts(found, "_Z"), i > 8); /* 64 KiB are passed */
    }
    free(name);
}

/* A map at its path, by its owner and mode, in the eyes of one who watches a program of `target`.
 */
static bool map_believed(const char *path, uid_t owner, mode_t mode, unsigned target)
{
    struct image_info info = {.kind = IMAGE_JIT, .path = str_from(path)};
    struct symbols_opts opts = {.owner = target};
    struct symbols *symbols;
    struct symbol found[SYMBOLS_INLINE_MAX];
    struct why why;
    assert_int_equal(chown(path, owner, (gid_t)-1), 0);
    assert_int_equal(chmod(path, mode), 0);
    assert_int_equal(symbols_open(-1, &info, &opts, &symbols, &why), 0);
    bool believed = symbols_at(symbols, 0x1000, found, SYMBOLS_INLINE_MAX) == 1;
    assert_int_equal(noted(symbols, "belongs to another user"), !believed);
    symbols_close(symbols);
    return believed;
}

static void a_perf_map_is_believed_of_root_and_of_who_runs_the_program(void **state)
{
    (void)state;
    char path[] = "/tmp/symbols-map-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(fd_write_all(fd, "1000 10 name\n", 13), 0);
    close(fd);
    uid_t me = geteuid();
    assert_true(map_believed(path, me, 0644, me));
    assert_true(map_believed(path, me, 0644, 0));
    assert_false(map_believed(path, me, 0666, me));
    if (me == 0) {
        assert_false(map_believed(path, 0, 0664, 0));
        assert_false(map_believed(path, 65534, 0664, 65534));
        assert_false(map_believed(path, 65534, 0644, 0));
        assert_false(map_believed(path, 65534, 0644, 1000));
        assert_true(map_believed(path, 65534, 0644, 65534));
    }
    unlink(path);
    /* What a link leads to was meant for something else. */
    char map[] = "/tmp/symbols-map-XXXXXX";
    fd = mkstemp(map);
    assert_int_equal(fd_write_all(fd, "1000 10 name\n", 13), 0);
    close(fd);
    assert_int_equal(symlink(map, path), 0);
    struct image_info info = {.kind = IMAGE_JIT, .path = str_from(path)};
    struct symbols *symbols;
    struct symbol found[SYMBOLS_INLINE_MAX];
    struct why why;
    assert_int_equal(symbols_open(-1, &info, &plain, &symbols, &why), 0);
    assert_int_equal(symbols_at(symbols, 0x1000, found, SYMBOLS_INLINE_MAX), 0);
    assert_true(noted(symbols, "it is a link"));
    symbols_close(symbols);
    assert_int_equal(unlink(path) | unlink(map), 0);
}

/* Without openat2(), as under an old kernel or a container's filter. */
static void openat2_forbid(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {ARRAY_SIZE(filter), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        _exit(9);
}

static bool opens(const char *root, const char *path, int expected)
{
    int fd = root_open(root, path, true);
    if (fd >= 0)
        close(fd);
    return expected == 0 ? fd >= 0 : fd == expected;
}

static void no_path_leads_out_of_a_root(void **state)
{
    (void)state;
    char root[] = "/tmp/symbols-root-XXXXXX", path[64], outer[64];
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof(path), "%s/a", root);
    snprintf(outer, sizeof(outer), "%s-outer", root);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(file_write_atomic(outer, "x", 1, NULL), 0);
    snprintf(path, sizeof(path), "%s/a/file", root);
    assert_int_equal(file_write_atomic(path, "x", 1, NULL), 0);
    snprintf(path, sizeof(path), "%s/link", root);
    assert_int_equal(symlink(outer, path), 0);
    snprintf(path, sizeof(path), "..%s", strrchr(outer, '/'));
    assert_true(opens(root, "/a/file", 0));
    assert_true(opens(root, "/a", -EISDIR));
    assert_true(opens(root, "/link", -ENOENT)); /* inside the root it leads nowhere */
    assert_true(opens(root, path, -ENOENT));
    pid_t child = fork();
    if (child == 0) {
        openat2_forbid();
        _exit(!opens(root, "/a/file", 0) + 2 * !opens(root, "/link", -ELOOP) +
              4 * !opens(root, path, -ELOOP));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s' '%s'", root, outer);
    assert_int_equal(system(command), 0);
}

static void a_cache_that_others_may_change_is_none(void **state)
{
    (void)state;
    char folder[] = "/tmp/symbols-cache-XXXXXX", path[4096], command[4200];
    assert_non_null(mkdtemp(folder));
    setenv("HOME", folder, 1);
    unsetenv("XDG_CACHE_HOME");
    assert_non_null(symbols_cache_dir(path, sizeof(path)));
    assert_int_equal(chmod(path, 0770), 0);
    assert_null(symbols_cache_dir(path, sizeof(path)));
    assert_int_equal(chmod(path, 0700), 0);
    if (geteuid() == 0) {
        char name[4096];
        snprintf(name, sizeof(name), "%s/.cache", folder);
        assert_int_equal(chown(folder, 65534, (gid_t)-1), 0); /* as after sudo -E */
        assert_null(symbols_cache_dir(path, sizeof(path)));
        setenv("XDG_CACHE_HOME", name, 1);
        assert_null(symbols_cache_dir(path, sizeof(path)));
        unsetenv("XDG_CACHE_HOME");
    }
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void the_cache_folder_follows_the_environment(void **state)
{
    (void)state;
    char folder[] = "/tmp/symbols-cache-XXXXXX";
    char path[4096];
    char wanted[4096];
    assert_non_null(mkdtemp(folder));
    setenv("HOME", folder, 1);
    unsetenv("XDG_CACHE_HOME");
    snprintf(wanted, sizeof(wanted), "%s/.cache/whyslow", folder);
    assert_string_equal(symbols_cache_dir(path, sizeof(path)), wanted);
    struct stat st;
    assert_int_equal(stat(wanted, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_string_equal(symbols_cache_dir(path, sizeof(path)), wanted); /* and when it is there */
    setenv("XDG_CACHE_HOME", wanted, 1);
    snprintf(wanted, sizeof(wanted), "%s/.cache/whyslow/whyslow", folder);
    assert_string_equal(symbols_cache_dir(path, sizeof(path)), wanted);
    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", "also/relative", 1);
    assert_null(symbols_cache_dir(path, sizeof(path)));
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    assert_null(symbols_cache_dir(path, sizeof(path)));
    setenv("HOME", "/proc/1/nothing", 1);
    assert_null(symbols_cache_dir(path, sizeof(path)));
    setenv("HOME", folder, 1);
    assert_null(symbols_cache_dir(path, 12)); /* no room */
    char command[4200];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void a_program_without_a_debug_file_has_none(void **state)
{
    (void)state;
    struct image_info info = {.kind = IMAGE_FILE, .path = STR("/proc/self/exe")};
    char path[4096];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(symbols_debug_file(fd, &info, NULL, path, sizeof(path)), -ENOENT);
    assert_int_equal(symbols_debug_file(fd, &info, "/nonexistent", path, sizeof(path)), -ENOENT);
    close(fd);
    assert_int_equal(symbols_debug_file(-1, &info, NULL, path, sizeof(path)), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_own_functions_have_names_lines_and_inlined_calls),
        cmocka_unit_test(without_lines_only_the_symbol_table_speaks),
        cmocka_unit_test(a_deep_chain_keeps_its_outermost_function),
        cmocka_unit_test(a_batch_goes_to_the_sink_with_functions_once),
        cmocka_unit_test(names_are_passed_on_as_they_are_and_cut_beyond_a_mebibyte),
        cmocka_unit_test(kallsyms_name_functions_modules_and_nothing_else),
        cmocka_unit_test(hidden_kernel_addresses_are_a_note_with_the_remedy),
        cmocka_unit_test(of_overlapping_lines_in_a_perf_map_the_last_one_wins),
        cmocka_unit_test(a_perf_map_is_read_on_when_it_grows),
        cmocka_unit_test(a_perf_map_that_is_not_there_is_a_note),
        cmocka_unit_test(a_perf_map_is_believed_of_root_and_of_who_runs_the_program),
        cmocka_unit_test(no_path_leads_out_of_a_root),
        cmocka_unit_test(a_cache_that_others_may_change_is_none),
        cmocka_unit_test(the_vdso_is_read_from_our_own_memory),
        cmocka_unit_test(what_is_no_elf_file_is_refused_by_name),
        cmocka_unit_test(names_are_demangled_for_people),
        cmocka_unit_test(hostile_names_do_not_unfold_without_end),
        cmocka_unit_test(the_cache_folder_follows_the_environment),
        cmocka_unit_test(a_program_without_a_debug_file_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
