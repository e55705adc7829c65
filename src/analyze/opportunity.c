/* Impact × confidence / effort. */
#include "analyze/opportunity.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* By kind of remedy and owner: unknown, user, library, kernel, interpreter (what changes is the
 * program that runs in it: somebody's, whose is not known). docs/run-ranking.md says why. */
static const double efforts[REMEDIES][FINDING_OWNERS] = {
    [REMEDY_SETTING] = {1, 1, 1, 1, 1},     [REMEDY_LOCAL] = {1.5, 1, 3, 5, 1.5},
    [REMEDY_REUSE] = {2, 1.5, 3, 5, 2},     [REMEDY_BATCH] = {2, 2, 3, 5, 2},
    [REMEDY_ALGORITHM] = {3, 2.5, 4, 5, 3}, [REMEDY_REDESIGN] = {4, 4, 5, 5, 4},
};

/* One angle alone may be wrong; three that agree hardly are. */
const double opportunity_by_support[ANGLES + 1] = {0.3, 0.5, 0.75, 0.95};

const struct opportunity_step opportunity_by_width[] = {
    {0.10, 1.00}, {0.25, 0.95}, {0.50, 0.90}, {INFINITY, 0.80}};
_Static_assert(ARRAY_SIZE(opportunity_by_width) == OPPORTUNITY_WIDTHS, "as the header says");

/* A speed-up of more than this is "as good as nothing is left". */
#define SHARE_MAX 0.999

double opportunity_effort(enum finding_remedy remedy, enum finding_owner owner)
{
    return efforts[remedy][owner];
}

static double width_factor(const struct estimate *time)
{
    double width = (time->high_ns - time->low_ns) / 2 / time->ns;
    for (size_t i = 0; i < OPPORTUNITY_WIDTHS - 1; i++)
        if (width <= opportunity_by_width[i].most)
            return opportunity_by_width[i].factor;
    return opportunity_by_width[OPPORTUNITY_WIDTHS - 1].factor; /* NaN, too */
}

/* What was lost counts ten times: nobody knows that it was like the rest. */
static double loss_factor(const struct evidence *evidence, const struct finding *finding)
{
    double lost = 0;
    for (int i = 0; i < AXES; i++)
        if (finding->axes & 1u << i)
            lost = fmax(lost, evidence->axes[i].lost); /* fmax takes the number beside a NaN */
    return fmax(0, 1 - 10 * lost);
}

double opportunity_confidence(const struct evidence *evidence, const struct finding *finding)
{
    unsigned supports = finding_angles(finding, ANGLE_SUPPORTS);
    unsigned rejects = finding_angles(finding, ANGLE_REJECTS);
    return opportunity_by_support[supports] / (1 + rejects) * loss_factor(evidence, finding) *
           width_factor(&finding->recoverable);
}

bool opportunity_is_worth(const struct finding *finding)
{
    return finding_is_fix(finding) && finding->score >= OPPORTUNITY_WORTH &&
           !(finding->recoverable.low_ns <= 0); /* where it is not known, confidence has it */
}

/* Nothing to fix comes after what can be fixed, in the order of its class. */
static double worth(const struct finding *finding)
{
    return finding->recoverable.ns *
           (finding->confidence < OPPORTUNITY_BELIEVED ? finding->confidence : 1);
}

