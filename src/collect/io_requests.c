/* Connections, from their first bytes to their last: which protocol is spoken, who asks, and what
 * becomes of the requests that the protocol finds. */
#include "collect/io_requests_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 1 << 14,
    LOOKS_FROM_START = 4,     /* pieces of a direction before nothing is expected any more */
    LOOKS_IN_THE_MIDDLE = 32, /* what we came into may have to end first: a long answer */
    EARLY_BYTES = 256,        /* of pieces that are looked at together */
    CONTRADICTIONS = 3,
    SERVICE_BYTES = 255,
};

int io_requests_open(const struct io_requests_opts *opts, struct sink *sink,
                     struct io_requests **ret)
{
    struct io_requests *requests = calloc(1, sizeof(*requests));
    uint32_t *buckets = calloc(BUCKETS, sizeof(*buckets));
    if (!requests || !buckets) {
        free(requests);
        free(buckets);
        return -ENOMEM;
    }
    requests->opts = *opts;
    if (!requests->opts.guess)
        requests->opts.guess = protocol_guess;
    requests->sink = sink;
    requests->rows.sink = sink;
    requests->buckets = buckets;
    *ret = requests;
    return 0;
}

static int peer_keep(struct io_requests *requests, struct str peer, struct str *ret)
{
    uint32_t id;
    if (requests->peers.len >= IO_PEERS_MAX && intern_find(&requests->peers, peer) == 0)
        peer = STR("(further peers)");
    int r = intern_add(&requests->peers, peer, &id, NULL);
    if (r == 0)
        *ret = intern_get(&requests->peers, id);
    return r;
}

int io_requests_peer(struct io_requests *requests, struct str peer, struct str *ret_kept,
                     uint32_t *ret_text)
{
    int r = peer_keep(requests, peer, ret_kept);
    return r < 0 ? r : sink_text(requests->sink, *ret_kept, ret_text);
}

/* ---- the table ---- */

static uint32_t *bucket_of(struct io_requests *requests, uint64_t key)
{
    return &requests->buckets[hash_u64(key) & (BUCKETS - 1)];
}

static struct io_connection *connection_find(struct io_requests *requests, uint64_t key)
{
    uint32_t at = *bucket_of(requests, key);
    while (at != 0 && requests->connections.data[at - 1].key != key)
        at = requests->connections.data[at - 1].next;
    return at != 0 ? &requests->connections.data[at - 1] : NULL;
}

/* NULL in *ret: there are too many. */
static int connection_make(struct io_requests *requests, const struct io_socket *socket,
                           struct io_connection **ret)
{
    struct io_connection connection = {.key = socket->key, .socket = *socket};
    uint32_t *bucket = bucket_of(requests, socket->key), at = requests->free;
    if (requests->open >= IO_CONNECTIONS_MAX) {
        requests->beyond++;
        *ret = NULL;
        return 0;
    }
    int r = peer_keep(requests, socket->peer, &connection.socket.peer);
    if (r < 0)
        return r;
    connection.flags = (socket->tls ? CONNECTION_TLS : 0) |
                       (socket->opened_ns != 0 || socket->datagrams ? CONNECTION_FROM_START : 0);
    connection.next = *bucket;
    if (at != 0) {
        requests->free = requests->connections.data[at - 1].next;
        requests->connections.data[at - 1] = connection;
    } else {
        if (VEC_PUSH(&requests->connections, connection) < 0)
            return -ENOMEM;
        at = (uint32_t)requests->connections.len;
    }
    *bucket = at;
    requests->open++;
    *ret = &requests->connections.data[at - 1];
    return 0;
}

static void connection_free(struct io_connection *connection)
{
    free(connection->service);
    free((void *)connection->early.head);
    *connection = (struct io_connection){0};
}

static void connection_remove(struct io_requests *requests, struct io_connection *connection)
{
    uint32_t at = (uint32_t)(connection - requests->connections.data) + 1;
    uint32_t *link = bucket_of(requests, connection->key);
    while (*link != at)
        link = &requests->connections.data[*link - 1].next;
    *link = connection->next;
    connection_free(connection);
    connection->state = IO_PASSED_OVER;
    connection->next = requests->free;
    requests->free = at;
    requests->open--;
}

/* ---- what a protocol tells ---- */

static int connection_tell(struct io_requests *requests, struct io_connection *connection)
{
    const struct io_socket *socket = &connection->socket;
    const struct connection_info info = {
        .process = socket->process,
        .object = socket->object,
        .protocol = connection->spoken,
        .role = connection->role,
        .flags = connection->flags,
        .opened_ns = socket->opened_ns,
        .peer = socket->peer,
        .service = str_from(connection->service),
    };
    requests->seen++;
    return sink_connection(requests->sink, &info, &connection->id);
}

