/* Columns to bytes and back; the layout is in docs/recording.md. */
#include "store/chunk.h"

#include "store/planes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd_errors.h>

enum {
    COLUMNS = 4,
    HEADER_BYTES = 8 + COLUMNS * PLANES_HEADER_BYTES,
    SAMPLE_BYTES_MAX = 8 + 4 + 4 + 8,
    /* Level 1 costs about half of level 3 and packs these planes as well: there
     * is little to match in them, the gain comes from the entropy coder. */
    ZSTD_LEVEL = 1,
};

static const unsigned widths_max[COLUMNS] = {8, 4, 4, 8};

int chunk_columns_init(struct chunk_columns *columns, uint32_t cap)
{
    unsigned char *block = malloc((size_t)cap * SAMPLE_BYTES_MAX);
    if (!block)
        return -ENOMEM;
    *columns = (struct chunk_columns){
        .time_ns = (uint64_t *)block,
        .weight = (uint64_t *)(block + (size_t)cap * 8),
        .thread = (uint32_t *)(block + (size_t)cap * 16),
        .stack = (uint32_t *)(block + (size_t)cap * 20),
    };
    return 0;
}

void chunk_columns_deinit(struct chunk_columns *columns)
{
    free(columns->time_ns);
    *columns = (struct chunk_columns){0};
}

int chunk_encoder_init(struct chunk_encoder *encoder)
{
    size_t raw_size = HEADER_BYTES + (size_t)CHUNK_SAMPLES * SAMPLE_BYTES_MAX;
    *encoder = (struct chunk_encoder){.packed_cap = ZSTD_compressBound(raw_size)};
    encoder->zstd = ZSTD_createCCtx();
    encoder->raw = malloc(raw_size);
    encoder->packed = malloc(encoder->packed_cap);
    encoder->steps = malloc(CHUNK_SAMPLES * sizeof(*encoder->steps));
    if (!encoder->zstd || !encoder->raw || !encoder->packed || !encoder->steps ||
        ZSTD_isError(ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_checksumFlag, 1))) {
        chunk_encoder_deinit(encoder);
        return -ENOMEM;
    }
    return 0;
}

void chunk_encoder_deinit(struct chunk_encoder *encoder)
{
    ZSTD_freeCCtx(encoder->zstd);
    free(encoder->raw);
    free(encoder->packed);
    free(encoder->steps);
    *encoder = (struct chunk_encoder){0};
}

/* A step back in time is rare but allowed: rings of several CPUs are drained in turn. */
int chunk_encode(struct chunk_encoder *encoder, const struct chunk_columns *columns,
                 const void **ret_data, size_t *ret_size, uint64_t *ret_start_ns,
                 uint64_t *ret_end_ns)
{
    uint32_t count = columns->samples;
    if (count == 0 || count > CHUNK_SAMPLES)
        return -EINVAL;
    uint64_t start = columns->time_ns[0], end = start;
    encoder->steps[0] = 0;
    for (uint32_t i = 1; i < count; i++) {
        uint64_t time = columns->time_ns[i];
        start = MIN(start, time);
        end = MAX(end, time);
        encoder->steps[i] = zigzag(time - columns->time_ns[i - 1]);
    }
    /* The first sample has no step of its own; a neighbour's keeps the range narrow. */
    if (count > 1)
        encoder->steps[0] = encoder->steps[1];
    unsigned char *header = encoder->raw + 8, *at = encoder->raw + HEADER_BYTES;
    planes_put(encoder->raw, columns->time_ns[0]);
    at = planes_put_u64(header, at, encoder->steps, count);
    at = planes_put_u32(header + PLANES_HEADER_BYTES, at, columns->thread, count);
    at = planes_put_u32(header + 2 * PLANES_HEADER_BYTES, at, columns->stack, count);
    at = planes_put_u64(header + 3 * PLANES_HEADER_BYTES, at, columns->weight, count);
    size_t size = ZSTD_compress2(encoder->zstd, encoder->packed, encoder->packed_cap, encoder->raw,
                                 (size_t)(at - encoder->raw));
    if (ZSTD_isError(size))
        return -ENOMEM; /* the only thing left that can go wrong: room was made for the worst */
    *ret_data = encoder->packed;
    *ret_size = size;
    *ret_start_ns = start;
    *ret_end_ns = end;
    return 0;
}

