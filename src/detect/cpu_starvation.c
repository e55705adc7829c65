/* Ready to run, and no CPU is free: others have them, other programs or other machines.
 *
 * That is the environment's: it is told, with what it took, and never ranked. A program with more
 * threads than CPUs waits for itself: it has the CPUs already. Nor does it starve who is merely on
 * the way to a CPU that is free. What was taken is no more than the path shows, nor than what is
 * left of a plain run beside what it computes and waits for (evidence_gap_ns()): a recording may
 * have met with another machine than the baseline did. */
#include "detect/each.h"
#include "detect/lock_common.h"
#include "detect/run_queue.h"

#include <errno.h>
#include <math.h>

#define DELAY_SHARE_MIN  0.10 /* of the time in which threads could have run */
#define STOLEN_SHARE_MIN 0.05 /* of its CPU time: worth a word */
#define STOLEN_WALL_MIN  0.05 /* of the wall time: enough to count by itself */
#define STOLEN_NS_MIN    1e8  /* in all runs: the machine tells it in ticks of 10 ms */
#define RECORDING_FACTOR 1.25 /* what recording adds to a run is known that well */
#define OWN_SHARE_MAX    0.85 /* of all CPUs: who has so much of them waits for itself */
/* Of the wait: a CPU that one waits for is busy with somebody else, so that others have at least
 * as much CPU time as was waited for them. */
#define OTHERS_PART_MIN 0.5

struct starvation {
    struct run_queue queue;
    double delay_share;
    double own_share; /* of all CPUs, in a plain run */
    double stolen_ns; /* by the hypervisor, of a plain run's wall time; 0: none, or not known */
    bool stolen;      /* so much that it counts by itself */
    struct estimate gain;
};

static bool is_traced(const struct evidence *evidence)
{
    return evidence_has(evidence, AXIS_WAITS) && !evidence->path.na && evidence->path.ns > 0;
}

static struct starvation starvation_find(const struct evidence *evidence)
{
    const struct run_costs *costs = &evidence->costs;
    const struct path_costs *on_path = &evidence->costs_on_path;
    bool traced = is_traced(evidence);
    struct starvation s = {.queue = traced ? run_queue_find(evidence) : (struct run_queue){0}};
    double cpus = (double)MAX(costs->cpus, 1u), all = costs->wall_ns * cpus;
    double runnable = s.queue.delay_ns + s.queue.running_ns;
    s.own_share = all > 0 && !isnan(costs->cpu_ns) ? costs->cpu_ns / all : NAN;
    s.stolen_ns = evidence_stolen_ns(evidence);
    s.stolen = run_costs_stolen_ns(costs) >= DELAY_SHARE_MIN * costs->cpu_ns &&
               s.stolen_ns >= STOLEN_WALL_MIN * costs->wall_ns &&
               run_costs_stolen_ns(costs) * (double)costs->runs >= STOLEN_NS_MIN;
    s.delay_share = runnable > 0 ? s.queue.delay_ns / runnable : 0;
    double throttled = costs->throttled_ns > 0 ? costs->throttled_ns : 0;
    /* A guest that is held back does not know it: its threads seem to run. */
    double queued = fmin(s.queue.on_path_ns, on_path->classes[WAIT_CLASS_RUNQ]);
    /* Who waits for a CPU may wait for its own siblings: that much others did not take. */
    queued = fmax(0, queued - evidence_siblings_ns(evidence));
    /* What the limit of its cgroup took is of the same gap: the two together are no more than it.
     */
    double ns = fmin(queued + s.stolen_ns, evidence_gap_ns(evidence)); /* NaN: not known */
    ns = fmin(fmax(0, ns - throttled), on_path->ns);
    /* As far as the recorded run differs from plain ones nobody knows whether these were kept
     * waiting, too, or for longer. */
    s.gain = path_costs_estimate(on_path, 0, ns, 0);
    return s;
}

