/* A hash map from u64 to u64: open addressing, grows at 3/4 full.
 * Entries are never removed one by one: our maps live for one phase. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_u64_slot {
    uint64_t key;
    uint64_t value;
    bool used;
};

struct map_u64 {
    struct map_u64_slot *slots;
    size_t cap; /* a power of two, or 0 */
    size_t len;
};

/* Puts the whole 64-bit key into every bit of the result. */
uint64_t hash_u64(uint64_t key);
uint64_t hash_bytes(const void *data, size_t len);

/* The value's place, made with value 0 when absent; NULL when out of memory.
 * Valid until the next insertion. *ret_new may be NULL. */
MUST_USE uint64_t *map_u64_at(struct map_u64 *map, uint64_t key, bool *ret_new);
/* NULL when absent. */
uint64_t *map_u64_find(const struct map_u64 *map, uint64_t key);
void map_u64_clear(struct map_u64 *map); /* keeps the memory */
void map_u64_deinit(struct map_u64 *map);
