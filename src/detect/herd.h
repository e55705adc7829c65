/* Threads that are all woken for what one of them gets: shared by the detectors of locks, for who
 * comes from such a wait wants its lock back at once, and all of them stand in line for it. */
#pragma once

#include "detect/detectors.h"

#define HERD_VAIN_MIN 0.5     /* of those that are woken sleep again soon, as is likely */
#define HERD_SURE_MIN 0.25    /* and as is certain */
#define HERD_SOON_NS  50000.0 /* this soon */
#define HERD_TOLD_MIN 0.5     /* of wake-ups whose waker is known: it told all */
enum { HERD_THREADS_MIN = 3, HERD_WAKES_MIN = 100 };

struct herd {
    uint32_t function; /* where they wait; 0: nobody waits for a condition */
    uint32_t row;      /* the longest wait there: speaks for it */
    uint32_t waker;    /* a row with the stack of who told all; 0: nobody did */
    uint32_t threads;
    uint64_t wakes;         /* all */
    uint64_t known, to_all; /* whose waker is known; that told all */
    double work_ns;         /* computed after each, on average; NaN: not known */
    /* Of the wake-ups: at least, since who works longer than HERD_SOON_NS cannot be more than the
     * work allows; at most, since each time one is told, one has work. */
    double vain_low, vain_high;
    double calls_ns, cpu_ns; /* of the baseline: the CPU's in waking and waiting, and all */
    struct estimate recoverable;
    const char *fine; /* why it is none; NULL: it is one */
    bool unknown;     /* it is `fine` only because what decides it was not recorded */
};

/* The one with most wake-ups. 0 or -ENOMEM. */
MUST_USE int herd_find(const struct evidence *evidence, struct arena *arena, struct herd *ret);
