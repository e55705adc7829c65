/* The result of `whyslow run` as trees: for the terminal, for JSON, for the artifacts. */
#pragma once

#include "cmd/run_parts.h"

struct run_facts {
    struct arena *arena;
    const char *command; /* as typed, quoted where needed */
    const char *binary;  /* the file that was run */
    const char *run_id;
    const char *folder;
    const char *metric; /* of the scenario */
    uint32_t runs_asked;
    uint64_t budget_ns;
    const struct baseline *baseline;
    const struct evidence_input *input; /* the axes: recorded, or why not */
    const struct value *fingerprint;
    const struct value *checks; /* a table */
    unsigned checks_failed;
    uint64_t own_cpu_ns;                                      /* whyslow and its launchers */
    const char *const *marks, *const *missing, *const *notes; /* end with NULL */
    const struct interpretation *said;                        /* NULL: it did not come to that */
};

/* The report of the command; schema "whyslow.run/1". */
struct value run_report_make(const struct run_facts *facts);
/* baseline.json; schema "whyslow.baseline/1". */
struct value run_baseline_make(const struct run_facts *facts);

/* For struct run_about; in the arena. */
const char *run_stability_text(struct arena *arena, const struct baseline *baseline);
const char *run_runs_text(const struct run *run);
const char *run_golden_text(const struct run *run);
uint64_t run_own_cpu_ns(const struct run *run);
