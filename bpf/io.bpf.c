// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What threads ask of the kernel: every system call of those that are recorded, from its beginning
 * to its end, added up with those that are alike (io_cells.h).
 *
 * What a call is about (io_files.h) is looked for when it begins, since it may be gone afterwards;
 * paths and results when it ends. A call is as long as the kernel was at it: what we need for
 * ourselves comes before its beginning and after its end. */
#include "kernel.h"

#include "format/io.h"

char io_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct io_config config;

#define OBJECTS_PID_NS config.pid_ns
#include "objects.h"

#include "registers.h"

#define told_thread io_thread

enum { MAP_MMAPABLE = 1 << 10 };

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20); /* set before loading, as are those of the next three */
} told SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, MAP_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct io_cell);
} cells SEC(".maps");

/* A bit for each cell that is not free. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, MAP_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} used SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, MAP_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct io_cpu);
} cpus SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, IO_CALLS_MAX + 1);
    __type(key, __u32);
    __type(value, struct io_folded);
} folded_calls SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct offcpu_control);
} control SEC(".maps");

/* Counts calls that may have changed what an fd is: the first of all, then by process and fd. The
 * last: what folders are called. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, IO_EPOCH_NAMES + 1);
    __type(key, __u32);
    __type(value, __u64);
} epochs SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, IO_THREADS_MAX);
    __type(key, __u32);
    __type(value, struct io_thread);
} threads SEC(".maps");

/* How many pages of a thread's stack are worth a copy; told by user space. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, IO_THREADS_MAX);
    __type(key, __u32);
    __type(value, __u8);
} deep SEC(".maps");

static __always_inline struct io_cpu *cpu_get(void)
{
    __u32 cpu = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline void count_add(__u32 what, __u64 value)
{
    struct io_cpu *own = cpu_get();
    if (own && what < IO_COUNTS)
        own->counts[what] += value;
}

static __always_inline struct offcpu_control *control_get(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&control, &zero);
}

static __always_inline __u64 ref_next(void)
{
    struct io_cpu *own = cpu_get();
    return own ? ++own->refs : 0;
}

#include "begun.h"
#include "told.h"
#include "whose.h"

static __always_inline bool copy_allowed(struct io_thread *thread, __u64 place)
{
    return io_copy_allowed(thread, place, ring_is_roomy());
}

#include "io_cells.h"
#include "io_files.h"
#include "user_stacks.h"

#include "io_heads.h"

/* ---- threads ---- */

/* All zero: too large for a program's own stack. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct io_thread);
} blanks SEC(".maps");

static __noinline struct io_thread *thread_new(struct task_struct *task)
{
    __u32 pid = task->pid, zero = 0;
    __u32 tid = tid_here(task), tgid = tid_here(task->group_leader);
    const struct io_thread *blank = bpf_map_lookup_elem(&blanks, &zero);
    if (tid == 0 || tgid == config.own || !blank)
        return 0;
    if (bpf_map_update_elem(&threads, &pid, blank, BPF_ANY) != 0) {
        count_add(OFFCPU_THREADS_FULL, 1);
        return 0;
    }
    struct io_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (!thread)
        return 0;
    thread->since_ns = bpf_ktime_get_ns();
    thread->tid = tid;
    thread->tgid = tgid;
    thread->kernel_tgid = task->tgid;
    thread->exec = (__u16)task->self_exec_id;
    thread->at = IO_NO_FILE;
    return thread;
}

static __always_inline struct io_thread *thread_get(struct task_struct *task)
{
    __u32 pid = task->pid;
    struct io_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (thread || !is_wanted(task, true))
        return thread;
    return thread_new(task);
}

/* ---- calls ---- */

static __always_inline const volatile struct io_call *call_of(__s32 number)
{
    return &config.calls[number & (IO_CALLS_MAX - 1)];
}

/* What we cost: now and then a run is timed, and stands for the others. */
static __always_inline bool is_timed(void)
{
    struct io_cpu *own = cpu_get();
    return own && ++own->runs % IO_COST_EVERY == 0;
}

