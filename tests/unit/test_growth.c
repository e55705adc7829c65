/* Laws that made the numbers must be the laws that are found. */
#include "stats/growth.h"
#include "stats/random.h"
#include "unit.h"

#include <errno.h>
#include <math.h>

enum { STEPS = 6, RUNS = 20 };
static const double sizes[STEPS] = {1, 10, 50, 100, 500, 1000};

/* Costs with a few percent of noise, always the same. */
static void make_steps(double (*cost)(double n), double noise, struct growth_step *steps,
                       double costs[STEPS][RUNS])
{
    uint64_t random = 7;
    for (size_t i = 0; i < STEPS; i++) {
        for (size_t k = 0; k < RUNS; k++)
            costs[i][k] = cost(sizes[i]) * (1 + noise * (random_unit(&random) - 0.5));
        steps[i] = (struct growth_step){sizes[i], costs[i], RUNS};
    }
}

static double constant(double n)
{
    (void)n;
    return 12;
}
static double logarithmic(double n)
{
    return 1 + 3 * log2(n + 1);
}
static double linear(double n)
{
    return 2 + 0.5 * n;
}
static double n_log_n(double n)
{
    return 2 + 0.1 * n * log2(n + 1);
}
static double quadratic(double n)
{
    return 5 + 0.01 * n * n;
}
static double cubic(double n)
{
    return 5 + 1e-5 * n * n * n;
}

static void the_law_that_made_the_numbers_is_found(void **state)
{
    (void)state;
    double (*const laws[GROWTH_LAWS])(double) = {constant, logarithmic, linear,
                                                 n_log_n,  quadratic,   cubic};
    for (int law = 0; law < GROWTH_LAWS; law++) {
        struct growth_step steps[STEPS];
        double costs[STEPS][RUNS];
        make_steps(laws[law], 0.06, steps, costs);
        struct growth_fit fits[GROWTH_LAWS];
        assert_int_equal(growth_fit(steps, STEPS, 1, fits), 0);
        assert_string_equal(growth_law_name(fits[0].law), growth_law_name((enum growth_law)law));
        /* Every law contains the constant one, so chance bends some draws of it upwards. */
        assert_true(fits[0].wins > (law == GROWTH_CONSTANT ? 0.8 : 0.9));
        assert_true(fits[0].weight > (law == GROWTH_CONSTANT ? 0.3 : 0.5));
        double weights = 0, wins = 0;
        for (int i = 0; i < GROWTH_LAWS; i++) {
            weights += fits[i].weight;
            wins += fits[i].wins;
        }
        assert_true(fabs(weights - 1) < 1e-9 && fabs(wins - 1) < 1e-9);
        assert_true(fabs(growth_at(&fits[0], 2000) / laws[law](2000) - 1) < 0.05);
    }
}

static void exact_numbers_give_exact_parameters(void **state)
{
    (void)state;
    struct growth_step steps[STEPS];
    double costs[STEPS][RUNS];
    make_steps(linear, 0, steps, costs);
    struct growth_fit fits[GROWTH_LAWS];
    assert_int_equal(growth_fit(steps, STEPS, 1, fits), 0);
    assert_int_equal(fits[0].law, GROWTH_LINEAR);
    assert_true(fabs(fits[0].base - 2) < 1e-6 && fabs(fits[0].factor - 0.5) < 1e-6);
    assert_true(fits[0].error < 1e-6);
    assert_true(fits[0].wins == 1);
}

static void numbers_that_fit_two_laws_are_not_called_sure(void **state)
{
    (void)state;
    /* Between 1 and 4 units, with noise of a fifth, linear and n log n look the same. */
    double costs[4][5];
    struct growth_step steps[4];
    uint64_t random = 3;
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 5; k++)
            costs[i][k] = linear((double)i + 1) * (1 + 0.4 * (random_unit(&random) - 0.5));
        steps[i] = (struct growth_step){(double)i + 1, costs[i], 5};
    }
    struct growth_fit fits[GROWTH_LAWS];
    assert_int_equal(growth_fit(steps, 4, 1, fits), 0);
    assert_true(fits[0].wins < 0.9);
}

static double weight_of(const struct growth_fit fits[GROWTH_LAWS], enum growth_law law)
{
    for (int i = 0; i < GROWTH_LAWS; i++)
        if (fits[i].law == law)
            return fits[i].weight;
    return NAN;
}

/* A sort, as it is measured: start-up, reading the input, and caches that are left one after
 * another. Its medians are as exact as one likes. */
static double sorting(double n)
{
    double caches = n < 3e4 ? 1 : n < 3e5 ? 1.05 : 1.12;
    return 1e6 + 40 * n + 3 * caches * n * log2(n + 1);
}

