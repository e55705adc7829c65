/* Sites added up into lists, snapshots into rises, then everything put into the order of reports.
 */
#include "analyze/heap_sums.h"

#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct adding {
    struct arena *arena;
    const struct heap *heap;
    struct heap_sums *sums;
    VEC(struct heap_sum) lists[HEAP_PERS];
    VEC(struct heap_mapped) mapped;
    struct map_u64 at[HEAP_PERS]; /* ids to indexes, plus one */
    struct map_u64 mapped_at;
    struct map_u64 stack_bytes[HEAP_PERS]; /* by list entry and stack: bytes, to find the most */
    struct map_u64 seen[HEAP_PERS];        /* threads of an entry */
    struct heap_place *places;             /* by stack id; function UINT32_MAX: not asked yet */
};

double heap_plus_minus(const struct heap_figures *figures)
{
    return figures->variance > 0 ? 1.96 * sqrt(figures->variance) : 0;
}

static void figures_add(struct heap_figures *sum, const struct heap_tally *tally, bool at_peak)
{
    sum->allocations += tally->allocations;
    sum->allocated_bytes += tally->allocated_bytes;
    sum->frees += tally->frees;
    sum->freed_bytes += tally->freed_bytes;
    sum->temporary += tally->temporary;
    sum->temporary_bytes += tally->temporary_bytes;
    sum->peak_count += at_peak ? tally->peak_count : 0;
    sum->peak_bytes += at_peak ? tally->peak_bytes : 0;
    sum->grown += tally->grown;
    sum->grown_bytes += tally->grown_bytes;
    sum->moved += tally->moved;
    sum->chain_max = MAX(sum->chain_max, tally->chain_max);
    sum->size_max = MAX(sum->size_max, tally->size_max);
    sum->lived_ns += tally->lived_ns;
    sum->samples += tally->samples;
    sum->variance += tally->variance;
    if (tally->samples > 0 && tally->samples < tally->allocations) {
        double calls = (double)tally->allocations;
        sum->calls_variance += calls * (calls / (double)tally->samples - 1);
    }
}

/* The list's entry for `id`; NULL when out of memory. */
static struct heap_sum *sum_at(struct adding *adding, enum heap_per per, uint32_t id)
{
    bool fresh;
    uint64_t *at = map_u64_at(&adding->at[per], id, &fresh);
    if (!at)
        return NULL;
    if (fresh) {
        struct heap_sum sum = {.id = id};
        if (VEC_PUSH(&adding->lists[per], sum) < 0)
            return NULL;
        *at = adding->lists[per].len;
    }
    return &adding->lists[per].data[*at - 1];
}

static uint32_t thread_of(const struct adding *adding, const struct heap_site *site)
{
    return profile_life(&adding->heap->profile, site->info.thread);
}

/* Counts different stacks and threads of an entry, and keeps the stack with the most bytes. */
static int sum_mark(struct adding *adding, enum heap_per per, struct heap_sum *sum,
                    const struct heap_site *site)
{
    uint64_t owner = (uint64_t)(sum - adding->lists[per].data) << 32;
    bool fresh;
    uint64_t *at = map_u64_at(&adding->seen[per], owner | thread_of(adding, site), &fresh);
    if (!at)
        return -ENOMEM;
    sum->threads += fresh;
    uint64_t *bytes = map_u64_at(&adding->stack_bytes[per], owner | site->info.stack, &fresh);
    if (!bytes)
        return -ENOMEM;
    sum->stacks += fresh;
    *bytes += site->tally.allocated_bytes;
    uint64_t *best = map_u64_find(&adding->stack_bytes[per], owner | sum->stack);
    if (sum->stacks == 1 || !best || *bytes > *best)
        sum->stack = site->info.stack;
    return 0;
}

static struct heap_place place_of(struct adding *adding, uint32_t stack)
{
    struct heap_place *place = &adding->places[stack];
    if (place->function == UINT32_MAX)
        *place = heap_place_of(&adding->sums->owners, stack);
    return *place;
}

static int site_add(struct adding *adding, const struct heap_site *site)
{
    struct heap_sums *sums = adding->sums;
    bool at_peak = sums->peak_known && site->process == sums->peak_process;
    struct heap_place place = place_of(adding, site->info.stack);
    const uint32_t ids[HEAP_PERS] = {
        [HEAP_PER_STACK] = site->info.stack,         [HEAP_PER_FUNCTION] = place.function,
        [HEAP_PER_THREAD] = thread_of(adding, site), [HEAP_PER_IMAGE] = place.image,
        [HEAP_PER_PROCESS] = site->process,
    };
    figures_add(&sums->all, &site->tally, at_peak);
    for (int per = 0; per < HEAP_PERS; per++) {
        struct heap_sum *sum = sum_at(adding, (enum heap_per)per, ids[per]);
        if (!sum)
            return -ENOMEM;
        /* Each process has a peak of its own. */
        figures_add(&sum->figures, &site->tally, at_peak || per == HEAP_PER_PROCESS);
        int r = sum_mark(adding, (enum heap_per)per, sum, site);
        if (r < 0)
            return r;
    }
    return 0;
}

