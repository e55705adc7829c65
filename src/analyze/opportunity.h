/* What to do first: confirmed suspicions ranked by what mending them is worth (M28).
 *
 *     impact      recoverable share of the wall time, in twentieths: 1 is 5% of it
 *     confidence  0 … 1: how many independent angles agree, what was lost, how wide the interval is
 *     effort      1 … 5 from a table: kind of remedy × whose code it is
 *     score       impact × confidence / effort; from OPPORTUNITY_WORTH on it is worth doing
 *     ceiling     1 / (1 - share of the critical path): Amdahl's speed-up if its cost went to zero
 *
 * Ranks follow recoverable time on the critical path: the matrix adds confidence and effort, it
 * does not hide what is slow. Only what is hardly believed (confidence below
 * OPPORTUNITY_BELIEVED) counts by as much as it is believed. docs/run-ranking.md has the tables;
 * a test compares them with these. */
#pragma once

#include "analyze/evidence.h"

#define OPPORTUNITY_WORTH 2.0
/* So that a tenth of the wall time is worth a change of a few lines (effort 1). */
#define OPPORTUNITY_IMPACT   20.0
#define OPPORTUNITY_BELIEVED 0.5

/* Fills in what is ranked, and sorts: confirmed ones that can be fixed by rank, those that are
 * context or environment, then dismissed, then not judged. */
MUST_USE int opportunity_rank(const struct evidence *evidence, struct findings *findings);

/* The score is high enough, and something is saved for certain: an interval that begins at 0 does
 * not say that it is worth anything. */
bool opportunity_is_worth(const struct finding *finding);
double opportunity_effort(enum finding_remedy remedy, enum finding_owner owner);
double opportunity_confidence(const struct evidence *evidence, const struct finding *finding);
/* "impact 4.2 × confidence 0.9 / effort 1 = 3.8": the formula with its inputs. */
const char *opportunity_formula(struct arena *arena, const struct finding *finding);

/* All confirmed findings that can be fixed, fixed: what two of them speak of is saved once. */
struct opportunity_sum {
    struct estimate recoverable;
    double cost_ns;   /* of the critical path that any of them speaks of */
    double share;     /* recoverable, of the wall time */
    double ceiling;   /* speed-up if all of cost_ns went away */
    size_t findings;  /* in it */
    size_t uncovered; /* of these: nobody knows of which time they speak; they may count twice */
};
MUST_USE int opportunity_together(const struct evidence *evidence, const struct findings *findings,
                                  struct opportunity_sum *ret); /* 0 or -ENOMEM */

/* The tables, for whoever prints or checks them. */
struct opportunity_step { /* the first row whose bound is not exceeded counts */
    double most;
    double factor;
};
extern const double opportunity_by_support[ANGLES + 1];
extern const struct opportunity_step opportunity_by_width[]; /* of (high - low) / 2 / value */
enum { OPPORTUNITY_WIDTHS = 4 };
