/* Hotspots, lines, threads and trees as tables; see profile_tables.h. */
#include "present/profile_tables.h"

#include "analyze/hot_lines.h"
#include "analyze/thread_costs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TREE_ROWS_MAX = 2000, INDENT_MAX = 32 };

struct value tables_weight(const struct profile *profile, double weight)
{
    if (profile->unit == UNIT_NS)
        return value_real(weight / 1e6, UNIT_MS);
    return value_real(weight, profile->unit);
}

struct value tables_percent(const struct profile *profile, double weight)
{
    return value_real(100.0 * weight / (double)profile->weight, UNIT_PERCENT);
}

struct value tables_id(struct arena *arena, uint32_t function)
{
    return value_text(arena_printf(arena, "f%u", function));
}

struct str tables_image(const struct profile *profile, uint32_t function)
{
    struct str rest = profile->images[profile->functions[function].image].path, last = rest;
    while (rest.len > 0)
        last = str_cut(&rest, '/');
    return last;
}

const struct column *tables_columns(struct arena *arena, const struct profile *profile,
                                    const struct column *columns, size_t count)
{
    if (profile->unit == UNIT_NS)
        return columns;
    struct column *copy = arena_alloc(arena, count * sizeof(*copy));
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = columns[i];
        const char *unit = strstr(columns[i].key, "_ms");
        if (unit && (unit[3] == '\0' || unit[3] == '_'))
            copy[i].key = arena_printf(arena, "%.*s_weight%s", (int)(unit - columns[i].key),
                                       columns[i].key, unit + 3);
    }
    return copy ? copy : columns;
}

static struct value table_begin(const struct tables *tables, const struct column *columns,
                                size_t count)
{
    return value_table(tables->arena,
                       tables_columns(tables->arena, tables->profile, columns, count), count);
}

static size_t rows_shown(const struct tables *tables, size_t count)
{
    return tables->limit == 0 ? count : MIN(count, tables->limit);
}

/* [low, high] in percent. */
static struct value interval_value(struct arena *arena, struct interval share)
{
    struct value list = value_list(arena);
    value_append(&list, value_real(100 * share.low, UNIT_PERCENT));
    value_append(&list, value_real(100 * share.high, UNIT_PERCENT));
    return list;
}

static struct value file_value(struct str file)
{
    return file.len > 0 ? value_str(file) : value_text("");
}

static struct value line_value(uint32_t line)
{
    return line > 0 ? value_uint(line, UNIT_NONE) : value_text("");
}

static struct value groups_value(const struct tables *tables, const struct hotspot *hotspot)
{
    struct value list = value_list(tables->arena);
    for (uint32_t i = 0; i < MIN(hotspot->group_count, (uint32_t)HOTSPOT_GROUPS_MAX); i++)
        value_append(&list, value_str(tables->profile->thread_groups[hotspot->groups[i]]));
    if (hotspot->group_count > HOTSPOT_GROUPS_MAX)
        value_append(&list, value_text(arena_printf(tables->arena, "%u more",
                                                    hotspot->group_count - HOTSPOT_GROUPS_MAX)));
    return list;
}

static struct value evidence_value(const struct tables *tables, const struct hotspot *hotspot)
{
    return value_text(arena_printf(tables->arena, "%s %s f%u: %llu samples", tables->recording,
                                   tables->profile->series, hotspot->function,
                                   (unsigned long long)hotspot->self_count));
}

enum hotspot_column {
    HOT_ID,
    HOT_RANK,
    HOT_SELF,
    HOT_SELF_PCT,
    HOT_SELF_CI,
    HOT_TOTAL,
    HOT_TOTAL_PCT,
    HOT_SAMPLES,
    HOT_FUNCTION,
    HOT_FILE,
    HOT_LINE,
    HOT_IMAGE,
    HOT_THREADS,
    HOT_CATEGORY,
    HOT_EVIDENCE,
    HOT_COLUMNS,
};

