/* Detectors of requests and networks: which part of the path is whose, and each bound from both
 * sides. Evidence is made by hand; times are milliseconds of a run of 1,000. */
#include "unit.h"

#include "detect/net_stalls.h"
#include "detect/net_statements.h"
#include "made_io.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { STACKS = 64, ROWS = 64 };

/* One program for all recordings: functions by name, stacks by function and line. */
static struct {
    struct image_info images[2];
    struct profile_function functions[STACKS];
    struct profile_place places[STACKS];
    struct profile_frame frames[STACKS];
    struct profile_stack stacks[STACKS];
    struct profile profile;
    struct path_cost rows[ROWS];
    struct wait_row waits[ROWS];
    struct wait_event events[ROWS];
    struct waits_thread lives[8];
    struct profile_total totals[8];
    struct arena arena;
    struct evidence e;
    struct made_io *made;
    struct findings findings;
} w;

static void world_new(void)
{
    memset(&w, 0, sizeof(w));
    w.made = made_io_new();
    w.images[1] = (struct image_info){.path = STR("/home/me/app")};
    for (int i = 0; i < STACKS; i++)
        w.functions[i].name = w.functions[i].file = STR("");
    w.profile = (struct profile){.images = w.images,
                                 .image_count = 2,
                                 .functions = w.functions,
                                 .function_count = 1,
                                 .places = w.places,
                                 .place_count = 1,
                                 .frames = w.frames,
                                 .frame_count = 1,
                                 .stacks = w.stacks,
                                 .stack_count = 1,
                                 .threads = w.made->threads,
                                 .thread_count = 3};
    w.findings.arena = &w.arena;
    w.e = (struct evidence){.arena = &w.arena};
    for (int i = 0; i < AXES; i++)
        w.e.axes[i] = (struct axis_state){.artifact = "recording", .scale = 1};
    w.e.costs = (struct run_costs){
        .wall_ns = 1e9, .cpu_ns = 1e8, .switches_voluntary = 1000, .switches_involuntary = 100};
    w.e.costs_on_path = (struct path_costs){
        .profile = &w.profile, .rows = w.rows, .ns = 1e9, .wall_low = 1, .wall_high = 1};
    w.e.waits = (struct waits){.profile = w.profile,
                               .rows = w.waits,
                               .row_count = 1,
                               .events = w.events,
                               .threads = w.lives,
                               .objects = w.made->objects};
}

static void world_end(void)
{
    arena_deinit(&w.arena);
    free(w.made);
}

static uint32_t function_named(struct str name)
{
    for (uint32_t i = 1; i < w.profile.function_count; i++)
        if (str_eq(w.functions[i].name, name))
            return i;
    uint32_t id = (uint32_t)w.profile.function_count++;
    assert_true(id < STACKS);
    bool unknown = str_starts(name, "[");
    w.functions[id] = (struct profile_function){
        .name = name, .file = STR("app.c"), .image = unknown ? 0 : 1, .unnamed = unknown};
    return id;
}

/* "main:1 loop:20 ask:31", the outermost first. */
static uint32_t stack(const char *text)
{
    struct str rest = str_from(text);
    uint32_t parent = 0;
    while (rest.len > 0) {
        struct str word = str_word(&rest), name = str_cut(&word, ':');
        uint64_t line = 0;
        if (word.len > 0)
            assert_int_equal(str_to_u64(word, 10, &line), 0);
        uint32_t id = (uint32_t)w.profile.stack_count++;
        assert_true(id < STACKS);
        w.places[id] = (struct profile_place){function_named(name), STR("app.c"), (uint32_t)line};
        w.frames[id] = (struct profile_frame){.places = id, .place_count = 1};
        w.stacks[id] = (struct profile_stack){parent, id};
        parent = id;
    }
    return parent;
}

