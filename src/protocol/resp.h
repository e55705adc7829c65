/* Redis' serialisation (RESP 2 and 3), one direction of it: pieces to values.
 *
 * A value is told when it is complete, with everything in it; of its parts (scalars, counted
 * through all nesting) the text passes by as it comes and nothing is kept here. */
#pragma once

#include "protocol/protocol.h"

enum { RESP_LINE_BYTES = 256, RESP_LOST = 1000 };

enum resp_state { RESP_TYPE, RESP_LINE, RESP_BULK };

struct resp {
    bool commands; /* this side sends commands, maybe as plain lines; set before the first piece */
    enum resp_state state;
    char type;                  /* of what is being read */
    char line[RESP_LINE_BYTES]; /* its length, or the beginning of itself */
    size_t line_len;
    uint64_t bulk_left; /* with the line end behind it */
    uint64_t values_left;
    uint64_t lost_bytes; /* when it was lost, since the last whole value */
    /* The value as a whole, valid when its end is told. */
    char top;           /* its type; 'i' a command in a line */
    uint32_t index;     /* scalars in it so far */
    uint64_t announced; /* of an array, how many it will have */
    uint64_t bytes;
    uint64_t start_ns, end_ns, cookie;
};

struct resp_ops {
    /* Bytes of the scalar number resp->index. */
    void (*text)(void *context, const struct resp *resp, const uint8_t *bytes, size_t len);
    /* That scalar is over. */
    void (*scalar)(void *context, const struct resp *resp);
    /* And the whole value: enum protocol_verdict or -errno. */
    int (*whole)(void *context, const struct resp *resp);
};

/* enum protocol_verdict, -errno, or RESP_LOST when what is not there holds more than one text. */
MUST_USE int resp_feed(struct resp *resp, const struct resp_ops *ops, void *context,
                       const struct protocol_piece *piece);
/* After a loss: the next byte begins a value. What was seen of the one before is there until then.
 */
void resp_forget(struct resp *resp);
/* Whether the next byte begins a value. */
static inline bool resp_between(const struct resp *resp)
{
    return resp->state == RESP_TYPE && resp->values_left == 0;
}
