/* Waits for locks as a profile, for flame graphs: the stacks of those who waited, with the lock
 * they waited for as the innermost function. And a lock chosen by what people type. */
#include "analyze/lock_table.h"

#include "base/map.h"
#include "base/vec.h"

#include <errno.h>

/* Arrays of the profile with room for what is added. */
static void *grown(struct arena *arena, const void *data, size_t count, size_t add, size_t size)
{
    void *copy = arena_alloc(arena, MAX(count + add, (size_t)1) * size);
    if (copy && count > 0)
        memcpy(copy, data, count * size);
    return copy;
}

static int functions_add(struct arena *arena, const struct lock_table *table,
                         struct profile *profile)
{
    size_t add = table->count;
    profile->functions = grown(arena, profile->functions, profile->function_count, add,
                               sizeof(*profile->functions));
    profile->places = grown(arena, profile->places, profile->place_count, add,
                            sizeof(*profile->places));
    profile->frames = grown(arena, profile->frames, profile->frame_count, add,
                            sizeof(*profile->frames));
    if (!profile->functions || !profile->places || !profile->frames)
        return -ENOMEM;
    for (size_t i = 0; i < add; i++) {
        struct str empty = STR("");
        profile->functions[profile->function_count + i] = (struct profile_function){
            .name = str_from(arena_printf(arena, "[lock %s]", table->rows[i].name)),
            .linkage = empty,
            .file = empty,
        };
        profile->places[profile->place_count + i] = (struct profile_place){
            .function = (uint32_t)(profile->function_count + i), .file = empty};
        profile->frames[profile->frame_count + i] = (struct profile_frame){
            .kind = FRAME_NAMED,
            .places = (uint32_t)(profile->place_count + i),
            .place_count = 1,
        };
    }
    return 0;
}

struct adding {
    struct profile *profile;
    struct map_u64 stack_at; /* stack and lock to the stack with the lock on top */
    VEC(struct profile_stack) stacks;
    VEC(struct profile_total) totals;
};

static int wait_add(struct adding *adding, const struct wait_row *row, uint32_t lock)
{
    struct profile *profile = adding->profile;
    bool fresh;
    uint64_t *at = map_u64_at(&adding->stack_at, (uint64_t)row->info.stack << 32 | lock, &fresh);
    struct profile_stack leaf = {row->info.stack, (uint32_t)profile->frame_count + lock};
    if (!at || (fresh && VEC_PUSH(&adding->stacks, leaf) < 0))
        return -ENOMEM;
    if (fresh)
        *at = profile->stack_count + adding->stacks.len - 1;
    struct profile_total total = {row->info.thread, (uint32_t)*at, row->tally.count,
                                  row->tally.total_ns};
    profile->weight += total.weight;
    profile->count += total.count;
    return VEC_PUSH(&adding->totals, total) < 0 ? -ENOMEM : 0;
}

static int adding_keep(struct arena *arena, struct adding *adding)
{
    struct profile *profile = adding->profile;
    size_t count = adding->totals.len;
    profile->stacks = grown(arena, profile->stacks, profile->stack_count, adding->stacks.len,
                            sizeof(*profile->stacks));
    profile->totals = grown(arena, adding->totals.data, count, 0, sizeof(*profile->totals));
    if (!profile->stacks || !profile->totals)
        return -ENOMEM;
    if (adding->stacks.len > 0)
        memcpy(profile->stacks + profile->stack_count, adding->stacks.data,
               adding->stacks.len * sizeof(*profile->stacks));
    profile->stack_count += adding->stacks.len;
    profile->total_count = count;
    return 0;
}

int lock_table_profile(struct arena *arena, const struct waits *waits,
                       const struct lock_table *table, size_t lock, struct profile *ret)
{
    struct profile profile = waits->profile;
    struct adding adding = {.profile = &profile};
    profile.series = "locks";
    profile.unit = UNIT_NS;
    profile.about = "nanoseconds of waiting for locks";
    profile.weight = profile.count = 0;
    profile.start_ns = waits->start_ns;
    profile.end_ns = waits->end_ns;
    profile.sample_count = 0;
    profile.sample_time_ns = profile.sample_weight = NULL;
    profile.sample_thread = profile.sample_stack = NULL;
    int r = functions_add(arena, table, &profile);
    for (size_t i = 1; i < waits->row_count && r == 0; i++) {
        uint32_t of = table->of_wait[i];
        const struct wait_row *row = &waits->rows[i];
        if (of && row->info.kind == WAIT_BLOCKED && row->info.stack < profile.stack_count &&
            (lock == SIZE_MAX || lock == of - 1))
            r = wait_add(&adding, row, of - 1);
    }
    if (r == 0)
        r = adding_keep(arena, &adding);
    map_u64_deinit(&adding.stack_at);
    VEC_FREE(&adding.stacks);
    VEC_FREE(&adding.totals);
    if (r < 0 || arena_failed(arena))
        return -ENOMEM;
    profile.function_count += table->count;
    profile.place_count += table->count;
    profile.frame_count += table->count;
    *ret = profile;
    return 0;
}

static int choose_id(const struct lock_table *table, uint64_t id, const char *text, size_t *ret,
                     struct why *why)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].object == id) {
            *ret = i;
            return 0;
        }
    return why_set(why, WHY_USAGE, ENOENT, "take an id from the table of locks",
                   "there is no lock '%s'", text);
}

int lock_table_choose(const struct lock_table *table, const char *text, size_t *ret,
                      struct why *why)
{
    struct str name = str_from(text);
    uint64_t id;
    if (str_starts(name, "l") &&
        str_to_u64((struct str){name.data + 1, name.len - 1}, 10, &id) == 0)
        return choose_id(table, id, text, ret, why);
    if (str_to_u64(name, 10, &id) == 0)
        return choose_id(table, id, text, ret, why);
    size_t found = table->count, others = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (!str_is(name, table->rows[i].name))
            continue;
        others += found < table->count;
        found = MIN(found, i);
    }
    if (others > 0)
        return why_set(why, WHY_USAGE, EINVAL, "take an id from the table of locks",
                       "%zu locks are called '%s', the first of them is l%u", others + 1, text,
                       table->rows[found].object);
    if (found == table->count)
        return choose_id(table, UINT64_MAX, text, ret, why);
    *ret = found;
    return 0;
}
