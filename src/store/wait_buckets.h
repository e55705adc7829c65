/* The histogram of a row of waits as bytes: what wait.buckets holds, and call.buckets and others.
 *
 * For every bucket that is not empty, two numbers: how many empty ones lie between it and the
 * one before, and its count. Numbers are LEB128: seven bits a byte, the lowest first. Most rows
 * have a handful of buckets and take a dozen bytes instead of 512.
 *
 * Pure: no SQLite, no files. docs/recording.md describes the bytes. */
#pragma once

#include "base/macros.h"
#include "model/call.h"
#include "model/heap.h"
#include "model/wait.h"

#include <stdbool.h>
#include <stddef.h>

/* A gap is below 128: one byte; a count has 32 bits: five. */
enum {
    WAIT_BUCKETS_BYTES_MAX = WAIT_BUCKETS * 6,
    CALL_SIZES_BYTES_MAX = CALL_SIZES * 6,
    HEAP_BUCKETS_BYTES_MAX = HEAP_SIZE_BUCKETS * 11, /* and 64 bits: ten */
};

/* How many bytes were written. */
size_t wait_buckets_encode(const uint32_t buckets[WAIT_BUCKETS],
                           unsigned char bytes[WAIT_BUCKETS_BYTES_MAX]);
/* Accepts any bytes; false when they are not what wait_buckets_encode() writes, and `ret` is
 * untouched then. */
MUST_USE bool wait_buckets_decode(const unsigned char *bytes, size_t size,
                                  uint32_t ret[WAIT_BUCKETS]);
/* The same for sizes of calls. */
size_t call_sizes_encode(const uint32_t sizes[CALL_SIZES],
                         unsigned char bytes[CALL_SIZES_BYTES_MAX]);
MUST_USE bool call_sizes_decode(const unsigned char *bytes, size_t size, uint32_t ret[CALL_SIZES]);
/* The same of the heap, whose counts have 64 bits, read up to 2^63 - 1. `ret` is all zeroes before
 * and may be left half filled. */
size_t heap_buckets_encode(const uint64_t *buckets, uint32_t count,
                           unsigned char bytes[HEAP_BUCKETS_BYTES_MAX]);
MUST_USE bool heap_sizes_decode(const unsigned char *bytes, size_t size,
                                uint64_t ret[HEAP_SIZE_BUCKETS]);
MUST_USE bool heap_lives_decode(const unsigned char *bytes, size_t size,
                                uint64_t ret[HEAP_LIFE_BUCKETS]);
