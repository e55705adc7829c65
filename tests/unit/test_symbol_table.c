/* Tables of symbols: which range counts, which of several names, and the cache that keeps a
 * table and must not be believed. */
#include "unit.h"

#include "base/arena.h"
#include "base/fd.h"
#include "symbolize/internal.h"
#include "symbolize/symbol_cache.h"
#include "symbolize/symbol_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void the_strongest_range_counts_at_every_address(void **state)
{
    (void)state;
    enum { SPACE = 200, RANGES = 60 };
    srand(7);
    for (unsigned round = 0; round < 300; round++) {
        struct range ranges[RANGES];
        uint32_t want[SPACE];
        size_t count = (size_t)rand() % RANGES;
        memset(want, 0xff, sizeof(want));
        for (size_t i = 0; i < count; i++) {
            uint64_t start = (uint64_t)rand() % SPACE;
            uint64_t len = (uint64_t)rand() % 40;
            /* Priorities of their own, so that the answer is one. */
            ranges[i] = (struct range){start, start + len, (uint32_t)i, (uint32_t)i};
            for (uint64_t at = start; at < start + len && at < SPACE; at++)
                want[at] = (uint32_t)i;
        }
        struct range_map map;
        assert_int_equal(range_map_build(ranges, count, &map), 0);
        for (uint64_t at = 0; at < SPACE; at++)
            assert_int_equal(range_map_find(&map, at), want[at]);
        range_map_deinit(&map);
    }
}

static void assert_row(const struct symbol_table *table, uint64_t address, const char *name)
{
    const struct symbol_row *row = symbol_table_find(table, address);
    if (!name) {
        assert_null(row);
        return;
    }
    assert_non_null(row);
    struct str found = symbol_table_name(table, row);
    if (!str_is(found, name))
        fail_msg("%#llx is '%.*s', not '%s'", (unsigned long long)address, STR_FMT(found), name);
}

static void add(struct symbol_table *table, uint64_t start, uint64_t size, const char *name,
                uint32_t rank)
{
    assert_int_equal(symbol_table_add(table, start, size, str_from(name), rank, 0), 0);
}

static void sizes_and_names_come_from_the_best_symbol(void **state)
{
    (void)state;
    struct symbol_table table = {0};
    add(&table, 0x100, 0x20, "weak", 8);
    add(&table, 0x100, 0x20, "global", 0);
    add(&table, 0x100, 0, "local", 16);
    add(&table, 0x110, 0, "label", 32);   /* inside: says nothing */
    add(&table, 0x140, 0, "assembly", 0); /* up to the next */
    add(&table, 0x160, 0, "last", 0);     /* up to the end of the section */
    add(&table, 0x200, 0x100, "whole", 0);
    add(&table, 0x240, 0x10, "part", 0); /* the inner one, then the outer again */
    add(&table, UINT64_MAX - 4, UINT64_MAX, "wraps", 0);
    static const uint64_t ends[] = {0x180, 0x400};
    assert_int_equal(symbol_table_finish(&table, ends, 2), 0);
    assert_row(&table, 0xff, NULL);
    assert_row(&table, 0x100, "global");
    assert_row(&table, 0x110, "global");
    assert_row(&table, 0x11f, "global");
    assert_row(&table, 0x120, NULL);
    assert_row(&table, 0x15f, "assembly");
    assert_row(&table, 0x17f, "last");
    assert_row(&table, 0x180, NULL);
    assert_row(&table, 0x23f, "whole");
    assert_row(&table, 0x24f, "part");
    assert_row(&table, 0x250, "whole");
    assert_row(&table, UINT64_MAX - 1, "wraps");
    symbol_table_deinit(&table);
}

static void the_compilers_suffixes_are_not_for_people(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"foo.cold", "foo"},
        {"foo.part.0", "foo"},
        {"foo.constprop.1.isra.0.cold", "foo"},
        {"_ZN1a1bEv.isra.0", "a::b()"},
        {"foo.llvm.1234567890", "foo"},
        {"foo.c", "foo.c"},
        {"main.work", "main.work"},
        {"main.func1.2", "main.func1.2"},
        {"foo.0", "foo.0"},
        {".cold", ".cold"},
        {"open@plt", "open@plt"},
        {"_ZN1a1bEv@plt", "a::b()@plt"},
    };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct str found = symbol_pretty(&arena, str_from(rows[i][0]));
        if (!str_is(found, rows[i][1]))
            fail_msg("%s gives '%.*s', not '%s'", rows[i][0], STR_FMT(found), rows[i][1]);
    }
}

