/* Sums as tables: one set of columns, of which each view shows people its own; see
 * heap_tables.h. */
#include "present/heap_tables.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define IN(view) (1u << HEAP_VIEW_##view)
#define PER(per) (1u << HEAP_PER_##per)

enum {
    FRAMES_MAX = 512,
    SITES_ONLY = PER(STACK),
    PLACES = PER(STACK) | PER(FUNCTION),
    EVERY = PER(STACK) | PER(FUNCTION) | PER(THREAD) | PER(IMAGE) | PER(PROCESS),
    NOT_THREADS = PER(STACK) | PER(FUNCTION) | PER(IMAGE) | PER(PROCESS),
    ALL_VIEWS = (1u << HEAP_VIEWS) - 1,
};

enum {
    COL_SHARE,
    COL_PEAK_BYTES,
    COL_PEAK_COUNT,
    COL_LEAKED_BYTES,
    COL_LEAKED_COUNT,
    COL_NET_BYTES,
    COL_ALLOCATIONS,
    COL_ALLOCATED_BYTES,
    COL_INTERVAL,
    COL_PLUS_MINUS,
    COL_CALLS_RANGE,
    COL_LEAKED_RANGE,
    COL_FREES,
    COL_FREED_BYTES,
    COL_TEMPORARY,
    COL_TEMPORARY_SHARE,
    COL_TEMPORARY_BYTES,
    COL_MEAN_BYTES,
    COL_MAX_BYTES,
    COL_MEAN_LIFE_MS,
    COL_LIFE,
    COL_GROWN,
    COL_GROWN_BYTES,
    COL_MOVED,
    COL_CHAIN_MAX,
    COL_CHAIN,
    COL_GROWING,
    COL_GROWING_TEXT,
    COL_GROWTH_BYTES,
    COL_SAMPLES,
    COL_STACKS,
    COL_THREADS,
    COL_STACK_ID,
    COL_PID,
    COL_TID,
    COL_THREAD,
    COL_PROCESS,
    COL_PEAK_MS,
    COL_ENTRY,
    COL_FUNCTION,
    COL_NAME,
    COL_WHERE,
    COL_PLACE,
    COL_FILE,
    COL_LINE,
    COL_IMAGE,
    COL_FRAMES,
    COLUMNS
};

