/* Promises of collect/cpu_deep*.c: a piece of stack goes to its own sample or to none, and
 * threads are copied from only as far as walks have shown their stack to reach. */
#include "bpf_ring_fake.h"

#include "collect/cpu_deep.h"

enum { RING = 512 << 10, MS = 1000000 };
#define SP        UINT64_C(0x7ffd00001230)
#define PC        UINT64_C(0x55550000)
#define AT        UINT64_C(0x7ffd00010000)
#define ALL_PAGES ((1u << CPU_DEEP_PIECE_PAGES) - 1)

struct fake {
    struct fake_ring ring;
    struct cpu_pieces pieces;
    struct unwind_slice parts[CPU_DEEP_PARTS_MAX];
};

static int setup(void **state)
{
    struct fake *fake = calloc(1, sizeof(*fake));
    fake_ring_init(&fake->ring, RING);
    *state = fake;
    return cpu_pieces_init(&fake->ring.ring, &fake->pieces);
}

static int teardown(void **state)
{
    struct fake *fake = *state;
    cpu_pieces_deinit(&fake->pieces);
    fake_ring_deinit(&fake->ring);
    free(fake);
    return 0;
}

static struct cpu_deep_piece template = {
    .time_ns = 50 * MS,
    .copied_ns = 50 * MS + 20000,
    .sp = SP,
    .pc = PC,
    .address = AT,
    .tid = 7,
    .flags = CPU_DEEP_EXACT,
    .pages = ALL_PAGES,
};
static const struct cpu_moment moment = {.time_ns = 50 * MS, .sp = SP, .pc = PC, .tid = 7};

static bool put(struct fake *fake, const struct cpu_deep_piece *piece, uint8_t fill)
{
    static struct cpu_deep_piece copy;
    copy = *piece;
    memset(copy.bytes, fill, sizeof(copy.bytes));
    return fake_ring_put(&fake->ring, &copy, sizeof(copy), 0);
}

static size_t find(struct fake *fake, struct cpu_moment at)
{
    cpu_pieces_look(&fake->pieces);
    return cpu_pieces_find(&fake->pieces, &at, fake->parts);
}

static void a_sample_finds_its_own_pieces(void **state)
{
    struct fake *fake = *state;
    struct cpu_deep_piece first = template, second = template, other = template;
    second.address += CPU_DEEP_PIECE_BYTES;
    second.copied_ns += 10000;
    other.tid = 8;
    assert_true(put(fake, &first, 1));
    assert_true(put(fake, &other, 9)); /* another CPU's, in between */
    assert_true(put(fake, &second, 2));
    assert_int_equal(find(fake, moment), 2);
    assert_int_equal(fake->parts[0].address, AT);
    assert_int_equal(fake->parts[0].len, CPU_DEEP_PIECE_BYTES);
    assert_int_equal(fake->parts[0].bytes[0], 1);
    assert_int_equal(fake->parts[1].address, AT + CPU_DEEP_PIECE_BYTES);
    assert_int_equal(fake->parts[1].bytes[CPU_DEEP_PIECE_BYTES - 1], 2);
    /* Once: a second sample of the same moment has none of its own. */
    assert_int_equal(find(fake, moment), 0);
    struct cpu_moment of_other = moment;
    of_other.tid = 8;
    assert_int_equal(find(fake, of_other), 1);
    assert_int_equal(fake->parts[0].bytes[0], 9);
}

static void a_piece_of_another_moment_is_not_taken(void **state)
{
    struct fake *fake = *state;
    assert_true(put(fake, &template, 1));
    struct cpu_moment others[] = {moment, moment, moment, moment, moment};
    others[0].time_ns += 1;
    others[1].time_ns -= 1;
    others[2].sp += 8;
    others[3].pc += 1;
    others[4].tid += 1;
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_int_equal(find(fake, others[i]), 0);
    assert_int_equal(find(fake, moment), 1);
}

/* Linux before 6.2. */
static void without_the_samples_time_it_must_follow_at_once(void **state)
{
    struct fake *fake = *state;
    struct cpu_deep_piece piece = template;
    piece.flags = 0;
    assert_true(put(fake, &piece, 1));
    struct cpu_moment before = moment, late = moment, near = moment;
    before.time_ns = piece.copied_ns - 1;
    late.time_ns = piece.copied_ns + CPU_DEEP_NEAR_NS + 1;
    near.time_ns = piece.copied_ns + CPU_DEEP_NEAR_NS;
    assert_int_equal(find(fake, before), 0);
    assert_int_equal(find(fake, late), 0);
    assert_int_equal(find(fake, near), 1);
}

