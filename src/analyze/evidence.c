/* Recordings of a run, loaded side by side. */
#include "analyze/evidence.h"

#include "analyze/heap_load.h"
#include "analyze/profile_load.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const struct spans no_spans;

const char *axis_name(enum axis axis)
{
    static const char *const names[AXES] = {"cpu", "waits", "io", "heap"};
    return names[axis];
}

double run_costs_stolen_ns(const struct run_costs *costs)
{
    if (!(costs->steal_ns > 0) || !(costs->cpu_ns > 0))
        return 0;
    double others = costs->others_ns > 0 ? costs->others_ns : 0;
    return costs->steal_ns * costs->cpu_ns / (costs->cpu_ns + others);
}

static bool is_traced(const struct evidence *evidence)
{
    return evidence_has(evidence, AXIS_WAITS) && !evidence->path.na && evidence->path.ns > 0 &&
           !evidence->costs_on_path.na;
}

/* Threads that are not on the path compute, too: of the CPU time of plain runs the path has the
 * part that it has of what was recorded. */
static double cpu_on_path_ns(const struct evidence *evidence)
{
    const struct run_costs *costs = &evidence->costs;
    double on_path = 0, all = 0;
    if (!is_traced(evidence)) /* all but one may compute beside the path; none need to */
        return costs->cpu_ns <= costs->wall_ns ? costs->cpu_ns
                                               : costs->cpu_ns / (double)MAX(costs->cpus, 1u);
    for (size_t i = 0; i < evidence->path.share_count; i++)
        if (evidence->path.shares[i].what == PATH_RUNNING)
            on_path += (double)evidence->path.shares[i].ns;
    for (size_t i = 1; i < evidence->waits.profile.thread_count; i++)
        all += (double)evidence->waits.threads[i].running_ns;
    return costs->cpu_ns * (all > 0 ? fmin(on_path / all, 1) : 1);
}

double evidence_gap_ns(const struct evidence *evidence)
{
    const struct run_costs *costs = &evidence->costs;
    if (!(costs->wall_ns > 0) || isnan(costs->cpu_ns))
        return NAN;
    double gap = costs->wall_ns - cpu_on_path_ns(evidence);
    for (int i = 0; i <= WAIT_CLASS_UNKNOWN && is_traced(evidence); i++)
        if (i != WAIT_CLASS_RUNNING && i != WAIT_CLASS_RUNQ)
            gap -= evidence->costs_on_path.classes[i];
    return fmax(0, gap);
}

double evidence_siblings_ns(const struct evidence *evidence)
{
    const struct run_costs *costs = &evidence->costs;
    if (isnan(costs->cpu_ns) || !is_traced(evidence))
        return 0;
    return fmax(0, costs->cpu_ns - cpu_on_path_ns(evidence)) / (double)MAX(costs->cpus, 1u);
}

double evidence_stolen_ns(const struct evidence *evidence)
{
    const struct run_costs *costs = &evidence->costs;
    double stolen = run_costs_stolen_ns(costs), gap = evidence_gap_ns(evidence);
    if (!(stolen > 0) || isnan(gap))
        return 0;
    return fmin(stolen * fmin(cpu_on_path_ns(evidence) / costs->cpu_ns, 1), gap);
}

static double share_lost(struct honesty_figure lost, struct honesty_figure all)
{
    if (!lost.known || !all.known || lost.value + all.value == 0)
        return NAN;
    return (double)lost.value / (double)(lost.value + all.value);
}

static void lost_put(struct axis_state *axis, struct honesty_figure lost, struct honesty_figure all)
{
    axis->lost = axis->uncounted = share_lost(lost, all);
}

/* A call whose stack or object is not known is lost to what asks for them, though it was counted;
 * one that is known by its name alone is lost to everything but the table of calls. */
