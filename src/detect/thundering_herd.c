/* All are woken, one gets something to do: the others have run for nothing. */
#include "detect/each.h"
#include "detect/herd.h"
#include "detect/lock_common.h"

#include "analyze/places.h"

#include <errno.h>
#include <math.h>

static void facts_put(const struct evidence *evidence, const struct herd *herd,
                      struct findings *findings, struct finding *finding)
{
    const char *artifact = evidence->axes[AXIS_WAITS].artifact;
    const char *id = arena_printf(findings->arena, "w%u", herd->row);
    finding_fact(findings, finding, "threads", "threads that wait there",
                 value_uint(herd->threads, UNIT_COUNT), artifact, id);
    finding_fact(findings, finding, "wakes", "wake-ups", value_uint(herd->wakes, UNIT_COUNT),
                 artifact, id);
    finding_fact(findings, finding, "told_all", "of those with a known waker by a call to all",
                 herd->known > 0
                     ? value_real(100.0 * (double)herd->to_all / (double)herd->known, UNIT_PERCENT)
                     : value_na("no waker is known"),
                 artifact, id);
    finding_fact(findings, finding, "in_vain_at_least", "in vain, at least",
                 value_real(herd->vain_low * 100, UNIT_PERCENT), artifact, id);
    finding_fact(findings, finding, "in_vain_at_most", "in vain, at most",
                 value_real(herd->vain_high * 100, UNIT_PERCENT), artifact, id);
    finding_fact(findings, finding, "work_mean", "computed after a wake-up, on average",
                 value_real(herd->work_ns, UNIT_NS), evidence->axes[AXIS_CPU].artifact, NULL);
    finding_fact(findings, finding, "calls", "CPU time of waking and waiting",
                 value_real(herd->calls_ns, UNIT_NS), evidence->axes[AXIS_CPU].artifact, NULL);
}

static void angles_put(const struct evidence *evidence, const struct herd *herd,
                       struct arena *arena, struct finding *finding)
{
    finding->angles[ANGLE_TRACING] = (struct angle_word){
        ANGLE_SUPPORTS, arena_printf(arena, "%s wake-ups of %u threads, %.0f%% by a call to all",
                                     count_text(arena, herd->wakes), herd->threads,
                                     100.0 * (double)herd->to_all / (double)herd->known)};
    finding->angles[ANGLE_SAMPLING] = (struct angle_word){
        ANGLE_SUPPORTS,
        arena_printf(arena,
                     "%s of computing a wake-up; %.0f%% of the CPU time is "
                     "waking and waiting",
                     time_text(arena, herd->work_ns), 100 * herd->calls_ns / herd->cpu_ns)};
    double switches = evidence->costs.switches_voluntary;
    if (!isnan(switches))
        finding->angles[ANGLE_COUNTING] = (struct angle_word){
            switches >= (double)herd->wakes / 2 ? ANGLE_SUPPORTS : ANGLE_REJECTS,
            arena_printf(arena, "a plain run lets go of the CPU %s times, for %s wake-ups here",
                         count_text(arena, (uint64_t)switches), count_text(arena, herd->wakes))};
}

static void describe(const struct evidence *evidence, const struct herd *herd,
                     struct findings *findings, struct finding *finding)
{
    struct arena *arena = findings->arena;
    const struct profile *profile = &evidence->waits.profile;
    const char *from = arena_printf(arena, "%s w%u", evidence->axes[AXIS_WAITS].artifact,
                                    herd->row);
    const char *where = place_text(arena, &finding->place);
    struct place teller = place_of_stack(profile,
                                         evidence->waits.rows[herd->waker].info.waker_stack);
    const char *told = place_text(arena, &teller);
    finding->title = arena_printf(
        arena,
        "%s times one of %u threads is woken, and at least %.0f%% of them sleep again within 50 us",
        count_text(arena, herd->wakes), herd->threads, herd->vain_low * 100);
    finding_why(findings, finding, evidence->axes[AXIS_CPU].artifact,
                "%.0f%% of the CPU time goes into waking threads and putting them to sleep",
                100 * herd->calls_ns / herd->cpu_ns);
    finding_why(findings, finding, from, "%u threads wait at %s and are woken %s times",
                herd->threads, where, count_text(arena, herd->wakes));
    finding_why(findings, finding, from, "once awake they compute for %s on average",
                time_text(arena, herd->work_ns));
    finding_why(findings, finding, from, "%s tells all of them, whatever there is to do", told);
    finding->advice = arena_printf(arena,
                                   "at %s wake as many as there is work for (signal instead of "
                                   "broadcast, notify_one instead of notify_all)",
                                   told);
    finding
        ->caution = "a signal to one is enough only if whoever is woken can take any of the work";
    finding->measure_next = arena_printf(arena, "whyslow waits --idle --stack w%u %s", herd->row,
                                         evidence->axes[AXIS_WAITS].artifact);
}

/* Calls of the threads that are woken or wake. */
static double calls_pick(void *context, const struct path_costs *costs, const struct path_cost *row)
{
    (void)context;
    (void)costs;
    return row->class == WAIT_CLASS_RUNNING && str_is(row->syscall, "futex");
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct herd herd;
    int r = herd_find(evidence, ret->arena, &herd);
    if (r < 0)
        return r;
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    if (herd.function) {
        finding->place = place_of_stack(&evidence->waits.profile,
                                        evidence->waits.rows[herd.row].info.stack);
        finding->occurrences = herd.wakes;
        facts_put(evidence, &herd, ret, finding);
    }
    if (herd.fine) {
        finding->verdict = herd.unknown ? FINDING_NOT_JUDGED : FINDING_DISMISSED;
        finding->reason = herd.fine;
        return 0;
    }
    finding->recoverable = herd.recoverable;
    path_costs_cover(ret->arena, &evidence->costs_on_path, calls_pick, NULL, finding);
    finding->cost_ns = fmax(finding->cost_ns, herd.recoverable.ns);
    angles_put(evidence, &herd, ret->arena, finding);
    describe(evidence, &herd, ret, finding);
    return 0;
}

const struct detector detect_thundering_herd = {
    .id = "thundering_herd",
    .title = "all are woken for what one gets",
    .category = CATEGORY_LOCK,
    .remedy = REMEDY_LOCAL,
    .axes = AXIS_BIT_WAITS | AXIS_BIT_CPU,
    .judge = judge,
};
