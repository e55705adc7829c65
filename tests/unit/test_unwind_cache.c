/* Promises of the rows kept on disk: the same rows as from the image, and a file that is
 * damaged, old, of another image or not writable costs time and nothing else. */
#include "unit.h"

#include "unwind_build.h"

#include "unwind/image.h"
#include "unwind/rows_file.h"

#include <glob.h>

static const char *const libraries[] = {"/lib/x86_64-linux-gnu/libc.so.6",
                                        "/lib/aarch64-linux-gnu/libc.so.6", "/proc/self/exe"};

static const char *library(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
        if (access(libraries[i], R_OK) == 0)
            return libraries[i];
    return "/proc/self/exe";
}

static struct unwind_image *load(const char *path, const char *cache_dir)
{
    struct unwind_image *image = NULL;
    struct why why = {0};
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || unwind_image_load(fd, &(struct unwind_image_opts){.cache_dir = cache_dir}, &image,
                                    &why) < 0)
        fail_msg("%s: %s", path, why.what);
    return image;
}

static void assert_same_rows(const struct unwind_image *a, const struct unwind_image *b)
{
    const struct unwind_rows *left = &a->rows, *right = &b->rows;
    assert_int_equal(left->base, right->base);
    assert_int_equal(left->count, right->count);
    assert_int_equal(left->rules_count, right->rules_count);
    assert_int_equal(left->saves_count, right->saves_count);
    assert_int_equal(left->pool_len, right->pool_len);
    assert_memory_equal(left->starts, right->starts, left->count * 4);
    assert_memory_equal(left->rule_of, right->rule_of, left->count * 4);
    assert_memory_equal(left->rules, right->rules, left->rules_count * sizeof(*left->rules));
    assert_memory_equal(left->saves, right->saves, left->saves_count * sizeof(*left->saves));
}

/* The one file in the cache. */
static void cache_file(const char *dir, char path[256])
{
    char pattern[256];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/*", dir);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    snprintf(path, 256, "%s", found.gl_pathv[0]);
    globfree(&found);
}

static void rows_from_the_cache_are_those_of_the_image(void **state)
{
    (void)state;
    char dir[256];
    snprintf(dir, sizeof(dir), "%s/deep/er", build_path("cache"));
    struct unwind_image *plain = load(library(), NULL), *first = load(library(), dir),
                        *second = load(library(), dir);
    assert_false(first->cached);
    assert_true(second->cached);
    assert_true(plain->rows.count > 100);
    assert_same_rows(plain, first);
    assert_same_rows(plain, second);
    uint64_t vaddr;
    assert_true(unwind_image_vaddr(second, 0, &vaddr)); /* segments are the image's own */
    unwind_image_free(plain);
    unwind_image_free(first);
    unwind_image_free(second);
}

static void change_byte(const char *path, off_t at, uint8_t mask)
{
    uint8_t byte = 0;
    AUTO(fd_close) int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= mask;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void a_damaged_file_is_ignored_and_made_anew(void **state)
{
    (void)state;
    const char *dir = build_path("damaged");
    char path[256];
    struct stat st;
    struct unwind_image *plain = load(library(), dir);
    cache_file(dir, path);
    assert_int_equal(stat(path, &st), 0);
    for (unsigned i = 0; i < 60; i++) {
        /* Every byte of the header, then all over the rest. */
        off_t at = i < 36 ? 2 * i : 72 + (st.st_size - 72) / 24 * (i - 36);
        change_byte(path, at, (uint8_t)(1u << i % 8));
        struct unwind_image *image = load(library(), dir), *again = load(library(), dir);
        assert_false(image->cached);
        assert_true(again->cached);
        assert_same_rows(plain, image);
        unwind_image_free(image);
        unwind_image_free(again);
    }
    const off_t sizes[] = {0, 1, 71, 72, 73, st.st_size - 1, st.st_size / 2, st.st_size + 4096};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        assert_int_equal(truncate(path, sizes[i]), 0);
        struct unwind_image *image = load(library(), dir);
        assert_false(image->cached);
        assert_same_rows(plain, image);
        unwind_image_free(image);
    }
    unwind_image_free(plain);
}

static void a_file_that_others_may_change_is_ignored(void **state)
{
    (void)state;
    const char *dir = build_path("others");
    char path[256];
    unwind_image_free(load(library(), dir));
    cache_file(dir, path);
    for (int i = 0; i < 2; i++) {
        struct unwind_image *image = load(library(), dir);
        assert_true(image->cached);
        unwind_image_free(image);
        assert_int_equal(i == 0 || geteuid() != 0 ? chmod(path, 0666) : chown(path, 65534, 65534),
                         0);
        image = load(library(), dir);
        assert_false(image->cached); /* and made anew */
        unwind_image_free(image);
    }
}

/* A checksum is no lock: whoever makes the file can make it fit. Then every number in it
 * must still be one that the walk can live with. */
