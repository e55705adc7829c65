/* The hotspot table of a run (M21): places of all axes side by side, in one currency. */
#pragma once

#include "analyze/evidence.h"

struct run_hotspot {
    uint32_t rank; /* from 1 */
    struct place place;
    const char *location; /* for people: "parse (parse.c:41)" */
    const char *metric;   /* "self CPU", "wait on disk", "span" */
    struct estimate value;
    double share, share_low, share_high; /* of the wall time, 0 … 1 */
    const char *category;                /* "CPU", "CPU/alloc", "I/O", "lock", "wait" */
    const char *artifact, *id;           /* the evidence: "recording.whyslow", "f7" */
    const char *command;                 /* that shows it */
};

struct run_hotspots {
    struct run_hotspot *rows;
    size_t count, left_out;
};

/* The program's own spans (M9) stand among them. Idle never does. 0 or -ENOMEM. */
MUST_USE int run_hotspots_build(struct arena *arena, const struct evidence *evidence, size_t max,
                                struct run_hotspots *ret);
