/* Promises of collect/perf_ring.c, on rings of plain memory that the test writes as the
 * kernel would: in order across rings, whole across the wrap, nothing beyond the horizon. */
#include "unit.h"

#include "collect/perf_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, DATA = 4096, RINGS = 4 };

struct fake {
    struct perf_event_mmap_page *pages[RINGS];
    struct perf_rings rings;
};

static int setup(void **state)
{
    struct fake *fake = calloc(1, sizeof(*fake));
    for (int i = 0; i < RINGS; i++)
        fake->pages[i] = calloc(1, PAGE + DATA);
    *state = fake;
    return perf_rings_adopt(fake->pages, RINGS, PAGE, DATA, &fake->rings);
}

static int teardown(void **state)
{
    struct fake *fake = *state;
    perf_rings_deinit(&fake->rings);
    for (int i = 0; i < RINGS; i++)
        free(fake->pages[i]);
    free(fake);
    return 0;
}

static void put(struct fake *fake, int ring, const void *bytes, size_t len)
{
    struct perf_event_mmap_page *page = fake->pages[ring];
    uint8_t *data = (uint8_t *)page + PAGE;
    assert_true(page->data_head - page->data_tail + len <= DATA);
    for (size_t i = 0; i < len; i++)
        data[(page->data_head + i) % DATA] = ((const uint8_t *)bytes)[i];
    page->data_head += len;
}

/* A sample of `words` words after the fixed ones, all filled with its time. */
static void put_sample(struct fake *fake, int ring, uint64_t time_ns, size_t words)
{
    uint64_t record[512];
    size_t count = 5 + words;
    struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = (uint16_t)(count * 8)};
    for (size_t i = 0; i < count; i++)
        record[i] = time_ns;
    memcpy(record, &header, sizeof(header));
    put(fake, ring, record, count * 8);
}

/* EXIT and the like: the time stands in the trailer. */
static void put_other(struct fake *fake, int ring, uint64_t time_ns)
{
    uint64_t record[7] = {0, 1, 2, 3, 4, time_ns, 6};
    struct perf_event_header header = {.type = PERF_RECORD_EXIT, .size = sizeof(record)};
    memcpy(record, &header, sizeof(header));
    put(fake, ring, record, sizeof(record));
}

static void test_records_come_in_the_order_of_time(void **state)
{
    struct fake *fake = *state;
    put_sample(fake, 0, 10, 0);
    put_other(fake, 0, 40);
    put_other(fake, 1, 20);
    put_sample(fake, 1, 50, 3);
    put_sample(fake, 3, 30, 1);
    perf_rings_begin(&fake->rings, 0, true);
    uint64_t time_ns;
    for (uint64_t expected = 10; expected <= 50; expected += 10) {
        const struct perf_event_header *header = perf_rings_next(&fake->rings, &time_ns);
        assert_non_null(header);
        assert_true(time_ns == expected);
        assert_int_equal(header->type,
                         expected == 20 || expected == 40 ? PERF_RECORD_EXIT : PERF_RECORD_SAMPLE);
    }
    assert_null(perf_rings_next(&fake->rings, &time_ns));
    perf_rings_end(&fake->rings);
    for (int i = 0; i < RINGS; i++)
        assert_true(fake->pages[i]->data_tail == fake->pages[i]->data_head);
    assert_true(fake->rings.late == 0 && fake->rings.damaged == 0);
}

/* Thousands of records of odd sizes go round a small ring many times. */
static void test_a_record_that_wraps_comes_out_whole(void **state)
{
    struct fake *fake = *state;
    uint64_t time_ns = 0, seen = 0;
    srandom(7);
    for (int round = 0; round < 2000; round++) {
        for (int ring = 0; ring < RINGS; ring++) {
            size_t words = (size_t)random() % 200;
            put_sample(fake, ring, ++time_ns, words);
            put_other(fake, ring, ++time_ns);
        }
        perf_rings_begin(&fake->rings, 0, true);
        const struct perf_event_header *header;
        uint64_t at_ns;
        while ((header = perf_rings_next(&fake->rings, &at_ns))) {
            assert_true(at_ns == ++seen);
            const uint64_t *words = (const uint64_t *)(header + 1);
            for (size_t i = 0; header->type == PERF_RECORD_SAMPLE && i + 1 < header->size / 8u; i++)
                assert_true(words[i] == at_ns);
        }
        perf_rings_end(&fake->rings);
    }
    assert_true(seen == time_ns);
}