static int teller_request(void *context, const struct protocol_request *told)
{
    struct io_requests *requests = context;
    struct io_connection *connection = requests->at;
    struct protocol_request said = *told;
    if (connection->id == 0) {
        int r = connection_tell(requests, connection);
        if (r < 0)
            return r;
    }
    if (said.flags & REQUEST_UNANSWERED || said.end_ns == 0)
        said.end_ns = requests->time_ns;
    said.end_ns = MAX(said.end_ns, said.start_ns);
    const struct io_request request = {
        .said = &said,
        .protocol = connection->spoken,
        .role = connection->role,
        .thread = (uint32_t)(said.cookie >> 32),
        .stack = (uint32_t)said.cookie,
        .peer = connection->peer,
        .connection = connection->id,
        .payloads = requests->opts.payloads,
    };
    connection->requests++;
    if (requests->thread != 0 && request.thread != requests->thread)
        requests->hopped++;
    return io_rows_add(&requests->rows, &request);
}

static int teller_service(void *context, struct str name)
{
    struct io_requests *requests = context;
    struct io_connection *connection = requests->at;
    if (name.len == 0)
        return 0;
    free(connection->service);
    connection->service = strndup(name.data, MIN(name.len, (size_t)SERVICE_BYTES));
    return connection->service ? 0 : -ENOMEM;
}

static int teller_cut_off(void *context, const struct protocol_request *told)
{
    struct io_requests *requests = context;
    (void)told;
    requests->cut_off++;
    return 0;
}

static int nothing_called(void *context, struct str name)
{
    (void)context, (void)name;
    return 0;
}

/* What is pending will never be known. */
static void protocol_give_up(struct io_requests *requests, struct io_connection *connection)
{
    const struct protocol_teller teller = {requests, teller_cut_off, nothing_called};
    (void)protocol_close(connection->protocol, requests->time_ns, &teller);
    connection->protocol = NULL;
}

static void connection_pass_over(struct io_connection *connection)
{
    free((void *)connection->early.head);
    connection->early = (struct protocol_piece){0};
    connection->state = IO_PASSED_OVER;
}

static int feed(struct io_requests *requests, struct io_connection *connection,
                const struct protocol_piece *piece)
{
    const struct protocol_teller teller = {requests, teller_request, teller_service};
    requests->at = connection;
    int r = protocol_piece(connection->protocol, piece, &teller);
    if (r < 0)
        return r;
    switch ((enum protocol_verdict)r) {
    case PROTOCOL_GOES_ON:
        return IO_WANTED;
    case PROTOCOL_BROKEN:
        connection->flags |= CONNECTION_BROKEN;
        requests->broken++;
        break;
    case PROTOCOL_SWITCHED:
        requests->switched++;
        break;
    case PROTOCOL_MIDDLE:
        requests->middle++;
        break;
    }
    protocol_give_up(requests, connection);
    connection_pass_over(connection);
    return IO_ENOUGH;
}

/* ---- which protocol it is ---- */

/* A handshake of TLS: record type 22, version 3.x. */
static bool is_encrypted(const struct protocol_piece *piece)
{
    return piece->len >= 3 && piece->head[0] == 0x16 && piece->head[1] == 3 && piece->head[2] <= 4;
}

/* Where a connection is come upon in the middle, an answer may look like a request of the other
 * side. What the socket itself knows about who connected settles it, but ports are no proof: a
 * protocol that insists is believed. */
static bool role_fits(struct io_connection *connection, enum request_role role)
{
    uint32_t known = connection->socket.object_flags & (OBJECT_CLIENT | OBJECT_SERVER);
    if (connection->flags & CONNECTION_FROM_START ||
        (known != OBJECT_CLIENT && known != OBJECT_SERVER))
        return true;
    enum request_role expected = known == OBJECT_CLIENT ? REQUEST_CLIENT : REQUEST_SERVER;
    return role == expected || ++connection->contradicted >= CONTRADICTIONS;
}

static int recognised(struct io_requests *requests, struct io_connection *connection,
                      const struct protocol_ops *ops, enum request_role role)
{
    const struct protocol_opts opts = {
        .role = role,
        .from_start = connection->flags & CONNECTION_FROM_START,
        .payloads = requests->opts.payloads,
    };
    int r = sink_text(requests->sink, connection->socket.peer, &connection->peer);
    if (r == 0)
        r = protocol_open(ops, &opts, &connection->protocol);
    if (r < 0)
        return r;
    connection->spoken = ops->protocol;
    connection->role = role;
    connection->state = IO_DECODED;
    return 0;
}

