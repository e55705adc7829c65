/* Unwind rows in their compact form, as walk.c reads them.
 *
 * A table is two parallel arrays sorted by address (where a row starts, and the
 * number of its rule set) over a pool of unique rule sets: an image of 300,000
 * rows has a few thousand of those. A row ends where the next one starts; rule
 * set 0 says that there is no rule (a gap between functions).
 *
 * Everything here is plain data without pointers, so that it can be kept in a
 * file, and whoever makes a table (rows_builder.h) or reads one from disk
 * (rows_file.h) has checked every number in it: the walk checks nothing twice. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    UNWIND_RULES_NONE = 0,        /* the rule set of a gap */
    UNWIND_EXPRESSION_MAX = 1024, /* bytes */
};

enum unwind_cfa {
    UNWIND_CFA_NONE,       /* a gap */
    UNWIND_CFA_REGISTER,   /* base + offset */
    UNWIND_CFA_DEREF,      /* *(base + offset) + offset2: a stack that was realigned */
    UNWIND_CFA_PLT,        /* base + offset, and 8 more from byte offset2 of a 16-byte stub on */
    UNWIND_CFA_EXPRESSION, /* offset: place in the pool */
    UNWIND_CFAS,
};

enum unwind_place {
    UNWIND_UNDEFINED,      /* the caller's value is lost; for the return address: the root */
    UNWIND_SAME,           /* unchanged */
    UNWIND_AT_CFA,         /* *(cfa + offset) */
    UNWIND_CFA_PLUS,       /* cfa + offset */
    UNWIND_IN_REGISTER,    /* base */
    UNWIND_AT_REGISTER,    /* *(base + offset) */
    UNWIND_AT_EXPRESSION,  /* *(expression); offset: place in the pool */
    UNWIND_VAL_EXPRESSION, /* expression */
    UNWIND_PLACES,
};

/* Where the caller's register is. */
struct unwind_save {
    int32_t offset;
    uint8_t target; /* the register */
    uint8_t place;  /* enum unwind_place */
    uint8_t base;
    uint8_t unused;
};
_Static_assert(sizeof(struct unwind_save) == 8, "kept in files");

enum {
    UNWIND_RULES_SIGNAL = 1, /* a signal frame: the pc above it is exact */
    UNWIND_RULES_SIMPLE = 2, /* no register is found through another */
};

struct unwind_rules {
    int32_t cfa_offset;
    int32_t cfa_offset2;
    int32_t ra_offset;
    uint32_t saves_first;
    uint8_t cfa; /* enum unwind_cfa */
    uint8_t cfa_base;
    uint8_t ra; /* enum unwind_place */
    uint8_t ra_base;
    uint8_t flags;
    uint8_t saves_count;
    uint8_t unused[2];
};
_Static_assert(sizeof(struct unwind_rules) == 24, "kept in files");

struct unwind_rows {
    uint64_t base;          /* vaddr that the starts count from */
    const uint32_t *starts; /* strictly rising */
    const uint32_t *rule_of;
    size_t count;
    const struct unwind_rules *rules;
    size_t rules_count;
    const struct unwind_save *saves;
    size_t saves_count;
    const uint8_t *pool; /* expressions: two bytes of length, then the bytes */
    size_t pool_len;
    /* Made for each table, not kept in files: the first row that starts at or after
     * i << shift, for i up to index_len. A binary search over a large image would miss the
     * processor's caches a dozen times, this once. */
    const uint32_t *index;
    size_t index_len;
    unsigned shift;
};

/* Builds the index in memory that the caller frees; without it nothing is found. */
MUST_USE int unwind_rows_index(struct unwind_rows *rows, uint32_t **ret_memory);

/* The number of the rule set for a vaddr; UNWIND_RULES_NONE when there is none. */
static inline uint32_t unwind_rows_find(const struct unwind_rows *rows, uint64_t vaddr)
{
    uint64_t offset = vaddr - rows->base, bucket = offset >> rows->shift;
    if (bucket >= rows->index_len)
        return UNWIND_RULES_NONE;
    /* The wanted row is the last one that starts at or before the offset: the one before
     * the bucket's first, or one inside of the bucket. */
    size_t low = rows->index[bucket], high = rows->index[bucket + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows->starts[middle] <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? UNWIND_RULES_NONE : rows->rule_of[low - 1];
}
