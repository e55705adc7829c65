/* From groups of requests to suspicions: alike, in turn, one after another, and worth it. */
#include "detect/net_statements.h"

#include "analyze/io_notes.h"

#include <errno.h>
#include <strings.h>

enum { DISMISSED_MAX = 3 };
#define SEQUENTIAL_MIN 0.5 /* of those known one by one */
#define REPEATED_PART  4   /* so often on average with the same values: duplicates */
#define IN_TURN        1.2 /* counts of statements of one pattern differ by no more */

/* What only begins and ends the work of others. */
static bool is_frame(struct str text)
{
    static const char *const words[] = {"begin",      "start transaction", "commit",  "rollback",
                                        "end",        "savepoint",         "release", "set ",
                                        "deallocate", "prepare ",          "discard "};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (text.len >= strlen(words[i]) && strncasecmp(text.data, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

static bool is_duplicate(const struct io_request_group *group)
{
    return !group->parameters_more && group->parameters * REPEATED_PART <= group->tally.count;
}

static bool in_turn(const struct io_request_group *a, const struct io_request_group *b)
{
    double x = (double)a->tally.count, y = (double)b->tally.count;
    return a->chain == b->chain && a->chain != SIZE_MAX && a->peer == b->peer && x <= IN_TURN * y &&
           y <= IN_TURN * x;
}

/* Chains in which one of these is asked: each keeps one request. */
static uint64_t chains_of(const struct net *net, uint64_t set)
{
    const struct io_request_groups *all = &net->evidence->requests;
    uint64_t count = 0;
    for (size_t i = 0; i < all->chain_count; i++) {
        const struct io_chain *chain = &all->chains[i];
        uint32_t row = net->evidence->io.events[chain->events[0]].request;
        uint32_t group = all->of_row[row];
        for (size_t k = 0; k < net->count && group > 0; k++)
            if ((set >> k & 1) && net->groups[k].group == &all->groups[group - 1]) {
                count++;
                break;
            }
    }
    return MAX(count, 1u);
}

/* The statements asked in turn with the one at `index`; BEGIN and its kind go with them. */
static void pattern_find(const struct net *net, size_t index, bool duplicates,
                         struct statements *ret)
{
    for (size_t i = 0; i < net->count && ret->texts < STATEMENTS_PATTERN_MAX; i++) {
        const struct io_request_group *other = net->groups[i].group;
        bool frame = is_frame(net_text(net, other->text));
        if ((ret->set >> i & 1) || !net_is_sql(other->protocol) ||
            !in_turn(net->groups[index].group, other) ||
            (!frame && is_duplicate(other) != duplicates))
            continue;
        ret->set |= net_alike(net, i);
        ret->texts += !frame;
    }
}

static struct statements statements_at(const struct net *net, size_t index, bool duplicates)
{
    struct statements ret = {
        .set = net_alike(net, index), .texts = 1, .place = net->groups[index].place};
    ret.asked = net_together(net, ret.set);
    pattern_find(net, index, duplicates, &ret);
    ret.chains = chains_of(net, ret.set);
    return ret;
}

const char *statements_short(const struct net *net, const struct statements *statements)
{
    return io_text_short(net->arena, net_text(net, statements->asked.text));
}

static const char *reason_of(const struct net *net, const struct statements *statements,
                             struct estimate cost)
{
    const struct io_request_group *asked = &statements->asked;
    struct arena *arena = net->arena;
    if (asked->tally.count < STATEMENTS_MIN)
        return arena_printf(arena, "asked %s times; from %d on it counts: %s",
                            net_count(arena, asked->tally.count), STATEMENTS_MIN,
                            statements_short(net, statements));
    if (asked->events > 0 && (double)asked->sequential < SEQUENTIAL_MIN * (double)asked->events)
        return arena_printf(arena, "%s of %s were asked one after another, the others at once: %s",
                            net_count(arena, asked->sequential), net_count(arena, asked->events),
                            statements_short(net, statements));
    const char *little = net_too_little(arena, cost.ns, net->evidence->costs_on_path.ns,
                                        STATEMENTS_NS_MIN, STATEMENTS_SHARE_MIN, false);
    return !little ? NULL
                   : arena_printf(arena, "asked %s times, but that takes %s: %s",
                                  net_count(arena, asked->tally.count), little,
                                  statements_short(net, statements));
}

static int statement_judge(const struct net *net, const struct detector *self,
                           const struct statements *statements, statements_tell *tell,
                           struct findings *ret)
{
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    struct estimate cost = net_cover(net, statements->set, finding);
    uint64_t count = statements->asked.tally.count;
    double stays = (double)statements->chains / (double)MAX(count, 1u);
    finding->place = statements->place;
    finding->occurrences = count * statements->texts;
    finding->recoverable = estimate_scale(cost, stays < 1 ? 1 - stays : 0);
    net_facts(net, ret, finding, &statements->asked);
    finding_fact(ret, finding, "parameters", "different values",
                 value_uint(statements->asked.parameters, UNIT_COUNT),
                 net->evidence->axes[AXIS_IO].artifact, NULL);
    tell(net, statements, ret, finding);
    const char *reason = reason_of(net, statements, cost);
    if (reason) {
        finding->verdict = FINDING_DISMISSED;
        finding->reason = reason;
        finding->title = self->title;
    }
    return 0;
}

int statements_judge(const struct evidence *evidence, const struct detector *self, bool duplicates,
                     statements_tell *tell, struct findings *ret)
{
    struct net net;
    if (net_build(ret->arena, evidence, &net) < 0)
        return -ENOMEM;
    uint64_t seen = 0, statements = 0;
    size_t first = ret->count, left = DISMISSED_MAX;
    for (size_t i = 0; i < net.count; i++) {
        const struct io_request_group *group = net.groups[i].group;
        statements += net_is_sql(group->protocol);
        if (!net_is_sql(group->protocol) || (seen >> i & 1) || group->tally.count < 2 ||
            is_frame(net_text(&net, group->text)) || is_duplicate(group) != duplicates)
            continue;
        struct statements found = statements_at(&net, i, duplicates);
        seen |= found.set;
        if (reason_of(&net, &found, net_sum(&net, found.set)) && left-- == 0)
            break;
        if (statement_judge(&net, self, &found, tell, ret) < 0)
            return -ENOMEM;
    }
    if (ret->count > first)
        return 0;
    struct finding *none = statements > 0
                               ? dismissed(ret, self,
                                           "none of %zu statements was asked again with %s values",
                                           (size_t)statements, duplicates ? "the same" : "other")
                               : dismissed(ret, self, "no statement was sent to a database server");
    return none ? 0 : -ENOMEM;
}
