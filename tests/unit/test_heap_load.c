/* Promises of analyze/heap_load.h: what the writer was told comes back as arrays by id, moments in
 * the order of time; a profile by each measure adds threads up before it cuts off what is below
 * zero; a recording without a heap says how to get one. */
#include "recording_helpers.h"

#include "analyze/call_tree.h"
#include "analyze/heap_load.h"

enum { MS = 1000000 };

/* A command with two threads that share a heap, and a child with its own. */
struct told {
    struct recording_writer *writer;
    struct sink *sink;
    uint32_t app, child, first, second, forked, stacks[3], snapshot;
};

static void program_add(struct told *told)
{
    struct sink *sink = told->sink;
    struct process_info app = {.pid = 70, .start_ns = 50 * MS, .exe = STR("/bin/app")};
    assert_int_equal(sink_process(sink, &app, &told->app), 0);
    struct process_info child = {.pid = 75, .parent = told->app, .start_ns = 60 * MS};
    assert_int_equal(sink_process(sink, &child, &told->child), 0);
    struct thread_info threads[] = {{told->app, 70, 50 * MS, STR("app")},
                                    {told->app, 71, 55 * MS, STR("worker")},
                                    {told->child, 75, 60 * MS, STR("app")}};
    assert_int_equal(sink_thread(sink, &threads[0], &told->first), 0);
    assert_int_equal(sink_thread(sink, &threads[1], &told->second), 0);
    assert_int_equal(sink_thread(sink, &threads[2], &told->forked), 0);
    for (uint32_t i = 0; i < 3; i++) {
        static const char *const names[] = {"main", "parse", "render"};
        uint32_t name, frame;
        assert_int_equal(sink_text(sink, str_from(names[i]), &name), 0);
        struct frame_info info = {.kind = FRAME_NAMED, .name = name};
        assert_int_equal(sink_frame(sink, &info, &frame), 0);
        assert_int_equal(sink_stack(sink, i ? told->stacks[0] : 0, frame, &told->stacks[i]), 0);
    }
}

static void site_add(struct told *told, uint32_t thread, uint32_t stack, enum heap_kind kind,
                     const struct heap_tally *tally)
{
    struct heap_site_info info = {thread, stack, kind};
    uint32_t id;
    assert_int_equal(sink_heap_site(told->sink, &info, &id), 0);
    assert_int_equal(sink_heap_site_set(told->sink, id, tally), 0);
}

/* `parse`: the first thread allocates ten of 100 bytes, the second frees seven of them; at the
 * peak eight lived. `render`: each thread frees what the other allocated, all of it. */
static void sites_add(struct told *told)
{
    struct heap_tally made = {.allocations = 10, .allocated_bytes = 1000, .peak_count = 9};
    made.peak_bytes = 900;
    struct heap_tally dropped = {.frees = 7, .freed_bytes = 700, .peak_count = -1};
    dropped.peak_bytes = -100;
    struct heap_tally both = {
        .allocations = 4, .allocated_bytes = 40, .frees = 4, .freed_bytes = 44, .temporary = 3};
    both.peak_count = -1;
    both.peak_bytes = -10;
    struct heap_tally other = {.allocations = 4, .allocated_bytes = 44, .frees = 4};
    other.freed_bytes = 40;
    struct heap_tally inherited = {.allocations = 2, .allocated_bytes = 20, .peak_count = 2};
    inherited.peak_bytes = 20;
    struct heap_tally mapped = {.allocations = 1, .allocated_bytes = 1 << 30};
    site_add(told, told->first, told->stacks[1], HEAP_KIND_HEAP, &made);
    site_add(told, told->second, told->stacks[1], HEAP_KIND_HEAP, &dropped);
    site_add(told, told->first, told->stacks[2], HEAP_KIND_HEAP, &both);
    site_add(told, told->second, told->stacks[2], HEAP_KIND_HEAP, &other);
    site_add(told, told->forked, told->stacks[1], HEAP_KIND_HEAP, &inherited);
    site_add(told, told->first, told->stacks[1], HEAP_KIND_MAP, &mapped);
}

static void times_add(struct told *told)
{
    struct sink *sink = told->sink;
    struct heap_process_tally tally = {.peak_bytes = 800, .peak_count = 8, .peak_ns = 90 * MS};
    tally.sizes[47] = UINT64_MAX;
    tally.lives[0] = 1;
    tally.lives[23] = UINT64_C(1) << 40;
    assert_int_equal(sink_heap_process_set(sink, told->app, &tally), 0);
    struct heap_moment moments[] = {{told->app, 70 * MS, 100, 5000},
                                    {told->app, 90 * MS, 800, 0},
                                    {told->child, 80 * MS, 20, 4000}};
    for (size_t i = 0; i < ARRAY_SIZE(moments); i++)
        assert_int_equal(sink_heap_moment(sink, &moments[i]), 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct heap_snapshot_info info = {told->app, (75 + i * 25) * MS, HEAP_SNAPSHOT_SIGNAL};
        assert_int_equal(sink_heap_snapshot(sink, &info, &told->snapshot), 0);
        struct heap_snapshot_row row = {told->snapshot, told->stacks[2 - i], -5, 300 + i};
        assert_int_equal(sink_heap_snapshot_row(sink, &row), 0);
    }
}

