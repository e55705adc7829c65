/* Pieces to RESP values. */
#include "protocol/resp.h"

#include <string.h>

enum { COUNT_MAX = 1 << 24 };
static const uint64_t bulk_bytes_max = 1ULL << 32, values_max = 1ULL << 32;

/* One of the values that were to come is there. */
static int value_end(struct resp *resp, const struct resp_ops *ops, void *context,
                     const struct protocol_piece *piece)
{
    resp->state = RESP_TYPE;
    if (--resp->values_left > 0)
        return 0;
    resp->end_ns = piece->time_ns;
    int r = ops->whole(context, resp);
    resp->bytes = 0;
    resp->index = 0;
    return r;
}

static int scalar_end(struct resp *resp, const struct resp_ops *ops, void *context,
                      const struct protocol_piece *piece)
{
    ops->scalar(context, resp);
    resp->index++;
    return value_end(resp, ops, context, piece);
}

/* More values are to come instead of this one. */
static int aggregate_begin(struct resp *resp, uint64_t count, const struct resp_ops *ops,
                           void *context, const struct protocol_piece *piece)
{
    if (count > COUNT_MAX || resp->values_left + count > values_max)
        return PROTOCOL_BROKEN;
    resp->values_left += count;
    /* An attribute stands before the value it belongs to and counts for none. */
    if (resp->type == '|') {
        resp->state = RESP_TYPE;
        return 0;
    }
    return value_end(resp, ops, context, piece);
}

/* Words of a command that came as a plain line. */
static int line_command(struct resp *resp, struct str line, const struct resp_ops *ops,
                        void *context, const struct protocol_piece *piece)
{
    for (struct str word; (word = str_word(&line)).len > 0;) {
        ops->text(context, resp, (const uint8_t *)word.data, word.len);
        ops->scalar(context, resp);
        resp->index++;
    }
    if (resp->index == 0) { /* an empty line is nothing */
        resp->state = RESP_TYPE;
        resp->values_left = 0;
        resp->bytes = 0;
        return 0;
    }
    return value_end(resp, ops, context, piece);
}

static int line_end(struct resp *resp, const struct resp_ops *ops, void *context,
                    const struct protocol_piece *piece)
{
    struct str line = {resp->line, MIN(resp->line_len, sizeof(resp->line))};
    int64_t number = 0;
    if (line.len > 0 && line.data[line.len - 1] == '\r')
        line.len--;
    if (resp->type == 'i')
        return line_command(resp, line, ops, context, piece);
    bool bulk = resp->type == '$' || resp->type == '=' || resp->type == '!';
    if (!bulk && !strchr("*%~>|", resp->type)) {
        ops->text(context, resp, (const uint8_t *)line.data, line.len);
        return scalar_end(resp, ops, context, piece);
    }
    if (str_to_i64(line, &number) < 0 || number < -1)
        return PROTOCOL_BROKEN;
    if (number == -1)
        return scalar_end(resp, ops, context, piece); /* nothing, of either kind */
    if (bulk) {
        if ((uint64_t)number > bulk_bytes_max)
            return PROTOCOL_BROKEN;
        resp->bulk_left = (uint64_t)number + 2;
        resp->state = RESP_BULK;
        return 0;
    }
    if (resp->values_left == 1 && resp->announced == 0)
        resp->announced = (uint64_t)number;
    uint64_t each = resp->type == '%' || resp->type == '|' ? 2 : 1;
    return aggregate_begin(resp, (uint64_t)number * each, ops, context, piece);
}

static int type_begin(struct resp *resp, const struct protocol_piece *piece, size_t *at)
{
    uint8_t c = piece->head[*at];
    bool first = resp->values_left == 0;
    resp->state = RESP_LINE;
    resp->line_len = 0;
    resp->type = (char)c;
    if (first && resp->commands && c != '*') {
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && c != '\r' && c != '\n' && c != ' ')
            return PROTOCOL_BROKEN;
        resp->type = 'i'; /* and the byte belongs to the line */
    } else if (resp->commands ? c != (first ? '*' : '$')
                              : c == 0 || !strchr("+-:$*_,#!=(%~>|", c)) {
        return PROTOCOL_BROKEN;
    } else {
        ++*at;
        resp->bytes++;
    }
    if (first) {
        resp->values_left = 1;
        resp->announced = 0;
        resp->top = resp->type;
        /* Bytes of an attribute before it are part of the value. */
        resp->start_ns = piece->time_ns;
        resp->cookie = piece->cookie;
    }
    return 0;
}

/* Up to the line's end. Lengths are short; of other lines only the beginning is kept. */
static int line_take(struct resp *resp, const struct resp_ops *ops, void *context,
                     const struct protocol_piece *piece, size_t *at)
{
    while (*at < piece->len) {
        uint8_t c = piece->head[(*at)++];
        resp->bytes++;
        if (c == '\n')
            return line_end(resp, ops, context, piece);
        bool text = resp->type == '+' || resp->type == '-' || resp->type == 'i';
        if ((!text && resp->line_len > 64) ||
            (resp->type == 'i' && c < ' ' && c != '\r' && c != '\t'))
            return PROTOCOL_BROKEN;
        if (resp->line_len < sizeof(resp->line))
            resp->line[resp->line_len] = (char)c;
        resp->line_len++;
        if (resp->line_len > 64 << 10)
            return PROTOCOL_BROKEN;
    }
    return 0;
}

static int bulk_take(struct resp *resp, const struct resp_ops *ops, void *context,
                     const struct protocol_piece *piece, size_t *at)
{
    size_t there = piece->len - *at;
    uint64_t text = resp->bulk_left > 2 ? resp->bulk_left - 2 : 0;
    size_t take = (size_t)MIN(text, (uint64_t)there);
    if (take > 0)
        ops->text(context, resp, piece->head + *at, take);
    *at += take;
    resp->bytes += take;
    resp->bulk_left -= take;
    while (resp->bulk_left > 0 && resp->bulk_left <= 2 && *at < piece->len) {
        if (piece->head[(*at)++] != (resp->bulk_left == 2 ? '\r' : '\n'))
            return PROTOCOL_BROKEN;
        resp->bulk_left--;
        resp->bytes++;
    }
    return resp->bulk_left > 0 ? 0 : scalar_end(resp, ops, context, piece);
}

void resp_forget(struct resp *resp)
{
    resp->state = RESP_TYPE;
    resp->values_left = 0;
    resp->bytes = 0;
    resp->index = 0;
}

int resp_feed(struct resp *resp, const struct resp_ops *ops, void *context,
              const struct protocol_piece *piece)
{
    int r = 0;
    for (size_t at = 0; at < piece->len && r == 0;) {
        if (resp->state == RESP_TYPE)
            r = type_begin(resp, piece, &at);
        else if (resp->state == RESP_LINE)
            r = line_take(resp, ops, context, piece, &at);
        else
            r = bulk_take(resp, ops, context, piece, &at);
    }
    uint64_t missing = piece->bytes > piece->len ? piece->bytes - piece->len : 0;
    if (r != 0 || missing == 0)
        return r;
    if (resp->state == RESP_BULK) {
        uint64_t text = MIN(missing, resp->bulk_left);
        resp->bulk_left -= text;
        resp->bytes += text;
        missing -= text;
        r = resp->bulk_left > 0 ? 0 : scalar_end(resp, ops, context, piece);
        if (r != 0 || missing == 0)
            return r;
    }
    resp->lost_bytes = resp->bytes + missing;
    return RESP_LOST;
}
