#include "unit.h"

#include "analyze/time_range.h"
#include "base/clock.h"

#include <errno.h>

static void seconds_durations_and_percent(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t from_ms, to_ms;
    } cases[] = {
        {"1.5..3", 1500, 3000}, {"500ms..2s", 500, 2000}, {"10%..20%", 1000, 2000},
        {"..2", 0, 2000},       {"50%..", 5000, 10000},   {" 1 .. 2 ", 1000, 2000},
        {"..", 0, 10000},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t from_ns = 1, to_ns = 1;
        struct why why = {0};
        assert_int_equal(time_range_parse(cases[i].text, 10 * NS_PER_SEC, &from_ns, &to_ns, &why),
                         0);
        assert_true(from_ns == cases[i].from_ms * NS_PER_MS);
        assert_true(to_ns == cases[i].to_ms * NS_PER_MS);
    }
}

static void what_is_no_range_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "1", "1-2", "a..b", "3..1", "2..2", "0%..101%", "-1..2"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint64_t from_ns = 42, to_ns = 43;
        struct why why = {0};
        assert_int_equal(time_range_parse(bad[i], NS_PER_SEC, &from_ns, &to_ns, &why), -EINVAL);
        assert_true(why.remedy[0] != '\0');
        assert_int_equal(from_ns, 42);
        assert_int_equal(to_ns, 43);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seconds_durations_and_percent),
        cmocka_unit_test(what_is_no_range_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
