/* Writing protobuf messages: numbers and texts by field number, nested messages.
 *
 *     protow_begin(&out, PROFILE_SAMPLE);
 *     protow_uint(&out, SAMPLE_VALUE, 17);
 *     protow_end(&out);
 *
 * Running out of memory is sticky (`failed`) and checked once, by the one who takes the
 * bytes. Misuse (deeper than PROTOW_DEPTH_MAX, an end without a begin) asserts. */
#pragma once

#include "base/str.h"

#include <stdint.h>

enum { PROTOW_DEPTH_MAX = 8 };

struct protow {
    uint8_t *data;
    size_t len;
    size_t cap;
    size_t begins[PROTOW_DEPTH_MAX]; /* where the open messages' bytes begin */
    uint32_t fields[PROTOW_DEPTH_MAX];
    unsigned depth;
    bool failed;
};

/* Zero is protobuf's default and is left out, as proto3 does. */
void protow_uint(struct protow *out, uint32_t field, uint64_t value);
/* An empty text is left out too, unless `keep_empty`: an element of a list has a place. */
void protow_text(struct protow *out, uint32_t field, struct str text, bool keep_empty);
void protow_packed(struct protow *out, uint32_t field, const uint64_t *values, size_t count);
void protow_begin(struct protow *out, uint32_t field);
void protow_end(struct protow *out);
void protow_clear(struct protow *out); /* keeps the memory */
void protow_deinit(struct protow *out);
