/* Promises of store/writer.h and store/reader.h about calls, devices, connections and requests:
 * they come back, within bounds, and forged ones are refused by name. */
#include "recording_helpers.h"

#include "store/wait_buckets.h"
#include "store/writer_parts.h"

static int64_t ask(const char *sql)
{
    AUTO(db_close) sqlite3 *db = NULL;
    int64_t number = -1;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(db_int(db, sql, &number), SQLITE_OK);
    return number;
}

static struct recording_writer *begin_fixture(struct fixture *fixture)
{
    struct recording_writer *writer = create();
    assert_int_equal(fixture_begin(recording_writer_sink(writer), fixture), 0);
    return writer;
}

static void finish(struct recording_writer *writer)
{
    struct why why = {0};
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
}

static void sizes_come_back_and_damaged_ones_are_refused(void **state)
{
    (void)state;
    unsigned char bytes[CALL_SIZES_BYTES_MAX];
    uint32_t given[CALL_SIZES] = {[0] = 1, [12] = UINT32_MAX, [31] = 300}, got[CALL_SIZES];
    size_t size = call_sizes_encode(given, bytes);
    assert_true(call_sizes_decode(bytes, size, got));
    assert_memory_equal(given, got, sizeof(given));
    memset(given, 0xff, sizeof(given));
    assert_int_equal(call_sizes_encode(given, bytes), CALL_SIZES_BYTES_MAX);
    got[0] = 17;
    assert_false(call_sizes_decode((const unsigned char *)"\x20\x01", 2, got)); /* bucket 32 */
    assert_false(call_sizes_decode((const unsigned char *)"\x1f\x01\x00\x01", 4, got));
    assert_false(call_sizes_decode((const unsigned char *)"\x00", 1, got));
    assert_int_equal(got[0], 17);
    assert_true(call_sizes_decode((const unsigned char *)"\x1f\x01", 2, got));
    assert_int_equal(got[31], 1);
}

static void calls_that_were_never_given_out_are_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    struct sink *sink = recording_writer_sink(writer);
    static char long_name[(1 << 20) + 1];
    uint32_t id = 99;
    const struct call_info calls[] = {
        {.thread = 0}, {.thread = 4}, {.thread = 1, .stack = 43}, {.thread = 1, .object = 4}};
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        assert_int_equal(sink_call(sink, &calls[i], &id), -EINVAL);
    struct device_info device = {.number = 1, .op = DEVICE_OPS};
    assert_int_equal(sink_device(sink, &device, &id), -EINVAL);
    device = (struct device_info){1, DEVICE_READ, {long_name, sizeof(long_name)}};
    assert_int_equal(sink_device(sink, &device, &id), -E2BIG);
    assert_int_equal(id, 99);
    struct call_tally call = {.count = 1};
    assert_int_equal(sink_call_add(sink, 0, &call), -EINVAL);
    assert_int_equal(sink_call_add(sink, FIXTURE_CALLS + 1, &call), -EINVAL);
    struct device_tally tally = {.count = 1};
    assert_int_equal(sink_device_add(sink, 0, &tally), -EINVAL);
    assert_int_equal(sink_device_add(sink, FIXTURE_DEVICES + 1, &tally), -EINVAL);
    finish(writer);
    assert_int_equal(ask("SELECT count(*) FROM call"), FIXTURE_CALLS);
    assert_int_equal(ask("SELECT count(*) FROM device"), FIXTURE_DEVICES);
}

