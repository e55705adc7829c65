/* Part of offcpu.bpf.c: stacks of user space and of the kernel, recognised, copied or walked. */
#pragma once

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

struct copying {
    __u64 ref, now_ns, sp;
    __u32 alike, pid;
};

static __always_inline bool copy_fill(struct offcpu_copy *copy, const struct offcpu_thread *thread,
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
    copy->unused = 0;
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
    static __noinline bool name(const struct offcpu_thread *thread, const struct pt_regs *regs,    \
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

/* The last quarter is for what is small: waits, names, ends of threads. */
static __always_inline bool ring_is_full(void)
{
    return bpf_ringbuf_query(&told, BPF_RB_AVAIL_DATA) > config.ring_bytes / 4 * 3;
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
    __u32 zero = 0;
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct mm_struct *mm = task->mm;
    __u32 pid = task->pid;
    struct offcpu_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    struct offcpu_control *now = control_get();
    struct spare *spare = bpf_map_lookup_elem(&spares, &zero);
    if (!now || !spare || !thread || !mm)
        return 0;
    const struct pt_regs *regs = (const void *)bpf_task_pt_regs((void *)task);
    if (thread->round != now->round) {
        thread->round = now->round;
        thread->copies = 0;
    }
    bool full = ring_is_full();
    if (full || thread->copies >= OFFCPU_COPIES_A_ROUND) {
        count_add(full ? OFFCPU_RING_FULL : OFFCPU_SPARED, 1);
        learn_soon(now_ns);
        return 0;
    }
    thread->copies++;
    struct copying what = {
        .ref = ++spare->refs << CPU_BITS | (bpf_get_smp_processor_id() & ((1 << CPU_BITS) - 1)),
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

/* The ref of the stack that the current thread entered the kernel with; 0: not known. */
static __noinline __u64 stack_of(const struct pt_regs *regs, const struct offcpu_thread *thread,
                                 __u64 now_ns)
{
    struct known_place place = {.sp = regs->sp, .fp = regs_fp(regs), .lr = regs_lr(regs)};
    struct offcpu_known_key key = {
        .pc = regs_pc(regs),
        .sp = place.sp,
        .kernel_tgid = thread->kernel_tgid,
        .exec = thread->exec,
    };
    for (key.alike = 0; key.alike < OFFCPU_KNOWN_ALIKE; key.alike++) {
        const struct offcpu_known *stack = bpf_map_lookup_elem(&known, &key);
        if (!stack)
            break;
        int compared = known_is(stack, &place);
        if (compared > 0) {
            count_add(OFFCPU_RECOGNISED, 1);
            count_add(OFFCPU_VERIFIED, compared);
            return stack->ref;
        }
    }
    return stack_copy(key.alike, now_ns);
}

/* ---- the kernel's ---- */

static __always_inline __u64 address_of(void *pointer)
{
    void *copy = pointer;
    __u64 address = 0;
    bpf_probe_read_kernel(&address, sizeof(address), &copy); /* pointers are no numbers in BPF */
    return address;
}

/* Once or twice for every place: user space has learnt it by then, or cannot. */
static __noinline int kernel_stack_tell(struct offcpu_thread *thread,
                                        const struct offcpu_kernel_place *place,
                                        const struct kernel_moment *moment, __s32 id)
{
    __u64 depth = moment->top - moment->at;
    if (depth > OFFCPU_KERNEL_WORDS * sizeof(__u64) || thread->copies >= OFFCPU_COPIES_A_ROUND ||
        ring_is_full())
        return 0;
    struct offcpu_kernel *record = bpf_ringbuf_reserve(&told, sizeof(*record), 0);
    if (!record) {
        count_add(OFFCPU_RING_FULL, 1);
        return 0;
    }
    thread->copies++;
    record->head.record = OFFCPU_KERNEL;
    record->head.tid = thread->tid;
    record->head.tgid = thread->tgid;
    record->head.exec = thread->exec;
    record->head.time_ns = thread->off_ns;
    record->place = *place;
    record->id = id;
    record->depth = (__u32)depth;
    __u32 bytes = (__u32)depth;
    __asm__ volatile("" : "+r"(bytes)); /* for the verifier: the number that is compared */
    if (bytes > sizeof(record->words) ||
        bpf_probe_read_kernel(record->words, bytes, (const void *)moment->at) != 0)
        record->depth = 0;
    bpf_ringbuf_submit(record, wake_flags(true, thread->off_ns));
    return 1;
}

static __noinline __s32 kernel_stack_of(void *context, struct task_struct *task,
                                        struct offcpu_thread *thread)
{
    struct offcpu_kernel_place place = {
        .syscall = thread->key.syscall,
        .object_kind = thread->key.object_kind,
    };
    struct kernel_moment moment = {0};
    if (config.kernel_recognise) {
        moment.at = address_of(context);
        moment.top = (__u64)BPF_CORE_READ(task, stack) + config.kernel_stack_bytes;
        __s32 known_id = kernel_known_find(&moment, &place);
        if (known_id >= 0) {
            count_add(OFFCPU_KERNEL_RECOGNISED, 1);
            return known_id;
        }
    }
    __s32 id = (__s32)bpf_get_stackid(context, &kernel_stacks, 0);
    if (id < 0) {
        count_add(OFFCPU_KERNEL_FULL, 1);
        return -1;
    }
    if (config.kernel_recognise && place.alike < OFFCPU_KERNEL_ALIKE)
        kernel_stack_tell(thread, &place, &moment, id);
    return id;
}
