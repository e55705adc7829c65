/* Groups and chains of requests, and which facts are worth a sentence. Each note is tried on both
 * sides of its bound. */
#include "unit.h"

#include "analyze/io_notes.h"
#include "made_io.h"

#include <errno.h>
#include <stdio.h>

static struct arena arena;
static struct io_sums sums;
static struct io_request_groups groups;
static struct io_notes notes;

static void build(struct made_io *made)
{
    assert_int_equal(io_sums_build(&arena, &made->io, &sums), 0);
    assert_int_equal(io_request_groups_build(&arena, &made->io, &groups), 0);
    assert_int_equal(io_notes_build(&arena, &sums, &groups, &notes), 0);
}

static void end(struct made_io *made)
{
    arena_deinit(&arena);
    arena = ARENA_INIT;
    free(made);
}

static const struct io_note *note_of(enum io_note_kind kind)
{
    for (size_t i = 0; i < notes.count; i++)
        if (notes.notes[i].kind == kind)
            return &notes.notes[i];
    return NULL;
}

static void requests_are_one_group_whatever_their_thread_and_result(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    uint32_t c = made_io_connection(made, REQUEST_POSTGRESQL, "db:5432", 1, 4);
    made->connections[c].info.service = STR("shop");
    uint32_t good = made_io_request(made, REQUEST_POSTGRESQL, 1, 5, "db:5432", "SELECT ?", "OK");
    uint32_t bad = made_io_request(made, REQUEST_POSTGRESQL, 2, 5, "db:5432", "SELECT ?", "ERROR");
    uint32_t other = made_io_request(made, REQUEST_POSTGRESQL, 1, 6, "db:5432", "SELECT ?", "OK");
    made_io_event(made, good, c, 0, 1, 11);
    made_io_event(made, good, c, 2, 1, 12);
    made_io_event(made, bad, c, 4, 5, 13);
    made_io_event(made, other, c, 100, 2, 11);
    build(made);
    assert_int_equal(groups.count, 2);
    assert_int_equal(groups.requests, 4);
    const struct io_request_group *group = &groups.groups[0];
    assert_int_equal(group->tally.count, 3);
    assert_int_equal(group->tally.total_ns, made_io_ns(7));
    assert_int_equal(group->threads, 2);
    assert_int_equal(group->connections, 1);
    assert_int_equal(group->parameters, 3); /* each is known: no row has seen all */
    assert_false(group->parameters_more);
    assert_true(str_is(group->service, "shop"));
    assert_int_equal(group->result_count, 2);
    assert_int_equal(groups.results[group->result_first].count, 2);
    assert_int_equal(groups.of_row[good], 1);
    assert_int_equal(groups.of_row[bad], 1);
    assert_int_equal(groups.of_row[other], 2);
    end(made);
}

static void without_single_requests_parameters_are_at_least_those_of_one_row(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    for (uint32_t thread = 1; thread <= 2; thread++) {
        uint32_t row = made_io_request(made, REQUEST_MYSQL, thread, 5, "db", "SELECT ?", "");
        made->requests[row].tally = (struct request_tally){
            .count = 100, .total_ns = 100, .max_ns = 1, .parameters = 40 * thread};
    }
    build(made);
    assert_int_equal(groups.count, 1);
    assert_int_equal(groups.groups[0].parameters, 80);
    assert_true(groups.groups[0].parameters_more);
    assert_int_equal(groups.groups[0].events, 0);
    end(made);
}

/* `count` requests of `ms`, the next `pause_ms` after the end of the one before. */
static void ask_in_a_row(struct made_io *made, uint32_t request, uint64_t count, double ms,
                         double pause_ms)
{
    for (uint64_t i = 0; i < count; i++)
        made_io_event(made, request, 1, (double)i * (ms + pause_ms), ms, i + 1);
}

static void requests_of_one_thread_each_begun_after_the_answer_are_a_chain(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    made_io_connection(made, REQUEST_HTTP1, "api:80", 1, 13);
    uint32_t get = made_io_request(made, REQUEST_HTTP1, 1, 5, "api:80", "GET /?", "200");
    ask_in_a_row(made, get, 13, 50, 5);
    build(made);
    assert_int_equal(groups.chain_count, 1);
    const struct io_chain *chain = &groups.chains[0];
    assert_int_equal(chain->count, 13);
    assert_int_equal(chain->sum_ns, made_io_ns(650));
    assert_int_equal(chain->max_ns, made_io_ns(50));
    assert_int_equal(chain->stack, 5);
    assert_int_equal(chain->events[0], 0);
    assert_int_equal(chain->events[12], 12);
    assert_int_equal(groups.groups[0].sequential, 13);
    const struct io_note *note = note_of(NOTE_SEQUENTIAL_REQUESTS);
    assert_non_null(note);
    assert_string_equal(note->text, "13 sequential http requests to api:80, 650 ms; the longest "
                                    "alone took 50.0 ms");
    assert_int_equal(note->stack, 5);
    end(made);
}