static const char *fine_reason(const struct evidence *evidence, struct arena *arena,
                               const struct starvation *s)
{
    if (s->delay_share < DELAY_SHARE_MIN && !s->stolen)
        return arena_printf(
            arena,
            "threads that were ready waited for a CPU for %.1f%% of that time; from "
            "%.0f%% on it counts",
            s->delay_share * 100, DELAY_SHARE_MIN * 100);
    if (s->own_share > OWN_SHARE_MAX)
        return arena_printf(arena,
                            "its own threads have %.0f%% of all %u CPUs: they wait for each other",
                            s->own_share * 100, evidence->costs.cpus);
    if (!s->stolen && evidence->costs.others_ns < OTHERS_PART_MIN * s->gain.ns)
        return arena_printf(arena,
                            "others had %s of CPU time during a run, too little for a wait of %s: "
                            "its own threads wait for each other",
                            time_text(arena, evidence->costs.others_ns),
                            time_text(arena, s->gain.ns));
    double added = evidence->axes[AXIS_WAITS].added.ns;
    /* Plain runs that were kept from a CPU were so without a recording. */
    double plain = fmax(0, evidence_gap_ns(evidence) - evidence_siblings_ns(evidence));
    if (!s->stolen && !(plain >= DELAY_SHARE_MIN * evidence->costs.wall_ns) &&
        added * RECORDING_FACTOR >= s->queue.on_path_ns)
        return arena_printf(
            arena,
            "the recorded run waited for a CPU for %s, and took %s longer than plain "
            "ones do: it is recording that had them",
            time_text(arena, s->queue.on_path_ns), time_text(arena, added));
    if (evidence->costs.throttled_ns > s->queue.on_path_ns / 2)
        return arena_printf(arena,
                            "the limit of its cgroup holds it for %s a run, and that is what it "
                            "waits for (cgroup_throttling)",
                            time_text(arena, evidence->costs.throttled_ns));
    return NULL;
}

static double runq_pick(void *context, const struct path_costs *costs, const struct path_cost *row)
{
    (void)costs;
    return row->class == WAIT_CLASS_RUNQ ? *(const double *)context : 0;
}

static void delays_put(const struct evidence *evidence, const struct starvation *s,
                       struct findings *findings, struct finding *finding)
{
    const char *artifact = evidence->axes[AXIS_WAITS].artifact;
    if (!is_traced(evidence))
        return;
    finding_fact(findings, finding, "delay_share", "of the time in which threads were ready",
                 value_real(s->delay_share * 100, UNIT_PERCENT), artifact, NULL);
    finding_fact(findings, finding, "delay_mean", "a delay, on average",
                 value_real(s->queue.mean_ns, UNIT_NS), artifact, NULL);
    finding_fact(findings, finding, "on_path", "on the critical path",
                 value_real(s->queue.on_path_ns, UNIT_NS), artifact, NULL);
}

static void facts_put(const struct evidence *evidence, const struct starvation *s,
                      struct findings *findings, struct finding *finding)
{
    double gap_ns = evidence_gap_ns(evidence);
    delays_put(evidence, s, findings, finding);
    finding_fact(
        findings, finding, "gap", "wall time of a plain run beside what it computes and waits for",
        isnan(gap_ns) ? value_na("its CPU time is not known") : value_real(gap_ns, UNIT_NS),
        "baseline.json", NULL);
    finding_fact(findings, finding, "stolen", "of it taken by the hypervisor",
                 value_real(s->stolen_ns, UNIT_NS), "baseline.json", NULL);
    finding_fact(findings, finding, "own_share", "of all CPUs it has itself",
                 isnan(s->own_share) ? value_na("its CPU time is not known")
                                     : value_real(s->own_share * 100, UNIT_PERCENT),
                 "baseline.json", NULL);
    finding_fact(findings, finding, "steal", "taken by the hypervisor, of all CPUs",
                 isnan(evidence->costs.steal_ns) ? value_na("the machine does not tell")
                                                 : value_real(evidence->costs.steal_ns, UNIT_NS),
                 "baseline.json", NULL);
    finding_fact(findings, finding, "others", "CPU time that others had, a run",
                 isnan(evidence->costs.others_ns) ? value_na("the machine does not tell")
                                                  : value_real(evidence->costs.others_ns, UNIT_NS),
                 "baseline.json", NULL);
    finding_fact(findings, finding, "switches_involuntary", "times it lost a CPU, a run",
                 isnan(evidence->costs.switches_involuntary)
                     ? value_na("not counted")
                     : value_real(evidence->costs.switches_involuntary, UNIT_COUNT),
                 "baseline.json", NULL);
}

/* What it got of the CPUs in plain runs, beside what its threads asked for. */
static void angles_put(const struct evidence *evidence, const struct starvation *s,
                       struct arena *arena, struct finding *finding)
{
    const struct run_costs *costs = &evidence->costs;
    if (!is_traced(evidence)) {
        finding->angles[ANGLE_COUNTING] = (struct angle_word){
            ANGLE_SUPPORTS,
            arena_printf(arena, "the hypervisor took %s of all CPUs during a plain run",
                         time_text(arena, costs->steal_ns))};
        return;
    }
    double wanted = (s->queue.delay_ns + s->queue.running_ns) / (double)evidence->path.ns;
    double got = costs->cpu_ns / costs->wall_ns;
    finding->angles[ANGLE_TRACING] = (struct angle_word){
        ANGLE_SUPPORTS, arena_printf(arena,
                                     "ready threads wait for a CPU for %.0f%% of the time, "
                                     "%s at a time",
                                     s->delay_share * 100, time_text(arena, s->queue.mean_ns))};
    if (evidence_has(evidence, AXIS_CPU) && evidence->cpu_with_waits) {
        double sampled = (double)evidence->cpu.weight / (double)evidence->path.ns;
        finding->angles[ANGLE_SAMPLING] = (struct angle_word){
            sampled < 0.95 * wanted ? ANGLE_SUPPORTS : ANGLE_REJECTS,
            arena_printf(arena, "by samples it had %.2f CPUs where its threads wanted %.2f",
                         sampled, wanted)};
    }
    if (!isnan(got))
        finding->angles[ANGLE_COUNTING] = (struct angle_word){
            got < 0.95 * wanted ? ANGLE_SUPPORTS : ANGLE_REJECTS,
            arena_printf(arena, "plain runs get %.2f CPUs where its threads want %.2f", got,
                         wanted)};
}

