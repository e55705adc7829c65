/* `whyslow query`: read-only SQL over a recording, as table, JSON or Markdown.
 *
 * open → register `sample` and `stack_text()` → one statement → one table. */
#include "cmd/cmd.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "store/db.h"
#include "store/heap_tables.h"
#include "store/reader.h"
#include "store/sample_table.h"
#include "store/schema.h"
#include "store/stack_text.h"

#include <errno.h>
#include <string.h>

enum {
    BLOB_BYTES_SHOWN = 64,
    STEPS_A_LOOK = 20000, /* of SQLite's machine: so often it asks whether to go on, some 1,000
                             times a second */
};

struct query_opts {
    struct output_opts output;
    uint64_t limit;
    uint64_t timeout_ns;
    uint64_t memory_bytes;
    bool tables;
};

static const struct opt query_options[] = {
    {"limit", 'n', OPT_U64, offsetof(struct query_opts, limit), "ROWS",
     "print at most this many rows and say so when there are more; 0 prints all", "10000", NULL,
     false},
    {"timeout", 0, OPT_DURATION, offsetof(struct query_opts, timeout_ns), "TIME",
     "end a statement that takes longer; 0 lets it run", "30s", NULL, false},
    {"memory", 0, OPT_SIZE, offsetof(struct query_opts, memory_bytes), "SIZE",
     "hold at most so much of the answer and say so when it is cut there; 0 holds all", "512M",
     NULL, false},
    {"tables", 0, OPT_FLAG, offsetof(struct query_opts, tables), NULL,
     "list the tables, also when SQL is given", NULL, NULL, false},
    OUTPUT_OPTIONS(struct query_opts, output),
    {0},
};

/* Why the guard said no; SQLite itself only says "not authorized". */
struct guard {
    const char *refused;
};

static bool pragma_only_tells(const char *name, const char *argument)
{
    static const char *const with_argument[] = {
        "table_info",  "table_xinfo",      "table_list",      "index_list",  "index_info",
        "index_xinfo", "foreign_key_list", "integrity_check", "quick_check",
    };
    static const char *const alone[] = {
        "application_id", "user_version",   "page_count",  "page_size",       "freelist_count",
        "encoding",       "journal_mode",   "table_list",  "integrity_check", "quick_check",
        "function_list",  "module_list",    "pragma_list", "compile_options", "schema_version",
        "database_list",  "collation_list",
    };
    const char *const *names = argument ? with_argument : alone;
    size_t count = argument ? ARRAY_SIZE(with_argument) : ARRAY_SIZE(alone);
    for (size_t i = 0; i < count; i++)
        if (name && sqlite3_stricmp(name, names[i]) == 0)
            return true;
    return false;
}

static int guard_decide(void *context, int action, const char *a, const char *b, const char *schema,
                        const char *trigger)
{
    (void)schema;
    (void)trigger;
    struct guard *guard = context;
    const char *refused = "a statement that changes something";
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION: /* the name is the second argument */
        if (!b || sqlite3_stricmp(b, "load_extension") != 0)
            return SQLITE_OK;
        refused = "load_extension()";
        break;
    case SQLITE_PRAGMA:
        if (pragma_only_tells(a, b))
            return SQLITE_OK;
        refused = "this PRAGMA";
        break;
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
        refused = "ATTACH or DETACH";
        break;
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
        refused = "a transaction";
        break;
    default:
        break;
    }
    guard->refused = refused;
    return SQLITE_DENY;
}

static int sql_error(sqlite3 *db, int rc, const struct guard *guard, struct why *why)
{
    static const char remedy[] = "'whyslow query REC' lists the tables; docs/recording.md explains "
                                 "their columns";
    if (guard->refused)
        return why_set(why, WHY_USAGE, EINVAL, "use SELECT", "query only reads: %s is refused",
                       guard->refused);
    int base = rc & 0xff;
    if (base == SQLITE_NOMEM)
        return why_nomem(why);
    if (base == SQLITE_CORRUPT || base == SQLITE_IOERR || base == SQLITE_NOTADB)
        return why_set(why, WHY_FAILED, db_errno(db, rc), "copy the file again, or record again",
                       "cannot read the recording: %s", sqlite3_errmsg(db));
    return why_set(why, WHY_USAGE, EINVAL, remedy, "SQL: %s", sqlite3_errmsg(db));
}

