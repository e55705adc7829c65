// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where threads wait: every switch off the CPU and back, and who ended it.
 *
 * A thread's state is in one map; when it is on a CPU again, the wait is over and added up with
 * those that are alike. Two maps of sums take turns, so that user space can empty one in peace.
 * Only waits that are long, and stacks that were not recognised (known.h), go through the ring. */
#include "kernel.h"

#include "format/offcpu.h"

char offcpu_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct offcpu_config config;

#define OBJECTS_PID_NS config.pid_ns
#include "futex.h"
#include "kernel_known.h"
#include "known.h"
#include "objects.h"

#include "asked.h"
#include "begun.h"
#include "registers.h"

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
    __uint(max_entries, OFFCPU_THREADS_MAX);
    __type(key, __u32);
    __type(value, struct offcpu_thread);
} threads SEC(".maps");

/* How many pages of a thread's stack are worth a copy; told by user space. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, OFFCPU_THREADS_MAX);
    __type(key, __u32);
    __type(value, __u8);
} deep SEC(".maps");

struct tallies {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, OFFCPU_TALLIES_MAX);
    __type(key, struct offcpu_key);
    __type(value, struct offcpu_tally);
} tallies_0 SEC(".maps"), tallies_1 SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, OFFCPU_KERNEL_STACKS_MAX);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, OFFCPU_KERNEL_FRAMES * sizeof(__u64));
} kernel_stacks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, OFFCPU_COUNTS);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

struct spare {  /* what does not fit on a program's stack */
    __u64 refs; /* given out on this CPU */
    __u64 runs;
    struct offcpu_tally none;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct spare);
} spares SEC(".maps");

enum {
    STATE_UNINTERRUPTIBLE = 2,
    STATE_DEAD = 0x80,
    STATE_WAKING = 0x200,
    /* enum wait_flag, enum wait_kind, enum wait_futex and enum object_kind of the model */
    FLAG_UNINTERRUPTIBLE = 1 << 0,
    FLAG_IO = 1 << 1,
    FLAG_FAULT = 1 << 2,
    FLAG_BY_INTERRUPT = 1 << 3,
    FLAG_LIMITED = 1 << 4,
    FLAG_ASKED = 1 << 5,
    KIND_BLOCKED = 0,
    KIND_RUNQ = 1,
    KIND_HOLD = 2,
};

static __always_inline void count_add(__u32 what, __u64 value)
{
    __u64 *count = bpf_map_lookup_elem(&counts, &what);
    if (count)
        *count += value;
}

static __always_inline struct offcpu_control *control_get(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&control, &zero);
}

static __always_inline __u32 state_of(struct task_struct *task)
{
    if (bpf_core_field_exists(task->__state))
        return task->__state;
    return (__u32)task->state;
}

#define told_thread offcpu_thread

static __always_inline __u64 ref_next(void)
{
    __u32 zero = 0;
    struct spare *spare = bpf_map_lookup_elem(&spares, &zero);
    return spare ? ++spare->refs : 0;
}

static __always_inline bool copy_allowed(const struct offcpu_thread *thread, __u64 place)
{
    (void)place;
    return thread->copies < OFFCPU_COPIES_A_ROUND;
}

#include "told.h"
#include "whose.h"

#include "offcpu_sums.h"
#include "user_stacks.h"

#include "offcpu_stacks.h"

/* ---- threads ---- */

static __noinline struct offcpu_thread *thread_new(struct task_struct *task, __u64 now_ns, bool on)
{
    __u32 pid = task->pid;
    struct offcpu_thread thread = {
        .since_ns = now_ns,
        .on_ns = on ? now_ns : 0,
        .off_ns = on ? 0 : now_ns,
        .kernel_ran_ns = task->se.sum_exec_runtime,
        .tid = tid_here(task),
        .tgid = tid_here(task->group_leader),
        .kernel_tgid = task->tgid,
        .exec = (__u16)task->self_exec_id,
        .flags = on ? 0 : OFFCPU_THREAD_READY,
    };
    if (thread.tid == 0 || thread.tgid == config.own)
        return 0;
    if (bpf_map_update_elem(&threads, &pid, &thread, BPF_ANY) != 0) {
        count_add(OFFCPU_THREADS_FULL, 1);
        return 0;
    }
    return bpf_map_lookup_elem(&threads, &pid);
}