static void io_lost_put(struct axis_state *axis, const struct io_honesty *io)
{
    struct honesty_figure gone = io->lost, counted = io->calls;
    if (io->folded.known && gone.known) {
        gone.value += MIN(io->folded.value, counted.value);
        counted.value -= MIN(io->folded.value, counted.value);
    }
    lost_put(axis, gone, counted);
    if (io->unattributed.known && io->calls.value > 0)
        axis->lost = fmax(axis->lost,
                          fmin((double)io->unattributed.value / (double)io->calls.value, 1));
}

static int cpu_load(struct evidence *e, struct recording *recording, struct why *why)
{
    struct profile_opts opts = {.samples = true};
    int r = profile_load(e->arena, recording, &opts, &e->cpu, why);
    if (r == 0)
        r = honesty_load(recording, &e->cpu_honesty, why);
    if (r == 0)
        r = embedded_load(e->arena, recording, &e->embedded, why);
    if (r < 0)
        return r;
    if (hotspots_build(e->arena, &e->cpu, &e->hotspots) < 0 ||
        hot_lines_build(e->arena, &e->cpu, &e->lines) < 0)
        return why_nomem(why);
    hot_lines_rank(&e->lines);
    lost_put(&e->axes[AXIS_CPU], e->cpu_honesty.lost, e->cpu_honesty.samples);
    return 0;
}

static int waits_axis_load(struct evidence *e, struct recording *recording, struct why *why)
{
    int r = wait_honesty_load(e->arena, recording, &e->wait_honesty, why);
    if (r == 0)
        r = waits_load(e->arena, recording, &e->waits, why);
    if (r < 0)
        return r;
    if (critical_chain_build(e->arena, &e->waits, &e->path) < 0 ||
        wait_classes_build(e->arena, &e->waits, &e->path, &e->classes) < 0 ||
        wait_groups_build(e->arena, &e->waits, &e->classes, &e->path, &e->groups) < 0 ||
        lock_table_build(e->arena, &e->waits, &e->classes, &e->locks) < 0)
        return why_nomem(why);
    lost_put(&e->axes[AXIS_WAITS], e->wait_honesty.lost, e->wait_honesty.seen);
    return 0;
}

static int io_axis_load(struct evidence *e, struct recording *recording, struct why *why)
{
    int r = io_honesty_load(e->arena, recording, &e->io_honesty, why);
    if (r == 0)
        r = io_load(e->arena, recording, &e->io, why);
    if (r < 0)
        return r;
    if (io_sums_build(e->arena, &e->io, &e->io_sums) < 0 ||
        io_request_groups_build(e->arena, &e->io, &e->requests) < 0)
        return why_nomem(why);
    io_lost_put(&e->axes[AXIS_IO], &e->io_honesty);
    return 0;
}

static int heap_axis_load(struct evidence *e, struct recording *recording, struct why *why)
{
    int r = heap_honesty_load(e->arena, recording, &e->heap_honesty, why);
    if (r == 0)
        r = heap_load(e->arena, recording, &e->heap, why);
    if (r < 0)
        return r;
    if (heap_sums_build(e->arena, &e->heap, &e->heap_sums) < 0)
        return why_nomem(why);
    struct honesty_figure all = {e->heap_sums.all.allocations + e->heap_sums.all.frees, true};
    lost_put(&e->axes[AXIS_HEAP], e->heap_honesty.lost, all);
    e->axes[AXIS_HEAP].sampled = e->heap_honesty.sample_bytes > 0;
    return 0;
}

static int (*const loaders[AXES])(struct evidence *, struct recording *, struct why *) = {
    cpu_load, waits_axis_load, io_axis_load, heap_axis_load};

/* What the axis cost, against the baseline. */
static void axis_weigh(struct evidence *e, struct axis_state *axis, bool is_dear)
{
    const struct run_costs *costs = &e->costs;
    double wall = axis->wall_ns;
    bool known = wall > 0 && costs->wall_ns > 0;
    bool sure = known && costs->wall_low_ns > 0 && costs->wall_high_ns > 0;
    axis->overhead = known ? wall / costs->wall_ns - 1 : NAN;
    axis->added = (struct estimate){known ? wall - costs->wall_ns : NAN,
                                    sure ? wall - costs->wall_high_ns : NAN,
                                    sure ? wall - costs->wall_low_ns : NAN};
    axis->overhead_na = known                   ? NULL
                        : !(costs->wall_ns > 0) ? "no plain run was finished"
                                                : "the recorded run was ended before it was over";
    axis->disturbed = known && axis->overhead > AXIS_OVERHEAD_MAX && is_dear;
    axis->scale = known ? costs->wall_ns / wall : 1;
}

