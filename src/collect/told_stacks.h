/* Stacks that kernel programs copy (bpf/user_stacks.h): walked once, told back to the program so
 * that it recognises them, and found by the ref it gave them. Shared by the collectors that follow
 * the cpu collector with BPF. Records must come in the order of time. One thread. */
#pragma once

#include "collect/known_stacks.h"
#include "collect/told_threads.h"

enum { TOLD_REFS_MAX = 1 << 21 };

/* A stack of the program's, by its ref. */
struct told_ref {
    uint32_t stack;    /* id of the sink */
    uint64_t until_ns; /* what it said is void from here on; UINT64_MAX: it holds */
};

/* A process of which stacks are known to the program. */
struct told_process {
    uint32_t kernel_tgid, exec;
    int pid;
    uint64_t generation; /* of its mappings, as of the last look */
};

struct told_stacks {
    struct stacks *stacks; /* the cpu collector's */
    struct told_threads *threads;
    struct known_stacks *known;
    int deep_fd;           /* map "deep" of the program */
    struct map_u64 ref_at; /* ref to index + 1 */
    VEC(struct told_ref) refs;
    VEC(struct told_process) processes;
    struct unwind_trace *trace;
    uint64_t walked, complete, truncated; /* stacks */
    uint64_t stale;                       /* rows whose stack no longer held */
    uint64_t lost;                        /* refs beyond the bound */
    uint64_t stray;                       /* refs that nobody told of */
    uint64_t malformed;
};

/* Maps of the program by name: "known", "known_long", "deep". */
struct told_stacks_fds {
    int known, known_long, deep;
};
MUST_USE int told_stacks_init(struct told_stacks *told, const struct told_stacks_fds *fds,
                              struct stacks *stacks, struct told_threads *threads);
void told_stacks_deinit(struct told_stacks *told); /* all zero is fine */

MUST_USE int told_stacks_put(struct told_stacks *told, uint64_t ref, uint32_t stack);
/* A record OFFCPU_COPY. */
MUST_USE int told_stacks_take(struct told_stacks *told, const struct offcpu_copy *copy,
                              size_t bytes);
/* The stack of a ref as of a moment; 0: not known. */
uint32_t told_stacks_find(struct told_stacks *told, uint64_t ref, uint64_t time_ns);
/* What was mapped may have changed: stacks that hang on it are void from `since_ns` on. */
void told_stacks_check(struct told_stacks *told, uint64_t since_ns);
