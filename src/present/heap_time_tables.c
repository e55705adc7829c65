/* Sizes, lives, time, mappings and notes as values; see heap_tables.h. */
#include "present/heap_tables.h"

#include "present/plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { BAR_COLUMNS = 40, PLOT_MOMENTS_MIN = 4 };

static const char *bar(const struct heap_tables *tables, uint64_t count, uint64_t most)
{
    static const char full[] = "########################################";
    size_t len = (size_t)((double)count / (double)MAX(most, 1u) * BAR_COLUMNS + 0.5);
    return arena_dup_len(tables->arena, full, count > 0 ? MAX(len, (size_t)1) : 0);
}

/* From the first bucket that has something to the last. `unit` of bucket 1 is `from`. */
static struct value histogram(const struct heap_tables *tables, const struct column *columns,
                              const uint64_t *buckets, size_t bucket_count, double from,
                              enum unit unit)
{
    struct value table = value_table(tables->arena, columns, 4);
    size_t first = bucket_count, last = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < bucket_count; i++) {
        if (buckets[i] == 0)
            continue;
        first = MIN(first, i);
        last = i;
        most = MAX(most, buckets[i]);
    }
    for (size_t i = first; i <= last && i < bucket_count; i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_real(i == 0 ? 0 : ldexp(from, (int)i - 1), unit);
        row->cells[1] = i + 1 < bucket_count ? value_real(ldexp(from, (int)i), unit)
                                             : value_text("");
        row->cells[2] = heap_tables_figure(tables, value_uint(buckets[i], UNIT_COUNT));
        row->cells[3] = value_text(bar(tables, buckets[i], most));
    }
    return table;
}

struct value heap_tables_sizes(const struct heap_tables *tables)
{
    static const struct column columns[] = {
        {"from_bytes", "from", SHOW_ALWAYS, true, false},
        {"to_bytes", "below", SHOW_ALWAYS, true, false},
        {"count", "calls", SHOW_ALWAYS, true, false},
        {"bar", "", SHOW_PEOPLE, false, false},
    };
    return histogram(tables, columns, tables->sums->sizes, HEAP_SIZE_BUCKETS, 1, UNIT_BYTES);
}

struct value heap_tables_lifetimes(const struct heap_tables *tables)
{
    static const struct column columns[] = {
        {"from_ms", "from", SHOW_ALWAYS, true, false},
        {"to_ms", "below", SHOW_ALWAYS, true, false},
        {"count", "frees", SHOW_ALWAYS, true, false},
        {"bar", "", SHOW_PEOPLE, false, false},
    };
    if (tables->sums->life_unit_ns == 0)
        return value_na("lives were not measured");
    return histogram(tables, columns, tables->sums->lives, HEAP_LIFE_BUCKETS,
                     (double)tables->sums->life_unit_ns / 1e6, UNIT_MS);
}

static uint64_t since(const struct heap_tables *tables, uint64_t time_ns)
{
    return time_ns > tables->start_ns ? time_ns - tables->start_ns : 0;
}

static struct value ms_since(const struct heap_tables *tables, uint64_t time_ns)
{
    return value_real((double)since(tables, time_ns) / 1e6, UNIT_MS);
}

static struct value pid_of(const struct heap_tables *tables, uint32_t process)
{
    const struct profile *profile = &tables->sums->heap->profile;
    return process < profile->process_count ? value_uint(profile->processes[process].pid, UNIT_NONE)
                                            : value_na("no such process");
}

struct value heap_tables_timeline(const struct heap_tables *tables)
{
    static const struct column columns[] = {
        {"time_ms", "at", SHOW_ALWAYS, true, false},
        {"pid", "pid", SHOW_ALWAYS, true, false},
        {"live_bytes", "heap", SHOW_ALWAYS, true, false},
        {"rss_bytes", "resident", SHOW_ALWAYS, true, false},
    };
    const struct heap *heap = tables->sums->heap;
    struct value table = value_table(tables->arena, columns, ARRAY_SIZE(columns));
    /* Evenly spread, the last one included, where there are more than fit. */
    size_t people = tables->limit == 0 ? heap->moment_count : tables->limit;
    size_t most = MIN(heap->moment_count, MAX(people, tables->machine_rows));
    for (size_t i = 0; i < most; i++) {
        size_t at = most > 1 ? i * (heap->moment_count - 1) / (most - 1) : heap->moment_count - 1;
        size_t step = people > 0 ? (most + people - 1) / people : 1;
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->show = i % step == 0 || i + 1 == most ? SHOW_ALWAYS : SHOW_MACHINE;
        row->cells[0] = ms_since(tables, heap->moments[at].time_ns);
        row->cells[1] = pid_of(tables, heap->moments[at].process);
        row->cells[2] = heap_tables_figure(tables,
                                           value_uint(heap->moments[at].live_bytes, UNIT_BYTES));
        row->cells[3] = heap->moments[at].rss_bytes > 0
                            ? value_uint(heap->moments[at].rss_bytes, UNIT_BYTES)
                            : value_na("it was not to be had");
    }
    return table;
}

