/* Eponymous virtual tables over a heap cursor; sample_table.c explains the manner. */
#include "store/heap_tables.h"

#include "store/db.h"
#include "store/schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void site_column(sqlite3_context *context, const struct heap_block *block, size_t at,
                        int column);
static void snapshot_column(sqlite3_context *context, const struct heap_block *block, size_t at,
                            int column);
static void event_column(sqlite3_context *context, const struct heap_block *block, size_t at,
                         int column);

static const struct source {
    const char *name, *declaration;
    void (*column)(sqlite3_context *context, const struct heap_block *block, size_t at, int column);
} sources[] = {
    [HEAP_ROWS_SITES] = {"heap_site",
                         "CREATE TABLE heap_site(id INTEGER, thread INTEGER, stack INTEGER,"
                         " kind TEXT, allocations INTEGER, allocated_bytes INTEGER, frees INTEGER,"
                         " freed_bytes INTEGER, temporary INTEGER, temporary_bytes INTEGER,"
                         " peak_count INTEGER, peak_bytes INTEGER, grown INTEGER,"
                         " grown_bytes INTEGER, moved INTEGER, chain_max INTEGER,"
                         " size_max INTEGER, lived_ns INTEGER, samples INTEGER, variance REAL)",
                         site_column},
    [HEAP_ROWS_SNAPSHOTS] = {"heap_snapshot_row",
                             "CREATE TABLE heap_snapshot_row(snapshot INTEGER, stack INTEGER,"
                             " count INTEGER, bytes INTEGER)",
                             snapshot_column},
    [HEAP_ROWS_EVENTS] = {"heap_event",
                          "CREATE TABLE heap_event(time_ns INTEGER, thread INTEGER, kind TEXT,"
                          " address INTEGER, size_bytes INTEGER, stack INTEGER)",
                          event_column},
};

/* What a module is made with; freed with the connection. */
struct origin {
    struct recording *recording;
    enum heap_rows kind;
};

struct table {
    sqlite3_vtab base; /* first: SQLite gets this address */
    struct origin origin;
};

struct scan {
    sqlite3_vtab_cursor base;
    struct heap_cursor *cursor;
    struct heap_block block;
    size_t at;
    sqlite3_int64 rowid;
    bool end;
};

static void site_column(sqlite3_context *context, const struct heap_block *block, size_t at,
                        int column)
{
    const struct recorded_heap_site *site = &block->sites[at];
    const struct heap_tally *tally = &site->tally;
    const uint64_t numbers[] = {site->id,
                                site->info.thread,
                                site->info.stack,
                                0,
                                tally->allocations,
                                tally->allocated_bytes,
                                tally->frees,
                                tally->freed_bytes,
                                tally->temporary,
                                tally->temporary_bytes,
                                (uint64_t)tally->peak_count,
                                (uint64_t)tally->peak_bytes,
                                tally->grown,
                                tally->grown_bytes,
                                tally->moved,
                                tally->chain_max,
                                tally->size_max,
                                tally->lived_ns,
                                tally->samples};
    if (column == 3)
        sqlite3_result_text(context, schema_heap_kind_name(site->info.kind), -1, SQLITE_STATIC);
    else if ((size_t)column < ARRAY_SIZE(numbers))
        sqlite3_result_int64(context, (sqlite3_int64)numbers[column]);
    else
        sqlite3_result_double(context, tally->variance);
}

static void snapshot_column(sqlite3_context *context, const struct heap_block *block, size_t at,
                            int column)
{
    const struct heap_snapshot_row *row = &block->rows[at];
    const int64_t numbers[] = {row->snapshot, row->stack, row->count, row->bytes};
    sqlite3_result_int64(context, numbers[column]);
}

static void event_column(sqlite3_context *context, const struct heap_block *block, size_t at,
                         int column)
{
    const struct heap_event *event = &block->events[at];
    const uint64_t numbers[] = {event->time_ns, event->thread, 0,
                                event->address, event->size,   event->stack};
    if (column == 2)
        sqlite3_result_text(context, event->kind == HEAP_EVENT_FREED ? "freed" : "allocated", -1,
                            SQLITE_STATIC);
    else
        sqlite3_result_int64(context, (sqlite3_int64)numbers[column]);
}

