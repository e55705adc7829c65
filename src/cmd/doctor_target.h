/* What `--for BINARY|PID` means. */
#pragma once

#include "base/arena.h"
#include "base/why.h"

struct doctor_target {
    const char *path; /* a file that can be opened from here */
    int pid;          /* 0 for a binary that does not run yet */
};

/* A number is a process (a file of that name is "./123"); a name with a slash is a file;
 * any other name is looked for on PATH, as a shell would. */
MUST_USE int doctor_target_find(struct arena *arena, const char *text, struct doctor_target *ret,
                                struct why *why);
