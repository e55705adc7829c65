/* Changes that were planted are found where they are; noise has none. */
#include "stats/changes.h"
#include "stats/random.h"
#include "unit.h"

#include <errno.h>
#include <math.h>

static void a_step_is_found_where_it_is(void **state)
{
    (void)state;
    double values[60];
    uint64_t random = 11;
    for (size_t i = 0; i < 60; i++)
        values[i] = (i < 37 ? 100 : 105) + 4 * (random_unit(&random) - 0.5);
    struct change changes[CHANGES_MAX];
    assert_int_equal(changes_find(values, 60, 0.01, 1, changes), 1);
    assert_int_equal(changes[0].at, 37);
    assert_true(changes[0].p <= 0.01);
    assert_true(fabs(changes[0].before - 100) < 1 && fabs(changes[0].after - 105) < 1);
}

static void two_steps_are_found_with_the_medians_between_them(void **state)
{
    (void)state;
    double values[90];
    uint64_t random = 5;
    for (size_t i = 0; i < 90; i++)
        values[i] = (i < 30 ? 10 : i < 60 ? 13 : 9) + 0.5 * random_normal(&random);
    struct change changes[CHANGES_MAX];
    assert_int_equal(changes_find(values, 90, 0.01, 1, changes), 2);
    assert_in_range(changes[0].at, 29, 31);
    assert_in_range(changes[1].at, 59, 61);
    assert_true(fabs(changes[0].after - 13) < 0.5);
    assert_true(changes[0].after == changes[1].before);
}

static void an_outlier_is_no_change(void **state)
{
    (void)state;
    double values[40];
    uint64_t random = 9;
    for (size_t i = 0; i < 40; i++)
        values[i] = 100 + random_normal(&random);
    values[20] = 300;
    struct change changes[CHANGES_MAX];
    assert_int_equal(changes_find(values, 40, 0.01, 1, changes), 0);
}

/* 200 series of pure noise at p 0.01: 2 false alarms are expected; 9 or more has a
 * probability below 1 in 4000 (Poisson). The seed is fixed. */
static void noise_is_rarely_called_a_change(void **state)
{
    (void)state;
    int alarms = 0;
    for (uint64_t series = 0; series < 200; series++) {
        double values[30];
        uint64_t random = series * 77 + 1;
        for (size_t i = 0; i < 30; i++)
            values[i] = 50 + 5 * random_normal(&random);
        struct change changes[CHANGES_MAX];
        int found = changes_find(values, 30, 0.01, series, changes);
        assert_true(found >= 0);
        alarms += found > 0;
    }
    assert_in_range(alarms, 0, 8);
}

static void what_cannot_be_searched_is_refused_or_has_none(void **state)
{
    (void)state;
    double values[CHANGES_VALUES_MAX + 1] = {0};
    struct change changes[CHANGES_MAX];
    assert_int_equal(changes_find(values, 0, 0.01, 1, changes), 0);
    assert_int_equal(changes_find(values, 5, 0.01, 1, changes), 0);
    assert_int_equal(changes_find(values, 50, 0.01, 1, changes), 0); /* all equal */
    assert_int_equal(changes_find(values, CHANGES_VALUES_MAX + 1, 0.01, 1, changes), -EINVAL);
    assert_int_equal(changes_find(values, 50, 0, 1, changes), -EINVAL);
    values[3] = NAN;
    assert_int_equal(changes_find(values, 50, 0.01, 1, changes), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_found_where_it_is),
        cmocka_unit_test(two_steps_are_found_with_the_medians_between_them),
        cmocka_unit_test(an_outlier_is_no_change),
        cmocka_unit_test(noise_is_rarely_called_a_change),
        cmocka_unit_test(what_cannot_be_searched_is_refused_or_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
