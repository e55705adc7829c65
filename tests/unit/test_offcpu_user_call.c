/* Promises about calls of blocked threads: lines of /proc are understood or refused, calls are told
 * by what they wait for, and their time limits are read. */
#include "unit.h"

#include "base/clock.h"
#include "collect/offcpu_user_parts.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS NS_PER_MS

static void a_line_of_a_blocked_thread_is_understood(void **state)
{
    (void)state;
    struct user_call call;
    assert_int_equal(user_call_parse(STR("7 0x7ffd1 0x1 0xffffffff 0x0 0x0 0x0 0x7ffd55580000 "
                                         "0x7f0012\n"),
                                     &call),
                     0);
    assert_int_equal(call.syscall, 7);
    assert_int_equal(call.args[0], 0x7ffd1);
    assert_int_equal(call.args[2], 0xffffffff);
    assert_int_equal(call.pc, 0x7f0012);
    assert_int_equal(user_call_parse(STR("7 0x1 0x2 0x3 0x4 0x5 0x6 0x7fff00000000 0x8\n"), &call),
                     0);
    assert_int_equal(call.syscall, 7);
    assert_int_equal(call.sp, 0x7fff00000000);
}

static void a_thread_blocked_outside_of_a_call_has_no_arguments(void **state)
{
    (void)state;
    struct user_call call;
    struct user_call_facts facts;
    assert_int_equal(user_call_parse(STR("-1 0x7fff00001000 0x401000\n"), &call), 0);
    assert_int_equal(call.syscall, WAIT_SYSCALL_NONE);
    assert_int_equal(call.sp, 0x7fff00001000);
    assert_int_equal(call.pc, 0x401000);
    user_call_facts(&call, &facts);
    assert_int_equal(facts.flags, WAIT_FAULT);
    assert_int_equal(facts.fd, -1);
}

static void a_running_thread_is_no_blocked_one(void **state)
{
    (void)state;
    struct user_call call = {.syscall = 77};
    assert_int_equal(user_call_parse(STR("running\n"), &call), -EAGAIN);
    assert_int_equal(call.syscall, 77);
}

static void garbage_is_refused_and_nothing_is_returned(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "\n",
        "run",
        "running 0x1",
        "7",
        "7 0x1 0x2 0x3",
        "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7",
        "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9",
        "7 1 2 3 4 5 6 7 8",
        "7 0x1 0x2 0x3 0x4 0x5 0x6 0x 0x8",
        "7 0x1 0x2 0x3 0x4 0x5 0xg 0x7 0x8",
        "-2 0x1 0x2",
        "-1 0x1",
        "-1 0x1 0x2 0x3",
        "99999999999 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8",
        "0x7 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8",
        "7 0x11111111111111111 0x2 0x3 0x4 0x5 0x6 0x7 0x8",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct user_call call = {.syscall = 77};
        assert_int_equal(user_call_parse(str_from(lines[i]), &call), -EBADMSG);
        assert_int_equal(call.syscall, 77);
    }
}

static void calls_of_a_32_bit_program_are_not_taken_for_ours(void **state)
{
    (void)state;
    struct user_call call;
    assert_int_equal(user_call_parse(STR("3 0x0 0x0 0x0 0x0 0x0 0x0 0xffd5a000 0xf7f00000"), &call),
                     0);
    assert_int_equal(call.syscall, WAIT_SYSCALL_UNKNOWN);
}

static void a_thread_of_the_kernel_is_in_no_call(void **state)
{
    (void)state;
    struct user_call call;
    struct user_call_facts facts;
    assert_int_equal(user_call_parse(STR("0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0\n"), &call), 0);
    assert_int_equal(call.syscall, WAIT_SYSCALL_NONE); /* and not in read() */
    user_call_facts(&call, &facts);
    assert_int_equal(facts.flags, 0);
    assert_int_equal(facts.on, USER_CALL_ON_NOTHING);
}

static struct user_call_facts facts_of(int32_t syscall, uint64_t a, uint64_t b, uint64_t c,
                                       uint64_t d)
{
    struct user_call call = {.syscall = syscall, .args = {a, b, c, d}, .sp = 1ull << 40};
    struct user_call_facts facts;
    user_call_facts(&call, &facts);
    return facts;
}

