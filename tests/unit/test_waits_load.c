/* Promises of analyze/waits_load.h: what the writer was told comes back as arrays, threads have
 * the lives they had, and a quantile is what its buckets allow. */
#include "recording_helpers.h"

#include "analyze/waits_load.h"
#include "model/wait_book.h"

#include <math.h>

enum { MS = 1000000 };

static void tally_is_empty_or_exact_for_one(void **state)
{
    (void)state;
    struct wait_tally none = {0}, one = {0};
    assert_true(wait_tally_quantile(&none, 0.5) == 0);
    wait_tally_one(&one, 100, 12345678);
    assert_true(wait_tally_quantile(&one, 0) == 12345678);
    assert_true(wait_tally_quantile(&one, 0.5) == 12345678);
    assert_true(wait_tally_quantile(&one, 1) == 12345678);
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

/* Against the sorted values themselves: a bucket is at most a quarter of its beginning wide. */
static void quantiles_are_right_to_a_bucket(void **state)
{
    (void)state;
    static uint64_t values[5000];
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 60; round++) {
        struct wait_tally tally = {0};
        size_t count = 2 + (size_t)(round * round);
        for (size_t i = 0; i < count; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            values[i] = (random >> 24) >> (random % 38); /* no bucket is beyond 2^40 */
            wait_tally_one(&tally, i, values[i]);
        }
        qsort(values, count, sizeof(values[0]), compare_u64);
        double before = 0;
        for (int percent = 0; percent <= 100; percent++) {
            double q = percent / 100.0;
            double got = wait_tally_quantile(&tally, q);
            size_t at = (size_t)ceil(q * (double)count);
            size_t low = at > 1 ? at - 2 : 0, high = MIN(at + 1, count) - 1;
            assert_true(got >= before); /* they rise */
            assert_true(got <= (double)tally.max_ns);
            assert_true(got >= (double)values[low] / 1.26 - 320);
            assert_true(got <= (double)values[high] * 1.26 + 320);
            before = got;
        }
        assert_true(wait_tally_quantile(&tally, 1) == (double)values[count - 1]);
        assert_true(wait_tally_quantile(&tally, 7) == (double)values[count - 1]);
        assert_true(wait_tally_quantile(&tally, -1) <= (double)values[0] * 1.26 + 1);
    }
}

static void quantiles_lie_inside_their_bucket_in_proportion(void **state)
{
    (void)state;
    struct wait_tally tally = {.count = 1000, .max_ns = 5 * MS};
    unsigned at = wait_bucket(2 * MS);
    tally.buckets[at] = 800;
    tally.buckets[wait_bucket(5 * MS)] = 200;
    double begin_ns = (double)wait_bucket_ns(at), end_ns = (double)wait_bucket_ns(at + 1);
    assert_true(fabs(wait_tally_quantile(&tally, 0.4) - (begin_ns + end_ns) / 2) < 1);
    assert_true(fabs(wait_tally_quantile(&tally, 0.2) - (begin_ns * 3 + end_ns) / 4) < 1);
    /* Of the highest bucket nothing lies beyond the longest. */
    struct wait_tally narrow = {.count = 10, .max_ns = wait_bucket_ns(at) + 1000};
    narrow.buckets[at] = 10;
    assert_true(fabs(wait_tally_quantile(&narrow, 0.5) - (begin_ns + 500)) < 1);
    /* What is longer than all buckets ends at the longest. */
    struct wait_tally longest = {.count = 4, .max_ns = (uint64_t)4000 * 1000 * MS};
    longest.buckets[WAIT_BUCKETS - 1] = 4;
    assert_true(wait_tally_quantile(&longest, 1) == (double)longest.max_ns);
    assert_true(wait_tally_quantile(&longest, 0.5) > (double)wait_bucket_ns(WAIT_BUCKETS - 1));
    /* A tally that does not fit together never gives more than its longest. */
    struct wait_tally odd = {.count = 9, .max_ns = 10};
    odd.buckets[50] = 9;
    assert_true(wait_tally_quantile(&odd, 0.9) <= 10);
}

/* A command: root with a main thread that is renamed, a child, waits of all kinds. */
struct told {
    struct recording_writer *writer;
    struct sink *sink;
    uint32_t root, child, main_1, main_2, worker, child_main;
    uint32_t stack, lock, pipe;
    uint32_t blocked, runq_1, runq_2, hold;
    uint32_t offcpu, running;
};