static const struct column hotspot_columns[HOT_COLUMNS] = {
    [HOT_ID] = {"id", "id", SHOW_ALWAYS, false, false},
    [HOT_RANK] = {"rank", "rank", SHOW_MACHINE, true, false},
    [HOT_SELF] = {"self_ms", "self", SHOW_ALWAYS, true, false},
    [HOT_SELF_PCT] = {"self_pct", "self %", SHOW_ALWAYS, true, false},
    [HOT_SELF_CI] = {"self_pct_ci", "95% interval", SHOW_ALWAYS, true, false},
    [HOT_TOTAL] = {"total_ms", "total", SHOW_ALWAYS, true, false},
    [HOT_TOTAL_PCT] = {"total_pct", "total %", SHOW_ALWAYS, true, false},
    [HOT_SAMPLES] = {"samples", "samples", SHOW_ALWAYS, true, false},
    [HOT_FUNCTION] = {"function", "function", SHOW_ALWAYS, false, true},
    [HOT_FILE] = {"file", "file", SHOW_ALWAYS, false, true},
    [HOT_LINE] = {"line", "line", SHOW_ALWAYS, true, false},
    [HOT_IMAGE] = {"image", "image", SHOW_ALWAYS, false, false},
    [HOT_THREADS] = {"threads", "threads", SHOW_ALWAYS, false, true},
    [HOT_CATEGORY] = {"category", "category", SHOW_MACHINE, false, false},
    [HOT_EVIDENCE] = {"evidence", "evidence", SHOW_MACHINE, false, false},
};

struct value tables_hotspots(const struct tables *tables)
{
    const struct profile *profile = tables->profile;
    struct value table = table_begin(tables, hotspot_columns, HOT_COLUMNS);
    for (size_t i = 0; i < rows_shown(tables, tables->hotspots->count); i++) {
        const struct hotspot *hotspot = &tables->hotspots->rows[i];
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        struct value *cells = row->cells;
        cells[HOT_ID] = tables_id(tables->arena, hotspot->function);
        cells[HOT_RANK] = value_uint(i + 1, UNIT_NONE);
        cells[HOT_SELF] = tables_weight(profile, (double)hotspot->self_weight);
        cells[HOT_SELF_PCT] = tables_percent(profile, (double)hotspot->self_weight);
        cells[HOT_SELF_CI] = interval_value(tables->arena, hotspot->self_share);
        cells[HOT_TOTAL] = tables_weight(profile, (double)hotspot->total_weight);
        cells[HOT_TOTAL_PCT] = tables_percent(profile, (double)hotspot->total_weight);
        cells[HOT_SAMPLES] = value_uint(hotspot->self_count, UNIT_COUNT);
        cells[HOT_FUNCTION] = value_str(profile->functions[hotspot->function].name);
        cells[HOT_FILE] = file_value(hotspot->file);
        cells[HOT_LINE] = line_value(hotspot->line);
        cells[HOT_IMAGE] = value_str(tables_image(profile, hotspot->function));
        cells[HOT_THREADS] = groups_value(tables, hotspot);
        cells[HOT_CATEGORY] = value_text(hotspot->category);
        cells[HOT_EVIDENCE] = evidence_value(tables, hotspot);
    }
    return table;
}

