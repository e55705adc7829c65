/* What the probes of several collectors share: tiers as a ladder of probes. */
#pragma once

#include "collect/collectors.h"
#include "host/probe.h"

struct tier_step {
    enum tier tier;
    void (*needs[3])(struct probe *ret); /* all must be ok; NULL ends the list */
    const char *gives;
};

/* The first step whose needs are all met; `steps` go from the highest tier down and
 * end with .gives NULL. What stood in the way of the step above is the reason. */
void tiers_probe(struct arena *arena, const struct tier_step *steps, struct collector_probe *ret);
