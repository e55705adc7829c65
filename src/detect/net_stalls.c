/* Waits one by one say how long, calls say how many pieces: by the name of the peer. */
#include "detect/net_stalls.h"

#include <errno.h>

#define PIECES_MIN 1.5        /* sends for one answer */
#define SMALL_MIN  0.8        /* of sends */
enum { SEGMENT_BUCKET = 11 }; /* below 1,024 bytes: less than any segment that is usual */

/* A stream over the network: others know no acknowledgements. */
static bool is_stream(const struct object_info *object)
{
    return object->kind == OBJECT_SOCKET && (object->flags & OBJECT_CLIENT) &&
           object->name.len > 0 && !str_starts(object->name, "unix:") &&
           !str_starts(object->name, "udp ");
}

static struct net_stall *peer_at(struct net_stalls *stalls, struct str name, bool make)
{
    for (size_t i = 0; i < stalls->count; i++)
        if (str_eq(stalls->peers[i].peer, name))
            return &stalls->peers[i];
    if (!make || stalls->count == STALL_PEERS_MAX)
        return NULL;
    stalls->peers[stalls->count] = (struct net_stall){.peer = name};
    return &stalls->peers[stalls->count++];
}

static int waits_look(struct arena *arena, const struct evidence *evidence,
                      struct net_stalls *stalls)
{
    const struct waits *waits = &evidence->waits;
    uint64_t longest[STALL_PEERS_MAX] = {0};
    double *ns = arena_alloc(arena, (waits->row_count + 1) * sizeof(*ns));
    stalls->rows = arena_alloc(arena, (waits->row_count + 1) * sizeof(*stalls->rows));
    stalls->peer_of = arena_alloc(arena, (waits->row_count + 1) * sizeof(*stalls->peer_of));
    if (!ns || !stalls->rows || !stalls->peer_of)
        return -ENOMEM;
    for (size_t i = 1; i < waits->row_count; i++) {
        const struct wait_row *row = &waits->rows[i];
        const struct object_info *object = &waits->objects[row->info.object];
        if (row->info.kind != WAIT_BLOCKED || !is_stream(object))
            continue;
        struct net_stall *peer = peer_at(stalls, object->name, true);
        if (!peer)
            continue;
        size_t index = (size_t)(peer - stalls->peers);
        stalls->peer_of[i] = (uint8_t)(index + 1);
        peer->waits += row->tally.count;
        if (row->tally.total_ns > longest[index]) {
            longest[index] = row->tally.total_ns;
            peer->wait_stack = row->info.stack;
        }
    }
    for (size_t i = 0; i < waits->event_count; i++) {
        const struct wait_event *event = &waits->events[i];
        double took = (double)(event->wake_ns - event->start_ns);
        if (!stalls->peer_of[event->wait] || took < STALL_LOW_NS || took > STALL_HIGH_NS)
            continue;
        struct net_stall *peer = &stalls->peers[stalls->peer_of[event->wait] - 1];
        peer->stalls++;
        peer->stall_ns += took;
        ns[event->wait] += took;
    }
    for (size_t i = 1; i < waits->row_count; i++)
        if (ns[i] > 0)
            stalls->rows[i] = (float)(ns[i] / (double)MAX(waits->rows[i].tally.total_ns, 1u));
    return 0;
}

static void calls_look(const struct evidence *evidence, struct net_stalls *stalls)
{
    const struct io *io = &evidence->io;
    const struct io_kinds *kinds = &evidence->io_sums.kinds;
    uint64_t most[STALL_PEERS_MAX] = {0};
    for (size_t i = 1; i < io->call_count; i++) {
        const struct call_row *row = &io->calls[i];
        const struct object_info *object = &io->objects[row->info.object];
        struct net_stall *peer = is_stream(object) ? peer_at(stalls, object->name, false) : NULL;
        if (!peer)
            continue;
        enum io_kind kind = io_kind_of(kinds, &row->info);
        const char *name = syscall_name_on(kinds->machine, row->info.syscall);
        peer->settings += name && strcmp(name, "setsockopt") == 0 ? row->tally.count : 0;
        peer->receives += kind == IO_READ && row->tally.bytes > 0 ? row->tally.count : 0;
        if (kind != IO_WRITE || row->tally.bytes == 0)
            continue;
        peer->sends += row->tally.count;
        for (int k = 0; k < SEGMENT_BUCKET; k++)
            peer->small += row->tally.sizes[k];
        if (row->info.stack && row->tally.count > most[peer - stalls->peers]) {
            most[peer - stalls->peers] = row->tally.count;
            peer->send_stack = row->info.stack;
        }
    }
}

int net_stalls_find(struct arena *arena, const struct evidence *evidence, struct net_stalls *ret)
{
    struct net_stalls stalls = {0};
    if (waits_look(arena, evidence, &stalls) < 0)
        return -ENOMEM;
    calls_look(evidence, &stalls);
    for (size_t i = 0; i < stalls.count; i++) {
        struct net_stall *peer = &stalls.peers[i];
        peer->held = peer->stalls > 0 && peer->settings == 0 && peer->receives > 0 &&
                     (double)peer->sends >= PIECES_MIN * (double)peer->receives &&
                     (double)peer->small >= SMALL_MIN * (double)peer->sends;
    }
    const struct path_costs *costs = &evidence->costs_on_path;
    for (size_t i = 0; i < costs->count; i++) {
        const struct path_cost *row = &costs->rows[i];
        if (row->wait && stalls.peer_of[row->wait])
            stalls.peers[stalls.peer_of[row->wait] - 1].path_ns += row->ns *
                                                                   (double)stalls.rows[row->wait];
    }
    *ret = stalls;
    return 0;
}
