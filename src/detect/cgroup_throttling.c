/* The limit of a cgroup stops the program until the next period begins. */
#include "detect/each.h"
#include "detect/lock_common.h"

#include <errno.h>
#include <math.h>

#define THROTTLED_SHARE_MIN 0.02 /* of the wall time */
#define PERIOD_NS           1e8  /* the kernel's default: nobody is stopped for longer at a time */

/* On the critical path, as it was recorded: whoever records spends of the same quota, and that is
 * cut from the costs on the path first. A plain run waits no longer. */
static double queued_ns(const struct evidence *evidence)
{
    double ns = 0;
    for (size_t i = 0; i < evidence->path.share_count; i++)
        if (evidence->path.shares[i].what == PATH_RUNQ)
            ns += (double)evidence->path.shares[i].ns;
    return ns;
}

/* Throttled time is that of each CPU of the cgroup: with several threads more than what the run
 * lost. All that it computes could be computed on all CPUs at best, and more than the path waited
 * for a CPU it has not lost. */
static double gain_find(const struct evidence *evidence)
{
    const struct run_costs *costs = &evidence->costs;
    double cpus = (double)MAX(costs->cpus, 1u);
    double gain = fmin(costs->throttled_ns, costs->wall_ns);
    if (!isnan(costs->cpu_ns))
        gain = fmin(gain, costs->wall_ns - costs->cpu_ns / cpus);
    if (evidence_has(evidence, AXIS_WAITS) && !evidence->costs_on_path.na)
        gain = fmin(gain, queued_ns(evidence));
    gain = fmin(gain, evidence_gap_ns(evidence)); /* NaN: not known */
    return fmax(gain, 0);
}

static double runq_pick(void *context, const struct path_costs *costs, const struct path_cost *row)
{
    (void)costs;
    return row->class == WAIT_CLASS_RUNQ ? *(const double *)context : 0;
}

static void angles_put(const struct evidence *evidence, struct arena *arena,
                       struct finding *finding)
{
    const struct run_costs *costs = &evidence->costs;
    double runq = queued_ns(evidence);
    finding->angles[ANGLE_COUNTING] = (struct angle_word){
        ANGLE_SUPPORTS, arena_printf(arena, "the kernel counts %s throttled a plain run",
                                     time_text(arena, costs->throttled_ns))};
    if (evidence_has(evidence, AXIS_WAITS) && !evidence->costs_on_path.na)
        finding->angles[ANGLE_TRACING] = (struct angle_word){
            runq >= THROTTLED_SHARE_MIN * costs->wall_ns ? ANGLE_SUPPORTS : ANGLE_REJECTS,
            arena_printf(arena, "the recorded path is ready and not running for %s",
                         time_text(arena, runq))};
}

static void describe(const struct evidence *evidence, struct findings *findings,
                     struct finding *finding)
{
    struct arena *arena = findings->arena;
    const struct run_costs *costs = &evidence->costs;
    double got = costs->cpu_ns / costs->wall_ns;
    finding->title = arena_printf(arena, "the limit of its cgroup stops it for %s of %s a run",
                                  time_text(arena, finding->recoverable.ns),
                                  time_text(arena, costs->wall_ns));
    finding_why(findings, finding, "baseline.json", "its cgroup was throttled for %s a run",
                time_text(arena, costs->throttled_ns));
    if (!isnan(got))
        finding_why(findings, finding, "baseline.json", "it gets %.2f of %u CPUs", got,
                    costs->cpus);
    finding_why(findings, finding, "fingerprint.json",
                "once a period's quota is spent nothing in the cgroup runs until the next begins: "
                "cpu.max (cpu.cfs_quota_us) is a setting");
    finding->advice = "raise the cgroup's limit (cpu.max, cpu.cfs_quota_us; in Kubernetes "
                      "resources.limits.cpu), or let fewer threads spend it";
    finding->caution = "the limit may be there so that others get their part";
    finding->measure_next = "cat /sys/fs/cgroup/cpu.stat";
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    const struct run_costs *costs = &evidence->costs;
    if (isnan(costs->throttled_ns)) {
        struct finding *unknown = dismissed(ret, self, "no cpu.stat of a cgroup can be read here");
        if (!unknown)
            return -ENOMEM;
        unknown->verdict = FINDING_NOT_JUDGED;
        return 0;
    }
    double share = costs->wall_ns > 0 ? costs->throttled_ns / costs->wall_ns : 0;
    if (share < THROTTLED_SHARE_MIN)
        return dismissed(ret, self,
                         "its cgroup was throttled for %.1f%% of the wall time; from %.0f%% on it "
                         "counts",
                         share * 100, THROTTLED_SHARE_MIN * 100)
                   ? 0
                   : -ENOMEM;
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    const struct path_costs *on_path = &evidence->costs_on_path;
    double gain = gain_find(evidence), all = on_path->classes[WAIT_CLASS_RUNQ];
    double part = all > 0 ? fmin(gain / all, 1) : 0;
    finding->recoverable = (struct estimate){gain, gain * on_path->wall_low,
                                             gain * on_path->wall_high};
    path_costs_cover(ret->arena, on_path, runq_pick, &part, finding);
    finding->cost_ns = fmax(finding->cost_ns, gain);
    finding->occurrences = (uint64_t)(costs->throttled_ns * (double)costs->runs / PERIOD_NS);
    finding_fact(ret, finding, "throttled", "throttled, all CPUs together",
                 value_real(costs->throttled_ns, UNIT_NS), "baseline.json", NULL);
    angles_put(evidence, ret->arena, finding);
    describe(evidence, ret, finding);
    return 0;
}

const struct detector detect_cgroup_throttling = {
    .id = "cgroup_throttling",
    .title = "stopped by the limit of a cgroup",
    .class = FINDING_ENVIRONMENT,
    .category = CATEGORY_EXTERNAL,
    .remedy = REMEDY_SETTING,
    .axes = 0,
    .judge = judge,
};
