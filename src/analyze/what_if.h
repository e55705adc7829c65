/* What a run would gain if some waits did not happen: the recording replayed without them.
 *
 * The critical path says what the end had to wait for as it was. It does not say what would be
 * without one of these waits: then another thread may be the last. Here every thread carries the
 * time it would be ahead of itself. A wait that does not happen puts it ahead by its length. A wait
 * that another thread ended ends when that one gets there: it is ahead by no more than that one. A
 * wait for what lies outside of the run takes as long as it took. What the main thread is ahead at
 * its end is gained. Waits too short to be told one by one are spread over the time in which they
 * happened.
 *
 * What would then meet that did not meet before (threads at other locks, too many for the CPUs) is
 * not in it: whoever asks must bound it by the work that is to be done. */
#pragma once

#include "analyze/waits_load.h"

struct what_if {
    const struct waits *waits;
    const float *gone;         /* by wait row: how much of it does not happen, 0 … 1 */
    const double *lighter;     /* by thread: ns of the CPU that are not spent; NULL: none */
    uint64_t start_ns, end_ns; /* when that is; spread evenly */
};

/* In ns of the recording. 0 or -ENOMEM. */
MUST_USE int what_if_gain(struct arena *arena, const struct what_if *what, double *ret_ns);
