/* HTTP requests one after another, where all could be under way at once. */
#include "detect/net_stalls.h"

#include <errno.h>
#include <math.h>

enum { REQUESTS_MIN = 3 };
#define SPARE_NS_MIN    100e6 /* both must hold */
#define SPARE_SHARE_MIN 0.20
#define STALLED_PART    0.5 /* of its time in delayed acknowledgements: those are the trouble */

struct sequence {
    uint64_t set;
    struct io_request_group asked;
    struct place place;
    uint64_t requests, peers;
    double spare_ns, sum_ns, max_ns; /* of chains; of the recording */
    double stalled_ns;               /* on the path */
};

static bool is_http(const struct io_request_group *group)
{
    return group->protocol == REQUEST_HTTP1 || group->protocol == REQUEST_HTTP2;
}

static void chains_add(const struct net *net, struct sequence *it)
{
    const struct io_request_groups *all = &net->evidence->requests;
    uint32_t last_peer = 0;
    for (size_t i = 0; i < all->chain_count; i++) {
        const struct io_chain *chain = &all->chains[i];
        uint32_t group = all->of_row[net->evidence->io.events[chain->events[0]].request];
        for (size_t k = 0; k < net->count && group > 0; k++) {
            if (!(it->set >> k & 1) || net->groups[k].group != &all->groups[group - 1])
                continue;
            it->requests += chain->count;
            it->spare_ns += (double)io_chain_spare_ns(chain);
            it->sum_ns += (double)chain->sum_ns;
            it->max_ns = fmax(it->max_ns, (double)chain->max_ns);
            it->peers += chain->peer != last_peer;
            last_peer = chain->peer;
        }
    }
}

/* All that is asked at one place, or in turn with it. */
static struct sequence sequence_at(const struct net *net, size_t index)
{
    const struct net_group *first = &net->groups[index];
    struct sequence it = {.place = first->place};
    for (size_t i = 0; i < net->count; i++) {
        const struct net_group *other = &net->groups[i];
        bool chained = other->group->chain != SIZE_MAX &&
                       other->group->chain == first->group->chain;
        if (is_http(other->group) && (chained || place_same(&other->place, &first->place, true)))
            it.set |= UINT64_C(1) << i;
    }
    it.asked = net_together(net, it.set);
    chains_add(net, &it);
    return it;
}

static void stalls_deduct(const struct net *net, const struct net_stalls *stalls,
                          struct sequence *it)
{
    for (size_t i = 0; i < stalls->count; i++)
        if (stalls->peers[i].held && str_eq(stalls->peers[i].peer, net_text(net, it->asked.peer)))
            it->stalled_ns += stalls->peers[i].path_ns;
}

static const char *reason_of(const struct net *net, const struct sequence *it, double cost_ns,
                             double recoverable_ns)
{
    struct arena *arena = net->arena;
    if (it->requests < REQUESTS_MIN)
        return arena_printf(arena,
                            "%s of %s requests were begun when the one before was answered; from "
                            "%d on it counts",
                            net_count(arena, it->requests), net_count(arena, it->asked.tally.count),
                            REQUESTS_MIN);
    if (it->stalled_ns > STALLED_PART * cost_ns)
        return arena_printf(arena,
                            "%s requests one after another take %s, but %s of it are delayed "
                            "acknowledgements",
                            net_count(arena, it->requests), net_time(arena, cost_ns),
                            net_time(arena, it->stalled_ns));
    const char *little = net_too_little(arena, recoverable_ns, net->evidence->costs_on_path.ns,
                                        SPARE_NS_MIN, SPARE_SHARE_MIN, true);
    return !little
               ? NULL
               : arena_printf(arena,
                              "%s requests one after another, the longest takes %s: all "
                              "others together are %s",
                              net_count(arena, it->requests), net_time(arena, it->max_ns), little);
}

