/* Promises of collect/io_requests*.c, with a protocol of the test's own: whoever asks says
 * "?text parameter\n", whoever answers "=result\n"; "!" is nonsense, "~" another protocol, "^"
 * cannot be understood. */
#include "unit.h"

#include "collect/io_requests_parts.h"
#include "model/sink_memory.h"

#include <errno.h>
#include <stdio.h>

enum { PENDING = 8 };
#define MS UINT64_C(1000000)

struct line_state {
    struct {
        uint64_t time_ns, cookie, bytes;
        char text[64];
    } pending[PENDING];
    size_t count;
};

static int lines_guess(const struct protocol_piece *first, uint16_t port)
{
    (void)port;
    if (first->len < 4 || first->head[0] != '?')
        return 0;
    return first->direction == PROTOCOL_OUT ? REQUEST_CLIENT : REQUEST_SERVER;
}

static int line_answer(struct line_state *state, const struct protocol_piece *piece,
                       const struct protocol_teller *teller)
{
    if (state->count == 0)
        return PROTOCOL_BROKEN;
    const char *text = state->pending[0].text, *blank = strchr(text, ' ');
    struct protocol_request request = {
        .start_ns = state->pending[0].time_ns,
        .first_byte_ns = piece->time_ns,
        .end_ns = piece->time_ns,
        .bytes_out = state->pending[0].bytes,
        .bytes_in = piece->bytes,
        .text = {text, blank ? (size_t)(blank - text) : strlen(text)},
        .parameters = blank ? hash_bytes(blank, strlen(blank)) : 0,
        .result = {(const char *)piece->head + 1, strcspn((const char *)piece->head + 1, "\n")},
        .cookie = state->pending[0].cookie,
        .payload = str_from(text),
    };
    if (str_is(request.result, "bad"))
        request.flags |= REQUEST_FAILED;
    int r = teller->request(teller->context, &request);
    memmove(&state->pending[0], &state->pending[1], sizeof(state->pending[0]) * --state->count);
    return r;
}

static int lines_piece(void *memory, const struct protocol_opts *opts,
                       const struct protocol_piece *piece, const struct protocol_teller *teller)
{
    struct line_state *state = memory;
    bool asks = (piece->direction == PROTOCOL_OUT) == (opts->role == REQUEST_CLIENT);
    switch (piece->head[0]) {
    case '!':
        return PROTOCOL_BROKEN;
    case '~':
        return PROTOCOL_SWITCHED;
    case '^':
        return PROTOCOL_MIDDLE;
    case '=':
        return asks ? PROTOCOL_BROKEN : line_answer(state, piece, teller);
    case '?':
        if (!asks || state->count == PENDING)
            return PROTOCOL_BROKEN;
        state->pending[state->count].time_ns = piece->time_ns;
        state->pending[state->count].cookie = piece->cookie;
        state->pending[state->count].bytes = piece->bytes;
        snprintf(state->pending[state->count].text, sizeof(state->pending[0].text), "%.*s",
                 (int)(piece->len - 2), (const char *)piece->head + 1);
        state->count++;
        return teller->service(teller->context, STR("lines"));
    default:
        return PROTOCOL_GOES_ON;
    }
}

static int lines_close(void *memory, const struct protocol_opts *opts, uint64_t time_ns,
                       const struct protocol_teller *teller)
{
    struct line_state *state = memory;
    int r = 0;
    (void)opts, (void)time_ns;
    for (size_t i = 0; i < state->count; i++) {
        struct protocol_request request = {
            .start_ns = state->pending[i].time_ns,
            .text = str_from(state->pending[i].text),
            .flags = REQUEST_UNANSWERED,
            .cookie = state->pending[i].cookie,
            .bytes_out = state->pending[i].bytes,
        };
        int told = teller->request(teller->context, &request);
        r = r < 0 ? r : told;
    }
    return r;
}

static const struct protocol_ops lines = {
    .protocol = REQUEST_REDIS,
    .name = "lines",
    .guess = lines_guess,
    .state_bytes = sizeof(struct line_state),
    .piece = lines_piece,
    .close = lines_close,
};

static const struct protocol_ops *guess(const struct protocol_piece *first, uint16_t port,
                                        enum request_role *ret_role)
{
    int role = lines_guess(first, port);
    *ret_role = role > 0 ? (enum request_role)role : *ret_role;
    return role > 0 ? &lines : NULL;
}

/* ---- a conversation ---- */

