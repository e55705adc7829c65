/* Promises of bpf/sqlite.bpf.c, collect/sqlite_calls.c and collect/uprobes.c, with statements that
 * this process runs itself through libsqlite3. */
#include "unit.h"

#include "base/clock.h"
#include "collect/bpf_ring.h"
#include "collect/sqlite_calls.h"
#include "format/io.h"
#include "format/sqlite.h"
#include "host/probe.h"
#include "model/sink_memory.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const size_t sqlite_bpf_bytes;

enum { RING_BYTES = 1 << 20 };

struct fixture {
    struct sink_memory memory;
    struct io_requests *requests;
    struct sqlite_calls *calls;
    struct uprobes *uprobes;
    struct bpf_ring ring;
    struct sqlite_calls_opts opts;
};

static int thread_id(void *context, uint32_t tid, uint32_t tgid, uint32_t exec, uint64_t time_ns,
                     uint32_t *ret_process, uint32_t *ret_thread)
{
    (void)context, (void)tgid, (void)exec, (void)time_ns;
    assert_int_equal(tid, gettid());
    *ret_process = 1;
    *ret_thread = 1;
    return 0;
}

static int map_make(enum bpf_map_type type, uint32_t key, uint32_t value, uint32_t entries)
{
    int fd = bpf_map_create(type, NULL, key, value, entries, NULL);
    assert_true(fd >= 0);
    return fd;
}

/* In the place of the io program, whose maps are shared. */
static void maps_make(struct sqlite_calls_opts *opts)
{
    opts->ring_bytes = RING_BYTES;
    opts->told_fd = map_make(BPF_MAP_TYPE_RINGBUF, 0, 0, RING_BYTES);
    opts->threads_fd = map_make(BPF_MAP_TYPE_HASH, 4, sizeof(struct io_thread), IO_THREADS_MAX);
    opts->control_fd = map_make(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct offcpu_control), 1);
    opts->deep_fd = map_make(BPF_MAP_TYPE_HASH, 4, 1, IO_THREADS_MAX);
    opts->known_fd = map_make(BPF_MAP_TYPE_HASH, sizeof(struct offcpu_known_key),
                              sizeof(struct offcpu_known), OFFCPU_KNOWN_MAX);
    opts->known_long_fd = map_make(BPF_MAP_TYPE_HASH, 8, sizeof(struct offcpu_known_long),
                                   OFFCPU_KNOWN_LONG_MAX);
    opts->begun_fd = map_make(BPF_MAP_TYPE_ARRAY, 4, 8, 1);
    const uint32_t zero = 0;
    const uint64_t start_ns = 1;
    assert_int_equal(bpf_map_update_elem(opts->begun_fd, &zero, &start_ns, BPF_ANY), 0);
}

static void start(struct fixture *f, bool recorded)
{
    struct probe bpf;
    struct why why = {0};
    *f = (struct fixture){.memory = SINK_MEMORY_INIT, .ring = {.wake_fd = -1}};
    probe_bpf_uprobe(&bpf);
    if (sqlite_bpf_bytes == 0 || !bpf.ok)
        skip("no BPF here");
    const struct process_info process = {.pid = (uint32_t)getpid()};
    const struct thread_info thread = {.process = 1, .tid = (uint32_t)gettid()};
    const struct io_requests_opts requests = {0};
    uint32_t id;
    assert_int_equal(sink_process(&f->memory.sink, &process, &id), 0);
    assert_int_equal(sink_thread(&f->memory.sink, &thread, &id), 0);
    assert_int_equal(io_requests_open(&requests, &f->memory.sink, &f->requests), 0);
    maps_make(&f->opts);
    f->opts.requests = f->requests;
    f->opts.thread = thread_id;
    const struct io_thread own = {
        .tid = (uint32_t)gettid(), .tgid = (uint32_t)getpid(), .kernel_tgid = (uint32_t)getpid()};
    uint32_t key = (uint32_t)gettid();
    if (recorded)
        assert_int_equal(bpf_map_update_elem(f->opts.threads_fd, &key, &own, BPF_ANY), 0);
    if (uprobes_open(&f->uprobes, &why) < 0 ||
        sqlite_calls_open(&f->opts, f->uprobes, &f->calls, &why) < 0 ||
        bpf_ring_map(f->opts.told_fd, RING_BYTES, &f->ring, &why) < 0)
        fail_msg("%s", why.what);
    assert_int_equal(uprobes_process(f->uprobes, getpid(), true), 0);
}

static void end(struct fixture *f)
{
    const int fds[] = {f->opts.told_fd,  f->opts.threads_fd,    f->opts.control_fd, f->opts.deep_fd,
                       f->opts.known_fd, f->opts.known_long_fd, f->opts.begun_fd};
    uprobes_close(f->uprobes);
    sqlite_calls_close(f->calls);
    io_requests_close(f->requests);
    bpf_ring_deinit(&f->ring);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    sink_memory_deinit(&f->memory);
}

static size_t take(struct fixture *f)
{
    const void *record;
    size_t bytes, count = 0;
    uint64_t place;
    bpf_ring_begin(&f->ring);
    while ((record = bpf_ring_next(&f->ring, &bytes, &place))) {
        assert_int_equal(sqlite_calls_take(f->calls, record, bytes), 1);
        count++;
    }
    bpf_ring_release(&f->ring, UINT64_MAX);
    return count;
}