static int mapping_add(struct adding *adding, const struct heap_site *site)
{
    bool fresh;
    uint64_t *at = map_u64_at(&adding->mapped_at, site->info.stack, &fresh);
    struct heap_mapped empty = {.stack = site->info.stack};
    if (!at || (fresh && VEC_PUSH(&adding->mapped, empty) < 0))
        return -ENOMEM;
    if (fresh)
        *at = adding->mapped.len;
    struct heap_mapped *rows[] = {&adding->mapped.data[*at - 1], &adding->sums->all_mapped};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool map = site->info.kind == HEAP_KIND_MAP;
        rows[i]->mapped += map ? site->tally.allocations : 0;
        rows[i]->mapped_bytes += map ? site->tally.allocated_bytes : 0;
        /* An unmapping is told as a call of its own, or as a free of what was mapped. */
        rows[i]->unmapped += map ? site->tally.frees : site->tally.allocations + site->tally.frees;
        rows[i]->unmapped_bytes += map ? site->tally.freed_bytes
                                       : site->tally.allocated_bytes + site->tally.freed_bytes;
    }
    return 0;
}

static void processes_add(struct adding *adding)
{
    const struct heap *heap = adding->heap;
    struct heap_sums *sums = adding->sums;
    for (size_t i = 1; i < heap->process_count; i++) {
        const struct heap_process_tally *tally = &heap->processes[i].tally;
        if (!heap->processes[i].known)
            continue;
        if (!sums->peak_known || tally->peak_bytes > sums->peak_bytes) {
            sums->peak_known = true;
            sums->peak_process = (uint32_t)i;
            sums->peak_bytes = tally->peak_bytes;
            sums->peak_count = tally->peak_count;
            sums->peak_ns = tally->peak_ns;
        }
        sums->unseen_frees += tally->unseen_frees;
        sums->inherited_frees += tally->inherited_frees;
        sums->inherited_bytes += tally->inherited_bytes;
        sums->failed += tally->failed;
        if (tally->life_unit_ns > 0)
            sums->life_unit_ns = tally->life_unit_ns;
        for (size_t b = 0; b < HEAP_SIZE_BUCKETS; b++)
            sums->sizes[b] += tally->sizes[b];
        for (size_t b = 0; b < HEAP_LIFE_BUCKETS; b++)
            sums->lives[b] += tally->lives[b];
    }
}

static void moments_add(struct adding *adding)
{
    const struct heap *heap = adding->heap;
    struct heap_sums *sums = adding->sums;
    for (size_t i = 0; i < heap->moment_count; i++) {
        const struct heap_moment *moment = &heap->moments[i];
        if (moment->process != sums->peak_process || moment->rss_bytes == 0)
            continue;
        sums->rss_max_bytes = MAX(sums->rss_max_bytes, moment->rss_bytes);
        if (moment->live_bytes < sums->live_at_rss_bytes)
            continue;
        sums->live_at_rss_bytes = moment->live_bytes;
        sums->rss_at_live_bytes = moment->rss_bytes;
    }
}

/* ---- snapshots ---- */

/* A stack of one process, from snapshot to snapshot. */
struct rise {
    uint32_t process, stack;
    uint32_t last; /* number of the snapshot among its process's, from 1 */
    uint32_t rises;
    int64_t first_bytes, last_bytes;
};

struct rising {
    VEC(struct rise) rises;
    struct map_u64 at; /* process and stack to an index, plus one */
    uint32_t *taken;   /* snapshots by process */
    uint64_t *first_ns, *last_ns;
};

static int rise_add(struct rising *rising, uint32_t process, const struct heap_snapshot_row *row)
{
    bool fresh;
    uint64_t *at = map_u64_at(&rising->at, (uint64_t)process << 32 | row->stack, &fresh);
    struct rise empty = {.process = process, .stack = row->stack};
    if (!at || (fresh && VEC_PUSH(&rising->rises, empty) < 0))
        return -ENOMEM;
    if (fresh)
        *at = rising->rises.len;
    struct rise *rise = &rising->rises.data[*at - 1];
    uint32_t now = rising->taken[process];
    /* Absent is none, and from none to some is a rise, too. */
    if (now == 1)
        rise->first_bytes = row->bytes;
    else if (row->bytes > rise->last_bytes)
        rise->rises++;
    rise->last = now;
    rise->last_bytes = row->bytes;
    return 0;
}