struct talk {
    struct sink_memory memory;
    struct io_requests *requests;
    struct io_socket socket;
    uint32_t thread, stack;
};

static void talk_begin(struct talk *talk, uint64_t opened_ns)
{
    *talk = (struct talk){
        .memory = SINK_MEMORY_INIT,
        .socket = {.key = 7,
                   .process = 1,
                   .peer = STR("127.0.0.1:6379"),
                   .port = 6379,
                   .opened_ns = opened_ns},
        .thread = 1,
    };
    struct io_requests_opts opts = {.guess = guess, .payloads = true};
    const struct process_info process = {.pid = 10};
    const struct thread_info first = {.process = 1, .tid = 10}, second = {.process = 1, .tid = 11};
    uint32_t id;
    assert_int_equal(sink_process(&talk->memory.sink, &process, &id), 0);
    assert_int_equal(sink_thread(&talk->memory.sink, &first, &id), 0);
    assert_int_equal(sink_thread(&talk->memory.sink, &second, &id), 0);
    assert_int_equal(io_requests_open(&opts, &talk->memory.sink, &talk->requests), 0);
}

static void talk_end(struct talk *talk)
{
    io_requests_close(talk->requests);
    sink_memory_deinit(&talk->memory);
}

static int said(struct talk *talk, enum protocol_direction direction, uint64_t time_ns,
                const char *text)
{
    struct io_said piece = {
        .direction = direction,
        .start_ns = time_ns,
        .end_ns = time_ns,
        .head = (const uint8_t *)text,
        .len = strlen(text),
        .bytes = strlen(text),
        .thread = talk->thread,
        .stack = talk->stack,
    };
    return io_requests_piece(talk->requests, &talk->socket, &piece);
}

static uint64_t counter(const struct talk *talk, const char *name)
{
    const struct memory_counter *found = sink_memory_counter(&talk->memory, name);
    assert_non_null(found);
    return found->value;
}

static struct str text_of(const struct talk *talk, uint32_t id)
{
    return intern_get(&talk->memory.interned.texts, id);
}

static void a_request_is_a_row_an_event_and_a_connection(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 50);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "?get 1\n"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_IN, 4000, "=fine\n"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 5000, "?get 2\n"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_IN, 6000, "=bad\n"), IO_WANTED);
    assert_int_equal(io_requests_closed(talk.requests, 7, 9000), 0);
    assert_int_equal(io_requests_finish(talk.requests, 10000), 0);
    const struct call_book *book = &talk.memory.calls;
    assert_int_equal(book->requests.len, 2); /* "fine" and "bad" are not alike */
    const struct request_row *row = &book->requests.data[0];
    assert_int_equal(row->info.protocol, REQUEST_REDIS);
    assert_int_equal(row->info.role, REQUEST_CLIENT);
    assert_int_equal(row->info.thread, 1);
    assert_true(str_is(text_of(&talk, row->info.text), "get"));
    assert_true(str_is(text_of(&talk, row->info.result), "fine"));
    assert_true(str_is(text_of(&talk, row->info.peer), "127.0.0.1:6379"));
    assert_int_equal(row->tally.count, 1);
    assert_int_equal(row->tally.total_ns, 3000);
    assert_int_equal(row->tally.first_byte_ns, 3000);
    assert_int_equal(row->tally.first_ns, 1000);
    assert_int_equal(row->tally.last_ns, 4000);
    assert_int_equal(row->tally.bytes_out, 7);
    assert_int_equal(row->tally.bytes_in, 6);
    assert_int_equal(row->tally.parameters, 1);
    assert_int_equal(row->tally.failed + row->tally.reused, 0);
    assert_int_equal(book->requests.data[1].tally.failed, 1);
    assert_int_equal(book->requests.data[1].tally.reused, 1);
    assert_int_equal(talk.memory.request_events.len, 2);
    assert_int_equal(talk.memory.request_events.data[0].request, 1);
    assert_int_equal(talk.memory.request_events.data[0].connection, 1);
    assert_true(str_is(text_of(&talk, talk.memory.request_events.data[0].payload), "get 1"));
    assert_int_equal(book->connections.len, 1);
    const struct connection_row *connection = &book->connections.data[0];
    assert_int_equal(connection->info.opened_ns, 50);
    assert_int_equal(connection->closed_ns, 9000);
    assert_int_equal(connection->requests, 2);
    assert_int_equal(connection->bytes_out, 14);
    assert_int_equal(connection->bytes_in, 11);
    assert_true(connection->info.flags & CONNECTION_FROM_START);
    assert_true(str_is(connection->info.service, "lines"));
    assert_int_equal(counter(&talk, "io.requests"), 2);
    assert_int_equal(counter(&talk, "io.connections"), 1);
    assert_int_equal(counter(&talk, "io.requests.hopped"), 0);
    talk_end(&talk);
}

