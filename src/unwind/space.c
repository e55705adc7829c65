/* Address spaces as they change: map, unmap, fork, exec. */
#include "unwind/space.h"

#include "base/vec.h"
#include "unwind/walk.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* More than vm.max_map_count lets a process have by default; a bound for hostile input. */
enum { MAPPINGS_MAX = 1 << 18 };

static int space_reserve(struct unwind_space *space, size_t need)
{
    return vec_reserve((void **)&space->mappings, &space->cap, need, sizeof(*space->mappings));
}

static void space_changed(struct unwind_space *space)
{
    static _Atomic uint64_t last;
    space->generation = atomic_fetch_add(&last, 1) + 1;
}

int unwind_space_new(enum unwind_machine machine, struct unwind_space **ret)
{
    struct unwind_space *space = calloc(1, sizeof(*space));
    if (!space)
        return -ENOMEM;
    space->machine = machine;
    space_changed(space);
    *ret = space;
    return 0;
}

int unwind_space_clone(const struct unwind_space *space, struct unwind_space **ret)
{
    struct unwind_space *copy = malloc(sizeof(*copy));
    if (!copy)
        return -ENOMEM;
    *copy = *space;
    copy->mappings = NULL;
    copy->cap = 0;
    if (space_reserve(copy, space->count) < 0) {
        free(copy);
        return -ENOMEM;
    }
    if (space->count > 0)
        memcpy(copy->mappings, space->mappings, space->count * sizeof(*space->mappings));
    *ret = copy;
    return 0;
}

void unwind_space_free(struct unwind_space *space)
{
    if (!space)
        return;
    free(space->mappings);
    free(space);
}

/* The first mapping that ends above `address`. */
static size_t space_lower(const struct unwind_space *space, uint64_t address)
{
    size_t low = 0, high = space->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (space->mappings[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Puts `fresh` (NULL: nothing) in the place of [start, end); what reaches over the edges is
 * cut. At most two more mappings than before. */
static int space_replace(struct unwind_space *space, uint64_t start, uint64_t end,
                         const struct unwind_mapping *fresh)
{
    if (space->count + 2 > MAPPINGS_MAX)
        return -ENOSPC;
    if (space_reserve(space, space->count + 2) < 0)
        return -ENOMEM;
    size_t first = space_lower(space, start), last = first;
    while (last < space->count && space->mappings[last].start < end)
        last++;
    struct unwind_mapping parts[3];
    size_t count = 0;
    if (first < last && space->mappings[first].start < start) {
        parts[count] = space->mappings[first];
        parts[count++].end = start;
    }
    if (fresh)
        parts[count++] = *fresh;
    if (first < last && space->mappings[last - 1].end > end) {
        parts[count] = space->mappings[last - 1];
        parts[count].vaddr += end - parts[count].start;
        parts[count++].start = end;
    }
    memmove(space->mappings + first + count, space->mappings + last,
            (space->count - last) * sizeof(*space->mappings));
    memcpy(space->mappings + first, parts, count * sizeof(*parts));
    space->count = space->count - (last - first) + count;
    space_changed(space);
    return 0;
}

int unwind_space_map(struct unwind_space *space, uint64_t address, uint64_t size_bytes,
                     uint64_t file_offset, const struct unwind_image *image, uint32_t tag)
{
    if (size_bytes == 0 || address + size_bytes < address)
        return -EINVAL;
    struct unwind_mapping fresh = {
        .start = address, .end = address + size_bytes, .vaddr = address, .tag = tag};
    /* A file that is no segment's, or another machine's, still has its name. */
    uint64_t vaddr;
    if (image && unwind_image_vaddr(image, file_offset, &vaddr)) {
        fresh.vaddr = vaddr;
        fresh.rows = image->machine == space->machine ? &image->rows : NULL;
    }
    /* The kernel repeats itself on every mprotect: what was cached stays good. */
    size_t at = space_lower(space, address);
    if (at < space->count) {
        const struct unwind_mapping *old = &space->mappings[at];
        if (old->start == fresh.start && old->end == fresh.end && old->vaddr == fresh.vaddr &&
            old->rows == fresh.rows && old->tag == fresh.tag)
            return 0;
    }
    return space_replace(space, fresh.start, fresh.end, &fresh);
}

int unwind_space_unmap(struct unwind_space *space, uint64_t address, uint64_t size_bytes)
{
    if (size_bytes == 0 || address + size_bytes < address)
        return -EINVAL;
    size_t first = space_lower(space, address);
    if (first == space->count || space->mappings[first].start >= address + size_bytes)
        return 0; /* nothing there: what was cached stays good */
    return space_replace(space, address, address + size_bytes, NULL);
}

void unwind_space_clear(struct unwind_space *space)
{
    space->count = 0;
    space_changed(space);
}

int unwind_cache_new(struct unwind_cache **ret)
{
    struct unwind_cache *cache = calloc(1, sizeof(*cache));
    if (!cache)
        return -ENOMEM;
    *ret = cache;
    return 0;
}

void unwind_cache_free(struct unwind_cache *cache)
{
    free(cache);
}
