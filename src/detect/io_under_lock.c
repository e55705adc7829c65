/* Who has a lock sleeps, reads or waits for a reply: all who want it wait with it. */
#include "detect/each.h"
#include "detect/lock_common.h"

#include "analyze/places.h"

#include <math.h>

/* Where the function that takes the lock goes on to what waits; the wait's own place without one.
 */
static struct place place_under(const struct profile *profile, uint32_t stack,
                                const struct place *wanted)
{
    struct place found = place_of_stack(profile, stack);
    /* A parent's number is smaller than its child's: the loop ends. */
    for (; stack != 0 && stack < profile->stack_count; stack = profile->stacks[stack].parent) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[stack].frame];
        for (uint32_t i = 0; i < frame->place_count; i++) {
            const struct profile_place *at = &profile->places[frame->places + i];
            struct place place = place_of_function(profile, at->function);
            if (!place_same(&place, wanted, false))
                continue;
            place.file = at->file;
            place.line = at->line;
            return place;
        }
    }
    return found;
}

static void describe(const struct evidence *evidence, const struct lock_look *look,
                     struct findings *findings, struct finding *finding)
{
    struct arena *arena = findings->arena;
    const struct waits *waits = &evidence->waits;
    const char *artifact = evidence->axes[AXIS_WAITS].artifact;
    const char *name = lock_name(arena, look);
    const char *from = arena_printf(arena, "%s %s", artifact, lock_id(arena, look));
    const struct wait_row *under = &waits->rows[look->under_row];
    struct place place = place_under(&waits->profile, under->info.stack, &look->wanted);
    const char *cause = wait_cause(arena, waits, look->under_row);
    finding->place = place;
    finding->title = arena_printf(arena,
                                  "%s is held for %s at a time, %.0f%% of it off the CPU, while %u "
                                  "threads want it",
                                  name, time_text(arena, look->hold_mean_ns),
                                  look->row->off_cpu_hold_pct, look->row->threads);
    if (isnan(look->hold_mean_ns))
        finding->title = arena_printf(arena,
                                      "who has %s is off the CPU for %.0f%% of the time, while %u "
                                      "threads want it",
                                      name, look->row->off_cpu_hold_pct, look->row->threads);
    finding_why(findings, finding, from, "%u threads waited %s for %s, %.0f%% of their time",
                look->row->threads, time_text(arena, (double)look->row->waits.total_ns), name,
                look->thread_share * 100);
    finding_why(findings, finding, from, "its holder was off the CPU for %.0f%% of the hold",
                look->row->off_cpu_hold_pct);
    finding_why(findings, finding, arena_printf(arena, "%s w%u", artifact, look->under_row),
                "it waits itself, with the lock in its hand: %s, in %s", cause,
                wait_where(arena, &waits->profile, under->info.stack));
    finding_why(
        findings, finding, from,
        "the lock guards the wait, too, so that waits that could overlap follow each other");
    finding->advice = arena_printf(arena,
                                   "at %s let go of the lock first: copy what is needed under the "
                                   "lock, wait without it, take it again to publish the result",
                                   place_text(arena, &place));
    finding->caution = "what was read before must be checked again when the lock is retaken; waits "
                       "of one device may not overlap";
    finding->measure_next = arena_printf(arena, "whyslow locks --lock %s %s", lock_id(arena, look),
                                         artifact);
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    return locks_judge(evidence, self, LOCK_HAS_IO, describe, ret);
}

const struct detector detect_io_under_lock = {
    .id = "io_under_lock",
    .title = "waiting with a lock in hand",
    .category = CATEGORY_LOCK,
    .remedy = REMEDY_LOCAL,
    .axes = AXIS_BIT_WAITS,
    .judge = judge,
};
