/* Allocations and frees as compressed columns: what one row of `heap_chunk` holds.
 *
 * Events are put together by thread; those of a thread keep their order. An address is stored as
 * the difference to what an allocator would have answered: the piece of that size which was freed
 * last, or the one behind the piece before. A free of what was allocated in the same chunk says
 * only how many allocations ago that was. Columns are byte planes (planes.h) under zstd, which
 * adds a checksum. A pair takes three to seven bytes.
 *
 * Pure: no SQLite, no files. docs/recording.md describes the bytes. */
#pragma once

#include "base/macros.h"
#include "base/map.h"
#include "model/heap.h"

#include <stddef.h>
#include <zstd.h>

enum {
    HEAP_CHUNK_CODEC = 1,          /* the only one so far */
    HEAP_CHUNK_EVENTS = 64 * 1024, /* at most */
};

struct heap_columns;
struct heap_guess;

/* Both directions reuse their memory: nothing is taken per chunk once the first one has been
 * through. */
struct heap_encoder {
    ZSTD_CCtx *zstd;
    unsigned char *raw, *packed;
    size_t packed_cap;
    uint64_t *order; /* by thread */
    struct heap_columns *columns;
    struct heap_guess *guess;
    struct map_u64 allocated; /* address to the number of its allocation; 0: it was freed */
    uint32_t *allocations;    /* by number: which event */
};
MUST_USE int heap_encoder_init(struct heap_encoder *encoder);
void heap_encoder_deinit(struct heap_encoder *encoder); /* one that was never inited is fine */
/* 1 to HEAP_CHUNK_EVENTS events; *ret_data is the encoder's until the next call. -ENOMEM. */
MUST_USE int heap_encode(struct heap_encoder *encoder, const struct heap_event *events,
                         uint32_t count, const void **ret_data, size_t *ret_size);

struct heap_decoder {
    ZSTD_DCtx *zstd;
    unsigned char *raw;
    struct heap_columns *columns;
    struct heap_guess *guess;
    uint32_t *allocations;
    struct heap_event *events; /* what was decoded last */
    uint32_t count;
};
MUST_USE int heap_decoder_init(struct heap_decoder *decoder);
void heap_decoder_deinit(struct heap_decoder *decoder);
/* Accepts any bytes. 0, -ENOMEM, or -EBADMSG with *ret_damage saying what is wrong with them.
 * Threads, stacks and times are as they are told: for the caller to check. */
MUST_USE int heap_decode(struct heap_decoder *decoder, int64_t codec, const void *data, size_t size,
                         int64_t events, const char **ret_damage);
