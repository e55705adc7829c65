/* Requests that are alike for people: one protocol, peer, normalised text and call site, whatever
 * the thread, the connection and the result; and requests that one thread made one after another.
 *
 * Rows tell sums of all requests; which came after which is known of single ones only
 * (io.events), which are bounded: `events` beside `tally.count` says of how many. */
#pragma once

#include "analyze/io_load.h"

struct io_result {
    uint32_t text; /* id */
    uint64_t count;
};

struct io_request_group {
    enum request_protocol protocol;
    enum request_role role;
    uint32_t peer, text, stack; /* text ids; stack id */
    struct str service;         /* empty: not known */
    struct request_tally tally;
    uint32_t threads;                    /* different ones */
    uint64_t events;                     /* of tally.count: known one by one */
    uint64_t connections;                /* different ones among those */
    uint64_t parameters;                 /* different ones */
    bool parameters_more;                /* at least so many */
    uint64_t sequential;                 /* of events: part of a chain of this group's peer */
    size_t chain;                        /* index of the longest such chain; SIZE_MAX: none */
    uint32_t result_first, result_count; /* in io_request_groups.results */
};

/* One thread asks one peer, gets its answer, and asks again. */
struct io_chain {
    uint32_t thread, peer; /* id; text id */
    enum request_protocol protocol;
    uint32_t text;  /* if it is the same for all; 0: they differ */
    uint32_t stack; /* of most of them; 0: of no more than half */
    uint64_t count;
    uint64_t sum_ns, max_ns;   /* of the requests themselves */
    uint64_t start_ns, end_ns; /* of the chain */
    uint32_t *events;          /* indexes into io.events, in order; `count` of them */
};

/* What is one after another: the next begins when the one before has ended, and not later than
 * that one took, or this. */
#define IO_CHAIN_PAUSE_NS 10000000u
enum { IO_CHAIN_MIN = 3 }; /* fewer are no chain */

/* Connections by peer, for those that are opened again and again. */
struct io_dialled {
    struct str peer, service;
    enum request_protocol protocol;
    enum request_role role;
    uint64_t connections; /* that were opened meanwhile */
    uint64_t requests;    /* on these */
    bool tls;
};

struct io_request_groups {
    struct io_request_group *groups; /* the longest first */
    size_t count;
    struct io_result *results;
    size_t result_count;
    struct io_chain *chains; /* the most time that asking at once would spare first */
    size_t chain_count;
    struct io_dialled *dialled; /* the most connections first */
    size_t dialled_count;
    uint32_t *of_row; /* by request id: index into groups, plus one; 0: in none */
    uint64_t requests, unanswered, events;
};

/* 0 or -ENOMEM. */
MUST_USE int io_request_groups_build(struct arena *arena, const struct io *io,
                                     struct io_request_groups *ret);
/* What asking all at once would spare: all but the longest. */
static inline uint64_t io_chain_spare_ns(const struct io_chain *chain)
{
    return chain->sum_ns - chain->max_ns;
}
