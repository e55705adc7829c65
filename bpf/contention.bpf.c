// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Waits for locks of the kernel itself: from the moment a lock is found taken to the moment it is
 * had, added up by lock, thread and place.
 *
 * The tracepoints fire only where a lock is contended. They fire inside allocators and under the
 * scheduler's locks, so all maps are allocated beforehand. Which threads count is in the map
 * "threads", shared with whoever follows the target. They are raw tracepoints, since their
 * arguments are plain numbers: nothing of the kernel's types has to be read to attach to them. */
#include "begun.h"
#include "kernel.h"

#include "format/contention.h"

char contention_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct contention_config config;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, CONTENTION_THREADS_MAX);
    __type(key, __u32);
    __type(value, __u64);
} threads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, CONTENTION_SLEEPS_MAX);
    __type(key, __u32);
    __type(value, struct contention_wait);
} sleeps SEC(".maps");

struct nested {
    struct contention_wait waits[CONTENTION_NESTED_MAX];
};

/* Whoever spins stays on its CPU; what interrupts it may spin for another lock. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct nested);
} spins SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, CONTENTION_TALLIES_MAX);
    __type(key, struct contention_key);
    __type(value, struct contention_tally);
} tallies SEC(".maps");

/* What does not fit on a program's stack: an empty tally, never written to. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct contention_tally);
} empty SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, CONTENTION_STACKS_MAX);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, CONTENTION_FRAMES * sizeof(__u64));
} stacks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, CONTENTION_COUNTS);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

enum {
    NAMESPACES_MAX = 8,
    /* This program, and the function that calls it. Some kernels have one or two more in between,
     * which whoever names a lock passes over. */
    OWN_FRAMES = 2,
    LOCK_FLAGS = CONTENTION_SPIN | CONTENTION_READ | CONTENTION_WRITE | CONTENTION_RT |
                 CONTENTION_PERCPU | CONTENTION_MUTEX,
};

static __always_inline void count_add(__u32 what, __u64 value)
{
    __u64 *count = bpf_map_lookup_elem(&counts, &what);
    if (count)
        *count += value;
}