/* Its tally, over all results; count 0: there is none of that text. */
static struct request_tally found(const struct fixture *f, const char *text)
{
    struct request_tally sum = {0};
    for (size_t i = 0; i < f->memory.calls.requests.len; i++) {
        const struct request_row *row = &f->memory.calls.requests.data[i];
        if (str_is(intern_get(&f->memory.interned.texts, row->info.text), text))
            request_tally_add(&sum, &row->tally);
    }
    return sum;
}

static void run(sqlite3 *db, const char *sql)
{
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void statements_are_told_with_counts_parameters_and_errors(void **state)
{
    (void)state;
    struct fixture f;
    sqlite3 *db;
    sqlite3_stmt *statement;
    start(&f, true);
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)");
    assert_int_equal(sqlite3_prepare_v2(db, "INSERT INTO t(id,name) VALUES(?,?) -- no more", 34,
                                        &statement, NULL),
                     SQLITE_OK);
    for (int i = 0; i < 20; i++) {
        sqlite3_bind_int(statement, 1, i % 19); /* the last one is there already */
        sqlite3_bind_text(statement, 2, i % 2 ? "odd" : "even", -1, SQLITE_STATIC);
        assert_int_equal(sqlite3_step(statement), i < 19 ? SQLITE_DONE : SQLITE_CONSTRAINT);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    assert_int_equal(
        sqlite3_prepare_v3(db, "SELECT name FROM t WHERE id < 10", -1, 0, &statement, NULL),
        SQLITE_OK);
    for (int i = 0; i < 3; i++) { /* left in the middle: over with reset */
        assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
        assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
        sqlite3_reset(statement);
    }
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    assert_true(take(&f) > 0);
    assert_int_equal(io_requests_finish(f.requests, clock_mono_ns()), 0);
    struct request_tally inserts = found(&f, "INSERT INTO t(id,name) VALUES(?)");
    assert_int_equal(inserts.count, 20);
    assert_int_equal(inserts.failed, 1);
    /* Different in the row of those that went well, and in that of the one that did not. */
    assert_int_equal(inserts.parameters, 20);
    assert_true(inserts.total_ns > 0);
    assert_int_equal(found(&f, "SELECT name FROM t WHERE id < ?").count, 4);
    assert_int_equal(found(&f, "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)").count, 1);
    assert_int_equal(f.memory.calls.connections.len, 1);
    assert_true(str_is(f.memory.calls.connections.data[0].info.peer, ":memory:"));
    assert_int_equal(sqlite_calls_finish(f.calls, &f.memory.sink), 0);
    assert_int_equal(sink_memory_counter(&f.memory, "io.sqlite_lost")->value, 0);
    assert_int_equal(sink_memory_counter(&f.memory, "io.sqlite_unknown")->value, 0);
    end(&f);
}

static void threads_that_are_not_recorded_tell_nothing(void **state)
{
    (void)state;
    struct fixture f;
    sqlite3 *db;
    start(&f, false);
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY)");
    sqlite3_close(db);
    assert_int_equal(take(&f), 0);
    end(&f);
}

static void a_statement_from_before_us_is_counted_not_guessed(void **state)
{
    (void)state;
    struct fixture f;
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT 1", -1, &statement, NULL), SQLITE_OK);
    start(&f, true);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    assert_true(take(&f) > 0);
    assert_int_equal(sqlite_calls_finish(f.calls, &f.memory.sink), 0);
    assert_int_equal(sink_memory_counter(&f.memory, "io.sqlite_unknown")->value, 1);
    assert_int_equal(f.memory.calls.requests.len, 0);
    end(&f);
}

static void records_cut_short_are_counted_and_others_left_alone(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, true);
    struct sqlite_prepared prepared = {.head.record = SQLITE_PREPARED, .len = UINT32_MAX};
    assert_int_equal(sqlite_calls_take(f.calls, &prepared, 100), 1);
    assert_int_equal(sqlite_calls_take(f.calls, &prepared, sizeof(prepared)),
                     1); /* its bytes only */
    struct sqlite_opened opened = {.head.record = SQLITE_OPENED, .len = UINT32_MAX};
    assert_int_equal(sqlite_calls_take(f.calls, &opened, sizeof(opened)), 1);
    prepared.head.record = OFFCPU_COPY;
    assert_int_equal(sqlite_calls_take(f.calls, &prepared, sizeof(prepared)), 0);
    assert_int_equal(sqlite_calls_take(f.calls, &prepared, 3), 0);
    assert_int_equal(sqlite_calls_finish(f.calls, &f.memory.sink), 0);
    assert_int_equal(sink_memory_counter(&f.memory, "io.sqlite_unknown")->value, 1);
    end(&f);
}

static void a_file_gets_its_programs_once_and_what_is_no_library_none(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, true);
    struct uprobes_counts first = uprobes_counts(f.uprobes);
    assert_int_equal(first.files, 1);
    assert_true(first.set >= 10);
    assert_int_equal(first.refused, 0);
    assert_int_equal(uprobes_process(f.uprobes, getpid(), true), 0);
    assert_int_equal(uprobes_process(f.uprobes, 1 << 30, true), 0); /* no such process */
    assert_int_equal(uprobes_counts(f.uprobes).set, first.set);
    assert_int_equal(uprobes_add(f.uprobes, "libx.so", NULL, 1000), -E2BIG);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_are_told_with_counts_parameters_and_errors),
        cmocka_unit_test(threads_that_are_not_recorded_tell_nothing),
        cmocka_unit_test(a_statement_from_before_us_is_counted_not_guessed),
        cmocka_unit_test(records_cut_short_are_counted_and_others_left_alone),
        cmocka_unit_test(a_file_gets_its_programs_once_and_what_is_no_library_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
