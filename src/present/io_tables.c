/* Calls, files, places in the program and lookups as tables; see io_tables.h. */
#include "present/io_table_parts.h"

#include "present/wait_tables.h"

#include <inttypes.h>
#include <string.h>

enum {
    SIZE_STEPS = 13,
    PLACES_MIN = 10, /* fewer calls have no order to speak of */
};

struct value io_table_begin(const struct io_tables *tables, const struct io_column *columns,
                            size_t count, const char *empty)
{
    struct column *shown = arena_alloc(tables->arena, count * sizeof(*shown));
    for (size_t i = 0; shown && i < count; i++) {
        shown[i] = columns[i].column;
        if (!tables->brief || columns[i].brief || shown[i].show == SHOW_MACHINE)
            continue;
        shown[i].show = shown[i].show == SHOW_ALWAYS ? SHOW_MACHINE : SHOW_TERMINAL;
    }
    struct value table = value_table(tables->arena, shown, shown ? count : 0);
    if (table.table)
        table.table->empty = empty;
    return table;
}

struct table_row *io_table_row(const struct io_tables *tables, struct value *table, size_t index)
{
    bool people = tables->limit == 0 || index < tables->limit;
    if (!people && index >= tables->machine_rows)
        return NULL;
    struct table_row *row = table_add(table);
    if (row && !people)
        row->show = SHOW_MACHINE;
    return row;
}

struct value io_ms(uint64_t ns)
{
    return value_real((double)ns / 1e6, UNIT_MS);
}

struct value io_pct(uint64_t part, uint64_t whole, const char *empty)
{
    return whole > 0 ? value_real(100.0 * (double)part / (double)whole, UNIT_PERCENT)
                     : value_na(empty);
}

struct value io_p(const uint32_t *buckets, uint64_t count, uint64_t max_ns, double quantile)
{
    if (count == 0)
        return value_na("there was none");
    return value_real(io_quantile(buckets, count, max_ns, quantile) / 1e6, UNIT_MS);
}

static struct wait_tally tally_of(const uint32_t *buckets)
{
    struct wait_tally tally = {0};
    memcpy(tally.buckets, buckets, sizeof(tally.buckets));
    return tally;
}

struct value io_latency(struct arena *arena, const uint32_t *buckets, uint64_t count,
                        uint64_t max_ns)
{
    struct wait_tally tally = tally_of(buckets);
    struct value map = value_map(arena);
    value_put(&map, "p50_ms", "p50", io_p(buckets, count, max_ns, 0.5));
    value_put(&map, "p99_ms", "p99", io_p(buckets, count, max_ns, 0.99));
    value_put(&map, "max_ms", "max", io_ms(max_ns));
    value_put(&map, "histogram", NULL, wait_tables_histogram(arena, &tally));
    return map;
}

const char *io_shape(struct arena *arena, const uint32_t *buckets)
{
    struct wait_tally tally = tally_of(buckets);
    return wait_tables_shape(arena, &tally);
}

struct value io_sizes(struct arena *arena, const uint32_t *sizes)
{
    static const struct column columns[] = {
        {"from_bytes", "from", SHOW_ALWAYS, true, false},
        {"to_bytes", "to", SHOW_ALWAYS, true, false},
        {"count", "count", SHOW_ALWAYS, true, false},
    };
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    for (unsigned i = 0; i < CALL_SIZES; i++) {
        struct table_row *row = sizes[i] > 0 ? table_add(&table) : NULL;
        if (!row)
            continue;
        row->cells[0] = value_uint(i == 0 ? 0 : 1ull << (i - 1), UNIT_BYTES);
        row->cells[1] = i + 1 < CALL_SIZES ? value_uint((1ull << i) - 1, UNIT_BYTES)
                                           : value_text("");
        row->cells[2] = value_uint(sizes[i], UNIT_COUNT);
    }
    return table;
}

