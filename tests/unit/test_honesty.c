/* Promises of analyze/honesty.c: what was counted is said, what was not is n/a. */
#include "recording_helpers.h"

#include "analyze/honesty.h"

#include <math.h>

struct count {
    const char *name;
    enum unit unit;
    uint64_t value;
};

static struct honesty read_back(const struct count *counts, size_t len)
{
    struct recording_writer *writer = NULL;
    struct recording_opts opts = {.version = "test"};
    assert_int_equal(recording_create(path, &opts, &writer, NULL), 0);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(sink_counter(recording_writer_sink(writer), counts[i].name, counts[i].unit,
                                      counts[i].value),
                         0);
    assert_int_equal(recording_writer_finish(writer, NULL), 0);
    recording_writer_close(writer);
    struct recording *recording = NULL;
    assert_int_equal(recording_open(path, &recording, NULL), 0);
    struct honesty honesty;
    assert_int_equal(honesty_read(recording, &honesty, NULL), 0);
    recording_close(recording);
    return honesty;
}

static void test_counters_become_shares(void **state)
{
    (void)state;
    const struct count counts[] = {
        {"cpu.samples", UNIT_COUNT, 1000},      {"cpu.complete", UNIT_COUNT, 990},
        {"cpu.truncated", UNIT_COUNT, 5},       {"loss.ring_full", UNIT_COUNT, 3},
        {"cpu.throttled", UNIT_COUNT, 1},       {"cpu.sampled_ns", UNIT_NS, 1000000000},
        {"cpu.rusage_ns", UNIT_NS, 1010000000}, {"cpu.own_ns", UNIT_NS, 5050000},
        {"cpu.kernel_ns", UNIT_NS, 5050000},
    };
    struct honesty h = read_back(counts, ARRAY_SIZE(counts));
    assert_true(fabs(h.complete_pct - 99) < 1e-9 && fabs(h.truncated_pct - 0.5) < 1e-9);
    assert_true(h.lost == 3 && h.throttled == 1 && h.samples == 1000);
    assert_true(fabs(h.sampled_cpu_ms - 1000) < 1e-9 && fabs(h.rusage_cpu_ms - 1010) < 1e-9);
    assert_true(fabs(h.overhead_pct - 1) < 1e-9 && h.kernel_estimated);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    assert_string_equal(honesty_line(&arena, &h),
                        "1,000 samples, 99.0% complete, 0.5% truncated, 3 lost, 1 throttled; "
                        "sampled 1.00 s of 1.01 s CPU time (99.0%); overhead 1.0% (the kernel's "
                        "share estimated)");
    struct value map = honesty_value(&arena, &h);
    assert_true(value_number(value_get(&map, "overhead_pct")) == h.overhead_pct);
}

static void test_what_was_not_measured_is_not_zero(void **state)
{
    (void)state;
    const struct count counts[] = {{"cpu.samples", UNIT_COUNT, 10},
                                   {"cpu.sampled_ns", UNIT_NS, 1000000}};
    struct honesty h = read_back(counts, ARRAY_SIZE(counts));
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value map = honesty_value(&arena, &h);
    static const char *const missing[] = {"complete_pct", "truncated_pct", "lost",
                                          "throttled",    "rusage_cpu_ms", "overhead_pct"};
    for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
        const struct value *value = value_get(&map, missing[i]);
        assert_non_null(value);
        assert_int_equal(value->kind, VALUE_NA);
        assert_true(value->text.len > 0); /* with a reason */
    }
    assert_int_equal(value_get(&map, "samples")->kind, VALUE_UINT);
    assert_non_null(strstr(honesty_line(&arena, &h), "of n/a CPU time; overhead n/a"));
}

static void test_no_sample_is_no_division(void **state)
{
    (void)state;
    const struct count counts[] = {{"cpu.samples", UNIT_COUNT, 0},
                                   {"cpu.complete", UNIT_COUNT, 0},
                                   {"cpu.rusage_ns", UNIT_NS, 0},
                                   {"cpu.own_ns", UNIT_NS, 5}};
    struct honesty h = read_back(counts, ARRAY_SIZE(counts));
    assert_true(isnan(h.complete_pct) && isnan(h.overhead_pct));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counters_become_shares, begin, end),
        cmocka_unit_test_setup_teardown(test_what_was_not_measured_is_not_zero, begin, end),
        cmocka_unit_test_setup_teardown(test_no_sample_is_no_division, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
