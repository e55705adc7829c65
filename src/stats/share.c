/* Wilson's score interval, and differences of what has one. */
#include "stats/share.h"

#include "base/macros.h"

#include <math.h>

static const double z95 = 1.959963984540054;

double effective_count(double sum, double sum_of_squares)
{
    return sum_of_squares > 0 ? sum * sum / sum_of_squares : 0;
}

struct interval share_interval(double share, double count)
{
    share = MIN(MAX(share, 0.0), 1.0);
    if (!(count > 0))
        return (struct interval){share, 0, 1};
    double z2 = z95 * z95 / count;
    double center = (share + z2 / 2) / (1 + z2);
    double half = sqrt(share * (1 - share) * z2 + z2 * z2 / 4) / (1 + z2);
    /* At the ends the bound is the end itself; rounding must not move it. */
    double low = share == 0 ? 0 : MAX(center - half, 0.0);
    double high = share == 1 ? 1 : MIN(center + half, 1.0);
    return (struct interval){share, MIN(low, share), MAX(high, share)};
}

struct interval interval_scale(struct interval interval, double factor)
{
    return (struct interval){interval.value * factor, interval.low * factor,
                             interval.high * factor};
}

struct interval interval_difference(struct interval before, struct interval after)
{
    double change = after.value - before.value;
    double down = hypot(after.value - after.low, before.high - before.value);
    double up = hypot(after.high - after.value, before.value - before.low);
    return (struct interval){change, change - down, change + up};
}
