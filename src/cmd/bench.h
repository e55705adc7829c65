/* What the files of `bench` share: what is to be run, and what came of it.
 *
 *     plan (options, scenario) → runs (one job after the other) → report, exports */
#pragma once

#include "base/arena.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/golden.h"
#include "model/bench.h"
#include "model/value.h"
#include "stats/modes.h"
#include "stats/series.h"
#include "stats/summary.h"
#include "target/command.h"
#include "target/spawn.h"

enum {
    BENCH_JOBS_MAX = 1000,
    BENCH_PARAMETERS_MAX = 8,
    BENCH_RUNS_MAX = SUMMARY_RUNS_MAX,
    BENCH_RUNS_MIN = 20, /* unless measuring takes longer than BENCH_TIME_MIN_S */
    BENCH_TIME_MIN_S = 5,
    BENCH_INTERVAL_RUNS = 6,  /* fewer have no interval */
    BENCH_DRIFT_PERCENT = 10, /* more is refused as unstable (M6) */
    BENCH_WARNINGS_MAX = 16,
};

#define BENCH_PRECISION 0.01 /* of the median: the interval may be this wide on either side */

struct bench_opts {
    const char *warmup, *runs;
    uint32_t runs_min, runs_max;
    uint64_t budget_ns, timeout_ns;
    struct opt_list setup, prepare, cleanup, names;
    struct opt_list lists, scans; /* words of -L (2 each) and -P (3 each) */
    struct opt_list step;
    const char *shell;
    bool no_shell, ignore_failure, show_output, no_history, dashes, keep_arguments;
    const char *input, *output;
    const char *golden, *scenario, *metric;
    uint64_t size_bytes;
    double ops;
    uint64_t pss_every_ns;
    const char *export_json, *export_csv, *export_markdown, *export_asciidoc, *export_orgmode;
    const char *style, *time_unit;
    struct output_opts print;
};

struct bench_parameter {
    const char *name, *value;
};

struct bench_job {
    struct command_line line; /* with the parameters filled in */
    const char *name;
    const char *setup, *prepare, *cleanup; /* NULL: none */
    struct bench_parameter parameters[BENCH_PARAMETERS_MAX];
    size_t parameter_count;
};

struct bench_plan {
    struct bench_job *jobs;
    size_t len;
    const char *shell; /* NULL: none */
    struct golden golden;
    const char *input, *output; /* as for measure_opts; output is never NULL */
    bool warmup_given;
    uint32_t warmup;
    uint32_t runs; /* 0: until it is certain */
    uint32_t runs_min, runs_max;
    uint64_t budget_ns, timeout_ns, pss_every_ns;
    enum bench_metric metric;
    bool ignore_failure;
    double ops;          /* work units of one run; 0: not said */
    uint64_t size_bytes; /* the same in bytes */
    const char *folder;  /* to work in; NULL: where we are */
};

/* All that was typed, checked; nothing is run. Memory is the arena's. */
MUST_USE int bench_plan_make(struct arena *arena, const struct cmd_call *call,
                             struct bench_plan *ret, struct why *why);

enum bench_end {
    BENCH_NOT_REACHED,
    BENCH_CERTAIN, /* the interval is narrow enough */
    BENCH_ENOUGH,  /* as many runs as were asked for */
    BENCH_BUDGET,
    BENCH_INTERRUPTED,
    BENCH_FAILED,
};

struct bench_outcome {
    const struct bench_job *job;
    struct bench_result result;
    enum bench_end end;
    int signal;                      /* for BENCH_INTERRUPTED */
    struct why failure;              /* for BENCH_FAILED */
    struct spawn_captured last_said; /* on stderr, by what failed */
    VEC(double) exact_kib;           /* peaks of memory read at exit, in runs that were not timed */
    bool settled;                    /* the warm-up was seen to end */
    size_t failed, left_behind;
    uint64_t elapsed_ns;
    /* From here on by bench_describe(). */
    struct summary summaries[BENCH_METRICS]; /* .count 0: not available */
    bool exact_memory;                       /* peak RSS is of exact_kib */
    double half_width;                       /* of the metric's interval, share of the median */
    struct modes modes;
    struct series_dependence dependence;
    struct series_trend trend;
    size_t outputs; /* distinct ones; 0: not read */
    bool unstable;
};

/* Runs one job; an error is ours, how the command fared stands in ret->end. */
MUST_USE int bench_job_run(struct arena *arena, const struct bench_plan *plan,
                           const struct bench_job *job, struct progress *progress,
                           struct bench_outcome *ret, struct why *why);
void bench_outcome_deinit(struct bench_outcome *outcome);

/* The statistics of what was run. -ENOMEM at worst. */
MUST_USE int bench_describe(const struct bench_plan *plan, struct bench_outcome *outcome);

struct bench_warning {
    const char *kind, *message, *advice;
};

/* What there is to say about an outcome; the number of warnings. `shell` may be NULL. */
size_t bench_warn(struct arena *arena, const struct bench_plan *plan,
                  const struct bench_outcome *outcome, const struct bench_outcome *shell,
                  struct bench_warning ret[BENCH_WARNINGS_MAX]);

struct bench_facts {
    struct arena *arena;
    const struct bench_plan *plan;
    const struct bench_outcome *outcomes;
    size_t len;                        /* those that were reached */
    const struct bench_outcome *shell; /* the shell alone; NULL without one */
    const struct value *fingerprint;
    const char *time_unit; /* NULL: as fits */
};

struct value bench_report_make(const struct bench_facts *facts);

/* Writes every export that was asked for. Tries all of them; the first error is told. */
MUST_USE int bench_export(const struct bench_facts *facts, const struct bench_opts *opts,
                          const struct value *root, struct why *why);
/* A time in the unit that was asked for. */
const char *bench_time_text(const char *time_unit, double ms, char *text, size_t size);