/* A character for a factor of four: 1 B, 4 B, 16 B … 16 MiB and more. */
const char *io_sizes_shape(struct arena *arena, const uint32_t *sizes)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    uint64_t steps[SIZE_STEPS] = {0}, most = 0;
    for (unsigned i = 1; i < CALL_SIZES; i++) {
        unsigned step = MIN((i - 1) / 2, (unsigned)SIZE_STEPS - 1);
        steps[step] += sizes[i];
        most = MAX(most, steps[step]);
    }
    const char *text = "";
    for (unsigned i = 0; most > 0 && i < SIZE_STEPS; i++) {
        double share = (double)steps[i] / (double)most;
        text = arena_printf(arena, "%s%s", text,
                            steps[i] == 0 ? "·" : blocks[(size_t)(share * 7 + 0.5)]);
    }
    return text;
}

struct value io_some(uint64_t number, enum unit unit)
{
    return number > 0 ? value_uint(number, unit) : value_text("");
}

struct value io_some_ms(uint64_t ns)
{
    return ns > 0 ? io_ms(ns) : value_text("");
}

struct value io_where(const struct io_tables *tables, uint32_t stack)
{
    return value_text(stack ? wait_where(tables->arena, &tables->sums->io->profile, stack) : "");
}

struct value io_stack(const struct io_tables *tables, uint32_t stack)
{
    return wait_tables_names(tables->arena, &tables->sums->io->profile, stack);
}

struct str io_object_name(const struct io_tables *tables, uint32_t object)
{
    struct str name = tables->sums->io->objects[object].name;
    return name.len > 0 ? name : STR("[no name]");
}

/* ---- calls ---- */

/* As programmers know it; the kernel has some of its own that no program sees. */
static const char *error_name(struct arena *arena, uint32_t error)
{
    static const struct {
        uint32_t error;
        const char *name;
    } inside[] = {{512, "ERESTARTSYS"},
                  {513, "ERESTARTNOINTR"},
                  {514, "ERESTARTNOHAND"},
                  {516, "ERESTART_RESTARTBLOCK"}};
    for (size_t i = 0; i < ARRAY_SIZE(inside); i++)
        if (inside[i].error == error)
            return inside[i].name;
    const char *name = error <= INT32_MAX ? strerrorname_np((int)error) : NULL;
    return name ? name : arena_printf(arena, "errno %u", error);
}

static struct value errors_map(const struct io_tables *tables, const struct io_syscall *call,
                               const char **ret_text)
{
    struct value map = value_map(tables->arena);
    const char *text = "";
    for (uint32_t i = 0; i < call->error_count; i++) {
        const struct io_error *error = &tables->sums->errors[call->error_first + i];
        const char *name = error_name(tables->arena, error->error);
        value_put(&map, name, NULL, value_uint(error->count, UNIT_COUNT));
        text = arena_printf(tables->arena, "%s%s%s %" PRIu64, text, i > 0 ? ", " : "", name,
                            error->count);
    }
    *ret_text = text;
    return map;
}

enum {
    CALL_NAME,
    CALL_CALLS,
    CALL_ERRORS,
    CALL_ERRORS_TEXT,
    CALL_TOTAL,
    CALL_TOTAL_PCT,
    CALL_MEAN,
    CALL_MEAN_US,
    CALL_MAX,
    CALL_MAX_US,
    CALL_SHAPE,
    CALL_BYTES,
    CALL_BYTES_TEXT,
    CALL_ERRORS_BY,
    CALL_COLUMNS
};