struct value tables_lines(const struct tables *tables,
                          struct str (*source)(void *context, struct str file, uint32_t line),
                          void *context)
{
    static const struct column columns[] = {
        {"rank", "rank", SHOW_MACHINE, true, false},
        {"self_ms", "self", SHOW_ALWAYS, true, false},
        {"self_pct", "self %", SHOW_ALWAYS, true, false},
        {"self_pct_ci", "95% interval", SHOW_ALWAYS, true, false},
        {"samples", "samples", SHOW_ALWAYS, true, false},
        {"file", "file", SHOW_ALWAYS, false, true},
        {"line", "line", SHOW_ALWAYS, true, false},
        {"id", "id", SHOW_ALWAYS, false, false},
        {"function", "function", SHOW_ALWAYS, false, true},
        {"source", "source", SHOW_ALWAYS, false, true},
    };
    const struct profile *profile = tables->profile;
    struct value table = table_begin(tables, columns, ARRAY_SIZE(columns));
    struct hot_lines lines = {0};
    if (hot_lines_build(tables->arena, profile, &lines) < 0)
        return table; /* the arena remembers */
    hot_lines_rank(&lines);
    for (size_t i = 0; i < rows_shown(tables, lines.count); i++) {
        const struct hot_line *line = &lines.rows[i];
        struct interval share = share_interval((double)line->weight / (double)profile->weight,
                                               tables->hotspots->effective_samples);
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_uint(i + 1, UNIT_NONE);
        row->cells[1] = tables_weight(profile, (double)line->weight);
        row->cells[2] = tables_percent(profile, (double)line->weight);
        row->cells[3] = interval_value(tables->arena, share);
        row->cells[4] = value_uint(line->count, UNIT_COUNT);
        row->cells[5] = file_value(line->file);
        row->cells[6] = line_value(line->line);
        row->cells[7] = tables_id(tables->arena, line->function);
        row->cells[8] = value_str(profile->functions[line->function].name);
        row->cells[9] = value_str(source ? str_trim(source(context, line->file, line->line))
                                         : STR(""));
    }
    return table;
}

static void top_cells(const struct tables *tables, const struct thread_cost *cost,
                      struct value *cells)
{
    const struct profile *profile = tables->profile;
    cells[0] = tables_weight(profile, (double)cost->weight);
    cells[1] = tables_percent(profile, (double)cost->weight);
    cells[2] = value_uint(cost->count, UNIT_COUNT);
    cells[3] = tables_id(tables->arena, cost->top_function);
    cells[4] = value_str(profile->functions[cost->top_function].name);
    cells[5] = tables_weight(profile, (double)cost->top_weight);
}

#define TOP_COLUMNS                                                                                \
    {"self_ms", "time", SHOW_ALWAYS, true, false}, {"self_pct", "%", SHOW_ALWAYS, true, false},    \
        {"samples", "samples", SHOW_ALWAYS, true, false},                                          \
        {"top_id", "id", SHOW_ALWAYS, false, false},                                               \
        {"top_function", "top function", SHOW_ALWAYS, false, true},                                \
    {                                                                                              \
        "top_self_ms", "there", SHOW_ALWAYS, true, false                                           \
    }

int tables_threads(const struct tables *tables, struct value *ret_groups, struct value *ret_threads)
{
    static const struct column group_columns[] = {
        {"group", "group", SHOW_ALWAYS, false, false},
        {"threads", "threads", SHOW_ALWAYS, true, false},
        TOP_COLUMNS,
    };
    static const struct column thread_columns[] = {
        {"name", "thread", SHOW_ALWAYS, false, false},
        {"tid", "tid", SHOW_ALWAYS, true, false},
        {"pid", "pid", SHOW_ALWAYS, true, false},
        {"group", "group", SHOW_MACHINE, false, false},
        TOP_COLUMNS,
    };
    const struct profile *profile = tables->profile;
    struct thread_costs costs;
    if (thread_costs_build(tables->arena, profile, &costs) < 0)
        return -ENOMEM;
    struct value groups = table_begin(tables, group_columns, ARRAY_SIZE(group_columns));
    struct value threads = table_begin(tables, thread_columns, ARRAY_SIZE(thread_columns));
    for (size_t i = 0; i < rows_shown(tables, costs.group_count); i++) {
        struct table_row *row = table_add(&groups);
        if (!row)
            return -ENOMEM;
        row->cells[0] = value_str(profile->thread_groups[costs.groups[i].id]);
        row->cells[1] = value_uint(costs.groups[i].threads, UNIT_COUNT);
        top_cells(tables, &costs.groups[i], row->cells + 2);
    }
    for (size_t i = 0; i < rows_shown(tables, costs.thread_count); i++) {
        const struct profile_thread *thread = &profile->threads[costs.threads[i].id];
        struct table_row *row = table_add(&threads);
        if (!row)
            return -ENOMEM;
        row->cells[0] = value_str(thread->name);
        row->cells[1] = value_uint(thread->tid, UNIT_NONE);
        row->cells[2] = value_uint(profile->processes[thread->process].pid, UNIT_NONE);
        row->cells[3] = value_str(profile->thread_groups[thread->group]);
        top_cells(tables, &costs.threads[i], row->cells + 4);
    }
    *ret_groups = groups;
    *ret_threads = threads;
    return 0;
}

