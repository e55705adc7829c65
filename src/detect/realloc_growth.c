/* Memory that is made a little larger again and again: each time it may be copied. */
#include "analyze/places.h"
#include "detect/each.h"
#include "detect/heap_common.h"

#include <errno.h>
#include <math.h>

#define RATIO_MAX 1.5 /* a step that makes it larger by as much is no trouble */
enum { CHAIN_MIN = 4, PLACES_MAX = 4 };

struct judging {
    const struct evidence *evidence;
    const struct detector *self;
    struct findings *ret;
    struct cpu_rows rows;
    struct heap_sites sites;
};

/* What is known of a place where pieces grow. When calls are sampled, a piece is known to have
 * grown only where what it was before was sampled, too: then the steps that were seen stand for
 * all. */
struct growth {
    double steps;  /* reallocations to a larger size */
    double step;   /* bytes that one adds, on average */
    double size;   /* of a piece after it, on average */
    double pieces; /* that grew */
    double chain;  /* steps of one piece in turn: that many, or more */
    double moved;  /* of the steps: the part that had to copy */
    double ratio;  /* by how much a step makes it larger */
};

static struct growth growth_of(const struct evidence *evidence, const struct heap_figures *figures)
{
    struct growth growth = {.steps = (double)figures->grown, .chain = (double)figures->chain_max};
    double allocations = (double)figures->allocations, largest = (double)figures->size_max;
    growth.step = growth.steps > 0 ? (double)figures->grown_bytes / growth.steps : 0;
    growth.size = allocations > 0 ? (double)figures->allocated_bytes / allocations : 0;
    growth.pieces = fmax(1, allocations - growth.steps);
    growth.moved = growth.steps > 0 ? (double)figures->moved / growth.steps : 0;
    if (evidence->axes[AXIS_HEAP].sampled && growth.step > 0) {
        growth.steps = allocations;
        growth.chain = fmax(1, largest / growth.step);
        growth.pieces = fmax(1, allocations / growth.chain);
        growth.moved = 1; /* of so few nobody can tell */
    }
    double before = growth.size - growth.step;
    growth.ratio = before > 0 ? growth.size / before : INFINITY;
    return growth;
}

/* What would stay if each step doubled the size: for each piece at most one copy of the largest,
 * and one step for each power of two. */
static double part_saved(const struct growth *growth, double largest)
{
    double copied = growth->steps * growth->moved * (growth->size - growth->step);
    double bytes = copied > 0 ? growth->pieces * largest / copied : 0;
    double steps = growth->pieces * fmax(1, log2(fmax(largest, 2))) / fmax(1, growth->steps);
    return fmax(0, 1 - fmin(1, fmax(bytes, steps)));
}

static void words_put(struct judging *judging, struct finding *finding, const struct heap_sum *sum,
                      const struct growth *growth)
{
    struct findings *ret = judging->ret;
    struct arena *arena = ret->arena;
    const struct heap_figures *figures = &sum->figures;
    const struct evidence *evidence = judging->evidence;
    const char *heap = evidence->axes[AXIS_HEAP].artifact;
    const char *where = place_text(arena, &finding->place);
    double share = cpu_share(evidence, finding->cost_ns);
    const char *grown = heap_number(evidence, arena, growth->steps, UNIT_COUNT);
    const char *about = evidence->axes[AXIS_HEAP].sampled ? "~" : "";
    finding->title = arena_printf(arena,
                                  "%s reallocations that grow by %s%.1f%% take %.0f%% of the wall "
                                  "time: %s",
                                  grown, about, (growth->ratio - 1) * 100, share * 100, where);
    finding_fact(ret, finding, "grown", "made larger",
                 heap_value(evidence, value_real(growth->steps, UNIT_COUNT)), heap, NULL);
    finding_fact(ret, finding, "moved", "moved",
                 heap_value(evidence, value_uint(figures->moved, UNIT_COUNT)), heap, NULL);
    finding_fact(ret, finding, "growth_ratio", "larger by, on average",
                 heap_value(evidence, value_real(growth->ratio, UNIT_NONE)), heap, NULL);
    finding_fact(ret, finding, "chain_max", "the same piece, in turn at least",
                 heap_value(evidence, value_real(growth->chain, UNIT_COUNT)), heap, NULL);
    finding_why(ret, finding, evidence->axes[AXIS_CPU].artifact,
                "%.0f%% of the wall time is in realloc(), for %s", share * 100, where);
    finding_why(ret, finding, heap, "it is called %s times to make a piece larger", grown);
    finding_why(ret, finding, heap, "because a step adds %s%.1f%% only, up to %s", about,
                (growth->ratio - 1) * 100,
                cpu_number(arena, (double)figures->size_max, UNIT_BYTES));
    finding->advice = arena_printf(arena,
                                   "double the size at each step, or reserve what is needed at "
                                   "once: %s",
                                   where);
    finding->caution = "doubling may leave up to half of the memory unused";
    finding->measure_next = arena_printf(arena, "whyslow heap --growth -- %s", evidence->command);
}

