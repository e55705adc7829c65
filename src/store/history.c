/* One row a result, one row a metric of it. Writing is one transaction a result. */
#include "store/history.h"

#include "base/fd.h"
#include "stats/summary.h"
#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { APPLICATION_ID = 0x77687968, VERSION = 1, BUSY_MS = 5000, TEXT_BYTES_MAX = 65536 };

struct history {
    sqlite3 *db;
    struct db_bound bound;
    char *path;
};

static const char tables[] =
    "CREATE TABLE result(id INTEGER PRIMARY KEY, time TEXT NOT NULL, revision TEXT NOT NULL,"
    "  branch TEXT NOT NULL, machine TEXT NOT NULL, name TEXT NOT NULL, command TEXT NOT NULL,"
    "  runs INTEGER NOT NULL, UNIQUE(name, command, time));"
    "CREATE INDEX result_by_name ON result(name, machine, time);"
    "CREATE TABLE figure(result INTEGER NOT NULL, metric TEXT NOT NULL, median REAL NOT NULL,"
    "  low REAL, high REAL, p95 REAL NOT NULL, PRIMARY KEY(result, metric)) WITHOUT ROWID;";

static int fail(struct history *history, int rc, const char *doing, struct why *why)
{
    return db_why(history->db, rc, doing, history->path, why);
}

/* The file may have come with a repository: its tables must be tables. */
static int tables_check(struct history *history, struct why *why)
{
    static const char *const names[] = {"result", "figure"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        bool plain = false;
        int rc = db_is_plain_table(history->db, names[i], &plain);
        if (rc != SQLITE_OK)
            return fail(history, rc, "read", why);
        if (!plain)
            return why_set(why, WHY_FAILED, EBADMSG, "choose another --store",
                           "'%s' is damaged: there is no table '%s'", history->path, names[i]);
    }
    return 0;
}

/* A new file gets its tables; anything else must be a history of this version. */
static int prepare(struct history *history, struct why *why)
{
    int64_t id = 0, version = 0, objects = 0;
    int rc = db_int(history->db, "PRAGMA application_id", &id);
    if (rc == SQLITE_OK)
        rc = db_int(history->db, "PRAGMA user_version", &version);
    if (rc == SQLITE_OK)
        rc = db_int(history->db, "SELECT count(type) FROM sqlite_schema", &objects);
    if (rc != SQLITE_OK)
        return fail(history, rc, "read", why);
    if (id == APPLICATION_ID && version == VERSION)
        return tables_check(history, why);
    if (id == APPLICATION_ID)
        return why_set(why, WHY_DENIED, EOPNOTSUPP, "use a newer whyslow, or another --store",
                       "'%s' is a history of version %lld; this whyslow knows %d", history->path,
                       (long long)version, VERSION);
    if (objects != 0)
        return why_set(why, WHY_USAGE, EINVAL, "choose another --store",
                       "'%s' is a database, but no history of whyslow", history->path);
    char sql[sizeof(tables) + 200];
    snprintf(sql, sizeof(sql),
             "BEGIN IMMEDIATE; PRAGMA application_id = %d; PRAGMA user_version = %d; %s COMMIT",
             APPLICATION_ID, VERSION, tables);
    rc = db_exec(history->db, sql);
    if (rc == SQLITE_OK)
        return 0;
    int r = fail(history, rc, "write", why);
    if (!sqlite3_get_autocommit(history->db))
        (void)db_exec(history->db, "ROLLBACK");
    return r;
}

