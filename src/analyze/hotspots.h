/* Functions ranked by what they cost.
 *
 * Self: samples whose innermost function it is. Total: samples with it anywhere in the stack,
 * each counted once, also under recursion. The interval is that of the share of samples
 * (stats/share.h); the effective number of samples is worked out from the totals, taking the
 * weights inside one total as equal (the sampler's differ by ±10%, which is 0.3% of it). */
#pragma once

#include "base/arena.h"
#include "base/why.h"
#include "model/profile.h"
#include "stats/share.h"

enum { HOTSPOT_GROUPS_MAX = 4 };

struct hotspot {
    uint32_t function; /* 0: samples without a stack */
    uint64_t self_weight, self_count;
    uint64_t total_weight, total_count;
    struct interval self_share;  /* 0 … 1 */
    struct interval total_share; /* 0 … 1 */
    struct str file;             /* of the hottest line, else where it is declared */
    uint32_t line;
    const char *category; /* "cpu", "cpu/alloc"; in the arena */
    /* Thread groups with self weight in it, heaviest first. */
    uint32_t groups[HOTSPOT_GROUPS_MAX];
    uint32_t group_count; /* how many there are in all; the array holds the first */
};

struct hotspots {
    const struct profile *profile;
    struct hotspot *rows; /* by self weight, then total weight, then id */
    size_t count;         /* functions seen at all */
    double effective_samples;
};

MUST_USE int hotspots_build(struct arena *arena, const struct profile *profile,
                            struct hotspots *ret);
/* NULL when the function was not seen. */
const struct hotspot *hotspots_find(const struct hotspots *hotspots, uint32_t function);
/* (Σw)²/Σw² over the samples of a profile. */
double profile_effective_samples(const struct profile *profile);

/* "f12", "12" or a name; -ENOENT or, with the ids in the remedy, -EINVAL (ambiguous) filled
 * in `why`. A name that occurs in several images may be given as "image:name"; a part of a name is
 * enough where one function alone has it. Only functions that were seen can be meant. */
MUST_USE int hotspots_choose(const struct hotspots *hotspots, const char *text, uint32_t *ret,
                             struct why *why);
