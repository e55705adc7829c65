/* Requests seen on sockets and in libraries: what was asked of whom, and how long it took.
 *
 * A row stands for all requests that are alike: the same normalised text to the same peer from
 * the same call site. Single ones are told as well (struct request_event) as long as they are few,
 * or long: they are in the tally of their row, too. Nothing that was a value in a request is kept:
 * texts are normalised, of parameters only a hash is known. */
#pragma once

#include "base/str.h"
#include "model/wait.h"

#include <stdint.h>

enum request_protocol {
    REQUEST_HTTP1 = 1,
    REQUEST_HTTP2 = 2,
    REQUEST_POSTGRESQL = 3,
    REQUEST_MYSQL = 4,
    REQUEST_REDIS = 5,
    REQUEST_DNS = 6,
    REQUEST_SQLITE = 7,
    REQUEST_PROTOCOLS,
};

enum request_role {
    REQUEST_CLIENT = 1, /* the process that is recorded asks */
    REQUEST_SERVER = 2, /* it answers */
    REQUEST_INSIDE = 3, /* a library in it answers: SQLite */
};

enum connection_flag {
    CONNECTION_TLS = 1 << 0,
    CONNECTION_FROM_START = 1 << 1, /* its first byte was seen */
    CONNECTION_BROKEN = 1 << 2,     /* what was said stopped making sense: the rest was left out */
};

struct connection_info {
    uint32_t process; /* id */
    uint32_t object;  /* the socket; of SQLite the database's file */
    enum request_protocol protocol;
    enum request_role role;
    uint32_t flags;     /* enum connection_flag */
    uint64_t opened_ns; /* 0: before we came */
    struct str
        peer; /* "127.0.0.1:5432", "unix:/run/x.sock", without the other side's port for servers */
    struct str service; /* "shop", "api.example.org": from the protocol itself; may be empty */
};

struct connection_end {
    uint64_t closed_ns;           /* 0: it was still open */
    uint32_t flags;               /* enum connection_flag, all of them by now */
    uint64_t requests;            /* seen on it */
    uint64_t bytes_out, bytes_in; /* moved on it, seen from the recorded process */
    struct str service;           /* empty: as it was */
};

struct request_info {
    enum request_protocol protocol;
    enum request_role role;
    uint32_t thread, stack; /* that sent it; of a server that received it */
    uint32_t peer;          /* text id */
    uint32_t text;          /* text id: "GET /users/?", "SELECT * FROM t WHERE id = ?" */
    uint32_t result;        /* text id: "200", "ERROR 23505", "" */
};

struct request_tally {
    uint64_t count;
    uint64_t total_ns, max_ns;    /* from the first byte of the request to the last of the answer */
    uint64_t first_byte_ns;       /* part of total_ns: up to the first byte of the answer */
    uint64_t first_ns, last_ns;   /* beginning of the first and end of the last of them */
    uint64_t bytes_out, bytes_in; /* of the request, of the answer */
    uint64_t failed;
    uint64_t reused;     /* on a connection that had answered before */
    uint64_t unanswered; /* of count: their times are up to when nobody waited any more */
    /* How many different parameters were seen; what is added are those that are new. At
     * REQUEST_PARAMETERS nobody counts on: it is "at least". */
    uint64_t parameters;
    uint32_t buckets[WAIT_BUCKETS];
};
enum { REQUEST_PARAMETERS = 1024 };

enum request_flag {
    REQUEST_FAILED = 1 << 0,
    REQUEST_REUSED = 1 << 1,
    REQUEST_UNANSWERED = 1 << 2, /* the connection or the recording ended before the answer */
    REQUEST_CUT = 1 << 3,        /* its text is longer than what is looked at */
};

struct request_event {
    uint32_t request;    /* id of its row */
    uint32_t connection; /* id */
    uint64_t start_ns, first_byte_ns, end_ns;
    uint64_t bytes_out, bytes_in;
    uint64_t parameters; /* hash; 0: it has none */
    uint32_t flags;      /* enum request_flag */
    uint32_t payload;    /* text id: as it was said, without secrets; 0: not asked for */
};
