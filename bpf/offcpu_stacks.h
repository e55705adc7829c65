/* Part of offcpu.bpf.c: stacks of the kernel, recognised or walked. */
#pragma once

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
