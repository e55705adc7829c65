/* Paths of two call trees side by side, for differential pictures. */
#include "present/flame_diff.h"

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>

struct path_weights {
    uint64_t before, after;
};

struct paths {
    struct intern names;
    struct map_u64 ids; /* parent path << 32 | name to path */
    VEC(struct path_weights) weights;
};

static void paths_deinit(struct paths *paths)
{
    intern_deinit(&paths->names);
    map_u64_deinit(&paths->ids);
    VEC_FREE(&paths->weights);
}

/* A parent stands before its children, so its path is known when they come. */
static int add_tree(struct paths *paths, const struct call_tree *tree, bool later, uint32_t *path)
{
    for (size_t i = 0; i < tree->count; i++) {
        uint32_t name = 0;
        if (i > 0) {
            int r = intern_add(&paths->names, flame_name(tree, (uint32_t)i), &name, NULL);
            if (r < 0)
                return r;
        }
        uint64_t parent = i > 0 ? path[tree->nodes[i].parent] + 1 : 0;
        bool fresh;
        uint64_t *id = map_u64_at(&paths->ids, parent << 32 | name, &fresh);
        if (!id)
            return -ENOMEM;
        if (fresh) {
            *id = paths->weights.len;
            if (VEC_PUSH(&paths->weights, (struct path_weights){0}) < 0)
                return -ENOMEM;
        }
        path[i] = (uint32_t)*id;
        struct path_weights *weights = &paths->weights.data[path[i]];
        *(later ? &weights->after : &weights->before) += tree->nodes[i].total_weight;
    }
    return 0;
}

static void count_gone(const struct call_tree *before, const struct paths *paths,
                       const uint32_t *path, double total, struct flame_diff *diff)
{
    for (size_t i = 1; i < before->count; i++) {
        const struct call_node *node = &before->nodes[i];
        /* What is below a path that is gone is gone with it: only the topmost counts. */
        if (paths->weights.data[path[i]].after != 0 ||
            paths->weights.data[path[node->parent]].after == 0)
            continue;
        double pct = (double)node->total_weight / total * 100;
        diff->gone++;
        diff->gone_pct += pct;
        if (pct > diff->gone_name_pct) {
            diff->gone_name_pct = pct;
            diff->gone_name = flame_name(before, (uint32_t)i);
        }
    }
}

int flame_diff_build(struct arena *arena, const struct call_tree *tree,
                     const struct call_tree *before, double scale, struct flame_diff *ret,
                     struct why *why)
{
    if (before->count == 0 || before->nodes[0].total_weight == 0)
        return why_set(why, WHY_NOTHING, ENODATA, "record it again, for longer",
                       "there is nothing to compare with: the earlier profile has no samples");
    double total = (double)before->nodes[0].total_weight;
    bool shares = !isfinite(scale) || scale <= 0;
    struct flame_diff diff = {
        .shares = shares,
        .scale = shares ? total / (double)MAX(tree->nodes[0].total_weight, 1) : scale,
        .change_pct = arena_alloc(arena, tree->count * sizeof(double)),
        .before_pct = arena_alloc(arena, tree->count * sizeof(double)),
    };
    uint32_t *later = arena_alloc(arena, tree->count * sizeof(*later));
    uint32_t *earlier = arena_alloc(arena, before->count * sizeof(*earlier));
    AUTO(paths_deinit) struct paths paths = {0};
    if (!diff.change_pct || !diff.before_pct || !later || !earlier ||
        add_tree(&paths, tree, true, later) < 0 || add_tree(&paths, before, false, earlier) < 0)
        return why_nomem(why);
    for (size_t i = 0; i < tree->count; i++) {
        const struct path_weights *weights = &paths.weights.data[later[i]];
        diff.before_pct[i] = (double)weights->before / total * 100;
        diff.change_pct[i] = ((double)weights->after * diff.scale - (double)weights->before) /
                             total * 100;
    }
    count_gone(before, &paths, earlier, total, &diff);
    *ret = diff;
    return 0;
}

double flame_diff_limit(const struct flame_diff *diff, const struct flame_layout *layout)
{
    double largest = 0.01; /* less is what rounding makes, not a change */
    for (size_t i = 0; i < layout->count; i++)
        largest = fmax(largest, fabs(diff->change_pct[layout->rects[i].node]));
    static const double ends[] = {1, 2, 3, 5, 7, 10};
    double power = pow(10, floor(log10(largest)));
    size_t i = 0;
    while (i + 1 < ARRAY_SIZE(ends) && largest > power * ends[i] * 1.0001)
        i++;
    return power * ends[i];
}
