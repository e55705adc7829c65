/* Sums against bounds: what passes them becomes a sentence. One function a kind; a new kind is a
 * row of bounds, a function and its call. */
#include "analyze/heap_notes.h"

#include "base/units.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

#define KIB 1024u
#define MIB (1024u * KIB)

const struct heap_note_bound heap_note_bounds[HEAP_NOTE_KINDS] = {
    /* Bytes: from the first snapshot to the last. */
    [HEAP_NOTE_GROWING] = {"growing", .bytes = 64 * KIB},
    /* Share: of the peak. */
    [HEAP_NOTE_NOT_FREED] = {"not_freed", .bytes = MIB, .pct = 10},
    [HEAP_NOTE_ONE_PLACE] = {"one_place", .bytes = MIB, .pct = 50},
    /* Share: of the allocations at that place; ratio: of all allocations. */
    [HEAP_NOTE_TEMPORARY] = {"temporary", .count = 10000, .pct = 50, .ratio = 0.05},
    /* Share: of all allocations. */
    [HEAP_NOTE_SMALL_PIECES] = {"small_pieces", .count = 100000, .pct = 20, .size_most = 32},
    /* Count: reallocations that moved; ratio: how often one piece grew in turn. */
    [HEAP_NOTE_GROWN_AGAIN] = {"grown_again", .count = 100, .ratio = 8},
    /* Ratio: resident memory to live bytes; bytes: more than those. */
    [HEAP_NOTE_RESIDENT] = {"resident", .bytes = 64 * MIB, .ratio = 2},
    [HEAP_NOTE_FAILED] = {"failed", .count = 1},
};

const char *heap_note_name(enum heap_note_kind kind)
{
    return heap_note_bounds[kind].name;
}

struct noting {
    struct arena *arena;
    const struct heap_sums *sums;
    const struct heap_sure *sure;
    bool sampled;
    VEC(struct heap_note) notes;
    size_t of_kind[HEAP_NOTE_KINDS];
    size_t left_out;
    int r;
};

static void note_add(struct noting *noting, struct heap_note note)
{
    if (noting->of_kind[note.kind]++ >= HEAP_NOTES_MAX) {
        noting->left_out++;
        return;
    }
    if (noting->r == 0)
        noting->r = VEC_PUSH(&noting->notes, note);
}

/* What was counted one by one, or looked up, also where calls are sampled. */
static const char *exact_text(struct noting *noting, double number, enum unit unit)
{
    char text[48];
    return arena_dup(noting->arena, units_format(number, unit, text, sizeof(text)));
}

/* "~12.0 MiB" where one call in so many bytes was looked at. */
static const char *number_text(struct noting *noting, double number, enum unit unit)
{
    return arena_printf(noting->arena, "%s%s", noting->sampled && number != 0 ? "~" : "",
                        exact_text(noting, number, unit));
}

static const char *pct_text(struct noting *noting, double pct)
{
    return arena_printf(noting->arena, "%s%.0f%%", noting->sampled ? "~" : "", pct);
}

static const char *bytes_text(struct noting *noting, int64_t bytes)
{
    return number_text(noting, (double)bytes, UNIT_BYTES);
}

/* "~12.0 MiB (95%: 8.1 MiB to 17.2 MiB)": what the sentence is about. */
static const char *range_text(struct noting *noting, const struct heap_figures *figures,
                              int64_t bytes)
{
    struct interval range = heap_sure_bytes(noting->sure, figures, bytes);
    if (!noting->sampled)
        return bytes_text(noting, bytes);
    return arena_printf(noting->arena, "%s (95%%: %s to %s)", bytes_text(noting, bytes),
                        exact_text(noting, range.low, UNIT_BYTES),
                        exact_text(noting, range.high, UNIT_BYTES));
}

static const char *count_text(struct noting *noting, uint64_t count)
{
    return number_text(noting, (double)count, UNIT_COUNT);
}

static const char *calls_text(struct noting *noting, const struct heap_figures *figures,
                              uint64_t calls)
{
    struct interval range = heap_sure_calls(noting->sure, figures, (int64_t)calls);
    if (!noting->sampled)
        return count_text(noting, calls);
    return arena_printf(noting->arena, "%s (95%%: %s to %s)", count_text(noting, calls),
                        exact_text(noting, range.low, UNIT_COUNT),
                        exact_text(noting, range.high, UNIT_COUNT));
}

static const char *pieces_text(struct noting *noting, int64_t count)
{
    return arena_printf(noting->arena, "%s piece%s", number_text(noting, (double)count, UNIT_COUNT),
                        count == 1 ? "" : "s");
}

static double pct_of(double part, double whole)
{
    return whole > 0 ? 100.0 * part / whole : 0;
}

/* The name of the function that a row is about. */
static const char *name_of(const struct noting *noting, const struct heap_sum *sum)
{
    return heap_name(noting->arena, noting->sums->heap->profile.functions[sum->id].name);
}