static __always_inline void object_put(struct offcpu_key *key, __u16 kind, __u64 object)
{
    key->object_kind = kind;
    key->object = object;
}

static __always_inline void fd_look(struct task_struct *task, int fd, struct offcpu_key *key)
{
    struct object_id id = {0};
    if (!object_of_fd(task, fd, &id))
        return;
    key->object = id.ino;
    key->object_device = id.dev;
    key->object_kind = id.kind;
    key->object_flags = id.flags;
    if (!object_tell(&told, task, fd, &id, BPF_RB_NO_WAKEUP))
        count_add(OFFCPU_RING_FULL, 1);
}

/* What a thread has been off the CPU in all, up to now. */
static __always_inline __u64 off_until(const struct offcpu_thread *thread, __u64 now_ns)
{
    __u64 off_ns = thread->off_ns;
    return thread->off_total_ns + (off_ns != 0 && off_ns < now_ns ? now_ns - off_ns : 0);
}

/* Threads of one process only, and ids as the first namespace counts them: what a lock says of
 * its owner is in the words of the process. */
static __always_inline struct offcpu_thread *owner_get(const struct offcpu_thread *thread,
                                                       __u32 owner)
{
    struct offcpu_thread *found = owner ? bpf_map_lookup_elem(&threads, &owner) : 0;
    return found && found->kernel_tgid == thread->kernel_tgid ? found : 0;
}

