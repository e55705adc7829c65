/* Promises of stats/blocks.h, samples.h and ratio.h: small cases by hand, and what intervals and
 * verdicts promise by simulation with a fixed seed, so that the outcome is the same every time. */
#include "unit.h"

#include "stats/blocks.h"
#include "stats/looks.h"
#include "stats/random.h"
#include "stats/samples.h"

#include <errno.h>
#include <math.h>

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static const struct ratio_opts usual = {
    .share = 0.5, .confidence = 0.95, .threshold = 1, .seed = 1};

static void every_block_twice_as_slow(void **state)
{
    (void)state;
    const double a[] = {1, 2, 3, 4, 5, 6, 7}, b[] = {2, 4, 6, 8, 10, 12, 14};
    struct ratio ratio;
    assert_int_equal(blocks_compare(a, b, 7, &usual, &ratio), 0);
    assert_int_equal(ratio.count, 7);
    NEAR(ratio.ratio, 2);
    assert_true(ratio.has_interval);
    NEAR(ratio.low, 2);
    NEAR(ratio.high, 2);
    NEAR(ratio.p, 2.0 / 128); /* all seven the same way, and the mirror */
    /* Against the ratio 2 itself there is no difference left. */
    struct ratio_opts opts = usual;
    opts.threshold = 2;
    assert_int_equal(blocks_compare(a, b, 7, &opts, &ratio), 0);
    NEAR(ratio.p, 1);
    NEAR(ratio.ratio, 2);
}

static void the_estimate_is_the_median_of_the_blocks_ratios(void **state)
{
    (void)state;
    /* Ratios 0.5 1.2 1.1 1.4 3: the median is 1.2, whatever the sizes are. Five blocks have no
     * interval. */
    const double a[] = {10, 1000, 1, 5, 200}, b[] = {5, 1200, 1.1, 7, 600};
    struct ratio ratio;
    assert_int_equal(blocks_compare(a, b, 5, &usual, &ratio), 0);
    NEAR(ratio.ratio, 1.2);
    assert_false(ratio.has_interval);
    assert_int_equal(ratio_verdict(&ratio, 0.01, 0.95), VERDICT_UNKNOWN);
    assert_true(isnan(ratio_detectable(&ratio, 0.01)));
    /* Signed ranks of the logs -0.69 0.18 0.095 0.34 1.10: minus has rank 4 of 15, distance
     * 3.5 from the middle; 14 of the 32 sums of a subset of 1..5 are within 3 of 7.5 (5 to 10:
     * 3+3+3+3+3+3 = 18): p = 1 - 18/32. */
    NEAR(ratio.p, 14.0 / 32);
    /* The other way round everything is mirrored. */
    struct ratio mirrored;
    assert_int_equal(blocks_compare(b, a, 5, &usual, &mirrored), 0);
    NEAR(mirrored.ratio, 1 / 1.2);
    NEAR(mirrored.p, ratio.p);
}

static void six_blocks_give_the_whole_range(void **state)
{
    (void)state;
    /* Few values, wide interval: at six blocks it reaches from the least to the greatest. */
    const double a[] = {1, 1, 1, 1, 1, 1}, b[] = {1.1, 1.2, 1.3, 1.4, 1.5, 1.6};
    struct ratio ratio;
    assert_int_equal(blocks_compare(a, b, 6, &usual, &ratio), 0);
    NEAR(ratio.low, 1.1);
    NEAR(ratio.high, 1.6);
    NEAR(ratio.p, 2.0 / 64);
    assert_int_equal(ratio_verdict(&ratio, 0.01, 0.95), VERDICT_SLOWER);
    assert_int_equal(ratio_verdict(&ratio, 0.15, 0.95), VERDICT_UNKNOWN);
    assert_int_equal(ratio_verdict(&ratio, 0.7, 0.95), VERDICT_EQUIVALENT);
}