static void note_growing(struct noting *noting, const struct heap_sum *sum)
{
    const struct heap_rise *rise = &sum->rise;
    int64_t more = rise->last_bytes - rise->first_bytes;
    if (!rise->known || !rise->each_time ||
        more < (int64_t)heap_note_bounds[HEAP_NOTE_GROWING].bytes)
        return;
    /* What lived at both is in both: the difference is no less sure than this. */
    if (!heap_sure_is_change(noting->sure, rise->first_bytes, rise->last_bytes))
        return;
    double seconds = (double)(rise->last_ns - rise->first_ns) / 1e9;
    const char *rate = seconds > 0
                           ? arena_printf(noting->arena, ", %s a second",
                                          number_text(noting, (double)more / seconds, UNIT_BYTES))
                           : "";
    const char *text = arena_printf(noting->arena, "more at each of %u snapshots: %s to %s%s, %s",
                                    rise->snapshots, bytes_text(noting, rise->first_bytes),
                                    bytes_text(noting, rise->last_bytes), rate,
                                    name_of(noting, sum));
    note_add(noting, (struct heap_note){HEAP_NOTE_GROWING, text, rise->snapshots, (uint64_t)more,
                                        sum->stack});
}

static void note_not_freed(struct noting *noting, const struct heap_sum *sum)
{
    const struct heap_note_bound *bound = &heap_note_bounds[HEAP_NOTE_NOT_FREED];
    int64_t bytes = heap_live_bytes(&sum->figures);
    double pct = pct_of((double)bytes, (double)noting->sums->peak_bytes);
    if (bytes < (int64_t)bound->bytes || pct < bound->pct ||
        !heap_sure_is_some(noting->sure, &sum->figures, bytes))
        return;
    const char *text = arena_printf(noting->arena,
                                    "%s in %s not freed at the end, %s of the peak, %s",
                                    range_text(noting, &sum->figures, bytes),
                                    pieces_text(noting, heap_live_count(&sum->figures)),
                                    pct_text(noting, pct), name_of(noting, sum));
    note_add(noting,
             (struct heap_note){HEAP_NOTE_NOT_FREED, text, (uint64_t)heap_live_count(&sum->figures),
                                (uint64_t)bytes, sum->stack});
}

static void note_one_place(struct noting *noting, const struct heap_sum *sum)
{
    const struct heap_note_bound *bound = &heap_note_bounds[HEAP_NOTE_ONE_PLACE];
    double pct = pct_of((double)sum->figures.peak_bytes, (double)noting->sums->peak_bytes);
    if (sum->figures.peak_bytes < (int64_t)bound->bytes || pct < bound->pct ||
        !heap_sure_is_some(noting->sure, &sum->figures, sum->figures.peak_bytes))
        return;
    const char *text = arena_printf(
        noting->arena, "%s of the peak is of one function: %s in %s, %s", pct_text(noting, pct),
        range_text(noting, &sum->figures, sum->figures.peak_bytes),
        pieces_text(noting, sum->figures.peak_count), name_of(noting, sum));
    note_add(noting,
             (struct heap_note){HEAP_NOTE_ONE_PLACE, text, (uint64_t)sum->figures.peak_count,
                                (uint64_t)sum->figures.peak_bytes, sum->stack});
}

static void note_temporary(struct noting *noting, const struct heap_sum *sum)
{
    const struct heap_note_bound *bound = &heap_note_bounds[HEAP_NOTE_TEMPORARY];
    const struct heap_figures *figures = &sum->figures;
    double pct = pct_of((double)figures->temporary, (double)figures->allocations);
    if (figures->temporary < bound->count || pct < bound->pct ||
        (double)figures->temporary < bound->ratio * (double)noting->sums->all.allocations ||
        !heap_sure_are_some(noting->sure, figures, figures->temporary))
        return;
    const char *text = arena_printf(
        noting->arena,
        "%s of %s allocations (%s) freed right after they were made, %s together, %s",
        calls_text(noting, figures, figures->temporary), count_text(noting, figures->allocations),
        pct_text(noting, pct), bytes_text(noting, (int64_t)figures->temporary_bytes),
        name_of(noting, sum));
    note_add(noting, (struct heap_note){HEAP_NOTE_TEMPORARY, text, figures->temporary,
                                        figures->temporary_bytes, sum->stack});
}

