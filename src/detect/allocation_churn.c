/* Memory that lives for a moment, again and again: the allocator has the time, and one piece that
 * is used again would do. */
#include "analyze/places.h"
#include "detect/each.h"
#include "detect/heap_common.h"

#include <errno.h>

#define FREED_MIN     0.80 /* of the allocations at that place … */
#define LIFE_NS_MAX   1e6  /* … after this time on average, or before the next was made */
#define CPU_SHARE_MIN 0.03 /* of the CPU time on the path, at one place */
#define GROWN_MAX     0.50 /* of the allocations: else it is realloc_growth's */
/* From here on the allocator may give pieces back to the kernel: their faults are part of it. */
#define LARGE_BYTES (64.0 * 1024)
/* SAMPLES_MIN: of the CPU; fewer say little of a share. */
enum { PLACES_MAX = 8, ALLOCATIONS_MIN = 100, SAMPLES_MIN = 10 };

struct judging {
    const struct evidence *evidence;
    const struct detector *self;
    struct findings *ret;
    struct cpu_rows rows;
    struct heap_sites sites;
    struct {
        size_t site;
        double ns;
    } places[PLACES_MAX]; /* the heaviest first */
    size_t count;
    double ns;            /* of all such places */
    uint64_t allocations; /* of them */
};