SEC("tp_btf/sys_enter")
int io_enter(__u64 *context)
{
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct io_thread *thread = thread_get(task);
    if (!thread || begun_ns() == 0)
        return 0;
    const struct pt_regs *regs = (const void *)context[0];
    bool timed = is_timed();
    __u64 begin_ns = timed ? bpf_ktime_get_ns() : 0;
    __s32 number = regs_call(task, regs);
    thread->call = number;
    thread->at = IO_NO_FILE;
    thread->place = IO_NO_PLACE;
    thread->missed_bytes = 0;
    if (number >= 0 && number < IO_CALLS_MAX) {
        __u32 which = call_of(number)->fd, kind = call_of(number)->kind;
        if (kind & IO_OURS)
            return 0;
        if (which > 0)
            file_find(thread, task, (int)regs_argument(regs, which));
        __u32 at = thread->at, place = call_of(number)->place;
        if (at < IO_FILES && kind & IO_BYTES) {
            thread->place = place_of(&thread->files[at & (IO_FILES - 1)], kind);
            if (place > 0 && (__s64)regs_argument(regs, place) >= 0)
                thread->place = regs_argument(regs, place);
        }
    }
    __u64 now_ns = bpf_ktime_get_ns();
    thread->start_ns = now_ns;
    if (timed)
        count_add(OFFCPU_COST_NS, IO_COST_EVERY * (now_ns - begin_ns));
    return 0;
}

/* How much was moved and asked for, and from where on. */
static __always_inline void moved_look(const struct pt_regs *regs, struct io_thread *thread,
                                       const volatile struct io_call *call, __s64 result,
                                       struct io_sum *sum)
{
    __u32 kind = call->kind, asked = call->asked, at = thread->at;
    sum->flags |= SUM_MOVES;
    sum->bytes = (__u64)result;
    if (kind & IO_MESSAGES) {
        sum->bytes = messages_bytes(regs_argument(regs, 2), (__u64)result);
        if (result > IO_MESSAGES_MAX)
            count_add(IO_BUFFERS_LEFT, 1);
    }
    sum->asked_bytes = sum->bytes;
    if (kind & IO_VECTOR) {
        __u64 bytes = vector_bytes(regs_argument(regs, asked), regs_argument(regs, asked + 1));
        if (bytes > 0)
            sum->asked_bytes = bytes;
        else
            count_add(IO_BUFFERS_LEFT, 1);
    } else if (asked > 0) {
        sum->asked_bytes = regs_argument(regs, asked);
    }
    if (sum->bytes > 0 && sum->bytes < sum->asked_bytes)
        sum->flags |= SUM_PARTIAL;
    if (kind & IO_INSIDE)
        count_add(IO_INSIDE_BYTES, sum->bytes);
    if (at >= IO_FILES || thread->place == IO_NO_PLACE || sum->bytes == 0)
        return;
    struct io_file *entry = &thread->files[at & (IO_FILES - 1)];
    __u64 next = entry->next, place = thread->place;
    if (next != IO_NO_PLACE || place == 0) /* else nothing is known of the one before */
        sum->flags |= SUM_PLACED;
    if (next == place || (next == IO_NO_PLACE && place == 0))
        sum->flags |= SUM_SEQUENTIAL;
    entry->next = place + sum->bytes;
}

static __always_inline __u16 flags_look(const struct pt_regs *regs,
                                        const volatile struct io_call *call)
{
    __u32 which = call->flags, kind = call->kind;
    if (kind & IO_CREATES)
        return FLAG_CREATES;
    if (which == 0)
        return 0;
    __u64 value = regs_argument(regs, which);
    if (kind & IO_HOW) {
        __u64 how = 0;
        bpf_probe_read_user(&how, sizeof(how), (const void *)value);
        value = how;
    }
    if (kind & IO_SENDS)
        return value & MESSAGE_DONTWAIT ? FLAG_NONBLOCK : 0;
    return value & (FILE_CREAT | config.o_tmpfile) ? FLAG_CREATES : 0;
}

static __noinline int moment_tell(const struct pt_regs *regs, const struct io_thread *thread,
                                  const struct io_key *key, const struct io_sum *sum)
{
    __u32 at = thread->at & (IO_FILES - 1);
    struct io_moment moment = {
        .start_ns = sum->start_ns,
        .end_ns = sum->end_ns,
        .result = sum->result,
        .args = {regs_argument(regs, 1), regs_argument(regs, 2), regs_argument(regs, 3),
                 regs_argument(regs, 4), regs_argument(regs, 5), regs_argument(regs, 6)},
        .stack = key->stack == IO_STACK_MISSED ? 0 : key->stack,
        .file = thread->files[at].file,
        .object = thread->files[at].id,
        .tid = thread->tid,
        .tgid = thread->tgid,
        .kernel_tgid = thread->kernel_tgid,
        .exec = thread->exec,
        .call = thread->call,
        .fd = (__s32)thread->files[at].fd,
    };
    heads_look(&moment);
    return 0;
}

/* What is said is said on the connection that was accepted, or to the socket that a file is sent
 * to. */
