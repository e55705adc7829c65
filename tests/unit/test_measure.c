/* Promises of target/measure.h. */
#include "unit.h"

#include "base/clock.h"
#include "base/fd.h"
#include "target/command.h"
#include "target/measure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct arena arena;
static const char *missing[BENCH_METRICS];

static int measure(const char *text, struct measure_opts opts, struct bench_run *ret,
                   struct why *why)
{
    struct command_line line = {0};
    assert_int_equal(command_line_parse(&arena, text, "sh", &line, why), 0);
    opts.argv = line.argv;
    opts.path = line.path;
    memset(missing, 0, sizeof(missing));
    return measure_run(&opts, ret, missing, why);
}

static void every_figure_is_a_number_or_has_a_reason(void **state)
{
    (void)state;
    struct bench_run run = {0};
    assert_int_equal(measure("true", (struct measure_opts){.counters = true}, &run, NULL), 0);
    assert_true(run.value[BENCH_WALL] > 0);
    assert_false(run.failed);
    for (int i = 0; i < BENCH_METRICS; i++) {
        if (isnan(run.value[i]))
            assert_true(missing[i] && strncmp(missing[i], "n/a: ", 5) == 0);
        else
            assert_null(missing[i]);
    }
    assert_true(run.value[BENCH_CPU] == run.value[BENCH_USER] + run.value[BENCH_SYSTEM]);
}