static bool only_blanks_and_comments(sqlite3 *db, const char *sql)
{
    while (*sql) {
        AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
        const char *rest = NULL;
        if (sqlite3_prepare_v2(db, sql, -1, &stmt, &rest) != SQLITE_OK || stmt || rest == sql)
            return false;
        sql = rest;
    }
    return true;
}

static int prepare_one(sqlite3 *db, const char *sql, const struct guard *guard, sqlite3_stmt **ret,
                       struct why *why)
{
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    const char *rest = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, &rest);
    if (rc != SQLITE_OK)
        return sql_error(db, rc, guard, why);
    if (!stmt)
        return why_set(why, WHY_USAGE, EINVAL, "leave SQL out to list the tables",
                       "SQL: there is no statement in it");
    if (!only_blanks_and_comments(db, rest))
        return why_set(why, WHY_USAGE, EINVAL, "ask one question a call",
                       "SQL: more than one statement");
    int columns = sqlite3_column_count(stmt);
    if (columns > TABLE_COLUMNS_MAX)
        return why_set(why, WHY_USAGE, EINVAL, "name the columns you want instead of *",
                       "SQL: %d columns, more than %d", columns, TABLE_COLUMNS_MAX);
    if (columns == 0 || !sqlite3_stmt_readonly(stmt))
        return why_set(why, WHY_USAGE, EINVAL, "use SELECT",
                       "query only reads: this statement gives no rows");
    *ret = stmt;
    stmt = NULL;
    return 0;
}

/* JSON objects want keys that differ: a second "count" is "count_2". */
static const char *unique_key(struct arena *arena, const struct column *columns, int count,
                              const char *name)
{
    const char *key = name;
    int copy = 1;
    for (int i = 0; i < count;) {
        if (strcmp(columns[i].key, key) == 0) {
            key = arena_printf(arena, "%s_%d", name, ++copy);
            i = copy > TABLE_COLUMNS_MAX + 1 ? count : 0;
        } else {
            i++;
        }
    }
    return key;
}

static struct column *make_columns(struct arena *arena, sqlite3_stmt *stmt, int count)
{
    struct column *columns = arena_alloc(arena, (size_t)count * sizeof(*columns));
    for (int i = 0; columns && i < count; i++) {
        const char *name = sqlite3_column_name(stmt, i);
        const char *key = unique_key(arena, columns, i, arena_dup(arena, name ? name : "?"));
        columns[i] = (struct column){.key = key, .title = key, .wrap = true};
    }
    return columns;
}

static struct value blob_value(struct arena *arena, const unsigned char *data, size_t len)
{
    char hex[2 * BLOB_BYTES_SHOWN + 1] = "";
    for (size_t i = 0; i < MIN(len, (size_t)BLOB_BYTES_SHOWN); i++)
        snprintf(hex + 2 * i, 3, "%02x", data[i]);
    if (len <= BLOB_BYTES_SHOWN)
        return value_text(arena_dup(arena, hex));
    return value_text(arena_printf(arena, "%s… (%zu bytes)", hex, len));
}

static struct value cell_value(struct arena *arena, sqlite3_stmt *stmt, int column)
{
    const char *text;
    size_t len;
    switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_INTEGER:
        return value_int(sqlite3_column_int64(stmt, column), UNIT_NONE);
    case SQLITE_FLOAT:
        return value_real(sqlite3_column_double(stmt, column), UNIT_NONE);
    case SQLITE_TEXT:
        text = (const char *)sqlite3_column_text(stmt, column);
        len = (size_t)sqlite3_column_bytes(stmt, column);
        if (!text)
            arena->failed = true; /* SQLite had no memory for it */
        return value_str((struct str){arena_dup_len(arena, text, text ? len : 0), len});
    case SQLITE_BLOB:
        text = sqlite3_column_blob(stmt, column);
        len = (size_t)sqlite3_column_bytes(stmt, column);
        return blob_value(arena, (const unsigned char *)text, text ? len : 0);
    default:
        return value_null();
    }
}

/* Numbers stand right: decided by the first row, since SQLite has no types before. */
static void align(struct column *columns, const struct table_row *row, int count)
{
    for (int i = 0; i < count; i++)
        columns[i].right = row->cells[i].kind == VALUE_INT || row->cells[i].kind == VALUE_REAL;
}

struct query {
    struct recording *recording;
    struct arena *arena;
    struct guard guard;
    uint64_t limit;
    uint64_t memory_bytes; /* of the arena, which holds all rows until they are drawn; 0: any */
    uint64_t timeout_ns;   /* 0: as long as it takes */
    uint64_t until_ns;
};

