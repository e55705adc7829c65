/* Promises of stats/ranks.h, holm.h, random.h and resample.h, against answers worked out by hand.
 */
#include "unit.h"

#include "stats/holm.h"
#include "stats/random.h"
#include "stats/ranks.h"
#include "stats/resample.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static void ties_share_their_rank(void **state)
{
    (void)state;
    /* Sorted 5 7 7 9: ranks 1, 2.5, 2.5, 4; doubled 2 5 5 8. */
    const double values[] = {7, 9, 5, 7};
    uint32_t ranks[4];
    assert_int_equal(ranks_doubled(values, 4, ranks), 0);
    assert_int_equal(ranks[0], 5);
    assert_int_equal(ranks[1], 8);
    assert_int_equal(ranks[2], 2);
    assert_int_equal(ranks[3], 5);
    const double bad[] = {1, NAN};
    assert_int_equal(ranks_doubled(bad, 2, ranks), -EINVAL);
    assert_int_equal(ranks_doubled(bad, 0, ranks), -EINVAL);
}

static double sign_flip(const double *values, size_t count)
{
    double p = -1;
    assert_int_equal(ranks_sign_flip(values, count, 1, &p), 0);
    return p;
}

static void sign_flips_are_counted_exactly(void **state)
{
    (void)state;
    /* All six positive: only this case and its mirror are as uneven, 2 of 64. */
    const double all_positive[] = {6, 1, 3, 2, 5, 4};
    NEAR(sign_flip(all_positive, 6), 2.0 / 64);
    /* Ranks 1 2 3, plus on 1 and 3: sum 4, middle 3. The sums of the 8 cases are
     * 0 1 2 3 3 4 5 6; all but the two 3s are as far from the middle. */
    const double mixed[] = {1, -2, 3};
    NEAR(sign_flip(mixed, 3), 6.0 / 8);
    /* Three equal sizes: any two against one are as uneven as it gets, bar all three. */
    const double tied[] = {1, 1, -1};
    NEAR(sign_flip(tied, 3), 1);
    /* Zeros say nothing. */
    const double zeros[] = {0, 1, 0, 2, 0, 3, 0};
    NEAR(sign_flip(zeros, 7), 2.0 / 8);
    const double nothing[] = {0, 0};
    NEAR(sign_flip(nothing, 2), 1);
}

static void many_flips_are_drawn_and_never_give_zero(void **state)
{
    (void)state;
    double values[RANKS_EXACT_BLOCKS + 100];
    for (size_t i = 0; i < 300; i++)
        values[i] = 1 + (double)i;
    /* All 300 positive: no drawn flip comes near, only the one that was seen. */
    double p = sign_flip(values, 300);
    assert_true(p > 0 && p < 1e-4);
    /* Alternating signs of neighbouring sizes: as even as it gets. */
    for (size_t i = 0; i < 300; i += 2)
        values[i] = -values[i];
    assert_true(sign_flip(values, 300) > 0.8);
    /* Exact and drawn agree where one takes over from the other: the same shape at 200 and at
     * 300 blocks, with plus ranks 10% above their middle. z = 0.1 * (n(n+1)/4) / sqrt(n(n+1)
     * (2n+1)/24): 1.223 for 200 and 1.498 for 300; p 0.221 and 0.134 by the normal distribution,
     * which is good to 0.005 here; drawing 20000 adds 0.003 (one deviation). */
    const size_t counts[] = {200, 300};
    const double expected[] = {0.2213, 0.1340};
    for (size_t k = 0; k < 2; k++) {
        size_t n = counts[k];
        double target = 1.1 * (double)(n * (n + 1)) / 4, sum = 0;
        for (size_t i = n; i-- > 0;) {
            bool plus = sum + (double)(i + 1) <= target;
            sum += plus ? (double)(i + 1) : 0;
            values[i] = plus ? (double)(i + 1) : -(double)(i + 1);
        }
        assert_true(fabs(sum - target) < 1);
        assert_true(fabs(sign_flip(values, n) - expected[k]) < 0.015);
    }
}