static void pages_that_could_not_be_read_are_not_there(void **state)
{
    struct fake *fake = *state;
    struct cpu_deep_piece piece = template;
    piece.pages = 0x8d; /* 0, 2, 3 and 7 */
    assert_true(put(fake, &piece, 1));
    assert_int_equal(find(fake, moment), 3);
    assert_int_equal(fake->parts[0].address, AT);
    assert_int_equal(fake->parts[0].len, CPU_DEEP_PAGE_BYTES);
    assert_int_equal(fake->parts[1].address, AT + 2 * CPU_DEEP_PAGE_BYTES);
    assert_int_equal(fake->parts[1].len, 2 * CPU_DEEP_PAGE_BYTES);
    assert_int_equal(fake->parts[2].address, AT + 7 * CPU_DEEP_PAGE_BYTES);
    assert_ptr_equal(fake->parts[2].bytes + CPU_DEEP_PAGE_BYTES,
                     fake->parts[0].bytes + CPU_DEEP_PIECE_BYTES);
}

static void a_stack_in_the_worst_of_shapes_stays_within_bounds(void **state)
{
    struct fake *fake = *state;
    struct cpu_deep_piece piece = template;
    piece.pages = 0x55;
    for (int i = 0; i < 15; i++, piece.address += CPU_DEEP_PIECE_BYTES)
        assert_true(put(fake, &piece, 1));
    assert_int_equal(find(fake, moment), 15 * 4);
    assert_true(find(fake, moment) <= CPU_DEEP_PARTS_MAX);
}

static void pieces_whose_sample_was_lost_give_their_space_back(void **state)
{
    struct fake *fake = *state;
    struct cpu_deep_piece piece = template;
    enum { ROUNDS = 100 };
    for (int i = 0; i < ROUNDS; i++, piece.time_ns += 10 * MS) {
        assert_true(put(fake, &piece, 1)); /* there is always room */
        struct cpu_moment later = {.time_ns = piece.time_ns + 5 * MS, .tid = 1};
        assert_int_equal(find(fake, later), 0);
    }
    cpu_pieces_settle(&fake->pieces, UINT64_MAX);
    assert_int_equal(fake->pieces.unmatched, ROUNDS);
    assert_int_equal(fake->ring.consumer, fake->ring.producer);
}

static void a_piece_is_kept_until_its_sample_may_have_come(void **state)
{
    struct fake *fake = *state;
    assert_true(put(fake, &template, 1));
    cpu_pieces_look(&fake->pieces);
    cpu_pieces_settle(&fake->pieces, template.time_ns);
    assert_int_equal(fake->ring.consumer, 0);
    assert_int_equal(find(fake, moment), 1);
    cpu_pieces_settle(&fake->pieces, template.time_ns + 2 * CPU_DEEP_LATE_NS);
    assert_int_equal(fake->ring.consumer, fake->ring.producer);
    assert_int_equal(fake->pieces.unmatched, 0);
}

static void what_is_no_piece_is_refused(void **state)
{
    struct fake *fake = *state;
    static const uint8_t bytes[64];
    assert_true(fake_ring_put(&fake->ring, bytes, sizeof(bytes), 0));
    assert_true(put(fake, &template, 1));
    assert_int_equal(find(fake, moment), 1);
    assert_int_equal(fake->pieces.refused, 1);
}

static void more_pieces_than_one_stack_has_are_refused(void **state)
{
    struct fake *fake = *state;
    struct cpu_deep_piece piece = template;
    for (int i = 0; i < CPU_DEEP_PIECES_MAX + 2; i++) {
        if (!put(fake, &piece, 1)) {
            cpu_pieces_look(&fake->pieces);
            fake->ring.consumer = fake->ring.producer; /* room by force */
            assert_true(put(fake, &piece, 1));
        }
    }
    cpu_pieces_look(&fake->pieces);
    assert_int_equal(fake->pieces.refused, 2);
    assert_int_equal(fake->pieces.len, 1);
}