/* The piece with those before it that were too short. Its head is new memory. */
static int early_join(struct io_connection *connection, const struct protocol_piece *piece,
                      struct protocol_piece *ret)
{
    const struct protocol_piece *early = &connection->early;
    uint8_t *bytes = malloc(early->len + piece->len + 1);
    if (!bytes)
        return -ENOMEM;
    if (early->len > 0)
        memcpy(bytes, early->head, early->len);
    if (piece->len > 0)
        memcpy(bytes + early->len, piece->head, piece->len);
    *ret = *piece;
    ret->head = bytes;
    ret->len += early->len;
    ret->bytes += early->len;
    if (early->len > 0) {
        ret->time_ns = early->time_ns;
        ret->cookie = early->cookie;
    }
    return 0;
}

/* Takes over `joined`, whose head is our memory, or frees it. */
static void early_keep(struct io_connection *connection, struct protocol_piece *joined)
{
    free((void *)connection->early.head);
    connection->early = (struct protocol_piece){0};
    if (joined->len > 0 && joined->len == joined->bytes && joined->len <= EARLY_BYTES &&
        !connection->socket.datagrams) {
        connection->early = *joined;
        return;
    }
    if (!connection->socket.datagrams)
        connection->flags &= ~(uint32_t)CONNECTION_FROM_START; /* a beginning that is not known */
    free((void *)joined->head);
}

static int undecided(struct io_requests *requests, struct io_connection *connection,
                     struct protocol_piece *joined)
{
    uint32_t most = connection->socket.opened_ns != 0 ? LOOKS_FROM_START : LOOKS_IN_THE_MIDDLE;
    bool encrypted = !connection->socket.tls && is_encrypted(joined);
    if (encrypted || ++connection->looked[joined->direction] >= most) {
        requests->encrypted += encrypted;
        requests->unknown += !encrypted;
        connection->encrypted = encrypted;
        free((void *)joined->head);
        connection_pass_over(connection);
        return IO_ENOUGH;
    }
    early_keep(connection, joined);
    return IO_WANTED;
}

static int decide(struct io_requests *requests, struct io_connection *connection,
                  const struct protocol_piece *piece)
{
    enum request_role role = REQUEST_CLIENT;
    struct protocol_piece joined;
    if (connection->early.len > 0 && connection->early.direction != piece->direction) {
        struct protocol_piece none = {0};
        early_keep(connection, &none);
    }
    int r = early_join(connection, piece, &joined);
    if (r < 0)
        return r;
    const struct protocol_ops *ops = requests->opts.guess(&joined, connection->socket.port, &role);
    if (!ops || !role_fits(connection, role))
        return undecided(requests, connection, &joined);
    r = recognised(requests, connection, ops, role);
    if (r == 0)
        r = feed(requests, connection, &joined);
    free((void *)joined.head);
    free((void *)connection->early.head);
    connection->early = (struct protocol_piece){0};
    return r;
}

int io_requests_met(struct io_requests *requests, const struct io_socket *socket)
{
    struct io_connection *connection = connection_find(requests, socket->key);
    return connection ? 0 : connection_make(requests, socket, &connection);
}

const struct io_socket *io_requests_socket(struct io_requests *requests, uint64_t key)
{
    const struct io_connection *connection = connection_find(requests, key);
    return connection ? &connection->socket : NULL;
}

int io_requests_piece(struct io_requests *requests, const struct io_socket *socket,
                      const struct io_said *said)
{
    struct io_connection *connection = connection_find(requests, socket->key);
    if (!connection) {
        int r = socket->process != 0 ? connection_make(requests, socket, &connection) : 0;
        if (r < 0 || !connection)
            return r < 0 ? r : IO_ENOUGH;
    }
    connection->bytes[said->direction] += said->bytes;
    if (connection->state == IO_PASSED_OVER)
        return IO_ENOUGH;
    const struct protocol_piece piece = {
        .direction = said->direction,
        .time_ns = said->direction == PROTOCOL_OUT ? said->start_ns : said->end_ns,
        .head = said->head,
        .len = MIN(said->len, (size_t)PROTOCOL_HEAD_BYTES),
        .bytes = MAX(said->bytes, said->len),
        .cookie = (uint64_t)said->thread << 32 | said->stack,
    };
    requests->thread = said->thread;
    requests->time_ns = said->end_ns;
    int r = connection->state == IO_DECODED ? feed(requests, connection, &piece)
                                            : decide(requests, connection, &piece);
    if (r < 0)
        return r;
    int flushed = io_rows_flush(&requests->rows, said->end_ns);
    return flushed < 0 ? flushed : r;
}

