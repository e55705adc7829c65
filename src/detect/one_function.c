/* One function has most of the time: whoever wants it faster begins there. */
#include "analyze/places.h"
#include "detect/cpu_common.h"
#include "detect/each.h"

#include <errno.h>
#include <math.h>

#define SHARE_MIN        0.30 /* of the wall time, in the function and helpers of the standard library */
#define HELPED_SHARE_MIN 0.10 /* of the function's: else it is not worth a word */
#define LINE_HAS_IT_ALL  0.60 /* of the function: then the line is what to speak of */

/* By itself, with all that was inlined into it, or with what an interpreter's loop calls. */
enum view { VIEW_ITSELF, VIEW_INLINED, VIEW_INTERPRETER, VIEWS };

static uint32_t function_of(void *context, const struct cpu_rows *rows, size_t i)
{
    const enum view *view = context;
    const struct cpu_row *row = &rows->rows[i];
    uint32_t functions[VIEWS] = {row->function, row->outer, row->interpreter};
    return cpu_row_own(row) ? functions[*view] : 0;
}

struct judging {
    const struct evidence *evidence;
    struct findings *ret;
    struct cpu_rows rows;
    struct cpu_top top;
    enum view view;
    const struct profile_place *line; /* the heaviest of the function's; NULL */
    double line_ns;
};

static int top_find(struct judging *judging)
{
    struct arena *arena = judging->ret->arena;
    size_t count = judging->rows.costs->profile->function_count;
    int r = 0;
    /* An interpreter's loop is nothing without the rest of it. Then the narrowest view that has
     * enough; where none has, that. */
    static const enum view order[VIEWS] = {VIEW_INTERPRETER, VIEW_ITSELF, VIEW_INLINED};
    for (int i = 0; i < VIEWS && r == 0; i++) {
        enum view here = order[i];
        struct cpu_top top;
        r = cpu_top_find(arena, &judging->rows, function_of, &here, count, &top);
        if (r < 0 || (here != VIEW_ITSELF && cpu_share(judging->evidence, top.ns) < SHARE_MIN))
            continue;
        judging->top = top;
        judging->view = here;
        if (cpu_share(judging->evidence, top.ns) >= SHARE_MIN)
            break;
    }
    uint32_t function = 0;
    if (r == 0)
        r = cpu_top_line(arena, &judging->rows, &judging->line, &function, &judging->line_ns);
    if (function != judging->top.id)
        judging->line = NULL;
    return r;
}

static void facts_put(struct judging *judging, struct finding *finding, double share)
{
    struct findings *ret = judging->ret;
    const struct evidence *evidence = judging->evidence;
    const char *artifact = evidence->axes[AXIS_CPU].artifact;
    const char *id = cpu_function_id(ret->arena, judging->top.id);
    finding_fact(ret, finding, "self_share", "of the wall time",
                 value_real(share * 100, UNIT_PERCENT), artifact, id);
    finding_fact(ret, finding, "samples", "samples", value_uint(finding->occurrences, UNIT_COUNT),
                 artifact, id);
    static const char *const with[VIEWS] = {"", ", with what was inlined into it",
                                            ", with what it calls in the interpreter"};
    const char *where = arena_printf(ret->arena, "%s %s", artifact, id);
    finding_why(ret, finding, artifact, "%.0f%% of the wall time the critical path runs on a CPU",
                cpu_share(evidence, judging->rows.running_ns) * 100);
    finding_why(
        ret, finding, where, "%s of that are in %s%s",
        cpu_number(ret->arena, finding->cost_ns / judging->rows.running_ns * 100, UNIT_PERCENT),
        place_text(ret->arena, &finding->place), with[judging->view]);
    if (judging->line)
        finding_why(ret, finding, where, "%.0f%% of it at line %u, the heaviest",
                    judging->line_ns / finding->cost_ns * 100, judging->line->line);
    finding->measure_next = arena_printf(ret->arena, "whyslow report %s --annotate %s",
                                         evidence->axes[AXIS_CPU].path, id);
}

