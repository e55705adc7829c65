/* Promises of store/writer.h and store/reader.h about waits: objects, rows and events come back,
 * within bounds, and forged ones are refused by name. */
#include "recording_helpers.h"

#include "store/wait_buckets.h"
#include "store/writer_parts.h"

static void buckets_come_back(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 127, 128, 16383, 16384, UINT32_MAX};
    unsigned char bytes[WAIT_BUCKETS_BYTES_MAX];
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 2000; round++) {
        uint32_t given[WAIT_BUCKETS] = {0}, got[WAIT_BUCKETS];
        for (unsigned i = 0; i < WAIT_BUCKETS; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            if (random % 50 < (unsigned)round % 51)
                given[i] = counts[(random >> 32) % ARRAY_SIZE(counts)];
        }
        size_t size = wait_buckets_encode(given, bytes);
        assert_true(size <= sizeof(bytes));
        assert_true(wait_buckets_decode(bytes, size, got));
        assert_memory_equal(given, got, sizeof(given));
    }
    uint32_t full[WAIT_BUCKETS], none[WAIT_BUCKETS] = {0}, got[WAIT_BUCKETS];
    memset(full, 0xff, sizeof(full));
    assert_int_equal(wait_buckets_encode(full, bytes), WAIT_BUCKETS_BYTES_MAX);
    assert_int_equal(wait_buckets_encode(none, bytes), 0);
    assert_true(wait_buckets_decode(NULL, 0, got));
    assert_memory_equal(none, got, sizeof(none));
}

static void damaged_buckets_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
        {"\x00", 1},                         /* a gap without a count */
        {"\x00\x00", 2},                     /* an empty bucket */
        {"\x80\x01\x01", 3},                 /* bucket 128 */
        {"\x7f\x01\x00\x01", 4},             /* one behind the last */
        {"\x00\xff\xff\xff\xff\x1f", 6},     /* more than 32 bits */
        {"\x00\xff\xff\xff\xff\xff\x01", 7}, /* more than five bytes */
        {"\x00\x80", 2},                     /* cut off */
        {"\x00\x81\x00", 3},                 /* an idle byte */
        {"\xff\xff\xff\xff\x0f\x01", 6},     /* a gap that would overflow */
    };
    uint32_t got[WAIT_BUCKETS] = {17};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(wait_buckets_decode((const unsigned char *)bad[i].bytes, bad[i].size, got));
    assert_int_equal(got[0], 17);
    assert_true(wait_buckets_decode((const unsigned char *)"\x7f\x01", 2, got));
    assert_int_equal(got[127], 1);
}

static int64_t ask(const char *sql)
{
    AUTO(db_close) sqlite3 *db = NULL;
    int64_t number = -1;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(db_int(db, sql, &number), SQLITE_OK);
    return number;
}

