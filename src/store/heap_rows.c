/* Rows to columns and back. What rises from row to row is stored as steps. */
#include "store/heap_rows.h"

#include "store/planes.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* SQL has 63 bits for a number that is not negative. */
static uint64_t bounded(uint64_t number)
{
    return MIN(number, (uint64_t)INT64_MAX);
}

enum { PLAIN_NUMBERS = 12 };

/* In the order of their columns. */
static void numbers_list(const struct heap_tally *tally, uint64_t numbers[PLAIN_NUMBERS])
{
    const uint64_t list[PLAIN_NUMBERS] = {
        tally->allocations, tally->allocated_bytes, tally->frees,    tally->freed_bytes,
        tally->temporary,   tally->temporary_bytes, tally->grown,    tally->grown_bytes,
        tally->moved,       tally->chain_max,       tally->size_max, tally->lived_ns};
    for (size_t i = 0; i < PLAIN_NUMBERS; i++)
        numbers[i] = bounded(list[i]);
}

static void numbers_set(struct heap_tally *tally, const uint64_t numbers[PLAIN_NUMBERS])
{
    uint64_t *const list[PLAIN_NUMBERS] = {
        &tally->allocations, &tally->allocated_bytes, &tally->frees,    &tally->freed_bytes,
        &tally->temporary,   &tally->temporary_bytes, &tally->grown,    &tally->grown_bytes,
        &tally->moved,       &tally->chain_max,       &tally->size_max, &tally->lived_ns};
    for (size_t i = 0; i < PLAIN_NUMBERS; i++)
        *list[i] = numbers[i];
}

int heap_sites_pack(struct packer *packer, const struct heap_site_row *sites, uint32_t count,
                    const void **ret_data, size_t *ret_size)
{
    uint64_t *values;
    if (packer_begin(packer, HEAP_SITE_COLUMNS, count, &values) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        const struct heap_tally *tally = &sites[i].tally;
        uint64_t row[HEAP_SITE_COLUMNS], before = i > 0 ? sites[i - 1].info.stack : 0;
        row[0] = sites[i].info.thread;
        row[1] = zigzag(sites[i].info.stack - before);
        row[2] = (uint64_t)sites[i].info.kind;
        numbers_list(tally, row + 3);
        row[3 + PLAIN_NUMBERS] = zigzag((uint64_t)tally->peak_count);
        row[4 + PLAIN_NUMBERS] = zigzag((uint64_t)tally->peak_bytes);
        row[5 + PLAIN_NUMBERS] = zigzag(bounded(tally->samples) - bounded(tally->allocations));
        memcpy(&row[6 + PLAIN_NUMBERS], &tally->variance, sizeof(tally->variance));
        for (unsigned column = 0; column < HEAP_SITE_COLUMNS; column++)
            values[(size_t)column * count + i] = row[column];
    }
    return packer_end(packer, ret_data, ret_size);
}

static const char *row_make(const uint64_t row[HEAP_SITE_COLUMNS], uint64_t stack,
                            struct recorded_heap_site *ret)
{
    struct heap_tally *tally = &ret->tally;
    if (row[0] > UINT32_MAX)
        return "it names a thread that does not exist";
    if (stack > UINT32_MAX)
        return "it names a stack that does not exist";
    if (row[2] >= HEAP_KINDS)
        return "a site is of an unknown kind";
    ret->info = (struct heap_site_info){(uint32_t)row[0], (uint32_t)stack, (enum heap_kind)row[2]};
    numbers_set(tally, row + 3);
    tally->peak_count = (int64_t)unzigzag(row[3 + PLAIN_NUMBERS]);
    tally->peak_bytes = (int64_t)unzigzag(row[4 + PLAIN_NUMBERS]);
    tally->samples = tally->allocations + unzigzag(row[5 + PLAIN_NUMBERS]);
    memcpy(&tally->variance, &row[6 + PLAIN_NUMBERS], sizeof(tally->variance));
    uint64_t bits = tally->samples;
    for (size_t i = 0; i < PLAIN_NUMBERS; i++)
        bits |= row[3 + i];
    if (bits > INT64_MAX)
        return "a figure is impossible";
    return isfinite(tally->variance) && tally->variance >= 0 ? NULL : "a variance is impossible";
}

const char *heap_sites_make(const uint64_t *values, uint32_t count, uint32_t id,
                            struct recorded_heap_site *ret)
{
    uint64_t stack = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t row[HEAP_SITE_COLUMNS];
        for (unsigned column = 0; column < HEAP_SITE_COLUMNS; column++)
            row[column] = values[(size_t)column * count + i];
        stack += unzigzag(row[1]);
        ret[i] = (struct recorded_heap_site){.id = id + i};
        const char *damage = row_make(row, stack, &ret[i]);
        if (damage)
            return damage;
    }
    return NULL;
}

int heap_snapshot_pack(struct packer *packer, const struct heap_snapshot_row *rows, uint32_t count,
                       const void **ret_data, size_t *ret_size)
{
    uint64_t *values;
    if (packer_begin(packer, HEAP_SNAPSHOT_COLUMNS, count, &values) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        values[i] = zigzag((uint64_t)rows[i].stack - (i > 0 ? rows[i - 1].stack : 0));
        values[count + i] = zigzag((uint64_t)rows[i].count);
        values[(size_t)2 * count + i] = zigzag((uint64_t)rows[i].bytes);
    }
    return packer_end(packer, ret_data, ret_size);
}

const char *heap_snapshot_make(const uint64_t *values, uint32_t count, uint32_t snapshot,
                               struct heap_snapshot_row *ret)
{
    uint64_t stack = 0;
    for (uint32_t i = 0; i < count; i++) {
        stack += unzigzag(values[i]);
        if (stack > UINT32_MAX)
            return "it names a stack that does not exist";
        ret[i] = (struct heap_snapshot_row){snapshot, (uint32_t)stack,
                                            (int64_t)unzigzag(values[count + i]),
                                            (int64_t)unzigzag(values[(size_t)2 * count + i])};
    }
    return NULL;
}
