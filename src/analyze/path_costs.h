/* Where the wall time of a run goes, by stack: the one currency of all rankings.
 *
 * The critical path (critical_path.h) is cut into what ran and what waited. Running time is
 * spread over the samples that were taken of its threads meanwhile; waiting time has its rows. All
 * is scaled so that the sum is the baseline's median wall time; where the recorded run was longer,
 * what it computed more than plain ones is cut first, then what it waited for a CPU; where it was
 * shorter, what ran is stretched to the CPU time of plain runs and no further. Without waits,
 * samples of all threads stand in, and what nobody sampled is `unseen_ns`. */
#pragma once

#include "analyze/critical_path.h"
#include "analyze/wait_classes.h"
#include "model/finding.h"

struct path_cost {
    enum wait_class class; /* WAIT_CLASS_RUNNING: samples */
    uint32_t thread;
    uint32_t stack;     /* 0: not known */
    uint32_t wait;      /* row of waits, with WAIT_CLASS_RUNQ that it came after; 0 for samples */
    struct str syscall; /* in which: "read"; empty: none or not known */
    struct place place; /* of the stack: place_of_stack() */
    double ns;
    uint64_t count; /* samples, or steps of the path */
    double sleeps;  /* of a wait: how often the thread slept there, as far as it is on the path */
};

struct path_costs {
    const struct profile *profile; /* of all stacks here; NULL: nothing is known */
    struct path_cost *rows;        /* the longest first */
    size_t count;
    double ns;                              /* all: the baseline's wall time */
    double classes[WAIT_CLASS_UNKNOWN + 1]; /* the same by class */
    double unseen_ns;                       /* of ns: no sample, no wait; in no row */
    uint64_t samples;                       /* on the path */
    double sampled_ns;                      /* what these say of its running time by themselves */
    double wall_low, wall_high;             /* relative: 0.98, 1.03; 1 and 1 when not known */
    bool few_runs; /* fewer than two plain ones: nothing tells how they differ */
    /* By how much the recorded run was longer or shorter than the baseline's, relative: nobody
     * knows where that went, so every part of it is unsure by as much. */
    double stretch;
    /* By how much recording can have made one sleep longer, at most: the point of such costs is
     * not moved by it, their lower end is. */
    double sleep_ns;
    /* What the environment took of the wall time, as its findings say: of what waited for a CPU. No
     * change of the program takes that away. Set by detectors_judge(). */
    double environment_ns;
    const char *na; /* why it is not the critical path; NULL: it is */
};

/* Of a plain run, but for the last; NaN: not known. */
struct path_wall {
    double ns, low_ns, high_ns;
    double cpu_ns;          /* by the kernel's account */
    double recorded_cpu_ns; /* the same of the recorded run; 0 or NaN: not known */
    bool few_runs;
};

/* `cpu` and `waits` may be NULL; `classes` and `path` belong to waits. `same` says that ids of cpu
 * and waits are of one recording. 0 or -ENOMEM. */
MUST_USE int path_costs_build(struct arena *arena, const struct profile *cpu,
                              const struct waits *waits, const struct wait_classes *classes,
                              const struct critical_path *path, bool same,
                              const struct path_wall *wall, struct path_costs *ret);

/* What of a row is the program's own: all but what the environment took. */
double path_cost_own_ns(const struct path_costs *costs, const struct path_cost *row);

/* How much of a row is meant: 0 … 1. */
typedef double path_pick(void *context, const struct path_costs *costs,
                         const struct path_cost *row);
/* The sum of what is meant, with its interval: of sampling, of the baseline itself, of how much
 * the recorded run differs from it, and of what recording does to sleeps. */
struct estimate path_costs_sum(const struct path_costs *costs, path_pick *pick, void *context);
/* That interval for a sum of rows that was made elsewhere, with `sleeps` in them. */
struct estimate path_costs_estimate(const struct path_costs *costs, double running_ns,
                                    double waits_ns, double sleeps);

/* With fewer than two plain runs an interval may be as good as empty, which nobody measured: its
 * ends are NaN then. */
struct estimate path_costs_sure(const struct path_costs *costs, struct estimate estimate);

/* The same, and notes in the finding which rows they are. The estimate becomes its cost, and what
 * is recoverable unless that is set already. Out of memory is told by the arena. */
struct estimate path_costs_cover(struct arena *arena, const struct path_costs *costs,
                                 path_pick *pick, void *context, struct finding *finding);

/* What is usual: rows through a place, or in one of some system calls, or both. */
struct path_choice {
    const struct place *place; /* NULL: any */
    bool line;                 /* the line, too */
    const char *syscalls;      /* names, separated by blanks; NULL: any row */
    int class;                 /* enum wait_class, or -1 for any */
    bool innermost;            /* the place is that of the row, not just on the way */
};
struct estimate path_costs_of(const struct path_costs *costs, const struct path_choice *choice);
/* For path_costs_cover(): its context is a path_choice. */
double path_choose(void *context, const struct path_costs *costs, const struct path_cost *row);
/* A part of an estimate. */
struct estimate estimate_scale(struct estimate estimate, double factor);
