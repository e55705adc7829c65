/* An eponymous virtual table over a heap cursor; sample_table.c explains the manner. */
#include "store/heap_event_table.h"

#include "store/db.h"

#include <errno.h>

enum column { COLUMN_TIME, COLUMN_THREAD, COLUMN_KIND, COLUMN_ADDRESS, COLUMN_SIZE, COLUMN_STACK };

struct event_table {
    sqlite3_vtab base; /* first: SQLite gets this address */
    struct recording *recording;
};

struct event_scan {
    sqlite3_vtab_cursor base;
    struct heap_cursor *cursor;
    const struct heap_event *events;
    size_t count, at;
    sqlite3_int64 rowid;
    bool end;
};

static int table_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                         sqlite3_vtab **ret, char **ret_error)
{
    (void)argc;
    (void)argv;
    (void)ret_error;
    int rc = sqlite3_declare_vtab(db, "CREATE TABLE heap_event(time_ns INTEGER, thread INTEGER,"
                                      " kind TEXT, address INTEGER, size_bytes INTEGER,"
                                      " stack INTEGER)");
    if (rc != SQLITE_OK)
        return rc;
    struct event_table *table = sqlite3_malloc(sizeof(*table));
    if (!table)
        return SQLITE_NOMEM;
    *table = (struct event_table){.recording = context};
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    *ret = &table->base;
    return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *base)
{
    sqlite3_free(base);
    return SQLITE_OK;
}

/* Always all of it: inside a join it belongs to the outside. */
static int table_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    info->estimatedCost = 1e9;
    info->estimatedRows = 100000000;
    return SQLITE_OK;
}

static int table_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
    (void)base;
    struct event_scan *scan = sqlite3_malloc(sizeof(*scan));
    if (!scan)
        return SQLITE_NOMEM;
    *scan = (struct event_scan){.end = true};
    *ret = &scan->base;
    return SQLITE_OK;
}

static int table_close(sqlite3_vtab_cursor *base)
{
    struct event_scan *scan = (struct event_scan *)base;
    heap_cursor_close(scan->cursor);
    sqlite3_free(scan);
    return SQLITE_OK;
}

/* Our reason reaches the person through SQLite's error message. */
static int fail(struct event_scan *scan, int r, const struct why *why)
{
    sqlite3_vtab *table = scan->base.pVtab;
    scan->end = true;
    if (r == -ENOMEM)
        return SQLITE_NOMEM;
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = sqlite3_mprintf("%s", why->what);
    return r == -EBADMSG ? SQLITE_CORRUPT_VTAB : SQLITE_ERROR;
}

static int next_block(struct event_scan *scan)
{
    struct why why = {0};
    scan->at = 0;
    int r = heap_cursor_next(scan->cursor, &scan->events, &scan->count, &why);
    scan->end = r <= 0;
    return r < 0 ? fail(scan, r, &why) : SQLITE_OK;
}

static int table_filter(sqlite3_vtab_cursor *base, int index, const char *text, int argc,
                        sqlite3_value **argv)
{
    (void)index;
    (void)text;
    (void)argc;
    (void)argv;
    struct event_scan *scan = (struct event_scan *)base;
    struct why why = {0};
    heap_cursor_close(scan->cursor);
    scan->cursor = NULL;
    scan->rowid = 0;
    int r = heap_cursor_open(((struct event_table *)base->pVtab)->recording, &scan->cursor, &why);
    return r < 0 ? fail(scan, r, &why) : next_block(scan);
}

static int table_next(sqlite3_vtab_cursor *base)
{
    struct event_scan *scan = (struct event_scan *)base;
    scan->rowid++;
    return ++scan->at < scan->count ? SQLITE_OK : next_block(scan);
}

static int table_eof(sqlite3_vtab_cursor *base)
{
    return ((struct event_scan *)base)->end;
}

static int table_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct event_scan *scan = (struct event_scan *)base;
    const struct heap_event *event = &scan->events[scan->at];
    switch (column) {
    case COLUMN_TIME:
        sqlite3_result_int64(context, (sqlite3_int64)event->time_ns);
        break;
    case COLUMN_THREAD:
        sqlite3_result_int64(context, event->thread);
        break;
    case COLUMN_KIND:
        sqlite3_result_text(context, event->kind == HEAP_EVENT_FREED ? "freed" : "allocated", -1,
                            SQLITE_STATIC);
        break;
    case COLUMN_ADDRESS:
        sqlite3_result_int64(context, (sqlite3_int64)event->address);
        break;
    case COLUMN_SIZE:
        sqlite3_result_int64(context, (sqlite3_int64)event->size);
        break;
    default:
        sqlite3_result_int64(context, event->stack);
    }
    return SQLITE_OK;
}

static int table_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
    *ret = ((struct event_scan *)base)->rowid;
    return SQLITE_OK;
}

static const sqlite3_module event_module = {
    .iVersion = 0,
    .xConnect = table_connect,
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

int heap_event_table_register(struct recording *recording, struct why *why)
{
    sqlite3 *db = recording_db(recording);
    int rc = sqlite3_create_module_v2(db, "heap_event", &event_module, recording, NULL);
    if (rc == SQLITE_OK)
        rc = db_exec(db, "SELECT 1 FROM heap_event LIMIT 0");
    return rc == SQLITE_OK ? 0 : db_why(db, rc, "read", recording_path(recording), why);
}
