/* The rules of ratio.h; no state, no memory. */
#include "stats/ratio.h"

#include <math.h>

size_t ratio_count_min(double share, double confidence)
{
    size_t least = (size_t)ceil(1 - log2(1 - confidence));
    double beyond = share < 0.5 ? share : 1 - share;
    if (beyond >= 0.5)
        return least;
    /* A hair less, for shares such as 0.95 whose rest is a little under 0.05. */
    size_t tail = (size_t)ceil(RATIO_BEYOND_MIN / beyond - 1e-6);
    return tail > least ? tail : least;
}

enum verdict ratio_verdict(const struct ratio *ratio, double margin, double confidence)
{
    if (!ratio->has_interval)
        return VERDICT_UNKNOWN;
    if (ratio->low >= 1 / (1 + margin) && ratio->high <= 1 + margin)
        return VERDICT_EQUIVALENT;
    if (!(ratio->p < 1 - confidence))
        return VERDICT_UNKNOWN;
    if (ratio->low > 1 + margin)
        return VERDICT_SLOWER;
    if (ratio->high < 1 / (1 + margin))
        return VERDICT_FASTER;
    return VERDICT_UNKNOWN;
}

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = {
        [VERDICT_UNKNOWN] = "unknown",
        [VERDICT_FASTER] = "faster",
        [VERDICT_SLOWER] = "slower",
        [VERDICT_EQUIVALENT] = "equivalent",
    };
    return names[verdict];
}

double ratio_detectable(const struct ratio *ratio, double margin)
{
    if (!ratio->has_interval)
        return NAN;
    /* Half the interval is 1.96 deviations of the estimate; a true change 0.84 deviations
     * further out than margin and half interval clears both in 80% of the cases. */
    double half = (log(ratio->high) - log(ratio->low)) / 2;
    return exp(log1p(margin) + half * (1 + 0.8416 / 1.96)) - 1;
}