static void a_server_is_who_receives_and_an_answer_by_another_thread_has_hopped(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 50);
    assert_int_equal(said(&talk, PROTOCOL_IN, 1000, "?get 1\n"), IO_WANTED);
    talk.thread = 2;
    assert_int_equal(said(&talk, PROTOCOL_OUT, 4000, "=fine\n"), IO_WANTED);
    assert_int_equal(io_requests_finish(talk.requests, 10000), 0);
    assert_int_equal(talk.memory.calls.requests.len, 1);
    assert_int_equal(talk.memory.calls.requests.data[0].info.role, REQUEST_SERVER);
    assert_int_equal(talk.memory.calls.requests.data[0].info.thread, 1);
    assert_int_equal(talk.memory.calls.connections.data[0].closed_ns, 0);
    assert_int_equal(counter(&talk, "io.requests.hopped"), 1);
    talk_end(&talk);
}

static void sums_reach_the_sink_also_while_nothing_is_said(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 50);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(said(&talk, PROTOCOL_OUT, 2000 * MS, "?get 1\n"), IO_WANTED);
        assert_int_equal(said(&talk, PROTOCOL_IN, 2001 * MS, "=fine\n"), IO_WANTED);
    }
    assert_int_equal(io_requests_drain(talk.requests, 2100 * MS), 0); /* too soon */
    assert_true(talk.memory.calls.requests.data[0].tally.count < 3);
    assert_int_equal(io_requests_drain(talk.requests, 4000ull * MS), 0);
    assert_int_equal(talk.memory.calls.requests.data[0].tally.count, 3);
    assert_int_equal(io_requests_finish(talk.requests, 4000ull * MS), 0);
    assert_int_equal(talk.memory.calls.requests.data[0].tally.count, 3);
    talk_end(&talk);
}

static void pieces_too_short_to_tell_are_looked_at_together(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 50);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "?"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1500, "get 1\n"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_IN, 4000, "=fine\n"), IO_WANTED);
    assert_int_equal(io_requests_finish(talk.requests, 10000), 0);
    assert_int_equal(talk.memory.calls.requests.len, 1);
    assert_int_equal(talk.memory.calls.requests.data[0].tally.total_ns, 3000);
    assert_true(talk.memory.calls.connections.data[0].info.flags & CONNECTION_FROM_START);
    talk_end(&talk);
}

static void what_nobody_understands_is_not_asked_for_any_more(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 50);
    for (int i = 0; i < 3; i++)
        assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "220 mail.example.org"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "220 mail.example.org"), IO_ENOUGH);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "?get 1\n"), IO_ENOUGH);
    talk.socket.key = 8; /* where we came into the middle we are more patient */
    talk.socket.opened_ns = 0;
    for (int i = 0; i < 31; i++)
        assert_int_equal(said(&talk, PROTOCOL_IN, 1000, "rest of something"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_IN, 1000, "rest of something"), IO_ENOUGH);
    talk.socket.key = 9;
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "\x16\x03\x01\x02 hello"), IO_ENOUGH);
    assert_int_equal(io_requests_finish(talk.requests, 10000), 0);
    assert_int_equal(talk.memory.calls.connections.len, 0);
    assert_int_equal(counter(&talk, "io.connections.unknown"), 2);
    assert_int_equal(counter(&talk, "io.connections.encrypted"), 1);
    talk_end(&talk);
}

