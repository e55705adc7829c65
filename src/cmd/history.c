/* history: results of benchmarks over time, where they changed, and at which commit. */
#include "cmd/cmd.h"

#include "cmd/history_keep.h"
#include "present/chart.h"
#include "stats/changes.h"
#include "store/bench_file.h"
#include "store/history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REVISION_SHOWN = 10, SEED = 1, PLOT_COLUMNS = 78, PLOT_ROWS = 14 };

struct history_opts {
    const char *store;
    const char *metric;
    const char *machine;
    uint32_t limit;
    double p_max;
    const char *svg;
    struct output_opts output;
};

static const struct opt history_options[] = {
    {"metric", 0, OPT_TEXT, offsetof(struct history_opts, metric), "NAME",
     "which figure: wall, user, cpu, peak_rss, …", "wall", NULL, false},
    {"machine", 0, OPT_TEXT, offsetof(struct history_opts, machine), "TEXT",
     "results of the machine whose name contains this; else of the last one", NULL, NULL, false},
    {"limit", 0, OPT_U32, offsetof(struct history_opts, limit), "N",
     "look at the last so many results (at most 400)", "200", NULL, false},
    {"p", 0, OPT_F64, offsetof(struct history_opts, p_max), "P",
     "a change must be less likely than this by chance", "0.01", NULL, false},
    {"store", 0, OPT_FILE, offsetof(struct history_opts, store), "FILE",
     "the history to use; else that of the repository, or WHYSLOW_HISTORY", NULL, NULL, false},
    {"svg", 0, OPT_FILE, offsetof(struct history_opts, svg), "FILE", "write the plot as SVG", NULL,
     NULL, false},
    OUTPUT_OPTIONS(struct history_opts, output),
    {0},
};

struct view {
    const struct history_opts *opts;
    const struct cmd_call *call;
    struct arena *arena;
    const char *path;
    enum bench_metric metric;
    enum unit unit;
};

static struct value short_revision(const struct view *view, const char *revision)
{
    if (!*revision)
        return value_na("not known");
    return value_text(arena_dup_len(view->arena, revision, strnlen(revision, REVISION_SHOWN)));
}

static struct value number(double value, enum unit unit, const char *na)
{
    return isfinite(value) ? value_real(value, unit) : value_na(na);
}

/* history add FILE… */
static int add_files(const struct view *view, struct why *why)
{
    struct history *history = NULL;
    int r = history_open(view->path, true, &history, why);
    uint64_t added = 0, known = 0;
    for (int i = 1; i < view->call->argc && r >= 0; i++) {
        struct bench_file file;
        r = bench_file_read(view->arena, view->call->argv[i], &file, why);
        if (r < 0)
            break;
        if (!*file.origin.time)
            r = why_set(why, WHY_USAGE, EINVAL, "make it with 'whyslow bench --export-json FILE'",
                        "'%s' does not say when it was measured", view->call->argv[i]);
        for (size_t k = 0; k < file.results.len && r >= 0; k++) {
            r = history_add(history, &file.results.data[k], &file.origin, why);
            added += r > 0;
            known += r == 0;
        }
        bench_file_deinit(&file);
    }
    history_close(history);
    if (r < 0)
        return r;
    struct value root = value_map(view->arena);
    value_put(&root, "store", NULL, value_text(view->path));
    value_put(&root, "added", NULL, value_uint(added, UNIT_COUNT));
    value_put(&root, "known", "there already", value_uint(known, UNIT_COUNT));
    struct report report = {"whyslow.history/1", &root};
    return cmd_render(view->call, &view->opts->output, &report, why);
}

static const struct column name_columns[] = {
    {"name", "benchmark", SHOW_ALWAYS, false, true},
    {"machine", "machine", SHOW_ALWAYS, false, true},
    {"results", "results", SHOW_ALWAYS, true, false},
    {"last_time", "last", SHOW_ALWAYS, false, false},
    {"last_revision", "revision", SHOW_ALWAYS, false, false},
    {"last_median", "median", SHOW_ALWAYS, true, false},
};

