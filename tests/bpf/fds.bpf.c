// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Says what an fd of one process is whenever that process calls getppid(), for tests of
 * bpf/objects.h. */
#include "kernel.h"

#include "objects.h"

char fds_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct {
    __u32 pid;
    __u32 call; /* number of the system call */
} config;

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} told SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, int);
} asked SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct object_id);
} answers SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} full SEC(".maps");

SEC("tp_btf/sys_enter")
int fds(const __u64 *arguments)
{
    if (bpf_get_current_pid_tgid() >> 32 != config.pid || arguments[1] != config.call)
        return 0;
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct object_id id = {0};
    __u32 zero = 0;
    const int *fd = bpf_map_lookup_elem(&asked, &zero);
    if (!fd)
        return 0;
    if (!object_of_fd(task, *fd, &id)) {
        bpf_map_delete_elem(&answers, &zero);
        return 0;
    }
    bpf_map_update_elem(&answers, &zero, &id, BPF_ANY);
    __u64 *count = bpf_map_lookup_elem(&full, &zero);
    if (!object_tell(&told, task, *fd, &id, BPF_RB_FORCE_WAKEUP) && count)
        *count += 1;
    return 0;
}
