/* See looks.h. */
#include "stats/looks.h"

/* The last look gets the most: it has the most runs, and most answers that are hard to give are
 * given there. */
const struct look looks[LOOKS] = {{0.25, 0.01}, {0.5, 0.015}, {1, 0.025}};

enum look_answer look_decide(const struct ratio *ratio, double p, double threshold, double alpha)
{
    if (!ratio->has_interval)
        return LOOK_OPEN;
    /* Exactly the threshold, as counts may be, is not beyond it, whatever rounding makes of it. */
    if (ratio->high < threshold * (1 - 1e-9))
        return LOOK_PASS;
    return ratio->low > threshold * (1 + 1e-9) && p < alpha ? LOOK_FAIL : LOOK_OPEN;
}
