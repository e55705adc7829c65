/* evidence.json: what interpretation takes besides the recordings.
 *
 * With it a run's folder says the same again, without running anything: the medians of the
 * baseline, what each recorded run cost, how the binary was built, what the program said of itself.
 * Not in it, since no verdict rests on them: the fingerprint and the checks. */
#pragma once

#include "analyze/evidence.h"

#define EVIDENCE_SCHEMA "whyslow.evidence/1"

/* Recordings by the names they have in the folder of the run. */
struct value evidence_input_value(struct arena *arena, const struct evidence_input *input);

/* FOLDER/evidence.json and the recordings beside it. What the file does not know is NaN or NULL, as
 * it was when it was written; a recording that is named and not there is found by evidence_load().
 * Everything lives in the arena. */
MUST_USE int evidence_input_read(struct arena *arena, const char *folder,
                                 struct evidence_input *ret, struct why *why);
