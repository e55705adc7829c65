/* An eponymous virtual table over sample cursors: one cursor a series, in turn. */
#include "store/sample_table.h"

#include "store/db.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum column { COLUMN_SERIES, COLUMN_TIME, COLUMN_THREAD, COLUMN_STACK, COLUMN_WEIGHT };

/* Bits of idxNum: which arguments xFilter gets, in this order. */
enum { PUSHED_SERIES = 1, PUSHED_FROM = 2, PUSHED_TO = 4 };

struct sample_table {
    sqlite3_vtab base; /* first: SQLite gets this address */
    struct recording *recording;
};

struct sample_scan {
    sqlite3_vtab_cursor base;
    uint32_t series; /* being read */
    uint32_t series_last;
    uint64_t from_ns;
    uint64_t to_ns;
    struct sample_cursor *cursor;
    struct sample_block block;
    size_t at;
    sqlite3_int64 rowid;
    bool end;
};

static int table_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                         sqlite3_vtab **ret, char **ret_error)
{
    (void)argc;
    (void)argv;
    (void)ret_error;
    int rc = sqlite3_declare_vtab(db, "CREATE TABLE sample(series INTEGER, time_ns INTEGER,"
                                      " thread INTEGER, stack INTEGER, weight INTEGER)");
    if (rc != SQLITE_OK)
        return rc;
    struct sample_table *table = sqlite3_malloc(sizeof(*table));
    if (!table)
        return SQLITE_NOMEM;
    *table = (struct sample_table){.recording = context};
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    *ret = &table->base;
    return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *base)
{
    sqlite3_free(base);
    return SQLITE_OK;
}

static int pushed_by(const struct sqlite3_index_constraint *constraint)
{
    if (!constraint->usable)
        return 0;
    bool equal = constraint->op == SQLITE_INDEX_CONSTRAINT_EQ;
    if (constraint->iColumn == COLUMN_SERIES)
        return equal ? PUSHED_SERIES : 0;
    if (constraint->iColumn != COLUMN_TIME)
        return 0;
    switch (constraint->op) {
    case SQLITE_INDEX_CONSTRAINT_GT:
    case SQLITE_INDEX_CONSTRAINT_GE:
        return PUSHED_FROM;
    case SQLITE_INDEX_CONSTRAINT_LT:
    case SQLITE_INDEX_CONSTRAINT_LE:
        return PUSHED_TO;
    default:
        return 0;
    }
}

/* `omit` stays 0: what is pushed only narrows, SQLite checks every row again.
 * So > may be read as >=, and a value that is no integer be ignored. */
static int table_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    struct recording *recording = ((struct sample_table *)base)->recording;
    int chosen[3] = {-1, -1, -1};
    for (int i = 0; i < info->nConstraint; i++) {
        int pushed = pushed_by(&info->aConstraint[i]);
        int slot = pushed == PUSHED_SERIES ? 0 : pushed == PUSHED_FROM ? 1 : 2;
        if (pushed != 0 && chosen[slot] < 0) {
            chosen[slot] = i;
            info->idxNum |= pushed;
        }
    }
    int argument = 0;
    double rows = 1;
    for (uint32_t id = 1; recording_series(recording, id); id++)
        rows += (double)recording_series(recording, id)->samples;
    for (int slot = 0; slot < 3; slot++) {
        if (chosen[slot] < 0)
            continue;
        info->aConstraintUsage[chosen[slot]].argvIndex = ++argument;
        rows /= slot == 0 ? MAX(recording_count(recording, RECORDING_SERIES), 1u) : 4;
    }
    info->estimatedCost = rows;
    info->estimatedRows = (sqlite3_int64)rows;
    return SQLITE_OK;
}

static int table_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
    (void)base;
    struct sample_scan *scan = sqlite3_malloc(sizeof(*scan));
    if (!scan)
        return SQLITE_NOMEM;
    *scan = (struct sample_scan){.end = true};
    *ret = &scan->base;
    return SQLITE_OK;
}

static int table_close(sqlite3_vtab_cursor *base)
{
    struct sample_scan *scan = (struct sample_scan *)base;
    sample_cursor_close(scan->cursor);
    sqlite3_free(scan);
    return SQLITE_OK;
}

/* Our reason reaches the person through SQLite's error message. */
static int fail(struct sample_scan *scan, int r, const struct why *why)
{
    sqlite3_vtab *table = scan->base.pVtab;
    scan->end = true;
    if (r == -ENOMEM)
        return SQLITE_NOMEM;
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = sqlite3_mprintf("%s", why->what);
    return r == -EBADMSG ? SQLITE_CORRUPT_VTAB : SQLITE_ERROR;
}