static const struct io_column call_columns[CALL_COLUMNS] = {
    [CALL_NAME] = {{"name", "call", SHOW_ALWAYS, false, false}, true},
    [CALL_CALLS] = {{"calls", "calls", SHOW_ALWAYS, true, false}, true},
    [CALL_ERRORS] = {{"errors", "errors", SHOW_MACHINE, true, false}, true},
    [CALL_ERRORS_TEXT] = {{"errors_text", "errors", SHOW_PEOPLE, false, true}, true},
    [CALL_TOTAL] = {{"total_ms", "total", SHOW_ALWAYS, true, false}, true},
    [CALL_TOTAL_PCT] = {{"pct", "%", SHOW_PEOPLE, true, false}, true},
    [CALL_MEAN] = {{"mean", "mean", SHOW_PEOPLE, true, false}, true},
    [CALL_MEAN_US] = {{"mean_us", "mean", SHOW_MACHINE, true, false}, true},
    [CALL_MAX] = {{"max", "max", SHOW_PEOPLE, true, false}, true},
    [CALL_MAX_US] = {{"max_us", "max", SHOW_MACHINE, true, false}, true},
    [CALL_SHAPE] = {{"shape", WAIT_SHAPE_TITLE, SHOW_PEOPLE, false, false}, true},
    [CALL_BYTES] = {{"bytes", "bytes", SHOW_MACHINE, true, false}, true},
    [CALL_BYTES_TEXT] = {{"bytes_text", "bytes", SHOW_PEOPLE, true, false}, true},
    [CALL_ERRORS_BY] = {{"errors_by", "errors", SHOW_MACHINE, false, false}, true},
};

struct value io_tables_syscalls(const struct io_tables *tables)
{
    const struct io_sums *sums = tables->sums;
    struct value table = io_table_begin(tables, call_columns, CALL_COLUMNS, "no call was seen");
    uint64_t whole = sums->calls_ns + sums->idle_ns;
    for (size_t i = 0; i < sums->syscall_count; i++) {
        const struct io_syscall *call = &sums->syscalls[i];
        const struct call_tally *tally = &call->tally;
        struct table_row *row = io_table_row(tables, &table, i);
        if (!row)
            break;
        const char *text;
        double mean_ns = (double)tally->total_ns / (double)MAX(tally->count, 1u);
        row->cells[CALL_NAME] = value_text(
            io_call_name(tables->arena, &sums->kinds, call->syscall));
        row->cells[CALL_CALLS] = value_uint(tally->count, UNIT_COUNT);
        row->cells[CALL_ERRORS] = value_uint(call->errors, UNIT_COUNT);
        row->cells[CALL_ERRORS_BY] = errors_map(tables, call, &text);
        row->cells[CALL_ERRORS_TEXT] = value_text(text);
        row->cells[CALL_TOTAL] = io_ms(tally->total_ns);
        row->cells[CALL_TOTAL_PCT] = io_pct(tally->total_ns, whole, "no time was measured");
        row->cells[CALL_MEAN] = value_real(mean_ns, UNIT_NS);
        row->cells[CALL_MEAN_US] = value_real(mean_ns / 1e3, UNIT_NONE);
        row->cells[CALL_MAX] = value_real((double)tally->max_ns, UNIT_NS);
        row->cells[CALL_MAX_US] = value_real((double)tally->max_ns / 1e3, UNIT_NONE);
        row->cells[CALL_SHAPE] = value_text(io_shape(tables->arena, tally->buckets));
        row->cells[CALL_BYTES] = value_uint(tally->bytes, UNIT_BYTES);
        row->cells[CALL_BYTES_TEXT] = io_some(tally->bytes, UNIT_BYTES);
    }
    return table;
}

/* ---- files ---- */

