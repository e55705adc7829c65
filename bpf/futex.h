/* What a futex call says about the lock behind it. */
#pragma once

#include "registers.h"

enum {
    /* From the kernel's interface, whose numbers never change. */
    FUTEX_COMMANDS = 0x7f,
    FUTEX_WAIT = 0,
    FUTEX_WAKE = 1,
    FUTEX_WAKE_OP = 5,
    FUTEX_LOCK_PI = 6,
    FUTEX_UNLOCK_PI = 7,
    FUTEX_WAIT_BITSET = 9,
    FUTEX_WAKE_BITSET = 10,
    FUTEX_WAIT_REQUEUE_PI = 11,
    FUTEX_LOCK_PI2 = 13,
    FUTEX_TID = 0x3fffffff,
    /* enum wait_futex of the model */
    DETAIL_VALUE_2 = 1,
    DETAIL_VALUE_0 = 2,
    DETAIL_BITSET = 3,
    DETAIL_PI = 4,
    MUTEX_OWNER = 8, /* glibc: so far behind the word that is waited on */
};

static __always_inline __u8 futex_detail(const struct pt_regs *regs)
{
    __u32 command = regs_argument(regs, 2) & FUTEX_COMMANDS, value = regs_argument(regs, 3);
    if (command == FUTEX_WAIT)
        return value == 2 ? DETAIL_VALUE_2 : value == 0 ? DETAIL_VALUE_0 : 0;
    if (command == FUTEX_WAIT_BITSET)
        return DETAIL_BITSET;
    return command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2 || command == FUTEX_WAIT_REQUEUE_PI
               ? DETAIL_PI
               : 0;
}

static __always_inline bool futex_releases(const struct pt_regs *regs)
{
    __u32 command = regs_argument(regs, 2) & FUTEX_COMMANDS;
    return command == FUTEX_WAKE || command == FUTEX_WAKE_OP || command == FUTEX_UNLOCK_PI ||
           command == FUTEX_WAKE_BITSET;
}

/* The thread id that the lock keeps of its owner; 0: none, or no lock that keeps one. Whether it
 * is one is for the caller to see. */
static __always_inline __u32 futex_owner(__u64 address, __u8 detail)
{
    __u32 owner = 0;
    if (detail == DETAIL_VALUE_2 &&
        bpf_probe_read_user(&owner, sizeof(owner), (const void *)(address + MUTEX_OWNER)) == 0)
        return owner;
    if (detail == DETAIL_PI &&
        bpf_probe_read_user(&owner, sizeof(owner), (const void *)address) == 0)
        return owner & FUTEX_TID;
    return 0;
}
