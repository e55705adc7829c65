/* Promises of the book in preload/heap.h: whatever a program does, totals, the peak and what it was
 * made of are those that a simple count of everything gives. */
#include "heap_book_rig.h"

#include <math.h>

/* ---- everything, counted the simple way ---- */

enum { SLOTS = 3000, MODEL_THREADS = 4, MODEL_NODES = 20, STEPS = 200000, RECENT_MAX = 16 };

struct model_cell {
    uint64_t allocations, allocated_bytes, frees, freed_bytes, temporary, temporary_bytes;
    uint64_t grown, grown_bytes, moved, chain_max, size_max, lived;
    int64_t peak_count, peak_bytes;
};
struct model_piece {
    bool live;
    uint64_t size, chain;
    uint32_t node, tick;
    unsigned thread;
    uint64_t number; /* of its thread's allocations */
};
static struct {
    struct model_cell cells[MODEL_THREADS][MODEL_NODES];
    struct model_piece pieces[SLOTS];
    uint64_t allocations[MODEL_THREADS]; /* so far */
    uint64_t live, peak;
    bool at_peak;
    uint64_t sizes[HEAP_SIZES], lives[HEAP_LIVES];
} model;

static void model_snapshot(void)
{
    for (unsigned t = 0; t < MODEL_THREADS; t++) {
        for (unsigned n = 0; n < MODEL_NODES; n++) {
            struct model_cell *cell = &model.cells[t][n];
            cell->peak_count = (int64_t)(cell->allocations - cell->frees);
            cell->peak_bytes = (int64_t)(cell->allocated_bytes - cell->freed_bytes);
        }
    }
    model.at_peak = false;
}

/* A free ends the climb, and so does a reallocation to less. */
static void model_live(uint64_t less, uint64_t more, bool frees)
{
    if (frees && model.at_peak)
        model_snapshot();
    model.live += more - less;
    if (model.live > model.peak) {
        model.peak = model.live;
        model.at_peak = true;
    }
}

static struct model_cell *model_allocated(unsigned slot, unsigned t, uint64_t size, uint32_t node)
{
    model.pieces[slot] = (struct model_piece){
        .live = true,
        .size = size,
        .node = node,
        .tick = rig_header.tick,
        .thread = t,
        .number = ++model.allocations[t],
    };
    struct model_cell *cell = &model.cells[t][node];
    cell->allocations++;
    cell->allocated_bytes += size;
    cell->size_max = size > cell->size_max ? size : cell->size_max;
    model.sizes[heap_bucket(size, HEAP_SIZES)]++;
    return cell;
}

static void model_freed(unsigned slot, unsigned t)
{
    struct model_piece *piece = &model.pieces[slot];
    struct model_cell *cell = &model.cells[t][piece->node];
    uint32_t lived = rig_header.tick - piece->tick;
    cell->frees++;
    cell->freed_bytes += piece->size;
    cell->lived += lived;
    model.lives[heap_bucket(lived, HEAP_LIVES)]++;
    if (piece->thread == t && model.allocations[t] - piece->number < rig_header.temporary_within) {
        cell->temporary++;
        cell->temporary_bytes += piece->size;
    }
    piece->live = false;
}

static void step_free(unsigned slot, unsigned t)
{
    model_live(model.pieces[slot].size, 0, true);
    model_freed(slot, t);
    heap_book_freed(&rig_threads[t], rig_memory(slot));
}

static void step_realloc(unsigned slot, unsigned to, unsigned t, uint64_t size, uint32_t node)
{
    struct model_piece before = model.pieces[slot];
    struct heap_entry_row row = heap_book_take(&rig_threads[t], rig_memory(slot));
    if (size % 16 == 3) { /* it failed */
        heap_book_put_back(&rig_threads[t], rig_memory(slot), &row);
        return;
    }
    model_live(before.size, size, size < before.size);
    model_freed(slot, t);
    struct model_cell *cell = model_allocated(to, t, size, node);
    model.pieces[to].chain = before.chain + (size > before.size && before.chain < 15);
    if (size > before.size) {
        cell->grown++;
        cell->grown_bytes += size - before.size;
        cell->moved += to != slot;
        if (model.pieces[to].chain > cell->chain_max)
            cell->chain_max = model.pieces[to].chain;
    }
    heap_book_reallocated(&rig_threads[t], rig_memory(slot), &row, rig_memory(to), size, node);
}

