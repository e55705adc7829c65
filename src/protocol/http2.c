/* HTTP/2: frames of both sides become streams, and those requests.
 *
 * Frames say how long they are; those with headers are collected, all others passed over. Headers
 * refer to headers that were said before: who was not there from the start cannot read them
 * (PROTOCOL_MIDDLE), and a cut frame with headers ends it (PROTOCOL_BROKEN). So does a cut piece
 * that goes on beyond the frame it was cut in: what else it has is not known. SETTINGS need not be
 * read: an encoder says itself how large its table is. */
#include "protocol/http2_streams.h"

#include <errno.h>
#include <stdlib.h>

enum {
    FRAME_HEADER = 9,
    BLOCK_BYTES_MAX = 8 << 10, /* headers of one message, still packed */
    BLOCK_BYTES_MIN = 512,
    GOAWAY_KEPT = 8,
};

enum frame_type {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_PRIORITY = 2,
    FRAME_RST_STREAM = 3,
    FRAME_SETTINGS = 4,
    FRAME_PUSH_PROMISE = 5,
    FRAME_PING = 6,
    FRAME_GOAWAY = 7,
    FRAME_WINDOW_UPDATE = 8,
    FRAME_CONTINUATION = 9,
    FRAME_TYPES,
};

enum frame_flag {
    FLAG_END_STREAM = 0x01,
    FLAG_ACK = 0x01,
    FLAG_END_HEADERS = 0x04,
    FLAG_PADDED = 0x08,
    FLAG_PRIORITY = 0x20,
};

struct frame {
    uint32_t len, stream;
    uint8_t type, flags;
};

struct http2_side {
    uint8_t begun[24]; /* the preface or a frame's header that came in pieces */
    unsigned begun_len;
    bool greeted;  /* the preface was there; always true of who answers */
    bool settings; /* so was the first frame */
    bool in_frame;
    struct frame frame;
    uint32_t left;  /* of the frame's payload */
    uint32_t keeps; /* of what is left, that is collected */
    uint64_t frame_ns, frame_cookie;
    /* Headers being said: their first frame, and where they began. */
    uint32_t continued; /* stream whose headers go on; 0: none do */
    struct frame first;
    uint64_t first_ns, first_cookie;
    uint64_t block_bytes; /* of their frames */
    uint8_t *block;
    size_t block_len, block_room, frame_at;
    struct hpack hpack;
};

struct http2 {
    struct http2_side sides[2]; /* who asks, who answers */
    struct http2_streams streams;
    bool started;
};

struct talk {
    struct http2 *http;
    struct http2_side *side;
    bool asks;
    const struct protocol_opts *opts;
    const struct protocol_piece *piece;
    const struct protocol_teller *teller;
};

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum { PREFACE = sizeof(preface) - 1 };

static uint32_t be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static struct frame frame_read(const uint8_t *at)
{
    return (struct frame){
        .len = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2],
        .stream = be32(at + 5) & INT32_MAX,
        .type = at[3],
        .flags = at[4],
    };
}

/* What must be true of a frame by itself. */
static bool frame_valid(const struct frame *frame)
{
    switch (frame->type) {
    case FRAME_DATA:
    case FRAME_HEADERS:
    case FRAME_CONTINUATION:
    case FRAME_PUSH_PROMISE:
        return frame->stream != 0;
    case FRAME_PRIORITY:
        return frame->stream != 0 && frame->len == 5;
    case FRAME_RST_STREAM:
        return frame->stream != 0 && frame->len == 4;
    case FRAME_SETTINGS:
        return frame->stream == 0 && frame->len % 6 == 0 &&
               (!(frame->flags & FLAG_ACK) || frame->len == 0);
    case FRAME_PING:
        return frame->stream == 0 && frame->len == 8;
    case FRAME_GOAWAY:
        return frame->stream == 0 && frame->len >= GOAWAY_KEPT;
    case FRAME_WINDOW_UPDATE:
        return frame->len == 4;
    default:
        return true;
    }
}

