/* What the files of a run share: see run_files.h.
 *
 * run_map.c      the map of steps, and what is said of the whole
 * run_result.c   the whole result as one object
 * run_handoff.c  the hand-off
 * run_validate.c the commands that check an effect */
#pragma once

#include "present/run_files.h"
#include "present/run_tables.h"

/* test_command, baseline, steps, and the three bottleneck fields, into a map. */
void run_map_put(struct arena *arena, const struct interpretation *run, struct value *map);
/* bottleneck_classification, bottleneck_detail, top_bottlenecks. */
void run_bottlenecks_put(struct arena *arena, const struct interpretation *run, struct value *map);

/* The commands that check what mending a finding did. Keeping the program as it was makes the
 * stronger check: both run side by side. Where it is no file of the user's (an interpreter, a
 * program of the distribution), a result is kept instead. */
struct run_validation {
    const char *before;  /* to be typed before anything is changed; NULL: nothing */
    const char *compare; /* afterwards: by how much, and how surely */
    const char *gate;    /* in CI: may it go in */
};
struct run_validation run_validate(struct arena *arena, const struct interpretation *run);
