/* The few types of the kernel that our programs look into. Only the members that are used:
 * where they lie is found out when a program is loaded (CO-RE), from the kernel's own BTF. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef unsigned long long __u64;
typedef int8_t __s8;
typedef int16_t __s16;
typedef int32_t __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* From the kernel's interface, whose numbers never change. */
enum {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERCPU_HASH = 5,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_STACK_TRACE = 7,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_RINGBUF = 27,
    BPF_RB_NO_WAKEUP = 1,
    BPF_RB_FORCE_WAKEUP = 2,
    BPF_RB_AVAIL_DATA = 0,
    BPF_ANY = 0,
    BPF_NOEXIST = 1,
    PERF_SAMPLE_TIME = 1 << 2,
};

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
    unsigned int inum;
};

struct pid_namespace {
    struct ns_common ns;
};

struct upid {
    int nr;
    struct pid_namespace *ns;
};

struct pid {
    unsigned int level;
    struct upid numbers[1];
};

struct rw_semaphore {
    long count;
};

struct mm_struct {
    unsigned long start_stack;
    struct rw_semaphore mmap_lock; /* Linux 5.8 */
};

struct files_struct;

struct thread_info {
    __u32 status; /* x86: whether the system call is one of 32 bits */
    unsigned long flags;
};

struct sched_entity {
    __u64 sum_exec_runtime;
};

struct task_struct {
    struct thread_info thread_info;
    unsigned int __state; /* Linux 5.14 */
    long state;           /* before */
    void *stack;
    unsigned int flags;
    struct sched_entity se;
    int pid, tgid;
    struct files_struct *files;
    struct mm_struct *mm;
    struct pid *thread_pid;
    struct task_struct *group_leader;
    __u64 self_exec_id;
    unsigned int in_iowait : 1;
};

struct pt_regs {
    unsigned long sp;
#if defined(TARGET_x86_64)
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
    unsigned long ip;
#elif defined(TARGET_aarch64)
    unsigned long regs[31];
    unsigned long pc;
    __u64 orig_x0;
    __s32 syscallno;
#else
#error "which register is the program counter here?"
#endif
};

struct perf_event_attr {
    __u32 sample_stack_user;
};

struct perf_event {
    struct perf_event_attr attr;
};

struct perf_sample_data {
    __u64 sample_flags; /* Linux 6.1 */
    __u64 time;
};

/* What the context of a perf_event program is in truth. */
struct bpf_perf_event_data_kern {
    struct perf_sample_data *data;
    struct perf_event *event;
};

#pragma clang attribute pop

static __always_inline __u64 regs_pc(const struct pt_regs *regs)
{
#if defined(TARGET_x86_64)
    return BPF_CORE_READ(regs, ip);
#else
    return BPF_CORE_READ(regs, pc);
#endif
}
