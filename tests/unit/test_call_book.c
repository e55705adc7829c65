/* Promises of model/call_book.h: what is alike is one row, tallies add up, bounds hold, and ids
 * that were never given out are refused. */
#include "unit.h"

#include "model/call_book.h"
#include "model/sink_memory.h"

#include <errno.h>
#include <string.h>

static void rows_with_the_same_fields_are_one(void **state)
{
    (void)state;
    AUTO(call_book_deinit) struct call_book book = {0};
    const struct call_info infos[] = {
        {1, 2, 3, 4, 5, 6}, {9, 2, 3, 4, 5, 6}, {1, 9, 3, 4, 5, 6}, {1, 2, 9, 4, 5, 6},
        {1, 2, 3, 9, 5, 6}, {1, 2, 3, 4, 9, 6}, {1, 2, 3, 4, 5, 9},
    };
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < ARRAY_SIZE(infos); i++) {
            uint32_t id = 0;
            assert_int_equal(call_book_call(&book, &infos[i], &id), 0);
            assert_int_equal(id, i + 1);
        }
    }
    assert_int_equal(book.calls.len, ARRAY_SIZE(infos));
    assert_memory_equal(&book.calls.data[3].info, &infos[3], sizeof(infos[3]));
    const struct request_info requests[] = {
        {1, 1, 1, 1, 1, 1, 1}, {2, 1, 1, 1, 1, 1, 1}, {1, 2, 1, 1, 1, 1, 1}, {1, 1, 2, 1, 1, 1, 1},
        {1, 1, 1, 2, 1, 1, 1}, {1, 1, 1, 1, 2, 1, 1}, {1, 1, 1, 1, 1, 2, 1}, {1, 1, 1, 1, 1, 1, 2},
    };
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < ARRAY_SIZE(requests); i++) {
            uint32_t id = 0;
            assert_int_equal(call_book_request(&book, &requests[i], &id), 0);
            assert_int_equal(id, i + 1);
        }
    }
    assert_int_equal(book.requests.len, ARRAY_SIZE(requests));
}

static void a_device_is_one_by_number_and_operation_and_may_get_its_name_later(void **state)
{
    (void)state;
    AUTO(call_book_deinit) struct call_book book = {0};
    uint32_t read, write, again;
    struct device_info info = {.number = 7, .op = DEVICE_READ, .name = STR("")};
    assert_int_equal(call_book_device(&book, &info, &read), 0);
    info.op = DEVICE_WRITE;
    assert_int_equal(call_book_device(&book, &info, &write), 0);
    book.devices.data[0].dirty = false;
    info = (struct device_info){7, DEVICE_READ, STR("vda")};
    assert_int_equal(call_book_device(&book, &info, &again), 0);
    assert_true(read == 1 && write == 2 && again == read);
    assert_true(str_is(book.devices.data[0].info.name, "vda") && book.devices.data[0].dirty);
    info.name = STR("another");
    assert_int_equal(call_book_device(&book, &info, &again), 0);
    assert_true(str_is(book.devices.data[0].info.name, "vda"));
    info.op = DEVICE_OPS;
    assert_int_equal(call_book_device(&book, &info, &again), -EINVAL);
}

static void connections_are_new_each_time_and_keep_what_their_end_says(void **state)
{
    (void)state;
    AUTO(call_book_deinit) struct call_book book = {0};
    char peer[] = "10.0.0.1:80";
    struct connection_info info = {.process = 1,
                                   .protocol = REQUEST_HTTP1,
                                   .role = REQUEST_CLIENT,
                                   .flags = CONNECTION_FROM_START,
                                   .peer = str_from(peer),
                                   .service = STR("before")};
    uint32_t a, b;
    assert_int_equal(call_book_connection(&book, &info, &a), 0);
    assert_int_equal(call_book_connection(&book, &info, &b), 0);
    assert_true(a == 1 && b == 2);
    memset(peer, 'x', sizeof(peer) - 1); /* it was copied */
    struct connection_end end = {50, CONNECTION_TLS, 3, 100, 200, STR("after")};
    assert_int_equal(call_book_connection_end(&book, a, &end), 0);
    end = (struct connection_end){.requests = 1, .service = STR("")};
    assert_int_equal(call_book_connection_end(&book, b, &end), 0);
    const struct connection_row *rows = book.connections.data;
    assert_true(str_is(rows[0].info.peer, "10.0.0.1:80") && rows[0].closed_ns == 50);
    assert_true(str_is(rows[0].info.service, "after") && str_is(rows[1].info.service, "before"));
    assert_int_equal(rows[0].info.flags, CONNECTION_FROM_START | CONNECTION_TLS);
    assert_true(rows[0].requests == 3 && rows[0].bytes_out == 100 && rows[0].bytes_in == 200);
    assert_true(rows[1].closed_ns == 0 && rows[1].requests == 1);
    assert_int_equal(call_book_connection_end(&book, 0, &end), -EINVAL);
    assert_int_equal(call_book_connection_end(&book, 3, &end), -EINVAL);
}

