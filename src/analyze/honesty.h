/* How far a recording of CPU time can be believed: the line that every result carries.
 *
 * Read from the recording's counters, so that `record` and every later report say the same.
 * What was not measured is NaN here and "n/a: reason" in the value. */
#pragma once

#include "base/arena.h"
#include "model/value.h"
#include "store/reader.h"

struct honesty {
    double samples;
    double complete_pct;
    double truncated_pct;
    double lost;
    double throttled;
    double sampled_cpu_ms;
    double rusage_cpu_ms;
    double overhead_pct;   /* whyslow's own CPU time and the kernel's share, of the target's */
    bool kernel_estimated; /* the kernel's share is in it, from calibration */
};

MUST_USE int honesty_read(struct recording *recording, struct honesty *ret, struct why *why);

/* A map: samples, complete_pct, truncated_pct, lost, throttled, sampled_cpu_ms,
 * rusage_cpu_ms, overhead_pct. */
struct value honesty_value(struct arena *arena, const struct honesty *honesty);
/* The same as one line for people, without a line end. */
const char *honesty_line(struct arena *arena, const struct honesty *honesty);
