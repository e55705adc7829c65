/* What `whyslow run` says, as one value: the screen, its JSON, the page and the hand-off are all
 * drawn from it. */
#pragma once

#include "analyze/interpretation.h"

/* Adds to a map: where the time goes, hotspots, suspicions, ledger, opportunities, honesty. */
void run_screen_put(struct arena *arena, const struct interpretation *run, struct value *root);
/* The commands to type next. A list. */
struct value run_screen_next(struct arena *arena, const struct interpretation *run);
/* Where the wall time goes, by class: a table with times and shares. */
struct value run_screen_time(struct arena *arena, const struct interpretation *run);
/* Of the wall time what is in no class. */
double run_unseen_ns(const struct path_costs *costs);
/* How far all this can be trusted: one line a subject. */
struct value run_screen_honesty(struct arena *arena, const struct interpretation *run);
