/* From sums of samples to intervals; see heap_sure.h. */
#include "analyze/heap_sure.h"

#include "base/macros.h"

#include <math.h>

#define Z95       1.96
#define UNSEEN_95 3.0 /* e^-3 is 5%: so many of the largest weights may well have hit nothing */
enum { SMALLEST = 16 };

/* What a sample of that size stands for. */
static double weight(const struct heap_sure *sure, double size)
{
    return 1 / -expm1(-fmax(size, 1) / (double)sure->every);
}

static double bucket_size(size_t bucket)
{
    return bucket == 0 ? 0 : ldexp(1, (int)bucket - 1);
}

/* Of a gamma distribution with that shape, and scale 1. */
static double quantile(double shape, double z)
{
    double root = 1 - 1 / (9 * shape) + z / (3 * sqrt(shape));
    return root > 0 ? shape * root * root * root : 0;
}

/* `unseen`: the largest weight that one more sample may have. */
static struct interval weighted(double sum, double variance, double unseen)
{
    struct interval interval = {sum, sum, sum};
    if (!(sum > 0))
        return (struct interval){0, 0, UNSEEN_95 * unseen};
    if (variance > 0)
        interval.low = variance / sum * quantile(sum * sum / variance, -Z95);
    double scale = (variance + unseen * unseen) / (sum + unseen);
    interval.high = scale * quantile((sum + unseen) / scale, Z95);
    return (struct interval){sum, fmin(interval.low, sum), fmax(interval.high, sum)};
}

struct heap_sure heap_sure_of(const struct heap_sums *sums, uint64_t every)
{
    struct heap_sure sure = {.every = every, .wide = 1};
    if (every == 0)
        return sure;
    double variance = 0, smallest = SMALLEST;
    for (size_t i = HEAP_SIZE_BUCKETS; i-- > 0;) {
        double stands = weight(&sure, bucket_size(i));
        variance += (double)sums->sizes[i] * (stands - 1);
        if (sums->sizes[i] > 0)
            smallest = fmin(smallest, bucket_size(i));
    }
    sure.unseen = weight(&sure, smallest);
    if (sums->all.calls_variance > 0)
        sure.wide = fmax(1, variance / sums->all.calls_variance);
    return sure;
}

/* Of those that were seen, and then those that were not may all be of it, or none. */
static struct interval share_within(const struct heap_sure *sure, double part, double all,
                                    double number)
{
    double missed = UNSEEN_95 * sure->unseen;
    struct interval seen = share_interval(part / all, number);
    return (struct interval){part / all, fmin(seen.low, part / (all + missed)),
                             fmax(seen.high, (part + missed) / (all + missed))};
}

static double bytes_variance(const struct heap_sure *sure, const struct heap_figures *figures,
                             double bytes)
{
    return fmin(figures->variance, (double)sure->every * bytes);
}

static double calls_variance(const struct heap_sure *sure, const struct heap_figures *figures,
                             double calls)
{
    double all = (double)MAX(figures->allocations, 1u);
    return figures->calls_variance * sure->wide * calls / all;
}

struct interval heap_sure_bytes(const struct heap_sure *sure, const struct heap_figures *figures,
                                int64_t bytes)
{
    double sum = (double)MAX(bytes, 0);
    if (sure->every == 0)
        return (struct interval){(double)bytes, (double)bytes, (double)bytes};
    return weighted(sum, bytes_variance(sure, figures, sum), (double)sure->every);
}

struct interval heap_sure_calls(const struct heap_sure *sure, const struct heap_figures *figures,
                                int64_t calls)
{
    double sum = (double)MAX(calls, 0);
    if (sure->every == 0)
        return (struct interval){(double)calls, (double)calls, (double)calls};
    struct interval interval = weighted(sum, calls_variance(sure, figures, sum), sure->unseen);
    double seen = sum > 0 ? 1 : 0; /* what was estimated from something is something */
    return (struct interval){sum, fmax(seen, ceil(interval.low)), ceil(interval.high)};
}