static int axis_load(struct evidence *e, const struct evidence_input *input, enum axis axis,
                     struct why *why)
{
    struct axis_state *state = &e->axes[axis];
    state->na = input->axes[axis].na;
    state->artifact = input->axes[axis].artifact;
    state->path = input->axes[axis].recording;
    state->wall_ns = input->axes[axis].wall_ns;
    state->lost = state->uncounted = NAN;
    state->scale = 1;
    if (!state->path) {
        state->na = state->na ? state->na : "not recorded";
        return 0;
    }
    state->na = NULL;
    struct recording *recording = NULL;
    struct why cause = {0};
    int r = recording_open(state->path, &recording, &cause);
    if (r == 0)
        r = loaders[axis](e, recording, &cause);
    recording_close(recording);
    if (r == -ENOMEM)
        return why_nomem(why);
    if (r < 0)
        state->na = arena_dup(e->arena, cause.what);
    else
        axis_weigh(e, state, input->axes[axis].is_dear);
    return 0;
}

/* Between the ends of the median's interval; with fewer than 6 runs between the fastest and the
 * slowest. One run has no such ends: it and the recorded one differ by so much, and nobody knows
 * which of them is usual. */
static struct path_wall wall_of(const struct evidence *e)
{
    const struct run_costs *costs = &e->costs;
    bool sure = costs->wall_low_ns > 0 && costs->wall_high_ns > 0;
    struct path_wall wall = {
        .ns = costs->wall_ns > 0       ? costs->wall_ns
              : costs->recorded_ns > 0 ? costs->recorded_ns
                                       : NAN,
        .low_ns = sure ? costs->wall_low_ns : costs->wall_min_ns,
        .high_ns = sure ? costs->wall_high_ns : costs->wall_max_ns,
        .cpu_ns = costs->cpu_ns,
        .recorded_cpu_ns = e->cpu_with_waits && e->cpu_honesty.rusage_ns.known
                               ? (double)e->cpu_honesty.rusage_ns.value
                               : NAN,
        .few_runs = costs->runs < 2,
    };
    double recorded_ns = e->axes[evidence_has(e, AXIS_WAITS) ? AXIS_WAITS : AXIS_CPU].wall_ns;
    if (wall.few_runs && recorded_ns > 0) {
        double apart = fabs(recorded_ns - wall.ns);
        wall.low_ns = fmax(wall.ns - apart, 1);
        wall.high_ns = wall.ns + apart;
    }
    return wall;
}

int evidence_load(struct arena *arena, const struct evidence_input *input, struct evidence *ret,
                  struct why *why)
{
    *ret = (struct evidence){
        .arena = arena,
        .command = input->command,
        .costs = input->costs,
        .binary = input->binary,
        .binary_na = input->binary_na,
        .fingerprint = input->fingerprint,
        .checks = input->checks,
        .spans = input->spans ? input->spans : &no_spans,
    };
    for (int i = 0; i < AXES; i++) {
        int r = axis_load(ret, input, (enum axis)i, why);
        if (r < 0)
            return r;
    }
    bool cpu = evidence_has(ret, AXIS_CPU), waits = evidence_has(ret, AXIS_WAITS);
    ret->cpu_with_waits = cpu && waits &&
                          strcmp(ret->axes[AXIS_CPU].path, ret->axes[AXIS_WAITS].path) == 0;
    const struct path_wall wall = wall_of(ret);
    if (path_costs_build(arena, cpu ? &ret->cpu : NULL, waits ? &ret->waits : NULL, &ret->classes,
                         &ret->path, ret->cpu_with_waits, &wall, &ret->costs_on_path) < 0)
        return why_nomem(why);
    return 0;
}
