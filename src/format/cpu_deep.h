/* What bpf/cpu_deep.bpf.c and collect/cpu_deep.c say to each other.
 *
 * Plain structs of fixed size: one side is compiled for the machine, the other for BPF. */
#pragma once

#include <stdint.h>

enum {
    CPU_DEEP_PAGE_BYTES = 4096, /* what is read at once where a larger read failed */
    CPU_DEEP_PIECE_PAGES = 8,
    CPU_DEEP_PIECE_BYTES = CPU_DEEP_PIECE_PAGES * CPU_DEEP_PAGE_BYTES,
    CPU_DEEP_PIECES_MAX = 16, /* 512 KiB beyond the slice that perf copies */
    CPU_DEEP_THREADS_MAX = 16384,
    /* The kernel cuts the slice so that the whole sample stays below 64 KiB: registers and
     * kernel frames take their part. So the first page copied overlaps with it. */
    CPU_DEEP_OVERLAP_BYTES = 4096,
    CPU_DEEP_PERF_SLICE_MIN = 16 << 10, /* no slice is smaller: no need to ask */
};

/* .rodata: set before the program is loaded. */
struct cpu_deep_config {
    uint32_t pid_ns;     /* inode of our PID namespace; 0: the first one */
    uint32_t ring_bytes; /* half of it full wakes us */
};
_Static_assert(sizeof(struct cpu_deep_config) == 8, "shared with BPF");

/* Map "threads": by thread id, what the walks of its stacks have taught. The stack that a
 * process began with needs no entry: the kernel knows where it begins. */
enum {
    CPU_DEEP_NEVER = 0,
    CPU_DEEP_TRY = 1, /* deeper than the slice, no more is known: what can be read */
};
struct cpu_deep_thread {
    uint64_t top; /* the stack begins here; or one of the above */
};
_Static_assert(sizeof(struct cpu_deep_thread) == 8, "shared with BPF");

enum { CPU_DEEP_EXACT = 1 }; /* flags of a piece */

/* In the ring "pieces". Those of one sample have the same time_ns, tid, sp and pc. */
struct cpu_deep_piece {
    uint64_t time_ns;   /* CPU_DEEP_EXACT: the sample's own; else when the program began */
    uint64_t copied_ns; /* when this piece was complete */
    uint64_t sp, pc;    /* of user space */
    uint64_t address;   /* of bytes[0], a multiple of the page */
    uint32_t tid;       /* in our PID namespace */
    uint32_t flags;
    uint32_t pages; /* bit n: page n could be read */
    uint32_t unused;
    uint8_t bytes[CPU_DEEP_PIECE_BYTES];
};
_Static_assert(sizeof(struct cpu_deep_piece) == 56 + CPU_DEEP_PIECE_BYTES, "shared with BPF");

/* Map "counts": one of each a CPU. */
enum cpu_deep_count {
    CPU_DEEP_SAMPLES,   /* stacks of which more was copied */
    CPU_DEEP_RING_FULL, /* stacks of which a piece was lost */
    CPU_DEEP_TOO_DEEP,  /* stacks left alone: deeper than all pieces together */
    CPU_DEEP_SPARED,    /* stacks left alone: the last copy was just before */
    CPU_DEEP_NS,        /* time spent copying */
    CPU_DEEP_COUNTS,
};