static void requests_that_were_never_given_out_are_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    struct sink *sink = recording_writer_sink(writer);
    static char long_name[(1 << 20) + 1];
    uint32_t id = 99, texts = (uint32_t)writer->interned.texts.len;
    struct connection_info good = {.protocol = REQUEST_REDIS, .role = REQUEST_CLIENT};
    struct connection_info connections[] = {good, good, good, good};
    connections[0].protocol = REQUEST_PROTOCOLS;
    connections[1].role = (enum request_role)0;
    connections[2].process = 3;
    connections[3].object = 4;
    for (size_t i = 0; i < ARRAY_SIZE(connections); i++)
        assert_int_equal(sink_connection(sink, &connections[i], &id), -EINVAL);
    good.peer = (struct str){long_name, sizeof(long_name)};
    assert_int_equal(sink_connection(sink, &good, &id), -E2BIG);
    struct connection_end end = {.service = good.peer};
    assert_int_equal(sink_connection_end(sink, 1, &end), -E2BIG);
    end.service = STR("x");
    assert_int_equal(sink_connection_end(sink, 0, &end), -EINVAL);
    assert_int_equal(sink_connection_end(sink, FIXTURE_CONNECTIONS + 1, &end), -EINVAL);
    const struct request_info requests[] = {
        {.protocol = (enum request_protocol)0, .role = 1},
        {.protocol = 1, .role = (enum request_role)4},
        {.protocol = 1, .role = 1, .thread = 4},
        {.protocol = 1, .role = 1, .stack = 43},
        {.protocol = 1, .role = 1, .peer = texts + 1},
        {.protocol = 1, .role = 1, .text = texts + 1},
        {.protocol = 1, .role = 1, .result = texts + 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        assert_int_equal(sink_request(sink, &requests[i], &id), -EINVAL);
    assert_int_equal(id, 99);
    struct request_tally tally = {.count = 1};
    assert_int_equal(sink_request_add(sink, 0, &tally), -EINVAL);
    assert_int_equal(sink_request_add(sink, FIXTURE_REQUESTS + 1, &tally), -EINVAL);
    const struct request_event events[] = {
        {.request = 0, .connection = 1},
        {.request = FIXTURE_REQUESTS + 1, .connection = 1},
        {.request = 1, .connection = 0},
        {.request = 1, .connection = FIXTURE_CONNECTIONS + 1},
        {.request = 1, .connection = 1, .start_ns = 2, .end_ns = 1},
        {.request = 1, .connection = 1, .end_ns = UINT64_MAX},
        {.request = 1, .connection = 1, .payload = texts + 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(events); i++)
        assert_int_equal(sink_request_event(sink, &events[i]), -EINVAL);
    finish(writer);
    assert_int_equal(ask("SELECT count(*) FROM connection"), FIXTURE_CONNECTIONS);
    assert_int_equal(ask("SELECT count(*) FROM request"), FIXTURE_REQUESTS);
    assert_int_equal(ask("SELECT count(*) FROM request_event"), 0);
}

static void a_first_byte_that_was_not_seen_is_the_end(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    struct sink *sink = recording_writer_sink(writer);
    struct request_event event = {.request = 1, .connection = 1, .start_ns = 100, .end_ns = 180};
    assert_int_equal(sink_request_event(sink, &event), 0);
    event.first_byte_ns = 130;
    assert_int_equal(sink_request_event(sink, &event), 0);
    finish(writer);
    assert_int_equal(ask("SELECT first_byte_ns * 1000 + rest_ns FROM request_event WHERE id = 1"),
                     80000);
    assert_int_equal(ask("SELECT first_byte_ns * 1000 + rest_ns FROM request_event WHERE id = 2"),
                     30050);
}

static void a_time_that_is_not_known_is_null(void **state)
{
    (void)state;
    struct fixture fixture;
    finish(begin_fixture(&fixture));
    assert_int_equal(ask("SELECT count(*) FROM connection WHERE opened_ns IS NULL"), 3);
    assert_int_equal(ask("SELECT closed_ns FROM connection WHERE id = 1"), 77000);
    assert_int_equal(ask("SELECT count(*) FROM connection WHERE closed_ns IS NULL"),
                     FIXTURE_CONNECTIONS - 1);
}

static void a_commit_has_the_calls_told_so_far_and_no_row_twice(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    struct sink *sink = recording_writer_sink(writer);
    assert_int_equal(recording_writer_commit(writer), 0);
    assert_int_equal(ask("SELECT sum(count) FROM call"), 0);
    for (uint64_t i = 1; i <= 5; i++) {
        struct call_tally call = {.count = i, .bytes = 10};
        struct device_tally device = {.count = i};
        struct request_tally request = {.count = i};
        struct connection_end end = {.requests = i};
        struct request_event event = {.request = 1, .connection = 1, .end_ns = i};
        assert_int_equal(sink_call_add(sink, 3, &call), 0);
        assert_int_equal(sink_call_add(sink, 3, &call), 0);
        assert_int_equal(sink_device_add(sink, 2, &device), 0);
        assert_int_equal(sink_request_add(sink, 4, &request), 0);
        assert_int_equal(sink_connection_end(sink, 3, &end), 0);
        assert_int_equal(sink_request_event(sink, &event), 0);
        assert_int_equal(ask("SELECT sum(count) FROM call"), (int64_t)(i * (i - 1)));
        assert_int_equal(recording_writer_commit(writer), 0);
        assert_int_equal(writer->calls_dirty.len + writer->connections_dirty.len +
                             writer->requests_dirty.len,
                         0);
        assert_int_equal(ask("SELECT sum(count) FROM call"), (int64_t)(i * (i + 1)));
        assert_int_equal(ask("SELECT bytes FROM call WHERE id = 3"), (int64_t)(20 * i));
        assert_int_equal(ask("SELECT sum(count) FROM device"), (int64_t)(i * (i + 1) / 2));
        assert_int_equal(ask("SELECT sum(count) FROM request"), (int64_t)(i * (i + 1) / 2));
        assert_int_equal(ask("SELECT requests FROM connection WHERE id = 3"), (int64_t)i);
        assert_int_equal(ask("SELECT count(*) FROM call"), FIXTURE_CALLS);
        assert_int_equal(ask("SELECT count(*) FROM request_event"), (int64_t)i);
    }
    recording_writer_close(writer); /* without an end: as if killed */
    struct recording *recording = open_good();
    assert_int_equal(recording_count(recording, RECORDING_CALL), FIXTURE_CALLS);
    assert_int_equal(recording_count(recording, RECORDING_DEVICE), FIXTURE_DEVICES);
    assert_int_equal(recording_count(recording, RECORDING_CONNECTION), FIXTURE_CONNECTIONS);
    assert_int_equal(recording_count(recording, RECORDING_REQUEST), FIXTURE_REQUESTS);
    recording_close(recording);
}

static void requests_beyond_the_bound_are_counted(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    assert_int_equal(writer->request_events_max, 1 << 20);
    writer->request_events_max = 100;
    for (uint64_t i = 1; i <= 130; i++) {
        struct request_event event = {.request = 1, .connection = 1, .end_ns = i};
        assert_int_equal(sink_request_event(recording_writer_sink(writer), &event), 0);
        if (i == 110)
            assert_int_equal(recording_writer_commit(writer), 0);
    }
    finish(writer);
    assert_int_equal(ask("SELECT count(*) FROM request_event"), 100);
    assert_int_equal(ask("SELECT value FROM counter WHERE name = 'loss.request_events'"), 30);
}

static void sums_beyond_what_a_file_can_hold_stop_there(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    struct sink *sink = recording_writer_sink(writer);
    struct call_tally call = {.count = 1, .bytes = UINT64_MAX};
    struct device_tally device = {.count = 1, .total_ns = UINT64_MAX};
    struct request_event event = {
        .request = 1, .connection = 1, .bytes_in = UINT64_MAX, .parameters = UINT64_MAX};
    assert_int_equal(sink_call_add(sink, 1, &call), 0);
    assert_int_equal(sink_device_add(sink, 1, &device), 0);
    assert_int_equal(sink_request_event(sink, &event), 0);
    finish(writer);
    assert_true(ask("SELECT bytes FROM call WHERE id = 1") == INT64_MAX);
    assert_true(ask("SELECT total_ns FROM device WHERE id = 1") == INT64_MAX);
    assert_true(ask("SELECT bytes_in FROM request_event") == INT64_MAX);
    assert_true(ask("SELECT parameters FROM request_event") == -1); /* a hash has all 64 bits */
}

#define IGNORE(noun)                                                                               \
    static int ignore_##noun(void *context, const struct recorded_##noun *row)                     \
    {                                                                                              \
        (void)context, (void)row;                                                                  \
        return 0;                                                                                  \
    }
IGNORE(call)
IGNORE(device)
IGNORE(connection)
IGNORE(request)

static int check_event(void *context, const struct request_event *row)
{
    (void)context;
    assert_true(row->start_ns <= row->first_byte_ns && row->first_byte_ns <= row->end_ns);
    return 0;
}

static int read_all(struct recording *recording, struct why *why)
{
    int r = recording_each_call(recording, ignore_call, NULL, why);
    if (r == 0)
        r = recording_each_device(recording, ignore_device, NULL, why);
    if (r == 0)
        r = recording_each_connection(recording, ignore_connection, NULL, why);
    if (r == 0)
        r = recording_each_request(recording, ignore_request, NULL, why);
    if (r == 0)
        r = recording_each_request_event(recording, check_event, NULL, why);
    return r;
}

static const struct forgery {
    const char *sql;
    const char *words;
} forgeries[] = {
    {"UPDATE call SET thread = 4 WHERE id = 2", "table 'call', row 2: thread"},
    {"UPDATE call SET thread = 0 WHERE id = 2", "table 'call', row 2: thread"},
    {"UPDATE call SET stack = 43 WHERE id = 2", "row 2: stack"},
    {"UPDATE call SET object = 4 WHERE id = 2", "row 2: object"},
    {"UPDATE call SET syscall = 3000000000 WHERE id = 2", "row 2: syscall"},
    {"UPDATE call SET error = -1 WHERE id = 2", "row 2: error"},
    {"UPDATE call SET flags = 1 << 32 WHERE id = 2", "row 2: flags"},
    {"UPDATE call SET count = -1 WHERE id = 2", "row 2: count"},
    {"UPDATE call SET bytes = 1.5 WHERE id = 2", "row 2: bytes"},
    {"UPDATE call SET missed_bytes = 'x' WHERE id = 2", "row 2: missed_bytes"},
    {"UPDATE call SET buckets = x'80' WHERE id = 2", "row 2: buckets"},
    {"UPDATE call SET sizes = x'2001' WHERE id = 2", "row 2: sizes"},
    {"UPDATE call SET sizes = 'ab' WHERE id = 2", "row 2: sizes"},
    {"DELETE FROM call WHERE id = 5", "table 'call', row 5: id"},
    {"UPDATE device SET op = 'sing' WHERE id = 2", "table 'device', row 2: op"},
    {"UPDATE device SET name = x'00' WHERE id = 2", "row 2: name"},
    {"UPDATE device SET number = -1 WHERE id = 2", "row 2: number"},
    {"UPDATE device SET depth_max = -1 WHERE id = 2", "row 2: depth_max"},
    {"UPDATE device SET sizes = zeroblob(2000000) WHERE id = 2", "row 2: sizes"},
    {"UPDATE connection SET process = 3 WHERE id = 2", "table 'connection', row 2: process"},
    {"UPDATE connection SET object = 4 WHERE id = 2", "row 2: object"},
    {"UPDATE connection SET protocol = 'gopher' WHERE id = 2", "row 2: protocol"},
    {"UPDATE connection SET role = '' WHERE id = 2", "row 2: role"},
    {"UPDATE connection SET opened_ns = -5 WHERE id = 2", "row 2: opened_ns"},
    {"UPDATE connection SET closed_ns = 'x' WHERE id = 2", "row 2: closed_ns"},
    {"UPDATE connection SET peer = x'61' WHERE id = 2", "row 2: peer"},
    {"UPDATE request SET protocol = 'tcp' WHERE id = 2", "table 'request', row 2: protocol"},
    {"UPDATE request SET thread = 4 WHERE id = 2", "row 2: thread"},
    {"UPDATE request SET peer = 4000 WHERE id = 2", "row 2: peer"},
    {"UPDATE request SET text = -1 WHERE id = 2", "row 2: text"},
    {"UPDATE request SET result = 4000 WHERE id = 2", "row 2: result"},
    {"UPDATE request SET parameters = -1 WHERE id = 2", "row 2: parameters"},
    {"UPDATE request SET buckets = x'0000' WHERE id = 2", "row 2: buckets"},
    {"UPDATE request_event SET request = 8 WHERE id = 2", "'request_event', row 2: request"},
    {"UPDATE request_event SET request = 0 WHERE id = 2", "row 2: request"},
    {"UPDATE request_event SET connection = 0 WHERE id = 2", "row 2: connection"},
    {"UPDATE request_event SET connection = 7 WHERE id = 2", "row 2: connection"},
    {"UPDATE request_event SET start_ns = -1 WHERE id = 2", "row 2: start_ns"},
    {"UPDATE request_event SET first_byte_ns = 9223372036854775807 WHERE id = 2", "first_byte_ns"},
    {"UPDATE request_event SET rest_ns = 9223372036854775807 WHERE id = 2", "row 2: rest_ns"},
    {"UPDATE request_event SET payload = 4000 WHERE id = 2", "row 2: payload"},
    {"UPDATE request_event SET id = 1000 WHERE id = 2", "table 'request_event', row 2: id"},
};

static void forged_calls_and_requests_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(forgeries); i++) {
        write_fixture(200);
        patch(forgeries[i].sql);
        struct recording *recording = open_good();
        struct why why = {0};
        int r = read_all(recording, &why);
        if (r != -EBADMSG || !strstr(why.what, forgeries[i].words))
            print_error("%s: %d: %s\n", forgeries[i].sql, r, why.what);
        assert_int_equal(r, -EBADMSG);
        assert_non_null(strstr(why.what, forgeries[i].words));
        recording_close(recording);
        unlink(path);
    }
    write_fixture(200);
    patch("UPDATE call SET id = 9000000000 WHERE id = 9");
    assert_refused(EBADMSG, WHY_FAILED, "table 'call': id 9000000000");
}

