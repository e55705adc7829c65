/* Two heaps side by side, function by function.
 *
 * Functions are those that ask for memory (heap_place_of()), matched by name and by the last part
 * of their image's path: ids of two recordings have nothing to do with each other. Of several of
 * one name the sum counts. */
#pragma once

#include "analyze/heap_sums.h"

struct heap_diff_row {
    struct str function, image, file; /* file empty: not known */
    uint32_t line;
    bool is_before, is_after; /* it is in that recording */
    struct heap_figures before, after;
};

struct heap_diff {
    struct heap_diff_row *rows; /* the largest change of the measure first */
    size_t count;               /* those whose figures are the same are in it, at the end */
    size_t changed;
};

/* 0 or -ENOMEM. */
MUST_USE int heap_diff_build(struct arena *arena, const struct heap_sums *before,
                             const struct heap_sums *after, enum heap_rank rank,
                             struct heap_diff *ret);
