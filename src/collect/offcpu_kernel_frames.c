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
static bool outermost_find(const struct offcpu_kernel *kernel, uint64_t frame,
                           struct offcpu_kernel_known *known, size_t *ret_index)
{
    for (size_t i = kernel->depth / 8; i-- > 0;) {
        if (kernel->words[i] != frame)
            continue;
        known->below_top = kernel->depth - (uint32_t)(8 * i);
        known->top_value = frame;
        *ret_index = i;
        return true;
    }
    return false;
}

/* Every word that equals one of the return addresses counts: what is left over from other calls
 * can look like one, but then both are compared. Beyond the outermost but one all is left to
 * chance. The innermost frames are the program's own and lie below what was read. */
bool offcpu_kernel_slots(const struct offcpu_kernel *kernel, const uint64_t *frames, size_t count,
                         struct offcpu_kernel_known *ret)
{
    size_t end, last = 0;
    *ret = (struct offcpu_kernel_known){.id = kernel->id};
    if (count < 2 || kernel->depth > sizeof(kernel->words) ||
        !outermost_find(kernel, frames[count - 1], ret, &end))
        return false;
    /* The last place of the outermost but one is where it must be looked for. */
    for (size_t i = 0; i < end; i++)
        if (kernel->words[i] == frames[count - 2])
            last = i + 1;
    uint64_t found = 0; /* bit n: frame n */
    for (size_t i = 0; i < last; i++) {
        if (!is_frame(kernel->words[i], frames, count - 1))
            continue;
        if (ret->count == OFFCPU_KERNEL_SLOTS)
            return false;
        for (size_t k = 0; k + 1 < count; k++)
            if (frames[k] == kernel->words[i])
                found |= UINT64_C(1) << k;
        ret->values[ret->count] = kernel->words[i];
        ret->indexes[ret->count++] = (uint16_t)i;
    }
    if (found == 0)
        return false;
    ret->head_bytes = (uint32_t)(8 * last);
    uint64_t all = (UINT64_C(1) << (count - 1)) - 1;
    uint64_t outer = ~UINT64_C(0) << __builtin_ctzll(found); /* from the first that was found */
    return (found & outer & all) == (outer & all);
}

int offcpu_kernel_learn(struct collector *c, const struct offcpu_kernel *kernel)
{
    uint64_t frames[OFFCPU_KERNEL_FRAMES] = {0};
    struct offcpu_kernel_known known;
    struct offcpu_kernel_place place = kernel->place;
    size_t count = frames_read(c, kernel->id, frames);
    if (count == OFFCPU_KERNEL_FRAMES || /* there may be more of them */
        !offcpu_kernel_slots(kernel, frames, count, &known))
        return 0;
    for (place.alike = 0; place.alike < OFFCPU_KERNEL_ALIKE; place.alike++) {
        uint64_t key = (uint64_t)(uint32_t)place.syscall << 32 | place.object_kind << 8 |
                       place.alike;
        uint64_t *at = map_u64_at(&c->kernel_places, key, NULL);
        if (!at)
            return -ENOMEM;
        if (*at == (uint64_t)kernel->id + 1)
            return 0; /* it came twice */
        if (*at != 0)
            continue;
        if (bpf_map_update_elem(c->fds.kernel_known, &place, &known, BPF_ANY) < 0)
            return 0; /* full: it is walked every time */
        *at = (uint64_t)kernel->id + 1;
        c->kernel_learnt++;
        return 0;
    }
    return 0;
}
