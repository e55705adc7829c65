/* How long threads that were ready waited for a CPU. The moment that it takes to be put on one that
 * is free is not meant: on a virtual machine that is some tens of microseconds. */
#pragma once

#include "analyze/evidence.h"

#define RUN_QUEUE_NS_MIN 500000 /* shorter delays are the way to a CPU, not the lack of one */

struct run_queue {
    double delay_ns, running_ns; /* of all threads; of the recording */
    uint64_t delays;
    double mean_ns;
    double on_path_ns; /* of the baseline */
};

struct run_queue run_queue_find(const struct evidence *evidence);
