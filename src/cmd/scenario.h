/* scenario.toml (M1): what is measured, as a file that lives beside the program.
 *
 *     command = ["./app", "--size", "10"]    # or one text: "./app --size 10"
 *     folder = "."                           # to work in; relative to the file
 *     input = "big.json"                     # its stdin; "/dev/null" for none
 *     metric = "wall"
 *     runs = 20                              # left out: until it is certain
 *     warmup = 1                             # left out: as long as it takes
 *     budget_s = 60.0                        # time for measuring
 *     timeout_s = 600.0                      # of one run
 *     golden = "sha256:…"                    # or a file, or a check command
 *
 * `run` writes one for every run; `bench --scenario` reads them. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "base/why.h"

#include <stdbool.h>
#include <stdint.h>

struct scenario {
    char *const *argv; /* NULL: `text` is the command */
    const char *text;
    const char *folder, *input, *metric, *golden;
    uint32_t runs; /* 0: not said */
    bool has_warmup;
    uint32_t warmup;
    uint64_t budget_ns, timeout_ns; /* 0: not said */
    const char *run_id;
};

/* An unknown key, a value of the wrong kind or out of range is refused with its line. */
MUST_USE int scenario_read(struct arena *arena, const char *path, struct scenario *ret,
                           struct why *why);
/* FOLDER/scenario.toml. `folder` of the scenario is left out when NULL. */
MUST_USE int scenario_write(const char *folder, const struct scenario *scenario, struct why *why);
