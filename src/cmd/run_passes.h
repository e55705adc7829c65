/* The profiling runs of `whyslow run`: axes that do not disturb each other share a run.
 *
 *     recording.whyslow        CPU samples, waits and locks: together they are the critical path
 *     recording-io.whyslow     system calls and requests
 *     recording-heap.whyslow   allocations
 *
 * A pass that slows the program down by more than 20% is made again, in case the machine was at
 * fault, and then gives way to a cheaper mode (M18). A pass that fails, changes the program's
 * answer or does not fit into the budget makes its axes n/a, with the reason. */
#pragma once

#include "cmd/run_parts.h"

/* Fills in the axes of run->input: a recording, or why there is none. An error is ours. */
MUST_USE int run_passes(struct run *run, struct why *why);

/* M18, level 3: why every allocation is to be counted, not samples of them. NULL: no reason.
 * `recordings` are those made so far; in the arena. */
const char *run_escalate_heap(struct run *run);