static int site_judge(struct judging *judging, size_t site)
{
    const struct path_costs *costs = judging->rows.costs;
    struct arena *arena = judging->ret->arena;
    const struct heap_sum *sum = &judging->sites.sums->rows[site];
    const struct heap_figures *figures = &sum->figures;
    struct finding *finding = detected(judging->ret, judging->self);
    float *parts = cpu_parts(arena, costs);
    if (!finding || !parts)
        return -ENOMEM;
    for (size_t i = 0; i < costs->count; i++)
        parts[i] = judging->rows.rows[i].reallocs && judging->sites.of_row[i] == site + 1;
    finding->place = heap_site_place(judging->evidence, sum);
    struct growth growth = growth_of(judging->evidence, figures);
    struct estimate cost = path_costs_cover(arena, costs, cpu_parts_pick, parts, finding);
    finding->recoverable = estimate_scale(cost, part_saved(&growth, (double)figures->size_max));
    finding->occurrences = (uint64_t)growth.steps;
    heap_site_words(judging->evidence, judging->ret, finding, sum, parts);
    words_put(judging, finding, sum, &growth);
    if (growth.ratio < RATIO_MAX && growth.chain >= CHAIN_MIN)
        return 0;
    const char *about = judging->evidence->axes[AXIS_HEAP].sampled ? "~" : "";
    finding->verdict = FINDING_DISMISSED;
    finding->reason = arena_printf(
        arena,
        "%s: a step makes it %s%.2f times as large, the same piece up to "
        "%s%.0f times; below %.1f and from %d times on it counts",
        place_text(arena, &finding->place), about, growth.ratio, about, growth.chain, RATIO_MAX,
        CHAIN_MIN);
    return 0;
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct judging judging = {.evidence = evidence, .self = self, .ret = ret};
    int r = cpu_rows_build(ret->arena, evidence, &judging.rows);
    if (r == 0)
        r = heap_sites_build(ret->arena, evidence, &judging.rows, &judging.sites);
    struct heap_sum_list grown = {0};
    if (r == 0)
        r = heap_sums_rank(ret->arena, judging.sites.sums, HEAP_RANK_GROWTH, &grown);
    size_t judged = 0;
    for (size_t i = 0; i < grown.count && judged < PLACES_MAX && r == 0; i++) {
        if (grown.rows[i].figures.grown < DETECT_OCCURRENCES_MIN)
            continue;
        for (size_t site = 0; site < judging.sites.sums->count && r == 0; site++)
            if (judging.sites.sums->rows[site].id == grown.rows[i].id)
                r = site_judge(&judging, site);
        judged++;
    }
    if (r == 0 && judged == 0 && !dismissed(ret, self, "nothing is made larger by realloc()"))
        r = -ENOMEM;
    return r;
}

const struct detector detect_realloc_growth = {
    .id = "realloc_growth",
    .title = "memory that grows in small steps",
    .category = CATEGORY_MEMORY,
    .remedy = REMEDY_LOCAL,
    .axes = AXIS_BIT_CPU | AXIS_BIT_HEAP,
    .judge = judge,
};
