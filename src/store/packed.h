/* Columns of equal length, packed: byte planes (planes.h) under zstd, which adds a checksum.
 *
 *     r = packer_begin(&packer, COLUMNS, rows, &values); … values[column * rows + row] = …
 *     r = packer_end(&packer, &data, &size);
 *
 * Rows of the heap that grow with the stacks of a program are kept so: numbers that are alike from
 * row to row take next to nothing, where a row of SQLite takes a byte a column at least.
 *
 * Pure: no SQLite, no files. docs/recording.md describes the bytes. */
#pragma once

#include "base/macros.h"

#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

enum { PACKED_CODEC = 1, PACKED_COLUMNS_MAX = 32, PACKED_ROWS_MAX = 1 << 20 };

/* Both directions reuse their memory. All zeroes is one that has not begun. */
struct packer {
    ZSTD_CCtx *zstd;
    uint64_t *values;
    unsigned char *raw, *packed;
    size_t cap; /* values there is room for */
    unsigned columns;
    uint32_t rows;
};
/* 1 to PACKED_ROWS_MAX rows; the values are not zeroed. -ENOMEM. */
MUST_USE int packer_begin(struct packer *packer, unsigned columns, uint32_t rows,
                          uint64_t **ret_values);
/* *ret_data is the packer's until the next call. -ENOMEM. */
MUST_USE int packer_end(struct packer *packer, const void **ret_data, size_t *ret_size);
void packer_deinit(struct packer *packer);

struct unpacker {
    ZSTD_DCtx *zstd;
    unsigned char *raw;
    uint64_t *values; /* what was unpacked last: [column * rows + row] */
    size_t cap;
};
/* Accepts any bytes. 0, -ENOMEM, or -EBADMSG with *ret_damage saying what is wrong with them. */
MUST_USE int unpack(struct unpacker *unpacker, int64_t codec, const void *data, size_t size,
                    unsigned columns, int64_t rows, const char **ret_damage);
void unpacker_deinit(struct unpacker *unpacker);