static __always_inline void socket_look(struct task_struct *task, const struct pt_regs *regs,
                                        struct io_thread *thread, const struct io_key *key,
                                        const struct io_sum *sum)
{
    __u32 kind = call_of(thread->call)->kind, other = call_of(thread->call)->other;
    if (kind & IO_ACCEPTS && sum->result < 0)
        return;
    if (kind & IO_ACCEPTS)
        file_renew(thread, task, (int)sum->result);
    else if (other > 0)
        file_find(thread, task, (int)regs_argument(regs, other));
    if (thread->at < IO_FILES &&
        thread->files[thread->at & (IO_FILES - 1)].id.kind == OBJECT_ID_SOCKET)
        moment_tell(regs, thread, key, sum);
}

/* What it was about: the fd it had, the fd it made, or a path. */
static __always_inline void object_look(struct task_struct *task, const struct pt_regs *regs,
                                        struct io_thread *thread,
                                        const volatile struct io_call *call, __s64 result,
                                        struct io_key *key)
{
    __u32 kind = call->kind, path = call->path, folder = call->folder;
    if (kind & IO_OPENS && result >= 0)
        file_renew(thread, task, (int)result);
    else if (kind & IO_SETTLES && thread->at < IO_FILES)
        file_renew(thread, task, (int)thread->files[thread->at & (IO_FILES - 1)].fd);
    if (thread->at < IO_FILES) {
        const struct io_file *entry = &thread->files[thread->at & (IO_FILES - 1)];
        key->object = entry->id;
        key->flags |= entry->flags;
    } else if (path > 0) {
        int fd = folder > 0 ? (int)regs_argument(regs, folder) : -1;
        path_look(regs_argument(regs, path), fd, &key->object);
    }
}

static __always_inline __u16 error_of(__s64 result)
{
    __u64 error = (__u64)-result;
    if (result >= 0 || error > ERRNO_MAX)
        return 0;
    return error >= ERRNO_RESTART_FIRST && error <= ERRNO_RESTART_LAST ? ERRNO_INTERRUPTED
                                                                       : (__u16)error;
}

static __always_inline bool changes_modes(__u32 what)
{
    return what == FILE_SET_FLAGS || what == FILE_SET_BLOCK;
}

/* Of calls by their numbers; all that is not known of others stays 0. */
static __always_inline int known_look(struct task_struct *task, const struct pt_regs *regs,
                                      struct io_thread *thread, struct io_key *key,
                                      struct io_sum *sum, __s64 result)
{
    const volatile struct io_call *call = call_of(thread->call);
    __u32 kind = call->kind;
    if (kind & IO_NO_RESULT || (kind & IO_EXECS && result == 0))
        return 0;
    key->error = error_of(result);
    key->flags |= flags_look(regs, call);
    object_look(task, regs, thread, call, result, key);
    if (kind & IO_BYTES && key->error == 0)
        moved_look(regs, thread, call, result, sum);
    if (kind & IO_READS && thread->missed_bytes > 0) {
        sum->flags |= SUM_MISSED;
        sum->missed_bytes = thread->missed_bytes;
    }
    if (kind & IO_URING)
        count_add(IO_URING_CALLS, 1);
    if (kind & IO_CLOSES_ONE)
        epoch_end(epoch_place(thread, (int)regs_argument(regs, call->fd)));
    else if (kind & IO_CLOSES || (kind & IO_MODES && changes_modes((__u32)regs_argument(regs, 2))))
        epoch_end(0);
    else if (kind & IO_RENAMES)
        epoch_end(IO_EPOCH_NAMES);
    return 1;
}

SEC("tp_btf/sys_exit")
int io_exit(__u64 *context)
{
    __u64 now_ns = bpf_ktime_get_ns();
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __u32 pid = task->pid;
    struct io_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (!thread)
        return 0;
    const struct pt_regs *regs = (const void *)context[0];
    __s64 result = (__s64)context[1];
    __s32 number = thread->call;
    struct io_sum sum = {.start_ns = thread->start_ns, .end_ns = now_ns, .result = result};
    if (sum.start_ns == 0) { /* it began before us; or this is a child, which did not ask */
        if (result != 0 && !(call_of(number)->kind & IO_OURS))
            count_add(IO_BEFORE, 1);
        return 0;
    }
    thread->start_ns = 0;
    struct io_key key = {
        .tid = thread->tid,
        .tgid = thread->tgid,
        .exec = (__u16)thread->exec,
        .call = (__s16)number,
    };
    int whole = 0;
    if (number >= 0 && number < IO_CALLS_MAX)
        whole = known_look(task, regs, thread, &key, &sum, result);
    else
        count_add(IO_COMPAT, number == IO_UNKNOWN_CALL);
    if (config.stacks && whole) {
        key.stack = stack_of(regs, thread, now_ns);
        if (key.stack == 0)
            key.stack = IO_STACK_MISSED;
    }
    io_add(&key, &sum);
    if (config.requests && whole)
        socket_look(task, regs, thread, &key, &sum);
    if (is_timed())
        count_add(OFFCPU_COST_NS, IO_COST_EVERY * (bpf_ktime_get_ns() - now_ns));
    return 0;
}

