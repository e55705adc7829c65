// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs at every CPU sample, just before perf writes it down. Where the stack is deeper than
 * the slice that perf can copy, the rest is copied here, at the same moment.
 *
 * Shallow stacks are the rule and must cost next to nothing: two reads and a comparison. How
 * deep a stack is, is not searched for: of the first thread the kernel knows where its stack
 * begins; of others user space tells, once it has walked one of their stacks. */
#include "kernel.h"

#include "format/cpu_deep.h"

char cpu_deep_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct cpu_deep_config config;

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20); /* set before loading */
} pieces SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, CPU_DEEP_THREADS_MAX);
    __type(key, __u32);
    __type(value, struct cpu_deep_thread);
} threads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, CPU_DEEP_COUNTS);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

struct last { /* copy on this CPU */
    __u64 end_ns, took_ns;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct last);
} last_copy SEC(".maps");

enum {
    GO_ON = 1, /* 0 would drop the sample */
    NAMESPACES_MAX = 8,
    /* Between the first thread's stack and whatever else is mapped lie at least 128 MiB. */
    FIRST_STACK_BYTES_MAX = 128 << 20,
    /* A copy is followed by a pause of so many times what it took, so that at high rates the
     * program that is measured gets on, and the next samples are not missed. */
    PAUSES = 3,
    PAUSE_NS_MAX = 500000, /* one that was held up must not cost us the next at 999 Hz */
    /* _start looks at what lies above where the stack begins. */
    ABOVE_BYTES = 256,
};

static __always_inline void count_add(__u32 what, __u64 value)
{
    __u64 *count = bpf_map_lookup_elem(&counts, &what);
    if (count)
        *count += value;
}

/* 0: the last one was just before. */
static __always_inline struct last *copy_begin(__u64 now_ns)
{
    __u32 zero = 0;
    struct last *last = bpf_map_lookup_elem(&last_copy, &zero);
    if (!last)
        return 0;
    __u64 pause_ns = PAUSES * last->took_ns;
    return now_ns - last->end_ns < (pause_ns < PAUSE_NS_MAX ? pause_ns : PAUSE_NS_MAX) ? 0 : last;
}

/* The thread's id where we are: containers count from one again. */
static __u32 tid_here(struct task_struct *task)
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

/* Where the stack ends for us; 0: it is not deeper than the slice, or nobody knows. */
static __always_inline __u64 stack_end(struct task_struct *task, struct mm_struct *mm, __u64 sp,
                                       __u32 *ret_tid, bool *ret_search)
{
    __u64 first = mm->start_stack;
    if (sp < first && first - sp < FIRST_STACK_BYTES_MAX) {
        if (first - sp + CPU_DEEP_OVERLAP_BYTES <= CPU_DEEP_PERF_SLICE_MIN)
            return 0;
        *ret_tid = tid_here(task);
        return first + ABOVE_BYTES;
    }
    __u32 tid = tid_here(task);
    const struct cpu_deep_thread *thread = bpf_map_lookup_elem(&threads, &tid);
    if (!thread || thread->top == CPU_DEEP_NEVER)
        return 0;
    *ret_tid = tid;
    *ret_search = thread->top == CPU_DEEP_TRY;
    if (*ret_search)
        return sp + CPU_DEEP_PIECES_MAX * CPU_DEEP_PIECE_BYTES;
    return thread->top > sp ? thread->top : 0;
}

/* Page after page: one that was never touched, or was moved out, must not cost the others. */
static __always_inline __u32 pages_read(struct cpu_deep_piece *piece, __u64 at, __u64 end,
                                        bool search)
{
    __u32 read = 0;
    for (__u32 i = 0; i < CPU_DEEP_PIECE_PAGES; i++) {
        __u64 page = at + i * CPU_DEEP_PAGE_BYTES;
        if (page >= end)
            break;
        long r = bpf_probe_read_user(piece->bytes + i * CPU_DEEP_PAGE_BYTES, CPU_DEEP_PAGE_BYTES,
                                     (const void *)page);
        /* Without a branch: the verifier would follow every combination of pages. */
        read |= (~(__u32)((__u64)r >> 32) & 1) << i;
        if (search && r != 0)
            break; /* the end of what is mapped, as far as we can tell */
    }
    return read;
}

