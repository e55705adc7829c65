/* Histograms, stacks and the critical path as values; see wait_tables.h. */
#include "present/wait_tables.h"

#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS = 12,           /* of a histogram: below 1 us, ten times the fourfold, above 1 s */
    STEP_FIRST_LOG2 = 10, /* 1,024 ns */
    BAR_COLUMNS = 40,
    STACK_ROWS_MAX = 512,
};

static struct value ms(double ns)
{
    return value_real(ns / 1e6, UNIT_MS);
}

/* A step begins at 0, 1 us, 4 us, 16 us … 1 s. */
static uint64_t step_start_ns(unsigned step)
{
    return step == 0 ? 0 : 1ull << (STEP_FIRST_LOG2 + 2 * (step - 1));
}

static void steps_count(const struct wait_tally *tally, uint64_t steps[STEPS])
{
    memset(steps, 0, STEPS * sizeof(*steps));
    for (unsigned i = 0; i < WAIT_BUCKETS; i++) {
        unsigned step = 0;
        while (step + 1 < STEPS && wait_bucket_ns(i) >= step_start_ns(step + 1))
            step++;
        steps[step] += tally->buckets[i];
    }
}

const char *wait_tables_shape(struct arena *arena, const struct wait_tally *tally)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    uint64_t steps[STEPS], most = 1;
    steps_count(tally, steps);
    for (unsigned i = 0; i < STEPS; i++)
        most = MAX(most, steps[i]);
    char text[STEPS * 4 + 1] = "";
    size_t len = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        double share = (double)steps[i] / (double)most;
        const char *block = steps[i] == 0 ? "·" : blocks[(size_t)(share * 7 + 0.5)];
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", block);
    }
    return arena_dup(arena, text);
}

/* The steps from the first to the last that have something. */
static bool steps_range(const uint64_t steps[STEPS], unsigned *ret_first, unsigned *ret_last)
{
    bool any = false;
    for (unsigned i = 0; i < STEPS; i++) {
        if (steps[i] == 0)
            continue;
        if (!any)
            *ret_first = i;
        *ret_last = i;
        any = true;
    }
    return any;
}

struct value wait_tables_histogram(struct arena *arena, const struct wait_tally *tally)
{
    static const char full[] = "########################################";
    static const struct column columns[] = {
        {"from_ms", "from", SHOW_ALWAYS, true, false},
        {"to_ms", "to", SHOW_ALWAYS, true, false},
        {"count", "count", SHOW_ALWAYS, true, false},
        {"bar", "", SHOW_PEOPLE, false, false},
    };
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    uint64_t steps[STEPS], most = 1;
    unsigned first = 0, last = 0;
    steps_count(tally, steps);
    if (!steps_range(steps, &first, &last))
        return table;
    for (unsigned i = first; i <= last; i++)
        most = MAX(most, steps[i]);
    for (unsigned i = first; i <= last; i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        size_t len = (size_t)((double)steps[i] / (double)most * BAR_COLUMNS + 0.5);
        len = steps[i] > 0 ? MAX(len, (size_t)1) : 0;
        row->cells[0] = ms((double)step_start_ns(i));
        row->cells[1] = i + 1 < STEPS ? ms((double)step_start_ns(i + 1)) : value_text("");
        row->cells[2] = value_uint(steps[i], UNIT_COUNT);
        row->cells[3] = value_text(arena_dup_len(arena, full, len));
    }
    return table;
}

struct value wait_tables_tally(struct arena *arena, const struct wait_tally *tally)
{
    struct value map = value_map(arena);
    value_put(&map, "count", NULL, value_uint(tally->count, UNIT_COUNT));
    value_put(&map, "total_ms", "total", ms((double)tally->total_ns));
    value_put(&map, "p50_ms", "p50", ms(wait_tally_quantile(tally, 0.5)));
    value_put(&map, "p99_ms", "p99", ms(wait_tally_quantile(tally, 0.99)));
    value_put(&map, "max_ms", "max", ms((double)tally->max_ns));
    value_put_machine(&map, "histogram", wait_tables_histogram(arena, tally));
    return map;
}

struct value wait_tables_names(struct arena *arena, const struct profile *profile, uint32_t stack)
{
    struct value list = value_list(arena);
    size_t count = 0;
    for (uint32_t at = stack; at != 0 && count < STACK_ROWS_MAX; at = profile->stacks[at].parent) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[at].frame];
        for (uint32_t i = 0; i < frame->place_count; i++, count++)
            value_append(
                &list,
                value_str(profile->functions[profile->places[frame->places + i].function].name));
    }
    return list;
}

static struct str image_name(const struct profile *profile, uint32_t image)
{
    struct str rest = profile->images[image].path, last = rest;
    while (rest.len > 0)
        last = str_cut(&rest, '/');
    return last;
}