struct value heap_tables_plot(const struct heap_tables *tables)
{
    const struct heap *heap = tables->sums->heap;
    size_t count = 0, all = heap->moment_count + 1;
    uint64_t *times = arena_alloc(tables->arena, all * sizeof(*times));
    double *live = arena_alloc(tables->arena, all * sizeof(*live));
    double *rss = arena_alloc(tables->arena, all * sizeof(*rss));
    if (!times || !live || !rss)
        return value_list(tables->arena);
    for (size_t i = 0; i < heap->moment_count; i++) {
        const struct heap_moment *moment = &heap->moments[i];
        if (moment->process != tables->sums->peak_process)
            continue;
        times[count] = since(tables, moment->time_ns);
        live[count] = (double)moment->live_bytes;
        rss[count++] = moment->rss_bytes > 0 ? (double)moment->rss_bytes : NAN;
    }
    if (count < PLOT_MOMENTS_MIN)
        return value_list(tables->arena);
    return plot_over_time(tables->arena, times, live, rss, count, UNIT_BYTES);
}

struct value heap_tables_snapshots(const struct heap_tables *tables)
{
    static const struct column columns[] = {
        {"number", "number", SHOW_ALWAYS, true, false},
        {"time_ms", "at", SHOW_ALWAYS, true, false},
        {"pid", "pid", SHOW_ALWAYS, true, false},
        {"why", "taken by", SHOW_ALWAYS, false, false},
        {"count", "pieces", SHOW_ALWAYS, true, false},
        {"bytes", "live", SHOW_ALWAYS, true, false},
        {"stacks", "stacks", SHOW_ALWAYS, true, false},
    };
    const struct heap *heap = tables->sums->heap;
    struct value table = value_table(tables->arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 1; i < heap->snapshot_count; i++) {
        const struct heap_snapshot_rows *snapshot = &heap->snapshots[i];
        bool people = tables->limit == 0 || i <= tables->limit;
        struct table_row *row = people || i <= tables->machine_rows ? table_add(&table) : NULL;
        if (!row)
            break;
        int64_t pieces = 0, bytes = 0;
        for (size_t r = 0; r < snapshot->count; r++) {
            pieces += snapshot->rows[r].count;
            bytes += snapshot->rows[r].bytes;
        }
        row->show = people ? SHOW_ALWAYS : SHOW_MACHINE;
        row->cells[0] = value_uint(i, UNIT_NONE);
        row->cells[1] = ms_since(tables, snapshot->info.time_ns);
        row->cells[2] = pid_of(tables, snapshot->info.process);
        row->cells[3] = value_text(snapshot->info.why == HEAP_SNAPSHOT_SIGNAL ? "signal" : "timer");
        row->cells[4] = heap_tables_figure(tables, value_int(pieces, UNIT_COUNT));
        row->cells[5] = heap_tables_figure(tables, value_int(bytes, UNIT_BYTES));
        row->cells[6] = value_uint(snapshot->count, UNIT_COUNT);
    }
    return table;
}

static int by_bytes(const void *left, const void *right)
{
    const struct heap_snapshot_row *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->stack > b->stack) - (a->stack < b->stack);
}

static const struct column at_columns[] = {
    {"share", "%", SHOW_PEOPLE, true, false},      {"bytes", "bytes", SHOW_ALWAYS, true, false},
    {"count", "pieces", SHOW_ALWAYS, true, false}, {"stack_id", "stack", SHOW_MACHINE, true, false},
    {"where", "where", SHOW_ALWAYS, false, true},  {"frames", "frames", SHOW_MACHINE, false, false},
};

