/* Promises of analyze/io_load.h: what the writer was told comes back as arrays by id, events in
 * the order of time, and a recording without calls says how to get them. */
#include "recording_helpers.h"

#include "analyze/io_load.h"

enum { MS = 1000000 };

/* A command with one thread, a file and a peer. */
struct told {
    struct recording_writer *writer;
    struct sink *sink;
    uint32_t process, thread, stack, file, call, device, connection, request, peer, text;
};

static void program_add(struct told *told)
{
    struct sink *sink = told->sink;
    uint32_t name, frame;
    struct process_info process = {.pid = 70, .start_ns = 50 * MS, .exe = STR("/bin/app")};
    assert_int_equal(sink_process(sink, &process, &told->process), 0);
    struct thread_info thread = {told->process, 70, 50 * MS, STR("app")};
    assert_int_equal(sink_thread(sink, &thread, &told->thread), 0);
    assert_int_equal(sink_text(sink, STR("load"), &name), 0);
    struct frame_info info = {.kind = FRAME_NAMED, .name = name};
    assert_int_equal(sink_frame(sink, &info, &frame), 0);
    assert_int_equal(sink_stack(sink, 0, frame, &told->stack), 0);
    struct object_info file = {.kind = OBJECT_FILE, .key = 9, .name = STR("/etc/hosts")};
    assert_int_equal(sink_object(sink, &file, &told->file), 0);
}

static void calls_add(struct told *told)
{
    struct sink *sink = told->sink;
    struct call_info call = {told->thread, told->stack, told->file, 17, 0, CALL_SYNC};
    struct call_tally tally = {.count = 3, .total_ns = 9 * MS, .first_ns = 100 * MS, .bytes = 77};
    tally.last_ns = 160 * MS;
    tally.sizes[5] = 3;
    assert_int_equal(sink_call(sink, &call, &told->call), 0);
    assert_int_equal(sink_call_add(sink, told->call, &tally), 0);
    struct device_info device = {254 << 20, DEVICE_FLUSH, STR("vda")};
    struct device_tally flushes = {.count = 4, .depth_max = 2};
    assert_int_equal(sink_device(sink, &device, &told->device), 0);
    assert_int_equal(sink_device_add(sink, told->device, &flushes), 0);
}

static void requests_add(struct told *told)
{
    struct sink *sink = told->sink;
    struct connection_info connection = {.process = told->process,
                                         .protocol = REQUEST_REDIS,
                                         .role = REQUEST_CLIENT,
                                         .opened_ns = 90 * MS,
                                         .peer = STR("127.0.0.1:6379")};
    struct connection_end last = {.requests = 2, .bytes_in = 10, .service = STR("db0")};
    assert_int_equal(sink_connection(sink, &connection, &told->connection), 0);
    assert_int_equal(sink_connection_end(sink, told->connection, &last), 0);
    assert_int_equal(sink_text(sink, STR("127.0.0.1:6379"), &told->peer), 0);
    assert_int_equal(sink_text(sink, STR("GET ?"), &told->text), 0);
    struct request_info request = {
        REQUEST_REDIS, REQUEST_CLIENT, told->thread, told->stack, told->peer, told->text, 0};
    struct request_tally tally = {
        .count = 2, .total_ns = 30 * MS, .first_ns = 120 * MS, .last_ns = 170 * MS};
    assert_int_equal(sink_request(sink, &request, &told->request), 0);
    assert_int_equal(sink_request_add(sink, told->request, &tally), 0);
    struct request_event event = {.request = told->request,
                                  .connection = told->connection,
                                  .start_ns = 150 * MS,
                                  .end_ns = 170 * MS,
                                  .parameters = UINT64_MAX};
    assert_int_equal(sink_request_event(sink, &event), 0);
    event.start_ns = 120 * MS;
    event.first_byte_ns = 125 * MS;
    event.end_ns = 130 * MS;
    assert_int_equal(sink_request_event(sink, &event), 0);
}

