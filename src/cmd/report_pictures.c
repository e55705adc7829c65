/* Flame graphs and the page: drawn into memory, written whole or not at all. */
#include "cmd/report_parts.h"

#include "analyze/call_tree.h"
#include "base/fd.h"
#include "present/flame.h"
#include "present/html.h"

#include <errno.h>
#include <stdlib.h>

struct trees {
    struct call_tree tree;
    struct call_tree before;
    bool differential;
    double scale;
    const char *title;
    const char *subtitle;
    struct value honesty;
    struct value hotspots;
};

enum picture { PICTURE_FLAME, PICTURE_ICICLE, PICTURE_PAGE };

static int picture_draw(const struct trees *trees, enum picture kind, FILE *out, struct why *why)
{
    const struct call_tree *before = trees->differential ? &trees->before : NULL;
    if (kind == PICTURE_PAGE) {
        struct html_opts page = {
            .title = trees->title,
            .honesty = &trees->honesty,
            .hotspots = &trees->hotspots,
            .tree = &trees->tree,
            .before = before,
            .scale = trees->scale,
        };
        return html_write(&page, out, why);
    }
    struct flame_opts flame = {
        .title = trees->title, .subtitle = trees->subtitle, .icicle = kind == PICTURE_ICICLE};
    return flame_svg(&flame, &trees->tree, before, trees->scale, out, why);
}

static int picture_write(const struct trees *trees, enum picture kind, const char *path,
                         struct value *files, struct why *why)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return why_nomem(why);
    int r = picture_draw(trees, kind, out, why);
    if (fclose(out) != 0 && r == 0)
        r = why_nomem(why);
    if (r == 0)
        r = file_write_atomic(path, text, len, why);
    free(text);
    if (r == 0)
        value_append(files, value_text(path));
    return r;
}

static const char *title_of(struct report_run *run)
{
    struct str command = run->main.profile.command;
    const char *name = command.len > 0 ? arena_dup_len(run->arena, command.data, command.len)
                                       : recording_path(run->main.recording);
    const char *range = run->opts->time ? arena_printf(run->arena, ", %s", run->opts->time) : "";
    return arena_printf(run->arena, "%s: %s%s%s", run->main.profile.series, name, range,
                        run->opts->diff ? ", before and after" : "");
}

static int trees_build(struct report_run *run, struct trees *ret)
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
    struct trees trees = {
        .differential = diff,
        .scale = run->work[0] > 0 ? run->work[0] / run->work[1] : 1,
        .title = title_of(run),
        .subtitle = honesty_line(run->arena, &shown->honesty),
        .honesty = honesty_value(run->arena, &shown->honesty),
        .hotspots = tables_hotspots(&tables),
    };
    int r = call_tree_build(run->arena, &shown->profile, &opts, &trees.tree);
    if (r == 0 && diff)
        r = call_tree_build(run->arena, &run->main.profile, &opts, &trees.before);
    if (r == 0)
        *ret = trees;
    return r;
}

int report_pictures(struct report_run *run, struct value *root, struct why *why)
{
    const char *paths[] = {
        [PICTURE_FLAME] = run->opts->flame,
        [PICTURE_ICICLE] = run->opts->icicle,
        [PICTURE_PAGE] = run->opts->html,
    };
    if (!run->opts->flame && !run->opts->icicle && !run->opts->html)
        return 0;
    struct trees trees;
    if (trees_build(run, &trees) < 0)
        return why_nomem(why);
    struct value files = value_list(run->arena);
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        int r = paths[i] ? picture_write(&trees, (enum picture)i, paths[i], &files, why) : 0;
        if (r < 0)
            return r;
    }
    value_put(root, "written", "Written", files);
    return 0;
}
