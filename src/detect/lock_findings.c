/* What detectors of locks have in common to say. */
#include "detect/lock_common.h"

#include "analyze/places.h"

#include <errno.h>
#include <math.h>

enum { SAMPLES_MIN = 20 };

/* The time on the path that the lock makes one thread's at a time: its waits, and what runs where
 * it is wanted. */
struct section {
    const struct evidence *evidence;
    const struct lock_look *look;
};

static double section_pick(void *context, const struct path_costs *costs,
                           const struct path_cost *row)
{
    const struct section *section = context;
    const struct lock_look *look = section->look;
    if (row->wait)
        return section->evidence->locks.of_wait[row->wait] == look->index + 1;
    if (row->class != WAIT_CLASS_RUNNING || row->stack == 0)
        return 0;
    return place_on_stack(costs->profile, row->stack, &look->wanted, false) ||
           (look->held.function.len > 0 &&
            place_on_stack(costs->profile, row->stack, &look->held, false));
}

static struct value ns_value(double ns)
{
    return isnan(ns) ? value_na("it is hardly waited for") : value_real(ns, UNIT_NS);
}

static void facts_put(const struct evidence *evidence, const struct lock_look *look,
                      struct findings *findings, struct finding *finding)
{
    const char *artifact = evidence->axes[AXIS_WAITS].artifact;
    const char *id = lock_id(findings->arena, look);
    const struct lock_row *row = look->row;
    finding_fact(findings, finding, "lock", "lock", value_text(lock_name(findings->arena, look)),
                 artifact, id);
    finding_fact(findings, finding, "waits", "waits", value_uint(row->waits.count, UNIT_COUNT),
                 artifact, id);
    finding_fact(findings, finding, "waited", "waited, all threads together",
                 value_uint(row->waits.total_ns, UNIT_NS), artifact, id);
    finding_fact(findings, finding, "thread_share", "of the time of the threads that wanted it",
                 value_real(look->thread_share * 100, UNIT_PERCENT), artifact, id);
    finding_fact(findings, finding, "mean_waiters", "threads waiting at a time",
                 value_real(look->mean_waiters, UNIT_NONE), artifact, id);
    finding_fact(findings, finding, "held_mean", "held, on average",
                 isnan(look->hold_mean_ns) ? value_na("holds were not recorded")
                                           : value_real(look->hold_mean_ns, UNIT_NS),
                 artifact, id);
    finding_fact(findings, finding, "held_off_cpu", "of the hold off the CPU",
                 isnan(row->off_cpu_hold_pct) ? value_na("holds were not recorded")
                                              : value_real(row->off_cpu_hold_pct, UNIT_PERCENT),
                 artifact, id);
    finding_fact(findings, finding, "window", "time in which it was waited for",
                 ns_value(look->window_ns), artifact, id);
    finding_fact(findings, finding, "least", "what was computed meanwhile, over all CPUs",
                 ns_value(look->least_ns), artifact, id);
    finding_fact(findings, finding, "replayed", "gained when the run is replayed without its waits",
                 ns_value(look->gain_ns), artifact, id);
}

/* How many samples one busy CPU gives meanwhile: few are an answer only where there could be many.
 */
static double samples_expected(const struct evidence *evidence, const struct lock_look *look)
{
    const struct profile *cpu = &evidence->cpu;
    double each = cpu->count > 0 ? (double)cpu->weight / (double)cpu->count : 0;
    return each > 0 ? (double)(look->end_ns - look->start_ns) / each : 0;
}

/* Tracing saw the waits. Samples tell how many CPUs were busy meanwhile, and the kernel's count of
 * threads that let go of the CPU by themselves tells whether plain runs wait as often. */