/* To the next block that has samples, over the ends of series. */
static int next_block(struct sample_scan *scan)
{
    struct recording *recording = ((struct sample_table *)scan->base.pVtab)->recording;
    struct why why = {0};
    scan->at = 0;
    for (;;) {
        if (!scan->cursor) {
            if (scan->series > scan->series_last) {
                scan->end = true;
                return SQLITE_OK;
            }
            int r = sample_cursor_open(recording, scan->series, scan->from_ns, scan->to_ns,
                                       &scan->cursor, &why);
            if (r < 0)
                return fail(scan, r, &why);
        }
        int r = sample_cursor_next(scan->cursor, &scan->block, &why);
        if (r < 0)
            return fail(scan, r, &why);
        if (r > 0)
            return SQLITE_OK;
        sample_cursor_close(scan->cursor);
        scan->cursor = NULL;
        scan->series++;
    }
}

static bool is_integer(sqlite3_value *value)
{
    return sqlite3_value_type(value) == SQLITE_INTEGER;
}

static int table_filter(sqlite3_vtab_cursor *base, int pushed, const char *text, int argc,
                        sqlite3_value **argv)
{
    (void)text;
    struct sample_scan *scan = (struct sample_scan *)base;
    struct recording *recording = ((struct sample_table *)base->pVtab)->recording;
    sample_cursor_close(scan->cursor);
    scan->cursor = NULL;
    scan->end = false;
    scan->rowid = 0;
    scan->series = 1;
    scan->series_last = recording_count(recording, RECORDING_SERIES);
    scan->from_ns = 0;
    scan->to_ns = INT64_MAX;
    int argument = 0;
    if ((pushed & PUSHED_SERIES) && argument < argc) {
        sqlite3_value *value = argv[argument++];
        sqlite3_int64 wanted = sqlite3_value_int64(value);
        if (is_integer(value)) {
            bool known = wanted >= 1 && wanted <= scan->series_last;
            scan->series = known ? (uint32_t)wanted : 1;
            scan->series_last = known ? (uint32_t)wanted : 0;
        }
    }
    if ((pushed & PUSHED_FROM) && argument < argc) {
        sqlite3_value *value = argv[argument++];
        if (is_integer(value))
            scan->from_ns = (uint64_t)MAX(sqlite3_value_int64(value), 0);
    }
    if ((pushed & PUSHED_TO) && argument < argc) {
        sqlite3_value *value = argv[argument++];
        if (is_integer(value) && sqlite3_value_int64(value) < 0)
            scan->series_last = 0;
        else if (is_integer(value))
            scan->to_ns = (uint64_t)sqlite3_value_int64(value);
    }
    return next_block(scan);
}

static int table_next(sqlite3_vtab_cursor *base)
{
    struct sample_scan *scan = (struct sample_scan *)base;
    scan->rowid++;
    return ++scan->at < scan->block.count ? SQLITE_OK : next_block(scan);
}

static int table_eof(sqlite3_vtab_cursor *base)
{
    return ((struct sample_scan *)base)->end;
}

static int table_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct sample_scan *scan = (struct sample_scan *)base;
    const struct sample_block *block = &scan->block;
    switch (column) {
    case COLUMN_SERIES:
        sqlite3_result_int64(context, scan->series);
        break;
    case COLUMN_TIME:
        sqlite3_result_int64(context, (sqlite3_int64)block->time_ns[scan->at]);
        break;
    case COLUMN_THREAD:
        sqlite3_result_int64(context, block->thread[scan->at]);
        break;
    case COLUMN_STACK:
        sqlite3_result_int64(context, block->stack[scan->at]);
        break;
    default:
        sqlite3_result_int64(context, (sqlite3_int64)block->weight[scan->at]);
    }
    return SQLITE_OK;
}

static int table_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
    *ret = ((struct sample_scan *)base)->rowid;
    return SQLITE_OK;
}

static const sqlite3_module sample_module = {
    .iVersion = 0,
    .xConnect = table_connect, /* without xCreate it is there without being created */
    .xBestIndex = table_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = table_open,
    .xClose = table_close,
    .xFilter = table_filter,
    .xNext = table_next,
    .xEof = table_eof,
    .xColumn = table_column,
    .xRowid = table_rowid,
};

int sample_table_register(struct recording *recording, struct why *why)
{
    sqlite3 *db = recording_db(recording);
    int rc = sqlite3_create_module_v2(db, "sample", &sample_module, recording, NULL);
    /* SQLite makes the table when it is first named, by a statement that an
     * authorizer set later would take for a change of the schema. */
    if (rc == SQLITE_OK)
        rc = db_exec(db, "SELECT 1 FROM sample LIMIT 0");
    return rc == SQLITE_OK ? 0 : db_why(db, rc, "read", recording_path(recording), why);
}
