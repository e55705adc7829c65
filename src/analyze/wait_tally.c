/* Quantiles of a tally, from its buckets. */
#include "analyze/waits_load.h"

/* Where a bucket ends. The highest that is not empty ends at the longest wait: what lies beyond
 * nobody waited. */
static double bucket_end_ns(const struct wait_tally *tally, unsigned bucket, bool highest)
{
    double begin_ns = (double)wait_bucket_ns(bucket), max_ns = (double)tally->max_ns;
    double end_ns = bucket + 1 < WAIT_BUCKETS ? (double)wait_bucket_ns(bucket + 1) : max_ns;
    if (highest && max_ns >= begin_ns && max_ns < end_ns)
        end_ns = max_ns;
    return MAX(end_ns, begin_ns);
}

double wait_tally_quantile(const struct wait_tally *tally, double quantile)
{
    uint64_t count = 0, before = 0;
    unsigned highest = 0;
    for (unsigned i = 0; i < WAIT_BUCKETS; i++) {
        count += tally->buckets[i];
        if (tally->buckets[i] > 0)
            highest = i;
    }
    /* One wait is known exactly. */
    if (count <= 1)
        return (double)tally->max_ns;
    double rank = MIN(MAX(quantile, 0.0), 1.0) * (double)count;
    for (unsigned i = 0; i < highest; i++) {
        uint64_t here = tally->buckets[i];
        if (here > 0 && rank <= (double)(before + here)) {
            double begin_ns = i == 0 ? 0 : (double)wait_bucket_ns(i);
            double end_ns = bucket_end_ns(tally, i, false);
            double ns = begin_ns + (end_ns - begin_ns) * (rank - (double)before) / (double)here;
            return MIN(ns, (double)tally->max_ns);
        }
        before += here;
    }
    double begin_ns = highest == 0 ? 0 : (double)wait_bucket_ns(highest);
    double end_ns = bucket_end_ns(tally, highest, true);
    double share = (rank - (double)before) / (double)tally->buckets[highest];
    return MIN(begin_ns + (end_ns - begin_ns) * share, (double)tally->max_ns);
}
