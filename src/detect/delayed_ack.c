/* A request in two small pieces waits 40 ms for an acknowledgement that is delayed. */
#include "detect/net_stalls.h"

#include <errno.h>

enum { STALLS_MIN = 3 };

struct stall_choice {
    const struct net_stalls *stalls;
    size_t peer;
};

static double pick(void *context, const struct path_costs *costs, const struct path_cost *row)
{
    const struct stall_choice *choice = context;
    (void)costs;
    if (!row->wait || choice->stalls->peer_of[row->wait] != choice->peer + 1)
        return 0;
    return (double)choice->stalls->rows[row->wait];
}

/* The function that sends the pieces and waits; else the call that has both in it. */
static struct place place_find(const struct net *net, const struct net_stall *peer)
{
    const struct evidence *evidence = net->evidence;
    struct net_stack *send = net_stack_of(net->arena, &evidence->io.profile, peer->send_stack);
    struct net_stack *wait = net_stack_of(net->arena, &evidence->waits.profile, peer->wait_stack);
    struct place place = {0};
    unsigned common = send && wait ? net_common(send, wait) : 0;
    if (common % 2 && common / 2 < send->count)
        place = net_place_at(send, common / 2);
    if (common > 0 && place.owner != FINDING_OWNER_USER)
        place = net_place_of(send, common).place;
    return place.function.len > 0 ? place
                                  : place_of_stack(&evidence->waits.profile, peer->wait_stack);
}

static const char *reason_of(struct arena *arena, const struct net_stall *peer)
{
    if (peer->stalls < STALLS_MIN)
        return arena_printf(arena, "%s of %s waits for %.*s took 38 to 52 ms; from %d on it counts",
                            net_count(arena, peer->stalls), net_count(arena, peer->waits),
                            STR_FMT(peer->peer), STALLS_MIN);
    if (peer->settings > 0)
        return arena_printf(arena,
                            "%s waits for %.*s took 38 to 52 ms, but options were set on its "
                            "sockets (%s setsockopt): with TCP_NODELAY nothing is held back",
                            net_count(arena, peer->stalls), STR_FMT(peer->peer),
                            net_count(arena, peer->settings));
    if (!peer->held)
        return arena_printf(arena,
                            "%s waits for %.*s took 38 to 52 ms, but it was sent %s pieces for %s "
                            "answers, %s of them small: nothing waits for an acknowledgement",
                            net_count(arena, peer->stalls), STR_FMT(peer->peer),
                            net_count(arena, peer->sends), net_count(arena, peer->receives),
                            net_count(arena, peer->small));
    return NULL;
}

static void tell(const struct net *net, const struct net_stall *peer, struct findings *ret,
                 struct finding *finding)
{
    struct arena *arena = net->arena;
    const struct evidence *evidence = net->evidence;
    const char *io = evidence->axes[AXIS_IO].artifact, *waits = evidence->axes[AXIS_WAITS].artifact;
    double wall = evidence->costs_on_path.ns;
    const char *place = place_text(arena, &finding->place);
    finding->title = arena_printf(arena,
                                  "%s requests to %.*s wait 40 ms each for a delayed "
                                  "acknowledgement: %.0f%% of the wall time",
                                  net_count(arena, peer->stalls), STR_FMT(peer->peer),
                                  wall > 0 ? finding->cost_ns / wall * 100 : 0);
    net_angles(net, finding, peer->stalls, finding->cost_ns,
               arena_printf(arena, "%s waits of 38 to 52 ms, %s pieces sent for %s answers",
                            net_count(arena, peer->stalls), net_count(arena, peer->sends),
                            net_count(arena, peer->receives)));
    finding_fact(ret, finding, "stalls", "waits of 38 to 52 ms",
                 value_uint(peer->stalls, UNIT_COUNT), waits, NULL);
    finding_fact(ret, finding, "stalls_ns", "time in them", value_real(peer->stall_ns, UNIT_NS),
                 waits, NULL);
    finding_fact(ret, finding, "sends", "pieces sent", value_uint(peer->sends, UNIT_COUNT), io,
                 NULL);
    finding_fact(ret, finding, "receives", "answers read", value_uint(peer->receives, UNIT_COUNT),
                 io, NULL);
    finding_fact(ret, finding, "peer", "peer", value_str(peer->peer), io, NULL);
    finding_why(ret, finding, waits, "%s waits %s for answers of %.*s, again and again for 40 ms",
                place, net_time(arena, peer->stall_ns), STR_FMT(peer->peer));
    finding_why(ret, finding, io, "each question is sent in pieces: %s sends for %s answers",
                net_count(arena, peer->sends), net_count(arena, peer->receives));
    finding_why(
        ret, finding, io,
        "the pieces are small (%s of %s below 1 KiB): the kernel holds the second back until "
        "the first is acknowledged (Nagle), which the peer delays for 40 ms",
        net_count(arena, peer->small), net_count(arena, peer->sends));
    finding_why(ret, finding, io,
                "no option was set on the socket: TCP_NODELAY is off, as it comes");
    finding->advice = arena_printf(arena,
                                   "%s: send the question in one piece (one buffer, writev or "
                                   "MSG_MORE); or set TCP_NODELAY on the socket",
                                   place);
    finding->measure_next = arena_printf(arena, "whyslow waits whyslow-out/latest/%s", waits);
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct net net = {.arena = ret->arena, .evidence = evidence};
    struct net_stalls *stalls = ARENA_NEW(ret->arena, struct net_stalls);
    size_t first = ret->count;
    if (!stalls || net_stalls_find(ret->arena, evidence, stalls) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < stalls->count; i++) {
        const struct net_stall *peer = &stalls->peers[i];
        const char *reason = reason_of(ret->arena, peer);
        if (peer->stalls == 0 || (reason && ret->count > first))
            continue;
        struct finding *finding = detected(ret, self);
        if (!finding)
            return -ENOMEM;
        struct stall_choice choice = {stalls, i};
        path_costs_cover(ret->arena, &evidence->costs_on_path, pick, &choice, finding);
        finding->occurrences = peer->stalls;
        finding->place = place_find(&net, peer);
        tell(&net, peer, ret, finding);
        finding->verdict = reason ? FINDING_DISMISSED : FINDING_CONFIRMED;
        finding->reason = reason;
        finding->title = reason ? self->title : finding->title;
    }
    if (ret->count > first)
        return 0;
    return dismissed(ret, self, "no wait for one of %zu peers took 38 to 52 ms", stalls->count)
               ? 0
               : -ENOMEM;
}

const struct detector detect_delayed_ack = {
    .id = "delayed_ack",
    .title = "waiting for delayed acknowledgements",
    .category = CATEGORY_IO_NETWORK,
    .remedy = REMEDY_LOCAL,
    .axes = AXIS_BIT_IO | AXIS_BIT_WAITS,
    .judge = judge,
};