static void the_place_of_a_chain_is_that_of_most_of_its_requests(void **state)
{
    (void)state;
    for (uint64_t others = 1; others <= 2; others++) {
        struct made_io *made = made_io_new();
        made_io_connection(made, REQUEST_HTTP1, "api:80", 1, 4);
        uint32_t get = made_io_request(made, REQUEST_HTTP1, 1, 5, "api:80", "GET /?", "200");
        uint32_t post = made_io_request(made, REQUEST_HTTP1, 1, 6, "api:80", "POST /?", "200");
        for (uint64_t i = 0; i < 4; i++)
            made_io_event(made, i < others ? post : get, 1, (double)i * 100, 99, 1);
        build(made);
        assert_int_equal(groups.chain_count, 1);
        assert_int_equal(groups.chains[0].stack, others == 1 ? 5 : 0);
        assert_int_equal(groups.chains[0].text, 0);
        end(made);
    }
}

static void requests_that_overlap_or_follow_after_a_long_pause_are_no_chain(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    made_io_connection(made, REQUEST_HTTP1, "api:80", 1, 13);
    uint32_t get = made_io_request(made, REQUEST_HTTP1, 1, 5, "api:80", "GET /?", "200");
    for (int i = 0; i < 5; i++)
        made_io_event(made, get, 1, i * 10, 100, 1);
    for (int i = 0; i < 3; i++)
        made_io_event(made, get, 1, 300 + i * 100, 20, 1); /* 80 ms apart */
    build(made);
    assert_int_equal(groups.chain_count, 0);
    assert_int_equal(groups.groups[0].sequential, 0);
    assert_null(note_of(NOTE_SEQUENTIAL_REQUESTS));
    end(made);
}

static void servers_answers_and_what_is_unanswered_are_no_chain(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    made_io_connection(made, REQUEST_HTTP1, "api:80", 1, 13);
    uint32_t served = made_io_request(made, REQUEST_HTTP1, 1, 5, "0.0.0.0:80", "GET /?", "200");
    made->requests[served].info.role = REQUEST_SERVER;
    uint32_t open = made_io_request(made, REQUEST_HTTP1, 2, 5, "api:80", "GET /?", "");
    for (int i = 0; i < 5; i++)
        made_io_event(made, served, 1, i * 50, 49, 1);
    for (int i = 5; i < 10; i++)
        made_io_event(made, open, 1, i * 50, 49, 1)->flags = REQUEST_UNANSWERED;
    build(made);
    assert_int_equal(groups.chain_count, 0);
    end(made);
}

static void little_time_in_a_chain_is_no_note(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    made_io_connection(made, REQUEST_HTTP1, "api:80", 1, 3);
    uint32_t get = made_io_request(made, REQUEST_HTTP1, 1, 5, "api:80", "GET /?", "200");
    ask_in_a_row(made, get, 3, 60, 1); /* all but the longest: 120 ms, 12% */
    build(made);
    assert_int_equal(groups.chain_count, 1);
    assert_null(note_of(NOTE_SEQUENTIAL_REQUESTS));
    end(made);
}

static void the_same_statement_again_and_again_is_noted_by_its_parameters(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    made_io_connection(made, REQUEST_POSTGRESQL, "db", 1, 9);
    uint32_t varied = made_io_request(made, REQUEST_POSTGRESQL, 1, 5, "db", "SELECT ?", "");
    uint32_t same = made_io_request(made, REQUEST_POSTGRESQL, 1, 6, "db", "SELECT now()", "");
    uint32_t few = made_io_request(made, REQUEST_POSTGRESQL, 1, 7, "db", "DELETE ?", "");
    uint32_t quick = made_io_request(made, REQUEST_POSTGRESQL, 1, 8, "db", "BEGIN", "");
    for (uint64_t i = 0; i < 6; i++)
        made_io_event(made, varied, 1, (double)i * 20, 10, i + 1);
    for (int i = 0; i < 5; i++)
        made_io_event(made, same, 1, 200 + i * 20, 10, 0);
    for (int i = 0; i < 4; i++)
        made_io_event(made, few, 1, 400 + i * 20, 20, 1);
    for (int i = 0; i < 9; i++)
        made_io_event(made, quick, 1, 600 + i, 0.1, 0);
    build(made);
    assert_int_equal(notes.count, 2);
    assert_string_equal(
        note_of(NOTE_REPEATED_STATEMENT)->text,
        "the same statement 6 times with 6 different parameters, 60.0 ms: SELECT ?");
    assert_string_equal(note_of(NOTE_DUPLICATE_STATEMENT)->text,
                        "the same statement 5 times without parameters, 50.0 ms: SELECT now()");
    end(made);
}

