/* Requests that wait for their answers, and their texts. */
#include "protocol/pending.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PAYLOAD_BYTES = 512, QUEUE_BEGIN = 8 };

/* Words near which something may stand that is nobody's business, also for those who asked to
 * keep what was said. */
static bool tells_secrets(struct str sql)
{
    static const char *const words[] = {"passw", "identified", "secret", "credential",
                                        "token", "pwd",        "auth"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        size_t len = strlen(words[i]);
        for (size_t at = 0; at + len <= sql.len; at++)
            if (strncasecmp(sql.data + at, words[i], len) == 0)
                return true;
    }
    return false;
}

static struct text *text_make(struct texts *texts, struct str plain, struct str payload)
{
    bool cut = false;
    if (!texts->payloads)
        payload.len = 0;
    payload.len = MIN(payload.len, (size_t)PAYLOAD_BYTES);
    if (texts->bytes + plain.len + payload.len > TEXTS_BYTES_FULL) {
        cut = plain.len > TEXT_BYTES_SHORT;
        plain.len = MIN(plain.len, (size_t)TEXT_BYTES_SHORT);
        payload.len = 0;
        /* Not in the middle of a character. */
        while (cut && plain.len > 0 && ((uint8_t)plain.data[plain.len] & 0xc0) == 0x80)
            plain.len--;
    }
    size_t bytes = sizeof(struct text) + plain.len + payload.len;
    struct text *text = texts->bytes + bytes > TEXTS_BYTES_MAX ? NULL : calloc(1, bytes);
    if (!text)
        return NULL;
    text->refs = 1;
    text->flags = cut ? REQUEST_CUT : 0;
    text->len = (uint16_t)plain.len;
    text->payload_len = (uint16_t)payload.len;
    if (plain.len > 0)
        memcpy(text->data, plain.data, plain.len);
    if (payload.len > 0)
        memcpy(text->data + plain.len, payload.data, payload.len);
    texts->bytes += bytes;
    return text;
}

struct text *text_sql(struct texts *texts, enum sql_dialect dialect, struct str sql, bool cut)
{
    char buffer[PROTOCOL_TEXT_BYTES];
    uint64_t parameters;
    size_t len = sql_normalise(dialect, sql, buffer, sizeof(buffer), &parameters);
    struct str plain = {buffer, len};
    struct text *text = text_make(texts, plain, tells_secrets(sql) ? plain : sql);
    if (!text)
        return NULL;
    text->parameters = parameters;
    if (cut || len + 4 > sizeof(buffer))
        text->flags |= REQUEST_CUT;
    return text;
}

struct text *text_plain(struct texts *texts, struct str plain, struct str payload)
{
    return text_make(texts, plain, payload);
}

struct text *text_take(struct text *text)
{
    if (text)
        text->refs++;
    return text;
}

void text_drop(struct texts *texts, struct text *text)
{
    if (!text || --text->refs > 0)
        return;
    texts->bytes -= sizeof(*text) + text->len + text->payload_len;
    free(text);
}

static int queue_grow(struct pending_queue *queue)
{
    uint32_t room = queue->room ? queue->room * 2 : QUEUE_BEGIN;
    if (room > PROTOCOL_PENDING_MAX)
        return -ENOBUFS;
    struct pending *rows = calloc(room, sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    for (uint32_t i = 0; i < queue->count; i++)
        rows[i] = queue->rows[(queue->first + i) % queue->room];
    free(queue->rows);
    queue->rows = rows;
    queue->first = 0;
    queue->room = room;
    return 0;
}

int pending_push(struct pending_queue *queue, struct texts *texts, const struct pending *row)
{
    if (queue->count == queue->room) {
        int r = queue_grow(queue);
        if (r < 0) {
            text_drop(texts, row->text);
            return r;
        }
    }
    queue->rows[(queue->first + queue->count++) % queue->room] = *row;
    return 0;
}

struct pending *pending_at(struct pending_queue *queue, uint32_t index)
{
    return index < queue->count ? &queue->rows[(queue->first + index) % queue->room] : NULL;
}

struct pending *pending_last(struct pending_queue *queue)
{
    return queue->count > 0 ? pending_at(queue, queue->count - 1) : NULL;
}

void pending_pop(struct pending_queue *queue, struct texts *texts)
{
    struct pending *row = pending_at(queue, 0);
    if (!row)
        return;
    text_drop(texts, row->text);
    row->text = NULL;
    queue->first = (queue->first + 1) % queue->room;
    queue->count--;
}

int pending_tell(struct pending_queue *queue, struct texts *texts, const char *prefix,
                 uint64_t end_ns, const struct protocol_teller *teller)
{
    char buffer[PROTOCOL_TEXT_BYTES];
    struct pending *row = pending_at(queue, 0);
    if (!row)
        return 0;
    struct text *text = row->text;
    struct protocol_request request = {
        .start_ns = row->start_ns,
        .first_byte_ns = end_ns ? row->first_byte_ns ? row->first_byte_ns : end_ns : 0,
        .end_ns = end_ns,
        .bytes_out = row->bytes_out,
        .bytes_in = row->bytes_in,
        .text = text ? (struct str){text->data, text->len} : STR("…"),
        .parameters = row->parameters,
        .result = str_from(row->result),
        .flags = row->flags | (text ? text->flags : REQUEST_CUT) |
                 (end_ns ? 0 : REQUEST_UNANSWERED),
        .cookie = row->cookie,
        .payload = text ? (struct str){text->data + text->len, text->payload_len} : STR(""),
    };
    size_t before = prefix ? strlen(prefix) : 0;
    if (before > 0) {
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): what follows goes behind it */
        memcpy(buffer, prefix, before);
        size_t len = MIN(request.text.len, sizeof(buffer) - before);
        memcpy(buffer + before, request.text.data, len);
        request.text = (struct str){buffer, before + len};
    }
    if (row->alike == 0) {
        int r = teller->request(teller->context, &request);
        pending_pop(queue, texts);
        return r;
    }
    /* Of those alike only the sum of bytes is known, and of their values nothing. */
    request.bytes_out /= row->alike + 1;
    struct pending rest = *row;
    rest.alike--;
    rest.bytes_out -= request.bytes_out;
    rest.first_byte_ns = rest.bytes_in = rest.parameters = rest.flags = 0;
    rest.result[0] = '\0';
    int r = teller->request(teller->context, &request);
    *row = rest;
    return r;
}

void pending_deinit(struct pending_queue *queue, struct texts *texts)
{
    while (queue->count > 0)
        pending_pop(queue, texts);
    free(queue->rows);
    *queue = (struct pending_queue){0};
}

void pending_result(struct pending *row, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(row->result, sizeof(row->result), fmt, args);
    va_end(args);
}
