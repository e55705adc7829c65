/* What the files of profile_load share; nobody else includes this.
 *
 * profile_load.c     the tables of a recording as arrays
 * profile_names.c    names for what has none: functions made up, threads grouped
 * profile_samples.c  totals of a time range, single samples in the order of time
 * profile_narrow.c   filter and focus */
#pragma once

#include "analyze/profile_load.h"
#include "base/vec.h"

struct loader {
    struct arena *arena;
    struct recording *recording;
    const struct profile_opts *opts;
    const struct recorded_series *series;
    struct profile *profile;
    struct why *why;
    struct str command; /* as document "target" has it */
    /* Vectors grow with the rows that are really there: the highest id may lie. */
    VEC(struct str) texts; /* by id */
    VEC(struct profile_process) processes;
    VEC(struct profile_thread) threads;
    VEC(struct image_info) images;
    VEC(struct profile_mapping) mappings;
    VEC(struct profile_function) functions;
    VEC(struct profile_place) places;
    VEC(struct profile_frame) frames;
    VEC(uint32_t) frame_names; /* text ids, beside frames */
    VEC(struct profile_total) totals;
};

/* Copies an array into the arena; NULL when out of memory. */
void *loader_keep(struct loader *loader, const void *data, size_t count, size_t size);

/* Every frame gets a place: from what it is, where the recording has no location for it. */
MUST_USE int profile_name_frames(struct loader *loader);
MUST_USE int profile_group_threads(struct loader *loader);
/* Which rows are of one thread. */
MUST_USE int profile_join_threads(struct loader *loader);
/* Totals of the time range, and the single samples if asked for. */
MUST_USE int profile_read_samples(struct loader *loader);
/* Drops what filter and focus leave out, from totals and samples. */
MUST_USE int profile_narrow(struct loader *loader);