/* Phases in which memory grows, shrinks and stays, so that the peak is left and reached again. */
static void step(uint64_t *seed, unsigned number, unsigned threads)
{
    unsigned slot = (unsigned)(rig_random(seed) % SLOTS), t = (unsigned)rig_random(seed) % threads;
    uint32_t node = 1 + (uint32_t)(rig_random(seed) % (MODEL_NODES - 1));
    uint64_t size = rig_random(seed) % 64 == 0 ? rig_random(seed) % 100000 : rig_random(seed) % 300;
    unsigned grow = number / 5000 % 3 == 0 ? 90 : number / 5000 % 3 == 1 ? 30 : 50;
    rig_header.tick += number % 100 == 0 ? (uint32_t)(rig_random(seed) % 50) : 0;
    if (!model.pieces[slot].live) {
        if (rig_random(seed) % 100 >= grow)
            return;
        model_live(0, size, false);
        model_allocated(slot, t, size, node);
        heap_book_allocated(&rig_threads[t], rig_memory(slot), size, node);
        if (rig_random(seed) % 4 == 0)
            step_free(slot, (unsigned)rig_random(seed) % 8 == 0 ? (t + 1) % threads : t);
    } else if (rig_random(seed) % 8 == 0) {
        unsigned to = (unsigned)(rig_random(seed) % SLOTS);
        step_realloc(slot, model.pieces[to].live ? slot : to, t, size, node);
    } else if (rig_random(seed) % 100 >= grow) {
        step_free(slot, t);
    }
}

static void cell_is(const struct heap_cell *cell, const struct model_cell *expected)
{
    assert_int_equal(cell->allocations, expected->allocations);
    assert_int_equal(cell->allocated_bytes, expected->allocated_bytes);
    assert_int_equal(cell->frees, expected->frees);
    assert_int_equal(cell->freed_bytes, expected->freed_bytes);
    assert_int_equal(cell->temporary, expected->temporary);
    assert_int_equal(cell->temporary_bytes, expected->temporary_bytes);
    assert_int_equal(cell->grown, expected->grown);
    assert_int_equal(cell->grown_bytes, expected->grown_bytes);
    assert_int_equal(cell->moved, expected->moved);
    assert_int_equal(cell->chain_max, expected->chain_max);
    assert_int_equal(cell->size_max, expected->size_max);
    assert_int_equal(cell->lived_ticks, expected->lived);
    assert_int_equal(rig_peak_count_of(cell), expected->peak_count);
    assert_int_equal(rig_peak_bytes_of(cell), expected->peak_bytes);
}

static void all_is_as_counted(void)
{
    static const struct model_cell nothing;
    assert_int_equal(rig_live(), model.live);
    assert_int_equal(rig_peak(), model.peak);
    bool at_peak = model.at_peak;
    if (at_peak)
        model_snapshot();
    model.at_peak = at_peak;
    for (unsigned t = 0; t < MODEL_THREADS; t++) {
        for (uint32_t n = 1; n < MODEL_NODES; n++) {
            struct heap_cell *cell = rig_cell(t, n);
            if (cell)
                cell_is(cell, &model.cells[t][n]);
            else
                assert_memory_equal(&model.cells[t][n], &nothing, sizeof(nothing));
        }
    }
    for (unsigned b = 0; b < HEAP_SIZES; b++) {
        uint64_t sum = 0;
        for (unsigned t = 0; t < MODEL_THREADS; t++)
            sum += places()[t].sizes[b];
        assert_int_equal(sum, model.sizes[b]);
    }
    for (unsigned b = 0; b < HEAP_LIVES; b++) {
        uint64_t sum = 0;
        for (unsigned t = 0; t < MODEL_THREADS; t++)
            sum += places()[t].lives[b];
        assert_int_equal(sum, model.lives[b]);
    }
}

