/* Promises of store/bench_file.h and model/bench.h. */
#include "unit.h"

#include "store/bench_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct arena arena;
static struct why why;

static int read_text(const char *text, struct bench_file *ret)
{
    char path[] = "/tmp/whyslow-bench-file-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    why = (struct why){0};
    int r = bench_file_read(&arena, path, ret, &why);
    unlink(path);
    return r;
}

#define RUN "{\"wall_ms\": 1.5, \"user_ms\": 1, \"exit_code\": 0}"
#define OURS(runs)                                                                                 \
    "{\"schema\": \"whyslow.bench/1\", \"fingerprint\": {}, \"results\": [{\"command\": \"a b\", " \
    "\"name\": \"n\", \"warmup\": 3, \"runs\": [" runs "]}]}"

static void every_figure_of_every_run_comes_back(void **state)
{
    (void)state;
    struct bench_file file = {0};
    assert_int_equal(
        read_text(
            OURS("{\"wall_ms\": 1.5, \"peak_rss_kb\": 2048, \"cycles\": \"n/a: no PMU\", "
                 "\"signal\": 11, \"exit_code\": null, \"failed\": true, "
                 "\"output_bytes\": 3, \"output_sha256\": "
                 "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"}, " RUN),
            &file),
        0);
    assert_false(file.hyperfine);
    assert_true(file.has_fingerprint);
    assert_int_equal(file.results.len, 1);
    const struct bench_result *result = &file.results.data[0];
    assert_string_equal(result->command, "a b");
    assert_string_equal(result->name, "n");
    assert_int_equal(result->warmup, 3);
    assert_int_equal(result->runs.len, 2);
    const struct bench_run *run = &result->runs.data[0];
    assert_true(run->value[BENCH_WALL] == 1.5 && run->value[BENCH_PEAK_RSS] == 2048);
    assert_true(isnan(run->value[BENCH_CYCLES]));
    assert_string_equal(result->missing[BENCH_CYCLES], "n/a: no PMU");
    assert_true(WIFSIGNALED(run->status) && WTERMSIG(run->status) == 11 && run->failed);
    assert_true(run->output_known && run->output_bytes == 3);
    assert_true(WIFEXITED(result->runs.data[1].status));
    assert_false(result->runs.data[1].output_known);
    bench_file_deinit(&file);
}

static void hyperfines_own_export_is_read(void **state)
{
    (void)state;
    struct bench_file file = {0};
    assert_int_equal(read_text("{\"results\": [{\"command\": \"true\", \"mean\": 0.001, "
                               "\"stddev\": null, \"times\": [0.001, 0.002], "
                               "\"exit_codes\": [0, 1]}]}",
                               &file),
                     0);
    assert_true(file.hyperfine);
    assert_false(file.has_fingerprint);
    const struct bench_result *result = &file.results.data[0];
    assert_string_equal(result->name, "true");
    assert_true(result->runs.data[1].value[BENCH_WALL] == 2);
    assert_true(result->runs.data[1].failed && !result->runs.data[0].failed);
    assert_true(isnan(result->runs.data[0].value[BENCH_USER]));
    assert_non_null(strstr(result->missing[BENCH_USER], "hyperfine"));
    bench_file_deinit(&file);
}

static void what_is_refused_is_named_with_its_place(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "is no JSON"},
        {"[1, 2", "is no JSON: line 1"},
        {"[]", "holds no results"},
        {"{\"results\": []}", "holds no results"},
        {"{\"schema\": \"whyslow.doctor/1\"}", "no benchmark, but whyslow.doctor/1"},
        {"{\"schema\": \"whyslow.bench/9\"}", "has schema whyslow.bench/9"},
        {"{\"results\": [3]}", "results[0] is no object"},
        {"{\"results\": [{\"command\": 3}]}", "results[0].command is no text"},
        {"{\"results\": [{\"command\": \"a\"}]}", "results[0].times is missing"},
        {"{\"results\": [{\"command\": \"a\", \"times\": []}]}", "no run was finished"},
        {"{\"results\": [{\"command\": \"a\", \"times\": [1, \"x\"]}]}", "results[0].times[1]"},
        {"{\"results\": [{\"command\": \"a\", \"times\": [-1]}]}", "results[0].times[0]"},
        {OURS(""), "no run was finished"},
        {OURS("3"), "results[0].runs[0]. is no object"},
        {OURS(RUN ", {\"exit_code\": 0}"), "runs[1].wall_ms is missing"},
        {OURS("{\"wall_ms\": -1, \"exit_code\": 0}"), "runs[0].wall_ms is no figure"},
        {OURS("{\"wall_ms\": 1e300, \"exit_code\": 0}"), "runs[0].wall_ms is no figure"},
        {OURS("{\"wall_ms\": 1, \"exit_code\": 256}"), "runs[0].exit_code"},
        {OURS("{\"wall_ms\": 1, \"signal\": 0}"), "runs[0].signal"},
        {OURS("{\"wall_ms\": 1, \"user_ms\": \"fast\", \"exit_code\": 0}"), "runs[0].user_ms"},
        {"{\"results\": 1, \"results\": 2}", "is no JSON"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct bench_file file = {0};
        assert_int_equal(read_text(rows[i][0], &file), -EINVAL);
        if (!strstr(why.what, rows[i][1]))
            fail_msg("'%s' says: %s", rows[i][0], why.what);
        assert_int_equal(why.kind, WHY_USAGE);
        assert_null(file.results.data);
    }
    struct bench_file file = {0};
    assert_int_equal(bench_file_read(&arena, "/nonexistent", &file, &why), -ENOENT);
}

static void metrics_are_found_by_name_and_by_key(void **state)
{
    (void)state;
    assert_int_equal(bench_metric_find("wall"), BENCH_WALL);
    assert_int_equal(bench_metric_find("wall_ms"), BENCH_WALL);
    assert_int_equal(bench_metric_find("peak_rss_kb"), BENCH_PEAK_RSS);
    assert_int_equal(bench_metric_find("speed"), -1);
    for (int i = 0; i < BENCH_METRICS; i++)
        assert_true(bench_metrics[i].name && bench_metrics[i].key && bench_metrics[i].about);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_figure_of_every_run_comes_back),
        cmocka_unit_test(hyperfines_own_export_is_read),
        cmocka_unit_test(what_is_refused_is_named_with_its_place),
        cmocka_unit_test(metrics_are_found_by_name_and_by_key),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    arena_deinit(&arena);
    return r;
}
