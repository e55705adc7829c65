/* How a call tree changed against an earlier one, path by path.
 *
 * Two recordings share no ids, so paths are matched by the names of their functions from the
 * root; functions of one name below one caller count together. A change is in percent of the
 * earlier total: (after * scale - before) / earlier total. A `scale` of 0 (or one that is no
 * number) makes both totals equal, so that shares are compared. */
#pragma once

#include "present/flame_layout.h"

struct flame_diff {
    double *change_pct; /* of each node of the later tree */
    double *before_pct; /* the share its path had; 0: it is new */
    double scale;       /* that was used */
    bool shares;        /* the scale only makes totals equal */
    /* Paths of the earlier tree that the later one lacks: they have no rectangle. */
    size_t gone;
    double gone_pct;      /* of the earlier total, together */
    struct str gone_name; /* the heaviest of them: hostile, borrowed from the earlier profile */
    double gone_name_pct;
};

MUST_USE int flame_diff_build(struct arena *arena, const struct call_tree *tree,
                              const struct call_tree *before, double scale, struct flame_diff *ret,
                              struct why *why);
/* The end of the colour scale: 1, 2 or 5 times a power of ten that holds the largest change
 * drawn. */
double flame_diff_limit(const struct flame_diff *diff, const struct flame_layout *layout);