/* ---- the page cache ---- */

#include "io_faults.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct folio {
    unsigned long _flags_1; /* Linux 6.6: the order in the lowest eight bits */
};

#pragma clang attribute pop

enum pageflags___io { PG_head___io = 6 };
enum { PAGE_BYTES = 4096, ORDER_MAX = 18 };

/* What a reader adds had to be fetched; writers add what they write. */
SEC("tp_btf/mm_filemap_add_to_page_cache")
int io_cache_add(__u64 *context)
{
    __u32 pid = (__u32)bpf_get_current_pid_tgid();
    struct io_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (!thread)
        return 0;
    struct folio *folio = (void *)context[0];
    unsigned long flags = 0, more = 0;
    __u32 order = 0;
    bpf_probe_read_kernel(&flags, sizeof(flags), folio);
    if (bpf_core_field_exists(folio->_flags_1) &&
        bpf_core_enum_value_exists(enum pageflags___io, PG_head___io) &&
        flags >> bpf_core_enum_value(enum pageflags___io, PG_head___io) & 1) {
        bpf_probe_read_kernel(&more, sizeof(more), &folio->_flags_1);
        order = more & 0xff;
    }
    __u64 bytes = (__u64)PAGE_BYTES << (order < ORDER_MAX ? order : 0);
    if (thread->start_ns == 0)
        return fault_missed(thread, bytes);
    thread->missed_bytes += bytes;
    return 0;
}

/* ---- beginnings and ends ---- */

SEC("tp_btf/sched_process_fork")
int io_fork(__u64 *context)
{
    struct task_struct *parent = (void *)context[0], *child = (void *)context[1];
    __u32 pid = parent->pid;
    if (!bpf_map_lookup_elem(&threads, &pid) && (!is_wanted(parent, true) || !thread_new(parent)))
        return 0;
    thread_new(child);
    return 0;
}

/* A thread that is not the first one takes over the first one's id. The call goes on. */
SEC("tp_btf/sched_process_exec")
int io_exec(__u64 *context)
{
    struct task_struct *task = (void *)context[0];
    __u32 old = (__u32)context[1], pid = task->pid;
    struct io_thread *thread = bpf_map_lookup_elem(&threads, &old);
    __u64 start_ns = thread ? thread->start_ns : 0;
    __s32 call = thread ? thread->call : NO_CALL;
    if (!thread && !is_wanted(task, true))
        return 0;
    if (old != pid)
        bpf_map_delete_elem(&threads, &old);
    thread = thread_new(task);
    if (thread) {
        thread->call = call;
        thread->start_ns = start_ns;
    }
    return 0;
}

SEC("tp_btf/sched_process_exit")
int io_end(__u64 *context)
{
    struct task_struct *task = (void *)context[0];
    __u32 pid = task->pid;
    struct io_thread *thread = bpf_map_lookup_elem(&threads, &pid);
    if (!thread)
        return 0;
    fault_end(pid);
    bpf_map_delete_elem(&faults, &pid);
    struct io_sum sum = {.start_ns = thread->start_ns, .end_ns = bpf_ktime_get_ns()};
    if (sum.start_ns != 0) { /* exit() itself, or it was killed in a call */
        struct io_key key = {
            .tid = thread->tid,
            .tgid = thread->tgid,
            .exec = (__u16)thread->exec,
            .call = (__s16)thread->call,
        };
        if (thread->at < IO_FILES)
            key.object = thread->files[thread->at & (IO_FILES - 1)].id;
        thread->start_ns = 0;
        count_add(IO_ENDED_INSIDE, 1);
        io_add(&key, &sum);
    }
    struct offcpu_head *head = bpf_ringbuf_reserve(&told, sizeof(*head), 0);
    if (head) {
        head->record = OFFCPU_EXIT;
        head->tid = thread->tid;
        head->tgid = thread->tgid;
        head->exec = thread->exec;
        head->time_ns = sum.end_ns;
        bpf_ringbuf_submit(head, BPF_RB_NO_WAKEUP);
    } else {
        count_add(OFFCPU_RING_FULL, 1);
    }
    bpf_map_delete_elem(&threads, &pid);
    bpf_map_delete_elem(&deep, &pid);
    return 0;
}
