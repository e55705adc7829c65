/* The words about one rectangle: the same in SVG titles and in the page's data. */
#pragma once

#include "present/flame_diff.h"
#include "present/flame_layout.h"

enum { FLAME_LABEL_BYTES_MAX = 1200 };

/* The name, safe to show; in a differential graph the change stands before it. */
struct str flame_label(const struct call_tree *tree, const struct flame_diff *diff, uint32_t node,
                       char buffer[FLAME_LABEL_BYTES_MAX]);
/* "1.20 s, 12.00% of all, 1,200 samples; itself 0.20 s, 2.00%" */
const char *flame_cost(const struct call_tree *tree, uint32_t node, char *buffer, size_t size);