static void test_records_beyond_the_horizon_wait(void **state)
{
    struct fake *fake = *state;
    uint64_t now_ns = 100 * PERF_RING_SETTLE_NS, time_ns;
    put_sample(fake, 0, now_ns - 2 * PERF_RING_SETTLE_NS, 0);
    put_sample(fake, 0, now_ns - PERF_RING_SETTLE_NS / 2, 0);
    put_sample(fake, 1, now_ns - 3 * PERF_RING_SETTLE_NS, 0);
    perf_rings_begin(&fake->rings, now_ns, false);
    assert_non_null(perf_rings_next(&fake->rings, &time_ns));
    assert_non_null(perf_rings_next(&fake->rings, &time_ns));
    assert_null(perf_rings_next(&fake->rings, &time_ns));
    perf_rings_end(&fake->rings);
    assert_true(fake->pages[0]->data_tail < fake->pages[0]->data_head);
    /* Meanwhile another CPU has published one that is older: the order still holds. */
    put_sample(fake, 2, now_ns - PERF_RING_SETTLE_NS, 0);
    perf_rings_begin(&fake->rings, now_ns + PERF_RING_SETTLE_NS, false);
    assert_non_null(perf_rings_next(&fake->rings, &time_ns));
    assert_true(time_ns == now_ns - PERF_RING_SETTLE_NS);
    assert_non_null(perf_rings_next(&fake->rings, &time_ns));
    assert_true(time_ns == now_ns - PERF_RING_SETTLE_NS / 2);
    perf_rings_end(&fake->rings);
    assert_true(fake->rings.late == 0);
}

static void test_a_record_out_of_order_is_counted_not_lost(void **state)
{
    struct fake *fake = *state;
    uint64_t time_ns;
    put_sample(fake, 0, 100, 0);
    perf_rings_begin(&fake->rings, 0, true);
    assert_non_null(perf_rings_next(&fake->rings, &time_ns));
    perf_rings_end(&fake->rings);
    put_sample(fake, 1, 50, 0);
    perf_rings_begin(&fake->rings, 0, true);
    assert_non_null(perf_rings_next(&fake->rings, &time_ns));
    assert_true(time_ns == 50);
    perf_rings_end(&fake->rings);
    assert_true(fake->rings.late == 1);
}

static void test_a_ring_that_makes_no_sense_is_emptied_and_counted(void **state)
{
    struct fake *fake = *state;
    uint64_t time_ns;
    const uint16_t sizes[] = {0, 8, 24, 36, 60000, 33};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        uint64_t record[8] = {0};
        struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = sizes[i]};
        memcpy(record, &header, sizeof(header));
        put(fake, 0, record, sizeof(record));
        put_sample(fake, 1, i + 1, 0);
        perf_rings_begin(&fake->rings, 0, true);
        assert_non_null(perf_rings_next(&fake->rings, &time_ns));
        assert_true(time_ns == i + 1); /* that of the sound ring */
        assert_null(perf_rings_next(&fake->rings, &time_ns));
        perf_rings_end(&fake->rings);
        assert_true(fake->rings.damaged == i + 1);
        assert_true(fake->pages[0]->data_tail == fake->pages[0]->data_head);
    }
    /* A head that ran away. */
    fake->pages[2]->data_head = fake->pages[2]->data_tail + 100 * DATA;
    perf_rings_begin(&fake->rings, 0, true);
    assert_null(perf_rings_next(&fake->rings, &time_ns));
    perf_rings_end(&fake->rings);
}

static void test_space_is_given_back_during_a_round(void **state)
{
    struct fake *fake = *state;
    uint64_t time_ns;
    for (int i = 0; i < 20; i++)
        put_sample(fake, 0, (uint64_t)i + 1, 10);
    perf_rings_begin(&fake->rings, 0, true);
    for (int i = 0; i < 15; i++)
        assert_non_null(perf_rings_next(&fake->rings, &time_ns));
    assert_true(fake->pages[0]->data_tail > 0); /* long before end */
    /* The record in our hands is not given back. */
    assert_true(fake->pages[0]->data_tail <= 14 * 120);
    perf_rings_end(&fake->rings);
}

static void test_memory_that_may_not_be_had_is_named(void **state)
{
    (void)state;
    int fds[] = {-1};
    struct perf_rings rings;
    struct why why = {0};
    assert_int_equal(perf_rings_map(fds, 1, 1 << 20, &rings, &why), -EBADF);
    assert_non_null(strstr(why.what, "rings"));
    assert_true(why.remedy[0] != '\0');
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_records_come_in_the_order_of_time),
        TEST(test_a_record_that_wraps_comes_out_whole),
        TEST(test_records_beyond_the_horizon_wait),
        TEST(test_a_record_out_of_order_is_counted_not_lost),
        TEST(test_a_ring_that_makes_no_sense_is_emptied_and_counted),
        TEST(test_space_is_given_back_during_a_round),
        TEST(test_memory_that_may_not_be_had_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