/* `rank` holds the place before sorting: what is equal stays in order. */
static int by_worth(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    if (x->verdict != y->verdict)
        return (int)x->verdict - (int)y->verdict;
    if (x->verdict == FINDING_CONFIRMED && x->class != y->class)
        return (int)x->class - (int)y->class;
    if (x->verdict == FINDING_CONFIRMED && worth(x) != worth(y))
        return worth(x) > worth(y) ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static double ceiling_of(double share)
{
    return 1 / (1 - fmin(fmax(share, 0), SHARE_MAX));
}

static void weigh(const struct evidence *evidence, struct finding *finding)
{
    double wall = evidence->costs_on_path.ns;
    double share = wall > 0 ? fmin(finding->recoverable.ns / wall, 1) : 0;
    finding->path_share = wall > 0 && finding->cost_ns > 0 ? fmin(finding->cost_ns / wall, 1)
                                                           : share;
    finding->confidence = opportunity_confidence(evidence, finding);
    if (finding->class != FINDING_FIX)
        return;
    finding->impact = share * OPPORTUNITY_IMPACT;
    finding->effort = opportunity_effort(finding->remedy, finding->place.owner);
    finding->score = finding->impact * finding->confidence / finding->effort;
    finding->ceiling = ceiling_of(finding->path_share);
}

int opportunity_rank(const struct evidence *evidence, struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        findings->items[i].rank = (uint32_t)i;
        if (findings->items[i].verdict == FINDING_CONFIRMED)
            weigh(evidence, &findings->items[i]);
    }
    if (findings->count > 0)
        qsort(findings->items, findings->count, sizeof(*findings->items), by_worth);
    for (size_t i = 0; i < findings->count; i++) {
        struct finding *finding = &findings->items[i];
        finding->rank = finding_is_fix(finding) ? (uint32_t)i + 1 : 0;
    }
    return 0;
}

const char *opportunity_formula(struct arena *arena, const struct finding *finding)
{
    return arena_printf(arena, "impact %.1f × confidence %.2f / effort %.1f = %.1f",
                        finding->impact, finding->confidence, finding->effort, finding->score);
}

/* How much of a finding nobody before it spoke of, 0 … 1. */
static double fresh_part(const struct path_costs *costs, const struct finding *finding,
                         float *spoken, double *ret_ns)
{
    double all = 0, fresh = 0;
    for (size_t i = 0; i < costs->count; i++) {
        float part = MIN(finding->covers[i], 1 - spoken[i]);
        all += (double)finding->covers[i] * path_cost_own_ns(costs, &costs->rows[i]);
        if (part <= 0)
            continue;
        fresh += (double)part * path_cost_own_ns(costs, &costs->rows[i]);
        spoken[i] += part;
    }
    *ret_ns = fresh;
    return all > 0 ? fresh / all : 1;
}

/* fmin() would take the bound where the value is not known. */
static double at_most(double ns, double most)
{
    return isnan(ns) ? ns : fmin(ns, most);
}

int opportunity_together(const struct evidence *evidence, const struct findings *findings,
                         struct opportunity_sum *ret)
{
    const struct path_costs *costs = &evidence->costs_on_path;
    float *spoken = calloc(costs->count + 1, sizeof(*spoken));
    if (!spoken)
        return -ENOMEM;
    struct opportunity_sum sum = {0};
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        if (!finding_is_fix(finding) || isnan(finding->recoverable.ns))
            continue;
        double ns = fmax(finding->recoverable.ns, 0), part = 1;
        if (finding->covers)
            part = fresh_part(costs, finding, spoken, &ns);
        sum.cost_ns += ns;
        sum.recoverable.ns += part * finding->recoverable.ns;
        sum.recoverable.low_ns += part * finding->recoverable.low_ns;
        sum.recoverable.high_ns += part * finding->recoverable.high_ns;
        sum.findings++;
        sum.uncovered += !finding->covers;
    }
    free(spoken);
    double wall = costs->ns, own = wall - costs->environment_ns;
    sum.cost_ns = fmin(sum.cost_ns, own);
    sum.recoverable = (struct estimate){fmin(sum.recoverable.ns, own),
                                        at_most(sum.recoverable.low_ns, own),
                                        at_most(sum.recoverable.high_ns, own)};
    sum.share = wall > 0 ? sum.recoverable.ns / wall : 0;
    sum.ceiling = ceiling_of(wall > 0 ? sum.cost_ns / wall : 0);
    *ret = sum;
    return 0;
}
