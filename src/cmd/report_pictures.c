/* Which trees the flame graphs and the page of a report show. */
#include "cmd/report_parts.h"

#include "analyze/call_tree.h"
#include "cmd/pictures.h"

#include <errno.h>

struct trees {
    struct call_tree tree;
    struct call_tree before;
    struct value honesty;
    struct value hotspots;
    struct pictured pictured;
};

static const char *title_of(struct report_run *run)
{
    struct str command = run->main.profile.command;
    const char *name = command.len > 0 ? arena_dup_len(run->arena, command.data, command.len)
                                       : recording_path(run->main.recording);
    const char *range = run->opts->time ? arena_printf(run->arena, ", %s", run->opts->time) : "";
    return arena_printf(run->arena, "%s: %s%s%s", run->main.profile.series, name, range,
                        run->opts->diff ? ", before and after" : "");
}

/* Not to be copied: it points into itself. */
static int trees_build(struct report_run *run, struct trees *trees)
{
    bool diff = run->opts->diff != NULL;
    const struct loaded *shown = diff ? &run->other : &run->main;
    struct call_tree_opts opts = {.inverted = run->opts->inverted};
    struct tables tables = {
        .arena = run->arena,
        .profile = &shown->profile,
        .hotspots = &shown->hotspots,
        .recording = recording_path(shown->recording),
        .limit = run->opts->limit,
    };
    trees->honesty = series_honesty_value(run->arena, &shown->honesty);
    trees->hotspots = tables_hotspots(&tables);
    trees->pictured = (struct pictured){
        .tree = &trees->tree,
        .before = diff ? &trees->before : NULL,
        .scale = run->work[0] > 0 ? run->work[0] / run->work[1] : 1,
        .title = title_of(run),
        .subtitle = series_honesty_line(run->arena, &shown->honesty),
        .honesty = &trees->honesty,
        .table = &trees->hotspots,
    };
    int r = call_tree_build(run->arena, &shown->profile, &opts, &trees->tree);
    if (r == 0 && diff)
        r = call_tree_build(run->arena, &run->main.profile, &opts, &trees->before);
    return r;
}

int report_pictures(struct report_run *run, struct value *root, struct why *why)
{
    struct trees trees = {0};
    const struct picture_opts opts = {run->opts->flame, run->opts->icicle, run->opts->html};
    if (!pictures_wanted(&opts))
        return 0;
    if (trees_build(run, &trees) < 0)
        return why_nomem(why);
    return pictures_write(&opts, &trees.pictured, run->arena, root, why);
}
