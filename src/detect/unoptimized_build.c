/* The program was built without optimization, and its own code has the time. */
#include "analyze/places.h"
#include "detect/cpu_common.h"
#include "detect/each.h"

#include <errno.h>

#define SHARE_MIN 0.10 /* of the wall time, in code of that build */
/* What is expected of -O2: half of the time. Two programs gained 19% and 81%
 * (docs/run-detectors-cpu.md); how much it is here nobody knows: the interval is all of it. */
#define GAIN 0.5

static struct finding *not_judged(struct findings *ret, const struct detector *self,
                                  const char *reason)
{
    struct finding *finding = dismissed(ret, self, "%s", reason);
    if (finding)
        finding->verdict = FINDING_NOT_JUDGED;
    return finding;
}

static struct str last_name(struct str path)
{
    struct str name = path;
    while (path.len > 0)
        name = str_cut(&path, '/');
    return name;
}

/* Code of the image itself: what it calls in libraries is built otherwise. */
static bool in_binary(const struct build_info *binary, const struct path_costs *costs,
                      const struct cpu_row *row, const struct path_cost *cost)
{
    const struct profile *profile = costs->profile;
    if (!cpu_row_own(row) || !cost->stack)
        return false;
    const struct profile_frame *leaf = &profile->frames[profile->stacks[cost->stack].frame];
    const struct profile_function
        *function = &profile->functions[profile->places[leaf->places].function];
    const struct image_info *image = &profile->images[function->image];
    if (binary->build_id && image->build_id.len > 0)
        return str_is(image->build_id, binary->build_id);
    return str_eq(last_name(image->path), last_name(str_from(binary->path)));
}

static void place_heaviest(const struct cpu_rows *rows, const float *parts, struct finding *finding)
{
    const struct path_costs *costs = rows->costs;
    for (size_t i = 0; i < costs->count; i++) { /* the longest first */
        if (parts[i] == 0)
            continue;
        finding->place = place_of_function(costs->profile, rows->rows[i].function);
        return;
    }
}

static void words_put(const struct evidence *evidence, struct findings *ret,
                      struct finding *finding, double share)
{
    struct arena *arena = ret->arena;
    const struct build_info *binary = evidence->binary;
    const char *level = binary->optimization ? binary->optimization : "no optimization";
    const char *artifact = evidence->axes[AXIS_CPU].artifact;
    finding->title = arena_printf(arena, "built with %s: %.0f%% of the wall time is in its code",
                                  level, share * 100);
    finding_fact(ret, finding, "optimization", "built with", value_text(level), "fingerprint.json",
                 NULL);
    finding_fact(ret, finding, "image_share", "of the wall time in it",
                 value_real(share * 100, UNIT_PERCENT), artifact, NULL);
    finding_why(ret, finding, artifact, "%.0f%% of the wall time is in code of %s", share * 100,
                binary->path);
    finding_why(ret, finding, "fingerprint.json", "which was built with %s: %s", level,
                binary->optimized.because);
    finding->advice = "build it with -O2 (meson: --buildtype=release, cmake: "
                      "-DCMAKE_BUILD_TYPE=Release) and measure that build: what a build without "
                      "optimization shows may not be slow in the other";
    finding->caution = "the gain is a guess: half, somewhere between none and all of that time";
    finding->angles[ANGLE_TRACING] = (struct angle_word){ANGLE_SILENT,
                                                         "how a binary was built is no event"};
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    const struct build_info *binary = evidence->binary;
    const struct path_costs *costs = &evidence->costs_on_path;
    struct arena *arena = ret->arena;
    if (!binary)
        return not_judged(ret, self, evidence->binary_na) ? 0 : -ENOMEM;
    if (binary->optimized.answer == BUILD_UNKNOWN)
        return not_judged(ret, self, binary->optimized.because) ? 0 : -ENOMEM;
    if (binary->optimized.answer == BUILD_YES)
        return dismissed(ret, self, "built with %s: %s",
                         binary->optimization ? binary->optimization : "optimization",
                         binary->optimized.because)
                   ? 0
                   : -ENOMEM;
    struct cpu_rows rows;
    int r = cpu_rows_build(arena, evidence, &rows);
    float *parts = cpu_parts(arena, costs);
    struct finding *finding = detected(ret, self);
    if (r < 0 || !parts || !finding)
        return -ENOMEM;
    for (size_t i = 0; i < costs->count; i++)
        parts[i] = in_binary(binary, costs, &rows.rows[i], &costs->rows[i]);
    struct estimate cost = path_costs_cover(arena, costs, cpu_parts_pick, parts, finding);
    double share = cpu_share(evidence, cost.ns);
    finding->recoverable = cpu_at_most(cost, GAIN);
    finding->occurrences = cpu_parts_samples(costs, parts);
    place_heaviest(&rows, parts, finding);
    cpu_angles(evidence, ret, finding, parts);
    words_put(evidence, ret, finding, share);
    if (share < SHARE_MIN) {
        finding->verdict = FINDING_DISMISSED;
        finding->reason = arena_printf(arena,
                                       "built with %s, but its code has %.0f%% of the wall time; "
                                       "from %.0f%% on it counts",
                                       binary->optimization ? binary->optimization
                                                            : "no optimization",
                                       share * 100, SHARE_MIN * 100);
    }
    return 0;
}

const struct detector detect_unoptimized_build = {
    .id = "unoptimized_build",
    .title = "built without optimization",
    .category = CATEGORY_CPU,
    .remedy = REMEDY_SETTING,
    .axes = AXIS_BIT_CPU,
    .judge = judge,
};
