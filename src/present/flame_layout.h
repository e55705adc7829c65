/* Where the rectangles of a flame graph stand: shared by SVG, the HTML page and the viewer.
 *
 * Positions are in the unit of the tree's weights, from the left edge of the root; drawing
 * scales them. Rectangles are in preorder: a parent stands before its children, and a subtree
 * is the range from a rectangle to its `end`. Children tile their parent from the left,
 * heaviest first; what is left free on the right is the parent's own time and whatever was
 * too narrow to draw. All memory is the arena's. */
#pragma once

#include "base/arena.h"
#include "base/why.h"
#include "model/call_tree.h"

struct flame_rect {
    uint32_t node;   /* in the tree */
    uint32_t parent; /* its rectangle; 0 for the root, which is its own */
    uint32_t end;    /* one past the last rectangle above it */
    uint32_t depth;
    uint64_t start, weight;
};

struct flame_limits {
    double narrow_share; /* of the root's weight; narrower ones are left out */
    size_t rect_count_max;
    uint32_t levels_max;
};

struct flame_layout {
    const struct call_tree *tree;
    struct flame_rect *rects;
    size_t count;
    uint32_t levels;          /* the root's included */
    uint64_t left_out;        /* nodes that are not drawn */
    uint64_t left_out_weight; /* what they weigh together */
};

/* A tree without weight has no picture: -ENODATA. When more than `rect_count_max` would be
 * drawn, the lightest are left out. */
MUST_USE int flame_layout_build(struct arena *arena, const struct call_tree *tree,
                                const struct flame_limits *limits, struct flame_layout *ret,
                                struct why *why);

/* What a node is, for its colour and for the words about it. */
enum flame_kind {
    FLAME_ROOT,
    FLAME_USER,
    FLAME_KERNEL,
    FLAME_INLINED,
    FLAME_JIT,
    FLAME_UNKNOWN,
    FLAME_KINDS,
};
enum flame_kind flame_kind_of(const struct call_tree *tree, uint32_t node);
const char *flame_kind_text(enum flame_kind kind); /* "kernel" */

/* The function a node stands for, never NULL; the image it is in, NULL if unknown. */
const struct profile_function *flame_function(const struct call_tree *tree, uint32_t node);
const struct image_info *flame_image(const struct call_tree *tree, uint32_t node);
struct str flame_name(const struct call_tree *tree, uint32_t node); /* as it is: hostile */
