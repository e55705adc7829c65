/* Climbs down the ladder until a step holds. */
#include "collect/tiers.h"

/* True when every need of the step is met; else *ret_blocked is the first that is not. */
static bool step_holds(const struct tier_step *step, struct probe *ret_blocked)
{
    for (size_t i = 0; i < ARRAY_SIZE(step->needs) && step->needs[i]; i++) {
        struct probe probe;
        step->needs[i](&probe);
        if (!probe.ok) {
            *ret_blocked = probe;
            return false;
        }
    }
    return true;
}

void tiers_probe(struct arena *arena, const struct tier_step *steps, struct collector_probe *ret)
{
    struct probe blocked = {0};
    *ret = (struct collector_probe){.tier = TIER_NONE, .gives = "nothing"};
    for (const struct tier_step *step = steps; step->gives; step++) {
        struct probe why_not = {0};
        if (step_holds(step, &why_not)) {
            ret->tier = step->tier;
            ret->gives = step->gives;
            break;
        }
        blocked = why_not;
    }
    if (blocked.detail[0])
        ret->not_higher = arena_dup(arena, blocked.detail);
    if (blocked.remedy[0])
        ret->remedy = arena_dup(arena, blocked.remedy);
}
