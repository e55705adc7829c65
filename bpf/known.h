/* Stacks that user space has walked once are recognised here: the same place, and the same
 * values in all slots that the walk hung on. A stack that is not recognised in full is copied. */
#pragma once

#include "kernel.h"

#include "format/offcpu.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, OFFCPU_KNOWN_MAX);
    __type(key, struct offcpu_known_key);
    __type(value, struct offcpu_known);
} known SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, OFFCPU_KNOWN_LONG_MAX);
    __type(key, __u64);
    __type(value, struct offcpu_known_long);
} known_long SEC(".maps");

struct known_head {
    /* Whose: programs on functions can be interrupted, by a thread that needs it as well. */
    volatile __u64 owner;
    __u64 words[OFFCPU_HEAD_BYTES_MAX / 8];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct known_head);
} known_heads SEC(".maps");

struct known_place {
    __u64 sp, fp, lr;
    __u64 head_bytes; /* of the stack, read so far */
};

/* How many slots were compared; 0: another stack. Functions that are neither static nor inlined
 * are looked at once by the verifier, whoever calls them. */
__attribute__((noinline)) int known_long_is(const struct offcpu_known *stack,
                                            const struct known_place *place)
{
    if (!stack || !place)
        return 0;
    __u64 ref = stack->ref;
    const struct offcpu_known_long *slots = bpf_map_lookup_elem(&known_long, &ref);
    __u32 count = stack->count;
    __u64 sp = place->sp;
    if (!slots)
        return 0;
    for (__u32 i = 0; i < OFFCPU_KNOWN_SLOTS_LONG; i++) {
        __u64 word = 0;
        if (i >= count)
            break;
        if (bpf_probe_read_user(&word, sizeof(word), (const void *)(sp + slots->offsets[i])) != 0 ||
            word != slots->values[i])
            return 0;
    }
    return (int)count;
}

__attribute__((noinline)) int known_is(const struct offcpu_known *stack, struct known_place *place)
{
    __u32 zero = 0;
    if (!stack || !place)
        return 0;
    struct known_head *head = bpf_map_lookup_elem(&known_heads, &zero);
    __u64 sp = place->sp;
    __u32 flags = stack->flags, count = stack->count, head_count = stack->head_count;
    __u32 bytes = stack->head_bytes;
    if (!head || ((flags & OFFCPU_KNOWN_FP) && stack->fp != place->fp) ||
        ((flags & OFFCPU_KNOWN_LR) && stack->lr != place->lr))
        return 0;
    if (flags & OFFCPU_KNOWN_LONG)
        return known_long_is(stack, place);
    if (bytes > OFFCPU_HEAD_BYTES_MAX)
        return 0;
    __u64 me = bpf_get_current_pid_tgid();
    if (bytes > place->head_bytes) {
        head->owner = me;
        if (bpf_probe_read_user(head->words, bytes, (const void *)sp) != 0)
            return 0;
        place->head_bytes = bytes;
    }
    for (__u32 i = 0; i < OFFCPU_KNOWN_SLOTS; i++) {
        if (i >= head_count)
            break;
        if (head->words[stack->offsets[i] / 8 & (OFFCPU_HEAD_BYTES_MAX / 8 - 1)] !=
            stack->values[i])
            return 0;
    }
    if (head_count > 0 && head->owner != me)
        return 0;
    for (__u32 i = 0; i < OFFCPU_KNOWN_SLOTS; i++) {
        __u64 word = 0;
        if (i < head_count)
            continue;
        if (i >= count)
            break;
        if (bpf_probe_read_user(&word, sizeof(word), (const void *)(sp + stack->offsets[i])) != 0 ||
            word != stack->values[i])
            return 0;
    }
    return (int)count + 1; /* the place itself is compared as well */
}
