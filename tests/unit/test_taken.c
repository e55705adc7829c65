/* Promises of host/taken.h, on machines made of files. */
#include "unit.h"

#include "base/fd.h"
#include "host/taken.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct machine {
    char root[64];
    struct arena arena;
    struct host host;
};

static struct machine machine;

static int setup(void **state)
{
    (void)state;
    machine = (struct machine){0};
    snprintf(machine.root, sizeof(machine.root), "/tmp/whyslow-taken-XXXXXX");
    assert_non_null(mkdtemp(machine.root));
    machine.host = (struct host){.root = machine.root, .arena = &machine.arena};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", machine.root);
    assert_int_equal(system(command), 0);
    arena_deinit(&machine.arena);
    return 0;
}

static void put(const char *folder, const char *name, const char *text)
{
    struct why why = {0};
    const char *path = arena_printf(&machine.arena, "%s%s", machine.root, folder);
    assert_int_equal(folder_make(path, &why), 0);
    path = arena_printf(&machine.arena, "%s/%s", path, name);
    assert_int_equal(file_write_atomic(path, text, strlen(text), &why), 0);
}

static void what_was_taken_between_two_looks_is_told(void **state)
{
    (void)state;
    struct taken before, after;
    put("/proc/self", "cgroup", "0::/a/b\n");
    put("/proc", "stat", "cpu  10 0 10 100 0 0 0 7 0 0\ncpu0 1 2 3\n");
    put("/sys/fs/cgroup/a/b", "cpu.stat", "usage_usec 5\nthrottled_usec 1000\n");
    taken_read(&machine.host, &before);
    put("/proc", "stat", "cpu  13 1 10 200 50 1 0 9 0 0\ncpu0 1 2 3\n");
    put("/sys/fs/cgroup/a/b", "cpu.stat", "usage_usec 9\nthrottled_usec 4000\n");
    taken_read(&machine.host, &after);
    struct taken taken = taken_since(&before, &after);
    assert_true(fabs(taken.throttled_ns - 3e6) < 1);
    assert_true(fabs(taken.steal_ns - 2e9 / (double)sysconf(_SC_CLK_TCK)) < 1);
    assert_true(fabs(taken.busy_ns - 5e9 / (double)sysconf(_SC_CLK_TCK)) < 1);
}

static void a_limit_further_up_counts_and_so_does_the_first_version(void **state)
{
    (void)state;
    struct taken taken;
    put("/proc/self", "cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b", "cpu.stat", "throttled_usec 1\n");
    put("/sys/fs/cgroup/a", "cpu.stat", "throttled_usec 2000\n");
    taken_read(&machine.host, &taken);
    assert_true(taken.throttled_ns == 2e6);
    put("/proc/self", "cgroup", "5:cpu,cpuacct:/x\n4:memory:/y\n");
    put("/sys/fs/cgroup/cpu/x", "cpu.stat", "nr_periods 1\nthrottled_time 123\n");
    taken_read(&machine.host, &taken);
    assert_true(taken.throttled_ns == 123);
}

static void what_cannot_be_read_is_not_nought(void **state)
{
    (void)state;
    struct taken taken;
    taken_read(&machine.host, &taken);
    assert_true(isnan(taken.throttled_ns) && isnan(taken.steal_ns) && isnan(taken.busy_ns));
    struct taken none = taken_since(&taken, &taken);
    assert_true(isnan(none.throttled_ns) && isnan(none.steal_ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_taken_between_two_looks_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_limit_further_up_counts_and_so_does_the_first_version,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_not_nought, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
