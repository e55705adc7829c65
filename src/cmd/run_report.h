/* The result of `whyslow run` as trees: for the terminal, for JSON, for the artifacts. */
#pragma once

#include "cmd/baseline.h"
#include "collect/usage.h"
#include "model/value.h"

/* What the recorded run brought; `na` says why there is none. */
struct run_recorded {
    const char *na;
    struct spawn_result result;
    struct usage_counts usage;
    uint64_t samples;
    uint64_t dropped;
};

struct run_facts {
    struct arena *arena;
    const char *command; /* as typed, quoted where needed */
    const char *binary;  /* the file that was run */
    const char *run_id;
    const char *folder;
    uint32_t runs_asked;
    uint64_t budget_ns;
    const struct baseline *baseline;
    const struct run_recorded *recorded;
    const struct value *fingerprint;
    const struct value *checks; /* a table */
    unsigned checks_failed;
    uint64_t own_cpu_ns; /* whyslow and its launchers */
};

/* The report of the command; schema "whyslow.run/1". */
struct value run_report_make(const struct run_facts *facts);
/* baseline.json; schema "whyslow.baseline/1". */
struct value run_baseline_make(const struct run_facts *facts);
