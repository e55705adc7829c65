/* A call tree: stacks merged by function from the root (or, inverted, from the leaf).
 *
 * Made by analyze/call_tree.c from a profile, drawn by text, SVG and HTML. Node 0 is the
 * root ("all"). Children of a node are heaviest first. A parent's index is always smaller
 * than its children's. Lives in the arena it was built in. */
#pragma once

#include "model/profile.h"

struct call_node {
    uint32_t parent;
    uint32_t first_child;  /* 0: none */
    uint32_t next_sibling; /* 0: none */
    uint32_t function;     /* in profile->functions; 0 for the root */
    uint32_t depth;        /* 0 for the root */
    bool inlined;          /* into its caller */
    uint64_t self_weight, total_weight;
    uint64_t self_count, total_count;
};

struct call_tree {
    const struct profile *profile;
    struct call_node *nodes;
    size_t count;
    bool inverted;
};