static int show_names(const struct view *view, struct history *history, struct why *why)
{
    struct history_names names;
    int r = history_list(history, view->metric, view->arena, &names, why);
    if (r < 0)
        return r;
    struct value table = value_table(view->arena, name_columns, ARRAY_SIZE(name_columns));
    for (size_t i = 0; i < names.len; i++) {
        const struct history_name *name = &names.data[i];
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_text(name->name);
        row->cells[1] = *name->machine ? value_text(name->machine) : value_na("not known");
        row->cells[2] = value_uint(name->results, UNIT_COUNT);
        row->cells[3] = value_text(name->last_time);
        row->cells[4] = short_revision(view, name->last_revision);
        row->cells[5] = number(name->last_median, view->unit, "not measured");
    }
    size_t count = names.len;
    VEC_FREE(&names);
    if (count == 0)
        return why_set(why, WHY_USAGE, ENOENT, "run 'whyslow bench CMD' in this repository first",
                       "'%s' holds no result yet", view->path);
    struct value root = value_map(view->arena);
    value_put(&root, "store", NULL, value_text(view->path));
    value_put(&root, "metric", NULL, value_text(bench_metrics[view->metric].key));
    value_put(&root, "benchmarks", NULL, table);
    struct report report = {"whyslow.history/1", &root};
    return cmd_render(view->call, &view->opts->output, &report, why);
}

/* The machine of the last result of that name, or the one that was asked for. */
static int machine_choose(const struct view *view, struct history *history, const char *name,
                          const char **ret, size_t *ret_others, struct why *why)
{
    struct history_names names;
    int r = history_list(history, view->metric, view->arena, &names, why);
    if (r < 0)
        return r;
    const char *found = NULL;
    size_t named = 0;
    for (size_t i = 0; i < names.len; i++) {
        if (strcmp(names.data[i].name, name) != 0)
            continue;
        named++;
        if (!found && (!view->opts->machine || strstr(names.data[i].machine, view->opts->machine)))
            found = names.data[i].machine;
    }
    VEC_FREE(&names);
    if (named == 0)
        return why_set(why, WHY_USAGE, ENOENT, "'whyslow history' lists what there is",
                       "the history has no benchmark '%s'", name);
    if (!found)
        return why_set(why, WHY_USAGE, ENOENT, "'whyslow history' lists the machines",
                       "no result of '%s' is from a machine like '%s'", name, view->opts->machine);
    *ret = found;
    *ret_others = named - 1;
    return 0;
}

static const struct column entry_columns[] = {
    {"time", "time", SHOW_ALWAYS, false, false},
    {"revision", "revision", SHOW_MACHINE, false, false},
    {"short", "revision", SHOW_ALWAYS, false, false},
    {"branch", "branch", SHOW_MACHINE, false, false},
    {"command", "command", SHOW_MACHINE, false, true},
    {"runs", "runs", SHOW_ALWAYS, true, false},
    {"median", "median", SHOW_ALWAYS, true, false},
    {"ci95_low", "95% from", SHOW_ALWAYS, true, false},
    {"ci95_high", "to", SHOW_ALWAYS, true, false},
    {"p95", "p95", SHOW_ALWAYS, true, false},
    {"change", "change", SHOW_ALWAYS, false, false},
};

static const struct change *change_at(const struct change *changes, int count, size_t index)
{
    for (int i = 0; i < count; i++)
        if (changes[i].at == index)
            return &changes[i];
    return NULL;
}

static const char *change_words(const struct view *view, const struct change *change)
{
    double percent = (change->after / change->before - 1) * 100;
    return change->before > 0 ? arena_printf(view->arena, "%+.1f%%", percent) : "from 0";
}

static struct value entries_value(const struct view *view, const struct history_entries *entries,
                                  const struct change *changes, int count)
{
    struct value table = value_table(view->arena, entry_columns, ARRAY_SIZE(entry_columns));
    for (size_t i = 0; i < entries->len; i++) {
        const struct history_entry *entry = &entries->data[i];
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        const struct change *change = change_at(changes, count, i);
        size_t at = 0;
        row->cells[at++] = value_text(entry->origin.time);
        row->cells[at++] = *entry->origin.revision ? value_text(entry->origin.revision)
                                                   : value_na("not known");
        row->cells[at++] = short_revision(view, entry->origin.revision);
        row->cells[at++] = *entry->origin.branch ? value_text(entry->origin.branch)
                                                 : value_na("not known");
        row->cells[at++] = value_text(entry->command);
        row->cells[at++] = value_uint(entry->runs, UNIT_COUNT);
        row->cells[at++] = number(entry->median, view->unit, "not measured");
        row->cells[at++] = number(entry->low, view->unit, "under 6 runs");
        row->cells[at++] = number(entry->high, view->unit, "under 6 runs");
        row->cells[at++] = number(entry->p95, view->unit, "not measured");
        row->cells[at++] = value_tone(value_text(change ? change_words(view, change) : ""),
                                      change && change->after > change->before ? TONE_BAD
                                                                               : TONE_GOOD);
    }
    return table;
}

