/* One thread computes while the others have nothing to do, and CPUs are free. */
#include "detect/each.h"
#include "detect/lock_common.h"

#include "analyze/places.h"

#include <errno.h>
#include <math.h>

#define PATH_SHARE_MIN  0.80 /* of the critical path: one thread, running */
#define ENVIRONMENT_MAX 0.10 /* of the wall time: with more of it no CPU is known to be free */
#define WORK_SHARE_MIN  0.01 /* of the wall time: who computes so much has work of its own */
enum { WORKERS_MIN = 2, PLACES_LOOKED_AT_MAX = 200 };

struct serial {
    uint32_t thread;
    double path_ns;    /* the path is this thread's, on a CPU or waiting for one; */
    double running_ns; /* on one; of the recording, as the next */
    double others_ns;  /* what other threads computed meanwhile */
    uint32_t workers;  /* others that have work of their own */
    uint32_t spread;   /* over how many it could be */
};

static void thread_find(const struct critical_path *path, struct serial *ret)
{
    for (size_t i = 0; i < path->share_count && ret->thread == 0; i++)
        if (path->shares[i].what == PATH_RUNNING) { /* the largest first */
            ret->running_ns = (double)path->shares[i].ns;
            ret->thread = path->shares[i].thread;
        }
    ret->path_ns = ret->running_ns;
    for (size_t i = 0; i < path->share_count; i++)
        if (path->shares[i].what == PATH_RUNQ && path->shares[i].thread == ret->thread)
            ret->path_ns += (double)path->shares[i].ns;
}

/* Samples of others while the path was this thread's. */
static double others_find(const struct evidence *evidence, uint32_t thread)
{
    const struct profile *cpu = &evidence->cpu;
    const struct critical_path *path = &evidence->path;
    double ns = 0;
    size_t at = 0;
    for (size_t i = 0; i < cpu->sample_count; i++) {
        while (at < path->step_count && path->steps[at].end_ns <= cpu->sample_time_ns[i])
            at++;
        if (at == path->step_count)
            break;
        const struct path_step *step = &path->steps[at];
        if (step->what != PATH_WAIT && step->thread == thread && cpu->sample_thread[i] != thread &&
            step->start_ns <= cpu->sample_time_ns[i])
            ns += (double)cpu->sample_weight[i];
    }
    return ns;
}

static struct serial serial_find(const struct evidence *evidence)
{
    const struct waits *waits = &evidence->waits;
    struct serial serial = {0};
    thread_find(&evidence->path, &serial);
    serial.others_ns = others_find(evidence, serial.thread);
    uint32_t process = waits->profile.threads[serial.thread].process;
    for (uint32_t i = 1; i < waits->profile.thread_count; i++)
        serial.workers += i != serial.thread && waits->profile.threads[i].process == process &&
                          (double)waits->threads[i].running_ns >=
                              WORK_SHARE_MIN * (double)evidence->path.ns;
    serial.spread = MIN(MAX(evidence->costs.cpus, 1u), serial.workers + 1);
    return serial;
}

static double thread_pick(void *context, const struct path_costs *costs,
                          const struct path_cost *row)
{
    (void)costs;
    return row->class == WAIT_CLASS_RUNNING && row->thread == *(const uint32_t *)context;
}

/* Where the thread is for longest. */
static struct place place_find(const struct path_costs *costs, uint32_t thread)
{
    struct place best = {0};
    double most = 0;
    size_t last = MIN(costs->count, (size_t)PLACES_LOOKED_AT_MAX);
    for (size_t i = 0; i < last; i++) {
        if (costs->rows[i].thread != thread || costs->rows[i].class != WAIT_CLASS_RUNNING ||
            costs->rows[i].stack == 0)
            continue;
        struct place place = place_of_stack(costs->profile, costs->rows[i].stack);
        double ns = 0;
        for (size_t k = i; k < last; k++) {
            struct place other = costs->rows[k].stack
                                     ? place_of_stack(costs->profile, costs->rows[k].stack)
                                     : (struct place){0};
            if (costs->rows[k].thread == thread && place_same(&place, &other, false))
                ns += costs->rows[k].ns;
        }
        if (ns > most) {
            most = ns;
            best = place;
        }
    }
    return best;
}

static const char *fine_reason(const struct evidence *evidence, struct arena *arena,
                               const struct serial *serial)
{
    double share = serial->path_ns / (double)evidence->path.ns;
    double busy = serial->running_ns > 0 ? 1 + serial->others_ns / serial->running_ns : 1;
    if (serial->workers < WORKERS_MIN)
        return arena_printf(arena,
                            "%u other threads of it compute at all; from %d on one speaks of a "
                            "program that shares its work",
                            serial->workers, WORKERS_MIN);
    if (share < PATH_SHARE_MIN)
        return arena_printf(arena,
                            "the thread that runs longest on the critical path has %.0f%% of it; "
                            "from %.0f%% on it counts",
                            share * 100, PATH_SHARE_MIN * 100);
    if (evidence->costs_on_path.environment_ns >= ENVIRONMENT_MAX * evidence->costs_on_path.ns)
        return arena_printf(
            arena,
            "others had the CPUs for %s of a run: that one was free for its threads "
            "is not known",
            time_text(arena, evidence->costs_on_path.environment_ns));
    if (busy > 0.9 * serial->spread)
        return arena_printf(arena, "meanwhile %.2f of %u CPUs are busy with it: none is free", busy,
                            evidence->costs.cpus);
    return NULL;
}