static void calls_are_told_by_what_they_wait_for(void **state)
{
    (void)state;
    struct user_call_facts facts = facts_of(SYS_read, 5, 0, 0, 0);
    assert_int_equal(facts.on, USER_CALL_ON_FD);
    assert_int_equal(facts.fd, 5);
    assert_true(facts.may_be_disk);
    assert_int_equal(facts.flags, 0);
    facts = facts_of(SYS_ppoll, 0x1000, 1, 0, 0);
    assert_int_equal(facts.on, USER_CALL_ON_FDS);
    assert_int_equal(facts.address, 0x1000);
    assert_int_equal(facts.flags, 0);
    assert_int_equal(facts_of(SYS_ppoll, 0x1000, 1, 0x2000, 0).flags, WAIT_LIMITED);
    assert_int_equal(facts_of(SYS_epoll_pwait, 3, 0, 1, (uint32_t)-1).flags, 0);
    assert_int_equal(facts_of(SYS_epoll_pwait, 3, 0, 1, 0).flags, WAIT_LIMITED);
    assert_int_equal(facts_of(SYS_clock_nanosleep, 0, 0, 0, 0).flags, WAIT_LIMITED);
    assert_int_equal(facts_of(SYS_wait4, 4711, 0, 0, 0).child, 4711);
    assert_int_equal(facts_of(SYS_wait4, (uint64_t)-1, 0, 0, 0).child, 0);
    assert_int_equal(facts_of(SYS_waitid, P_PID, 4711, 0, 0).child, 4711);
    assert_int_equal(facts_of(SYS_waitid, P_ALL, 4711, 0, 0).child, 0);
    facts = facts_of(100000, 1, 2, 3, 4);
    assert_int_equal(facts.on, USER_CALL_ON_NOTHING);
    assert_int_equal(facts.fd, -1);
}

static void limit_is(int32_t syscall, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                     enum user_limit is, uint64_t limit)
{
    struct user_call call = {.syscall = syscall, .args = {1, b, c, d, e}, .sp = 1ull << 40};
    struct user_call_facts facts;
    user_call_facts(&call, &facts);
    assert_int_equal(facts.limit_is, is);
    assert_int_equal(facts.limit, limit);
}

static void a_time_limit_is_where_its_call_has_it(void **state)
{
    (void)state;
#ifdef SYS_poll
    limit_is(SYS_poll, 1, 300, 0, 0, USER_LIMIT_MS, 300);
    limit_is(SYS_poll, 1, (uint32_t)-1, 0, 0, USER_LIMIT_UNKNOWN, 0);
    limit_is(SYS_select, 0, 0, 0, 0x2000, USER_LIMIT_TIMEVAL, 0x2000);
#endif
    limit_is(SYS_ppoll, 1, 0x2000, 0, 0, USER_LIMIT_TIMESPEC, 0x2000);
    limit_is(SYS_ppoll, 1, 0, 0, 0, USER_LIMIT_UNKNOWN, 0);
    limit_is(SYS_pselect6, 0, 0, 0, 0x2000, USER_LIMIT_TIMESPEC, 0x2000);
    limit_is(SYS_epoll_pwait, 0, 1, 7, 0, USER_LIMIT_MS, 7);
    limit_is(SYS_futex, FUTEX_WAIT_PRIVATE, 1, 0x2000, 0, USER_LIMIT_TIMESPEC, 0x2000);
    limit_is(SYS_futex, FUTEX_WAIT_BITSET_PRIVATE, 1, 0x2000, 0, USER_LIMIT_UNTIL, 0x2000);
    limit_is(SYS_futex, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, 0x2000, 0,
             USER_LIMIT_UNTIL_REAL, 0x2000);
    limit_is(SYS_read, 0, 0, 0, 0, USER_LIMIT_UNKNOWN, 0);
}

static struct user_look limit_read(enum user_limit is, uint64_t limit)
{
    struct user_look look = {.pid = getpid(), .facts = {.limit_is = is, .limit = limit}};
    look.limit_ns = look.until_ns = 1; /* of the look before */
    user_limit_read(&look);
    return look;
}