static void what_was_never_given_out_is_refused(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct fixture fixture;
    struct why why = {0};
    assert_int_equal(fixture_begin(sink, &fixture), 0);
    uint32_t id = 99;
    struct object_info object = {.kind = OBJECT_FILE, .process = 3, .key = 1};
    assert_int_equal(sink_object(sink, &object, &id), -EINVAL);
    object = (struct object_info){.kind = (enum object_kind)15, .key = 1};
    assert_int_equal(sink_object(sink, &object, &id), -EINVAL);
    static char long_name[(1 << 20) + 1];
    object = (struct object_info){.kind = OBJECT_FILE, .name = {long_name, sizeof(long_name)}};
    assert_int_equal(sink_object(sink, &object, &id), -E2BIG);
    assert_int_equal(sink_object_name(sink, 4, STR("x")), -EINVAL);
    assert_int_equal(sink_object_name(sink, 0, STR("x")), -EINVAL);
    assert_int_equal(sink_object_name(sink, 1, object.name), -E2BIG);
    const struct wait_info bad[] = {
        {.kind = (enum wait_kind)3, .thread = 1},
        {.thread = 0},
        {.thread = 4},
        {.thread = 1, .stack = 43},
        {.thread = 1, .waker_thread = 4},
        {.thread = 1, .waker_stack = 43},
        {.thread = 1, .object = 4},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(sink_wait(sink, &bad[i], &id), -EINVAL);
    assert_int_equal(id, 99);
    struct wait_tally tally = {.count = 1, .total_ns = 5, .max_ns = 5};
    assert_int_equal(sink_wait_add(sink, 0, &tally), -EINVAL);
    assert_int_equal(sink_wait_add(sink, FIXTURE_WAITS + 1, &tally), -EINVAL);
    const struct wait_event events[] = {
        {0, 1, 2, 3}, {FIXTURE_WAITS + 1, 1, 2, 3}, {1, 3, 3, 2}, {1, 3, 3, UINT64_MAX}};
    for (size_t i = 0; i < ARRAY_SIZE(events); i++)
        assert_int_equal(sink_wait_event(sink, &events[i]), -EINVAL);
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    assert_int_equal(ask("SELECT count(*) FROM object"), 3);
    assert_int_equal(ask("SELECT count(*) FROM wait"), FIXTURE_WAITS);
    assert_int_equal(ask("SELECT count(*) FROM wait_event"), 0);
}

static void a_wake_up_that_was_not_seen_is_the_moment_it_ran(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct fixture fixture;
    struct why why = {0};
    assert_int_equal(fixture_begin(sink, &fixture), 0);
    assert_int_equal(sink_wait_event(sink, &(struct wait_event){1, 100, 0, 180}), 0);
    assert_int_equal(sink_wait_event(sink, &(struct wait_event){1, 200, 300, 280}), 0);
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    assert_int_equal(ask("SELECT count(*) FROM wait_event WHERE blocked_ns = 80 AND runq_ns = 0"),
                     2);
}

static void a_commit_has_the_waits_told_so_far_and_no_row_twice(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct fixture fixture;
    assert_int_equal(fixture_begin(sink, &fixture), 0);
    assert_int_equal(recording_writer_commit(writer), 0);
    assert_int_equal(ask("SELECT count(*) FROM wait"), FIXTURE_WAITS);
    assert_int_equal(ask("SELECT sum(count) FROM wait"), 0);
    for (uint64_t i = 1; i <= 5; i++) {
        struct wait_tally tally = {.count = i, .total_ns = 1000 * i, .max_ns = 900};
        tally.buckets[8] = (uint32_t)i;
        assert_int_equal(sink_wait_add(sink, 3, &tally), 0);
        assert_int_equal(sink_wait_add(sink, 5, &tally), 0);
        assert_int_equal(sink_wait_event(sink, &(struct wait_event){3, i, i + 1, i + 2}), 0);
        assert_int_equal(ask("SELECT sum(count) FROM wait"), (int64_t)(i * (i - 1)));
        assert_int_equal(sink_object_name(sink, 3, STR("later")), 0);
        assert_int_equal(recording_writer_commit(writer), 0);
        assert_int_equal(writer->waits_dirty.len, 0);
        assert_int_equal(ask("SELECT sum(count) FROM wait"), (int64_t)(i * (i + 1)));
        assert_int_equal(ask("SELECT count(*) FROM wait"), FIXTURE_WAITS);
        assert_int_equal(ask("SELECT count(*) FROM wait_event"), (int64_t)i);
        assert_int_equal(ask("SELECT count(*) FROM object WHERE name = 'later'"), 1);
    }
    recording_writer_close(writer); /* without an end: as if killed */
    struct recording *recording = open_good();
    assert_int_equal(recording_count(recording, RECORDING_WAIT), FIXTURE_WAITS);
    recording_close(recording);
}

static void events_beyond_the_bound_are_counted(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct fixture fixture;
    struct why why = {0};
    assert_int_equal(writer->wait_events_max, 1 << 22);
    writer->wait_events_max = 100;
    assert_int_equal(fixture_begin(sink, &fixture), 0);
    for (uint64_t i = 1; i <= 130; i++) {
        assert_int_equal(sink_wait_event(sink, &(struct wait_event){3, i, i + 1, i + 2}), 0);
        if (i == 110)
            assert_int_equal(recording_writer_commit(writer), 0);
    }
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    assert_int_equal(ask("SELECT count(*) FROM wait_event"), 100);
    assert_int_equal(ask("SELECT value FROM counter WHERE name = 'loss.wait_events'"), 30);
}

static void sums_beyond_what_a_file_can_hold_stop_there(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct fixture fixture;
    struct why why = {0};
    assert_int_equal(fixture_begin(sink, &fixture), 0);
    struct wait_tally tally = {.count = 1, .total_ns = UINT64_MAX, .max_ns = UINT64_MAX};
    assert_int_equal(sink_wait_add(sink, 1, &tally), 0);
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    assert_true(ask("SELECT total_ns FROM wait WHERE id = 1") == INT64_MAX);
    assert_true(ask("SELECT max_ns FROM wait WHERE id = 1") == INT64_MAX);
}

static int ignore_object(void *context, const struct recorded_object *row)
{
    (void)context, (void)row;
    return 0;
}
static int ignore_wait(void *context, const struct recorded_wait *row)
{
    (void)context, (void)row;
    return 0;
}
static int check_event(void *context, const struct wait_event *row)
{
    (void)context;
    assert_true(row->start_ns <= row->wake_ns && row->wake_ns <= row->run_ns);
    return 0;
}

static void forged_waits_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        const char *words;
    } forgeries[] = {
        {"UPDATE object SET kind = 'odd' WHERE id = 2", "table 'object', row 2: kind"},
        {"UPDATE object SET process = 3 WHERE id = 1", "table 'object', row 1: process"},
        {"UPDATE object SET flags = -1 WHERE id = 1", "table 'object', row 1: flags"},
        {"UPDATE object SET name = x'00' WHERE id = 3", "table 'object', row 3: name"},
        {"DELETE FROM object WHERE id = 2", "table 'object', row 2: id"},
        {"UPDATE wait SET kind = 'odd' WHERE id = 2", "table 'wait', row 2: kind"},
        {"UPDATE wait SET thread = 4 WHERE id = 2", "table 'wait', row 2: thread"},
        {"UPDATE wait SET thread = 0 WHERE id = 2", "table 'wait', row 2: thread"},
        {"UPDATE wait SET stack = 43 WHERE id = 7", "table 'wait', row 7: stack"},
        {"UPDATE wait SET waker_thread = -1 WHERE id = 2", "row 2: waker_thread"},
        {"UPDATE wait SET waker_stack = 43 WHERE id = 2", "row 2: waker_stack"},
        {"UPDATE wait SET object = 4 WHERE id = 2", "row 2: object"},
        {"UPDATE wait SET syscall = 3000000000 WHERE id = 2", "row 2: syscall"},
        {"UPDATE wait SET flags = 1 << 32 WHERE id = 2", "row 2: flags"},
        {"UPDATE wait SET count = -1 WHERE id = 2", "row 2: count"},
        {"UPDATE wait SET total_ns = 1.5 WHERE id = 2", "row 2: total_ns"},
        {"UPDATE wait SET owner_off_ns = 'x' WHERE id = 2", "row 2: owner_off_ns"},
        {"UPDATE wait SET buckets = x'80' WHERE id = 2", "row 2: buckets"},
        {"UPDATE wait SET buckets = 'ab' WHERE id = 2", "row 2: buckets"},
        {"UPDATE wait SET buckets = zeroblob(2000000) WHERE id = 2", "row 2: buckets"},
        {"DELETE FROM wait WHERE id = 5", "table 'wait', row 5: id"},
        {"UPDATE wait_event SET wait = 13 WHERE id = 2", "table 'wait_event', row 2: wait"},
        {"UPDATE wait_event SET wait = 0 WHERE id = 2", "table 'wait_event', row 2: wait"},
        {"UPDATE wait_event SET start_ns = -5 WHERE id = 2", "row 2: start_ns"},
        {"UPDATE wait_event SET blocked_ns = 9223372036854775807 WHERE id = 2", "blocked_ns"},
        {"UPDATE wait_event SET runq_ns = 9223372036854775807 WHERE id = 2", "runq_ns"},
        {"UPDATE wait_event SET id = 1000 WHERE id = 2", "table 'wait_event', row 2: id"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(forgeries); i++) {
        write_fixture(200);
        patch(forgeries[i].sql);
        struct recording *recording = open_good();
        struct why why = {0};
        int r = recording_each_object(recording, ignore_object, NULL, &why);
        if (r == 0)
            r = recording_each_wait(recording, ignore_wait, NULL, &why);
        if (r == 0)
            r = recording_each_wait_event(recording, check_event, NULL, &why);
        if (r != -EBADMSG || !strstr(why.what, forgeries[i].words))
            print_error("%s: %d: %s\n", forgeries[i].sql, r, why.what);
        assert_int_equal(r, -EBADMSG);
        assert_non_null(strstr(why.what, forgeries[i].words));
        recording_close(recording);
        unlink(path);
    }
    write_fixture(200);
    patch("UPDATE wait SET id = 9000000000 WHERE id = 12");
    assert_refused(EBADMSG, WHY_FAILED, "table 'wait': id 9000000000");
}

