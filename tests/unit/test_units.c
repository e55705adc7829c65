/* Promises of base/units.h and base/clock.h. */
#include "unit.h"

#include "base/clock.h"
#include "base/units.h"

#include <errno.h>

static void durations_are_parsed_with_their_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {
        {"10s", 10000000000},  {"500ms", 500000000}, {"2m", 120000000000}, {"1h", 3600000000000},
        {"1.5 s", 1500000000}, {"7", 7000000000},    {"20us", 20000},      {"0", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t ns = 1;
        assert_int_equal(units_parse_duration(str_from(cases[i].text), &ns), 0);
        assert_true(ns == cases[i].ns);
    }
    uint64_t ns = 5;
    assert_true(units_parse_duration(STR("ten"), &ns) < 0);
    assert_true(units_parse_duration(STR("10 parsecs"), &ns) < 0);
    assert_true(units_parse_duration(STR("-1s"), &ns) < 0);
    assert_true(units_parse_duration(STR(""), &ns) < 0);
    assert_int_equal(units_parse_duration(STR("99999999999h"), &ns), -ERANGE);
    assert_int_equal(ns, 5);
}

static void sizes_tell_binary_from_decimal(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    assert_int_equal(units_parse_size(STR("512KiB"), &bytes), 0);
    assert_int_equal(bytes, 512 * 1024);
    assert_int_equal(units_parse_size(STR("1MB"), &bytes), 0);
    assert_int_equal(bytes, 1000000);
    assert_int_equal(units_parse_size(STR("64k"), &bytes), 0);
    assert_int_equal(bytes, 65536);
    assert_true(units_parse_size(STR("1 furlong"), &bytes) < 0);
}

static void percentages_with_and_without_the_sign(void **state)
{
    (void)state;
    double percent = 0;
    assert_int_equal(units_parse_percent(STR("10%"), &percent), 0);
    assert_true(percent == 10);
    assert_int_equal(units_parse_percent(STR("2.5"), &percent), 0);
    assert_true(percent == 2.5);
    assert_true(units_parse_percent(STR("%"), &percent) < 0);
}

static void numbers_are_printed_as_people_write_them(void **state)
{
    (void)state;
    char text[48];
    assert_string_equal(units_format(0, UNIT_BYTES, text, sizeof(text)), "0 B");
    assert_string_equal(units_format(1536, UNIT_BYTES, text, sizeof(text)), "1.50 KiB");
    assert_string_equal(units_format(1023.9 * 1024, UNIT_BYTES, text, sizeof(text)), "1.00 MiB");
    assert_string_equal(units_format(999, UNIT_NS, text, sizeof(text)), "999 ns");
    assert_string_equal(units_format(12345678, UNIT_NS, text, sizeof(text)), "12.3 ms");
    assert_string_equal(units_format(1234.5, UNIT_MS, text, sizeof(text)), "1.23 s");
    assert_string_equal(units_format(-2500, UNIT_NS, text, sizeof(text)), "-2.50 us");
    assert_string_equal(units_format(12.34, UNIT_PERCENT, text, sizeof(text)), "12.3%");
    assert_string_equal(units_format(1234567, UNIT_COUNT, text, sizeof(text)), "1,234,567");
    assert_string_equal(units_format(-999, UNIT_COUNT, text, sizeof(text)), "-999");
    assert_string_equal(units_format(0.25, UNIT_NONE, text, sizeof(text)), "0.25");
}

static void clocks_go_forward(void **state)
{
    (void)state;
    uint64_t start = clock_mono_ns();
    clock_sleep_ns(2 * NS_PER_MS);
    assert_true(clock_mono_ns() - start >= 2 * NS_PER_MS);
    char text[32];
    clock_format_utc(0, text, sizeof(text));
    assert_string_equal(text, "1970-01-01T00:00:00Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_parsed_with_their_unit),
        cmocka_unit_test(sizes_tell_binary_from_decimal),
        cmocka_unit_test(percentages_with_and_without_the_sign),
        cmocka_unit_test(numbers_are_printed_as_people_write_them),
        cmocka_unit_test(clocks_go_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
