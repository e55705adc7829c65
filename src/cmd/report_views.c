/* One view of a profile, as values. */
#include "cmd/report_parts.h"

#include "analyze/call_tree.h"

#include <errno.h>

static struct tables tables_of(const struct report_run *run)
{
    return (struct tables){
        .arena = run->arena,
        .profile = &run->main.profile,
        .hotspots = &run->main.hotspots,
        .recording = recording_path(run->main.recording),
        .limit = run->opts->limit,
    };
}

/* Titles that fit the unit. */
static const char *by_self(const struct report_run *run, const char *time, const char *weight)
{
    return run->main.profile.unit == UNIT_NS ? time : weight;
}

/* How many rows were not shown, for machines and in words. */
static void put_cut(struct report_run *run, struct value *root, size_t shown, size_t all,
                    const char *words)
{
    value_put_machine(root, "row_count", value_uint(shown, UNIT_NONE));
    value_put_machine(root, "left_out", value_uint(all - shown, UNIT_NONE));
    if (all > shown)
        value_put(root, "note", NULL,
                  value_text(arena_printf(run->arena, "%zu %s", all - shown, words)));
}

static void view_hotspots(struct report_run *run, struct value *root)
{
    struct tables tables = tables_of(run);
    struct value table = tables_hotspots(&tables);
    if (table.table)
        put_cut(run, root, table.table->row_count, run->main.hotspots.count,
                "more functions; --limit 0 prints all of them");
    value_put(root, "hotspots", by_self(run, "Functions by self time", "Functions by self weight"),
              table);
}

static struct str source_of(void *context, struct str file, uint32_t line)
{
    return embedded_source(context, file, line);
}

static int view_lines(struct report_run *run, struct value *root, struct why *why)
{
    struct tables tables = tables_of(run);
    struct embedded embedded;
    int r = embedded_load(run->arena, run->main.recording, &embedded, why);
    if (r < 0)
        return r;
    value_put(root, "lines", by_self(run, "Lines by self time", "Lines by self weight"),
              tables_lines(&tables, source_of, &embedded));
    return 0;
}

static int view_threads(struct report_run *run, struct value *root)
{
    struct tables tables = tables_of(run);
    struct value groups, threads;
    int r = tables_threads(&tables, &groups, &threads);
    if (r < 0)
        return r;
    value_put(root, "thread_groups", "Groups of threads", groups);
    value_put(root, "threads", "Threads", threads);
    return 0;
}

static int view_tree(struct report_run *run, const struct call_tree_opts *opts, const char *key,
                     const char *title, struct value *root)
{
    struct tables tables = tables_of(run);
    struct call_tree tree;
    int r = call_tree_build(run->arena, &run->main.profile, opts, &tree);
    if (r < 0)
        return r;
    size_t left_out;
    struct value table = tables_tree(&tables, &tree, run->opts->min_pct, &left_out);
    if (table.table)
        table.table->empty = "nothing is above --min-pct";
    put_cut(run, root, tree.count - 1 - left_out, tree.count - 1,
            "more calls below --min-pct (or beyond 2,000 rows)");
    value_put(root, key, title, table);
    return 0;
}

static int view_around(struct report_run *run, const char *name, bool inverted, struct value *root,
                       struct why *why)
{
    uint32_t function;
    int r = hotspots_choose(&run->main.hotspots, name, &function, why);
    if (r < 0)
        return r;
    struct str text = run->main.profile.functions[function].name;
    value_put_machine(root, "id", tables_id(run->arena, function));
    value_put(root, "function", NULL, value_str(text));
    struct call_tree_opts opts = {.function = function, .inverted = inverted};
    r = view_tree(run, &opts, inverted ? "callers" : "callees",
                  inverted ? "Who calls it" : "What it calls", root);
    return r < 0 ? why_nomem(why) : 0;
}

static int view_diff(struct report_run *run, struct value *root)
{
    const struct profile_diff *diff = &run->diff;
    struct value table = tables_diff(run->arena, diff, run->opts->limit);
    struct value before = tables_weight(diff->after, diff->before_weight);
    struct value after = tables_weight(diff->after, diff->after_weight);
    bool time = diff->after->unit == UNIT_NS;
    value_put(root, time ? "before_ms" : "before_weight", "before", before);
    value_put(root, time ? "after_ms" : "after_weight", "after", after);
    value_put(root, "normalised", NULL,
              value_text(run->work[0] > 0 ? "to one operation of the work given with --work"
                                          : "to one run each; give --work A:B if they did "
                                            "different amounts of work"));
    value_put(root, "intervals", NULL,
              value_text("95%, from the samples of the two recordings; they do not know how one "
                         "run differs from the next"));
    if (table.table)
        put_cut(run, root, table.table->row_count, diff->count,
                "more functions; --limit 0 prints all of them");
    value_put(
        root, "diff",
        by_self(run, "Functions by change of self time", "Functions by change of self weight"),
        table);
    return 0;
}

int report_view(struct report_run *run, struct value *root, struct why *why)
{
    const struct report_opts *opts = run->opts;
    int r = 0;
    if (opts->callers)
        return view_around(run, opts->callers, true, root, why);
    if (opts->callees)
        return view_around(run, opts->callees, false, root, why);
    if (opts->annotate)
        return report_annotate(run, root, why);
    if (opts->lines)
        return view_lines(run, root, why);
    if (opts->diff)
        r = view_diff(run, root);
    else if (opts->tree)
        r = view_tree(run, &(struct call_tree_opts){.inverted = opts->inverted}, "tree",
                      opts->inverted ? "Calls, from the innermost out" : "Calls", root);
    else if (opts->threads)
        r = view_threads(run, root);
    else
        view_hotspots(run, root);
    return r < 0 ? why_nomem(why) : 0;
}