static struct told tell(const char *target)
{
    struct told told = {.writer = create()};
    struct why why = {0};
    told.sink = recording_writer_sink(told.writer);
    program_add(&told);
    calls_add(&told);
    requests_add(&told);
    if (target)
        assert_int_equal(sink_document(told.sink, "target", str_from(target)), 0);
    assert_int_equal(sink_document(told.sink, "io", STR("{\"tier\": \"kernel\"}")), 0);
    assert_int_equal(sink_document(told.sink, "files", STR("{\"files\": []}")), 0);
    assert_int_equal(recording_writer_finish(told.writer, &why), 0);
    recording_writer_close(told.writer);
    return told;
}

static void load_good(struct arena *arena, struct io *ret)
{
    struct recording *recording = open_good();
    struct why why = {0};
    int r = io_load(arena, recording, ret, &why);
    if (r < 0)
        print_error("%s\n", why.what);
    assert_int_equal(r, 0);
    recording_close(recording);
}

static void what_was_told_comes_back_by_id(void **state)
{
    (void)state;
    struct told told = tell("{\"scope\": \"command\", \"pid\": 70, \"start_ns\": 80000000,"
                            " \"end_ns\": 200000000}");
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io io;
    load_good(&arena, &io);
    assert_true(io.start_ns == 80 * MS && io.end_ns == 200 * MS);
    assert_true(io.root_process == told.process && io.root_thread == told.thread);
    assert_true(str_is(io.facts_json, "{\"tier\": \"kernel\"}"));
    assert_true(str_is(io.files_json, "{\"files\": []}"));
    assert_string_equal(io.profile.series, "io");
    assert_int_equal(io.object_count, 2);
    assert_true(str_is(io.objects[told.file].name, "/etc/hosts"));
    assert_int_equal(io.call_count, 2);
    assert_int_equal(io.calls[0].tally.count, 0);
    const struct call_row *call = &io.calls[told.call];
    assert_true(call->info.syscall == 17 && call->info.flags == CALL_SYNC);
    assert_true(call->tally.count == 3 && call->tally.bytes == 77 && call->tally.sizes[5] == 3);
    assert_int_equal(io.device_count, 2);
    assert_true(str_is(io.devices[told.device].info.name, "vda"));
    assert_true(io.devices[told.device].tally.depth_max == 2 && io.devices[0].info.name.len == 0);
    assert_int_equal(io.connection_count, 2);
    const struct connection_row *connection = &io.connections[told.connection];
    assert_true(str_is(connection->info.service, "db0") && connection->closed_ns == 0);
    assert_true(str_is(connection->info.peer, "127.0.0.1:6379") && connection->requests == 2);
    assert_int_equal(io.request_count, 2);
    assert_true(str_is(io.texts[io.requests[told.request].info.text], "GET ?"));
    assert_true(str_is(io.texts[io.requests[told.request].info.peer], "127.0.0.1:6379"));
    assert_true(io.texts[0].len == 0 && io.text_count == 4);
    /* In the order of their beginning, whatever the order they were told in. */
    assert_int_equal(io.event_count, 2);
    assert_true(io.events[0].start_ns == 120 * MS && io.events[0].first_byte_ns == 125 * MS);
    assert_true(io.events[1].end_ns == 170 * MS && io.events[1].first_byte_ns == 170 * MS);
    assert_true(io.events[1].parameters == UINT64_MAX);
}

static void without_the_document_the_span_is_what_was_seen(void **state)
{
    (void)state;
    struct told told = tell(NULL);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io io;
    load_good(&arena, &io);
    assert_true(io.start_ns == 50 * MS && io.end_ns == 170 * MS);
    assert_int_equal(io.root_process, told.process);
}

static void the_machine_has_no_root(void **state)
{
    (void)state;
    tell("{\"scope\": \"system\", \"pid\": 0, \"start_ns\": 80000000}");
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io io;
    load_good(&arena, &io);
    assert_true(io.root_process == 0 && io.root_thread == 0);
    assert_true(io.start_ns == 80 * MS && io.end_ns == 170 * MS);
}

