/* Stacks merged by function.
 *
 * From the root the tree of stacks is walked once, parents first, whatever the number of
 * samples. From the leaf every stack that has weight is walked up. */
#include "analyze/call_tree.h"

#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 4096,         /* from the root: what lies deeper counts as self of its ancestor */
    DEPTH_INVERTED_MAX = 512, /* from the leaf; bounds the work on a hostile recording */
    NODES_MAX = 1 << 24,
    NOWHERE = UINT32_MAX, /* the walk has not met opts->function yet */
};

struct builder {
    const struct profile *profile;
    const struct call_tree_opts *opts;
    struct map_u64 child_at; /* parent node and function to node */
    VEC(struct call_node) nodes;
};

/* The child for a function, made if need be; the node itself where the tree may not grow. */
static int descend(struct builder *builder, uint32_t *node, uint32_t function, bool inlined,
                   uint32_t depth_max)
{
    uint32_t depth = builder->nodes.data[*node].depth + 1;
    if (depth > depth_max)
        return 0;
    uint64_t key = (uint64_t)*node << 32 | function;
    if (builder->nodes.len >= NODES_MAX) {
        uint64_t *known = map_u64_find(&builder->child_at, key);
        *node = known ? (uint32_t)*known : *node;
        return 0;
    }
    bool fresh;
    uint64_t *at = map_u64_at(&builder->child_at, key, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        *at = builder->nodes.len;
        struct call_node child = {
            .parent = *node, .function = function, .depth = depth, .inlined = inlined};
        if (VEC_PUSH(&builder->nodes, child) < 0)
            return -ENOMEM;
    }
    *node = (uint32_t)*at;
    /* Called here and inlined there: then it is not always inlined. */
    builder->nodes.data[*node].inlined &= inlined;
    return 0;
}

/* Stacks that have weight, or lie below one that has. */
static uint8_t *stacks_used(const struct profile *profile)
{
    uint8_t *used = calloc(profile->stack_count, 1);
    for (size_t i = 0; used && i < profile->total_count; i++)
        used[profile->totals[i].stack] = 1;
    for (size_t i = used ? profile->stack_count - 1 : 0; i > 0; i--)
        if (used[i])
            used[profile->stacks[i].parent] = 1;
    return used;
}

/* One frame further from the root: its places, outermost first. */
static int frame_down(struct builder *builder, uint32_t frame_id, uint32_t *node)
{
    const struct profile_frame *frame = &builder->profile->frames[frame_id];
    uint32_t wanted = builder->opts->function;
    for (uint32_t i = frame->place_count; i > 0; i--) {
        uint32_t function = builder->profile->places[frame->places + i - 1].function;
        bool outermost = i == frame->place_count;
        if (builder->opts->no_inlined && !outermost)
            return 0;
        if (*node == NOWHERE && function != wanted)
            continue;
        if (*node == NOWHERE)
            *node = 0;
        int r = descend(builder, node, function, !outermost, DEPTH_MAX);
        if (r < 0)
            return r;
    }
    return 0;
}

static int build_down(struct builder *builder, const uint8_t *used, uint32_t *node_at)
{
    const struct profile *profile = builder->profile;
    node_at[0] = builder->opts->function ? NOWHERE : 0;
    for (size_t i = 1; i < profile->stack_count; i++) {
        if (!used[i])
            continue;
        uint32_t node = node_at[profile->stacks[i].parent];
        int r = frame_down(builder, profile->stacks[i].frame, &node);
        if (r < 0)
            return r;
        node_at[i] = node;
    }
    return 0;
}

/* One frame further from the leaf: its places, innermost first. */
static int frame_up(struct builder *builder, uint32_t frame_id, uint32_t *node)
{
    const struct profile_frame *frame = &builder->profile->frames[frame_id];
    uint32_t wanted = builder->opts->function;
    uint32_t first = builder->opts->no_inlined ? frame->place_count - 1 : 0;
    for (uint32_t i = first; i < frame->place_count; i++) {
        uint32_t function = builder->profile->places[frame->places + i].function;
        if (*node == NOWHERE && function != wanted)
            continue;
        if (*node == NOWHERE)
            *node = 0;
        int r = descend(builder, node, function, i + 1 < frame->place_count, DEPTH_INVERTED_MAX);
        if (r < 0)
            return r;
    }
    return 0;
}

