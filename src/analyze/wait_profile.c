/* Rows of waits as totals of a profile that has one more frame on every stack. */
#include "analyze/wait_profile.h"

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

struct leaves {
    const struct profile *profile;
    struct intern names;              /* a leaf's number is its id */
    struct map_u64 stack_at;          /* stack and leaf to the new stack */
    VEC(struct profile_stack) stacks; /* the new ones; frames are leaf numbers */
    VEC(struct profile_total) totals;
};

static int leaf_stack(struct leaves *leaves, uint32_t stack, const char *name, uint32_t *ret)
{
    uint32_t leaf;
    int r = intern_add(&leaves->names, str_from(name), &leaf, NULL);
    if (r < 0)
        return r;
    bool fresh;
    uint64_t *at = map_u64_at(&leaves->stack_at, (uint64_t)stack << 32 | leaf, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh) {
        *at = leaves->profile->stack_count + leaves->stacks.len;
        struct profile_stack made = {.parent = stack, .frame = leaf};
        if (VEC_PUSH(&leaves->stacks, made) < 0)
            return -ENOMEM;
    }
    *ret = (uint32_t)*at;
    return 0;
}

static int row_add(struct leaves *leaves, const struct wait_row *row, const char *name)
{
    uint32_t stack;
    int r = leaf_stack(leaves, row->info.stack, name, &stack);
    if (r < 0)
        return r;
    struct profile_total total = {row->info.thread, stack, row->tally.count, row->tally.total_ns};
    return VEC_PUSH(&leaves->totals, total) < 0 ? -ENOMEM : 0;
}

/* A copy of an array with room for `more` behind it. */
static void *grown(struct arena *arena, const void *data, size_t count, size_t more, size_t size)
{
    char *copy = arena_alloc(arena, (count + more) * size);
    if (copy && count > 0)
        memcpy(copy, data, count * size);
    return copy;
}

/* The new arrays of *profile: one function, place and frame a leaf, one stack each. */
static int profile_grow(struct arena *arena, const struct leaves *leaves, struct profile *profile)
{
    size_t names = leaves->names.len, stacks = leaves->stacks.len, totals = leaves->totals.len;
    struct profile_function *functions = grown(arena, profile->functions, profile->function_count,
                                               names, sizeof(*functions));
    struct profile_place *places = grown(arena, profile->places, profile->place_count, names,
                                         sizeof(*places));
    struct profile_frame *frames = grown(arena, profile->frames, profile->frame_count, names,
                                         sizeof(*frames));
    struct profile_stack *all = grown(arena, profile->stacks, profile->stack_count, stacks,
                                      sizeof(*all));
    if (!functions || !places || !frames || !all)
        return -ENOMEM;
    for (size_t i = 0; i < names; i++) {
        struct str name = intern_get(&leaves->names, (uint32_t)i + 1);
        uint32_t function = (uint32_t)(profile->function_count + i);
        uint32_t place = (uint32_t)(profile->place_count + i);
        functions[function].name = (struct str){arena_dup_len(arena, name.data, name.len),
                                                name.len};
        places[place].function = function;
        frames[profile->frame_count + i] = (struct profile_frame){
            .kind = FRAME_NAMED, .places = place, .place_count = 1};
    }
    for (size_t i = 0; i < stacks; i++) {
        struct profile_stack made = leaves->stacks.data[i];
        made.frame += (uint32_t)profile->frame_count - 1;
        all[profile->stack_count + i] = made;
    }
    profile->totals = grown(arena, leaves->totals.data, totals, 1, sizeof(*profile->totals));
    if (!profile->totals || arena_failed(arena))
        return -ENOMEM;
    profile->functions = functions;
    profile->function_count += names;
    profile->places = places;
    profile->place_count += names;
    profile->frames = frames;
    profile->frame_count += names;
    profile->stacks = all;
    profile->stack_count += stacks;
    profile->total_count = totals;
    return 0;
}

int wait_profile_build(struct arena *arena, const struct waits *waits, wait_leaf *leaf,
                       void *context, struct profile *ret)
{
    struct leaves leaves = {.profile = &waits->profile};
    struct profile profile = waits->profile;
    profile.weight = profile.count = profile.sample_count = 0;
    profile.unit = UNIT_NS;
    profile.sample_time_ns = profile.sample_weight = NULL;
    profile.sample_thread = profile.sample_stack = NULL;
    int r = 0;
    for (uint32_t i = 1; i < waits->row_count && r == 0; i++) {
        const char *name = leaf(context, i);
        if (!name)
            continue;
        profile.weight += waits->rows[i].tally.total_ns;
        profile.count += waits->rows[i].tally.count;
        r = row_add(&leaves, &waits->rows[i], name);
    }
    if (r == 0)
        r = profile_grow(arena, &leaves, &profile);
    intern_deinit(&leaves.names);
    map_u64_deinit(&leaves.stack_at);
    VEC_FREE(&leaves.stacks);
    VEC_FREE(&leaves.totals);
    if (r == 0)
        *ret = profile;
    return r;
}