/* ---- the cache ---- */

static struct symbols fake_symbols(const char *folder)
{
    struct symbols symbols = {.kind = IMAGE_FILE,
                              .build_id = "00112233445566778899",
                              .cache_dir = folder,
                              .source = "symbol table",
                              .elf = ELF_FILE_NONE,
                              .debug = ELF_FILE_NONE};
    symbols.elf.size_bytes = 12345;
    return symbols;
}

static void table_fill(struct symbol_table *table, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "function_%u", i);
        add(table, 0x1000 + i * 32, 16, name, 0);
    }
    assert_int_equal(symbol_table_finish(table, NULL, 0), 0);
}

enum { ROWS = 5000 };

struct folder {
    char path[64];
    char file[128];
};

static int folder_make_one(void **state)
{
    struct folder *folder = calloc(1, sizeof(*folder));
    snprintf(folder->path, sizeof(folder->path), "/tmp/symbol-cache-XXXXXX");
    *state = folder;
    if (!mkdtemp(folder->path))
        return -1;
    snprintf(folder->file, sizeof(folder->file), "%s/symbols/00112233445566778899", folder->path);
    return 0;
}

static int folder_remove(void **state)
{
    struct folder *folder = *state;
    char command[256];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder->path);
    int r = system(command);
    free(folder);
    return r;
}

static void a_kept_table_answers_as_the_first_one_did(void **state)
{
    const struct folder *folder = *state;
    struct symbols symbols = fake_symbols(folder->path);
    struct symbol_table table = {0};
    struct symbol_table again = {0};
    assert_int_equal(symbol_cache_load(&symbols, &again), -ENOENT);
    table_fill(&table, ROWS);
    symbol_cache_store(&symbols, &table);
    struct stat st;
    assert_int_equal(stat(folder->file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    symbols.source = "none";
    assert_int_equal(symbol_cache_load(&symbols, &again), 0);
    assert_string_equal(symbols.source, "symbol table");
    for (uint64_t at = 0xff0; at < 0x1000 + ROWS * 32 + 64; at += 4) {
        const struct symbol_row *first = symbol_table_find(&table, at);
        const struct symbol_row *second = symbol_table_find(&again, at);
        assert_int_equal(!first, !second);
        if (first)
            assert_true(
                str_eq(symbol_table_name(&table, first), symbol_table_name(&again, second)));
    }
    symbol_table_deinit(&again);
    again = (struct symbol_table){0};
    symbols.elf.size_bytes++; /* another file of the same build-id */
    assert_int_equal(symbol_cache_load(&symbols, &again), -ENOENT);
    symbol_table_deinit(&table);
    symbol_table_deinit(&again);
    arena_deinit(&symbols.arena);
}

static void without_a_folder_or_a_build_id_nothing_is_kept(void **state)
{
    const struct folder *folder = *state;
    struct symbol_table table = {0};
    table_fill(&table, ROWS);
    struct symbols symbols = fake_symbols(NULL);
    symbol_cache_store(&symbols, &table);
    symbols = fake_symbols("/proc/nowhere");
    symbol_cache_store(&symbols, &table);
    symbols = fake_symbols(folder->path);
    static const char *const bad[] = {"", "short", "../../../../etc/passwd", "00112233/4455667788"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        symbols.build_id = bad[i];
        symbol_cache_store(&symbols, &table);
        assert_int_equal(symbol_cache_load(&symbols, &table), -ENOENT);
    }
    char path[128];
    snprintf(path, sizeof(path), "%s/symbols", folder->path);
    assert_int_equal(access(path, F_OK), -1);
    symbol_table_deinit(&table);
}

static char *file_bytes(const char *path, size_t *ret_len)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    char *bytes = malloc((size_t)st.st_size);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_non_null(bytes);
    assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    *ret_len = (size_t)st.st_size;
    return bytes;
}

/* Offsets in the header that the file begins with. */
enum { AT_ROWS = 16, AT_MAP = 24, AT_NAMES = 32, AT_ORIGIN = 40, AT_SUM = 48, AT_BODY = 568 };

static uint64_t number_at(const char *bytes, size_t at)
{
    uint64_t number;
    memcpy(&number, bytes + at, sizeof(number));
    return number;
}

static int parse(char *bytes, size_t len, bool sum_again)
{
    struct symbol_table table = {0};
    const char *source;
    if (sum_again) {
        uint64_t sum = hash_bytes(bytes + AT_BODY, len - AT_BODY);
        memcpy(bytes + AT_SUM, &sum, sizeof(sum));
    }
    int r = symbol_cache_parse(bytes, len, number_at(bytes, AT_ORIGIN), &table, &source);
    symbol_table_deinit(&table);
    return r;
}

static void a_damaged_cache_file_is_not_believed(void **state)
{
    const struct folder *folder = *state;
    struct symbols symbols = fake_symbols(folder->path);
    struct symbol_table table = {0};
    table_fill(&table, ROWS);
    symbol_cache_store(&symbols, &table);
    symbol_table_deinit(&table);
    size_t len;
    char *bytes = file_bytes(folder->file, &len);
    char *copy = malloc(len + 8);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    assert_int_equal(parse(copy, len, false), 0); /* as it is, it is fine */
    for (size_t cut = 0; cut < len; cut += 1 + len / 97) {
        memcpy(copy, bytes, len);
        assert_int_equal(parse(copy, cut, false), -ENOENT);
    }
    assert_int_equal(parse(copy, len + 1, false), -ENOENT);
    for (size_t at = 0; at < len; at += at < AT_BODY ? 1 : 1 + len / 997) {
        if ((at >= AT_ORIGIN && at < AT_SUM) || (at >= AT_SUM + 8 && at < AT_BODY))
            continue; /* compared elsewhere; words only */
        memcpy(copy, bytes, len);
        copy[at] ^= 0x40;
        if (parse(copy, len, false) != -ENOENT)
            fail_msg("a flipped bit at %zu was believed", at);
    }
    /* Somebody who knows the checksum, too, cannot make us read elsewhere. */
    uint64_t rows = number_at(bytes, AT_ROWS);
    size_t starts = AT_BODY + rows * 32;
    const size_t places[] = {AT_BODY + 16 + 3 /* a name's offset */,
                             AT_BODY + 20 + 3 /* its length */, AT_BODY + 15 /* its size */,
                             starts + 8 * 9 + 7 /* order */,
                             starts + number_at(bytes, AT_MAP) * 8 + 3 /* a row */};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        memcpy(copy, bytes, len);
        memset(copy + (places[i] - (i == 2 ? 7 : 0)), 0x7f, 1);
        if (i == 2)
            memset(copy + AT_BODY, 0xff, 16);
        if (parse(copy, len, true) != -ENOENT)
            fail_msg("lie %zu was believed", i);
    }
    const size_t counts[] = {AT_ROWS, AT_MAP, AT_NAMES};
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        for (unsigned shift = 0; shift < 64; shift += 7) {
            memcpy(copy, bytes, len);
            uint64_t number = number_at(bytes, counts[i]) ^ 1ull << shift;
            memcpy(copy + counts[i], &number, sizeof(number));
            assert_int_equal(parse(copy, len, true), -ENOENT);
        }
    free(copy);
    free(bytes);
}

