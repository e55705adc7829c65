/* Promises of base/words.h and target/command.h. */
#include "unit.h"

#include "base/words.h"
#include "target/command.h"

#include <errno.h>
#include <stdio.h>

static struct arena arena;

/* The words joined by '|', or what was wrong. */
static const char *split(const char *text)
{
    static char joined[1024];
    struct words words = {0};
    struct why why = {0};
    if (words_split(&arena, text, &words, &why) < 0) {
        snprintf(joined, sizeof(joined), "%s", why.what);
        return joined;
    }
    size_t len = 0;
    joined[0] = '\0';
    for (size_t i = 0; i < words.count && len < sizeof(joined); i++)
        len += (size_t)snprintf(joined + len, sizeof(joined) - len, "%s%s", i ? "|" : "",
                                words.argv[i]);
    assert_in_range(len, 0, sizeof(joined) - 1);
    assert_null(words.argv[words.count]);
    return joined;
}

static const char *syntax(const char *text)
{
    struct words words = {0};
    assert_int_equal(words_split(&arena, text, &words, NULL), 0);
    return words.syntax ? words.syntax : words.pattern ? words.pattern : "none";
}

static void blanks_separate_and_quotes_keep_together(void **state)
{
    (void)state;
    assert_string_equal(split("  a  b\tc "), "a|b|c");
    assert_string_equal(split("grep 'a b' \"c d\" e\\ f"), "grep|a b|c d|e f");
    assert_string_equal(split("a'b'\"c\"d"), "abcd");
    assert_string_equal(split("a '' \"\" b"), "a|||b");
    assert_string_equal(split(""), "");
    assert_string_equal(split("   "), "");
}

static void backslashes_mean_in_quotes_what_they_mean_to_a_shell(void **state)
{
    (void)state;
    assert_string_equal(split("'a\\b'"), "a\\b");
    assert_string_equal(split("\"a\\\"b\\\\c\\d\""), "a\"b\\c\\d");
    assert_string_equal(split("a\\\nb \"c\\\nd\""), "ab|cd");
}

static void an_unclosed_quote_is_refused_with_its_position(void **state)
{
    (void)state;
    assert_non_null(strstr(split("echo 'abc"), "the single quote at position 6"));
    assert_non_null(strstr(split("a \"b' c"), "the double quote at position 3"));
    assert_non_null(strstr(split("a \\"), "the backslash at position 3"));
}

