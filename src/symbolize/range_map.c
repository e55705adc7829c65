/* A sweep over range starts with a heap of the ranges that are open. */
#include "symbolize/range_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct sweep {
    const struct range *ranges;
    uint32_t *heap; /* indexes of open ranges, the strongest on top */
    size_t heap_len;
    struct range_map map;
};

static int range_order(const void *a, const void *b)
{
    const struct range *left = a;
    const struct range *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    if (left->priority != right->priority)
        return left->priority < right->priority ? -1 : 1;
    return left->value < right->value ? -1 : left->value > right->value;
}

static bool stronger(const struct sweep *sweep, uint32_t a, uint32_t b)
{
    const struct range *left = &sweep->ranges[a];
    const struct range *right = &sweep->ranges[b];
    return left->priority != right->priority ? left->priority > right->priority : a > b;
}

static void heap_push(struct sweep *sweep, uint32_t item)
{
    size_t at = sweep->heap_len++;
    for (; at > 0; at = (at - 1) / 2) {
        uint32_t parent = sweep->heap[(at - 1) / 2];
        if (!stronger(sweep, item, parent))
            break;
        sweep->heap[at] = parent;
    }
    sweep->heap[at] = item;
}

static void heap_pop(struct sweep *sweep)
{
    uint32_t item = sweep->heap[--sweep->heap_len];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= sweep->heap_len)
            break;
        if (child + 1 < sweep->heap_len &&
            stronger(sweep, sweep->heap[child + 1], sweep->heap[child]))
            child++;
        if (!stronger(sweep, sweep->heap[child], item))
            break;
        sweep->heap[at] = sweep->heap[child];
        at = child;
    }
    sweep->heap[at] = item;
}

/* From `address` on the strongest open range counts. */
static void emit(struct sweep *sweep, uint64_t address)
{
    struct range_map *map = &sweep->map;
    uint32_t value = sweep->heap_len > 0 ? sweep->ranges[sweep->heap[0]].value
                                         : (uint32_t)RANGE_MAP_NONE;
    if (map->len > 0 && map->starts[map->len - 1] == address)
        map->len--;
    if (map->len > 0 && map->values[map->len - 1] == value)
        return;
    map->starts[map->len] = address;
    map->values[map->len++] = value;
}

/* Closes what ends at or before `address`. A weaker range may have ended unseen below a
 * stronger one; it is dropped when it comes to the top. */
static void drain(struct sweep *sweep, uint64_t address)
{
    while (sweep->heap_len > 0 && sweep->ranges[sweep->heap[0]].end <= address) {
        uint64_t end = sweep->ranges[sweep->heap[0]].end;
        while (sweep->heap_len > 0 && sweep->ranges[sweep->heap[0]].end <= end)
            heap_pop(sweep);
        emit(sweep, end);
    }
}

int range_map_build(struct range *ranges, size_t count, struct range_map *ret)
{
    if (count > INT32_MAX)
        return -ENOMEM;
    bool sorted = true;
    for (size_t i = 1; i < count && sorted; i++)
        sorted = range_order(&ranges[i - 1], &ranges[i]) <= 0;
    if (!sorted)
        qsort(ranges, count, sizeof(*ranges), range_order);
    /* Each range adds a step where it starts and one where it ends. */
    struct sweep sweep = {.ranges = ranges};
    sweep.heap = malloc((count + 1) * sizeof(*sweep.heap));
    sweep.map.starts = malloc((2 * count + 1) * sizeof(*sweep.map.starts));
    sweep.map.values = malloc((2 * count + 1) * sizeof(*sweep.map.values));
    if (!sweep.heap || !sweep.map.starts || !sweep.map.values) {
        free(sweep.heap);
        range_map_deinit(&sweep.map);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].end <= ranges[i].start)
            continue;
        drain(&sweep, ranges[i].start);
        heap_push(&sweep, (uint32_t)i);
        emit(&sweep, ranges[i].start);
    }
    drain(&sweep, UINT64_MAX);
    free(sweep.heap);
    *ret = sweep.map;
    return 0;
}

void range_map_deinit(struct range_map *map)
{
    free(map->starts);
    free(map->values);
    *map = (struct range_map){0};
}

uint32_t range_map_find(const struct range_map *map, uint64_t address)
{
    size_t low = 0;
    size_t high = map->len;
    while (low < high) { /* the first start above the address */
        size_t middle = low + (high - low) / 2;
        if (map->starts[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? (uint32_t)RANGE_MAP_NONE : map->values[low - 1];
}
