/* A name is looked up again and again, each time by asking a server. */
#include "detect/net_common.h"

#include <errno.h>

enum { LOOKUPS_MIN = 5 };

/* "A api.test" and "AAAA api.test" are one name. */
static struct str name_of(const struct net *net, const struct io_request_group *group)
{
    struct str text = net_text(net, group->text);
    str_cut(&text, ' ');
    return text;
}

struct lookups {
    uint64_t set;
    uint64_t count; /* of the type that was asked for most */
    struct io_request_group asked;
    struct place place;
};

static struct lookups lookups_at(const struct net *net, size_t index)
{
    const struct net_group *first = &net->groups[index];
    struct lookups it = {.place = first->place};
    for (size_t i = 0; i < net->count; i++) {
        const struct net_group *other = &net->groups[i];
        if (other->group->protocol != REQUEST_DNS ||
            !str_eq(name_of(net, other->group), name_of(net, first->group)) ||
            !(other->least == 0 || first->least == 0 ||
              place_same(&other->place, &first->place, true)))
            continue;
        it.set |= UINT64_C(1) << i;
        if (it.place.function.len == 0)
            it.place = other->place;
    }
    for (size_t i = 0; i < net->count; i++) {
        uint64_t count = 0;
        for (size_t k = 0; k < net->count; k++)
            if ((it.set >> k & 1) && (it.set >> i & 1) &&
                net->groups[k].group->text == net->groups[i].group->text)
                count += net->groups[k].group->tally.count;
        it.count = MAX(it.count, count);
    }
    it.asked = net_together(net, it.set);
    return it;
}

static void tell(const struct net *net, const struct lookups *it, struct findings *ret,
                 struct finding *finding)
{
    struct arena *arena = net->arena;
    double wall = net->evidence->costs_on_path.ns;
    struct str name = name_of(net, &it->asked);
    const char *io = net->evidence->axes[AXIS_IO].artifact, *many = net_count(arena, it->count);
    const char *place = place_text(arena, &finding->place);
    finding->title = arena_printf(arena, "%.*s is looked up %s times: %.1f%% of the wall time",
                                  STR_FMT(name), many,
                                  wall > 0 ? finding->cost_ns / wall * 100 : 0);
    net_angles(net, finding, it->count, finding->cost_ns,
               arena_printf(arena, "%s questions for this name seen, %s together", many,
                            net_time(arena, (double)it->asked.tally.total_ns)));
    finding_why(ret, finding, net->evidence->axes[AXIS_WAITS].artifact,
                "%s waits %s for the name server", place, net_time(arena, finding->cost_ns));
    finding_why(
        ret, finding, io, "it asks for %.*s %s times, %s on average", STR_FMT(name), many,
        net_time(arena, (double)it->asked.tally.total_ns / (double)MAX(it->asked.tally.count, 1u)));
    finding_why(ret, finding, io,
                "the answer is not kept: %.*s is asked each time, so neither the program nor a "
                "resolver on this machine has a cache",
                STR_FMT(net_text(net, it->asked.peer)));
    finding->advice = arena_printf(
        arena,
        "%s: look the name up once and keep the address, or keep the "
        "connection; a caching resolver (systemd-resolved, nscd, dnsmasq) "
        "helps every program",
        place);
    finding
        ->caution = "an address that is kept does not follow changes: respect how long an answer "
                    "is good";
    finding->measure_next = arena_printf(arena, "whyslow io --requests whyslow-out/latest/%s", io);
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct net net;
    if (net_build(ret->arena, evidence, &net) < 0)
        return -ENOMEM;
    uint64_t seen = 0, most = 0, lookups = 0;
    size_t first = ret->count;
    for (size_t i = 0; i < net.count; i++) {
        if (net.groups[i].group->protocol != REQUEST_DNS || (seen >> i & 1))
            continue;
        struct lookups it = lookups_at(&net, i);
        seen |= it.set;
        lookups += it.count;
        most = MAX(most, it.count);
        if (it.count < LOOKUPS_MIN)
            continue;
        struct finding *finding = detected(ret, self);
        if (!finding)
            return -ENOMEM;
        struct estimate cost = net_cover(&net, it.set, finding);
        finding->place = it.place;
        finding->occurrences = it.count;
        finding->recoverable = estimate_scale(cost, 1 - 1 / (double)it.count);
        net_facts(&net, ret, finding, &it.asked);
        tell(&net, &it, ret, finding);
    }
    if (ret->count > first)
        return 0;
    struct finding *none =
        lookups > 0
            ? dismissed(ret, self,
                        "%zu lookups, no name more often than %zu times; from %d on it counts",
                        (size_t)lookups, (size_t)most, LOOKUPS_MIN)
            : dismissed(ret, self, "no name server was asked");
    return none ? 0 : -ENOMEM;
}

const struct detector detect_repeated_dns = {
    .id = "repeated_dns",
    .title = "the same name looked up again and again",
    .category = CATEGORY_IO_NETWORK,
    .remedy = REMEDY_REUSE,
    .axes = AXIS_BIT_IO | AXIS_BIT_WAITS,
    .judge = judge,
};
