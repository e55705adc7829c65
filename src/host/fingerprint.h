/* What machine, what build, what isolation: the facts that make two results
 * comparable or not (mission M2). One row of the table in fingerprint.c a field. */
#pragma once

#include "host/build_info.h"
#include "host/host.h"

#include <stdio.h>

struct fingerprint_input {
    const struct host *host;
    const struct build_info *binary; /* NULL when no target was named */
    const char *binary_na;           /* the reason then */
    int pid;                         /* attach target, 0 if none: its affinity and cgroup count */
    const char *folder;              /* where the work is done: storage and git revision */
    const char *run_id;              /* NULL: one is made */
    const double *resident_share;    /* of the binary in the page cache, 0 to 1, as it was before
                                      * anybody read it; NULL: looked up now */
};

/* A map of maps: cpu, memory, storage, kernel, toolchain, build, isolation,
 * cache, run. Every field is there; one that cannot be known says why. */
struct value fingerprint_read(const struct fingerprint_input *input);

/* A table with field, verdict ("incomparable", "unknown", "caution"), a, b, effect for every field
 * in which the fingerprints of two JSON files differ (each a fingerprint, or any JSON with a
 * "fingerprint" member). *ret_incomparable counts those that forbid a comparison; "unknown" are
 * those that would forbid it, but are known in one file only. */
MUST_USE int fingerprint_diff(struct arena *arena, const char *path_a, const char *path_b,
                              struct value *ret, unsigned *ret_incomparable, struct why *why);

/* How much of a file is in the page cache, 0 to 1. Reading a binary warms it up, so call
 * this before build_info_read(). -errno when the kernel does not tell. */
MUST_USE int fingerprint_resident_share(const char *path, double *ret);

/* "20261115-084512-3f9c": sorts by time, unlikely to clash. */
const char *run_id_make(struct arena *arena);