static void a_file_with_wild_numbers_is_ignored_even_if_its_checksum_is_right(void **state)
{
    (void)state;
    struct rows_key key = {.len = 4, .build_id = "abc", .tables = 7};
    const char *dir = build_path("wild");
    static const struct {
        size_t at;
        uint8_t value;
        const char *what;
    } wild[] = {
        {offsetof(struct unwind_rules, cfa), UNWIND_CFAS, "kind of CFA"},
        {offsetof(struct unwind_rules, cfa_base), 32, "register"},
        {offsetof(struct unwind_rules, ra), UNWIND_PLACES, "place"},
        {offsetof(struct unwind_rules, saves_count), 2, "saves"},
        {offsetof(struct unwind_rules, saves_first), 2, "saves"},
        {24 + offsetof(struct unwind_save, target), 32, "register"},
        {24 + offsetof(struct unwind_save, place), UNWIND_PLACES, "place"},
        {24 + offsetof(struct unwind_save, base), 255, "register"},
        {24 + offsetof(struct unwind_save, place), UNWIND_AT_EXPRESSION, "place in the pool"},
        {24 + 8, 200, "order of starts"},
        {24 + 8 + 8, 1, "rule set"},
        {SIZE_MAX, 0, NULL}, /* unchanged: fine */
    };
    for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
        struct {
            struct unwind_rules rules;
            struct unwind_save save;
            uint32_t starts[2];
            uint32_t rule_of[2];
        } block = {.rules = {.cfa = UNWIND_CFA_REGISTER, .cfa_base = 7, .saves_count = 1},
                   .save = {.offset = 77, .target = 6, .place = UNWIND_AT_CFA},
                   .starts = {100, 101}};
        if (wild[i].what)
            ((uint8_t *)&block)[wild[i].at] = wild[i].value;
        struct unwind_rows rows = {.base = 1,
                                   .starts = block.starts,
                                   .rule_of = block.rule_of,
                                   .count = 2,
                                   .rules = &block.rules,
                                   .rules_count = 1,
                                   .saves = &block.save,
                                   .saves_count = 1};
        void *memory = NULL;
        rows_file_save(dir, &key, UNWIND_X86_64, &rows);
        bool loaded = rows_file_load(dir, &key, UNWIND_X86_64, 1, &rows, &memory);
        if (loaded != !wild[i].what)
            fail_msg("%s: %s", wild[i].what ? wild[i].what : "unchanged",
                     loaded ? "taken" : "ignored");
        free(memory);
        /* For another machine, base or set of tables it is not meant at all. */
        struct rows_key other = key;
        other.tables++;
        assert_false(rows_file_load(dir, &key, UNWIND_AARCH64, 1, &rows, &memory));
        assert_false(rows_file_load(dir, &key, UNWIND_X86_64, 2, &rows, &memory));
        assert_false(rows_file_load(dir, &other, UNWIND_X86_64, 1, &rows, &memory));
    }
}

static void a_cache_that_cannot_be_is_no_error(void **state)
{
    (void)state;
    assert_int_equal(build_run("touch file"), 0);
    const char *const dirs[] = {build_path("file"), "/proc/nowhere", "/dev/null/x", ""};
    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
        struct unwind_image *image = load(library(), dirs[i]);
        assert_false(image->cached);
        assert_true(image->rows.count > 100);
        unwind_image_free(image);
    }
}

static void a_stripped_file_does_not_take_the_rows_of_the_whole_one(void **state)
{
    (void)state;
    const char *dir = build_path("strip");
    assert_true(build_image("whole", ".cfi_sections .debug_frame\n.text\n .cfi_startproc\n nop\n"
                                     ".cfi_endproc\n"));
    assert_int_equal(build_run("strip -o stripped.so whole.so"), 0);
    char path[2][256];
    snprintf(path[0], 256, "%s", build_path("whole.so"));
    snprintf(path[1], 256, "%s", build_path("stripped.so"));
    for (unsigned i = 0; i < 4; i++) {
        struct unwind_image *image = load(path[i % 2], dir);
        assert_int_equal(image->cached, i >= 2);
        assert_int_equal(image->rows.count, i % 2 ? 0 : 2);
        unwind_image_free(image);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_from_the_cache_are_those_of_the_image),
        cmocka_unit_test(a_file_that_others_may_change_is_ignored),
        cmocka_unit_test(a_damaged_file_is_ignored_and_made_anew),
        cmocka_unit_test(a_file_with_wild_numbers_is_ignored_even_if_its_checksum_is_right),
        cmocka_unit_test(a_cache_that_cannot_be_is_no_error),
        cmocka_unit_test(a_stripped_file_does_not_take_the_rows_of_the_whole_one),
    };
    return cmocka_run_group_tests(tests, build_group_setup, build_group_teardown);
}