static void nonsense_ends_a_connection_and_is_counted(void **state)
{
    (void)state;
    static const char *const ends[] = {"!", "~", "^"};
    struct talk talk;
    talk_begin(&talk, 50);
    for (uint64_t i = 0; i < ARRAY_SIZE(ends); i++) {
        talk.socket.key = i;
        assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "?get 1\n"), IO_WANTED);
        assert_int_equal(said(&talk, PROTOCOL_IN, 1100, "=ok\n"), IO_WANTED);
        assert_int_equal(said(&talk, PROTOCOL_OUT, 1200, "?get 2\n"), IO_WANTED);
        assert_int_equal(said(&talk, PROTOCOL_IN, 1300, ends[i]), IO_ENOUGH);
        assert_int_equal(said(&talk, PROTOCOL_IN, 1400, "=ok\n"), IO_ENOUGH);
    }
    assert_int_equal(io_requests_finish(talk.requests, 10000), 0);
    assert_int_equal(talk.memory.calls.requests.data[0].tally.count, 3);
    assert_int_equal(counter(&talk, "io.requests.cut_off"), 3);
    assert_int_equal(counter(&talk, "io.requests.unanswered"), 0);
    assert_int_equal(counter(&talk, "io.connections.broken"), 1);
    assert_int_equal(counter(&talk, "io.connections.switched"), 1);
    assert_int_equal(counter(&talk, "io.connections.middle"), 1);
    size_t broken = 0;
    for (size_t i = 0; i < talk.memory.calls.connections.len; i++)
        broken += talk.memory.calls.connections.data[i].info.flags & CONNECTION_BROKEN ? 1 : 0;
    assert_int_equal(broken, 1);
    talk_end(&talk);
}

static void what_is_never_answered_lasts_until_nobody_waits(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 50);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "?closed\n"), IO_WANTED);
    assert_int_equal(io_requests_closed(talk.requests, 7, 3000), 0);
    assert_int_equal(io_requests_closed(talk.requests, 7, 4000), 0); /* is fine */
    assert_int_equal(said(&talk, PROTOCOL_OUT, 5000, "?open\n"), IO_WANTED);
    assert_int_equal(io_requests_finish(talk.requests, 9000), 0);
    const struct call_book *book = &talk.memory.calls;
    assert_int_equal(book->requests.len, 2);
    assert_int_equal(book->requests.data[0].tally.total_ns, 2000);
    assert_int_equal(book->requests.data[0].tally.unanswered, 1);
    assert_int_equal(book->requests.data[1].tally.total_ns, 4000);
    assert_int_equal(book->connections.data[0].closed_ns, 3000);
    assert_int_equal(counter(&talk, "io.requests.unanswered"), 2);
    talk_end(&talk);
}

static void single_requests_are_bounded_but_long_ones_are_told(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 50);
    uint64_t now = 1000;
    for (int i = 0; i < IO_EVENTS_FIRST + 5; i++, now += 20) {
        assert_int_equal(said(&talk, PROTOCOL_OUT, now, "?get 1\n"), IO_WANTED);
        assert_int_equal(said(&talk, PROTOCOL_IN, now + 10, "=fine\n"), IO_WANTED);
    }
    assert_int_equal(said(&talk, PROTOCOL_OUT, now, "?get 1\n"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_IN, now + MS, "=fine\n"), IO_WANTED);
    assert_int_equal(io_requests_finish(talk.requests, now + MS), 0);
    assert_int_equal(talk.memory.request_events.len, IO_EVENTS_FIRST + 1);
    assert_int_equal(counter(&talk, "io.requests.events_left_out"), 5);
    assert_int_equal(talk.memory.calls.requests.data[0].tally.count, IO_EVENTS_FIRST + 6);
    talk_end(&talk);
}

static void different_parameters_are_counted_up_to_a_bound(void **state)
{
    (void)state;
    struct talk talk;
    char text[64];
    talk_begin(&talk, 50);
    for (int i = 0; i < 3 * 400; i++) {
        snprintf(text, sizeof(text), "?get %d\n", i / 3);
        assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, text), IO_WANTED);
        assert_int_equal(said(&talk, PROTOCOL_IN, 1100, "=fine\n"), IO_WANTED);
    }
    for (int i = 0; i < 3000; i++) {
        snprintf(text, sizeof(text), "?set %d\n", i);
        assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, text), IO_WANTED);
        assert_int_equal(said(&talk, PROTOCOL_IN, 1100, "=fine\n"), IO_WANTED);
    }
    assert_int_equal(io_requests_finish(talk.requests, 2000), 0);
    assert_int_equal(talk.memory.calls.requests.data[0].tally.parameters, 400);
    assert_int_equal(talk.memory.calls.requests.data[1].tally.parameters, REQUEST_PARAMETERS);
    talk_end(&talk);
}

