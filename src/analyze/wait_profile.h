/* Waits as a profile, for trees and flame graphs: each stack ends in a leaf that says what was
 * waited for. Weights are nanoseconds. */
#pragma once

#include "analyze/waits_load.h"

/* What a row's leaf is called, NULL to leave the row out. The text must live as long as the
 * arena. */
typedef const char *wait_leaf(void *context, uint32_t row);

/* Shares the arrays of waits->profile where it can. 0 or -ENOMEM. */
MUST_USE int wait_profile_build(struct arena *arena, const struct waits *waits, wait_leaf *leaf,
                                void *context, struct profile *ret);
