// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Allocations: one program on malloc() and its relatives where they begin, and on their ways out.
 * Which function it is, or that it is a way out, the place's cookie says.
 *
 * These functions call each other (realloc() calls malloc(), operator new does): a thread is in
 * one of them from where its stack stood when it began to where it returns with the stack there
 * again, and what comes in between is part of it. A function that jumps to another as its last
 * deed is left where that one returns.
 *
 * An allocation is told when it is done and a free before it is done, so that in the ring an
 * address is free before it is given again. */
#include "kernel.h"

#include "format/heap_kernel.h"

char heap_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct heap_kernel_config config;

#define told_thread heap_kernel_thread

enum { PACE_NS = 1000000, PACE_STEPS = 20000 };

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20); /* set before loading */
} told SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct offcpu_control);
} control SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, HEAP_KERNEL_THREADS_MAX);
    __type(key, __u32);
    __type(value, struct heap_kernel_thread);
} threads SEC(".maps");

/* How many pages of a thread's stack are worth a copy; told by user space. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, HEAP_KERNEL_THREADS_MAX);
    __type(key, __u32);
    __type(value, __u8);
} deep SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, HEAP_KERNEL_COUNTS);
    __type(key, __u32);
    __type(value, __u64);
} heap_counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} refs SEC(".maps");

static __always_inline void count_add(__u32 what, __u64 value)
{
    __u64 *count = bpf_map_lookup_elem(&heap_counts, &what);
    if (count) /* another thread may take this one's place in between */
        __sync_fetch_and_add(count, value);
}

static __always_inline struct offcpu_control *control_get(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&control, &zero);
}

static __always_inline __u64 ref_next(void)
{
    __u32 zero = 0;
    __u64 *next = bpf_map_lookup_elem(&refs, &zero);
    return next ? __sync_fetch_and_add(next, 1) + 1 : 0;
}

/* Each allocation needs its stack: none is spared while there is room in the ring. */
static __always_inline bool copy_allowed(const struct heap_kernel_thread *thread, __u64 place)
{
    (void)thread, (void)place;
    return true;
}

/* All stacks here begin with the same few pcs: what tells their places apart is the caller. */
#define STACKS_BY_CALLER 1
#include "begun.h"
#include "user_stacks.h"
#include "whose.h"

/* ---- threads ---- */

static __noinline struct heap_kernel_thread *thread_new(struct task_struct *task)
{
    __u32 pid = task->pid;
    struct heap_kernel_thread thread = {
        .tid = tid_here(task),
        .tgid = tid_here(task->group_leader),
        .kernel_tgid = task->tgid,
        .exec = (__u16)task->self_exec_id,
    };
    if (thread.tid == 0 || thread.tgid == config.own)
        return 0;
    if (bpf_map_update_elem(&threads, &pid, &thread, BPF_ANY) != 0) {
        count_add(OFFCPU_THREADS_FULL, 1);
        return 0;
    }
    return bpf_map_lookup_elem(&threads, &pid);
}

static __always_inline struct heap_kernel_thread *thread_get(void)
{
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __u32 pid = task->pid;
    struct heap_kernel_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (thread || !is_wanted(task, true))
        return thread;
    return thread_new(task);
}

/* ---- telling ---- */

static __always_inline void head_fill(struct offcpu_head *head,
                                      const struct heap_kernel_thread *thread, __u32 record)
{
    head->record = record;
    head->tid = thread->tid;
    head->tgid = thread->tgid;
    head->exec = thread->exec;
    head->time_ns = bpf_ktime_get_ns();
}

static __noinline int freed_tell(const struct heap_kernel_thread *thread, __u64 address,
                                 __u32 record)
{
    struct heap_kernel_freed *freed = bpf_ringbuf_reserve(&told, sizeof(*freed), 0);
    if (!freed) {
        count_add(HEAP_KERNEL_LOST, 1);
        return 0;
    }
    head_fill(&freed->head, thread, record);
    freed->address = address;
    __u64 now_ns = freed->head.time_ns;
    bpf_ringbuf_submit(freed, wake_flags(false, now_ns));
    return 0;
}

static __noinline int allocated_tell(const struct heap_kernel_thread *thread, __u64 address)
{
    struct heap_kernel_allocated *allocated = bpf_ringbuf_reserve(&told, sizeof(*allocated), 0);
    if (!allocated) {
        count_add(HEAP_KERNEL_LOST, 1);
        return 0;
    }
    head_fill(&allocated->head, thread, HEAP_KERNEL_ALLOCATED);
    allocated->address = address;
    allocated->size = thread->size;
    allocated->stack = thread->stack;
    allocated->old = thread->old;
    allocated->place = thread->place;
    allocated->unused = 0;
    __u64 now_ns = allocated->head.time_ns;
    bpf_ringbuf_submit(allocated, wake_flags(false, now_ns));
    count_add(HEAP_KERNEL_CALLS, 1);
    return 0;
}

