/* A connection is opened for every request or so, and closed again. */
#include "detect/net_common.h"

#include <errno.h>

enum { CONNECTIONS_MIN = 20 };
#define REQUESTS_MAX 1.5 /* on a connection */

static const char opening_syscalls[] = "socket connect close shutdown";

struct dialling {
    const struct io_dialled *to;
    const struct io_peer *peer; /* of its calls; NULL: not known */
    struct net_stack *stack;    /* that connects; no places: not known */
    struct place place;
    unsigned least; /* in common with a stack that connects or logs in */
    unsigned near;  /* the same for a socket made or closed beside it */
};

/* Names of functions in which a connection becomes a secure one. */
static bool is_handshake(struct str name)
{
    return str_is(name, "SSL_connect") || str_is(name, "SSL_do_handshake") ||
           str_is(name, "gnutls_handshake");
}

static bool shakes_hands(const struct net_stack *stack)
{
    for (unsigned i = 0; i < stack->count; i++)
        if (is_handshake(stack->profile->functions[stack->places[i]->function].name))
            return true;
    return false;
}

static bool is_opening(struct str name)
{
    struct str rest = STR(opening_syscalls);
    while (name.len > 0 && rest.len > 0)
        if (str_eq(str_word(&rest), name))
            return true;
    return false;
}

struct dial_choice {
    const struct net *net;
    const struct dialling *it;
};

static double pick(void *context, const struct path_costs *costs, const struct path_cost *row)
{
    const struct dial_choice *choice = context;
    const struct dialling *it = choice->it;
    if (row->stack == 0 || !costs->profile || row - costs->rows >= NET_ROWS_MAX ||
        (!net_is_wait(choice->net->evidence, row) && row->class != WAIT_CLASS_RUNNING))
        return 0;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct net_stack *stack = net_stack_of(&arena, costs->profile, row->stack);
    if (!stack)
        return 0;
    if (it->stack->count == 0)
        return str_is(row->syscall, "connect");
    unsigned common = net_common(it->stack, stack);
    if (common >= it->least || (it->to->tls && shakes_hands(stack)))
        return 1;
    return common >= it->near && is_opening(row->syscall);
}

static const struct io_peer *peer_find(const struct evidence *evidence, struct str name)
{
    for (size_t i = 0; i < evidence->io_sums.peer_count; i++) {
        const struct io_peer *peer = &evidence->io_sums.peers[i];
        if (peer->connects.calls > 0 && str_eq(evidence->io.objects[peer->object].name, name))
            return peer;
    }
    return NULL;
}

/* All below the call that connects and not below one that asks. */
static void place_find(const struct net *net, struct dialling *it)
{
    unsigned shared = 0;
    for (size_t i = 0; i < net->count; i++)
        if (str_eq(net_text(net, net->groups[i].group->peer), it->to->peer))
            shared = MAX(shared, net_common(it->stack, net->groups[i].stack));
    if (it->stack->count == 0)
        return;
    unsigned full = MIN(shared / 2, it->stack->count - 1);
    it->least = 2 * (full + 1);
    it->near = shared;
    it->place = net_place_of(it->stack, it->least).place;
}

static int dialling_make(const struct net *net, const struct io_dialled *to, struct dialling *ret)
{
    *ret = (struct dialling){.to = to, .peer = peer_find(net->evidence, to->peer)};
    ret->stack = net_stack_of(net->arena, &net->evidence->io.profile,
                              ret->peer ? ret->peer->connect_stack : 0);
    if (!ret->stack)
        return -ENOMEM;
    place_find(net, ret);
    return 0;
}

static void tell(const struct net *net, const struct dialling *it, struct findings *ret,
                 struct finding *finding)
{
    struct arena *arena = net->arena;
    const struct io_dialled *to = it->to;
    double wall = net->evidence->costs_on_path.ns, each = (double)MAX(to->connections, 1u);
    const char *io = net->evidence->axes[AXIS_IO].artifact;
    const char *many = net_count(arena, to->connections),
               *place = place_text(arena, &finding->place);
    finding->title = arena_printf(arena,
                                  "%s connections to %.*s for %s requests: opening them takes "
                                  "%.0f%% of the wall time",
                                  many, STR_FMT(to->peer), net_count(arena, to->requests),
                                  wall > 0 ? finding->cost_ns / wall * 100 : 0);
    net_angles(net, finding, to->connections, finding->cost_ns,
               arena_printf(arena, "%s connections were opened, %.1f requests on each", many,
                            (double)to->requests / each));
    finding_fact(ret, finding, "connections", "connections opened",
                 value_uint(to->connections, UNIT_COUNT), io, NULL);
    finding_fact(ret, finding, "requests", "requests on them", value_uint(to->requests, UNIT_COUNT),
                 io, NULL);
    finding_fact(ret, finding, "tls", "with TLS", value_bool(to->tls), io, NULL);
    finding_fact(ret, finding, "peer", "to whom", value_str(to->peer), io, NULL);
    finding_why(ret, finding, net->evidence->axes[AXIS_WAITS].artifact,
                "%s spends %s on opening connections to %.*s", place,
                net_time(arena, finding->cost_ns), STR_FMT(to->peer));
    finding_why(ret, finding, io,
                "it opens %s, %s each: the peer's answer to connecting%s and logging "
                "in is waited for every time",
                many, net_time(arena, finding->cost_ns / each),
                to->tls ? ", to the handshake" : "");
    finding_why(ret, finding, io, "on each there are %.1f requests; then it is closed",
                (double)to->requests / each);
    finding_why(ret, finding, io, "no connection is kept: a pool, or keep-alive, is missing at %s",
                place);
    finding->advice = arena_printf(
        arena, "%s: open one connection and keep it, or take it from a pool", place);
    finding
        ->caution = "a connection that is kept may be closed by the other side meanwhile: be ready "
                    "to open it again";
    finding->measure_next = arena_printf(arena, "whyslow io --peers whyslow-out/latest/%s", io);
}

