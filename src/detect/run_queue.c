/* The run queue's rows, without what is only the way to a CPU. */
#include "detect/run_queue.h"

#include <math.h>

/* From the histogram: the middle of a bucket stands for it. */
static double delays_sum(const struct wait_tally *tally, uint64_t *ret_count)
{
    double lacks = 0, all = 0;
    *ret_count = 0;
    for (unsigned i = 0; i < WAIT_BUCKETS; i++) {
        double from = i == 0 ? 0 : (double)wait_bucket_ns(i);
        double to = (double)(i + 1 < WAIT_BUCKETS ? wait_bucket_ns(i + 1) : wait_bucket_ns(i));
        double ns = (from + to) / 2 * tally->buckets[i];
        all += ns;
        if (from < RUN_QUEUE_NS_MIN)
            continue;
        lacks += ns;
        *ret_count += tally->buckets[i];
    }
    return all > 0 ? lacks / all * (double)tally->total_ns : 0;
}

struct run_queue run_queue_find(const struct evidence *evidence)
{
    const struct waits *waits = &evidence->waits;
    struct run_queue queue = {0};
    double scale = evidence->path.ns > 0 ? evidence->costs_on_path.ns / (double)evidence->path.ns
                                         : 1;
    for (size_t i = 1; i < waits->profile.thread_count; i++)
        queue.running_ns += (double)waits->threads[i].running_ns;
    for (size_t i = 1; i < waits->row_count; i++) {
        const struct wait_row *row = &waits->rows[i];
        uint64_t count;
        if (row->info.kind != WAIT_RUNQ || row->tally.total_ns == 0)
            continue;
        double ns = delays_sum(&row->tally, &count);
        queue.delay_ns += ns;
        queue.delays += count;
        queue.on_path_ns += scale * (double)evidence->path.waits[i] * ns /
                            (double)row->tally.total_ns;
    }
    queue.mean_ns = queue.delays > 0 ? queue.delay_ns / (double)queue.delays : 0;
    return queue;
}