static void a_tail_is_the_ratio_of_the_two_tails(void **state)
{
    (void)state;
    /* A is 1 to 40, B the same in another order and times 1.5: p95 is at position 37.05 of
     * each, so the ratio is exactly 1.5 although single blocks differ wildly. */
    double a[40], b[40];
    for (size_t i = 0; i < 40; i++) {
        a[i] = 1 + (double)i;
        b[i] = 1.5 * (1 + (double)((i * 7 + 3) % 40));
    }
    struct ratio_opts opts = usual;
    opts.share = 0.95;
    struct ratio ratio;
    assert_int_equal(blocks_compare(a, b, 40, &opts, &ratio), 0);
    /* Interpolated between logs; 38 and 39 are near enough for 1e-9. */
    NEAR(ratio.ratio, 1.5);
    assert_true(ratio.has_interval && ratio.low < 1.5 && ratio.high > 1.5);
    assert_int_equal(samples_compare(a, 40, b, 40, &opts, &ratio), 0);
    NEAR(ratio.ratio, 1.5);
    assert_true(ratio.p < 0.05);
    /* One less, and the tail is not carried. */
    assert_int_equal(blocks_compare(a, b, 39, &opts, &ratio), 0);
    assert_false(ratio.has_interval);
    assert_int_equal(ratio_count_min(0.95, 0.95), 40);
    assert_int_equal(ratio_count_min(0.99, 0.95), 200);
    assert_int_equal(ratio_count_min(0.5, 0.95), 6);  /* 2/2^6 = 3.1%, 2/2^5 = 6.3% */
    assert_int_equal(ratio_count_min(0.5, 0.99), 8);  /* 2/2^8 = 0.8% */
    assert_int_equal(ratio_count_min(0.5, 0.975), 7); /* 2/2^7 = 1.6% */
}

static void zeros_have_no_ratio_unless_both_are_zero(void **state)
{
    (void)state;
    const double zeros[] = {0, 0, 0, 0, 0, 0}, some[] = {0, 0, 0, 0, 0, 1};
    struct ratio ratio = {.count = 77};
    assert_int_equal(blocks_compare(zeros, some, 6, &usual, &ratio), -EDOM);
    assert_int_equal(ratio.count, 77);
    assert_int_equal(blocks_compare(zeros, zeros, 6, &usual, &ratio), 0);
    NEAR(ratio.ratio, 1);
    NEAR(ratio.p, 1);
    assert_int_equal(ratio_verdict(&ratio, 0.01, 0.95), VERDICT_EQUIVALENT);
    const double ones[] = {1, 1, 1, 1, 1, 1};
    assert_int_equal(samples_compare(zeros, 6, ones, 6, &usual, &ratio), -EDOM);
    assert_int_equal(samples_compare(zeros, 6, zeros, 6, &usual, &ratio), 0);
    NEAR(ratio.ratio, 1);
    const double bad[] = {1, NAN}, negative[] = {1, -1};
    assert_int_equal(blocks_compare(bad, bad, 2, &usual, &ratio), -EINVAL);
    assert_int_equal(blocks_compare(negative, ones, 2, &usual, &ratio), -EINVAL);
    assert_int_equal(blocks_compare(ones, ones, 0, &usual, &ratio), -EINVAL);
    assert_int_equal(samples_compare(ones, 2, bad, 2, &usual, &ratio), -EINVAL);
    assert_int_equal(samples_compare(ones, 2, ones, 0, &usual, &ratio), -EINVAL);
}

static void verdicts_need_the_whole_interval_and_p(void **state)
{
    (void)state;
    const struct {
        double low, high, p;
        enum verdict expected;
    } cases[] = {
        {1.02, 1.04, 0.01, VERDICT_SLOWER},        {0.90, 0.98, 0.01, VERDICT_FASTER},
        {1.005, 1.04, 0.01, VERDICT_UNKNOWN},      {0.98, 0.995, 0.01, VERDICT_UNKNOWN},
        {0.995, 1.005, 0.9, VERDICT_EQUIVALENT},   {1.02, 1.04, 0.06, VERDICT_UNKNOWN},
        {1.001, 1.009, 0.001, VERDICT_EQUIVALENT}, /* surely slower, and too little to matter */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ratio ratio = {.count = 20, .has_interval = true, .low = cases[i].low};
        ratio.high = cases[i].high;
        ratio.p = cases[i].p;
        assert_int_equal(ratio_verdict(&ratio, 0.01, 0.95), cases[i].expected);
    }
}

/* A noisy machine: slow and fast times that fall on both sides of a block, and now and then a
 * run that takes 30% longer. */
static void block_draw(uint64_t *seed, double effect, double *a, double *b)
{
    double machine = exp(0.1 * random_normal(seed));
    *a = machine * exp(0.02 * random_normal(seed) + (random_unit(seed) < 0.1 ? 0.26 : 0));
    *b = machine * exp(0.02 * random_normal(seed) + (random_unit(seed) < 0.1 ? 0.26 : 0)) * effect;
}

