/* Buckets of a tally to bytes and back. */
#include "store/wait_buckets.h"

#include <string.h>

enum { LEB_BYTES_MAX = 5 };

static size_t number_put(unsigned char *bytes, uint32_t number)
{
    size_t len = 0;
    for (; number >= 128; number >>= 7)
        bytes[len++] = (unsigned char)(number | 128);
    bytes[len++] = (unsigned char)number;
    return len;
}

/* The bytes it takes; 0 when there is no number of 32 bits, or one with idle bytes behind it. */
static size_t number_get(const unsigned char *bytes, size_t size, uint32_t *ret)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size && i < LEB_BYTES_MAX; i++) {
        number |= (uint64_t)(bytes[i] & 127) << (7 * i);
        if (bytes[i] & 128)
            continue;
        if (number > UINT32_MAX || (i > 0 && bytes[i] == 0))
            return 0;
        *ret = (uint32_t)number;
        return i + 1;
    }
    return 0;
}

size_t wait_buckets_encode(const uint32_t buckets[WAIT_BUCKETS],
                           unsigned char bytes[WAIT_BUCKETS_BYTES_MAX])
{
    size_t len = 0;
    uint32_t next = 0; /* the bucket that a gap of 0 means */
    for (uint32_t i = 0; i < WAIT_BUCKETS; i++) {
        if (buckets[i] == 0)
            continue;
        len += number_put(bytes + len, i - next);
        len += number_put(bytes + len, buckets[i]);
        next = i + 1;
    }
    return len;
}

bool wait_buckets_decode(const unsigned char *bytes, size_t size, uint32_t ret[WAIT_BUCKETS])
{
    uint32_t buckets[WAIT_BUCKETS] = {0};
    uint32_t next = 0;
    for (size_t at = 0; at < size;) {
        uint32_t gap = 0, count = 0;
        size_t len = number_get(bytes + at, size - at, &gap);
        if (len == 0 || gap >= WAIT_BUCKETS - next)
            return false;
        at += len;
        len = number_get(bytes + at, size - at, &count);
        if (len == 0 || count == 0)
            return false;
        at += len;
        buckets[next + gap] = count;
        next += gap + 1;
    }
    memcpy(ret, buckets, sizeof(buckets));
    return true;
}
