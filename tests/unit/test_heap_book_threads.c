/* Promises of the book where threads run at once: nothing is lost, and where the program orders its
 * calls, the peak is exact. */
#include "heap_book_rig.h"

#include <pthread.h>
#include <stdio.h>

enum { PIECES = 400, ROUNDS = 150, STORM = 300000, SHELVES = 512 };

static pthread_barrier_t barrier;

/* ---- rounds with a known answer ---- */

static struct {
    uint64_t sizes[RIG_THREADS][PIECES];
    bool live[RIG_THREADS][PIECES];
    uint64_t expected_live, expected_peak;
} phased;

static unsigned slot_of(unsigned t, unsigned piece)
{
    return t * 100000 + piece * 3;
}

static void piece_allocate(struct heap_thread *by, unsigned t, unsigned piece, uint64_t size)
{
    phased.sizes[t][piece] = size;
    phased.live[t][piece] = true;
    heap_book_allocated(by, rig_memory(slot_of(t, piece)), size, 2 + piece % 5);
}

static uint64_t piece_free(struct heap_thread *by, unsigned t, unsigned piece)
{
    phased.live[t][piece] = false;
    heap_book_freed(by, rig_memory(slot_of(t, piece)));
    return phased.sizes[t][piece];
}

static void expect(int64_t change)
{
    phased.expected_live += (uint64_t)change;
    if (phased.expected_live > phased.expected_peak)
        phased.expected_peak = phased.expected_live;
}

/* All allocate at once: the peak is at the end, whatever their order. */
static void round_of_growth(unsigned t, uint64_t *seed)
{
    for (unsigned piece = 0; piece < PIECES; piece++)
        if (!phased.live[t][piece] && rig_random(seed) % 3 > 0)
            piece_allocate(&rig_threads[t], t, piece, rig_random(seed) % 2000);
}

/* All free, each another thread's. */
static void round_of_decline(unsigned t, uint64_t *seed)
{
    unsigned of = (t + 3) % RIG_THREADS;
    uint64_t keep = rig_random(seed) % 4;
    for (unsigned piece = 0; piece < PIECES; piece++)
        if (phased.live[of][piece] && piece % 4 >= keep)
            piece_free(&rig_threads[t], of, piece);
}

/* One alone does as it likes, while the others have room of their own: what they have is taken
 * into account. */
static void round_of_one(unsigned t, uint64_t *seed)
{
    for (unsigned i = 0; i < 3 * PIECES; i++) {
        unsigned of = (unsigned)rig_random(seed) % RIG_THREADS;
        unsigned piece = (unsigned)rig_random(seed) % PIECES;
        if (phased.live[of][piece]) {
            expect(-(int64_t)piece_free(&rig_threads[t], of, piece));
        } else {
            uint64_t size = rig_random(seed) % 5000;
            expect((int64_t)size);
            piece_allocate(&rig_threads[t], of, piece, size);
        }
    }
}

static uint64_t live_by_piece(void)
{
    uint64_t live = 0;
    for (unsigned t = 0; t < RIG_THREADS; t++)
        for (unsigned piece = 0; piece < PIECES; piece++)
            live += phased.live[t][piece] ? phased.sizes[t][piece] : 0;
    return live;
}

/* What the peak was made of. */
static uint64_t peak_by_cell(void)
{
    uint64_t bytes = 0, count = 0;
    for (unsigned i = 0; i < heap_process->cells; i++) {
        bytes += (uint64_t)rig_peak_bytes_of(&heap_cells[i]);
        count += (uint64_t)rig_peak_count_of(&heap_cells[i]);
    }
    return count > 0 ? bytes : 0;
}

/* cmocka's own checks are not for threads: they would jump. */
static void check_round(void)
{
    phased.expected_live = live_by_piece();
    expect(0);
    if (rig_live() != phased.expected_live || rig_peak() != phased.expected_peak ||
        peak_by_cell() != phased.expected_peak) {
        fprintf(stderr, "live %zu, %zu expected; peak %zu (cells %zu), %zu expected\n",
                (size_t)rig_live(), (size_t)phased.expected_live, (size_t)rig_peak(),
                (size_t)peak_by_cell(), (size_t)phased.expected_peak);
        abort();
    }
}

