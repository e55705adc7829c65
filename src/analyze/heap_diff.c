/* Both lists of functions, merged by name and image, subtracted. */
#include "analyze/heap_diff.h"

#include "base/intern.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct merging {
    struct arena *arena;
    struct intern keys;
    VEC(struct heap_diff_row) rows; /* [key id - 1] */
};

static struct str base_name(struct str path)
{
    struct str rest = path, last = path;
    while (rest.len > 0)
        last = str_cut(&rest, '/');
    return last;
}

/* The name and the image apart by a NUL, which neither has in a C string. */
static struct str key_of(struct arena *arena, struct str name, struct str image)
{
    size_t len = name.len + 1 + image.len;
    char *key = arena_alloc(arena, len);
    if (!key)
        return STR("");
    memcpy(key, name.data, name.len);
    memcpy(key + name.len + 1, image.data, image.len);
    return (struct str){key, len};
}

static void figures_add(struct heap_figures *sum, const struct heap_figures *more)
{
    sum->allocations += more->allocations;
    sum->allocated_bytes += more->allocated_bytes;
    sum->frees += more->frees;
    sum->freed_bytes += more->freed_bytes;
    sum->temporary += more->temporary;
    sum->temporary_bytes += more->temporary_bytes;
    sum->peak_count += more->peak_count;
    sum->peak_bytes += more->peak_bytes;
    sum->grown += more->grown;
    sum->grown_bytes += more->grown_bytes;
    sum->samples += more->samples;
    sum->variance += more->variance;
}

static int side_add(struct merging *merging, const struct heap_sums *sums, bool after)
{
    const struct profile *profile = &sums->heap->profile;
    const struct heap_sum_list *list = &sums->per[HEAP_PER_FUNCTION];
    for (size_t i = 0; i < list->count; i++) {
        const struct heap_sum *sum = &list->rows[i];
        struct heap_place place = heap_place_of(&sums->owners, sum->stack);
        struct heap_diff_row row = {
            .function = profile->functions[sum->id].name,
            .image = base_name(profile->images[place.image].path),
            .file = place.file,
            .line = place.line,
        };
        uint32_t id;
        bool fresh;
        struct str key = key_of(merging->arena, row.function, row.image);
        if (arena_failed(merging->arena) || intern_add(&merging->keys, key, &id, &fresh) < 0 ||
            (fresh && VEC_PUSH(&merging->rows, row) < 0))
            return -ENOMEM;
        struct heap_diff_row *found = &merging->rows.data[id - 1];
        found->is_before |= !after;
        found->is_after |= after;
        figures_add(after ? &found->after : &found->before, &sum->figures);
    }
    return 0;
}

struct ranked {
    double change, size;
    struct heap_diff_row row;
};

static int by_change(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->change != b->change)
        return a->change > b->change ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    size_t len = MIN(a->row.function.len, b->row.function.len);
    int order = len > 0 ? memcmp(a->row.function.data, b->row.function.data, len) : 0;
    if (order == 0)
        order = (a->row.function.len > b->row.function.len) -
                (a->row.function.len < b->row.function.len);
    return order;
}

static int rows_finish(const struct merging *merging, enum heap_rank rank, struct heap_diff *ret)
{
    size_t count = merging->rows.len;
    struct heap_diff diff = {.count = count};
    struct ranked *ranked = malloc((count + 1) * sizeof(*ranked));
    diff.rows = arena_alloc(merging->arena, (count + 1) * sizeof(*diff.rows));
    if (!ranked || !diff.rows) {
        free(ranked);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const struct heap_diff_row *row = &merging->rows.data[i];
        double before = heap_rank_value(&row->before, rank);
        double after = heap_rank_value(&row->after, rank);
        ranked[i] = (struct ranked){fabs(after - before), fmax(before, after), *row};
        diff.changed += before != after;
    }
    qsort(ranked, count, sizeof(*ranked), by_change);
    for (size_t i = 0; i < count; i++)
        diff.rows[i] = ranked[i].row;
    free(ranked);
    *ret = diff;
    return 0;
}

int heap_diff_build(struct arena *arena, const struct heap_sums *before,
                    const struct heap_sums *after, enum heap_rank rank, struct heap_diff *ret)
{
    struct merging merging = {.arena = arena};
    int r = side_add(&merging, before, false);
    if (r == 0)
        r = side_add(&merging, after, true);
    if (r == 0)
        r = rows_finish(&merging, rank, ret);
    intern_deinit(&merging.keys);
    VEC_FREE(&merging.rows);
    return r;
}
