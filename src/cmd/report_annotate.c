/* One function: its source lines and its instructions, each with what it cost. */
#include "cmd/report_parts.h"

#include "analyze/hot_lines.h"

#include <errno.h>
#include <inttypes.h>

enum { ROWS_MAX = 5000, LINES_AROUND = 2 };

struct annotation {
    struct report_run *run;
    const struct profile *profile;
    const struct profile_function *function;
    uint32_t id;
    struct embedded source; /* where the lines are from */
    struct embedded code;   /* and the instructions: the recording, or the files here */
    struct line_cost *lines;
    size_t line_count;
};

/* For people: a share, or nothing where nothing was seen. */
static struct value cost_text(const struct annotation *annotation, uint64_t weight)
{
    if (weight == 0)
        return value_text("");
    double percent = 100.0 * (double)weight / (double)annotation->profile->weight;
    return value_text(arena_printf(annotation->run->arena, "%.1f%%", percent));
}

enum { TAB_COLUMNS = 8 };

/* Tabs become blanks: a listing is read by its indentation. */
static struct str tabs_expand(struct arena *arena, struct str text)
{
    size_t tabs = 0;
    for (size_t i = 0; i < text.len; i++)
        tabs += text.data[i] == '\t';
    char *out = tabs > 0 ? arena_alloc(arena, text.len + tabs * TAB_COLUMNS) : NULL;
    if (!out)
        return text;
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '\t') {
            out[len++] = text.data[i];
            continue;
        }
        do
            out[len++] = ' ';
        while (len % TAB_COLUMNS != 0);
    }
    return (struct str){out, len};
}

static const struct column source_columns[] = {
    {"file", "file", SHOW_MACHINE, false, false},
    {"cost", "self", SHOW_ALWAYS, true, false},
    {"cost_with_calls", "total", SHOW_ALWAYS, true, false},
    {"line", "line", SHOW_ALWAYS, true, false},
    {"self_ms", "", SHOW_MACHINE, true, false},
    {"self_pct", "", SHOW_MACHINE, true, false},
    {"total_ms", "", SHOW_MACHINE, true, false},
    {"total_pct", "", SHOW_MACHINE, true, false},
    {"samples", "", SHOW_MACHINE, true, false},
    {"source", "source", SHOW_ALWAYS, false, false},
};

static void source_row(const struct annotation *annotation, struct value *table, struct str file,
                       uint32_t line, const struct line_cost *cost, struct str text)
{
    const struct profile *profile = annotation->profile;
    static const struct line_cost nothing = {0};
    struct table_row *row = table_add(table);
    if (!row)
        return;
    if (!cost)
        cost = &nothing;
    row->cells[0] = value_str(file);
    row->cells[1] = cost_text(annotation, cost->self_weight);
    row->cells[2] = cost_text(annotation, cost->total_weight);
    row->cells[3] = line > 0 ? value_uint(line, UNIT_NONE) : value_text("?");
    row->cells[4] = tables_weight(profile, (double)cost->self_weight);
    row->cells[5] = tables_percent(profile, (double)cost->self_weight);
    row->cells[6] = tables_weight(profile, (double)cost->total_weight);
    row->cells[7] = tables_percent(profile, (double)cost->total_weight);
    row->cells[8] = value_uint(cost->self_count, UNIT_COUNT);
    row->cells[9] = value_str(tabs_expand(annotation->run->arena, text));
}

