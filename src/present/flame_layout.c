/* A call tree becomes rectangles. Drawing is done by flame_svg.c and html.c. */
#include "present/flame_layout.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Which nodes are drawn: those above the bound, and the first few that are exactly on it. */
struct cut {
    uint64_t bound;
    size_t on_bound; /* how many of exactly that weight still have room */
    uint32_t levels_max;
};

static int heavier_first(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? 1 : left > right ? -1 : 0;
}

/* A child never weighs more than its parent, so the heaviest nodes are a tree by themselves. */
static int cut_find(const struct call_tree *tree, const struct flame_limits *limits,
                    struct cut *ret)
{
    uint64_t narrow = (uint64_t)ceil(limits->narrow_share * (double)tree->nodes[0].total_weight);
    struct cut cut = {
        .bound = MAX(narrow, 1), .on_bound = tree->count, .levels_max = limits->levels_max};
    size_t count = 0;
    for (size_t i = 0; i < tree->count; i++)
        count += tree->nodes[i].total_weight >= cut.bound && tree->nodes[i].depth < cut.levels_max;
    if (count > limits->rect_count_max) {
        uint64_t *weights = malloc(count * sizeof(*weights));
        if (!weights)
            return -ENOMEM;
        size_t len = 0;
        for (size_t i = 0; i < tree->count; i++)
            if (tree->nodes[i].total_weight >= cut.bound && tree->nodes[i].depth < cut.levels_max)
                weights[len++] = tree->nodes[i].total_weight;
        qsort(weights, len, sizeof(*weights), heavier_first);
        cut.bound = weights[limits->rect_count_max - 1];
        size_t above = 0;
        while (weights[above] > cut.bound)
            above++;
        cut.on_bound = limits->rect_count_max - above;
        free(weights);
    }
    *ret = cut;
    return 0;
}

static bool cut_keeps(struct cut *cut, const struct call_node *node)
{
    if (node->depth >= cut->levels_max || node->total_weight < cut->bound)
        return false;
    if (node->total_weight > cut->bound)
        return true;
    if (cut->on_bound == 0)
        return false;
    cut->on_bound--;
    return true;
}

/* The next node in preorder, without the children of `at` unless `into` is set; 0 at the end. */
static uint32_t next_node(const struct call_tree *tree, uint32_t at, bool into)
{
    if (into && tree->nodes[at].first_child != 0)
        return tree->nodes[at].first_child;
    while (at != 0 && tree->nodes[at].next_sibling == 0)
        at = tree->nodes[at].parent;
    return at == 0 ? 0 : tree->nodes[at].next_sibling;
}

/* No recursion: a stack of a target may be deeper than ours. `open` is the rectangle whose
 * subtree is being filled, `filled` how much of each rectangle its children take so far. */
static void place(const struct call_tree *tree, struct cut *cut, struct flame_layout *layout,
                  uint64_t *filled)
{
    uint32_t open = 0;
    layout->rects[0] = (struct flame_rect){.weight = tree->nodes[0].total_weight};
    layout->count = 1;
    layout->levels = 1;
    for (uint32_t at = next_node(tree, 0, true); at != 0;) {
        const struct call_node *node = &tree->nodes[at];
        while (layout->rects[open].depth >= node->depth) {
            layout->rects[open].end = (uint32_t)layout->count;
            open = layout->rects[open].parent;
        }
        bool kept = cut_keeps(cut, node);
        if (kept) {
            const struct flame_rect *parent = &layout->rects[open];
            uint64_t room = parent->weight - filled[open];
            struct flame_rect rect = {.node = at,
                                      .parent = open,
                                      .depth = node->depth,
                                      .start = parent->start + filled[open],
                                      .weight = MIN(node->total_weight, room)};
            filled[open] += rect.weight;
            open = (uint32_t)layout->count++;
            layout->rects[open] = rect;
            filled[open] = 0;
            layout->levels = MAX(layout->levels, node->depth + 1);
        } else {
            layout->left_out_weight += node->total_weight;
            if (node->depth >= cut->levels_max)
                layout->levels_cut = cut->levels_max;
        }
        at = next_node(tree, at, kept);
    }
    for (; open != 0; open = layout->rects[open].parent)
        layout->rects[open].end = (uint32_t)layout->count;
    layout->rects[0].end = (uint32_t)layout->count;
}

int flame_layout_build(struct arena *arena, const struct call_tree *tree,
                       const struct flame_limits *limits, struct flame_layout *ret, struct why *why)
{
    if (tree->count == 0 || tree->nodes[0].total_weight == 0)
        return why_set(why, WHY_NOTHING, ENODATA, "record for longer, or widen the filter",
                       "there is nothing to draw: the profile has no samples");
    struct cut cut;
    int r = cut_find(tree, limits, &cut);
    if (r < 0)
        return why_nomem(why);
    size_t room = MIN(tree->count, limits->rect_count_max) + 1;
    struct flame_layout layout = {.tree = tree};
    layout.rects = arena_alloc(arena, room * sizeof(*layout.rects));
    uint64_t *filled = arena_alloc(arena, room * sizeof(*filled));
    if (!layout.rects || !filled)
        return why_nomem(why);
    /* The root is drawn whatever it weighs, so it takes one of the places. */
    if (tree->nodes[0].total_weight == cut.bound && cut.on_bound > 0)
        cut.on_bound--;
    place(tree, &cut, &layout, filled);
    layout.left_out = tree->count - layout.count;
    *ret = layout;
    return 0;
}

const struct profile_function *flame_function(const struct call_tree *tree, uint32_t node)
{
    static const struct profile_function none = {.unnamed = true};
    const struct profile *profile = tree->profile;
    uint32_t function = tree->nodes[node].function;
    return profile && function < profile->function_count ? &profile->functions[function] : &none;
}

const struct image_info *flame_image(const struct call_tree *tree, uint32_t node)
{
    const struct profile_function *function = flame_function(tree, node);
    return function->image != 0 && function->image < tree->profile->image_count
               ? &tree->profile->images[function->image]
               : NULL;
}

struct str flame_name(const struct call_tree *tree, uint32_t node)
{
    if (node == 0)
        return STR("all");
    struct str name = flame_function(tree, node)->name;
    return name.len > 0 ? name : STR("[unknown]");
}

enum flame_kind flame_kind_of(const struct call_tree *tree, uint32_t node)
{
    if (node == 0)
        return FLAME_ROOT;
    const struct profile_function *function = flame_function(tree, node);
    const struct image_info *image = flame_image(tree, node);
    if (function->unnamed)
        return FLAME_UNKNOWN;
    if (function->kernel)
        return FLAME_KERNEL;
    if (image && image->kind == IMAGE_JIT)
        return FLAME_JIT;
    return tree->nodes[node].inlined ? FLAME_INLINED : FLAME_USER;
}

const char *flame_kind_text(enum flame_kind kind)
{
    static const char *const texts[FLAME_KINDS] = {
        [FLAME_ROOT] = "all",        [FLAME_USER] = "program",     [FLAME_KERNEL] = "kernel",
        [FLAME_INLINED] = "inlined", [FLAME_JIT] = "JIT-compiled", [FLAME_UNKNOWN] = "no symbol",
    };
    return texts[kind];
}
