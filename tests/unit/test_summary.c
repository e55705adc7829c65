/* Promises of stats/summary.h, against answers worked out by hand. */
#include "unit.h"

#include "stats/summary.h"

#include <errno.h>
#include <math.h>

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static void percentiles_interpolate_between_neighbours(void **state)
{
    (void)state;
    const double sorted[] = {10, 20, 30, 40};
    NEAR(percentile_sorted(sorted, 4, 0), 10);
    NEAR(percentile_sorted(sorted, 4, 0.5), 25);    /* position 1.5 */
    NEAR(percentile_sorted(sorted, 4, 0.95), 38.5); /* position 2.85 */
    NEAR(percentile_sorted(sorted, 4, 1), 40);
    NEAR(percentile_sorted(sorted, 1, 0.99), 10);
}

static void the_interval_of_the_median_covers_95_percent(void **state)
{
    (void)state;
    /* From tables of the binomial: n=6: P(miss) = 2/64 = 3.1%; n=5: 2/32 = 6.3%, too much.
     * n=20: ranks 6 and 15, coverage 95.86%; n=10: 2 and 9, 97.85%; n=100: 40 and 61, 96.48%. */
    size_t low = 77, high = 77;
    assert_int_equal(median_interval_ranks(5, &low, &high), -ERANGE);
    assert_int_equal(low, 77);
    const size_t expected[][3] = {{6, 1, 6}, {10, 2, 9}, {20, 6, 15}, {100, 40, 61}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(median_interval_ranks(expected[i][0], &low, &high), 0);
        assert_int_equal(low, expected[i][1]);
        assert_int_equal(high, expected[i][2]);
    }
}

static void a_summary_of_ten_runs(void **state)
{
    (void)state;
    /* Sorted: 1 2 3 4 5 6 7 8 9 100. mean 14.5, median 5.5; distances from it
     * 0.5 0.5 1.5 1.5 2.5 2.5 3.5 3.5 4.5 94.5: MAD 2.5. */
    const double runs[] = {1, 3, 2, 5, 4, 100, 7, 6, 9, 8};
    struct summary s;
    assert_int_equal(summary_make(runs, 10, &s), 0);
    NEAR(s.min, 1);
    NEAR(s.max, 100);
    NEAR(s.mean, 14.5);
    NEAR(s.median, 5.5);
    NEAR(s.mad, 2.5);
    NEAR(s.stddev, sqrt(8182.5 / 9)); /* the squares sum to 10285; less 10 * 14.5^2 */
    NEAR(s.p95, 9 + 0.55 * 91);
    assert_false(s.p95_carried);
    assert_true(s.has_interval);
    NEAR(s.median_low, 2);
    NEAR(s.median_high, 9);
    assert_int_equal(s.outliers, 1);
    /* first third {1,3,2}, last third {6,9,8}. */
    NEAR(s.drift_percent, 300);
}

static void one_run_has_no_interval_no_spread_and_no_drift(void **state)
{
    (void)state;
    const double one = 42;
    struct summary s;
    assert_int_equal(summary_make(&one, 1, &s), 0);
    NEAR(s.median, 42);
    assert_false(s.has_interval);
    assert_true(isnan(s.stddev) && isnan(s.mad) && isnan(s.cv_percent));
    assert_int_equal(s.outliers, 0);
    assert_true(isnan(s.drift_percent));
}

static void nothing_and_nan_are_refused(void **state)
{
    (void)state;
    struct summary s = {.count = 7};
    const double bad[] = {1, NAN};
    assert_int_equal(summary_make(bad, 0, &s), -EINVAL);
    assert_int_equal(summary_make(bad, 2, &s), -EINVAL);
    assert_int_equal(s.count, 7);
}

static void all_equal_runs_have_no_spread(void **state)
{
    (void)state;
    const double runs[] = {3, 3, 3, 3, 3, 3, 3};
    struct summary s;
    assert_int_equal(summary_make(runs, 7, &s), 0);
    NEAR(s.cv_percent, 0);
    NEAR(s.drift_percent, 0);
    assert_int_equal(s.outliers, 0);
    NEAR(s.median_low, 3);
    NEAR(s.median_high, 3);
}

static void the_bootstrap_repeats_itself_and_brackets_the_median(void **state)
{
    (void)state;
    double runs[30];
    for (size_t i = 0; i < 30; i++)
        runs[i] = 100 + (double)((i * 7) % 30);
    double low, high, low2, high2;
    assert_int_equal(median_bootstrap(runs, 30, 1, &low, &high), 0);
    assert_int_equal(median_bootstrap(runs, 30, 1, &low2, &high2), 0);
    assert_true(low == low2 && high == high2);
    assert_true(low < 114.5 && high > 114.5);
    /* The order-statistic ranks for n=30 are 10 and 21: values 109 and 120. The
     * bootstrap must land near: within two ranks. */
    assert_true(fabs(low - 109) <= 2 && fabs(high - 120) <= 2);
    assert_int_equal(median_bootstrap(runs, 0, 1, &low, &high), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_interpolate_between_neighbours),
        cmocka_unit_test(the_interval_of_the_median_covers_95_percent),
        cmocka_unit_test(a_summary_of_ten_runs),
        cmocka_unit_test(one_run_has_no_interval_no_spread_and_no_drift),
        cmocka_unit_test(nothing_and_nan_are_refused),
        cmocka_unit_test(all_equal_runs_have_no_spread),
        cmocka_unit_test(the_bootstrap_repeats_itself_and_brackets_the_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