static void exact_medians_do_not_tell_laws_apart_that_are_alike_in_the_range(void **state)
{
    static const double units[] = {1e5, 2e5, 3e5, 5e5, 7e5, 1e6, 1.5e6, 2e6};
    double costs[8];
    struct growth_step steps[8];
    struct growth_fit fits[GROWTH_LAWS];
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < 8; i++) {
            costs[i] = kind == 0   ? sorting(units[i])
                       : kind == 1 ? units[i]
                                   : units[i] * log2(units[i] + 1);
            steps[i] = (struct growth_step){units[i], &costs[i], 1};
        }
        assert_int_equal(growth_fit(steps, 8, 1, fits), 0);
        assert_true(weight_of(fits, GROWTH_LINEAR) > 0.2);
        assert_true(weight_of(fits, GROWTH_N_LOG_N) > 0.2);
        assert_true(weight_of(fits, GROWTH_QUADRATIC) < 0.01);
    }
}

static void a_wide_range_tells_them_apart(void **state)
{
    static const double units[] = {10, 100, 1000, 1e4, 1e5, 1e6};
    double costs[STEPS];
    struct growth_step steps[STEPS];
    struct growth_fit fits[GROWTH_LAWS];
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        for (size_t i = 0; i < STEPS; i++) {
            costs[i] = kind == 0 ? units[i] : units[i] * log2(units[i] + 1);
            steps[i] = (struct growth_step){units[i], &costs[i], 1};
        }
        assert_int_equal(growth_fit(steps, STEPS, 1, fits), 0);
        assert_int_equal(fits[0].law, kind == 0 ? GROWTH_LINEAR : GROWTH_N_LOG_N);
        assert_true(fits[0].weight > 0.95);
    }
}

static void a_small_part_that_grows_is_told_by_what_is_beyond_the_start(void **state)
{
    double costs[STEPS];
    struct growth_step steps[STEPS];
    struct growth_fit fits[GROWTH_LAWS];
    (void)state;
    for (size_t i = 0; i < STEPS; i++) {
        costs[i] = 100 + 1e-5 * sizes[i] * sizes[i]; /* a tenth of it, at the largest */
        steps[i] = (struct growth_step){sizes[i], &costs[i], 1};
    }
    assert_int_equal(growth_fit(steps, STEPS, 1, fits), 0);
    assert_int_equal(fits[0].law, GROWTH_QUADRATIC);
    assert_true(weight_of(fits, GROWTH_LINEAR) < 0.05);
}

static void the_next_step_is_foretold_from_those_before(void **state)
{
    static const double units[] = {10, 100, 1000};
    static const double square[] = {1, 100, 10000}, flat[] = {7, 7, 6}, late[] = {10, 10, 1000};
    (void)state;
    assert_true(fabs(growth_next(units, square, 3, 10000) / 1e6 - 1) < 1e-9);
    assert_true(fabs(growth_next(units, square, 2, 1000) / 1e4 - 1) < 1e-9);
    assert_true(growth_next(units, flat, 3, 10000) == 6);
    assert_true(fabs(growth_next(units, late, 3, 10000) / 1e4 - 1) < 1e-9);
    assert_true(growth_next(units, square, 1, 1000) == 1); /* nothing is known of its growth */
    assert_true(growth_next(units, square, 0, 20) == 0);
}

static void steps_without_sense_are_refused(void **state)
{
    (void)state;
    double one[] = {1}, zero[] = {0}, nan_cost[] = {NAN};
    struct growth_step steps[4] = {{1, one, 1}, {2, one, 1}, {3, one, 1}, {4, one, 1}};
    struct growth_fit fits[GROWTH_LAWS];
    assert_int_equal(growth_fit(steps, 3, 1, fits), -ERANGE);
    steps[3].units = 3;
    assert_int_equal(growth_fit(steps, 4, 1, fits), -ERANGE);
    steps[3].units = 0;
    assert_int_equal(growth_fit(steps, 4, 1, fits), -EINVAL);
    steps[3] = (struct growth_step){4, zero, 1};
    assert_int_equal(growth_fit(steps, 4, 1, fits), -EINVAL);
    steps[3] = (struct growth_step){4, nan_cost, 1};
    assert_int_equal(growth_fit(steps, 4, 1, fits), -EINVAL);
    steps[3] = (struct growth_step){4, one, 0};
    assert_int_equal(growth_fit(steps, 4, 1, fits), -EINVAL);
}

static void scalability_is_recovered(void **state)
{
    (void)state;
    /* rate 2, contention 0.1, coherency 0.01: the peak is at sqrt(0.9 / 0.01) = 9.5 threads. */
    const double threads[] = {1, 2, 4, 8, 16};
    double costs[5];
    struct growth_step steps[5];
    for (int per_thread = 0; per_thread < 2; per_thread++) {
        for (size_t i = 0; i < 5; i++) {
            double n = threads[i];
            double speed = 2 * n / (1 + 0.1 * (n - 1) + 0.01 * n * (n - 1));
            costs[i] = (per_thread ? n : 1) / speed;
            steps[i] = (struct growth_step){n, &costs[i], 1};
        }
        struct scalability_fit fit;
        assert_int_equal(scalability_fit(steps, 5, per_thread, 1, &fit), 0);
        assert_true(fabs(fit.rate - 2) < 1e-6);
        assert_true(fabs(fit.contention - 0.1) < 1e-6);
        assert_true(fabs(fit.coherency - 0.01) < 1e-6);
        assert_true(fit.has_peak && fabs(fit.peak - 9.4868) < 1e-3);
        assert_true(fabs(scalability_at(&fit, 1) - 1) < 1e-9);
        assert_true(fabs(scalability_at(&fit, 8) - 8 / 2.26) < 1e-6);
    }
}