int chunk_decoder_init(struct chunk_decoder *decoder)
{
    *decoder = (struct chunk_decoder){.zstd = ZSTD_createDCtx()};
    return decoder->zstd ? 0 : -ENOMEM;
}

void chunk_decoder_deinit(struct chunk_decoder *decoder)
{
    ZSTD_freeDCtx(decoder->zstd);
    free(decoder->raw);
    chunk_columns_deinit(&decoder->columns);
    *decoder = (struct chunk_decoder){0};
}

static int decoder_reserve(struct chunk_decoder *decoder, uint32_t samples)
{
    uint32_t cap = samples <= CHUNK_SAMPLES ? CHUNK_SAMPLES : CHUNK_SAMPLES_MAX;
    if (decoder->cap >= cap)
        return 0;
    size_t raw_cap = HEADER_BYTES + (size_t)cap * SAMPLE_BYTES_MAX;
    unsigned char *raw = malloc(raw_cap);
    struct chunk_columns columns;
    if (!raw || chunk_columns_init(&columns, cap) < 0) {
        free(raw);
        return -ENOMEM;
    }
    free(decoder->raw);
    chunk_columns_deinit(&decoder->columns);
    decoder->raw = raw;
    decoder->raw_cap = raw_cap;
    decoder->columns = columns;
    decoder->cap = cap;
    return 0;
}

static int damaged(const char **ret_damage, const char *text)
{
    *ret_damage = text;
    return -EBADMSG;
}

/* The widths must be possible, and account for every byte there is. */
static int widths_check(const unsigned char *raw, size_t size, uint32_t samples,
                        const char **ret_damage)
{
    if (size < HEADER_BYTES)
        return damaged(ret_damage, "it is shorter than its header");
    size_t wanted = HEADER_BYTES;
    for (unsigned i = 0; i < COLUMNS; i++) {
        uint64_t width = planes_width(raw + 8 + i * PLANES_HEADER_BYTES);
        if (width > widths_max[i])
            return damaged(ret_damage, "a column is wider than its values can be");
        wanted += (size_t)width * samples;
    }
    return wanted == size ? 0 : damaged(ret_damage, "its columns do not add up to its length");
}

int chunk_decode(struct chunk_decoder *decoder, int64_t codec, const void *data, size_t size,
                 int64_t samples, const char **ret_damage)
{
    if (codec != CHUNK_CODEC)
        return damaged(ret_damage, "its codec is unknown");
    if (samples < 1 || samples > CHUNK_SAMPLES_MAX)
        return damaged(ret_damage, "its number of samples is impossible");
    if (decoder_reserve(decoder, (uint32_t)samples) < 0)
        return -ENOMEM;
    unsigned long long raw_size = ZSTD_getFrameContentSize(data, size);
    if (raw_size < HEADER_BYTES || raw_size > decoder->raw_cap)
        return damaged(ret_damage, "its length is impossible");
    size_t got = ZSTD_decompressDCtx(decoder->zstd, decoder->raw, decoder->raw_cap, data, size);
    if (ZSTD_isError(got))
        return ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation
                   ? -ENOMEM
                   : damaged(ret_damage, ZSTD_getErrorName(got));
    uint32_t count = (uint32_t)samples;
    if (widths_check(decoder->raw, got, count, ret_damage) < 0)
        return -EBADMSG;

    struct chunk_columns *columns = &decoder->columns;
    const unsigned char *header = decoder->raw + 8, *at = decoder->raw + HEADER_BYTES;
    at = planes_get_u64(header, at, columns->time_ns, count);
    at = planes_get_u32(header + PLANES_HEADER_BYTES, at, columns->thread, count);
    at = planes_get_u32(header + 2 * PLANES_HEADER_BYTES, at, columns->stack, count);
    (void)planes_get_u64(header + 3 * PLANES_HEADER_BYTES, at, columns->weight, count);
    columns->time_ns[0] = planes_get(decoder->raw);
    for (uint32_t i = 1; i < count; i++)
        columns->time_ns[i] = columns->time_ns[i - 1] + unzigzag(columns->time_ns[i]);
    columns->samples = count;
    return 0;
}