static double part_of(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static double life_ns(const struct heap_figures *figures)
{
    return figures->frees > 0 ? (double)figures->lived_ns / (double)figures->frees : 0;
}

/* Lives are told in steps of a clock: a mean below one step says only that few pieces saw it tick.
 */
static bool is_life_known(const struct evidence *evidence, const struct heap_figures *figures)
{
    return life_ns(figures) >= (double)evidence->heap_sums.life_unit_ns;
}

static const char *life_text(const struct evidence *evidence, struct arena *arena,
                             const struct heap_figures *figures)
{
    double step_ns = (double)evidence->heap_sums.life_unit_ns;
    return is_life_known(evidence, figures)
               ? arena_printf(arena, "after %s on average",
                              heap_ns_text(evidence, arena, life_ns(figures)))
               : arena_printf(arena, "after less than %s on average", cpu_ns_text(arena, step_ns));
}

/* When calls are sampled, only the call that was made tells that a piece was made larger. */
static bool is_churn(const struct evidence *evidence, const struct heap_sum *sum)
{
    const struct heap_figures *figures = &sum->figures;
    struct str call = heap_entry_of(&evidence->heap_sums.owners, sum->stack);
    return !str_contains(call, "realloc") && figures->allocations >= ALLOCATIONS_MIN &&
           part_of(figures->grown, figures->allocations) < GROWN_MAX &&
           part_of(figures->frees, figures->allocations) >= FREED_MIN &&
           (part_of(figures->temporary, figures->allocations) >= FREED_MIN ||
            life_ns(figures) <= LIFE_NS_MAX);
}

static bool is_large(const struct heap_figures *figures)
{
    return (double)figures->allocated_bytes >= LARGE_BYTES * (double)figures->allocations;
}

static void places_find(struct judging *judging)
{
    for (size_t i = 0; i < judging->sites.sums->count; i++) {
        const struct heap_figures *figures = &judging->sites.sums->rows[i].figures;
        if (!is_churn(judging->evidence, &judging->sites.sums->rows[i]))
            continue;
        double ns = heap_site_ns(&judging->sites, i);
        judging->ns += ns;
        judging->allocations += figures->allocations;
        size_t at = judging->count < PLACES_MAX ? judging->count++ : PLACES_MAX;
        for (; at > 0 && judging->places[at - 1].ns < ns; at--)
            if (at < PLACES_MAX)
                judging->places[at] = judging->places[at - 1];
        if (at < PLACES_MAX) {
            judging->places[at].site = i;
            judging->places[at].ns = ns;
        }
    }
}

static void words_put(struct judging *judging, struct finding *finding, const struct heap_sum *sum)
{
    struct findings *ret = judging->ret;
    struct arena *arena = ret->arena;
    const struct heap_figures *figures = &sum->figures;
    const struct evidence *evidence = judging->evidence;
    const char *heap = evidence->axes[AXIS_HEAP].artifact;
    const char *where = place_text(arena, &finding->place);
    const char *count = heap_number(evidence, arena, (double)figures->allocations, UNIT_COUNT);
    double share = cpu_share(evidence, finding->cost_ns);
    double temporary = part_of(figures->temporary, figures->allocations);
    finding->title = arena_printf(arena,
                                  "%s allocations that live for a moment take %.0f%% of the wall "
                                  "time: %s",
                                  count, share * 100, where);
    finding_fact(ret, finding, "freed_before_next_pct", "freed before the next was made",
                 heap_value(evidence, value_real(temporary * 100, UNIT_PERCENT)), heap, NULL);
    finding_fact(ret, finding, "life_ns", "lived, on average",
                 is_life_known(evidence, figures)
                     ? heap_value(evidence, value_real(life_ns(figures), UNIT_NS))
                     : value_na("shorter than the clock of the heap's recording can tell"),
                 heap, NULL);
    finding_why(ret, finding, evidence->axes[AXIS_CPU].artifact,
                "%.0f%% of the wall time is the allocator's, for %s", share * 100, where);
    finding_why(ret, finding, heap, "it is asked %s times, for %s each", count,
                heap_number(evidence, arena,
                            (double)figures->allocated_bytes / (double)figures->allocations,
                            UNIT_BYTES));
    finding_why(ret, finding, heap, "%s of the pieces are freed, %s",
                heap_pct(evidence, arena, part_of(figures->frees, figures->allocations)),
                life_text(evidence, arena, figures));
    finding->advice = arena_printf(arena,
                                   "allocate once and use it again (a buffer outside of the loop, "
                                   "on the stack, an arena, a pool): %s",
                                   where);
    finding->measure_next = arena_printf(arena, "whyslow heap --churn -- %s", evidence->command);
}

static int finding_make(struct judging *judging, size_t at)
{
    const struct path_costs *costs = judging->rows.costs;
    struct arena *arena = judging->ret->arena;
    size_t site = judging->places[at].site;
    const struct heap_sum *sum = &judging->sites.sums->rows[site];
    struct finding *finding = detected(judging->ret, judging->self);
    float *parts = cpu_parts(arena, costs);
    if (!finding || !parts)
        return -ENOMEM;
    finding->place = heap_site_place(judging->evidence, sum);
    const bool *through = NULL;
    if (is_large(&sum->figures) && costs->profile)
        through = place_stacks(arena, costs->profile, &finding->place, false);
    for (size_t i = 0; i < costs->count; i++) {
        parts[i] = heap_site_part(&judging->sites, site, i);
        if (through && judging->rows.rows[i].fault && through[costs->rows[i].stack])
            parts[i] = 1;
    }
    path_costs_cover(arena, costs, cpu_parts_pick, parts, finding);
    finding->occurrences = sum->figures.allocations;
    heap_site_words(judging->evidence, judging->ret, finding, sum, parts);
    words_put(judging, finding, sum);
    uint64_t samples = cpu_parts_samples(costs, parts);
    if (samples < SAMPLES_MIN) {
        finding->verdict = FINDING_DISMISSED;
        finding->reason = arena_printf(arena, "%llu samples are in it; from %d on it counts",
                                       (unsigned long long)samples, SAMPLES_MIN);
    }
    return 0;
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct judging judging = {.evidence = evidence, .self = self, .ret = ret};
    int r = cpu_rows_build(ret->arena, evidence, &judging.rows);
    if (r == 0)
        r = heap_sites_build(ret->arena, evidence, &judging.rows, &judging.sites);
    if (r < 0)
        return r;
    places_find(&judging);
    double cpu = judging.rows.running_ns > 0 ? judging.ns / judging.rows.running_ns : 0;
    /* One place must have it: what many have a little of is how the program is written. */
    double first = judging.count > 0 ? judging.places[0].ns : 0;
    if (first < CPU_SHARE_MIN * judging.rows.running_ns || judging.count == 0) {
        const struct heap_figures *all = &evidence->heap_sums.all;
        return dismissed(ret, self,
                         "%s of %s allocations are made where pieces live for a moment, and take "
                         "%.1f%% of the CPU time, %.1f%% at the heaviest place; from %.0f%% at one "
                         "place on it counts",
                         heap_number(evidence, ret->arena, (double)judging.allocations, UNIT_COUNT),
                         heap_number(evidence, ret->arena, (double)all->allocations, UNIT_COUNT),
                         cpu * 100,
                         judging.rows.running_ns > 0 ? first / judging.rows.running_ns * 100 : 0,
                         CPU_SHARE_MIN * 100)
                   ? 0
                   : -ENOMEM;
    }
    for (size_t i = 0; i < judging.count && r == 0; i++)
        if (i == 0 || judging.places[i].ns >= 0.1 * judging.places[0].ns)
            r = finding_make(&judging, i);
    return r;
}

const struct detector detect_allocation_churn = {
    .id = "allocation_churn",
    .title = "memory that lives for a moment",
    .category = CATEGORY_MEMORY,
    .remedy = REMEDY_REUSE,
    .axes = AXIS_BIT_CPU | AXIS_BIT_HEAP,
    .judge = judge,
};