static const struct column change_columns[] = {
    {"time", "first seen", SHOW_ALWAYS, false, false},
    {"before", "before", SHOW_ALWAYS, true, false},
    {"after", "after", SHOW_ALWAYS, true, false},
    {"ratio", "ratio", SHOW_ALWAYS, true, false},
    {"p", "p", SHOW_ALWAYS, true, false},
    {"last_good", "last before", SHOW_MACHINE, false, false},
    {"first_new", "first after", SHOW_MACHINE, false, false},
    {"which", "which commit", SHOW_ALWAYS, false, true},
};

/* One of the commits after the last result before the change, up to the first after it. */
static struct value which_commit(const struct view *view, const struct bench_origin *before,
                                 const struct bench_origin *after)
{
    if (!*before->revision || !*after->revision)
        return value_na("the results do not say their revision");
    if (strcmp(before->revision, after->revision) == 0)
        return value_text("the same commit on both sides: the machine or its load changed");
    return value_text(arena_printf(view->arena, "git log --oneline %.*s..%.*s", REVISION_SHOWN,
                                   before->revision, REVISION_SHOWN, after->revision));
}

static struct value changes_value(const struct view *view, const struct history_entries *entries,
                                  const struct change *changes, int count)
{
    struct value table = value_table(view->arena, change_columns, ARRAY_SIZE(change_columns));
    for (int i = 0; i < count; i++) {
        const struct change *change = &changes[i];
        const struct bench_origin *before = &entries->data[change->at - 1].origin;
        const struct bench_origin *after = &entries->data[change->at].origin;
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_text(after->time);
        row->cells[1] = value_real(change->before, view->unit);
        row->cells[2] = value_real(change->after, view->unit);
        row->cells[3] = change->before > 0 ? value_real(change->after / change->before, UNIT_NONE)
                                           : value_na("it was 0 before");
        row->cells[4] = value_real(change->p, UNIT_NONE);
        row->cells[5] = *before->revision ? value_text(before->revision) : value_na("not known");
        row->cells[6] = *after->revision ? value_text(after->revision) : value_na("not known");
        row->cells[7] = which_commit(view, before, after);
    }
    if (table.table)
        table.table->empty = "none";
    return table;
}

static int draw(const struct view *view, const char *name, const double *values, size_t len,
                const struct change *changes, int count, struct why *why)
{
    double x[CHANGES_VALUES_MAX], at[CHANGES_MAX];
    for (size_t i = 0; i < len; i++)
        x[i] = (double)i + 1;
    for (int i = 0; i < count; i++)
        at[i] = (double)changes[i].at + 0.5; /* between two results */
    const struct chart_series series[] = {
        {"median", CHART_POINTS, x, values, len},
        {"change", CHART_CHANGE, at, NULL, (size_t)count},
    };
    const struct chart chart = {
        .title = name,
        .x_title = "result, oldest first",
        .y_title = bench_metrics[view->metric].about,
        .y_unit = view->unit,
        .series = series,
        .series_count = count > 0 ? 2 : 1,
    };
    if (!view->opts->output.json && !view->opts->output.markdown) {
        fputc('\n', view->call->out);
        chart_text(&chart, PLOT_COLUMNS, PLOT_ROWS, view->call->out);
    }
    return view->opts->svg ? chart_svg_file(&chart, view->opts->svg, why) : 0;
}

static int show_entries(const struct view *view, const char *name, const char *machine,
                        size_t others, const struct history_entries *entries, struct why *why)
{
    double values[CHANGES_VALUES_MAX];
    struct change changes[CHANGES_MAX];
    for (size_t i = 0; i < entries->len; i++)
        values[i] = entries->data[i].median;
    int count = changes_find(values, entries->len, view->opts->p_max, SEED, changes);
    if (count < 0)
        return count == -ENOMEM ? why_nomem(why)
                                : why_set(why, WHY_FAILED, EBADMSG, "make the history anew",
                                          "'%s' is damaged: a median is no number", view->path);
    struct value root = value_map(view->arena);
    value_put(&root, "store", NULL, value_text(view->path));
    value_put(&root, "name", "benchmark", value_text(name));
    value_put(&root, "machine", NULL, *machine ? value_text(machine) : value_na("not known"));
    value_put(&root, "metric", NULL, value_text(bench_metrics[view->metric].key));
    if (others > 0)
        value_put(&root, "note", NULL,
                  value_text(arena_printf(view->arena,
                                          "results of %zu other machine%s left out; see "
                                          "--machine",
                                          others, others == 1 ? " are" : "s are")));
    value_put(&root, "changes", "changes",
              entries->len < 2 * CHANGES_SIDE_MIN
                  ? value_na_printf(view->arena, "%zu results; changes are looked for from %d on",
                                    entries->len, 2 * CHANGES_SIDE_MIN)
                  : changes_value(view, entries, changes, count));
    value_put(&root, "results", "results", entries_value(view, entries, changes, count));
    if (arena_failed(view->arena))
        return why_nomem(why);
    struct report report = {"whyslow.history/1", &root};
    int r = cmd_render(view->call, &view->opts->output, &report, why);
    return r < 0 ? r : draw(view, name, values, entries->len, changes, count, why);
}

