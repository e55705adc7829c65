/* Colours of flame graphs: one palette for SVG, canvas and viewer, in a light and a dark mode.
 *
 * A function has the same colour in every picture of every recording: its image picks the
 * hue, its name the shade. Kernel, inlined, JIT-compiled and nameless frames have hues of
 * their own. Every fill carries its mode's text colour at a contrast of 6:1 or more. In a
 * differential graph red is more and blue is less, and the number stands in the label, since
 * not everybody tells colours apart. */
#pragma once

#include "present/flame_layout.h"

#include <stdio.h>

enum {
    FLAME_DIFF_STEPS = 5, /* each way */
    FLAME_COLOR_ROOT = 0,
    FLAME_COLOR_USER = 1, /* four hues of three shades */
    FLAME_COLOR_KERNEL = 13,
    FLAME_COLOR_INLINED = 16,
    FLAME_COLOR_JIT = 19,
    FLAME_COLOR_UNKNOWN = 22,
    FLAME_COLOR_DIFF = 28, /* no change; the steps stand on both sides */
    FLAME_COLOR_HIT = 34,  /* found by search */
    FLAME_COLORS = 35,
};

unsigned flame_color(const struct call_tree *tree, uint32_t node);
/* `change` against the largest one that the scale shows. */
unsigned flame_color_change(double change, double limit);

/* The palette as CSS: classes "f0"… that fill shapes below them, or, for a page whose script
 * draws, variables "--f0"…. Both modes, chosen by the reader's system. */
void flame_colors_classes(FILE *out);
void flame_colors_variables(FILE *out);
