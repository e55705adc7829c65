/* What `scale` found, as the one tree that text, JSON and Markdown draw, and as a plot. */
#pragma once

#include "cmd/cmd.h"
#include "model/bench.h"
#include "stats/growth.h"
#include "stats/summary.h"

enum { SCALE_STEPS_MAX = 32 };

struct scale_step {
    double units;
    const char *command;
    struct bench_result result;
    VEC(double) costs; /* of the metric, one a good run */
    struct summary summary;
};

struct scale {
    struct arena *arena;
    const char *command; /* with {n} */
    enum bench_metric metric;
    bool threads; /* the universal scalability law instead of a growth law */
    bool work_per_thread;
    struct scale_step steps[SCALE_STEPS_MAX];
    size_t count;
    size_t rounds;
    bool budget_spent;
    double left_out[SCALE_STEPS_MAX]; /* sizes too large for the budget; none of theirs is a step */
    size_t left_out_count;
    double left_out_ns;  /* what a run of the smallest of them takes, at least */
    bool left_out_ended; /* it was begun, and ended at that time */
    int signal;          /* that interrupted it, or 0 */
    struct growth_fit laws[GROWTH_LAWS];
    struct scalability_fit scalability;
    const char *fit_na; /* why there is no law; NULL when there is */
    struct value fingerprint;
};

/* Fills the summaries and the fit. */
MUST_USE int scale_fit(struct scale *scale, struct why *why);
struct value scale_value(const struct scale *scale);
/* In the terminal when `out` is given, else as SVG at `path`. */
MUST_USE int scale_plot(const struct scale *scale, FILE *out, unsigned width, const char *path,
                        struct why *why);
