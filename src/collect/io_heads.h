/* From heads of messages that the kernel programs tell (format/io_heads.h) to pieces of
 * connections (io_requests.h); and back to them the word which sockets nobody wants to hear of.
 *
 * Records come in the order of the ring. One thread. */
#pragma once

#include "collect/io_requests.h"
#include "format/io_heads.h"

struct io_heads;

struct io_heads_opts {
    struct io_requests *requests;
    int conns_fd;  /* map "io_conns" */
    int counts_fd; /* map "io_heads_counts" */
    void *context; /* of the functions: ids of the sink, by what the programs call things */
    int (*thread)(void *context, uint32_t tid, uint32_t tgid, uint32_t exec, uint64_t time_ns,
                  uint32_t *ret_process, uint32_t *ret_thread);
    int (*stack)(void *context, uint64_t ref, uint64_t time_ns, uint32_t *ret); /* 0: not known */
    int (*object)(void *context, const struct object_record *record, uint32_t *ret);
};

MUST_USE int io_heads_open(const struct io_heads_opts *opts, struct io_heads **ret);
void io_heads_close(struct io_heads *heads); /* NULL is fine */

/* 1: it was a record of ours, 0: it was not, or an error of the sink or the functions. */
MUST_USE int io_heads_take(struct io_heads *heads, const void *record, size_t bytes);
/* Counters io.heads (pieces), io.heads_lost (no room in the ring), io.heads_beyond (more than one
 * connection may tell at a time), io.heads_cut, io.heads_malformed, io.connections.inside (of TLS
 * whose inside is told). */
MUST_USE int io_heads_finish(struct io_heads *heads, struct sink *sink);
