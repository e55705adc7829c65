/* Calls by what they are about: files, and peers on sockets. */
#include "analyze/io_parts.h"

#include "analyze/io_facts.h"

static void sizes_take(struct call_tally *to, const struct call_tally *tally, enum io_kind kind)
{
    if (kind == IO_READ || kind == IO_WRITE || kind == IO_COPY)
        return;
    /* Calls that move nothing by their nature are no calls of size 0. */
    for (unsigned i = 0; i < CALL_SIZES; i++)
        to->sizes[i] -= tally->sizes[i];
}

/* What has no name is told apart by its number. */
static const char *file_key(struct arena *arena, uint32_t object, const struct object_info *info)
{
    if (info->name.len == 0)
        return arena_printf(arena, "%u", object);
    return arena_printf(arena, "%d %.*s", (int)info->kind, STR_FMT(info->name));
}

/* The list's entry of an object, made when it is the first of its name. */
static struct io_file *file_of(struct io_adding *adding, uint32_t object, uint64_t *ret_index)
{
    bool fresh;
    uint64_t *at = map_u64_at(&adding->file_at, object, &fresh);
    if (!at)
        return NULL;
    if (fresh) {
        struct io_file made = {.object = object, .size_bytes = IO_FACT_UNKNOWN};
        const char *key = file_key(adding->arena, object, &adding->io->objects[object]);
        uint32_t id;
        bool first;
        if (intern_add(&adding->file_names, str_from(key), &id, &first) < 0 ||
            (first && VEC_PUSH(&adding->files, made) < 0))
            return NULL;
        *at = id;
        adding->files.data[id - 1].objects++;
    }
    *ret_index = *at;
    return &adding->files.data[*at - 1];
}

static void file_kind_add(struct io_file *file, const struct call_row *row, enum io_kind kind)
{
    const struct call_tally *tally = &row->tally;
    bool direct = row->info.flags & CALL_DIRECT;
    switch (kind) {
    case IO_READ:
        io_moved_add(&file->reads, tally);
        file->direct += direct ? tally->count : 0;
        break;
    case IO_WRITE:
        io_moved_add(&file->writes, tally);
        file->direct += direct ? tally->count : 0;
        if (row->info.flags & CALL_SYNC)
            io_moved_add(&file->sync_writes, tally);
        break;
    case IO_COPY:
        io_moved_add(&file->copies, tally);
        break;
    case IO_SYNC:
        io_moved_add(&file->syncs, tally);
        break;
    case IO_FAULT:
        io_moved_add(&file->faults, tally);
        break;
    case IO_OPEN:
        file->opens += row->info.error ? 0 : tally->count;
        file->created = file->created || (row->info.flags & CALL_CREATES && !row->info.error);
        break;
    case IO_STAT:
        file->stats += tally->count;
        break;
    default:
        break;
    }
}

int io_file_add(struct io_adding *adding, const struct call_row *row, enum io_kind kind, bool idle)
{
    uint64_t index;
    struct io_file *file = file_of(adding, row->info.object, &index);
    if (!file)
        return -ENOMEM;
    file_kind_add(file, row, kind);
    file->errors += row->info.error ? row->tally.count : 0;
    if (idle) {
        file->idle_calls += row->tally.count;
        file->idle_ns += row->tally.total_ns;
        return 0;
    }
    call_tally_add(&file->tally, &row->tally);
    sizes_take(&file->tally, &row->tally, kind);
    return io_heaviest(&adding->stack_ns, index, row->info.stack, row->tally.total_ns, &file->stack,
                       &file->stack_ns);
}

/* Sockets of one name and role are one peer. Without a name a socket's process is not told from
 * others: all of them are one. */
static const char *peer_key(struct arena *arena, uint32_t flags, struct str name)
{
    uint32_t role = flags & (OBJECT_CLIENT | OBJECT_SERVER | OBJECT_LISTENING);
    return arena_printf(arena, "%u %.*s", role, STR_FMT(name));
}

