/* Stacks of user space: recognised (known.h), or copied for user space to walk.
 *
 * Whoever includes this has before it the maps `deep` and `told`, control_get(), count_add(), and
 *
 *     struct told_thread   a thread's state in the map `threads`, by kernel id: tid, tgid, exec,
 *                          kernel_tgid; round and copies are ours
 *     ref_next()           counts from 1 on every CPU
 *     STACKS_BY_CALLER     defined: all stacks are of functions that begin; told apart by callers
 *     copy_allowed()       whether this thread's stack is copied, at a place that a number stands
 *                          for; thread->copies are those of this round */
#pragma once

#include "known.h"
#include "registers.h"
#include "told.h"

enum {
    CPU_BITS = 12, /* lowest bits of a ref */
    FIRST_STACK_BYTES_MAX = 128 << 20,
    ABOVE_BYTES = 256, /* _start looks at what lies above where the stack begins */
};

static __always_inline __u32 pages_read(__u8 *bytes, __u64 sp, __u32 pages)
{
    __u32 len = 0;
    for (__u32 i = 0; i < OFFCPU_COPY_PAGES_DEEP; i++) {
        if (i >= pages)
            break;
        __u64 at = sp + i * OFFCPU_PAGE_BYTES;
        if (bpf_probe_read_user(bytes + i * OFFCPU_PAGE_BYTES, OFFCPU_PAGE_BYTES,
                                (const void *)at) != 0) {
            /* Up to the end of the page, behind which there is nothing. */
            __u32 rest = OFFCPU_PAGE_BYTES - (at & (OFFCPU_PAGE_BYTES - 1));
            if (rest < OFFCPU_PAGE_BYTES &&
                bpf_probe_read_user(bytes + i * OFFCPU_PAGE_BYTES, rest, (const void *)at) == 0)
                len += rest;
            break;
        }
        len += OFFCPU_PAGE_BYTES;
    }
    return len;
}

/* Lowest bits; 0: not part of the place. */
static __always_inline __u32 place_caller(const struct pt_regs *regs)
{
#if !defined(STACKS_BY_CALLER)
    (void)regs;
    return 0;
#elif defined(TARGET_x86_64)
    __u32 caller = 0;
    bpf_probe_read_user(&caller, sizeof(caller), (const void *)regs->sp);
    return caller;
#else
    return (__u32)regs_lr(regs);
#endif
}

struct copying {
    __u64 ref, now_ns, sp;
    __u32 alike, pid;
};

static __always_inline bool copy_fill(struct offcpu_copy *copy, const struct told_thread *thread,
                                      const struct pt_regs *regs, const struct copying *what,
                                      __u32 pages)
{
    copy->head.record = OFFCPU_COPY;
    copy->head.tid = thread->tid;
    copy->head.tgid = thread->tgid;
    copy->head.exec = thread->exec;
    copy->head.time_ns = what->now_ns;
    copy->ref = what->ref;
    copy->kernel_tgid = thread->kernel_tgid;
    copy->alike = what->alike;
    copy->known = REGISTERS_KNOWN;
    copy->kernel_tid = what->pid;
    copy->caller = place_caller(regs);
    copy->address = what->sp;
    copy->pc = regs_pc(regs);
    regs_copy(regs, copy->registers);
    copy->len = pages_read(copy->bytes, what->sp, pages);
    return copy->len > 0;
}

static __always_inline void copy_end(struct offcpu_copy *copy, bool good, __u64 now_ns)
{
    if (good)
        bpf_ringbuf_submit(copy, wake_flags(true, now_ns));
    else
        bpf_ringbuf_discard(copy, BPF_RB_NO_WAKEUP);
    if (!good)
        count_add(OFFCPU_UNREADABLE, 1);
}

/* The same in three sizes: what is reserved must be a constant. */
#define COPY_OF(name, pages)                                                                       \
    static __noinline bool name(const struct told_thread *thread, const struct pt_regs *regs,      \
                                const struct copying *what)                                        \
    {                                                                                              \
        struct offcpu_copy *copy = bpf_ringbuf_reserve(                                            \
            &told, sizeof(*copy) + (pages)*OFFCPU_PAGE_BYTES, 0);                                  \
        if (!copy) {                                                                               \
            count_add(OFFCPU_RING_FULL, 1);                                                        \
            return false;                                                                          \
        }                                                                                          \
        bool good = copy_fill(copy, thread, regs, what, pages);                                    \
        copy_end(copy, good, what->now_ns);                                                        \
        return good;                                                                               \
    }
COPY_OF(copy_short, OFFCPU_COPY_PAGES_SHORT)
COPY_OF(copy_usual, OFFCPU_COPY_PAGES)
COPY_OF(copy_deep, OFFCPU_COPY_PAGES_DEEP)

