/* Stored benchmark results, read back: ours (schema whyslow.bench/1) and
 * hyperfine's own export.
 *
 * The file may be anybody's: every number is checked to be one, every list is
 * bounded, and what is refused is named with its place ("results[2].runs[14].wall_ms").
 * Writing is the report's business: the JSON is drawn from the one report value. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "base/vec.h"
#include "base/why.h"
#include "model/bench.h"

#define BENCH_SCHEMA "whyslow.bench/1"

enum {
    BENCH_FILE_BYTES_MAX = 512 * 1024 * 1024,
    BENCH_FILE_RESULTS_MAX = 10000,
    BENCH_FILE_RUNS_MAX = 1000000, /* of one result */
};

struct bench_file {
    const char *path;           /* as given */
    bool hyperfine;             /* wall time a run and nothing else, and no fingerprint */
    bool has_fingerprint;       /* fingerprint_diff() takes the file as it is */
    struct bench_origin origin; /* from the fingerprint; empty texts where it does not say */
    VEC(struct bench_result) results;
};

/* Texts live in the arena, runs until bench_file_deinit(). */
MUST_USE int bench_file_read(struct arena *arena, const char *path, struct bench_file *ret,
                             struct why *why);
void bench_file_deinit(struct bench_file *file);
