/* One line a step. */
#include "cmd/run_interpret.h"

#include "detect/detectors.h"

enum { HOTSPOTS_MAX = 30 };

int run_interpret(struct arena *arena, const struct evidence_input *input,
                  const struct run_about *about, struct interpretation *ret, struct why *why)
{
    struct evidence *evidence = ARENA_NEW(arena, struct evidence);
    if (!evidence)
        return why_nomem(why);
    *ret = (struct interpretation){.about = *about, .evidence = evidence};
    int r = evidence_load(arena, input, evidence, why);
    if (r < 0)
        return r;
    if (detectors_judge(evidence, &ret->findings) < 0 ||
        opportunity_rank(evidence, &ret->findings) < 0 ||
        opportunity_together(evidence, &ret->findings, &ret->together) < 0 ||
        run_hotspots_build(arena, evidence, HOTSPOTS_MAX, &ret->hotspots) < 0 ||
        ledger_build(arena, evidence, &ret->findings, &ret->ledger) < 0 ||
        wrong_tools_build(arena, evidence, &ret->findings, &ret->wrong_tools) < 0)
        return why_nomem(why);
    return 0;
}