/* Asked by SQLite now and then; other than 0: the statement ends. */
static int is_late(void *context)
{
    const struct query *query = context;
    return clock_mono_ns() >= query->until_ns;
}

static int ended_early(const struct query *query, const struct table *table, struct why *why)
{
    char after[32];
    units_format((double)query->timeout_ns, UNIT_NS, after, sizeof(after));
    return why_set(why, WHY_USAGE, ETIMEDOUT,
                   "a recursive WITH needs an end (LIMIT, or a WHERE that becomes false); "
                   "--timeout gives it longer",
                   "the query was still running after %s, with %zu rows so far", after,
                   table->row_count);
}

/* Why no row is added any more; NULL: one is. */
static const char *full(const struct query *query, const struct table *table)
{
    char memory[32];
    if (query->limit != 0 && table->row_count >= query->limit)
        return arena_printf(query->arena, "cut after %zu rows; --limit 0 prints all of them",
                            table->row_count);
    if (query->memory_bytes == 0 || query->arena->used_bytes < query->memory_bytes)
        return NULL;
    units_format((double)query->memory_bytes, UNIT_BYTES, memory, sizeof(memory));
    return arena_printf(query->arena,
                        "cut after %zu rows, which fill the %s they may take; ask for less, or "
                        "give more with --memory",
                        table->row_count, memory);
}

/* Rows into a table; one row more than fits is asked for, to know of a cut. */
static int read_rows(struct query *query, sqlite3_stmt *stmt, struct value *ret_table,
                     const char **ret_cut, struct why *why)
{
    sqlite3 *db = recording_db(query->recording);
    int count = sqlite3_column_count(stmt);
    struct column *columns = make_columns(query->arena, stmt, count);
    struct value table = value_table(query->arena, columns, (size_t)count);
    if (!columns || !table.table)
        return why_nomem(why);
    table.table->empty = "no rows";
    const char *cut = NULL;
    int rc = SQLITE_ROW;
    while (!cut && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        cut = full(query, table.table);
        struct table_row *row = cut ? NULL : table_add(&table);
        for (int i = 0; row && i < count; i++)
            row->cells[i] = cell_value(query->arena, stmt, i);
        if (row && row == table.table->first)
            align(columns, row, count);
        if (arena_failed(query->arena))
            return why_nomem(why);
    }
    if ((rc & 0xff) == SQLITE_INTERRUPT)
        return ended_early(query, table.table, why);
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        return sql_error(db, rc, &query->guard, why);
    *ret_table = table;
    *ret_cut = cut;
    return 0;
}

static void put_columns(struct arena *arena, struct value *root, const struct table *table)
{
    struct value columns = value_list(arena);
    for (size_t i = 0; i < table->column_count; i++)
        value_append(&columns, value_text(table->columns[i].key));
    value_put_machine(root, "columns", columns);
}

static int query_sql(struct query *query, const char *sql, struct value *root, struct why *why)
{
    sqlite3 *db = recording_db(query->recording);
    sqlite3_set_authorizer(db, guard_decide, &query->guard);
    AUTO(db_finalize) sqlite3_stmt *stmt = NULL;
    struct value table = {0};
    const char *cut = NULL;
    int r = prepare_one(db, sql, &query->guard, &stmt, why);
    if (query->timeout_ns != 0) {
        query->until_ns = clock_mono_ns() + query->timeout_ns;
        sqlite3_progress_handler(db, STEPS_A_LOOK, is_late, query);
    }
    if (r == 0)
        r = read_rows(query, stmt, &table, &cut, why);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    if (r < 0)
        return r;
    put_columns(query->arena, root, table.table);
    value_put_machine(root, "row_count", value_uint(table.table->row_count, UNIT_NONE));
    value_put_machine(root, "truncated", value_bool(cut));
    if (cut)
        value_put(root, "note", NULL, value_tone(value_text(cut), TONE_WARN));
    value_put(root, "rows", NULL, table);
    return 0;
}