static void the_cache_stays_small_by_dropping_the_oldest(void **state)
{
    const struct folder *folder = *state;
    struct symbols symbols = fake_symbols(folder->path);
    struct symbol_table table = {0};
    table_fill(&table, ROWS);
    symbol_cache_store(&symbols, &table);
    /* Large files, without taking the room: older and newer than the bound allows. */
    char path[160];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/symbols/large%d", folder->path, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(ftruncate(fd, 120 << 20), 0);
        struct timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
        assert_int_equal(futimens(fd, times), 0);
        close(fd);
    }
    symbols.build_id = "ffeeddccbbaa99887766";
    symbol_cache_store(&symbols, &table);
    static const struct {
        const char *name;
        int there;
    } rows[] = {{"large0", -1},
                {"large1", 0},
                {"large2", 0},
                {"00112233445566778899", 0},
                {"ffeeddccbbaa99887766", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        snprintf(path, sizeof(path), "%s/symbols/%s", folder->path, rows[i].name);
        if (access(path, F_OK) != rows[i].there)
            fail_msg("%s is %s", rows[i].name, rows[i].there ? "still there" : "gone");
    }
    symbol_table_deinit(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_strongest_range_counts_at_every_address),
        cmocka_unit_test(sizes_and_names_come_from_the_best_symbol),
        cmocka_unit_test(the_compilers_suffixes_are_not_for_people),
        cmocka_unit_test_setup_teardown(a_kept_table_answers_as_the_first_one_did, folder_make_one,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(without_a_folder_or_a_build_id_nothing_is_kept,
                                        folder_make_one, folder_remove),
        cmocka_unit_test_setup_teardown(a_damaged_cache_file_is_not_believed, folder_make_one,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(the_cache_stays_small_by_dropping_the_oldest,
                                        folder_make_one, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