static struct path_cost *row(enum wait_class class, uint32_t at, const char *call, double ms)
{
    struct path_cost *cost = &w.rows[w.e.costs_on_path.count++];
    *cost = (struct path_cost){.class = class,
                               .thread = 1,
                               .stack = at,
                               .syscall = str_from(call),
                               .ns = ms * 1e6,
                               .count = 1};
    w.e.costs_on_path.classes[class] += ms * 1e6;
    /* The recording of calls has it as well. */
    if (class == WAIT_CLASS_NET)
        made_io_call(w.made, 1, at, call, 0, 1, ms, 0);
    return cost;
}

/* `count` requests of `ms` each, one after another or all at once. */
static void ask(enum request_protocol protocol, uint32_t at, const char *text, int count, double ms,
                bool differ, bool at_once)
{
    static uint64_t values;
    uint32_t connection = made_io_connection(w.made, protocol, "db:5432", 1, (uint64_t)count);
    uint32_t request = made_io_request(w.made, protocol, 1, at, "db:5432", text, "OK");
    static double now;
    now = w.made->io.event_count == 0 ? 1 : now;
    for (int i = 0; i < count; i++) {
        made_io_event(w.made, request, connection, now, ms, differ ? 1000 + ++values : 7);
        now += at_once ? 0 : ms + 0.1;
    }
}

static void build(void)
{
    w.made->io.profile = w.profile;
    w.e.waits.profile = w.profile;
    w.e.waits.object_count = w.made->io.object_count;
    w.e.io = w.made->io;
    assert_int_equal(io_sums_build(&w.arena, &w.e.io, &w.e.io_sums), 0);
    assert_int_equal(io_request_groups_build(&w.arena, &w.e.io, &w.e.requests), 0);
}

/* The only finding of a detector. */
static const struct finding *judged(const struct detector *detector)
{
    build();
    w.findings.count = 0;
    assert_int_equal(detector->judge(&w.e, detector, &w.findings), 0);
    assert_int_equal(w.findings.count, 1);
    const struct finding *finding = &w.findings.items[0];
    if (finding->verdict != FINDING_CONFIRMED)
        assert_non_null(finding->reason);
    return finding;
}

static const struct finding *confirmed(const struct detector *detector, double recoverable_ms)
{
    const struct finding *finding = judged(detector);
    if (finding->verdict != FINDING_CONFIRMED)
        print_message("%s\n", finding->reason);
    assert_int_equal(finding->verdict, FINDING_CONFIRMED);
    assert_float_equal(finding->recoverable.ns / 1e6, recoverable_ms, 0.5);
    assert_true(finding->why_count >= 3);
    assert_non_null(finding->advice);
    assert_int_equal(finding->angles[ANGLE_TRACING].verdict, ANGLE_SUPPORTS);
    return finding;
}

static void dismissed_as(const struct detector *detector, const char *word)
{
    const struct finding *finding = judged(detector);
    assert_int_equal(finding->verdict, FINDING_DISMISSED);
    if (!strstr(finding->reason, word))
        print_message("%s\n", finding->reason);
    assert_non_null(strstr(finding->reason, word));
}

static void stacks_have_in_common_what_is_the_same_from_the_root(void **state)
{
    (void)state;
    world_new();
    struct net_stack *send = net_stack_of(&w.arena, &w.profile, stack("main:1 ask:20 send:5"));
    const struct {
        const char *text;
        unsigned common;
    } cases[] = {
        {"main:1 ask:20 send:5", 6}, {"main:1 ask:20 read:9", 4},
        {"main:1 ask:21 read:9", 3}, {"main:2 ask:20 send:5", 1},
        {"other:1 ask:20", 0},       {"[unknown] ask:20 read:9", 4},
        {"[unknown] nobody:1", 0},   {"main:1", 2},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        w.profile.stack_count = MAX(w.profile.stack_count, (size_t)4);
        uint32_t at = stack(cases[i].text);
        assert_int_equal(net_common(send, net_stack_of(&w.arena, &w.profile, at)), cases[i].common);
    }
    /* The one that asks was cut. */
    struct net_stack *cut = net_stack_of(&w.arena, &w.profile, stack("[unknown] ask:20 send:5"));
    struct net_stack *whole = net_stack_of(&w.arena, &w.profile, stack("main:1 ask:20 read:9"));
    assert_int_equal(net_common(cut, whole), 2);
    world_end();
}