static double two_samples(const double *a, size_t a_count, const double *b, size_t b_count)
{
    double p = -1;
    assert_int_equal(ranks_two_samples(a, a_count, b, b_count, &p), 0);
    return p;
}

static void small_samples_are_compared_exactly(void **state)
{
    (void)state;
    /* Complete separation of 3 and 3: this and its mirror of C(6,3) = 20. */
    const double low[] = {1, 2, 3}, high[] = {4, 5, 6};
    NEAR(two_samples(low, 3, high, 3), 2.0 / 20);
    NEAR(two_samples(high, 3, low, 3), 2.0 / 20);
    NEAR(two_samples(low, 2, high, 3), 2.0 / 10);
    /* With ties: doubled ranks 4 4 4 9 9 14 14 14; A has 4 4 4 9 = 21, the least there is: 2
     * ways (either 9), and 2 ways to the mirror 51, of C(8,4) = 70. */
    const double a[] = {1, 1, 1, 2}, b[] = {3, 3, 3, 2};
    NEAR(two_samples(a, 4, b, 4), 4.0 / 70);
    const double same[] = {5, 5, 5};
    NEAR(two_samples(same, 3, same, 3), 1);
}

static void large_samples_use_the_normal_with_ties_and_continuity(void **state)
{
    (void)state;
    double a[30], b[30];
    for (size_t i = 0; i < 30; i++) {
        a[i] = 1 + (double)i;
        b[i] = 31 + (double)i;
    }
    /* U = 0, z = (450 - 0.5) / sqrt(900 * 61 / 12) = 6.6455. */
    double z = 449.5 / sqrt(900.0 * 61 / 12);
    NEAR(two_samples(a, 30, b, 30) * 1e10, erfc(z / sqrt(2)) * 1e10);
    /* A: 26 ones. B: 13 ones, 13 twos. U = 169, mean 338, ties 39^3-39 + 13^3-13 = 61464,
     * variance 676/12 * (53 - 61464/(52*51)) = 1680.06, z = 168.5/40.9885 = 4.1109. */
    for (size_t i = 0; i < 26; i++) {
        a[i] = 1;
        b[i] = i < 13 ? 1 : 2;
    }
    assert_true(fabs(two_samples(a, 26, b, 26) - 3.941e-5) < 1e-8);
    NEAR(two_samples(a, 26, a, 26), 1);
}

static void empty_and_unordered_values_are_refused(void **state)
{
    (void)state;
    const double bad[] = {1, NAN, 2};
    double p = 7;
    assert_int_equal(ranks_sign_flip(bad, 3, 1, &p), -EINVAL);
    assert_int_equal(ranks_sign_flip(bad, 0, 1, &p), -EINVAL);
    assert_int_equal(ranks_two_samples(bad, 3, bad, 1, &p), -EINVAL);
    assert_int_equal(ranks_two_samples(bad, 1, bad, 0, &p), -EINVAL);
    NEAR(p, 7);
}

static void holm_steps_down(void **state)
{
    (void)state;
    /* 0.005*4, 0.01*3, 0.03*2, and 0.04*1 raised to the one before. */
    double p[] = {0.01, 0.04, 0.03, 0.005};
    assert_int_equal(holm_adjust(p, 4, p), 0);
    NEAR(p[0], 0.03);
    NEAR(p[1], 0.06);
    NEAR(p[2], 0.06);
    NEAR(p[3], 0.02);
    /* No answer is no question: 0.03*2 and 0.5. */
    double gaps[] = {NAN, 0.5, 0.03}, adjusted[3];
    assert_int_equal(holm_adjust(gaps, 3, adjusted), 0);
    assert_true(isnan(adjusted[0]));
    NEAR(adjusted[1], 0.5);
    NEAR(adjusted[2], 0.06);
    double large[] = {0.6, 0.7};
    assert_int_equal(holm_adjust(large, 2, large), 0);
    NEAR(large[0], 1);
    double bad[] = {0.5, 1.5};
    assert_int_equal(holm_adjust(bad, 2, bad), -EINVAL);
    NEAR(bad[0], 0.5);
    assert_int_equal(holm_adjust(bad, HOLM_MAX + 1, bad), -E2BIG);
    assert_int_equal(holm_adjust(bad, 0, bad), 0);
}

