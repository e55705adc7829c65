/* Helpers for tests of recordings: a folder of their own, a clock that the test
 * moves, and the fixture written and compared. */
#pragma once

#include "unit.h"

#include "fixture.h"
#include "store/db.h"
#include "store/reader_parts.h"
#include "store/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Takes a file back to before schema 5. */
#define DROP_HEAP                                                                                  \
    "DROP TABLE heap_site_chunk; DROP TABLE heap_process; DROP TABLE heap_snapshot;"               \
    "DROP TABLE heap_moment; DROP TABLE heap_chunk;"

static char folder[64];
static char path[128];

static inline int begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/whyslow-test-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/a.whyslow", folder);
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    char command[200];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static uint64_t fake_now_ns = 1;
static inline uint64_t fake_clock(void)
{
    return fake_now_ns;
}

static inline struct recording_writer *create(void)
{
    struct recording_writer *writer = NULL;
    struct why why = {0};
    struct recording_opts opts = {.version = "1.2.3", .clock_ns = fake_clock};
    int r = recording_create(path, &opts, &writer, &why);
    if (r < 0)
        print_error("%s\n", why.what);
    assert_int_equal(r, 0);
    return writer;
}

static inline struct recording *open_good(void)
{
    struct recording *recording = NULL;
    struct why why = {0};
    int r = recording_open(path, &recording, &why);
    if (r < 0)
        print_error("%s\n", why.what);
    assert_int_equal(r, 0);
    return recording;
}

static inline void assert_refused(int error, enum why_kind kind, const char *words)
{
    struct recording *recording = NULL;
    struct why why = {0};
    int r = recording_open(path, &recording, &why);
    if (r != -error || why.kind != kind || !strstr(why.what, words))
        print_error("got %d, kind %d: %s\n", r, why.kind, why.what);
    assert_int_equal(r, -error);
    assert_int_equal(why.kind, kind);
    assert_non_null(strstr(why.what, words));
    assert_true(why.remedy[0] != '\0');
    assert_null(recording);
}

static inline struct fixture write_fixture(uint64_t samples)
{
    struct recording_writer *writer = create();
    struct sink *sink = recording_writer_sink(writer);
    struct fixture fixture;
    struct why why = {0};
    assert_int_equal(fixture_begin(sink, &fixture), 0);
    assert_int_equal(fixture_samples(sink, &fixture, samples), 0);
    assert_int_equal(recording_writer_finish(writer, &why), 0);
    assert_int_equal(recording_writer_committed(writer), samples);
    assert_int_equal(recording_writer_dropped(writer), 0);
    recording_writer_close(writer);
    return fixture;
}

static inline void patch(const char *sql)
{
    AUTO(db_close) sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    int rc = db_exec(db, sql);
    if (rc != SQLITE_OK)
        print_error("%s\n", sqlite3_errmsg(db));
    assert_int_equal(rc, SQLITE_OK);
}

/* Walks the samples of both series and compares them with the fixture's. */
static inline uint64_t assert_samples(struct recording *recording, const struct fixture *fixture,
                                      uint64_t expected)
{
    uint64_t seen = 0;
    for (uint32_t id = 1; id <= 2; id++) {
        struct sample_cursor *cursor;
        struct sample_block block;
        assert_int_equal(sample_cursor_open(recording, id, SAMPLES_ALL, &cursor, NULL), 0);
        uint64_t n = 0;
        int r;
        while ((r = sample_cursor_next(cursor, &block, NULL)) > 0) {
            for (size_t i = 0; i < block.count; i++, n++) {
                struct sample sample = fixture_sample(fixture, n);
                while (sample.series != id)
                    sample = fixture_sample(fixture, ++n);
                assert_true(block.time_ns[i] == sample.time_ns);
                assert_int_equal(block.thread[i], sample.thread);
                assert_int_equal(block.stack[i], sample.stack);
                assert_true(block.weight[i] == sample.weight);
                seen++;
            }
        }
        assert_int_equal(r, 0);
        assert_int_equal(sample_cursor_next(cursor, &block, NULL), 0);
        sample_cursor_close(cursor);
    }
    assert_int_equal(seen, expected);
    return seen;
}