static void tell(const char *target)
{
    struct told told = {.writer = create()};
    struct why why = {0};
    told.sink = recording_writer_sink(told.writer);
    program_add(&told);
    sites_add(&told);
    times_add(&told);
    if (target)
        assert_int_equal(sink_document(told.sink, "target", str_from(target)), 0);
    assert_int_equal(sink_document(told.sink, "heap", STR("{\"tier\": \"user\"}")), 0);
    assert_int_equal(recording_writer_finish(told.writer, &why), 0);
    recording_writer_close(told.writer);
}

static void load_good(struct arena *arena, struct heap *ret)
{
    struct recording *recording = open_good();
    struct why why = {0};
    int r = heap_load(arena, recording, ret, &why);
    if (r < 0)
        print_error("%s\n", why.what);
    assert_int_equal(r, 0);
    recording_close(recording);
}

static void what_was_told_comes_back_by_id(void **state)
{
    (void)state;
    tell("{\"scope\": \"command\", \"pid\": 70, \"start_ns\": 40000000, \"end_ns\": 200000000}");
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct heap heap;
    load_good(&arena, &heap);
    assert_int_equal(heap.site_count, 7);
    assert_true(heap.sites[2].tally.peak_bytes == -100 && heap.sites[2].process == 1);
    assert_true(heap.sites[5].process == 2 && heap.sites[5].info.thread == 3);
    assert_true(heap.sites[6].info.kind == HEAP_KIND_MAP);
    assert_int_equal(heap.process_count, 3);
    assert_true(heap.processes[1].known && !heap.processes[2].known && !heap.processes[0].known);
    const struct heap_process_tally *tally = &heap.processes[1].tally;
    assert_true(tally->peak_bytes == 800 && tally->peak_count == 8 && tally->peak_ns == 90 * MS);
    assert_true(tally->sizes[47] == INT64_MAX && tally->sizes[46] == 0);
    assert_true(tally->lives[0] == 1 && tally->lives[23] == UINT64_C(1) << 40);
    assert_int_equal(heap.snapshot_count, 3);
    assert_true(heap.snapshots[1].count == 1 && heap.snapshots[2].count == 1);
    assert_true(heap.snapshots[1].rows[0].bytes == 300 && heap.snapshots[2].rows[0].bytes == 301);
    assert_true(heap.snapshots[1].rows[0].count == -5 && heap.snapshots[1].rows[0].stack == 3);
    assert_true(heap.snapshots[2].info.why == HEAP_SNAPSHOT_SIGNAL);
    assert_int_equal(heap.moment_count, 3);
    assert_true(heap.moments[1].process == 2 && heap.moments[1].time_ns == 80 * MS);
    assert_true(heap.moments[2].live_bytes == 800 && heap.moments[2].rss_bytes == 0);
    assert_true(heap.start_ns == 40 * MS && heap.end_ns == 200 * MS);
    assert_int_equal(heap.root_process, 1);
    assert_true(str_is(heap.facts_json, "{\"tier\": \"user\"}"));
    assert_true(heap.event_count == 0);
}

static void without_the_document_the_span_is_what_was_seen(void **state)
{
    (void)state;
    tell(NULL);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct heap heap;
    load_good(&arena, &heap);
    assert_true(heap.start_ns == 50 * MS && heap.end_ns == 100 * MS);
    assert_int_equal(heap.root_process, 1);
}

static const struct profile_total *total_of(const struct profile *profile, uint32_t thread,
                                            uint32_t stack)
{
    for (size_t i = 0; i < profile->total_count; i++)
        if (profile->totals[i].thread == thread && profile->totals[i].stack == stack)
            return &profile->totals[i];
    return NULL;
}

static void what_is_allocated_counts_by_thread(void **state)
{
    (void)state;
    tell(NULL);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct heap heap;
    struct profile profile;
    load_good(&arena, &heap);
    assert_int_equal(heap_profile(&arena, &heap, HEAP_BY_BYTES, &profile), 0);
    assert_true(profile.unit == UNIT_BYTES && profile.weight == 1104 && profile.count == 20);
    assert_true(total_of(&profile, 1, 2)->weight == 1000 && total_of(&profile, 3, 2)->count == 2);
    assert_null(total_of(&profile, 2, 2)); /* it only freed there */
    assert_int_equal(heap_profile(&arena, &heap, HEAP_BY_COUNT, &profile), 0);
    assert_true(profile.unit == UNIT_COUNT && profile.weight == 20 && profile.count == 20);
    assert_int_equal(heap_profile(&arena, &heap, HEAP_BY_TEMPORARY, &profile), 0);
    assert_true(profile.unit == UNIT_COUNT && profile.weight == 3 && profile.total_count == 1);
}