static void rows_beyond_the_bound_share_one(void **state)
{
    (void)state;
    enum { MORE = 10 };
    struct talk talk;
    char text[64];
    talk_begin(&talk, 50);
    for (int i = 0; i < IO_ROWS_MAX + MORE; i++) {
        snprintf(text, sizeof(text), "?statement-%d\n", i);
        assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, text), IO_WANTED);
        assert_int_equal(said(&talk, PROTOCOL_IN, 1100, "=fine\n"), IO_WANTED);
    }
    assert_int_equal(io_requests_finish(talk.requests, 2000), 0);
    assert_int_equal(talk.memory.calls.requests.len, IO_ROWS_MAX + 1);
    assert_int_equal(talk.memory.calls.requests.data[IO_ROWS_MAX].tally.count, MORE);
    assert_int_equal(counter(&talk, "io.requests.folded"), MORE);
    assert_int_equal(counter(&talk, "io.requests"), IO_ROWS_MAX + MORE);
    talk_end(&talk);
}

static void connections_beyond_the_bound_are_counted(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 50);
    for (uint64_t i = 0; i <= IO_CONNECTIONS_MAX; i++) {
        talk.socket.key = i;
        int wanted = said(&talk, PROTOCOL_OUT, 1000, "?");
        assert_int_equal(wanted, i < IO_CONNECTIONS_MAX ? IO_WANTED : IO_ENOUGH);
    }
    assert_int_equal(io_requests_closed(talk.requests, 5, 2000), 0);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 3000, "?again"), IO_WANTED); /* there is room now */
    assert_int_equal(io_requests_finish(talk.requests, 2000), 0);
    assert_int_equal(counter(&talk, "io.connections.beyond"), 1);
    talk_end(&talk);
}

/* In the middle an answer may look like a question of the other side. */
static void in_the_middle_the_socket_knows_who_asks_unless_the_protocol_insists(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 0);
    talk.socket.object_flags = OBJECT_CLIENT;
    assert_int_equal(said(&talk, PROTOCOL_IN, 1000, "?value"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1100, "?get 1\n"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_IN, 1200, "=fine\n"), IO_WANTED);
    talk.socket.key = 8;
    talk.socket.object_flags = OBJECT_SERVER; /* by its port, but wrong */
    for (int i = 0; i < 3; i++)
        assert_int_equal(said(&talk, PROTOCOL_OUT, 1300, "?get 1\n"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_IN, 1400, "=fine\n"), IO_WANTED);
    assert_int_equal(io_requests_finish(talk.requests, 2000), 0);
    assert_int_equal(talk.memory.calls.connections.len, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(talk.memory.calls.connections.data[i].info.role, REQUEST_CLIENT);
        assert_false(talk.memory.calls.connections.data[i].info.flags & CONNECTION_FROM_START);
    }
    talk_end(&talk);
}

static void after_lost_pieces_the_protocol_is_looked_for_anew(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 50);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "?get 1\n"), IO_WANTED);
    assert_int_equal(io_requests_lost(talk.requests, 7), 0);
    assert_int_equal(said(&talk, PROTOCOL_IN, 1200, "=late\n"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 2000, "?get 2\n"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_IN, 2300, "=fine\n"), IO_WANTED);
    assert_int_equal(io_requests_finish(talk.requests, 9000), 0);
    assert_int_equal(counter(&talk, "io.requests"), 1);
    assert_int_equal(counter(&talk, "io.requests.cut_off"), 1);
    assert_int_equal(counter(&talk, "io.connections.lost"), 1);
    assert_int_equal(talk.memory.calls.requests.data[0].tally.total_ns, 300);
    talk_end(&talk);
}

static void a_socket_that_was_met_needs_only_its_key(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 50);
    struct io_socket whole = talk.socket;
    talk.socket = (struct io_socket){.key = 7};
    assert_int_equal(said(&talk, PROTOCOL_OUT, 900, "?get 1\n"), IO_ENOUGH); /* nobody knows it */
    assert_int_equal(io_requests_met(talk.requests, &whole), 0);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "?get 1\n"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_IN, 1200, "=fine\n"), IO_WANTED);
    assert_true(str_is(io_requests_socket(talk.requests, 7)->peer, "127.0.0.1:6379"));
    assert_null(io_requests_socket(talk.requests, 8));
    assert_int_equal(io_requests_finish(talk.requests, 9000), 0);
    assert_true(str_is(talk.memory.calls.connections.data[0].info.peer, "127.0.0.1:6379"));
    talk_end(&talk);
}

