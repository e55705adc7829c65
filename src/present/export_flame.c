/* A profile becomes a call tree, and that a picture. */
#include "present/export_flame.h"

#include "analyze/call_tree.h"
#include "present/flame.h"
#include "present/html.h"

#include <errno.h>

static const char *title_of(struct arena *arena, const struct profile *profile,
                            const struct export_opts *opts)
{
    if (opts && opts->title)
        return opts->title;
    return profile->command.len > 0
               ? arena_dup_len(arena, profile->command.data, profile->command.len)
               : "whyslow";
}

/* What an exporter knows of how far it can be trusted; `report` knows more. */
static const char *subtitle_of(struct arena *arena, const struct profile *profile)
{
    char weight[48], count[48];
    units_format((double)profile->weight, profile->unit, weight, sizeof(weight));
    units_format((double)profile->count, UNIT_COUNT, count, sizeof(count));
    return arena_printf(arena, "%s: %s in %s samples", profile->series ? profile->series : "series",
                        weight, count);
}

static int tree_of(struct arena *arena, const struct profile *profile, struct call_tree *ret,
                   struct why *why)
{
    int r = call_tree_build(arena, profile, &(struct call_tree_opts){0}, ret);
    return r == -ENOMEM ? why_nomem(why)
           : r < 0      ? why_errno(why, -r, NULL, "cannot merge the stacks")
                        : 0;
}

static int write_svg(const struct profile *profile, const struct export_opts *opts, bool icicle,
                     FILE *out, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct call_tree tree;
    int r = tree_of(&arena, profile, &tree, why);
    if (r < 0)
        return r;
    struct flame_opts flame = {.title = title_of(&arena, profile, opts),
                               .subtitle = subtitle_of(&arena, profile),
                               .icicle = icicle};
    return flame_svg(&flame, &tree, NULL, 0, out, why);
}

static int write_flame(const struct profile *profile, const struct export_opts *opts, FILE *out,
                       struct why *why)
{
    return write_svg(profile, opts, false, out, why);
}

static int write_icicle(const struct profile *profile, const struct export_opts *opts, FILE *out,
                        struct why *why)
{
    return write_svg(profile, opts, true, out, why);
}

static int write_html(const struct profile *profile, const struct export_opts *opts, FILE *out,
                      struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct call_tree tree;
    int r = tree_of(&arena, profile, &tree, why);
    if (r < 0)
        return r;
    struct value honesty = value_text(subtitle_of(&arena, profile));
    struct html_opts html = {
        .title = title_of(&arena, profile, opts), .honesty = &honesty, .tree = &tree};
    return html_write(&html, out, why);
}

const struct exporter exporter_flame = {
    .name = "flame",
    .extension = ".svg",
    .about = "flame graph; any browser, with search and zoom",
    .write = write_flame,
};

const struct exporter exporter_icicle = {
    .name = "icicle",
    .extension = ".icicle.svg",
    .about = "flame graph with the root on top; any browser",
    .write = write_icicle,
};

const struct exporter exporter_html = {
    .name = "html",
    .extension = ".html",
    .about = "one page with the flame graph, without a network; any browser",
    .write = write_html,
};