/* How often the interval misses the truth, and how often a change is called. */
static void simulate(size_t trials, size_t blocks, double share, double effect, size_t *ret_missed,
                     size_t *ret_called)
{
    uint64_t seed = 20260115;
    double a[64], b[64];
    *ret_missed = *ret_called = 0;
    for (size_t trial = 0; trial < trials; trial++) {
        for (size_t i = 0; i < blocks; i++)
            block_draw(&seed, effect, &a[i], &b[i]);
        struct ratio_opts opts = usual;
        opts.share = share;
        opts.seed = trial;
        struct ratio ratio;
        assert_int_equal(blocks_compare(a, b, blocks, &opts, &ratio), 0);
        *ret_missed += ratio.low > effect || ratio.high < effect;
        enum verdict verdict = ratio_verdict(&ratio, 0, 0.95);
        *ret_called += verdict == VERDICT_FASTER || verdict == VERDICT_SLOWER;
    }
}

static void intervals_cover_and_equals_are_not_called_different(void **state)
{
    (void)state;
    /* 5% of 400 is 20; a deviation of chance is 4.4. Two of them on top are allowed: 7.2%. With
     * no margin at all, the hardest case: a real comparison has 1%. */
    const struct {
        size_t blocks;
        double share;
    } cases[] = {{6, 0.5}, {10, 0.5}, {30, 0.5}, {60, 0.95}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t missed, called;
        simulate(400, cases[i].blocks, cases[i].share, 1, &missed, &called);
        assert_in_range(missed, 0, 29);
        assert_in_range(called, 0, 20);
        /* An effect does not change the cover. */
        simulate(200, cases[i].blocks, cases[i].share, 1.3, &missed, &called);
        assert_in_range(missed, 0, 16);
    }
}

static void separate_samples_cover_too(void **state)
{
    (void)state;
    uint64_t seed = 99;
    size_t missed = 0;
    for (size_t trial = 0; trial < 300; trial++) {
        double a[15], b[20];
        for (size_t i = 0; i < 20; i++)
            b[i] = exp(0.05 * random_normal(&seed)) * 1.1;
        for (size_t i = 0; i < 15; i++)
            a[i] = exp(0.05 * random_normal(&seed));
        struct ratio ratio;
        assert_int_equal(samples_compare(a, 15, b, 20, &usual, &ratio), 0);
        missed += ratio.low > 1.1 || ratio.high < 1.1;
    }
    assert_in_range(missed, 0, 22); /* 15 expected, and two deviations of 3.8 */
}

static void the_smallest_detectable_change_is_detected_four_times_in_five(void **state)
{
    (void)state;
    /* What A/A comparisons call detectable, put in as a true change. */
    uint64_t seed = 5;
    double a[20], b[20], detectable = 0;
    struct ratio ratio;
    enum { TRIALS = 200, BLOCKS = 20 };
    for (size_t pass = 0; pass < 2; pass++) {
        size_t called = 0;
        double sum = 0;
        for (size_t trial = 0; trial < TRIALS; trial++) {
            for (size_t i = 0; i < BLOCKS; i++) {
                a[i] = exp(0.03 * random_normal(&seed));
                b[i] = exp(0.03 * random_normal(&seed)) * (1 + detectable);
            }
            assert_int_equal(blocks_compare(a, b, BLOCKS, &usual, &ratio), 0);
            sum += ratio_detectable(&ratio, 0.01);
            called += ratio_verdict(&ratio, 0.01, 0.95) == VERDICT_SLOWER;
        }
        detectable = sum / TRIALS;
        if (pass == 0)
            assert_in_range(called, 0, 10);
        else /* 80% of 200 is 160; the width of an interval varies, so a tenth either way */
            assert_in_range(called, 140, 190);
    }
}

