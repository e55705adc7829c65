/* From the runs of two sides to what may be said about them, metric by metric.
 *
 * The metric that was asked about is judged by its own p. The others come along
 * unasked, so that theirs are corrected for being many (Holm). */
#pragma once

#include "cmd/metric_spec.h"
#include "model/bench.h"
#include "stats/ratio.h"

struct ab_question {
    struct metric_spec spec;
    bool interleaved; /* runs of the same index belong to one block */
    double margin;    /* 0.01 for 1% */
    double confidence;
    double threshold; /* the ratio that p is about; 1 in a comparison */
};

struct ab_line {
    const char *na; /* why there is no ratio, without "n/a: "; NULL when there is one */
    double a, b;    /* of each side, at the share asked for; NaN: not known */
    struct ratio ratio;
    double p_adjusted;
    enum verdict verdict;
    double detectable; /* NaN without an interval */
};

struct ab_answer {
    struct ab_line asked;
    struct ab_line lines[BENCH_METRICS]; /* medians */
};

/* One metric; texts live in the arena. */
MUST_USE int ab_line_make(struct arena *arena, const struct ab_question *question,
                          const struct bench_result *a, const struct bench_result *b,
                          struct ab_line *ret, struct why *why);
/* All of them. */
MUST_USE int ab_answer_make(struct arena *arena, const struct ab_question *question,
                            const struct bench_result *a, const struct bench_result *b,
                            struct ab_answer *ret, struct why *why);