/* A column, the tables that have it, and the views that show it to people. */
static const struct heap_column {
    struct column column;
    unsigned pers, views;
} sum_columns[COLUMNS] = {
    [COL_SHARE] = {{"share", "%", SHOW_PEOPLE, true, false}, EVERY, ALL_VIEWS},
    [COL_PEAK_BYTES] = {{"peak_bytes", "at peak", SHOW_ALWAYS, true, false},
                        NOT_THREADS,
                        IN(FUNCTIONS) | IN(PEAK) | IN(IMAGES) | IN(PROCESSES)},
    [COL_PEAK_COUNT] = {{"peak_count", "pieces", SHOW_ALWAYS, true, false},
                        NOT_THREADS,
                        IN(FUNCTIONS) | IN(PEAK)},
    [COL_LEAKED_BYTES] = {{"leaked_bytes", "not freed", SHOW_ALWAYS, true, false},
                          NOT_THREADS,
                          IN(FUNCTIONS) | IN(LEAKS) | IN(IMAGES) | IN(PROCESSES)},
    [COL_LEAKED_COUNT] = {{"leaked_count", "pieces", SHOW_ALWAYS, true, false},
                          NOT_THREADS,
                          IN(LEAKS)},
    [COL_NET_BYTES] = {{"net_bytes", "net", SHOW_ALWAYS, true, false}, PER(THREAD), IN(THREADS)},
    [COL_ALLOCATIONS] = {{"allocations", "calls", SHOW_ALWAYS, true, false}, EVERY, ALL_VIEWS},
    [COL_ALLOCATED_BYTES] = {{"allocated_bytes", "allocated", SHOW_ALWAYS, true, false},
                             EVERY,
                             ALL_VIEWS},
    [COL_INTERVAL] = {{"interval", "95%", SHOW_PEOPLE, true, false}, EVERY, ALL_VIEWS},
    [COL_PLUS_MINUS] = {{"plus_minus_bytes", "95%", SHOW_MACHINE, true, false}, EVERY, 0},
    [COL_CALLS_RANGE] = {{"allocations_ci95", "95%", SHOW_MACHINE, true, false}, EVERY, 0},
    [COL_LEAKED_RANGE] = {{"leaked_bytes_ci95", "95%", SHOW_MACHINE, true, false}, NOT_THREADS, 0},
    [COL_FREES] = {{"frees", "frees", SHOW_ALWAYS, true, false}, EVERY, IN(THREADS)},
    [COL_FREED_BYTES] = {{"freed_bytes", "freed", SHOW_ALWAYS, true, false}, EVERY, IN(THREADS)},
    [COL_TEMPORARY] = {{"temporary", "temporary", SHOW_ALWAYS, true, false}, EVERY, IN(TEMPORARY)},
    [COL_TEMPORARY_SHARE] = {{"temporary_share", "temporary %", SHOW_PEOPLE, true, false},
                             EVERY,
                             IN(FUNCTIONS) | IN(CHURN) | IN(TEMPORARY) | IN(THREADS) | IN(IMAGES) |
                                 IN(PROCESSES)},
    [COL_TEMPORARY_BYTES] = {{"temporary_bytes", "bytes", SHOW_ALWAYS, true, false},
                             EVERY,
                             IN(TEMPORARY)},
    [COL_MEAN_BYTES] = {{"mean_bytes", "mean size", SHOW_ALWAYS, true, false},
                        EVERY,
                        IN(CHURN) | IN(TEMPORARY)},
    [COL_MAX_BYTES] = {{"max_bytes", "largest", SHOW_ALWAYS, true, false},
                       EVERY,
                       IN(CHURN) | IN(GROWTH)},
    [COL_MEAN_LIFE_MS] = {{"mean_life_ms", "mean life", SHOW_MACHINE, true, false}, EVERY, 0},
    [COL_LIFE] = {{"life", "mean life", SHOW_PEOPLE, true, false}, EVERY, IN(CHURN)},
    [COL_GROWN] = {{"grown", "grown", SHOW_ALWAYS, true, false}, EVERY, IN(GROWTH)},
    [COL_GROWN_BYTES] = {{"grown_bytes", "bytes added", SHOW_ALWAYS, true, false},
                         EVERY,
                         IN(GROWTH)},
    [COL_MOVED] = {{"moved", "moved", SHOW_ALWAYS, true, false}, EVERY, IN(GROWTH)},
    [COL_CHAIN_MAX] = {{"chain_max", "longest chain", SHOW_MACHINE, true, false}, EVERY, 0},
    [COL_CHAIN] = {{"chain", "longest chain", SHOW_PEOPLE, true, false}, EVERY, IN(GROWTH)},
    [COL_GROWING] = {{"growing", "growing", SHOW_MACHINE, false, false}, PLACES, 0},
    [COL_GROWING_TEXT] = {{"rise", "between snapshots", SHOW_PEOPLE, true, false},
                          PLACES,
                          IN(LEAKS)},
    [COL_GROWTH_BYTES] = {{"growth_bytes", "growth", SHOW_MACHINE, true, false}, PLACES, 0},
    [COL_SAMPLES] = {{"samples", "samples", SHOW_MACHINE, true, false}, EVERY, 0},
    [COL_STACKS] = {{"stacks", "stacks", SHOW_ALWAYS, true, false},
                    EVERY & ~PER(STACK),
                    IN(FUNCTIONS) | IN(IMAGES) | IN(PROCESSES)},
    [COL_THREADS] = {{"threads", "threads", SHOW_ALWAYS, true, false},
                     NOT_THREADS,
                     IN(IMAGES) | IN(PROCESSES)},
    [COL_STACK_ID] = {{"stack_id", "stack", SHOW_MACHINE, true, false}, PLACES, 0},
    [COL_PID] = {{"pid", "pid", SHOW_ALWAYS, true, false},
                 PER(THREAD) | PER(PROCESS),
                 IN(THREADS) | IN(PROCESSES)},
    [COL_TID] = {{"tid", "tid", SHOW_ALWAYS, true, false}, PER(THREAD), IN(THREADS)},
    [COL_THREAD] = {{"thread", "thread", SHOW_ALWAYS, false, true}, PER(THREAD), IN(THREADS)},
    [COL_PROCESS] = {{"process", "process", SHOW_ALWAYS, false, true}, PER(PROCESS), IN(PROCESSES)},
    [COL_PEAK_MS] = {{"peak_ms", "peak at", SHOW_ALWAYS, true, false}, PER(PROCESS), IN(PROCESSES)},
    [COL_ENTRY] = {{"entry", "through", SHOW_ALWAYS, false, false},
                   SITES_ONLY,
                   IN(CHURN) | IN(GROWTH) | IN(TEMPORARY)},
    [COL_FUNCTION] = {{"function", "function", SHOW_MACHINE, false, false}, PLACES, 0},
    [COL_NAME] = {{"name", "function", SHOW_PEOPLE, false, true}, PLACES, IN(FUNCTIONS)},
    [COL_WHERE] = {{"where", "where", SHOW_ALWAYS, false, true}, SITES_ONLY, ALL_VIEWS},
    [COL_PLACE] = {{"place", "line", SHOW_PEOPLE, false, true}, PLACES, ALL_VIEWS},
    [COL_FILE] = {{"file", "file", SHOW_MACHINE, false, false}, PLACES, 0},
    [COL_LINE] = {{"line", "line", SHOW_MACHINE, true, false}, PLACES, 0},
    [COL_IMAGE] = {{"image", "image", SHOW_ALWAYS, false, true},
                   PLACES | PER(IMAGE),
                   IN(FUNCTIONS) | IN(IMAGES)},
    [COL_FRAMES] = {{"frames", "frames", SHOW_MACHINE, false, false}, SITES_ONLY, 0},
};