static void a_look_decides_only_when_the_whole_interval_does(void **state)
{
    (void)state;
    struct ratio ratio = {.count = 20, .has_interval = true, .low = 1.11, .high = 1.2, .p = 0.001};
    assert_int_equal(look_decide(&ratio, ratio.p, 1.1, 0.025), LOOK_FAIL);
    /* Among several benchmarks the corrected p counts. */
    assert_int_equal(look_decide(&ratio, 0.03, 1.1, 0.025), LOOK_OPEN);
    ratio.low = 1.09;
    assert_int_equal(look_decide(&ratio, ratio.p, 1.1, 0.025), LOOK_OPEN);
    ratio.low = 0.9;
    ratio.high = 1.099;
    assert_int_equal(look_decide(&ratio, 0.5, 1.1, 0.025), LOOK_PASS);
    /* On the threshold itself: neither, in spite of rounding. */
    ratio.low = ratio.high = exp(log(1.1)) + 2e-16;
    assert_int_equal(look_decide(&ratio, 0.001, 1.1, 0.025), LOOK_OPEN);
    ratio.has_interval = false;
    assert_int_equal(look_decide(&ratio, 0.001, 1.1, 0.025), LOOK_OPEN);
    double sum = 0;
    for (size_t i = 0; i < LOOKS; i++)
        sum += looks[i].alpha;
    NEAR(sum, 0.05);
    NEAR(looks[LOOKS - 1].share, 1);
}

static void looking_early_keeps_the_error_rate(void **state)
{
    (void)state;
    /* The hardest truth for a gate: the ratio is the threshold itself. Looking several times may
     * not make it fail (or pass) in more than 2.5% of the trials: 10 of 400, and two deviations of
     * 3.1 on top. Where the truth is clear, it mostly ends at the first look. */
    const struct {
        double truth;
        size_t fail_min, fail_max, pass_min, pass_max;
    } cases[] = {{1.1, 0, 16, 0, 16}, {1.3, 395, 400, 0, 0}, {1.0, 0, 0, 395, 400}};
    enum { BLOCKS = 48, TRIALS = 400 };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        uint64_t seed = 77;
        size_t failed = 0, passed = 0;
        for (size_t trial = 0; trial < TRIALS; trial++) {
            double a[BLOCKS], b[BLOCKS];
            for (size_t i = 0; i < BLOCKS; i++)
                block_draw(&seed, cases[k].truth, &a[i], &b[i]);
            enum look_answer answer = LOOK_OPEN;
            for (size_t i = 0; i < LOOKS && answer == LOOK_OPEN; i++) {
                struct ratio_opts opts = {0.5, 1 - looks[i].alpha, 1.1, trial};
                struct ratio ratio;
                size_t blocks = (size_t)(looks[i].share * BLOCKS);
                assert_int_equal(blocks_compare(a, b, blocks, &opts, &ratio), 0);
                answer = look_decide(&ratio, ratio.p, 1.1, looks[i].alpha);
            }
            failed += answer == LOOK_FAIL;
            passed += answer == LOOK_PASS;
        }
        assert_in_range(failed, cases[k].fail_min, cases[k].fail_max);
        assert_in_range(passed, cases[k].pass_min, cases[k].pass_max);
    }
}

static void the_same_blocks_give_the_same_answer(void **state)
{
    (void)state;
    uint64_t seed = 8;
    double a[50], b[50];
    for (size_t i = 0; i < 50; i++)
        block_draw(&seed, 1.05, &a[i], &b[i]);
    struct ratio one, two;
    assert_int_equal(blocks_compare(a, b, 50, &usual, &one), 0);
    assert_int_equal(blocks_compare(a, b, 50, &usual, &two), 0);
    assert_true(one.low == two.low && one.high == two.high && one.p == two.p);
    assert_int_equal(samples_compare(a, 50, b, 50, &usual, &one), 0);
    assert_int_equal(samples_compare(a, 50, b, 50, &usual, &two), 0);
    assert_true(one.low == two.low && one.high == two.high && one.p == two.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_twice_as_slow),
        cmocka_unit_test(the_estimate_is_the_median_of_the_blocks_ratios),
        cmocka_unit_test(six_blocks_give_the_whole_range),
        cmocka_unit_test(a_tail_is_the_ratio_of_the_two_tails),
        cmocka_unit_test(zeros_have_no_ratio_unless_both_are_zero),
        cmocka_unit_test(verdicts_need_the_whole_interval_and_p),
        cmocka_unit_test(intervals_cover_and_equals_are_not_called_different),
        cmocka_unit_test(separate_samples_cover_too),
        cmocka_unit_test(the_smallest_detectable_change_is_detected_four_times_in_five),
        cmocka_unit_test(a_look_decides_only_when_the_whole_interval_does),
        cmocka_unit_test(looking_early_keeps_the_error_rate),
        cmocka_unit_test(the_same_blocks_give_the_same_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
