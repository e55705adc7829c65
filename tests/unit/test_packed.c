/* Promises of store/packed.h and store/heap_rows.h: columns come back, rows that are alike take
 * next to nothing, damaged and forged bytes are refused with the reason. */
#include "unit.h"

#include "store/heap_rows.h"
#include "store/planes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct packer packer;
static struct unpacker unpacker;

static int end(void **state)
{
    (void)state;
    packer_deinit(&packer);
    unpacker_deinit(&unpacker);
    return 0;
}

static size_t pack(const uint64_t *given, unsigned columns, uint32_t rows, const void **ret_data)
{
    uint64_t *values;
    size_t size = 0;
    assert_int_equal(packer_begin(&packer, columns, rows, &values), 0);
    memcpy(values, given, (size_t)columns * rows * sizeof(*values));
    assert_int_equal(packer_end(&packer, ret_data, &size), 0);
    return size;
}

static void columns_of_any_size_come_back(void **state)
{
    (void)state;
    const struct {
        unsigned columns;
        uint32_t rows;
    } sizes[] = {{1, 1}, {PACKED_COLUMNS_MAX, 1}, {3, 1000}, {1, PACKED_ROWS_MAX}, {19, 2048}};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        size_t count = (size_t)sizes[i].columns * sizes[i].rows;
        uint64_t *given = malloc(count * sizeof(*given));
        assert_non_null(given);
        for (size_t at = 0; at < count; at++)
            given[at] = (at * 0x9e3779b97f4a7c15u) >> (at / sizes[i].rows * 8 % 64);
        const void *data;
        const char *damage = NULL;
        size_t size = pack(given, sizes[i].columns, sizes[i].rows, &data);
        assert_int_equal(
            unpack(&unpacker, PACKED_CODEC, data, size, sizes[i].columns, sizes[i].rows, &damage),
            0);
        assert_memory_equal(unpacker.values, given, count * sizeof(*given));
        free(given);
    }
}

static struct heap_site_row *sites_new(uint32_t count)
{
    struct heap_site_row *sites = calloc(count, sizeof(*sites));
    assert_non_null(sites);
    for (uint32_t i = 0; i < count; i++) {
        sites[i].info = (struct heap_site_info){1, 3 + i * 3, HEAP_KIND_HEAP};
        sites[i].tally = (struct heap_tally){.allocations = 3, .samples = 3};
        sites[i].tally.allocated_bytes = sites[i].tally.freed_bytes = 72;
        sites[i].tally.frees = 3;
    }
    return sites;
}

static void sites_that_are_alike_take_next_to_nothing(void **state)
{
    (void)state;
    struct heap_site_row *sites = sites_new(HEAP_SITES_EACH);
    const void *data;
    size_t size = 0;
    assert_int_equal(heap_sites_pack(&packer, sites, HEAP_SITES_EACH, &data, &size), 0);
    assert_true(size < 200);
    free(sites);
}

static void sites_come_back_at_their_extremes(void **state)
{
    (void)state;
    struct heap_site_row *sites = sites_new(4);
    sites[0].info = (struct heap_site_info){UINT32_MAX, UINT32_MAX, HEAP_KIND_UNMAP};
    sites[1].info = (struct heap_site_info){1, 0, HEAP_KIND_MAP};
    sites[0].tally = (struct heap_tally){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                         UINT64_MAX, UINT64_MAX, INT64_MIN,  INT64_MAX,
                                         UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                         UINT64_MAX, UINT64_MAX, 0,          1e308};
    sites[1].tally = (struct heap_tally){.samples = UINT64_MAX, .peak_count = -1};
    const void *data;
    const char *damage = NULL;
    size_t size = 0;
    struct recorded_heap_site got[4];
    assert_int_equal(heap_sites_pack(&packer, sites, 4, &data, &size), 0);
    assert_int_equal(unpack(&unpacker, PACKED_CODEC, data, size, HEAP_SITE_COLUMNS, 4, &damage), 0);
    assert_null(heap_sites_make(unpacker.values, 4, 17, got));
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(got[i].id, 17 + i);
        assert_memory_equal(&got[i].info, &sites[i].info, sizeof(got[i].info));
    }
    const struct heap_tally *most = &got[0].tally;
    assert_true(most->allocations == INT64_MAX && most->lived_ns == INT64_MAX);
    assert_true(most->peak_count == INT64_MIN && most->peak_bytes == INT64_MAX);
    assert_true(most->samples == 0 && most->variance == 1e308);
    assert_true(got[1].tally.samples == INT64_MAX && got[1].tally.peak_count == -1);
    assert_memory_equal(&got[3].tally, &sites[3].tally, sizeof(got[3].tally));
    free(sites);
}

