/* Tables of RFC 7541, as data. */
#pragma once

#include "base/str.h"

#include <stdint.h>

enum { HPACK_STATIC = 61, HPACK_SYMBOLS = 257, HPACK_END_OF_STRING = 256 };

struct hpack_field {
    struct str name, value;
};
extern const struct hpack_field hpack_static[HPACK_STATIC];
extern const uint8_t hpack_bits[HPACK_SYMBOLS]; /* of each symbol's code, 5 to 30 */
