/* A gate that may answer before its budget is spent, without being wrong more often.
 *
 * Looking again and again until the answer pleases finds differences where there are none.
 * So there are LOOKS looks, at fixed shares of the budget, and the 5% of wrong answers that
 * are allowed are dealt out among them beforehand: whatever the looks have to do with each
 * other, all together err no more than the sum. */
#pragma once

#include "stats/ratio.h"

enum { LOOKS = 3 };

struct look {
    double share; /* of the budget */
    double alpha; /* of wrong answers; the interval's confidence is 1-alpha */
};

extern const struct look looks[LOOKS];

enum look_answer { LOOK_OPEN, LOOK_PASS, LOOK_FAIL };

/* Fail: the whole interval is beyond the threshold (1.1 is 10% more), and `p`, the ratio's own or
 * the one corrected for several benchmarks, is below alpha. Pass: the whole interval is below. */
enum look_answer look_decide(const struct ratio *ratio, double p, double threshold, double alpha);
