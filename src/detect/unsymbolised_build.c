/* A good part of the time is in functions that nobody can name: not slow, but not known either. */
#include "analyze/places.h"
#include "detect/cpu_common.h"
#include "detect/each.h"

#include <errno.h>

#define SHARE_MIN 0.20 /* of the wall time */

static uint32_t image_of(void *context, const struct cpu_rows *rows, size_t i)
{
    (void)context;
    const struct cpu_row *row = &rows->rows[i];
    return row->nameless ? rows->costs->profile->functions[row->function].image : 0;
}

static void words_put(const struct evidence *evidence, struct findings *ret,
                      struct finding *finding, double share)
{
    struct arena *arena = ret->arena;
    const char *artifact = evidence->axes[AXIS_CPU].artifact;
    struct str image = finding->place.image;
    bool ours = finding->place.owner == FINDING_OWNER_USER;
    finding->title = arena_printf(arena,
                                  "%.0f%% of the wall time is in functions without a name, most of "
                                  "it in %.*s",
                                  share * 100, STR_FMT(image));
    finding_fact(ret, finding, "nameless_share", "of the wall time",
                 value_real(share * 100, UNIT_PERCENT), artifact, NULL);
    finding_why(ret, finding, artifact, "%.0f%% of the wall time is in functions without a name",
                share * 100);
    if (evidence->binary && evidence->binary->stripped.answer == BUILD_YES)
        finding_why(ret, finding, "fingerprint.json", "%s is stripped: %s", evidence->binary->path,
                    evidence->binary->stripped.because);
    finding->advice = ours ? "build it with -g and do not strip it (or keep the .debug file beside "
                             "it): speed stays the same, and places get names and lines"
                           : "install its debug symbols (Debian: the -dbgsym package) or set "
                             "DEBUGINFOD_URLS, and run again: places get names and lines";
    finding->caution = "this makes nothing faster: it makes the rest of this report say more";
    finding->angles[ANGLE_TRACING] = (struct angle_word){ANGLE_SILENT, "names are no event"};
    finding->angles[ANGLE_COUNTING] = (struct angle_word){ANGLE_SILENT, "names are not counted"};
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    const struct path_costs *costs = &evidence->costs_on_path;
    struct arena *arena = ret->arena;
    struct cpu_rows rows;
    struct cpu_top top = {0};
    int r = cpu_rows_build(arena, evidence, &rows);
    float *parts = cpu_parts(arena, costs);
    if (r < 0 || !parts)
        return -ENOMEM;
    for (size_t i = 0; i < costs->count; i++)
        parts[i] = rows.rows[i].nameless;
    size_t images = costs->profile ? costs->profile->image_count : 0;
    r = cpu_top_find(arena, &rows, image_of, NULL, images, &top);
    if (r < 0)
        return r;
    if (top.id == 0)
        return dismissed(ret, self, "every sample on the path is in a function with a name")
                   ? 0
                   : -ENOMEM;
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    finding->recoverable = (struct estimate){0, 0, 0};
    /* It covers no rows: it explains nothing that others say of them. */
    struct estimate cost = path_costs_sum(costs, cpu_parts_pick, parts);
    finding->cost_ns = cost.ns;
    double share = cpu_share(evidence, cost.ns);
    finding->occurrences = cpu_parts_samples(costs, parts);
    finding->place.image = costs->profile->images[top.id].path;
    for (size_t i = 0; i < costs->count && !finding->place.owner; i++)
        if (image_of(NULL, &rows, i) == top.id)
            finding->place.owner = place_owner(costs->profile,
                                               &costs->profile->functions[rows.rows[i].function]);
    cpu_angles(evidence, ret, finding, parts);
    words_put(evidence, ret, finding, share);
    if (share < SHARE_MIN) {
        finding->verdict = FINDING_DISMISSED;
        finding->reason = arena_printf(arena,
                                       "%.0f%% of the wall time is in functions without a name; "
                                       "from %.0f%% on it counts",
                                       share * 100, SHARE_MIN * 100);
    }
    return 0;
}

const struct detector detect_unsymbolised_build = {
    .id = "unsymbolised_build",
    .title = "functions without a name",
    .class = FINDING_CONTEXT,
    .category = CATEGORY_CPU,
    .remedy = REMEDY_SETTING,
    .axes = AXIS_BIT_CPU,
    .judge = judge,
};
