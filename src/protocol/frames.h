/* One direction of a connection whose messages say how long they are.
 *
 * Pieces are cut into messages wherever they were split; of a message only as many bytes are kept
 * as its protocol asks for, the rest is passed over by its length. Bytes that are not there (only
 * the head of a piece is) are passed over the same way as long as they belong to one message;
 * when the beginning of a message lies among them, the direction is lost. */
#pragma once

#include "protocol/protocol.h"

enum { FRAMES_KEEP_BYTES = 8 << 10, FRAMES_HEADER_BYTES = 5 };

/* Beside enum protocol_verdict: where the next message begins is not known any more. */
enum { FRAMES_LOST = 1000 };

struct frame {
    const uint8_t *header;
    const uint8_t *body;
    size_t kept;       /* of the body; the rest was not asked for, or is not there */
    uint64_t bytes;    /* of the body */
    uint64_t total;    /* with its header */
    uint64_t start_ns; /* of the piece with its first byte */
    uint64_t end_ns;   /* and of that with its last */
    uint64_t cookie;   /* of the piece with its first byte */
};

struct frames_ops {
    size_t (*header_bytes)(void *context);
    /* How long the body is, and how much of it is wanted. False: no message begins like that. */
    bool (*header)(void *context, const uint8_t *header, uint64_t *ret_bytes, size_t *ret_keep);
    /* A message has ended. enum protocol_verdict or -errno. */
    int (*frame)(void *context, const struct frame *frame);
};

struct frames {
    uint8_t header[FRAMES_HEADER_BYTES];
    size_t header_len;
    bool in_body;
    bool gap; /* bytes of the body were not there: what comes after them is not kept */
    uint64_t body_bytes, body_left;
    size_t keep, kept;
    uint8_t *buffer; /* of a body that is in more than one piece */
    size_t room;
    uint64_t start_ns, cookie;
    uint64_t lost_bytes; /* of the piece that was lost, behind its last whole message */
};

/* enum protocol_verdict, FRAMES_LOST or -errno; the caller decides what a loss means. */
MUST_USE int frames_feed(struct frames *frames, const struct frames_ops *ops, void *context,
                         const struct protocol_piece *piece);
void frames_deinit(struct frames *frames);