static void output_is_hashed_only_when_it_is_read(void **state)
{
    (void)state;
    struct bench_run run = {0};
    assert_int_equal(measure("printf abc", (struct measure_opts){.output = "pipe"}, &run, NULL), 0);
    assert_true(run.output_known && run.output_bytes == 3);
    assert_string_equal(run.output_sha256,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(measure("printf abc", (struct measure_opts){0}, &run, NULL), 0);
    assert_false(run.output_known);
}

static void input_and_output_files_are_the_commands_streams(void **state)
{
    (void)state;
    char in[] = "/tmp/whyslow-measure-XXXXXX", out[] = "/tmp/whyslow-measure-XXXXXX";
    int fd = mkstemp(in);
    assert_int_equal(fd_write_all(fd, "hello", 5), 0);
    close(fd);
    close(mkstemp(out));
    struct bench_run run = {0};
    for (int i = 0; i < 2; i++) /* emptied before each run, not appended to */
        assert_int_equal(
            measure("cat", (struct measure_opts){.input = in, .output = out}, &run, NULL), 0);
    struct str text;
    assert_int_equal(file_read(&arena, out, 100, &text, NULL), 0);
    assert_true(str_is(text, "hello"));
    unlink(in);
    unlink(out);
    struct why why = {0};
    assert_int_equal(measure("cat", (struct measure_opts){.input = in}, &run, &why), -ENOENT);
    assert_non_null(strstr(why.what, "cannot open the input"));
}

static void failure_death_and_timeout_are_told_apart(void **state)
{
    (void)state;
    struct bench_run run = {0};
    assert_int_equal(measure("exit 3", (struct measure_opts){0}, &run, NULL), 0);
    assert_true(run.failed && WEXITSTATUS(run.status) == 3 && !run.timed_out);
    assert_int_equal(measure("kill -9 $$", (struct measure_opts){0}, &run, NULL), 0);
    assert_true(run.failed && WIFSIGNALED(run.status) && !run.timed_out);
    assert_int_equal(
        measure("sleep 100", (struct measure_opts){.timeout_ns = 50 * NS_PER_MS}, &run, NULL), 0);
    assert_true(run.failed && run.timed_out);
}

static void the_environment_grows_by_the_bytes_asked_for(void **state)
{
    (void)state;
    struct measure_opts opts = {.output = "pipe"};
    struct bench_run none = {0}, some = {0};
    assert_int_equal(measure("printf %s \"$WHYSLOW_PADDING\"", opts, &none, NULL), 0);
    opts.environment_bytes = 1000;
    assert_int_equal(measure("printf %s \"$WHYSLOW_PADDING\"", opts, &some, NULL), 0);
    assert_int_equal(none.output_bytes, 0);
    assert_int_equal(some.output_bytes, 1000);
}

static void pss_is_sampled_when_asked_for(void **state)
{
    (void)state;
    struct bench_run run = {0};
    char text[512];
    /* Between any two samples we sleep: the program ends when we have done so often enough. */
    snprintf(text, sizeof(text),
             "n() { sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' /proc/%d/status; }; "
             "first=$(n); while [ $(($(n) - first)) -lt 20 ]; do sleep 0.02; done",
             (int)getpid());
    assert_int_equal(
        measure(text, (struct measure_opts){.pss_every_ns = 5 * NS_PER_MS}, &run, NULL), 0);
    /* PSS shares pages with others and may not be larger than RSS was; 10 KiB is what any
     * process has for itself. */
    assert_true(run.value[BENCH_PEAK_PSS] > 10);
}

static int measure_full(const char *text, struct measure_opts opts, struct bench_run *ret,
                        struct spawn_result *ret_result)
{
    struct command_line line = {0};
    assert_int_equal(command_line_parse(&arena, text, NULL, &line, NULL), 0);
    opts.argv = line.argv;
    opts.path = line.path;
    opts.output = "pipe";
    return measure_run_full(&opts, ret, ret_result, missing, NULL);
}

/* The program prints what the kernel tells it about itself just before it exits. A peak never
 * falls, so the figure at exit cannot be smaller (ru_maxrss mostly is); what it still does then
 * may fault in two more blocks of 64 KiB. */
static void the_exact_peak_is_what_the_kernel_tells_the_program_itself(void **state)
{
    (void)state;
    char text[512];
    for (int mib = 0; mib <= 64; mib += 64) {
        snprintf(text, sizeof(text), "%s/tests/workloads/known alloc-mib=%d hwm=1",
                 getenv("BUILD_ROOT"), mib);
        struct bench_run run = {0};
        struct spawn_result result;
        assert_int_equal(
            measure_full(text, (struct measure_opts){.exact_memory = true}, &run, &result), 0);
        if (result.peak_rss_exact_bytes == 0)
            skip("ptrace is refused here");
        result.output.tail[MIN(result.output.tail_len, sizeof(result.output.tail) - 1)] = '\0';
        double told = strtod(result.output.tail, NULL);
        assert_true(told > 500);
        double more = run.value[BENCH_PEAK_RSS] - told;
        if (more < 0 || more > told / 100 + 128)
            fail_msg("%.0f KiB, but it says %.0f", run.value[BENCH_PEAK_RSS], told);
    }
}

static void the_peak_of_a_small_program_is_its_own_beside_a_large_whyslow(void **state)
{
    (void)state;
    size_t len = (size_t)200 << 20;
    char *memory = malloc(len);
    assert_non_null(memory);
    for (size_t i = 0; i < len; i += 4096)
        ((volatile char *)memory)[i] = 1;
    const char *const argv[] = {"true", NULL};
    struct measure_opts opts = {.argv = (char *const *)argv, .path = "/bin/true"};
    assert_int_equal(measure_nest_open(&opts, &opts.nest, NULL), 0);
    for (int i = 0; i < 20; i++) {
        struct bench_run run = {0};
        opts.exact_memory = i % 2;
        assert_int_equal(measure_run(&opts, &run, missing, NULL), 0);
        /* A few megabytes with any libc; the 200 would show. */
        assert_true(run.value[BENCH_PEAK_RSS] > 100 && run.value[BENCH_PEAK_RSS] < 20000);
    }
    spawn_nest_close(opts.nest);
    free(memory);
}

static void a_program_that_is_watched_at_its_exit_still_gets_its_signals(void **state)
{
    (void)state;
    struct measure_opts opts = {.exact_memory = true, .output = "pipe"};
    struct bench_run run = {0};
    assert_int_equal(
        measure("trap 'echo caught; exit 7' USR1; kill -USR1 $$; sleep 5", opts, &run, NULL), 0);
    assert_true(WIFEXITED(run.status) && WEXITSTATUS(run.status) == 7);
    assert_int_equal(run.output_bytes, 7);
    assert_int_equal(measure("exec sh -c 'exec sh -c \"exit 5\"'", opts, &run, NULL), 0);
    assert_int_equal(WEXITSTATUS(run.status), 5);
    assert_int_equal(measure("kill -9 $$", opts, &run, NULL), 0);
    assert_true(WIFSIGNALED(run.status) && WTERMSIG(run.status) == 9);
    opts.timeout_ns = 50 * NS_PER_MS;
    assert_int_equal(measure("sleep 100", opts, &run, NULL), 0);
    assert_true(run.timed_out);
}

static void one_launcher_serves_many_runs_each_with_its_own_streams(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "-c", "cat; printf %s \"$WHYSLOW_PADDING\"", NULL};
    for (int plain = 0; plain < 2; plain++) {
        struct measure_opts opts = {.argv = (char *const *)argv,
                                    .path = "/bin/sh",
                                    .output = "pipe",
                                    .environment_bytes = 300};
        struct spawn_opts spawn = {
            .argv = opts.argv, .path = opts.path, .plain = plain, .environment_bytes = 300};
        assert_int_equal(spawn_nest_open(&spawn, &opts.nest, NULL), 0);
        for (size_t i = 0; i < 50; i++) {
            struct bench_run run = {0};
            opts.environment_bytes = i * 6;
            opts.exact_memory = i % 10 == 9;
            opts.counters = i % 10 == 8; /* held */
            assert_int_equal(measure_run(&opts, &run, missing, NULL), 0);
            assert_int_equal(run.output_bytes, i * 6);
            assert_false(run.failed);
            assert_true(run.value[BENCH_WALL] > 0);
        }
        spawn_nest_close(opts.nest);
    }
}

