/* What the detectors of CPU time and memory share: for whom a row of the critical path counts. */
#pragma once

#include "detect/detectors.h"

/* One row of path_costs, looked at. All zero for a wait that is no page fault's. */
struct cpu_row {
    /* Whose time it is: the innermost function that is neither the kernel's nor a helper of the
     * standard library (memcmp() and std::map count for who calls them); where there is none, the
     * innermost. 0: none. */
    uint32_t function;
    uint32_t outer; /* what that was inlined into, at last; else the same */
    /* The loop of an interpreter of the same image that called it; 0: none. */
    uint32_t interpreter;
    const struct profile_place *place; /* where in it; NULL: not known */
    bool running;
    bool kernel;    /* in the kernel */
    bool fault;     /* serving a page fault */
    bool zeroing;   /* of those: filling pages with zeros */
    bool populates; /* in a call that fills or empties page tables: mmap, munmap, brk, madvise */
    bool alloc;     /* in the allocator, also when that is in the kernel */
    bool reallocs;  /* of those: in realloc() */
    bool loader;    /* in the dynamic loader, or in exec */
    bool nameless;  /* the innermost function has no name */
    bool helped;    /* the innermost function is another one, which counts for `function` */
};

struct cpu_rows {
    const struct path_costs *costs;
    struct cpu_row *rows; /* as many as costs has */
    double running_ns, kernel_ns, fault_ns, alloc_ns, own_ns;
    bool kernel_seen; /* samples of the kernel were allowed */
};

/* 0 or -ENOMEM. */
MUST_USE int cpu_rows_build(struct arena *arena, const struct evidence *evidence,
                            struct cpu_rows *ret);

/* The program's own work: neither kernel, allocator, loader nor page faults. */
static inline bool cpu_row_own(const struct cpu_row *row)
{
    return row->running && !row->kernel && !row->alloc && !row->loader && row->function != 0;
}
/* Without a symbol it is called by its image and its place there. */
bool cpu_nameless(const struct profile_function *function);

/* The heaviest by an id from 1 to `count`: a sum over rows. */
struct cpu_top {
    uint32_t id;
    double ns;
};
typedef uint32_t cpu_key(void *context, const struct cpu_rows *rows, size_t row);
/* 0 or -ENOMEM. `id` 0: nobody. */
MUST_USE int cpu_top_find(struct arena *arena, const struct cpu_rows *rows, cpu_key *key,
                          void *context, size_t count, struct cpu_top *ret);
/* The heaviest line of own work; `ret_place` NULL: no line is known. */
MUST_USE int cpu_top_line(struct arena *arena, const struct cpu_rows *rows,
                          const struct profile_place **ret_place, uint32_t *ret_function,
                          double *ret_ns);
bool cpu_same_line(const struct profile_place *a, const struct profile_place *b);

enum { CPU_SAMPLES_MIN = 20 }; /* of a function or line whose share is to be believed */

/* For path_costs_cover(): its context is one float a row. */
double cpu_parts_pick(void *context, const struct path_costs *costs, const struct path_cost *row);
/* Zeroed, one a row; NULL when out of memory. */
float *cpu_parts(struct arena *arena, const struct path_costs *costs);
uint64_t cpu_parts_samples(const struct path_costs *costs, const float *parts);
/* Dismisses a finding whose share of the time rests on too few samples (its occurrences): it may be
 * true, and nobody can say. */
bool cpu_too_few(struct arena *arena, struct finding *finding);

/* What the three angles say of CPU time that is `cost`. `what` names it: "in scan()". */
void cpu_angles(const struct evidence *evidence, struct findings *findings, struct finding *finding,
                const float *parts);
/* At most all of it, at least nothing: nobody knows how much of the work is needed. */
struct estimate cpu_at_most(struct estimate cost, double part);

/* From here on a line is spoken of, and its function is silent: one of the two always speaks. */
#define CPU_LINE_SHARE_MIN 0.30

/* Of the wall time, as everywhere: 0 … 1. */
double cpu_share(const struct evidence *evidence, double ns);
const char *cpu_ns_text(struct arena *arena, double ns);
const char *cpu_number(struct arena *arena, double number, enum unit unit);
/* "f7": as reports of the recording call a function. */
const char *cpu_function_id(struct arena *arena, uint32_t function);
