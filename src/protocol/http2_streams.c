/* From the headers of HTTP/2 messages to requests. */
#include "protocol/http2_streams.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct http2_stream {
    uint32_t id;
    uint64_t start_ns, first_byte_ns;
    uint64_t bytes_out, bytes_in;
    uint64_t parameters, cookie;
    uint32_t flags;
    unsigned status;
    int grpc;
    struct http_payload payload;
    size_t memory;
    size_t text_len;
    char text[];
};

/* ---- headers ---- */

static size_t copy(char *to, size_t room, struct str value)
{
    size_t len = MIN(value.len, room);
    memcpy(to, value.data, len);
    return len;
}

/* Pseudo-headers come first, so that the first line of a payload is known by then. */
static void payload_add(struct http2_message *message, struct str name, struct str value)
{
    if (!message->payload.data)
        http_payload_request(&message->payload, (struct str){message->method, message->method_len},
                             (struct str){message->target, message->target_len});
    http_payload_header(&message->payload, name, value);
}

static int field(void *context, struct str name, struct str value)
{
    struct http2_message *message = context;
    uint64_t number;
    if (str_is(name, ":method")) {
        message->method_len = copy(message->method, sizeof(message->method), value);
    } else if (str_is(name, ":path")) {
        message->target_len = copy(message->target, sizeof(message->target), value);
        message->cut = message->target_len < value.len;
    } else if (str_is(name, ":authority")) {
        message->host_len = copy(message->host, sizeof(message->host), value);
    } else if (str_is(name, ":status")) {
        if (str_to_u64(value, 10, &number) < 0 || number < 100 || number > 999)
            return -EBADMSG;
        message->status = (unsigned)number;
    } else if (str_is(name, "grpc-status")) {
        if (str_to_u64(value, 10, &number) == 0 && number <= INT16_MAX)
            message->grpc = (int)number;
    } else if (message->payloads && !str_starts(name, ":")) {
        payload_add(message, name, value);
    }
    return 0;
}

int http2_fields_read(struct http2_message *message, struct hpack *hpack, const uint8_t *block,
                      size_t len, bool payloads)
{
    message->grpc = -1;
    message->payloads = payloads;
    return hpack_decode(hpack, block, len, field, message);
}

void http2_message_deinit(struct http2_message *message)
{
    http_payload_deinit(&message->payload);
}

/* ---- streams ---- */

static void stream_free(struct http2_stream *stream)
{
    if (!stream)
        return;
    http_payload_deinit(&stream->payload);
    free(stream);
}

static bool stream_find(const struct http2_streams *streams, uint32_t id, uint32_t *ret)
{
    for (uint32_t i = 0; i < streams->waiting.count; i++) {
        const struct http2_stream *stream = streams->waiting.rows[i];
        if (stream->id != id)
            continue;
        *ret = i;
        return true;
    }
    return false;
}

static int stream_tell(struct http2_streams *streams, uint32_t at, uint64_t end_ns,
                       const char *result, bool failed, const struct protocol_teller *teller)
{
    struct http2_stream *stream = streams->waiting.rows[at];
    const struct protocol_request told = {
        .start_ns = stream->start_ns,
        .first_byte_ns = stream->first_byte_ns,
        .end_ns = end_ns,
        .bytes_out = stream->bytes_out,
        .bytes_in = stream->bytes_in,
        .text = {stream->text, stream->text_len},
        .parameters = stream->parameters,
        .result = str_from(result),
        .flags = stream->flags | (failed ? REQUEST_FAILED : 0) | (end_ns ? 0 : REQUEST_UNANSWERED),
        .cookie = stream->cookie,
        .payload = {stream->payload.data, stream->payload.len},
    };
    waiting_pull(&streams->waiting, at, stream->memory);
    int r = teller->request(teller->context, &told);
    stream_free(stream);
    return r;
}

static void result_put(const struct http2_stream *stream, char *to, size_t room)
{
    to[0] = '\0';
    if (stream->grpc >= 0)
        snprintf(to, room, "grpc %d", stream->grpc);
    else if (stream->status > 0)
        snprintf(to, room, "%u", stream->status);
}

int http2_stream_end(struct http2_streams *streams, uint32_t id, uint64_t end_ns,
                     const struct protocol_teller *teller)
{
    char result[16];
    uint32_t at;
    if (!stream_find(streams, id, &at))
        return 0;
    const struct http2_stream *stream = streams->waiting.rows[at];
    result_put(stream, result, sizeof(result));
    return stream_tell(streams, at, end_ns, result, stream->grpc > 0 || stream->status >= 400,
                       teller);
}

