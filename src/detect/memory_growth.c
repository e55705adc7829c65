/* Memory that grows as long as the program runs: more at each snapshot, and not freed.
 *
 * What it costs in time is what fresh memory costs: page faults for it, and the allocator asking
 * the kernel for more. A program that gave pieces back would not pay that again and again. */
#include "analyze/places.h"
#include "detect/each.h"
#include "detect/heap_common.h"

#include <errno.h>
#include <math.h>

#define RISE_BYTES_MIN (1024.0 * 1024)
#define PEAK_SHARE_MIN 0.50 /* of the heap's peak is of that place */
#define KEPT_MIN       0.80 /* of what it allocates */
#define PAGE_BYTES     4096.0
enum { ALLOCATIONS_MIN = 100 };

struct judging {
    const struct evidence *evidence;
    struct findings *ret;
    struct cpu_rows rows;
    struct heap_sites sites;
    double rss_first, rss_last; /* of the process with the peak; 0: not known */
};

static void rss_look(struct judging *judging)
{
    const struct heap *heap = &judging->evidence->heap;
    for (size_t i = 0; i < heap->moment_count; i++) {
        const struct heap_moment *moment = &heap->moments[i];
        if (moment->process != judging->evidence->heap_sums.peak_process || !moment->rss_bytes)
            continue;
        if (judging->rss_first == 0)
            judging->rss_first = (double)moment->rss_bytes;
        judging->rss_last = (double)moment->rss_bytes;
    }
}

static double kept_of(const struct heap_figures *figures)
{
    return figures->allocated_bytes > 0
               ? (double)heap_live_bytes(figures) / (double)figures->allocated_bytes
               : 0;
}

/* NULL: it grows, and is what most of the heap is. */
static const char *why_not(struct judging *judging, const struct heap_sum *sum)
{
    struct arena *arena = judging->ret->arena;
    const struct evidence *evidence = judging->evidence;
    const struct heap_rise *rise = &sum->rise;
    const struct heap_figures *figures = &sum->figures;
    double more = (double)(rise->last_bytes - rise->first_bytes);
    double peak = (double)evidence->heap_sums.peak_bytes;
    if (!rise->each_time)
        return arena_printf(arena, "it is not more at each of %u snapshots", rise->snapshots);
    if (more < RISE_BYTES_MIN)
        return arena_printf(arena,
                            "from the first snapshot to the last it grows by %s; from %s on "
                            "it counts",
                            heap_number(evidence, arena, more, UNIT_BYTES),
                            cpu_number(arena, RISE_BYTES_MIN, UNIT_BYTES));
    if ((double)figures->peak_bytes < PEAK_SHARE_MIN * peak)
        return arena_printf(
            arena, "it grows, but is %s of the peak; from %.0f%% on it counts",
            heap_pct(evidence, arena, peak > 0 ? (double)figures->peak_bytes / peak : 0),
            PEAK_SHARE_MIN * 100);
    if (figures->allocations < ALLOCATIONS_MIN || kept_of(figures) < KEPT_MIN)
        return arena_printf(arena,
                            "of %s allocations %s of the bytes are kept to the end; from %d "
                            "and %.0f%% on it counts",
                            heap_number(evidence, arena, (double)figures->allocations, UNIT_COUNT),
                            heap_pct(evidence, arena, kept_of(figures)), ALLOCATIONS_MIN,
                            KEPT_MIN * 100);
    if (judging->rss_first > 0 && judging->rss_last <= judging->rss_first)
        return arena_printf(arena, "resident memory does not grow: %s, then %s",
                            cpu_number(arena, judging->rss_first, UNIT_BYTES),
                            cpu_number(arena, judging->rss_last, UNIT_BYTES));
    return NULL;
}

