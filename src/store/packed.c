/* Columns to bytes and back. */
#include "store/packed.h"

#include "store/planes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <zstd_errors.h>

enum { ZSTD_LEVEL = 3 }; /* they are few: what the file weighs counts */

static size_t raw_bytes(unsigned columns, size_t values)
{
    return (size_t)columns * PLANES_HEADER_BYTES + values * sizeof(uint64_t);
}

static int packer_reserve(struct packer *packer, size_t values)
{
    if (!packer->zstd) {
        packer->zstd = ZSTD_createCCtx();
        if (!packer->zstd ||
            ZSTD_isError(
                ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
            ZSTD_isError(ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_checksumFlag, 1)))
            return -ENOMEM;
    }
    if (values <= packer->cap)
        return 0;
    free(packer->values);
    free(packer->raw);
    free(packer->packed);
    size_t raw = raw_bytes(PACKED_COLUMNS_MAX, values);
    packer->cap = values;
    packer->values = malloc(values * sizeof(*packer->values));
    packer->raw = malloc(raw);
    packer->packed = malloc(ZSTD_compressBound(raw));
    if (packer->values && packer->raw && packer->packed)
        return 0;
    packer->cap = 0;
    return -ENOMEM;
}

int packer_begin(struct packer *packer, unsigned columns, uint32_t rows, uint64_t **ret_values)
{
    assert(columns > 0 && columns <= PACKED_COLUMNS_MAX && rows > 0 && rows <= PACKED_ROWS_MAX);
    if (packer_reserve(packer, (size_t)columns * rows) < 0)
        return -ENOMEM;
    packer->columns = columns;
    packer->rows = rows;
    *ret_values = packer->values;
    return 0;
}

int packer_end(struct packer *packer, const void **ret_data, size_t *ret_size)
{
    unsigned char *at = packer->raw + raw_bytes(packer->columns, 0);
    for (unsigned i = 0; i < packer->columns; i++)
        at = planes_put_u64(packer->raw + (size_t)i * PLANES_HEADER_BYTES, at,
                            packer->values + (size_t)i * packer->rows, packer->rows);
    size_t size = ZSTD_compress2(packer->zstd, packer->packed,
                                 ZSTD_compressBound(raw_bytes(PACKED_COLUMNS_MAX, packer->cap)),
                                 packer->raw, (size_t)(at - packer->raw));
    if (ZSTD_isError(size))
        return -ENOMEM; /* the only thing left that can go wrong: room was made for the worst */
    *ret_data = packer->packed;
    *ret_size = size;
    return 0;
}

void packer_deinit(struct packer *packer)
{
    ZSTD_freeCCtx(packer->zstd);
    free(packer->values);
    free(packer->raw);
    free(packer->packed);
    *packer = (struct packer){0};
}

static int unpacker_reserve(struct unpacker *unpacker, size_t values)
{
    if (!unpacker->zstd)
        unpacker->zstd = ZSTD_createDCtx();
    if (!unpacker->zstd)
        return -ENOMEM;
    if (values <= unpacker->cap)
        return 0;
    free(unpacker->values);
    free(unpacker->raw);
    unpacker->cap = values;
    unpacker->values = malloc(values * sizeof(*unpacker->values));
    unpacker->raw = malloc(raw_bytes(PACKED_COLUMNS_MAX, values));
    if (unpacker->values && unpacker->raw)
        return 0;
    unpacker->cap = 0;
    return -ENOMEM;
}

static int damaged(const char **ret_damage, const char *text)
{
    *ret_damage = text;
    return -EBADMSG;
}

/* The widths must be possible, and account for every byte there is. */
static int columns_read(struct unpacker *unpacker, size_t size, unsigned columns, uint32_t rows,
                        const char **ret_damage)
{
    size_t wanted = raw_bytes(columns, 0);
    for (unsigned i = 0; i < columns && size >= wanted; i++) {
        uint64_t width = planes_width(unpacker->raw + (size_t)i * PLANES_HEADER_BYTES);
        if (width > sizeof(uint64_t))
            return damaged(ret_damage, "a column is wider than its values can be");
        wanted += (size_t)width * rows;
    }
    if (wanted != size)
        return damaged(ret_damage, "its columns do not add up to its length");
    const unsigned char *at = unpacker->raw + raw_bytes(columns, 0);
    for (unsigned i = 0; i < columns; i++)
        at = planes_get_u64(unpacker->raw + (size_t)i * PLANES_HEADER_BYTES, at,
                            unpacker->values + (size_t)i * rows, rows);
    return 0;
}

int unpack(struct unpacker *unpacker, int64_t codec, const void *data, size_t size,
           unsigned columns, int64_t rows, const char **ret_damage)
{
    if (codec != PACKED_CODEC)
        return damaged(ret_damage, "its codec is unknown");
    if (rows < 1 || rows > PACKED_ROWS_MAX)
        return damaged(ret_damage, "its number of rows is impossible");
    size_t values = (size_t)columns * (size_t)rows;
    unsigned long long raw_size = ZSTD_getFrameContentSize(data, size);
    if (raw_size < raw_bytes(columns, 0) || raw_size > raw_bytes(columns, values))
        return damaged(ret_damage, "its length is impossible");
    if (unpacker_reserve(unpacker, values) < 0)
        return -ENOMEM;
    size_t got = ZSTD_decompressDCtx(unpacker->zstd, unpacker->raw, raw_bytes(columns, values),
                                     data, size);
    if (ZSTD_isError(got))
        return ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation
                   ? -ENOMEM
                   : damaged(ret_damage, ZSTD_getErrorName(got));
    return columns_read(unpacker, got, columns, (uint32_t)rows, ret_damage);
}

void unpacker_deinit(struct unpacker *unpacker)
{
    ZSTD_freeDCtx(unpacker->zstd);
    free(unpacker->raw);
    free(unpacker->values);
    *unpacker = (struct unpacker){0};
}