/* How much of the stack there is to copy, as far as it is known. */
static __always_inline __u32 pages_of(struct task_struct *task, struct mm_struct *mm, __u64 sp)
{
    __u64 first = mm->start_stack;
    __u32 pid = task->pid;
    if (sp < first && first - sp < FIRST_STACK_BYTES_MAX) {
        __u64 bytes = first - sp + ABOVE_BYTES;
        return bytes > OFFCPU_COPY_PAGES * OFFCPU_PAGE_BYTES ? OFFCPU_COPY_PAGES_DEEP
               : bytes > OFFCPU_PAGE_BYTES                   ? OFFCPU_COPY_PAGES
                                                             : OFFCPU_COPY_PAGES_SHORT;
    }
    const __u8 *pages = bpf_map_lookup_elem(&deep, &pid);
    return pages ? *pages : OFFCPU_COPY_PAGES;
}

/* Enough was copied, nothing is known yet: user space ought to look. A record that is given up
 * wakes as well as any. */
static __always_inline void learn_soon(__u64 now_ns)
{
    __u64 flags = wake_flags(true, now_ns);
    if (flags != BPF_RB_FORCE_WAKEUP)
        return;
    __u64 *nothing = bpf_ringbuf_reserve(&told, sizeof(*nothing), 0);
    if (nothing)
        bpf_ringbuf_discard(nothing, flags);
}

/* Of the current thread. It finds all it needs itself, so that it need not be verified anew for
 * whoever calls it: that is most of what it takes to load the program. */
__attribute__((noinline)) __u64 stack_copy(__u32 alike, __u64 now_ns)
{
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct mm_struct *mm = task->mm;
    __u32 pid = task->pid;
    struct told_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    struct offcpu_control *now = control_get();
    if (!now || !thread || !mm)
        return 0;
    const struct pt_regs *regs = (const void *)bpf_task_pt_regs((void *)task);
    if (thread->round != now->round) {
        thread->round = now->round;
        thread->copies = 0;
    }
    bool full = ring_is_full();
    if (full || !copy_allowed(thread, regs_pc(regs) ^ regs->sp << 1)) {
        count_add(full ? OFFCPU_RING_FULL : OFFCPU_SPARED, 1);
        learn_soon(now_ns);
        return 0;
    }
    thread->copies++;
    struct copying what = {
        .ref = ref_next() << CPU_BITS | (bpf_get_smp_processor_id() & ((1 << CPU_BITS) - 1)),
        .now_ns = now_ns,
        .sp = regs->sp,
        .alike = alike,
        .pid = pid,
    };
    __u32 pages = pages_of(task, mm, what.sp);
    bool good = pages > OFFCPU_COPY_PAGES         ? copy_deep(thread, regs, &what)
                : pages > OFFCPU_COPY_PAGES_SHORT ? copy_usual(thread, regs, &what)
                                                  : copy_short(thread, regs, &what);
    if (!good)
        return 0;
    count_add(alike > 0 ? OFFCPU_READ_AGAIN : OFFCPU_COPIED, 1);
    return what.ref;
}

struct stack_ask {
    __u64 pc, now_ns;
    struct known_place place;
    __u32 kernel_tgid, exec;
};

__attribute__((noinline)) __u64 stack_find(struct stack_ask *ask)
{
    if (!ask)
        return 0;
    struct offcpu_known_key key = {
        .pc = ask->pc,
        .sp = ask->place.sp,
        .kernel_tgid = ask->kernel_tgid,
        .exec = ask->exec,
    };
    for (key.alike = 0; key.alike < OFFCPU_KNOWN_ALIKE; key.alike++) {
        const struct offcpu_known *stack = bpf_map_lookup_elem(&known, &key);
        if (!stack)
            break;
        int compared = known_is(stack, &ask->place);
        if (compared > 0) {
            count_add(OFFCPU_RECOGNISED, 1);
            count_add(OFFCPU_VERIFIED, compared);
            return stack->ref;
        }
    }
    return stack_copy(key.alike, ask->now_ns);
}

/* The ref of the stack that the current thread entered the kernel with; 0: not known. */
static __always_inline __u64 stack_of(const struct pt_regs *regs, const struct told_thread *thread,
                                      __u64 now_ns)
{
    struct stack_ask ask = {
        .pc = offcpu_place_pc(regs_pc(regs), place_caller(regs)),
        .now_ns = now_ns,
        .place = {.sp = regs->sp, .fp = regs_fp(regs), .lr = regs_lr(regs)},
        .kernel_tgid = thread->kernel_tgid,
        .exec = thread->exec,
    };
    return stack_find(&ask);
}