enum heap_per heap_view_per(enum heap_view view)
{
    static const enum heap_per pers[HEAP_VIEWS] = {
        [HEAP_VIEW_FUNCTIONS] = HEAP_PER_FUNCTION,
        [HEAP_VIEW_THREADS] = HEAP_PER_THREAD,
        [HEAP_VIEW_IMAGES] = HEAP_PER_IMAGE,
        [HEAP_VIEW_PROCESSES] = HEAP_PER_PROCESS,
    };
    return pers[view]; /* the others: stacks */
}

enum heap_rank heap_view_rank(enum heap_view view)
{
    static const enum heap_rank ranks[HEAP_VIEWS] = {
        [HEAP_VIEW_LEAKS] = HEAP_RANK_LEAK,          [HEAP_VIEW_CHURN] = HEAP_RANK_CHURN,
        [HEAP_VIEW_TEMPORARY] = HEAP_RANK_TEMPORARY, [HEAP_VIEW_GROWTH] = HEAP_RANK_GROWTH,
        [HEAP_VIEW_THREADS] = HEAP_RANK_BYTES,
    };
    return ranks[view]; /* the others: the peak */
}

static struct value bytes(int64_t number)
{
    return value_int(number, UNIT_BYTES);
}

static struct value count(uint64_t number)
{
    return value_uint(number, UNIT_COUNT);
}

static struct value share(double part, double whole)
{
    return whole > 0 ? value_real(100 * part / whole, UNIT_PERCENT) : value_text("");
}

/* Of process rows each has a peak of its own, and none is part of another. */
static struct value view_share(const struct heap_tables *tables, enum heap_view view,
                               const struct heap_figures *figures)
{
    enum heap_rank rank = heap_view_rank(view);
    if (view == HEAP_VIEW_PROCESSES)
        return value_text("");
    return heap_tables_figure(
        tables, share(heap_rank_value(figures, rank), heap_rank_value(&tables->sums->all, rank)));
}

