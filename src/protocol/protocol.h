/* What is said on a connection, taken apart: pieces in, requests out.
 *
 *     protocol_guess()   which protocol a first piece is of, if any
 *     protocol_open()    a connection of one
 *     protocol_piece()   bytes that one call sent or received; complete requests are told
 *     protocol_close()   what is still unanswered is told as such
 *
 * Pieces are what system calls move: a message may come in many, or many in one. Of a long piece
 * only its head is there; what is missing is skipped by the lengths that messages carry, and where
 * that cannot be done the connection is given up (`broken`) instead of guessed at. Input is never
 * trusted. Nothing here reads, writes or blocks; memory is bounded for each connection.
 *
 * One file a protocol; a row in protocol.c makes it known. */
#pragma once

#include "base/macros.h"
#include "base/str.h"
#include "model/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROTOCOL_HEAD_BYTES = 64 << 10, /* of a piece, that are looked at: many messages may be in it */
    PROTOCOL_TEXT_BYTES = 4096,     /* of a normalised text */
    PROTOCOL_PENDING_MAX = 256,     /* requests without an answer, on one connection */
    PROTOCOL_MEMORY_BYTES = 64 << 10,
};

enum protocol_direction { PROTOCOL_OUT = 0, PROTOCOL_IN = 1 }; /* seen from the recorded process */

struct protocol_piece {
    enum protocol_direction direction;
    uint64_t time_ns; /* when the call returned; of what is sent when it began */
    const uint8_t *head;
    size_t len;      /* of head */
    uint64_t bytes;  /* of the piece; more than len: the rest is not there */
    uint64_t cookie; /* of the caller: given back with the request that begins in this piece */
};

struct protocol_request {
    uint64_t start_ns, first_byte_ns, end_ns; /* first_byte_ns, end_ns 0: unanswered */
    uint64_t bytes_out, bytes_in;             /* request and answer, seen from whoever asks */
    struct str text;                          /* normalised; valid during the call only */
    uint64_t parameters;                      /* hash of what was taken out of it; 0: nothing was */
    struct str result;                        /* "200", "ERROR 23505", "OK" … */
    uint32_t flags;                           /* enum request_flag; REUSED is set by protocol.c */
    uint64_t cookie;
    struct str payload; /* what is in its piece, without secrets; empty unless asked for */
};

struct protocol_teller {
    void *context;
    /* 0 or an error that ends the piece. */
    int (*request)(void *context, const struct protocol_request *request);
    /* The service's own name, once it is known: a host, a database. */
    int (*service)(void *context, struct str name);
};

/* What is to become of a connection after a piece. */
enum protocol_verdict {
    PROTOCOL_GOES_ON = 0,
    PROTOCOL_BROKEN = 1,   /* it stopped making sense: nothing further is looked at */
    PROTOCOL_SWITCHED = 2, /* it became another protocol (TLS, a web socket, compression) */
    PROTOCOL_MIDDLE = 3,   /* recognised, but cannot be decoded from the middle on (HTTP/2) */
};

struct protocol_opts {
    enum request_role role;
    bool from_start; /* the first piece is the first of the connection */
    bool payloads;   /* protocol_request.payload is wanted */
};

/* One protocol. State is zeroed before the first piece. */
struct protocol_ops {
    enum request_protocol protocol;
    const char *name; /* "http", "postgresql": lower case, stable */
    /* Whether it is this one, and who asks; 0: it is not, or cannot be told yet. `port` is the
     * listening side's, 0: none. */
    int (*guess)(const struct protocol_piece *first, uint16_t port);
    size_t state_bytes;
    /* `opts` is the same every time. enum protocol_verdict or -errno of the teller. */
    int (*piece)(void *state, const struct protocol_opts *opts, const struct protocol_piece *piece,
                 const struct protocol_teller *teller);
    /* Tells what has no answer, and frees what the state owns. */
    int (*close)(void *state, const struct protocol_opts *opts, uint64_t time_ns,
                 const struct protocol_teller *teller);
};

extern const struct protocol_ops *const protocols[]; /* ends with NULL */
extern const struct protocol_ops protocol_http1, protocol_http2, protocol_postgres, protocol_mysql,
    protocol_redis, protocol_dns;

/* By its first piece; NULL: none of them, or not told yet by so few bytes. */
const struct protocol_ops *protocol_guess(const struct protocol_piece *first, uint16_t port,
                                          enum request_role *ret_role);
/* "http", "sqlite" …, also of those that are no protocol of a socket. */
const char *protocol_name(enum request_protocol protocol);

struct protocol; /* one connection */
MUST_USE int protocol_open(const struct protocol_ops *ops, const struct protocol_opts *opts,
                           struct protocol **ret);
/* After anything but PROTOCOL_GOES_ON further pieces are passed over; the verdict stays. */
MUST_USE int protocol_piece(struct protocol *protocol, const struct protocol_piece *piece,
                            const struct protocol_teller *teller);
/* NULL is fine. The memory is free again also where the teller fails. */
int protocol_close(struct protocol *protocol, uint64_t time_ns,
                   const struct protocol_teller *teller);