static void random_program(uint64_t seed, unsigned threads, bool alone, uint32_t within)
{
    memset(&model, 0, sizeof(model));
    rig_begin(alone);
    rig_header.temporary_within = within;
    for (unsigned i = 0; i < STEPS; i++) {
        step(&seed, i, threads);
        if (i % 4999 == 0)
            all_is_as_counted();
    }
    all_is_as_counted();
    for (unsigned t = 0; t < threads; t++) {
        assert_int_equal(places()[t].unseen_frees, 0);
        assert_int_equal(places()[t].no_cell + places()[t].no_entry + places()[t].missed, 0);
    }
    assert_true(heap_process->peak_epoch > 100);
}

static void a_thread_that_is_alone_is_counted_exactly(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        rig_apart = seed % 2 == 0; /* though here they are not: all is told from each other still */
        random_program(seed * 7919, 1, true, (uint32_t)seed * 2 - 1);
    }
}

/* In turns, so that there is one right answer; in the ways that several threads need. */
static void threads_in_turns_are_counted_exactly(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        rig_apart = seed % 2 == 0;
        random_program(seed * 104729, MODEL_THREADS, false, (uint32_t)seed * 4);
    }
}

/* Threads come and go; who is alone again has what the others left. */
static void who_is_alone_again_is_counted_exactly(void **state)
{
    (void)state;
    uint64_t seed = 271828;
    memset(&model, 0, sizeof(model));
    rig_begin(true);
    for (unsigned i = 0; i < STEPS; i++) {
        bool alone = i / 3000 % 2 == 0;
        for (unsigned t = 0; t < MODEL_THREADS; t++)
            rig_threads[t].alone = alone;
        step(&seed, i, alone ? 1 : MODEL_THREADS);
        if (i % 2999 == 0) {
            all_is_as_counted();
            assert_true(!alone || way_of(heap_room.way) == HEAP_ROOM_COMMON || i % 3000 < 10);
        }
    }
    all_is_as_counted();
}

static void a_climb_together_ends_with_who_is_left(void **state)
{
    (void)state;
    rig_begin(false);
    for (unsigned i = 0; i < 4000; i++)
        heap_book_allocated(&rig_threads[i % 4], rig_memory(i * 4), 100, 2);
    assert_true(way_of(heap_room.way) == HEAP_ROOM_CLIMB);
    assert_int_equal(rig_peak(), 400000);
    rig_threads[0].alone = true;
    heap_book_freed(&rig_threads[0], rig_memory(0));
    assert_true(way_of(heap_room.way) == HEAP_ROOM_COMMON);
    assert_int_equal(heap_process->peak_bytes, 400000);
    assert_int_equal(rig_live(), 399900);
}

static void far_below_the_peak_threads_have_room_of_their_own(void **state)
{
    (void)state;
    rig_begin(false);
    for (unsigned i = 0; i < 10; i++)
        heap_book_allocated(&rig_threads[0], rig_memory(i * 4), 1000000, 2);
    for (unsigned i = 1; i < 10; i++)
        heap_book_freed(&rig_threads[0], rig_memory(i * 4));
    for (unsigned i = 0; i < 1000; i++)
        heap_book_allocated(&rig_threads[i % 8], rig_memory(1000 + i * 4), 10, 3);
    assert_true(way_of(heap_room.way) == HEAP_ROOM_LENT);
    assert_true(places()[7].credit > 0);
    assert_int_equal(rig_live(), 1010000);
    for (unsigned i = 1; i < 11; i++) /* what the others have is not passed over */
        heap_book_allocated(&rig_threads[1], rig_memory(i * 4), 1000000, 2);
    assert_int_equal(rig_peak(), 11010000);
}

/* ---- single promises ---- */

static void book(unsigned t, unsigned slot, uint64_t size, uint32_t node)
{
    heap_book_allocated(&rig_threads[t], rig_memory(slot), size, node);
}
static void unbook(unsigned t, unsigned slot)
{
    heap_book_freed(&rig_threads[t], rig_memory(slot));
}

