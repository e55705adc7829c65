/* Part of io.bpf.c: page faults on mapped files, which are reads without a call.
 *
 * The kernel tells when pages that are in the cache are mapped around a fault, and when one is
 * looked for by itself; not when a fault is over. A fault that has to wait for its page is begun
 * anew when that has come: the time between is what it waited. Of all others the time is not
 * known. Which sights belong to one fault is told by how many the thread has had: the kernel counts
 * a fault when it is over.
 *
 * Faults inside a system call are part of that. The stack is looked at only where something had
 * to be fetched: of the others there are many, and they are short. */
#pragma once

#include "format/io_faults.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct address_space {
    struct inode *host;
};

struct mm_struct___faults {
    struct file *exe_file;
};

struct task_struct___faults {
    unsigned long min_flt, maj_flt;
};

#pragma clang attribute pop

enum { FLAG_FAULT = 1 << 3 }; /* enum call_flag of the model */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, IO_THREADS_MAX);
    __type(key, __u32);
    __type(value, struct io_fault);
} faults SEC(".maps");

static __always_inline __u64 faults_of(struct task_struct *task)
{
    struct task_struct___faults *own = (void *)task;
    return BPF_CORE_READ(own, min_flt) + BPF_CORE_READ(own, maj_flt);
}

/* The last one of the thread is over. */
__attribute__((noinline)) int fault_end(__u32 pid)
{
    struct io_fault *fault = bpf_map_lookup_elem(&faults, &pid);
    if (!fault || fault->start_ns == 0)
        return 0;
    struct io_key key = fault->key;
    struct io_sum sum = {
        .start_ns = fault->start_ns,
        .end_ns = fault->end_ns,
        .missed_bytes = fault->missed_bytes,
        .flags = (fault->timed ? 0 : SUM_NO_TIME) | (fault->missed_bytes ? SUM_MISSED : 0),
    };
    fault->start_ns = 0;
    return io_add(&key, &sum);
}

/* The program itself is mapped by exec, not by a call with an fd: it is told here. Others are
 * told when they are opened, or named by user space. `inode` is that of the file that the current
 * thread has just faulted on. */
__attribute__((noinline)) int fault_tell(__u64 inode)
{
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __u32 pid = task->pid;
    __u8 seen = 1;
    const struct io_fault *fault = bpf_map_lookup_elem(&faults, &pid);
    if (!fault || fault->start_ns == 0)
        return 0;
    struct object_id id = fault->key.object;
    if (bpf_map_lookup_elem(&objects_seen, &id))
        return 0;
    struct mm_struct___faults *mm = (void *)task->mm;
    struct file *file = BPF_CORE_READ(mm, exe_file);
    if (!file || (__u64)BPF_CORE_READ(file, f_inode) != inode)
        return 0;
    struct object_record *record = bpf_ringbuf_reserve(&told, sizeof(*record), 0);
    if (!record) {
        count_add(OFFCPU_RING_FULL, 1);
        return 0;
    }
    bpf_map_update_elem(&objects_seen, &id, &seen, BPF_ANY);
    record->type = OBJECT_RECORD_TYPE;
    record->tgid = (__u32)task->tgid;
    record->fd = -1;
    record->id = id;
    object_describe(record, (__u64)file);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 1;
}

/* `thread` has just faulted for the first time, or anew. */
static __noinline int fault_begin(const struct io_thread *thread, __u32 pid, __u64 number,
                                  __u64 mapping)
{
    struct inode *inode = BPF_CORE_READ((struct address_space *)mapping, host);
    __u16 type = BPF_CORE_READ(inode, i_mode) & OBJECT_MODE_TYPE;
    struct io_fault fault = {
        .key.tid = thread->tid,
        .key.tgid = thread->tgid,
        .key.exec = (__u16)thread->exec,
        .key.call = -1,
        .key.flags = FLAG_FAULT,
        .number = number,
    };
    struct object_id id = {.ino = BPF_CORE_READ(inode, i_ino)};
    if (!inode || (type != OBJECT_MODE_FILE && type != OBJECT_MODE_BLOCK))
        return 0;
    object_of_inode(0, inode, type, &id);
    fault.key.object = id;
    fault.start_ns = fault.end_ns = bpf_ktime_get_ns();
    bpf_map_update_elem(&faults, &pid, &fault, BPF_ANY);
    return 1;
}

/* `looked_up`: a page was looked for by itself; else those around were mapped. */
static __always_inline int fault_sight(__u64 mapping, bool looked_up)
{
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct io_thread *thread = thread_get(task);
    if (!thread || thread->start_ns != 0 || begun_ns() == 0)
        return 0;
    __u32 pid = task->pid;
    __u64 number = faults_of(task);
    struct io_fault *fault = bpf_map_lookup_elem(&faults, &pid);
    if (fault && fault->start_ns != 0 && fault->number == number) {
        if (fault->looked_up) {
            fault->end_ns = bpf_ktime_get_ns();
            fault->timed = 1;
        }
        fault->looked_up |= looked_up;
        return 0;
    }
    fault_end(pid);
    fault_begin(thread, pid, number, mapping);
    fault = bpf_map_lookup_elem(&faults, &pid);
    if (fault)
        fault->looked_up = looked_up;
    return 0;
}

/* What the thread has just fetched into the page cache, outside of any call. */
static __noinline int fault_missed(const struct io_thread *thread, __u64 bytes)
{
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __u32 pid = task->pid;
    struct io_fault *fault = bpf_map_lookup_elem(&faults, &pid);
    if (!fault || fault->start_ns == 0 || fault->number != faults_of(task))
        return 0;
    fault->missed_bytes += bytes;
    if (config.stacks && fault->key.stack == 0)
        fault->key.stack = stack_of((const void *)bpf_task_pt_regs((void *)task), thread,
                                    bpf_ktime_get_ns());
    return 0;
}

/* Both since Linux 6.11. */
SEC("tp_btf/mm_filemap_fault")
int io_fault(__u64 *context)
{
    return fault_sight(context[0], true);
}

SEC("tp_btf/mm_filemap_map_pages")
int io_fault_around(__u64 *context)
{
    fault_sight(context[0], false);
    /* Here only, as a program that tells takes long to load: when a page had to be fetched, those
     * around are mapped as soon as it has come. */
    return fault_tell((__u64)BPF_CORE_READ((struct address_space *)context[0], host));
}
