/* Which law a cost follows as the work grows, and how a speed-up ends with threads.
 *
 * Growth: cost(n) = a + b*f(n), a and b not negative, fitted by least squares of
 * the relative error over the medians of the steps, so that the small steps
 * count as much as the large ones. Whether it grows at all is weighed by Akaike's
 * criterion for small samples. By which law is weighed with the error that no run
 * takes away: programs keep to laws only to GROWTH_SYSTEMATIC of what grows (caches,
 * allocators, input that is no average), so that laws that differ by less over the
 * steps at hand share the weight, however exact the medians are. Weights add up to 1.
 * Since medians of few runs stray, the runs of every step are also drawn anew many
 * times: `wins` is the share of these draws in which a law came out first.
 *
 * Threads: the universal scalability law, throughput(n) =
 * rate*n / (1 + contention*(n-1) + coherency*n*(n-1)), none of the three
 * negative and contention at most 1, since it is a share of the work, fitted the same way. */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum growth_law {
    GROWTH_CONSTANT,
    GROWTH_LOG,
    GROWTH_LINEAR,
    GROWTH_N_LOG_N,
    GROWTH_QUADRATIC,
    GROWTH_CUBIC,
    GROWTH_LAWS,
};

const char *growth_law_name(enum growth_law law); /* "n log n" */

#define GROWTH_SYSTEMATIC 0.1
enum { GROWTH_STEPS_MIN = 4, GROWTH_STEPS_MAX = 64, GROWTH_DRAWS = 500 };
enum { GROWTH_RUNS_MIN = 2 /* of every step: drawn anew, a single run always says the same */ };

/* One step: how many units, and the cost of every run at it. */
struct growth_step {
    double units;        /* > 0 */
    const double *costs; /* > 0 */
    size_t runs;         /* >= 1 */
};

struct growth_fit {
    enum growth_law law;
    double base;   /* a */
    double factor; /* b */
    double weight; /* what the steps can tell, 0 to 1 */
    double wins;   /* share of the draws, 0 to 1; NaN under GROWTH_RUNS_MIN runs of a step */
    double error;  /* root mean square of the relative error, 0.05 is 5% */
};

/* `ret` gets all laws, the best first. -EINVAL when a step makes no sense, -ERANGE under
 * GROWTH_STEPS_MIN different sizes. */
MUST_USE int growth_fit(const struct growth_step *steps, size_t count, uint64_t seed,
                        struct growth_fit ret[GROWTH_LAWS]);
double growth_at(const struct growth_fit *fit, double units);
/* What a step will cost at least, from those before in the order of their sizes: it goes on as it
 * grew from the last but one to the last, or all along if that is less: one run each is noisy. */
double growth_next(const double *units, const double *costs, size_t count, double next_units);

struct scalability_fit {
    double rate;                            /* work per unit of cost of one thread */
    double contention;                      /* 0 to 1: none to all; 0.05 limits it to 20 times */
    double coherency;                       /* 0: never gets slower with more threads */
    bool has_interval;                      /* GROWTH_RUNS_MIN runs of every step; else NaN */
    double contention_low, contention_high; /* 95%, by drawing runs anew */
    double coherency_low, coherency_high;
    double two_low, two_high; /* 95% of the speed-up of two threads */
    bool has_peak;
    double peak; /* threads beyond which it gets slower, at least 1 */
    double error;
};

/* Costs are the time for `work(n)` at n threads: the same work at every step, or with
 * `per_thread` n times it. */
MUST_USE int scalability_fit(const struct growth_step *steps, size_t count, bool per_thread,
                             uint64_t seed, struct scalability_fit *ret);
/* Speed-up over one thread. */
double scalability_at(const struct scalability_fit *fit, double threads);
/* The whole number of threads that is fastest, where there is a peak. */
double scalability_best(const struct scalability_fit *fit);