struct value wait_tables_stack(struct arena *arena, const struct profile *profile, uint32_t stack)
{
    static const struct column columns[] = {
        {"depth", "", SHOW_ALWAYS, true, false},
        {"function", "function", SHOW_ALWAYS, false, true},
        {"file", "file", SHOW_ALWAYS, false, true},
        {"line", "line", SHOW_ALWAYS, true, false},
        {"image", "image", SHOW_ALWAYS, false, false},
        {"inlined", "inlined", SHOW_MACHINE, false, false},
    };
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    uint64_t depth = 0;
    for (uint32_t at = stack; at != 0 && depth < STACK_ROWS_MAX; at = profile->stacks[at].parent) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[at].frame];
        for (uint32_t i = 0; i < frame->place_count; i++) {
            const struct profile_place *place = &profile->places[frame->places + i];
            const struct profile_function *function = &profile->functions[place->function];
            struct table_row *row = table_add(&table);
            if (!row)
                return table;
            row->cells[0] = value_uint(depth++, UNIT_NONE);
            row->cells[1] = value_str(function->name);
            row->cells[2] = value_str(place->file.len > 0 ? place->file : STR(""));
            row->cells[3] = place->line > 0 ? value_uint(place->line, UNIT_NONE) : value_text("");
            row->cells[4] = value_str(image_name(profile, frame->image));
            row->cells[5] = value_bool(i + 1 < frame->place_count);
        }
    }
    return table;
}

/* Shares of the path by thread, kind and group of waits. */
struct path_part {
    enum path_what what;
    uint32_t thread;
    uint32_t group; /* index plus one; 0: none */
    uint32_t row;
    uint64_t ns, steps;
};

static int by_ns(const void *left, const void *right)
{
    const struct path_part *a = left, *b = right;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* NULL when out of memory. */
static struct path_part *parts_make(const struct wait_tables *tables, size_t *ret_count)
{
    const struct critical_path *path = tables->path;
    struct path_part *parts = arena_alloc(tables->arena, (path->share_count + 1) * sizeof(*parts));
    struct map_u64 part_at = {0};
    size_t count = 0;
    for (size_t i = 0; parts && i < path->share_count; i++) {
        const struct path_share *share = &path->shares[i];
        bool wait = share->what == PATH_WAIT && share->wait < tables->waits->row_count;
        uint32_t group = wait ? tables->groups->of_row[share->wait] : 0;
        /* Waits in no group are told apart by their row; a group's number is below 2^30. */
        uint64_t low = group ? group : wait ? 1u << 30 | share->wait : 0;
        uint64_t key = (uint64_t)share->thread << 33 | low << 2 | (uint64_t)share->what;
        bool fresh;
        uint64_t *at = map_u64_at(&part_at, key, &fresh);
        if (!at) {
            parts = NULL;
            break;
        }
        if (fresh) {
            *at = count++;
            parts[*at] = (struct path_part){
                share->what, share->thread, group, wait ? share->wait : 0, 0, 0};
        }
        parts[*at].ns += share->ns;
        parts[*at].steps += share->steps;
    }
    map_u64_deinit(&part_at);
    if (parts && count > 1)
        qsort(parts, count, sizeof(*parts), by_ns);
    *ret_count = count;
    return parts;
}

static void part_cells(const struct wait_tables *tables, const struct path_part *part,
                       struct value *cells)
{
    const struct profile *profile = &tables->waits->profile;
    const struct profile_thread *thread = &profile->threads[part->thread];
    const struct wait_group *group = part->group ? &tables->groups->groups[part->group - 1] : NULL;
    enum wait_class class = part->what == PATH_RUNNING ? WAIT_CLASS_RUNNING
                            : part->what == PATH_RUNQ  ? WAIT_CLASS_RUNQ
                                                       : tables->classes->rows[part->row];
    cells[0] = ms((double)part->ns);
    cells[1] = value_real(100.0 * (double)part->ns / (double)MAX(tables->path->ns, 1u),
                          UNIT_PERCENT);
    cells[2] = value_uint(part->steps, UNIT_COUNT);
    cells[3] = value_str(thread->name.len > 0 ? thread->name : STR(""));
    cells[4] = value_uint(thread->tid, UNIT_NONE);
    cells[5] = value_uint(profile->processes[thread->process].pid, UNIT_NONE);
    cells[6] = value_text(wait_class_name(class));
    cells[7] = value_text(group ? wait_tables_id(tables->arena, group) : "");
    cells[8] = value_text(part->row ? wait_cause(tables->arena, tables->waits, part->row) : "");
    cells[9] = value_text(
        part->row ? wait_where(tables->arena, profile, tables->waits->rows[part->row].info.stack)
                  : "");
}

struct value wait_tables_path(const struct wait_tables *tables)
{
    static const struct column columns[] = {
        {"ms", "time", SHOW_ALWAYS, true, false},
        {"pct", "%", SHOW_ALWAYS, true, false},
        {"steps", "steps", SHOW_ALWAYS, true, false},
        {"thread", "thread", SHOW_ALWAYS, false, false},
        {"tid", "tid", SHOW_ALWAYS, true, false},
        {"pid", "pid", SHOW_MACHINE, true, false},
        {"class", "class", SHOW_ALWAYS, false, false},
        {"wait", "wait", SHOW_ALWAYS, false, false},
        {"cause", "cause", SHOW_ALWAYS, false, true},
        {"where", "where", SHOW_ALWAYS, false, true},
    };
    if (!tables->path || tables->path->na)
        return value_na(tables->path ? tables->path->na : "it was not looked for");
    struct value table = value_table(tables->arena, columns, ARRAY_SIZE(columns));
    size_t count = 0;
    const struct path_part *parts = parts_make(tables, &count);
    if (!parts)
        tables->arena->failed = true; /* whoever draws asks the arena */
    for (size_t i = 0; parts && i < (tables->limit == 0 ? count : MIN(count, tables->limit)); i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        part_cells(tables, &parts[i], row->cells);
    }
    return table;
}