/* 1: it has waited long enough, or there is room. */
static long pace_step(__u32 step, void *context)
{
    const __u64 *until_ns = context;
    (void)step;
    return bpf_ringbuf_query(&told, BPF_RB_AVAIL_DATA) < config.ring_bytes / 2 ||
           bpf_ktime_get_ns() > *until_ns;
}

/* Nothing is to be lost: where the ring is half full, a thread waits a little for user space, as
 * often as it calls. What it waits is bounded: the program goes on, whatever we do. */
static __noinline int pace(void)
{
    if (bpf_ringbuf_query(&told, BPF_RB_AVAIL_DATA) < config.ring_bytes / 2)
        return 0;
    __u64 now_ns = bpf_ktime_get_ns(), until_ns = now_ns + PACE_NS;
    count_add(HEAP_KERNEL_PACED, 1);
    learn_soon(now_ns);
    bpf_loop(PACE_STEPS, pace_step, &until_ns, 0);
    return 0;
}

/* ---- calls ---- */

/* Of the context, read once: what is left of it to the verifier must not be moved about. */
struct call_regs {
    __u64 sp;
    __u64 first, second, third; /* arguments */
    __u64 result;
};

static __always_inline void regs_take(const struct pt_regs *regs, struct call_regs *ret)
{
    ret->sp = regs->sp;
#if defined(TARGET_x86_64)
    ret->first = regs->di;
    ret->second = regs->si;
    ret->third = regs->dx;
    ret->result = regs->ax;
#else
    ret->first = ret->result = regs->regs[0];
    ret->second = regs->regs[1];
    ret->third = regs->regs[2];
#endif
}

/* Of a function that begins. */
static __always_inline __u64 caller_of(const struct pt_regs *regs, __u64 sp)
{
#if defined(TARGET_x86_64)
    __u64 caller = 0;
    (void)regs;
    bpf_probe_read_user(&caller, sizeof(caller), (const void *)sp);
    return caller;
#else
    (void)sp;
    return regs->regs[30];
#endif
}

static __always_inline __u64 size_of(const struct call_regs *call, __u32 place)
{
    switch (place) {
    case HEAP_KERNEL_CALLOC:
        return call->first * call->second;
    case HEAP_KERNEL_REALLOCARRAY:
        return call->second * call->third;
    case HEAP_KERNEL_REALLOC:
    case HEAP_KERNEL_MEMALIGN:
        return call->second;
    case HEAP_KERNEL_POSIX_MEMALIGN:
        return call->third;
    default:
        return call->first;
    }
}

/* Whether the thread is inside of a call. One that began where the stack stands now, or below, is
 * over: nobody saw it return. What operator new calls takes its place: malloc() does all of its
 * work, and an exception leaves it without a word. */
static __always_inline bool is_nested(struct heap_kernel_thread *thread, __u64 sp, __u64 caller)
{
    if (thread->place == 0 || thread->place == HEAP_KERNEL_NEW)
        return false;
    if (thread->handed_on && sp == thread->sp) {
        thread->handed_on = 0;
        return true;
    }
#if defined(TARGET_x86_64)
    /* Jumped to by one whose return the kernel tells: its address stands there now. */
    if (sp == thread->sp && caller != thread->caller)
        return true;
#endif
    if (sp < thread->sp)
        return true;
    count_add(HEAP_KERNEL_LEFT, 1);
    thread->place = 0;
    return false;
}

static __always_inline void call_begin(const struct call_regs *call,
                                       struct heap_kernel_thread *thread, __u32 place, __u64 caller)
{
    thread->place = place;
    thread->sp = call->sp;
    thread->caller = caller;
    thread->size = size_of(call, place);
    thread->result_at = place == HEAP_KERNEL_POSIX_MEMALIGN ? call->first : 0;
    bool again = place == HEAP_KERNEL_REALLOC || place == HEAP_KERNEL_REALLOCARRAY;
    thread->old = again ? call->first : 0;
    thread->handed_on = 0;
    if (thread->old != 0)
        freed_tell(thread, thread->old, HEAP_KERNEL_GIVEN);
}

static __noinline int call_end(struct heap_kernel_thread *thread, __u64 address)
{
    if (thread->place == HEAP_KERNEL_POSIX_MEMALIGN) {
        bool failed = (__s32)address != 0;
        address = 0;
        if (!failed)
            bpf_probe_read_user(&address, sizeof(address), (const void *)thread->result_at);
    }
    allocated_tell(thread, address);
    thread->place = 0;
    return 0;
}

