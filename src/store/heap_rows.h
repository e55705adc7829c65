/* Sites and rows of snapshots as packed columns (packed.h): what heap_site_chunk.data and
 * heap_snapshot.data hold. */
#pragma once

#include "model/heap_book.h"
#include "store/packed.h"
#include "store/reader.h"

enum {
    HEAP_SITES_EACH = 2048, /* sites of a chunk; the last one may have fewer */
    HEAP_SITE_COLUMNS = 19,
    HEAP_SNAPSHOT_COLUMNS = 3,
};

/* 0 or -ENOMEM; *ret_data is the packer's until the next call. */
MUST_USE int heap_sites_pack(struct packer *packer, const struct heap_site_row *sites,
                             uint32_t count, const void **ret_data, size_t *ret_size);
/* Columns that were unpacked become rows; `id` is that of the first. Figures as they are told: for
 * the caller to check; NULL, or what is wrong with them. */
const char *heap_sites_make(const uint64_t *values, uint32_t count, uint32_t id,
                            struct recorded_heap_site *ret);

MUST_USE int heap_snapshot_pack(struct packer *packer, const struct heap_snapshot_row *rows,
                                uint32_t count, const void **ret_data, size_t *ret_size);
const char *heap_snapshot_make(const uint64_t *values, uint32_t count, uint32_t snapshot,
                               struct heap_snapshot_row *ret);