static void verdict(struct judging *judging, struct finding *finding, double share)
{
    struct arena *arena = judging->ret->arena;
    const char *where = place_text(arena, &finding->place);
    if (share >= SHARE_MIN && cpu_too_few(arena, finding))
        return;
    if (share < SHARE_MIN)
        finding->reason = arena_printf(arena,
                                       "the heaviest function, %s, has %.0f%% of the wall time; "
                                       "from %.0f%% on it counts",
                                       where, share * 100, SHARE_MIN * 100);
    else if (judging->line && judging->line_ns >= LINE_HAS_IT_ALL * finding->cost_ns &&
             cpu_share(judging->evidence, judging->line_ns) >= CPU_LINE_SHARE_MIN) {
        finding->explained = true;
        finding->reason = arena_printf(arena,
                                       "%s has %.0f%% of the wall time, but %.0f%% of that is one "
                                       "line: see one_line",
                                       where, share * 100,
                                       judging->line_ns / finding->cost_ns * 100);
    }
    if (finding->reason)
        finding->verdict = FINDING_DISMISSED;
}

/* So much of what is counted for the function is in code of others that it calls: then its own
 * row among the hotspots is that much smaller, and who compares the two must know why. */
static const char *how_text(const struct judging *judging, const float *parts, double cost_ns)
{
    static const char *const how[VIEWS] = {"by itself", "with what was inlined into it",
                                           "with the rest of its interpreter"};
    const struct path_costs *costs = judging->rows.costs;
    double helped_ns = 0;
    for (size_t i = 0; i < costs->count; i++)
        if (parts[i] > 0 && judging->rows.rows[i].helped)
            helped_ns += costs->rows[i].ns;
    if (judging->view != VIEW_ITSELF || !(helped_ns >= HELPED_SHARE_MIN * cost_ns))
        return how[judging->view];
    return arena_printf(judging->ret->arena,
                        "with what it calls in the standard library (%.0f%% of it)",
                        fmin(helped_ns / cost_ns, 1) * 100);
}

static int finding_make(struct judging *judging, const struct detector *self)
{
    struct findings *ret = judging->ret;
    struct arena *arena = ret->arena;
    const struct path_costs *costs = judging->rows.costs;
    struct finding *finding = detected(ret, self);
    float *parts = cpu_parts(arena, costs);
    if (!finding || !parts)
        return -ENOMEM;
    for (size_t i = 0; i < costs->count; i++)
        parts[i] = function_of(&judging->view, &judging->rows, i) == judging->top.id;
    struct estimate cost = path_costs_cover(arena, costs, cpu_parts_pick, parts, finding);
    double share = cpu_share(judging->evidence, cost.ns);
    finding->recoverable = cpu_at_most(cost, 1);
    finding->place = place_of_function(costs->profile, judging->top.id);
    if (judging->line) {
        finding->place.file = judging->line->file;
        finding->place.line = judging->line->line;
    }
    finding->occurrences = cpu_parts_samples(costs, parts);
    finding->title = arena_printf(arena, "%s takes %.0f%% of the wall time %s",
                                  place_text(arena, &finding->place), share * 100,
                                  how_text(judging, parts, cost.ns));
    finding->advice = arena_printf(arena,
                                   "do less there: another algorithm, work that is not repeated, "
                                   "fewer calls of %s",
                                   place_text(arena, &finding->place));
    if (judging->view == VIEW_INTERPRETER)
        finding->advice = "the time is the interpreted program's: find its hot lines with a "
                          "profiler of that language, and let native code do the loop";
    finding->caution = "the recoverable time is all it takes: how much of its work is needed, "
                       "samples cannot say";
    cpu_angles(judging->evidence, ret, finding, parts);
    facts_put(judging, finding, share);
    verdict(judging, finding, share);
    return 0;
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct judging judging = {.evidence = evidence, .ret = ret};
    if (evidence->costs_on_path.profile != &evidence->cpu)
        return dismissed(ret, self, "no sample of the CPU on the path") ? 0 : -ENOMEM;
    int r = cpu_rows_build(ret->arena, evidence, &judging.rows);
    if (r == 0)
        r = top_find(&judging);
    if (r < 0)
        return r;
    if (judging.top.id == 0)
        return dismissed(ret, self, "the path has no sample in the program's own code") ? 0
                                                                                        : -ENOMEM;
    return finding_make(&judging, self);
}

const struct detector detect_one_function = {
    .id = "one_function",
    .title = "one function dominates",
    .category = CATEGORY_CPU,
    .remedy = REMEDY_ALGORITHM,
    .axes = AXIS_BIT_CPU,
    .generic = true,
    .judge = judge,
};
