/* Memory that is allocated, by address: a hash table that entries come to and go from. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAP_LIVE_MAX = 1 << 25 };

struct heap_live_entry {
    uint64_t address; /* 0: a free slot */
    uint64_t size;
    uint64_t time_ns; /* when it was allocated */
    uint32_t stack;   /* id of the sink */
    uint32_t thread;  /* that allocated it: id of the sink */
    uint32_t maker;   /* the same thread by a number that keeps when it is renamed */
    uint32_t serial;  /* its number among the maker's allocations, lowest bits */
    uint32_t chain;   /* grown by realloc() so often */
    uint32_t unused;
};

struct heap_live { /* all zero: empty */
    struct heap_live_entry *slots;
    size_t cap; /* a power of two, or 0 */
    size_t len;
};

/* -ENOMEM, or -E2BIG beyond the bound. One of that address must not be there. */
MUST_USE int heap_live_put(struct heap_live *live, const struct heap_live_entry *entry);
/* Takes it out; false: it is not there. */
bool heap_live_take(struct heap_live *live, uint64_t address, struct heap_live_entry *ret);
const struct heap_live_entry *heap_live_find(const struct heap_live *live, uint64_t address);
MUST_USE int heap_live_copy(const struct heap_live *from, struct heap_live *ret);
void heap_live_deinit(struct heap_live *live);
