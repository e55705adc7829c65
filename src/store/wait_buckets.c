/* Buckets of a tally to bytes and back. */
#include "store/wait_buckets.h"

#include <string.h>

enum { LEB_BYTES_MAX = 10 };

static size_t number_put(unsigned char *bytes, uint64_t number)
{
    size_t len = 0;
    for (; number >= 128; number >>= 7)
        bytes[len++] = (unsigned char)(number | 128);
    bytes[len++] = (unsigned char)number;
    return len;
}

/* The bytes it takes; 0 when there is no number up to `max`, or one with idle bytes behind it. */
static size_t number_get(const unsigned char *bytes, size_t size, uint64_t max, uint64_t *ret)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size && i < LEB_BYTES_MAX; i++) {
        uint64_t bits = bytes[i] & 127;
        if (i + 1 == LEB_BYTES_MAX && bits > 1)
            return 0;
        number |= bits << (7 * i);
        if (bytes[i] & 128)
            continue;
        if (number > max || (i > 0 && bytes[i] == 0))
            return 0;
        *ret = number;
        return i + 1;
    }
    return 0;
}

/* Counts of 32 and of 64 bits, the same code. `buckets` is all zeroes for DECODE and may be left
 * half filled. */
#define ENCODE(name, type)                                                                         \
    static size_t name(const __typeof__(type) *buckets, uint32_t count, unsigned char *bytes)      \
    {                                                                                              \
        size_t len = 0;                                                                            \
        uint32_t next = 0; /* the bucket that a gap of 0 means */                                  \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            if (buckets[i] == 0)                                                                   \
                continue;                                                                          \
            len += number_put(bytes + len, i - next);                                              \
            len += number_put(bytes + len, buckets[i]);                                            \
            next = i + 1;                                                                          \
        }                                                                                          \
        return len;                                                                                \
    }
ENCODE(encode, uint32_t)
ENCODE(encode_u64, uint64_t)

#define DECODE(name, type, max)                                                                    \
    static bool name(const unsigned char *bytes, size_t size, __typeof__(type) *buckets,           \
                     uint32_t most)                                                                \
    {                                                                                              \
        uint32_t next = 0;                                                                         \
        for (size_t at = 0; at < size;) {                                                          \
            uint64_t gap = 0, count = 0;                                                           \
            size_t len = number_get(bytes + at, size - at, UINT32_MAX, &gap);                      \
            if (len == 0 || gap >= most - next)                                                    \
                return false;                                                                      \
            at += len;                                                                             \
            len = number_get(bytes + at, size - at, max, &count);                                  \
            if (len == 0 || count == 0)                                                            \
                return false;                                                                      \
            at += len;                                                                             \
            buckets[next + gap] = (type)count;                                                     \
            next += (uint32_t)gap + 1;                                                             \
        }                                                                                          \
        return true;                                                                               \
    }
DECODE(decode, uint32_t, UINT32_MAX)
DECODE(decode_u64, uint64_t, INT64_MAX)

size_t wait_buckets_encode(const uint32_t buckets[WAIT_BUCKETS],
                           unsigned char bytes[WAIT_BUCKETS_BYTES_MAX])
{
    return encode(buckets, WAIT_BUCKETS, bytes);
}

bool wait_buckets_decode(const unsigned char *bytes, size_t size, uint32_t ret[WAIT_BUCKETS])
{
    uint32_t buckets[WAIT_BUCKETS] = {0};
    if (!decode(bytes, size, buckets, WAIT_BUCKETS))
        return false;
    memcpy(ret, buckets, sizeof(buckets));
    return true;
}

size_t call_sizes_encode(const uint32_t sizes[CALL_SIZES],
                         unsigned char bytes[CALL_SIZES_BYTES_MAX])
{
    return encode(sizes, CALL_SIZES, bytes);
}

bool call_sizes_decode(const unsigned char *bytes, size_t size, uint32_t ret[CALL_SIZES])
{
    uint32_t sizes[CALL_SIZES] = {0};
    if (!decode(bytes, size, sizes, CALL_SIZES))
        return false;
    memcpy(ret, sizes, sizeof(sizes));
    return true;
}

size_t heap_buckets_encode(const uint64_t *buckets, uint32_t count,
                           unsigned char bytes[HEAP_BUCKETS_BYTES_MAX])
{
    return encode_u64(buckets, count, bytes);
}

bool heap_sizes_decode(const unsigned char *bytes, size_t size, uint64_t ret[HEAP_SIZE_BUCKETS])
{
    return decode_u64(bytes, size, ret, HEAP_SIZE_BUCKETS);
}

bool heap_lives_decode(const unsigned char *bytes, size_t size, uint64_t ret[HEAP_LIFE_BUCKETS])
{
    return decode_u64(bytes, size, ret, HEAP_LIFE_BUCKETS);
}
