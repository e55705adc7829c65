/* From what is said on sockets to requests in a sink: connections, the protocols spoken on them
 * (protocol/), rows and single requests.
 *
 *     io_requests_piece()   bytes that a call moved; in the order of time for one connection
 *     io_requests_closed()  a connection is over
 *     io_requests_told()    a request that is whole already: a statement of SQLite
 *     io_requests_finish()  what is unanswered, rows, counters io.requests.*
 *
 * Both tiers feed it. Memory is bounded: connections beyond a number, rows beyond a number and
 * single requests beyond the first IO_EVENTS_FIRST that take less than IO_EVENT_LONG_NS are added
 * up or counted, never silently left out. One thread. */
#pragma once

#include "model/sink.h"
#include "protocol/protocol.h"

struct io_requests;

enum { IO_EVENTS_FIRST = 20000, IO_EVENTS_MAX = 200000, IO_CONNECTIONS_MAX = 65536 };
#define IO_EVENT_LONG_NS 1000000u

struct io_requests_opts {
    bool payloads;
    /* In the place of protocol_guess(), for tests; NULL: that one. */
    const struct protocol_ops *(*guess)(const struct protocol_piece *first, uint16_t port,
                                        enum request_role *ret_role);
};

MUST_USE int io_requests_open(const struct io_requests_opts *opts, struct sink *sink,
                              struct io_requests **ret);
void io_requests_close(struct io_requests *requests); /* NULL is fine */

/* What the pieces of one connection have in common. */
struct io_socket {
    uint64_t key;     /* of the socket and the process: never given to another one meanwhile */
    uint32_t process; /* ids of the sink */
    uint32_t object;
    uint32_t object_flags; /* enum object_flag: CLIENT, SERVER, LOCAL */
    struct str peer;       /* "127.0.0.1:5432"; for a server without the other side's port */
    uint16_t port;         /* of the listening side, 0: none or not known */
    bool datagrams;        /* every piece is a message of its own: DNS */
    bool tls;              /* what is told is in the clear, what is on the wire is not */
    uint64_t opened_ns;    /* 0: it was there when we came */
};

struct io_said {
    enum protocol_direction direction;
    uint64_t start_ns, end_ns; /* of the call */
    const uint8_t *head;
    size_t len;
    uint64_t bytes;
    uint32_t thread, stack; /* ids of the sink; stack 0: not known */
};

/* What the caller should do with further pieces of this connection. */
enum io_wanted {
    IO_WANTED = 1, /* go on, or: cannot be told yet */
    IO_ENOUGH = 0, /* no protocol that we know, or given up: do not bother */
};
/* A connection whose facts come before its pieces: those need only its key. */
MUST_USE int io_requests_met(struct io_requests *requests, const struct io_socket *socket);
/* What is known of it; NULL: nothing. Valid until the next call. */
const struct io_socket *io_requests_socket(struct io_requests *requests, uint64_t key);
/* enum io_wanted or -errno of the sink. A socket of process 0 must have been met before. */
MUST_USE int io_requests_piece(struct io_requests *requests, const struct io_socket *socket,
                               const struct io_said *said);
MUST_USE int io_requests_closed(struct io_requests *requests, uint64_t key, uint64_t time_ns);
/* Pieces of it are missing: what is pending is given up, and the protocol is looked for anew. */
MUST_USE int io_requests_lost(struct io_requests *requests, uint64_t key);
/* It turned out to be the outside of a connection whose inside is told as another one (TLS): it is
 * passed over, and is none of those that nobody knows. */
void io_requests_inside(struct io_requests *requests, uint64_t key);

/* A library in the process answered. `database` is the object of its file. */
struct io_statement {
    enum request_protocol protocol;
    uint32_t process, thread, stack;
    uint32_t object;
    struct str database; /* its path */
    struct str sql;      /* as it was written */
    uint64_t parameters; /* hash of what was bound; 0: nothing */
    uint64_t start_ns, end_ns;
    uint64_t rows;
    struct str result; /* "", "ERROR 19" */
};
MUST_USE int io_requests_told(struct io_requests *requests, const struct io_statement *statement);

/* Now and then, also while nothing is said: sums reach the sink about once a second. */
MUST_USE int io_requests_drain(struct io_requests *requests, uint64_t now_ns);

/* Connections so far that are encrypted, and nobody tells the inside of. */
uint64_t io_requests_encrypted(const struct io_requests *requests);

/* Counters: io.requests (seen), io.requests.unanswered, io.requests.events_left_out,
 * io.connections, io.connections.unknown (no protocol that we know), .broken, .switched, .middle,
 * .beyond (too many at a time), .encrypted (TLS that nobody told the inside of), .lost (times that
 * pieces were missing), io.requests.hopped (answered on another thread than asked), .folded (beyond
 * the number of rows), .cut_off (pending when their connection stopped making sense or pieces
 * were lost), .parameters_left_out. */
MUST_USE int io_requests_finish(struct io_requests *requests, uint64_t time_ns);
