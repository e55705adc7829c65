/* The same statement with the same values, again and again: its answer could be kept. */
#include "detect/net_statements.h"

static void tell(const struct net *net, const struct statements *it, struct findings *ret,
                 struct finding *finding)
{
    struct arena *arena = net->arena;
    const struct io_request_group *asked = &it->asked;
    double wall = net->evidence->costs_on_path.ns, count = (double)MAX(asked->tally.count, 1u);
    const char *many = net_count(arena, asked->tally.count);
    const char *io = net->evidence->axes[AXIS_IO].artifact;
    /* Of every different question one stays. */
    double stays = (double)MAX(asked->parameters, 1u) / count;
    finding->recoverable = estimate_scale(finding->recoverable, 1);
    if (asked->parameters > it->chains && stays < 1) {
        double now = 1 - (double)it->chains / count;
        finding->recoverable = estimate_scale(finding->recoverable,
                                              now > 0 ? (1 - stays) / now : 0);
    }
    const char *values = asked->parameters == 0 ? "without values"
                         : asked->parameters == 1
                             ? "with the same values"
                             : arena_printf(arena, "with %s different values",
                                            net_count(arena, asked->parameters));
    finding->title = arena_printf(arena,
                                  "the same query %s times %s takes %.0f%% of the wall "
                                  "time: %s",
                                  many, values, wall > 0 ? finding->cost_ns / wall * 100 : 0,
                                  statements_short(net, it));
    net_angles(net, finding, asked->tally.count, finding->cost_ns,
               arena_printf(arena, "%s requests seen %s", many, values));
    finding_why(ret, finding, net->evidence->axes[AXIS_WAITS].artifact,
                "%s waits %s for answers of %.*s", place_text(arena, &finding->place),
                net_time(arena, finding->cost_ns), STR_FMT(net_text(net, asked->peer)));
    finding_why(ret, finding, io, "it asks %s times, %s on average, %s", many,
                net_time(arena, (double)asked->tally.total_ns / count), values);
    finding_why(ret, finding, io, "nothing between keeps the answer: a cache is missing at %s",
                place_text(arena, &finding->place));
    finding->advice = arena_printf(arena, "%s: ask once and keep the answer",
                                   place_text(arena, &finding->place));
    finding->caution = "an answer that is kept grows old: know who changes it meanwhile";
    finding->measure_next = arena_printf(arena, "whyslow io --requests %s/%s", "whyslow-out/latest",
                                         io);
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    return statements_judge(evidence, self, true, tell, ret);
}

const struct detector detect_duplicate_query = {
    .id = "duplicate_query",
    .title = "the same query again and again",
    .category = CATEGORY_CACHE,
    .remedy = REMEDY_REUSE,
    .axes = AXIS_BIT_IO | AXIS_BIT_WAITS,
    .judge = judge,
};
