/* A conversation that may be anything, for one protocol.
 *
 * The first byte says how it is looked at: 1 as who answers, 2 from the middle, 4 with payloads.
 * Then pieces: a byte (1: the other direction, 2: more bytes are hidden behind it, 4: a moment
 * later), two bytes of length, what it says; of hidden bytes three bytes of length before. What
 * is told must be sound: times in order, texts within their bounds. */
#pragma once

#include "protocol/protocol.h"

#include <stdlib.h>
#include <string.h>

struct fuzz_teller {
    uint64_t now_ns;
    uint64_t bytes; /* of all texts, so that each is read */
};

static int fuzz_request(void *context, const struct protocol_request *request)
{
    struct fuzz_teller *told = context;
    for (size_t i = 0; i < request->text.len; i++)
        told->bytes += (uint8_t)request->text.data[i];
    for (size_t i = 0; i < request->payload.len; i++)
        told->bytes += (uint8_t)request->payload.data[i];
    for (size_t i = 0; i < request->result.len; i++)
        told->bytes += (uint8_t)request->result.data[i];
    bool unanswered = request->flags & REQUEST_UNANSWERED;
    if (request->text.len > PROTOCOL_TEXT_BYTES || request->start_ns == 0 ||
        request->start_ns > told->now_ns || request->end_ns > told->now_ns ||
        (!unanswered && request->end_ns < request->start_ns) || unanswered != !request->end_ns)
        abort();
    return 0;
}

static int fuzz_service(void *context, struct str name)
{
    struct fuzz_teller *told = context;
    told->bytes += name.len > 0 ? (uint8_t)name.data[name.len - 1] : 0;
    return 0;
}

/* A piece off the input into `piece`, its head in memory of exactly its size. False at the end. */
static bool fuzz_piece_take(const uint8_t **at, size_t *left, uint64_t *now_ns,
                            struct protocol_piece *piece)
{
    if (*left < 3)
        return false;
    uint8_t how = (*at)[0];
    size_t len = (size_t)(*at)[1] << 8 | (*at)[2], hidden = 0, used = 3;
    if (how & 2 && *left >= 6) {
        hidden = (size_t)(*at)[3] << 16 | (size_t)(*at)[4] << 8 | (*at)[5];
        used = 6;
    }
    len = MIN(len, *left - used);
    *now_ns += how & 4 ? UINT64_C(40000000000) : 1;
    uint8_t *head = malloc(len ? len : 1);
    if (!head)
        abort();
    memcpy(head, *at + used, len);
    *piece = (struct protocol_piece){
        .direction = how & 1 ? PROTOCOL_IN : PROTOCOL_OUT,
        .time_ns = *now_ns,
        .head = head,
        .len = len,
        .bytes = len + hidden,
        .cookie = *now_ns,
    };
    *at += used + len;
    *left -= used + len;
    return true;
}

static inline void fuzz_protocol(const struct protocol_ops *ops, uint16_t port, const uint8_t *data,
                                 size_t size)
{
    struct fuzz_teller told = {.now_ns = 1};
    const struct protocol_teller teller = {&told, fuzz_request, fuzz_service};
    struct protocol *protocol;
    struct protocol_piece piece;
    enum request_role role;
    if (size == 0)
        return;
    const struct protocol_opts opts = {
        .role = data[0] & 1 ? REQUEST_SERVER : REQUEST_CLIENT,
        .from_start = !(data[0] & 2),
        .payloads = data[0] & 4,
    };
    if (protocol_open(ops, &opts, &protocol) < 0)
        return;
    data++;
    size--;
    while (fuzz_piece_take(&data, &size, &told.now_ns, &piece)) {
        ops->guess(&piece, port);
        protocol_guess(&piece, port, &role);
        int r = protocol_piece(protocol, &piece, &teller);
        free((void *)piece.head);
        if (r < 0)
            break;
    }
    protocol_close(protocol, told.now_ns, &teller);
}
