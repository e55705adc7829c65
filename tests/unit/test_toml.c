/* Promises of base/toml.h. */
#include "unit.h"

#include "base/toml.h"
#include "capture.h"

#include <errno.h>

static struct arena arena;
static struct why why;

static int parse(const char *text, struct toml *ret)
{
    why = (struct why){0};
    return toml_parse(&arena, "x.toml", str_from(text), ret, &why);
}

static void every_kind_of_value_is_read(void **state)
{
    (void)state;
    struct toml toml = {0};
    assert_int_equal(parse("# a comment\n\nname = \"a\\tb\\u00e9\\\"\" # after\r\n"
                           "path='C:\\x'\ncount = 1_000\nminus = -3\nplus = +4\n"
                           "share = 0.25\nbig = 1e3\nyes = true\nno = false\n"
                           "list = [\"a\", 'b', # c\n  \"d\",\n]\nempty = []\n",
                           &toml),
                     0);
    assert_int_equal(toml.len, 11);
    assert_string_equal(toml_get(&toml, "name")->text, "a\tb\xc3\xa9\"");
    assert_int_equal(toml_get(&toml, "name")->line, 3);
    assert_string_equal(toml_get(&toml, "path")->text, "C:\\x");
    assert_int_equal(toml_get(&toml, "count")->integer, 1000);
    assert_int_equal(toml_get(&toml, "minus")->integer, -3);
    assert_int_equal(toml_get(&toml, "plus")->integer, 4);
    assert_true(toml_get(&toml, "share")->real == 0.25);
    assert_true(toml_get(&toml, "big")->real == 1000);
    assert_true(toml_get(&toml, "yes")->truth && !toml_get(&toml, "no")->truth);
    const struct toml_value *list = toml_get(&toml, "list");
    assert_int_equal(list->kind, TOML_LIST);
    assert_int_equal(list->list.len, 3);
    assert_string_equal(list->list.items[2], "d");
    assert_null(list->list.items[3]);
    assert_int_equal(toml_get(&toml, "empty")->list.len, 0);
    assert_null(toml_get(&toml, "none"));
    assert_int_equal(parse("", &toml), 0);
    assert_int_equal(toml.len, 0);
}

static void what_is_refused_is_named_with_its_line(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"a", "line 1: a '=' is missing"},
        {"\n\na =", "line 3: a value is missing"},
        {"= 1", "line 1: a line must be"},
        {"[table]", "line 1: tables"},
        {"a = 1\nb = 2\na = 3", "line 3: the key was given before"},
        {"a = \"x", "line 1: a text is not closed"},
        {"a = 'x\ny'", "line 1: a text is not closed"},
        {"a = \"\\q\"", "an escape"},
        {"a = \"\\u0000\"", "a NUL"},
        {"a = \"\\ud800\"", "an escape"},
        {"a = \"\xff\"", "not UTF-8"},
        {"a = \"\x01\"", "a control character"},
        {"a = \"\"\"x\"\"\"", "several lines"},
        {"a = [1]", "texts only"},
        {"a = [\"x\" \"y\"]", "',' or ']'"},
        {"a = [\"x\"", "',' or ']'"},
        {"a = 1979-05-27T07:32:00Z", "neither text"},
        {"a = 0x10", "neither text"},
        {"a = 99999999999999999999", "cannot be read"},
        {"a = 1 2", "something follows"},
        {"a = 1__0", "neither text"},
        {"a = {b = 1}", "a value is missing"},
        {"a.b = 1", "a '=' is missing"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct toml toml = {0};
        assert_int_equal(parse(rows[i][0], &toml), -EINVAL);
        if (!strstr(why.what, rows[i][1]))
            fail_msg("'%s' says: %s", rows[i][0], why.what);
        assert_int_equal(why.kind, WHY_USAGE);
        assert_int_equal(toml.len, 0);
    }
    char nul[] = "a = \"x\0y\"";
    struct toml toml = {0};
    assert_int_equal(toml_parse(&arena, "x", (struct str){nul, sizeof(nul) - 1}, &toml, NULL),
                     -EINVAL);
}

static void any_text_comes_back_as_it_was_printed(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "plain", "a \"b\" \\c", "\n\t\x01\x7f",
                                        "\xc3\xa9\xe2\x82\xac"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct capture capture;
        capture_begin(&capture);
        fputs("k = ", capture.out);
        toml_text_print(capture.out, str_from(texts[i]));
        struct toml toml = {0};
        assert_int_equal(parse(capture_text(&capture), &toml), 0);
        assert_string_equal(toml_get(&toml, "k")->text, texts[i]);
        capture_end(&capture);
    }
}

/* Every text cut anywhere, and every byte of it changed, is read or refused, never worse. */
static void no_damage_is_worse_than_a_refusal(void **state)
{
    (void)state;
    const char text[] = "# c\nname = \"a\\tb\\u00e9\"\nl = [\"a\", 'b', # c\n \"d\"]\nx = 1.5e3\n";
    for (size_t cut = 0; cut < sizeof(text); cut++) {
        char copy[sizeof(text)];
        memcpy(copy, text, sizeof(text));
        struct toml toml = {0};
        int r = toml_parse(&arena, "x", (struct str){copy, cut}, &toml, NULL);
        assert_true(r == 0 || r == -EINVAL);
        for (int byte = 0; byte < 256 && cut < sizeof(text) - 1; byte += 5) {
            copy[cut] = (char)byte;
            r = toml_parse(&arena, "x", (struct str){copy, sizeof(text) - 1}, &toml, NULL);
            assert_true(r == 0 || r == -EINVAL);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_read),
        cmocka_unit_test(what_is_refused_is_named_with_its_line),
        cmocka_unit_test(any_text_comes_back_as_it_was_printed),
        cmocka_unit_test(no_damage_is_worse_than_a_refusal),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    arena_deinit(&arena);
    return r;
}