static void tallies_add_up(void **state)
{
    (void)state;
    struct call_tally a = {2, 30, 20, 100, 300, 5, 9, 1, 2, 1, 1, 4096, {1}, {2}};
    struct call_tally b = {1, 10, 10, 50, 120, 7, 7, 0, 1, 1, 0, 0, {0, 1}, {0, 3}};
    struct call_tally none = {.first_ns = 1, .max_ns = 999, .last_ns = 999};
    struct call_tally sum = {0};
    call_tally_add(&sum, &a);
    call_tally_add(&sum, &b);
    call_tally_add(&sum, &none); /* of nothing is nothing */
    struct call_tally want = {3, 40, 20, 50, 300, 12, 16, 1, 3, 2, 1, 4096, {1, 1}, {2, 3}};
    assert_memory_equal(&sum, &want, sizeof(want));

    struct device_tally d = {2, 100, 30, 20, 100, 300, 60, 4, {1}, {2}};
    struct device_tally e = {1, 10, 10, 10, 50, 120, 5, 2, {0, 1}, {0, 3}};
    struct device_tally depth = {.depth_ns = 7, .depth_max = 9};
    struct device_tally device = {0};
    device_tally_add(&device, &depth); /* known before anything is answered */
    device_tally_add(&device, &d);
    device_tally_add(&device, &e);
    struct device_tally device_want = {3, 110, 40, 20, 50, 300, 72, 9, {1, 1}, {2, 3}};
    assert_memory_equal(&device, &device_want, sizeof(device_want));

    struct request_tally r = {2, 30, 20, 12, 100, 300, 5, 6, 1, 1, 0, 1000, {1}};
    struct request_tally s = {1, 10, 10, 4, 50, 120, 7, 8, 0, 1, 1, 100, {0, 1}};
    struct request_tally request = {0};
    request_tally_add(&request, &r);
    request_tally_add(&request, &s);
    struct request_tally request_want = {
        3, 40, 20, 16, 50, 300, 12, 14, 1, 2, 1, REQUEST_PARAMETERS, {1, 1}};
    assert_memory_equal(&request, &request_want, sizeof(request_want));
}

static void full_buckets_stay_full(void **state)
{
    (void)state;
    struct call_tally sum = {.count = 1, .buckets = {UINT32_MAX - 1}, .sizes = {UINT32_MAX}};
    struct call_tally more = {.count = 5, .buckets = {5}, .sizes = {5}};
    call_tally_add(&sum, &more);
    assert_true(sum.buckets[0] == UINT32_MAX && sum.sizes[0] == UINT32_MAX);
}

static void what_was_never_given_out_gets_no_tally(void **state)
{
    (void)state;
    AUTO(call_book_deinit) struct call_book book = {0};
    struct call_tally call = {.count = 1};
    struct device_tally device = {.count = 1};
    struct request_tally request = {.count = 1};
    for (uint32_t id = 0; id < 2; id++) {
        assert_int_equal(call_book_call_add(&book, id, &call), -EINVAL);
        assert_int_equal(call_book_device_add(&book, id, &device), -EINVAL);
        assert_int_equal(call_book_request_add(&book, id, &request), -EINVAL);
    }
}

/* The bounds are a million rows: only those of devices are few enough to be reached in a test. */
static void beyond_its_bounds_a_book_takes_only_what_it_knows(void **state)
{
    (void)state;
    AUTO(call_book_deinit) struct call_book book = {0};
    uint32_t id;
    for (uint32_t i = 0; i < CALL_BOOK_DEVICES_MAX; i++) {
        struct device_info info = {i, DEVICE_READ, STR("")};
        assert_int_equal(call_book_device(&book, &info, &id), 0);
    }
    struct device_info info = {CALL_BOOK_DEVICES_MAX, DEVICE_READ, STR("")};
    assert_int_equal(call_book_device(&book, &info, &id), -E2BIG);
    info.number = 17;
    assert_int_equal(call_book_device(&book, &info, &id), 0);
    assert_int_equal(id, 18);
    assert_int_equal(book.devices.len, CALL_BOOK_DEVICES_MAX);
}

