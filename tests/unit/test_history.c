/* Promises of store/history.h. */
#include "unit.h"

#include "store/db.h"
#include "store/history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];
static struct arena arena;

static int setup(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "/tmp/whyslow-history-%d.db", (int)getpid());
    unlink(path);
    arena = (struct arena)ARENA_INIT;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    arena_deinit(&arena);
    return 0;
}

/* Seven runs around `wall_ms`; peak RSS was not measured. */
static void result_make(const char *name, double wall_ms, struct bench_result *ret)
{
    *ret = (struct bench_result){.command = "cmd", .name = name};
    for (int i = -3; i <= 3; i++) {
        struct bench_run run = {0};
        for (int metric = 0; metric < BENCH_METRICS; metric++)
            run.value[metric] = NAN;
        run.value[BENCH_WALL] = wall_ms + i;
        assert_int_equal(VEC_PUSH(&ret->runs, run), 0);
    }
    struct bench_run bad = {.failed = true};
    bad.value[BENCH_WALL] = 1e9;
    assert_int_equal(VEC_PUSH(&ret->runs, bad), 0);
}

static int add(struct history *history, const char *name, const char *machine, const char *time,
               double wall_ms)
{
    struct bench_result result;
    result_make(name, wall_ms, &result);
    struct bench_origin origin = {time, "abc", "main", machine};
    int r = history_add(history, &result, &origin, NULL);
    bench_result_deinit(&result);
    return r;
}

static void results_come_back_in_the_order_of_time_and_once(void **state)
{
    (void)state;
    struct history *history;
    assert_int_equal(history_open(path, true, &history, NULL), 0);
    assert_int_equal(add(history, "a", "m", "2026-01-02T00:00:00Z", 20), 1);
    assert_int_equal(add(history, "a", "m", "2026-01-01T00:00:00Z", 10), 1);
    assert_int_equal(add(history, "a", "m", "2026-01-01T00:00:00Z", 10), 0);
    assert_int_equal(add(history, "a", "other", "2026-01-03T00:00:00Z", 30), 1);
    assert_int_equal(add(history, "b", "m", "2026-01-01T00:00:00Z", 40), 1);
    history_close(history);

    assert_int_equal(history_open(path, false, &history, NULL), 0);
    struct history_entries entries;
    assert_int_equal(history_read(history, "a", "m", BENCH_WALL, 100, &arena, &entries, NULL), 0);
    assert_int_equal(entries.len, 2);
    assert_true(entries.data[0].median == 10 && entries.data[1].median == 20);
    assert_int_equal(entries.data[0].runs, 7); /* the failed one is left out */
    assert_true(entries.data[0].low == 7 && entries.data[0].high == 13);
    assert_string_equal(entries.data[0].origin.revision, "abc");
    VEC_FREE(&entries);
    assert_int_equal(history_read(history, "a", "m", BENCH_WALL, 1, &arena, &entries, NULL), 0);
    assert_int_equal(entries.len, 1);
    assert_true(entries.data[0].median == 20); /* the newest */
    VEC_FREE(&entries);
    assert_int_equal(history_read(history, "a", "m", BENCH_PEAK_RSS, 9, &arena, &entries, NULL), 0);
    assert_int_equal(entries.len, 0); /* was not measured: not 0 */
    VEC_FREE(&entries);

    struct history_names names;
    assert_int_equal(history_list(history, BENCH_WALL, &arena, &names, NULL), 0);
    assert_int_equal(names.len, 3);
    assert_string_equal(names.data[0].machine, "other");
    assert_string_equal(names.data[1].name, "a");
    assert_int_equal(names.data[1].results, 2);
    assert_true(names.data[1].last_median == 20);
    VEC_FREE(&names);
    history_close(history);
}

static void a_result_without_a_good_run_is_refused(void **state)
{
    (void)state;
    struct history *history;
    assert_int_equal(history_open(path, true, &history, NULL), 0);
    struct bench_result result = {.command = "c", .name = "n"};
    struct bench_origin origin = {"t", "", "", ""};
    struct why why = {0};
    assert_int_equal(history_add(history, &result, &origin, &why), -EINVAL);
    assert_non_null(strstr(why.what, "no good run"));
    history_close(history);
}

static void foreign_and_newer_files_are_refused(void **state)
{
    (void)state;
    struct history *history = NULL;
    struct why why = {0};
    assert_int_equal(history_open(path, false, &history, &why), -ENOENT);
    assert_null(history);

    AUTO(db_close) sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(db_exec(db, "CREATE TABLE mine(x)"), SQLITE_OK);
    assert_int_equal(history_open(path, true, &history, &why), -EINVAL);
    assert_non_null(strstr(why.what, "no history of whyslow"));
    assert_int_equal(db_exec(db, "DROP TABLE mine"), SQLITE_OK);
    assert_int_equal(history_open(path, true, &history, &why), 0);
    history_close(history);
    history = NULL;
    /* A file may come with a repository: a table that never ends must not be read. */
    assert_int_equal(db_exec(db, "ALTER TABLE result RENAME TO kept; CREATE VIEW result AS WITH"
                                 " RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)"
                                 " SELECT id, '' AS time, '' AS revision, '' AS branch,"
                                 " '' AS machine, 'x' || id AS name, '' AS command FROM n"),
                     SQLITE_OK);
    assert_int_equal(history_open(path, false, &history, &why), -EBADMSG);
    assert_non_null(strstr(why.what, "no table 'result'"));
    assert_int_equal(db_exec(db, "DROP VIEW result; ALTER TABLE kept RENAME TO result"), SQLITE_OK);
    assert_int_equal(db_exec(db, "PRAGMA user_version = 9"), SQLITE_OK);
    assert_int_equal(history_open(path, true, &history, &why), -EOPNOTSUPP);
    assert_non_null(strstr(why.what, "version 9"));
    assert_null(history);

    FILE *out = fopen(path, "w");
    fputs("not a database at all, but long enough to be looked at as one.....................",
          out);
    for (int i = 0; i < 100; i++)
        fputs("0123456789", out);
    fclose(out);
    assert_int_equal(history_open(path, true, &history, &why), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(results_come_back_in_the_order_of_time_and_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_result_without_a_good_run_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(foreign_and_newer_files_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
