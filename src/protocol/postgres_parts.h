/* Parts of PostgreSQL's protocol that need no connection: numbers, and what a piece begins with. */
#pragma once

#include "protocol/protocol.h"

enum {
    PG_CODE_CANCEL = 80877102,
    PG_CODE_SSL = 80877103,
    PG_CODE_GSS = 80877104,
    PG_STARTUP_BYTES_MAX = 10000, /* PostgreSQL's own limit */
    PG_MESSAGE_BYTES_MAX = 0x3fffffff,
};

/* Types of messages that a client sends. */
#define PG_CLIENT_TYPES "QFPBDECSHdcfpX"

uint32_t pg_be32(const uint8_t *from);
uint16_t pg_be16(const uint8_t *from);

/* Whether this piece begins with a message of a client, and goes on with such as far as it is seen.
 */
bool pg_begins(const struct protocol_piece *piece);
int pg_guess(const struct protocol_piece *first, uint16_t port);
