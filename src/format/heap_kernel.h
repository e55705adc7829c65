/* What bpf/heap.bpf.c and collect/heap_kernel*.c say to each other: each allocation and each free,
 * one by one, in the order in which they happened.
 *
 * Plain structs of fixed size: one side is compiled for the machine, the other for BPF. Stacks and
 * threads are named as in format/offcpu.h. */
#pragma once

#include "format/offcpu.h"

#include <stdint.h>

enum { HEAP_KERNEL_THREADS_MAX = 16384 };

/* .rodata */
struct heap_kernel_config {
    uint64_t cgroup_id;
    uint32_t cgroup_level;
    uint32_t scope;
    uint32_t root;
    uint32_t own;
    uint32_t pid_ns;
    uint32_t ring_bytes;
};
_Static_assert(sizeof(struct heap_kernel_config) == 32, "shared with BPF");

/* The cookie of a place in code: what stands there. */
enum heap_kernel_place {
    HEAP_KERNEL_MALLOC = 1, /* (size): also valloc() and pvalloc() */
    HEAP_KERNEL_CALLOC,     /* (count, size) */
    HEAP_KERNEL_REALLOC,    /* (old, size) */
    HEAP_KERNEL_REALLOCARRAY,
    HEAP_KERNEL_POSIX_MEMALIGN, /* (&result, alignment, size) */
    HEAP_KERNEL_MEMALIGN,       /* (alignment, size): also aligned_alloc */
    HEAP_KERNEL_NEW,            /* (size): it may be left by an exception */
    HEAP_KERNEL_FREE,           /* (address): also the forms of operator delete */
    HEAP_KERNEL_LEAVES,         /* a return; or, as a return of the kernel's, what was jumped to */
    HEAP_KERNEL_HANDS_ON,       /* a jump to another of these functions, in the place of this one */
};

/* Map "threads", by kernel thread id. */
struct heap_kernel_thread {
    uint64_t round; /* of `copies`: user_stacks.h */
    uint32_t copies;
    uint32_t tid, tgid;
    uint32_t kernel_tgid;
    uint32_t exec;
    /* The call that the thread is in: the outermost. What it calls itself is part of it. */
    uint32_t place;     /* enum heap_kernel_place; 0: none */
    uint64_t sp;        /* as the call began: where its return address is */
    uint64_t caller;    /* the return address */
    uint64_t size;      /* asked for */
    uint64_t old;       /* of realloc() */
    uint64_t result_at; /* of posix_memalign() */
    uint64_t stack;     /* ref */
    uint32_t handed_on; /* the next function begins where this one did */
    uint32_t unused;
};
_Static_assert(sizeof(struct heap_kernel_thread) == 88, "shared with BPF");

/* In the ring "told", beside OFFCPU_COPY and OFFCPU_EXIT. */
enum heap_kernel_record {
    HEAP_KERNEL_ALLOCATED = 140, /* struct heap_kernel_allocated, when the function returns */
    HEAP_KERNEL_FREED = 141,     /* struct heap_kernel_freed, before it is */
    /* realloc() begins: struct heap_kernel_freed. Its old memory may be another thread's before
     * it returns. */
    HEAP_KERNEL_GIVEN = 142,
    HEAP_KERNEL_FORKED = 143, /* struct heap_kernel_forked; before the child does anything */
    HEAP_KERNEL_BEGAN = 144,  /* struct offcpu_head: another program, which has nothing yet */
};

struct heap_kernel_allocated {
    struct offcpu_head head;
    uint64_t address; /* 0: it failed */
    uint64_t size;
    uint64_t stack; /* ref; 0: not known */
    uint64_t old;   /* of realloc(); 0: none */
    uint32_t place;
    uint32_t unused;
};
_Static_assert(sizeof(struct heap_kernel_allocated) == 64, "shared with BPF");

struct heap_kernel_freed {
    struct offcpu_head head;
    uint64_t address;
};
_Static_assert(sizeof(struct heap_kernel_freed) == 32, "shared with BPF");

struct heap_kernel_forked {
    struct offcpu_head head; /* the parent's */
    uint32_t child;          /* process */
    uint32_t child_exec;
    uint32_t shares; /* the parent's memory, until it becomes another program (vfork) */
    uint32_t unused;
};
_Static_assert(sizeof(struct heap_kernel_forked) == 40, "shared with BPF");

/* Map "heap_counts", per CPU, beyond enum offcpu_count. */
enum heap_kernel_count {
    HEAP_KERNEL_CALLS = OFFCPU_COUNTS, /* told */
    HEAP_KERNEL_NESTED,                /* calls inside of others */
    HEAP_KERNEL_LOST,                  /* allocations and frees that found no room in the ring */
    HEAP_KERNEL_LEFT,                  /* calls that were left by an exception or a long jump */
    HEAP_KERNEL_RUNS,                  /* of the program, in threads that are recorded */
    HEAP_KERNEL_PACED,                 /* calls that waited for room in the ring */
    HEAP_KERNEL_COUNTS,
};