/* Embedded lines and costs of one file, merged: both are in the order of lines. */
static void source_file(const struct annotation *annotation, struct value *table, size_t first,
                        size_t end)
{
    const struct line_cost *costs = annotation->lines;
    const struct embedded *embedded = &annotation->source;
    const struct profile_function *function = annotation->function;
    struct str file = costs[first].file;
    size_t known = first; /* the first cost with a line */
    while (known < end && costs[known].line == 0)
        source_row(annotation, table, file, 0, &costs[known++], STR(""));
    if (known == end)
        return;
    uint32_t low = costs[known].line;
    uint64_t high = (uint64_t)costs[end - 1].line + LINES_AROUND;
    if (str_eq(function->file, file) && function->line > 0)
        low = MIN(low, function->line);
    low = low > LINES_AROUND ? low - LINES_AROUND : 1;
    const struct embedded_line *line = embedded_line_from(embedded, file, low);
    const struct embedded_line *last = line ? embedded->lines + embedded->line_count : NULL;
    size_t at = known;
    for (size_t rows = 0; rows < ROWS_MAX; rows++) {
        bool has_line = line && line < last && str_eq(line->file, file) && line->line <= high;
        bool has_cost = at < end;
        if (!has_line && !has_cost)
            return;
        if (has_line && (!has_cost || line->line <= costs[at].line)) {
            bool both = has_cost && line->line == costs[at].line;
            source_row(annotation, table, file, line->line, both ? &costs[at] : NULL, line->text);
            at += both;
            line++;
        } else {
            source_row(annotation, table, file, costs[at].line, &costs[at], STR(""));
            at++;
        }
    }
}

static struct value source_value(const struct annotation *annotation)
{
    struct arena *arena = annotation->run->arena;
    if (annotation->line_count == 0)
        return value_na("no sample has a line in this function");
    struct value table = value_table(
        arena,
        tables_columns(arena, annotation->profile, source_columns, ARRAY_SIZE(source_columns)),
        ARRAY_SIZE(source_columns));
    for (size_t first = 0, end; first < annotation->line_count; first = end) {
        end = first + 1;
        while (end < annotation->line_count &&
               str_eq(annotation->lines[end].file, annotation->lines[first].file))
            end++;
        source_file(annotation, &table, first, end);
    }
    return table;
}

static const struct column code_columns[] = {
    {"cost", "self", SHOW_ALWAYS, true, false},
    {"address", "address", SHOW_ALWAYS, true, false},
    {"self_ms", "", SHOW_MACHINE, true, false},
    {"self_pct", "", SHOW_MACHINE, true, false},
    {"samples", "", SHOW_MACHINE, true, false},
    {"instruction", "instruction", SHOW_ALWAYS, false, false},
};

/* Costs that lie inside [address, address + size) are taken off *at. */
static struct address_cost costs_take(const struct address_cost *costs, size_t count, size_t *at,
                                      uint64_t address, uint64_t size)
{
    struct address_cost sum = {.address = address};
    while (*at < count && costs[*at].address - address < size) {
        sum.weight += costs[*at].weight;
        sum.count += costs[*at].count;
        (*at)++;
    }
    return sum;
}

static void code_row(const struct annotation *annotation, struct value *table,
                     const struct address_cost *cost, struct str text)
{
    struct arena *arena = annotation->run->arena;
    struct table_row *row = table_add(table);
    if (!row)
        return;
    row->cells[0] = cost_text(annotation, cost->weight);
    row->cells[1] = value_text(arena_printf(arena, "0x%" PRIx64, cost->address));
    row->cells[2] = tables_weight(annotation->profile, (double)cost->weight);
    row->cells[3] = tables_percent(annotation->profile, (double)cost->weight);
    row->cells[4] = value_uint(cost->count, UNIT_COUNT);
    row->cells[5] = value_str(text);
}

/* Instructions with their costs; a cost between two instructions gets a row of its own. */
static void code_rows(const struct annotation *annotation, struct value *table,
                      const struct address_cost *costs, size_t count)
{
    const struct profile_function *function = annotation->function;
    const struct embedded *embedded = &annotation->code;
    const struct embedded_instruction *code = embedded_code_from(embedded, function->image,
                                                                 function->address);
    const struct embedded_instruction *last = code ? embedded->instructions +
                                                         embedded->instruction_count
                                                   : NULL;
    size_t at = 0;
    for (size_t rows = 0; rows < ROWS_MAX; rows++) {
        bool has_code = code && code < last && code->image == function->image &&
                        code->address - function->address < function->size_bytes;
        if (!has_code && at == count)
            return;
        if (has_code && (at == count || code->address <= costs[at].address)) {
            struct address_cost cost = costs_take(costs, count, &at, code->address, code->size);
            code_row(annotation, table, &cost, code->text);
            code++;
        } else {
            code_row(annotation, table, &costs[at], STR(""));
            at++;
        }
    }
}