static void a_program_that_cannot_be_executed_is_an_error_of_every_run(void **state)
{
    (void)state;
    char path[] = "/tmp/whyslow-measure-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(fd_write_all(fd, "no program", 10), 0);
    fchmod(fd, 0700);
    close(fd);
    const char *const argv[] = {path, NULL};
    struct measure_opts opts = {.argv = (char *const *)argv, .path = path};
    assert_int_equal(measure_nest_open(&opts, &opts.nest, NULL), 0);
    for (int i = 0; i < 3; i++) {
        struct bench_run run = {0};
        struct why why = {0};
        assert_int_equal(measure_run(&opts, &run, missing, &why), -ENOEXEC);
        assert_non_null(strstr(why.what, "no program this machine can run"));
    }
    spawn_nest_close(opts.nest);
    unlink(path);
}

static void what_a_command_leaves_behind_is_killed(void **state)
{
    (void)state;
    struct measure_opts opts = {0};
    struct bench_run run = {0};
    struct spawn_result result;
    assert_int_equal(measure_full("sh -c 'sleep 100 & echo $!'", opts, &run, &result), 0);
    assert_true(result.left_behind);
    result.output.tail[MIN(result.output.tail_len, sizeof(result.output.tail) - 1)] = '\0';
    int pid = atoi(result.output.tail);
    assert_true(pid > 0);
    /* Its new parent has to take it off the books; an orphan is not ours to wait for. */
    char name[64], stat[256] = "";
    snprintf(name, sizeof(name), "/proc/%d/stat", pid);
    bool gone = false;
    for (int i = 0; i < 600000 && !gone; i++) {
        FILE *in = fopen(name, "r");
        gone = !in || !fgets(stat, sizeof(stat), in) || strstr(stat, ") Z");
        if (in)
            fclose(in);
        clock_sleep_ns(NS_PER_MS);
    }
    assert_true(gone);
    assert_int_equal(measure_full("true", opts, &run, &result), 0);
    assert_false(result.left_behind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_figure_is_a_number_or_has_a_reason),
        cmocka_unit_test(output_is_hashed_only_when_it_is_read),
        cmocka_unit_test(input_and_output_files_are_the_commands_streams),
        cmocka_unit_test(failure_death_and_timeout_are_told_apart),
        cmocka_unit_test(the_environment_grows_by_the_bytes_asked_for),
        cmocka_unit_test(pss_is_sampled_when_asked_for),
        cmocka_unit_test(the_exact_peak_is_what_the_kernel_tells_the_program_itself),
        cmocka_unit_test(the_peak_of_a_small_program_is_its_own_beside_a_large_whyslow),
        cmocka_unit_test(a_program_that_is_watched_at_its_exit_still_gets_its_signals),
        cmocka_unit_test(one_launcher_serves_many_runs_each_with_its_own_streams),
        cmocka_unit_test(a_program_that_cannot_be_executed_is_an_error_of_every_run),
        cmocka_unit_test(what_a_command_leaves_behind_is_killed),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    arena_deinit(&arena);
    return r;
}
