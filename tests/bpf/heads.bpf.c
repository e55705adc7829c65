// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls on sockets of one process and its children, for tests of bpf/io_heads.h. */
#include "kernel.h"

#include "format/io.h"
#include "format/io_heads.h"

char heads_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct {
    __u32 pid; /* of the process */
    __u32 close_call;
} config;

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
} told SEC(".maps");

static __always_inline __u64 wake_flags(bool soon, __u64 now_ns)
{
    (void)soon, (void)now_ns;
    return BPF_RB_NO_WAKEUP;
}

#include "io_heads.h"
#include "registers.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, __u32);
    __type(value, struct io_moment);
} moments SEC(".maps");

SEC("tp_btf/sys_enter")
int heads_enter(const __u64 *arguments)
{
    const struct pt_regs *regs = (const void *)arguments[0];
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    if (bpf_get_current_pid_tgid() >> 32 != config.pid)
        return 0;
    __u32 pid = (__u32)task->pid;
    struct io_moment moment = {.start_ns = bpf_ktime_get_ns(), .call = (__s32)arguments[1]};
    struct pt_regs copy;
    bpf_probe_read_kernel(&copy, sizeof(copy), regs);
    for (__u32 i = 0; i < 6; i++)
        moment.args[i] = regs_argument(&copy, i + 1);
    moment.fd = (__s32)moment.args[0];
    moment.file = object_file_of((int)pid, moment.fd);
    if (!moment.file || !object_of_file(moment.file, &moment.object) ||
        moment.object.kind != OBJECT_ID_SOCKET)
        return 0;
    bpf_map_update_elem(&moments, &pid, &moment, BPF_ANY);
    return 0;
}

SEC("tp_btf/sys_exit")
int heads_exit(const __u64 *arguments)
{
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    if (bpf_get_current_pid_tgid() >> 32 != config.pid)
        return 0;
    __u32 pid = (__u32)task->pid;
    struct io_moment *moment = bpf_map_lookup_elem(&moments, &pid);
    if (!moment)
        return 0;
    moment->end_ns = bpf_ktime_get_ns();
    moment->result = (__s64)arguments[1];
    moment->tid = pid;
    moment->tgid = moment->kernel_tgid = (__u32)task->tgid;
    moment->stack = 0;
    /* What it is for may be known only now: connect(). */
    if ((__u32)moment->call != config.close_call)
        object_of_file(moment->file, &moment->object);
    heads_look(moment);
    bpf_map_delete_elem(&moments, &pid);
    return 0;
}
