/* Promises of collect/bpf_ring.c on a ring of plain memory: in order, whole across the wrap,
 * nothing that is not finished, kept until it is given back. */
#include "bpf_ring_fake.h"

enum { BYTES = 4096 };

static int setup(void **state)
{
    struct fake_ring *fake = calloc(1, sizeof(*fake));
    fake_ring_init(fake, BYTES);
    *state = fake;
    return 0;
}

static int teardown(void **state)
{
    fake_ring_deinit(*state);
    free(*state);
    return 0;
}

static void put(struct fake_ring *fake, uint64_t number, uint32_t bits)
{
    assert_true(fake_ring_put(fake, &number, sizeof(number), bits));
}

/* The next record's number; 0 when there is none. */
static uint64_t next(struct fake_ring *fake, uint64_t *ret_place)
{
    size_t bytes;
    uint64_t place, number = 0;
    const void *record = bpf_ring_next(&fake->ring, &bytes, &place);
    if (!record)
        return 0;
    assert_int_equal(bytes, sizeof(number));
    memcpy(&number, record, sizeof(number));
    if (ret_place)
        *ret_place = place;
    return number;
}

static void records_come_in_order_up_to_the_beginning_of_the_round(void **state)
{
    struct fake_ring *fake = *state;
    put(fake, 1, 0);
    put(fake, 2, 0);
    bpf_ring_begin(&fake->ring);
    put(fake, 3, 0);
    assert_int_equal(next(fake, NULL), 1);
    assert_int_equal(next(fake, NULL), 2);
    assert_int_equal(next(fake, NULL), 0);
    bpf_ring_begin(&fake->ring);
    assert_int_equal(next(fake, NULL), 3);
    assert_int_equal(next(fake, NULL), 0);
}

static void an_unfinished_record_holds_back_what_follows(void **state)
{
    struct fake_ring *fake = *state;
    put(fake, 1, 0);
    uint8_t *unfinished = fake->data + fake->producer;
    put(fake, 2, BPF_RINGBUF_BUSY_BIT);
    put(fake, 3, 0);
    bpf_ring_begin(&fake->ring);
    assert_int_equal(next(fake, NULL), 1);
    assert_int_equal(next(fake, NULL), 0);
    uint32_t word = 8;
    memcpy(unfinished, &word, sizeof(word));
    bpf_ring_begin(&fake->ring);
    assert_int_equal(next(fake, NULL), 2);
    assert_int_equal(next(fake, NULL), 3);
}

static void a_discarded_record_is_passed_over(void **state)
{
    struct fake_ring *fake = *state;
    put(fake, 1, BPF_RINGBUF_DISCARD_BIT);
    put(fake, 2, 0);
    put(fake, 3, BPF_RINGBUF_DISCARD_BIT);
    bpf_ring_begin(&fake->ring);
    assert_int_equal(next(fake, NULL), 2);
    assert_int_equal(next(fake, NULL), 0);
    bpf_ring_release(&fake->ring, UINT64_MAX);
    assert_int_equal(fake->consumer, fake->producer);
}

static void space_is_given_back_only_up_to_what_is_kept(void **state)
{
    struct fake_ring *fake = *state;
    uint64_t first = 0, second = 0;
    put(fake, 1, 0);
    put(fake, 2, 0);
    bpf_ring_begin(&fake->ring);
    assert_int_equal(next(fake, &first), 1);
    assert_int_equal(next(fake, &second), 2);
    assert_int_equal(fake->consumer, 0);
    bpf_ring_release(&fake->ring, second);
    assert_int_equal(fake->consumer, second);
    assert_int_equal(*(const uint64_t *)bpf_ring_at(&fake->ring, second), 2);
    bpf_ring_release(&fake->ring, first); /* it never goes back */
    assert_int_equal(fake->consumer, second);
    /* What was not looked at is not given back, whatever is asked. */
    put(fake, 3, 0);
    bpf_ring_release(&fake->ring, UINT64_MAX);
    assert_int_equal(fake->consumer, fake->producer - 16);
}

static void records_are_whole_across_the_end(void **state)
{
    struct fake_ring *fake = *state;
    uint8_t record[1000];
    for (uint8_t round = 1; round < 50; round++) {
        size_t bytes;
        uint64_t place;
        memset(record, round, sizeof(record));
        assert_true(fake_ring_put(fake, record, sizeof(record), 0));
        bpf_ring_begin(&fake->ring);
        const uint8_t *seen = bpf_ring_next(&fake->ring, &bytes, &place);
        assert_int_equal(bytes, sizeof(record));
        assert_memory_equal(seen, record, sizeof(record));
        bpf_ring_release(&fake->ring, UINT64_MAX);
    }
    assert_int_equal(fake->ring.damaged, 0);
}

static void a_ring_that_makes_no_sense_is_emptied_and_counted(void **state)
{
    struct fake_ring *fake = *state;
    uint32_t word = 1 << 20;
    put(fake, 1, 0);
    memcpy(fake->data + fake->producer - 16, &word, sizeof(word));
    put(fake, 2, 0);
    bpf_ring_begin(&fake->ring);
    assert_int_equal(next(fake, NULL), 0);
    assert_int_equal(fake->ring.damaged, 1);
    bpf_ring_release(&fake->ring, UINT64_MAX);
    put(fake, 3, 0);
    bpf_ring_begin(&fake->ring);
    assert_int_equal(next(fake, NULL), 3);
    fake->producer += 2 * BYTES; /* further ahead than the ring is long */
    bpf_ring_begin(&fake->ring);
    assert_int_equal(next(fake, NULL), 0);
    assert_int_equal(fake->ring.damaged, 2);
}

static void what_is_no_ring_cannot_be_mapped(void **state)
{
    (void)state;
    struct bpf_ring ring;
    struct why why = {0};
    assert_true(bpf_ring_map(-1, BYTES, &ring, &why) < 0);
    assert_non_null(strstr(why.what, "ring"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(records_come_in_order_up_to_the_beginning_of_the_round),
        TEST(an_unfinished_record_holds_back_what_follows),
        TEST(a_discarded_record_is_passed_over),
        TEST(space_is_given_back_only_up_to_what_is_kept),
        TEST(records_are_whole_across_the_end),
        TEST(a_ring_that_makes_no_sense_is_emptied_and_counted),
        TEST(what_is_no_ring_cannot_be_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
