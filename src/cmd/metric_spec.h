/* What --metric means: a metric of model/bench.h and which part of its runs. */
#pragma once

#include "base/arena.h"
#include "base/macros.h"
#include "base/why.h"
#include "model/bench.h"

struct metric_spec {
    int metric;        /* enum bench_metric */
    double share;      /* 0.5: the median */
    const char *label; /* "p95 of wall time" */
};

/* "wall", "peak_rss", "p95" (of wall), "wall:p95", "user:median", "p99.9". */
MUST_USE int metric_spec_parse(struct arena *arena, const char *text, struct metric_spec *ret,
                               struct why *why);
