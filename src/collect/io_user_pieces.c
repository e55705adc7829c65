/* What is said on sockets: threads tell it each in its own ring, requests want it in order. */
#include "collect/io_user_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is sent may be answered before its call is over; what is received was there at the end. */
static uint64_t order_of(const struct preload_piece *piece)
{
    return piece->record.flags & PRELOAD_PIECE_SENT ? piece->start_ns : piece->end_ns;
}

int io_user_piece_take(struct collector *c, struct preload_place *place,
                       const struct preload_taken *taken)
{
    struct io_user_piece piece = {
        .piece = taken->piece,
        .order_ns = order_of(&taken->piece),
        .at = (uint32_t)c->said.len,
        .came = (uint32_t)c->pieces.len,
    };
    int r = preload_place_ids(&c->places, place, taken->piece.start_ns);
    if (r == 0)
        r = preload_stack_id(&c->places, place, taken->piece.stack, taken->piece.end_ns,
                             &piece.stack);
    if (r < 0)
        return r;
    piece.process = place->process;
    piece.thread = place->thread;
    c->pieces_seen++;
    if (c->said.len + taken->piece.len > IO_USER_PIECES_BYTES_MAX) {
        r = io_user_pieces_say(c);
        piece.at = piece.came = 0;
    }
    if (r < 0 || VEC_RESERVE(&c->said, c->said.len + taken->piece.len) < 0 ||
        VEC_PUSH(&c->pieces, piece) < 0)
        return r < 0 ? r : -ENOMEM;
    if (taken->piece.len > 0)
        memcpy(c->said.data + c->said.len, taken->slice, taken->piece.len);
    c->said.len += taken->piece.len;
    return 0;
}

static int by_order(const void *left, const void *right)
{
    const struct io_user_piece *a = left, *b = right;
    if (a->order_ns != b->order_ns)
        return a->order_ns < b->order_ns ? -1 : 1;
    return a->came < b->came ? -1 : a->came > b->came;
}

static int piece_say(struct collector *c, const struct io_user_piece *piece)
{
    struct io_user_socket *from = io_user_socket(c, piece->piece.object);
    if (!from)
        return 0;
    if (piece->piece.record.flags & PRELOAD_PIECE_CLOSED)
        return io_requests_closed(c->requests, from->key, piece->piece.end_ns);
    struct io_socket socket = {
        .key = from->key,
        .process = piece->process,
        .object = from->object,
        .object_flags = from->flags,
        .peer = str_from(from->peer),
        .port = from->port,
        .datagrams = from->datagrams,
        .opened_ns = from->opened_ns,
    };
    struct io_said said = {
        .direction = piece->piece.record.flags & PRELOAD_PIECE_SENT ? PROTOCOL_OUT : PROTOCOL_IN,
        .start_ns = piece->piece.start_ns,
        .end_ns = piece->piece.end_ns,
        .head = c->said.data + piece->at,
        .len = piece->piece.len,
        .bytes = piece->piece.bytes,
        .thread = piece->thread,
        .stack = piece->stack,
    };
    int r = io_requests_piece(c->requests, &socket, &said);
    if (r == IO_ENOUGH)
        io_user_socket_enough(c, from);
    return r < 0 ? r : 0;
}

int io_user_pieces_say(struct collector *c)
{
    int r = 0;
    if (c->pieces.len > 1)
        qsort(c->pieces.data, c->pieces.len, sizeof(*c->pieces.data), by_order);
    for (size_t i = 0; i < c->pieces.len && r == 0; i++)
        r = piece_say(c, &c->pieces.data[i]);
    c->pieces.len = 0;
    c->said.len = 0;
    return r;
}
