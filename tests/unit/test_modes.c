/* Promises of stats/modes.h. */
#include "unit.h"

#include "stats/modes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static double normal(void)
{
    return sqrt(-2 * log(1 - drand48())) * cos(2 * M_PI * drand48());
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Evenly spaced values are as flat as can be: the dip is its least, 1/(2n). Half of them at
 * one place and half at another: the nearest single hump misses by a quarter. Three at 0 and
 * one at 1: a hump at 0 with a straight line to 1 misses the one by half a step of it, 1/8. */
static void the_dip_is_as_worked_by_hand(void **state)
{
    (void)state;
    const double even[] = {1, 2, 3, 4, 5}, halves[] = {0, 0, 0, 1, 1, 1}, one[] = {0, 0, 0, 1};
    assert_true(fabs(dip_of_sorted(even, 5) - 0.1) < 1e-12);
    assert_true(fabs(dip_of_sorted(halves, 6) - 0.25) < 1e-12);
    assert_true(fabs(dip_of_sorted(one, 4) - 0.125) < 1e-12);
    assert_true(fabs(dip_of_sorted(even, 1) - 0.5) < 1e-12);
}

/* Hartigan and Hartigan (1985), table 1: for 50 flat values the dip passes 0.0702 in 5% of
 * the samples. 2000 samples know that share to half a percent. */
static void the_dip_of_flat_samples_follows_the_published_table(void **state)
{
    (void)state;
    srand48(3);
    size_t beyond = 0, claimed = 0;
    for (int t = 0; t < 2000; t++) {
        double values[50];
        for (size_t i = 0; i < 50; i++)
            values[i] = drand48();
        struct modes modes = {0};
        assert_int_equal(modes_find(values, 50, &modes), 0);
        claimed += modes.two;
        qsort(values, 50, sizeof(*values), compare);
        beyond += dip_of_sorted(values, 50) > 0.0702;
    }
    assert_in_range(beyond, 60, 140); /* 100, four standard deviations */
    assert_in_range(claimed, 0, 20);  /* 1% at most */
}

static void two_ways_to_run_are_found_and_described(void **state)
{
    (void)state;
    srand48(5);
    double values[60];
    for (size_t i = 0; i < 60; i++)
        values[i] = (i % 3 ? 10 : 14) + 0.3 * normal();
    struct modes modes = {0};
    assert_int_equal(modes_find(values, 60, &modes), 0);
    assert_true(modes.two);
    assert_true(fabs(modes.low - 10) < 0.5 && fabs(modes.high - 14) < 0.5);
    assert_true(fabs(modes.low_share - 2.0 / 3) < 0.02);
}

static void one_hump_with_a_tail_is_one(void **state)
{
    (void)state;
    srand48(6);
    size_t claimed = 0;
    for (int t = 0; t < 300; t++) {
        double values[100];
        for (size_t i = 0; i < 100; i++)
            values[i] = 10 - log(1 - drand48());
        struct modes modes = {0};
        assert_int_equal(modes_find(values, 100, &modes), 0);
        claimed += modes.two;
    }
    assert_in_range(claimed, 0, 3);
}

static void humps_that_do_not_matter_are_not_claimed(void **state)
{
    (void)state;
    double near[100], rare[100];
    for (size_t i = 0; i < 100; i++) {
        near[i] = i % 2 ? 10 : 10.2;                   /* 2% apart */
        rare[i] = i % 20 ? 10 + 0.01 * (double)i : 30; /* 5% of the runs */
    }
    struct modes modes = {0};
    assert_int_equal(modes_find(near, 100, &modes), 0);
    assert_false(modes.two);
    assert_int_equal(modes_find(rare, 100, &modes), 0);
    assert_false(modes.two);
    assert_int_equal(modes_find(near, 0, &modes), -EINVAL);
    near[3] = NAN;
    assert_int_equal(modes_find(near, 100, &modes), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_dip_is_as_worked_by_hand),
        cmocka_unit_test(the_dip_of_flat_samples_follows_the_published_table),
        cmocka_unit_test(two_ways_to_run_are_found_and_described),
        cmocka_unit_test(one_hump_with_a_tail_is_one),
        cmocka_unit_test(humps_that_do_not_matter_are_not_claimed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
