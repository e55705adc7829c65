/* Promises of stats/series.h: small cases worked by hand, rates by simulation. */
#include "unit.h"

#include "base/macros.h"
#include "stats/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static void a_rising_series_has_rank_correlation_one(void **state)
{
    (void)state;
    double values[16];
    for (size_t i = 0; i < 16; i++)
        values[i] = exp((double)i); /* any rise, not only a straight one */
    struct series_trend trend = {0};
    assert_int_equal(series_trend(values, 16, &trend), 0);
    assert_true(fabs(trend.rho - 1) < 1e-12);
    assert_true(fabs(trend.z - sqrt(15)) < 1e-12);
    for (size_t i = 0; i < 16; i++)
        values[i] = -values[i];
    assert_int_equal(series_trend(values, 16, &trend), 0);
    assert_true(fabs(trend.rho + 1) < 1e-12);
}

/* Ten runs in the order 2 1 4 3 6 5 8 7 10 9: each is one place off, so by Spearman's formula
 * rho = 1 - 6*10/(10*99) = 31/33. Lag 1: deviations -3.5 -4.5 -1.5 -2.5 .5 -.5 2.5 1.5 4.5 3.5;
 * products of neighbours 15.75+6.75+3.75-1.25-.25-1.25+3.75+6.75+15.75 = 49.75 over 82.5. */
static void ranks_are_correlated_as_worked_by_hand(void **state)
{
    (void)state;
    const double values[] = {2, 1, 4, 3, 6, 5, 8, 7, 10, 9};
    struct series_trend trend = {0};
    struct series_dependence dependence = {0};
    assert_int_equal(series_trend(values, 10, &trend), 0);
    assert_true(fabs(trend.rho - 31.0 / 33) < 1e-12);
    assert_int_equal(series_dependence(values, 10, &dependence), 0);
    assert_true(fabs(dependence.lag1 - 49.75 / 82.5) < 1e-12);
}

static void runs_that_alternate_depend_on_each_other(void **state)
{
    (void)state;
    double values[40];
    for (size_t i = 0; i < 40; i++)
        values[i] = i % 2 ? 10 : 12;
    struct series_dependence dependence = {0};
    assert_int_equal(series_dependence(values, 40, &dependence), 0);
    assert_true(dependence.lag1 < -0.9 && -dependence.lag1 > dependence.limit);
}

static void independent_runs_are_called_dependent_or_trending_as_rarely_as_promised(void **state)
{
    (void)state;
    srand48(7);
    size_t dependent = 0, trending = 0, trials = 2000;
    for (size_t t = 0; t < trials; t++) {
        double values[60];
        for (size_t i = 0; i < 60; i++)
            values[i] = -log(drand48());
        struct series_dependence dependence = {0};
        struct series_trend trend = {0};
        assert_int_equal(series_dependence(values, 60, &dependence), 0);
        assert_int_equal(series_trend(values, 60, &trend), 0);
        dependent += fabs(dependence.lag1) > dependence.limit;
        trending += fabs(trend.z) > 2.576;
    }
    /* 1% of 2000 is 20; 40 is more than four standard deviations above it. */
    assert_in_range(dependent, 2, 40);
    assert_in_range(trending, 2, 40);
}

static void equal_or_few_runs_say_nothing(void **state)
{
    (void)state;
    const double values[12] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    struct series_trend trend = {0};
    struct series_dependence dependence = {0};
    assert_int_equal(series_trend(values, 12, &trend), 0);
    assert_true(isnan(trend.rho) && isnan(trend.z));
    assert_int_equal(series_dependence(values, 12, &dependence), 0);
    assert_true(isnan(dependence.lag1));
    assert_int_equal(series_trend(values, 9, &trend), 0);
    assert_true(isnan(trend.rho));
    assert_int_equal(series_trend(values, 0, &trend), -EINVAL);
    const double bad[] = {1, NAN};
    assert_int_equal(series_dependence(bad, 2, &dependence), -EINVAL);
}

static void a_series_that_still_falls_is_still_warming_up(void **state)
{
    (void)state;
    const double falling[] = {100, 80, 60, 50, 40, 30}, calm[] = {100, 50, 50, 50, 51, 49.9, 50};
    const double one_late[] = {50, 50, 50, 50, 90, 50};
    assert_false(series_settled(falling, 6, 0.02));
    assert_false(series_settled(falling, 5, 0.9));
    assert_true(series_settled(calm, 7, 0.02));
    assert_true(series_settled(one_late, 6, 0.02));
    assert_true(series_settled(falling, 6, 0.6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rising_series_has_rank_correlation_one),
        cmocka_unit_test(ranks_are_correlated_as_worked_by_hand),
        cmocka_unit_test(runs_that_alternate_depend_on_each_other),
        cmocka_unit_test(independent_runs_are_called_dependent_or_trending_as_rarely_as_promised),
        cmocka_unit_test(equal_or_few_runs_say_nothing),
        cmocka_unit_test(a_series_that_still_falls_is_still_warming_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