int io_requests_lost(struct io_requests *requests, uint64_t key)
{
    struct io_connection *connection = connection_find(requests, key);
    requests->lost++;
    if (!connection || connection->state == IO_PASSED_OVER)
        return 0;
    requests->at = connection;
    if (connection->state == IO_DECODED)
        protocol_give_up(requests, connection);
    struct protocol_piece none = {0};
    early_keep(connection, &none);
    connection->flags &= ~(uint32_t)CONNECTION_FROM_START;
    connection->socket.opened_ns = connection->id != 0 ? connection->socket.opened_ns : 0;
    connection->looked[0] = connection->looked[1] = 0;
    connection->state = IO_UNDECIDED;
    return 0;
}

void io_requests_inside(struct io_requests *requests, uint64_t key)
{
    struct io_connection *connection = connection_find(requests, key);
    if (!connection)
        return;
    if (connection->state == IO_DECODED)
        protocol_give_up(requests, connection);
    if (connection->encrypted)
        requests->encrypted--;
    connection->encrypted = false;
    connection_pass_over(connection);
}

/* ---- the end ---- */

static int connection_end(struct io_requests *requests, struct io_connection *connection,
                          uint64_t end_ns, uint64_t closed_ns)
{
    const struct protocol_teller teller = {requests, teller_request, teller_service};
    requests->at = connection;
    requests->thread = 0;
    requests->time_ns = end_ns;
    int r = protocol_close(connection->protocol, end_ns, &teller);
    connection->protocol = NULL;
    /* It ended before it could be told what is spoken there. */
    requests->unknown += connection->state == IO_UNDECIDED &&
                         connection->bytes[PROTOCOL_OUT] + connection->bytes[PROTOCOL_IN] > 0;
    if (connection->id == 0)
        return r;
    const struct connection_end end = {
        .closed_ns = closed_ns,
        .flags = connection->flags,
        .requests = connection->requests,
        .bytes_out = connection->bytes[PROTOCOL_OUT],
        .bytes_in = connection->bytes[PROTOCOL_IN],
        .service = str_from(connection->service),
    };
    int ended = sink_connection_end(requests->sink, connection->id, &end);
    return r < 0 ? r : ended;
}

int io_requests_closed(struct io_requests *requests, uint64_t key, uint64_t time_ns)
{
    struct io_connection *connection = connection_find(requests, key);
    if (!connection)
        return 0;
    int r = connection_end(requests, connection, time_ns, time_ns);
    connection_remove(requests, connection);
    return r;
}

static int counters_tell(struct io_requests *requests)
{
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        {"io.requests", requests->rows.requests},
        {"io.requests.unanswered", requests->rows.unanswered},
        {"io.requests.events_left_out", requests->rows.events_left_out},
        {"io.requests.hopped", requests->hopped},
        {"io.requests.folded", requests->rows.folded},
        {"io.requests.cut_off", requests->cut_off},
        {"io.requests.parameters_left_out", requests->rows.parameters_left_out},
        {"io.connections", requests->seen},
        {"io.connections.unknown", requests->unknown},
        {"io.connections.encrypted", requests->encrypted},
        {"io.connections.broken", requests->broken},
        {"io.connections.switched", requests->switched},
        {"io.connections.middle", requests->middle},
        {"io.connections.beyond", requests->beyond},
        {"io.connections.lost", requests->lost},
    };
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        r = sink_counter(requests->sink, counters[i].name, UNIT_COUNT, counters[i].value);
    return r;
}

uint64_t io_requests_encrypted(const struct io_requests *requests)
{
    return requests->encrypted;
}

int io_requests_drain(struct io_requests *requests, uint64_t now_ns)
{
    return io_rows_flush(&requests->rows, now_ns);
}

int io_requests_finish(struct io_requests *requests, uint64_t time_ns)
{
    int r = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        while (requests->buckets[i] != 0) {
            struct io_connection *connection = &requests->connections
                                                    .data[requests->buckets[i] - 1];
            int ended = connection_end(requests, connection, time_ns, 0);
            r = r < 0 ? r : ended;
            connection_remove(requests, connection);
        }
    int ended = io_statements_finish(requests);
    r = r < 0 ? r : ended;
    ended = io_rows_flush(&requests->rows, 0);
    r = r < 0 ? r : ended;
    return r < 0 ? r : counters_tell(requests);
}

void io_requests_close(struct io_requests *requests)
{
    if (!requests)
        return;
    for (size_t i = 0; i < requests->connections.len; i++) {
        struct io_connection *connection = &requests->connections.data[i];
        requests->at = connection;
        protocol_give_up(requests, connection);
        connection_free(connection);
    }
    VEC_FREE(&requests->connections);
    io_rows_deinit(&requests->rows);
    io_statements_deinit(requests);
    intern_deinit(&requests->peers);
    free(requests->buckets);
    free(requests);
}
