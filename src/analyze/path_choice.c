/* Sums over parts of the critical path, and how sure they are. */
#include "analyze/path_costs.h"
#include "analyze/places.h"
#include "stats/share.h"

#include <math.h>

/* No more than this part of what was waited is put down to recording. */
#define SLEEPS_MOST 0.5
/* Of what it is around: two runs that differ by less may do so by chance. */
#define WIDTH_MIN 0.01

/* Three causes, taken as independent, so that their widths add as squares: which samples fell
 * where, which wall time is meant, and that the recorded run was not as long as the baseline's.
 * Recording makes sleeps longer, never shorter: that is added to one side. */
struct estimate path_costs_estimate(const struct path_costs *costs, double running_ns,
                                    double waits_ns, double sleeps)
{
    double all_running = costs->classes[WAIT_CLASS_RUNNING], ns = running_ns + waits_ns;
    double below = running_ns, above = running_ns; /* without a sample: any of it */
    if (all_running > 0 && costs->samples > 0) {
        struct interval share = share_interval(fmin(running_ns / all_running, 1),
                                               (double)costs->samples);
        below = running_ns - share.low * all_running;
        above = running_ns > 0 ? share.high * all_running - running_ns : 0;
    }
    double stretched = ns * costs->stretch;
    double low = hypot(hypot(below, ns * (1 - costs->wall_low)), stretched) +
                 fmin(sleeps * costs->sleep_ns, SLEEPS_MOST * waits_ns);
    double high = hypot(hypot(above, ns * (costs->wall_high - 1)), stretched);
    /* What only runs takes no more than all that ran. */
    double most = waits_ns > 0 ? costs->ns : fmin(costs->ns, all_running * costs->wall_high);
    return (struct estimate){ns, fmax(0, ns - low), fmin(fmax(most, ns), ns + high)};
}

struct estimate path_costs_sure(const struct path_costs *costs, struct estimate estimate)
{
    if (costs->few_runs && estimate.high_ns - estimate.low_ns < WIDTH_MIN * estimate.ns)
        estimate.low_ns = estimate.high_ns = NAN;
    return estimate;
}

/* Marks of a choice by place, for all rows at once; what a path_pick sees is one row. */
struct chosen {
    const struct path_choice *choice;
    const bool *through; /* by stack; NULL: the rows are walked one by one */
};

static bool named(const char *names, struct str name)
{
    struct str rest = str_from(names);
    while (rest.len > 0)
        if (str_eq(str_word(&rest), name))
            return true;
    return false;
}

static double choose(const struct chosen *chosen, const struct path_costs *costs,
                     const struct path_cost *row)
{
    const struct path_choice *choice = chosen->choice;
    if (choice->class >= 0 && row->class != (enum wait_class)choice->class)
        return 0;
    if (choice->syscalls && (row->syscall.len == 0 || !named(choice->syscalls, row->syscall)))
        return 0;
    if (!choice->place)
        return 1;
    if (!row->stack || !costs->profile)
        return 0;
    if (choice->innermost)
        return place_same(&row->place, choice->place, choice->line);
    if (chosen->through)
        return chosen->through[row->stack];
    return place_on_stack(costs->profile, row->stack, choice->place, choice->line);
}

double path_choose(void *context, const struct path_costs *costs, const struct path_cost *row)
{
    struct chosen chosen = {.choice = context};
    return choose(&chosen, costs, row);
}

static double chosen_pick(void *context, const struct path_costs *costs,
                          const struct path_cost *row)
{
    return choose(context, costs, row);
}

struct estimate path_costs_sum(const struct path_costs *costs, path_pick *pick, void *context)
{
    struct finding nowhere = {.recoverable = {NAN, NAN, NAN}};
    return path_costs_cover(NULL, costs, pick, context, &nowhere);
}

double path_cost_own_ns(const struct path_costs *costs, const struct path_cost *row)
{
    double queued = costs->classes[WAIT_CLASS_RUNQ];
    if (row->class != WAIT_CLASS_RUNQ || !(queued > 0))
        return row->ns;
    return row->ns * (1 - fmin(costs->environment_ns / queued, 1));
}

/* One call of `pick` a row: both the sum and what is covered come of it. */
static struct estimate cover(const struct path_costs *costs, path_pick *pick, void *context,
                             float *covers)
{
    double running = 0, waits = 0, sleeps = 0;
    for (size_t i = 0; i < costs->count; i++) {
        const struct path_cost *row = &costs->rows[i];
        double part = pick(context, costs, row);
        if (!(part > 0))
            continue;
        part = fmin(part, 1);
        if (covers)
            covers[i] = (float)part;
        if (row->class == WAIT_CLASS_RUNNING)
            running += part * row->ns;
        else
            waits += part * path_cost_own_ns(costs, row);
        sleeps += part * row->sleeps;
    }
    return path_costs_estimate(costs, running, waits, sleeps);
}

struct estimate path_costs_cover(struct arena *arena, const struct path_costs *costs,
                                 path_pick *pick, void *context, struct finding *finding)
{
    struct chosen chosen = {.choice = context};
    struct arena marks = ARENA_INIT;
    if (pick == path_choose) {
        if (chosen.choice->place && !chosen.choice->innermost && costs->profile)
            chosen.through = place_stacks(&marks, costs->profile, chosen.choice->place,
                                          chosen.choice->line);
        pick = chosen_pick;
        context = &chosen;
    }
    float *covers = arena ? arena_alloc(arena, (costs->count + 1) * sizeof(*covers)) : NULL;
    struct estimate cost = cover(costs, pick, context, covers);
    arena_deinit(&marks);
    finding->covers = covers;
    finding->cost_ns = cost.ns;
    if (isnan(finding->recoverable.ns))
        finding->recoverable = cost;
    return cost;
}

struct estimate path_costs_of(const struct path_costs *costs, const struct path_choice *choice)
{
    struct path_choice copy = *choice;
    return path_costs_sum(costs, path_choose, &copy);
}

struct estimate estimate_scale(struct estimate estimate, double factor)
{
    return (struct estimate){estimate.ns * factor, estimate.low_ns * factor,
                             estimate.high_ns * factor};
}