static void forged_sites_are_refused(void **state)
{
    (void)state;
    const struct {
        unsigned column;
        uint64_t value;
        const char *words;
    } forged[] = {
        {0, UINT64_C(1) << 32, "thread"},
        {1, zigzag(UINT64_C(1) << 32), "stack"},
        {1, zigzag((uint64_t)-1), "stack"},
        {2, HEAP_KINDS, "kind"},
        {3, UINT64_C(1) << 63, "figure"},
        {14, UINT64_MAX, "figure"},
        {17, zigzag((uint64_t)-2), "figure"}, /* fewer samples than none */
        {17, zigzag(INT64_MAX), "figure"},
        {18, UINT64_C(0x7ff8000000000000), "variance"}, /* NaN */
        {18, UINT64_C(0x7ff0000000000000), "variance"},
        {18, UINT64_C(0xbff0000000000000), "variance"}, /* -1 */
    };
    for (size_t i = 0; i < ARRAY_SIZE(forged); i++) {
        uint64_t row[HEAP_SITE_COLUMNS] = {1, 0, 0, 1};
        struct recorded_heap_site got;
        assert_null(heap_sites_make(row, 1, 1, &got));
        row[forged[i].column] = forged[i].value;
        const char *damage = heap_sites_make(row, 1, 1, &got);
        if (!damage || !strstr(damage, forged[i].words))
            fail_msg("%zu: '%s' is not about '%s'", i, damage ? damage : "", forged[i].words);
    }
    struct heap_snapshot_row row;
    const uint64_t values[] = {zigzag(UINT64_C(1) << 32), 0, 0};
    assert_non_null(heap_snapshot_make(values, 1, 1, &row));
}

static void rows_of_snapshots_come_back(void **state)
{
    (void)state;
    const struct heap_snapshot_row rows[] = {
        {5, UINT32_MAX, INT64_MIN, INT64_MAX}, {5, 0, -1, 1}, {5, 7, 0, INT64_MIN}};
    struct heap_snapshot_row got[3];
    const void *data;
    const char *damage;
    size_t size = 0;
    assert_int_equal(heap_snapshot_pack(&packer, rows, 3, &data, &size), 0);
    assert_int_equal(unpack(&unpacker, PACKED_CODEC, data, size, HEAP_SNAPSHOT_COLUMNS, 3, &damage),
                     0);
    assert_null(heap_snapshot_make(unpacker.values, 3, 5, got));
    assert_memory_equal(got, rows, sizeof(rows));
}

static void assert_damaged(int64_t codec, const void *data, size_t size, unsigned columns,
                           int64_t rows, const char *words)
{
    const char *damage = "";
    assert_int_equal(unpack(&unpacker, codec, data, size, columns, rows, &damage), -EBADMSG);
    if (!strstr(damage, words))
        fail_msg("'%s' is not about '%s'", damage, words);
}

static void damage_is_refused(void **state)
{
    (void)state;
    const uint64_t given[] = {1, 2, 300, 4, 5, 6};
    const void *data;
    size_t size = pack(given, 2, 3, &data);
    assert_damaged(0, data, size, 2, 3, "codec");
    assert_damaged(PACKED_CODEC, data, size, 2, 0, "number of rows");
    assert_damaged(PACKED_CODEC, data, size, 2, -1, "number of rows");
    assert_damaged(PACKED_CODEC, data, size, 2, PACKED_ROWS_MAX + 1, "number of rows");
    assert_damaged(PACKED_CODEC, data, size, 2, 4, "add up");
    assert_damaged(PACKED_CODEC, data, size, 1, 3, "");
    assert_damaged(PACKED_CODEC, data, size, 3, 3, "length");
    assert_damaged(PACKED_CODEC, data, size - 1, 2, 3, "");
    assert_damaged(PACKED_CODEC, "", 0, 2, 3, "length");
    unsigned char raw[256], packed[256];
    size_t raw_size = ZSTD_decompress(raw, sizeof(raw), data, size);
    assert_int_equal(raw_size, 2 * PLANES_HEADER_BYTES + 3 * 2 + 3);
    raw[8] = 9;
    size = ZSTD_compress(packed, sizeof(packed), raw, raw_size, 1);
    assert_damaged(PACKED_CODEC, packed, size, 2, 3, "wider");
    raw[8] = 1;
    size = ZSTD_compress(packed, sizeof(packed), raw, raw_size, 1);
    assert_damaged(PACKED_CODEC, packed, size, 2, 3, "add up");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, end)
    const struct CMUnitTest tests[] = {
        TEST(columns_of_any_size_come_back),     TEST(sites_that_are_alike_take_next_to_nothing),
        TEST(sites_come_back_at_their_extremes), TEST(forged_sites_are_refused),
        TEST(rows_of_snapshots_come_back),       TEST(damage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
