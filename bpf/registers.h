/* A thread's registers as it left user space, and what they say about its system call. */
#pragma once

#include "kernel.h"

enum { NO_CALL = -1, UNKNOWN_CALL = -2 }; /* WAIT_SYSCALL_… of the model */

#if defined(TARGET_x86_64)

enum {
    THREAD_COMPAT = 2,        /* thread_info.status: a system call of 32 bits, with other numbers */
    REGISTERS_KNOWN = 0xffff, /* DWARF's 0 to 15 */
};

static __always_inline __u64 regs_fp(const struct pt_regs *regs)
{
    return regs->bp;
}

static __always_inline __u64 regs_lr(const struct pt_regs *regs)
{
    (void)regs;
    return 0;
}

static __always_inline __s32 regs_call(const struct task_struct *task, const struct pt_regs *regs)
{
    __s64 call = (__s64)regs->orig_ax;
    if (call < 0)
        return NO_CALL;
    return task->thread_info.status & THREAD_COMPAT ? UNKNOWN_CALL : (__s32)call;
}

/* Counted from 1. */
static __always_inline __u64 regs_argument(const struct pt_regs *regs, __u32 which)
{
    switch (which) {
    case 1:
        return regs->di;
    case 2:
        return regs->si;
    case 3:
        return regs->dx;
    case 4:
        return regs->r10;
    case 5:
        return regs->r8;
    default:
        return regs->r9;
    }
}

/* By DWARF's numbers. */
static __always_inline void regs_copy(const struct pt_regs *regs, uint64_t *to)
{
    to[0] = regs->ax, to[1] = regs->dx, to[2] = regs->cx, to[3] = regs->bx;
    to[4] = regs->si, to[5] = regs->di, to[6] = regs->bp, to[7] = regs->sp;
    to[8] = regs->r8, to[9] = regs->r9, to[10] = regs->r10, to[11] = regs->r11;
    to[12] = regs->r12, to[13] = regs->r13, to[14] = regs->r14, to[15] = regs->r15;
}

#else

#define REGISTERS_KNOWN 0xffffffffu

static __always_inline __u64 regs_fp(const struct pt_regs *regs)
{
    return regs->regs[29];
}

static __always_inline __u64 regs_lr(const struct pt_regs *regs)
{
    return regs->regs[30];
}

static __always_inline __s32 regs_call(const struct task_struct *task, const struct pt_regs *regs)
{
    enum { THREAD_32BIT = 1 << 22 };
    if (regs->syscallno < 0)
        return NO_CALL;
    return task->thread_info.flags & THREAD_32BIT ? UNKNOWN_CALL : regs->syscallno;
}

static __always_inline __u64 regs_argument(const struct pt_regs *regs, __u32 which)
{
    switch (which) {
    case 1:
        return regs->orig_x0;
    case 2:
        return regs->regs[1];
    case 3:
        return regs->regs[2];
    case 4:
        return regs->regs[3];
    case 5:
        return regs->regs[4];
    default:
        return regs->regs[5];
    }
}

static __always_inline void regs_copy(const struct pt_regs *regs, uint64_t *to)
{
    for (__u32 i = 0; i < 31; i++)
        to[i] = regs->regs[i];
    to[31] = regs->sp;
}

#endif
