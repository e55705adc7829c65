/* Filter and focus: which totals and samples stay, and where their stacks begin.
 *
 * Focus does not copy stacks: a stack whose parent has no function in focus becomes a root.
 * Ids stay those of the recording. Only where the function in focus was inlined, the first
 * frame is replaced by one that leaves out what it was inlined into. */
#include "analyze/profile_parts.h"

#include <errno.h>

struct narrowing {
    struct loader *loader;
    bool *threads; /* kept as a whole; NULL: no filter */
    bool *images;  /* kept if the innermost frame is in it */
    bool *stacks;  /* in focus; NULL: no focus */
};

static int filter_make(struct narrowing *narrowing)
{
    struct loader *loader = narrowing->loader;
    const char *text = loader->opts->filter;
    narrowing->threads = arena_alloc(loader->arena, loader->threads.len);
    narrowing->images = arena_alloc(loader->arena, loader->images.len);
    if (!narrowing->threads || !narrowing->images)
        return why_nomem(loader->why);
    for (size_t i = 1; i < loader->threads.len; i++) {
        const struct profile_thread *thread = &loader->threads.data[i];
        const struct profile_process *process = &loader->processes.data[thread->process];
        narrowing->threads[i] = str_contains(thread->name, text) ||
                                str_contains(process->exe, text) ||
                                str_contains(process->command, text);
    }
    for (size_t i = 1; i < loader->images.len; i++)
        narrowing->images[i] = str_contains(loader->images.data[i].path, text);
    return 0;
}

/* How many places of a frame are left below and with the outermost function in focus. */
static uint32_t places_in_focus(const struct loader *loader, const bool *functions,
                                const struct profile_frame *frame)
{
    uint32_t count = frame->place_count;
    while (count > 0 && !functions[loader->places.data[frame->places + count - 1].function])
        count--;
    return count;
}

/* A frame whose outer places are cut off; made once for each frame. */
static int frame_cut(struct loader *loader, uint32_t *cuts, uint32_t id, uint32_t count)
{
    if (cuts[id])
        return 0;
    struct profile_frame frame = loader->frames.data[id];
    frame.place_count = count;
    cuts[id] = (uint32_t)loader->frames.len;
    return VEC_PUSH(&loader->frames, frame) < 0 ? why_nomem(loader->why) : 0;
}

static int focus_make(struct narrowing *narrowing)
{
    struct loader *loader = narrowing->loader;
    struct profile *profile = loader->profile;
    size_t frame_count = loader->frames.len;
    bool *functions = arena_alloc(loader->arena, loader->functions.len);
    uint32_t *cuts = arena_alloc(loader->arena, frame_count * sizeof(*cuts));
    uint32_t *left = arena_alloc(loader->arena, frame_count * sizeof(*left));
    narrowing->stacks = arena_alloc(loader->arena, profile->stack_count);
    if (!functions || !cuts || !left || !narrowing->stacks)
        return why_nomem(loader->why);
    for (size_t i = 1; i < loader->functions.len; i++)
        functions[i] = str_contains(loader->functions.data[i].name, loader->opts->focus);
    for (size_t i = 1; i < frame_count; i++)
        left[i] = places_in_focus(loader, functions, &loader->frames.data[i]);
    for (size_t i = 1; i < profile->stack_count; i++) {
        struct profile_stack *stack = &profile->stacks[i];
        bool below = narrowing->stacks[stack->parent];
        uint32_t count = left[stack->frame];
        narrowing->stacks[i] = below || count > 0;
        if (below || count == 0)
            continue;
        stack->parent = 0;
        if (count == loader->frames.data[stack->frame].place_count)
            continue;
        int r = frame_cut(loader, cuts, stack->frame, count);
        if (r < 0)
            return r;
        stack->frame = cuts[stack->frame];
    }
    return 0;
}

static bool keeps(const struct narrowing *narrowing, uint32_t thread, uint32_t stack)
{
    const struct loader *loader = narrowing->loader;
    if (narrowing->stacks && !narrowing->stacks[stack])
        return false;
    if (!narrowing->threads || narrowing->threads[thread])
        return true;
    uint32_t leaf = loader->profile->stacks[stack].frame;
    return narrowing->images[loader->frames.data[leaf].image];
}

static void narrow_samples(const struct narrowing *narrowing)
{
    struct profile *profile = narrowing->loader->profile;
    size_t kept = 0;
    for (size_t i = 0; i < profile->sample_count; i++) {
        if (!keeps(narrowing, profile->sample_thread[i], profile->sample_stack[i]))
            continue;
        profile->sample_time_ns[kept] = profile->sample_time_ns[i];
        profile->sample_thread[kept] = profile->sample_thread[i];
        profile->sample_stack[kept] = profile->sample_stack[i];
        profile->sample_weight[kept] = profile->sample_weight[i];
        kept++;
    }
    profile->sample_count = kept;
}

int profile_narrow(struct loader *loader)
{
    struct narrowing narrowing = {.loader = loader};
    int r = loader->opts->filter ? filter_make(&narrowing) : 0;
    if (r == 0 && loader->opts->focus)
        r = focus_make(&narrowing);
    if (r < 0 || (!loader->opts->filter && !loader->opts->focus))
        return r;
    size_t kept = 0;
    for (size_t i = 0; i < loader->totals.len; i++)
        if (keeps(&narrowing, loader->totals.data[i].thread, loader->totals.data[i].stack))
            loader->totals.data[kept++] = loader->totals.data[i];
    loader->totals.len = kept;
    narrow_samples(&narrowing);
    return 0;
}
