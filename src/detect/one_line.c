/* One source line has most of the time. Needs line information. */
#include "analyze/embedded.h"
#include "analyze/places.h"
#include "detect/cpu_common.h"
#include "detect/each.h"

#include <errno.h>

static void facts_put(const struct evidence *evidence, struct findings *ret,
                      struct finding *finding, double share, uint32_t function)
{
    struct arena *arena = ret->arena;
    const char *artifact = evidence->axes[AXIS_CPU].artifact;
    const char *id = cpu_function_id(arena, function);
    const char *where = arena_printf(arena, "%s %s", artifact, id);
    struct str source = embedded_source(&evidence->embedded, finding->place.file,
                                        finding->place.line);
    finding_fact(ret, finding, "line_share", "of the wall time",
                 value_real(share * 100, UNIT_PERCENT), artifact, id);
    finding_fact(ret, finding, "samples", "samples", value_uint(finding->occurrences, UNIT_COUNT),
                 artifact, id);
    if (source.len > 0)
        finding_fact(ret, finding, "source", "source", value_str(str_trim(source)), artifact, id);
    finding_why(ret, finding, artifact, "%.0f%% of the wall time the critical path runs on a CPU",
                cpu_share(evidence, evidence->costs_on_path.classes[WAIT_CLASS_RUNNING]) * 100);
    finding_why(ret, finding, where, "%.0f%% of the wall time is at line %u of %.*s", share * 100,
                finding->place.line, STR_FMT(finding->place.file));
    if (source.len > 0) {
        struct str line = str_trim(source);
        finding_why(ret, finding, where, "which reads: %.*s", STR_FMT(line));
    }
    finding->measure_next = arena_printf(arena, "whyslow report %s --annotate %s",
                                         evidence->axes[AXIS_CPU].path, id);
}

static int finding_make(const struct evidence *evidence, const struct detector *self,
                        const struct cpu_rows *rows, const struct profile_place *line,
                        struct findings *ret)
{
    struct arena *arena = ret->arena;
    const struct path_costs *costs = rows->costs;
    struct finding *finding = detected(ret, self);
    float *parts = cpu_parts(arena, costs);
    if (!finding || !parts)
        return -ENOMEM;
    for (size_t i = 0; i < costs->count; i++) {
        const struct cpu_row *row = &rows->rows[i];
        parts[i] = cpu_row_own(row) && row->place && cpu_same_line(row->place, line);
    }
    struct estimate cost = path_costs_cover(arena, costs, cpu_parts_pick, parts, finding);
    double share = cpu_share(evidence, cost.ns);
    finding->recoverable = cpu_at_most(cost, 1);
    finding->place = place_of_function(costs->profile, line->function);
    finding->place.file = line->file;
    finding->place.line = line->line;
    finding->occurrences = cpu_parts_samples(costs, parts);
    const char *where = place_text(arena, &finding->place);
    finding->title = arena_printf(arena, "one line takes %.0f%% of the wall time: %s", share * 100,
                                  where);
    finding->advice = arena_printf(arena, "make this line cheaper, or reach it less often: %s",
                                   where);
    finding->caution = "the recoverable time is all it takes: how much of its work is needed, "
                       "samples cannot say";
    cpu_angles(evidence, ret, finding, parts);
    facts_put(evidence, ret, finding, share, line->function);
    if (share >= CPU_LINE_SHARE_MIN) {
        cpu_too_few(arena, finding);
        return 0;
    }
    finding->verdict = FINDING_DISMISSED;
    finding->reason = arena_printf(arena,
                                   "the heaviest line, %s, has %.0f%% of the wall time; from "
                                   "%.0f%% on it counts",
                                   where, share * 100, CPU_LINE_SHARE_MIN * 100);
    return 0;
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct cpu_rows rows;
    const struct profile_place *line = NULL;
    uint32_t function = 0;
    double ns = 0;
    if (evidence->costs_on_path.profile != &evidence->cpu)
        return dismissed(ret, self, "no sample of the CPU on the path") ? 0 : -ENOMEM;
    int r = cpu_rows_build(ret->arena, evidence, &rows);
    if (r == 0)
        r = cpu_top_line(ret->arena, &rows, &line, &function, &ns);
    if (r < 0)
        return r;
    if (line)
        return finding_make(evidence, self, &rows, line, ret);
    struct finding *finding = dismissed(ret, self,
                                        "no line is known of the %.0f%% of the wall time in the "
                                        "program's own code: build it with -g",
                                        cpu_share(evidence, rows.own_ns) * 100);
    if (!finding)
        return -ENOMEM;
    /* Where the program hardly runs, a line would not be known to matter. */
    if (cpu_share(evidence, rows.own_ns) >= CPU_LINE_SHARE_MIN)
        finding->verdict = FINDING_NOT_JUDGED;
    return 0;
}

const struct detector detect_one_line = {
    .id = "one_line",
    .title = "one line dominates",
    .category = CATEGORY_CPU,
    .remedy = REMEDY_LOCAL,
    .axes = AXIS_BIT_CPU,
    .generic = true,
    .judge = judge,
};
