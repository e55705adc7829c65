/* A folder instead of a command (M8): what its build says how to exercise it.
 *
 * The user's own scenario.toml comes first, then a benchmark of the build, then its tests, then a
 * script that looks like one for the whole. Found is only what could be run as it stands. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "base/why.h"

struct discovery {
    const char *scenario; /* path of scenario.toml; then nothing else is filled */
    const char *command;  /* to be run in the folder; words, no shell */
    const char *why;      /* "Makefile has a target 'bench'" */
    const char *check;    /* a functional check apart from it; NULL: its own exit status */
    const char *check_why;
};

/* Nothing found: an error that says what was looked for, and what was there but cannot be run. */
MUST_USE int run_discover(struct arena *arena, const char *folder, struct discovery *ret,
                          struct why *why);
