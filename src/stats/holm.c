/* Quadratic in the number of questions, which are a handful. */
#include "stats/holm.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

int holm_adjust(const double *p, size_t count, double *adjusted)
{
    if (count > HOLM_MAX)
        return -E2BIG;
    size_t questions = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isnan(p[i]) && !(p[i] >= 0 && p[i] <= 1))
            return -EINVAL;
        questions += !isnan(p[i]);
    }
    double *result = malloc((count ? count : 1) * sizeof(*result));
    bool *done = calloc(count ? count : 1, sizeof(*done));
    if (!result || !done) {
        free(result);
        free(done);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        result[i] = NAN;
    /* Smallest first: times m, then m-1, …; never below the one before, never above 1. */
    double floor = 0;
    for (size_t left = questions; left > 0; left--) {
        size_t least = count;
        for (size_t i = 0; i < count; i++)
            if (!done[i] && !isnan(p[i]) && (least == count || p[i] < p[least]))
                least = i;
        done[least] = true;
        floor = fmin(1, fmax(floor, p[least] * (double)left));
        result[least] = floor;
    }
    for (size_t i = 0; i < count; i++)
        adjusted[i] = result[i];
    free(result);
    free(done);
    return 0;
}