static void a_seed_gives_the_same_draws_everywhere(void **state)
{
    (void)state;
    /* The reference values of splitmix64 for the seed 1234567. */
    uint64_t seed = 1234567;
    assert_true(random_next(&seed) == 6457827717110365317u);
    assert_true(random_next(&seed) == 3203168211198807973u);
    uint64_t counts[7] = {0};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < 70000; i++) {
        counts[random_below(&seed, 7)]++;
        double u = random_unit(&seed), z = random_normal(&seed);
        assert_true(u >= 0 && u < 1);
        sum += z;
        squares += z * z;
    }
    /* Five deviations: sqrt(70000 * 6/49) = 93; 1/sqrt(70000) = 0.0038; sqrt(2/70000) = 0.0053. */
    for (size_t i = 0; i < 7; i++)
        assert_true(counts[i] > 10000 - 465 && counts[i] < 10000 + 465);
    assert_true(fabs(sum / 70000) < 0.019 && fabs(squares / 70000 - 1) < 0.027);
}

static void drawn_quantiles_are_those_of_the_drawn_values(void **state)
{
    (void)state;
    uint64_t seed = 3;
    double values[40], drawn[60];
    for (size_t i = 0; i < 40; i++)
        values[i] = (double)random_below(&seed, 25); /* with ties */
    struct resample resample;
    assert_int_equal(resample_init(&resample, values, 40), 0);
    for (size_t n = 1; n <= 60; n++) {
        resample_clear(&resample);
        for (size_t i = 0; i < n; i++) {
            size_t index = random_below(&seed, 40);
            resample_add(&resample, index);
            size_t at = i;
            for (; at > 0 && drawn[at - 1] > values[index]; at--)
                drawn[at] = drawn[at - 1];
            drawn[at] = values[index];
        }
        const double shares[] = {0, 0.05, 0.5, 0.95, 1};
        for (size_t k = 0; k < 5; k++)
            NEAR(resample_quantile(&resample, shares[k]), percentile_sorted(drawn, n, shares[k]));
    }
    resample_deinit(&resample);
    resample_deinit(&resample);
    assert_int_equal(resample_init(&resample, values, 0), -EINVAL);
}

static void few_values_get_a_wider_interval(void **state)
{
    (void)state;
    /* t(5; 97.5%) = 2.5706, times sqrt(6/5) = 2.8159: P(Z > 2.8159) = 0.002432. */
    assert_true(fabs(resample_tail(6, 0.95) - 0.002432) < 2e-6);
    assert_true(fabs(resample_tail(100000, 0.95) - 0.025) < 1e-5);
    assert_true(fabs(resample_tail(100000, 0.99) - 0.005) < 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ties_share_their_rank),
        cmocka_unit_test(sign_flips_are_counted_exactly),
        cmocka_unit_test(many_flips_are_drawn_and_never_give_zero),
        cmocka_unit_test(small_samples_are_compared_exactly),
        cmocka_unit_test(large_samples_use_the_normal_with_ties_and_continuity),
        cmocka_unit_test(empty_and_unordered_values_are_refused),
        cmocka_unit_test(holm_steps_down),
        cmocka_unit_test(a_seed_gives_the_same_draws_everywhere),
        cmocka_unit_test(drawn_quantiles_are_those_of_the_drawn_values),
        cmocka_unit_test(few_values_get_a_wider_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