static struct value life_ms(const struct heap_tables *tables, const struct heap_figures *figures)
{
    if (tables->sums->life_unit_ns == 0)
        return value_na("lives were not measured");
    if (figures->frees == 0)
        return value_na("nothing of it was freed");
    return value_real((double)figures->lived_ns / (double)figures->frees / 1e6, UNIT_MS);
}

static struct value plus_minus(const struct heap_tables *tables, const struct heap_figures *figures)
{
    return tables->sampled ? value_real(ceil(heap_plus_minus(figures)), UNIT_BYTES) : value_null();
}

static struct value interval(const struct heap_tables *tables, const struct heap_figures *figures)
{
    char text[48];
    if (!tables->sampled)
        return value_text("");
    units_format(heap_plus_minus(figures), UNIT_BYTES, text, sizeof(text));
    return value_text(arena_printf(tables->arena, "±%s", text));
}

struct value heap_tables_range(const struct heap_tables *tables, struct interval range,
                               enum unit unit)
{
    if (!tables->sampled)
        return value_null();
    struct value list = value_list(tables->arena);
    value_append(&list, value_real(range.low, unit));
    value_append(&list, value_real(range.high, unit));
    return list;
}

static void figure_cells(const struct heap_tables *tables, const struct heap_figures *figures,
                         struct value *cells)
{
    double allocations = (double)figures->allocations;
    cells[COL_PEAK_BYTES] = tables->sums->peak_known ? bytes(figures->peak_bytes)
                                                     : value_na("the peak was not followed");
    cells[COL_PEAK_COUNT] = tables->sums->peak_known ? value_int(figures->peak_count, UNIT_COUNT)
                                                     : value_na("the peak was not followed");
    cells[COL_LEAKED_BYTES] = bytes(heap_live_bytes(figures));
    cells[COL_LEAKED_COUNT] = value_int(heap_live_count(figures), UNIT_COUNT);
    cells[COL_NET_BYTES] = bytes(heap_live_bytes(figures));
    cells[COL_ALLOCATIONS] = count(figures->allocations);
    cells[COL_ALLOCATED_BYTES] = value_uint(figures->allocated_bytes, UNIT_BYTES);
    cells[COL_INTERVAL] = interval(tables, figures);
    cells[COL_PLUS_MINUS] = plus_minus(tables, figures);
    cells[COL_CALLS_RANGE] = heap_tables_range(
        tables, heap_sure_calls(&tables->sure, figures, (int64_t)figures->allocations), UNIT_COUNT);
    cells[COL_LEAKED_RANGE] = heap_tables_range(
        tables, heap_sure_bytes(&tables->sure, figures, heap_live_bytes(figures)), UNIT_BYTES);
    cells[COL_FREES] = count(figures->frees);
    cells[COL_FREED_BYTES] = value_uint(figures->freed_bytes, UNIT_BYTES);
    cells[COL_TEMPORARY] = count(figures->temporary);
    cells[COL_TEMPORARY_SHARE] = figures->temporary > 0
                                     ? share((double)figures->temporary, allocations)
                                     : value_text("");
    cells[COL_TEMPORARY_BYTES] = value_uint(figures->temporary_bytes, UNIT_BYTES);
    cells[COL_MEAN_BYTES] = allocations > 0
                                ? value_real((double)figures->allocated_bytes / allocations,
                                             UNIT_BYTES)
                                : value_na("nothing was allocated");
    cells[COL_MAX_BYTES] = value_uint(figures->size_max, UNIT_BYTES);
    cells[COL_MEAN_LIFE_MS] = cells[COL_LIFE] = life_ms(tables, figures);
    if (cells[COL_LIFE].kind == VALUE_NA)
        cells[COL_LIFE] = value_text(
            ""); /* the reason is for machines: it takes the place of rows */
    cells[COL_GROWN] = count(figures->grown);
    cells[COL_GROWN_BYTES] = value_uint(figures->grown_bytes, UNIT_BYTES);
    cells[COL_MOVED] = count(figures->moved);
    cells[COL_CHAIN_MAX] = count(figures->chain_max);
    cells[COL_CHAIN] = value_text(arena_printf(tables->arena, "%" PRIu64 "%s", figures->chain_max,
                                               figures->chain_max == HEAP_CHAIN_TOP ? "+" : ""));
    static const unsigned exact[] = {COL_INTERVAL,     COL_PLUS_MINUS, COL_CALLS_RANGE,
                                     COL_LEAKED_RANGE, COL_MAX_BYTES,  COL_CHAIN_MAX,
                                     COL_CHAIN,        COL_SAMPLES};
    cells[COL_SAMPLES] = count(figures->samples);
    for (unsigned i = 0; i < COLUMNS; i++) {
        bool is_exact = false;
        for (size_t e = 0; e < ARRAY_SIZE(exact); e++)
            is_exact |= exact[e] == i;
        cells[i] = is_exact ? cells[i] : heap_tables_figure(tables, cells[i]);
    }
}

