/* The ledger of hypotheses (M22): every classic explanation for a slow run, stated and judged.
 *
 * Three independent angles look at each: sampling (CPU samples), tracing (waits and calls, one by
 * one), counting (what the kernel counted over the plain runs of the baseline). All three must
 * agree, and a finding about the same thing must be confirmed, before it is called confirmed: the
 * word means one thing everywhere. Where they do not agree, that is shown. */
#pragma once

#include "analyze/evidence.h"

enum ledger_verdict {
    LEDGER_CONFIRMED, /* all three angles support it, and a finding that is confirmed is about it */
    LEDGER_SUPPORTED, /* those that can say support it */
    LEDGER_DISPUTED,  /* one supports, or a finding is confirmed; another angle rejects */
    LEDGER_REJECTED,  /* or its finding is dismissed */
    LEDGER_OPEN,      /* nobody can say */
};
const char *ledger_verdict_name(enum ledger_verdict verdict); /* "confirmed" */

struct hypothesis {
    const char *id;        /* "hot_loop": stable */
    const char *statement; /* "one function has the CPU" */
    enum ledger_verdict verdict;
    struct angle_word angles[ANGLES];
    double share;            /* of the wall time it would explain; NaN */
    const char *finding;     /* about the same: "hot_lock: confirmed"; NULL: nobody looks for it */
    const char *from_target; /* what the program itself said of it (M9); NULL */
};

struct ledger {
    struct hypothesis *rows; /* the largest share first, then in the order of the table */
    size_t count;
};

MUST_USE int ledger_build(struct arena *arena, const struct evidence *evidence,
                          const struct findings *findings, struct ledger *ret);

/* The bounds of the n-th explanation, from 0, as shares of the wall time; false beyond the last. */
bool ledger_bounds(size_t at, const char **ret_id, double *ret_supports, double *ret_rejects);
