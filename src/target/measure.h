/* One run of one command, measured: spawn.h's result as the figures of model/bench.h.
 *
 * Everything that benchmarks (bench, compare, gate, scale, run's baseline) runs
 * its commands through here, so that they all measure the same thing. */
#pragma once

#include "model/bench.h"
#include "target/spawn.h"

struct measure_opts {
    char *const *argv;  /* ends with NULL */
    const char *path;   /* from program_find() */
    const char *input;  /* file for stdin; NULL: /dev/null */
    const char *output; /* NULL: "null"; "null", "pipe" (hash it), "inherit", or a file */
    uint64_t timeout_ns;
    bool counters;         /* open PMU counters around it */
    uint64_t pss_every_ns; /* 0: do not sample PSS */
    bool exact_memory; /* peak RSS as the kernel's VmHWM at exit; times are not to be used then */
    struct spawn_nest *nest;  /* from measure_nest_open(); NULL: a launcher for each run, slower */
    size_t environment_bytes; /* an extra variable of that size, to vary the stack's start */
};

/* A launcher for many runs of one command, to be put into opts->nest; spawn_nest_close() ends it.
 * environment_bytes is then the largest that a run will have. Not with a NULL argv or path. */
MUST_USE int measure_nest_open(const struct measure_opts *opts, struct spawn_nest **ret,
                               struct why *why);

/* Children that the command leaves behind are killed (spawn_result.left_behind in the full
 * result). A command that fails is not an error here: look at the status. What cannot be
 * measured is NaN; `missing` (BENCH_METRICS entries, kept between runs) gets the reason. */
MUST_USE int measure_run(const struct measure_opts *opts, struct bench_run *ret,
                         const char *missing[BENCH_METRICS], struct why *why);

/* The same for whoever wants to know more: the signal that interrupted it, the end of
 * what it said on stderr, its output's end. */
MUST_USE int measure_run_full(const struct measure_opts *opts, struct bench_run *ret,
                              struct spawn_result *ret_result, const char *missing[BENCH_METRICS],
                              struct why *why);
