/* Ready to run, and no CPU is free: others have them, other programs or other machines.
 *
 * A program with more threads than CPUs waits for itself: it has the CPUs already, and nothing is
 * gained by giving it more of what is there. So what can be saved is bounded by the time in which
 * all that it computes could be computed on all CPUs. Nor does it starve who is merely on the way
 * to a CPU that is free. */
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
    double stolen_ns; /* by the hypervisor, of this program's CPU time; 0: none, or not known */
    bool stolen;      /* so much that it counts by itself */
    struct estimate gain;
};

/* The traced run waited for CPUs as others let it; plain runs may have had it otherwise. What they
 * took longer than the path computes and waits is the lack of CPUs, too. NaN: not known. */
static double gain_counted(const struct evidence *evidence, const struct run_queue *queue)
{
    const struct run_costs *costs = &evidence->costs;
    const struct critical_path *path = &evidence->path;
    double running = 0, others = (double)path->ns;
    for (size_t i = 0; i < path->share_count; i++) {
        if (path->shares[i].what == PATH_RUNNING)
            running += (double)path->shares[i].ns;
        if (path->shares[i].what != PATH_WAIT)
            others -= (double)path->shares[i].ns;
    }
    if (isnan(costs->cpu_ns) || !(queue->running_ns > 0))
        return NAN;
    return fmax(0, costs->wall_ns - others - costs->cpu_ns * fmin(running / queue->running_ns, 1));
}

static struct starvation starvation_find(const struct evidence *evidence)
{
    const struct run_costs *costs = &evidence->costs;
    struct starvation s = {.queue = run_queue_find(evidence)};
    double cpus = (double)MAX(costs->cpus, 1u), all = costs->wall_ns * cpus;
    double runnable = s.queue.delay_ns + s.queue.running_ns;
    s.own_share = all > 0 && !isnan(costs->cpu_ns) ? costs->cpu_ns / all : NAN;
    s.stolen_ns = run_costs_stolen_ns(costs);
    s.stolen = s.stolen_ns >= DELAY_SHARE_MIN * costs->cpu_ns &&
               s.stolen_ns >= STOLEN_WALL_MIN * costs->wall_ns * run_costs_busy(costs) &&
               s.stolen_ns * (double)costs->runs >= STOLEN_NS_MIN;
    s.delay_share = runnable > 0 ? s.queue.delay_ns / runnable : 0;
    double least = isnan(s.own_share) ? 0 : costs->cpu_ns / cpus;
    double left = fmax(0, costs->wall_ns - least);
    double throttled = costs->throttled_ns > 0 ? costs->throttled_ns : 0;
    /* A guest that is held back does not know it: its threads seem to run. */
    double traced = s.queue.on_path_ns + s.stolen_ns / run_costs_busy(costs);
    double counted = gain_counted(evidence, &s.queue);
    /* With threads that wait for each other the path changes hands, and counting cannot follow. */
    double likely = isnan(counted) ? traced : fmin(fmax(counted, traced / 2), traced * 2);
    double ns[] = {likely, fmin(traced, likely), fmax(traced, likely)};
    for (size_t i = 0; i < ARRAY_SIZE(ns); i++)
        ns[i] = fmin(fmax(0, ns[i] - throttled), left);
    const struct path_costs *on_path = &evidence->costs_on_path;
    s.gain = (struct estimate){ns[0], ns[1] * on_path->wall_low, ns[2] * on_path->wall_high};
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
    if (!s->stolen && added * RECORDING_FACTOR >= s->queue.on_path_ns)
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

static void facts_put(const struct evidence *evidence, const struct starvation *s,
                      struct findings *findings, struct finding *finding)
{
    const char *artifact = evidence->axes[AXIS_WAITS].artifact;
    finding_fact(findings, finding, "delay_share", "of the time in which threads were ready",
                 value_real(s->delay_share * 100, UNIT_PERCENT), artifact, NULL);
    finding_fact(findings, finding, "delay_mean", "a delay, on average",
                 value_real(s->queue.mean_ns, UNIT_NS), artifact, NULL);
    finding_fact(findings, finding, "on_path", "on the critical path",
                 value_real(s->queue.on_path_ns, UNIT_NS), artifact, NULL);
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
    bool host = s->stolen_ns / run_costs_busy(&evidence->costs) >= s->gain.ns / 2;
    finding->title = arena_printf(arena,
                                  "ready to run, it waits for a CPU for %.0f%% of the wall time: "
                                  "%s",
                                  wall > 0 ? s->gain.ns / wall * 100 : 0,
                                  host ? "other guests of the host have them" : "others have them");
    finding_why(
        findings, finding, artifact,
        "threads that were ready waited for a CPU for %.0f%% of the time in which they could "
        "have run",
        s->delay_share * 100);
    finding_why(findings, finding, "baseline.json",
                "it has %.0f%% of %u CPUs itself: the rest is not free, but somebody else's",
                s->own_share * 100, evidence->costs.cpus);
    if (s->stolen_ns >= STOLEN_SHARE_MIN * evidence->costs.cpu_ns)
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
    if (evidence->path.na || evidence->path.ns == 0)
        return dismissed(ret, self, "there is no critical path") ? 0 : -ENOMEM;
    struct starvation s = starvation_find(evidence);
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
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
    finding->recoverable = s.gain;
    path_costs_cover(ret->arena, costs, runq_pick, &part, finding);
    finding->cost_ns = fmax(finding->cost_ns, s.gain.ns);
    angles_put(evidence, &s, ret->arena, finding);
    describe(evidence, &s, ret, finding);
    return 0;
}

const struct detector detect_cpu_starvation = {
    .id = "cpu_starvation",
    .title = "ready to run, and no CPU is free",
    .category = CATEGORY_EXTERNAL,
    .remedy = REMEDY_SETTING,
    .axes = AXIS_BIT_WAITS,
    .judge = judge,
};
