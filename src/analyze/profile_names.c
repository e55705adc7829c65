/* Names for what has none: frames without a location, and threads by the dozen.
 *
 * A made-up function stands for all unnamed code of one image, or for one reason why a walk
 * ended. They are made in the order of the frames, so the same file gives the same ids. */
#include "analyze/profile_parts.h"

#include "base/intern.h"
#include "base/map.h"
#include "unwind/unwind.h"

#include <errno.h>

static struct str base_name(struct str path)
{
    struct str rest = path, last = path;
    while (rest.len > 0) {
        struct str part = str_cut(&rest, '/');
        if (part.len > 0)
            last = part;
    }
    return last;
}

/* What a frame without a location is called. `named`: the recording knows its name. */
static struct str frame_title(struct loader *loader, const struct profile_frame *frame,
                              uint32_t name, bool *ret_named)
{
    struct str text = loader->texts.data[name];
    *ret_named = text.len > 0;
    if (*ret_named)
        return text;
    if (frame->kind == FRAME_UNKNOWN) {
        const char *reason = unwind_end_text(frame->reason);
        return str_from(arena_printf(loader->arena, "[unknown: %s]", reason));
    }
    struct str path = base_name(loader->images.data[frame->image].path);
    if (path.len > 0 && path.data[0] == '[')
        return path; /* [kernel], [vdso] */
    if (path.len > 0) {
        const char *title = arena_printf(loader->arena, "[%.*s]", STR_FMT(path));
        return str_from(title);
    }
    return frame->kind == FRAME_KERNEL ? STR("[kernel]") : STR("[unknown code]");
}

/* Frames that share a made-up function: by name, by reason, or by image. */
static uint64_t frame_key(const struct loader *loader, const struct profile_frame *frame,
                          uint32_t name)
{
    if (loader->texts.data[name].len > 0)
        return (uint64_t)name << 32 | frame->image;
    if (frame->kind == FRAME_UNKNOWN)
        return UINT64_MAX - frame->reason;
    /* The kernel's unnamed frames and a user's without an image are not the same. */
    return (uint64_t)(frame->kind == FRAME_KERNEL) << 31 | frame->image;
}

static int function_make(struct loader *loader, struct map_u64 *made,
                         const struct profile_frame *frame, uint32_t name, uint32_t *ret)
{
    bool fresh;
    uint64_t *at = map_u64_at(made, frame_key(loader, frame, name), &fresh);
    if (!at)
        return why_nomem(loader->why);
    if (fresh) {
        bool named;
        struct profile_function function = {
            .name = frame_title(loader, frame, name, &named),
            .linkage = STR(""),
            .file = STR(""),
            .image = frame->kind == FRAME_UNKNOWN ? 0 : frame->image,
            .kernel = frame->kind == FRAME_KERNEL ||
                      loader->images.data[frame->image].kind == IMAGE_KERNEL,
        };
        function.unnamed = !named;
        *at = loader->functions.len;
        if (VEC_PUSH(&loader->functions, function) < 0)
            return why_nomem(loader->why);
    }
    *ret = (uint32_t)*at;
    return 0;
}

/* The places a frame has already, and whether the recording named all of them. */
static int frame_complete(struct loader *loader, struct map_u64 *made, struct profile_frame *frame,
                          uint32_t name)
{
    uint32_t function = 0;
    if (frame->place_count == 0) {
        int r = function_make(loader, made, frame, name, &function);
        if (r < 0)
            return r;
        frame->places = (uint32_t)loader->places.len;
        frame->place_count = 1;
        struct profile_place place = {.function = function, .file = STR("")};
        return VEC_PUSH(&loader->places, place) < 0 ? why_nomem(loader->why) : 0;
    }
    for (uint32_t i = 0; i < frame->place_count; i++) {
        struct profile_place *place = &loader->places.data[frame->places + i];
        if (place->function == 0) {
            int r = function_make(loader, made, frame, name, &place->function);
            if (r < 0)
                return r;
        }
        if (frame->kind == FRAME_KERNEL)
            loader->functions.data[place->function].kernel = true;
    }
    return 0;
}

int profile_name_frames(struct loader *loader)
{
    struct map_u64 made = {0};
    int r = 0;
    for (size_t i = 1; i < loader->frames.len && r == 0; i++)
        r = frame_complete(loader, &made, &loader->frames.data[i], loader->frame_names.data[i]);
    map_u64_deinit(&made);
    return r;
}

/* "worker-12" and "worker-3" are both "worker-*". */
static struct str name_fold(struct loader *loader, struct str name)
{
    char *folded = arena_alloc(loader->arena, name.len + 1);
    size_t len = 0;
    for (size_t i = 0; folded && i < name.len; i++) {
        bool digit = name.data[i] >= '0' && name.data[i] <= '9';
        if (digit && len > 0 && folded[len - 1] == '*')
            continue;
        folded[len++] = digit ? '*' : name.data[i];
    }
    return (struct str){folded ? folded : "", len};
}

/* Groups are numbered in the order of their first thread. One name alone keeps its numbers. */
static int threads_group(struct loader *loader, struct intern *folded)
{
    struct str *groups = arena_alloc(loader->arena, (loader->threads.len + 1) * sizeof(*groups));
    if (!groups)
        return why_nomem(loader->why);
    groups[0] = loader->threads.data[0].name;
    for (size_t i = 1; i < loader->threads.len; i++) {
        struct profile_thread *thread = &loader->threads.data[i];
        if (thread->name.len == 0)
            thread->name = STR("[unnamed]");
        struct str fold = name_fold(loader, thread->name);
        bool fresh;
        if (intern_add(folded, fold, &thread->group, &fresh) < 0)
            return why_nomem(loader->why);
        if (fresh)
            groups[thread->group] = thread->name;
        else if (!str_eq(groups[thread->group], thread->name))
            groups[thread->group] = fold;
    }
    loader->profile->thread_groups = groups;
    loader->profile->thread_group_count = folded->len + 1;
    return 0;
}

int profile_group_threads(struct loader *loader)
{
    struct intern folded = {0};
    int r = threads_group(loader, &folded);
    intern_deinit(&folded);
    return r;
}

/* By pid and tid, but not by the process, which an exec makes another. A tid that comes back is
 * another thread: the one that had it was over before. Those of some imports have none. */
int profile_join_threads(struct loader *loader)
{
    struct map_u64 newest = {0};
    int r = 0;
    for (uint32_t i = (uint32_t)loader->threads.len; i-- > 0 && r == 0;) {
        struct profile_thread *thread = &loader->threads.data[i];
        uint32_t pid = loader->processes.data[thread->process].pid;
        thread->life = i;
        if (i == 0 || thread->tid == 0 || pid == 0)
            continue;
        uint64_t *at = map_u64_at(&newest, (uint64_t)pid << 32 | thread->tid, NULL);
        if (!at) {
            r = why_nomem(loader->why);
            break;
        }
        const struct profile_thread *after = *at ? &loader->threads.data[*at] : NULL;
        if (after && thread->end_ns >= after->start_ns)
            thread->life = after->life;
        *at = i;
    }
    map_u64_deinit(&newest);
    return r;
}
