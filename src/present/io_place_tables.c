/* Calls by their place in the program, and names that were looked up, as tables; see
 * io_tables.h. */
#include "present/io_table_parts.h"

#include "present/wait_tables.h"

enum {
    SITE_TOTAL,
    SITE_PCT,
    SITE_CALLS,
    SITE_ERRORS,
    SITE_ERRORS_TEXT,
    SITE_BYTES,
    SITE_BYTES_TEXT,
    SITE_LATENCY,
    SITE_P50,
    SITE_P99,
    SITE_MAX,
    SITE_SHAPE,
    SITE_THREADS,
    SITE_OBJECTS,
    SITE_CALL,
    SITE_OBJECT,
    SITE_ABOUT,
    SITE_WHERE,
    SITE_STACK,
    SITE_COLUMNS
};

static const struct io_column site_columns[SITE_COLUMNS] = {
    [SITE_TOTAL] = {{"total_ms", "time", SHOW_ALWAYS, true, false}, true},
    [SITE_PCT] = {{"pct", "%", SHOW_ALWAYS, true, false}, true},
    [SITE_CALLS] = {{"calls", "calls", SHOW_ALWAYS, true, false}, true},
    [SITE_ERRORS] = {{"errors", "errors", SHOW_MACHINE, true, false}, false},
    [SITE_ERRORS_TEXT] = {{"errors_text", "errors", SHOW_PEOPLE, true, false}, false},
    [SITE_BYTES] = {{"bytes", "bytes", SHOW_MACHINE, true, false}, false},
    [SITE_BYTES_TEXT] = {{"bytes_text", "bytes", SHOW_PEOPLE, true, false}, true},
    [SITE_LATENCY] = {{"latency", "latency", SHOW_MACHINE, false, false}, false},
    [SITE_P50] = {{"p50", "p50", SHOW_PEOPLE, true, false}, false},
    [SITE_P99] = {{"p99", "p99", SHOW_PEOPLE, true, false}, false},
    [SITE_MAX] = {{"max", "max", SHOW_PEOPLE, true, false}, true},
    [SITE_SHAPE] = {{"shape", WAIT_SHAPE_TITLE, SHOW_PEOPLE, false, false}, false},
    [SITE_THREADS] = {{"threads", "thr", SHOW_ALWAYS, true, false}, false},
    [SITE_OBJECTS] = {{"objects", "objects", SHOW_MACHINE, true, false}, false},
    [SITE_CALL] = {{"call", "call", SHOW_ALWAYS, false, false}, true},
    [SITE_OBJECT] = {{"object", "object", SHOW_MACHINE, false, false}, false},
    [SITE_ABOUT] = {{"about", "of", SHOW_PEOPLE, false, true}, true},
    [SITE_WHERE] = {{"where", "where", SHOW_ALWAYS, false, true}, true},
    [SITE_STACK] = {{"stack", "stack", SHOW_MACHINE, false, false}, false},
};

/* The object with the most time, and how many others there are. */
static const char *site_about(const struct io_tables *tables, const struct io_site *site)
{
    if (site->object == 0)
        return "";
    struct str name = io_object_name(tables, site->object);
    if (site->objects < 2)
        return arena_dup_len(tables->arena, name.data, name.len);
    return arena_printf(tables->arena, "%.*s and %u more", STR_FMT(name), site->objects - 1);
}

struct value io_tables_sites(const struct io_tables *tables)
{
    const struct io_sums *sums = tables->sums;
    struct value table = io_table_begin(tables, site_columns, SITE_COLUMNS,
                                        "no call but what is idle");
    for (size_t i = 0; i < sums->site_count; i++) {
        const struct io_site *site = &sums->sites[i];
        const struct call_tally *tally = &site->tally;
        struct table_row *row = io_table_row(tables, &table, i);
        if (!row)
            break;
        row->cells[SITE_TOTAL] = io_ms(tally->total_ns);
        row->cells[SITE_PCT] = io_pct(tally->total_ns, sums->busy_ns, "no time was measured");
        row->cells[SITE_CALLS] = value_uint(tally->count, UNIT_COUNT);
        row->cells[SITE_ERRORS] = value_uint(site->errors, UNIT_COUNT);
        row->cells[SITE_ERRORS_TEXT] = io_some(site->errors, UNIT_COUNT);
        row->cells[SITE_BYTES] = value_uint(tally->bytes, UNIT_BYTES);
        row->cells[SITE_BYTES_TEXT] = io_some(tally->bytes, UNIT_BYTES);
        row->cells[SITE_LATENCY] = io_latency(tables->arena, tally->buckets, tally->count,
                                              tally->max_ns);
        row->cells[SITE_P50] = io_p(tally->buckets, tally->count, tally->max_ns, 0.5);
        row->cells[SITE_P99] = io_p(tally->buckets, tally->count, tally->max_ns, 0.99);
        row->cells[SITE_MAX] = io_ms(tally->max_ns);
        row->cells[SITE_SHAPE] = value_text(io_shape(tables->arena, tally->buckets));
        row->cells[SITE_THREADS] = value_uint(site->threads, UNIT_COUNT);
        row->cells[SITE_OBJECTS] = value_uint(site->objects, UNIT_COUNT);
        row->cells[SITE_CALL] = value_text(
            io_call_name(tables->arena, &sums->kinds, site->syscall));
        row->cells[SITE_OBJECT] = value_str(site->object ? io_object_name(tables, site->object)
                                                         : STR(""));
        row->cells[SITE_ABOUT] = value_text(site_about(tables, site));
        row->cells[SITE_WHERE] = value_text(
            wait_where(tables->arena, &sums->io->profile, site->stack));
        row->cells[SITE_STACK] = io_stack(tables, site->stack);
    }
    return table;
}

