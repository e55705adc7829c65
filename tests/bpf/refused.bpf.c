// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads from an address it made up, which no verifier lets pass. */
#include "kernel.h"

char refused_license[] SEC("license") = "Dual BSD/GPL";

SEC("raw_tp/sys_enter")
int refused(const __u64 *arguments)
{
    const volatile __u64 *anywhere = (const volatile __u64 *)arguments[1];
    return (int)*anywhere;
}
