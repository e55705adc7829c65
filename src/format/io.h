/* What bpf/io.bpf.c and collect/io_kernel*.c say to each other.
 *
 * Plain structs of fixed size: one side is compiled for the machine, the other for BPF. */
#pragma once

#include "format/objects.h"

#include <stdint.h>

/* A call that has returned: what io.bpf.c hands to the parts that look into it (io_heads.h). */
struct io_moment {
    uint64_t start_ns, end_ns;
    int64_t result;
    uint64_t args[6];
    uint64_t stack; /* ref, as in format/offcpu.h; 0: not known */
    uint64_t file;  /* address of the struct file, 0: none */
    struct object_id object;
    uint32_t tid, tgid;   /* as they are called where whyslow runs */
    uint32_t kernel_tgid; /* as the kernel counts */
    uint32_t exec;        /* programs that the process has been */
    int32_t call;
    int32_t fd;
};