static void tell(const struct net *net, const struct sequence *it, struct findings *ret,
                 struct finding *finding)
{
    struct arena *arena = net->arena;
    double wall = net->evidence->costs_on_path.ns;
    const char *io = net->evidence->axes[AXIS_IO].artifact, *many = net_count(arena, it->requests);
    const char *place = place_text(arena, &finding->place);
    struct str peer = net_text(net, it->asked.peer);
    finding->title = arena_printf(arena,
                                  "%s HTTP requests to %.*s one after another take %.0f%% of the "
                                  "wall time; the longest alone %s",
                                  many, STR_FMT(peer), wall > 0 ? finding->cost_ns / wall * 100 : 0,
                                  net_time(arena, it->max_ns));
    net_angles(net, finding, it->requests, finding->cost_ns,
               arena_printf(arena,
                            "%s requests seen, each begun when the one before was answered: "
                            "%s together, the longest %s",
                            many, net_time(arena, it->sum_ns), net_time(arena, it->max_ns)));
    finding_fact(ret, finding, "longest_ns", "the longest of them", value_real(it->max_ns, UNIT_NS),
                 io, NULL);
    finding_why(ret, finding, net->evidence->axes[AXIS_WAITS].artifact,
                "%s waits %s for answers of %.*s", place, net_time(arena, finding->cost_ns),
                STR_FMT(peer));
    finding_why(ret, finding, io, "%s requests, %s on average, the longest %s", many,
                net_time(arena, it->sum_ns / (double)MAX(it->requests, 1u)),
                net_time(arena, it->max_ns));
    finding_why(ret, finding, io,
                "each begins when the one before was answered: never two at once");
    finding_why(ret, finding, io, "one thread asks and waits in %s: a design without concurrency",
                place);
    finding->advice = arena_printf(arena,
                                   "%s: have the requests under way at once (threads, curl_multi, "
                                   "asyncio.gather), or ask for all with one",
                                   place);
    finding->caution = "whether a request needs the answer of the one before was not recorded; and "
                       "a server that answers one at a time gains nothing";
    finding->measure_next = arena_printf(arena, "whyslow io --requests whyslow-out/latest/%s", io);
}

static int sequence_judge(const struct net *net, const struct detector *self,
                          const struct sequence *it, struct findings *ret)
{
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    struct estimate cost = net_cover(net, it->set, finding);
    double total = (double)it->asked.tally.total_ns;
    finding->place = it->place;
    finding->occurrences = it->requests;
    finding->recoverable = estimate_scale(cost, total > 0 ? it->spare_ns / total : 0);
    net_facts(net, ret, finding, &it->asked);
    tell(net, it, ret, finding);
    const char *reason = reason_of(net, it, cost.ns, finding->recoverable.ns);
    if (reason) {
        finding->verdict = FINDING_DISMISSED;
        finding->reason = reason;
        finding->title = self->title;
    }
    return 0;
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct net net;
    struct net_stalls *stalls = ARENA_NEW(ret->arena, struct net_stalls);
    if (!stalls || net_build(ret->arena, evidence, &net) < 0 ||
        net_stalls_find(ret->arena, evidence, stalls) < 0)
        return -ENOMEM;
    uint64_t seen = 0;
    size_t first = ret->count, left_out = 0;
    for (size_t i = 0; i < net.count; i++) {
        if (!is_http(net.groups[i].group) || (seen >> i & 1))
            continue;
        struct sequence it = sequence_at(&net, i);
        stalls_deduct(&net, stalls, &it);
        seen |= it.set;
        /* Of those that are nothing the longest is enough. */
        if (it.requests < REQUESTS_MIN && left_out++ > 0)
            continue;
        if (sequence_judge(&net, self, &it, ret) < 0)
            return -ENOMEM;
    }
    if (ret->count > first)
        return 0;
    return dismissed(ret, self, "no HTTP request was made") ? 0 : -ENOMEM;
}

const struct detector detect_sequential_http = {
    .id = "sequential_http",
    .title = "HTTP requests one after another",
    .category = CATEGORY_IO_NETWORK,
    .remedy = REMEDY_REDESIGN,
    .axes = AXIS_BIT_IO | AXIS_BIT_WAITS,
    .judge = judge,
};