static void one_statement_a_row_is_told_with_the_call_that_asks(void **state)
{
    (void)state;
    world_new();
    ask(REQUEST_POSTGRESQL, stack("main:1 loop:20 ask:30 send:40"), "SELECT ?", 10, 10, true,
        false);
    row(WAIT_CLASS_NET, stack("main:1 loop:20 ask:31 read:50"), "recvfrom", 100);
    row(WAIT_CLASS_NET, stack("main:1 login:5 read:50"), "recvfrom", 300);
    row(WAIT_CLASS_RUNNING, stack("main:1 loop:20 ask:30 format:3"), "", 10);
    row(WAIT_CLASS_RUNNING, stack("main:1 loop:21 compute:3"), "", 200);
    const struct finding *finding = confirmed(&detect_n_plus_one,
                                              99); /* 110 ms, one of ten stays */
    assert_true(str_is(finding->place.function, "loop"));
    assert_int_equal(finding->place.line, 20);
    assert_float_equal(finding->cost_ns / 1e6, 110, 0.1);
    assert_float_equal(finding->covers[0], 1, 0.01);
    assert_float_equal(finding->covers[1], 0, 0.01);
    assert_float_equal(finding->covers[3], 0, 0.01);
    assert_int_equal(finding->occurrences, 10);
    dismissed_as(&detect_duplicate_query, "same values");
    world_end();
}

static void the_run_queue_after_an_answer_goes_with_the_wait(void **state)
{
    (void)state;
    static enum wait_class classes[] = {0, WAIT_CLASS_NET, WAIT_CLASS_DISK};
    world_new();
    uint32_t at = stack("main:1 ask:30 read:5");
    ask(REQUEST_POSTGRESQL, stack("main:1 ask:30 send:4"), "SELECT ?", 10, 10, true, false);
    row(WAIT_CLASS_NET, at, "recvfrom", 100)->wait = 1;
    row(WAIT_CLASS_RUNQ, at, "recvfrom", 20)->wait = 1;
    row(WAIT_CLASS_RUNQ, at, "read", 50)->wait = 2;
    row(WAIT_CLASS_RUNQ, 0, "", 50);
    w.e.classes.rows = classes;
    confirmed(&detect_n_plus_one, 108);
    world_end();
}

static void fewer_or_cheaper_statements_are_no_n_plus_one(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        world_new();
        bool few = i == 0, at_once = i == 2;
        ask(REQUEST_POSTGRESQL, stack("main:1 ask:30"), "SELECT ?", few ? 4 : 5, few ? 100 : 9.9,
            true, at_once);
        row(WAIT_CLASS_NET, stack("main:1 ask:31"), "recvfrom", few ? 400 : at_once ? 60 : 49);
        dismissed_as(&detect_n_plus_one, few ? "4 times" : at_once ? "at once" : "4.9%");
        world_end();
    }
    /* Exactly enough. */
    world_new();
    ask(REQUEST_POSTGRESQL, stack("main:1 ask:30"), "SELECT ?", 5, 10, true, false);
    row(WAIT_CLASS_NET, stack("main:1 ask:31"), "recvfrom", 50);
    confirmed(&detect_n_plus_one, 40);
    world_end();
}

static void the_same_values_again_are_a_duplicate(void **state)
{
    (void)state;
    world_new();
    ask(REQUEST_POSTGRESQL, stack("main:1 ask:30 send:4"), "SELECT ?", 10, 10, false, false);
    row(WAIT_CLASS_NET, stack("main:1 ask:30 read:5"), "recvfrom", 100);
    confirmed(&detect_duplicate_query, 90);
    dismissed_as(&detect_n_plus_one, "other values");
    world_end();
}