static const char *const unrisen = "fewer than 3 snapshots of it";

static void rise_cells(const struct heap_tables *tables, const struct heap_rise *rise,
                       struct value *cells)
{
    int64_t more = rise->last_bytes - rise->first_bytes;
    char text[48];
    cells[COL_GROWING] = rise->known ? value_bool(rise->each_time) : value_na(unrisen);
    cells[COL_GROWTH_BYTES] = rise->known ? heap_tables_figure(tables, bytes(more))
                                          : value_na(unrisen);
    cells[COL_GROWING_TEXT] = value_text("");
    if (!rise->known)
        return;
    units_format(fabs((double)more), UNIT_BYTES, text, sizeof(text));
    cells[COL_GROWING_TEXT] = value_text(
        arena_printf(tables->arena, "%s%s%s%s", tables->sampled && more != 0 ? "~" : "",
                     more < 0 ? "-" : "+", text, rise->each_time ? ", at each" : ""));
}

static struct str base_name(struct str path)
{
    struct str last = path;
    while (path.len > 0)
        last = str_cut(&path, '/');
    return last;
}

static struct value image_value(const struct profile *profile, uint32_t image)
{
    struct str path = image < profile->image_count ? profile->images[image].path : STR("");
    return value_str(path.len > 0 ? base_name(path) : STR("[no image]"));
}

static struct value function_value(const struct profile *profile, uint32_t function)
{
    struct str name = function < profile->function_count ? profile->functions[function].name
                                                         : STR("");
    return value_str(name.len > 0 ? name : STR("[no stack]"));
}

/* `folded`: names for people. */
static struct value frames_value(const struct heap_tables *tables, uint32_t stack, bool folded)
{
    static const struct column columns[] = {
        {"function", "function", SHOW_ALWAYS, false, true},
        {"file", "file", SHOW_ALWAYS, false, true},
        {"line", "line", SHOW_ALWAYS, true, false},
        {"image", "image", SHOW_ALWAYS, false, false},
    };
    const struct profile *profile = &tables->sums->heap->profile;
    struct value table = value_table(tables->arena, columns, ARRAY_SIZE(columns));
    size_t rows = 0;
    for (uint32_t at = stack; at != 0 && rows < FRAMES_MAX; at = profile->stacks[at].parent) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[at].frame];
        for (uint32_t i = 0; i < frame->place_count && rows < FRAMES_MAX; i++, rows++) {
            const struct profile_place *place = &profile->places[frame->places + i];
            struct table_row *row = table_add(&table);
            if (!row)
                return table;
            struct value name = function_value(profile, place->function);
            row->cells[0] = folded ? value_text(heap_name(tables->arena, name.text)) : name;
            row->cells[1] = value_str(place->file);
            row->cells[2] = place->line > 0 ? value_uint(place->line, UNIT_NONE) : value_text("");
            row->cells[3] = value_str(base_name(profile->images[frame->image].path));
        }
    }
    return table;
}

struct value heap_tables_stack(const struct heap_tables *tables, uint32_t stack)
{
    return frames_value(tables, stack, true);
}

struct value heap_tables_frames(const struct heap_tables *tables, uint32_t stack)
{
    return frames_value(tables, stack, false);
}

