/* Samples to stacks: walk, look frames up, intern. The rest of the parts is in stacks_*.c.
 *
 * Nothing is allocated for a sample whose frames and stack were seen before. */
#include "collect/stacks.h"

#include "collect/stacks_parts.h"
#include "unwind/space.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WALKS_MAX = 64, /* of one sample: each but the last one loads an image it came across */
    PATH_MAX_FRAMES = UNWIND_FRAMES_MAX + 256 + 1, /* user, kernel and the unknown one */
    KERNEL_FRAMES_MAX = 256,
};

int stacks_open(const struct stacks_opts *opts, struct sink *sink, struct stacks **ret,
                struct why *why)
{
    struct stacks *st = calloc(1, sizeof(*st));
    if (!st)
        return why_nomem(why);
    st->opts = *opts;
    st->sink = sink;
    st->frames = calloc(UNWIND_FRAMES_MAX, sizeof(*st->frames));
    st->last_frames = calloc(PATH_MAX_FRAMES, sizeof(*st->last_frames));
    st->last_stacks = calloc(PATH_MAX_FRAMES, sizeof(*st->last_stacks));
    st->path = calloc(PATH_MAX_FRAMES, sizeof(*st->path));
    st->walk_frames = calloc(UNWIND_FRAMES_MAX, sizeof(*st->walk_frames));
    st->walk_ids = calloc(UNWIND_FRAMES_MAX, sizeof(*st->walk_ids));
    bool fresh;
    int r = st->frames && st->last_frames && st->last_stacks && st->path && st->walk_frames &&
                    st->walk_ids
                ? 0
                : -ENOMEM;
    if (r == 0)
        r = image_add(st, STR("kernel"), IMAGE_KERNEL, STR("[kernel]"), &st->kernel, &fresh);
    if (r < 0) {
        stacks_close(st);
        return why_nomem(why);
    }
    st->images.data[st->kernel].state = IMAGE_LOADED;
    *ret = st;
    return 0;
}

void stacks_close(struct stacks *st)
{
    if (!st)
        return;
    stacks_processes_deinit(st);
    stacks_images_deinit(st);
    free(st->frames);
    free(st->last_frames);
    free(st->last_stacks);
    free(st->path);
    free(st->walk_frames);
    free(st->walk_ids);
    VEC_FREE(&st->hits);
    arena_deinit(&st->arena);
    free(st);
}

/* One a process; when there are too many, the one that was idle longest gives its own. */
static struct unwind_cache *cache_of(struct stacks *st, struct stack_process *p)
{
    p->cache_used = st->clock;
    if (p->cache)
        return p->cache;
    if (st->caches >= STACKS_CACHES_MAX) {
        struct stack_process *idle = NULL;
        for (size_t i = 0; i < st->processes.len; i++) {
            struct stack_process *other = &st->processes.data[i];
            if (other->cache && (!idle || other->cache_used < idle->cache_used))
                idle = other;
        }
        if (idle) {
            p->cache = idle->cache;
            idle->cache = NULL;
        }
        return p->cache;
    }
    if (unwind_cache_new(&p->cache) == 0)
        st->caches++;
    return p->cache; /* NULL is fine for the walk */
}

/* 1 when an image was loaded: the walk must be done anew, it may go further now. */
static int missing_load(struct stacks *st, size_t count)
{
    int loaded = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t tag = st->frames[i].tag;
        if (tag == 0 || st->images.data[tag - 1].state != IMAGE_UNSEEN)
            continue;
        int r = image_load(st, tag - 1);
        if (r < 0)
            return r;
        loaded = 1;
    }
    return loaded;
}

int stacks_walk(struct stacks *st, uint32_t process, const struct stacks_sample *sample,
                struct unwind_result *ret)
{
    struct stack_process *p = &st->processes.data[process];
    struct unwind_cache *cache = cache_of(st, p);
    for (int i = 0; i < WALKS_MAX; i++) {
        if (sample->trace)
            unwind_walk_traced(p->space, sample->registers, &sample->slice, st->frames,
                               UNWIND_FRAMES_MAX, ret, sample->trace);
        else
            unwind_walk(p->space, sample->registers, &sample->slice, cache, st->frames,
                        UNWIND_FRAMES_MAX, ret);
        int r = missing_load(st, ret->count);
        if (r <= 0)
            return r;
    }
    return 0;
}

/* A file that could not be read has no addresses of its own; its offsets are as good. */
static uint64_t address_in(const struct stacks *st, uint32_t process, uint32_t image, uint64_t pc)
{
    const struct stack_process *p = &st->processes.data[process];
    for (size_t i = 0; i < p->mappings.len; i++) {
        const struct stack_mapping *m = &p->mappings.data[i];
        if (m->image == image && pc - m->address < m->size_bytes)
            return pc - m->address + m->file_offset;
    }
    return pc;
}