static void angles_put(const struct evidence *evidence, const struct lock_look *look,
                       struct arena *arena, struct finding *finding)
{
    double could = fmin((double)evidence->costs.cpus, (double)look->row->threads);
    finding->angles[ANGLE_TRACING] = (struct angle_word){
        ANGLE_SUPPORTS, arena_printf(arena, "%s waits, %s in all, %.1f%% of the time of %u threads",
                                     count_text(arena, look->row->waits.count),
                                     time_text(arena, (double)look->row->waits.total_ns),
                                     look->thread_share * 100, look->row->threads)};
    if (!isnan(look->busy_cpus) && samples_expected(evidence, look) >= SAMPLES_MIN)
        finding->angles[ANGLE_SAMPLING] = (struct angle_word){
            look->busy_cpus < 0.9 * could ? ANGLE_SUPPORTS : ANGLE_REJECTS,
            arena_printf(arena,
                         "%.2f CPUs were busy while it was waited for; its threads could "
                         "use %.0f",
                         look->busy_cpus, could)};
    double switches = evidence->costs.switches_voluntary;
    double waits = (double)look->row->waits.count;
    if (!isnan(switches))
        finding->angles[ANGLE_COUNTING] = (struct angle_word){
            switches >= waits / 2 ? ANGLE_SUPPORTS : ANGLE_REJECTS,
            arena_printf(arena, "a plain run lets go of the CPU %s times; %s waits were recorded",
                         count_text(arena, (uint64_t)switches),
                         count_text(arena, look->row->waits.count))};
}

static const char *other_reason(struct arena *arena, const struct lock_look *look,
                                enum lock_trouble trouble)
{
    const char *name = lock_name(arena, look);
    switch (trouble) {
    case LOCK_HAS_IO:
        return arena_printf(arena,
                            "%s is held off the CPU for %.0f%% of the time: what is done under it "
                            "is the trouble (io_under_lock)",
                            name, look->row->off_cpu_hold_pct);
    case LOCK_OF_HERD:
        return arena_printf(arena,
                            "who waits for %s was woken with many others and wants it back: waking "
                            "them is the trouble (thundering_herd)",
                            name);
    case LOCK_IS_CONVOY:
        return arena_printf(arena,
                            "at %s %.1f threads queue at a time, and its holds are computing: it "
                            "is a convoy (lock_convoy)",
                            name, look->mean_waiters);
    default:
        return arena_printf(
            arena,
            "at %s %.1f threads wait at a time, from %.0f on they are a convoy, and "
            "its holds are computing: it is a hot lock (hot_lock)",
            name, look->mean_waiters, LOCK_WAITERS_MIN);
    }
}

static int one_add(const struct evidence *evidence, const struct detector *self,
                   const struct lock_look *look, const struct herd *herd, enum lock_trouble trouble,
                   lock_describe *describe, bool *said, struct findings *ret)
{
    const char *reason = NULL;
    enum lock_trouble is = lock_judge(ret->arena, look, evidence, herd, &reason);
    if (is != trouble && *said)
        return 0;
    *said |= is != trouble;
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    struct section section = {evidence, look};
    finding->place = look->wanted;
    finding->occurrences = look->row->waits.count;
    path_costs_cover(ret->arena, &evidence->costs_on_path, section_pick, &section, finding);
    finding->recoverable = look->recoverable; /* also where that is not known */
    finding->cost_ns = fmax(finding->cost_ns, look->recoverable.ns);
    facts_put(evidence, look, ret, finding);
    angles_put(evidence, look, ret->arena, finding);
    if (is == trouble) {
        describe(evidence, look, ret, finding);
        return 0;
    }
    finding->verdict = FINDING_DISMISSED;
    finding->reason = is == LOCK_FINE ? reason : other_reason(ret->arena, look, is);
    return 0;
}

int locks_judge(const struct evidence *evidence, const struct detector *self,
                enum lock_trouble trouble, lock_describe *describe, struct findings *ret)
{
    size_t first = ret->count;
    struct herd herd;
    bool said = false; /* one dismissal is enough: of the one that was waited for longest */
    int r = herd_find(evidence, ret->arena, &herd);
    if (r < 0)
        return r;
    uint32_t last = (uint32_t)MIN(evidence->locks.count, (size_t)LOCKS_LOOKED_AT_MAX);
    for (uint32_t i = 0; i < last; i++) {
        struct lock_look look;
        if (!lock_look(evidence, ret->arena, i, &look))
            continue;
        r = one_add(evidence, self, &look, &herd, trouble, describe, &said, ret);
        if (r < 0)
            return r;
    }
    if (arena_failed(ret->arena))
        return -ENOMEM;
    if (ret->count > first)
        return 0;
    if (evidence->path.na)
        return dismissed(ret, self, "there is no critical path: %s", evidence->path.na) ? 0
                                                                                        : -ENOMEM;
    return dismissed(ret, self, "no thread waited for a lock that another had") ? 0 : -ENOMEM;
}
