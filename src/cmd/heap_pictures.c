/* Flame graphs of the heap: stacks by what they allocate, hold, leak or throw away at once. */
#include "cmd/heap_parts.h"

#include "analyze/call_tree.h"

#include <errno.h>
#include <string.h>

static const struct drawn {
    const char *name; /* of --flame-by */
    enum heap_measure measure;
    enum heap_view view; /* whose table is on the page */
    const char *title;
    const char *counted;
} drawings[] = {
    {"bytes", HEAP_BY_BYTES, HEAP_VIEW_CHURN, "allocated bytes", "call"},
    {"count", HEAP_BY_COUNT, HEAP_VIEW_CHURN, "allocations", "call"},
    {"peak", HEAP_BY_PEAK, HEAP_VIEW_PEAK, "heap at its peak", "piece"},
    {"leak", HEAP_BY_LEAK, HEAP_VIEW_LEAKS, "not freed at the end", "piece"},
    {"temporary", HEAP_BY_TEMPORARY, HEAP_VIEW_TEMPORARY, "temporary allocations", "call"},
};

static const struct drawn *drawing_of(const struct heap_cmd_opts *opts)
{
    for (size_t i = 0; i < ARRAY_SIZE(drawings); i++)
        if (strcmp(drawings[i].name, opts->flame_by) == 0)
            return &drawings[i];
    return &drawings[0];
}

/* Peaks of several processes are of different moments: the highest is drawn, as tables have it. */
static int heap_narrow(struct arena *arena, const struct heap_side *side, enum heap_measure measure,
                       struct heap *ret)
{
    struct heap heap = side->heap;
    if (measure == HEAP_BY_PEAK && side->sums.processes > 1) {
        heap.sites = arena_alloc(arena, (heap.site_count + 1) * sizeof(*heap.sites));
        if (!heap.sites)
            return -ENOMEM;
        size_t kept = 1;
        for (size_t i = 1; i < side->heap.site_count; i++)
            if (side->heap.sites[i].process == side->sums.peak_process)
                heap.sites[kept++] = side->heap.sites[i];
        heap.site_count = kept;
    }
    *ret = heap;
    return 0;
}

static int tree_build(struct heap_run *run, const struct heap_side *side, enum heap_measure measure,
                      struct profile *profile, struct call_tree *tree)
{
    struct heap heap;
    if (heap_narrow(run->arena, side, measure, &heap) < 0 ||
        heap_profile(run->arena, &heap, measure, profile) < 0 ||
        call_tree_build(run->arena, profile, NULL, tree) < 0)
        return -ENOMEM;
    return 0;
}

int heap_pictures(struct heap_run *run, struct value *root, struct why *why)
{
    struct profile profile, before_profile;
    struct call_tree tree, before;
    const struct drawn *drawn = drawing_of(run->opts);
    const struct heap_side *side = run->opts->diff ? &run->other : &run->main;
    if (!pictures_wanted(&run->opts->pictures))
        return 0;
    if (tree_build(run, side, drawn->measure, &profile, &tree) < 0 ||
        (run->opts->diff &&
         tree_build(run, &run->main, drawn->measure, &before_profile, &before) < 0))
        return why_nomem(why);
    if (profile.weight == 0)
        return why_set(why, WHY_USAGE, ENODATA, "choose another measure with --flame-by",
                       "there is nothing to draw: %s are none", drawn->title);
    profile.counted = drawn->counted;
    struct heap_sum_list list;
    if (heap_sums_rank(run->arena, &side->sums.per[HEAP_PER_STACK], heap_view_rank(drawn->view),
                       &list) < 0)
        return why_nomem(why);
    struct value honesty = heap_honesty_value(run->arena, &side->honesty);
    struct value table = heap_tables_sums(&side->tables, drawn->view, &list);
    struct pictured pictured = {
        .tree = &tree,
        .before = run->opts->diff ? &before : NULL,
        .scale = 1,
        .title = arena_printf(run->arena, "%s: %.*s", drawn->title, STR_FMT(profile.command)),
        .subtitle = heap_honesty_line(run->arena, &side->honesty),
        .honesty = &honesty,
        .table = &table,
        .table_title = "Stacks",
    };
    return pictures_write(&run->opts->pictures, &pictured, run->arena, root, why);
}