static void the_outside_of_tls_is_no_connection_that_nobody_knows(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 50);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "\x16\x03\x01 hello"), IO_ENOUGH);
    io_requests_inside(talk.requests, 7);
    io_requests_inside(talk.requests, 7);
    io_requests_inside(talk.requests, 99);
    talk.socket.key = 8;
    talk.socket.tls = true;
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "?get 1\n"), IO_WANTED);
    assert_int_equal(said(&talk, PROTOCOL_IN, 1200, "=fine\n"), IO_WANTED);
    assert_int_equal(io_requests_finish(talk.requests, 9000), 0);
    assert_int_equal(counter(&talk, "io.connections.encrypted"), 0);
    assert_int_equal(talk.memory.calls.connections.len, 1);
    assert_true(talk.memory.calls.connections.data[0].info.flags & CONNECTION_TLS);
    talk_end(&talk);
}

static void statements_that_differ_in_values_are_one_row(void **state)
{
    (void)state;
    struct talk talk;
    char sql[64];
    talk_begin(&talk, 50);
    for (uint64_t i = 0; i < 10; i++) {
        snprintf(sql, sizeof(sql), "SELECT * FROM t WHERE id = %d", (int)i % 5);
        const struct io_statement statement = {
            .protocol = REQUEST_SQLITE,
            .process = 1,
            .thread = 1,
            .database = STR("/tmp/x.db"),
            .sql = str_from(sql),
            .start_ns = 1000 * i,
            .end_ns = 1000 * i + 100,
            .result = i == 9 ? STR("ERROR 19") : STR(""),
        };
        assert_int_equal(io_requests_told(talk.requests, &statement), 0);
    }
    assert_int_equal(io_requests_finish(talk.requests, 20000), 0);
    const struct call_book *book = &talk.memory.calls;
    assert_int_equal(book->requests.len, 2);
    assert_true(
        str_is(text_of(&talk, book->requests.data[0].info.text), "SELECT * FROM t WHERE id = ?"));
    assert_int_equal(book->requests.data[0].tally.count, 9);
    assert_int_equal(book->requests.data[0].tally.total_ns, 900);
    assert_int_equal(book->requests.data[0].tally.parameters, 5);
    assert_int_equal(book->requests.data[1].tally.failed, 1);
    assert_int_equal(book->connections.len, 1);
    assert_int_equal(book->connections.data[0].requests, 10);
    assert_int_equal(book->connections.data[0].info.role, REQUEST_INSIDE);
    assert_true(str_is(book->connections.data[0].info.peer, "/tmp/x.db"));
    talk_end(&talk);
}

static void what_a_sink_refuses_is_passed_on(void **state)
{
    (void)state;
    struct talk talk;
    talk_begin(&talk, 50);
    assert_int_equal(said(&talk, PROTOCOL_OUT, 1000, "?get 1\n"), IO_WANTED);
    talk.memory.error = -ENOSPC;
    assert_int_equal(said(&talk, PROTOCOL_IN, 1200, "=fine\n"), -ENOSPC);
    assert_int_equal(io_requests_finish(talk.requests, 9000), -ENOSPC);
    talk_end(&talk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_a_row_an_event_and_a_connection),
        cmocka_unit_test(a_server_is_who_receives_and_an_answer_by_another_thread_has_hopped),
        cmocka_unit_test(sums_reach_the_sink_also_while_nothing_is_said),
        cmocka_unit_test(pieces_too_short_to_tell_are_looked_at_together),
        cmocka_unit_test(what_nobody_understands_is_not_asked_for_any_more),
        cmocka_unit_test(nonsense_ends_a_connection_and_is_counted),
        cmocka_unit_test(what_is_never_answered_lasts_until_nobody_waits),
        cmocka_unit_test(single_requests_are_bounded_but_long_ones_are_told),
        cmocka_unit_test(different_parameters_are_counted_up_to_a_bound),
        cmocka_unit_test(rows_beyond_the_bound_share_one),
        cmocka_unit_test(connections_beyond_the_bound_are_counted),
        cmocka_unit_test(in_the_middle_the_socket_knows_who_asks_unless_the_protocol_insists),
        cmocka_unit_test(after_lost_pieces_the_protocol_is_looked_for_anew),
        cmocka_unit_test(a_socket_that_was_met_needs_only_its_key),
        cmocka_unit_test(the_outside_of_tls_is_no_connection_that_nobody_knows),
        cmocka_unit_test(statements_that_differ_in_values_are_one_row),
        cmocka_unit_test(what_a_sink_refuses_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