static bool has_code(const struct embedded *embedded, const struct profile_function *function)
{
    const struct embedded_instruction *code = embedded_code_from(embedded, function->image,
                                                                 function->address);
    return code && code->address - function->address < function->size_bytes;
}

static bool has_source(const struct embedded *embedded, const struct line_cost *lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (embedded_source(embedded, lines[i].file, lines[i].line).len > 0)
            return true;
    return false;
}

static struct value code_value(const struct annotation *annotation)
{
    struct arena *arena = annotation->run->arena;
    const struct profile_function *function = annotation->function;
    if (function->address == 0 || function->size_bytes == 0)
        return value_na("it has no code of its own in the recording: inlined everywhere, or "
                        "without a symbol");
    struct address_cost *costs = NULL;
    size_t count = 0;
    if (address_costs_build(arena, annotation->profile, function->image, function->address,
                            function->size_bytes, &costs, &count) < 0)
        return value_na("out of memory");
    struct value table = value_table(
        arena, tables_columns(arena, annotation->profile, code_columns, ARRAY_SIZE(code_columns)),
        ARRAY_SIZE(code_columns));
    code_rows(annotation, &table, costs, count);
    return table;
}

static void put_figures(const struct annotation *annotation, struct value *root)
{
    const struct profile *profile = annotation->profile;
    struct arena *arena = annotation->run->arena;
    const struct hotspot *hotspot = hotspots_find(&annotation->run->main.hotspots, annotation->id);
    bool time = profile->unit == UNIT_NS;
    value_put(root, "id", NULL, tables_id(arena, annotation->id));
    value_put(root, "function", NULL, value_str(annotation->function->name));
    value_put(root, "image", NULL, value_str(tables_image(profile, annotation->id)));
    value_put(root, time ? "self_ms" : "self_weight", "self",
              tables_weight(profile, (double)hotspot->self_weight));
    value_put(root, "self_pct", "self %", tables_percent(profile, (double)hotspot->self_weight));
    value_put(root, time ? "total_ms" : "total_weight", "total",
              tables_weight(profile, (double)hotspot->total_weight));
    value_put(root, "total_pct", "total %", tables_percent(profile, (double)hotspot->total_weight));
}

/* What the recording lacks is looked for here. */
static int sources_find(struct annotation *annotation, struct value *root, struct why *why)
{
    struct report_run *run = annotation->run;
    const struct profile_function *function = annotation->function;
    struct embedded embedded, here;
    int r = embedded_load(run->arena, run->main.recording, &embedded, why);
    if (r < 0)
        return r;
    annotation->source = annotation->code = embedded;
    bool source = has_source(&embedded, annotation->lines, annotation->line_count);
    bool code = has_code(&embedded, function) || function->address == 0;
    if (source && code)
        return 0;
    const char *note;
    if (report_reread(run, annotation->id, &here, &note) < 0)
        return why_nomem(why);
    if (!source)
        annotation->source = here;
    if (!code)
        annotation->code = here;
    value_put(root, "note", NULL,
              value_text(arena_printf(run->arena, "%s: %s",
                                      source ? "instructions"
                                      : code ? "source"
                                             : "source and instructions",
                                      note)));
    return 0;
}

int report_annotate(struct report_run *run, struct value *root, struct why *why)
{
    struct annotation annotation = {.run = run, .profile = &run->main.profile};
    int r = hotspots_choose(&run->main.hotspots, run->opts->annotate, &annotation.id, why);
    if (r < 0)
        return r;
    annotation.function = &run->main.profile.functions[annotation.id];
    r = line_costs_build(run->arena, &run->main.profile, annotation.id, &annotation.lines,
                         &annotation.line_count);
    if (r < 0)
        return why_nomem(why);
    put_figures(&annotation, root);
    r = sources_find(&annotation, root, why);
    if (r < 0)
        return r;
    value_put(root, "source", "Source", source_value(&annotation));
    value_put(root, "assembly", "Instructions", code_value(&annotation));
    return 0;
}
