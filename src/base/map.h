/* A hash map from u64 to u64: open addressing, grows at 5/8 full.
 * Entries are never removed one by one: our maps live for one phase. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Four to a cache line: with large maps all that a lookup costs is to fetch one. */
struct map_u64_slot {
    uint64_t key; /* plus one, so that 0 is a free slot */
    uint64_t value;
};

struct map_u64 {
    struct map_u64_slot *slots;
    size_t cap; /* a power of two, or 0 */
    size_t len;
    struct map_u64_slot highest; /* of UINT64_MAX, whose key would look free; key 1 when used */
};

/* Puts the whole 64-bit key into every bit of the result. */
uint64_t hash_u64(uint64_t key);
uint64_t hash_bytes(const void *data, size_t len);

/* Fetches what a lookup will need, for callers that know several keys beforehand. */
static inline void map_u64_prefetch(const struct map_u64 *map, uint64_t key)
{
    if (map->cap > 0)
        __builtin_prefetch(&map->slots[hash_u64(key) & (map->cap - 1)]);
}

/* The value's place, made with value 0 when absent; NULL when out of memory.
 * Valid until the next insertion. *ret_new may be NULL. */
MUST_USE uint64_t *map_u64_at(struct map_u64 *map, uint64_t key, bool *ret_new);
/* NULL when absent. */
uint64_t *map_u64_find(const struct map_u64 *map, uint64_t key);
/* Every entry once, in no order; `*at` begins with 0. False at the end. */
bool map_u64_next(const struct map_u64 *map, size_t *at, uint64_t *ret_key, uint64_t *ret_value);
void map_u64_clear(struct map_u64 *map); /* keeps the memory */
void map_u64_deinit(struct map_u64 *map);
