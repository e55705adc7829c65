/* What the files of `io_requests` share; nobody else includes this.
 *
 * io_requests.c             connections: from pieces to requests
 * io_requests_rows.c        requests to rows and single events
 * io_requests_statements.c  requests that are whole already */
#pragma once

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/io_requests.h"

enum {
    IO_ROWS_MAX = 32768,            /* further texts share one row for each protocol and role */
    IO_ROW_TEXTS_BYTES = 32 << 20,  /* of all rows */
    IO_PARAMETERS_MAX = 1 << 19,    /* different ones, of all rows */
    IO_PEERS_MAX = 65536,           /* names of them */
    IO_STATEMENTS_KEPT = 8192,      /* texts of SQL whose normalised form is remembered */
    IO_STATEMENTS_BYTES = 16 << 20, /* of those */
    IO_ROWS_FLUSH_NS = 1000000000,  /* rows reach the sink this often */
};

struct io_row {
    struct request_info info;
    uint32_t id; /* the sink's */
    uint32_t parameters;
    uint64_t next;              /* index + 1 of another row of the same hash; 0: none */
    struct str text, result;    /* in the arena of the rows */
    struct request_tally tally; /* what the sink does not have yet */
};

struct io_rows {
    struct sink *sink;
    VEC(struct io_row) rows;
    VEC(uint32_t) dirty;   /* indexes of rows whose tally is not empty */
    struct map_u64 hashes; /* to index + 1 */
    struct arena texts;
    struct map_u64 parameters; /* of row and parameters, by hash: seen */
    uint64_t flushed_ns;
    uint64_t requests, unanswered, events, events_left_out;
    uint64_t folded;              /* requests in rows that share */
    uint64_t parameters_left_out; /* requests whose parameters nobody could remember */
};

/* One request on its way to its row. */
struct io_request {
    const struct protocol_request *said;
    enum request_protocol protocol;
    enum request_role role;
    uint32_t thread, stack;
    uint32_t peer;       /* text id */
    uint32_t connection; /* id */
    bool payloads;
};
MUST_USE int io_rows_add(struct io_rows *rows, const struct io_request *request);
/* What has come up to now goes to the sink; `now_ns` 0: whatever the time. */
MUST_USE int io_rows_flush(struct io_rows *rows, uint64_t now_ns);
void io_rows_deinit(struct io_rows *rows);

/* ---- connections ---- */

enum io_connection_state {
    IO_UNDECIDED, /* which protocol it speaks is not known yet */
    IO_DECODED,
    IO_PASSED_OVER,
};

struct io_connection {
    uint64_t key;
    uint32_t next; /* index + 1 in its bucket, or of the free ones */
    enum io_connection_state state;
    struct io_socket socket; /* its peer lies in `peers` */
    struct protocol *protocol;
    enum request_protocol spoken;
    enum request_role role;
    uint32_t id;   /* the sink's, from its first request on */
    uint32_t peer; /* text id */
    uint32_t flags;
    uint64_t requests;
    uint64_t bytes[2]; /* by enum protocol_direction */
    uint32_t looked[2];
    bool encrypted;              /* TLS on the wire, that nobody has told the inside of */
    uint32_t contradicted;       /* the protocol has the roles the other way round */
    struct protocol_piece early; /* pieces too short to tell a protocol by, as one */
    char *service;
};

/* What a library answers, for one process and one database. */
struct io_database {
    uint32_t id; /* the sink's, of a connection */
    uint32_t peer;
    uint64_t requests;
};

struct io_normal {
    struct str text;
    uint64_t hash; /* of the values that were taken out */
};

struct io_requests {
    struct io_requests_opts opts;
    struct sink *sink;
    struct io_rows rows;
    struct intern peers;
    VEC(struct io_connection) connections;
    uint32_t *buckets; /* index + 1 */
    uint32_t free;     /* index + 1 */
    uint64_t open;
    struct io_connection *at; /* whose piece is looked at */
    uint32_t thread;          /* that said it; 0: nobody says anything any more */
    uint64_t time_ns;
    struct map_u64 database_at; /* process and peer to index + 1 */
    VEC(struct io_database) databases;
    struct intern statements; /* id n has normals.data[n - 1] */
    VEC(struct io_normal) normals;
    struct arena normal_texts;
    uint64_t seen, unknown, encrypted, broken, switched, middle, beyond, hopped, lost, cut_off;
};

/* A peer's name that stays, and the sink's id of it. */
MUST_USE int io_requests_peer(struct io_requests *requests, struct str peer, struct str *ret_kept,
                              uint32_t *ret_text);
/* Connections to databases end. */
MUST_USE int io_statements_finish(struct io_requests *requests);
void io_statements_deinit(struct io_requests *requests);
