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

double run_costs_busy(const struct run_costs *costs)
{
    return costs->wall_ns > 0 && costs->cpu_ns > 0 ? fmax(1, costs->cpu_ns / costs->wall_ns) : 1;
}

static double share_lost(struct honesty_figure lost, struct honesty_figure all)
{
    if (!lost.known || !all.known || lost.value + all.value == 0)
        return NAN;
    return (double)lost.value / (double)(lost.value + all.value);
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
    e->axes[AXIS_CPU].lost = share_lost(e->cpu_honesty.lost, e->cpu_honesty.samples);
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
    e->axes[AXIS_WAITS].lost = share_lost(e->wait_honesty.lost, e->wait_honesty.seen);
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
    e->axes[AXIS_IO].lost = share_lost(e->io_honesty.lost, e->io_honesty.calls);
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
    e->axes[AXIS_HEAP].lost = share_lost(e->heap_honesty.lost, all);
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
    state->lost = NAN;
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
    const struct run_costs *costs = &ret->costs;
    bool sure = costs->wall_low_ns > 0 && costs->wall_high_ns > 0;
    if (path_costs_build(arena, cpu ? &ret->cpu : NULL, waits ? &ret->waits : NULL, &ret->classes,
                         &ret->path, ret->cpu_with_waits, costs->wall_ns,
                         sure ? costs->wall_low_ns : costs->wall_min_ns,
                         sure ? costs->wall_high_ns : costs->wall_max_ns, &ret->costs_on_path) < 0)
        return why_nomem(why);
    return 0;
}