enum {
    FILE_TOTAL,
    FILE_PCT,
    FILE_WALL,
    FILE_CALLS,
    FILE_ERRORS,
    FILE_READS,
    FILE_READ_BYTES,
    FILE_READ_TEXT,
    FILE_WRITES,
    FILE_WRITE_BYTES,
    FILE_WRITE_TEXT,
    FILE_COPIES,
    FILE_COPY_BYTES,
    FILE_MEAN,
    FILE_MEAN_TEXT,
    FILE_SIZES,
    FILE_SIZES_SHAPE,
    FILE_LATENCY,
    FILE_P50,
    FILE_P99,
    FILE_MAX,
    FILE_SHAPE,
    FILE_SEQUENTIAL,
    FILE_SYNCS,
    FILE_SYNC_MS,
    FILE_SYNC_WRITES,
    FILE_SYNC_WRITE_MS,
    FILE_DIRECT,
    FILE_MISSED,
    FILE_MISSED_BYTES,
    FILE_FAULTS,
    FILE_OPENS,
    FILE_STATS,
    FILE_OBJECTS,
    FILE_SIZE,
    FILE_TIMES,
    FILE_TEMPORARY,
    FILE_IDLE,
    FILE_IDLE_MS,
    FILE_KIND,
    FILE_NAME,
    FILE_REMARKS,
    FILE_WHERE,
    FILE_STACK,
    FILE_COLUMNS
};

static const struct io_column file_columns[FILE_COLUMNS] = {
    [FILE_TOTAL] = {{"total_ms", "time", SHOW_ALWAYS, true, false}, true},
    [FILE_PCT] = {{"pct", "%", SHOW_ALWAYS, true, false}, true},
    [FILE_WALL] = {{"wall_pct", "of wall", SHOW_ALWAYS, true, false}, false},
    [FILE_CALLS] = {{"calls", "calls", SHOW_ALWAYS, true, false}, true},
    [FILE_ERRORS] = {{"errors", "errors", SHOW_MACHINE, true, false}, false},
    [FILE_READS] = {{"reads", "reads", SHOW_MACHINE, true, false}, false},
    [FILE_READ_BYTES] = {{"read_bytes", "read", SHOW_MACHINE, true, false}, false},
    [FILE_READ_TEXT] = {{"read", "read", SHOW_PEOPLE, true, false}, true},
    [FILE_WRITES] = {{"writes", "writes", SHOW_MACHINE, true, false}, false},
    [FILE_WRITE_BYTES] = {{"write_bytes", "written", SHOW_MACHINE, true, false}, false},
    [FILE_WRITE_TEXT] = {{"written", "written", SHOW_PEOPLE, true, false}, true},
    [FILE_COPIES] = {{"copies", "copies", SHOW_MACHINE, true, false}, false},
    [FILE_COPY_BYTES] = {{"copy_bytes", "copied", SHOW_MACHINE, true, false}, false},
    [FILE_MEAN] = {{"mean_bytes", "mean size", SHOW_MACHINE, true, false}, false},
    [FILE_MEAN_TEXT] = {{"mean", "mean size", SHOW_PEOPLE, true, false}, false},
    [FILE_SIZES] = {{"sizes", "sizes", SHOW_MACHINE, false, false}, false},
    [FILE_SIZES_SHAPE] = {{"sizes_shape", IO_SIZES_TITLE, SHOW_PEOPLE, false, false}, false},
    [FILE_LATENCY] = {{"latency", "latency", SHOW_MACHINE, false, false}, false},
    [FILE_P50] = {{"p50", "p50", SHOW_PEOPLE, true, false}, true},
    [FILE_P99] = {{"p99", "p99", SHOW_PEOPLE, true, false}, true},
    [FILE_MAX] = {{"max", "max", SHOW_PEOPLE, true, false}, true},
    [FILE_SHAPE] = {{"shape", WAIT_SHAPE_TITLE, SHOW_PEOPLE, false, false}, false},
    [FILE_SEQUENTIAL] = {{"sequential_pct", "in order", SHOW_MACHINE, true, false}, false},
    [FILE_SYNCS] = {{"syncs", "syncs", SHOW_MACHINE, true, false}, false},
    [FILE_SYNC_MS] = {{"sync_ms", "in syncs", SHOW_MACHINE, true, false}, false},
    [FILE_SYNC_WRITES] = {{"sync_writes", "O_SYNC writes", SHOW_MACHINE, true, false}, false},
    [FILE_SYNC_WRITE_MS] = {{"sync_write_ms", "in those", SHOW_MACHINE, true, false}, false},
    [FILE_DIRECT] = {{"direct", "O_DIRECT", SHOW_MACHINE, true, false}, false},
    [FILE_MISSED] = {{"missed", "missed", SHOW_MACHINE, true, false}, false},
    [FILE_MISSED_BYTES] = {{"missed_bytes", "from disk", SHOW_MACHINE, true, false}, false},
    [FILE_FAULTS] = {{"faults", "faults", SHOW_MACHINE, true, false}, false},
    [FILE_OPENS] = {{"opens", "opens", SHOW_MACHINE, true, false}, false},
    [FILE_STATS] = {{"stats", "stats", SHOW_MACHINE, true, false}, false},
    [FILE_OBJECTS] = {{"objects", "objects", SHOW_MACHINE, true, false}, false},
    [FILE_SIZE] = {{"size_bytes", "size", SHOW_MACHINE, true, false}, false},
    [FILE_TIMES] = {{"read_times", "read times", SHOW_MACHINE, true, false}, false},
    [FILE_TEMPORARY] = {{"temporary", "temporary", SHOW_MACHINE, false, false}, false},
    [FILE_IDLE] = {{"idle_calls", "idle", SHOW_MACHINE, true, false}, false},
    [FILE_IDLE_MS] = {{"idle_ms", "idle", SHOW_MACHINE, true, false}, false},
    [FILE_KIND] = {{"kind", "kind", SHOW_MACHINE, false, false}, false},
    [FILE_NAME] = {{"name", "file", SHOW_ALWAYS, false, true}, true},
    [FILE_REMARKS] = {{"remarks", "remarks", SHOW_PEOPLE, false, true}, true},
    [FILE_WHERE] = {{"where", "where", SHOW_ALWAYS, false, true}, false},
    [FILE_STACK] = {{"stack", "stack", SHOW_MACHINE, false, false}, false},
};