/* Once: the process may be gone when its waits are added up. */
static __always_inline void futex_tell(const struct offcpu_thread *thread, __u64 address,
                                       __u64 now_ns)
{
    struct object_id id = {.ino = address, .dev = thread->kernel_tgid, .kind = OBJECT_ID_FUTEX};
    __u8 seen = 1;
    id.flags = (__u16)thread->exec;
    if (bpf_map_lookup_elem(&objects_seen, &id))
        return;
    struct offcpu_futex *record = bpf_ringbuf_reserve(&told, sizeof(*record), 0);
    if (!record) {
        count_add(OFFCPU_RING_FULL, 1);
        return;
    }
    bpf_map_update_elem(&objects_seen, &id, &seen, BPF_ANY);
    record->head.record = OFFCPU_FUTEX;
    record->head.tid = thread->tid;
    record->head.tgid = thread->tgid;
    record->head.exec = thread->exec;
    record->head.time_ns = now_ns;
    record->address = address;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static __always_inline void futex_look(const struct pt_regs *regs, struct offcpu_thread *thread,
                                       __u64 now_ns)
{
    struct offcpu_key *key = &thread->key;
    __u64 address = regs_argument(regs, 1);
    key->detail = futex_detail(regs);
    object_put(key, OBJECT_ID_FUTEX, address);
    futex_tell(thread, address, now_ns);
    if (!config.locks || config.pid_ns != 0)
        return;
    __u32 owner = futex_owner(address, key->detail);
    const struct offcpu_thread *found = owner_get(thread, owner);
    if (!found)
        return;
    thread->owner = owner;
    thread->owner_off_ns = off_until(found, now_ns);
}

/* What the call is, on what, and whether it ends by itself. */
static __always_inline void call_look(struct task_struct *task, const struct pt_regs *regs,
                                      struct offcpu_thread *thread, __u64 now_ns)
{
    struct offcpu_key *key = &thread->key;
    __s32 number = regs_call(task, regs);
    key->syscall = number;
    if (number == NO_CALL)
        key->flags |= FLAG_FAULT;
    struct offcpu_call call = {0};
    if (number >= 0 && number < OFFCPU_CALLS_MAX)
        call = config.calls[number & (OFFCPU_CALLS_MAX - 1)];
    if (!config.waits && !(call.kind & OFFCPU_CALL_FUTEX)) {
        thread->flags |= OFFCPU_THREAD_LEFT_OUT;
        return;
    }
    if (call.limit_kind == OFFCPU_LIMIT_ALWAYS)
        key->flags |= FLAG_LIMITED;
    if (call.limit > 0) {
        __u64 limit = regs_argument(regs, call.limit);
        if (call.limit_kind == OFFCPU_LIMIT_MS ? (__s32)limit >= 0 : limit != 0)
            key->flags |= FLAG_LIMITED;
    }
    if (call.fd > 0)
        fd_look(task, (int)regs_argument(regs, call.fd), key);
    if ((call.kind & OFFCPU_CALL_ASKS) && is_asking(thread->kernel_tgid, now_ns))
        key->flags |= FLAG_ASKED;
    if (call.kind & OFFCPU_CALL_FUTEX)
        futex_look(regs, thread, now_ns);
    if (call.kind & (OFFCPU_CALL_WAIT4 | OFFCPU_CALL_WAITID)) {
        __s32 child = (__s32)regs_argument(regs, call.kind & OFFCPU_CALL_WAIT4 ? 1 : 2);
        object_put(key, OBJECT_ID_PROCESS, child > 0 ? (__u32)child : 0);
    }
}

/* A wait for a lock is over: how long its owner was off the CPU meanwhile, and from when on this
 * thread may hold it. */
static __always_inline void lock_got(struct offcpu_thread *thread, struct wait *wait, __u64 now_ns)
{
    __u32 owner = thread->owner;
    if (thread->key.object_kind != OBJECT_ID_FUTEX)
        return;
    if (thread->key.detail == DETAIL_VALUE_2 || thread->key.detail == DETAIL_PI) {
        thread->lock = thread->key.object;
        thread->lock_ns = now_ns;
        thread->lock_off_ns = thread->off_total_ns;
    }
    const struct offcpu_thread *found = owner_get(thread, owner);
    if (!found)
        return;
    __u64 off_ns = off_until(found, wait->start_ns + wait->ns) - thread->owner_off_ns;
    wait->owned_ns = wait->ns;
    wait->owner_off_ns = off_ns < wait->ns ? off_ns : wait->ns;
}

static __always_inline void key_of(struct offcpu_key *key, const struct offcpu_thread *thread,
                                   __u8 kind)
{
    key->tid = thread->tid;
    key->tgid = thread->tgid;
    key->exec = (__u16)thread->exec;
    key->kind = kind;
    key->kernel_stack = -1;
    key->syscall = NO_CALL;
}

/* Time on the CPU up to now, as far as it is recorded. */
static __always_inline void ran_add(struct offcpu_thread *thread, __u64 now_ns)
{
    __u64 from_ns = begun_ns(), on_ns = thread->on_ns;
    if (from_ns == 0 || on_ns == 0)
        return;
    if (on_ns < from_ns)
        on_ns = from_ns;
    if (now_ns > on_ns)
        thread->running_ns += now_ns - on_ns;
}

/* A thread is on a CPU again. Not static: such functions are verified once, not once a caller.
 * 0: it is not among those we know. */
__attribute__((noinline)) int came_back(__u32 pid, __u32 exec, __u64 now_ns)
{
    struct offcpu_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (!thread)
        return 0;
    __u64 off_ns = thread->off_ns, wake_ns = thread->wake_ns, from_ns = begun_ns();
    __u32 flags = thread->flags;
    bool ready = flags & OFFCPU_THREAD_READY;
    thread->off_ns = 0;
    thread->wake_ns = 0;
    thread->on_ns = now_ns;
    if (flags & OFFCPU_THREAD_FILLED) {
        thread->exec = (__u16)exec;
        thread->key.exec = (__u16)thread->exec;
    }
    if (off_ns == 0 || (flags & OFFCPU_THREAD_EXITED))
        return 1;
    thread->off_total_ns += now_ns - off_ns;
    if (flags & OFFCPU_THREAD_LEFT_OUT || from_ns == 0 || now_ns <= from_ns)
        return 1;
    if (off_ns < from_ns)
        off_ns = from_ns; /* what went before is not of the recording */
    if (ready || wake_ns == 0)
        wake_ns = ready ? off_ns : now_ns;
    if (wake_ns < off_ns)
        wake_ns = off_ns;
    bool is_long = now_ns - off_ns >= config.long_ns;
    struct wait wait = {.start_ns = off_ns, .end_ns = now_ns, .ns = wake_ns - off_ns};
    if (!ready) {
        wait.key = thread->key;
        if (thread->by_interrupt)
            wait.key.flags |= FLAG_BY_INTERRUPT;
        count_add(OFFCPU_WAITS, 1);
        if (config.locks)
            lock_got(thread, &wait, now_ns);
        if (is_long && event_tell(&wait, wake_ns))
            return 1; /* it says how long the thread was ready as well */
        wait.end_ns = wake_ns;
        wait_add(&wait);
        is_long = false;
    }
    if (!config.waits)
        return 1;
    struct wait runq = {.start_ns = wake_ns, .end_ns = now_ns, .ns = now_ns - wake_ns};
    key_of(&runq.key, thread, KIND_RUNQ);
    if (!is_long || !event_tell(&runq, wake_ns))
        wait_add(&runq);
    return 1;
}

/* A thread that is on a CPU, as far as its entry goes off it, came back unseen: kernels were met
 * that do not tell of a switch away from some tasks. Their books say how long it has run since. */
static __always_inline void unseen_return(struct task_struct *task, struct offcpu_thread *thread,
                                          __u64 now_ns)
{
    __u64 ran_ns = task->se.sum_exec_runtime - thread->kernel_ran_ns;
    if (thread->on_ns != 0 || thread->off_ns == 0)
        return;
    __u64 off_ns = now_ns - thread->off_ns;
    if (thread->flags & OFFCPU_THREAD_FILLED)
        ran_ns = 0;
    came_back(task->pid, (__u32)task->self_exec_id, now_ns - (ran_ns < off_ns ? ran_ns : off_ns));
    count_add(OFFCPU_UNSEEN, 1);
}

static __noinline int switch_out(void *context, struct task_struct *prev, bool preempted,
                                 __u64 now_ns)
{
    __u32 pid = prev->pid;
    struct offcpu_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (!thread) {
        if (!is_wanted(prev, true))
            return 0;
        thread = thread_new(prev, now_ns, true);
        if (!thread)
            return 0;
    }
    unseen_return(prev, thread, now_ns);
    ran_add(thread, now_ns);
    thread->on_ns = 0;
    thread->off_ns = now_ns;
    thread->kernel_ran_ns = prev->se.sum_exec_runtime;
    __u32 state = state_of(prev);
    if (thread->flags & OFFCPU_THREAD_EXITED) {
        if (state & STATE_DEAD)
            bpf_map_delete_elem(&threads, &pid);
        return 0;
    }
    thread->flags = 0;
    if (preempted || state == 0) {
        thread->flags = OFFCPU_THREAD_READY;
        return 0;
    }
    struct offcpu_key *key = &thread->key;
    if (state != STATE_WAKING) { /* else somebody was quicker than our leaving */
        thread->wake_ns = 0;
        key->waker_tid = 0;
        key->waker_tgid = 0;
        key->waker_stack = 0;
        key->waker_exec = 0;
        thread->by_interrupt = 0;
    }
    thread->owner = 0;
    key->flags = 0;
    key->tid = thread->tid;
    key->tgid = thread->tgid;
    key->exec = (__u16)thread->exec;
    key->kind = KIND_BLOCKED;
    key->detail = 0;
    key->object = 0;
    key->object_device = 0;
    key->object_kind = 0;
    key->object_flags = 0;
    key->syscall = NO_CALL;
    key->stack = 0;
    key->kernel_stack = -1;
    if (state & STATE_UNINTERRUPTIBLE)
        key->flags |= FLAG_UNINTERRUPTIBLE;
    if (BPF_CORE_READ_BITFIELD(prev, in_iowait))
        key->flags |= FLAG_IO;
    struct mm_struct *mm = prev->mm;
    if (mm) {
        const struct pt_regs *regs = (const void *)bpf_task_pt_regs((void *)prev);
        call_look(prev, regs, thread, now_ns);
        if (thread->flags & OFFCPU_THREAD_LEFT_OUT)
            return 0;
        key->stack = stack_of(regs, thread, now_ns);
    }
    key->kernel_stack = kernel_stack_of(context, prev, thread);
    return 0;
}

static __always_inline void switch_in(struct task_struct *next, __u64 now_ns)
{
    if (!came_back(next->pid, (__u32)next->self_exec_id, now_ns) && config.scope == OFFCPU_TREE &&
        is_wanted(next, false))
        thread_new(next, now_ns, true);
}

/* What we cost: now and then a run is timed, and stands for the others. */
static __always_inline void cost_note(__u64 start_ns)
{
    __u32 zero = 0;
    struct spare *spare = bpf_map_lookup_elem(&spares, &zero);
    if (spare && ++spare->runs % OFFCPU_COST_EVERY == 0)
        count_add(OFFCPU_COST_NS, OFFCPU_COST_EVERY * (bpf_ktime_get_ns() - start_ns));
}

SEC("tp_btf/sched_switch")
int offcpu_switch(__u64 *context)
{
    __u64 now_ns = bpf_ktime_get_ns();
    struct task_struct *prev = (void *)context[1], *next = (void *)context[2];
    switch_out(context, prev, context[0] & 1, now_ns);
    switch_in(next, now_ns);
    cost_note(now_ns);
    return 0;
}

/* ---- who ends a wait ---- */

/* Interrupts have a stack of their own. Where the context of this program lies tells on which
 * stack we are; that the kernel counts them, too, is of no use: where the count is, only a kernel
 * with symbols of its data tells. */
static __always_inline bool on_own_stack(void *context, struct task_struct *current)
{
    return address_of(context) - (__u64)BPF_CORE_READ(current, stack) < config.kernel_stack_bytes;
}

/* Of a call by its number; nothing is known of most. */
static __always_inline __u8 call_kind(__s32 number)
{
    return number >= 0 && number < OFFCPU_CALLS_MAX
               ? config.calls[number & (OFFCPU_CALLS_MAX - 1)].kind
               : 0;
}

/* It came back from a wait for this lock, and now wakes somebody who waits for it: in between it
 * held it. */
static __noinline int hold_end(struct offcpu_thread *waker, const struct pt_regs *regs, __u64 stack,
                               __u64 now_ns)
{
    __u64 lock = waker->lock;
    if (lock == 0 || regs_argument(regs, 1) != lock || !futex_releases(regs))
        return 0;
    struct wait hold = {.start_ns = waker->lock_ns, .end_ns = now_ns};
    hold.ns = now_ns - waker->lock_ns;
    hold.owned_ns = hold.ns;
    hold.owner_off_ns = waker->off_total_ns - waker->lock_off_ns;
    key_of(&hold.key, waker, KIND_HOLD);
    hold.key.stack = stack;
    hold.key.syscall = waker->key.syscall;
    object_put(&hold.key, OBJECT_ID_FUTEX, lock);
    hold.key.detail = DETAIL_VALUE_2;
    waker->lock = 0;
    return wait_add(&hold);
}

static __noinline int waker_look(void *context, struct offcpu_thread *thread, __u64 now_ns)
{
    struct task_struct *current = (void *)bpf_get_current_task_btf();
    struct offcpu_key *key = &thread->key;
    __u32 pid = current->pid;
    bool own = on_own_stack(context, current);
    thread->by_interrupt = 0;
    struct mm_struct *mm = current->mm;
    /* Threads of the kernel have them, too, without meaning. */
    const struct pt_regs *regs = (const void *)bpf_task_pt_regs((void *)current);
    __u8 kind = 0;
    bool interrupt = pid == 0 || !own;
    if (mm) {
        __s32 number = regs_call(current, regs);
        kind = call_kind(number);
        /* A packet to this very machine is received by whoever sends it. */
        interrupt = own ? number == NO_CALL
                        : !(kind & OFFCPU_CALL_SENDS) ||
                              !(call_kind(key->syscall) & OFFCPU_CALL_RECEIVES);
    }
    if (interrupt) {
        thread->by_interrupt = 1;
        return 0;
    }
    struct offcpu_thread *waker = bpf_map_lookup_elem(&threads, &pid);
    if (!waker)
        return 0;
    key->waker_tid = waker->tid;
    key->waker_tgid = waker->tgid;
    key->waker_exec = (__u16)waker->exec;
    count_add(OFFCPU_WAKERS, 1);
    if (!mm || (waker->flags & OFFCPU_THREAD_EXITED))
        return 0; /* it ends */
    key->waker_stack = stack_of(regs, waker, now_ns);
    if (config.locks && (kind & OFFCPU_CALL_FUTEX))
        hold_end(waker, regs, key->waker_stack, now_ns);
    return 0;
}

SEC("tp_btf/sched_waking")
int offcpu_waking(__u64 *context)
{
    struct task_struct *task = (void *)context[0];
    __u32 pid = task->pid;
    struct offcpu_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (!thread || thread->wake_ns != 0)
        return 0;
    if (thread->flags & (OFFCPU_THREAD_READY | OFFCPU_THREAD_LEFT_OUT | OFFCPU_THREAD_EXITED) &&
        thread->off_ns != 0)
        return 0;
    __u64 now_ns = bpf_ktime_get_ns();
    waker_look(context, thread, now_ns);
    thread->wake_ns = now_ns;
    cost_note(now_ns);
    return 0;
}

SEC("tp_btf/sock_send_length")
int offcpu_send(__u64 *context)
{
    __u32 pid = (__u32)bpf_get_current_pid_tgid();
    const struct offcpu_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (thread && (__s32)context[1] > 0)
        asked_begin((void *)context[0], thread->kernel_tgid, bpf_ktime_get_ns());
    return 0;
}

/* An end is an answer as well; that nothing is there yet is none. */
SEC("tp_btf/sock_recv_length")
int offcpu_recv(__u64 *context)
{
    if ((__s32)context[1] >= 0)
        asked_end((void *)context[0], bpf_ktime_get_ns());
    return 0;
}

SEC("tp_btf/sched_process_fork")
int offcpu_fork(__u64 *context)
{
    struct task_struct *parent = (void *)context[0], *child = (void *)context[1];
    __u32 pid = parent->pid;
    __u64 now_ns = bpf_ktime_get_ns();
    /* One that has not been switched since we came has no entry yet. */
    if (!bpf_map_lookup_elem(&threads, &pid) &&
        (!is_wanted(parent, true) || !thread_new(parent, now_ns, true)))
        return 0;
    thread_new(child, now_ns, false);
    return 0;
}

/* Its time on the CPU so far, as the program that it is. */
static __always_inline void running_tell(struct task_struct *task, struct offcpu_thread *thread,
                                         __u64 now_ns)
{
    unseen_return(task, thread, now_ns);
    ran_add(thread, now_ns);
    thread->on_ns = now_ns;
    if (begun_ns() == 0)
        return;
    struct wait wait = {.start_ns = now_ns, .end_ns = now_ns, .ns = thread->running_ns};
    key_of(&wait.key, thread, OFFCPU_KIND_RUNNING);
    wait_add(&wait);
}

/* A thread that is not the first one takes over the first one's id. */
SEC("tp_btf/sched_process_exec")
int offcpu_exec(__u64 *context)
{
    struct task_struct *task = (void *)context[0];
    __u32 old = (__u32)context[1], pid = task->pid;
    __u64 now_ns = bpf_ktime_get_ns();
    struct offcpu_thread *thread = bpf_map_lookup_elem(&threads, &old);
    if (!thread && !is_wanted(task, true))
        return 0;
    if (thread)
        running_tell(task, thread, now_ns);
    if (old != pid)
        bpf_map_delete_elem(&threads, &old);
    thread_new(task, now_ns, true);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int offcpu_exit(__u64 *context)
{
    struct task_struct *task = (void *)context[0];
    __u32 pid = task->pid;
    __u64 now_ns = bpf_ktime_get_ns();
    struct offcpu_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (!thread)
        return 0;
    running_tell(task, thread, now_ns);
    struct offcpu_head *head = bpf_ringbuf_reserve(&told, sizeof(*head), 0);
    if (head) {
        head->record = OFFCPU_EXIT;
        head->tid = thread->tid;
        head->tgid = thread->tgid;
        head->exec = thread->exec;
        head->time_ns = now_ns;
        bpf_ringbuf_submit(head, BPF_RB_NO_WAKEUP);
    } else {
        count_add(OFFCPU_RING_FULL, 1);
    }
    /* It stays until its last switch: whoever waits for its end will want to know. */
    thread->flags = OFFCPU_THREAD_EXITED;
    bpf_map_delete_elem(&deep, &pid);
    return 0;
}
