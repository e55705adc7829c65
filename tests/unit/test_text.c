/* Promises of base/text.h: hostile names cannot drive the terminal. */
#include "unit.h"

#include "base/text.h"
#include "capture.h"

static void prints(const char *bytes, size_t len, const char *expected)
{
    struct capture capture;
    capture_begin(&capture);
    text_print(capture.out, (struct str){bytes, len});
    assert_string_equal(capture_text(&capture), expected);
    assert_int_equal(text_width((struct str){bytes, len}), text_width(str_from(expected)));
    capture_end(&capture);
}

static void escape_sequences_and_controls_are_shown_not_sent(void **state)
{
    (void)state;
    prints("\033[31mred", 8, "\\x1b[31mred");
    prints("a\nb\tc\rd", 7, "a\\nb\\tc\\rd");
    prints("x\0y", 3, "x\\x00y");
    prints("\x7f", 1, "\\x7f");
    prints("\xc2\x9b", 2, "\\xc2\\x9b"); /* C1 control sequence introducer */
}

static void invalid_utf8_is_shown_byte_by_byte(void **state)
{
    (void)state;
    prints("\xff", 1, "\\xff");
    prints("\xc0\xaf", 2, "\\xc0\\xaf");                   /* overlong slash */
    prints("\xed\xa0\x80", 3, "\\xed\\xa0\\x80");          /* surrogate */
    prints("\xe2\x82", 2, "\\xe2\\x82");                   /* cut off */
    prints("\xf5\x80\x80\x80", 4, "\\xf5\\x80\\x80\\x80"); /* past U+10FFFF */
    prints("\xe2\x80\xae"
           "x",
           4, "\\xe2\\x80\\xaex"); /* right-to-left override */
}

static void ordinary_text_of_any_language_passes(void **state)
{
    (void)state;
    prints("naïve → 数", strlen("naïve → 数"), "naïve → 数");
    assert_int_equal(text_width(STR("naïve")), 5);
    assert_int_equal(text_width(STR("数")), 2);
    assert_int_equal(text_width(STR("e\xcc\x81")), 1); /* e with a combining accent */
}

static void fitting_never_cuts_a_character(void **state)
{
    (void)state;
    struct str text = STR("ab数c");
    assert_int_equal(text_fit(text, 2), 2);
    assert_int_equal(text_fit(text, 3), 2);
    assert_int_equal(text_fit(text, 4), 5);
    assert_int_equal(text_fit(text, 100), text.len);
    assert_int_equal(text_fit(text, 0), 0);
}

static void safe(const char *bytes, size_t len, size_t size, const char *expected)
{
    char buffer[64];
    memset(buffer, '#', sizeof(buffer));
    struct str text = text_safe((struct str){bytes, len}, buffer, size);
    assert_string_equal(text.data, expected);
    assert_int_equal(text.len, strlen(expected));
    assert_int_equal(buffer[size], '#'); /* not a byte more than allowed */
}

static void safe_text_in_memory_is_what_is_printed_and_ends_with_an_ellipsis(void **state)
{
    (void)state;
    safe("a\033[2J\n\xff", 7, 40, "a\\x1b[2J\\n\\xff");
    safe("x\0y", 3, 40, "x\\x00y");
    safe("\xef\xbf\xbf", 3, 40, "\\xef\\xbf\\xbf"); /* XML refuses it */
    safe("abcdefgh", 8, 9, "abcdefgh");
    safe("abcdefgh", 8, 8, "abcd…");
    safe("数数数数", 12, 10, "数数…");
    safe("abc\033\033", 5, 10, "abc…"); /* an escape is not cut in two */
    safe("abc", 3, 3, "ab");            /* too small for the ellipsis: still ended */
    safe("abc", 3, 1, "");
    safe("", 0, 5, "");
    assert_int_equal(text_safe(STR("abc"), NULL, 0).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escape_sequences_and_controls_are_shown_not_sent),
        cmocka_unit_test(invalid_utf8_is_shown_byte_by_byte),
        cmocka_unit_test(ordinary_text_of_any_language_passes),
        cmocka_unit_test(fitting_never_cuts_a_character),
        cmocka_unit_test(safe_text_in_memory_is_what_is_printed_and_ends_with_an_ellipsis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