static void words_put(struct judging *judging, struct finding *finding, const struct heap_sum *sum)
{
    struct findings *ret = judging->ret;
    struct arena *arena = ret->arena;
    const struct evidence *evidence = judging->evidence;
    const struct heap_rise *rise = &sum->rise;
    const char *heap = evidence->axes[AXIS_HEAP].artifact;
    const char *where = place_text(arena, &finding->place);
    const char *first = heap_number(evidence, arena, (double)rise->first_bytes, UNIT_BYTES);
    const char *last = heap_number(evidence, arena, (double)rise->last_bytes, UNIT_BYTES);
    int64_t more = rise->last_bytes - rise->first_bytes;
    double seconds = (double)(rise->last_ns - rise->first_ns) / 1e9;
    finding->title = arena_printf(arena, "memory grows all the time: %s to %s, of %s", first, last,
                                  where);
    finding_fact(ret, finding, "rise_bytes", "grows by",
                 heap_value(evidence, value_int(more, UNIT_BYTES)), heap, NULL);
    finding_fact(ret, finding, "rise_bytes_per_second", "a second",
                 seconds > 0 ? heap_value(evidence, value_real((double)more / seconds, UNIT_BYTES))
                             : value_na("snapshots of one moment"),
                 heap, NULL);
    finding_fact(ret, finding, "snapshots", "snapshots", value_uint(rise->snapshots, UNIT_COUNT),
                 heap, NULL);
    finding_fact(ret, finding, "resident_growth_bytes", "resident memory grows by",
                 judging->rss_first > 0
                     ? value_real(judging->rss_last - judging->rss_first, UNIT_BYTES)
                     : value_na("resident memory is not known"),
                 heap, NULL);
    finding_why(ret, finding, heap, "more at each of %u snapshots: %s to %s", rise->snapshots,
                first, last);
    finding_why(ret, finding, heap, "%s of what %s allocates is never freed",
                heap_pct(evidence, arena, kept_of(&sum->figures)), where);
    finding_why(ret, finding, evidence->axes[AXIS_CPU].artifact,
                "touching it for the first time takes %s: page faults",
                cpu_ns_text(arena, finding->cost_ns));
    finding->advice = arena_printf(arena,
                                   "free what is not needed any more, or bound what is kept (a "
                                   "cache with a limit): %s",
                                   where);
    finding->measure_next = arena_printf(arena, "whyslow heap --leaks -- %s", evidence->command);
}

/* Of all page faults: those for this memory, by its pages. */
static double faults_part(const struct judging *judging, const struct heap_sum *sum)
{
    double faults = judging->evidence->costs.faults_minor;
    double pages = (double)heap_live_bytes(&sum->figures) / PAGE_BYTES;
    return faults > 0 ? fmin(1, pages / faults) : 0;
}

static int finding_make(struct judging *judging, const struct detector *self, size_t site)
{
    const struct path_costs *costs = judging->rows.costs;
    struct arena *arena = judging->ret->arena;
    const struct heap_sum *sum = &judging->sites.sums->rows[site];
    struct finding *finding = detected(judging->ret, self);
    float *parts = cpu_parts(arena, costs);
    if (!finding || !parts)
        return -ENOMEM;
    float faults = (float)faults_part(judging, sum);
    for (size_t i = 0; i < costs->count; i++) {
        const struct cpu_row *row = &judging->rows.rows[i];
        if (row->fault)
            parts[i] = faults;
        else if (row->kernel)
            parts[i] = heap_site_part(&judging->sites, site, i);
    }
    finding->place = heap_site_place(judging->evidence, sum);
    path_costs_cover(arena, costs, cpu_parts_pick, parts, finding);
    finding->occurrences = sum->figures.allocations;
    heap_site_words(judging->evidence, judging->ret, finding, sum, parts);
    words_put(judging, finding, sum);
    finding->reason = why_not(judging, sum);
    if (finding->reason) {
        finding->verdict = FINDING_DISMISSED;
        finding->reason = arena_printf(arena, "%s: %s", place_text(arena, &finding->place),
                                       finding->reason);
    }
    return 0;
}

/* The place that grows most; where none does, that with most at the peak. */
static size_t site_find(const struct heap_sum_list *sums)
{
    size_t best = 0;
    for (size_t i = 1; i < sums->count; i++) {
        const struct heap_rise *here = &sums->rows[i].rise, *there = &sums->rows[best].rise;
        bool grows = here->known && here->each_time, grew = there->known && there->each_time;
        if (grows && (!grew || here->last_bytes - here->first_bytes >
                                   there->last_bytes - there->first_bytes))
            best = i;
    }
    return best;
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct judging judging = {.evidence = evidence, .ret = ret};
    int r = cpu_rows_build(ret->arena, evidence, &judging.rows);
    if (r == 0)
        r = heap_sites_build(ret->arena, evidence, &judging.rows, &judging.sites);
    if (r < 0)
        return r;
    if (judging.sites.sums->count == 0)
        return dismissed(ret, self, "nothing is allocated") ? 0 : -ENOMEM;
    if (evidence->heap_sums.snapshots < HEAP_RISE_MIN) {
        struct finding *finding = dismissed(ret, self,
                                            "%u snapshots of the heap; from %d on it is known "
                                            "whether it grows",
                                            evidence->heap_sums.snapshots, HEAP_RISE_MIN);
        if (finding)
            finding->verdict = FINDING_NOT_JUDGED;
        return finding ? 0 : -ENOMEM;
    }
    rss_look(&judging);
    return finding_make(&judging, self, site_find(judging.sites.sums));
}

const struct detector detect_memory_growth = {
    .id = "memory_growth",
    .title = "memory that grows all the time",
    .category = CATEGORY_MEMORY,
    .remedy = REMEDY_LOCAL,
    .axes = AXIS_BIT_CPU | AXIS_BIT_HEAP,
    .judge = judge,
};
