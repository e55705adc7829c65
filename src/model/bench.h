/* What a benchmark measured: every figure of every run, and which metrics there are.
 *
 * Written by target/measure.h, described by stats/, stored as JSON (schema
 * whyslow.bench/1), read back for compare, gate and history. */
#pragma once

#include "base/arena.h"
#include "base/sha256.h"
#include "base/units.h"
#include "base/vec.h"
#include "base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One row a metric in bench_metrics[]; a figure that could not be had is NaN in
 * bench_run.value, and bench_result.missing[] has the reason. */
enum bench_metric {
    BENCH_WALL,     /* ms */
    BENCH_USER,     /* ms */
    BENCH_SYSTEM,   /* ms */
    BENCH_CPU,      /* ms: user + system */
    BENCH_PEAK_RSS, /* KiB, of the largest process */
    BENCH_PEAK_PSS, /* KiB, sampled */
    BENCH_FAULTS_MINOR,
    BENCH_FAULTS_MAJOR,
    BENCH_SWITCHES_VOLUNTARY,
    BENCH_SWITCHES_INVOLUNTARY,
    BENCH_READ,         /* bytes through system calls */
    BENCH_WRITTEN,      /* bytes */
    BENCH_STORAGE_READ, /* bytes fetched from storage */
    BENCH_STORAGE_WRITTEN,
    BENCH_CYCLES, /* where there is a PMU */
    BENCH_INSTRUCTIONS,
    BENCH_CACHE_MISSES,
    BENCH_BRANCH_MISSES,
    BENCH_METRICS,
};

struct bench_metric_info {
    const char *name; /* "wall": for --metric */
    const char *key;  /* "wall_ms": in JSON */
    enum unit unit;
    const char *about;
};
extern const struct bench_metric_info bench_metrics[BENCH_METRICS];
/* -1 when there is none of that name (or key). */
int bench_metric_find(const char *name);

struct bench_run {
    double value[BENCH_METRICS];
    double running_share; /* of the counters, 0 to 1; NaN without */
    int status;           /* as from wait4 */
    bool timed_out;
    bool failed; /* by exit status or by the golden check */
    bool output_known;
    char output_sha256[SHA256_TEXT_BYTES];
    uint64_t output_bytes;
    uint64_t start_ns; /* CLOCK_MONOTONIC */
};

struct bench_result {
    const char *command; /* as given */
    const char *name;    /* -n, else the command */
    size_t warmup;       /* runs before those kept */
    VEC(struct bench_run) runs;
    const char *missing[BENCH_METRICS]; /* "n/a: reason"; NULL when measured */
};

/* Where and when results were made; a text is empty when it is not known. */
struct bench_origin {
    const char *time;     /* ISO 8601, UTC: sorts as text */
    const char *revision; /* git */
    const char *branch;
    const char *machine; /* "Intel(R) Xeon(R) Processor, 2 threads": results of two machines are
                          * two series */
};

/* The text of bench_origin.machine. */
const char *bench_machine(struct arena *arena, const char *cpu_model, uint64_t threads);

/* Frees the runs; texts are the arena's of whoever made it. A zeroed result is fine. */
void bench_result_deinit(struct bench_result *result);
