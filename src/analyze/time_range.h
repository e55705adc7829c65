/* "1.5..3", "10%..20%", "..2", "50%..": a part of a recording as people type it. */
#pragma once

#include "base/str.h"
#include "base/why.h"

#include <stdint.h>

/* Seconds (or durations such as 500ms) since the first sample, or percent of the whole.
 * An end left out is that of the recording. The result is in nanoseconds since the first
 * sample, and never both 0 (which means "all" to profile_load). */
MUST_USE int time_range_parse(const char *text, uint64_t duration_ns, uint64_t *ret_from_ns,
                              uint64_t *ret_to_ns, struct why *why);