static void a_recording_ends_with_its_last_call_at_the_earliest(void **state)
{
    (void)state;
    tell("{\"scope\": \"process\", \"pid\": 70, \"start_ns\": 80000000, \"end_ns\": 155000000}");
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io io;
    load_good(&arena, &io);
    assert_true(io.end_ns == 170 * MS);
}

static void assert_no_calls(void)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct recording *recording = open_good();
    struct io io = {.call_count = 77};
    struct why why = {0};
    assert_int_equal(io_load(&arena, recording, &io, &why), -ENODATA);
    assert_non_null(strstr(why.what, "has no calls"));
    assert_non_null(strstr(why.remedy, "record --io"));
    assert_int_equal(io.call_count, 77);
    recording_close(recording);
}

static void a_recording_without_calls_says_how_to_get_them(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct why why = {0};
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    assert_no_calls();
    /* And so does one of before there were any. */
    patch(DROP_HEAP "DROP TABLE call; DROP TABLE device; DROP TABLE connection;"
                    "DROP TABLE request; DROP TABLE request_event; PRAGMA user_version = 3");
    assert_no_calls();
}

static void nothing_called_is_no_error_where_calls_were_recorded(void **state)
{
    (void)state;
    struct recording_writer *writer = create();
    struct series_info series = {"io", SERIES_SUM, UNIT_NS, "time in calls"};
    struct why why = {0};
    uint32_t id;
    assert_int_equal(sink_series(recording_writer_sink(writer), &series, &id), 0);
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    recording_writer_close(writer);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io io;
    load_good(&arena, &io);
    assert_true(io.call_count == 1 && io.request_count == 1 && io.event_count == 0);
    assert_true(io.facts_json.len == 0 && io.start_ns <= io.end_ns);
}

static void damage_is_handed_on(void **state)
{
    (void)state;
    static const char *const forged[] = {"UPDATE call SET buckets = x'80'",
                                         "UPDATE device SET op = 'x'",
                                         "UPDATE connection SET protocol = 'x'",
                                         "UPDATE request SET text = 99",
                                         "UPDATE request_event SET connection = 9",
                                         "UPDATE text SET id = 70 WHERE id = 2",
                                         "UPDATE object SET kind = 'x'"};
    for (size_t i = 0; i < ARRAY_SIZE(forged); i++) {
        tell(NULL);
        patch(forged[i]);
        AUTO(arena_deinit) struct arena arena = ARENA_INIT;
        struct recording *recording = open_good();
        struct io io;
        assert_int_equal(io_load(&arena, recording, &io, NULL), -EBADMSG);
        recording_close(recording);
        unlink(path);
    }
}

/* All of what a sink can be told, more than once. */
static void the_fixture_loads(void **state)
{
    (void)state;
    write_fixture(4000);
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct io io;
    load_good(&arena, &io);
    assert_int_equal(io.call_count, FIXTURE_CALLS + 1);
    assert_int_equal(io.device_count, FIXTURE_DEVICES + 1);
    assert_int_equal(io.connection_count, FIXTURE_CONNECTIONS + 1);
    assert_int_equal(io.request_count, FIXTURE_REQUESTS + 1);
    assert_int_equal(io.event_count, 4000 / FIXTURE_WAIT_EVERY);
    uint64_t seen = 0;
    for (size_t i = 1; i < io.call_count; i++)
        seen += io.calls[i].tally.count;
    assert_int_equal(seen, 2 * 4000 / FIXTURE_WAIT_EVERY);
    for (size_t i = 1; i < io.event_count; i++)
        assert_true(io.events[i - 1].start_ns <= io.events[i].start_ns);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(what_was_told_comes_back_by_id),
        TEST(without_the_document_the_span_is_what_was_seen),
        TEST(the_machine_has_no_root),
        TEST(a_recording_ends_with_its_last_call_at_the_earliest),
        TEST(a_recording_without_calls_says_how_to_get_them),
        TEST(nothing_called_is_no_error_where_calls_were_recorded),
        TEST(damage_is_handed_on),
        TEST(the_fixture_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
