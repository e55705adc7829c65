/* What a recording says about itself, and what it does not say. */
#include "recording_helpers.h"

#include "analyze/honesty.h"
#include "made_profile.h"

static void record(const char *const *names, const uint64_t *values, size_t count)
{
    struct recording_writer *writer = create();
    struct made made = {.sink = recording_writer_sink(writer)};
    made_series(&made, "cpu", SERIES_SUM, UNIT_NS);
    made_samples(&made, 0, 0, 40, 100);
    for (size_t i = 0; i < count; i++) {
        enum unit unit = strstr(names[i], "_ns") ? UNIT_NS : UNIT_COUNT;
        assert_int_equal(sink_counter(made.sink, names[i], unit, values[i]), 0);
    }
    struct why why = {0};
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
}

static struct honesty load(void)
{
    struct recording *recording = open_good();
    struct honesty honesty;
    struct why why = {0};
    assert_int_equal(honesty_load(recording, &honesty, &why), 0);
    recording_close(recording);
    return honesty;
}

static void every_figure_comes_from_its_counter(void **state)
{
    (void)state;
    static const char *const names[] = {
        "cpu.samples",    "cpu.complete",  "cpu.truncated",     "cpu.throttled",
        "loss.ring_full", "loss.other",    "cpu.sampled_ns",    "cpu.rusage_ns",
        "cpu.own_ns",     "cpu.kernel_ns", "cpu.deep_complete", "loss.wait_map_full",
    };
    static const uint64_t values[] = {1000,       990,        5,       2,       3, 4,
                                      1500000000, 1520000000, 7600000, 7600000, 6, 100};
    record(names, values, ARRAY_SIZE(names));
    struct honesty honesty = load();
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value map = honesty_value(&arena, &honesty);
    assert_int_equal(value_get(&map, "samples")->u64, 1000);
    assert_int_equal(value_get(&map, "deep_complete")->u64, 6);
    assert_true(value_get(&map, "complete_pct")->real == 99.0);
    assert_true(value_get(&map, "truncated_pct")->real == 0.5);
    assert_int_equal(value_get(&map, "lost")->u64, 7);
    assert_int_equal(value_get(&map, "throttled")->u64, 2);
    assert_true(value_get(&map, "sampled_cpu_ms")->real == 1500);
    assert_true(value_get(&map, "rusage_cpu_ms")->real == 1520);
    assert_true(value_get(&map, "overhead_pct")->real == 1.0);
    assert_string_equal(
        honesty_line(&arena, &honesty),
        "1,000 samples, 99.0% complete, 0.5% truncated, 7 lost, 2 throttled; sampled "
        "1.50 s of 1.52 s CPU time (98.7%); 1.0% overhead (the kernel's share "
        "estimated)");
}

static void what_was_not_counted_is_not_zero(void **state)
{
    (void)state;
    record(NULL, NULL, 0);
    struct honesty honesty = load();
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value map = honesty_value(&arena, &honesty);
    assert_int_equal(value_get(&map, "samples")->u64, 40); /* the store knows these itself */
    static const char *const absent[] = {"complete_pct", "truncated_pct",  "lost",
                                         "throttled",    "sampled_cpu_ms", "rusage_cpu_ms",
                                         "overhead_pct", "deep_complete"};
    for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
        assert_int_equal(value_get(&map, absent[i])->kind, VALUE_NA);
    assert_string_equal(
        honesty_line(&arena, &honesty),
        "40 samples, complete n/a, truncated n/a, lost n/a, throttled n/a; sampled n/a "
        "of n/a CPU time; overhead n/a");
}

static void zero_that_was_counted_is_zero(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu.samples", "cpu.complete", "loss.ring_full"};
    static const uint64_t values[] = {0, 0, 0};
    record(names, values, ARRAY_SIZE(names));
    struct honesty honesty = load();
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct value map = honesty_value(&arena, &honesty);
    assert_int_equal(value_get(&map, "lost")->kind, VALUE_UINT);
    assert_int_equal(value_get(&map, "lost")->u64, 0);
    assert_int_equal(value_get(&map, "complete_pct")->kind, VALUE_NA); /* of nothing */
}

static void a_recording_that_was_cut_off_says_so(void **state)
{
    (void)state;
    struct honesty honesty = {.samples = {3, true}};
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    assert_non_null(strstr(honesty_line(&arena, &honesty), "the recording was cut off"));
    honesty.finished = true;
    assert_null(strstr(honesty_line(&arena, &honesty), "cut off"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_figure_comes_from_its_counter, begin, end),
        cmocka_unit_test_setup_teardown(what_was_not_counted_is_not_zero, begin, end),
        cmocka_unit_test_setup_teardown(zero_that_was_counted_is_zero, begin, end),
        cmocka_unit_test(a_recording_that_was_cut_off_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
