/* Runs replayed without some of their waits: what that gains is known by hand. */
#include "unit.h"

#include "analyze/what_if.h"
#include "made_waits.h"

static double gain_ms(struct made_waits *made, const uint32_t *gone_rows, size_t count)
{
    struct arena arena = ARENA_INIT;
    static float gone[MADE_MAX];
    memset(gone, 0, sizeof(gone));
    for (size_t i = 0; i < count; i++)
        gone[gone_rows[i]] = 1;
    struct what_if what = {.waits = &made->waits, .gone = gone};
    double ns = -1;
    assert_int_equal(what_if_gain(&arena, &what, &ns), 0);
    arena_deinit(&arena);
    free(made);
    return ns / MADE_MS;
}

static void a_wait_that_does_not_happen_is_gained(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(1000);
    uint32_t main = made_waits_thread(made, made_waits_process(made, 0), 0, 1000);
    uint32_t row = made_waits_long(made, main, 0, 200, 500);
    assert_float_equal(gain_ms(made, &row, 1), 300, 0.01);
}

static void what_lies_outside_of_the_run_takes_as_long_as_it_took(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(1000);
    uint32_t main = made_waits_thread(made, made_waits_process(made, 0), 0, 1000);
    uint32_t row = made_waits_long(made, main, 0, 100, 200);
    struct wait_info sleep = {.kind = WAIT_BLOCKED, .thread = main, .stack = 0, .flags = WAIT_IO};
    made_waits_event(made, made_waits_row(made, &sleep), 300, 900, 900);
    assert_float_equal(gain_ms(made, &row, 1), 100, 0.01);
}

static void who_waits_for_another_is_ahead_by_what_that_one_is(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(1000);
    uint32_t process = made_waits_process(made, 0);
    uint32_t main = made_waits_thread(made, process, 0, 1000);
    uint32_t worker = made_waits_thread(made, process, 0, 900);
    uint32_t row = made_waits_long(made, worker, 0, 100, 400);
    made_waits_long(made, main, worker, 10, 900);
    assert_float_equal(gain_ms(made, &row, 1), 300, 0.01);
}

/* Main waits for the slower one in any case. */
static void who_is_not_waited_for_gains_nothing(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(1000);
    uint32_t process = made_waits_process(made, 0);
    uint32_t main = made_waits_thread(made, process, 0, 1000);
    uint32_t fast = made_waits_thread(made, process, 0, 500);
    uint32_t slow = made_waits_thread(made, process, 0, 900);
    uint32_t row = made_waits_long(made, fast, 0, 100, 400);
    made_waits_long(made, main, fast, 10, 500);
    made_waits_long(made, main, slow, 500, 900);
    assert_float_equal(gain_ms(made, &row, 1), 0, 0.01);
}

/* Three have a lock for 100 ms each, one after the other, and are joined in turn. On the critical
 * path none of them waits for it: each was joined when it had the lock already. */
static void threads_in_line_are_all_ahead_of_it(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(300);
    uint32_t process = made_waits_process(made, 0);
    uint32_t main = made_waits_thread(made, process, 0, 300), rows[2];
    uint32_t a = made_waits_thread(made, process, 0, 100);
    uint32_t b = made_waits_thread(made, process, 0, 200);
    uint32_t c = made_waits_thread(made, process, 0, 300);
    rows[0] = made_waits_long(made, b, a, 0, 100);
    rows[1] = made_waits_long(made, c, b, 0, 200);
    made_waits_long(made, main, a, 0, 100);
    made_waits_long(made, main, b, 100, 200);
    made_waits_long(made, main, c, 200, 300);
    assert_float_equal(gain_ms(made, rows, 2), 200, 0.01);
}

static void the_way_to_a_cpu_after_it_is_gained_with_it(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(1000);
    uint32_t main = made_waits_thread(made, made_waits_process(made, 0), 0, 1000);
    uint32_t row = made_waits_blocked(made, main, 0);
    made_waits_event(made, row, 200, 300, 350);
    assert_float_equal(gain_ms(made, &row, 1), 150, 0.01);
}

static void short_waits_count_by_their_sum(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(1000);
    uint32_t process = made_waits_process(made, 0);
    uint32_t main = made_waits_thread(made, process, 0, 1000);
    uint32_t worker = made_waits_thread(made, process, 0, 1000);
    uint32_t row = made_waits_blocked(made, worker, 0);
    made_waits_short(made, row, 1000, 250, 100, 800);
    made_waits_long(made, main, worker, 0, 999);
    assert_float_equal(gain_ms(made, &row, 1), 250, 1);
}

/* Two that hand over to each other all the time: who is ahead waits for the other. */
static void short_waits_for_each_other_bind(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(1000);
    uint32_t process = made_waits_process(made, 0);
    uint32_t main = made_waits_thread(made, process, 0, 1000);
    uint32_t worker = made_waits_thread(made, process, 0, 1000);
    uint32_t row = made_waits_blocked(made, main, 0);
    made_waits_short(made, row, 1000, 250, 0, 1000);
    struct wait_info other = {.kind = WAIT_BLOCKED, .thread = main, .waker_thread = worker};
    other.flags = WAIT_UNINTERRUPTIBLE;
    made_waits_short(made, made_waits_row(made, &other), 1000, 100, 0, 1000);
    assert_float_equal(gain_ms(made, &row, 1), 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_that_does_not_happen_is_gained),
        cmocka_unit_test(what_lies_outside_of_the_run_takes_as_long_as_it_took),
        cmocka_unit_test(who_waits_for_another_is_ahead_by_what_that_one_is),
        cmocka_unit_test(who_is_not_waited_for_gains_nothing),
        cmocka_unit_test(threads_in_line_are_all_ahead_of_it),
        cmocka_unit_test(the_way_to_a_cpu_after_it_is_gained_with_it),
        cmocka_unit_test(short_waits_count_by_their_sum),
        cmocka_unit_test(short_waits_for_each_other_bind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
