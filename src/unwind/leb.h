/* DWARF's variable-length numbers, for both readers of unwind tables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Moves `*at` behind the number. False when the bytes end before it does, or it has more than
 * 64 bits' worth of bytes; *ret is then untouched. */
static inline bool unwind_leb(const uint8_t **at, const uint8_t *end, bool is_signed, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; *at < end && shift < 70; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if (is_signed && (byte & 0x40) && shift + 7 < 64)
            value |= ~UINT64_C(0) << (shift + 7);
        *ret = value;
        return true;
    }
    return false;
}