static void statements_in_turn_are_one_trouble(void **state)
{
    (void)state;
    world_new();
    uint32_t connection = made_io_connection(w.made, REQUEST_POSTGRESQL, "db:5432", 1, 20);
    const char *const texts[] = {"BEGIN", "SELECT a", "SELECT b", "COMMIT"};
    uint32_t requests[4], at = stack("main:1 loop:7 ask:30 send:40");
    for (int i = 0; i < 4; i++)
        requests[i] = made_io_request(w.made, REQUEST_POSTGRESQL, 1, at, "db:5432", texts[i], "OK");
    for (int i = 0; i < 40; i++)
        made_io_event(w.made, requests[i % 4], connection, 1 + i * 6, 5,
                      i % 4 == 1 || i % 4 == 2 ? (uint64_t)i : 0);
    row(WAIT_CLASS_NET, stack("main:1 loop:7 ask:31 read:50"), "recvfrom", 200);
    const struct finding *finding = confirmed(&detect_n_plus_one, 180);
    assert_non_null(strstr(finding->title, "2 statements 10 times each"));
    dismissed_as(&detect_duplicate_query, "same values");
    world_end();
}

static void who_shares_a_helper_shares_its_time(void **state)
{
    (void)state;
    world_new();
    ask(REQUEST_POSTGRESQL, stack("main:1 items:7 ask:30 send:40"), "SELECT a", 10, 10, true,
        false);
    ask(REQUEST_POSTGRESQL, stack("main:2 report:9 ask:30 send:40"), "SELECT b", 1, 400, true,
        false);
    row(WAIT_CLASS_NET, stack("main:2 report:9 ask:31 read:50"), "recvfrom", 400);
    row(WAIT_CLASS_NET, stack("main:1 items:7 ask:31 read:50"), "recvfrom", 100);
    const struct finding *finding = confirmed(&detect_n_plus_one, 90);
    assert_true(str_is(finding->place.function, "items"));
    /* At one stack: by the time that each took. */
    world_end();
    world_new();
    ask(REQUEST_POSTGRESQL, stack("main:1 ask:30 send:40"), "SELECT a", 10, 10, true, false);
    ask(REQUEST_POSTGRESQL, stack("main:1 ask:30 send:40"), "SELECT b", 1, 300, true, false);
    row(WAIT_CLASS_NET, stack("main:1 ask:31 read:50"), "recvfrom", 400);
    confirmed(&detect_n_plus_one, 90);
    world_end();
}

static void no_group_waits_longer_than_it_asked(void **state)
{
    (void)state;
    world_new();
    ask(REQUEST_POSTGRESQL, 0, "SELECT a", 10, 1, true, false); /* nobody knows where */
    row(WAIT_CLASS_NET, stack("main:1 report:31 read:50"), "recvfrom", 500);
    dismissed_as(&detect_n_plus_one, "12.5 ms"); /* not 500 */
    world_end();
}