static void what_lives_counts_of_all_threads_together(void **state)
{
    (void)state;
    tell(NULL);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct heap heap;
    struct profile profile;
    load_good(&arena, &heap);
    assert_int_equal(heap_profile(&arena, &heap, HEAP_BY_PEAK, &profile), 0);
    /* render is below zero in sum: cut off, and taken from nobody. */
    assert_true(profile.total_count == 2 && profile.weight == 820 && profile.count == 10);
    assert_true(total_of(&profile, 1, 2)->weight == 800 && total_of(&profile, 3, 2)->weight == 20);
    assert_int_equal(heap_profile(&arena, &heap, HEAP_BY_LEAK, &profile), 0);
    assert_true(profile.total_count == 2 && profile.weight == 320 && profile.count == 5);
    assert_true(total_of(&profile, 1, 2)->weight == 300 && total_of(&profile, 1, 2)->count == 3);
    struct call_tree tree;
    assert_int_equal(call_tree_build(&arena, &profile, &(struct call_tree_opts){0}, &tree), 0);
    assert_true(tree.nodes[0].total_weight == 320 && tree.count == 3);
}

static void assert_no_heap(int error, enum why_kind kind, const char *what, const char *remedy)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct recording *recording = open_good();
    struct heap heap = {.site_count = 77};
    struct why why = {0};
    assert_int_equal(heap_load(&arena, recording, &heap, &why), -error);
    assert_int_equal(why.kind, kind);
    assert_non_null(strstr(why.what, what));
    assert_non_null(strstr(why.remedy, remedy));
    assert_int_equal(heap.site_count, 77);
    recording_close(recording);
}

static void a_recording_without_a_heap_says_how_to_get_one(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct why why = {0};
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    assert_no_heap(ENODATA, WHY_USAGE, "recorded without --heap", "record --heap");
    patch("INSERT INTO document VALUES('heap', '{}')");
    assert_no_heap(ENODATA, WHY_NOTHING, "no allocation was seen", "doctor");
    /* And one of before there were any. */
    patch("DELETE FROM document;" DROP_HEAP "PRAGMA user_version = 4");
    assert_no_heap(ENODATA, WHY_USAGE, "recorded without --heap", "record --heap");
}

static void damage_is_handed_on(void **state)
{
    (void)state;
    static const char *const forged[] = {
        "UPDATE heap_site_chunk SET sites = 5",
        "UPDATE heap_site_chunk SET data = zeroblob(9)",
        "DELETE FROM thread WHERE id = 3",
        "UPDATE heap_process SET sizes = x'80'",
        "UPDATE heap_process SET lives = x'1801'",
        "UPDATE heap_process SET lives = x'00ffffffffffffffffff01'",
        "UPDATE heap_process SET lives = x'00ffffffffffffffffff7f'",
        "UPDATE heap_process SET process = 3",
        "UPDATE heap_snapshot SET why = 'x'",
        "UPDATE heap_snapshot SET id = 9 WHERE id = 1",
        "UPDATE heap_snapshot SET rows = 2",
        "UPDATE heap_moment SET live_bytes = -1",
        "UPDATE heap_moment SET process = 0 WHERE process = 2",
    };
    for (size_t i = 0; i < ARRAY_SIZE(forged); i++) {
        tell(NULL);
        patch(forged[i]);
        AUTO(arena_deinit) struct arena arena = ARENA_INIT;
        struct recording *recording = open_good();
        struct heap heap;
        if (heap_load(&arena, recording, &heap, NULL) != -EBADMSG)
            fail_msg("accepted: %s", forged[i]);
        recording_close(recording);
        unlink(path);
    }
}

/* What a target of which the memory was scribbled over may tell. */
static void sums_that_no_machine_has_are_refused(void **state)
{
    (void)state;
    const struct heap_tally tallies[] = {
        {.allocated_bytes = INT64_MAX}, {.peak_bytes = INT64_MIN}, {.lived_ns = UINT64_MAX}};
    for (size_t i = 0; i < ARRAY_SIZE(tallies); i++) {
        struct told told = {.writer = create()};
        struct why why = {0};
        told.sink = recording_writer_sink(told.writer);
        program_add(&told);
        site_add(&told, told.first, told.stacks[0], HEAP_KIND_HEAP, &tallies[i]);
        site_add(&told, told.second, told.stacks[0], HEAP_KIND_HEAP, &tallies[i]);
        assert_int_equal(recording_writer_finish(told.writer, &why), 0);
        recording_writer_close(told.writer);
        assert_no_heap(EBADMSG, WHY_FAILED, "more than any machine has", "record again");
        unlink(path);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(what_was_told_comes_back_by_id),
        TEST(without_the_document_the_span_is_what_was_seen),
        TEST(what_is_allocated_counts_by_thread),
        TEST(what_lives_counts_of_all_threads_together),
        TEST(a_recording_without_a_heap_says_how_to_get_one),
        TEST(damage_is_handed_on),
        TEST(sums_that_no_machine_has_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
