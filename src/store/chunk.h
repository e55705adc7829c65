/* Samples of one series as compressed columns: what one row of `chunk` holds.
 *
 * Each column (time step, thread, stack, weight) is stored less its smallest
 * value, in as many bytes as its range needs (none, when all are equal), all
 * lowest bytes first, then all second-lowest, and so on; zstd squeezes the
 * planes and adds a checksum. Fixed widths make decoding quick and leave a
 * damaged chunk nothing to lead the decoder astray with.
 *
 * Pure: no SQLite, no files. docs/recording.md describes the bytes. */
#pragma once

#include "base/macros.h"
#include "base/why.h"

#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

enum {
    CHUNK_CODEC = 1,               /* the only one so far */
    CHUNK_SAMPLES = 16 * 1024,     /* that the writer puts into one */
    CHUNK_SAMPLES_MAX = 64 * 1024, /* that a reader accepts */
};

/* Columns of equal length; the time is absolute. */
struct chunk_columns {
    uint64_t *time_ns;
    uint32_t *thread;
    uint32_t *stack;
    uint64_t *weight;
    uint32_t samples;
};

/* In one block; 0 or -ENOMEM. */
MUST_USE int chunk_columns_init(struct chunk_columns *columns, uint32_t cap);
void chunk_columns_deinit(struct chunk_columns *columns);

/* Both directions reuse their memory: nothing is allocated per chunk once the
 * first one has been through. */
struct chunk_encoder {
    ZSTD_CCtx *zstd;
    unsigned char *raw;
    unsigned char *packed;
    size_t packed_cap;
    uint64_t *steps;
};
MUST_USE int chunk_encoder_init(struct chunk_encoder *encoder);
void chunk_encoder_deinit(struct chunk_encoder *encoder);
/* 1 to CHUNK_SAMPLES samples; *ret_data is the encoder's until the next call.
 * *ret_start_ns and *ret_end_ns are the earliest and the latest time. */
MUST_USE int chunk_encode(struct chunk_encoder *encoder, const struct chunk_columns *columns,
                          const void **ret_data, size_t *ret_size, uint64_t *ret_start_ns,
                          uint64_t *ret_end_ns);

struct chunk_decoder {
    ZSTD_DCtx *zstd;
    unsigned char *raw;
    size_t raw_cap;
    struct chunk_columns columns; /* what was decoded last */
    uint32_t cap;
};
MUST_USE int chunk_decoder_init(struct chunk_decoder *decoder);
void chunk_decoder_deinit(struct chunk_decoder *decoder);
/* Accepts any bytes. 0, -ENOMEM, or -EBADMSG with *ret_damage saying what is
 * wrong with them ("checksum does not match"). */
MUST_USE int chunk_decode(struct chunk_decoder *decoder, int64_t codec, const void *data,
                          size_t size, int64_t samples, const char **ret_damage);