static int table_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                         sqlite3_vtab **ret, char **ret_error)
{
    (void)argc;
    (void)argv;
    (void)ret_error;
    const struct origin *origin = context;
    int rc = sqlite3_declare_vtab(db, sources[origin->kind].declaration);
    if (rc != SQLITE_OK)
        return rc;
    struct table *table = sqlite3_malloc(sizeof(*table));
    if (!table)
        return SQLITE_NOMEM;
    *table = (struct table){.origin = *origin};
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    *ret = &table->base;
    return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *base)
{
    sqlite3_free(base);
    return SQLITE_OK;
}

/* Always all of it: in a join it belongs to the outside. */
static int table_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    bool events = ((struct table *)base)->origin.kind == HEAP_ROWS_EVENTS;
    info->estimatedRows = events ? 100000000 : 10000;
    info->estimatedCost = (double)info->estimatedRows * 10;
    return SQLITE_OK;
}

static int table_open(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
    (void)base;
    struct scan *scan = sqlite3_malloc(sizeof(*scan));
    if (!scan)
        return SQLITE_NOMEM;
    *scan = (struct scan){.end = true};
    *ret = &scan->base;
    return SQLITE_OK;
}

static int table_close(sqlite3_vtab_cursor *base)
{
    struct scan *scan = (struct scan *)base;
    heap_cursor_close(scan->cursor);
    sqlite3_free(scan);
    return SQLITE_OK;
}

/* Our reason reaches the person through SQLite's error message. */
static int fail(struct scan *scan, int r, const struct why *why)
{
    sqlite3_vtab *table = scan->base.pVtab;
    scan->end = true;
    if (r == -ENOMEM)
        return SQLITE_NOMEM;
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = sqlite3_mprintf("%s", why->what);
    return r == -EBADMSG ? SQLITE_CORRUPT_VTAB : SQLITE_ERROR;
}

static int next_block(struct scan *scan)
{
    struct why why = {0};
    scan->at = 0;
    int r = heap_cursor_next(scan->cursor, &scan->block, &why);
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
    struct scan *scan = (struct scan *)base;
    const struct origin *origin = &((struct table *)base->pVtab)->origin;
    struct why why = {0};
    heap_cursor_close(scan->cursor);
    scan->cursor = NULL;
    scan->rowid = 0;
    int r = heap_cursor_open(origin->recording, origin->kind, &scan->cursor, &why);
    return r < 0 ? fail(scan, r, &why) : next_block(scan);
}

static int table_next(sqlite3_vtab_cursor *base)
{
    struct scan *scan = (struct scan *)base;
    scan->rowid++;
    return ++scan->at < scan->block.count ? SQLITE_OK : next_block(scan);
}

static int table_eof(sqlite3_vtab_cursor *base)
{
    return ((struct scan *)base)->end;
}

static int table_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct scan *scan = (struct scan *)base;
    sources[((struct table *)base->pVtab)->origin.kind].column(context, &scan->block, scan->at,
                                                               column);
    return SQLITE_OK;
}

static int table_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
    *ret = ((struct scan *)base)->rowid;
    return SQLITE_OK;
}

static const sqlite3_module module = {
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

int heap_tables_register(struct recording *recording, struct why *why)
{
    sqlite3 *db = recording_db(recording);
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        struct origin *origin = malloc(sizeof(*origin));
        if (!origin)
            return why_nomem(why);
        *origin = (struct origin){recording, (enum heap_rows)i};
        /* It is freed there, also when this fails. */
        int rc = sqlite3_create_module_v2(db, sources[i].name, &module, origin, free);
        char sql[64];
        snprintf(sql, sizeof(sql), "SELECT 1 FROM %s LIMIT 0", sources[i].name);
        if (rc == SQLITE_OK)
            rc = db_exec(db, sql);
        if (rc != SQLITE_OK)
            return db_why(db, rc, "read", recording_path(recording), why);
    }
    return 0;
}
