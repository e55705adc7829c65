/* Weights gathered by frame first: there are far fewer frames than stacks. */
#include "analyze/hot_lines.h"

#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ANCESTORS_MAX = 1024 };

struct weight {
    uint64_t weight, count;
};

static struct weight *weights_by_frame(const struct profile *profile)
{
    struct weight *weights = calloc(profile->frame_count, sizeof(*weights));
    for (size_t i = 0; weights && i < profile->total_count; i++) {
        const struct profile_total *total = &profile->totals[i];
        struct weight *weight = &weights[profile->stacks[total->stack].frame];
        weight->weight += total->weight;
        weight->count += total->count;
    }
    return weights;
}

static int str_order(struct str a, struct str b)
{
    size_t len = MIN(a.len, b.len); /* of an empty one nothing is read: it may be nowhere */
    int order = len > 0 ? memcmp(a.data, b.data, len) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_place(const void *left, const void *right)
{
    const struct hot_line *a = left, *b = right;
    if (a->function != b->function)
        return a->function < b->function ? -1 : 1;
    int order = str_order(a->file, b->file);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

static int by_weight(const void *left, const void *right)
{
    const struct hot_line *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return by_place(left, right);
}

void hot_lines_rank(struct hot_lines *lines)
{
    if (lines->count > 0)
        qsort(lines->rows, lines->count, sizeof(*lines->rows), by_weight);
}

int hot_lines_build(struct arena *arena, const struct profile *profile, struct hot_lines *ret)
{
    struct weight *weights = weights_by_frame(profile);
    VEC(struct hot_line) rows = {0};
    int r = weights ? 0 : -ENOMEM;
    for (size_t i = 0; i < profile->frame_count && r == 0; i++) {
        if (weights[i].count == 0)
            continue;
        const struct profile_place *place = &profile->places[profile->frames[i].places];
        struct hot_line row = {place->function, place->file, place->line, weights[i].weight,
                               weights[i].count};
        r = VEC_PUSH(&rows, row);
    }
    size_t kept = 0;
    if (r == 0 && rows.len > 0)
        qsort(rows.data, rows.len, sizeof(*rows.data), by_place);
    for (size_t i = 0; r == 0 && i < rows.len; i++) {
        if (kept > 0 && by_place(&rows.data[kept - 1], &rows.data[i]) == 0) {
            rows.data[kept - 1].weight += rows.data[i].weight;
            rows.data[kept - 1].count += rows.data[i].count;
        } else {
            rows.data[kept++] = rows.data[i];
        }
    }
    struct hot_line *copy = r == 0 ? arena_alloc(arena, (kept + 1) * sizeof(*copy)) : NULL;
    if (copy) {
        if (kept > 0)
            memcpy(copy, rows.data, kept * sizeof(*copy));
        *ret = (struct hot_lines){copy, kept};
    }
    free(weights);
    VEC_FREE(&rows);
    return copy ? 0 : -ENOMEM;
}

/* The place of the function in a frame, outermost first; NULL if it has none. */
static const struct profile_place *place_of(const struct profile *profile, uint32_t frame_id,
                                            uint32_t function)
{
    const struct profile_frame *frame = &profile->frames[frame_id];
    for (uint32_t i = frame->place_count; i > 0; i--) {
        const struct profile_place *place = &profile->places[frame->places + i - 1];
        if (place->function == function)
            return place;
    }
    return NULL;
}

static bool same_line(const struct profile_place *a, const struct profile_place *b)
{
    return a && b && a->line == b->line && str_eq(a->file, b->file);
}

/* A caller further out stands on the same line: its subtree has this one's weight already. */
static bool counted_above(const struct profile *profile, uint32_t stack, uint32_t function,
                          const struct profile_place *place)
{
    uint32_t at = profile->stacks[stack].parent;
    for (int i = 0; at != 0 && i < ANCESTORS_MAX; i++, at = profile->stacks[at].parent)
        if (same_line(place_of(profile, profile->stacks[at].frame, function), place))
            return true;
    return false;
}

static int cost_order(const void *left, const void *right)
{
    const struct line_cost *a = left, *b = right;
    int order = str_order(a->file, b->file);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

struct costs {
    VEC(struct line_cost) rows;
};

static int costs_add(struct costs *costs, const struct profile_place *place, uint64_t self,
                     uint64_t total, uint64_t count)
{
    struct line_cost row = {place->file, place->line, self, total, count};
    return VEC_PUSH(&costs->rows, row);
}

static int costs_gather(struct costs *costs, const struct profile *profile, uint32_t function,
                        struct weight *self, struct weight *below)
{
    for (size_t i = 0; i < profile->total_count; i++) {
        self[profile->totals[i].stack].weight += profile->totals[i].weight;
        self[profile->totals[i].stack].count += profile->totals[i].count;
    }
    for (size_t i = profile->stack_count; i-- > 1;) {
        below[i].weight += self[i].weight;
        below[profile->stacks[i].parent].weight += below[i].weight;
    }
    for (uint32_t i = 1; i < profile->stack_count; i++) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[i].frame];
        const struct profile_place *place = place_of(profile, profile->stacks[i].frame, function);
        if (!place || below[i].weight == 0)
            continue;
        const struct profile_place *leaf = &profile->places[frame->places];
        bool leads = leaf->function == function;
        uint64_t total = counted_above(profile, i, function, place) ? 0 : below[i].weight;
        int r = costs_add(costs, place, 0, total, 0);
        if (r == 0 && leads)
            r = costs_add(costs, leaf, self[i].weight, same_line(leaf, place) ? 0 : self[i].weight,
                          self[i].count);
        if (r < 0)
            return r;
    }
    return 0;
}

static int costs_keep(struct arena *arena, struct costs *costs, struct line_cost **ret,
                      size_t *ret_count)
{
    size_t kept = 0;
    struct line_cost *rows = arena_alloc(arena, (costs->rows.len + 1) * sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    if (costs->rows.len > 0)
        qsort(costs->rows.data, costs->rows.len, sizeof(*rows), cost_order);
    for (size_t i = 0; i < costs->rows.len; i++) {
        const struct line_cost *row = &costs->rows.data[i];
        if (kept > 0 && cost_order(&rows[kept - 1], row) == 0) {
            rows[kept - 1].self_weight += row->self_weight;
            rows[kept - 1].total_weight += row->total_weight;
            rows[kept - 1].self_count += row->self_count;
        } else {
            rows[kept++] = *row;
        }
    }
    *ret = rows;
    *ret_count = kept;
    return 0;
}

int line_costs_build(struct arena *arena, const struct profile *profile, uint32_t function,
                     struct line_cost **ret, size_t *ret_count)
{
    struct costs costs = {0};
    struct weight *self = calloc(profile->stack_count, sizeof(*self));
    struct weight *below = calloc(profile->stack_count, sizeof(*below));
    int r = self && below ? costs_gather(&costs, profile, function, self, below) : -ENOMEM;
    if (r == 0)
        r = costs_keep(arena, &costs, ret, ret_count);
    free(self);
    free(below);
    VEC_FREE(&costs.rows);
    return r;
}

static int address_order(const void *left, const void *right)
{
    const struct address_cost *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

int address_costs_build(struct arena *arena, const struct profile *profile, uint32_t image,
                        uint64_t start, uint64_t size, struct address_cost **ret, size_t *ret_count)
{
    struct weight *weights = weights_by_frame(profile);
    if (!weights)
        return -ENOMEM;
    size_t count = 0;
    for (size_t i = 1; i < profile->frame_count; i++) {
        const struct profile_frame *frame = &profile->frames[i];
        if (frame->image != image || frame->address - start >= size)
            weights[i].count = 0;
        count += weights[i].count > 0;
    }
    struct address_cost *rows = arena_alloc(arena, (count + 1) * sizeof(*rows));
    size_t kept = 0;
    for (size_t i = 1; rows && i < profile->frame_count; i++)
        if (weights[i].count > 0)
            rows[kept++] = (struct address_cost){profile->frames[i].address, weights[i].weight,
                                                 weights[i].count};
    free(weights);
    if (!rows)
        return -ENOMEM;
    if (kept > 1)
        qsort(rows, kept, sizeof(*rows), address_order);
    *ret = rows;
    *ret_count = kept;
    return 0;
}
