/* Promises of collect/preload_ring.h: what a target wrote is read in order, and what makes no
 * sense is refused. */
#include "unit.h"

#include "collect/preload_ring.h"
#include "model/wait.h"

#include <errno.h>
#include <stdlib.h>

static struct preload_thread *place;
static struct preload_taken taken;
static uint64_t next_ns;

static int setup(void **state)
{
    (void)state;
    place = aligned_alloc(4096, sizeof(*place));
    if (!place)
        return -1;
    memset(place, 0, sizeof(*place));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(place);
    return 0;
}

/* As the library does it. */
static void put(const void *record, uint32_t bytes)
{
    uint32_t at = (uint32_t)(place->head % PRELOAD_RING_BYTES);
    if (PRELOAD_RING_BYTES - at < bytes) {
        struct preload_record pad = {.kind = PRELOAD_PAD, .bytes = PRELOAD_RING_BYTES - at};
        memcpy(place->ring + at, &pad, sizeof(pad));
        place->head += pad.bytes;
        at = 0;
    }
    memcpy(place->ring + at, record, bytes);
    place->head += bytes;
}

static struct preload_wait wait_of(uint64_t start_ns, uint64_t end_ns)
{
    return (struct preload_wait){
        .record = {.kind = PRELOAD_WAIT, .bytes = sizeof(struct preload_wait)},
        .object = 0x1000,
        .start_ns = start_ns,
        .end_ns = end_ns,
    };
}

static void put_wait(uint64_t start_ns, uint64_t end_ns)
{
    struct preload_wait wait = wait_of(start_ns, end_ns);
    put(&wait, sizeof(wait));
}

static void records_come_in_order_up_to_a_time(void **state)
{
    (void)state;
    struct preload_ring ring = {.shared = place};
    put_wait(1, 10);
    put_wait(11, 20);
    assert_int_equal(preload_ring_next(&ring, 10, &taken, &next_ns), 0);
    assert_int_equal(next_ns, 10);
    assert_int_equal(preload_ring_next(&ring, 11, &taken, &next_ns), 1);
    assert_int_equal(taken.wait.end_ns, 10);
    assert_int_equal(preload_ring_next(&ring, 20, &taken, &next_ns), 0);
    assert_int_equal(preload_ring_next(&ring, UINT64_MAX, &taken, &next_ns), 1);
    assert_int_equal(taken.wait.start_ns, 11);
    assert_int_equal(preload_ring_next(&ring, UINT64_MAX, &taken, &next_ns), 0);
    assert_int_equal(next_ns, UINT64_MAX);
    assert_int_equal(place->tail, 0);
    preload_ring_release(&ring);
    assert_int_equal(place->tail, place->head);
}

static void records_go_round_the_ring_many_times(void **state)
{
    (void)state;
    struct preload_ring ring = {.shared = place};
    struct {
        struct preload_stack stack;
        uint8_t slice[1000];
    } told = {.stack = {.record = {.kind = PRELOAD_STACK, .bytes = sizeof(told)},
                        .slice_bytes = sizeof(told.slice)}};
    for (uint64_t i = 1; place->head <= 10u * PRELOAD_RING_BYTES; i++) {
        told.stack.number = (uint32_t)i;
        memset(told.slice, (int)i, sizeof(told.slice));
        put(&told, sizeof(told));
        put_wait(i, i);
        assert_int_equal(preload_ring_next(&ring, UINT64_MAX, &taken, &next_ns), 1);
        assert_int_equal(taken.stack.number, i);
        assert_memory_equal(taken.slice, told.slice, sizeof(told.slice));
        assert_int_equal(preload_ring_next(&ring, UINT64_MAX, &taken, &next_ns), 1);
        assert_int_equal(taken.wait.end_ns, i);
        preload_ring_release(&ring);
    }
}

static void refused(const void *record, uint32_t bytes)
{
    struct preload_ring ring = {.shared = place};
    place->head = 0;
    put(record, bytes);
    assert_int_equal(preload_ring_next(&ring, UINT64_MAX, &taken, &next_ns), -EBADMSG);
    assert_true(ring.broken);
    /* Said once; nothing more is read. */
    assert_int_equal(preload_ring_next(&ring, UINT64_MAX, &taken, &next_ns), 0);
}

static void records_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct preload_wait wait = wait_of(20, 10);
    refused(&wait, sizeof(wait)); /* ends before it begins */
    wait = wait_of(1, 2);
    wait.record.kind = 9;
    refused(&wait, sizeof(wait));
    wait = wait_of(1, 2);
    wait.record.lock = PRELOAD_LOCKS;
    refused(&wait, sizeof(wait));
    const uint32_t sizes[] = {0, 4, 39, 48, 1 << 20, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        wait = wait_of(1, 2);
        wait.record.bytes = sizes[i];
        refused(&wait, sizeof(wait));
    }
    struct preload_stack stack = {.record = {.kind = PRELOAD_STACK, .bytes = sizeof(stack)},
                                  .slice_bytes = 8};
    refused(&stack, sizeof(stack)); /* a slice that is not there */
    stack.record.bytes = sizeof(stack) - 8;
    stack.slice_bytes = 0;
    refused(&stack, sizeof(stack));
}

