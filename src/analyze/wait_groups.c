/* Rows of waits put together by what people would call the same wait. */
#include "analyze/wait_groups.h"

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Compared as bytes, so every byte has a meaning. */
struct group_key {
    uint32_t class, stack, fault, kind;
    int32_t syscall;
};

struct grouping {
    const struct waits *waits;
    const struct wait_classes *classes;
    struct intern keys;
    VEC(struct wait_group) groups;
    struct map_u64 thread_at, object_at, waker_at; /* group and one of them to ns */
};

static bool is_grouped(const struct waits *waits, const struct wait_info *info)
{
    return info->kind == WAIT_BLOCKED && waits->objects[info->object].kind != OBJECT_KERNEL_LOCK;
}

static int group_find(struct grouping *grouping, uint32_t row, uint32_t *ret)
{
    const struct wait_info *info = &grouping->waits->rows[row].info;
    struct group_key key = {
        .class = (uint32_t)grouping->classes->rows[row],
        .stack = info->stack,
        .fault = !!(info->flags & WAIT_FAULT),
        .kind = (uint32_t)grouping->waits->objects[info->object].kind,
        .syscall = info->syscall,
    };
    bool fresh;
    uint32_t id;
    int r = intern_add(&grouping->keys, (struct str){(const char *)&key, sizeof(key)}, &id, &fresh);
    if (r < 0)
        return r;
    struct wait_group group = {.id = row, .class = grouping->classes->rows[row]};
    if (fresh && VEC_PUSH(&grouping->groups, group) < 0)
        return -ENOMEM;
    *ret = id - 1;
    return 0;
}

/* Adds to one of a group's members; counts it if it is new. */
static int member_add(struct map_u64 *map, uint32_t group, uint32_t member, uint64_t ns,
                      uint32_t *count)
{
    bool fresh;
    uint64_t *at = map_u64_at(map, (uint64_t)group << 32 | member, &fresh);
    if (!at)
        return -ENOMEM;
    *at += ns;
    *count += fresh;
    return 0;
}

static int row_add(struct grouping *grouping, uint32_t row, uint64_t path_ns, uint32_t *ret_group)
{
    const struct wait_row *data = &grouping->waits->rows[row];
    uint32_t id;
    int r = group_find(grouping, row, &id);
    if (r < 0)
        return r;
    struct wait_group *group = &grouping->groups.data[id];
    wait_tally_add(&group->tally, &data->tally);
    group->path_ns += path_ns;
    *ret_group = id + 1;
    uint64_t ns = data->tally.total_ns;
    uint32_t life = profile_life(&grouping->waits->profile, data->info.thread);
    r = member_add(&grouping->thread_at, id, life, ns, &group->threads);
    if (r == 0 && data->info.object != 0)
        r = member_add(&grouping->object_at, id, data->info.object, ns, &group->objects);
    if (r == 0 && data->info.waker_stack != 0)
        r = member_add(&grouping->waker_at, id, data->info.waker_stack, ns, &group->wakers);
    return r;
}

static uint64_t weight_of(const struct map_u64 *map, uint32_t group, uint32_t member)
{
    const uint64_t *at = map_u64_find(map, (uint64_t)group << 32 | member);
    return at ? *at : 0;
}

/* Does `row` speak for the group rather than `best`? By the member's weight, then by its own. */
static bool is_heavier(const struct waits *waits, uint32_t row, uint32_t best, uint64_t weight,
                       uint64_t best_weight)
{
    if (best == 0 || weight != best_weight)
        return best == 0 || weight > best_weight;
    return waits->rows[row].tally.total_ns > waits->rows[best].tally.total_ns;
}

static void speakers_find(struct grouping *grouping, const uint32_t *of_row)
{
    const struct waits *waits = grouping->waits;
    for (uint32_t i = 1; i < waits->row_count; i++) {
        if (of_row[i] == 0)
            continue;
        uint32_t id = of_row[i] - 1;
        assert(id < grouping->groups.len);
        struct wait_group *group = &grouping->groups.data[id];
        const struct wait_info *info = &waits->rows[i].info;
        const struct wait_info *best = &waits->rows[group->row].info;
        if (is_heavier(waits, i, group->row, weight_of(&grouping->object_at, id, info->object),
                       weight_of(&grouping->object_at, id, best->object)))
            group->row = i;
        best = &waits->rows[group->waker].info;
        if (info->waker_stack != 0 &&
            is_heavier(waits, i, group->waker,
                       weight_of(&grouping->waker_at, id, info->waker_stack),
                       weight_of(&grouping->waker_at, id, best->waker_stack)))
            group->waker = i;
    }
}

static int by_total(const void *left, const void *right, void *context)
{
    const struct wait_group *groups = context;
    const struct wait_group *x = &groups[*(const uint32_t *)left];
    const struct wait_group *y = &groups[*(const uint32_t *)right];
    if (x->tally.total_ns != y->tally.total_ns)
        return x->tally.total_ns > y->tally.total_ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The longest first, and of_row to their new places. */
static int groups_rank(struct arena *arena, struct grouping *grouping, uint32_t *of_row,
                       struct wait_groups *ret)
{
    size_t count = grouping->groups.len;
    uint32_t *order = calloc(count + 1, sizeof(*order)), *place = calloc(count + 1, sizeof(*place));
    struct wait_group *groups = arena_alloc(arena, (count + 1) * sizeof(*groups));
    int r = order && place && groups ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && r == 0; i++)
        order[i] = (uint32_t)i;
    if (r == 0 && count > 1)
        qsort_r(order, count, sizeof(*order), by_total, grouping->groups.data);
    for (size_t i = 0; i < count && r == 0; i++) {
        groups[i] = grouping->groups.data[order[i]];
        place[order[i]] = (uint32_t)i;
    }
    for (size_t i = 1; i < grouping->waits->row_count && r == 0; i++)
        of_row[i] = of_row[i] ? place[of_row[i] - 1] + 1 : 0;
    if (r == 0) {
        ret->groups = groups;
        ret->count = count;
        ret->of_row = of_row;
    }
    free(order);
    free(place);
    return r;
}

int wait_groups_build(struct arena *arena, const struct waits *waits,
                      const struct wait_classes *classes, const struct critical_path *path,
                      struct wait_groups *ret)
{
    struct grouping grouping = {.waits = waits, .classes = classes};
    struct wait_groups groups = {0};
    uint32_t *of_row = arena_alloc(arena, waits->row_count * sizeof(*of_row));
    int r = of_row ? 0 : -ENOMEM;
    for (uint32_t i = 1; i < waits->row_count && r == 0; i++) {
        const struct wait_row *row = &waits->rows[i];
        uint64_t path_ns = path && !path->na ? path->waits[i] : 0;
        if (row->info.kind == WAIT_RUNQ)
            wait_tally_add(&groups.runq, &row->tally);
        if (!is_grouped(waits, &row->info))
            continue;
        if (classes->rows[i] == WAIT_CLASS_IDLE)
            wait_tally_add(&groups.idle, &row->tally);
        r = row_add(&grouping, i, path_ns, &of_row[i]);
    }
    if (r == 0) {
        speakers_find(&grouping, of_row);
        r = groups_rank(arena, &grouping, of_row, &groups);
    }
    intern_deinit(&grouping.keys);
    VEC_FREE(&grouping.groups);
    map_u64_deinit(&grouping.thread_at);
    map_u64_deinit(&grouping.object_at);
    map_u64_deinit(&grouping.waker_at);
    if (r == 0)
        *ret = groups;
    return r;
}