/* A thread's id where we are: containers count from one again. */
static __always_inline __u32 tid_here(struct task_struct *task)
{
    if (config.pid_ns == 0)
        return BPF_CORE_READ(task, pid);
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

static __always_inline int syscall_of(struct task_struct *task)
{
    const struct pt_regs *regs = (const void *)bpf_task_pt_regs((void *)task);
#if defined(TARGET_x86_64)
    return (int)regs->orig_ax;
#else
    return regs->syscallno;
#endif
}

static __always_inline __u32 flags_of(struct task_struct *task, __u64 lock, __u32 flags)
{
    struct mm_struct *mm = BPF_CORE_READ(task, mm);
    flags &= LOCK_FLAGS;
    if (mm && bpf_core_field_exists(mm->mmap_lock) &&
        lock == (__u64)mm + bpf_core_field_offset(struct mm_struct, mmap_lock))
        flags |= CONTENTION_MMAP_LOCK;
    return flags;
}

static __always_inline void wait_fill(struct contention_wait *wait, void *context,
                                      struct task_struct *task, __u64 lock, __u32 flags)
{
    long stack = bpf_get_stackid(context, &stacks, OWN_FRAMES);
    if (stack < 0)
        count_add(CONTENTION_STACKS_FULL, 1);
    wait->flags = flags_of(task, lock, flags);
    wait->stack = stack < 0 ? -1 : (__s32)stack;
    wait->syscall = syscall_of(task);
    wait->spin_ns = 0;
    wait->unused = 0;
    wait->start_ns = wait->phase_ns = bpf_ktime_get_ns();
    wait->lock = lock;
}

static __always_inline void spin_begin(void *context, struct task_struct *task, __u64 lock,
                                       __u32 flags)
{
    __u32 zero = 0;
    struct nested *nested = bpf_map_lookup_elem(&spins, &zero);
    for (__u32 i = 0; nested && i < CONTENTION_NESTED_MAX; i++) {
        if (nested->waits[i].lock != 0 && nested->waits[i].lock != lock)
            continue;
        wait_fill(&nested->waits[i], context, task, lock, flags);
        return;
    }
    /* Ends were missed: nobody can spin for that many. */
    if (nested)
        __builtin_memset(nested, 0, sizeof(*nested));
    count_add(CONTENTION_LOST, 1);
}

/* A mutex tries first and sleeps then, perhaps in turns, and tells of each. */
static __always_inline void sleep_begin(void *context, struct task_struct *task, __u64 lock,
                                        __u32 flags)
{
    __u32 tid = task->pid;
    struct contention_wait *known = bpf_map_lookup_elem(&sleeps, &tid);
    if (known && known->lock == lock) {
        __u64 now_ns = bpf_ktime_get_ns();
        if (known->flags & CONTENTION_SPIN)
            known->spin_ns += now_ns - known->phase_ns;
        known->phase_ns = now_ns;
        known->flags = (known->flags & ~CONTENTION_SPIN) | (flags & LOCK_FLAGS);
        return;
    }
    struct contention_wait wait;
    wait_fill(&wait, context, task, lock, flags);
    if (bpf_map_update_elem(&sleeps, &tid, &wait, BPF_ANY) != 0)
        count_add(CONTENTION_LOST, 1);
}

SEC("raw_tp/contention_begin")
int lock_begin(__u64 *context)
{
    __u64 lock = context[0];
    __u32 flags = (__u32)context[1];
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __u32 tid = task->pid;
    if (!bpf_map_lookup_elem(&threads, &tid) || begun_ns() == 0)
        return 0;
    if ((flags & (CONTENTION_SPIN | CONTENTION_MUTEX)) == CONTENTION_SPIN)
        spin_begin(context, task, lock, flags);
    else
        sleep_begin(context, task, lock, flags);
    return 0;
}

static __always_inline struct contention_tally *tally_need(struct task_struct *task,
                                                           const struct contention_key *key)
{
    struct contention_tally *tally = bpf_map_lookup_elem(&tallies, key);
    if (tally)
        return tally;
    __u32 zero = 0;
    const struct contention_tally *none = bpf_map_lookup_elem(&empty, &zero);
    if (!none || bpf_map_update_elem(&tallies, key, none, BPF_NOEXIST) != 0)
        return 0;
    tally = bpf_map_lookup_elem(&tallies, key);
    if (tally) {
        tally->tid = tid_here(task);
        tally->tgid = tid_here(BPF_CORE_READ(task, group_leader));
    }
    return tally;
}

/* By one thread only, since its id is in the key: no need for atomics. */
static __always_inline void wait_add(struct task_struct *task, const struct contention_wait *wait)
{
    __u64 now_ns = bpf_ktime_get_ns(), ns = now_ns - wait->start_ns, spin_ns = wait->spin_ns;
    __u32 flags = wait->flags;
    if (flags & CONTENTION_SPIN)
        spin_ns += now_ns - wait->phase_ns;
    if (spin_ns < ns)
        flags &= ~CONTENTION_SPIN; /* it slept as well */
    struct contention_key key = {
        .lock = wait->lock,
        .kernel_tid = task->pid,
        .stack = wait->stack,
        .flags = flags,
        .syscall = wait->syscall < 0 ? -1 : wait->syscall,
        .exec = (__u16)task->self_exec_id,
    };
    count_add(CONTENTION_WAITS, 1);
    struct contention_tally *tally = tally_need(task, &key);
    if (!tally) {
        count_add(CONTENTION_LOST, 1);
        count_add(CONTENTION_LOST_NS, ns);
        return;
    }
    __u32 bucket = contention_bucket(ns);
    tally->total_ns += ns;
    tally->spin_ns += spin_ns;
    if (ns > tally->max_ns)
        tally->max_ns = ns;
    if (tally->count == 0)
        tally->first_ns = wait->start_ns;
    tally->last_ns = now_ns;
    tally->count++;
    if (bucket < CONTENTION_BUCKETS)
        tally->buckets[bucket]++;
}

SEC("raw_tp/contention_end")
int lock_end(__u64 *context)
{
    __u64 lock = context[0];
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __u32 tid = task->pid, zero = 0;
    if (!bpf_map_lookup_elem(&threads, &tid))
        return 0;
    struct nested *nested = bpf_map_lookup_elem(&spins, &zero);
    for (__u32 i = 0; nested && i < CONTENTION_NESTED_MAX; i++) {
        if (nested->waits[i].lock != lock)
            continue;
        struct contention_wait wait = nested->waits[i];
        nested->waits[i].lock = 0;
        wait_add(task, &wait);
        return 0;
    }
    struct contention_wait *slept = bpf_map_lookup_elem(&sleeps, &tid);
    if (!slept || slept->lock != lock)
        return 0; /* it began before us */
    struct contention_wait wait = *slept;
    bpf_map_delete_elem(&sleeps, &tid);
    wait_add(task, &wait);
    return 0;
}
