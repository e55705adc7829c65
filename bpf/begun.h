/* From when on the recording counts: said by user space once everything is loaded, which takes
 * seconds, so that all that is counted has one beginning. Before that programs only learn who is
 * there. */
#pragma once

#include "kernel.h"

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} begun SEC(".maps");

/* 0: not yet. */
static __always_inline __u64 begun_ns(void)
{
    __u32 zero = 0;
    const __u64 *at = bpf_map_lookup_elem(&begun, &zero);
    return at ? *at : 0;
}
