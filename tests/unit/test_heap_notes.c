/* Which facts about the heap are worth a sentence. Each note is tried on both sides of its bound.
 */
#include "unit.h"

#include "analyze/heap_notes.h"
#include "made_heap.h"

static struct arena arena;
static struct heap_sums sums;
static struct heap_notes notes;
static uint64_t every; /* one in so many bytes is a sample; 0: every call */

static void build(struct made_heap *made)
{
    assert_int_equal(heap_sums_build(&arena, &made->heap, &sums), 0);
    struct heap_sure sure = heap_sure_of(&sums, every);
    assert_int_equal(heap_notes_build(&arena, &sums, &sure, &notes), 0);
}

static void end(struct made_heap *made)
{
    arena_deinit(&arena);
    arena = ARENA_INIT;
    free(made);
}

static const struct heap_note *note_of(enum heap_note_kind kind)
{
    for (size_t i = 0; i < notes.count; i++)
        if (notes.notes[i].kind == kind)
            return &notes.notes[i];
    return NULL;
}

static void peak(struct made_heap *made, uint64_t bytes)
{
    made->process_rows[1] = (struct heap_process_row){true, {.peak_bytes = bytes}};
}

enum { MIB = 1 << 20, KIB = 1 << 10 };

static void what_is_not_freed_is_noted_from_a_mebibyte_and_a_tenth_of_the_peak(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, peak;
        bool noted;
    } cases[] = {{MIB, 10 * MIB, true}, {MIB - 1, 2 * MIB, false}, {MIB, 11 * MIB, false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct made_heap *made = made_heap_new();
        *made_heap_site(made, 1, "malloc;keep;main") = (struct heap_tally){
            .allocations = 3, .allocated_bytes = cases[i].bytes};
        peak(made, cases[i].peak);
        build(made);
        const struct heap_note *note = note_of(HEAP_NOTE_NOT_FREED);
        assert_int_equal(note != NULL, cases[i].noted);
        if (note)
            assert_string_equal(note->text,
                                "1.00 MiB in 3 pieces not freed at the end, 10% of the peak, keep");
        end(made);
    }
}

static void one_function_with_half_of_the_peak_is_noted(void **state)
{
    (void)state;
    for (int64_t part = 4; part <= 6; part++) {
        struct made_heap *made = made_heap_new();
        *made_heap_site(made, 1, "malloc;load;main") = (struct heap_tally){
            .allocations = 1, .peak_bytes = part * MIB, .peak_count = 1};
        peak(made, 10 * MIB);
        build(made);
        assert_int_equal(note_of(HEAP_NOTE_ONE_PLACE) != NULL, part >= 5);
        end(made);
    }
}