static void angles_put(const struct evidence *evidence, struct arena *arena,
                       const struct serial *serial, struct finding *finding)
{
    double share = serial->path_ns / (double)evidence->path.ns;
    double busy = 1 + serial->others_ns / serial->running_ns;
    double got = evidence->costs.cpu_ns / evidence->costs.wall_ns;
    finding->angles[ANGLE_TRACING] = (struct angle_word){
        ANGLE_SUPPORTS,
        arena_printf(arena, "one thread has %.0f%% of the critical path", share * 100)};
    finding->angles[ANGLE_SAMPLING] = (struct angle_word){
        ANGLE_SUPPORTS, arena_printf(arena, "%.2f CPUs are busy meanwhile", busy)};
    if (!isnan(got))
        finding->angles[ANGLE_COUNTING] = (struct angle_word){
            got < 0.9 * serial->spread ? ANGLE_SUPPORTS : ANGLE_REJECTS,
            arena_printf(arena, "a plain run keeps %.2f of %u CPUs busy", got,
                         evidence->costs.cpus)};
}

/* Of what it computes, how much is at the place that is named: the heaviest may have little. */
static const char *most_text(const struct evidence *evidence, const struct serial *serial,
                             struct arena *arena, const char *where, const struct place *place)
{
    const struct path_costs *costs = &evidence->costs_on_path;
    double all = 0, there = 0;
    for (size_t i = 0; i < costs->count; i++) {
        uint32_t thread = serial->thread;
        double ns = thread_pick(&thread, costs, &costs->rows[i]) * costs->rows[i].ns;
        all += ns;
        there += costs->rows[i].stack && place_same(&costs->rows[i].place, place, false) ? ns : 0;
    }
    if (!(there > 0))
        return "";
    return arena_printf(arena, "; of what it computes the most, %.0f%%, is in %s",
                        there / all * 100, where);
}

static void describe(const struct evidence *evidence, const struct serial *serial,
                     struct findings *findings, struct finding *finding)
{
    struct arena *arena = findings->arena;
    const struct profile_thread *thread = &evidence->waits.profile.threads[serial->thread];
    const char *artifact = evidence->axes[AXIS_WAITS].artifact;
    const char *tid = arena_printf(arena, "thread %u", thread->tid);
    const char *where = place_text(arena, &finding->place);
    double share = serial->path_ns / (double)evidence->path.ns;
    finding->title = arena_printf(arena,
                                  "one thread computes for %.0f%% of the time while %u others have "
                                  "nothing to do",
                                  share * 100, serial->workers);
    finding_fact(findings, finding, "path_share", "of the critical path, by one thread",
                 value_real(share * 100, UNIT_PERCENT), artifact, tid);
    finding_fact(findings, finding, "workers", "other threads that compute",
                 value_uint(serial->workers, UNIT_COUNT), artifact, NULL);
    finding_fact(findings, finding, "others_meanwhile", "computed by others meanwhile",
                 value_real(serial->others_ns, UNIT_NS), evidence->axes[AXIS_CPU].artifact, NULL);
    finding_fact(findings, finding, "spread",
                 "threads it could be shared by, on the CPUs there are",
                 value_uint(serial->spread, UNIT_COUNT), NULL, NULL);
    finding_why(findings, finding, arena_printf(arena, "%s %s", artifact, tid),
                "thread %u has %.0f%% of the critical path%s", thread->tid, share * 100,
                most_text(evidence, serial, arena, where, &finding->place));
    finding_why(findings, finding, evidence->axes[AXIS_CPU].artifact,
                "meanwhile the %u other threads that have work at other times compute for %s",
                serial->workers, time_text(arena, serial->others_ns));
    finding_why(findings, finding, artifact,
                "this part of the work is not shared: %u of %u CPUs could do it", serial->spread,
                evidence->costs.cpus);
    finding->advice = arena_printf(arena,
                                   "share the work of %s among the threads, as is done with the "
                                   "rest; at most %u times as fast",
                                   where, serial->spread);
    finding->caution = "only what does not depend on its own earlier results can be shared; the "
                       "gain is that of even parts";
    finding->measure_next = arena_printf(arena, "whyslow waits %s", artifact);
}

static int judge(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    if (evidence->path.na || evidence->path.ns == 0 || !evidence->cpu_with_waits)
        return dismissed(ret, self, "there is no critical path with CPU samples on it") ? 0
                                                                                        : -ENOMEM;
    struct serial serial = serial_find(evidence);
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    const char *fine = fine_reason(evidence, ret->arena, &serial);
    if (fine) {
        finding->verdict = FINDING_DISMISSED;
        finding->unsure = evidence->costs_on_path.environment_ns >=
                          ENVIRONMENT_MAX * evidence->costs_on_path.ns;
        finding->reason = fine;
        return 0;
    }
    const struct path_costs *costs = &evidence->costs_on_path;
    struct estimate cost = path_costs_sum(costs, thread_pick, &serial.thread);
    double busy = 1 + serial.others_ns / serial.running_ns;
    finding->recoverable = estimate_scale(cost, fmax(0, 1 - busy / (double)serial.spread));
    path_costs_cover(ret->arena, costs, thread_pick, &serial.thread, finding);
    finding->place = place_find(costs, serial.thread);
    finding->occurrences = (uint64_t)fmax(cost.ns > 0 ? (double)costs->samples : 0, 0);
    angles_put(evidence, ret->arena, &serial, finding);
    describe(evidence, &serial, ret, finding);
    return 0;
}

const struct detector detect_serial_section = {
    .id = "serial_section",
    .title = "one thread computes, the others have nothing to do",
    .category = CATEGORY_ARCHITECTURE,
    .remedy = REMEDY_REDESIGN,
    .axes = AXIS_BIT_WAITS | AXIS_BIT_CPU,
    .judge = judge,
};
