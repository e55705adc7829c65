/* A series of a recording becomes a profile (model/profile.h). */
#pragma once

#include "base/arena.h"
#include "model/profile.h"
#include "store/reader.h"

/* A chunk of some dozen bytes may unpack to 64 Ki samples: a small file can hold more than any
 * memory. As many as this take about two gigabytes, and no viewer shows them. */
enum { PROFILE_SAMPLES_MAX = 1 << 25 };

struct profile_opts {
    const char *series;      /* NULL: "cpu" */
    bool samples;            /* load single samples too */
    uint64_t samples_max;    /* more of them are refused; 0: PROFILE_SAMPLES_MAX */
    uint64_t from_ns, to_ns; /* since the first sample; 0 and 0: all */
    const char *filter;      /* only samples of a thread, process or image whose name contains it */
    bool names_only;         /* a series that is missing or without a sample is fine */
    const char *focus;       /* only samples with a function that contains it, cut to begin there */
};

/* A recording without that series, or without a sample in it, is an error with the reason,
 * unless `names_only` says that it is not about samples. */
MUST_USE int profile_load(struct arena *arena, struct recording *recording,
                          const struct profile_opts *opts, struct profile *ret, struct why *why);