int http2_stream_reset(struct http2_streams *streams, uint32_t id, uint32_t code, uint64_t end_ns,
                       const struct protocol_teller *teller)
{
    static const char *const names[] = {"NO_ERROR",
                                        "PROTOCOL_ERROR",
                                        "INTERNAL_ERROR",
                                        "FLOW_CONTROL_ERROR",
                                        "SETTINGS_TIMEOUT",
                                        "STREAM_CLOSED",
                                        "FRAME_SIZE_ERROR",
                                        "REFUSED_STREAM",
                                        "CANCEL",
                                        "COMPRESSION_ERROR",
                                        "CONNECT_ERROR",
                                        "ENHANCE_YOUR_CALM",
                                        "INADEQUATE_SECURITY",
                                        "HTTP_1_1_REQUIRED"};
    char result[40];
    uint32_t at;
    if (!stream_find(streams, id, &at))
        return 0;
    snprintf(result, sizeof(result), "reset %s",
             code < ARRAY_SIZE(names) ? names[code] : "UNKNOWN");
    return stream_tell(streams, at, end_ns, result, true, teller);
}

int http2_streams_refused(struct http2_streams *streams, uint32_t last,
                          const struct protocol_teller *teller)
{
    int failed = 0;
    for (uint32_t i = 0; i < streams->waiting.count;) {
        const struct http2_stream *stream = streams->waiting.rows[i];
        char result[16];
        if (stream->id <= last) {
            i++;
            continue;
        }
        result_put(stream, result, sizeof(result));
        int r = stream_tell(streams, i, 0, result, stream->status >= 400, teller);
        failed = failed ? failed : r;
    }
    return failed;
}

void http2_stream_bytes(struct http2_streams *streams, uint32_t id, bool asks, uint64_t bytes)
{
    uint32_t at;
    if (!stream_find(streams, id, &at))
        return;
    struct http2_stream *stream = streams->waiting.rows[at];
    if (asks)
        stream->bytes_out += bytes;
    else
        stream->bytes_in += bytes;
}

void http2_streams_deinit(struct http2_streams *streams)
{
    for (uint32_t i = 0; i < streams->waiting.count; i++)
        stream_free(streams->waiting.rows[i]);
    waiting_deinit(&streams->waiting);
    *streams = (struct http2_streams){0};
}

/* ---- messages ---- */

static int stream_open(struct http2_streams *streams, struct http2_message *message, size_t room)
{
    struct str method = {message->method, message->method_len};
    struct str target = {message->target, message->target_len};
    struct str host = {message->host, message->host_len};
    char text[PROTOCOL_TEXT_BYTES];
    uint64_t hash;
    if (method.len == 0 || (target.len == 0 && !str_is(method, "CONNECT")))
        return PROTOCOL_BROKEN;
    size_t len = http_text(method, target.len > 0 ? target : host, text, sizeof(text), &hash);
    struct http2_stream *stream = calloc(1, sizeof(*stream) + len);
    if (!stream)
        return -ENOMEM;
    stream->id = message->stream;
    stream->start_ns = message->time_ns;
    stream->cookie = message->cookie;
    stream->bytes_out = message->bytes;
    stream->parameters = hash;
    stream->flags = message->cut ? REQUEST_CUT : 0;
    stream->grpc = -1;
    stream->text_len = len;
    memcpy(stream->text, text, len);
    stream->memory = sizeof(*stream) + len;
    if (message->payload.data && streams->waiting.memory < room / 2) {
        stream->payload = message->payload;
        stream->memory += HTTP_PAYLOAD_BYTES;
        message->payload = (struct http_payload){0};
    }
    int r = waiting_push(&streams->waiting, stream, stream->memory, room);
    if (r != 0)
        stream_free(stream);
    return r;
}

int http2_ask(struct http2_streams *streams, struct http2_message *message, size_t room,
              const struct protocol_teller *teller)
{
    struct str host = {message->host, message->host_len};
    /* Those of clients are odd and grow; other headers follow a body. */
    if (message->stream % 2 == 0)
        return PROTOCOL_BROKEN;
    if (message->stream <= streams->newest) {
        http2_stream_bytes(streams, message->stream, true, message->bytes);
        return 0;
    }
    streams->newest = message->stream;
    int r = stream_open(streams, message, room);
    if (r == 0 && !streams->service_told && http_host_valid(host)) {
        streams->service_told = true;
        r = teller->service(teller->context, host);
    }
    return r;
}

int http2_answer(struct http2_streams *streams, const struct http2_message *message,
                 const struct protocol_teller *teller)
{
    uint32_t at;
    if (!stream_find(streams, message->stream, &at))
        return 0; /* pushed, or over */
    struct http2_stream *stream = streams->waiting.rows[at];
    stream->bytes_in += message->bytes;
    if (message->grpc >= 0)
        stream->grpc = message->grpc;
    if (message->status >= 200) {
        stream->status = message->status;
        stream->first_byte_ns = message->time_ns;
    }
    if (!message->ends)
        return 0;
    return http2_stream_end(streams, message->stream, message->end_ns, teller);
}
