/* The words about one rectangle: the same in SVG titles and in the page's data. */
#pragma once

#include "present/flame_diff.h"
#include "present/flame_layout.h"

enum { FLAME_LABEL_BYTES_MAX = 1200 };

/* The name, safe to show; in a differential graph the change stands before it. */
struct str flame_label(const struct call_tree *tree, const struct flame_diff *diff, uint32_t node,
                       char buffer[FLAME_LABEL_BYTES_MAX]);
/* "1.20 s, 12.00% of all, 1,200 samples; itself 0.20 s, 2.00%"; an inverted tree has no
 * "itself": there the whole weight of a first level is. */
const char *flame_cost(const struct call_tree *tree, uint32_t node, char *buffer, size_t size);

/* Sentences about the whole picture. Empty when there is nothing to say. */
const char *flame_note_left_out(const struct flame_layout *layout, char *buffer, size_t size);
const char *flame_note_diff(const struct flame_diff *diff, char *buffer, size_t size);
const char *flame_note_gone(const struct flame_diff *diff, char *buffer, size_t size);

/* What one row of the legend says: a colour and a word. Returns false after the last. */
struct flame_legend {
    const struct flame_layout *layout;
    const struct flame_diff *diff; /* NULL: an ordinary picture */
    double diff_limit;
    unsigned at;    /* begins at 0 */
    unsigned color; /* out */
    char text[64];  /* out */
};
bool flame_legend_next(struct flame_legend *legend);
