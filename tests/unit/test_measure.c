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
    assert_int_equal(
        measure("sleep 0.2", (struct measure_opts){.pss_every_ns = 5 * NS_PER_MS}, &run, NULL), 0);
    /* PSS shares pages with others and may not be larger than RSS was; 10 KiB is what any
     * process has for itself. */
    assert_true(run.value[BENCH_PEAK_PSS] > 10);
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
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    arena_deinit(&arena);
    return r;
}
