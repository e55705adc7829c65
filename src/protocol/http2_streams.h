/* Streams of an HTTP/2 connection that wait for their answer, and what headers mean for them.
 *
 * Functions return 0, enum protocol_verdict, or an error of the teller or of memory. */
#pragma once

#include "protocol/hpack.h"
#include "protocol/http_text.h"
#include "protocol/protocol.h"
#include "protocol/waiting.h"

#include <stdint.h>

struct http2_streams {
    struct waiting waiting;
    uint32_t newest; /* id of the last that was opened */
    bool service_told;
};

/* Headers of one message, unpacked as far as they matter. */
struct http2_message {
    uint32_t stream;
    uint64_t time_ns, end_ns; /* of its first and its last byte */
    uint64_t cookie, bytes;
    bool ends; /* nothing follows on this stream */
    char method[24];
    size_t method_len;
    char target[PROTOCOL_TEXT_BYTES];
    size_t target_len;
    char host[256];
    size_t host_len;
    unsigned status; /* 0: none was said */
    int grpc;        /* status of a call; -1: none */
    bool cut;        /* the target is longer */
    bool payloads;
    struct http_payload payload;
};

MUST_USE int http2_fields_read(struct http2_message *message, struct hpack *hpack,
                               const uint8_t *block, size_t len, bool payloads);
void http2_message_deinit(struct http2_message *message);

/* `room`: bytes that all streams may take. */
MUST_USE int http2_ask(struct http2_streams *streams, struct http2_message *message, size_t room,
                       const struct protocol_teller *teller);
MUST_USE int http2_answer(struct http2_streams *streams, const struct http2_message *message,
                          const struct protocol_teller *teller);
void http2_stream_bytes(struct http2_streams *streams, uint32_t id, bool asks, uint64_t bytes);
/* The answer is complete. What is not open is passed over, here and below. */
MUST_USE int http2_stream_end(struct http2_streams *streams, uint32_t id, uint64_t end_ns,
                              const struct protocol_teller *teller);
MUST_USE int http2_stream_reset(struct http2_streams *streams, uint32_t id, uint32_t code,
                                uint64_t end_ns, const struct protocol_teller *teller);
/* Those after `last` will not be answered: told so. All are tried, the first error is returned. */
MUST_USE int http2_streams_refused(struct http2_streams *streams, uint32_t last,
                                   const struct protocol_teller *teller);
void http2_streams_deinit(struct http2_streams *streams);
