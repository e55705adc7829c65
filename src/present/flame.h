/* Flame graphs as SVG and as a part of an HTML page; see flame_layout.c for the shape and
 * flame_svg.c, flame_html.c for the drawing.
 *
 * The layout is shared by all of them, and later by the viewer: rectangles in a unit that
 * is the root's weight, narrow ones folded into their parents with a count of what was left
 * out. Names are hostile text. */
#pragma once

#include "base/why.h"
#include "model/call_tree.h"

#include <stdio.h>

struct flame_opts {
    const char *title;
    const char *subtitle; /* the honesty line; NULL: none */
    bool icicle;          /* root on top */
    double width_px;      /* 0: 1200 */
    double narrow_px;     /* rectangles below this are left out and counted; 0: 0.1 */
};

/* Differential when `before` is given: widths are those of `tree`, colours say how the share
 * of a node changed against `before`, both normalised by `scale` (work done: before / after). */
MUST_USE int flame_svg(const struct flame_opts *opts, const struct call_tree *tree,
                       const struct call_tree *before, double scale, FILE *out, struct why *why);
