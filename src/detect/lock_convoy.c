/* Threads that queue at a lock one behind the other: each has it for a moment and then waits for
 * all others to have had it. */
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
    finding->title = arena_printf(arena, "%.1f of %u threads stand in line for %s at any time",
                                  look->mean_waiters, look->row->threads, name);
    finding_why(findings, finding, from, "%u threads spent %.0f%% of their time waiting for %s",
                look->row->threads, look->thread_share * 100, name);
    if (!isnan(look->hold_mean_ns))
        finding_why(findings, finding, from,
                    "a wait takes %s on average, a hold %s: it is the line that takes long, not "
                    "the work",
                    time_text(arena, look->wait_mean_ns), time_text(arena, look->hold_mean_ns));
    if (!isnan(look->busy_cpus))
        finding_why(findings, finding, evidence->axes[AXIS_CPU].artifact,
                    "meanwhile %.2f of %u CPUs are busy", look->busy_cpus, evidence->costs.cpus);
    finding_why(findings, finding, from,
                "every thread passes through this one lock, however many there are: more threads "
                "make the line longer");
    finding->advice = arena_printf(arena,
                                   "at %s take the lock less often (collect several changes, then "
                                   "take it once) or split it: by thread, by key, by bucket",
                                   where);
    finding->caution = "split locks must be taken in one order wherever several are needed";
    finding->measure_next = arena_printf(arena, "whyslow locks --lock %s %s", lock_id(arena, look),
                                         evidence->axes[AXIS_WAITS].artifact);
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    return locks_judge(evidence, self, LOCK_IS_CONVOY, describe, ret);
}

const struct detector detect_lock_convoy = {
    .id = "lock_convoy",
    .title = "threads in line for a lock",
    .category = CATEGORY_LOCK,
    .remedy = REMEDY_REDESIGN,
    .axes = AXIS_BIT_WAITS,
    .judge = judge,
};