int history_open(const char *path, bool create, struct history **ret, struct why *why)
{
    char name[4200];
    struct history *history = calloc(1, sizeof(*history));
    if (!history || !(history->path = strdup(path))) {
        history_close(history);
        return why_nomem(why);
    }
    int r = db_path(path, name, sizeof(name));
    if (r < 0) {
        history_close(history);
        return why_errno(why, -r, "choose a shorter --store", "cannot open '%s'", path);
    }
    /* For its owner alone from the first moment: commands are in it. */
    int made = create ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    fd_close(&made); /* before SQLite locks it */
    int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
    int rc = sqlite3_open_v2(name, &history->db, flags, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(history->db, BUSY_MS);
    if (rc == SQLITE_OK) {
        db_distrust(history->db);
        sqlite3_limit(history->db, SQLITE_LIMIT_LENGTH, TEXT_BYTES_MAX * 16);
        rc = db_bind(history->db, &history->bound);
    }
    r = rc == SQLITE_OK ? prepare(history, why) : fail(history, rc, "open", why);
    if (r < 0) {
        history_close(history);
        return r;
    }
    *ret = history;
    return 0;
}

void history_close(struct history *history)
{
    if (!history)
        return;
    db_close(&history->db);
    free(history->path);
    free(history);
}

static int bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
    size_t len = text ? strnlen(text, TEXT_BYTES_MAX) : 0;
    return sqlite3_bind_text(stmt, at, text ? text : "", (int)len, SQLITE_TRANSIENT);
}

static int bind_real(sqlite3_stmt *stmt, int at, double value)
{
    return isfinite(value) ? sqlite3_bind_double(stmt, at, value) : sqlite3_bind_null(stmt, at);
}

/* The good runs' values of a metric; 0 when it was not measured in all of them. */
static size_t values_take(const struct bench_result *result, int metric, double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < result->runs.len; i++) {
        const struct bench_run *run = &result->runs.data[i];
        if (run->failed || run->timed_out)
            continue;
        if (!isfinite(run->value[metric]))
            return 0;
        values[count++] = run->value[metric];
    }
    return count;
}

static int figure_put(struct history *history, sqlite3_stmt *stmt, int64_t id, int metric,
                      const double *values, size_t count)
{
    (void)history;
    struct summary s;
    int r = summary_make(values, count, &s);
    if (r < 0)
        return r == -ENOMEM ? SQLITE_NOMEM : SQLITE_OK;
    int rc = sqlite3_bind_int64(stmt, 1, id);
    if (rc == SQLITE_OK)
        rc = bind_text(stmt, 2, bench_metrics[metric].name);
    if (rc == SQLITE_OK)
        rc = bind_real(stmt, 3, s.median);
    if (rc == SQLITE_OK)
        rc = bind_real(stmt, 4, s.has_interval ? s.median_low : NAN);
    if (rc == SQLITE_OK)
        rc = bind_real(stmt, 5, s.has_interval ? s.median_high : NAN);
    if (rc == SQLITE_OK)
        rc = bind_real(stmt, 6, s.p95);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(stmt);
    sqlite3_reset(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int figures_put(struct history *history, int64_t id, const struct bench_result *result)
{
    double *values = malloc(result->runs.len * sizeof(*values));
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    int rc = values ? sqlite3_prepare_v2(history->db,
                                         "INSERT INTO figure VALUES(?1, ?2, ?3, ?4, ?5, ?6)", -1,
                                         &stmt, NULL)
                    : SQLITE_NOMEM;
    for (int metric = 0; metric < BENCH_METRICS && rc == SQLITE_OK; metric++) {
        size_t count = values_take(result, metric, values);
        if (count > 0)
            rc = figure_put(history, stmt, id, metric, values, count);
    }
    free(values);
    return rc;
}

/* SQLITE_OK with *ret_id 0 when the same result is there already. */
static int result_put(struct history *history, const struct bench_result *result, size_t good,
                      const struct bench_origin *origin, int64_t *ret_id)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(history->db,
                                "INSERT OR IGNORE INTO result VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6, "
                                "?7)",
                                -1, &stmt, NULL);
    const char *const texts[] = {origin->time,    origin->revision, origin->branch,
                                 origin->machine, result->name,     result->command};
    for (size_t i = 0; i < ARRAY_SIZE(texts) && rc == SQLITE_OK; i++)
        rc = bind_text(stmt, (int)i + 1, texts[i]);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(stmt, 7, (int64_t)good);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(stmt);
    if (rc != SQLITE_DONE)
        return rc;
    *ret_id = sqlite3_changes(history->db) > 0 ? sqlite3_last_insert_rowid(history->db) : 0;
    return SQLITE_OK;
}

int history_add(struct history *history, const struct bench_result *result,
                const struct bench_origin *origin, struct why *why)
{
    size_t good = 0;
    for (size_t i = 0; i < result->runs.len; i++)
        good += !result->runs.data[i].failed && !result->runs.data[i].timed_out;
    if (good == 0)
        return why_set(why, WHY_USAGE, EINVAL, "measure it again",
                       "'%s' has no good run: nothing to keep", result->name);
    int64_t id = 0;
    int rc = db_exec(history->db, "BEGIN IMMEDIATE");
    if (rc == SQLITE_OK)
        rc = result_put(history, result, good, origin, &id);
    if (rc == SQLITE_OK && id != 0)
        rc = figures_put(history, id, result);
    if (rc == SQLITE_OK)
        rc = db_exec(history->db, "COMMIT");
    if (rc == SQLITE_OK)
        return id != 0;
    int r = fail(history, rc, "write", why);
    if (!sqlite3_get_autocommit(history->db))
        (void)db_exec(history->db, "ROLLBACK");
    return r;
}

static const char *column_text(struct arena *arena, sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    return arena_dup(arena, text ? text : "");
}

static double column_real(sqlite3_stmt *stmt, int column)
{
    return sqlite3_column_type(stmt, column) == SQLITE_NULL ? NAN
                                                            : sqlite3_column_double(stmt, column);
}

int history_list(struct history *history, enum bench_metric metric, struct arena *arena,
                 struct history_names *ret, struct why *why)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(
        history->db,
        "SELECT name, machine, count(*), max(time), revision,"
        " (SELECT median FROM figure WHERE figure.result = result.id AND metric = ?1)"
        " FROM result GROUP BY name, machine ORDER BY max(time) DESC, name",
        -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = bind_text(stmt, 1, bench_metrics[metric].name);
    struct history_names names = {0};
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        struct history_name name = {
            .name = column_text(arena, stmt, 0),
            .machine = column_text(arena, stmt, 1),
            .results = (uint64_t)sqlite3_column_int64(stmt, 2),
            .last_time = column_text(arena, stmt, 3),
            .last_revision = column_text(arena, stmt, 4),
            .last_median = column_real(stmt, 5),
        };
        if (VEC_PUSH(&names, name) < 0)
            rc = SQLITE_NOMEM;
    }
    if (rc != SQLITE_DONE) {
        VEC_FREE(&names);
        return fail(history, rc, "read", why);
    }
    *ret = names;
    return 0;
}