static int show_name(const struct view *view, struct history *history, const char *name,
                     struct why *why)
{
    const char *machine = "";
    size_t others = 0;
    int r = machine_choose(view, history, name, &machine, &others, why);
    struct history_entries entries = {0};
    if (r == 0)
        r = history_read(history, name, machine, view->metric, view->opts->limit, view->arena,
                         &entries, why);
    if (r == 0 && entries.len == 0)
        r = why_set(why, WHY_USAGE, ENOENT, "choose another --metric",
                    "no result of '%s' has the metric %s", name, bench_metrics[view->metric].name);
    if (r == 0)
        r = show_entries(view, name, machine, others, &entries, why);
    VEC_FREE(&entries);
    return r;
}

static int check(struct view *view, struct why *why)
{
    int metric = bench_metric_find(view->opts->metric);
    if (metric < 0)
        return why_set(why, WHY_USAGE, EINVAL, "such as wall, user, system, cpu or peak_rss",
                       "there is no metric '%s'", view->opts->metric);
    if (view->opts->limit < 1 || view->opts->limit > CHANGES_VALUES_MAX)
        return why_set(why, WHY_USAGE, EINVAL, NULL, "--limit must be 1 to %d", CHANGES_VALUES_MAX);
    if (!(view->opts->p_max >= 1e-4 && view->opts->p_max <= 0.5))
        return why_set(why, WHY_USAGE, EINVAL, "0.01 is a good one", "--p must be 0.0001 to 0.5");
    const char *na = NULL;
    view->path = view->opts->store ? view->opts->store : history_default(view->arena, &na);
    const char *given = getenv("WHYSLOW_HISTORY");
    if (!view->path && given && strcmp(given, "off") == 0)
        return why_set(why, WHY_USAGE, ENOENT, "unset it, or name a file with --store",
                       "WHYSLOW_HISTORY is off");
    if (!view->path)
        return why_set(why, WHY_USAGE, ENOENT,
                       "go into a git repository, or name a file with --store",
                       "there is no history here: %s", na);
    view->metric = (enum bench_metric)metric;
    view->unit = bench_metrics[metric].unit;
    return 0;
}

static int history_run(const struct cmd_call *call, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct view view = {.opts = call->opts, .call = call, .arena = &arena};
    int r = check(&view, why);
    if (r < 0)
        return r;
    if (call->argc > 0 && strcmp(call->argv[0], "add") == 0) {
        if (call->argc < 2)
            return why_set(why, WHY_USAGE, EINVAL, "such as: whyslow history add result.json",
                           "'history add' wants files");
        return add_files(&view, why);
    }
    if (call->argc > 1)
        return why_set(why, WHY_USAGE, EINVAL, "quote a name with blanks",
                       "history takes one name, or 'add' and files");
    struct history *history = NULL;
    r = history_open(view.path, false, &history, why);
    if (r == -ENOENT)
        return why_set(why, WHY_USAGE, ENOENT, "run 'whyslow bench CMD' in this repository first",
                       "there is no history yet at '%s'", view.path);
    if (r == 0)
        r = call->argc == 1 ? show_name(&view, history, call->argv[0], why)
                            : show_names(&view, history, why);
    history_close(history);
    return r;
}

static const struct cmd_example examples[] = {
    {"whyslow history", "benchmarks of this repository and their last results"},
    {"whyslow history 'parse big.json'", "one of them over time: changes, list and plot"},
    {"whyslow history add result.json", "keep a result that was made elsewhere"},
    {NULL, NULL},
};

const struct command cmd_history = {
    .name = "history",
    .group = "Measure",
    .operands = "[NAME | add FILE…]",
    .summary = "benchmark results over time, and the commits where they changed",
    .about =
        "'whyslow bench' keeps its results with the git revision in whyslow/history.db in the "
        "repository's git folder (WHYSLOW_HISTORY names another file; 'off' keeps nothing). With "
        "a name this shows them over time and looks for change points: places that split the "
        "series better than --p of all random orders of the same results do. Results of "
        "different machines are never mixed.",
    .options = history_options,
    .options_size = sizeof(struct history_opts),
    .stop = OPT_MIXED,
    .operands_min = 0,
    .operands_max = -1,
    .examples = examples,
    .run = history_run,
};
