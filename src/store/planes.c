/* Columns to planes and back. */
#include "store/planes.h"

#include "base/macros.h"

#include <endian.h>
#include <string.h>

void planes_put(unsigned char *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof(value));
}

uint64_t planes_get(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return le64toh(value);
}

uint64_t planes_width(const unsigned char *header)
{
    return planes_get(header + 8);
}

static unsigned width_of(uint64_t range)
{
    return range == 0 ? 0 : (unsigned)(64 - __builtin_clzll(range) + 7) / 8;
}

/* Two column types, the same code: the planes of values less the smallest. */
#define COLUMN_PUT(name, type)                                                                     \
    unsigned char *name(unsigned char *header, unsigned char *at, const __typeof__(type) *values,  \
                        uint32_t count)                                                            \
    {                                                                                              \
        type low = count > 0 ? values[0] : 0, high = low;                                          \
        for (uint32_t i = 1; i < count; i++) {                                                     \
            low = MIN(low, values[i]);                                                             \
            high = MAX(high, values[i]);                                                           \
        }                                                                                          \
        unsigned width = width_of(high - low);                                                     \
        planes_put(header, low);                                                                   \
        planes_put(header + 8, width);                                                             \
        for (unsigned plane = 0; plane < width; plane++, at += count)                              \
            for (uint32_t i = 0; i < count; i++)                                                   \
                at[i] = (unsigned char)((type)(values[i] - low) >> (8 * plane));                   \
        return at;                                                                                 \
    }
COLUMN_PUT(planes_put_u64, uint64_t)
COLUMN_PUT(planes_put_u32, uint32_t)

/* The plane loops are what decoding costs; each is a simple pass that compilers
 * can do many values at a time. */
#define COLUMN_GET(name, type)                                                                     \
    const unsigned char *name(const unsigned char *header, const unsigned char *at,                \
                              __typeof__(type) *values, uint32_t count)                            \
    {                                                                                              \
        type low = (type)planes_get(header);                                                       \
        unsigned width = (unsigned)planes_width(header);                                           \
        for (uint32_t i = 0; i < count; i++)                                                       \
            values[i] = low;                                                                       \
        for (unsigned plane = 0; plane < width; plane++, at += count)                              \
            for (uint32_t i = 0; i < count; i++)                                                   \
                values[i] += (type)at[i] << (8 * plane);                                           \
        return at;                                                                                 \
    }
COLUMN_GET(planes_get_u64, uint64_t)
COLUMN_GET(planes_get_u32, uint32_t)
