/* What a recording says about how its calls were seen, and what it does not say. */
#include "recording_helpers.h"

#include "analyze/evidence.h"

#include <math.h>

struct counter {
    const char *name;
    enum unit unit;
    uint64_t value;
};

static struct io_honesty load(struct arena *arena, const struct counter *counters, size_t count,
                              const char *document, bool finish)
{
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct why why = {0};
    for (size_t i = 0; i < count; i++)
        assert_int_equal(sink_counter(sink, counters[i].name, counters[i].unit, counters[i].value),
                         0);
    if (document)
        assert_int_equal(sink_document(sink, "io", str_from(document)), 0);
    assert_int_equal(
        finish ? recording_writer_finish(writer, &why) : recording_writer_commit(writer), 0);
    recording_writer_close(writer);
    struct recording *recording = open_good();
    struct io_honesty honesty;
    assert_int_equal(io_honesty_load(arena, recording, &honesty, &why), 0);
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
        {"io.calls", UNIT_COUNT, 10000},           {"io.folded", UNIT_COUNT, 7},
        {"io.stacks_recognised", UNIT_COUNT, 990}, {"io.stacks_copied", UNIT_COUNT, 10},
        {"io.stacks_walked", UNIT_COUNT, 10},      {"io.stacks_complete", UNIT_COUNT, 9},
        {"io.own_ns", UNIT_NS, 12000000},          {"io.kernel_ns", UNIT_NS, 30000000},
        {"io.lost.refused", UNIT_COUNT, 2},        {"io.lost.threads_full", UNIT_COUNT, 3},
        {"io.lost.stacks_spared", UNIT_COUNT, 4},  {"io.lost.known_full", UNIT_COUNT, 50},
        {"loss.wait_ring_full", UNIT_COUNT, 99}, /* not of calls */
        {"io.requests", UNIT_COUNT, 412},
    };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io_honesty honesty = load(&arena, counters, ARRAY_SIZE(counters),
                                     "{\"tier\": \"kernel\"}", true);
    struct value map = io_honesty_value(&arena, &honesty);
    assert_true(str_is(value_get(&map, "tier")->text, "kernel"));
    assert_int_equal(value_get(&map, "why_not_higher")->kind, VALUE_NULL);
    assert_int_equal(value_get(&map, "calls")->u64, 10000);
    assert_int_equal(value_get(&map, "folded")->u64, 7);
    assert_true(value_get(&map, "recognised_pct")->real == 99.0);
    assert_true(value_get(&map, "complete_pct")->real == 90.0);
    assert_int_equal(value_get(&map, "lost")->u64, 5);
    assert_int_equal(value_get(&map, "parts_lost")->u64, 4);
    assert_int_equal(value_get(&map, "requests")->u64, 412);
    assert_string_equal(io_honesty_line(&arena, &honesty),
                        "kernel tier: 10,000 calls, 412 requests, stacks 99.0% recognised, 90.0% "
                        "complete, 5 lost, 4 without their stack, object or message, 7 without "
                        "thread, object or stack; cost: 12.0 ms own CPU time, 30.0 ms in the "
                        "kernel");
}

static void calls_that_lost_their_stack_or_object_come_first(void **state)
{
    (void)state;
    static const struct counter many[] = {
        {"io.calls", UNIT_COUNT, 286301},   {"io.unattributed", UNIT_COUNT, 157465},
        {"io.folded", UNIT_COUNT, 150000},  {"io.lost.stacks_spared", UNIT_COUNT, 7465},
        {"io.lost.refused", UNIT_COUNT, 0},
    };
    static const struct counter few[] = {{"io.calls", UNIT_COUNT, 286301},
                                         {"io.unattributed", UNIT_COUNT, 3},
                                         {"io.lost.refused", UNIT_COUNT, 0}};
    static const struct counter none[] = {{"io.calls", UNIT_COUNT, 7},
                                          {"io.unattributed", UNIT_COUNT, 0},
                                          {"io.lost.ring_full", UNIT_COUNT, 5}};
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io_honesty honesty = load(&arena, many, ARRAY_SIZE(many), "{\"tier\": \"kernel\"}",
                                     true);
    struct value map = io_honesty_value(&arena, &honesty);
    assert_int_equal(value_get(&map, "unattributed")->u64, 157465);
    assert_true(fabs(value_get(&map, "unattributed_pct")->real - 55.0) < 0.01);
    assert_string_equal(io_honesty_line(&arena, &honesty),
                        "kernel tier: 55.0% of calls lost their stack or object (157,465), 286,301 "
                        "calls, stacks n/a, 0 not counted; cost: own CPU time n/a, in the kernel "
                        "n/a");
    honesty = load(&arena, few, ARRAY_SIZE(few), "{\"tier\": \"kernel\"}", true);
    assert_true(strstr(io_honesty_line(&arena, &honesty), "tier: <0.1% of calls lost") != NULL);
    /* The ring was full for something that was asked again later. */
    honesty = load(&arena, none, ARRAY_SIZE(none), "{\"tier\": \"kernel\"}", true);
    assert_string_equal(io_honesty_line(&arena, &honesty),
                        "kernel tier: 7 calls, stacks n/a, lost n/a; cost: own CPU time n/a, in "
                        "the kernel n/a");
}

