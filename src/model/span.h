/* What the program says of itself (M9): spans and judgements from perf.profile.* lines. */
#pragma once

#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

struct span { /* numbers that were not said are NaN */
    struct str name;
    double cumulative_us, p50_us, p95_us;
    uint64_t count;
    struct str category, evidence; /* empty: not said */
};

struct span_hypothesis {
    struct str name, evidence;
    bool supports;
};

struct spans {
    struct span *items; /* the most time first */
    size_t count;
    struct span_hypothesis *hypotheses;
    size_t hypothesis_count;
    struct str scenario;  /* empty: not said */
    uint64_t lines, odd;  /* read, and those that made no sense */
    const char *artifact; /* file they were read from; NULL: the program's output */
};