static void series_add(struct told *told)
{
    struct series_info offcpu = {"offcpu", SERIES_SUM, UNIT_NS, "time off the CPU"};
    struct series_info running = {"running", SERIES_SUM, UNIT_NS, "time on a CPU"};
    assert_int_equal(sink_series(told->sink, &offcpu, &told->offcpu), 0);
    assert_int_equal(sink_series(told->sink, &running, &told->running), 0);
}

static void threads_add(struct told *told)
{
    struct sink *sink = told->sink;
    struct process_info root = {.pid = 70, .start_ns = 50 * MS, .exe = STR("/bin/app")};
    assert_int_equal(sink_process(sink, &root, &told->root), 0);
    struct process_info child = {.pid = 80, .parent = told->root, .start_ns = 150 * MS};
    assert_int_equal(sink_process(sink, &child, &told->child), 0);
    struct thread_info thread = {told->root, 70, 50 * MS, STR("sh")};
    assert_int_equal(sink_thread(sink, &thread, &told->main_1), 0);
    thread = (struct thread_info){told->root, 70, 120 * MS, STR("renamed")};
    assert_int_equal(sink_thread(sink, &thread, &told->main_2), 0);
    thread = (struct thread_info){told->root, 71, 130 * MS, STR("worker")};
    assert_int_equal(sink_thread(sink, &thread, &told->worker), 0);
    thread = (struct thread_info){told->child, 80, 150 * MS, STR("child")};
    assert_int_equal(sink_thread(sink, &thread, &told->child_main), 0);
    assert_int_equal(sink_thread_end(sink, told->child_main, 180 * MS), 0);
}

static void waits_add(struct told *told)
{
    struct sink *sink = told->sink;
    uint32_t frame, name;
    assert_int_equal(sink_text(sink, STR("take_lock"), &name), 0);
    struct frame_info info = {.kind = FRAME_NAMED, .name = name};
    assert_int_equal(sink_frame(sink, &info, &frame), 0);
    assert_int_equal(sink_stack(sink, 0, frame, &told->stack), 0);
    struct object_info lock = {OBJECT_FUTEX, 0, told->root, 0x5000, STR("queue_lock")};
    struct object_info pipe = {.kind = OBJECT_PIPE, .key = 9};
    assert_int_equal(sink_object(sink, &lock, &told->lock), 0);
    assert_int_equal(sink_object(sink, &pipe, &told->pipe), 0);
    struct wait_info blocked = {
        WAIT_BLOCKED, told->worker, told->stack, told->main_2, told->stack, told->lock, 202, 0, 1};
    struct wait_info runq = {.kind = WAIT_RUNQ, .thread = told->worker, .syscall = -1};
    assert_int_equal(sink_wait(sink, &blocked, &told->blocked), 0);
    assert_int_equal(sink_wait(sink, &runq, &told->runq_1), 0);
    runq.flags = WAIT_OPEN;
    assert_int_equal(sink_wait(sink, &runq, &told->runq_2), 0);
    struct wait_tally tally = {0};
    wait_tally_one(&tally, 140 * MS, 30 * MS);
    wait_tally_one(&tally, 175 * MS, 10 * MS);
    assert_int_equal(sink_wait_add(sink, told->blocked, &tally), 0);
    struct wait_tally queued = {0};
    wait_tally_one(&queued, 170 * MS, 3 * MS);
    assert_int_equal(sink_wait_add(sink, told->runq_1, &queued), 0);
    assert_int_equal(sink_wait_add(sink, told->runq_2, &queued), 0);
    struct wait_event late = {told->blocked, 175 * MS, 184 * MS, 185 * MS};
    struct wait_event early = {told->blocked, 140 * MS, 169 * MS, 170 * MS};
    assert_int_equal(sink_wait_event(sink, &late), 0);
    assert_int_equal(sink_wait_event(sink, &early), 0);
}

static struct told tell(const char *target)
{
    struct told told = {.writer = create()};
    told.sink = recording_writer_sink(told.writer);
    threads_add(&told);
    series_add(&told);
    waits_add(&told);
    for (uint64_t i = 0; i < 3; i++) {
        struct sample sample = {told.running, told.worker, 0, (160 + i) * MS, 2 * MS};
        assert_int_equal(sink_sample(told.sink, &sample), 0);
    }
    if (target)
        assert_int_equal(sink_document(told.sink, "target", str_from(target)), 0);
    assert_int_equal(sink_document(told.sink, "waits", STR("{\"tier\": \"kernel\"}")), 0);
    struct why why = {0};
    assert_int_equal(recording_writer_finish(told.writer, &why), 0);
    recording_writer_close(told.writer);
    return told;
}

