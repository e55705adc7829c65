/* What a recording says about how its waits were seen, and what it does not say. */
#include "recording_helpers.h"

#include "analyze/series_honesty.h"

struct counter {
    const char *name;
    enum unit unit;
    uint64_t value;
};

static struct wait_honesty load(struct arena *arena, const struct counter *counters, size_t count,
                                const char *document, bool finish)
{
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct why why = {0};
    for (size_t i = 0; i < count; i++)
        assert_int_equal(sink_counter(sink, counters[i].name, counters[i].unit, counters[i].value),
                         0);
    if (document)
        assert_int_equal(sink_document(sink, "waits", str_from(document)), 0);
    assert_int_equal(
        finish ? recording_writer_finish(writer, &why) : recording_writer_commit(writer), 0);
    recording_writer_close(writer);
    struct recording *recording = open_good();
    struct wait_honesty honesty;
    assert_int_equal(wait_honesty_load(arena, recording, &honesty, &why), 0);
    recording_close(recording);
    /* The next one gets its name: a log may lie beside one that was cut off. */
    char command[500];
    snprintf(command, sizeof(command), "rm -f '%s' '%s-wal' '%s-shm'", path, path, path);
    assert_int_equal(system(command), 0);
    return honesty;
}

static void every_figure_comes_from_its_counter(void **state)
{
    (void)state;
    static const struct counter counters[] = {
        {"waits.seen", UNIT_COUNT, 10000},        {"waits.recognised", UNIT_COUNT, 9900},
        {"waits.verified_slots", UNIT_COUNT, 77}, {"waits.copied", UNIT_COUNT, 100},
        {"waits.read_again", UNIT_COUNT, 12},     {"waits.unlearnable", UNIT_COUNT, 3},
        {"waits.complete", UNIT_COUNT, 995},      {"waits.truncated", UNIT_COUNT, 4},
        {"waits.end.no_row", UNIT_COUNT, 1},      {"waits.own_ns", UNIT_NS, 12000000},
        {"waits.kernel_ns", UNIT_NS, 30000000},   {"loss.wait_ring_full", UNIT_COUNT, 2},
        {"loss.wait_map_full", UNIT_COUNT, 3},    {"loss.wait_events", UNIT_COUNT, 4},
        {"loss.ring_full", UNIT_COUNT, 99}, /* not of waits */
    };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct wait_honesty honesty = load(&arena, counters, ARRAY_SIZE(counters),
                                       "{\"tier\": \"kernel\"}", true);
    struct value map = wait_honesty_value(&arena, &honesty);
    assert_true(str_is(value_get(&map, "tier")->text, "kernel"));
    assert_int_equal(value_get(&map, "why_not_higher")->kind, VALUE_NULL);
    assert_int_equal(value_get(&map, "waits")->u64, 10000);
    assert_true(value_get(&map, "recognised_pct")->real == 99.0);
    assert_int_equal(value_get(&map, "verified_slots")->u64, 77);
    assert_int_equal(value_get(&map, "copied")->u64, 100);
    assert_int_equal(value_get(&map, "read_again")->u64, 12);
    assert_int_equal(value_get(&map, "unlearnable")->u64, 3);
    assert_true(value_get(&map, "complete_pct")->real == 99.5);
    assert_int_equal(value_get(&map, "observed_pct")->kind, VALUE_NA);
    assert_int_equal(value_get(&map, "lost")->u64, 5);
    assert_true(value_get(&map, "own_cpu_ms")->real == 12);
    assert_true(value_get(&map, "kernel_ms")->real == 30);
    assert_string_equal(wait_honesty_line(&arena, &honesty),
                        "kernel tier: 10,000 waits, 99.0% recognised, 12 read again, 99.5% "
                        "complete, 5 lost, 4 without their stack, waker or own times; cost: 12.0 "
                        "ms own CPU time, 30.0 ms in the kernel");
}

static void of_the_kernels_tier_parts_of_waits_are_told_from_waits(void **state)
{
    (void)state;
    static const struct counter counters[] = {
        {"waits.seen", UNIT_COUNT, 1000},
        {"waits.stacks_recognised", UNIT_COUNT, 990},
        {"waits.slots_verified", UNIT_COUNT, 5000},
        {"waits.stacks_copied", UNIT_COUNT, 10},
        {"waits.stacks_read_again", UNIT_COUNT, 1},
        {"waits.stacks_unlearnable", UNIT_COUNT, 2},
        {"waits.stacks_walked", UNIT_COUNT, 8},
        {"waits.stacks_complete", UNIT_COUNT, 6},
        {"waits.stacks_truncated", UNIT_COUNT, 1},
        {"waits.lost.ring_full", UNIT_COUNT, 3},
        {"waits.lost.wakers_merged", UNIT_COUNT, 4},
        {"waits.lost.known_full", UNIT_COUNT, 1000000},
        {"waits.lost.tallies_full", UNIT_COUNT, 20},
        {"waits.lost.threads_full", UNIT_COUNT, 30},
        {"loss.wait_events", UNIT_COUNT, 50},
    };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct wait_honesty honesty = load(&arena, counters, ARRAY_SIZE(counters),
                                       "{\"tier\": \"kernel\"}", true);
    struct value map = wait_honesty_value(&arena, &honesty);
    assert_true(value_get(&map, "recognised_pct")->real == 99.0);
    assert_int_equal(value_get(&map, "verified_slots")->u64, 5000);
    assert_int_equal(value_get(&map, "copied")->u64, 10);
    assert_int_equal(value_get(&map, "read_again")->u64, 1);
    assert_int_equal(value_get(&map, "unlearnable")->u64, 2);
    assert_true(value_get(&map, "complete_pct")->real == 75.0);
    assert_int_equal(value_get(&map, "lost")->u64, 50);
    assert_int_equal(value_get(&map, "parts_lost")->u64, 57);
    assert_non_null(strstr(wait_honesty_line(&arena, &honesty),
                           "50 lost, 57 without their stack, waker or own times; cost: "));
}

