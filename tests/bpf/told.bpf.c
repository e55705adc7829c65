// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tells of system calls of one process, for tests of the plumbing. */
#include "kernel.h"

char told_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct {
    __u32 pid;
    __u32 unused;
} config;

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} calls SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

SEC("raw_tp/sys_enter")
int told(const __u64 *arguments)
{
    if (bpf_get_current_pid_tgid() >> 32 != config.pid)
        return 0;
    __u64 number = arguments[1];
    __u32 which = bpf_ringbuf_output(&calls, &number, sizeof(number), BPF_RB_FORCE_WAKEUP) != 0;
    __u64 *count = bpf_map_lookup_elem(&counts, &which);
    if (count)
        *count += 1;
    return 0;
}