static const char *reason_of(struct arena *arena, const struct io_dialled *to)
{
    if (to->connections < CONNECTIONS_MIN)
        return arena_printf(arena, "%s connections to %.*s; from %d on it counts",
                            net_count(arena, to->connections), STR_FMT(to->peer), CONNECTIONS_MIN);
    if ((double)to->requests > REQUESTS_MAX * (double)to->connections)
        return arena_printf(arena,
                            "%s requests on %s connections to %.*s: up to %.1f each it counts",
                            net_count(arena, to->requests), net_count(arena, to->connections),
                            STR_FMT(to->peer), REQUESTS_MAX);
    return NULL;
}

static int dialling_judge(const struct net *net, const struct detector *self,
                          const struct io_dialled *to, struct findings *ret)
{
    struct dialling it;
    struct finding *finding = detected(ret, self);
    if (!finding || dialling_make(net, to, &it) < 0)
        return -ENOMEM;
    struct dial_choice choice = {net, &it};
    struct estimate cost = path_costs_cover(ret->arena, &net->evidence->costs_on_path, pick,
                                            &choice, finding);
    finding->place = it.place;
    finding->occurrences = to->connections;
    finding->recoverable = estimate_scale(cost, 1 - 1 / (double)MAX(to->connections, 1u));
    tell(net, &it, ret, finding);
    const char *reason = reason_of(ret->arena, to);
    if (reason) {
        finding->verdict = FINDING_DISMISSED;
        finding->reason = reason;
        finding->title = self->title;
    }
    return 0;
}

static bool is_dialled(const struct evidence *evidence, struct str peer)
{
    for (size_t i = 0; i < evidence->requests.dialled_count; i++)
        if (str_eq(evidence->requests.dialled[i].peer, peer))
            return true;
    return false;
}

/* A peer whose protocol nobody knows: what was sent and received counts as requests. */
static int unknown_judge(const struct net *net, const struct detector *self,
                         const struct io_peer *peer, struct findings *ret)
{
    const struct object_info *object = &net->evidence->io.objects[peer->object];
    if (!(object->flags & OBJECT_CLIENT) || peer->connects.calls < CONNECTIONS_MIN ||
        str_starts(object->name, "udp ") || is_dialled(net->evidence, object->name))
        return 0;
    struct io_dialled *to = ARENA_NEW(ret->arena, struct io_dialled);
    if (!to)
        return -ENOMEM;
    *to = (struct io_dialled){.peer = object->name,
                              .service = STR(""),
                              .role = REQUEST_CLIENT,
                              .connections = peer->connects.calls,
                              .requests = MIN(peer->sent.calls, peer->received.calls)};
    return dialling_judge(net, self, to, ret);
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct net net;
    if (net_build(ret->arena, evidence, &net) < 0)
        return -ENOMEM;
    size_t first = ret->count;
    for (size_t i = 0; i < evidence->requests.dialled_count; i++) {
        const struct io_dialled *to = &evidence->requests.dialled[i];
        /* A question to a name server has a socket of its own: that is usual. */
        if (to->role != REQUEST_CLIENT || to->protocol == REQUEST_DNS ||
            (reason_of(ret->arena, to) && ret->count > first))
            continue;
        if (dialling_judge(&net, self, to, ret) < 0)
            return -ENOMEM;
    }
    for (size_t i = 0; i < evidence->io_sums.peer_count; i++)
        if (unknown_judge(&net, self, &evidence->io_sums.peers[i], ret) < 0)
            return -ENOMEM;
    if (ret->count > first)
        return 0;
    return dismissed(ret, self, "fewer than %d connections to any server were opened",
                     CONNECTIONS_MIN)
               ? 0
               : -ENOMEM;
}

const struct detector detect_connection_per_request = {
    .id = "connection_per_request",
    .title = "a connection opened for every request",
    .category = CATEGORY_IO_NETWORK,
    .remedy = REMEDY_REUSE,
    .axes = AXIS_BIT_IO | AXIS_BIT_WAITS,
    .judge = judge,
};
