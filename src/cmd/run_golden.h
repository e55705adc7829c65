/* Whether a run of the scenario gave the right answer. */
#pragma once

#include "cmd/golden.h"
#include "target/spawn.h"

#include <limits.h>

struct run_golden {
    const struct golden *golden;
    struct arena *arena;
    const char *output_path; /* where a run prints to, for a check command; NULL: it is hashed */
    char path[PATH_MAX];     /* its memory */
};

/* Makes the file for a check command. */
MUST_USE int run_golden_open(struct run_golden *golden, struct arena *arena,
                             const struct golden *given, struct why *why);
/* Removes it. */
void run_golden_close(struct run_golden *golden);
/* 0: it is right. 1 with `how` it is not: "printed something else than …". */
int run_golden_judge(const struct run_golden *golden, const struct spawn_result *result, char *how,
                     size_t size);
