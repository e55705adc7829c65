/* A lock that threads take turns at: while one computes under it, the others wait. */
#include "detect/each.h"
#include "detect/lock_common.h"

#include <math.h>

static void describe(const struct evidence *evidence, const struct lock_look *look,
                     struct findings *findings, struct finding *finding)
{
    struct arena *arena = findings->arena;
    const char *name = lock_name(arena, look), *where = place_text(arena, &look->wanted);
    const char *from = arena_printf(arena, "%s %s", evidence->axes[AXIS_WAITS].artifact,
                                    lock_id(arena, look));
    finding->title = arena_printf(arena, "%u threads spend %.0f%% of their time waiting for %s",
                                  look->row->threads, look->thread_share * 100, name);
    finding_why(findings, finding, from, "%u threads waited %s for %s, %s times",
                look->row->threads, time_text(arena, (double)look->row->waits.total_ns), name,
                count_text(arena, look->row->waits.count));
    if (!isnan(look->hold_mean_ns))
        finding_why(findings, finding, from, "it is held for %s at a time, computing, in %s",
                    time_text(arena, look->hold_mean_ns),
                    look->held.function.len > 0 ? place_text(arena, &look->held) : where);
    if (!isnan(look->busy_cpus))
        finding_why(findings, finding, evidence->axes[AXIS_CPU].artifact,
                    "meanwhile %.2f of %u CPUs are busy: the work under it is done one thread at "
                    "a time",
                    look->busy_cpus, evidence->costs.cpus);
    finding_why(findings, finding, from,
                "all of it is guarded by this one lock, so that threads cannot do it side by side");
    finding->advice = arena_printf(arena,
                                   "take what is computed at %s out of the lock, or give each part "
                                   "of the data a lock of its own",
                                   where);
    finding->caution = "what is moved out of the lock must not be changed by others meanwhile";
    finding->measure_next = arena_printf(arena, "whyslow locks --lock %s %s", lock_id(arena, look),
                                         evidence->axes[AXIS_WAITS].artifact);
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    return locks_judge(evidence, self, LOCK_IS_HOT, describe, ret);
}

const struct detector detect_hot_lock = {
    .id = "hot_lock",
    .title = "a lock that threads wait for",
    .category = CATEGORY_LOCK,
    .remedy = REMEDY_REDESIGN,
    .axes = AXIS_BIT_WAITS,
    .judge = judge,
};
