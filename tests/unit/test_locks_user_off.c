/* Promises of collect/locks_user_off.c: time off the CPU between two moments, from switches. */
#include "unit.h"

#include "collect/locks_user_parts.h"

static struct lock_offs offs;

static int begin(void **state)
{
    (void)state;
    offs = (struct lock_offs){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    lock_offs_deinit(&offs);
    return 0;
}

static void out(int tid, uint64_t time_ns)
{
    assert_int_equal(lock_offs_switch(&offs, time_ns, tid, true), 0);
}

static void in(int tid, uint64_t time_ns)
{
    assert_int_equal(lock_offs_switch(&offs, time_ns, tid, false), 0);
}

static uint64_t off(int tid, uint64_t start_ns, uint64_t end_ns)
{
    uint64_t ns = UINT64_MAX - 1;
    return lock_offs_between(&offs, tid, start_ns, end_ns, &ns) ? ns : UINT64_MAX;
}

static void times_are_added_up_and_cut_at_both_ends(void **state)
{
    (void)state;
    in(1, 100);
    out(1, 200);
    in(1, 300);
    out(1, 400);
    in(1, 450);
    assert_int_equal(off(1, 100, 200), 0);
    assert_int_equal(off(1, 100, 500), 150);
    assert_int_equal(off(1, 250, 420), 70);
    assert_int_equal(off(1, 210, 290), 80);
    assert_int_equal(off(1, 300, 400), 0);
    assert_int_equal(off(1, 460, 900), 0);
}

static void a_thread_that_is_not_back_is_off_until_now(void **state)
{
    (void)state;
    in(1, 100);
    out(1, 200);
    assert_int_equal(off(1, 150, 1000), 800);
    out(1, 300); /* a switch was lost: it is off since the first */
    assert_int_equal(off(1, 150, 1000), 800);
}

static void what_was_before_the_first_switch_is_not_known(void **state)
{
    (void)state;
    assert_int_equal(off(1, 1, 2), UINT64_MAX);
    out(1, 200);
    in(1, 300);
    assert_int_equal(off(1, 100, 400), UINT64_MAX);
    assert_int_equal(off(1, 200, 400), 100);
    assert_int_equal(off(2, 200, 400), UINT64_MAX);
}

static void what_is_long_ago_is_not_known_any_more(void **state)
{
    (void)state;
    in(1, 0);
    for (uint64_t i = 1; i <= 1000; i++) {
        out(1, i * 100);
        in(1, i * 100 + 30);
    }
    assert_int_equal(off(1, 90000, 100000), 3000);
    assert_int_equal(off(1, 50, 100000), UINT64_MAX);
}

static void threads_beyond_the_bound_stay_unknown(void **state)
{
    (void)state;
    for (int tid = 1; tid <= LOCKS_OFF_THREADS_MAX + 10; tid++)
        in(tid, 5);
    assert_int_equal(off(LOCKS_OFF_THREADS_MAX, 5, 10), 0);
    assert_int_equal(off(LOCKS_OFF_THREADS_MAX + 1, 5, 10), UINT64_MAX);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(times_are_added_up_and_cut_at_both_ends),
        TEST(a_thread_that_is_not_back_is_off_until_now),
        TEST(what_was_before_the_first_switch_is_not_known),
        TEST(what_is_long_ago_is_not_known_any_more),
        TEST(threads_beyond_the_bound_stay_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
