/* Promises of base/str.h. */
#include "unit.h"

#include "base/str.h"

#include <errno.h>

static void cutting_ends_and_loses_nothing(void **state)
{
    (void)state;
    struct str rest = STR("a,b,,c");
    const char *expected[] = {"a", "b", "", "c"};
    size_t count = 0;
    while (rest.len > 0) {
        assert_true(count < 4);
        assert_true(str_is(str_cut(&rest, ','), expected[count++]));
    }
    assert_int_equal(count, 4);
    assert_int_equal(str_cut(&rest, ',').len, 0);
}

static void words_are_split_at_any_blank(void **state)
{
    (void)state;
    struct str rest = STR("  cpu0\t12  7\n");
    assert_true(str_is(str_word(&rest), "cpu0"));
    assert_true(str_is(str_word(&rest), "12"));
    assert_true(str_is(str_word(&rest), "7"));
    assert_int_equal(str_word(&rest).len, 0);
}

static void trimming_and_matching(void **state)
{
    (void)state;
    assert_true(str_is(str_trim(STR(" \t x y \n")), "x y"));
    assert_int_equal(str_trim(STR(" \n")).len, 0);
    assert_true(str_starts(STR("performance"), "perf"));
    assert_false(str_starts(STR("per"), "perf"));
    assert_true(str_ends(STR("a.whyslow"), ".whyslow"));
    assert_true(str_contains(STR("a b c"), "b"));
    assert_false(str_contains(STR(""), "b"));
    assert_true(str_eq(str_from(NULL), STR("")));
}

static void whole_numbers_are_whole(void **state)
{
    (void)state;
    uint64_t u = 1;
    int64_t i = 1;
    assert_int_equal(str_to_u64(STR("18446744073709551615"), 10, &u), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(str_to_u64(STR("fF"), 16, &u), 0);
    assert_int_equal(u, 255);
    u = 7;
    assert_int_equal(str_to_u64(STR("18446744073709551616"), 10, &u), -ERANGE);
    assert_int_equal(str_to_u64(STR("12x"), 10, &u), -EINVAL);
    assert_int_equal(str_to_u64(STR("-1"), 10, &u), -EINVAL);
    assert_int_equal(str_to_u64(STR(""), 10, &u), -EINVAL);
    assert_int_equal(u, 7);
    assert_int_equal(str_to_i64(STR("-42"), &i), 0);
    assert_int_equal(i, -42);
    assert_int_equal(str_to_i64(STR("--42"), &i), -EINVAL);
    assert_int_equal(str_to_i64(STR("9223372036854775808"), &i), -ERANGE);
}

static void real_numbers_refuse_what_is_none(void **state)
{
    (void)state;
    double d = 3;
    assert_int_equal(str_to_f64(STR("2.5e1"), &d), 0);
    assert_true(d == 25.0);
    assert_int_equal(str_to_f64(STR("2.5s"), &d), -EINVAL);
    assert_int_equal(str_to_f64(STR(" 1"), &d), -EINVAL);
    assert_int_equal(str_to_f64(STR("nan"), &d), -ERANGE);
    assert_int_equal(str_to_f64(STR("inf"), &d), -ERANGE);
    assert_int_equal(str_to_f64(STR("1e999"), &d), -ERANGE);
    assert_true(d == 25.0);
}

static void fields_of_proc_files_are_found_by_whole_key(void **state)
{
    (void)state;
    struct str text = STR("VmPeak:\t  10 kB\nVmRSS:\t 7 kB\nctxt 99\nmodel name\t: Some CPU\n");
    assert_true(str_is(str_field(text, "VmRSS"), "7 kB"));
    assert_true(str_is(str_field(text, "ctxt"), "99"));
    assert_true(str_is(str_field(text, "model name"), "Some CPU"));
    assert_int_equal(str_field(text, "Vm").len, 0);
    assert_int_equal(str_field(text, "absent").len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cutting_ends_and_loses_nothing),
        cmocka_unit_test(words_are_split_at_any_blank),
        cmocka_unit_test(trimming_and_matching),
        cmocka_unit_test(whole_numbers_are_whole),
        cmocka_unit_test(real_numbers_refuse_what_is_none),
        cmocka_unit_test(fields_of_proc_files_are_found_by_whole_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
