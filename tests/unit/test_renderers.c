/* Promises of present/: one tree, three drawings that agree. */
#include "unit.h"

#include "capture.h"
#include "present/renderers.h"

#include <errno.h>
#include <jansson.h>

static const struct column columns[] = {
    {"id", "id", SHOW_ALWAYS, false, false},
    {"size_bytes", "size", SHOW_ALWAYS, true, false},
    {"note", "note", SHOW_ALWAYS, false, true},
    {"raw", "raw", SHOW_MACHINE, false, false},
};

static struct value sample_tree(struct arena *arena)
{
    struct value root = value_map(arena);
    value_put(&root, "tier", "Tier", value_text("kernel"));
    value_put(&root, "governor", "Governor", value_na("no cpufreq here"));
    value_put_machine(&root, "secret_of_machines", value_uint(7, UNIT_NONE));
    struct value *memory = value_put(&root, "memory", "Memory", value_map(arena));
    value_put(memory, "total_bytes", "total", value_uint(3u << 29, UNIT_BYTES));
    value_put(memory, "swap", "swap", value_bool(false));
    struct value *rows = value_put(&root, "files", "Files", value_table(arena, columns, 4));
    struct table_row *row = table_add(rows);
    row->cells[0] = value_text("a|b");
    row->cells[1] = value_uint(2048, UNIT_BYTES);
    row->cells[2] = value_text("evil \033[2J <b> name");
    row->cells[3] = value_real(0.5, UNIT_NONE);
    row = table_add(rows);
    row->cells[0] = value_text("second");
    row->cells[1] = value_na("not read");
    row->cells[2] = value_text("plain");
    struct value *notes = value_put(&root, "notes", "Notes", value_list(arena));
    value_append(notes, value_text("one"));
    return root;
}

static void draw(const char *renderer, struct render_opts opts, struct capture *capture)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value root = sample_tree(&arena);
    struct report report = {.schema = "whyslow.test/1", .root = &root};
    struct why why = {0};
    capture_begin(capture);
    assert_int_equal(render(renderer_find(renderer), &report, &opts, capture->out, &why), 0);
    capture_text(capture);
}

static void text_is_aligned_and_safe(void **state)
{
    (void)state;
    struct capture capture;
    draw("text", (struct render_opts){0}, &capture);
    assert_string_equal(capture.text, "Tier      kernel\n"
                                      "Governor  n/a: no cpufreq here\n"
                                      "\n"
                                      "Memory\n"
                                      "  total  1.50 GiB\n"
                                      "  swap   no\n"
                                      "\n"
                                      "Files\n"
                                      "  id               size  note\n"
                                      "  a|b          2.00 KiB  evil \\x1b[2J <b> name\n"
                                      "  second  n/a: not read  plain\n"
                                      "\n"
                                      "Notes\n"
                                      "  one\n");
    capture_end(&capture);
}

static void colour_appears_only_when_asked_for(void **state)
{
    (void)state;
    struct capture capture;
    draw("text", (struct render_opts){.color = true}, &capture);
    assert_non_null(strstr(capture.text, "\033[1mMemory\033[0m"));
    capture_end(&capture);
}

static void a_narrow_terminal_wraps_and_loses_no_word(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value root = value_map(&arena);
    struct value *rows = value_put(&root, "t", "T", value_table(&arena, columns, 4));
    struct table_row *row = table_add(rows);
    row->cells[0] = value_text("x");
    row->cells[1] = value_uint(1, UNIT_BYTES);
    row->cells[2] = value_text("first words of a long note that must go over several lines here");
    struct report report = {.schema = "s", .root = &root};
    struct render_opts opts = {.width = 50};
    struct capture capture;
    capture_begin(&capture);
    assert_int_equal(render(renderer_find("text"), &report, &opts, capture.out, NULL), 0);
    /* With runs of blanks and newlines as one blank, the sentence stands there unbroken. */
    char joined[400] = "";
    size_t len = 0;
    for (const char *at = capture_text(&capture); *at && len + 1 < sizeof(joined); at++)
        if ((*at != ' ' && *at != '\n') || (len > 0 && joined[len - 1] != ' '))
            joined[len++] = (char)(*at == '\n' ? ' ' : *at);
    assert_non_null(
        strstr(joined, "first words of a long note that must go over several lines here"));
    struct str rest = str_from(capture.text);
    while (rest.len > 0)
        assert_true(str_cut(&rest, '\n').len <= 50);
    capture_end(&capture);
}

/* Figures do not wrap, and a name may be one long word. */
static void a_row_too_wide_for_the_terminal_goes_on_below(void **state)
{
    (void)state;
    static const struct column wide[] = {
        {"id", "id", SHOW_ALWAYS, false, false},
        {"self", "self", SHOW_ALWAYS, true, false},
        {"ci", "interval", SHOW_ALWAYS, true, false},
        {"total", "total", SHOW_ALWAYS, true, false},
        {"name", "function", SHOW_ALWAYS, false, true},
        {"call", "call", SHOW_ALWAYS, false, false},
    };
    static const char *const cells[] = {"f1",
                                        "300 ms",
                                        "27.2%, 32.9%",
                                        "400 ms",
                                        "a_name_that_is_one_long_word",
                                        "another_that_is_wider_than_all_of_the_terminal"};
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value root = value_map(&arena);
    struct value *rows = value_put(&root, "t", "A heading that is too wide for it as well",
                                   value_table(&arena, wide, ARRAY_SIZE(wide)));
    struct table_row *row = table_add(rows);
    for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
        row->cells[i] = value_text(cells[i]);
    struct report report = {.schema = "s", .root = &root};
    struct render_opts opts = {.width = 40};
    struct capture capture;
    capture_begin(&capture);
    assert_int_equal(render(renderer_find("text"), &report, &opts, capture.out, NULL), 0);
    assert_string_equal(capture_text(&capture), "A heading that is too wide for it as\n"
                                                "well\n"
                                                "  id    self      interval   total\n"
                                                "      function\n"
                                                "      call\n"
                                                "  f1  300 ms  27.2%, 32.9%  400 ms\n"
                                                "      a_name_that_is_one_long_word\n"
                                                "      another_that_is_wider_than_all_of_\n"
                                                "      the_terminal\n");
    capture_end(&capture);
}