int heap_tables_snapshot(const struct heap_tables *tables, size_t number, struct value *ret)
{
    const struct heap_snapshot_rows *snapshot = &tables->sums->heap->snapshots[number];
    struct heap_snapshot_row *rows = arena_alloc(tables->arena,
                                                 (snapshot->count + 1) * sizeof(*rows));
    struct value table = value_table(tables->arena, at_columns, ARRAY_SIZE(at_columns));
    int64_t all = 0;
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < snapshot->count; i++) {
        rows[i] = snapshot->rows[i];
        all += rows[i].bytes;
    }
    qsort(rows, snapshot->count, sizeof(*rows), by_bytes);
    for (size_t i = 0; i < snapshot->count; i++) {
        bool people = tables->limit == 0 || i < tables->limit;
        struct table_row *row = people || i < tables->machine_rows ? table_add(&table) : NULL;
        if (!row)
            break;
        row->show = people ? SHOW_ALWAYS : SHOW_MACHINE;
        double share = all > 0 ? 100.0 * (double)rows[i].bytes / (double)all : 0;
        row->cells[0] = all > 0 ? heap_tables_figure(tables, value_real(share, UNIT_PERCENT))
                                : value_text("");
        row->cells[1] = heap_tables_figure(tables, value_int(rows[i].bytes, UNIT_BYTES));
        row->cells[2] = heap_tables_figure(tables, value_int(rows[i].count, UNIT_COUNT));
        row->cells[3] = value_uint(rows[i].stack, UNIT_NONE);
        row->cells[4] = value_text(heap_where(tables->arena, &tables->sums->owners, rows[i].stack));
        row->cells[5] = tables->machine_rows > 0 ? heap_tables_frames(tables, rows[i].stack)
                                                 : value_list(tables->arena);
    }
    *ret = table;
    return 0;
}

struct value heap_tables_mapped(const struct heap_tables *tables)
{
    static const struct column columns[] = {
        {"mapped", "mapped", SHOW_ALWAYS, true, false},
        {"mapped_bytes", "bytes", SHOW_ALWAYS, true, false},
        {"unmapped", "unmapped", SHOW_ALWAYS, true, false},
        {"unmapped_bytes", "bytes", SHOW_ALWAYS, true, false},
        {"where", "where", SHOW_ALWAYS, false, true},
    };
    const struct heap_sums *sums = tables->sums;
    struct value table = value_table(tables->arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < sums->mapped_count; i++) {
        bool people = tables->limit == 0 || i < tables->limit;
        struct table_row *row = people || i < tables->machine_rows ? table_add(&table) : NULL;
        if (!row)
            break;
        const struct heap_mapped *mapped = &sums->mapped[i];
        row->show = people ? SHOW_ALWAYS : SHOW_MACHINE;
        row->cells[0] = value_uint(mapped->mapped, UNIT_COUNT);
        row->cells[1] = value_uint(mapped->mapped_bytes, UNIT_BYTES);
        row->cells[2] = value_uint(mapped->unmapped, UNIT_COUNT);
        row->cells[3] = value_uint(mapped->unmapped_bytes, UNIT_BYTES);
        row->cells[4] = value_text(heap_where(tables->arena, &sums->owners, mapped->stack));
    }
    return table;
}

struct value heap_tables_notes(const struct heap_tables *tables)
{
    static const struct column columns[] = {
        {"kind", "kind", SHOW_MACHINE, false, false},
        {"text", "what", SHOW_ALWAYS, false, true},
        {"count", "count", SHOW_MACHINE, true, false},
        {"bytes", "bytes", SHOW_MACHINE, true, false},
        {"where", "where", SHOW_ALWAYS, false, true},
    };
    struct value table = value_table(tables->arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < tables->notes->count; i++) {
        const struct heap_note *note = &tables->notes->notes[i];
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_text(heap_note_name(note->kind));
        row->cells[1] = value_text(note->text);
        row->cells[2] = value_uint(note->count, UNIT_COUNT);
        row->cells[3] = value_uint(note->bytes, UNIT_BYTES);
        row->cells[4] = value_text(
            note->stack ? heap_where(tables->arena, &tables->sums->owners, note->stack) : "");
    }
    return table;
}