static int build_up(struct builder *builder, uint8_t *used, uint32_t *node_at)
{
    const struct profile *profile = builder->profile;
    memset(used, 0, profile->stack_count);
    node_at[0] = builder->opts->function ? NOWHERE : 0;
    for (size_t i = 0; i < profile->total_count; i++) {
        uint32_t leaf = profile->totals[i].stack;
        if (used[leaf])
            continue; /* another thread had it too */
        used[leaf] = 1;
        uint32_t node = node_at[0];
        uint32_t steps = 0;
        for (uint32_t at = leaf; at != 0 && steps < DEPTH_MAX; at = profile->stacks[at].parent) {
            if (node != NOWHERE && builder->nodes.data[node].depth >= DEPTH_INVERTED_MAX)
                break;
            int r = frame_up(builder, profile->stacks[at].frame, &node);
            if (r < 0)
                return r;
            steps++;
        }
        node_at[leaf] = node;
    }
    return 0;
}

/* A stack's weight goes to the node where it ends, so that a node's total is its self weight
 * and its children's totals, in either direction. */
static void weigh(struct builder *builder, const uint32_t *node_at)
{
    const struct profile *profile = builder->profile;
    struct call_node *nodes = builder->nodes.data;
    for (size_t i = 0; i < profile->total_count; i++) {
        const struct profile_total *total = &profile->totals[i];
        if (node_at[total->stack] == NOWHERE)
            continue;
        struct call_node *node = &nodes[node_at[total->stack]];
        node->self_weight += total->weight;
        node->self_count += total->count;
    }
    for (size_t i = builder->nodes.len; i-- > 0;) {
        nodes[i].total_weight += nodes[i].self_weight;
        nodes[i].total_count += nodes[i].self_count;
        if (i > 0) {
            nodes[nodes[i].parent].total_weight += nodes[i].total_weight;
            nodes[nodes[i].parent].total_count += nodes[i].total_count;
        }
    }
}

static int by_weight(const void *left, const void *right, void *context)
{
    const struct call_node *nodes = context;
    const struct call_node *x = &nodes[*(const uint32_t *)left];
    const struct call_node *y = &nodes[*(const uint32_t *)right];
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->total_weight != y->total_weight)
        return x->total_weight > y->total_weight ? -1 : 1;
    return x->function < y->function ? -1 : x->function > y->function;
}

/* Links the children of every node, heaviest first. */
static int link_children(struct builder *builder)
{
    size_t count = builder->nodes.len;
    struct call_node *nodes = builder->nodes.data;
    uint32_t *ids = calloc(count + 1, sizeof(*ids));
    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint32_t)i;
    qsort_r(ids + 1, count - 1, sizeof(*ids), by_weight, nodes);
    for (size_t i = count; i-- > 1;) {
        struct call_node *parent = &nodes[nodes[ids[i]].parent];
        nodes[ids[i]].next_sibling = parent->first_child;
        parent->first_child = ids[i];
    }
    free(ids);
    return 0;
}

static int build(struct builder *builder)
{
    const struct profile *profile = builder->profile;
    uint8_t *used = stacks_used(profile);
    uint32_t *node_at = calloc(profile->stack_count, sizeof(*node_at));
    struct call_node root = {0};
    int r = used && node_at && VEC_PUSH(&builder->nodes, root) == 0 ? 0 : -ENOMEM;
    if (r == 0)
        r = builder->opts->inverted ? build_up(builder, used, node_at)
                                    : build_down(builder, used, node_at);
    if (r == 0)
        weigh(builder, node_at);
    free(used);
    free(node_at);
    return r == 0 ? link_children(builder) : r;
}

int call_tree_build(struct arena *arena, const struct profile *profile,
                    const struct call_tree_opts *opts, struct call_tree *ret)
{
    static const struct call_tree_opts none = {0};
    struct builder builder = {.profile = profile, .opts = opts ? opts : &none};
    int r = build(&builder);
    struct call_node *nodes = NULL;
    if (r == 0) {
        nodes = arena_alloc(arena, builder.nodes.len * sizeof(*nodes));
        r = nodes ? 0 : -ENOMEM;
    }
    if (r == 0) {
        memcpy(nodes, builder.nodes.data, builder.nodes.len * sizeof(*nodes));
        *ret = (struct call_tree){profile, nodes, builder.nodes.len, builder.opts->inverted};
    }
    map_u64_deinit(&builder.child_at);
    VEC_FREE(&builder.nodes);
    return r;
}