static void temporaries_are_noted_when_they_are_many_and_most_of_a_place(void **state)
{
    (void)state;
    static const struct {
        uint64_t temporary, here, elsewhere;
        bool noted;
    } cases[] = {{10000, 20000, 0, true},
                 {9999, 10000, 0, false},
                 {10000, 20001, 0, false},
                 {10000, 10000, 190001, false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct made_heap *made = made_heap_new();
        *made_heap_site(made, 1, "malloc;spend;main") = (struct heap_tally){
            .allocations = cases[i].here,
            .frees = cases[i].here,
            .temporary = cases[i].temporary,
            .allocated_bytes = cases[i].here * 100,
            .freed_bytes = cases[i].here * 100};
        made_heap_site(made, 1, "malloc;other;main")->allocations = cases[i].elsewhere;
        build(made);
        assert_int_equal(note_of(HEAP_NOTE_TEMPORARY) != NULL, cases[i].noted);
        end(made);
    }
}

static void small_pieces_are_noted_when_they_are_very_many(void **state)
{
    (void)state;
    static const struct {
        uint64_t count, size;
        bool noted;
    } cases[] = {{100000, 32, true}, {99999, 32, false}, {100000, 33, false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct made_heap *made = made_heap_new();
        *made_heap_site(made, 1, "malloc;node;main") = (struct heap_tally){
            .allocations = cases[i].count, .allocated_bytes = cases[i].count * cases[i].size};
        build(made);
        assert_int_equal(note_of(HEAP_NOTE_SMALL_PIECES) != NULL, cases[i].noted);
        end(made);
    }
}

static void memory_grown_in_small_steps_is_noted_when_it_moves(void **state)
{
    (void)state;
    static const struct {
        uint64_t moved, chain;
        bool noted;
    } cases[] = {{100, 8, true}, {99, 8, false}, {100, 7, false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct made_heap *made = made_heap_new();
        *made_heap_site(made, 1,
                        "realloc;append;main") = (struct heap_tally){.allocations = 500,
                                                                     .grown = 400,
                                                                     .grown_bytes = 4000,
                                                                     .moved = cases[i].moved,
                                                                     .chain_max = cases[i].chain};
        build(made);
        assert_int_equal(note_of(HEAP_NOTE_GROWN_AGAIN) != NULL, cases[i].noted);
        end(made);
    }
}

static void what_grows_at_every_snapshot_is_noted(void **state)
{
    (void)state;
    for (int64_t step = 16; step <= 32; step += 16) {
        struct made_heap *made = made_heap_new();
        *made_heap_site(made, 1, "malloc;cache;main") = (struct heap_tally){
            .allocations = 4, .allocated_bytes = 100 * KIB};
        for (uint64_t s = 0; s < 3; s++) {
            made_heap_snapshot(made, 1, 1000 * s + 1000);
            made_heap_lives(made, "malloc;cache;main", (int64_t)(s + 1) * step * KIB);
        }
        build(made);
        const struct heap_note *note = note_of(HEAP_NOTE_GROWING);
        assert_int_equal(note != NULL, step == 32);
        if (note)
            assert_string_equal(
                note->text,
                "more at each of 3 snapshots: 32.0 KiB to 96.0 KiB, 32.0 KiB a second, cache");
        end(made);
    }
}

static void resident_memory_far_above_the_heap_is_noted(void **state)
{
    (void)state;
    static const struct {
        uint64_t live, rss;
        bool noted;
    } cases[] = {{64 * MIB, 128 * MIB, true},
                 {64 * MIB, 128 * MIB - 1, false},
                 {65 * MIB, 129 * MIB, false},
                 {64 * MIB, 0, false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct made_heap *made = made_heap_new();
        made_heap_site(made, 1, "malloc;main")->allocations = 1;
        peak(made, cases[i].live);
        made->moments[0] = (struct heap_moment){1, 1000, cases[i].live / 2, 900 * (uint64_t)MIB};
        made->moments[1] = (struct heap_moment){1, 2000, cases[i].live, cases[i].rss};
        made->moments[2] = (struct heap_moment){2, 2000, cases[i].live * 4, 900 * (uint64_t)MIB};
        made->heap.moment_count = 3;
        if (cases[i].rss == 0)
            made->moments[0].rss_bytes = 0;
        build(made);
        assert_int_equal(note_of(HEAP_NOTE_RESIDENT) != NULL, cases[i].noted);
        end(made);
    }
}

static void calls_that_failed_are_noted(void **state)
{
    (void)state;
    struct made_heap *made = made_heap_new();
    made_heap_site(made, 1, "malloc;main")->allocations = 1;
    build(made);
    assert_int_equal(notes.count, 0);
    made->process_rows[1] = (struct heap_process_row){true, {.failed = 1}};
    build(made);
    assert_string_equal(note_of(HEAP_NOTE_FAILED)->text, "1 call returned no memory");
    end(made);
}

static void of_a_kind_the_largest_are_kept_and_the_rest_counted(void **state)
{
    (void)state;
    struct made_heap *made = made_heap_new();
    static const char *const stacks[] = {"malloc;a;main", "malloc;b;main", "malloc;c;main",
                                         "malloc;d;main", "malloc;e;main"};
    for (size_t i = 0; i < 5; i++)
        *made_heap_site(made, 1, stacks[i]) = (struct heap_tally){
            .allocations = 1, .allocated_bytes = (uint64_t)(i + 1) * MIB};
    peak(made, 5 * MIB);
    build(made);
    assert_int_equal(notes.count, HEAP_NOTES_MAX);
    assert_int_equal(notes.left_out, 2);
    assert_int_equal(notes.notes[0].bytes, 5 * MIB);
    end(made);
}

/* Figures are estimates then, and said to be; what was counted one by one is not. */
static void what_samples_tell_is_said_with_a_tilde(void **state)
{
    (void)state;
    static const char *const texts[HEAP_NOTE_KINDS] = {
        [HEAP_NOTE_GROWING] = "more at each of 3 snapshots: ~32.0 MiB to ~96.0 MiB, "
                              "~32.0 MiB a second, keep",
        [HEAP_NOTE_NOT_FREED] = "~64.0 MiB (95%: 64.0 MiB to 64.0 MiB) in ~70,000 pieces not "
                                "freed at the end, ~100% of the peak, keep",
        [HEAP_NOTE_ONE_PLACE] = "~100% of the peak is of one function: ~64.0 MiB (95%: 64.0 MiB to "
                                "64.0 MiB) in ~70,000 pieces, keep",
        [HEAP_NOTE_TEMPORARY] = "~90,000 (95%: 90,000 to 90,003) of ~100,000 allocations (~90%) "
                                "freed right after they were made, ~1.91 MiB together, spend",
        [HEAP_NOTE_SMALL_PIECES] = "~100,000 (95%: 100,000 to 100,003) allocations of ~20 B on "
                                   "average, ~59% of all, spend",
        [HEAP_NOTE_GROWN_AGAIN] = "the same memory grown up to 9 times in turn: ~400 reallocations "
                                  "to a larger size, ~300 of them moved, keep",
        [HEAP_NOTE_RESIDENT] = "when the heap held ~64.0 MiB, 200 MiB were resident: what the "
                               "allocator keeps, mappings, stacks and code are not heap",
        [HEAP_NOTE_FAILED] = "2 calls returned no memory",
    };
    struct made_heap *made = made_heap_new();
    *made_heap_site(made, 1, "malloc;keep;main") = (struct heap_tally){.allocations = 70000,
                                                                       .allocated_bytes = 64 * MIB,
                                                                       .peak_bytes = 64 * MIB,
                                                                       .peak_count = 70000,
                                                                       .grown = 400,
                                                                       .grown_bytes = 4000,
                                                                       .moved = 300,
                                                                       .chain_max = 9};
    *made_heap_site(made, 1, "malloc;spend;main") = (struct heap_tally){.allocations = 100000,
                                                                        .frees = 100000,
                                                                        .temporary = 90000,
                                                                        .temporary_bytes = 2000000,
                                                                        .allocated_bytes = 2000000,
                                                                        .freed_bytes = 2000000};
    for (uint64_t s = 0; s < 3; s++) {
        made_heap_snapshot(made, 1, 1000 * s + 1000);
        made_heap_lives(made, "malloc;keep;main", (int64_t)(s + 1) * 32 * MIB);
    }
    peak(made, 64 * MIB);
    made->process_rows[1].tally.failed = 2;
    made->moments[0] = (struct heap_moment){1, 1000, 64 * MIB, 200 * (uint64_t)MIB};
    made->heap.moment_count = 1;
    every = 1;
    build(made);
    every = 0;
    for (int kind = 0; kind < HEAP_NOTE_KINDS; kind++) {
        assert_non_null(note_of((enum heap_note_kind)kind));
        assert_string_equal(note_of((enum heap_note_kind)kind)->text, texts[kind]);
    }
    end(made);
}

/* `--sample 512KiB` saw two pieces: 1.00 MiB ± 1.39 MiB. */
static void of_what_may_as_well_be_nothing_no_note_is_made(void **state)
{
    (void)state;
    static const struct {
        uint64_t samples;
        bool noted;
    } cases[] = {{2, false}, {3, false}, {4, true}, {40, true}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t bytes = cases[i].samples * 512 * KIB, calls = cases[i].samples * 5243;
        struct made_heap *made = made_heap_new();
        *made_heap_site(made, 1, "malloc;keep;main") = (struct heap_tally){
            .allocations = calls,
            .allocated_bytes = bytes,
            .peak_bytes = (int64_t)bytes,
            .peak_count = (int64_t)calls,
            .samples = cases[i].samples,
            .variance = (double)cases[i].samples * 512 * KIB * 512 * KIB,
        };
        made->process_rows[1].tally.sizes[7] = calls; /* 64 to 127 B */
        for (uint64_t s = 0; s < 3; s++) {
            made_heap_snapshot(made, 1, 1000 * s + 1000);
            made_heap_lives(made, "malloc;keep;main", (int64_t)(s * bytes / 2));
        }
        peak(made, bytes);
        every = 512 * KIB;
        build(made);
        every = 0;
        assert_int_equal(note_of(HEAP_NOTE_NOT_FREED) != NULL, cases[i].noted);
        assert_int_equal(note_of(HEAP_NOTE_ONE_PLACE) != NULL, cases[i].noted);
        assert_int_equal(note_of(HEAP_NOTE_GROWING) != NULL, cases[i].noted);
        if (cases[i].noted)
            assert_non_null(strstr(note_of(HEAP_NOTE_NOT_FREED)->text, "(95%: "));
        end(made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_freed_is_noted_from_a_mebibyte_and_a_tenth_of_the_peak),
        cmocka_unit_test(one_function_with_half_of_the_peak_is_noted),
        cmocka_unit_test(temporaries_are_noted_when_they_are_many_and_most_of_a_place),
        cmocka_unit_test(small_pieces_are_noted_when_they_are_very_many),
        cmocka_unit_test(memory_grown_in_small_steps_is_noted_when_it_moves),
        cmocka_unit_test(what_grows_at_every_snapshot_is_noted),
        cmocka_unit_test(resident_memory_far_above_the_heap_is_noted),
        cmocka_unit_test(calls_that_failed_are_noted),
        cmocka_unit_test(of_a_kind_the_largest_are_kept_and_the_rest_counted),
        cmocka_unit_test(what_samples_tell_is_said_with_a_tilde),
        cmocka_unit_test(of_what_may_as_well_be_nothing_no_note_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
