/* PMU counters around one run: opened on a held process, read at its end.
 *
 * They count user space only, so that no privilege is needed beyond what
 * perf_event_paranoid 2 gives, and are inherited by children. When there are more
 * events than counters the kernel takes turns: `running_share` says how much of
 * the time was counted, and the figures are scaled by it. */
#pragma once

#include "base/macros.h"
#include "model/bench.h"

enum { COUNTERS_MAX = 4 };

struct counters {
    int fds[COUNTERS_MAX]; /* -1: this one could not be opened */
    int error;             /* errno of the first that could not; 0 if all could */
};

/* Opens what can be opened; 0, or -errno when nothing can (no PMU, not permitted). */
MUST_USE int counters_open(struct counters *ret, int pid);
/* Fills the figures of the counters that were open; others stay as they are. */
void counters_read(const struct counters *counters, struct bench_run *run);
void counters_close(struct counters *counters);
/* "n/a: " and why there are no counters. */
const char *counters_reason(int error);