static void what_was_told_comes_back_with_names_and_lives(void **state)
{
    (void)state;
    struct told told = tell("{\"scope\": \"command\", \"pid\": 70, \"start_ns\": 100000000,"
                            " \"end_ns\": 200000000}");
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct recording *recording = open_good();
    struct waits waits;
    assert_int_equal(waits_load(&arena, recording, &waits, NULL), 0);
    recording_close(recording);
    assert_true(waits.start_ns == 100 * MS && waits.end_ns == 200 * MS);
    assert_int_equal(waits.root_process, told.root);
    assert_int_equal(waits.root_thread, told.main_2);
    assert_int_equal(waits.lives, 3); /* renamed, the main thread is no other one */
    assert_true(str_is(waits.facts_json, "{\"tier\": \"kernel\"}"));
    assert_string_equal(waits.profile.series, "offcpu");
    assert_int_equal(waits.profile.total_count, 0);
    uint32_t place = waits.profile.frames[waits.profile.stacks[told.stack].frame].places;
    uint32_t function = waits.profile.places[place].function;
    assert_true(str_is(waits.profile.functions[function].name, "take_lock"));

    assert_int_equal(waits.object_count, 3);
    assert_true(str_is(waits.objects[told.lock].name, "queue_lock"));
    assert_int_equal(waits.objects[told.pipe].kind, OBJECT_PIPE);
    assert_int_equal(waits.objects[0].kind, OBJECT_NONE);
    assert_int_equal(waits.row_count, 4);
    assert_int_equal(waits.rows[0].tally.count, 0);
    const struct wait_row *row = &waits.rows[told.blocked];
    assert_true(row->info.waker_thread == told.main_2 && row->info.syscall == 202);
    assert_true(row->tally.count == 2 && row->tally.total_ns == 40 * MS);
    assert_true(row->tally.first_ns == 140 * MS && row->tally.last_ns == 185 * MS);
    assert_true(wait_tally_quantile(&row->tally, 1) == 30 * MS);
    /* In the order of their end, whatever the order they were told in. */
    assert_int_equal(waits.event_count, 2);
    assert_true(waits.events[0].run_ns == 170 * MS && waits.events[1].wake_ns == 184 * MS);

    const struct waits_thread *t = waits.threads;
    assert_true(t[told.main_1].start_ns == 100 * MS && t[told.main_1].end_ns == 120 * MS);
    assert_true(t[told.main_2].start_ns == 120 * MS && t[told.main_2].end_ns == 200 * MS);
    assert_true(t[told.worker].start_ns == 130 * MS && t[told.worker].end_ns == 200 * MS);
    assert_true(t[told.child_main].end_ns == 180 * MS && t[told.child_main].ended);
    assert_false(t[told.worker].ended);
    assert_true(t[told.worker].running_ns == 6 * MS && t[told.worker].runq_ns == 6 * MS);
    assert_true(t[told.main_2].running_ns == 0 && t[0].running_ns == 0);
}

static void without_the_document_the_span_is_what_was_seen(void **state)
{
    (void)state;
    struct told told = tell(NULL);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct recording *recording = open_good();
    struct waits waits;
    assert_int_equal(waits_load(&arena, recording, &waits, NULL), 0);
    recording_close(recording);
    assert_true(waits.start_ns == 50 * MS && waits.end_ns == 185 * MS);
    assert_int_equal(waits.root_process, told.root);
    assert_true(waits.threads[told.worker].end_ns == 185 * MS);
}

static void the_machine_has_no_root(void **state)
{
    (void)state;
    tell("{\"scope\": \"system\", \"pid\": 0, \"start_ns\": 100000000}");
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct recording *recording = open_good();
    struct waits waits;
    assert_int_equal(waits_load(&arena, recording, &waits, NULL), 0);
    recording_close(recording);
    assert_int_equal(waits.root_process, 0);
    assert_int_equal(waits.root_thread, 0);
    assert_true(waits.start_ns == 100 * MS && waits.end_ns == 185 * MS);
}

