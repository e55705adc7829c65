/* Pieces to messages, for protocols whose messages say their length. */
#include "protocol/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int frame_end(struct frames *frames, const struct frames_ops *ops, void *context,
                     const struct protocol_piece *piece, const uint8_t *body)
{
    struct frame frame = {
        .header = frames->header,
        .body = body,
        .kept = frames->kept,
        .bytes = frames->body_bytes,
        .total = frames->body_bytes + frames->header_len,
        .start_ns = frames->start_ns,
        .end_ns = piece->time_ns,
        .cookie = frames->cookie,
    };
    int r = ops->frame(context, &frame);
    frames->in_body = frames->gap = false;
    frames->header_len = 0;
    frames->kept = 0;
    return r;
}

/* Puts aside what is wanted of a body that ends in another piece. */
static int body_keep(struct frames *frames, const uint8_t *bytes, size_t len)
{
    len = MIN(len, frames->keep - frames->kept);
    if (len == 0 || frames->gap)
        return 0;
    if (frames->room < frames->keep) {
        uint8_t *buffer = realloc(frames->buffer, frames->keep);
        if (!buffer)
            return -ENOMEM;
        frames->buffer = buffer;
        frames->room = frames->keep;
    }
    memcpy(frames->buffer + frames->kept, bytes, len);
    frames->kept += len;
    return 0;
}

/* True when the header is complete. */
static bool header_take(struct frames *frames, size_t need, const struct protocol_piece *piece,
                        size_t *at)
{
    if (frames->header_len == 0) {
        frames->start_ns = piece->time_ns;
        frames->cookie = piece->cookie;
    }
    while (frames->header_len < need && *at < piece->len)
        frames->header[frames->header_len++] = piece->head[(*at)++];
    return frames->header_len == need;
}

/* What is not there at the end of a piece. */
static int gap_skip(struct frames *frames, const struct frames_ops *ops, void *context,
                    const struct protocol_piece *piece)
{
    uint64_t missing = piece->bytes - piece->len;
    if (frames->in_body) {
        uint64_t body = MIN(missing, frames->body_left);
        frames->gap = true;
        frames->body_left -= body;
        missing -= body;
        if (frames->body_left > 0)
            return 0;
        int r = frame_end(frames, ops, context, piece, frames->buffer);
        if (r != 0 || missing == 0)
            return r;
    }
    frames->lost_bytes = frames->header_len + missing;
    frames->header_len = 0;
    return FRAMES_LOST;
}

int frames_feed(struct frames *frames, const struct frames_ops *ops, void *context,
                const struct protocol_piece *piece)
{
    size_t at = 0;
    while (at < piece->len) {
        if (!frames->in_body) {
            if (!header_take(frames, ops->header_bytes(context), piece, &at))
                break;
            if (!ops->header(context, frames->header, &frames->body_bytes, &frames->keep))
                return PROTOCOL_BROKEN;
            uint64_t keep = MIN(frames->keep, (size_t)FRAMES_KEEP_BYTES);
            frames->keep = (size_t)MIN(keep, frames->body_bytes);
            frames->body_left = frames->body_bytes;
            frames->in_body = true;
        }
        size_t take = (size_t)MIN(frames->body_left, (uint64_t)(piece->len - at));
        const uint8_t *body;
        if (take == frames->body_bytes) {
            body = piece->head + at;
            frames->kept = MIN(take, frames->keep);
        } else {
            int r = body_keep(frames, piece->head + at, take);
            if (r < 0)
                return r;
            body = frames->buffer;
        }
        at += take;
        frames->body_left -= take;
        if (frames->body_left > 0)
            break;
        int r = frame_end(frames, ops, context, piece, body);
        if (r != 0)
            return r;
    }
    return piece->bytes > piece->len ? gap_skip(frames, ops, context, piece) : 0;
}

void frames_deinit(struct frames *frames)
{
    free(frames->buffer);
    frames->buffer = NULL;
}
