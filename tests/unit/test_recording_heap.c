/* Promises of store/writer.h and store/reader.h about the heap: the last figures of a commit are
 * there, whoever is killed after it; rows stay few, within bounds, and forged ones are refused by
 * name. That everything comes back is test_recording.c's. */
#include "recording_helpers.h"

#include "store/wait_buckets.h"
#include "store/writer_parts.h"

#include <math.h>

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

static void histograms_come_back_and_damaged_ones_are_refused(void **state)
{
    (void)state;
    unsigned char bytes[HEAP_BUCKETS_BYTES_MAX];
    uint64_t given[HEAP_SIZE_BUCKETS] = {[0] = 1, [12] = INT64_MAX, [47] = 300};
    uint64_t got[HEAP_SIZE_BUCKETS] = {0};
    size_t size = heap_buckets_encode(given, HEAP_SIZE_BUCKETS, bytes);
    assert_true(heap_sizes_decode(bytes, size, got));
    assert_memory_equal(given, got, sizeof(given));
    memset(given, 0xff, sizeof(given));
    assert_int_equal(heap_buckets_encode(given, HEAP_SIZE_BUCKETS, bytes), HEAP_BUCKETS_BYTES_MAX);
    assert_false(heap_sizes_decode(bytes, HEAP_BUCKETS_BYTES_MAX, got)); /* beyond 63 bits */
#define REFUSED(decode, text)                                                                      \
    assert_false(decode((const unsigned char *)(text), sizeof(text) - 1, got))
    REFUSED(heap_sizes_decode, "\x30\x01"); /* bucket 48 */
    REFUSED(heap_lives_decode, "\x18\x01"); /* bucket 24 */
    REFUSED(heap_lives_decode, "\x00\x00");
    REFUSED(heap_lives_decode, "\x00");
    REFUSED(heap_lives_decode, "\x80\x00\x01");
    REFUSED(heap_lives_decode, "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
    REFUSED(heap_lives_decode, "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    assert_true(heap_lives_decode((const unsigned char *)"\x17\x01", 2, got));
}

static int keep_first(void *context, const struct recorded_heap_site *row)
{
    if (row->id == 1)
        *(struct heap_tally *)context = row->tally;
    return 0;
}

static struct heap_tally site_first(void)
{
    struct recording *recording = open_good();
    struct heap_tally tally = {0};
    assert_int_equal(recording_each_heap_site(recording, keep_first, &tally, NULL), 0);
    recording_close(recording);
    return tally;
}

static void what_was_never_given_out_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    struct sink *sink = recording_writer_sink(writer);
    uint32_t id = 99;
    const struct heap_site_info sites[] = {{0, 0, HEAP_KIND_HEAP},
                                           {4, 0, HEAP_KIND_HEAP},
                                           {1, 43, HEAP_KIND_HEAP},
                                           {1, 0, HEAP_KINDS}};
    for (size_t i = 0; i < ARRAY_SIZE(sites); i++)
        assert_int_equal(sink_heap_site(sink, &sites[i], &id), -EINVAL);
    struct heap_tally tally = {.variance = NAN};
    assert_int_equal(sink_heap_site_set(sink, 1, &tally), -EINVAL);
    tally.variance = 0;
    assert_int_equal(sink_heap_site_set(sink, 0, &tally), -EINVAL);
    assert_int_equal(sink_heap_site_set(sink, FIXTURE_SITES + 1, &tally), -EINVAL);
    struct heap_process_tally process = {0};
    assert_int_equal(sink_heap_process_set(sink, 0, &process), -EINVAL);
    assert_int_equal(sink_heap_process_set(sink, 3, &process), -EINVAL);
    const struct heap_snapshot_info snapshots[] = {
        {0, 1, 0}, {3, 1, 0}, {1, 1, HEAP_SNAPSHOT_WHYS}, {1, UINT64_C(1) << 63, 0}};
    for (size_t i = 0; i < ARRAY_SIZE(snapshots); i++)
        assert_int_equal(sink_heap_snapshot(sink, &snapshots[i], &id), -EINVAL);
    assert_int_equal(sink_heap_snapshot_row(sink, &(struct heap_snapshot_row){1, 0, 1, 1}),
                     -EINVAL);
    assert_int_equal(sink_heap_moment(sink, &(struct heap_moment){3, 1, 1, 1}), -EINVAL);
    assert_int_equal(sink_heap_moment(sink, &(struct heap_moment){0, 1, 1, 1}), -EINVAL);
    assert_int_equal(sink_heap_event(sink, &(struct heap_event){.thread = 4}), -EINVAL);
    assert_int_equal(sink_heap_event(sink, &(struct heap_event){.thread = 1, .stack = 43}),
                     -EINVAL);
    assert_int_equal(id, 99);
    finish(writer);
    assert_int_equal(ask("SELECT sum(sites) FROM heap_site_chunk"), FIXTURE_SITES);
    assert_int_equal(ask("SELECT (SELECT count(*) FROM heap_process) + (SELECT count(*) FROM"
                         " heap_snapshot) + (SELECT count(*) FROM heap_moment) +"
                         " (SELECT count(*) FROM heap_chunk)"),
                     0);
}

/* As after kill -9: what was told since the last commit is lost, all of that before it is there. */
static void the_last_commit_is_what_stays(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    struct sink *sink = recording_writer_sink(writer);
    struct heap_tally tally = {.allocations = 10};
    assert_int_equal(sink_heap_site_set(sink, 1, &tally), 0);
    tally.allocations = 20;
    assert_int_equal(sink_heap_site_set(sink, 1, &tally), 0);
    assert_int_equal(recording_writer_commit(writer), 0);
    assert_int_equal(site_first().allocations, 20);
    tally.allocations = 30;
    assert_int_equal(sink_heap_site_set(sink, 1, &tally), 0);
    assert_int_equal(site_first().allocations, 20);
    recording_writer_close(writer);
    struct recording *recording = open_good();
    assert_false(recording_finished(recording));
    assert_int_equal(recording_count(recording, RECORDING_HEAP_SITE), FIXTURE_SITES);
    recording_close(recording);
    assert_int_equal(site_first().allocations, 20);
}

static void a_row_that_says_nothing_new_is_not_written_again(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    struct sink *sink = recording_writer_sink(writer);
    struct heap_tally tally = {.allocations = 10};
    struct heap_process_tally process = {.peak_bytes = 5};
    for (int round = 0; round < 2; round++) {
        assert_int_equal(sink_heap_site_set(sink, 1, &tally), 0);
        assert_int_equal(sink_heap_process_set(sink, 1, &process), 0);
        assert_int_equal(writer->heap_chunks_dirty.len, round == 0);
        assert_int_equal(recording_writer_commit(writer), 0);
    }
    tally.allocations = 11;
    assert_int_equal(sink_heap_site_set(sink, 1, &tally), 0);
    assert_int_equal(sink_heap_site_set(sink, 1, &tally), 0);
    assert_int_equal(writer->heap_chunks_dirty.len, 1);
    finish(writer);
    assert_int_equal(site_first().allocations, 11);
}

static void figures_beyond_63_bits_stop_there(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    struct sink *sink = recording_writer_sink(writer);
    struct heap_tally tally = {.allocated_bytes = UINT64_MAX, .peak_bytes = INT64_MIN};
    tally.variance = 1e300;
    tally.samples = UINT64_MAX;
    struct heap_process_tally process = {.peak_bytes = UINT64_MAX};
    process.sizes[0] = UINT64_MAX;
    assert_int_equal(sink_heap_site_set(sink, 1, &tally), 0);
    assert_int_equal(sink_heap_process_set(sink, 1, &process), 0);
    struct heap_moment moment = {1, INT64_MAX, UINT64_MAX, UINT64_MAX};
    assert_int_equal(sink_heap_moment(sink, &moment), 0);
    finish(writer);
    struct heap_tally got = site_first();
    assert_true(got.allocated_bytes == INT64_MAX && got.peak_bytes == INT64_MIN);
    assert_true(got.variance == 1e300 && got.samples == INT64_MAX && got.allocations == 0);
    assert_true(ask("SELECT peak_bytes FROM heap_process") == INT64_MAX);
    assert_true(ask("SELECT rss_bytes FROM heap_moment") == INT64_MAX);
    struct recording *recording = open_good();
    recording_close(recording);
}

static void moments_in_the_file_become_fewer_with_those_in_memory(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    struct sink *sink = recording_writer_sink(writer);
    for (uint64_t i = 1; i <= HEAP_BOOK_PROCESS_MOMENTS + 101; i++) {
        struct heap_moment moment = {1, i, i, 0};
        assert_int_equal(sink_heap_moment(sink, &moment), 0);
        if (i % 1000 == 0)
            assert_int_equal(recording_writer_commit(writer), 0);
    }
    finish(writer);
    enum { HALF = HEAP_BOOK_PROCESS_MOMENTS / 2 };
    assert_int_equal(ask("SELECT count(*) FROM heap_moment"), HALF + 51);
    assert_int_equal(ask("SELECT max(number) FROM heap_moment"), HALF + 50);
    assert_int_equal(ask("SELECT count(*) FROM heap_moment WHERE time_ns <> live_bytes"), 0);
    assert_int_equal(ask("SELECT time_ns FROM heap_moment WHERE number = 0"), 2);
    assert_int_equal(ask("SELECT max(time_ns) FROM heap_moment"), HEAP_BOOK_PROCESS_MOMENTS + 101);
}

static void what_is_too_much_is_counted(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    struct sink *sink = recording_writer_sink(writer);
    writer->heap_snapshot_rows_max = 3;
    writer->heap.moments = HEAP_BOOK_MOMENTS_MAX - 1;
    struct heap_snapshot_info info = {1, 5, HEAP_SNAPSHOT_SIGNAL};
    uint32_t id;
    assert_int_equal(sink_heap_snapshot(sink, &info, &id), 0);
    for (uint32_t i = 0; i < 5; i++) {
        struct heap_snapshot_row row = {id, i, i, i};
        struct heap_moment moment = {1, i + 1, i, i};
        assert_int_equal(sink_heap_snapshot_row(sink, &row), 0);
        assert_int_equal(sink_heap_moment(sink, &moment), 0);
    }
    assert_int_equal(recording_writer_commit(writer), 0);
    writer->heap_snapshots = HEAP_BOOK_SNAPSHOTS_MAX;
    assert_int_equal(sink_heap_snapshot(sink, &info, &id), -E2BIG);
    finish(writer);
    assert_int_equal(ask("SELECT sum(rows) FROM heap_snapshot"), 3);
    assert_int_equal(ask("SELECT value FROM counter WHERE name = 'loss.store_snapshot_rows'"), 2);
    assert_int_equal(ask("SELECT count(*) FROM heap_moment"), 1);
    assert_int_equal(ask("SELECT value FROM counter WHERE name = 'loss.store_moments'"), 4);
}

/* Events of many commits do not fall apart into tiny chunks, and full ones are not written anew. */
static void events_fill_chunks(void **state)
{
    (void)state;
    struct fixture fixture;
    struct recording_writer *writer = begin_fixture(&fixture);
    struct sink *sink = recording_writer_sink(writer);
    enum { EVENTS = 2 * HEAP_CHUNK_EVENTS + 20000 + 7 };
    for (uint64_t at = 0; at < EVENTS; at++) {
        struct heap_event event = fixture_heap_event(&fixture, at);
        assert_int_equal(sink_heap_event(sink, &event), 0);
        if (at >= EVENTS - 7)
            assert_int_equal(recording_writer_commit(writer), 0);
    }
    finish(writer);
    assert_int_equal(ask("SELECT count(*) FROM heap_chunk"), 4);
    assert_int_equal(ask("SELECT sum(events) FROM heap_chunk"), EVENTS);
    assert_int_equal(ask("SELECT events FROM heap_chunk WHERE id = 4"), 6);
    struct recording *recording = open_good();
    uint64_t events = 0;
    assert_int_equal(recording_heap_events(recording, &events, NULL), 0);
    assert_int_equal(events, EVENTS);
    recording_close(recording);
}

static int ignore(const void *row)
{
    (void)row;
    return 0;
}
#define IGNORE(noun, type)                                                                         \
    static int ignore_##noun(void *context, const __typeof__(type) *row)                           \
    {                                                                                              \
        (void)context;                                                                             \
        return ignore(row);                                                                        \
    }
IGNORE(site, struct recorded_heap_site)
IGNORE(process, struct recorded_heap_process)
IGNORE(snapshot, struct recorded_heap_snapshot)
IGNORE(row, struct heap_snapshot_row)
IGNORE(moment, struct heap_moment)

static int read_events(struct recording *recording, struct why *why)
{
    struct heap_cursor *cursor;
    struct heap_block block;
    int r = heap_cursor_open(recording, HEAP_ROWS_EVENTS, &cursor, why);
    assert_int_equal(r, 0);
    while ((r = heap_cursor_next(cursor, &block, why)) > 0)
        ;
    heap_cursor_close(cursor);
    return r;
}

static int read_all(struct recording *recording, struct why *why)
{
    int r = recording_each_heap_site(recording, ignore_site, NULL, why);
    if (r == 0)
        r = recording_each_heap_process(recording, ignore_process, NULL, why);
    if (r == 0)
        r = recording_each_heap_snapshot(recording, ignore_snapshot, NULL, why);
    if (r == 0)
        r = recording_each_heap_snapshot_row(recording, ignore_row, NULL, why);
    if (r == 0)
        r = recording_each_heap_moment(recording, ignore_moment, NULL, why);
    return r < 0 ? r : read_events(recording, why);
}

static void forged_rows_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *sql, *words;
    } forged[] = {
        {"UPDATE heap_site_chunk SET id = 7", "heap site chunk 7: it is out of order"},
        {"UPDATE heap_site_chunk SET sites = 7", "heap site chunk 1: its columns do not add up"},
        {"UPDATE heap_site_chunk SET sites = 2049", "heap site chunk 1: its number of rows"},
        {"INSERT INTO heap_site_chunk SELECT 2, sites, codec, data FROM heap_site_chunk",
         "heap site chunk 2: its number of rows"},
        {"UPDATE heap_site_chunk SET codec = 0", "heap site chunk 1: its codec is unknown"},
        {"UPDATE heap_site_chunk SET data = x'00'", "heap site chunk 1: its length"},
        {"UPDATE heap_site_chunk SET data = substr(data, 1, length(data) - 1)",
         "heap site chunk 1: "},
        {"UPDATE heap_process SET lives = 5", "table 'heap_process', row 1: lives"},
        {"UPDATE heap_process SET process = -2", "table 'heap_process', row 1: process"},
        {"UPDATE heap_snapshot SET why = ''", "table 'heap_snapshot', row 1: why"},
        {"UPDATE heap_snapshot SET id = 5", "table 'heap_snapshot', row 1: id"},
        {"UPDATE heap_snapshot SET rows = 0x7fffffff", "heap snapshot 1: its number of rows"},
        {"UPDATE heap_snapshot SET rows = 4", "heap snapshot 1: "},
        {"UPDATE heap_snapshot SET data = ''", "heap snapshot 1: it has no data"},
        {"UPDATE heap_snapshot SET data = (SELECT data FROM heap_site_chunk)", "heap snapshot 1: "},
        {"UPDATE heap_moment SET time_ns = -5 WHERE number = 1",
         "table 'heap_moment', row 2: time_ns"},
        {"UPDATE heap_chunk SET data = zeroblob(50)", "heap chunk 1: "},
        {"UPDATE heap_chunk SET data = ''", "heap chunk 1: it has no data"},
        {"UPDATE heap_chunk SET codec = 2", "heap chunk 1: its codec is unknown"},
        {"UPDATE heap_chunk SET events = 65537", "heap chunk 1: its number of events"},
        {"DELETE FROM thread", "heap"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(forged); i++) {
        write_fixture(500);
        patch(forged[i].sql);
        struct recording *recording = open_good();
        struct why why = {0};
        assert_int_equal(read_all(recording, &why), -EBADMSG);
        if (!strstr(why.what, forged[i].words))
            fail_msg("'%s' is not about '%s'", why.what, forged[i].words);
        recording_close(recording);
        unlink(path);
    }
    write_fixture(500);
    patch("UPDATE heap_chunk SET events = 0");
    struct recording *recording = open_good();
    uint64_t events = 77;
    assert_int_equal(recording_heap_events(recording, &events, NULL), -EBADMSG);
    assert_int_equal(events, 77);
    recording_close(recording);
}

static void a_recording_of_schema_4_has_no_heap_and_opens(void **state)
{
    (void)state;
    struct fixture fixture = write_fixture(500);
    patch(DROP_HEAP "PRAGMA user_version = 4");
    struct recording *recording = open_good();
    struct why why = {0};
    assert_int_equal(recording_schema(recording), 4);
    assert_int_equal(recording_count(recording, RECORDING_HEAP_SITE), 0);
    assert_int_equal(recording_count(recording, RECORDING_CALL), FIXTURE_CALLS);
    assert_int_equal(read_all(recording, &why), 0);
    assert_samples(recording, &fixture, 500);
    recording_close(recording);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(histograms_come_back_and_damaged_ones_are_refused),
        TEST(what_was_never_given_out_is_refused),
        TEST(the_last_commit_is_what_stays),
        TEST(a_row_that_says_nothing_new_is_not_written_again),
        TEST(figures_beyond_63_bits_stop_there),
        TEST(moments_in_the_file_become_fewer_with_those_in_memory),
        TEST(what_is_too_much_is_counted),
        TEST(events_fill_chunks),
        TEST(forged_rows_are_refused_by_name),
        TEST(a_recording_of_schema_4_has_no_heap_and_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
