/* Rank both, merge by name and image, subtract. */
#include "analyze/profile_diff.h"

#include "analyze/hotspots.h"
#include "base/intern.h"
#include "base/vec.h"
#include "base/why.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Several functions of one profile may share a key (static ones of one name): they add up. */
struct side {
    const struct profile *profile;
    struct hotspots hotspots;
    double scale;
};

struct entry {
    uint32_t function[2];
    uint64_t self[2], total[2];
    bool seen[2];
};

struct merging {
    struct arena *arena;
    struct side sides[2];
    struct intern keys;
    VEC(struct entry) entries; /* [key id - 1] */
};

static struct str base_name(struct str path)
{
    struct str rest = path, last = path;
    while (rest.len > 0)
        last = str_cut(&rest, '/');
    return last;
}

/* The name and the image apart by a NUL, which neither has in a C string. */
static struct str key_of(struct arena *arena, const struct profile *profile, uint32_t function)
{
    const struct profile_function *row = &profile->functions[function];
    struct str image = base_name(profile->images[row->image].path);
    size_t len = row->name.len + 1 + image.len;
    char *key = arena_alloc(arena, len);
    if (!key)
        return STR("");
    memcpy(key, row->name.data, row->name.len);
    memcpy(key + row->name.len + 1, image.data, image.len);
    return (struct str){key, len};
}

static int merge_side(struct merging *merging, int which)
{
    const struct side *side = &merging->sides[which];
    for (size_t i = 0; i < side->hotspots.count; i++) {
        const struct hotspot *hotspot = &side->hotspots.rows[i];
        uint32_t id;
        bool fresh;
        struct entry empty = {0};
        struct str key = key_of(merging->arena, side->profile, hotspot->function);
        if (intern_add(&merging->keys, key, &id, &fresh) < 0)
            return -ENOMEM;
        if (fresh && VEC_PUSH(&merging->entries, empty) < 0)
            return -ENOMEM;
        struct entry *entry = &merging->entries.data[id - 1];
        if (!entry->seen[which]) /* the heaviest of one name gives its id */
            entry->function[which] = hotspot->function;
        entry->seen[which] = true;
        entry->self[which] += hotspot->self_weight;
        entry->total[which] = MIN(entry->total[which] + hotspot->total_weight,
                                  side->profile->weight);
    }
    return 0;
}

static struct interval self_interval(const struct side *side, uint64_t weight)
{
    double whole = (double)side->profile->weight;
    struct interval share = share_interval((double)weight / whole,
                                           side->hotspots.effective_samples);
    return interval_scale(share, whole * side->scale);
}

static struct diff_row row_make(const struct merging *merging, const struct entry *entry)
{
    const struct side *before = &merging->sides[0], *after = &merging->sides[1];
    struct diff_row row = {
        .before = entry->function[0],
        .after = entry->function[1],
        .state = !entry->seen[0]   ? DIFF_NEW
                 : !entry->seen[1] ? DIFF_VANISHED
                                   : DIFF_BOTH,
        .before_self = self_interval(before, entry->self[0]),
        .after_self = self_interval(after, entry->self[1]),
        .before_total = (double)entry->total[0] * before->scale,
        .after_total = (double)entry->total[1] * after->scale,
    };
    row.change = interval_difference(row.before_self, row.after_self);
    row.sure = row.change.low > 0 || row.change.high < 0;
    return row;
}

static int rows_order(const void *left, const void *right)
{
    const struct diff_row *a = left, *b = right;
    double x = fabs(a->change.value), y = fabs(b->change.value);
    if (x != y)
        return x > y ? -1 : 1;
    double s = fabs(a->after_total - a->before_total), t = fabs(b->after_total - b->before_total);
    if (s != t)
        return s > t ? -1 : 1;
    if (a->after != b->after)
        return a->after < b->after ? -1 : 1;
    return (a->before > b->before) - (a->before < b->before);
}

static int merge(struct merging *merging, struct profile_diff *ret)
{
    for (int which = 0; which < 2; which++) {
        struct side *side = &merging->sides[which];
        int r = hotspots_build(merging->arena, side->profile, &side->hotspots);
        if (r == 0)
            r = merge_side(merging, which);
        if (r < 0)
            return r;
    }
    size_t count = merging->entries.len;
    struct diff_row *rows = arena_alloc(merging->arena, (count + 1) * sizeof(*rows));
    if (!rows || arena_failed(merging->arena))
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        rows[i] = row_make(merging, &merging->entries.data[i]);
    qsort(rows, count, sizeof(*rows), rows_order);
    const struct side *before = &merging->sides[0], *after = &merging->sides[1];
    *ret = (struct profile_diff){
        .before = before->profile,
        .after = after->profile,
        .before_scale = before->scale,
        .after_scale = after->scale,
        .rows = rows,
        .count = count,
        .before_weight = (double)before->profile->weight * before->scale,
        .after_weight = (double)after->profile->weight * after->scale,
    };
    return 0;
}

int profile_diff_build(struct arena *arena, const struct profile *before,
                       const struct profile *after, const struct profile_diff_opts *opts,
                       struct profile_diff *ret, struct why *why)
{
    if (strcmp(before->series, after->series) != 0 || before->unit != after->unit)
        return why_set(why, WHY_USAGE, EINVAL, "compare recordings of the same series and unit",
                       "the weights of the two recordings are not of one kind");
    double works[2] = {1, 1};
    if (opts->before_work > 0 && opts->after_work > 0) {
        works[0] = opts->before_work;
        works[1] = opts->after_work;
    }
    struct merging merging = {
        .arena = arena,
        .sides = {{.profile = before, .scale = 1 / works[0]},
                  {.profile = after, .scale = 1 / works[1]}},
    };
    int r = merge(&merging, ret);
    intern_deinit(&merging.keys);
    VEC_FREE(&merging.entries);
    return r == -ENOMEM ? why_nomem(why) : r;
}
