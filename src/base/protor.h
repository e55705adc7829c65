/* Reading protobuf messages of strangers: nothing is copied, nothing is trusted.
 *
 *     struct protor in = protor_from(bytes);
 *     struct protor_field field;
 *     while (protor_next(&in, &field)) …
 *     if (in.bad) …
 *
 * The loop ends for any input, since each field takes at least one byte. */
#pragma once

#include "base/str.h"

#include <stdint.h>

enum protor_wire {
    PROTOR_VARINT = 0,
    PROTOR_FIXED64 = 1,
    PROTOR_BYTES = 2,
    PROTOR_FIXED32 = 5,
};

struct protor {
    struct str rest;
    bool bad; /* a varint without an end, a length beyond the bytes, an unknown wire type */
};

struct protor_field {
    uint32_t number;
    enum protor_wire wire;
    uint64_t value;   /* of numbers */
    struct str bytes; /* of texts, messages and packed lists; borrowed */
};

static inline struct protor protor_from(struct str bytes)
{
    return (struct protor){.rest = bytes};
}

/* False at the end, and when the input is bad. */
bool protor_next(struct protor *in, struct protor_field *ret);
/* The next number of a packed list; false at its end, and when it is bad. */
bool protor_varint(struct protor *in, uint64_t *ret);
/* A repeated number field, packed or one by one: calls `fn` for each number. A negative
 * result ends the loop and is returned; bad bytes are -EBADMSG. */
MUST_USE int protor_each(const struct protor_field *field, int (*fn)(void *context, uint64_t value),
                         void *context);