int history_read(struct history *history, const char *name, const char *machine,
                 enum bench_metric metric, size_t max, struct arena *arena,
                 struct history_entries *ret, struct why *why)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(
        history->db,
        "SELECT * FROM (SELECT id, time, revision, branch, machine, command, runs, median, low,"
        " high, p95 FROM result JOIN figure ON figure.result = result.id"
        " WHERE name = ?1 AND machine = ?2 AND metric = ?3 ORDER BY time DESC, id DESC LIMIT ?4)"
        " ORDER BY time, id",
        -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = bind_text(stmt, 1, name);
    if (rc == SQLITE_OK)
        rc = bind_text(stmt, 2, machine);
    if (rc == SQLITE_OK)
        rc = bind_text(stmt, 3, bench_metrics[metric].name);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(stmt, 4, (int64_t)max);
    struct history_entries entries = {0};
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        struct history_entry entry = {
            .id = sqlite3_column_int64(stmt, 0),
            .origin = {.time = column_text(arena, stmt, 1),
                       .revision = column_text(arena, stmt, 2),
                       .branch = column_text(arena, stmt, 3),
                       .machine = column_text(arena, stmt, 4)},
            .command = column_text(arena, stmt, 5),
            .runs = (uint64_t)sqlite3_column_int64(stmt, 6),
            .median = column_real(stmt, 7),
            .low = column_real(stmt, 8),
            .high = column_real(stmt, 9),
            .p95 = column_real(stmt, 10),
        };
        if (VEC_PUSH(&entries, entry) < 0)
            rc = SQLITE_NOMEM;
    }
    if (rc != SQLITE_DONE) {
        VEC_FREE(&entries);
        return fail(history, rc, "read", why);
    }
    *ret = entries;
    return 0;
}
