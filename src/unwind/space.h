/* Inside of an address space: mappings sorted by address, none overlapping. */
#pragma once

#include "unwind/image.h"

struct unwind_mapping {
    uint64_t start;
    uint64_t end;
    uint64_t vaddr; /* of `start`, in the image's addresses; `start` itself without image */
    const struct unwind_rows *rows; /* NULL: by frame pointer */
    uint32_t tag;
};

struct unwind_space {
    enum unwind_machine machine;
    /* Never two different contents under one number in this process: what a cache
     * kept under another number is stale. A clone shares it until one of both changes. */
    uint64_t generation;
    struct unwind_mapping *mappings;
    size_t count;
    size_t cap;
};

enum { UNWIND_MAPPING_NONE = UINT32_MAX };

/* The index of the mapping that holds `pc`; looks at `hint` first. */
static inline uint32_t unwind_space_index(const struct unwind_space *space, uint64_t pc,
                                          uint32_t hint)
{
    if (hint < space->count &&
        pc - space->mappings[hint].start < space->mappings[hint].end - space->mappings[hint].start)
        return hint;
    size_t low = 0, high = space->count;
    while (low < high) { /* the first that starts above pc */
        size_t middle = low + (high - low) / 2;
        if (space->mappings[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || pc >= space->mappings[low - 1].end)
        return UNWIND_MAPPING_NONE;
    return (uint32_t)(low - 1);
}
