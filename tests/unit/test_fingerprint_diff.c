/* Promises of fingerprint_diff(): what forbids a comparison, what only warns, what is refused. */
#include "unit.h"

#include "base/fd.h"
#include "host/fingerprint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct world {
    struct arena arena;
    char a[64], b[64];
    struct why why;
    struct value table;
    unsigned incomparable;
};

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    snprintf(world->a, sizeof(world->a), "/tmp/whyslow-a-XXXXXX");
    snprintf(world->b, sizeof(world->b), "/tmp/whyslow-b-XXXXXX");
    int a = mkstemp(world->a), b = mkstemp(world->b);
    close(a);
    close(b);
    *state = world;
    return a < 0 || b < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    unlink(world->a);
    unlink(world->b);
    arena_deinit(&world->arena);
    free(world);
    return 0;
}

static int diff(struct world *world, const char *a, const char *b)
{
    assert_int_equal(file_write_atomic(world->a, a, strlen(a), NULL), 0);
    assert_int_equal(file_write_atomic(world->b, b, strlen(b), NULL), 0);
    world->incomparable = 12345;
    world->why = (struct why){0};
    return fingerprint_diff(&world->arena, world->a, world->b, &world->table, &world->incomparable,
                            &world->why);
}

static bool cell_is(const struct table_row *row, size_t column, const char *text)
{
    return row->cells[column].kind == VALUE_TEXT && str_is(row->cells[column].text, text);
}

static const struct table_row *row_of(const struct world *world, const char *field)
{
    for (const struct table_row *row = world->table.table->first; row; row = row->next)
        if (cell_is(row, 0, field))
            return row;
    return NULL;
}

#define FP(cpu, rest) "{\"cpu\": {" cpu "}, \"kernel\": {\"release\": \"6.1\"}" rest "}"

static void the_same_fingerprint_is_comparable(void **state)
{
    struct world *world = *state;
    assert_int_equal(diff(world, FP("\"model\": \"A\"", ""), FP("\"model\": \"A\"", "")), 0);
    assert_int_equal(world->incomparable, 0);
    assert_int_equal(world->table.table->row_count, 0);
}

static void another_cpu_forbids_and_another_microcode_warns(void **state)
{
    struct world *world = *state;
    assert_int_equal(diff(world, FP("\"model\": \"A\", \"microcode\": \"1\"", ""),
                          FP("\"model\": \"B\", \"microcode\": \"2\"", "")),
                     0);
    assert_int_equal(world->incomparable, 1);
    assert_true(cell_is(row_of(world, "cpu.model"), 1, "incomparable"));
    assert_true(cell_is(row_of(world, "cpu.microcode"), 1, "caution"));
}

static void time_and_load_are_never_compared(void **state)
{
    struct world *world = *state;
    assert_int_equal(diff(world,
                          FP("", ", \"run\": {\"id\": \"1\"}, \"isolation\": {\"load_1m\": 1}"),
                          FP("", ", \"run\": {\"id\": \"2\"}, \"isolation\": {\"load_1m\": 9}")),
                     0);
    assert_int_equal(world->table.table->row_count, 0);
}

static void what_one_side_does_not_know_is_unknown_and_not_equal(void **state)
{
    struct world *world = *state;
    assert_int_equal(
        diff(world,
             FP("\"governor\": \"n/a: no cpufreq\", \"turbo\": \"n/a: x\", \"vendor\": \"V\"", ""),
             FP("\"governor\": \"performance\", \"turbo\": \"n/a: y\", \"smt\": \"on\"", "")),
        0);
    assert_int_equal(world->incomparable, 0);
    assert_true(cell_is(row_of(world, "cpu.governor"), 1, "unknown"));
    assert_true(cell_is(row_of(world, "cpu.smt"), 1, "unknown"));
    assert_int_equal(row_of(world, "cpu.smt")->cells[2].kind, VALUE_NA);
    assert_null(row_of(world, "cpu.turbo"));
    assert_true(cell_is(row_of(world, "cpu.vendor"), 1, "caution"));
}

static void memory_may_wobble_by_five_percent(void **state)
{
    struct world *world = *state;
    assert_int_equal(diff(world, FP("", ", \"memory\": {\"total_bytes\": 100000000}"),
                          FP("", ", \"memory\": {\"total_bytes\": 96000000}")),
                     0);
    assert_int_equal(world->incomparable, 0);
    assert_int_equal(diff(world, FP("", ", \"memory\": {\"total_bytes\": 100000000}"),
                          FP("", ", \"memory\": {\"total_bytes\": 90000000}")),
                     0);
    assert_int_equal(world->incomparable, 1);
}

static void a_document_around_the_fingerprint_and_facts_with_evidence_are_read(void **state)
{
    struct world *world = *state;
    assert_int_equal(
        diff(world,
             "{\"schema\": \"x\", \"fingerprint\": " FP(
                 "\"model\": null",
                 ", \"build\": {\"optimization\": {\"answer\": \"-O2\", \"because\": \"a\"}}") "}",
             FP("\"model\": null",
                ", \"build\": {\"optimization\": {\"answer\": \"-O0\", \"because\": \"b\"}}")),
        0);
    assert_int_equal(world->incomparable, 1);
    assert_true(cell_is(row_of(world, "build.optimization"), 1, "incomparable"));
}

static void a_limit_against_none_forbids(void **state)
{
    struct world *world = *state;
    assert_int_equal(diff(world, FP("", ", \"isolation\": {\"cpu_limit\": 1.5}"),
                          FP("", ", \"isolation\": {\"cpu_limit\": \"unlimited\"}")),
                     0);
    assert_int_equal(world->incomparable, 1);
}

static void damaged_and_foreign_files_are_refused_by_name(void **state)
{
    struct world *world = *state;
    static const char *const bad[] = {"",
                                      "{",
                                      "[1, 2]",
                                      "{\"cpu\": 1}",
                                      "\"text\"",
                                      "null",
                                      "{\"fingerprint\": 7}",
                                      "{\"cpu\": {}}"};
    const char *good = FP("", "");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_true(diff(world, good, bad[i]) < 0);
        assert_int_equal(world->why.kind, WHY_USAGE);
        assert_non_null(strstr(world->why.what, world->b));
        assert_true(world->why.remedy[0] != '\0');
        assert_int_equal(world->incomparable, 12345);
        assert_true(diff(world, bad[i], good) < 0);
    }
    assert_true(diff(world, good, "{\"cpu\": {},\n\"kernel\": oops}") < 0);
    assert_non_null(strstr(world->why.what, "line 2"));
    unlink(world->b);
    assert_int_equal(fingerprint_diff(&world->arena, world->a, world->b, &world->table,
                                      &world->incomparable, &world->why),
                     -ENOENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_same_fingerprint_is_comparable),
        TEST(another_cpu_forbids_and_another_microcode_warns),
        TEST(time_and_load_are_never_compared),
        TEST(what_one_side_does_not_know_is_unknown_and_not_equal),
        TEST(memory_may_wobble_by_five_percent),
        TEST(a_document_around_the_fingerprint_and_facts_with_evidence_are_read),
        TEST(a_limit_against_none_forbids),
        TEST(damaged_and_foreign_files_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
