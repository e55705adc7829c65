/* Open addressing with linear probing over a power-of-two table. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

enum { MAP_CAP_MIN = 64 };

uint64_t hash_u64(uint64_t key)
{
    key ^= key >> 32;
    key *= 0xd6e8feb86659fd93u;
    key ^= key >> 32;
    key *= 0xd6e8feb86659fd93u;
    return key ^ (key >> 32);
}

uint64_t hash_bytes(const void *data, size_t len)
{
    const unsigned char *bytes = data;
    uint64_t hash = 0x9e3779b97f4a7c15u ^ len;
    while (len >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = hash_u64(hash ^ word) + 0x9e3779b97f4a7c15u;
        bytes += 8;
        len -= 8;
    }
    uint64_t tail = 0;
    if (len > 0) /* empty text may have no address */
        memcpy(&tail, bytes, len);
    return hash_u64(hash ^ tail);
}

static struct map_u64_slot *slot_of(struct map_u64_slot *slots, size_t cap, uint64_t key)
{
    size_t at = hash_u64(key) & (cap - 1);
    while (slots[at].key != 0 && slots[at].key != key + 1)
        at = (at + 1) & (cap - 1);
    return &slots[at];
}

static bool grow(struct map_u64 *map)
{
    size_t cap = map->cap ? map->cap * 2 : MAP_CAP_MIN;
    struct map_u64_slot *slots = calloc(cap, sizeof(*slots));
    if (!slots)
        return false;
    for (size_t i = 0; i < map->cap; i++)
        if (map->slots[i].key != 0)
            *slot_of(slots, cap, map->slots[i].key - 1) = map->slots[i];
    free(map->slots);
    map->slots = slots;
    map->cap = cap;
    return true;
}

uint64_t *map_u64_at(struct map_u64 *map, uint64_t key, bool *ret_new)
{
    if ((map->len + 1) * 8 > map->cap * 5 && !grow(map))
        return NULL;
    struct map_u64_slot *slot = key == UINT64_MAX ? &map->highest
                                                  : slot_of(map->slots, map->cap, key);
    bool fresh = slot->key == 0;
    if (ret_new)
        *ret_new = fresh;
    if (fresh) {
        *slot = (struct map_u64_slot){.key = key == UINT64_MAX ? 1 : key + 1};
        map->len++;
    }
    return &slot->value;
}

uint64_t *map_u64_find(const struct map_u64 *map, uint64_t key)
{
    if (map->cap == 0)
        return NULL;
    const struct map_u64_slot *slot = key == UINT64_MAX ? &map->highest
                                                        : slot_of(map->slots, map->cap, key);
    return slot->key != 0 ? (uint64_t *)&slot->value : NULL;
}

bool map_u64_next(const struct map_u64 *map, size_t *at, uint64_t *ret_key, uint64_t *ret_value)
{
    while (*at < map->cap && map->slots[*at].key == 0)
        ++*at;
    if (*at > map->cap || (*at == map->cap && map->highest.key == 0))
        return false;
    const struct map_u64_slot *slot = *at < map->cap ? &map->slots[*at] : &map->highest;
    *ret_key = *at < map->cap ? slot->key - 1 : UINT64_MAX;
    *ret_value = slot->value;
    ++*at;
    return true;
}

void map_u64_clear(struct map_u64 *map)
{
    if (map->slots)
        memset(map->slots, 0, map->cap * sizeof(*map->slots));
    map->highest = (struct map_u64_slot){0};
    map->len = 0;
}

void map_u64_deinit(struct map_u64 *map)
{
    free(map->slots);
    *map = (struct map_u64){0};
}