static void place_cells(const struct heap_tables *tables, const struct heap_sum *sum,
                        enum heap_per per, struct value *cells)
{
    const struct profile *profile = &tables->sums->heap->profile;
    struct heap_place place = heap_place_of(&tables->sums->owners, sum->stack);
    rise_cells(tables, &sum->rise, cells);
    cells[COL_STACK_ID] = value_uint(sum->stack, UNIT_NONE);
    cells[COL_FUNCTION] = function_value(profile, place.function);
    cells[COL_NAME] = value_text(heap_name(tables->arena, cells[COL_FUNCTION].text));
    cells[COL_FILE] = value_str(place.file);
    cells[COL_LINE] = place.line > 0 ? value_uint(place.line, UNIT_NONE) : value_text("");
    cells[COL_IMAGE] = image_value(profile, place.image);
    struct str file = base_name(place.file);
    cells[COL_PLACE] = value_text(
        file.len == 0    ? ""
        : place.line > 0 ? arena_printf(tables->arena, "%.*s:%u", STR_FMT(file), place.line)
                         : arena_printf(tables->arena, "%.*s", STR_FMT(file)));
    if (per != HEAP_PER_STACK)
        return;
    cells[COL_ENTRY] = value_str(heap_entry_of(&tables->sums->owners, sum->stack));
    cells[COL_WHERE] = value_text(heap_where(tables->arena, &tables->sums->owners, sum->stack));
    cells[COL_FRAMES] = tables->machine_rows > 0 ? heap_tables_frames(tables, sum->stack)
                                                 : value_list(tables->arena);
}

static void thread_cells(const struct heap_tables *tables, uint32_t id, struct value *cells)
{
    const struct profile *profile = &tables->sums->heap->profile;
    const struct profile_thread *thread = &profile->threads[id];
    cells[COL_TID] = value_uint(thread->tid, UNIT_NONE);
    cells[COL_PID] = value_uint(profile->processes[thread->process].pid, UNIT_NONE);
    cells[COL_THREAD] = value_str(thread->name);
}

static void process_cells(const struct heap_tables *tables, uint32_t id, struct value *cells)
{
    const struct heap *heap = tables->sums->heap;
    const struct profile_process *process = &heap->profile.processes[id];
    bool known = id < heap->process_count && heap->processes[id].known;
    const struct heap_process_tally *tally = known ? &heap->processes[id].tally : NULL;
    const char *missing = "the peak was not followed";
    cells[COL_PID] = value_uint(process->pid, UNIT_NONE);
    cells[COL_PROCESS] = value_str(process->command.len > 0 ? process->command
                                                            : base_name(process->exe));
    cells[COL_PEAK_BYTES] = tally ? heap_tables_figure(tables,
                                                       value_uint(tally->peak_bytes, UNIT_BYTES))
                                  : value_na(missing);
    cells[COL_PEAK_COUNT] = tally ? heap_tables_figure(tables, count(tally->peak_count))
                                  : value_na(missing);
    cells[COL_PEAK_MS] = tally && tally->peak_ns >= tables->start_ns
                             ? value_real((double)(tally->peak_ns - tables->start_ns) / 1e6,
                                          UNIT_MS)
                             : value_na(missing);
}

static void sum_cells(const struct heap_tables *tables, enum heap_view view,
                      const struct heap_sum *sum, struct value *cells)
{
    enum heap_per per = heap_view_per(view);
    figure_cells(tables, &sum->figures, cells);
    cells[COL_SHARE] = view_share(tables, view, &sum->figures);
    cells[COL_STACKS] = count(sum->stacks);
    cells[COL_THREADS] = count(sum->threads);
    if (per == HEAP_PER_STACK || per == HEAP_PER_FUNCTION)
        place_cells(tables, sum, per, cells);
    else if (per == HEAP_PER_THREAD)
        thread_cells(tables, sum->id, cells);
    else if (per == HEAP_PER_IMAGE)
        cells[COL_IMAGE] = image_value(&tables->sums->heap->profile, sum->id);
    else
        process_cells(tables, sum->id, cells);
}