static void temporary_is_what_its_thread_frees_before_its_next(void **state)
{
    (void)state;
    rig_begin(false);
    book(0, 1, 10, 2);
    unbook(0, 1); /* yes */
    book(0, 1, 10, 2);
    book(1, 2, 10, 2); /* another thread's does not matter */
    unbook(1, 2);      /* yes, in thread 1 */
    unbook(0, 1);      /* yes */
    book(0, 1, 10, 2);
    book(0, 2, 10, 2);
    unbook(0, 1);
    unbook(0, 2); /* yes: no allocation came in between */
    book(0, 3, 10, 2);
    unbook(1, 3); /* freed by another */
    book(1, 3, 10, 2);
    unbook(0, 3); /* it lies where thread 0's last one did, but is not its */
    assert_int_equal(rig_cell(0, 2)->temporary, 3);
    assert_int_equal(rig_cell(0, 2)->temporary_bytes, 30);
    assert_int_equal(rig_cell(1, 2)->temporary, 1);
}

static void what_realloc_is_given_right_after_was_temporary(void **state)
{
    (void)state;
    rig_begin(true);
    book(0, 1, 10, 2);
    struct heap_entry_row row = heap_book_take(&rig_threads[0], rig_memory(1));
    heap_book_reallocated(&rig_threads[0], rig_memory(1), &row, rig_memory(1), 20, 3);
    assert_int_equal(rig_cell(0, 2)->temporary, 1);
    row = heap_book_take(&rig_threads[0], rig_memory(1));
    heap_book_reallocated(&rig_threads[0], rig_memory(1), &row, NULL, 0, 0);
    assert_int_equal(rig_cell(0, 3)->temporary, 1);
    assert_int_equal(rig_live(), 0);
    assert_int_equal(rig_cell(0, 3)->grown, 1);
    assert_int_equal(rig_peak(), 20);
}

static void memory_of_the_parent_is_told_apart(void **state)
{
    (void)state;
    rig_begin(true);
    book(0, 1, 100, 2);
    book(0, 2, 1000, 2);
    book(0, 3, 10000, 2);
    heap_room = (struct heap_room){.way = HEAP_ROOM_LENT,
                                   .lock = 1}; /* by a thread that is no more */
    rig_window(true);
    heap_book_forked();
    assert_int_equal(heap_room.lock + heap_room.way, 0);
    assert_int_equal(rig_live(), 0);
    unbook(0, 1);
    struct heap_entry_row row = heap_book_take(&rig_threads[0], rig_memory(2));
    heap_book_reallocated(&rig_threads[0], rig_memory(2), &row, rig_memory(4), 2000, 3);
    assert_int_equal(places()[0].inherited_frees, 2);
    assert_int_equal(places()[0].inherited_bytes, 1100);
    assert_null(rig_cell(0, 2));
    assert_int_equal(rig_cell(0, 3)->allocations, 1);
    assert_int_equal(rig_cell(0, 3)->grown, 0);
    book(0, 5, 50, 4);
    unbook(0, 5);
    assert_int_equal(rig_cell(0, 4)->frees, 1);
    assert_int_equal(rig_live(), 2000);
    assert_int_equal(rig_peak(), 2050);
    assert_int_equal(places()[0].unseen_frees, 0);
}

static void memory_that_was_not_seen_is_told(void **state)
{
    (void)state;
    rig_begin(true);
    unbook(0, 1);
    book(0, 2, 10, 2);
    unbook(0, 2);
    unbook(0, 2);
    heap_book_freed(&rig_threads[0], (const void *)UINT64_C(0x10));
    struct heap_entry_row row = heap_book_take(&rig_threads[0], rig_memory(9));
    assert_int_equal(row.node, 0);
    heap_book_reallocated(&rig_threads[0], rig_memory(9), &row, rig_memory(10), 7, 3);
    assert_int_equal(places()[0].unseen_frees, 4);
    assert_int_equal(rig_live(), 7);
    row = (struct heap_entry_row){0};
    heap_book_reallocated(&rig_threads[0], NULL, &row, rig_memory(11), 7, 3); /* realloc(NULL) */
    assert_int_equal(places()[0].unseen_frees, 4);
}

