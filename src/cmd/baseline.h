/* The same command again and again, and what each run cost.
 *
 * The first runs warm up and are not counted. Then runs follow until there are
 * enough, or the budget of time is spent. A program so long that nothing else fits
 * is measured by its warm-up. A run that fails ends the baseline (unless that is
 * allowed): figures of a program that does not do its work are figures of something
 * else. */
#pragma once

#include "base/progress.h"
#include "base/units.h"
#include "base/vec.h"
#include "stats/summary.h"
#include "target/spawn.h"

enum metric {
    METRIC_WALL,
    METRIC_CPU_TIME, /* user and system; exact where the split between the two is not */
    METRIC_USER,
    METRIC_SYSTEM,
    METRIC_CPU, /* percent of one CPU */
    METRIC_PEAK_RSS,
    METRIC_FAULTS_MINOR,
    METRIC_FAULTS_MAJOR,
    METRIC_SWITCHES_VOLUNTARY,
    METRIC_SWITCHES_INVOLUNTARY,
    METRIC_READ,
    METRIC_WRITTEN,
    METRIC_STORAGE_READ,
    METRIC_STORAGE_WRITTEN,
    METRIC_COUNT,
};

struct metric_info {
    const char *id; /* in JSON */
    const char *title;
    enum unit unit;
};

extern const struct metric_info metrics[METRIC_COUNT];

struct baseline_opts {
    char *const *argv;
    const char *path;
    uint32_t runs;
    uint32_t warmup;
    uint64_t timeout_ns; /* of one run */
    /* The first run may take this long; a longer one is ended: BASELINE_CUT. 0: as any other. */
    uint64_t first_ns_max;
    /* Asked once the length of a run is known: how long the runs after it may take. */
    uint64_t (*budget)(void *context, double wall_ns);
    const char *input_path;          /* NULL: /dev/null */
    const char *output_path;         /* what it prints goes there; NULL: it is only hashed */
    struct spawn_listener *listener; /* to what it prints; NULL: nobody */
    /* Was its answer right? 0, or 1 with `how` it was not ("printed …"). NULL: any is. */
    int (*judge)(void *context, const struct spawn_result *result, char *how, size_t size);
    void *context;
    bool keep_going; /* a failing run counts like any other */
};

struct baseline_run {
    double figures[METRIC_COUNT]; /* NaN: not known, see baseline.na */
    int status;
    char output_sha256[SHA256_TEXT_BYTES];
};

enum baseline_end {
    BASELINE_ENOUGH,
    BASELINE_BUDGET,
    BASELINE_CUT, /* no run was finished within the time there is */
    BASELINE_INTERRUPTED,
    BASELINE_FAILED,
};

enum { BASELINE_RUNS_MAX = 100000 };

struct baseline {
    VEC(struct baseline_run) runs;
    uint32_t warmups;
    enum baseline_end end;
    int signal;                             /* for BASELINE_INTERRUPTED */
    struct spawn_result failure;            /* for BASELINE_FAILED */
    const char *failure_kind;               /* "warm-up run" or "run" */
    uint32_t failure_run;                   /* from 1 */
    char failure_how[256];                  /* of a wrong answer; empty: its status says it */
    uint32_t failed;                        /* runs that failed, with keep_going */
    const char *na[METRIC_COUNT];           /* why a figure is not known; NULL when all are */
    char na_text[METRIC_COUNT][160];        /* its memory */
    struct summary summaries[METRIC_COUNT]; /* .count 0: not available */
    uint32_t outputs;                       /* distinct ones */
    uint64_t output_bytes, error_bytes;     /* of the last run */
    bool output_open;                       /* a process left behind may still write to it */
    uint32_t left_behind;                   /* runs after which processes were ended */
    bool cold;                              /* the one run is the warm-up */
    /* A first run was ended after that long; 0: none was. Runs may have followed all the same
     * (run_measure_again()). */
    uint64_t cut_ns;
    uint64_t elapsed_ns;
    uint64_t launcher_cpu_ns;
    uint64_t target_cpu_ns; /* of all runs, warm-ups too */
};

/* An error is ours; how the target fared stands in ret->end. */
MUST_USE int baseline_measure(const struct baseline_opts *opts, struct progress *progress,
                              struct baseline *ret, struct why *why);
void baseline_deinit(struct baseline *baseline);

/* "exited with status 3", "was killed by signal 11 (Segmentation fault)". */
void status_describe(int status, bool timed_out, char *text, size_t size);
bool status_is_good(const struct spawn_result *result);