static void a_time_limit_is_read_in_its_unit_or_not_at_all(void **state)
{
    (void)state;
    struct timespec ts = {1, 5000000};
    struct timeval tv = {1, 5000};
    const uint64_t at = (uint64_t)(uintptr_t)&ts;
    assert_int_equal(limit_read(USER_LIMIT_MS, 300).limit_ns, 300 * MS);
    assert_int_equal(limit_read(USER_LIMIT_TIMESPEC, at).limit_ns, 1005 * MS);
    assert_int_equal(limit_read(USER_LIMIT_TIMEVAL, (uint64_t)(uintptr_t)&tv).limit_ns, 1005 * MS);
    assert_int_equal(limit_read(USER_LIMIT_TIMEVAL, at).limit_ns, 0); /* no such microseconds */
    assert_int_equal(limit_read(USER_LIMIT_TIMESPEC, 8).limit_ns, 0); /* nothing is there */
    assert_int_equal(limit_read(USER_LIMIT_UNKNOWN, at).limit_ns, 0);
    assert_int_equal(limit_read(USER_LIMIT_UNKNOWN, at).until_ns, 0);
    ts.tv_sec = -1;
    assert_int_equal(limit_read(USER_LIMIT_TIMESPEC, at).limit_ns, 0);
    const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
    const enum user_limit kinds[] = {USER_LIMIT_UNTIL, USER_LIMIT_UNTIL_REAL};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(clock_gettime(clocks[i], &ts), 0);
        uint64_t before_ns = clock_mono_ns();
        ts.tv_sec += 1000;
        struct user_look look = limit_read(kinds[i], at);
        assert_int_equal(look.limit_ns, 0);
        /* A thousand seconds from now, whatever the machine does meanwhile. */
        assert_in_range(look.until_ns, before_ns + 900 * NS_PER_SEC, before_ns + 1100 * NS_PER_SEC);
        ts.tv_sec -= 2000;
        uint64_t until_ns = limit_read(kinds[i], at).until_ns;
        assert_in_range(until_ns, before_ns, clock_mono_ns());
    }
}

static void futexes_are_told_apart_by_operation_and_value(void **state)
{
    (void)state;
    assert_int_equal(facts_of(SYS_futex, 0x1000, FUTEX_WAIT_PRIVATE, 2, 0).detail,
                     WAIT_FUTEX_VALUE_2);
    assert_int_equal(facts_of(SYS_futex, 0x1000, FUTEX_WAIT, 2, 0).detail, WAIT_FUTEX_VALUE_2);
    assert_int_equal(facts_of(SYS_futex, 0x1000, FUTEX_WAIT, 0, 0).detail, WAIT_FUTEX_VALUE_0);
    assert_int_equal(facts_of(SYS_futex, 0x1000, FUTEX_WAIT, 7, 0).detail, WAIT_FUTEX_OTHER);
    assert_int_equal(
        facts_of(SYS_futex, 0x1000, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 2, 0).detail,
        WAIT_FUTEX_BITSET);
    assert_int_equal(facts_of(SYS_futex, 0x1000, FUTEX_LOCK_PI_PRIVATE, 0, 0).detail,
                     WAIT_FUTEX_PI);
    assert_int_equal(facts_of(SYS_futex, 0x1000, FUTEX_WAIT_PRIVATE, 2, 9).flags, WAIT_LIMITED);
    assert_int_equal(facts_of(SYS_futex, 0x1000, FUTEX_WAIT_PRIVATE, 2, 0).address, 0x1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_of_a_blocked_thread_is_understood),
        cmocka_unit_test(a_thread_blocked_outside_of_a_call_has_no_arguments),
        cmocka_unit_test(a_running_thread_is_no_blocked_one),
        cmocka_unit_test(garbage_is_refused_and_nothing_is_returned),
        cmocka_unit_test(calls_of_a_32_bit_program_are_not_taken_for_ours),
        cmocka_unit_test(a_thread_of_the_kernel_is_in_no_call),
        cmocka_unit_test(calls_are_told_by_what_they_wait_for),
        cmocka_unit_test(a_time_limit_is_where_its_call_has_it),
        cmocka_unit_test(a_time_limit_is_read_in_its_unit_or_not_at_all),
        cmocka_unit_test(futexes_are_told_apart_by_operation_and_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