/* The columns that such a table has, in `chosen`; those of other views are for machines. */
static size_t columns_choose(enum heap_view view, struct column *columns, unsigned *chosen)
{
    size_t used = 0;
    for (unsigned i = 0; i < COLUMNS; i++) {
        if (!(sum_columns[i].pers & 1u << heap_view_per(view)))
            continue;
        bool shown = sum_columns[i].views & 1u << view;
        if (!shown && sum_columns[i].column.show == SHOW_PEOPLE)
            continue; /* machines have it in another form */
        columns[used] = sum_columns[i].column;
        if (!shown)
            columns[used].show = SHOW_MACHINE;
        chosen[used++] = i;
    }
    return used;
}

struct value heap_tables_sums(const struct heap_tables *tables, enum heap_view view,
                              const struct heap_sum_list *list)
{
    struct column *columns = arena_alloc(tables->arena, COLUMNS * sizeof(*columns));
    unsigned chosen[COLUMNS];
    size_t used = columns ? columns_choose(view, columns, chosen) : 0;
    struct value table = value_table(tables->arena, columns, used);
    for (size_t i = 0; used > 0 && i < list->count; i++) {
        bool people = tables->limit == 0 || i < tables->limit;
        struct table_row *row = people || i < tables->machine_rows ? table_add(&table) : NULL;
        if (!row)
            break;
        struct value cells[COLUMNS] = {0};
        sum_cells(tables, view, &list->rows[i], cells);
        for (size_t c = 0; c < used; c++)
            row->cells[c] = cells[chosen[c]];
        row->show = people ? SHOW_ALWAYS : SHOW_MACHINE;
    }
    return table;
}

void heap_tables_totals(const struct heap_tables *tables, struct value *map)
{
    static const unsigned put[] = {
        COL_ALLOCATIONS,     COL_FREES,      COL_ALLOCATED_BYTES, COL_PLUS_MINUS,   COL_FREED_BYTES,
        COL_PEAK_BYTES,      COL_PEAK_COUNT, COL_LEAKED_BYTES,    COL_LEAKED_COUNT, COL_TEMPORARY,
        COL_TEMPORARY_BYTES, COL_MEAN_BYTES, COL_MAX_BYTES,       COL_MEAN_LIFE_MS, COL_GROWN,
        COL_GROWN_BYTES,     COL_MOVED,      COL_CHAIN_MAX,       COL_SAMPLES,      COL_CALLS_RANGE,
        COL_LEAKED_RANGE,
    };
    const struct heap_sums *sums = tables->sums;
    struct value cells[COLUMNS] = {0};
    figure_cells(tables, &sums->all, cells);
    if (sums->peak_known) {
        cells[COL_PEAK_BYTES] = value_uint(sums->peak_bytes, UNIT_BYTES);
        cells[COL_PEAK_COUNT] = count(sums->peak_count);
    }
    for (size_t i = 0; i < ARRAY_SIZE(put); i++)
        value_put_machine(map, sum_columns[put[i]].column.key, cells[put[i]]);
}

/* ---- what changed ---- */

enum {
    DIFF_CHANGE,
    DIFF_BEFORE,
    DIFF_AFTER,
    DIFF_CHANGE_TEXT,
    DIFF_STATE,
    DIFF_FUNCTION,
    DIFF_NAME,
    DIFF_PLACE,
    DIFF_IMAGE,
    DIFF_FIGURES_BEFORE,
    DIFF_FIGURES_AFTER,
    DIFF_COLUMNS
};

