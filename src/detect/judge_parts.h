/* What is done with findings after their detectors have spoken; nobody else includes this.
 *
 * merge.c  the same trouble at several places is one finding
 * gates.c  what is worth too little, or rests on too little, is dismissed; what says only where
 *          time goes gives way to what says why */
#pragma once

#include "detect/detectors.h"

/* Confirmed ones from `first` on are of one detector: the heaviest stays, the others become its
 * affected places. Time that two of them speak of counts once. */
void findings_merge(const struct path_costs *costs, struct findings *findings, size_t first);

/* By construction nothing takes, or would save, more than there is: neither more than the wall time
 * nor, of the environment, more than what is left of it beside computing and waiting. */
void finding_bound(const struct evidence *evidence, struct finding *finding);
void finding_gate(const struct evidence *evidence, struct arena *arena, struct finding *finding);

/* `table` as in detectors.c: says who is generic. */
void findings_give_way(const struct evidence *evidence, const struct detector *const *table,
                       struct findings *findings);

/* The same as detectors_judge(), of a table of one's own. */
MUST_USE int table_judge(struct evidence *evidence, const struct detector *const *table,
                         struct findings *ret);