static void note_small(struct noting *noting, const struct heap_sum *sum)
{
    const struct heap_note_bound *bound = &heap_note_bounds[HEAP_NOTE_SMALL_PIECES];
    const struct heap_figures *figures = &sum->figures;
    double pct = pct_of((double)figures->allocations, (double)noting->sums->all.allocations);
    double mean = (double)figures->allocated_bytes / (double)MAX(figures->allocations, 1u);
    if (figures->allocations < bound->count || pct < bound->pct ||
        mean > (double)bound->size_most ||
        !heap_sure_are_some(noting->sure, figures, figures->allocations))
        return;
    const char *text = arena_printf(noting->arena, "%s allocations of %s on average, %s of all, %s",
                                    calls_text(noting, figures, figures->allocations),
                                    number_text(noting, mean, UNIT_BYTES), pct_text(noting, pct),
                                    name_of(noting, sum));
    note_add(noting, (struct heap_note){HEAP_NOTE_SMALL_PIECES, text, figures->allocations,
                                        figures->allocated_bytes, sum->stack});
}

static void note_grown(struct noting *noting, const struct heap_sum *sum)
{
    const struct heap_note_bound *bound = &heap_note_bounds[HEAP_NOTE_GROWN_AGAIN];
    const struct heap_figures *figures = &sum->figures;
    if (figures->moved < bound->count || (double)figures->chain_max < bound->ratio ||
        !heap_sure_are_some(noting->sure, figures, figures->moved))
        return;
    const char *text = arena_printf(
        noting->arena,
        "the same memory grown %s%s times in turn: %s reallocations to a larger size, %s of "
        "them moved, %s",
        figures->chain_max == HEAP_CHAIN_TOP ? "at least " : "up to ",
        exact_text(noting, (double)figures->chain_max, UNIT_COUNT),
        count_text(noting, figures->grown), count_text(noting, figures->moved),
        name_of(noting, sum));
    note_add(noting, (struct heap_note){HEAP_NOTE_GROWN_AGAIN, text, figures->grown,
                                        figures->grown_bytes, sum->stack});
}

static void note_resident(struct noting *noting)
{
    const struct heap_note_bound *bound = &heap_note_bounds[HEAP_NOTE_RESIDENT];
    uint64_t live = noting->sums->live_at_rss_bytes, rss = noting->sums->rss_at_live_bytes;
    if (live == 0 || rss < live || rss - live < bound->bytes ||
        (double)rss < bound->ratio * (double)live)
        return;
    const char *text = arena_printf(
        noting->arena,
        "when the heap held %s, %s were resident: what the allocator keeps, mappings, stacks and "
        "code are not heap",
        bytes_text(noting, (int64_t)live), exact_text(noting, (double)rss, UNIT_BYTES));
    note_add(noting, (struct heap_note){HEAP_NOTE_RESIDENT, text, 1, rss - live, 0});
}

static void note_failed(struct noting *noting)
{
    uint64_t failed = noting->sums->failed;
    if (failed < heap_note_bounds[HEAP_NOTE_FAILED].count)
        return;
    const char *text = arena_printf(noting->arena, "%s call%s returned no memory",
                                    exact_text(noting, (double)failed, UNIT_COUNT),
                                    failed == 1 ? "" : "s");
    note_add(noting, (struct heap_note){HEAP_NOTE_FAILED, text, failed, 0, 0});
}

/* Functions, the most of the measure first. */
static int note_each(struct noting *noting, enum heap_rank rank,
                     void (*note)(struct noting *noting, const struct heap_sum *sum))
{
    struct heap_sum_list list;
    int r = heap_sums_rank(noting->arena, &noting->sums->per[HEAP_PER_FUNCTION], rank, &list);
    for (size_t i = 0; r == 0 && i < list.count; i++)
        note(noting, &list.rows[i]);
    return r;
}

int heap_notes_build(struct arena *arena, const struct heap_sums *sums,
                     const struct heap_sure *sure, struct heap_notes *ret)
{
    struct noting noting = {.arena = arena, .sums = sums, .sure = sure, .sampled = sure->every > 0};
    int r = note_each(&noting, HEAP_RANK_LEAK, note_growing);
    if (r == 0)
        r = note_each(&noting, HEAP_RANK_LEAK, note_not_freed);
    if (r == 0)
        r = note_each(&noting, HEAP_RANK_PEAK, note_one_place);
    if (r == 0)
        r = note_each(&noting, HEAP_RANK_TEMPORARY, note_temporary);
    if (r == 0)
        r = note_each(&noting, HEAP_RANK_CHURN, note_small);
    if (r == 0)
        r = note_each(&noting, HEAP_RANK_GROWTH, note_grown);
    if (r == 0) {
        note_resident(&noting);
        note_failed(&noting);
        r = noting.r;
    }
    struct heap_notes notes = {.count = noting.notes.len, .left_out = noting.left_out};
    notes.notes = arena_alloc(arena, (notes.count + 1) * sizeof(*notes.notes));
    if (notes.notes && notes.count > 0)
        memcpy(notes.notes, noting.notes.data, notes.count * sizeof(*notes.notes));
    VEC_FREE(&noting.notes);
    if (r == 0 && (!notes.notes || arena_failed(arena)))
        r = -ENOMEM;
    if (r == 0)
        *ret = notes;
    return r;
}