static int snapshots_read(struct adding *adding, struct rising *rising)
{
    const struct heap *heap = adding->heap;
    for (size_t i = 1; i < heap->snapshot_count; i++) {
        const struct heap_snapshot_rows *snapshot = &heap->snapshots[i];
        uint32_t process = snapshot->info.process;
        if (process >= heap->profile.process_count)
            continue;
        if (++rising->taken[process] == 1)
            rising->first_ns[process] = snapshot->info.time_ns;
        rising->last_ns[process] = snapshot->info.time_ns;
        adding->sums->snapshots = MAX(adding->sums->snapshots, rising->taken[process]);
        for (size_t r = 0; r < snapshot->count; r++)
            if (snapshot->rows[r].stack < heap->profile.stack_count &&
                rise_add(rising, process, &snapshot->rows[r]) < 0)
                return -ENOMEM;
    }
    return 0;
}

/* Of several processes and stacks the one that rose most speaks. */
static void rise_keep(struct heap_sum *sum, const struct heap_rise *rise)
{
    int64_t before = sum->rise.last_bytes - sum->rise.first_bytes;
    int64_t now = rise->last_bytes - rise->first_bytes;
    if (!sum->rise.known || rise->each_time > sum->rise.each_time ||
        (rise->each_time == sum->rise.each_time && now > before))
        sum->rise = *rise;
}

static void rises_put(struct adding *adding, const struct rising *rising)
{
    for (size_t i = 0; i < rising->rises.len; i++) {
        const struct rise *rise = &rising->rises.data[i];
        uint32_t taken = rising->taken[rise->process];
        struct heap_rise found = {
            .known = taken >= HEAP_RISE_MIN,
            .each_time = rise->rises == taken - 1,
            .first_bytes = rise->first_bytes,
            .last_bytes = rise->last == taken ? rise->last_bytes : 0,
            .first_ns = rising->first_ns[rise->process],
            .last_ns = rising->last_ns[rise->process],
            .snapshots = taken,
        };
        if (!found.known)
            continue;
        const uint32_t ids[] = {rise->stack, place_of(adding, rise->stack).function};
        const enum heap_per pers[] = {HEAP_PER_STACK, HEAP_PER_FUNCTION};
        for (size_t p = 0; p < ARRAY_SIZE(pers); p++) {
            uint64_t *at = map_u64_find(&adding->at[pers[p]], ids[p]);
            if (at)
                rise_keep(&adding->lists[pers[p]].data[*at - 1], &found);
        }
    }
}

static int snapshots_add(struct adding *adding)
{
    struct rising rising = {0};
    size_t count = adding->heap->profile.process_count + 1;
    rising.taken = arena_alloc(adding->arena, count * sizeof(*rising.taken));
    rising.first_ns = arena_alloc(adding->arena, count * sizeof(*rising.first_ns));
    rising.last_ns = arena_alloc(adding->arena, count * sizeof(*rising.last_ns));
    int r = rising.taken && rising.first_ns && rising.last_ns ? snapshots_read(adding, &rising)
                                                              : -ENOMEM;
    if (r == 0)
        rises_put(adding, &rising);
    VEC_FREE(&rising.rises);
    map_u64_deinit(&rising.at);
    return r;
}

/* ---- order ---- */

static int compare_real(double a, double b)
{
    return a > b ? -1 : a < b;
}