static void shell_syntax_is_noted_only_where_a_shell_would_see_it(void **state)
{
    (void)state;
    static const char *const found[][2] = {
        {"a | b", "|"},     {"a > b", ">"},       {"a && b", "&&"},   {"a $(b)", "$(…)"},
        {"a ${b}", "${…}"}, {"a $HOME", "$…"},    {"a; b", ";"},      {"a `b`", "`"},
        {"\"$x\"", "$…"},   {"ls *.c", "*"},      {"ls ~/x", "~"},    {"A=1 b", "NAME=…"},
        {"\"`a`\"", "`"},   {"a &", "&"},         {"(a)", "("},       {"a || b", "||"},
        {"ls a?", "?"},     {"ls a[0-9]", "[…]"}, {"ls [ab]", "[…]"}, {"ls ~me/x", "~"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(found); i++)
        assert_string_equal(syntax(found[i][0]), found[i][1]);
    static const char *const none[] = {
        "a '|' '$(b)'", "a \\| \\$x \"\\$x\" '*'", "a 5$ $",      "awk '{print $1}'",
        "a b=c",        "a x~y [ ] { }",           "[ a ] b[ ]c", "a[] '[b]' \\[c]",
        "a '?' ~1 '~'b"};
    for (size_t i = 0; i < ARRAY_SIZE(none); i++)
        assert_string_equal(syntax(none[i]), "none");
    struct words words = {0};
    assert_int_equal(words_split(&arena, "ls x[a|b]", &words, NULL), 0);
    assert_string_equal(words.syntax, "|"); /* what is read first, at its place */
    assert_int_equal(words.syntax_at, 7);
    assert_int_equal(words_split(&arena, "ls x[ab]", &words, NULL), 0);
    assert_null(words.syntax);
}

static void a_first_word_that_only_a_shell_knows_needs_one(void **state)
{
    (void)state;
    assert_string_equal(command_shell_syntax(&arena, "! true"), "!");
    assert_string_equal(command_shell_syntax(&arena, "if true"), "if");
    assert_string_equal(command_shell_syntax(&arena, "ulimit -n"), "ulimit");
    assert_string_equal(command_shell_syntax(&arena, "cd /tmp"), "cd");
    assert_null(command_shell_syntax(&arena, "true")); /* a builtin, and a program */
    assert_null(command_shell_syntax(&arena, "ls cd"));
    assert_null(command_shell_syntax(&arena, "./cd"));
    assert_null(command_shell_syntax(&arena, "no-such-program"));
    assert_null(command_shell_syntax(&arena, ""));
}

static void a_command_without_a_shell_refuses_shell_syntax_and_names_the_remedy(void **state)
{
    (void)state;
    struct command_line line = {0};
    struct why why = {0};
    assert_int_equal(command_line_parse(&arena, "cat x | wc", NULL, &line, &why), -EINVAL);
    assert_int_equal(why.kind, WHY_USAGE);
    assert_non_null(strstr(why.what, "| at position 7"));
    assert_non_null(strstr(why.remedy, "--shell"));
    assert_null(line.argv);
    assert_int_equal(command_line_parse(&arena, "", NULL, &line, &why), -EINVAL);
    assert_int_equal(command_line_parse(&arena, "no-such-program-here", NULL, &line, &why),
                     -ENOENT);
}

static void without_a_shell_a_question_mark_and_brackets_are_literal(void **state)
{
    (void)state;
    struct command_line line = {0};
    const char *text = "echo http://localhost/items?page=2 a[0]";
    assert_int_equal(command_line_parse(&arena, text, NULL, &line, NULL), 0);
    assert_string_equal(line.argv[1], "http://localhost/items?page=2");
    assert_string_equal(line.argv[2], "a[0]");
    assert_string_equal(command_shell_syntax(&arena, text), "?"); /* where there may be one */
    assert_int_equal(command_line_parse(&arena, "echo a? | wc", NULL, &line, NULL), -EINVAL);
}

static void a_shell_gets_the_text_untouched(void **state)
{
    (void)state;
    struct command_line line = {0};
    assert_int_equal(command_line_parse(&arena, "cat 'x' | wc", "sh -e", &line, NULL), 0);
    assert_true(line.shell);
    assert_string_equal(line.argv[0], "sh");
    assert_string_equal(line.argv[1], "-e");
    assert_string_equal(line.argv[2], "-c");
    assert_string_equal(line.argv[3], "cat 'x' | wc");
    assert_null(line.argv[4]);
    assert_int_equal(command_line_parse(&arena, "x", "", &line, NULL), -EINVAL);
    assert_int_equal(command_line_parse(&arena, "x", "no-such-shell", &line, NULL), -ENOENT);
}

static void an_argv_is_quoted_so_that_it_splits_into_itself(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "a b", "it's", "", "$x|", NULL};
    struct command_line line = {0};
    assert_int_equal(command_line_from_argv(&arena, (char *const *)argv, &line, NULL), 0);
    struct words words = {0};
    assert_int_equal(words_split(&arena, line.text, &words, NULL), 0);
    assert_int_equal(words.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(words.argv[i], argv[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blanks_separate_and_quotes_keep_together),
        cmocka_unit_test(backslashes_mean_in_quotes_what_they_mean_to_a_shell),
        cmocka_unit_test(an_unclosed_quote_is_refused_with_its_position),
        cmocka_unit_test(shell_syntax_is_noted_only_where_a_shell_would_see_it),
        cmocka_unit_test(a_first_word_that_only_a_shell_knows_needs_one),
        cmocka_unit_test(a_command_without_a_shell_refuses_shell_syntax_and_names_the_remedy),
        cmocka_unit_test(without_a_shell_a_question_mark_and_brackets_are_literal),
        cmocka_unit_test(a_shell_gets_the_text_untouched),
        cmocka_unit_test(an_argv_is_quoted_so_that_it_splits_into_itself),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    arena_deinit(&arena);
    return r;
}
