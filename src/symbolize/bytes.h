/* A cursor over bytes that nobody vouches for. Reading past the end gives 0 and marks the
 * cursor bad; it never moves backwards by itself, so a loop `while (cursor_left(&c) > 0)`
 * that reads something each time ends. Little-endian, as every image we symbolize. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

static inline struct cursor cursor_at(struct str bytes, uint64_t offset)
{
    const uint8_t *data = (const uint8_t *)bytes.data;
    static const uint8_t nothing[1];
    if (!data || offset > bytes.len)
        return (struct cursor){nothing, nothing, true};
    return (struct cursor){data + offset, data + bytes.len, false};
}

static inline size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

static inline bool cursor_skip(struct cursor *cursor, uint64_t count)
{
    if (count > cursor_left(cursor)) {
        cursor->at = cursor->end;
        cursor->bad = true;
        return false;
    }
    if (count > 0)
        cursor->at += count;
    return true;
}

/* `size` is 1 to 8. */
static inline uint64_t cursor_uint(struct cursor *cursor, unsigned size)
{
    const uint8_t *at = cursor->at;
    if (!cursor_skip(cursor, size))
        return 0;
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
    if (cursor->at == cursor->end) {
        cursor->bad = true;
        return 0;
    }
    return *cursor->at++;
}

static inline uint16_t cursor_u16(struct cursor *cursor)
{
    return (uint16_t)cursor_uint(cursor, 2);
}

static inline uint32_t cursor_u32(struct cursor *cursor)
{
    return (uint32_t)cursor_uint(cursor, 4);
}

static inline uint64_t cursor_u64(struct cursor *cursor)
{
    return cursor_uint(cursor, 8);
}

static inline uint64_t cursor_uleb(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) /* a 0 at the end of the bytes stops it, too */
            return value;
    }
}

static inline int64_t cursor_sleb(struct cursor *cursor)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = cursor_u8(cursor);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && (byte & 0x40))
        value |= ~0ull << shift;
    return (int64_t)value;
}

/* Up to a NUL, which is passed; without one, the rest. */
static inline struct str cursor_text(struct cursor *cursor)
{
    const uint8_t *start = cursor->at;
    const uint8_t *nul = cursor_left(cursor) > 0 ? memchr(start, 0, cursor_left(cursor)) : NULL;
    if (!nul) {
        struct str rest = {(const char *)start, cursor_left(cursor)};
        cursor->at = cursor->end;
        cursor->bad = true;
        return rest;
    }
    cursor->at = nul + 1;
    return (struct str){(const char *)start, (size_t)(nul - start)};
}