static int by_peak(const void *left, const void *right)
{
    const struct heap_sum *a = left, *b = right;
    int order = compare_real((double)a->figures.peak_bytes, (double)b->figures.peak_bytes);
    if (order == 0)
        order = compare_real((double)a->figures.allocated_bytes,
                             (double)b->figures.allocated_bytes);
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

/* What a thread has of a peak may be less than nothing: it freed what others allocated. */
static int by_bytes(const void *left, const void *right)
{
    const struct heap_sum *a = left, *b = right;
    int order = compare_real((double)a->figures.allocated_bytes,
                             (double)b->figures.allocated_bytes);
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

static int by_mapped(const void *left, const void *right)
{
    const struct heap_mapped *a = left, *b = right;
    int order = compare_real((double)a->mapped_bytes, (double)b->mapped_bytes);
    if (order == 0)
        order = compare_real((double)a->unmapped_bytes, (double)b->unmapped_bytes);
    return order ? order : (a->stack > b->stack) - (a->stack < b->stack);
}

double heap_rank_value(const struct heap_figures *figures, enum heap_rank rank)
{
    switch (rank) {
    case HEAP_RANK_PEAK:
        return (double)figures->peak_bytes;
    case HEAP_RANK_LEAK:
        return (double)heap_live_bytes(figures);
    case HEAP_RANK_CHURN:
        return (double)figures->allocations;
    case HEAP_RANK_BYTES:
        return (double)figures->allocated_bytes;
    case HEAP_RANK_TEMPORARY:
        return (double)figures->temporary;
    case HEAP_RANK_GROWTH:
        return (double)figures->grown_bytes;
    case HEAP_RANKS:
        break;
    }
    return 0;
}

struct ranked {
    double value;
    struct heap_sum sum;
};

static int by_value(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int order = compare_real(a->value, b->value);
    return order ? order : by_bytes(&a->sum, &b->sum);
}

/* Pieces without a size are something, too: they rank behind those that have one. */
static bool has_any(const struct heap_figures *figures, enum heap_rank rank)
{
    if (rank == HEAP_RANK_LEAK)
        return heap_live_bytes(figures) != 0 || heap_live_count(figures) != 0;
    if (rank == HEAP_RANK_PEAK)
        return figures->peak_bytes != 0 || figures->peak_count != 0;
    return rank == HEAP_RANK_GROWTH ? figures->grown > 0 : heap_rank_value(figures, rank) > 0;
}

int heap_sums_rank(struct arena *arena, const struct heap_sum_list *list, enum heap_rank rank,
                   struct heap_sum_list *ret)
{
    struct ranked *ranked = malloc((list->count + 1) * sizeof(*ranked));
    struct heap_sum *rows = arena_alloc(arena, (list->count + 1) * sizeof(*rows));
    size_t count = 0;
    for (size_t i = 0; ranked && rows && i < list->count; i++)
        if (has_any(&list->rows[i].figures, rank))
            ranked[count++] = (struct ranked){heap_rank_value(&list->rows[i].figures, rank),
                                              list->rows[i]};
    if (!ranked || !rows) {
        free(ranked);
        return -ENOMEM;
    }
    qsort(ranked, count, sizeof(*ranked), by_value);
    for (size_t i = 0; i < count; i++)
        rows[i] = ranked[i].sum;
    free(ranked);
    *ret = (struct heap_sum_list){rows, count};
    return 0;
}

static void *keep(struct arena *arena, const void *data, size_t count, size_t size)
{
    void *copy = arena_alloc(arena, (count + 1) * size);
    if (copy && count > 0)
        memcpy(copy, data, count * size);
    return copy;
}

static int lists_finish(struct adding *adding)
{
    struct heap_sums *sums = adding->sums;
    for (int per = 0; per < HEAP_PERS; per++) {
        struct heap_sum_list *list = &sums->per[per];
        list->count = adding->lists[per].len;
        list->rows = keep(adding->arena, adding->lists[per].data, list->count, sizeof(*list->rows));
        if (!list->rows)
            return -ENOMEM;
        qsort(list->rows, list->count, sizeof(*list->rows),
              per == HEAP_PER_THREAD ? by_bytes : by_peak);
    }
    sums->mapped_count = adding->mapped.len;
    sums->mapped = keep(adding->arena, adding->mapped.data, sums->mapped_count,
                        sizeof(*sums->mapped));
    if (!sums->mapped)
        return -ENOMEM;
    qsort(sums->mapped, sums->mapped_count, sizeof(*sums->mapped), by_mapped);
    sums->processes = (uint32_t)sums->per[HEAP_PER_PROCESS].count;
    sums->threads = (uint32_t)sums->per[HEAP_PER_THREAD].count;
    return 0;
}

static int add_all(struct adding *adding)
{
    const struct heap *heap = adding->heap;
    size_t stacks = heap->profile.stack_count;
    adding->places = arena_alloc(adding->arena, (stacks + 1) * sizeof(*adding->places));
    if (!adding->places ||
        heap_owners_init(adding->arena, &heap->profile, &adding->sums->owners) < 0 ||
        heap_owners_learn(adding->arena, heap, &adding->sums->owners) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < stacks; i++)
        adding->places[i].function = UINT32_MAX;
    processes_add(adding);
    moments_add(adding);
    for (size_t i = 1; i < heap->site_count; i++) {
        const struct heap_site *site = &heap->sites[i];
        int r = site->info.kind == HEAP_KIND_HEAP ? site_add(adding, site)
                                                  : mapping_add(adding, site);
        if (r < 0)
            return r;
    }
    int r = snapshots_add(adding);
    return r == 0 ? lists_finish(adding) : r;
}

int heap_sums_build(struct arena *arena, const struct heap *heap, struct heap_sums *ret)
{
    struct heap_sums sums = {.heap = heap};
    struct adding adding = {.arena = arena, .heap = heap, .sums = &sums};
    int r = add_all(&adding);
    for (int per = 0; per < HEAP_PERS; per++) {
        VEC_FREE(&adding.lists[per]);
        map_u64_deinit(&adding.at[per]);
        map_u64_deinit(&adding.stack_bytes[per]);
        map_u64_deinit(&adding.seen[per]);
    }
    VEC_FREE(&adding.mapped);
    map_u64_deinit(&adding.mapped_at);
    if (r == 0)
        *ret = sums;
    return r;
}