static const char *kind_name(enum object_kind kind)
{
    static const char *const names[] = {
        [OBJECT_FILE] = "file",
        [OBJECT_DIRECTORY] = "directory",
        [OBJECT_BLOCK_DEVICE] = "block device",
        [OBJECT_CHAR_DEVICE] = "character device",
        [OBJECT_PIPE] = "pipe",
        [OBJECT_EVENT] = "eventfd",
        [OBJECT_TIMER] = "timerfd",
        [OBJECT_POLL_SET] = "epoll",
    };
    bool known = (size_t)kind < ARRAY_SIZE(names) && names[kind];
    return known ? names[kind] : "other";
}

struct remarks {
    struct arena *arena;
    const char *text;
};

static void remark(struct remarks *remarks, const char *text)
{
    remarks->text = arena_printf(remarks->arena, "%s%s%s", remarks->text,
                                 *remarks->text ? ", " : "", text);
}

static const char *amount(struct arena *arena, double number, enum unit unit)
{
    char text[48];
    return arena_dup(arena, units_format(number, unit, text, sizeof(text)));
}

/* What is unusual about a file in a few words; the rest is in JSON. */
static const char *file_remarks(const struct io_tables *tables, const struct io_file *file)
{
    struct arena *arena = tables->arena;
    struct remarks remarks = {arena, ""};
    const struct call_tally *tally = &file->tally;
    uint64_t random = tally->placed - tally->sequential;
    if (file->syncs.calls > 0)
        remark(&remarks, arena_printf(arena, "%s sync%s %s",
                                      amount(arena, (double)file->syncs.calls, UNIT_COUNT),
                                      file->syncs.calls == 1 ? "" : "s",
                                      amount(arena, (double)file->syncs.ns, UNIT_NS)));
    if (file->sync_writes.calls > 0)
        remark(&remarks, arena_printf(arena, "%s synchronous write%s %s",
                                      amount(arena, (double)file->sync_writes.calls, UNIT_COUNT),
                                      file->sync_writes.calls == 1 ? "" : "s",
                                      amount(arena, (double)file->sync_writes.ns, UNIT_NS)));
    if (tally->placed >= PLACES_MIN && random * 2 > tally->placed)
        remark(&remarks, arena_printf(arena, "%.0f%% random",
                                      100.0 * (double)random / (double)tally->placed));
    if (tally->missed_bytes > 0)
        remark(&remarks, arena_printf(arena, "%s from disk",
                                      amount(arena, (double)tally->missed_bytes, UNIT_BYTES)));
    if (file->faults.calls > 0)
        remark(&remarks, arena_printf(arena, "%s page fault%s",
                                      amount(arena, (double)file->faults.calls, UNIT_COUNT),
                                      file->faults.calls == 1 ? "" : "s"));
    if (file->size_bytes != IO_FACT_UNKNOWN && file->size_bytes > 0 && file->objects == 1 &&
        file->reads.bytes >= 2 * file->size_bytes)
        remark(&remarks, arena_printf(arena, "read %.3g times",
                                      (double)file->reads.bytes / (double)file->size_bytes));
    if (file->opens > 1)
        remark(&remarks, arena_printf(arena, "opened %s times",
                                      amount(arena, (double)file->opens, UNIT_COUNT)));
    if (file->objects > 1)
        remark(&remarks,
               arena_printf(arena, "%s of this name", amount(arena, file->objects, UNIT_COUNT)));
    if (file->created && file->removed)
        remark(&remarks, "temporary");
    if (file->errors > 0)
        remark(&remarks,
               arena_printf(arena, "%s error%s", amount(arena, (double)file->errors, UNIT_COUNT),
                            file->errors == 1 ? "" : "s"));
    return remarks.text;
}

