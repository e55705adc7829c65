/* What is not worth saying, or cannot be said, is dismissed with the numbers that decide it. */
#include "detect/judge_parts.h"

#include <math.h>
#include <string.h>

static double at_most(double ns, double most)
{
    return isnan(ns) || isnan(most) ? ns : fmin(ns, most);
}

void finding_bound(const struct evidence *evidence, struct finding *finding)
{
    struct estimate *gain = &finding->recoverable;
    double most = evidence->costs_on_path.ns;
    finding->cost_ns = at_most(finding->cost_ns, most);
    double longest = most * (evidence->costs_on_path.wall_high - 1); /* beyond a usual run */
    if (finding->class == FINDING_ENVIRONMENT)
        most = at_most(most, evidence_gap_ns(evidence));
    else
        most -= evidence->costs_on_path.environment_ns;
    gain->ns = at_most(gain->ns, most);
    /* What a run is longer is in its gap. */
    gain->high_ns = at_most(gain->high_ns,
                            finding->class == FINDING_ENVIRONMENT ? most + longest : most);
    gain->low_ns = at_most(gain->low_ns, gain->ns);
    *gain = path_costs_sure(&evidence->costs_on_path, *gain);
}

/* What is not fixed saves nothing: it counts by what it costs. */
static double weight_ns(const struct finding *finding)
{
    return finding->class == FINDING_CONTEXT ? finding->cost_ns : finding->recoverable.ns;
}

static const char *too_little(const struct evidence *evidence, struct arena *arena,
                              const struct finding *finding)
{
    double wall = evidence->costs_on_path.ns;
    if (finding->occurrences < DETECT_OCCURRENCES_MIN)
        return arena_printf(arena, "it happened %llu times; from %d on it counts",
                            (unsigned long long)finding->occurrences, DETECT_OCCURRENCES_MIN);
    static const char *const what[FINDING_CLASSES] = {"mending it would save", "it costs",
                                                      "it took"};
    double ns = weight_ns(finding);
    if (isnan(ns))
        return arena_printf(arena, "how much %s is not known",
                            finding->class == FINDING_FIX ? "mending it would save"
                                                          : "of the wall time it is");
    if (ns >= DETECT_SHARE_MIN * wall)
        return NULL;
    return arena_printf(arena, "%s %.2f%% of the wall time; from %.0f%% on it counts",
                        what[finding->class], wall > 0 ? fmax(ns, 0) / wall * 100 : 0,
                        DETECT_SHARE_MIN * 100);
}

/* One source that sees it and two that see that it is not so: it is not so. */
static const char *rejected(struct arena *arena, const struct finding *finding)
{
    const char *text = "";
    if (finding_angles(finding, ANGLE_REJECTS) < DETECT_REJECTS_MAX)
        return NULL;
    for (int i = 0; i < ANGLES; i++)
        if (finding->angles[i].verdict == ANGLE_REJECTS)
            text = arena_printf(arena, "%s%s%s rejects it%s%s", text, *text ? "; " : "",
                                angle_name((enum angle)i), finding->angles[i].text ? ": " : "",
                                finding->angles[i].text ? finding->angles[i].text : "");
    return text;
}

/* The seconds of a recording that made the run much longer are not the program's. Those on the
 * critical path say so by their interval; others have nothing to be measured against. */
static const char *too_unsure(const struct evidence *evidence, struct arena *arena,
                              const struct finding *finding)
{
    for (int i = 0; i < AXES; i++) {
        const struct axis_state *axis = &evidence->axes[i];
        const char *name = axis_name((enum axis)i);
        if (!(finding->axes & 1u << i))
            continue;
        /* A call without its stack is still a call on its file: what was found of it is there, and
         * only less sure (opportunity_confidence()). */
        if (axis->uncounted > DETECT_LOST_MAX)
            return arena_printf(arena, "%.1f%% of what the axis %s was to record was lost",
                                axis->uncounted * 100, name);
        /* Context claims no seconds, and shares do not stretch. */
        if (axis->disturbed && !finding->covers && finding->class != FINDING_CONTEXT)
            return arena_printf(arena,
                                "its time is known from the axis %s only, and that made the run "
                                "%.0f%% longer: above %.0f%% times rank nothing",
                                name, axis->overhead * 100, AXIS_OVERHEAD_MAX * 100);
    }
    return NULL;
}

void finding_gate(const struct evidence *evidence, struct arena *arena, struct finding *finding)
{
    if (finding->verdict != FINDING_CONFIRMED)
        return;
    const char *reason = too_little(evidence, arena, finding);
    if (!reason)
        reason = rejected(arena, finding);
    if (!reason) {
        reason = too_unsure(evidence, arena, finding);
        finding->unsure = reason != NULL;
    }
    if (!reason)
        return;
    finding->verdict = FINDING_DISMISSED;
    finding->reason = reason;
}

static bool is_generic(const struct detector *const *table, const char *id)
{
    for (size_t i = 0; table[i]; i++)
        if (strcmp(table[i]->id, id) == 0)
            return table[i]->generic;
    return false;
}

/* Of the rows of `generic`: what `left` still has of them and the other one explains, in ns. */
static double explain(const struct path_costs *costs, const struct finding *other, float *left)
{
    double ns = 0;
    for (size_t i = 0; i < costs->count; i++) {
        float part = MIN(left[i], other->covers[i]);
        if (part <= 0)
            continue;
        left[i] -= part;
        ns += (double)part * path_cost_own_ns(costs, &costs->rows[i]);
    }
    return ns;
}

static void give_way(const struct evidence *evidence, const struct detector *const *table,
                     struct findings *findings, struct finding *generic)
{
    const struct path_costs *costs = &evidence->costs_on_path;
    float *left = arena_alloc(findings->arena, (costs->count + 1) * sizeof(*left));
    if (!left)
        return; /* the arena tells */
    memcpy(left, generic->covers, costs->count * sizeof(*left));
    double explained = 0, saves = 0, most = 0;
    const struct finding *by = NULL;
    size_t others = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *other = &findings->items[i];
        if (!finding_is_fix(other) || !other->covers || is_generic(table, other->detector))
            continue;
        double part = explain(costs, other, left);
        others += part > 0;
        explained += part;
        saves += part > 0 ? fmax(other->recoverable.ns, 0) : 0;
        if (part > most) {
            most = part;
            by = other;
        }
    }
    if (!by || explained < DETECT_EXPLAINED_MIN * generic->cost_ns)
        return;
    /* A lock around a hot function covers its time and may save none of it. */
    if (saves < DETECT_DISPLACES_MIN * generic->recoverable.ns)
        return;
    generic->verdict = FINDING_DISMISSED;
    generic->explained = true;
    generic->reason = arena_printf(findings->arena, "%.0f%% of this time is explained by %s%s",
                                   fmin(explained / generic->cost_ns, 1) * 100, by->detector,
                                   others > 1 ? " and others" : "");
}

void findings_give_way(const struct evidence *evidence, const struct detector *const *table,
                       struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        struct finding *finding = &findings->items[i];
        if (finding->verdict == FINDING_CONFIRMED && finding->covers && finding->cost_ns > 0 &&
            is_generic(table, finding->detector))
            give_way(evidence, table, findings, finding);
    }
}
