/* Promises of host/checks.h, on machines made of files. */
#include "unit.h"

#include "base/fd.h"
#include "host/check_internal.h"
#include "host/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct machine {
    char root[64];
    struct arena arena;
    struct host host;
    struct build_info binary;
    struct check_input input;
};

static int setup(void **state)
{
    struct machine *machine = calloc(1, sizeof(*machine));
    assert_non_null(machine);
    snprintf(machine->root, sizeof(machine->root), "/tmp/whyslow-checks-XXXXXX");
    assert_non_null(mkdtemp(machine->root));
    machine->host = (struct host){.root = machine->root, .arena = &machine->arena};
    machine->binary = (struct build_info){
        .path = "/home/user/app",
        .language = "C",
        .optimization = "-O2",
        .optimized = {BUILD_YES, "recorded"},
        .frame_pointers = {BUILD_NO, "0 of 9"},
        .frame_pointer_share = 0,
        .unwind_tables = {BUILD_YES, ".eh_frame"},
        .symbols = {BUILD_YES, ".symtab"},
        .debug_info = {BUILD_YES, "in the binary"},
        .assertions = {BUILD_NO, "none"},
        .sanitizers = "",
        .instrumented = "",
        .sampled = "",
    };
    machine->input = (struct check_input){
        .host = &machine->host, .binary = &machine->binary, .output_folder = machine->root};
    *state = machine;
    return 0;
}

static int teardown(void **state)
{
    struct machine *machine = *state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", machine->root);
    int r = system(command); /* NOLINT(bugprone-command-processor): a folder of our own */
    arena_deinit(&machine->arena);
    free(machine);
    return r;
}

