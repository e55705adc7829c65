/* Every detector is asked; then its findings are put together, and the gates hold for all. */
#include "detect/judge_parts.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct finding *detected(struct findings *findings, const struct detector *self)
{
    struct finding *finding = finding_add(findings, self->id);
    if (!finding)
        return NULL;
    finding->class = self->class;
    finding->category = self->category;
    finding->remedy = self->remedy;
    finding->axes = self->axes;
    finding->title = self->title;
    return finding;
}

struct finding *dismissed(struct findings *findings, const struct detector *self, const char *fmt,
                          ...)
{
    struct finding *finding = detected(findings, self);
    if (!finding)
        return NULL;
    char text[1024];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(text, sizeof(text), fmt, arguments);
    va_end(arguments);
    finding->verdict = FINDING_DISMISSED;
    finding->reason = arena_dup(findings->arena, text);
    return finding;
}

static int judge_one(const struct evidence *evidence, const struct detector *self,
                     struct findings *ret)
{
    for (int i = 0; i < AXES; i++) {
        if (!(self->axes & 1u << i) || evidence_has(evidence, (enum axis)i))
            continue;
        struct finding *finding = dismissed(ret, self, "%s was not recorded: %s",
                                            axis_name((enum axis)i), evidence->axes[i].na);
        if (!finding)
            return -ENOMEM;
        finding->verdict = FINDING_NOT_JUDGED;
        return 0;
    }
    size_t first = ret->count;
    int r = self->judge(evidence, self, ret);
    if (r < 0)
        return r;
    findings_merge(&evidence->costs_on_path, ret, first);
    for (size_t i = first; i < ret->count; i++) {
        finding_bound(evidence, &ret->items[i]);
        finding_gate(evidence, ret->arena, &ret->items[i]);
    }
    return 0;
}

/* Before what can be fixed: time that the environment took is saved by no change of the program. */
static int environment_judge(struct evidence *evidence, const struct detector *const *table)
{
    struct path_costs *costs = &evidence->costs_on_path;
    struct findings findings = {.arena = evidence->arena};
    double ns = 0;
    costs->environment_ns = 0;
    for (size_t i = 0; table[i]; i++) {
        int r = table[i]->class == FINDING_ENVIRONMENT ? judge_one(evidence, table[i], &findings)
                                                       : 0;
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < findings.count; i++)
        if (findings.items[i].verdict == FINDING_CONFIRMED && findings.items[i].recoverable.ns > 0)
            ns += findings.items[i].recoverable.ns;
    costs->environment_ns = fmin(ns, costs->ns);
    return 0;
}

int table_judge(struct evidence *evidence, const struct detector *const *table,
                struct findings *ret)
{
    ret->arena = evidence->arena;
    if (environment_judge(evidence, table) < 0)
        return -ENOMEM;
    for (size_t i = 0; table[i]; i++) {
        int r = judge_one(evidence, table[i], ret);
        if (r < 0)
            return r;
    }
    findings_give_way(evidence, table, ret);
    return arena_failed(ret->arena) ? -ENOMEM : 0;
}

int detectors_judge(struct evidence *evidence, struct findings *ret)
{
    return table_judge(evidence, detectors, ret);
}