static void http_one_after_another_counts_from_100_ms_and_a_fifth(void **state)
{
    (void)state;
    const struct {
        int count;
        double ms, wall_ms;
        bool at_once;
        double recoverable_ms; /* 0: dismissed */
    } cases[] = {
        {11, 30, 330, false, 300}, {2, 300, 600, false, 0}, {11, 15, 165, false, 0},
        {4, 30, 120, false, 0},    {11, 300, 300, true, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        world_new();
        ask(REQUEST_HTTP1, stack("main:1 load:30 send:4"), "GET /?", cases[i].count, cases[i].ms,
            true, cases[i].at_once);
        row(WAIT_CLASS_NET, stack("main:1 load:30 read:5"), "recvfrom", cases[i].wall_ms);
        if (cases[i].recoverable_ms > 0)
            confirmed(&detect_sequential_http, cases[i].recoverable_ms);
        else
            dismissed_as(&detect_sequential_http, "counts");
        world_end();
    }
}

/* `waits` of 41 ms on a socket to which `pieces` are sent for each answer. */
static void stall(int waits, double ms, int pieces, uint64_t bytes, bool option)
{
    uint32_t socket = made_io_object(w.made, OBJECT_SOCKET, OBJECT_CLIENT, "db:5432");
    uint32_t wait_at = stack("main:1 order:8 read:50");
    uint32_t send_at = stack("main:1 order:7 send:40");
    made_io_call(w.made, 1, send_at, "sendto", socket, (uint64_t)waits * (uint64_t)pieces, 0.01,
                 bytes);
    made_io_call(w.made, 1, wait_at, "recvfrom", socket, (uint64_t)waits, ms, 40);
    if (option)
        made_io_call(w.made, 1, send_at, "setsockopt", socket, 1, 0.01, 0);
    w.waits[1].info = (struct wait_info){.thread = 1, .stack = wait_at, .object = socket};
    w.waits[1].tally = (struct wait_tally){.count = (uint64_t)waits,
                                           .total_ns = made_io_ns(ms * waits)};
    w.e.waits.row_count = 2;
    w.e.waits.event_count = (size_t)waits;
    for (int i = 0; i < waits; i++)
        w.events[i] = (struct wait_event){.wait = 1, .wake_ns = made_io_ns(ms)};
    row(WAIT_CLASS_NET, wait_at, "recvfrom", ms * waits)->wait = 1;
}

static void a_delayed_ack_needs_pieces_that_are_held_back(void **state)
{
    (void)state;
    world_new();
    stall(10, 41, 2, 80, false);
    const struct finding *finding = confirmed(&detect_delayed_ack, 410);
    assert_true(str_is(finding->place.function, "order"));
    world_end();
    const struct {
        int waits;
        double ms;
        int pieces;
        uint64_t bytes;
        bool option;
        const char *word;
    } cases[] = {
        {10, 41, 1, 80, false, "10 pieces for 10"}, {10, 41, 2, 4000, false, "0 of them small"},
        {10, 41, 2, 80, true, "setsockopt"},        {10, 60, 2, 80, false, "no wait"},
        {2, 41, 2, 80, false, "from 3 on"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        world_new();
        stall(cases[i].waits, cases[i].ms, cases[i].pieces, cases[i].bytes, cases[i].option);
        dismissed_as(&detect_delayed_ack, cases[i].word);
        world_end();
    }
    /* Such requests one after another are no reason to make them at once. */
    world_new();
    stall(10, 41, 2, 80, false);
    ask(REQUEST_HTTP1, stack("main:1 order:7 send:40"), "POST /", 10, 41, false, false);
    dismissed_as(&detect_sequential_http, "delayed acknowledgements");
    world_end();
    /* With an option set the server is as slow as it is. */
    world_new();
    stall(10, 41, 2, 80, true);
    ask(REQUEST_HTTP1, stack("main:1 order:7 send:40"), "POST /", 10, 41, false, false);
    confirmed(&detect_sequential_http, 369);
    world_end();
}

static void connections_count_from_20_with_hardly_more_requests(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        world_new();
        int connections = i == 1 ? 19 : 20;
        uint32_t dial = stack("main:1 load:5 dial:9"), send = stack("main:1 load:6 send:40");
        uint32_t socket = made_io_object(w.made, OBJECT_SOCKET, OBJECT_CLIENT, "db:5432");
        made_io_call(w.made, 1, dial, "connect", socket, (uint64_t)connections, 1, 0);
        uint32_t request = made_io_request(w.made, REQUEST_POSTGRESQL, 1, send, "db:5432",
                                           "SELECT ?", "OK");
        for (int k = 0; k < connections; k++) {
            uint32_t c = made_io_connection(w.made, REQUEST_POSTGRESQL, "db:5432", 1,
                                            i == 2 ? 2 : 1);
            made_io_event(w.made, request, c, 1 + k * 10, 1, (uint64_t)k + 1);
        }
        row(WAIT_CLASS_NET, dial, "connect", 40);
        row(WAIT_CLASS_NET, stack("main:1 load:5 login:12 read:50"), "recvfrom", 160);
        row(WAIT_CLASS_NET, stack("main:1 load:6 read:50"), "recvfrom", 20);
        if (i == 0) {
            const struct finding *finding = confirmed(&detect_connection_per_request, 190);
            assert_int_equal(finding->place.line, 5); /* with the login, without the requests */
        } else {
            dismissed_as(&detect_connection_per_request, i == 1 ? "from 20" : "40 requests on 20");
        }
        world_end();
    }
}

static void a_name_counts_from_5_lookups_on_whatever_its_type(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        world_new();
        uint32_t at = stack("main:1 find:5 getaddrinfo:0");
        ask(REQUEST_DNS, at, "A api.test", 5 - i, 10, false, false);
        ask(REQUEST_DNS, at, "AAAA api.test", 5 - i, 10, false, false);
        row(WAIT_CLASS_NET, stack("main:1 find:5 getaddrinfo:0"), "poll", 100 - 20 * i);
        if (i == 0)
            assert_int_equal(confirmed(&detect_repeated_dns, 80)->occurrences, 5);
        else
            dismissed_as(&detect_repeated_dns, "4 times");
        world_end();
    }
}