/* The name behind a mark for each level; very deep ones say their level instead. */
static struct value call_value(struct arena *arena, const struct profile *profile,
                               const struct call_node *node)
{
    struct str name = profile->functions[node->function].name;
    const char *tail = node->inlined ? " (inlined)" : "";
    uint32_t level = node->depth - 1;
    size_t marks = MIN(level, (uint32_t)INDENT_MAX);
    char *text = arena_alloc(arena, marks * 3 + 16 + name.len + strlen(tail));
    if (!text)
        return value_text("");
    size_t len = 0;
    for (size_t i = 0; i < marks; i++) {
        memcpy(text + len, "· ", 3);
        len += 3;
    }
    if (level > INDENT_MAX)
        len += (size_t)snprintf(text + len, 16, "[%u] ", level);
    memcpy(text + len, name.data, name.len);
    len += name.len;
    memcpy(text + len, tail, strlen(tail));
    len += strlen(tail);
    return value_str((struct str){text, len});
}

/* From the leaf, "self" is where a walk ended, which tells people nothing. */
#define TREE_COLUMNS(self_show)                                                                    \
    {                                                                                              \
        {"node", "node", SHOW_MACHINE, true, false},                                               \
            {"parent", "parent", SHOW_MACHINE, true, false},                                       \
            {"depth", "depth", SHOW_MACHINE, true, false},                                         \
            {"total_ms", "total", SHOW_ALWAYS, true, false},                                       \
            {"total_pct", "total %", SHOW_ALWAYS, true, false},                                    \
            {"self_ms", "self", self_show, true, false},                                           \
            {"self_pct", "self %", self_show, true, false},                                        \
            {"samples", "samples", SHOW_MACHINE, true, false},                                     \
            {"id", "id", SHOW_ALWAYS, false, false}, {"call", "call", SHOW_ALWAYS, false, false},  \
            {"function", "function", SHOW_MACHINE, false, false},                                  \
            {"image", "image", SHOW_MACHINE, false, false},                                        \
        {                                                                                          \
            "inlined", "inlined", SHOW_MACHINE, false, false                                       \
        }                                                                                          \
    }
static const struct column tree_columns[] = TREE_COLUMNS(SHOW_ALWAYS);
static const struct column inverted_columns[] = TREE_COLUMNS(SHOW_MACHINE);

static void tree_row(const struct tables *tables, const struct call_tree *tree, uint32_t id,
                     struct value *cells)
{
    const struct profile *profile = tables->profile;
    const struct call_node *node = &tree->nodes[id];
    cells[0] = value_uint(id, UNIT_NONE);
    cells[1] = value_uint(node->parent, UNIT_NONE);
    cells[2] = value_uint(node->depth, UNIT_NONE);
    cells[3] = tables_weight(profile, (double)node->total_weight);
    cells[4] = tables_percent(profile, (double)node->total_weight);
    cells[5] = tables_weight(profile, (double)node->self_weight);
    cells[6] = tables_percent(profile, (double)node->self_weight);
    cells[7] = value_uint(node->total_count, UNIT_COUNT);
    cells[8] = tables_id(tables->arena, node->function);
    cells[9] = call_value(tables->arena, profile, node);
    cells[10] = value_str(profile->functions[node->function].name);
    cells[11] = value_str(tables_image(profile, node->function));
    cells[12] = value_bool(node->inlined);
}

