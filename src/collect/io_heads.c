/* Heads of messages, on their way from the ring to the protocols. */
#include "collect/io_heads.h"

#include "base/map.h"
#include "collect/bpf_unit.h"
#include "collect/objects.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

_Static_assert((int)IO_HEAD_BYTES == (int)PROTOCOL_HEAD_BYTES, "format and protocols");

enum { PIECE_BYTES = offsetof(struct io_heads_piece, bytes) };

struct io_heads {
    struct io_heads_opts opts;
    uint64_t malformed, verdicts, inside;
};

int io_heads_open(const struct io_heads_opts *opts, struct io_heads **ret)
{
    struct io_heads *heads = calloc(1, sizeof(*heads));
    if (!heads)
        return -ENOMEM;
    heads->opts = *opts;
    *ret = heads;
    return 0;
}

void io_heads_close(struct io_heads *heads)
{
    free(heads);
}

/* Calls on this socket are told no more. It may be gone by now, or another one: then there is
 * nothing to do. */
static void verdict_tell(struct io_heads *heads, uint64_t ino, uint64_t id,
                         enum io_heads_verdict verdict)
{
    struct io_heads_conn conn;
    if (bpf_map_lookup_elem(heads->opts.conns_fd, &ino, &conn) < 0 || conn.id != id ||
        conn.verdict == (uint32_t)verdict)
        return;
    conn.verdict = verdict;
    if (bpf_map_update_elem(heads->opts.conns_fd, &ino, &conn, BPF_EXIST) == 0)
        heads->verdicts++;
}

/* ---- sockets ---- */

/* The other side as it is known: a server by its port, a client by where it is. */
static struct str peer_name(const struct object_record *object, char *buffer, size_t size)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool server = object->id.flags & OBJECT_ID_SERVER;
    bool internet = object->family == AF_INET || object->family == AF_INET6;
    if (server && internet) {
        bool six = object->family == AF_INET6 && memcmp(object->remote, mapped, 12) != 0;
        const uint8_t *address = object->remote + (object->family == AF_INET6 && !six ? 12 : 0);
        if (!inet_ntop(six ? AF_INET6 : AF_INET, address, buffer, (socklen_t)size))
            return (struct str){"", 0};
        return str_from(buffer);
    }
    struct str name = object_name(object, buffer, size);
    static const char *const before[] = {"client of ", "udp "};
    for (size_t i = 0; i < ARRAY_SIZE(before); i++)
        if (str_starts(name, before[i])) {
            name.data += strlen(before[i]);
            name.len -= strlen(before[i]);
        }
    return name;
}

static int met_take(struct io_heads *heads, const struct io_heads_met *met)
{
    const struct object_record *object = &met->object;
    const struct io_heads_opts *opts = &heads->opts;
    char name[OBJECT_NAME_BYTES];
    uint32_t thread;
    struct io_socket socket = {
        .key = met->conn,
        .object_flags = object->id.flags,
        .datagrams = object->socket_type == SOCK_DGRAM,
        .opened_ns = met->opened_ns,
        .peer = peer_name(object, name, sizeof(name)),
    };
    socket.port = object->id.flags & OBJECT_ID_SERVER || object->remote_port == 0
                      ? object->local_port
                      : object->remote_port;
    int r = opts->thread(opts->context, met->head.tid, met->head.tgid, met->head.exec,
                         met->head.time_ns, &socket.process, &thread);
    if (r == 0)
        r = opts->object(opts->context, object, &socket.object);
    return r < 0 ? r : io_requests_met(opts->requests, &socket);
}

/* ---- pieces ---- */

/* The program's own numbers of connections are times, and never come this high. */
static uint64_t tls_key(uint32_t tgid, uint32_t exec, uint64_t ssl)
{
    return hash_u64(ssl ^ hash_u64((uint64_t)tgid << 32 | exec)) | UINT64_C(1) << 63;
}

/* A record of TLS, or the beginning of one: handshake, alert, data … of version 3. */
static bool is_tls(const struct io_heads_piece *piece)
{
    return piece->len >= 2 && piece->bytes[0] >= 0x14 && piece->bytes[0] <= 0x18 &&
           piece->bytes[1] == 3;
}

/* More of what began as a record of TLS, on the same socket. */
static bool is_paired(struct io_heads *heads, const struct io_heads_piece *piece)
{
    struct io_requests *requests = heads->opts.requests;
    const struct io_socket *outside = io_requests_socket(requests, piece->conn);
    const struct io_socket *inside = io_requests_socket(
        requests, tls_key(piece->head.tgid, piece->head.exec, piece->ssl));
    return outside && inside && outside->object == inside->object;
}

/* Something encrypted was moved inside a function of TLS: this is the socket that it speaks on. */
static int tls_pair(struct io_heads *heads, const struct io_heads_piece *piece)
{
    struct io_requests *requests = heads->opts.requests;
    uint64_t key = tls_key(piece->head.tgid, piece->head.exec, piece->ssl);
    const struct io_socket *outside = io_requests_socket(requests, piece->conn);
    if (!outside)
        return 0;
    struct io_socket inside = *outside;
    inside.key = key;
    inside.tls = true;
    io_requests_inside(requests, piece->conn);
    verdict_tell(heads, piece->ino, piece->conn, IO_HEADS_INSIDE);
    if (!io_requests_socket(requests, key))
        heads->inside++;
    return io_requests_met(requests, &inside);
}

