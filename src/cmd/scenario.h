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
 *     arguments_file = "arguments.0600"      # the words of the command, each ended by a NUL
 *
 * Where the command holds secrets, `command` is what may be shown, and arguments_file names a
 * file of mode 0600 beside it with what is run.
 *
 * Any text may be given as its bytes in hex, under its key and "_hex", which is how one is written
 * that is no UTF-8: command_hex = ["2e2f617070", "ff"].
 *
 * `run` writes one for every run; `bench --scenario` reads them. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "base/why.h"

#include <stdbool.h>
#include <stdint.h>

#define ARGUMENTS_FILE "arguments.0600"

struct scenario {
    char *const *argv; /* NULL: `text` is the command */
    const char *text;
    const char *folder, *input, *metric, *golden;
    uint32_t runs; /* 0: not said */
    bool has_warmup;
    uint32_t warmup;
    uint64_t budget_ns, timeout_ns; /* 0: not said */
    const char *run_id;
    const char *arguments_file; /* relative to the file; when read, `argv` is from there */
    char *const *shown;         /* written as the command, and argv to ARGUMENTS_FILE; or NULL */
};

/* An unknown key, a value of the wrong kind or out of range is refused with its line. */
MUST_USE int scenario_read(struct arena *arena, const char *path, struct scenario *ret,
                           struct why *why);
/* FOLDER/scenario.toml. `folder` of the scenario is left out when NULL. */
MUST_USE int scenario_write(const char *folder, const struct scenario *scenario, struct why *why);
