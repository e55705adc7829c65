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
    bool counters;            /* open PMU counters around it */
    uint64_t pss_every_ns;    /* 0: do not sample PSS */
    size_t environment_bytes; /* an extra variable of that size, to vary the stack's start */
};

/* A command that fails is not an error here: look at the status. What cannot be
 * measured is NaN; `missing` (BENCH_METRICS entries, kept between runs) gets the reason. */
MUST_USE int measure_run(const struct measure_opts *opts, struct bench_run *ret,
                         const char *missing[BENCH_METRICS], struct why *why);

/* The same for whoever wants to know more: the signal that interrupted it, the end of
 * what it said on stderr, its output's end. */
MUST_USE int measure_run_full(const struct measure_opts *opts, struct bench_run *ret,
                              struct spawn_result *ret_result, const char *missing[BENCH_METRICS],
                              struct why *why);
