/* When the first pass calls for more (M18): decided by numbers, and said with them. */
#include "cmd/run_passes.h"

#include "analyze/heap_load.h"
#include "analyze/heap_sums.h"
#include "analyze/hotspots.h"
#include "analyze/profile_load.h"

#include <math.h>
#include <string.h>

#define ALLOCATOR_SHARE_MIN 0.03               /* of CPU samples */
#define PEAK_BYTES_MIN      (64.0 * (1 << 20)) /* smaller heaps are nobody's trouble */
#define LIVE_SHARE_MIN      0.5                /* of the peak still lives at the end */

static double allocator_share(struct arena *arena, const char *path)
{
    struct recording *recording = NULL;
    struct profile profile = {0};
    struct hotspots hotspots = {0};
    struct profile_opts opts = {0};
    struct why why = {0};
    double share = NAN;
    int r = path ? recording_open(path, &recording, &why) : -1;
    if (r == 0)
        r = profile_load(arena, recording, &opts, &profile, &why);
    if (r == 0 && hotspots_build(arena, &profile, &hotspots) == 0 && profile.weight > 0) {
        uint64_t weight = 0;
        for (size_t i = 0; i < hotspots.count; i++)
            if (strcmp(hotspots.rows[i].category, "cpu/alloc") == 0)
                weight += hotspots.rows[i].self_weight;
        share = (double)weight / (double)profile.weight;
    }
    recording_close(recording);
    return share;
}

/* Of a recording of samples: it is what may be made exact. */
static const char *memory_reason(struct arena *arena, const char *path)
{
    struct recording *recording = NULL;
    struct heap heap = {0};
    struct heap_sums sums = {0};
    struct why why = {0};
    const char *reason = NULL;
    int r = path ? recording_open(path, &recording, &why) : -1;
    if (r == 0)
        r = heap_load(arena, recording, &heap, &why);
    if (r == 0 && heap_sums_build(arena, &heap, &sums) == 0 && sums.peak_known) {
        double peak = (double)sums.peak_bytes, live = (double)heap_live_bytes(&sums.all);
        char text[48];
        units_format(peak, UNIT_BYTES, text, sizeof(text));
        if (peak >= PEAK_BYTES_MIN && live >= LIVE_SHARE_MIN * peak)
            reason = arena_printf(arena, "~%.0f%% of a peak of ~%s still lives at the end",
                                  live / peak * 100, text);
    }
    recording_close(recording);
    return reason;
}

const char *run_escalate_heap(struct run *run)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    double share = allocator_share(&arena, run->input.axes[AXIS_CPU].recording);
    if (share >= ALLOCATOR_SHARE_MIN)
        return arena_printf(run->arena, "%.1f%% of the CPU samples are in the allocator",
                            share * 100);
    const char *reason = memory_reason(&arena, run->input.axes[AXIS_HEAP].recording);
    return reason ? arena_dup(run->arena, reason) : NULL;
}