static void describe(const struct evidence *evidence, const struct starvation *s,
                     struct findings *findings, struct finding *finding)
{
    struct arena *arena = findings->arena;
    const char *artifact = evidence->axes[AXIS_WAITS].artifact;
    double wall = evidence->costs_on_path.ns;
    bool host = s->stolen_ns >= s->gain.ns / 2;
    /* A guest does not see it wait: its threads seem to run meanwhile. */
    finding->title = arena_printf(
        arena, "%s %.0f%% of the wall time: %s",
        host ? "the hypervisor took" : "ready to run, it waits for a CPU for",
        wall > 0 ? s->gain.ns / wall * 100 : 0,
        host ? "other guests of the host have the CPUs" : "others have them");
    if (is_traced(evidence))
        finding_why(findings, finding, artifact,
                    "threads that were ready waited for a CPU for %.0f%% of the time in which they "
                    "could have run",
                    s->delay_share * 100);
    finding_why(findings, finding, "baseline.json",
                "it has %.0f%% of %u CPUs itself: the rest is not free, but somebody else's",
                s->own_share * 100, evidence->costs.cpus);
    if (run_costs_stolen_ns(&evidence->costs) >= STOLEN_SHARE_MIN * evidence->costs.cpu_ns)
        finding_why(findings, finding, "baseline.json",
                    "the hypervisor takes %s of all CPUs during a run",
                    time_text(arena, evidence->costs.steal_ns));
    finding_why(
        findings, finding, artifact,
        "the %s has more to do than CPUs: it is its load, not this program, that takes the time",
        host ? "host" : "machine");
    finding->advice = host ? "run it where CPUs are not shared with other guests: another host, or "
                             "virtual CPUs of its own; until then compare by turns (whyslow "
                             "compare), which falls on both"
                           : "run it where the CPUs are free: end or lower the priority of what "
                             "else runs (nice, cpu.weight), or give it CPUs of its own (taskset, "
                             "cpuset)";
    finding->caution = host ? "nothing in this machine can change it"
                            : "what else runs there will take longer";
    finding->measure_next = host ? "whyslow doctor" : "whyslow waits -a -d 10";
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct starvation s = starvation_find(evidence);
    bool traced = is_traced(evidence);
    if (!traced && !s.stolen) {
        const char *na = evidence->axes[AXIS_WAITS].na;
        struct finding *unknown = dismissed(ret, self, "waits was not recorded: %s",
                                            na                  ? na
                                            : evidence->path.na ? evidence->path.na
                                                                : "there is no critical path");
        if (!unknown)
            return -ENOMEM;
        unknown->verdict = na ? FINDING_NOT_JUDGED : FINDING_DISMISSED;
        return 0;
    }
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    finding->axes = traced ? AXIS_BIT_WAITS : 0;
    facts_put(evidence, &s, ret, finding);
    finding->occurrences = s.queue.delays + (s.stolen ? evidence->costs.runs : 0);
    const char *fine = fine_reason(evidence, ret->arena, &s);
    if (fine) {
        finding->verdict = FINDING_DISMISSED;
        finding->reason = fine;
        return 0;
    }
    const struct path_costs *costs = &evidence->costs_on_path;
    double all = costs->classes[WAIT_CLASS_RUNQ];
    double part = all > 0 ? fmin(s.queue.on_path_ns / all, 1) : 0;
    path_costs_cover(ret->arena, costs, runq_pick, &part, finding);
    finding->recoverable = s.gain;
    finding->cost_ns = s.gain.ns;
    angles_put(evidence, &s, ret->arena, finding);
    describe(evidence, &s, ret, finding);
    return 0;
}

const struct detector detect_cpu_starvation = {
    .id = "cpu_starvation",
    .title = "ready to run, and no CPU is free",
    .class = FINDING_ENVIRONMENT,
    .category = CATEGORY_EXTERNAL,
    .remedy = REMEDY_SETTING,
    .axes = 0, /* stolen time is known without a recording */
    .judge = judge,
};