static void events_are_settled(void **state)
{
    (void)state;
    AUTO(call_book_deinit) struct call_book book = {0};
    uint32_t id;
    struct request_info info = {.protocol = REQUEST_DNS};
    struct connection_info connection = {.protocol = REQUEST_DNS};
    assert_int_equal(call_book_request(&book, &info, &id), 0);
    assert_int_equal(call_book_connection(&book, &connection, &id), 0);
    struct request_event good = {1, 1, 10, 15, 20, 0, 0, 0, 0, 0};
    assert_true(call_book_event_settle(&book, &good) && good.first_byte_ns == 15);
    struct request_event early = {1, 1, 10, 9, 20, 0, 0, 0, 0, 0};
    assert_true(call_book_event_settle(&book, &early) && early.first_byte_ns == 20);
    struct request_event late = {1, 1, 10, 21, 20, 0, 0, 0, 0, 0};
    assert_true(call_book_event_settle(&book, &late) && late.first_byte_ns == 20);
    struct request_event bad[] = {
        {0, 1, 10, 15, 20, 0, 0, 0, 0, 0}, {2, 1, 10, 15, 20, 0, 0, 0, 0, 0},
        {1, 0, 10, 15, 20, 0, 0, 0, 0, 0}, {1, 2, 10, 15, 20, 0, 0, 0, 0, 0},
        {1, 1, 10, 15, 9, 0, 0, 0, 0, 0},  {1, 1, 10, 15, UINT64_MAX, 0, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(call_book_event_settle(&book, &bad[i]));
}

static void sizes_have_a_bucket_an_octave(void **state)
{
    (void)state;
    assert_int_equal(call_size(0), 0);
    assert_int_equal(call_size(1), 1);
    assert_int_equal(call_size(4095), 12);
    assert_int_equal(call_size(4096), 13);
    assert_int_equal(call_size(UINT64_MAX), CALL_SIZES - 1);
}

/* The sink of tests checks what belongs to others: threads, stacks, objects, texts. */
static void the_memory_sink_refuses_ids_of_others(void **state)
{
    (void)state;
    AUTO(sink_memory_deinit) struct sink_memory memory = SINK_MEMORY_INIT;
    struct sink *sink = &memory.sink;
    uint32_t process, thread, text, id = 99, request, connection;
    assert_int_equal(sink_process(sink, &(struct process_info){.pid = 1}, &process), 0);
    assert_int_equal(
        sink_thread(sink, &(struct thread_info){.process = process, .tid = 1}, &thread), 0);
    assert_int_equal(sink_text(sink, STR("GET /"), &text), 0);
    const struct call_info calls[] = {
        {.thread = 0}, {.thread = 2}, {.thread = 1, .stack = 1}, {.thread = 1, .object = 1}};
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        assert_int_equal(sink_call(sink, &calls[i], &id), -EINVAL);
    const struct request_info requests[] = {
        {.thread = 2}, {.stack = 1}, {.peer = 2}, {.text = 2}, {.result = 2}};
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
        assert_int_equal(sink_request(sink, &requests[i], &id), -EINVAL);
    assert_int_equal(sink_connection(sink, &(struct connection_info){.process = 2}, &id), -EINVAL);
    assert_int_equal(sink_connection(sink, &(struct connection_info){.object = 1}, &id), -EINVAL);
    assert_int_equal(id, 99);
    struct request_info good = {REQUEST_HTTP1, REQUEST_CLIENT, thread, 0, text, text, text};
    assert_int_equal(sink_request(sink, &good, &request), 0);
    assert_int_equal(
        sink_connection(sink, &(struct connection_info){.process = process}, &connection), 0);
    struct request_event event = {request, connection, 1, 2, 3, 0, 0, 0, 0, 2};
    assert_int_equal(sink_request_event(sink, &event), -EINVAL);
    event.payload = text;
    assert_int_equal(sink_request_event(sink, &event), 0);
    assert_int_equal(memory.request_events.len, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_with_the_same_fields_are_one),
        cmocka_unit_test(a_device_is_one_by_number_and_operation_and_may_get_its_name_later),
        cmocka_unit_test(connections_are_new_each_time_and_keep_what_their_end_says),
        cmocka_unit_test(tallies_add_up),
        cmocka_unit_test(full_buckets_stay_full),
        cmocka_unit_test(what_was_never_given_out_gets_no_tally),
        cmocka_unit_test(beyond_its_bounds_a_book_takes_only_what_it_knows),
        cmocka_unit_test(events_are_settled),
        cmocka_unit_test(sizes_have_a_bucket_an_octave),
        cmocka_unit_test(the_memory_sink_refuses_ids_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