int unknown_frame(struct stacks *st, unsigned reason, uint32_t *ret)
{
    if (!st->unknown[reason]) {
        struct frame_info info = {.kind = FRAME_UNKNOWN, .reason = reason};
        int r = sink_frame(st->sink, &info, &st->unknown[reason]);
        if (r < 0)
            return r;
    }
    *ret = st->unknown[reason];
    return 0;
}

static int user_frame(struct stacks *st, uint32_t process, const struct unwind_frame *frame,
                      uint32_t *ret)
{
    if (frame->tag == 0)
        return unknown_frame(st, UNWIND_NO_MAPPING, ret);
    uint32_t image = frame->tag - 1;
    uint64_t address = st->images.data[image].state == IMAGE_FAILED
                           ? address_in(st, process, image, frame->pc)
                           : frame->vaddr;
    return image_frame(st, image, FRAME_USER, address, ret);
}

static bool frame_is(const struct unwind_frame *a, const struct unwind_frame *b)
{
    return a->pc == b->pc && a->vaddr == b->vaddr && a->tag == b->tag;
}

/* Frames of a walk to ids, root first; those that are as they were cost a comparison. */
static int user_frames(struct stacks *st, uint32_t process, size_t count, size_t *len)
{
    size_t known = st->walk_process == process ? st->walk_len : 0, same = 0;
    st->walk_len = 0;
    while (same < count && same < known &&
           frame_is(&st->walk_frames[same], &st->frames[count - 1 - same]))
        same++;
    /* The others are looked up in tables larger than the processor's caches: all at once. */
    for (size_t i = same; i < count; i++) {
        const struct unwind_frame *frame = &st->frames[count - 1 - i];
        if (frame->tag != 0)
            map_u64_prefetch(&st->images.data[frame->tag - 1].frames, frame->vaddr);
    }
    for (size_t i = same; i < count; i++) {
        const struct unwind_frame *frame = &st->frames[count - 1 - i];
        int r = user_frame(st, process, frame, &st->walk_ids[i]);
        if (r < 0)
            return r;
        st->walk_frames[i] = *frame;
    }
    memcpy(st->path + *len, st->walk_ids, count * sizeof(*st->path));
    *len += count;
    st->walk_len = count;
    st->walk_process = process;
    return 0;
}

/* A chain the kernel walked: addresses become frames as the walk would have made them. */
static int chain_frames(struct stacks *st, uint32_t process, const struct stacks_sample *sample,
                        struct unwind_result *ret)
{
    struct stack_process *p = &st->processes.data[process];
    size_t count = MIN(sample->user_count, (size_t)UNWIND_FRAMES_MAX);
    for (int round = 0; round < WALKS_MAX; round++) {
        for (size_t i = 0; i < count; i++) {
            uint64_t pc = sample->user[i] - (i > 0 && sample->user[i] > 0);
            st->frames[i] = (struct unwind_frame){.pc = pc, .vaddr = pc};
            if (!unwind_space_find(p->space, pc, &st->frames[i].tag, &st->frames[i].vaddr))
                st->frames[i].tag = 0;
        }
        int r = missing_load(st, count);
        if (r < 0)
            return r;
        if (r == 0)
            break;
    }
    *ret = (struct unwind_result){.count = (uint32_t)count, .end = UNWIND_ROOT};
    return 0;
}

/* The user part, root first, into st->path. */
static int user_part(struct stacks *st, uint32_t process, const struct stacks_sample *sample,
                     size_t *len, struct stacks_found *found)
{
    struct stack_process *p = &st->processes.data[process];
    struct unwind_result result = {.end = UNWIND_NO_STACK};
    int r = 0;
    if (sample->user_count > 0 && p->space)
        r = chain_frames(st, process, sample, &result);
    else if (sample->registers && p->space)
        r = stacks_walk(st, process, sample, &result);
    else if (!sample->registers && sample->kernel_count > 0)
        return 0; /* a thread of the kernel: there is no user part */
    if (r < 0)
        return r;
    /* Dying, or not yet begun: nothing could be copied, so nothing was cut off. */
    if (sample->user_count == 0 && sample->slice.len == 0)
        result.end = UNWIND_NO_STACK;
    found->end = result.end;
    if (result.last_sp > sample->slice.address)
        found->slice_used_bytes = result.last_sp - sample->slice.address;
    bool ends_unmapped = result.count > 0 && st->frames[result.count - 1].tag == 0;
    if (result.end != UNWIND_ROOT && !(ends_unmapped && result.end == UNWIND_NO_MAPPING))
        r = unknown_frame(st, result.end, &st->path[(*len)++]);
    return r < 0 ? r : user_frames(st, process, result.count, len);
}