static void a_connection_for_every_request_is_noted_from_twenty_on(void **state)
{
    (void)state;
    for (uint64_t count = 19; count <= 20; count++) {
        struct made_io *made = made_io_new();
        for (uint64_t i = 0; i < count; i++)
            made_io_connection(made, REQUEST_REDIS, "cache:6379", 1 + i, 1);
        build(made);
        assert_true((note_of(NOTE_CONNECTIONS) != NULL) == (count == 20));
        end(made);
    }
    /* Two requests each, or connections that were there before. */
    for (int kind = 0; kind < 2; kind++) {
        struct made_io *made = made_io_new();
        for (uint64_t i = 0; i < 30; i++)
            made_io_connection(made, REQUEST_REDIS, "cache:6379", kind ? 1 + i : 0, kind ? 2 : 1);
        build(made);
        assert_null(note_of(NOTE_CONNECTIONS));
        end(made);
    }
}

static void small_calls_in_order_are_noted_by_count_size_and_time(void **state)
{
    (void)state;
    static const struct {
        uint64_t count, bytes, sequential;
        double ms;
        uint32_t flags;
        bool noted;
    } cases[] = {
        {1000, 100, 1000, 0.03, 0, true},   {999, 100, 999, 0.03, 0, false},
        {1000, 4096, 1000, 0.03, 0, false}, {1000, 100, 500, 0.03, 0, false},
        {1000, 100, 1000, 0.01, 0, false},  {1000, 100, 1000, 0.03, CALL_DIRECT, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct made_io *made = made_io_new();
        uint32_t file = made_io_object(made, OBJECT_FILE, 0, "/data");
        struct call_row *row = made_io_call(made, 1, 5, "read", file, cases[i].count, cases[i].ms,
                                            cases[i].bytes);
        row->info.flags = cases[i].flags;
        row->tally.placed = cases[i].count;
        row->tally.sequential = cases[i].sequential;
        build(made);
        assert_true((note_of(NOTE_SMALL_CALLS) != NULL) == cases[i].noted);
        end(made);
    }
}

static void syncs_are_noted_where_little_is_written_between_them(void **state)
{
    (void)state;
    static const struct {
        uint64_t syncs, writes, bytes;
        double ms;
        bool noted;
    } cases[] = {
        {20, 20, 100, 5, true},     {19, 19, 100, 5, false}, {20, 50, 100, 5, false},
        {20, 20, 100000, 5, false}, {20, 20, 100, 1, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct made_io *made = made_io_new();
        uint32_t file = made_io_object(made, OBJECT_FILE, 0, "/log");
        made_io_call(made, 1, 5, "write", file, cases[i].writes, 0.01, cases[i].bytes);
        made_io_call(made, 1, 5, "fsync", file, cases[i].syncs, cases[i].ms, 0);
        build(made);
        assert_true((note_of(NOTE_SYNCS) != NULL) == cases[i].noted);
        end(made);
    }
}

static void a_file_that_is_read_again_is_noted_unless_it_is_made_up_or_written(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    static const char *const names[] = {"/rules", "/proc/self/stat", "/written",
                                        "/twice", "/header",         "/quick"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint32_t file = made_io_object(made, OBJECT_FILE, 0, names[i]);
        made_io_call(made, 1, 5, "read", file, i == 3 ? 2 : 5, i == 5 ? 0.01 : 3, 1000);
        made_io_call(made, 1, 5, "openat", file, i == 3 ? 4 : 5, 0.01, 0);
        if (i == 2)
            made_io_call(made, 1, 5, "write", file, 1, 0.01, 10);
    }
    made->io.files_json = STR("{\"files\": [{\"object\": 1, \"size_bytes\": 1000}, {\"object\": 4, "
                              "\"size_bytes\": 1000}, {\"object\": 5, \"size_bytes\": 100000}]}");
    build(made);
    assert_int_equal(notes.count, 1);
    assert_string_equal(notes.notes[0].text,
                        "/rules was opened 5 times and 4.88 KiB read: 5.0 times its size");
    end(made);
}

static void folders_names_and_file_systems_are_noted_by_their_bounds(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    for (int i = 0; i < 1000; i++) {
        static char names[1000][32];
        snprintf(names[i], sizeof(names[i]), "/maildir/%d", i);
        made_io_call(made, 1, 5, "read", made_io_object(made, OBJECT_FILE, 0, names[i]), 1, 0.01,
                     100);
    }
    uint32_t path = made_io_object(made, OBJECT_PATH, 0, "/lib/x");
    made_io_call(made, 1, 5, "openat", path, 500, 0.02, 0)->info.error = ENOENT;
    uint32_t file = made_io_object(made, OBJECT_FILE, 0, "/db");
    struct call_row *writes = made_io_call(made, 1, 5, "pwrite64", file, 1000, 0.01, 4096);
    writes->tally.placed = 1000;
    writes->tally.sequential = 100;
    char json[512];
    /* What is counted as many extents, but lies in one piece, is no matter. */
    snprintf(json, sizeof(json),
             "{\"files\": [{\"object\": %u, \"path\": \"/db\", \"size_bytes\": 4096000, "
             "\"extents\": 1000, \"cow\": true, \"filesystem\": \"btrfs\", \"mount\": \"/\", "
             "\"free_pct\": 4.5}, {\"object\": %u, \"path\": \"/db\", \"mount\": \"/\", "
             "\"size_bytes\": 4096000, \"extents\": 1000, \"fragments\": 1, "
             "\"free_pct\": 4.5}]}",
             file, file);
    made->io.files_json = str_from(json);
    build(made);
    assert_string_equal(note_of(NOTE_TINY_FILES)->text,
                        "1,000 files of /maildir were used, 100 B of each on average, 10.0 ms");
    assert_int_equal(note_of(NOTE_MISSING_NAMES)->count, 500);
    assert_string_equal(note_of(NOTE_FRAGMENTED)->text,
                        "/db lies in 1,000 pieces on its device (3.91 MiB)");
    assert_string_equal(note_of(NOTE_NEARLY_FULL)->text, "/ has 4.5% free; /db is written there");
    assert_non_null(note_of(NOTE_COPY_ON_WRITE));
    assert_int_equal(notes.count, 5); /* the file system once */
    end(made);
}

static void notes_of_a_kind_are_bounded_and_the_rest_is_counted(void **state)
{
    (void)state;
    struct made_io *made = made_io_new();
    for (int i = 0; i < 8; i++) {
        static const char *const names[] = {"/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7"};
        uint32_t file = made_io_object(made, OBJECT_FILE, 0, names[i]);
        made_io_call(made, 1, 5, "fsync", file, 20, 5, 0);
    }
    build(made);
    assert_int_equal(notes.count, IO_NOTES_MAX);
    assert_int_equal(notes.left_out, 3);
    end(made);
}

static void long_texts_are_cut_between_characters(void **state)
{
    (void)state;
    char text[IO_TEXT_SHOWN_BYTES + 2];
    memset(text, 'a', sizeof(text));
    assert_int_equal(strlen(io_text_short(&arena, (struct str){text, IO_TEXT_SHOWN_BYTES})), 160);
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): its length is told beside it */
    memcpy(text + IO_TEXT_SHOWN_BYTES - 1, "\u00e4", 2);
    const char *cut = io_text_short(&arena, (struct str){text, sizeof(text)});
    assert_int_equal(strlen(cut), IO_TEXT_SHOWN_BYTES - 1 + strlen("…"));
    arena_deinit(&arena);
    arena = ARENA_INIT;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_one_group_whatever_their_thread_and_result),
        cmocka_unit_test(without_single_requests_parameters_are_at_least_those_of_one_row),
        cmocka_unit_test(requests_of_one_thread_each_begun_after_the_answer_are_a_chain),
        cmocka_unit_test(the_place_of_a_chain_is_that_of_most_of_its_requests),
        cmocka_unit_test(requests_that_overlap_or_follow_after_a_long_pause_are_no_chain),
        cmocka_unit_test(servers_answers_and_what_is_unanswered_are_no_chain),
        cmocka_unit_test(little_time_in_a_chain_is_no_note),
        cmocka_unit_test(the_same_statement_again_and_again_is_noted_by_its_parameters),
        cmocka_unit_test(a_connection_for_every_request_is_noted_from_twenty_on),
        cmocka_unit_test(small_calls_in_order_are_noted_by_count_size_and_time),
        cmocka_unit_test(syncs_are_noted_where_little_is_written_between_them),
        cmocka_unit_test(a_file_that_is_read_again_is_noted_unless_it_is_made_up_or_written),
        cmocka_unit_test(folders_names_and_file_systems_are_noted_by_their_bounds),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(notes_of_a_kind_are_bounded_and_the_rest_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
