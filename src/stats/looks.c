/* See looks.h. */
#include "stats/looks.h"

/* The last look gets the most: it has the most runs, and most answers that are hard to give are
 * given there. */
const struct look looks[LOOKS] = {{0.25, 0.01}, {0.5, 0.015}, {1, 0.025}};

enum look_answer look_decide(const struct ratio *ratio, double p, double threshold, double alpha)
{
    if (!ratio->has_interval)
        return LOOK_OPEN;
    if (ratio->high < threshold)
        return LOOK_PASS;
    return ratio->low > threshold && p < alpha ? LOOK_FAIL : LOOK_OPEN;
}
