/* The files in which a run says what it found: hotspots, ledger, suspicions, the map of steps, the
 * whole result as one object, and the hand-off. docs/run-artifacts.md describes them. */
#pragma once

#include "analyze/interpretation.h"
#include "present/renderers.h"

struct run_file {
    const char *name;     /* in the folder of the run */
    const char *about;    /* for the list of artifacts */
    const char *renderer; /* "json", "yaml" */
    const char *schema;
    struct value (*make)(struct arena *arena, const struct interpretation *run);
    /* Instead of a value: draws itself. Write errors are the stream's. */
    void (*draw)(struct arena *arena, const struct interpretation *run, FILE *out);
};

extern const struct run_file run_files[]; /* ends with a NULL name */

/* What every file of these begins with: run, command, wall time. A map. */
struct value run_file_begin(struct arena *arena, const struct interpretation *run);
struct value run_hotspots_file(struct arena *arena, const struct interpretation *run);
struct value run_ledger_file(struct arena *arena, const struct interpretation *run);
struct value run_suspicions_file(struct arena *arena, const struct interpretation *run);
struct value run_map_file(struct arena *arena, const struct interpretation *run);
/* M23: the whole result as one object. */
struct value run_profile_result(struct arena *arena, const struct interpretation *run);
void run_handoff_draw(struct arena *arena, const struct interpretation *run, FILE *out);