static void what_is_handed_out_anew_was_freed(void **state)
{
    (void)state;
    rig_begin(true);
    book(0, 1, 100, 2);
    book(0, 1, 30, 3);
    assert_int_equal(rig_live(), 30);
    assert_int_equal(rig_cell(0, 2)->frees, 1);
    assert_int_equal(places()[0].missed, 1);
}

static void pieces_of_eight_bytes(bool apart)
{
    rig_apart = apart;
    rig_begin(true);
    uint64_t bytes = 0;
    for (unsigned slot = 0; slot < 4096; bytes += slot, slot++)
        book(0, slot, slot, 2 + slot % 7);
    assert_int_equal(places()[0].missed, 0);
    assert_int_equal(rig_live(), bytes);
    for (unsigned slot = 0; slot < 4096; slot++)
        unbook(0, slot * 5 % 4096);
    assert_int_equal(rig_live(), 0);
    assert_int_equal(rig_peak(), bytes);
    assert_int_equal(places()[0].unseen_frees, 0);
    assert_true(heap_entries.planes_in_turn == apart);
}

static void pieces_of_eight_bytes_do_not_meet(void **state)
{
    (void)state;
    pieces_of_eight_bytes(false);
    pieces_of_eight_bytes(true);
}

static void pieces_that_lie_apart_need_one_plane(void **state)
{
    (void)state;
    rig_apart = true;
    rig_begin(true);
    for (unsigned piece = 0; piece < 1000; piece++)
        book(0, piece * 6, 40, 2);
    for (unsigned piece = 0; piece < 1000; piece++)
        unbook(0, piece * 6);
    assert_int_equal(rig_live(), 0);
    assert_false(heap_entries.planes_in_turn);
    assert_null(heap_entries.middles[1][0x7f1234000000 >> HEAP_MIDDLE_SHIFT]);
}

static void without_memory_of_our_own_totals_are_right(void **state)
{
    (void)state;
    rig_apart = false;
    rig_begin(true);
    book(0, 1, 5, 2);
    rig_no_memory = true;
    const void *elsewhere = (const void *)UINT64_C(0x550000000000);
    heap_book_allocated(&rig_threads[0], elsewhere, 100, 2);
    const void *beyond = (const void *)(UINT64_C(1) << 50);
    heap_book_allocated(&rig_threads[0], beyond, 100, 2);
    heap_book_freed(&rig_threads[0], elsewhere);
    assert_int_equal(places()[0].no_entry, 2);
    assert_int_equal(places()[0].unseen_frees, 1);
    assert_int_equal(rig_cell(0, 2)->allocated_bytes, 205);
    /* A thread that has no table of its cells counts all at "somewhere". */
    book(1, 3, 7, 5);
    unbook(1, 3);
    assert_null(rig_cell(1, 5));
    assert_int_equal(rig_cell(1, 1)->allocations, 1);
    assert_int_equal(rig_cell(1, 1)->frees, 1);
    assert_int_equal(places()[1].no_cell, 2);
    assert_int_equal(rig_live(), 205);
}

static void without_room_for_cells_totals_are_right(void **state)
{
    (void)state;
    rig_begin(false);
    heap_process->cells_max = 40;
    uint64_t allocations = 0, bytes = 0;
    for (unsigned t = 0; t < RIG_THREADS; t++)
        for (uint32_t node = 1; node < RIG_NODES; node++)
            book(t, t * RIG_NODES + node, node, node);
    for (unsigned i = 0; i < heap_process->cells_max; i++) {
        allocations += heap_cells[i].allocations;
        bytes += heap_cells[i].allocated_bytes;
    }
    assert_int_equal(allocations, RIG_THREADS * (RIG_NODES - 1));
    assert_int_equal(bytes, RIG_THREADS * (RIG_NODES - 1) * RIG_NODES / 2);
    assert_int_equal(rig_live(), bytes);
    for (unsigned t = 0; t < RIG_THREADS; t++) {
        assert_non_null(rig_cell(t, 1));
        assert_int_equal(places()[t].lost, 0);
    }
    assert_true(places()[RIG_THREADS - 1].no_cell > 50);
    assert_int_equal(heap_cells[heap_process->cells_max].node, 0);
}