/* As a run takes it from its recording. */
static struct axis_state axis_of(struct arena *arena, const struct counter *counters, size_t count)
{
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct why why = {0};
    struct series_info series = {.name = "io", .unit = UNIT_NS, .about = "time in calls"};
    assert_int_equal(sink_series(sink, &series, &(uint32_t){0}), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(sink_counter(sink, counters[i].name, counters[i].unit, counters[i].value),
                         0);
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    struct evidence_input input = {0};
    for (int i = 0; i < AXES; i++)
        input.axes[i].na = "not asked for";
    input.axes[AXIS_IO].recording = path;
    struct evidence evidence;
    assert_int_equal(evidence_load(arena, &input, &evidence, &why), 0);
    assert_null(evidence.axes[AXIS_IO].na);
    assert_int_equal(unlink(path), 0);
    return evidence.axes[AXIS_IO];
}

static void what_lost_its_stack_or_object_is_lost_to_a_run(void **state)
{
    (void)state;
    static const struct counter apart[] = {{"io.calls", UNIT_COUNT, 1000},
                                           {"io.folded", UNIT_COUNT, 30},
                                           {"io.unattributed", UNIT_COUNT, 550},
                                           {"io.lost.refused", UNIT_COUNT, 0}};
    static const struct counter gone[] = {{"io.calls", UNIT_COUNT, 900},
                                          {"io.folded", UNIT_COUNT, 0},
                                          {"io.unattributed", UNIT_COUNT, 9},
                                          {"io.lost.refused", UNIT_COUNT, 100}};
    static const struct counter before[] = {{"io.calls", UNIT_COUNT, 1000},
                                            {"io.folded", UNIT_COUNT, 30},
                                            {"io.lost.refused", UNIT_COUNT, 0}};
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct axis_state axis = axis_of(&arena, apart, ARRAY_SIZE(apart));
    assert_float_equal(axis.lost, 0.55, 1e-9);
    assert_float_equal(axis.uncounted, 0.03, 1e-9);
    axis = axis_of(&arena, gone, ARRAY_SIZE(gone));
    assert_float_equal(axis.lost, 0.1, 1e-9);
    assert_float_equal(axis.uncounted, 0.1, 1e-9);
    /* Recordings of before do not say how many it is. */
    axis = axis_of(&arena, before, ARRAY_SIZE(before));
    assert_float_equal(axis.lost, 0.03, 1e-9);
    axis = axis_of(&arena, NULL, 0);
    assert_true(isnan(axis.lost) && isnan(axis.uncounted));
}

static void what_has_no_counter_is_not_measured(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io_honesty honesty = load(&arena, NULL, 0, NULL, false);
    struct value map = io_honesty_value(&arena, &honesty);
    static const char *const keys[] = {"tier",         "calls",      "folded",     "recognised_pct",
                                       "complete_pct", "lost",       "parts_lost", "requests",
                                       "connections",  "own_cpu_ms", "kernel_ms"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        assert_int_equal(value_get(&map, keys[i])->kind, VALUE_NA);
    assert_string_equal(io_honesty_line(&arena, &honesty),
                        "unknown tier: calls n/a, stacks n/a, lost n/a; cost: own CPU time n/a, in "
                        "the kernel n/a; the recording was cut off");
}

static void what_was_not_seen_is_listed_with_how_much_and_why(void **state)
{
    (void)state;
    static const struct counter counters[] = {
        {"io.uring_calls", UNIT_COUNT, 12},
        {"io.inside_bytes", UNIT_BYTES, 4096},
        {"io.connections.unknown", UNIT_COUNT, 0},
    };
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io_honesty honesty = load(
        &arena, counters, ARRAY_SIZE(counters),
        "{\"tier\": \"user\", \"why_not_higher\": \"not root\", \"na\": [{\"what\": \"devices\", "
        "\"reason\": \"told by the kernel\"}, \"stdio\", 7, {\"reason\": \"of nothing\"}]}",
        true);
    struct value table = io_honesty_unseen(&arena, &honesty);
    assert_int_equal(table.table->row_count, 4);
    const struct table_row *row = table.table->first;
    assert_true(str_is(row->cells[0].text, "io_uring: calls"));
    assert_int_equal(row->cells[1].u64, 12);
    row = row->next;
    assert_int_equal(row->cells[1].unit, UNIT_BYTES);
    row = row->next;
    assert_true(str_is(row->cells[0].text, "devices"));
    assert_true(str_is(row->cells[2].text, "told by the kernel"));
    assert_true(str_is(row->next->cells[0].text, "stdio"));
    assert_string_equal(honesty.facts.not_higher, "not root");
}

static void without_copies_stacks_that_were_walked_are_those_that_were_not_recognised(void **state)
{
    (void)state;
    static const struct counter counters[] = {{"io.stacks_recognised", UNIT_COUNT, 90},
                                              {"io.stacks_walked", UNIT_COUNT, 10}};
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io_honesty honesty = load(&arena, counters, 2, "{\"tier\": \"user\"}", true);
    struct value map = io_honesty_value(&arena, &honesty);
    assert_true(value_get(&map, "recognised_pct")->real == 90.0);
}

static void what_the_document_tells_is_not_told_twice(void **state)
{
    (void)state;
    static const struct counter counters[] = {{"io.uring_calls", UNIT_COUNT, 12}};
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io_honesty honesty = load(&arena, counters, ARRAY_SIZE(counters),
                                     "{\"na\": [{\"what\": \"io_uring\", \"reason\": \"why\"}]}",
                                     true);
    struct value table = io_honesty_unseen(&arena, &honesty);
    assert_int_equal(table.table->row_count, 1);
    assert_true(str_is(table.table->first->cells[2].text, "why"));
    assert_int_equal(table.table->first->cells[1].u64, 12);
}

static void a_full_ring_loses_parts_of_calls_in_the_kernel_tier_and_calls_in_the_user_tier(
    void **state)
{
    (void)state;
    static const struct counter counters[] = {{"io.lost.ring_full", UNIT_COUNT, 9},
                                              {"io.lost.objects", UNIT_COUNT, 1},
                                              {"io.lost.refused", UNIT_COUNT, 0}};
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io_honesty honesty = load(&arena, counters, 3, "{\"tier\": \"kernel\"}", true);
    assert_int_equal(honesty.lost.value, 0);
    assert_int_equal(honesty.parts_lost.value, 10);
    honesty = load(&arena, counters, 3, "{\"tier\": \"user\"}", true);
    assert_int_equal(honesty.lost.value, 9);
    assert_int_equal(honesty.parts_lost.value, 1);
}

static void a_document_that_is_no_json_says_nothing(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    static const char *const documents[] = {"[]", "{\"tier\": 7, \"na\": 3}", "{\"na\": {}}"};
    for (size_t i = 0; i < ARRAY_SIZE(documents); i++) {
        struct io_honesty honesty = load(&arena, NULL, 0, documents[i], true);
        assert_null(honesty.facts.tier);
        assert_int_equal(honesty.facts.unseen_count, 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(every_figure_comes_from_its_counter),
        TEST(calls_that_lost_their_stack_or_object_come_first),
        TEST(what_lost_its_stack_or_object_is_lost_to_a_run),
        TEST(what_has_no_counter_is_not_measured),
        TEST(what_was_not_seen_is_listed_with_how_much_and_why),
        TEST(without_copies_stacks_that_were_walked_are_those_that_were_not_recognised),
        TEST(what_the_document_tells_is_not_told_twice),
        TEST(a_full_ring_loses_parts_of_calls_in_the_kernel_tier_and_calls_in_the_user_tier),
        TEST(a_document_that_is_no_json_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
