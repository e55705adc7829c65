/* What a recording says about how its heap was counted, and what it does not say. */
#include "recording_helpers.h"

#include "analyze/heap_honesty.h"

struct counter {
    const char *name;
    enum unit unit;
    uint64_t value;
};

static struct heap_honesty load(struct arena *arena, const struct counter *counters, size_t count,
                                const char *document, bool finish)
{
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct why why = {0};
    for (size_t i = 0; i < count; i++)
        assert_int_equal(sink_counter(sink, counters[i].name, counters[i].unit, counters[i].value),
                         0);
    if (document)
        assert_int_equal(sink_document(sink, "heap", str_from(document)), 0);
    assert_int_equal(
        finish ? recording_writer_finish(writer, &why) : recording_writer_commit(writer), 0);
    recording_writer_close(writer);
    struct recording *recording = open_good();
    struct heap_honesty honesty;
    assert_int_equal(heap_honesty_load(arena, recording, &honesty, &why), 0);
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
        {"heap.processes", UNIT_COUNT, 2},
        {"heap.threads", UNIT_COUNT, 5},
        {"heap.stacks", UNIT_COUNT, 200},
        {"heap.incomplete", UNIT_COUNT, 10},
        {"heap.frames", UNIT_COUNT, 100},
        {"heap.recognised", UNIT_COUNT, 900},
        {"heap.lost", UNIT_COUNT, 3},
        {"heap.no_cell", UNIT_COUNT, 4},
        {"heap.unseen_frees", UNIT_COUNT, 5},
        {"heap.failed", UNIT_COUNT, 1},
        {"heap.own_ns", UNIT_NS, 12000000},
        {"cpu.rusage_ns", UNIT_NS, 1200000000},
        {"heap.refused", UNIT_COUNT, 1},
        {"heap.uncovered", UNIT_COUNT, 2},
        {"loss.wait_ring_full", UNIT_COUNT, 99}, /* not of the heap */
    };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct heap_honesty honesty = load(
        &arena, counters, ARRAY_SIZE(counters),
        "{\"tier\": \"user\", \"mode\": \"exact\", \"sample_bytes\": 0, \"temporary_within\": 4}",
        true);
    struct value map = heap_honesty_value(&arena, &honesty);
    assert_true(str_is(value_get(&map, "tier")->text, "user"));
    assert_true(str_is(value_get(&map, "mode")->text, "exact"));
    assert_int_equal(value_get(&map, "sample_bytes")->kind, VALUE_NULL);
    assert_int_equal(value_get(&map, "temporary_within")->u64, 4);
    assert_int_equal(value_get(&map, "threads")->u64, 5);
    assert_true(value_get(&map, "complete_pct")->real == 95.0);
    assert_true(value_get(&map, "recognised_pct")->real == 90.0);
    assert_true(value_get(&map, "own_pct")->real == 1.0);
    assert_string_equal(
        heap_honesty_line(&arena, &honesty),
        "user tier, exact: every call counted; 200 stacks, 95.0% complete, 3 lost, 4 in sums only, "
        "5 frees of memory not seen allocated, 1 process not counted, 2 programs not covered, 1 "
        "call that failed; cost: 12.0 ms own CPU time (1.0% of the program's)");
}

static void the_kernel_tier_counts_stacks_that_it_walked(void **state)
{
    (void)state;
    static const struct counter counters[] = {
        {"heap.stacks_walked", UNIT_COUNT, 50},     {"heap.stacks_complete", UNIT_COUNT, 49},
        {"heap.stacks_recognised", UNIT_COUNT, 75}, {"heap.stacks_copied", UNIT_COUNT, 25},
        {"heap.lost.calls", UNIT_COUNT, 2},         {"heap.lost.beyond", UNIT_COUNT, 1},
        {"heap.lost.stacks", UNIT_COUNT, 7},        {"heap.lost.stacks_stale", UNIT_COUNT, 1},
        {"heap.lost.known_full", UNIT_COUNT, 100},  {"heap.kernel_ns", UNIT_NS, 5000000},
    };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct heap_honesty honesty = load(
        &arena, counters, ARRAY_SIZE(counters),
        "{\"tier\": \"kernel\", \"mode\": \"exact\", \"cost_ns_per_call\": 1500}", true);
    struct value map = heap_honesty_value(&arena, &honesty);
    assert_int_equal(value_get(&map, "stacks")->u64, 50);
    assert_true(value_get(&map, "complete_pct")->real == 98.0);
    assert_true(value_get(&map, "recognised_pct")->real == 75.0);
    assert_int_equal(value_get(&map, "lost")->u64, 3);
    assert_int_equal(value_get(&map, "stacks_lost")->u64, 8);
    assert_int_equal(value_get(&map, "call_ns")->u64, 1500);
    assert_string_equal(
        heap_honesty_line(&arena, &honesty),
        "kernel tier, exact: every call counted; 50 stacks, 98.0% complete, 3 lost, 8 without "
        "their stack; cost: own CPU time n/a, 5.00 ms in the kernel, 1.50 us a call");
}

static void what_has_no_counter_is_not_measured(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct heap_honesty honesty = load(&arena, NULL, 0, NULL, false);
    struct value map = heap_honesty_value(&arena, &honesty);
    static const char *const keys[] = {
        "tier",         "mode",         "temporary_within", "processes", "threads",
        "stacks",       "complete_pct", "recognised_pct",   "lost",      "in_sums_only",
        "unseen_frees", "own_cpu_ms",   "own_pct",          "kernel_ms", "call_ns"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        assert_int_equal(value_get(&map, keys[i])->kind, VALUE_NA);
    assert_string_equal(heap_honesty_line(&arena, &honesty),
                        "unknown tier, mode n/a; stacks n/a, complete n/a, lost n/a; cost: own CPU "
                        "time n/a; the recording was cut off");
}

static void samples_say_one_in_how_many_bytes(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct heap_honesty honesty = load(&arena, NULL, 0,
                                       "{\"tier\": \"user\", \"sample_bytes\": 524288}", true);
    assert_non_null(strstr(heap_honesty_line(&arena, &honesty),
                           "sampled: one in 512 KiB on average, figures are estimates, with 95% "
                           "intervals in the head"));
}

static void what_was_not_seen_is_listed_with_how_much_and_why(void **state)
{
    (void)state;
    static const struct counter counters[] = {
        {"heap.unseen_frees", UNIT_COUNT, 12},
        {"heap.missed_frees", UNIT_COUNT, 3},
        {"heap.no_entry", UNIT_COUNT, 0},
        {"heap.malformed", UNIT_COUNT, 1},
    };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct heap_honesty honesty = load(
        &arena, counters, ARRAY_SIZE(counters),
        "{\"na\": [{\"what\": \"earlier allocations\", \"reason\": \"it ran already\"}, 7]}", true);
    struct value table = heap_honesty_unseen(&arena, &honesty);
    assert_int_equal(table.table->row_count, 4);
    const struct table_row *row = table.table->first;
    assert_int_equal(row->cells[1].u64, 1);
    assert_int_equal(row->next->cells[1].u64, 12);
    assert_int_equal(row->next->next->cells[1].u64, 3);
    row = row->next->next->next;
    assert_true(str_is(row->cells[0].text, "earlier allocations"));
    assert_true(str_is(row->cells[2].text, "it ran already"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(every_figure_comes_from_its_counter),
        TEST(the_kernel_tier_counts_stacks_that_it_walked),
        TEST(what_has_no_counter_is_not_measured),
        TEST(samples_say_one_in_how_many_bytes),
        TEST(what_was_not_seen_is_listed_with_how_much_and_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
