/* N+1: one statement a row, asked in a loop, where one for all rows would do. */
#include "detect/net_statements.h"

#include <strings.h>

static bool begins(struct str text, const char *word)
{
    return text.len >= strlen(word) && strncasecmp(text.data, word, strlen(word)) == 0;
}

static const char *advice(const struct net *net, const struct statements *it,
                          const struct finding *finding)
{
    struct str text = net_text(net, it->asked.text);
    const char *how = begins(text, "insert")
                          ? "send many rows with one INSERT … VALUES (…), (…), or with COPY"
                      : begins(text, "update") || begins(text, "delete")
                          ? "change all rows with one statement over a list of keys"
                          : "ask for all rows at once, with a JOIN or WHERE … IN (…), before the "
                            "loop";
    return arena_printf(net->arena, "%s: %s", place_text(net->arena, &finding->place), how);
}

static void tell(const struct net *net, const struct statements *it, struct findings *ret,
                 struct finding *finding)
{
    struct arena *arena = net->arena;
    const struct io_request_group *asked = &it->asked;
    double wall = net->evidence->costs_on_path.ns, count = (double)MAX(asked->tally.count, 1u);
    const char *many = net_count(arena, asked->tally.count);
    const char *what = it->texts > 1
                           ? arena_printf(arena, "%u statements %s times each", it->texts, many)
                           : arena_printf(arena, "one statement %s times", many);
    const char *io = net->evidence->axes[AXIS_IO].artifact;
    finding->title = arena_printf(arena,
                                  "N+1: %s, one after another, takes %.0f%% of the wall "
                                  "time: %s",
                                  what, wall > 0 ? finding->cost_ns / wall * 100 : 0,
                                  statements_short(net, it));
    const char *values = arena_printf(arena, "%s%s different values",
                                      asked->parameters_more ? "at least " : "",
                                      net_count(arena, asked->parameters));
    net_angles(net, finding, asked->tally.count * it->texts, finding->cost_ns,
               arena_printf(arena,
                            "%s requests seen, %s of them begun when the one before was "
                            "answered, with %s",
                            many, net_count(arena, asked->sequential), values));
    finding_why(ret, finding, net->evidence->axes[AXIS_WAITS].artifact,
                "%s waits %s for answers of %.*s", place_text(arena, &finding->place),
                net_time(arena, finding->cost_ns), STR_FMT(net_text(net, asked->peer)));
    finding_why(ret, finding, io, "it asks %s times and waits for each answer, %s on average", many,
                net_time(arena, (double)asked->tally.total_ns / count));
    finding_why(ret, finding, io,
                "the statement is the same, with %s: each asks for a row of its own", values);
    finding_why(ret, finding, io,
                "the rows are fetched in a loop instead of with one statement: a design of %s",
                place_text(arena, &finding->place));
    finding->advice = advice(net, it, finding);
    finding->caution = "what the server computes for each row stays: only asking and waiting is "
                       "saved";
    finding->measure_next = arena_printf(arena, "whyslow io --requests %s/%s", "whyslow-out/latest",
                                         io);
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    return statements_judge(evidence, self, false, tell, ret);
}

const struct detector detect_n_plus_one = {
    .id = "n_plus_one",
    .title = "one statement a row (N+1)",
    .category = CATEGORY_IO_DB,
    .remedy = REMEDY_BATCH,
    .axes = AXIS_BIT_IO | AXIS_BIT_WAITS,
    .judge = judge,
};
