/* Headers of HTTP/2 unpacked (RFC 7541).
 *
 * One struct for each direction: blocks must be given whole and in order, since each may change
 * the table that the next refers to. After an error the table is worth nothing. Memory is bounded
 * by HPACK_TABLE_MAX; what is decoded lives during the call only. */
#pragma once

#include "base/macros.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    HPACK_TABLE_DEFAULT = 4096,
    HPACK_TABLE_MAX = 12 << 10, /* that we keep; who asks for more is refused */
    HPACK_STRING_MAX = 8 << 10, /* of a name or value after unpacking */
    HPACK_FIELDS_MAX = 512,     /* of one block */
};

struct hpack_entry;

struct hpack {
    struct hpack_entry **entries; /* newest first from `first` on, around the end */
    uint32_t room, count, first;
    size_t size;  /* as the RFC counts: names, values and 32 each */
    size_t limit; /* set by the encoder; init: HPACK_TABLE_DEFAULT */
};

/* Called for each header in order; an error ends the block. */
typedef int hpack_field_fn(void *context, struct str name, struct str value);

void hpack_init(struct hpack *hpack);
void hpack_deinit(struct hpack *hpack);
/* -EBADMSG: it is no block, or refers to what is not there; -E2BIG: larger than we keep; or the
 * function's error. */
MUST_USE int hpack_decode(struct hpack *hpack, const uint8_t *block, size_t len, hpack_field_fn *fn,
                          void *context);