/* The next node in depth-first order that is not below `id`. */
static uint32_t node_after(const struct call_tree *tree, uint32_t id)
{
    while (id != 0 && !tree->nodes[id].next_sibling)
        id = tree->nodes[id].parent;
    return id == 0 ? 0 : tree->nodes[id].next_sibling;
}

struct value tables_tree(const struct tables *tables, const struct call_tree *tree, double min_pct,
                         size_t *ret_left_out)
{
    struct value table = table_begin(tables, tree->inverted ? inverted_columns : tree_columns,
                                     ARRAY_SIZE(tree_columns));
    double least = min_pct / 100 * (double)tables->profile->weight;
    size_t shown = 0;
    uint32_t at = tree->nodes[0].first_child;
    while (at != 0) {
        const struct call_node *node = &tree->nodes[at];
        bool show = (double)node->total_weight >= least && shown < TREE_ROWS_MAX;
        if (!show) {
            at = node_after(tree, at);
            continue;
        }
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        tree_row(tables, tree, at, row->cells);
        shown++;
        at = node->first_child ? node->first_child : node_after(tree, at);
    }
    *ret_left_out = tree->count - 1 - shown;
    return table;
}

static struct value diff_weight(const struct profile_diff *diff, double weight)
{
    return tables_weight(diff->after, weight);
}

struct value tables_diff(struct arena *arena, const struct profile_diff *diff, size_t limit)
{
    static const struct column columns[] = {
        {"rank", "rank", SHOW_MACHINE, true, false},
        {"before_self_ms", "before", SHOW_ALWAYS, true, false},
        {"after_self_ms", "after", SHOW_ALWAYS, true, false},
        {"change_ms", "change", SHOW_ALWAYS, true, false},
        {"change_ms_ci", "95% interval", SHOW_ALWAYS, true, false},
        {"verdict", "", SHOW_ALWAYS, false, false},
        {"before_total_ms", "total before", SHOW_MACHINE, true, false},
        {"after_total_ms", "total after", SHOW_MACHINE, true, false},
        {"before_id", "id before", SHOW_ALWAYS, false, false},
        {"after_id", "id after", SHOW_ALWAYS, false, false},
        {"function", "function", SHOW_ALWAYS, false, true},
        {"image", "image", SHOW_ALWAYS, false, false},
    };
    struct value table = value_table(
        arena, tables_columns(arena, diff->after, columns, ARRAY_SIZE(columns)),
        ARRAY_SIZE(columns));
    size_t shown = limit == 0 ? diff->count : MIN(limit, diff->count);
    for (size_t i = 0; i < shown; i++) {
        const struct diff_row *row = &diff->rows[i];
        bool vanished = row->state == DIFF_VANISHED;
        const struct profile *profile = vanished ? diff->before : diff->after;
        uint32_t function = vanished ? row->before : row->after;
        struct table_row *cells = table_add(&table);
        if (!cells)
            break;
        struct value range = value_list(arena);
        value_append(&range, diff_weight(diff, row->change.low));
        value_append(&range, diff_weight(diff, row->change.high));
        const char *verdict = row->state == DIFF_NEW  ? "new"
                              : vanished              ? "gone"
                              : !row->sure            ? "unsure"
                              : row->change.value > 0 ? "more"
                                                      : "less";
        cells->cells[0] = value_uint(i + 1, UNIT_NONE);
        cells->cells[1] = diff_weight(diff, row->before_self.value);
        cells->cells[2] = diff_weight(diff, row->after_self.value);
        cells->cells[3] = diff_weight(diff, row->change.value);
        cells->cells[4] = range;
        cells->cells[5] = value_text(verdict);
        cells->cells[6] = diff_weight(diff, row->before_total);
        cells->cells[7] = diff_weight(diff, row->after_total);
        cells->cells[8] = row->state == DIFF_NEW ? value_text("") : tables_id(arena, row->before);
        cells->cells[9] = vanished ? value_text("") : tables_id(arena, row->after);
        cells->cells[10] = value_str(profile->functions[function].name);
        cells->cells[11] = value_str(tables_image(profile, function));
    }
    return table;
}
