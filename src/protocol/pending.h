/* Requests of one connection that wait for their answers, in the order they were sent, and the
 * texts they and their prepared statements share.
 *
 * Both are bounded: PROTOCOL_PENDING_MAX requests, with what a protocol puts between them, and a
 * share of PROTOCOL_MEMORY_BYTES for texts, beyond which new ones are cut short. */
#pragma once

#include "protocol/protocol.h"
#include "protocol/sql_text.h"

enum {
    TEXTS_BYTES_FULL = 16 << 10, /* of all texts of a connection, from where on new ones are */
    TEXT_BYTES_SHORT = 64,       /* no longer than this */
    TEXTS_BYTES_MAX = 24 << 10,  /* and from here on not kept at all */
    RESULT_BYTES = 24,
};

/* A normalised text; shared, freed with its last user. */
struct text {
    uint32_t refs;
    uint32_t flags;      /* REQUEST_CUT */
    uint64_t parameters; /* hash of the values that stood in it */
    uint16_t len, payload_len;
    char data[]; /* the text, then the payload if one is wanted */
};

struct texts {
    size_t bytes;  /* used */
    bool payloads; /* as they were said are to be kept, too */
};

/* NULL: no memory for it; a request without a text is told as "…". `cut`: there was more of it. */
MUST_USE struct text *text_sql(struct texts *texts, enum sql_dialect dialect, struct str sql,
                               bool cut);
/* A text that needs no normalising, and has no payload but itself. */
MUST_USE struct text *text_plain(struct texts *texts, struct str plain, struct str payload);
struct text *text_take(struct text *text); /* one more user; NULL is fine */
void text_drop(struct texts *texts, struct text *text);

/* `kind` and `answers` are the protocol's own. */
struct pending {
    uint64_t start_ns, first_byte_ns;
    uint64_t bytes_out, bytes_in;
    uint64_t cookie;
    uint64_t parameters;
    struct text *text;
    uint32_t flags;
    uint16_t answers; /* still to come */
    uint16_t alike;   /* further requests that came with it, in all but their values the same */
    uint8_t kind;
    char result[RESULT_BYTES];
};

/* A ring that grows up to its bound. */
struct pending_queue {
    struct pending *rows;
    uint32_t first, count, room;
};

/* `row` with its text's reference moves in. -ENOBUFS: too many, -ENOMEM; the text is dropped. */
MUST_USE int pending_push(struct pending_queue *queue, struct texts *texts,
                          const struct pending *row);
/* NULL beyond the end; valid until the next push. 0 is the oldest. */
struct pending *pending_at(struct pending_queue *queue, uint32_t index);
struct pending *pending_last(struct pending_queue *queue);
/* The oldest is gone, told or not. */
void pending_pop(struct pending_queue *queue, struct texts *texts);
/* Tells the oldest and takes it out, or one of those alike; `prefix` goes before its text.
 * end_ns 0: unanswered. */
MUST_USE int pending_tell(struct pending_queue *queue, struct texts *texts, const char *prefix,
                          uint64_t end_ns, const struct protocol_teller *teller);
void pending_deinit(struct pending_queue *queue, struct texts *texts);

void pending_result(struct pending *row, const char *fmt, ...) PRINTF_LIKE(2, 3);