static const struct column diff_columns[DIFF_COLUMNS] = {
    [DIFF_CHANGE] = {"change", "change", SHOW_MACHINE, true, false},
    [DIFF_BEFORE] = {"before", "before", SHOW_ALWAYS, true, false},
    [DIFF_AFTER] = {"after", "after", SHOW_ALWAYS, true, false},
    [DIFF_CHANGE_TEXT] = {"change_text", "change", SHOW_PEOPLE, true, false},
    [DIFF_STATE] = {"state", "", SHOW_ALWAYS, false, false},
    [DIFF_FUNCTION] = {"function", "function", SHOW_MACHINE, false, false},
    [DIFF_NAME] = {"name", "function", SHOW_PEOPLE, false, true},
    [DIFF_PLACE] = {"place", "line", SHOW_ALWAYS, false, true},
    [DIFF_IMAGE] = {"image", "image", SHOW_ALWAYS, false, false},
    [DIFF_FIGURES_BEFORE] = {"figures_before", "before", SHOW_MACHINE, false, false},
    [DIFF_FIGURES_AFTER] = {"figures_after", "after", SHOW_MACHINE, false, false},
};

static struct value figures_map(const struct heap_tables *tables,
                                const struct heap_figures *figures)
{
    struct value map = value_map(tables->arena);
    value_put(&map, "allocations", NULL, count(figures->allocations));
    value_put(&map, "allocated_bytes", NULL, value_uint(figures->allocated_bytes, UNIT_BYTES));
    value_put(&map, "frees", NULL, count(figures->frees));
    value_put(&map, "peak_bytes", NULL, bytes(figures->peak_bytes));
    value_put(&map, "peak_count", NULL, value_int(figures->peak_count, UNIT_COUNT));
    value_put(&map, "leaked_bytes", NULL, bytes(heap_live_bytes(figures)));
    value_put(&map, "leaked_count", NULL, value_int(heap_live_count(figures), UNIT_COUNT));
    value_put(&map, "temporary", NULL, count(figures->temporary));
    value_put(&map, "plus_minus_bytes", NULL, plus_minus(tables, figures));
    return map;
}

struct value heap_tables_diff(const struct heap_tables *tables, const struct heap_tables *before,
                              const struct heap_diff *diff, enum heap_rank rank)
{
    struct value table = value_table(tables->arena, diff_columns, DIFF_COLUMNS);
    bool calls = rank == HEAP_RANK_CHURN || rank == HEAP_RANK_TEMPORARY;
    enum unit unit = calls ? UNIT_COUNT : UNIT_BYTES;
    size_t most = MAX(tables->limit == 0 ? diff->changed : tables->limit, tables->machine_rows);
    for (size_t i = 0; i < MIN(most, diff->changed); i++) {
        const struct heap_diff_row *from = &diff->rows[i];
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        double was = heap_rank_value(&from->before, rank);
        double change = heap_rank_value(&from->after, rank) - was;
        bool about = tables->sampled || before->sampled;
        char text[48];
        units_format(fabs(change), unit, text, sizeof(text));
        row->show = tables->limit == 0 || i < tables->limit ? SHOW_ALWAYS : SHOW_MACHINE;
        row->cells[DIFF_CHANGE] = value_int((int64_t)change, unit);
        row->cells[DIFF_BEFORE] = heap_tables_figure(before, value_int((int64_t)was, unit));
        row->cells[DIFF_AFTER] = heap_tables_figure(tables,
                                                    value_int((int64_t)(was + change), unit));
        row->cells[DIFF_CHANGE_TEXT] = value_text(
            arena_printf(tables->arena, "%s%s%s", about ? "~" : "", change < 0 ? "-" : "+", text));
        row->cells[DIFF_STATE] = value_text(!from->is_before  ? "new"
                                            : !from->is_after ? "vanished"
                                                              : "");
        row->cells[DIFF_FUNCTION] = value_str(from->function.len > 0 ? from->function
                                                                     : STR("[no stack]"));
        row->cells[DIFF_NAME] = value_text(
            heap_name(tables->arena, row->cells[DIFF_FUNCTION].text));
        struct str file = base_name(from->file);
        row->cells[DIFF_PLACE] = value_text(
            file.len > 0 ? arena_printf(tables->arena, "%.*s:%u", STR_FMT(file), from->line) : "");
        row->cells[DIFF_IMAGE] = value_str(from->image);
        row->cells[DIFF_FIGURES_BEFORE] = figures_map(before, &from->before);
        row->cells[DIFF_FIGURES_AFTER] = figures_map(tables, &from->after);
    }
    return table;
}