/* ---- guesses ---- */

/* Whether the piece is frames and nothing else, as far as it is there. */
static bool all_frames(const struct protocol_piece *piece)
{
    enum { LENGTH_USUAL = 1 << 14, FLAGS_KNOWN = 0x2d };
    uint64_t at = 0;
    while (at + FRAME_HEADER <= piece->len) {
        struct frame frame = frame_read(piece->head + at);
        if (frame.type >= FRAME_TYPES || frame.len > LENGTH_USUAL || frame.flags & ~FLAGS_KNOWN ||
            piece->head[at + 5] & 0x80 || !frame_valid(&frame))
            return false;
        at += FRAME_HEADER + frame.len;
    }
    return at == piece->bytes;
}

/* By the preface, by settings of a server that speaks first, or in the middle by headers that
 * begin with a method or a status of the static table. */
static int http2_guess(const struct protocol_piece *first, uint16_t port)
{
    enum { METHOD_GET = 0x82, METHOD_POST = 0x83, STATUS_200 = 0x88, STATUS_500 = 0x8e };
    (void)port;
    bool out = first->direction == PROTOCOL_OUT;
    int asks = out ? REQUEST_CLIENT : REQUEST_SERVER;
    int answers = out ? REQUEST_SERVER : REQUEST_CLIENT;
    size_t len = MIN(first->len, (size_t)PREFACE);
    if (len >= 14 && memcmp(first->head, preface, len) == 0)
        return asks;
    if (first->len < FRAME_HEADER || !all_frames(first))
        return 0;
    struct frame frame = frame_read(first->head);
    if (frame.type == FRAME_SETTINGS && frame.len > 0 && !(frame.flags & FLAG_ACK))
        return answers;
    if (frame.type != FRAME_HEADERS || frame.stream % 2 == 0 || first->len == FRAME_HEADER ||
        frame.flags & (FLAG_PADDED | FLAG_PRIORITY))
        return 0;
    uint8_t field = first->head[FRAME_HEADER];
    if (field == METHOD_GET || field == METHOD_POST)
        return asks;
    return field >= STATUS_200 && field <= STATUS_500 ? answers : 0;
}

/* ---- headers ---- */

/* Padding and priority are no part of the block. */
static bool fragment_strip(struct http2_side *side)
{
    uint8_t *fragment = side->block + side->frame_at;
    size_t len = side->block_len - side->frame_at, before = 0, after = 0;
    const struct frame *frame = &side->frame;
    bool first = frame->type != FRAME_CONTINUATION;
    if (first && frame->flags & FLAG_PADDED) {
        if (len == 0)
            return false;
        after = fragment[0];
        before = 1;
    }
    if (frame->type == FRAME_HEADERS && frame->flags & FLAG_PRIORITY)
        before += 5;
    if (frame->type == FRAME_PUSH_PROMISE)
        before += 4;
    if (before + after > len)
        return false;
    if (before > 0)
        memmove(fragment, fragment + before, len - before - after);
    side->block_len -= before + after;
    return true;
}

/* What tables and blocks leave to streams of the memory that a connection may take. */
static size_t streams_room(const struct http2 *http)
{
    size_t used = sizeof(*http);
    for (unsigned i = 0; i < ARRAY_SIZE(http->sides); i++)
        used += http->sides[i].hpack.size + http->sides[i].block_room;
    return PROTOCOL_MEMORY_BYTES - MIN(used, (size_t)PROTOCOL_MEMORY_BYTES);
}