static void sizes_beyond_what_an_entry_holds_come_out_even(void **state)
{
    (void)state;
    rig_begin(true);
    book(0, 1, UINT64_C(1) << 45, 2);
    book(0, 2, 1, 2);
    unbook(0, 1);
    assert_int_equal(rig_live(), 1);
    assert_int_equal(rig_peak(), UINT64_C(1) << 38);
}

static void mappings_stand_apart(void **state)
{
    (void)state;
    rig_begin(true);
    heap_book_mapped(&rig_threads[0], 4096, false, 2);
    heap_book_mapped(&rig_threads[0], 8192, true, 3);
    heap_book_mapped(&rig_threads[0], 1, false, 1);
    assert_int_equal(places()[0].mapped, 2);
    assert_int_equal(places()[0].mapped_bytes, 4097);
    assert_int_equal(places()[0].unmapped_bytes, 8192);
    assert_int_equal(rig_cell(0, 2)->allocated_bytes, 4096);
    assert_int_equal(rig_cell(0, 3)->allocations, 1);
    assert_int_equal(rig_cell(0, 1)->allocations, 0);
    assert_int_equal(rig_live(), 0);
    assert_int_equal(rig_peak(), 0);
}

static void a_log_is_told_of_everything(void **state)
{
    (void)state;
    rig_begin(true);
    rig_header.log = 1;
    assert_true(heap_book_begin(rig_apart));
    rig_logged = rig_logged_frees = 0;
    book(0, 1, 10, 2);
    struct heap_entry_row row = heap_book_take(&rig_threads[0], rig_memory(1));
    heap_book_reallocated(&rig_threads[0], rig_memory(1), &row, rig_memory(2), 20, 3);
    unbook(0, 2);
    assert_int_equal(rig_logged, 4);
    assert_int_equal(rig_logged_frees, 2);
}

/* ---- samples ---- */

enum { EVERY = 4096, DRAWS = 400000 };

/* Five deviations of what the sum of DRAWS samples has. */
static void sampled(uint64_t size)
{
    rig_begin(true);
    rig_header.sample_bytes = EVERY;
    assert_true(heap_book_begin(rig_apart));
    struct heap_thread *thread = &rig_threads[0];
    thread->random = size * 2654435761u + 1;
    thread->countdown = interval(thread);
    unsigned wanted = 0;
    static bool is_wanted[DRAWS];
    for (unsigned i = 0; i < DRAWS; i++) {
        is_wanted[i] = heap_book_wants(thread, size);
        if (is_wanted[i]) {
            book(0, i, size, 2);
            wanted++;
        }
    }
    const struct heap_cell *cell = rig_cell(0, 2);
    double counted = (double)(size + (size == 0));
    double chance = -expm1(-counted / EVERY), deviation = sqrt(DRAWS * (1 - chance) / chance);
    double rounding = DRAWS * 0.0001 + 0.5 * DRAWS * chance; /* of a byte for each sample */
    assert_int_equal(cell->samples, wanted);
    assert_true(fabs((double)cell->allocations - DRAWS) <= 5 * deviation + sqrt(DRAWS));
    assert_true(fabs((double)cell->allocated_bytes - (double)DRAWS * (double)size) <=
                5 * deviation * (double)size + rounding);
    double variance = deviation * deviation * (double)size * (double)size;
    assert_true(fabs(cell->variance - variance) <= variance * 5 / sqrt(wanted) + 1);
    assert_int_equal(rig_live(), cell->allocated_bytes);
    for (unsigned i = 0; i < DRAWS; i++)
        unbook(0, i);
    assert_int_equal(cell->frees, cell->allocations);
    assert_int_equal(cell->freed_bytes, cell->allocated_bytes);
    assert_int_equal(rig_live(), 0);
    assert_int_equal(places()[0].unseen_frees, 0);
    assert_int_equal(places()[0].sizes[heap_bucket(size, HEAP_SIZES)], cell->allocations);
}