static void a_recording_of_schema_3_has_no_calls_and_opens(void **state)
{
    (void)state;
    struct fixture fixture = write_fixture(500);
    patch(DROP_HEAP "DROP TABLE call; DROP TABLE device; DROP TABLE connection;"
                    "DROP TABLE request; DROP TABLE request_event; PRAGMA user_version = 3");
    struct recording *recording = open_good();
    struct why why = {0};
    assert_int_equal(recording_schema(recording), 3);
    assert_int_equal(recording_count(recording, RECORDING_CALL), 0);
    assert_int_equal(recording_count(recording, RECORDING_WAIT), FIXTURE_WAITS);
    assert_int_equal(read_all(recording, &why), 0);
    assert_samples(recording, &fixture, 500);
    recording_close(recording);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(sizes_come_back_and_damaged_ones_are_refused),
        TEST(calls_that_were_never_given_out_are_refused),
        TEST(requests_that_were_never_given_out_are_refused),
        TEST(a_first_byte_that_was_not_seen_is_the_end),
        TEST(a_time_that_is_not_known_is_null),
        TEST(a_commit_has_the_calls_told_so_far_and_no_row_twice),
        TEST(requests_beyond_the_bound_are_counted),
        TEST(sums_beyond_what_a_file_can_hold_stop_there),
        TEST(forged_calls_and_requests_are_refused_by_name),
        TEST(a_recording_of_schema_3_has_no_calls_and_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
