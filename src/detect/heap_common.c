/* Sites of the heap by name, found again in the samples. */
#include "detect/heap_common.h"

#include "analyze/places.h"

#include <errno.h>
#include <math.h>

enum { WALKED_MAX = 512 };

struct place heap_site_place(const struct evidence *evidence, const struct heap_sum *sum)
{
    const struct profile *profile = &evidence->heap.profile;
    struct heap_place at = heap_place_of(&evidence->heap_sums.owners, sum->stack);
    struct place place = place_of_function(profile, at.function);
    if (at.line) {
        place.file = at.file;
        place.line = at.line;
    }
    return place;
}

/* The stack without the kernel's frames. */
static uint32_t user_stack(const struct profile *profile, uint32_t stack)
{
    unsigned walked = 0;
    while (stack != 0 && walked++ < WALKED_MAX) {
        const struct profile_frame *frame = &profile->frames[profile->stacks[stack].frame];
        if (!profile->functions[profile->places[frame->places].function].kernel)
            return stack;
        stack = profile->stacks[stack].parent;
    }
    return 0;
}

/* A function of the samples as a site of the heap: by name and image. */
static uint32_t site_find(const struct evidence *evidence, const struct heap_sum_list *sums,
                          uint32_t function)
{
    const struct profile *cpu = evidence->costs_on_path.profile;
    const struct profile *heap = &evidence->heap.profile;
    const struct profile_function *wanted = &cpu->functions[function];
    for (size_t i = 0; i < sums->count; i++) {
        const struct profile_function *here = &heap->functions[sums->rows[i].id];
        if (str_eq(here->name, wanted->name) &&
            str_eq(heap->images[here->image].path, cpu->images[wanted->image].path))
            return (uint32_t)i + 1;
    }
    return 0;
}

int heap_sites_build(struct arena *arena, const struct evidence *evidence,
                     const struct cpu_rows *rows, struct heap_sites *ret)
{
    const struct path_costs *costs = rows->costs;
    const struct heap_sum_list *sums = &evidence->heap_sums.per[HEAP_PER_FUNCTION];
    *ret = (struct heap_sites){.sums = sums, .rows = rows};
    ret->of_row = arena_alloc(arena, (costs->count + 1) * sizeof(*ret->of_row));
    ret->ns = arena_alloc(arena, (sums->count + 1) * sizeof(*ret->ns));
    for (size_t i = 0; i < sums->count; i++)
        ret->calls_all += heap_site_calls(&sums->rows[i]);
    if (!ret->of_row || !ret->ns)
        return -ENOMEM;
    if (!costs->profile)
        return 0;
    struct heap_owners owners;
    uint32_t *known = arena_alloc(arena, (costs->profile->function_count + 1) * sizeof(*known));
    if (!known || heap_owners_init(arena, costs->profile, &owners) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < costs->count; i++) {
        if (!rows->rows[i].alloc)
            continue;
        struct heap_place at = heap_place_of(&owners,
                                             user_stack(costs->profile, costs->rows[i].stack));
        if (known[at.function] == 0)
            known[at.function] = site_find(evidence, sums, at.function) + 1;
        uint32_t site = known[at.function] - 1;
        ret->of_row[i] = site;
        if (site)
            ret->ns[site - 1] += costs->rows[i].ns;
        else
            ret->unknown_ns += costs->rows[i].ns;
    }
    return 0;
}

static double calls_share(const struct heap_sites *sites, size_t site)
{
    return sites->calls_all > 0
               ? (double)heap_site_calls(&sites->sums->rows[site]) / (double)sites->calls_all
               : 0;
}

float heap_site_part(const struct heap_sites *sites, size_t site, size_t row)
{
    if (!sites->rows->rows[row].alloc)
        return 0;
    return sites->of_row[row] == 0 ? (float)calls_share(sites, site)
                                   : (float)(sites->of_row[row] == site + 1);
}

double heap_site_ns(const struct heap_sites *sites, size_t site)
{
    return sites->ns[site] + sites->unknown_ns * calls_share(sites, site);
}

static const char *about(const struct evidence *evidence, double number)
{
    return evidence->axes[AXIS_HEAP].sampled && number != 0 ? "~" : "";
}

const char *heap_number(const struct evidence *evidence, struct arena *arena, double number,
                        enum unit unit)
{
    return arena_printf(arena, "%s%s", about(evidence, number), cpu_number(arena, number, unit));
}

const char *heap_pct(const struct evidence *evidence, struct arena *arena, double share)
{
    return arena_printf(arena, "%s%.0f%%", about(evidence, share), share * 100);
}

const char *heap_ns_text(const struct evidence *evidence, struct arena *arena, double ns)
{
    return arena_printf(arena, "%s%s", about(evidence, ns), cpu_ns_text(arena, ns));
}

struct value heap_value(const struct evidence *evidence, struct value value)
{
    return evidence->axes[AXIS_HEAP].sampled ? value_about(value) : value;
}

void heap_site_words(const struct evidence *evidence, struct findings *ret, struct finding *finding,
                     const struct heap_sum *sum, const float *parts)
{
    struct arena *arena = ret->arena;
    const char *artifact = evidence->axes[AXIS_HEAP].artifact;
    const char *id = cpu_function_id(arena, sum->id);
    const struct heap_figures *figures = &sum->figures;
    finding_fact(ret, finding, "allocations", "allocations",
                 heap_value(evidence, value_uint(figures->allocations, UNIT_COUNT)), artifact, id);
    finding_fact(ret, finding, "allocated_bytes", "allocated",
                 heap_value(evidence, value_uint(figures->allocated_bytes, UNIT_BYTES)), artifact,
                 id);
    finding_fact(ret, finding, "time_share", "of the wall time",
                 value_real(cpu_share(evidence, finding->cost_ns) * 100, UNIT_PERCENT),
                 evidence->axes[AXIS_CPU].artifact, NULL);
    cpu_angles(evidence, ret, finding, parts);
    /* Every call was counted one by one, or sampled by size: the other recording knows nothing of
     * the samples of this one. */
    double calls = (double)heap_site_calls(sum);
    double each = calls > 0 ? finding->cost_ns / calls : INFINITY;
    finding->angles[ANGLE_TRACING] = (struct angle_word){
        each < 1e6 ? ANGLE_SUPPORTS : ANGLE_REJECTS,
        arena_printf(arena, "%s calls were %s: %s each",
                     heap_number(evidence, arena, calls, UNIT_COUNT),
                     evidence->axes[AXIS_HEAP].sampled ? "made, by samples" : "traced",
                     heap_ns_text(evidence, arena, each))};
}