static void the_user_tier_says_what_it_looked_at_and_why_it_is_no_higher(void **state)
{
    (void)state;
    static const struct counter counters[] = {
        {"waits.seen", UNIT_COUNT, 50},         {"waits.copied", UNIT_COUNT, 40},
        {"waits.complete", UNIT_COUNT, 40},     {"waits.truncated", UNIT_COUNT, 0},
        {"waits.blocked_ns", UNIT_NS, 200},     {"waits.observed_ns", UNIT_NS, 150},
        {"waits.alike_ns", UNIT_NS, 30},        {"waits.own_ns", UNIT_NS, 1000000},
        {"loss.wait_ring_full", UNIT_COUNT, 0},
    };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct wait_honesty honesty = load(
        &arena, counters, ARRAY_SIZE(counters),
        "{\"tier\": \"user\", \"why_not_kernel\": \"BPF needs CAP_BPF\"}", true);
    struct value map = wait_honesty_value(&arena, &honesty);
    assert_true(value_get(&map, "observed_pct")->real == 75.0);
    assert_true(value_get(&map, "alike_pct")->real == 15.0);
    assert_int_equal(value_get(&map, "recognised_pct")->kind, VALUE_NA);
    assert_string_equal(wait_honesty_line(&arena, &honesty),
                        "user tier: 50 waits, 75.0% of the time looked at, 15.0% taken to be "
                        "alike, 100.0% complete, 0 "
                        "lost; cost: 1.00 ms own CPU time, in the kernel n/a; no higher tier: "
                        "BPF needs CAP_BPF");
}

static void what_was_not_counted_is_not_zero(void **state)
{
    (void)state;
    static const char *const odd[] = {NULL, "{", "[]", "7", "{\"tier\": 7}", "{\"tier\": \"\"}"};
    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        AUTO(arena_deinit) struct arena arena = ARENA_INIT;
        struct wait_honesty honesty = load(&arena, NULL, 0, odd[i], false);
        struct value map = wait_honesty_value(&arena, &honesty);
        assert_int_equal(value_get(&map, "tier")->kind, VALUE_NA);
        assert_int_equal(value_get(&map, "lost")->kind, VALUE_NA);
        assert_string_equal(
            wait_honesty_line(&arena, &honesty),
            "unknown tier: waits n/a, recognised n/a, complete n/a, lost n/a; cost: own CPU "
            "time n/a, in the kernel n/a; the recording was cut off");
        struct value root = value_map(&arena);
        wait_honesty_put(&arena, &root, &honesty);
        assert_non_null(value_get(&root, "honesty"));
        assert_non_null(value_get(&root, "honesty_line"));
    }
}

static void a_series_has_the_honesty_of_its_kind(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct why why = {0};
    assert_int_equal(sink_counter(sink, "cpu.samples", UNIT_COUNT, 7), 0);
    assert_int_equal(sink_counter(sink, "waits.seen", UNIT_COUNT, 1), 0);
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    static const struct {
        const char *series, *begins;
    } rows[] = {{"cpu", "7 samples, "},
                {"offcpu", "unknown tier: 1 wait, "},
                {"running", "unknown tier: 1 wait, "},
                {"alloc", "7 samples, "}};
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct recording *recording = open_good();
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct series_honesty honesty;
        assert_int_equal(series_honesty_load(&arena, recording, rows[i].series, &honesty, &why), 0);
        struct value root = value_map(&arena);
        series_honesty_put(&arena, &root, &honesty);
        assert_true(str_starts(value_get(&root, "honesty_line")->text, rows[i].begins));
        const char *key = rows[i].begins[0] == '7' ? "samples" : "waits";
        assert_non_null(value_get(value_get(&root, "honesty"), key));
        struct value map = series_honesty_value(&arena, &honesty);
        assert_non_null(value_get(&map, key));
        assert_true(
            str_is(value_get(&root, "honesty_line")->text, series_honesty_line(&arena, &honesty)));
    }
    recording_close(recording);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(every_figure_comes_from_its_counter),
        TEST(of_the_kernels_tier_parts_of_waits_are_told_from_waits),
        TEST(the_user_tier_says_what_it_looked_at_and_why_it_is_no_higher),
        TEST(what_was_not_counted_is_not_zero),
        TEST(a_series_has_the_honesty_of_its_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
