/* Kernel stacks: from ids to frames, and what the program needs to recognise them. */
#include "collect/offcpu_kernel_parts.h"

#include <bpf/bpf.h>
#include <errno.h>

static size_t frames_read(const struct collector *c, int32_t id,
                          uint64_t frames[OFFCPU_KERNEL_FRAMES])
{
    size_t count = 0;
    if (bpf_map_lookup_elem(c->fds.kernel_stacks, &id, frames) < 0)
        return 0;
    while (count < OFFCPU_KERNEL_FRAMES && frames[count] != 0)
        count++;
    return count;
}

/* The way from __schedule() to us is not the thread's. */
static size_t schedule_skip(const struct collector *c, const uint64_t *frames, size_t count)
{
    for (size_t i = 0; i < count && c->schedule_start != 0; i++)
        if (frames[i] >= c->schedule_start && frames[i] < c->schedule_end)
            return i;
    return 0;
}

int offcpu_kernel_part(struct collector *c, uint32_t stack, int32_t kernel_stack, uint32_t *ret)
{
    uint64_t frames[OFFCPU_KERNEL_FRAMES] = {0};
    bool fresh;
    *ret = stack;
    if (kernel_stack < 0)
        return 0;
    uint64_t *at = map_u64_at(&c->tops, (uint64_t)stack << 32 | (uint32_t)kernel_stack, &fresh);
    if (!at)
        return -ENOMEM;
    if (!fresh) {
        *ret = (uint32_t)*at;
        return 0;
    }
    *at = stack;
    size_t count = frames_read(c, kernel_stack, frames);
    size_t skip = schedule_skip(c, frames, count);
    int r = stacks_on_top(c->stacks, stack, frames + skip, count - skip, ret);
    if (r == 0)
        *at = *ret; /* nothing was added to the map since */
    return r;
}

static bool is_frame(uint64_t word, const uint64_t *frames, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (frames[i] == word)
            return true;
    return false;
}

/* From the top down: the outermost return address is the first to be met. */
static size_t outermost_find(const struct offcpu_kernel *kernel, uint64_t frame)
{
    for (size_t i = kernel->depth / 8; i-- > 0;)
        if (kernel->words[i] == frame)
            return i;
    return SIZE_MAX;
}

bool offcpu_kernel_narrow(struct offcpu_kernel_learnt *learnt, const struct offcpu_kernel *kernel,
                          const uint64_t *frames, size_t count)
{
    if (count < 2 || kernel->depth > sizeof(kernel->words) || kernel->depth % 8 != 0)
        return false;
    size_t end = outermost_find(kernel, frames[count - 1]);
    if (end == SIZE_MAX)
        return false;
    uint32_t below_top = kernel->depth - (uint32_t)(8 * end);
    if (learnt->samples > 0 && learnt->below_top != below_top)
        return false;
    for (size_t i = 0; i < OFFCPU_KERNEL_WORDS; i++) {
        uint64_t *bits = &learnt->slots[i / 64], bit = UINT64_C(1) << i % 64;
        bool slot = i < end && is_frame(kernel->words[i], frames, count - 1);
        if (learnt->samples == 0 && slot)
            *bits |= bit;
        else if (!slot)
            *bits &= ~bit;
        if (*bits & bit)
            learnt->words[i] = kernel->words[i];
    }
    learnt->below_top = below_top;
    learnt->top_value = frames[count - 1];
    learnt->samples++;
    return true;
}

bool offcpu_kernel_slots(const struct offcpu_kernel_learnt *learnt, const uint64_t *frames,
                         size_t count, struct offcpu_kernel_known *ret)
{
    *ret = (struct offcpu_kernel_known){
        .id = learnt->id, .below_top = learnt->below_top, .top_value = learnt->top_value};
    uint64_t found = 0; /* bit n: frame n */
    for (size_t i = 0; i < OFFCPU_KERNEL_WORDS; i++) {
        if (!(learnt->slots[i / 64] >> i % 64 & 1))
            continue;
        if (ret->count == OFFCPU_KERNEL_SLOTS)
            return false;
        for (size_t k = 0; k + 1 < count; k++)
            if (frames[k] == learnt->words[i])
                found |= UINT64_C(1) << k;
        ret->values[ret->count] = learnt->words[i];
        ret->indexes[ret->count++] = (uint16_t)i;
        ret->head_bytes = (uint32_t)(8 * (i + 1));
    }
    if (found == 0)
        return false;
    uint64_t all = (UINT64_C(1) << (count - 1)) - 1;
    uint64_t outer = ~UINT64_C(0) << __builtin_ctzll(found); /* from the first that was found */
    return (found & outer & all) == (outer & all);
}

/* What is known of this stack in this place; made if need be. NULL: too many, or no memory. */
static struct offcpu_kernel_learnt *learnt_get(struct collector *c, int32_t id,
                                               const struct offcpu_kernel_place *place)
{
    struct offcpu_kernel_place at = *place;
    for (at.alike = 0; at.alike < OFFCPU_KERNEL_ALIKE; at.alike++) {
        uint64_t key = (uint64_t)(uint32_t)at.syscall << 32 | at.object_kind << 8 | at.alike;
        uint64_t *index = map_u64_at(&c->kernel_places, key, NULL);
        if (!index)
            return NULL;
        if (*index != 0 && c->kernel_learnt.data[*index - 1].id != id)
            continue;
        if (*index == 0) {
            struct offcpu_kernel_learnt fresh = {.place = at, .id = id};
            if (c->kernel_learnt.len >= OFFCPU_KERNEL_KNOWN_MAX ||
                VEC_PUSH(&c->kernel_learnt, fresh) < 0)
                return NULL;
            *index = c->kernel_learnt.len;
        }
        return &c->kernel_learnt.data[*index - 1];
    }
    return NULL;
}

void offcpu_kernel_learn(struct collector *c, const struct offcpu_kernel *kernel)
{
    uint64_t frames[OFFCPU_KERNEL_FRAMES] = {0};
    struct offcpu_kernel_known known;
    size_t count = frames_read(c, kernel->id, frames);
    struct offcpu_kernel_learnt *learnt = learnt_get(c, kernel->id, &kernel->place);
    if (!learnt || count == OFFCPU_KERNEL_FRAMES || /* there may be more of them */
        !offcpu_kernel_narrow(learnt, kernel, frames, count) ||
        !offcpu_kernel_slots(learnt, frames, count, &known))
        return;
    /* Full: it is walked every time. */
    (void)bpf_map_update_elem(c->fds.kernel_known, &learnt->place, &known, BPF_ANY);
}