static void file_moves(const struct io_tables *tables, const struct io_file *file,
                       struct value *cells)
{
    const struct call_tally *tally = &file->tally;
    uint64_t moving = file->reads.calls + file->writes.calls + file->copies.calls;
    uint64_t moved = file->reads.bytes + file->writes.bytes + file->copies.bytes;
    struct value none = value_na("nothing was read or written");
    cells[FILE_READS] = value_uint(file->reads.calls, UNIT_COUNT);
    cells[FILE_READ_BYTES] = value_uint(file->reads.bytes, UNIT_BYTES);
    cells[FILE_READ_TEXT] = io_some(file->reads.bytes, UNIT_BYTES);
    cells[FILE_WRITES] = value_uint(file->writes.calls, UNIT_COUNT);
    cells[FILE_WRITE_BYTES] = value_uint(file->writes.bytes, UNIT_BYTES);
    cells[FILE_WRITE_TEXT] = io_some(file->writes.bytes, UNIT_BYTES);
    cells[FILE_COPIES] = value_uint(file->copies.calls, UNIT_COUNT);
    cells[FILE_COPY_BYTES] = value_uint(file->copies.bytes, UNIT_BYTES);
    cells[FILE_MEAN] = moving > 0 ? value_real((double)moved / (double)moving, UNIT_BYTES) : none;
    cells[FILE_MEAN_TEXT] = moving > 0 ? cells[FILE_MEAN] : value_text("");
    cells[FILE_SIZES] = io_sizes(tables->arena, tally->sizes);
    cells[FILE_SIZES_SHAPE] = value_text(io_sizes_shape(tables->arena, tally->sizes));
    cells[FILE_SEQUENTIAL] = io_pct(tally->sequential, tally->placed,
                                    tables->sums->placed ? "the place of no call is known"
                                                         : "places in files were not recorded");
    cells[FILE_DIRECT] = value_uint(file->direct, UNIT_COUNT);
    cells[FILE_MISSED] = tables->cache_na ? value_na(tables->cache_na)
                                          : value_uint(tally->missed, UNIT_COUNT);
    cells[FILE_MISSED_BYTES] = tables->cache_na ? value_na(tables->cache_na)
                                                : value_uint(tally->missed_bytes, UNIT_BYTES);
}