struct value io_tables_lookups(const struct io_tables *tables)
{
    static const struct column columns[] = {
        {"what", "what", SHOW_ALWAYS, false, false},
        {"calls", "calls", SHOW_ALWAYS, true, false},
        {"failed", "failed", SHOW_ALWAYS, true, false},
        {"total_ms", "time", SHOW_ALWAYS, true, false},
    };
    const struct io_lookups *lookups = &tables->sums->lookups;
    const struct {
        const char *what;
        const struct io_moved *moved;
        uint64_t failed;
    } rows[] = {
        {"open", &lookups->opens, lookups->opens_failed},
        {"stat", &lookups->stats, lookups->stats_failed},
        {"remove", &lookups->removes, lookups->removes_failed},
        {"other", &lookups->others, lookups->others_failed},
    };
    struct value table = value_table(tables->arena, columns, ARRAY_SIZE(columns));
    if (table.table)
        table.table->empty = "no name was looked up";
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct table_row *row = rows[i].moved->calls > 0 ? table_add(&table) : NULL;
        if (!row)
            continue;
        row->cells[0] = value_text(rows[i].what);
        row->cells[1] = value_uint(rows[i].moved->calls, UNIT_COUNT);
        row->cells[2] = value_uint(rows[i].failed, UNIT_COUNT);
        row->cells[3] = io_ms(rows[i].moved->ns);
    }
    return table;
}

enum {
    MISSING_COUNT,
    MISSING_TOTAL,
    MISSING_NAMES,
    MISSING_FOLDER,
    MISSING_EXAMPLE,
    MISSING_WHERE,
    MISSING_STACK,
    MISSING_COLUMNS
};

static const struct io_column missing_columns[MISSING_COLUMNS] = {
    [MISSING_COUNT] = {{"count", "lookups", SHOW_ALWAYS, true, false}, true},
    [MISSING_TOTAL] = {{"total_ms", "time", SHOW_ALWAYS, true, false}, true},
    [MISSING_NAMES] = {{"names", "names", SHOW_ALWAYS, true, false}, true},
    [MISSING_FOLDER] = {{"folder", "folder", SHOW_ALWAYS, false, true}, true},
    [MISSING_EXAMPLE] = {{"example", "such as", SHOW_ALWAYS, false, true}, false},
    [MISSING_WHERE] = {{"where", "where", SHOW_ALWAYS, false, true}, true},
    [MISSING_STACK] = {{"stack", "stack", SHOW_MACHINE, false, false}, false},
};

struct value io_tables_missing(const struct io_tables *tables)
{
    const struct io_sums *sums = tables->sums;
    struct value table = io_table_begin(tables, missing_columns, MISSING_COLUMNS,
                                        "everything that was looked up is there");
    for (size_t i = 0; i < sums->missing_count; i++) {
        const struct io_missing *missing = &sums->missing[i];
        struct table_row *row = io_table_row(tables, &table, i);
        if (!row)
            break;
        row->cells[MISSING_COUNT] = value_uint(missing->count, UNIT_COUNT);
        row->cells[MISSING_TOTAL] = io_ms(missing->ns);
        row->cells[MISSING_NAMES] = value_uint(missing->names, UNIT_COUNT);
        row->cells[MISSING_FOLDER] = value_str(missing->folder);
        row->cells[MISSING_EXAMPLE] = value_str(
            missing->example ? io_object_name(tables, missing->example) : STR(""));
        row->cells[MISSING_WHERE] = io_where(tables, missing->stack);
        row->cells[MISSING_STACK] = io_stack(tables, missing->stack);
    }
    return table;
}