static int count_rows(struct query *query, const struct schema_table *table, int64_t *ret)
{
    sqlite3 *db = recording_db(query->recording);
    char *sql = table->rows_sql ? sqlite3_mprintf("%s", table->rows_sql)
                                : sqlite3_mprintf("SELECT count(1) FROM \"%w\"", table->name);
    int rc = sql ? db_int(db, sql, ret) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

static int query_tables(struct query *query, struct value *root, struct why *why)
{
    static const struct column columns[] = {
        {"table", "table", SHOW_ALWAYS, false, false},
        {"rows", "rows", SHOW_ALWAYS, true, false},
        {"about", "about", SHOW_ALWAYS, false, true},
    };
    struct value table = value_table(query->arena, columns, ARRAY_SIZE(columns));
    sqlite3 *db = recording_db(query->recording);
    struct db_bound bound;
    int rc = db_bind(db, &bound);
    for (const struct schema_table *known = schema_tables; known->name; known++) {
        int64_t rows = 0;
        if (rc == SQLITE_OK)
            rc = count_rows(query, known, &rows);
        if (rc != SQLITE_OK) {
            db_unbind(db);
            return db_why(db, rc, "read", recording_path(query->recording), why);
        }
        struct table_row *row = table_add(&table);
        if (!row) {
            db_unbind(db);
            return why_nomem(why);
        }
        row->cells[0] = value_text(known->name);
        row->cells[1] = value_int(rows, UNIT_COUNT);
        row->cells[2] = value_text(known->about);
    }
    db_unbind(db); /* SQL that somebody typed may take as long as it likes */
    value_put(root, "tables", NULL, table);
    return 0;
}

static int query_report(const struct cmd_call *call, struct query *query, struct why *why)
{
    const struct query_opts *opts = call->opts;
    struct recording *recording = query->recording;
    int r = sample_table_register(recording, why);
    if (r == 0)
        r = heap_tables_register(recording, why);
    if (r == 0)
        r = stack_text_register(recording, why);
    if (r < 0)
        return r;
    if (!recording_finished(recording))
        log_warning("'%s' was not finished (still recording, or cut off): it holds what was "
                    "committed",
                    recording_path(recording));
    struct value root = value_map(query->arena);
    value_put_machine(&root, "recording", value_text(recording_path(recording)));
    value_put_machine(&root, "finished", value_bool(recording_finished(recording)));
    if (opts->tables || call->argc < 2)
        r = query_tables(query, &root, why);
    if (r == 0 && call->argc == 2)
        r = query_sql(query, call->argv[1], &root, why);
    if (r < 0)
        return r;
    if (arena_failed(query->arena))
        return why_nomem(why);
    struct report report = {.schema = "whyslow.query/1", .root = &root};
    r = cmd_render(call, &opts->output, &report, why);
    return r < 0 ? r : EXIT_DONE;
}

static int query_run(const struct cmd_call *call, struct why *why)
{
    const struct query_opts *opts = call->opts;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct query query = {.arena = &arena,
                          .limit = opts->limit,
                          .memory_bytes = opts->memory_bytes,
                          .timeout_ns = opts->timeout_ns};
    int r = recording_open(call->argv[0], &query.recording, why);
    if (r < 0)
        return r;
    r = query_report(call, &query, why);
    recording_close(query.recording);
    return r;
}

static const struct cmd_example examples[] = {
    {"whyslow query recording.whyslow", "the tables, their sizes and what they hold"},
    {"whyslow query recording.whyslow \"SELECT stack_text(stack) AS stack, sum(weight) AS weight"
     " FROM total WHERE series = 1 GROUP BY stack ORDER BY weight DESC\" --limit 10",
     "the ten heaviest stacks of the first series"},
    {"whyslow query recording.whyslow \"SELECT * FROM sample WHERE series = 1 AND time_ns"
     " BETWEEN 5000000000 AND 6000000000\" --json",
     "every sample of one second, for a program"},
    {NULL, NULL},
};

const struct command cmd_query = {
    .name = "query",
    .group = "Look into a recording",
    .operands = "REC [SQL]",
    .summary = "ask a recording questions in SQL",
    .about = "Runs one read-only SQL statement over a recording and prints the rows as a table, as "
             "JSON or as Markdown. The recording is never changed. Without SQL, lists the tables; "
             "docs/recording.md describes them.\n\n"
             "Beside the plain tables there are: sample(series, time_ns, thread, stack, weight), "
             "heap_site, heap_snapshot_row and heap_event, which unpack what is stored while they "
             "are read, and the functions "
             "stack_text(stack), \"main;decode;inner\", and frame_text(frame).",
    .options = query_options,
    .options_size = sizeof(struct query_opts),
    .operands_min = 1,
    .operands_max = 2,
    .examples = examples,
    .run = query_run,
};
