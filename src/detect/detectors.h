/* The detectors: one suspicion a file, and one row of the table in detectors.c each.
 *
 * Pure: evidence in, findings out. A detector adds what it confirms and what it looked at and
 * dismisses, each with the numbers that decide it; when there was nothing to look at it adds one
 * that is dismissed and says so. It fires on time that could be saved, not on counts: the gates
 * below hold for all of them and are applied afterwards, by detectors_judge(). */
#pragma once

#include "analyze/evidence.h"

struct detector {
    const char *id;    /* "small_io": stable, in JSON */
    const char *title; /* "many small reads or writes" */
    enum finding_class class;
    enum finding_category category;
    enum finding_remedy remedy;
    unsigned axes; /* bits: without one of these it is not judged */
    /* It says where time goes, not why: it gives way to a confirmed one that explains the same
     * rows (finding.covers), and is dismissed with that one's name. */
    bool generic;
    int (*judge)(const struct evidence *evidence, const struct detector *self,
                 struct findings *ret); /* 0 or -ENOMEM */
};

extern const struct detector *const detectors[]; /* ends with NULL */

/* Gates for all: what is worth less is dismissed with that reason. What cannot be fixed is measured
 * by what it costs. */
#define DETECT_SHARE_MIN 0.01 /* of the wall time recoverable */
#define DETECT_LOST_MAX  0.01 /* of what the axis was to record */
enum { DETECT_OCCURRENCES_MIN = 3 };
/* A generic one gives way when others explain this much of its cost, and save this much of what it
 * would at most: all, if its work were not needed. Two threads that meet at a lock gain half. */
#define DETECT_EXPLAINED_MIN 0.50
#define DETECT_DISPLACES_MIN 0.25

/* From so many evidence sources on that reject it a finding is not confirmed. */
enum { DETECT_REJECTS_MAX = 2 };

/* Asks every detector, those of the environment first (what that took is in the evidence then),
 * puts together what is the same trouble at several places, applies the gates, and lets generic
 * ones give way. 0 or -ENOMEM. */
MUST_USE int detectors_judge(struct evidence *evidence, struct findings *ret);

/* A new finding of `self`, with its category and remedy. NULL when out of memory. */
struct finding *detected(struct findings *findings, const struct detector *self);
/* The same, dismissed, with the reason. */
struct finding *dismissed(struct findings *findings, const struct detector *self, const char *fmt,
                          ...) PRINTF_LIKE(3, 4);
