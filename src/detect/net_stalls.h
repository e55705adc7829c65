/* Waits of about 40 ms for a peer to which small pieces are sent: Nagle's algorithm holds the
 * second piece back until the first is acknowledged, and the peer delays that in the hope of an
 * answer to send along. On Linux such a delay lasts 40 ms and up to some ticks more, the longer the
 * busier the machine. */
#pragma once

#include "detect/net_common.h"

#define STALL_LOW_NS  38e6
#define STALL_HIGH_NS 52e6

struct net_stall { /* by peer */
    struct str peer;
    uint64_t stalls;          /* waits of that length */
    double stall_ns;          /* in them, of the recording */
    uint64_t waits;           /* all for this peer */
    uint64_t sends, receives; /* calls on its sockets that moved something */
    uint64_t small;           /* of sends: less than a segment */
    uint64_t settings;        /* setsockopt() on its sockets: TCP_NODELAY cannot be told apart */
    uint32_t wait_stack;      /* of the longest row; of the recording of waits */
    uint32_t send_stack;      /* of most sends; of the recording of calls */
    bool held;                /* pieces, small, nothing set: that is what it is */
    double path_ns;           /* on the path, of the baseline */
};

enum { STALL_PEERS_MAX = 32 };
struct net_stalls {
    struct net_stall peers[STALL_PEERS_MAX];
    size_t count;
    float *rows;      /* by row of waits: which part of it is stalls of such peers */
    uint8_t *peer_of; /* by row of waits: index into peers, plus one */
};

/* 0 or -ENOMEM. */
MUST_USE int net_stalls_find(struct arena *arena, const struct evidence *evidence,
                             struct net_stalls *ret);