static __always_inline __u64 wake_flags(void)
{
    return bpf_ringbuf_query(&pieces, BPF_RB_AVAIL_DATA) > config.ring_bytes / 2
               ? BPF_RB_FORCE_WAKEUP
               : BPF_RB_NO_WAKEUP;
}

struct moment {
    __u64 time_ns, sp, pc;
    __u32 tid, flags;
    __u64 at, end; /* what is left to copy */
    __u64 search;
};

/* 0 when there is no more to copy. Not static and not inlined, so that the verifier looks at
 * it once instead of sixteen times. */
__attribute__((noinline)) int piece_copy(const struct moment *moment)
{
    if (!moment)
        return 0;
    __u64 at = moment->at, end = moment->end;
    bool search = moment->search;
    struct cpu_deep_piece *piece = bpf_ringbuf_reserve(&pieces, sizeof(*piece), 0);
    if (!piece) {
        count_add(CPU_DEEP_RING_FULL, 1);
        return 0;
    }
    const __u32 all = (1u << CPU_DEEP_PIECE_PAGES) - 1;
    __u32 read = all;
    if (end - at < CPU_DEEP_PIECE_BYTES ||
        bpf_probe_read_user(piece->bytes, CPU_DEEP_PIECE_BYTES, (const void *)at) != 0)
        read = pages_read(piece, at, end, search);
    if (read == 0) {
        bpf_ringbuf_discard(piece, BPF_RB_NO_WAKEUP);
        return !search;
    }
    piece->time_ns = moment->time_ns;
    piece->sp = moment->sp;
    piece->pc = moment->pc;
    piece->address = at;
    piece->tid = moment->tid;
    piece->flags = moment->flags;
    piece->pages = read;
    piece->unused = 0;
    piece->copied_ns = bpf_ktime_get_ns();
    bpf_ringbuf_submit(piece, wake_flags());
    return !search || read == all;
}

SEC("perf_event")
int cpu_deep(struct bpf_perf_event_data_kern *context)
{
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct mm_struct *mm = task->mm;
    if (!mm)
        return GO_ON; /* a thread of the kernel */
    const struct pt_regs *regs = (const void *)bpf_task_pt_regs((void *)task);
    struct moment moment = {.sp = regs->sp};
    bool search = false;
    __u64 end = stack_end(task, mm, moment.sp, &moment.tid, &search);
    if (end == 0)
        return GO_ON;
    __u64 slice = BPF_CORE_READ(context, event, attr.sample_stack_user);
    __u64 at = (moment.sp + slice - CPU_DEEP_OVERLAP_BYTES) & ~(__u64)(CPU_DEEP_PAGE_BYTES - 1);
    if (slice < CPU_DEEP_OVERLAP_BYTES || at >= end)
        return GO_ON;
    if (search)
        end = at + CPU_DEEP_PIECES_MAX * CPU_DEEP_PIECE_BYTES;
    if (end - at > CPU_DEEP_PIECES_MAX * CPU_DEEP_PIECE_BYTES) {
        count_add(CPU_DEEP_TOO_DEEP, 1);
        return GO_ON;
    }
    __u64 start_ns = moment.time_ns = bpf_ktime_get_ns();
    struct last *last = copy_begin(start_ns);
    if (!last) {
        count_add(CPU_DEEP_SPARED, 1);
        return GO_ON;
    }
    moment.pc = regs_pc(regs);
    /* Since Linux 6.2 the sample is prepared before we are called, its time included. */
    struct perf_sample_data *data = BPF_CORE_READ(context, data);
    if (bpf_core_field_exists(data->sample_flags) &&
        (BPF_CORE_READ(data, sample_flags) & PERF_SAMPLE_TIME)) {
        moment.time_ns = BPF_CORE_READ(data, time);
        moment.flags = CPU_DEEP_EXACT;
    }
    moment.at = at;
    moment.end = end;
    moment.search = search;
    for (__u32 i = 0; i < CPU_DEEP_PIECES_MAX; i++) {
        if (moment.at >= end || !piece_copy(&moment))
            break;
        moment.at += CPU_DEEP_PIECE_BYTES;
    }
    count_add(CPU_DEEP_SAMPLES, 1);
    last->end_ns = bpf_ktime_get_ns();
    last->took_ns = last->end_ns - start_ns;
    count_add(CPU_DEEP_NS, last->took_ns);
    return GO_ON;
}