static int kernel_part(struct stacks *st, const struct stacks_sample *sample, size_t *len)
{
    size_t count = MIN(sample->kernel_count, (size_t)KERNEL_FRAMES_MAX);
    for (size_t i = count; i-- > 0;) {
        /* As in user space: a caller is looked up in its call, not behind it. */
        uint64_t address = sample->kernel[i] - (i > 0);
        int r = image_frame(st, st->kernel, FRAME_KERNEL, address, &st->path[(*len)++]);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Frames of st->path to one stack id; the part that is as it was costs a comparison. */
static int stack_intern(struct stacks *st, size_t len, uint32_t *ret)
{
    size_t same = 0;
    while (same < len && same < st->last_len && st->path[same] == st->last_frames[same])
        same++;
    uint32_t stack = same > 0 ? st->last_stacks[same - 1] : 0;
    st->last_len = same;
    for (size_t i = same; i < len; i++) {
        int r = sink_stack(st->sink, stack, st->path[i], &stack);
        if (r < 0)
            return r;
        st->last_frames[i] = st->path[i];
        st->last_stacks[i] = stack;
        st->last_len = i + 1;
    }
    *ret = stack;
    return 0;
}

/* Tells which functions are worth embedding. Without memory for it, fewer are. */
static void hit_count(struct stacks *st, uint32_t frame)
{
    if (st->opts.embed_functions == 0)
        return;
    if (frame >= st->hits.len) {
        if (VEC_RESERVE(&st->hits, frame + 1) < 0)
            return;
        memset(st->hits.data + st->hits.len, 0, (frame + 1 - st->hits.len) * sizeof(uint32_t));
        st->hits.len = frame + 1;
    }
    st->hits.data[frame]++;
}

int stacks_sample(struct stacks *st, const struct stacks_sample *sample, struct stacks_found *ret)
{
    struct stacks_found found = {.end = UNWIND_ROOT};
    uint32_t process = 0, thread = 0;
    st->clock++;
    int r = process_need(st, sample->time_ns, sample->pid, &process);
    if (r == 0)
        r = thread_need(st, sample->time_ns, process, sample->tid, &thread);
    if (r == 0)
        r = thread_tell(st, thread);
    if (r == 0 && !st->processes.data[process].sampled)
        r = mappings_tell(st, process);
    size_t len = 0;
    if (r == 0)
        r = user_part(st, process, sample, &len, &found);
    if (r == 0)
        r = kernel_part(st, sample, &len);
    if (r == 0)
        r = stack_intern(st, len, &found.stack);
    if (r < 0)
        return r;
    if (len > 0)
        hit_count(st, st->path[len - 1]);
    found.thread = st->threads.data[thread].id;
    *ret = found;
    return 0;
}

int stacks_on_top(struct stacks *st, uint32_t stack, const uint64_t *kernel, size_t count,
                  uint32_t *ret_stack)
{
    count = MIN(count, (size_t)KERNEL_FRAMES_MAX);
    for (size_t i = count; i-- > 0;) {
        uint32_t frame;
        int r = image_frame(st, st->kernel, FRAME_KERNEL, kernel[i] - (i > 0), &frame);
        if (r == 0)
            r = sink_stack(st->sink, stack, frame, &stack);
        if (r < 0)
            return r;
    }
    *ret_stack = stack;
    return 0;
}

uint64_t stacks_generation(const struct stacks *st, int pid)
{
    uint32_t process = process_find(st, pid);
    const struct unwind_space *space = process == STACKS_NONE ? NULL
                                                              : st->processes.data[process].space;
    return space ? space->generation : 0;
}

uint64_t stacks_code_at(const struct stacks *st, int pid, uint64_t address)
{
    uint32_t process = process_find(st, pid), tag;
    uint64_t vaddr;
    const struct unwind_space *space = process == STACKS_NONE ? NULL
                                                              : st->processes.data[process].space;
    if (!space || !unwind_space_find(space, address, &tag, &vaddr))
        return 0;
    return hash_u64(vaddr ^ hash_u64(tag)) | 1;
}

int stacks_ends_put(struct sink *sink, const char *axis, const uint64_t *ends)
{
    static const char *const names[UNWIND_ENDS] = {
        [UNWIND_NO_MAPPING] = "no_mapping", [UNWIND_NO_ROW] = "no_row",
        [UNWIND_BAD_CFA] = "bad_cfa",       [UNWIND_UNREADABLE] = "unreadable",
        [UNWIND_EXPRESSION] = "expression", [UNWIND_TOO_DEEP] = "too_deep",
        [UNWIND_NO_STACK] = "no_stack",     [UNWIND_NOT_EXECUTABLE] = "not_executable",
    };
    int r = 0;
    for (size_t i = 0; i < UNWIND_ENDS && r == 0; i++) {
        char name[64];
        if (!names[i] || ends[i] == 0)
            continue;
        snprintf(name, sizeof(name), "%s.end.%s", axis, names[i]);
        r = sink_counter(sink, name, UNIT_COUNT, ends[i]);
    }
    return r;
}