static void samples_are_right_on_average_for_each_size(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 8, 16, 100, 1000, 3000, 4096, 6000, 20000, 1000000};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        sampled(sizes[i]);
}

static void chances_are_those_of_libm(void **state)
{
    (void)state;
    double x = 1e-9;
    for (unsigned i = 0; i < 270; i++, x *= 1.1)
        assert_true(fabs(hit_chance(x) / -expm1(-x) - 1) < 1e-12);
    for (uint64_t n = 1; n < UINT64_C(1) << 53; n += n / 7 + 1)
        assert_true(fabs(minus_ln(n) + log((double)n / 0x1p53)) < 1e-12);
}

static void every_thread_draws_its_own_beginning(void **state)
{
    (void)state;
    rig_begin(false);
    rig_header.sample_bytes = EVERY;
    assert_true(heap_book_begin(rig_apart));
    uint64_t first[RIG_THREADS];
    double sum = 0;
    for (unsigned t = 0; t < RIG_THREADS; t++) {
        for (first[t] = 1; !heap_book_wants(&rig_threads[t], 1); first[t]++)
            ;
        sum += (double)first[t];
        for (unsigned u = 0; u < t; u++)
            assert_int_not_equal(first[t], first[u]);
    }
    assert_true(sum > 100 && sum < RIG_THREADS * EVERY * 10.0);
}

/* What was not wanted is an allocation all the same. */
static void temporary_samples_know_of_calls_between(void **state)
{
    (void)state;
    rig_begin(true);
    rig_header.sample_bytes = 1 << 20;
    assert_true(heap_book_begin(rig_apart));
    struct heap_thread *thread = &rig_threads[0];
    assert_true(heap_book_wants(thread, UINT64_C(1) << 30));
    book(0, 1, UINT64_C(1) << 30, 2);
    thread->countdown = 1000;
    assert_false(heap_book_wants(thread, 1));
    unbook(0, 1);
    assert_int_equal(rig_cell(0, 2)->temporary, 0);
    assert_true(heap_book_wants(thread, UINT64_C(1) << 30));
    book(0, 1, UINT64_C(1) << 30, 2);
    thread->countdown = 1000;
    struct heap_entry_row row = heap_book_take(thread, rig_memory(1));
    assert_false(heap_book_wants(thread, 1));
    heap_book_reallocated(thread, rig_memory(1), &row, rig_memory(2), 1, 0);
    assert_int_equal(rig_cell(0, 2)->temporary, 1);
    assert_int_equal(rig_live(), 0);
    assert_true(heap_book_is_unsampled(rig_memory(1))); /* its page has been counted down to none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_is_alone_is_counted_exactly),
        cmocka_unit_test(threads_in_turns_are_counted_exactly),
        cmocka_unit_test(who_is_alone_again_is_counted_exactly),
        cmocka_unit_test(a_climb_together_ends_with_who_is_left),
        cmocka_unit_test(far_below_the_peak_threads_have_room_of_their_own),
        cmocka_unit_test(temporary_is_what_its_thread_frees_before_its_next),
        cmocka_unit_test(what_realloc_is_given_right_after_was_temporary),
        cmocka_unit_test(memory_of_the_parent_is_told_apart),
        cmocka_unit_test(memory_that_was_not_seen_is_told),
        cmocka_unit_test(what_is_handed_out_anew_was_freed),
        cmocka_unit_test(pieces_of_eight_bytes_do_not_meet),
        cmocka_unit_test(pieces_that_lie_apart_need_one_plane),
        cmocka_unit_test(without_memory_of_our_own_totals_are_right),
        cmocka_unit_test(without_room_for_cells_totals_are_right),
        cmocka_unit_test(sizes_beyond_what_an_entry_holds_come_out_even),
        cmocka_unit_test(mappings_stand_apart),
        cmocka_unit_test(a_log_is_told_of_everything),
        cmocka_unit_test(samples_are_right_on_average_for_each_size),
        cmocka_unit_test(chances_are_those_of_libm),
        cmocka_unit_test(every_thread_draws_its_own_beginning),
        cmocka_unit_test(temporary_samples_know_of_calls_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
