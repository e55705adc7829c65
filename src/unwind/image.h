/* Inside of an image: where its file lies in memory, and its rows. */
#pragma once

#include "unwind/rows.h"
#include "unwind/unwind.h"

/* One PT_LOAD. */
struct unwind_segment {
    uint64_t offset;
    uint64_t file_size;
    uint64_t vaddr;
    uint64_t memory_size;
    uint64_t page; /* the grain of mapping: p_align within reason */
    bool executable;
};

enum { UNWIND_SEGMENTS_MAX = 128 };

struct unwind_image {
    enum unwind_machine machine;
    struct unwind_rows rows;
    void *memory; /* what the rows point into; freed with the image */
    uint32_t *index;
    struct unwind_segment *segments;
    size_t segments_count;
    size_t skipped; /* functions whose table entry we could not use */
    bool cached;    /* the rows came from the cache */
};
