/* From what was recorded to what is said: evidence → detectors → ranking → ledger. */
#pragma once

#include "analyze/interpretation.h"

/* Everything lives in the arena. */
MUST_USE int run_interpret(struct arena *arena, const struct evidence_input *input,
                           const struct run_about *about, struct interpretation *ret,
                           struct why *why);
