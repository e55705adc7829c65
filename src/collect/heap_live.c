/* Open addressing, at most 5/8 full; whoever stands behind an entry that goes moves up. */
#include "collect/heap_live.h"

#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CAP_FIRST = 64 };

static size_t home_of(const struct heap_live *live, uint64_t address)
{
    return (size_t)hash_u64(address) & (live->cap - 1);
}

static void slot_fill(struct heap_live *live, const struct heap_live_entry *entry)
{
    size_t at = home_of(live, entry->address);
    while (live->slots[at].address != 0)
        at = (at + 1) & (live->cap - 1);
    live->slots[at] = *entry;
}

static int grow(struct heap_live *live)
{
    struct heap_live wider = {.cap = live->cap ? 2 * live->cap : (size_t)CAP_FIRST,
                              .len = live->len};
    wider.slots = calloc(wider.cap, sizeof(*wider.slots));
    if (!wider.slots)
        return -ENOMEM;
    for (size_t i = 0; i < live->cap; i++)
        if (live->slots[i].address != 0)
            slot_fill(&wider, &live->slots[i]);
    free(live->slots);
    *live = wider;
    return 0;
}

int heap_live_put(struct heap_live *live, const struct heap_live_entry *entry)
{
    if (live->len >= HEAP_LIVE_MAX)
        return -E2BIG;
    int r = 8 * (live->len + 1) > 5 * live->cap ? grow(live) : 0;
    if (r < 0)
        return r;
    slot_fill(live, entry);
    live->len++;
    return 0;
}

static size_t slot_of(const struct heap_live *live, uint64_t address)
{
    if (live->cap == 0 || address == 0)
        return SIZE_MAX;
    for (size_t at = home_of(live, address); live->slots[at].address != 0;
         at = (at + 1) & (live->cap - 1))
        if (live->slots[at].address == address)
            return at;
    return SIZE_MAX;
}

const struct heap_live_entry *heap_live_find(const struct heap_live *live, uint64_t address)
{
    size_t at = slot_of(live, address);
    return at == SIZE_MAX ? NULL : &live->slots[at];
}

bool heap_live_take(struct heap_live *live, uint64_t address, struct heap_live_entry *ret)
{
    size_t gap = slot_of(live, address), mask = live->cap - 1;
    if (gap == SIZE_MAX)
        return false;
    *ret = live->slots[gap];
    for (size_t at = (gap + 1) & mask; live->slots[at].address != 0; at = (at + 1) & mask) {
        size_t home = home_of(live, live->slots[at].address);
        if (((at - home) & mask) < ((at - gap) & mask))
            continue; /* it stands between its home and here: it would not be found */
        live->slots[gap] = live->slots[at];
        gap = at;
    }
    live->slots[gap] = (struct heap_live_entry){0};
    live->len--;
    return true;
}

int heap_live_copy(const struct heap_live *from, struct heap_live *ret)
{
    struct heap_live copy = *from;
    if (from->cap > 0) {
        copy.slots = malloc(from->cap * sizeof(*copy.slots));
        if (!copy.slots)
            return -ENOMEM;
        memcpy(copy.slots, from->slots, from->cap * sizeof(*copy.slots));
    }
    *ret = copy;
    return 0;
}

void heap_live_deinit(struct heap_live *live)
{
    free(live->slots);
    *live = (struct heap_live){0};
}