static int block_end(struct talk *talk)
{
    struct http2_side *side = talk->side;
    struct http2_message message = {
        .stream = side->first.stream,
        .time_ns = side->first_ns,
        .end_ns = talk->piece->time_ns,
        .cookie = side->first_cookie,
        .bytes = side->block_bytes,
        .ends = side->first.flags & FLAG_END_STREAM,
    };
    side->continued = 0;
    int r = http2_fields_read(&message, &side->hpack, side->block, side->block_len,
                              talk->opts->payloads && talk->asks);
    side->block_len = 0;
    if (r == -EBADMSG || r == -E2BIG)
        r = PROTOCOL_BROKEN;
    if (r == 0 && side->first.type == FRAME_HEADERS)
        r = talk->asks
                ? http2_ask(&talk->http->streams, &message, streams_room(talk->http), talk->teller)
                : http2_answer(&talk->http->streams, &message, talk->teller);
    http2_message_deinit(&message);
    return r;
}

static int fragment_end(struct talk *talk)
{
    struct http2_side *side = talk->side;
    side->block_bytes += FRAME_HEADER + side->frame.len;
    if (!fragment_strip(side))
        return PROTOCOL_BROKEN;
    if (side->frame.flags & FLAG_END_HEADERS)
        return block_end(talk);
    side->continued = side->frame.stream;
    return 0;
}

/* ---- frames ---- */

static int frame_end(struct talk *talk)
{
    struct http2_side *side = talk->side;
    struct http2_streams *streams = &talk->http->streams;
    const struct frame *frame = &side->frame;
    uint64_t now_ns = talk->piece->time_ns;
    side->in_frame = false;
    switch (frame->type) {
    case FRAME_DATA:
        if (talk->asks || !(frame->flags & FLAG_END_STREAM))
            return 0;
        return http2_stream_end(streams, frame->stream, now_ns, talk->teller);
    case FRAME_HEADERS:
    case FRAME_CONTINUATION:
    case FRAME_PUSH_PROMISE:
        return fragment_end(talk);
    case FRAME_RST_STREAM:
        return http2_stream_reset(streams, frame->stream, be32(side->block), now_ns, talk->teller);
    case FRAME_GOAWAY:
        if (talk->asks)
            return 0;
        return http2_streams_refused(streams, be32(side->block) & INT32_MAX, talk->teller);
    default:
        return 0;
    }
}

/* Whether its payload is collected, and how much of it: headers may be empty. */
static bool frame_collects(const struct frame *frame, uint32_t *ret_bytes)
{
    switch (frame->type) {
    case FRAME_HEADERS:
    case FRAME_CONTINUATION:
    case FRAME_PUSH_PROMISE:
    case FRAME_RST_STREAM:
        *ret_bytes = frame->len;
        return true;
    case FRAME_GOAWAY:
        *ret_bytes = GOAWAY_KEPT;
        return true;
    default:
        *ret_bytes = 0;
        return false;
    }
}

static int block_reserve(struct http2_side *side, size_t more)
{
    size_t need = side->block_len + more;
    if (need > BLOCK_BYTES_MAX)
        return PROTOCOL_BROKEN;
    if (side->block && need <= side->block_room)
        return 0;
    size_t room = MAX(need, (size_t)BLOCK_BYTES_MIN);
    uint8_t *block = realloc(side->block, room);
    if (!block)
        return -ENOMEM;
    side->block = block;
    side->block_room = room;
    return 0;
}

static int frame_begin(struct talk *talk, const uint8_t *header)
{
    struct http2_side *side = talk->side;
    struct frame frame = frame_read(header);
    bool continues = frame.type == FRAME_CONTINUATION;
    if (!frame_valid(&frame) || (!side->settings && frame.type != FRAME_SETTINGS) ||
        continues != (side->continued != 0) || (continues && frame.stream != side->continued))
        return PROTOCOL_BROKEN;
    side->settings = true;
    side->in_frame = true;
    side->frame = frame;
    side->left = frame.len;
    bool collects = frame_collects(&frame, &side->keeps);
    if (!continues) {
        side->block_len = 0;
        side->block_bytes = 0;
        side->first = frame;
        side->first_ns = side->frame_ns;
        side->first_cookie = side->frame_cookie;
    }
    side->frame_at = side->block_len;
    if (frame.type == FRAME_DATA)
        http2_stream_bytes(&talk->http->streams, frame.stream, talk->asks,
                           FRAME_HEADER + frame.len);
    int r = collects ? block_reserve(side, side->keeps) : 0;
    return r == 0 && side->left == 0 ? frame_end(talk) : r;
}

