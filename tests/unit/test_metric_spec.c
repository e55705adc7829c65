/* Promises of cmd/metric_spec.h and of callgrind's files (target/callgrind.h). */
#include "unit.h"

#include "cmd/metric_spec.h"
#include "target/callgrind.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct arena arena;
static struct why why;

static void a_metric_a_share_or_both(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int metric;
        double share;
        const char *label;
    } cases[] = {
        {"wall", BENCH_WALL, 0.5, "wall time"},
        {"wall_ms", BENCH_WALL, 0.5, "wall time"},
        {"peak_rss", BENCH_PEAK_RSS, 0.5, "peak memory (RSS)"},
        {"median", BENCH_WALL, 0.5, "wall time"},
        {"p95", BENCH_WALL, 0.95, "p95 of wall time"},
        {"p99.9", BENCH_WALL, 0.999, "p99.9 of wall time"},
        {"wall:p95", BENCH_WALL, 0.95, "p95 of wall time"},
        {"user:median", BENCH_USER, 0.5, "CPU time in user space"},
        {"peak_rss:p99", BENCH_PEAK_RSS, 0.99, "p99 of peak memory (RSS)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct metric_spec spec;
        assert_int_equal(metric_spec_parse(&arena, cases[i].text, &spec, &why), 0);
        assert_int_equal(spec.metric, cases[i].metric);
        assert_true(fabs(spec.share - cases[i].share) < 1e-12);
        assert_string_equal(spec.label, cases[i].label);
    }
}

static void nonsense_is_refused_and_leaves_the_result_alone(void **state)
{
    (void)state;
    const char *bad[] = {"",     "speed", "p",      "p0",   "p100",     "p-5",         "p9x",
                         "pinf", "wall:", "wall:x", ":p95", "p95:wall", "wall:p95:p99"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct metric_spec spec = {.metric = 77};
        why = (struct why){0};
        assert_int_equal(metric_spec_parse(&arena, bad[i], &spec, &why), -EINVAL);
        assert_int_equal(spec.metric, 77);
        assert_int_equal(why.kind, WHY_USAGE);
        assert_true(why.remedy[0]);
    }
}

static int read_text(const char *text, uint64_t *ret)
{
    char path[] = "/tmp/whyslow-callgrind-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    why = (struct why){0};
    int r = callgrind_file_read(path, ret, &why);
    unlink(path);
    return r;
}

static void callgrinds_total_is_read(void **state)
{
    (void)state;
    uint64_t count = 7;
    assert_int_equal(read_text("# callgrind format\nversion: 1\ncmd: ./totals: 5\n\n"
                               "positions: line\nevents: Ir\nsummary: 99\n\nfn=(1) main\n1 40\n"
                               "totals: 8123456789\n",
                               &count),
                     0);
    assert_int_equal(count, 8123456789);
    /* With the caches simulated there are more figures; instructions stand first. */
    assert_int_equal(read_text("events: Ir Dr Dw\ntotals: 12 4 5\n", &count), 0);
    assert_int_equal(count, 12);
}

static void files_without_a_total_of_instructions_are_refused(void **state)
{
    (void)state;
    uint64_t count = 7;
    const char *bad[] = {"",
                         "events: Ir\n",
                         "totals: 5\n",
                         "events: Dr\ntotals: 5\n",
                         "events: Ir\ntotals: many\n",
                         "events: Ir\ntotals: -5\n",
                         "events: Ir\ntotals: 5\ntotals: x\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(read_text(bad[i], &count), -EINVAL);
        assert_true(why.what[0]);
    }
    assert_int_equal(count, 7);
    assert_true(callgrind_file_read("/nonexistent/file", &count, &why) < 0);
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_metric_a_share_or_both),
        cmocka_unit_test(nonsense_is_refused_and_leaves_the_result_alone),
        cmocka_unit_test(callgrinds_total_is_read),
        cmocka_unit_test(files_without_a_total_of_instructions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