static void put(struct machine *machine, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof(full), "%s%s", machine->root, path);
    *strrchr(full, '/') = '\0';
    assert_int_equal(folder_make(full, NULL), 0);
    full[strlen(full)] = '/';
    FILE *file = fopen(full, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static const struct check *find(const char *id)
{
    for (const struct check *check = checks; check->id; check++)
        if (strcmp(check->id, id) == 0)
            return check;
    fail_msg("no check '%s'", id);
    return NULL;
}

static struct check_result run(struct machine *machine, const char *id)
{
    struct check_result result = {0};
    find(id)->run(&machine->input, &result);
    return result;
}

/* What every answer owes its reader. */
static void expect(struct machine *machine, const char *id, enum check_verdict verdict,
                   const char *detail_part, const char *mend_part)
{
    struct check_result result = run(machine, id);
    if (result.verdict != verdict)
        fail_msg("%s: verdict %d, wanted %d (%s)", id, result.verdict, verdict, result.detail);
    assert_non_null(result.detail);
    assert_true(strlen(result.detail) > 0);
    if (detail_part && !strstr(result.detail, detail_part))
        fail_msg("%s: '%s' lacks '%s'", id, result.detail, detail_part);
    if (verdict == CHECK_OK) {
        assert_null(result.spoils);
        assert_null(result.mend);
    }
    if (verdict == CHECK_WARN || verdict == CHECK_FAIL) {
        assert_non_null(result.spoils);
        assert_true(strlen(result.spoils) > 10);
    }
    if (mend_part) {
        assert_non_null(result.mend);
        if (!strstr(result.mend, mend_part))
            fail_msg("%s: '%s' lacks '%s'", id, result.mend, mend_part);
    }
}

static void without_a_program_its_checks_say_why(void **state)
{
    struct machine *machine = *state;
    static const char *const ids[] = {"symbols",    "unwind",    "optimized",   "debug_info",
                                      "assertions", "sanitizer", "instrumented"};
    machine->input.binary = NULL;
    machine->input.binary_na = "no program was named here";
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
        expect(machine, ids[i], CHECK_NA, "no program was named here", NULL);
}

static void a_good_build_passes(void **state)
{
    struct machine *machine = *state;
    expect(machine, "symbols", CHECK_OK, ".symtab", NULL);
    expect(machine, "unwind", CHECK_OK, "unwind tables", NULL);
    expect(machine, "optimized", CHECK_OK, "-O2", NULL);
    expect(machine, "debug_info", CHECK_OK, NULL, NULL);
    expect(machine, "assertions", CHECK_OK, NULL, NULL);
    expect(machine, "sanitizer", CHECK_OK, NULL, NULL);
    expect(machine, "instrumented", CHECK_OK, NULL, NULL);
    machine->binary.frame_pointers = (struct build_fact){BUILD_YES, "9 of 9"};
    machine->binary.unwind_tables = (struct build_fact){BUILD_NO, "none"};
    expect(machine, "unwind", CHECK_OK, "frame pointers", NULL);
}

static void a_stripped_build_fails_and_is_rebuilt_or_gets_its_debug_package(void **state)
{
    struct machine *machine = *state;
    machine->binary.symbols = (struct build_fact){BUILD_NO, "only .dynsym"};
    expect(machine, "symbols", CHECK_FAIL, "only .dynsym", "-O2 -g");
    machine->binary.path = "/usr/bin/it's";
    expect(machine, "symbols", CHECK_FAIL, NULL, "debuginfod-find debuginfo '/usr/bin/it'\\''s'");
    put(machine, "/usr/bin/dpkg", "");
    expect(machine, "symbols", CHECK_FAIL, NULL,
           "apt-get install $(find-dbgsym-packages '/usr/bin/it'\\''s')");
    machine->binary.script = "/home/user/x.py";
    expect(machine, "symbols", CHECK_WARN, NULL, "apt-get");
    machine->binary.symbols.answer = BUILD_UNKNOWN;
    expect(machine, "symbols", CHECK_NA, "only .dynsym", NULL);
}

static void a_build_that_cannot_be_unwound_fails(void **state)
{
    struct machine *machine = *state;
    machine->binary.unwind_tables = (struct build_fact){BUILD_NO, "no rows"};
    expect(machine, "unwind", CHECK_FAIL, "no rows", "-fno-omit-frame-pointer");
    machine->binary.language = "Rust";
    expect(machine, "unwind", CHECK_FAIL, "no rows", "force-frame-pointers=yes");
    machine->binary.unwind_tables.answer = BUILD_UNKNOWN;
    expect(machine, "unwind", CHECK_NA, "no rows", NULL);
}

static void debug_and_size_builds_are_named(void **state)
{
    struct machine *machine = *state;
    machine->binary.optimization = "-O0";
    machine->binary.optimized = (struct build_fact){BUILD_NO, "recorded"};
    expect(machine, "optimized", CHECK_FAIL, "-O0", "CFLAGS='-O2 -g'");
    machine->binary.optimized.answer = BUILD_YES;
    machine->binary.optimization = "-Os";
    expect(machine, "optimized", CHECK_WARN, "for size", "-O2");
    machine->binary.optimization = "-Oz";
    expect(machine, "optimized", CHECK_WARN, "for size", "-O2");
    machine->binary.optimization = "-O2 (mixed: -O0 in 12% of the code)";
    expect(machine, "optimized", CHECK_WARN, "12%", "-O2");
    machine->binary.optimization = NULL;
    machine->binary.optimized = (struct build_fact){BUILD_UNKNOWN, "no debug information"};
    expect(machine, "optimized", CHECK_NA, "no debug information", NULL);
    machine->binary.language = "Go";
    machine->binary.optimized = (struct build_fact){BUILD_NO, "-N"};
    expect(machine, "optimized", CHECK_FAIL, "-N", "go build");
}

static void missing_lines_assertions_and_instrumentation_are_named(void **state)
{
    struct machine *machine = *state;
    machine->binary.debug_info = (struct build_fact){BUILD_NO, "a.dwo is missing"};
    expect(machine, "debug_info", CHECK_WARN, "a.dwo is missing", "-g");
    machine->binary.debug_info.answer = BUILD_UNKNOWN;
    expect(machine, "debug_info", CHECK_NA, NULL, NULL);
    machine->binary.assertions = (struct build_fact){BUILD_YES, "assert"};
    expect(machine, "assertions", CHECK_WARN, NULL, "-DNDEBUG");
    machine->binary.assertions.answer = BUILD_UNKNOWN;
    expect(machine, "assertions", CHECK_NA, NULL, NULL);
    machine->binary.sanitizers = "address, undefined";
    expect(machine, "sanitizer", CHECK_FAIL, "-fsanitize=address, undefined", "make clean all");
    machine->binary.instrumented = "gcov";
    expect(machine, "instrumented", CHECK_FAIL, "gcov", "make clean all");
}

static const char *const probed[] = {"perf_permission", "perf_system", "kernel_stacks",
                                     "bpf_permission", "pmu"};

static void a_recorded_machine_is_not_probed(void **state)
{
    struct machine *machine = *state;
    for (size_t i = 0; i < ARRAY_SIZE(probed); i++)
        expect(machine, probed[i], CHECK_NA, "recorded machine", NULL);
}

static void on_a_live_machine_the_probe_decides(void **state)
{
    static void (*const probes[])(struct probe *) = {
        probe_perf_own, probe_perf_system, probe_perf_kernel, probe_bpf_tracing, probe_perf_pmu};
    struct machine *machine = *state;
    machine->host.root = "";
    for (size_t i = 0; i < ARRAY_SIZE(probed); i++) {
        struct probe probe;
        probes[i](&probe);
        struct check_result result = run(machine, probed[i]);
        assert_int_equal(result.verdict == CHECK_OK, probe.ok);
        assert_string_equal(result.detail, probe.detail);
        if (!probe.ok && probe.remedy[0])
            assert_string_equal(result.mend, probe.remedy);
    }
}

static void kernel_knobs_are_judged(void **state)
{
    struct machine *machine = *state;
    expect(machine, "kptr_restrict", CHECK_NA, "cannot be read", NULL);
    put(machine, "/proc/sys/kernel/kptr_restrict", "0\n");
    expect(machine, "kptr_restrict", CHECK_OK, NULL, NULL);
    put(machine, "/proc/sys/kernel/kptr_restrict", "2\n");
    expect(machine, "kptr_restrict", CHECK_WARN, "2", "sysctl -w kernel.kptr_restrict=0");

    expect(machine, "nmi_watchdog", CHECK_NA, NULL, NULL);
    put(machine, "/proc/sys/kernel/nmi_watchdog", "0\n");
    expect(machine, "nmi_watchdog", CHECK_OK, NULL, NULL);
    put(machine, "/proc/sys/kernel/nmi_watchdog", "1\n");
    expect(machine, "nmi_watchdog", CHECK_WARN, "1", "sysctl -w kernel.nmi_watchdog=0");

    expect(machine, "ptrace_scope", CHECK_OK, "Yama", NULL);
    put(machine, "/proc/sys/kernel/yama/ptrace_scope", "1\n");
    expect(machine, "ptrace_scope", CHECK_OK, "starts", NULL);
    machine->input.pid = 7;
    expect(machine, "ptrace_scope", CHECK_FAIL, "1", "sysctl -w kernel.yama.ptrace_scope=0");
    put(machine, "/proc/sys/kernel/yama/ptrace_scope", "3\n");
    expect(machine, "ptrace_scope", CHECK_FAIL, "next boot", NULL);
    put(machine, "/proc/sys/kernel/yama/ptrace_scope", "0\n");
    expect(machine, "ptrace_scope", CHECK_OK, NULL, NULL);
}

static void other_load_is_measured_now_and_not_remembered(void **state)
{
    struct machine *machine = *state;
    struct host live = {.root = "", .arena = machine->input.host->arena};
    struct check_input input = {.host = &live, .binary_na = "none", .output_folder = "."};
    pid_t burners[256];
    /* Several for each CPU: two that begin on the same one leave no other idle. */
    long count = 4 * sysconf(_SC_NPROCESSORS_ONLN);
    count = count > 256 ? 256 : count;
    for (long i = 0; i < count; i++) {
        burners[i] = fork();
        if (burners[i] == 0)
            for (alarm(300);;)
                ;
    }
    struct check_result result = {0};
    check_load(&input, &result);
    for (long i = 0; i < count; i++) {
        kill(burners[i], SIGKILL);
        waitpid(burners[i], NULL, 0);
    }
    assert_int_equal(result.verdict, CHECK_FAIL);
    assert_non_null(strstr(result.detail, "CPUs busy now"));
}

static void load_is_judged_by_the_number_of_cpus(void **state)
{
    struct machine *machine = *state;
    expect(machine, "load", CHECK_NA, NULL, NULL);
    put(machine, "/sys/devices/system/cpu/online", "0-2,4\n");
    put(machine, "/proc/loadavg", "0.10 0.20 0.30 1/200 1234\n");
    expect(machine, "load", CHECK_OK, "4 CPUs", NULL);
    put(machine, "/proc/loadavg", "1.50 0.20 0.30 1/200 1234\n");
    expect(machine, "load", CHECK_WARN, "1.50", "ps ");
    put(machine, "/proc/loadavg", "4.00 0.20 0.30 5/200 1234\n");
    expect(machine, "load", CHECK_FAIL, "4.00", "ps ");
    put(machine, "/proc/loadavg", "garbage\n");
    expect(machine, "load", CHECK_NA, "cannot be read", NULL);
}

static void clocks_are_judged(void **state)
{
    struct machine *machine = *state;
    put(machine, "/sys/devices/system/cpu/online", "0-1\n");
    expect(machine, "governor", CHECK_NA, "no frequency control", NULL);
    put(machine, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    put(machine, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n");
    expect(machine, "governor", CHECK_OK, "all 2 CPUs", NULL);
    put(machine, "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
    expect(machine, "governor", CHECK_WARN, "powersave on 1 of 2", "echo performance | tee");

    expect(machine, "turbo", CHECK_NA, NULL, NULL);
    put(machine, "/sys/devices/system/cpu/cpufreq/boost", "1\n");
    expect(machine, "turbo", CHECK_WARN, "boost is 1", "echo 0 | tee");
    put(machine, "/sys/devices/system/cpu/cpufreq/boost", "0\n");
    expect(machine, "turbo", CHECK_OK, NULL, NULL);
    put(machine, "/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    expect(machine, "turbo", CHECK_WARN, "no_turbo is 0", "echo 1 | tee");
    put(machine, "/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
    expect(machine, "turbo", CHECK_OK, NULL, NULL);

    expect(machine, "throttling", CHECK_NA, NULL, NULL);
    put(machine, "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "0\n");
    put(machine, "/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "0\n");
    expect(machine, "throttling", CHECK_OK, "0 times", NULL);
    put(machine, "/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "17\n");
    expect(machine, "throttling", CHECK_WARN, "17 times", "thermal_throttle");

    expect(machine, "clocksource", CHECK_NA, NULL, NULL);
    static const char source[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    put(machine, source, "tsc\n");
    expect(machine, "clocksource", CHECK_OK, "tsc", NULL);
    put(machine, source, "hpet\n");
    expect(machine, "clocksource", CHECK_WARN, "hpet", "echo tsc | tee");
}

static void the_tightest_cgroup_limit_counts(void **state)
{
    struct machine *machine = *state;
    expect(machine, "cpu_limit", CHECK_NA, NULL, NULL);
    put(machine, "/proc/self/cgroup", "0::/a/b\n");
    expect(machine, "cpu_limit", CHECK_OK, "no limit", NULL);
    put(machine, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put(machine, "/sys/fs/cgroup/a/b/cpu.stat", "nr_periods 0\nnr_throttled 0\n");
    expect(machine, "cpu_limit", CHECK_OK, "no limit", NULL);
    put(machine, "/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    put(machine, "/sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_periods 1000\nnr_throttled 3\n");
    expect(machine, "cpu_limit", CHECK_WARN, "0.50 CPUs, throttled in 3 of 1000",
           "echo max | tee '/sys/fs/cgroup/a/cpu.max'");
    put(machine, "/sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_periods 1000\nnr_throttled 300\n");
    expect(machine, "cpu_limit", CHECK_FAIL, "300 of 1000", "cpu.max");
    put(machine, "/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    expect(machine, "cpu_limit", CHECK_FAIL, "0.50 CPUs", "'/sys/fs/cgroup/a/cpu.max'");
    put(machine, "/sys/fs/cgroup/a/b/cpu.max", "20000 100000\n");
    expect(machine, "cpu_limit", CHECK_WARN, "0.20 CPUs", "'/sys/fs/cgroup/a/b/cpu.max'");
    /* The named process counts, not whyslow's own. */
    machine->input.pid = 7;
    put(machine, "/proc/7/cgroup", "0::/\n");
    expect(machine, "cpu_limit", CHECK_OK, "no limit", NULL);
    put(machine, "/proc/7/cgroup", "5:cpu,cpuacct:/x\n0::/\n");
    put(machine, "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "200000\n");
    put(machine, "/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
    put(machine, "/sys/fs/cgroup/cpu/x/cpu.stat", "nr_periods 10\nnr_throttled 0\n");
    expect(machine, "cpu_limit", CHECK_WARN, "2.00 CPUs", "echo -1 | tee");
    put(machine, "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
    expect(machine, "cpu_limit", CHECK_OK, "no limit", NULL);
}

static void stolen_time_is_a_share(void **state)
{
    struct machine *machine = *state;
    expect(machine, "steal", CHECK_NA, NULL, NULL);
    put(machine, "/proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1\n");
    expect(machine, "steal", CHECK_OK, "0.00%", NULL);
    put(machine, "/proc/stat", "cpu  100 0 100 750 0 0 0 50 0 0\n");
    expect(machine, "steal", CHECK_WARN, "5.00%", NULL);
    put(machine, "/proc/stat", "cpu  100 0 100 600 0 0 0 200 0 0\n");
    expect(machine, "steal", CHECK_FAIL, "20.00%", NULL);
    put(machine, "/proc/stat", "cpu  100 0\n");
    expect(machine, "steal", CHECK_NA, NULL, NULL);
}

static void memory_and_swap_are_judged(void **state)
{
    struct machine *machine = *state;
    expect(machine, "memory", CHECK_NA, NULL, NULL);
    expect(machine, "swap", CHECK_NA, NULL, NULL);
    put(machine, "/proc/meminfo",
        "MemTotal: 1000000 kB\nMemAvailable: 500000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
    expect(machine, "memory", CHECK_OK, "50%", NULL);
    expect(machine, "swap", CHECK_OK, "no swap", NULL);
    put(machine, "/proc/meminfo",
        "MemTotal: 1000000 kB\nMemAvailable: 50000 kB\nSwapTotal: 1000 kB\nSwapFree: 500 kB\n");
    expect(machine, "memory", CHECK_WARN, "5%", "ps ");
    expect(machine, "swap", CHECK_WARN, "pressure is not told", "swapoff -a && swapon -a");
    put(machine, "/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    expect(machine, "swap", CHECK_OK, "0.0%", NULL);
    put(machine, "/proc/pressure/memory", "some avg10=12.50 avg60=0.00 avg300=0.00 total=0\n");
    expect(machine, "swap", CHECK_FAIL, "12.5%", "swapoff");
    put(machine, "/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 20000 kB\n");
    expect(machine, "memory", CHECK_FAIL, "2%", "ps ");
}

static void a_full_or_closed_folder_fails(void **state)
{
    struct machine *machine = *state;
    char folder[128];
    snprintf(folder, sizeof(folder), "%s/full/not/yet/made", machine->root);
    machine->input.output_folder = folder;
    struct check_result result = run(machine, "disk");
    assert_non_null(strstr(result.detail, machine->root)); /* the nearest that exists */
    machine->input.output_folder = "/proc";
    result = run(machine, "disk");
    assert_int_not_equal(result.verdict, CHECK_OK);

    /* A file system of our own that is full: in a namespace that dies with the test. */
    if (unshare(CLONE_NEWNS) < 0) {
        skip("no mount namespace");
    }
    /* EINVAL in a chroot, whose root is no mount: then the unmount below must do. */
    assert_true(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 || errno == EINVAL);
    snprintf(folder, sizeof(folder), "%s/full", machine->root);
    assert_int_equal(mkdir(folder, 0700), 0);
    if (mount("none", folder, "tmpfs", 0, "size=8m") < 0) {
        skip("no tmpfs can be mounted");
    }
    machine->input.output_folder = folder;
    expect(machine, "disk", CHECK_FAIL, "8.00 MiB free", "du -xh");
    assert_int_equal(mount("none", folder, "tmpfs", MS_REMOUNT, "size=500m"), 0);
    expect(machine, "disk", CHECK_WARN, "500 MiB free", "du -xh");
    assert_int_equal(mount("none", folder, "tmpfs", MS_REMOUNT, "size=2g"), 0);
    expect(machine, "disk", CHECK_OK, "2.00 GiB free", NULL);
    assert_int_equal(umount(folder), 0);
}

static void the_table_has_every_check_and_counts_failures(void **state)
{
    struct machine *machine = *state;
    machine->binary.sanitizers = "thread";
    machine->binary.symbols = (struct build_fact){BUILD_NO, "none"};
    unsigned failed = 99;
    struct value table = checks_table(&machine->input, &failed);
    assert_int_equal(table.kind, VALUE_TABLE);
    assert_int_equal(failed, 2);
    size_t count = 0;
    while (checks[count].id)
        count++;
    assert_int_equal(table.table->row_count, count);
    static const char *const keys[] = {"verdict", "id", "check", "detail", "spoils", "mend"};
    assert_int_equal(table.table->column_count, ARRAY_SIZE(keys));
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        assert_string_equal(table.table->columns[i].key, keys[i]);
    const struct check *check = checks;
    for (const struct table_row *row = table.table->first; row; row = row->next, check++) {
        assert_true(str_is(row->cells[1].text, check->id));
        assert_true(row->cells[3].text.len > 0);
    }
    assert_false(arena_failed(&machine->arena));
}

static void ids_are_unique(void **state)
{
    (void)state;
    for (const struct check *a = checks; a->id; a++)
        for (const struct check *b = a + 1; b->id; b++)
            assert_string_not_equal(a->id, b->id);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_a_program_its_checks_say_why),
        TEST(a_good_build_passes),
        TEST(a_stripped_build_fails_and_is_rebuilt_or_gets_its_debug_package),
        TEST(a_build_that_cannot_be_unwound_fails),
        TEST(debug_and_size_builds_are_named),
        TEST(missing_lines_assertions_and_instrumentation_are_named),
        TEST(a_recorded_machine_is_not_probed),
        TEST(on_a_live_machine_the_probe_decides),
        TEST(kernel_knobs_are_judged),
        TEST(load_is_judged_by_the_number_of_cpus),
        TEST(other_load_is_measured_now_and_not_remembered),
        TEST(clocks_are_judged),
        TEST(the_tightest_cgroup_limit_counts),
        TEST(stolen_time_is_a_share),
        TEST(memory_and_swap_are_judged),
        TEST(the_table_has_every_check_and_counts_failures),
        TEST(ids_are_unique),
        TEST(a_full_or_closed_folder_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
