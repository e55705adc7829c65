/* From ranges that may overlap to the value at an address.
 *
 * Where ranges overlap, the one with the higher priority counts; of equal ones the one added
 * last. Built once by a sweep, then looked up by binary search. */
#pragma once

#include "base/macros.h"

#include <stddef.h>
#include <stdint.h>

enum { RANGE_MAP_NONE = -1 }; /* as uint32_t: no value */

struct range {
    uint64_t start;
    uint64_t end; /* the first address behind it; ranges that are empty are left out */
    uint32_t value;
    uint32_t priority;
};

/* One value from starts[i] up to the next start. */
struct range_map {
    uint64_t *starts;
    uint32_t *values;
    size_t len;
};

/* Sorts `ranges`. 0 or -ENOMEM; at most INT32_MAX ranges. */
MUST_USE int range_map_build(struct range *ranges, size_t count, struct range_map *ret);
void range_map_deinit(struct range_map *map);

uint32_t range_map_find(const struct range_map *map, uint64_t address);
