/* What a piece of PostgreSQL's protocol begins with. */
#include "protocol/postgres_parts.h"

#include <endian.h>
#include <string.h>

uint32_t pg_be32(const uint8_t *from)
{
    uint32_t number;
    memcpy(&number, from, sizeof(number));
    return be32toh(number);
}

uint16_t pg_be16(const uint8_t *from)
{
    return (uint16_t)(from[0] << 8 | from[1]);
}

bool pg_begins(const struct protocol_piece *piece)
{
    for (uint64_t at = 0; at < piece->len;) {
        uint8_t type = piece->head[at];
        if (!type || !strchr(PG_CLIENT_TYPES, type))
            return false;
        if (at + 5 > piece->len)
            break;
        uint32_t bytes = pg_be32(piece->head + at + 1);
        if (bytes < 4 || bytes > PG_MESSAGE_BYTES_MAX)
            return false;
        at += 1 + (uint64_t)bytes;
    }
    return piece->len > 0;
}

/* A message with text in it: long enough, ended by a zero, and of printable characters. */
static bool looks_like_query(const struct protocol_piece *first)
{
    uint32_t bytes = pg_be32(first->head + 1);
    size_t seen = MIN(first->len, (size_t)bytes + 1);
    if (first->head[0] != 'Q' || bytes < 6 || bytes > PG_MESSAGE_BYTES_MAX ||
        (uint64_t)bytes + 1 > first->bytes)
        return false;
    for (size_t i = 5; i < seen; i++) {
        uint8_t c = first->head[i];
        if (i == bytes)
            return c == 0;
        if (c < ' ' && c != '\n' && c != '\t' && c != '\r')
            return false;
    }
    return true;
}

/* A chain of messages that execute something: at least two, or one on PostgreSQL's own port. */
static bool looks_like_round(const struct protocol_piece *first, uint16_t port)
{
    size_t count = 0;
    bool executes = false;
    for (uint64_t at = 0; at + 5 <= first->len;) {
        uint8_t type = first->head[at];
        uint32_t bytes = pg_be32(first->head + at + 1);
        if (!type || !strchr("PBDECSH", type) || bytes < 4 || bytes > PG_MESSAGE_BYTES_MAX)
            return false;
        if ((type == 'S' || type == 'H') && bytes != 4)
            return false;
        executes = executes || type == 'P' || type == 'B';
        count++;
        at += 1 + (uint64_t)bytes;
    }
    return executes && (count >= 2 || port == 5432);
}

int pg_guess(const struct protocol_piece *first, uint16_t port)
{
    int role = first->direction == PROTOCOL_OUT ? REQUEST_CLIENT : REQUEST_SERVER;
    if (first->len >= 8 && first->head[0] == 0) {
        uint32_t bytes = pg_be32(first->head), code = pg_be32(first->head + 4);
        bool encrypts = (code == PG_CODE_SSL || code == PG_CODE_GSS) && bytes == 8;
        bool cancels = code == PG_CODE_CANCEL && bytes == 16;
        bool starts = code >> 16 == 3 && (code & 0xffff) < 100 && bytes >= 9 &&
                      bytes <= PG_STARTUP_BYTES_MAX && bytes == first->bytes;
        return encrypts || cancels || starts ? role : 0;
    }
    if (first->len < 5)
        return 0;
    return looks_like_query(first) || looks_like_round(first, port) ? role : 0;
}