struct interval heap_sure_temporary(const struct heap_sure *sure,
                                    const struct heap_figures *figures)
{
    double all = (double)MAX(figures->allocations, 1u);
    double share = fmin((double)figures->temporary / all, 1);
    if (sure->every == 0)
        return (struct interval){share, share, share};
    double squares = calls_variance(sure, figures, all) + all;
    return share_within(sure, share * all, all, effective_count(all, squares));
}

static bool is_some(double sum, double variance)
{
    return sum > 0 && sum > Z95 * sqrt(variance);
}

bool heap_sure_is_some(const struct heap_sure *sure, const struct heap_figures *figures,
                       int64_t bytes)
{
    double sum = (double)bytes;
    return sure->every == 0 || is_some(sum, bytes_variance(sure, figures, sum));
}

bool heap_sure_are_some(const struct heap_sure *sure, const struct heap_figures *figures,
                        uint64_t calls)
{
    double sum = (double)calls;
    return sure->every == 0 || is_some(sum, calls_variance(sure, figures, sum));
}

bool heap_sure_is_change(const struct heap_sure *sure, int64_t first_bytes, int64_t last_bytes)
{
    double bytes = (double)MAX(first_bytes, 0) + (double)MAX(last_bytes, 0);
    return is_some(fabs((double)last_bytes - (double)first_bytes), (double)sure->every * bytes);
}

/* ---- halves ---- */

/* `squares`: sums of squared weights of each bucket. Those that no sample hit lie in the bucket
 * `lowest`, or anywhere. */
#define ANYWHERE SIZE_MAX
static struct heap_half half_of(const struct heap_sure *sure, const uint64_t *buckets,
                                const double *squares, size_t count, size_t lowest)
{
    struct heap_half half = {.at = 0, .low = count, .high = count};
    double all = 0, all_squares = sure->unseen * sure->unseen, seen = 0;
    double below = all_squares;
    for (size_t i = 0; i < count; i++) {
        all += (double)buckets[i];
        all_squares += squares[i];
    }
    bool found = false;
    for (size_t i = 0; all > 0 && i < count; i++) {
        seen += (double)buckets[i];
        below += squares[i];
        double share = fmin(seen / all, 1), rest = 1 - share;
        double number = effective_count(all, all_squares);
        double variance = (rest * rest * below + share * share * (all_squares - below)) / all / all;
        if (variance > 0 && share * rest > 0)
            number = fmin(number, share * rest / variance);
        struct interval interval = {share, share, share};
        if (sure->every > 0)
            interval = share_within(sure, share * all, all, number);
        if (sure->every > 0 && lowest != ANYWHERE)
            interval.low = share_interval(share, number).low;
        bool possible = seen > 0 || i >= lowest || lowest == ANYWHERE;
        if (!found && share >= 0.5)
            half.at = i;
        found = found || share >= 0.5;
        if (half.low == count && possible && interval.high >= 0.5)
            half.low = i;
        if (half.high == count && interval.low >= 0.5)
            half.high = i;
    }
    half.known = half.high < count;
    half.low = MIN(half.low, half.at);
    return half;
}

struct heap_half heap_sure_half_size(const struct heap_sure *sure, const struct heap_sums *sums)
{
    double squares[HEAP_SIZE_BUCKETS];
    size_t lowest = 0;
    for (size_t i = 0; i < HEAP_SIZE_BUCKETS; i++)
        squares[i] = (double)sums->sizes[i] * (sure->every ? weight(sure, bucket_size(i)) : 1);
    while (bucket_size(lowest + 1) < SMALLEST && sums->sizes[lowest] == 0)
        lowest++;
    return half_of(sure, sums->sizes, squares, HEAP_SIZE_BUCKETS, lowest);
}

/* How long a piece lives is not told by its size: each stands for as many as any. */
struct heap_half heap_sure_half_life(const struct heap_sure *sure, const struct heap_sums *sums)
{
    double squares[HEAP_LIFE_BUCKETS], all = (double)MAX(sums->all.allocations, 1u);
    double each = (calls_variance(sure, &sums->all, all) + all) / all;
    for (size_t i = 0; i < HEAP_LIFE_BUCKETS; i++)
        squares[i] = (double)sums->lives[i] * each;
    return half_of(sure, sums->lives, squares, HEAP_LIFE_BUCKETS, ANYWHERE);
}