static void a_recording_ends_with_its_last_wait_at_the_earliest(void **state)
{
    (void)state;
    struct told told = tell("{\"scope\": \"process\", \"pid\": 70, \"start_ns\": 100000000,"
                            " \"end_ns\": 181000000}");
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct recording *recording = open_good();
    struct waits waits;
    assert_int_equal(waits_load(&arena, recording, &waits, NULL), 0);
    recording_close(recording);
    assert_int_equal(waits.root_process, told.root);
    assert_true(waits.end_ns == 185 * MS);
    assert_true(waits.threads[told.worker].end_ns == 185 * MS);
    assert_true(waits.threads[told.child_main].end_ns == 180 * MS);
}

static void after_exec_the_root_is_its_last_program(void **state)
{
    (void)state;
    struct told told = {.writer = create()};
    told.sink = recording_writer_sink(told.writer);
    threads_add(&told);
    series_add(&told);
    uint32_t next, thread;
    struct process_info exec = {.pid = 70, .start_ns = 160 * MS, .exe = STR("/bin/next")};
    assert_int_equal(sink_process(told.sink, &exec, &next), 0);
    struct thread_info info = {next, 70, 160 * MS, STR("next")};
    assert_int_equal(sink_thread(told.sink, &info, &thread), 0);
    struct why why = {0};
    assert_int_equal(recording_writer_finish(told.writer, &why), 0);
    recording_writer_close(told.writer);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct recording *recording = open_good();
    struct waits waits;
    assert_int_equal(waits_load(&arena, recording, &waits, NULL), 0);
    recording_close(recording);
    assert_int_equal(waits.root_process, next);
    assert_int_equal(waits.root_thread, thread);
    assert_int_equal(waits.row_count, 1); /* nothing waited: no error */
}

static void a_recording_without_waits_says_how_to_get_them(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct why why = {0};
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct recording *recording = open_good();
    struct waits waits = {.row_count = 77};
    assert_int_equal(waits_load(&arena, recording, &waits, &why), -ENODATA);
    assert_non_null(strstr(why.what, "has no waits"));
    assert_non_null(strstr(why.remedy, "--offcpu"));
    assert_int_equal(waits.row_count, 77);
    recording_close(recording);
}

static void damage_is_handed_on(void **state)
{
    (void)state;
    static const char *const forgeries[] = {
        "UPDATE wait SET buckets = x'80'", "UPDATE wait_event SET wait = 99",
        "UPDATE object SET kind = 'x'", "UPDATE total SET weight = -1"};
    for (size_t i = 0; i < ARRAY_SIZE(forgeries); i++) {
        tell(NULL);
        patch(forgeries[i]);
        AUTO(arena_deinit) struct arena arena = ARENA_INIT;
        struct recording *recording = open_good();
        struct waits waits;
        assert_int_equal(waits_load(&arena, recording, &waits, NULL), -EBADMSG);
        recording_close(recording);
        unlink(path);
    }
    /* What is no JSON, or says odd things, is as if it were not there. */
    static const char *const odd[] = {"{", "[]", "{\"scope\": 7}",
                                      "{\"scope\": \"command\", \"pid\": -3, \"start_ns\": 1e99}",
                                      "{\"scope\": \"command\", \"end_ns\": \"x\"}"};
    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        struct told told = tell(odd[i]);
        AUTO(arena_deinit) struct arena arena = ARENA_INIT;
        struct recording *recording = open_good();
        struct waits waits;
        assert_int_equal(waits_load(&arena, recording, &waits, NULL), 0);
        assert_int_equal(waits.root_process, told.root);
        assert_true(waits.start_ns == 50 * MS && waits.end_ns == 185 * MS);
        recording_close(recording);
        unlink(path);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(tally_is_empty_or_exact_for_one),
        TEST(quantiles_are_right_to_a_bucket),
        TEST(quantiles_lie_inside_their_bucket_in_proportion),
        TEST(what_was_told_comes_back_with_names_and_lives),
        TEST(without_the_document_the_span_is_what_was_seen),
        TEST(the_machine_has_no_root),
        TEST(a_recording_ends_with_its_last_wait_at_the_earliest),
        TEST(after_exec_the_root_is_its_last_program),
        TEST(a_recording_without_waits_says_how_to_get_them),
        TEST(damage_is_handed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