static struct io_peer *peer_of(struct io_adding *adding, uint32_t object, uint64_t *ret_index)
{
    bool fresh;
    uint64_t *known = map_u64_at(&adding->peer_of, object, &fresh);
    if (!known)
        return NULL;
    if (fresh) {
        const struct object_info *info = &adding->io->objects[object];
        const char *key = peer_key(adding->arena, info->flags, info->name);
        uint32_t id;
        bool first;
        if (intern_add(&adding->peer_names, str_from(key), &id, &first) < 0)
            return NULL;
        struct io_peer made = {.object = object, .service = STR("")};
        if (first && VEC_PUSH(&adding->peers, made) < 0)
            return NULL;
        *known = id;
        adding->peers.data[id - 1].sockets++;
        adding->peers.data[id - 1].flags |= info->flags;
    }
    *ret_index = *known;
    return &adding->peers.data[*known - 1];
}

static void peer_kind_add(struct io_peer *peer, const struct call_tally *tally, enum io_kind kind)
{
    struct io_moved *to = kind == IO_READ      ? &peer->received
                          : kind == IO_WRITE   ? &peer->sent
                          : kind == IO_COPY    ? &peer->copies
                          : kind == IO_CONNECT ? &peer->connects
                          : kind == IO_ACCEPT  ? &peer->accepts
                                               : NULL;
    if (to)
        io_moved_add(to, tally);
}

int io_peer_add(struct io_adding *adding, const struct call_row *row, enum io_kind kind, bool idle)
{
    uint64_t index;
    struct io_peer *peer = peer_of(adding, row->info.object, &index);
    if (!peer)
        return -ENOMEM;
    peer_kind_add(peer, &row->tally, kind);
    if (kind == IO_CONNECT && row->info.stack)
        peer->connect_stack = row->info.stack;
    peer->errors += row->info.error ? row->tally.count : 0;
    if (idle) {
        peer->idle_calls += row->tally.count;
        peer->idle_ns += row->tally.total_ns;
        return 0;
    }
    call_tally_add(&peer->tally, &row->tally);
    sizes_take(&peer->tally, &row->tally, kind);
    /* Indexes are below 2^30: peers are told from files by a bit above them. */
    return io_heaviest(&adding->stack_ns, 1u << 30 | index, row->info.stack, row->tally.total_ns,
                       &peer->stack, &peer->stack_ns);
}

/* By its socket; one that was never called on by the peer's name. */
static uint64_t peer_find(struct io_adding *adding, const struct connection_info *info)
{
    const uint64_t *at = map_u64_find(&adding->peer_of, info->object);
    if (at && *at != 0)
        return *at;
    uint32_t flags = info->role == REQUEST_SERVER ? OBJECT_SERVER : OBJECT_CLIENT;
    return intern_find(&adding->peer_names, str_from(peer_key(adding->arena, flags, info->peer)));
}

/* What connections know of the peers of their sockets. */
static void peers_name(struct io_adding *adding)
{
    const struct io *io = adding->io;
    for (size_t i = 1; i < io->connection_count; i++) {
        const struct connection_info *info = &io->connections[i].info;
        uint64_t at = peer_find(adding, info);
        if (at == 0)
            continue;
        struct io_peer *peer = &adding->peers.data[at - 1];
        if (peer->service.len == 0)
            peer->service = info->service;
        if (peer->protocol == 0)
            peer->protocol = info->protocol;
    }
}

static int sizes_find(struct io_adding *adding)
{
    struct io_file_facts facts;
    int r = io_file_facts_read(adding->arena, adding->io->files_json, &facts);
    for (size_t i = 0; i < (r == 0 ? facts.count : 0); i++) {
        const uint64_t *at = map_u64_find(&adding->file_at, facts.facts[i].object);
        if (at && *at > 0)
            adding->files.data[*at - 1].size_bytes = facts.facts[i].size_bytes;
    }
    return r;
}

int io_objects_finish(struct io_adding *adding)
{
    peers_name(adding);
    for (size_t i = 0; i < adding->files.len; i++) {
        struct io_file *file = &adding->files.data[i];
        struct str name = adding->io->objects[file->object].name;
        file->removed = str_ends(name, " (deleted)") ||
                        intern_find(&adding->removed_names, name) != 0;
    }
    return sizes_find(adding);
}