/* Thread 1 asks `count` times, `ms` each, and finds something `useful` times; thread 2 lacks a CPU
 * for `lacked_ms`. */
static void poll_for(int count, double ms, int useful, double lacked_ms)
{
    uint32_t at = stack("main:1 wait_for:9 poll:0");
    uint32_t ends = made_io_object(w.made, OBJECT_PIPE, 0, "pipe:[1]");
    made_io_call(w.made, 1, at, "poll", 0, (uint64_t)count, ms, 0)->tally.last_ns = made_io_ns(900);
    made_io_call(w.made, 1, at, "read", ends, (uint64_t)useful, 0.01, 1);
    w.totals[0] = (struct profile_total){1, at, 400, made_io_ns(400)};
    w.e.cpu = w.profile;
    w.e.cpu.totals = w.totals;
    w.e.cpu.total_count = 1;
    w.e.cpu.weight = made_io_ns(1000);
    w.e.cpu_with_waits = true;
    w.lives[2].runq_ns = made_io_ns(lacked_ms);
    row(WAIT_CLASS_RUNNING, at, "poll", 400);
}

static void who_polls_in_vain_costs_what_others_lack(void **state)
{
    (void)state;
    world_new();
    poll_for(100000, 0.004, 1, 300);
    const struct finding *finding = confirmed(&detect_poll_loop, 300);
    assert_true(str_is(finding->place.function, "poll") ||
                str_is(finding->place.function, "wait_for"));
    world_end();
    world_new();
    poll_for(100000, 0.004, 1, 900); /* no more than its part of what ran */
    confirmed(&detect_poll_loop, 400);
    world_end();
    world_new();
    poll_for(100000, 0.004, 1, 900);
    w.e.cpu.weight = made_io_ns(2000); /* two CPUs */
    confirmed(&detect_poll_loop, 200);
    world_end();
    const struct {
        int count;
        double ms;
        int useful;
        double lacked_ms;
        const char *word;
    } cases[] = {
        {100000, 0.004, 1, 0, "no other thread"},
        {1000, 0.004, 100, 300, "up to 10%"},
        {99, 0.004, 1, 300, "no place"},
        {400, 2, 1, 300, "late"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        world_new();
        poll_for(cases[i].count, cases[i].ms, cases[i].useful, cases[i].lacked_ms);
        dismissed_as(&detect_poll_loop, cases[i].word);
        world_end();
    }
    /* Asleep when it happens, half a pause each time: 40 of 800 times, 2 ms each. */
    world_new();
    poll_for(800, 2, 40, 0);
    confirmed(&detect_poll_loop, 40);
    world_end();
}

static void without_requests_all_say_so(void **state)
{
    (void)state;
    static const struct detector *const all[] = {
        &detect_n_plus_one,  &detect_duplicate_query, &detect_sequential_http,
        &detect_delayed_ack, &detect_repeated_dns,    &detect_connection_per_request,
        &detect_poll_loop,
    };
    world_new();
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        assert_int_equal(judged(all[i])->verdict, FINDING_DISMISSED);
    world_end();
}

/* Python asks through libpq and libc: the place is Python's, and no line of either. */
static void who_asks_through_an_interpreter_is_in_it(void **state)
{
    (void)state;
    static const char *const paths[] = {"", "/root/.pyenv/versions/3.11.9/bin/python3.11",
                                        "/usr/lib/libpq.so.5", "/home/me/fast.so"};
    struct image_info images[ARRAY_SIZE(paths)];
    struct profile_function functions[5] = {{.name = STR("")},
                                            {.name = STR("_PyEval_EvalFrameDefault"), .image = 1},
                                            {.name = STR("method_call"), .image = 1},
                                            {.name = STR("PQexec"), .image = 2},
                                            {.name = STR("ask"), .image = 3}};
    struct profile_place places[5];
    const struct profile_place *stack[4];
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        images[i] = (struct image_info){.path = str_from(paths[i])};
    for (uint32_t i = 0; i < ARRAY_SIZE(places); i++)
        places[i] = (struct profile_place){
            .function = i, .file = STR("descrobject.c"), .line = 330};
    struct profile profile = {.images = images,
                              .image_count = ARRAY_SIZE(images),
                              .functions = functions,
                              .function_count = ARRAY_SIZE(functions)};
    for (size_t i = 0; i < 3; i++)
        stack[i] = &places[i + 1];
    struct net_stack in = {.profile = &profile, .places = stack, .count = 3};
    for (unsigned common = 5; common <= 6; common++) {
        struct net_place found = net_place_of(&in, common);
        assert_true(str_is(found.place.function, "method_call"));
        assert_int_equal(found.place.owner, FINDING_OWNER_INTERPRETER);
        assert_int_equal(found.least, common); /* as far in as without it */
        assert_int_equal(found.whole, common == 6);
    }
    /* A module of one's own is one's own. */
    stack[2] = &places[4];
    stack[3] = &places[3];
    in.count = 4;
    struct net_place found = net_place_of(&in, 8);
    assert_true(str_is(found.place.function, "ask"));
    assert_int_equal(found.place.owner, FINDING_OWNER_USER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_have_in_common_what_is_the_same_from_the_root),
        cmocka_unit_test(one_statement_a_row_is_told_with_the_call_that_asks),
        cmocka_unit_test(the_run_queue_after_an_answer_goes_with_the_wait),
        cmocka_unit_test(fewer_or_cheaper_statements_are_no_n_plus_one),
        cmocka_unit_test(the_same_values_again_are_a_duplicate),
        cmocka_unit_test(statements_in_turn_are_one_trouble),
        cmocka_unit_test(who_shares_a_helper_shares_its_time),
        cmocka_unit_test(no_group_waits_longer_than_it_asked),
        cmocka_unit_test(http_one_after_another_counts_from_100_ms_and_a_fifth),
        cmocka_unit_test(a_delayed_ack_needs_pieces_that_are_held_back),
        cmocka_unit_test(connections_count_from_20_with_hardly_more_requests),
        cmocka_unit_test(a_name_counts_from_5_lookups_on_whatever_its_type),
        cmocka_unit_test(who_polls_in_vain_costs_what_others_lack),
        cmocka_unit_test(who_asks_through_an_interpreter_is_in_it),
        cmocka_unit_test(without_requests_all_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