static void json_has_raw_numbers_reasons_and_machine_fields(void **state)
{
    (void)state;
    struct capture capture;
    draw("json", (struct render_opts){0}, &capture);
    json_t *json = json_loads(capture.text, 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "schema")), "whyslow.test/1");
    assert_string_equal(json_string_value(json_object_get(json, "governor")),
                        "n/a: no cpufreq here");
    assert_int_equal(json_integer_value(json_object_get(json, "secret_of_machines")), 7);
    json_t *memory = json_object_get(json, "memory");
    assert_int_equal(json_integer_value(json_object_get(memory, "total_bytes")), 3u << 29);
    json_t *first = json_array_get(json_object_get(json, "files"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "note")), "evil \033[2J <b> name");
    assert_true(json_real_value(json_object_get(first, "raw")) == 0.5);
    json_decref(json);
    capture_end(&capture);
}

static void a_row_for_machines_is_in_the_json_only(void **state)
{
    (void)state;
    static const char *const names[] = {"text", "markdown", "json"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        AUTO(arena_deinit) struct arena arena = ARENA_INIT;
        struct value root = sample_tree(&arena);
        struct table_row *row = table_add((struct value *)value_get(&root, "files"));
        row->cells[0] = value_text("passed-check");
        row->show = SHOW_MACHINE;
        struct report report = {.schema = "s", .root = &root};
        struct render_opts opts = {0};
        struct capture capture;
        capture_begin(&capture);
        assert_int_equal(render(renderer_find(names[i]), &report, &opts, capture.out, NULL), 0);
        bool shown = strstr(capture_text(&capture), "passed-check") != NULL;
        assert_true(shown == (strcmp(names[i], "json") == 0));
        capture_end(&capture);
    }
}

static void markdown_cannot_be_broken_by_a_name(void **state)
{
    (void)state;
    struct capture capture;
    draw("markdown", (struct render_opts){0}, &capture);
    assert_non_null(strstr(capture.text, "| a\\|b | 2.00 KiB | evil \\x1b\\[2J \\<b\\> name |\n"));
    assert_non_null(strstr(capture.text, "|---|---:|---|\n"));
    assert_null(strstr(capture.text, "secret"));
    capture_end(&capture);
}

static void a_full_disk_is_an_error_not_an_empty_report(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value root = sample_tree(&arena);
    struct report report = {.schema = "s", .root = &root};
    struct render_opts opts = {0};
    struct why why = {0};
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_int_equal(render(renderer_find("json"), &report, &opts, full, &why), -ENOSPC);
    assert_non_null(strstr(why.what, "No space left"));
    fclose(full);
}

static void an_unknown_renderer_is_not_found(void **state)
{
    (void)state;
    assert_null(renderer_find("telex"));
}

static void what_is_for_some_readers_is_shown_to_them_only(void **state)
{
    (void)state;
    static const struct {
        const char *renderer;
        bool machine, people, terminal;
    } rows[] = {{"text", false, true, true},
                {"markdown", false, true, false},
                {"json", true, false, false}};
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value root = value_map(&arena);
    value_put_machine(&root, "m", value_text("for-machines"));
    value_put_for(&root, SHOW_PEOPLE, "p", NULL, value_text("for-people"));
    struct value *list = value_put_for(&root, SHOW_TERMINAL, "t", NULL, value_list(&arena));
    value_append(list, value_text("for-terminals"));
    static const struct column some[] = {{"a", "a", SHOW_MACHINE, false, false},
                                         {"b", "b", SHOW_PEOPLE, false, false}};
    struct value *table = value_put(&root, "table", NULL, value_table(&arena, some, 2));
    struct table_row *row = table_add(table);
    row->cells[0] = value_text("machine-cell");
    row->cells[1] = value_text("people-cell");
    struct report report = {.schema = "whyslow.test/1", .root = &root};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct capture capture;
        capture_begin(&capture);
        struct render_opts opts = {0};
        assert_int_equal(render(renderer_find(rows[i].renderer), &report, &opts, capture.out, NULL),
                         0);
        const char *text = capture_text(&capture);
        assert_true((strstr(text, "for-machines") != NULL) == rows[i].machine);
        assert_true((strstr(text, "for-people") != NULL) == rows[i].people);
        assert_true((strstr(text, "for-terminals") != NULL) == rows[i].terminal);
        assert_true((strstr(text, "machine-cell") != NULL) == rows[i].machine);
        assert_true((strstr(text, "people-cell") != NULL) == rows[i].people);
        capture_end(&capture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_aligned_and_safe),
        cmocka_unit_test(colour_appears_only_when_asked_for),
        cmocka_unit_test(a_narrow_terminal_wraps_and_loses_no_word),
        cmocka_unit_test(a_row_too_wide_for_the_terminal_goes_on_below),
        cmocka_unit_test(json_has_raw_numbers_reasons_and_machine_fields),
        cmocka_unit_test(a_row_for_machines_is_in_the_json_only),
        cmocka_unit_test(markdown_cannot_be_broken_by_a_name),
        cmocka_unit_test(a_full_disk_is_an_error_not_an_empty_report),
        cmocka_unit_test(an_unknown_renderer_is_not_found),
        cmocka_unit_test(what_is_for_some_readers_is_shown_to_them_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