static void *rounds(void *context)
{
    unsigned t = (unsigned)((struct heap_thread *)context - rig_threads);
    uint64_t seed = 99 + t * 31;
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (round % 3 == 0)
            round_of_growth(t, &seed);
        pthread_barrier_wait(&barrier);
        if (t == 0)
            check_round();
        pthread_barrier_wait(&barrier);
        if (round % 3 == 1)
            round_of_decline(t, &seed);
        pthread_barrier_wait(&barrier);
        if (t == 0)
            check_round();
        pthread_barrier_wait(&barrier);
        if (round % 3 == 2 && t == round % RIG_THREADS)
            round_of_one(t, &seed);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void run(void *(*what)(void *))
{
    pthread_t threads[RIG_THREADS];
    assert_int_equal(pthread_barrier_init(&barrier, NULL, RIG_THREADS), 0);
    for (unsigned t = 0; t < RIG_THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, what, &rig_threads[t]), 0);
    for (unsigned t = 0; t < RIG_THREADS; t++)
        pthread_join(threads[t], NULL);
    pthread_barrier_destroy(&barrier);
}

static void the_peak_of_threads_that_wait_for_one_another_is_exact(void **state)
{
    (void)state;
    rig_begin(false);
    memset(&phased, 0, sizeof(phased));
    run(rounds);
    check_round();
    /* All ways were gone: room was lent, taken back, and the peak was climbed to together. */
    assert_true(heap_process->peak_epoch > 20);
    assert_true(heap_room.way / HEAP_ROOM_WAYS > 20);
}

/* ---- all at once ---- */

static void *shelves[SHELVES]; /* memory that waits for whoever frees it */
static _Atomic uint64_t next_slot;
static struct {
    _Alignas(64) uint64_t allocations, bytes, freed, freed_bytes;
} storms[RIG_THREADS];
static uint64_t size_of_slot(uint64_t slot)
{
    return slot * 2654435761u % 3000;
}

static void *storm(void *context)
{
    struct heap_thread *thread = context;
    unsigned t = (unsigned)(thread - rig_threads);
    uint64_t seed = 7 + t;
    for (unsigned i = 0; i < STORM; i++) {
        uint64_t slot = next_slot++;
        const void *memory = rig_memory(slot);
        uint64_t size = size_of_slot(slot);
        heap_book_allocated(thread, memory, size, 2 + (uint32_t)(slot % 9));
        storms[t].allocations++;
        storms[t].bytes += size;
        /* Waves: shelves fill and empty. */
        void *other = (void *)(uintptr_t)memory;
        if (i / 20000 % 2 == 0 || rig_random(&seed) % 2)
            other = __atomic_exchange_n(&shelves[rig_random(&seed) % SHELVES], other,
                                        __ATOMIC_ACQ_REL);
        if (!other)
            continue;
        heap_book_freed(thread, other);
        storms[t].freed++;
        storms[t].freed_bytes += size_of_slot(((uint64_t)other - (uint64_t)rig_memory(0)) / 8);
    }
    return NULL;
}

static void nothing_is_lost_when_all_run_at_once(void **state)
{
    (void)state;
    rig_begin(false);
    memset(storms, 0, sizeof(storms));
    memset(shelves, 0, sizeof(shelves));
    next_slot = 0;
    run(storm);
    uint64_t live = 0, allocations = 0, bytes = 0, freed_bytes = 0, frees = 0;
    for (unsigned t = 0; t < RIG_THREADS; t++) {
        live += storms[t].bytes - storms[t].freed_bytes;
        uint64_t own = 0, own_frees = 0;
        for (uint32_t node = 2; node < 11; node++) {
            own += rig_cell(t, node)->allocations;
            own_frees += rig_cell(t, node)->frees;
            bytes += rig_cell(t, node)->allocated_bytes;
            freed_bytes += rig_cell(t, node)->freed_bytes;
        }
        assert_int_equal(own, storms[t].allocations);
        assert_int_equal(own_frees, storms[t].freed);
        allocations += own;
        frees += own_frees;
        assert_int_equal(places()[t].unseen_frees + places()[t].missed, 0);
    }
    assert_int_equal(allocations, (uint64_t)RIG_THREADS * STORM);
    assert_int_equal(bytes - freed_bytes, live);
    assert_int_equal(rig_live(), live);
    /* What lived at the peak cannot be more than shelves and hands hold, nor less than now. */
    assert_true(rig_peak() >= live);
    assert_true(rig_peak() <= (uint64_t)(SHELVES + 2 * RIG_THREADS) * 3000);
    assert_true(allocations - frees <= SHELVES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peak_of_threads_that_wait_for_one_another_is_exact),
        cmocka_unit_test(nothing_is_lost_when_all_run_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