static __always_inline int call_look(const struct pt_regs *regs, struct heap_kernel_thread *thread,
                                     __u32 place)
{
    struct call_regs call;
    regs_take(regs, &call);
    if (place == HEAP_KERNEL_LEAVES)
        return thread->place != 0 && call.sp == thread->sp ? call_end(thread, call.result) : 0;
    if (place == HEAP_KERNEL_HANDS_ON) {
        if (thread->place != 0 && call.sp == thread->sp)
            thread->handed_on = 1;
        return 0;
    }
    __u64 caller = caller_of(regs, call.sp);
    if (is_nested(thread, call.sp, caller)) {
        count_add(HEAP_KERNEL_NESTED, 1);
        return 0;
    }
    if (place == HEAP_KERNEL_FREE && call.first == 0)
        return 0;
    pace();
    if (place == HEAP_KERNEL_FREE)
        return freed_tell(thread, call.first, HEAP_KERNEL_FREED);
    call_begin(&call, thread, place, caller);
    thread->stack = stack_of(regs, thread, bpf_ktime_get_ns());
    return 0;
}

/* What we cost: now and then a run is timed, and stands for the others. */
static __always_inline __u64 cost_begin(void)
{
    __u32 which = HEAP_KERNEL_RUNS;
    __u64 *runs = bpf_map_lookup_elem(&heap_counts, &which);
    return runs && ++*runs % OFFCPU_COST_EVERY == 0 ? bpf_ktime_get_ns() : 0;
}

static __always_inline void cost_end(__u64 begin_ns)
{
    if (begin_ns != 0)
        count_add(OFFCPU_COST_NS, OFFCPU_COST_EVERY * (bpf_ktime_get_ns() - begin_ns));
}

SEC("uprobe")
int heap_call(struct pt_regs *regs)
{
    struct heap_kernel_thread *thread = thread_get();
    if (!thread || begun_ns() == 0)
        return 0;
    __u64 begin_ns = cost_begin();
    call_look(regs, thread, (__u32)bpf_get_attach_cookie(regs));
    cost_end(begin_ns);
    return 0;
}

/* Where the kernel was asked for the return: the return address is off the stack by now. */
SEC("uretprobe")
int heap_returned(struct pt_regs *regs)
{
    struct heap_kernel_thread *thread = thread_get();
    struct call_regs call;
    regs_take(regs, &call);
#if defined(TARGET_x86_64)
    call.sp -= 8;
#endif
    if (!thread)
        return 0;
    __u64 begin_ns = cost_begin();
    if (thread->place != 0 && call.sp == thread->sp)
        call_end(thread, call.result);
    cost_end(begin_ns);
    return 0;
}

/* ---- beginnings and ends ---- */

SEC("tp_btf/sched_process_fork")
int heap_fork(__u64 *context)
{
    struct task_struct *parent = (void *)context[0], *child = (void *)context[1];
    __u32 pid = parent->pid;
    const struct heap_kernel_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (!thread && is_wanted(parent, true))
        thread = thread_new(parent);
    if (!thread)
        return 0;
    const struct heap_kernel_thread *fresh = thread_new(child);
    if (!fresh || fresh->tgid == thread->tgid)
        return 0;
    struct heap_kernel_forked *forked = bpf_ringbuf_reserve(&told, sizeof(*forked), 0);
    if (!forked) {
        count_add(OFFCPU_RING_FULL, 1);
        return 0;
    }
    head_fill(&forked->head, thread, HEAP_KERNEL_FORKED);
    forked->child = fresh->tgid;
    forked->child_exec = fresh->exec;
    forked->shares = parent->mm == child->mm;
    forked->unused = 0;
    __u64 now_ns = forked->head.time_ns;
    bpf_ringbuf_submit(forked, wake_flags(true, now_ns));
    return 0;
}

static __noinline int head_tell(const struct heap_kernel_thread *thread, __u32 record)
{
    struct offcpu_head *head = bpf_ringbuf_reserve(&told, sizeof(*head), 0);
    if (!head) {
        count_add(OFFCPU_RING_FULL, 1);
        return 0;
    }
    head_fill(head, thread, record);
    __u64 now_ns = head->time_ns;
    bpf_ringbuf_submit(head, wake_flags(record == HEAP_KERNEL_BEGAN, now_ns));
    return 0;
}

/* A thread that is not the first one takes over the first one's id. */
SEC("tp_btf/sched_process_exec")
int heap_exec(__u64 *context)
{
    struct task_struct *task = (void *)context[0];
    __u32 old = (__u32)context[1], pid = task->pid;
    const struct heap_kernel_thread *thread = bpf_map_lookup_elem(&threads, &old);
    if (!thread && !is_wanted(task, true))
        return 0;
    if (old != pid)
        bpf_map_delete_elem(&threads, &old);
    thread = thread_new(task);
    return thread ? head_tell(thread, HEAP_KERNEL_BEGAN) : 0;
}

SEC("tp_btf/sched_process_exit")
int heap_end(__u64 *context)
{
    struct task_struct *task = (void *)context[0];
    __u32 pid = task->pid;
    const struct heap_kernel_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (!thread)
        return 0;
    head_tell(thread, OFFCPU_EXIT);
    bpf_map_delete_elem(&threads, &pid);
    bpf_map_delete_elem(&deep, &pid);
    return 0;
}
