/* Whose doings are recorded, and what threads are called where we run. Whoever includes this has
 * `config` before it, with scope, root, own, pid_ns, cgroup_id and cgroup_level as in struct
 * offcpu_config. */
#pragma once

#include "kernel.h"

#include "format/offcpu.h"

enum {
    NAMESPACES_MAX = 8,
    TASK_EXITING = 4, /* task_struct.flags */
};

/* A thread's id where we are: containers count from one again. 0: it is not to be seen there. */
static __noinline __u32 tid_here(struct task_struct *task)
{
    if (config.pid_ns == 0)
        return task->pid;
    struct pid *pid = BPF_CORE_READ(task, thread_pid);
    unsigned int level = BPF_CORE_READ(pid, level);
    const char *numbers = (const char *)pid + bpf_core_field_offset(struct pid, numbers);
    for (unsigned int i = 0; i < NAMESPACES_MAX && i <= level; i++) {
        const struct upid *upid = (const void *)(numbers + i * bpf_core_type_size(struct upid));
        if (BPF_CORE_READ(upid, ns, ns.inum) == config.pid_ns)
            return BPF_CORE_READ(upid, nr);
    }
    return 0;
}

static __always_inline bool is_wanted(struct task_struct *task, bool current)
{
    if (task->flags & TASK_EXITING)
        return false; /* it has been taken leave of */
    if (config.scope == OFFCPU_TREE)
        return config.pid_ns == 0 ? (__u32)task->tgid == config.root
                                  : tid_here(task->group_leader) == config.root;
    if (config.scope == OFFCPU_CGROUP)
        return current &&
               bpf_get_current_ancestor_cgroup_id((int)config.cgroup_level) == config.cgroup_id;
    return task->mm != 0;
}
