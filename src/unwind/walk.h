/* Inside of the cache in front of the row search. */
#pragma once

#include "unwind/memo.h"

enum { UNWIND_CACHE_BITS = 12 };

struct unwind_cache_slot {
    uint64_t pc;
    uint64_t generation; /* of the space; 0 is no space's */
    uint32_t mapping;
    uint32_t rules;
};

enum { UNWIND_CACHE_MEMOS = 2 }; /* a thread that works and one that serves it */

struct unwind_cache {
    struct unwind_cache_slot slots[1 << UNWIND_CACHE_BITS];
    struct unwind_memo memos[UNWIND_CACHE_MEMOS][2];
    uint8_t current[UNWIND_CACHE_MEMOS]; /* the whole one of each two */
};
