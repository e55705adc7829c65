/* A call tree made by hand, without a profile to merge: for tests of pictures.
 *
 *     struct made_tree made;
 *     made_tree_init(&made);
 *     uint32_t main = made_tree_add(&made, 0, (struct made_node){.name = "main", .self = 5});
 *     struct call_tree tree = made_tree_finish(&made);
 *
 * Every node gets a function of its own. Aborts when out of memory: it is test code. */
#pragma once

#include "base/vec.h"
#include "model/call_tree.h"

#include <errno.h>
#include <stdlib.h>

enum made_kind { MADE_USER, MADE_KERNEL, MADE_JIT, MADE_UNKNOWN };

struct made_node {
    const char *name;
    size_t name_len; /* 0: up to its NUL */
    enum made_kind kind;
    bool inlined;
    uint64_t self;
    const char *file;
    uint32_t line;
    const char *image; /* NULL: "/usr/bin/app" */
};

struct made_tree {
    struct profile profile;
    VEC(struct call_node) nodes;
    VEC(struct profile_function) functions;
    VEC(struct image_info) images;
};

#define MADE_PUSH(vec, item)                                                                       \
    do {                                                                                           \
        if (VEC_PUSH((vec), (item)) < 0)                                                           \
            abort();                                                                               \
    } while (0)

static inline void made_tree_init(struct made_tree *made)
{
    *made = (struct made_tree){0};
    made->profile.unit = UNIT_NS;
    MADE_PUSH(&made->nodes, (struct call_node){0});
    MADE_PUSH(&made->functions, (struct profile_function){0});
    MADE_PUSH(&made->images, (struct image_info){0});
}

static inline uint32_t made_tree_image(struct made_tree *made, const struct made_node *node)
{
    struct str path = str_from(node->kind == MADE_KERNEL ? "[kernel]"
                               : node->kind == MADE_JIT  ? "/tmp/perf-7.map"
                               : node->image             ? node->image
                                                         : "/usr/bin/app");
    for (size_t i = 1; i < made->images.len; i++)
        if (str_eq(made->images.data[i].path, path))
            return (uint32_t)i;
    struct image_info image = {.kind = node->kind == MADE_KERNEL ? IMAGE_KERNEL
                                       : node->kind == MADE_JIT  ? IMAGE_JIT
                                                                 : IMAGE_FILE,
                               .path = path};
    MADE_PUSH(&made->images, image);
    return (uint32_t)made->images.len - 1;
}

/* Returns the node. A parent must be there before its children; `self` is in nanoseconds, a
 * sample each millisecond. */
static inline uint32_t made_tree_add(struct made_tree *made, uint32_t parent, struct made_node node)
{
    struct str name = str_from(node.name);
    if (node.name_len > 0)
        name.len = node.name_len;
    struct profile_function function = {.name = name,
                                        .file = str_from(node.file),
                                        .line = node.line,
                                        .image = made_tree_image(made, &node),
                                        .kernel = node.kind == MADE_KERNEL,
                                        .unnamed = node.kind == MADE_UNKNOWN};
    MADE_PUSH(&made->functions, function);
    struct call_node call = {.parent = parent,
                             .function = (uint32_t)made->functions.len - 1,
                             .depth = made->nodes.data[parent].depth + 1,
                             .inlined = node.inlined,
                             .self_weight = node.self,
                             .self_count = (node.self + 999999) / 1000000};
    MADE_PUSH(&made->nodes, call);
    return (uint32_t)made->nodes.len - 1;
}

static inline int made_tree_order(const void *a, const void *b, void *context)
{
    const struct call_node *nodes = context;
    const struct call_node *x = &nodes[*(const uint32_t *)a], *y = &nodes[*(const uint32_t *)b];
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->total_weight != y->total_weight)
        return x->total_weight > y->total_weight ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Sums up and links, heaviest first. The tree is valid until made_tree_deinit(). */
static inline struct call_tree made_tree_finish(struct made_tree *made)
{
    struct call_node *nodes = made->nodes.data;
    size_t count = made->nodes.len;
    for (size_t i = count; i-- > 0;) {
        nodes[i].total_weight += nodes[i].self_weight;
        nodes[i].total_count += nodes[i].self_count;
        if (i > 0) {
            nodes[nodes[i].parent].total_weight += nodes[i].total_weight;
            nodes[nodes[i].parent].total_count += nodes[i].total_count;
        }
    }
    uint32_t *order = malloc(count * sizeof(*order));
    if (!order)
        abort();
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order + 1, count - 1, sizeof(*order), made_tree_order, nodes);
    for (size_t i = count; i-- > 1;) {
        struct call_node *parent = &nodes[nodes[order[i]].parent];
        nodes[order[i]].next_sibling = parent->first_child;
        parent->first_child = order[i];
    }
    free(order);
    made->profile.functions = made->functions.data;
    made->profile.function_count = made->functions.len;
    made->profile.images = made->images.data;
    made->profile.image_count = made->images.len;
    made->profile.weight = nodes[0].total_weight;
    made->profile.count = nodes[0].total_count;
    return (struct call_tree){.profile = &made->profile, .nodes = nodes, .count = count};
}

static inline void made_tree_deinit(struct made_tree *made)
{
    VEC_FREE(&made->nodes);
    VEC_FREE(&made->functions);
    VEC_FREE(&made->images);
}
