/* Promises of the YAML: the JSON's tree, and no text that can be taken for anything else. */
#include "unit.h"

#include "capture.h"
#include "present/renderers.h"

static struct arena arena;

static int end(void **state)
{
    (void)state;
    arena_deinit(&arena);
    arena = ARENA_INIT;
    return 0;
}

static void assert_yaml(const struct value *root, const char *expected)
{
    struct capture capture;
    struct report report = {.schema = "whyslow.test/1", .root = root};
    struct render_opts opts = {0};
    struct why why = {0};
    capture_begin(&capture);
    assert_int_equal(render(renderer_find("yaml"), &report, &opts, capture.out, &why), 0);
    assert_string_equal(capture_text(&capture), expected);
    capture_end(&capture);
}

static void maps_lists_and_tables_are_blocks(void **state)
{
    (void)state;
    static const struct column columns[] = {
        {"id", "id", SHOW_ALWAYS, false, false},
        {"bar", "bar", SHOW_PEOPLE, false, false},
        {"inside", "inside", SHOW_MACHINE, false, false},
    };
    struct value root = value_map(&arena);
    value_put_for(&root, SHOW_PEOPLE, "drawing", NULL, value_text("###"));
    struct value *list = value_put(&root, "steps", NULL, value_list(&arena));
    struct value *step = value_append(list, value_map(&arena));
    value_put(step, "id", NULL, value_uint(1, UNIT_COUNT));
    struct value *io = value_put(step, "io", NULL, value_map(&arena));
    value_put(io, "calls", NULL, value_na("not recorded"));
    value_put(step, "children", NULL, value_list(&arena));
    value_append(list, value_text("plain"));
    struct value *table = value_put(&root, "rows", NULL, value_table(&arena, columns, 3));
    struct table_row *row = table_add(table);
    row->cells[0] = value_text("a");
    row->cells[2] = value_map(&arena);
    assert_yaml(&root, "schema: \"whyslow.test/1\"\n"
                       "steps:\n"
                       "  - id: 1\n"
                       "    io:\n"
                       "      calls: \"n/a: not recorded\"\n"
                       "    children: []\n"
                       "  - \"plain\"\n"
                       "rows:\n"
                       "  - id: \"a\"\n"
                       "    inside: {}\n");
}

static void texts_stand_in_quotes_whatever_they_are(void **state)
{
    (void)state;
    struct value root = value_map(&arena);
    value_put(&root, "no", NULL, value_text("no"));
    value_put(&root, "a b: c", NULL, value_text("x: y # z"));
    value_put(&root, "broken", NULL, value_text("a\n- b\t\"\\\x1b\x7f\xff"));
    value_put(&root, "lines", NULL, value_text("\xc2\x85\xe2\x80\xa8 \xc3\xa4 \xef\xbb\xbf"));
    assert_yaml(&root, "schema: \"whyslow.test/1\"\n"
                       "\"no\": \"no\"\n"
                       "\"a b: c\": \"x: y # z\"\n"
                       "broken: \"a\\n- b\\u0009\\\"\\\\\\u001b\\u007f\xef\xbf\xbd\"\n"
                       "lines: \"\\u0085\\u2028 \xc3\xa4 \\ufeff\"\n");
}

static void numbers_are_numbers_for_every_reader(void **state)
{
    (void)state;
    struct value root = value_map(&arena);
    value_put(&root, "large", NULL, value_real(1e300, UNIT_NONE));
    value_put(&root, "third", NULL, value_real(1.0 / 3, UNIT_NONE));
    value_put(&root, "whole", NULL, value_real(12, UNIT_MS));
    value_put(&root, "less", NULL, value_int(-3, UNIT_NONE));
    value_put(&root, "nan", NULL, value_real(0.0 / 0.0, UNIT_NONE));
    value_put(&root, "truth", NULL, value_bool(true));
    value_put(&root, "none", NULL, value_null());
    assert_yaml(&root, "schema: \"whyslow.test/1\"\n"
                       "large: 1.0e+300\n"
                       "third: 0.3333333333333333\n"
                       "whole: 12\n"
                       "less: -3\n"
                       "\"nan\": null\n"
                       "truth: true\n"
                       "none: null\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(maps_lists_and_tables_are_blocks, end),
        cmocka_unit_test_teardown(texts_stand_in_quotes_whatever_they_are, end),
        cmocka_unit_test_teardown(numbers_are_numbers_for_every_reader, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
