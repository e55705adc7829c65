/* The recording that is meant when none is named: the newest one here. */
#pragma once

#include "base/arena.h"
#include "base/why.h"

/* Of the files *.whyslow and of what the last run in whyslow-out/ left, the newest that holds
 * `series` ("cpu", "offcpu", "io", "heap"), or, when none does, the newest: its reader says what it
 * lacks. Says which one it took. One of another user is not meant, nor one that cannot be read:
 * when there is no other, that is the error, with its name. *ret is NULL when there is none. */
MUST_USE int newest_recording(struct arena *arena, const char *series, const char **ret,
                              struct why *why);
