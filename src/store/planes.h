/* A column of numbers as byte planes: what chunks are made of (chunk.h, heap_chunk.h).
 *
 * A number is stored less the smallest of its column, in as many bytes as the range needs (none,
 * when all are equal); all lowest bytes first, then all second-lowest, and so on. A header says
 * the smallest and the width. Numbers are little-endian.
 *
 * Pure: no memory is taken. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PLANES_HEADER_BYTES = 16 };

/* The header goes to `header`, the planes to `at`: at most 8 (4) bytes a value. The end of it. */
unsigned char *planes_put_u64(unsigned char *header, unsigned char *at, const uint64_t *values,
                              uint32_t count);
unsigned char *planes_put_u32(unsigned char *header, unsigned char *at, const uint32_t *values,
                              uint32_t count);
/* The width has been checked against what there is. */
const unsigned char *planes_get_u64(const unsigned char *header, const unsigned char *at,
                                    uint64_t *values, uint32_t count);
const unsigned char *planes_get_u32(const unsigned char *header, const unsigned char *at,
                                    uint32_t *values, uint32_t count);
/* As the header says; anything may be there. */
uint64_t planes_width(const unsigned char *header);

void planes_put(unsigned char *at, uint64_t value);
uint64_t planes_get(const unsigned char *at);

/* Small steps stay small in both directions: 0, -1, 1, -2, … as 0, 1, 2, 3, … */
static inline uint64_t zigzag(uint64_t step)
{
    return (step << 1) ^ (uint64_t)((int64_t)step >> 63);
}
static inline uint64_t unzigzag(uint64_t code)
{
    return (code >> 1) ^ (0 - (code & 1));
}