static int said_fill(struct io_heads *heads, const struct io_heads_piece *piece,
                     struct io_said *said, uint32_t *ret_process)
{
    const struct io_heads_opts *opts = &heads->opts;
    *said = (struct io_said){
        .direction = piece->marks & IO_HEADS_IN ? PROTOCOL_IN : PROTOCOL_OUT,
        .start_ns = piece->start_ns,
        .end_ns = piece->head.time_ns,
        .head = piece->bytes,
        .len = piece->len,
        .bytes = piece->moved,
    };
    int r = opts->thread(opts->context, piece->head.tid, piece->head.tgid, piece->head.exec,
                         piece->head.time_ns, ret_process, &said->thread);
    if (r == 0 && piece->stack != 0)
        r = opts->stack(opts->context, piece->stack, piece->head.time_ns, &said->stack);
    return r;
}

static int piece_take(struct io_heads *heads, const struct io_heads_piece *piece)
{
    struct io_requests *requests = heads->opts.requests;
    uint32_t process;
    struct io_said said;
    if (piece->ssl != 0 && (is_tls(piece) || is_paired(heads, piece)))
        return tls_pair(heads, piece);
    int r = said_fill(heads, piece, &said, &process);
    if (r == 0 && piece->lost > 0)
        r = io_requests_lost(requests, piece->conn);
    if (r < 0)
        return r;
    const struct io_socket socket = {.key = piece->conn};
    r = io_requests_piece(requests, &socket, &said);
    if (r == IO_ENOUGH)
        verdict_tell(heads, piece->ino, piece->conn, IO_HEADS_IGNORE);
    return r < 0 ? r : 0;
}

static int tls_piece_take(struct io_heads *heads, const struct io_heads_piece *piece)
{
    struct io_requests *requests = heads->opts.requests;
    struct io_socket socket = {
        .key = tls_key(piece->head.tgid, piece->head.exec, piece->conn),
        .peer = STR("(a socket that was not seen)"),
        .tls = true,
    };
    struct io_said said;
    int r = said_fill(heads, piece, &said, &socket.process);
    if (r == 0 && piece->lost > 0)
        r = io_requests_lost(requests, socket.key);
    if (r == 0)
        r = io_requests_piece(requests, &socket, &said);
    return r < 0 ? r : 0;
}

/* ---- records ---- */

static bool piece_is_whole(const struct io_heads_piece *piece, size_t bytes)
{
    return bytes >= PIECE_BYTES && piece->len <= IO_HEAD_BYTES && bytes - PIECE_BYTES >= piece->len;
}

int io_heads_take(struct io_heads *heads, const void *record, size_t bytes)
{
    uint32_t type = 0;
    int r = 0;
    if (bytes >= sizeof(type))
        memcpy(&type, record, sizeof(type));
    const struct io_heads_closed *closed = record;
    bool whole;
    switch ((enum io_heads_record)type) {
    case IO_HEADS_MET:
        whole = bytes >= sizeof(struct io_heads_met);
        if (whole)
            r = met_take(heads, record);
        break;
    case IO_HEADS_PIECE:
    case IO_HEADS_TLS_PIECE:
        whole = piece_is_whole(record, bytes);
        if (whole)
            r = type == IO_HEADS_PIECE ? piece_take(heads, record) : tls_piece_take(heads, record);
        break;
    case IO_HEADS_CLOSED:
    case IO_HEADS_TLS_CLOSED:
        whole = bytes >= sizeof(*closed);
        if (whole)
            r = io_requests_closed(
                heads->opts.requests,
                type == IO_HEADS_CLOSED
                    ? closed->conn
                    : tls_key(closed->head.tgid, closed->head.exec, closed->conn),
                closed->head.time_ns);
        break;
    default:
        return 0;
    }
    heads->malformed += !whole;
    return r < 0 ? r : 1;
}

int io_heads_finish(struct io_heads *heads, struct sink *sink)
{
    uint64_t counts[IO_HEADS_COUNTS] = {0};
    int r = bpf_counts_read(heads->opts.counts_fd, counts, IO_HEADS_COUNTS);
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        {"io.heads", counts[IO_HEADS_TOLD]},        {"io.heads_lost", counts[IO_HEADS_LOST]},
        {"io.heads_short", counts[IO_HEADS_SHORT]}, {"io.heads_beyond", counts[IO_HEADS_BEYOND]},
        {"io.heads_cut", counts[IO_HEADS_CUT]},     {"io.heads_malformed", heads->malformed},
        {"io.heads_verdicts", heads->verdicts},     {"io.connections.inside", heads->inside},
    };
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        r = sink_counter(sink, counters[i].name, UNIT_COUNT, counters[i].value);
    return r;
}