/* ---- pieces ---- */

/* The preface or a frame's header: its first bytes may have come before. */
static int step_begun(struct talk *talk, struct str *rest)
{
    struct http2_side *side = talk->side;
    size_t need = side->greeted ? FRAME_HEADER : PREFACE;
    if (side->begun_len == 0) {
        side->frame_ns = talk->piece->time_ns;
        side->frame_cookie = talk->piece->cookie;
    }
    size_t len = MIN(need - side->begun_len, rest->len);
    memcpy(side->begun + side->begun_len, rest->data, len);
    side->begun_len += (unsigned)len;
    rest->data += len;
    rest->len -= len;
    if (!side->greeted && memcmp(side->begun, preface, side->begun_len) != 0)
        return PROTOCOL_BROKEN;
    if (side->begun_len < need)
        return 0;
    side->begun_len = 0;
    if (side->greeted)
        return frame_begin(talk, side->begun);
    side->greeted = true;
    return 0;
}

static int step_payload(struct talk *talk, struct str *rest)
{
    struct http2_side *side = talk->side;
    size_t len = MIN((size_t)side->left, rest->len);
    size_t kept = MIN((size_t)side->keeps, len);
    if (kept > 0) {
        memcpy(side->block + side->block_len, rest->data, kept);
        side->block_len += kept;
        side->keeps -= (uint32_t)kept;
    }
    rest->data += len;
    rest->len -= len;
    side->left -= (uint32_t)len;
    return side->left == 0 ? frame_end(talk) : 0;
}

static int gap(struct talk *talk, uint64_t bytes)
{
    struct http2_side *side = talk->side;
    if (!side->in_frame || side->keeps > 0 || bytes > side->left)
        return PROTOCOL_BROKEN;
    side->left -= (uint32_t)bytes;
    return side->left == 0 ? frame_end(talk) : 0;
}

static int http2_piece(void *state, const struct protocol_opts *opts,
                       const struct protocol_piece *piece, const struct protocol_teller *teller)
{
    struct http2 *http = state;
    bool asks = (piece->direction == PROTOCOL_OUT) == (opts->role == REQUEST_CLIENT);
    struct http2_side *side = &http->sides[asks ? 0 : 1];
    struct talk talk = {http, side, asks, opts, piece, teller};
    if (!opts->from_start)
        return PROTOCOL_MIDDLE;
    if (!http->started) {
        hpack_init(&http->sides[0].hpack);
        hpack_init(&http->sides[1].hpack);
        http->sides[1].greeted = true;
        http->started = true;
    }
    struct str rest = {(const char *)piece->head, piece->len};
    int r = 0;
    while (r == 0 && rest.len > 0)
        r = side->in_frame ? step_payload(&talk, &rest) : step_begun(&talk, &rest);
    if (r == 0 && piece->bytes > piece->len)
        r = gap(&talk, piece->bytes - piece->len);
    return r;
}

static int http2_close(void *state, const struct protocol_opts *opts, uint64_t time_ns,
                       const struct protocol_teller *teller)
{
    struct http2 *http = state;
    (void)opts;
    (void)time_ns;
    int r = http2_streams_refused(&http->streams, 0, teller);
    http2_streams_deinit(&http->streams);
    for (unsigned i = 0; i < ARRAY_SIZE(http->sides); i++) {
        hpack_deinit(&http->sides[i].hpack);
        free(http->sides[i].block);
    }
    return r;
}

const struct protocol_ops protocol_http2 = {
    .protocol = REQUEST_HTTP2,
    .name = "http2",
    .guess = http2_guess,
    .state_bytes = sizeof(struct http2),
    .piece = http2_piece,
    .close = http2_close,
};
