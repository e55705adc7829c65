/* Kernel stacks, recognised as user stacks are: by their return addresses.
 *
 * To walk the kernel's stack takes three quarters of a microsecond, more than all else together.
 * A thread that blocks in the same call with the same return addresses in the same places blocks
 * where another did before. Which words are return addresses user space finds out, from a stack
 * that was walked. Not where return addresses are
 * signed (aarch64): there every stack is walked. */
#pragma once

#include "kernel.h"

#include "format/offcpu.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, OFFCPU_KERNEL_KNOWN_MAX);
    __type(key, struct offcpu_kernel_place);
    __type(value, struct offcpu_kernel_known);
} kernel_known SEC(".maps");

struct kernel_words {
    __u64 words[OFFCPU_KERNEL_WORDS];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct kernel_words);
} kernel_heads SEC(".maps");

struct kernel_moment {
    __u64 at;  /* where we are on the thread's kernel stack */
    __u64 top; /* where that begins */
};

__attribute__((noinline)) int kernel_known_is(const struct offcpu_kernel_known *stack,
                                              const struct kernel_moment *moment)
{
    __u32 zero = 0;
    struct kernel_words *now = bpf_map_lookup_elem(&kernel_heads, &zero);
    if (!stack || !now || !moment)
        return 0;
    __u32 count = stack->count, bytes = stack->head_bytes;
    __u64 last = 0;
    if (bytes > sizeof(now->words) || moment->at + bytes > moment->top ||
        bpf_probe_read_kernel(now->words, bytes, (const void *)moment->at) != 0 ||
        bpf_probe_read_kernel(&last, sizeof(last),
                              (const void *)(moment->top - stack->below_top)) != 0 ||
        last != stack->top_value)
        return 0;
    for (__u32 i = 0; i < OFFCPU_KERNEL_SLOTS; i++) {
        if (i >= count)
            break;
        if (now->words[stack->indexes[i] & (OFFCPU_KERNEL_WORDS - 1)] != stack->values[i])
            return 0;
    }
    return 1;
}

/* An id, -1: not known; then place->alike is where it would be learnt. */
static __always_inline __s32 kernel_known_find(const struct kernel_moment *moment,
                                               struct offcpu_kernel_place *place)
{
    for (; place->alike < OFFCPU_KERNEL_ALIKE; place->alike++) {
        const struct offcpu_kernel_known *stack = bpf_map_lookup_elem(&kernel_known, place);
        if (!stack)
            return -1;
        if (kernel_known_is(stack, moment))
            return stack->id;
    }
    return -1;
}