static void file_counts(const struct io_file *file, struct value *cells)
{
    bool sized = file->size_bytes != IO_FACT_UNKNOWN;
    cells[FILE_ERRORS] = value_uint(file->errors, UNIT_COUNT);
    cells[FILE_SYNCS] = value_uint(file->syncs.calls, UNIT_COUNT);
    cells[FILE_SYNC_MS] = io_ms(file->syncs.ns);
    cells[FILE_SYNC_WRITES] = value_uint(file->sync_writes.calls, UNIT_COUNT);
    cells[FILE_SYNC_WRITE_MS] = io_ms(file->sync_writes.ns);
    cells[FILE_FAULTS] = value_uint(file->faults.calls, UNIT_COUNT);
    cells[FILE_OPENS] = value_uint(file->opens, UNIT_COUNT);
    cells[FILE_STATS] = value_uint(file->stats, UNIT_COUNT);
    cells[FILE_OBJECTS] = value_uint(file->objects, UNIT_COUNT);
    cells[FILE_SIZE] = sized ? value_uint(file->size_bytes, UNIT_BYTES)
                             : value_na("the file was not looked at");
    cells[FILE_TIMES] = file->objects > 1 ? value_na("several files had this name")
                        : !sized          ? value_na("its size is not known")
                        : file->size_bytes == 0
                            ? value_na("it is empty")
                            : value_real((double)file->reads.bytes / (double)file->size_bytes,
                                         UNIT_NONE);
    cells[FILE_TEMPORARY] = value_bool(file->created && file->removed);
    cells[FILE_IDLE] = value_uint(file->idle_calls, UNIT_COUNT);
    cells[FILE_IDLE_MS] = io_ms(file->idle_ns);
}

static void file_cells(const struct io_tables *tables, const struct io_file *file,
                       struct value *cells)
{
    const struct io_sums *sums = tables->sums;
    const struct call_tally *tally = &file->tally;
    cells[FILE_TOTAL] = io_ms(tally->total_ns);
    cells[FILE_PCT] = io_pct(tally->total_ns, sums->busy_ns, "no time was measured");
    cells[FILE_WALL] = io_pct(tally->total_ns, sums->wall_ns, "no time has passed");
    cells[FILE_CALLS] = value_uint(tally->count, UNIT_COUNT);
    file_moves(tables, file, cells);
    file_counts(file, cells);
    cells[FILE_LATENCY] = io_latency(tables->arena, tally->buckets, tally->count, tally->max_ns);
    cells[FILE_P50] = io_p(tally->buckets, tally->count, tally->max_ns, 0.5);
    cells[FILE_P99] = io_p(tally->buckets, tally->count, tally->max_ns, 0.99);
    cells[FILE_MAX] = io_ms(tally->max_ns);
    cells[FILE_SHAPE] = value_text(io_shape(tables->arena, tally->buckets));
    cells[FILE_KIND] = value_text(kind_name(sums->io->objects[file->object].kind));
    cells[FILE_NAME] = value_str(io_object_name(tables, file->object));
    cells[FILE_REMARKS] = value_text(file_remarks(tables, file));
    cells[FILE_WHERE] = io_where(tables, file->stack);
    cells[FILE_STACK] = io_stack(tables, file->stack);
}

size_t io_tables_file_count(const struct io_tables *tables)
{
    size_t count = 0;
    for (size_t i = 0; i < tables->sums->file_count; i++)
        count += tables->sums->files[i].tally.count > 0;
    return count;
}

struct value io_tables_files(const struct io_tables *tables)
{
    struct value table = io_table_begin(tables, file_columns, FILE_COLUMNS, "no file was touched");
    for (size_t i = 0; i < tables->sums->file_count; i++) {
        struct table_row *row = io_table_row(tables, &table, i);
        if (!row)
            break;
        if (tables->sums->files[i].tally.count == 0)
            row->show = SHOW_MACHINE; /* only waited for: nothing that people are shown */
        file_cells(tables, &tables->sums->files[i], row->cells);
    }
    return table;
}