static void a_recording_of_schema_2_has_no_waits_and_opens(void **state)
{
    (void)state;
    struct fixture fixture = write_fixture(500);
    patch(DROP_HEAP
          "DROP TABLE object; DROP TABLE wait; DROP TABLE wait_event; DROP TABLE call;"
          "DROP TABLE device; DROP TABLE connection; DROP TABLE request; DROP TABLE request_event;"
          "PRAGMA user_version = 2");
    struct recording *recording = open_good();
    assert_int_equal(recording_schema(recording), 2);
    assert_int_equal(recording_count(recording, RECORDING_WAIT), 0);
    assert_int_equal(recording_each_wait(recording, ignore_wait, NULL, NULL), 0);
    assert_samples(recording, &fixture, 500);
    recording_close(recording);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(buckets_come_back),
        TEST(damaged_buckets_are_refused),
        TEST(what_was_never_given_out_is_refused),
        TEST(a_wake_up_that_was_not_seen_is_the_moment_it_ran),
        TEST(a_commit_has_the_waits_told_so_far_and_no_row_twice),
        TEST(events_beyond_the_bound_are_counted),
        TEST(sums_beyond_what_a_file_can_hold_stop_there),
        TEST(forged_waits_are_refused_by_name),
        TEST(a_recording_of_schema_2_has_no_waits_and_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