static void perfect_scaling_has_no_contention_and_no_peak(void **state)
{
    (void)state;
    double costs[] = {1, 0.5, 0.25, 0.125};
    struct growth_step steps[4];
    for (size_t i = 0; i < 4; i++)
        steps[i] = (struct growth_step){(double)(1 << i), &costs[i], 1};
    struct scalability_fit fit;
    assert_int_equal(scalability_fit(steps, 4, false, 1, &fit), 0);
    assert_true(fit.contention < 1e-9 && fit.coherency < 1e-9);
    assert_false(fit.has_peak);
    assert_int_equal(scalability_fit(steps, 2, false, 1, &fit), -ERANGE);
}

/* `whyslow scale --threads 1,2,4 'sleep 0.{n}'` and its like: more than all of the work is in turn.
 */
static void what_gets_slower_with_threads_has_no_more_than_all_in_turn(void **state)
{
    (void)state;
    static const double threads[] = {1, 2, 4};
    static const double made[][3] = {
        {101, 203, 401}, {103, 202, 398}, {311, 321, 341}, {90, 203, 430}, {1, 1000, 5}};
    for (size_t kind = 0; kind < sizeof(made) / sizeof(made[0]); kind++) {
        struct growth_step steps[3];
        double costs[3][3];
        for (size_t i = 0; i < 3; i++) {
            for (size_t k = 0; k < 3; k++)
                costs[i][k] = made[kind][i] * (1 + 0.002 * (double)k);
            steps[i] = (struct growth_step){threads[i], costs[i], 3};
        }
        struct scalability_fit fit;
        assert_int_equal(scalability_fit(steps, 3, false, 1, &fit), 0);
        assert_true(fit.rate > 0);
        assert_true(fit.contention >= 0 && fit.contention <= 1);
        assert_true(fit.contention_low >= 0 && fit.contention_high <= 1);
        assert_true(fit.coherency > 0 && fit.coherency_low >= 0);
        assert_true(fit.has_peak && fit.peak >= 1);
        assert_true(scalability_best(&fit) == 1);
        assert_true(fit.two_high < 1); /* sure: no draw says otherwise */
    }
}

static void the_fastest_number_of_threads_is_a_whole_one(void **state)
{
    (void)state;
    /* Peak at 2.4: three threads are slower than two. At 1.45: two are faster than one. */
    struct scalability_fit fit = {.has_peak = true, .coherency = 1 / (2.4 * 2.4), .peak = 2.4};
    assert_true(scalability_best(&fit) == 2);
    fit = (struct scalability_fit){.has_peak = true, .coherency = 1 / (1.45 * 1.45), .peak = 1.45};
    assert_true(scalability_best(&fit) == 2);
    fit = (struct scalability_fit){.has_peak = true, .contention = 1, .coherency = 0.1, .peak = 1};
    assert_true(scalability_best(&fit) == 1);
}

static void one_run_a_step_has_no_interval(void **state)
{
    (void)state;
    double costs[4][2] = {{101, 102}, {203, 204}, {301, 302}, {401, 402}};
    struct growth_step steps[4];
    for (size_t runs = 1; runs <= 2; runs++) {
        for (size_t i = 0; i < 4; i++)
            steps[i] = (struct growth_step){(double)i + 1, costs[i], i == 1 ? runs : 2};
        struct scalability_fit fit;
        struct growth_fit fits[GROWTH_LAWS];
        assert_int_equal(scalability_fit(steps, 4, false, 1, &fit), 0);
        assert_int_equal(growth_fit(steps, 4, 1, fits), 0);
        assert_true(fit.has_interval == (runs == 2));
        assert_true(isnan(fit.contention_low) == (runs == 1));
        assert_true(isnan(fit.coherency_high) == (runs == 1));
        for (size_t law = 0; law < GROWTH_LAWS; law++)
            assert_true(isnan(fits[law].wins) == (runs == 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_law_that_made_the_numbers_is_found),
        cmocka_unit_test(exact_numbers_give_exact_parameters),
        cmocka_unit_test(numbers_that_fit_two_laws_are_not_called_sure),
        cmocka_unit_test(exact_medians_do_not_tell_laws_apart_that_are_alike_in_the_range),
        cmocka_unit_test(a_wide_range_tells_them_apart),
        cmocka_unit_test(a_small_part_that_grows_is_told_by_what_is_beyond_the_start),
        cmocka_unit_test(the_next_step_is_foretold_from_those_before),
        cmocka_unit_test(steps_without_sense_are_refused),
        cmocka_unit_test(scalability_is_recovered),
        cmocka_unit_test(perfect_scaling_has_no_contention_and_no_peak),
        cmocka_unit_test(what_gets_slower_with_threads_has_no_more_than_all_in_turn),
        cmocka_unit_test(the_fastest_number_of_threads_is_a_whole_one),
        cmocka_unit_test(one_run_a_step_has_no_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
