/* What the files of the ledger share; nobody else includes this.
 *
 * ledger.c         the table of hypotheses, verdicts, what the program itself says
 * ledger_facts.c   the numbers, worked out once
 * ledger_angles.c  what sampling, tracing and counting say of a claim */
#pragma once

#include "analyze/ledger.h"

struct ledger_facts {
    struct arena *arena;
    const struct evidence *evidence;
    double wall_ns;
    bool sampled, traced, counted;          /* whether the angle can say anything */
    bool kernel_seen;                       /* samples have the kernel's functions */
    double classes[WAIT_CLASS_UNKNOWN + 1]; /* shares of the wall time */
    uint64_t steps[WAIT_CLASS_UNKNOWN + 1]; /* of the path, by class */
    /* Shares of the wall time. */
    double on_cpu;                     /* of the path, by samples alone: 1 is all of it */
    double cpu_used;                   /* by plain runs: above 1 with threads; NaN */
    double hottest;                    /* running, in the function that has most of it */
    double alloc;                      /* in the allocator or called by it */
    double faults;                     /* in page faults, running */
    double kernel;                     /* in the kernel, running */
    double syncs;                      /* in fsync and its kind, running or not */
    double starting, starting_waits;   /* before main(); of it: not running */
    double children, children_running; /* in processes that are not the command's first */
    double alone;                      /* running, of the thread that has most of the path */
    uint32_t threads;                  /* that had at least a hundredth of the CPU time */
    uint64_t sync_steps;
};

/* 0 or -ENOMEM. */
MUST_USE int ledger_facts_build(struct arena *arena, const struct evidence *evidence,
                                struct ledger_facts *ret);

/* An explanation: how much of the wall time it would explain, and from where on it counts. */
struct ledger_rule {
    const char *id, *statement;
    const char *what;     /* for texts: "waits for locks" */
    const char *aliases;  /* words by which programs speak of it, separated by blanks */
    const char *findings; /* detectors of that trouble, separated by blanks */
    bool same;            /* these look for the same thing: dismissed there is rejected here */
    double supports_min;  /* share of the wall time */
    double rejects_below; /* between the two nobody can say */
    enum wait_class class;
    double (*claim)(const struct ledger_facts *facts, const struct ledger_rule *rule);
    struct angle_word (*angles[ANGLES])(const struct ledger_facts *facts,
                                        const struct ledger_rule *rule, double claim);
};

typedef struct angle_word ledger_angle(const struct ledger_facts *facts,
                                       const struct ledger_rule *rule, double claim);
ledger_angle ledger_sampling_hottest, ledger_tracing_running, ledger_counting_running;
ledger_angle ledger_sampling_waits, ledger_tracing_waits, ledger_counting_waits;
ledger_angle ledger_sampling_alloc, ledger_tracing_alloc, ledger_counting_alloc;
ledger_angle ledger_tracing_syncs, ledger_tracing_sleep;
ledger_angle ledger_sampling_serial, ledger_tracing_serial, ledger_counting_serial;
ledger_angle ledger_tracing_starvation, ledger_counting_starvation;
ledger_angle ledger_sampling_faults, ledger_tracing_faults, ledger_counting_faults;
ledger_angle ledger_sampling_start, ledger_tracing_start, ledger_counting_start;
ledger_angle ledger_sampling_children, ledger_tracing_children, ledger_counting_children;
ledger_angle ledger_sampling_kernel, ledger_tracing_kernel, ledger_counting_kernel;

struct angle_word ledger_word(const struct ledger_facts *facts, enum angle_verdict verdict,
                              const char *fmt, ...) PRINTF_LIKE(3, 4);
