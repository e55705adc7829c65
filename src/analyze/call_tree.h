/* Merges the stacks of a profile; see model/call_tree.h.
 *
 * A node's total is its self weight and its children's totals, in either direction: inverted,
 * "self" is the weight whose walk ended there. Samples without a stack are the root's self.
 * Under recursion, callees begin at the outermost call of the function and callers at the
 * innermost. Trees are at most 4,096 levels deep (512 inverted): what lies deeper counts as
 * self of its ancestor. */
#pragma once

#include "base/arena.h"
#include "model/call_tree.h"

struct call_tree_opts {
    bool inverted;     /* leaf first: who is hot, then who called it */
    uint32_t function; /* only below (callees) or above (callers, with inverted) it; 0: all */
    bool no_inlined;   /* inlined functions count as their callers */
};

MUST_USE int call_tree_build(struct arena *arena, const struct profile *profile,
                             const struct call_tree_opts *opts, struct call_tree *ret);