#define TOP UINT64_C(0x7f0000800000)

static void a_complete_walk_teaches_where_the_stack_begins(void **state)
{
    (void)state;
    struct cpu_tops tops = {.map_fd = -1};
    assert_int_equal(cpu_tops_get(&tops, 7), CPU_DEEP_NEVER);
    cpu_tops_learn(&tops, 7, UNWIND_ROOT, false, TOP);
    assert_in_range(cpu_tops_get(&tops, 7), TOP, TOP + 4096);
    assert_int_equal(cpu_tops_get(&tops, 8), CPU_DEEP_NEVER);
    /* That one walk ran short says nothing against it. */
    uint64_t known = cpu_tops_get(&tops, 7);
    cpu_tops_learn(&tops, 7, UNWIND_TRUNCATED, false, TOP - 100000);
    cpu_tops_learn(&tops, 7, UNWIND_NO_ROW, false, 1);
    assert_int_equal(cpu_tops_get(&tops, 7), known);
    cpu_tops_forget(&tops, 7);
    cpu_tops_forget(&tops, 9);
    assert_int_equal(cpu_tops_get(&tops, 7), CPU_DEEP_NEVER);
    map_u64_deinit(&tops.threads);
}

static void a_walk_that_ran_short_is_a_reason_to_try(void **state)
{
    (void)state;
    struct cpu_tops tops = {.map_fd = -1};
    cpu_tops_learn(&tops, 7, UNWIND_TRUNCATED, false, TOP);
    assert_int_equal(cpu_tops_get(&tops, 7), CPU_DEEP_TRY);
    /* Samples that were under way already do not count as failed tries. */
    for (int i = 0; i < 1000; i++)
        cpu_tops_learn(&tops, 7, UNWIND_TRUNCATED, false, TOP);
    assert_int_equal(cpu_tops_get(&tops, 7), CPU_DEEP_TRY);
    cpu_tops_learn(&tops, 7, UNWIND_ROOT, true, TOP);
    assert_in_range(cpu_tops_get(&tops, 7), TOP, TOP + 4096);
    /* Of another, nothing that could be copied was enough. */
    for (int i = 0; i < 20; i++)
        cpu_tops_learn(&tops, 8, UNWIND_TRUNCATED, i > 0, TOP);
    assert_int_equal(cpu_tops_get(&tops, 8), CPU_DEEP_NEVER);
    map_u64_deinit(&tops.threads);
}

static void threads_that_change_stacks_are_left_alone(void **state)
{
    (void)state;
    struct cpu_tops tops = {.map_fd = -1};
    for (uint64_t i = 0; i < 50; i++)
        cpu_tops_learn(&tops, 7, UNWIND_ROOT, false, TOP + i % 2 * 65536);
    assert_int_equal(cpu_tops_get(&tops, 7), CPU_DEEP_NEVER);
    cpu_tops_learn(&tops, 7, UNWIND_ROOT, false, UINT64_MAX - 300); /* no address of a stack */
    assert_int_equal(cpu_tops_get(&tops, 7), CPU_DEEP_NEVER);
    /* Whoever gets the number next begins anew. */
    cpu_tops_forget(&tops, 7);
    cpu_tops_learn(&tops, 7, UNWIND_ROOT, false, TOP);
    assert_in_range(cpu_tops_get(&tops, 7), TOP, TOP + 4096);
    map_u64_deinit(&tops.threads);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sample_finds_its_own_pieces),
        TEST(a_piece_of_another_moment_is_not_taken),
        TEST(without_the_samples_time_it_must_follow_at_once),
        TEST(pages_that_could_not_be_read_are_not_there),
        TEST(a_stack_in_the_worst_of_shapes_stays_within_bounds),
        TEST(pieces_whose_sample_was_lost_give_their_space_back),
        TEST(a_piece_is_kept_until_its_sample_may_have_come),
        TEST(what_is_no_piece_is_refused),
        TEST(more_pieces_than_one_stack_has_are_refused),
        cmocka_unit_test(a_complete_walk_teaches_where_the_stack_begins),
        cmocka_unit_test(a_walk_that_ran_short_is_a_reason_to_try),
        cmocka_unit_test(threads_that_change_stacks_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