static void calls_and_what_was_said_are_read_in_full(void **state)
{
    (void)state;
    struct preload_ring ring = {.shared = place};
    struct {
        struct preload_piece piece;
        uint8_t said[16];
    } told = {.piece = {.record = {.kind = PRELOAD_PIECE, .bytes = sizeof(told)},
                        .start_ns = 3,
                        .end_ns = 4,
                        .bytes = 5000,
                        .len = 11},
              .said = "hello world"};
    struct preload_call call = {.record = {.kind = PRELOAD_CALL, .bytes = sizeof(call)},
                                .key = {.call = 17, .error = 2, .object = 77},
                                .start_ns = 1,
                                .end_ns = 2,
                                .bytes = 9};
    place->head = 0;
    put(&call, sizeof(call));
    put(&told, sizeof(told));
    assert_int_equal(preload_ring_next(&ring, UINT64_MAX, &taken, &next_ns), 1);
    assert_memory_equal(&taken.call, &call, sizeof(call));
    /* Of later: it stays where it is. */
    assert_int_equal(preload_ring_next(&ring, 4, &taken, &next_ns), 0);
    assert_int_equal(next_ns, 4);
    assert_int_equal(preload_ring_next(&ring, UINT64_MAX, &taken, &next_ns), 1);
    assert_int_equal(taken.piece.bytes, 5000);
    assert_memory_equal(taken.slice, "hello world", 11);
}

static void calls_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct preload_call call = {
        .record = {.kind = PRELOAD_CALL, .bytes = sizeof(call)}, .start_ns = 2, .end_ns = 1};
    refused(&call, sizeof(call)); /* ends before it begins */
    call.end_ns = 3;
    call.record.bytes = sizeof(call) - 8;
    refused(&call, sizeof(call));
    struct preload_piece piece = {.record = {.kind = PRELOAD_PIECE, .bytes = sizeof(piece)},
                                  .len = 1};
    refused(&piece, sizeof(piece)); /* says what is not there */
    piece.len = 0;
    piece.record.bytes = sizeof(piece) + PRELOAD_PIECE_BYTES + 8;
    refused(&piece, sizeof(piece));
}

static void a_head_that_runs_away_is_refused(void **state)
{
    (void)state;
    struct preload_ring ring = {.shared = place};
    place->head = PRELOAD_RING_BYTES + 8;
    assert_int_equal(preload_ring_next(&ring, UINT64_MAX, &taken, &next_ns), -EBADMSG);
    ring = (struct preload_ring){.shared = place, .tail = 64};
    place->head = 8; /* behind the tail */
    assert_int_equal(preload_ring_next(&ring, UINT64_MAX, &taken, &next_ns), -EBADMSG);
    ring = (struct preload_ring){.shared = place};
    place->head = 3;
    assert_int_equal(preload_ring_next(&ring, UINT64_MAX, &taken, &next_ns), -EBADMSG);
}

/* The sanitizers see a read outside. */
static void noise_is_never_read_outside_of_the_ring(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int round = 0; round < 2000; round++) {
        for (size_t i = 0; i < 4096; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            /* Small numbers, so that some sizes and kinds are right. */
            place->ring[i] = (uint8_t)(random >> 60 < 12 ? 0 : random >> 40);
        }
        struct preload_ring ring = {.shared = place};
        place->head = random >> 20 & 0x1fff8;
        for (int i = 0; i < 10000; i++)
            if (preload_ring_next(&ring, UINT64_MAX, &taken, &next_ns) <= 0)
                break;
    }
}

static void rows_are_read_whole_or_not_at_all(void **state)
{
    (void)state;
    struct preload_row row = {.kind = PRELOAD_HOLD, .count = 3, .taken = 1, .sequence = 4}, copy;
    assert_true(preload_row_read(&row, &copy));
    assert_int_equal(copy.count, 3);
    row.sequence = 5; /* being written, for ever */
    assert_false(preload_row_read(&row, &copy));
    row.sequence = 6;
    row.taken = 3; /* nothing is new */
    assert_false(preload_row_read(&row, &copy));
    row.taken = 0;
    row.kind = PRELOAD_STACK;
    assert_false(preload_row_read(&row, &copy));
    row.kind = PRELOAD_WAIT;
    row.lock = PRELOAD_LOCKS;
    assert_false(preload_row_read(&row, &copy));
}

static void buckets_are_those_of_the_model(void **state)
{
    (void)state;
    assert_int_equal((int)PRELOAD_BUCKETS, (int)WAIT_BUCKETS);
    for (uint64_t ns = 0; ns < 1ull << 50; ns = ns * 9 / 8 + 1)
        assert_int_equal(preload_bucket(ns), wait_bucket(ns));
    assert_int_equal(preload_bucket(UINT64_MAX), wait_bucket(UINT64_MAX));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(records_come_in_order_up_to_a_time),
        TEST(records_go_round_the_ring_many_times),
        TEST(records_that_make_no_sense_are_refused),
        TEST(a_head_that_runs_away_is_refused),
        TEST(noise_is_never_read_outside_of_the_ring),
        TEST(rows_are_read_whole_or_not_at_all),
        TEST(buckets_are_those_of_the_model),
        TEST(calls_and_what_was_said_are_read_in_full),
        TEST(calls_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
