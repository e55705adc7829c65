/* The history of the repository we are in, for the commands that add to it. */
#pragma once

#include "base/arena.h"
#include "base/why.h"
#include "model/bench.h"
#include "model/value.h"

/* WHYSLOW_HISTORY (a file, or "off"), else whyslow/history.db in the git folder around the
 * current one: it goes with the repository and is never committed. NULL: there is none, and
 * *ret_na, if it is asked for, says why. A repository of another user has none for us: a file in
 * it may lead anywhere. */
const char *history_default(struct arena *arena, const char **ret_na);

/* What history_add() wants to know, from a fingerprint of this machine. */
struct bench_origin history_origin(struct arena *arena, const struct value *fingerprint);

/* Keeps results in the default history. Returns how many were added; 0 when there is none. */
MUST_USE int history_keep(struct arena *arena, const struct bench_result *results, size_t count,
                          const struct value *fingerprint, struct why *why);
