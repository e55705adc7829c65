/* What programs on functions of libraries share: arguments and results, and whose they are.
 *
 * Such a program runs in every process that has the library: those that are not recorded must pay
 * for no more than one lookup. Whoever includes this has `config` with ring_bytes before it; its
 * maps "told" and "threads" are those of io.bpf.c. */
#pragma once

#include "kernel.h"

#include "format/io.h"

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} told SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, IO_THREADS_MAX);
    __type(key, __u32);
    __type(value, struct io_thread);
} threads SEC(".maps");

/* NULL: it is not recorded. */
static __always_inline const struct io_thread *uprobe_thread(void)
{
    __u32 pid = (__u32)bpf_get_current_pid_tgid();
    return bpf_map_lookup_elem(&threads, &pid);
}

static __always_inline __u64 uprobe_wake(void)
{
    return bpf_ringbuf_query(&told, BPF_RB_AVAIL_DATA) > config.ring_bytes / 2 ? BPF_RB_FORCE_WAKEUP
                                                                               : BPF_RB_NO_WAKEUP;
}

static __always_inline void uprobe_begin(struct offcpu_head *head, const struct io_thread *thread,
                                         __u32 record, __u64 now_ns)
{
    head->record = record;
    head->tid = thread->tid;
    head->tgid = thread->tgid;
    head->exec = thread->exec;
    head->time_ns = now_ns;
}

/* Counted from 1, as functions have them. */
static __always_inline __u64 uprobe_argument(const struct pt_regs *regs, __u32 which)
{
#if defined(TARGET_x86_64)
    switch (which) {
    case 1:
        return regs->di;
    case 2:
        return regs->si;
    case 3:
        return regs->dx;
    case 4:
        return regs->cx;
    default:
        return regs->r8;
    }
#else
    switch (which) {
    case 1:
        return regs->regs[0];
    case 2:
        return regs->regs[1];
    case 3:
        return regs->regs[2];
    case 4:
        return regs->regs[3];
    default:
        return regs->regs[4];
    }
#endif
}

static __always_inline __u64 uprobe_result(const struct pt_regs *regs)
{
#if defined(TARGET_x86_64)
    return regs->ax;
#else
    return regs->regs[0];
#endif
}
