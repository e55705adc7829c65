/* What bpf/io_faults.h and collect/io_faults.c say to each other: page faults on mapped files.
 *
 * Plain structs of fixed size: one side is compiled for the machine, the other for BPF. */
#pragma once

#include "format/io.h"

/* Map "faults", by kernel thread id: the last one of a thread, which is added up when the next one
 * begins or the thread ends; those still here at the end are user space's to add. */
struct io_fault {
    struct io_key key;
    uint64_t start_ns; /* of its first sight; 0: there is none */
    uint64_t end_ns;   /* of its last sight */
    uint64_t number;   /* how many faults the thread had before it */
    uint64_t missed_bytes;
    uint32_t looked_up; /* it has come to where a page is looked for in the page cache */
    uint32_t timed;     /* it was seen again afterwards: it had waited for the page */
};
_Static_assert(sizeof(struct io_fault) == 40 + 40, "shared with BPF");
