/* The critical path spread over stacks, in nanoseconds of the baseline. */
#include "analyze/path_costs.h"

#include "analyze/places.h"
#include "analyze/wait_parts.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In the place of a stack: the run queue of a thread. */
#define STACK_RUNQ UINT32_MAX

/* A clock that samples is a timer, set and stopped whenever the thread comes and goes: a sleep
 * takes longer by some microseconds, an fsync, which is several, by up to so many. Counters cost
 * less. */
#define TIMER_SLEEP_NS 40000.0
#define CPU_TIME_SLACK 1.05 /* runs differ by so much in CPU time, too */

/* What the steps of one build share. */
struct spread {
    const struct profile *cpu; /* NULL: none */
    const struct waits *waits; /* NULL: none */
    const struct critical_path *path;
    size_t thread_count;
    double *running; /* on the path, by thread: ns of the recording */
    double *sampled; /* the same by samples: weight */
    struct map_u64 row_at;
    VEC(struct path_cost) rows;
};

static struct path_cost *row_at(struct spread *spread, uint32_t thread, uint32_t stack,
                                uint32_t wait, bool runq)
{
    bool fresh;
    /* A wait's row knows its thread and stack. */
    uint64_t key = wait ? (uint64_t)1 << 63 | (uint64_t)runq << 62 | wait
                        : (uint64_t)thread << 32 | stack;
    uint64_t *at = map_u64_at(&spread->row_at, key, &fresh);
    if (!at)
        return NULL;
    if (fresh) {
        *at = spread->rows.len;
        struct path_cost made = {.thread = thread, .stack = stack, .wait = wait};
        if (VEC_PUSH(&spread->rows, made) < 0)
            return NULL;
    }
    return &spread->rows.data[*at];
}

static bool is_sampled(const struct path_cost *row)
{
    return row->wait == 0 && row->stack != STACK_RUNQ;
}

/* Samples of threads while the path was in them. Waits that were only added up stand somewhere in
 * their span: a thread that was sampled there ran. */
static int samples_on_path(struct spread *spread)
{
    const struct profile *cpu = spread->cpu;
    const struct critical_path *path = spread->path;
    size_t at = 0;
    for (size_t i = 0; i < cpu->sample_count; i++) {
        uint32_t thread = cpu->sample_thread[i];
        while (at < path->step_count && path->steps[at].end_ns <= cpu->sample_time_ns[i])
            at++;
        if (at == path->step_count)
            break;
        const struct path_step *step = &path->steps[at];
        if (step->thread != thread || step->start_ns > cpu->sample_time_ns[i] ||
            thread >= spread->thread_count || spread->running[thread] == 0)
            continue;
        struct path_cost *row = row_at(spread, thread, cpu->sample_stack[i], 0, false);
        if (!row)
            return -ENOMEM;
        row->ns += (double)cpu->sample_weight[i];
        row->count++;
        spread->sampled[thread] += (double)cpu->sample_weight[i];
    }
    return 0;
}

/* A thread that ran on the path between two samples: then like all of its time. */
static int samples_of_thread(struct spread *spread)
{
    const struct profile *cpu = spread->cpu;
    for (size_t i = 0; i < cpu->total_count; i++) {
        const struct profile_total *total = &cpu->totals[i];
        if (total->thread >= spread->thread_count || spread->sampled[total->thread] > 0 ||
            spread->running[total->thread] == 0)
            continue;
        struct path_cost *row = row_at(spread, total->thread, total->stack, 0, false);
        if (!row)
            return -ENOMEM;
        row->ns += (double)total->weight;
    }
    return 0;
}

/* Weights of samples become the running time of their thread. */
static int running_fit(struct spread *spread, struct path_costs *ret)
{
    double *sums = calloc(spread->thread_count + 1, sizeof(*sums));
    if (!sums)
        return -ENOMEM;
    for (size_t i = 0; i < spread->rows.len; i++)
        if (is_sampled(&spread->rows.data[i]))
            sums[spread->rows.data[i].thread] += spread->rows.data[i].ns;
    for (size_t i = 0; i < spread->rows.len; i++) {
        struct path_cost *row = &spread->rows.data[i];
        if (is_sampled(row) && sums[row->thread] > 0) {
            row->ns *= spread->running[row->thread] / sums[row->thread];
            ret->samples += row->count;
        }
    }
    int r = 0;
    for (uint32_t i = 0; i < spread->thread_count && r == 0; i++) {
        ret->sampled_ns += spread->sampled[i];
        if (spread->running[i] == 0 || sums[i] > 0)
            continue;
        struct path_cost *row = row_at(spread, i, 0, 0, false); /* nobody sampled it */
        if (row)
            row->ns += spread->running[i];
        else
            r = -ENOMEM;
    }
    free(sums);
    return r;
}

static void running_add(struct spread *spread)
{
    for (size_t i = 0; i < spread->path->share_count; i++)
        if (spread->path->shares[i].what == PATH_RUNNING)
            spread->running[spread->path->shares[i].thread] += (double)spread->path->shares[i].ns;
}

/* Until it runs again after a wait is a price of that wait: without the wait it would not be paid.
 * Other time on the run queue belongs to nobody. */
static int waits_add(struct spread *spread, const struct wait_classes *classes)
{
    const struct critical_path *path = spread->path;
    for (size_t i = 0; i < path->step_count; i++) {
        const struct path_step *step = &path->steps[i];
        const struct path_step *before = i > 0 ? &path->steps[i - 1] : NULL;
        bool runq = step->what == PATH_RUNQ;
        if (step->what == PATH_RUNNING)
            continue;
        uint32_t wait = runq ? 0 : step->wait;
        if (runq && before && before->what == PATH_WAIT && before->thread == step->thread)
            wait = before->wait;
        uint32_t stack = wait ? spread->waits->rows[wait].info.stack : STACK_RUNQ;
        struct path_cost *row = row_at(spread, step->thread, stack, wait, runq);
        if (!row)
            return -ENOMEM;
        row->class = runq ? WAIT_CLASS_RUNQ : classes->rows[wait];
        row->ns += (double)(step->end_ns - step->start_ns);
        row->count++;
    }
    return 0;
}

/* Short waits of one thread and its delays before it ran again, without those of long waits. */
struct wakes {
    uint64_t delays[WAIT_BUCKETS];
    double waits;   /* all */
    double on_path; /* of them */
    double runq_ns; /* of the path, to be given to them */
};

/* How often each row waited but for a short time: `shorts`, by row. */
static void wakes_count(const struct spread *spread, double *shorts, struct wakes *threads)
{
    const struct waits *waits = spread->waits;
    for (size_t i = 1; i < waits->row_count; i++) {
        const struct wait_row *row = &waits->rows[i];
        if (row->info.thread >= spread->thread_count)
            continue;
        if (waits_is_off(waits, &row->info))
            shorts[i] = (double)row->tally.count;
        for (unsigned b = 0; row->info.kind == WAIT_RUNQ && b < WAIT_BUCKETS; b++)
            threads[row->info.thread].delays[b] += row->tally.buckets[b];
    }
    for (size_t i = 0; i < waits->event_count; i++) {
        const struct wait_event *event = &waits->events[i];
        if (event->wait >= waits->row_count || shorts[event->wait] < 1)
            continue;
        shorts[event->wait]--;
        uint64_t *delays = threads[waits->rows[event->wait].info.thread].delays;
        unsigned bucket = wait_bucket(event->run_ns - MIN(event->wake_ns, event->run_ns));
        if (event->run_ns > event->wake_ns && delays[bucket] > 0)
            delays[bucket]--;
    }
    for (size_t i = 1; i < waits->row_count; i++) {
        const struct wait_row *row = &waits->rows[i];
        if (shorts[i] == 0)
            continue;
        threads[row->info.thread].waits += shorts[i];
        if (row->tally.total_ns > 0)
            shorts[i] *= fmin(1, (double)spread->path->waits[i] / (double)row->tally.total_ns);
        threads[row->info.thread].on_path += shorts[i];
    }
}

/* How much of a thread's delays is of being woken, 0 … 1: as many as it waited, the short ones.
 * The others are of being driven off the CPU: that takes the slices of others. */
static double woken_part(const struct wakes *thread)
{
    double waits = thread->waits, woken_ns = 0, all_ns = 0;
    for (unsigned b = 0; b < WAIT_BUCKETS; b++) {
        double of_waits = fmin((double)thread->delays[b], waits);
        waits -= of_waits;
        woken_ns += of_waits * (double)wait_bucket_ns(b);
        all_ns += (double)thread->delays[b] * (double)wait_bucket_ns(b);
    }
    return all_ns > 0 ? woken_ns / all_ns : 0;
}

/* Waits that were only added up have delays that were only added up: each of them had one. */
static int runq_give(struct arena *arena, struct spread *spread)
{
    const struct waits *waits = spread->waits;
    double *shorts = arena_alloc(arena, (waits->row_count + 1) * sizeof(*shorts));
    struct wakes *threads = arena_alloc(arena, (spread->thread_count + 1) * sizeof(*threads));
    if (!shorts || !threads)
        return -ENOMEM;
    wakes_count(spread, shorts, threads);
    for (size_t i = 0; i < spread->rows.len; i++) {
        struct path_cost *row = &spread->rows.data[i];
        struct wakes *thread = &threads[row->thread];
        if (row->class != WAIT_CLASS_RUNQ || row->wait || thread->on_path == 0)
            continue;
        thread->runq_ns = row->ns * woken_part(thread);
        row->ns -= thread->runq_ns;
    }
    for (uint32_t i = 1; i < waits->row_count; i++) {
        const struct wait_info *info = &waits->rows[i].info;
        if (shorts[i] == 0 || threads[info->thread].runq_ns == 0)
            continue;
        struct path_cost *row = row_at(spread, info->thread, info->stack, i, true);
        if (!row)
            return -ENOMEM;
        row->class = WAIT_CLASS_RUNQ;
        row->ns += threads[info->thread].runq_ns * shorts[i] / threads[info->thread].on_path;
        row->count++;
    }
    return 0;
}

static int by_ns(const void *a, const void *b)
{
    const struct path_cost *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return x->thread != y->thread ? (x->thread > y->thread) - (x->thread < y->thread)
           : x->stack != y->stack ? (x->stack > y->stack) - (x->stack < y->stack)
           : x->wait != y->wait   ? (x->wait > y->wait) - (x->wait < y->wait)
                                  : (int)x->class - (int)y->class;
}

/* The call of a wait was recorded with it; that of a sample is read off its stack. */
static struct str call_of(const struct spread *spread, const struct places *places,
                          enum syscall_machine machine, const struct path_cost *row)
{
    int32_t number = row->wait ? spread->waits->rows[row->wait].info.syscall : -1;
    const char *name = number >= 0 ? syscall_name_on(machine, number) : NULL;
    if (name)
        return str_from(name);
    return row->stack ? places_syscall(places, row->stack) : (struct str){0};
}

/* Waits that lead on to another thread are on the path, too, but not as time of this row. */
static double sleeps_of(const struct spread *spread, const struct path_cost *row)
{
    if (row->wait == 0 || row->class == WAIT_CLASS_RUNQ)
        return 0;
    const struct wait_tally *tally = &spread->waits->rows[row->wait].tally;
    return tally->total_ns > 0 ? (double)tally->count * fmin(1, row->ns / (double)tally->total_ns)
                               : 0;
}

static int rows_keep(struct arena *arena, struct spread *spread, double scale,
                     struct path_costs *ret)
{
    struct places places = {0};
    enum syscall_machine machine = profile_machine(ret->profile);
    ret->rows = arena_alloc(arena, (spread->rows.len + 1) * sizeof(*ret->rows));
    int r = ret->rows ? places_init(ret->profile, &places) : -ENOMEM;
    for (size_t i = 0; i < spread->rows.len && r == 0; i++) {
        struct path_cost row = spread->rows.data[i];
        row.sleeps = sleeps_of(spread, &row);
        row.ns *= scale;
        if (row.stack == STACK_RUNQ || row.stack >= ret->profile->stack_count)
            row.stack = 0;
        row.syscall = call_of(spread, &places, machine, &row);
        row.place = places_of_stack(&places, row.stack);
        ret->classes[row.class] += row.ns;
        ret->rows[ret->count++] = row;
    }
    places_deinit(&places);
    ret->sampled_ns *= scale;
    if (r == 0)
        qsort(ret->rows, ret->count, sizeof(*ret->rows), by_ns);
    return r;
}

static double class_ns(const struct spread *spread, enum wait_class class)
{
    double ns = 0;
    for (size_t i = 0; i < spread->rows.len; i++)
        if (spread->rows.data[i].class == class)
            ns += spread->rows.data[i].ns;
    return ns;
}

static void class_scale(struct spread *spread, enum wait_class class, double factor)
{
    for (size_t i = 0; i < spread->rows.len; i++)
        if (spread->rows.data[i].class == class)
            spread->rows.data[i].ns *= factor;
}

/* What can have run: the CPU time of plain runs, or, where more was seen (of children that nobody
 * waits for there is no account), as much less as the account of the recorded run is larger. */
static double running_most(const struct path_wall *wall, double ran_ns)
{
    double part = wall->cpu_ns / wall->recorded_cpu_ns * CPU_TIME_SLACK;
    double most = isnan(part) ? ran_ns : ran_ns * fmin(part, 1);
    return fmax(wall->cpu_ns * CPU_TIME_SLACK, most); /* fmax() passes over what is not known */
}

/* A recorded run is longer than a plain one because recording computes, too, in the program's own
 * time, and because it has to wait for a CPU: for whoever records, or for another program. What ran
 * beyond the CPU time of plain runs goes first, then what waited for a CPU, then all is scaled.
 * Returns how long the path is without. */
static double longer_fit(struct spread *spread, const struct path_wall *wall, double wall_ns)
{
    double path_ns = (double)spread->path->ns;
    double ran_ns = class_ns(spread, WAIT_CLASS_RUNNING);
    double gone = fmin(path_ns - wall_ns, ran_ns - running_most(wall, ran_ns));
    if (gone > 0) {
        class_scale(spread, WAIT_CLASS_RUNNING, 1 - gone / ran_ns);
        path_ns -= gone;
    }
    /* Something is left: a row that is there stays there. */
    double runq_ns = class_ns(spread, WAIT_CLASS_RUNQ);
    gone = fmin(path_ns - wall_ns, 0.99 * runq_ns);
    if (gone > 0) {
        class_scale(spread, WAIT_CLASS_RUNQ, 1 - gone / runq_ns);
        path_ns -= gone;
    }
    return path_ns;
}

/* A recorded run that others disturbed less than plain ones is shorter, and all of it is stretched;
 * one whose computing recording made longer may have waited less. A CPU's work does not grow with
 * that. Where the rest of a plain run went was not seen. */
static void running_cap(struct spread *spread, const struct path_wall *wall, double ran_ns,
                        double scale)
{
    double most = running_most(wall, ran_ns), now = class_ns(spread, WAIT_CLASS_RUNNING) * scale;
    if (now > most)
        class_scale(spread, WAIT_CLASS_RUNNING, most / now);
}

static int from_path(struct arena *arena, struct spread *spread, const struct wait_classes *classes,
                     const struct path_wall *wall, struct path_costs *ret)
{
    spread->thread_count = spread->waits->profile.thread_count;
    spread->running = arena_alloc(arena, (spread->thread_count + 1) * sizeof(double));
    spread->sampled = arena_alloc(arena, (spread->thread_count + 1) * sizeof(double));
    if (!spread->running || !spread->sampled)
        return -ENOMEM;
    running_add(spread);
    int r = spread->cpu ? samples_on_path(spread) : 0;
    if (r == 0 && spread->cpu)
        r = samples_of_thread(spread);
    if (r == 0)
        r = waits_add(spread, classes);
    if (r == 0)
        r = runq_give(arena, spread);
    if (r == 0)
        r = running_fit(spread, ret);
    if (r < 0)
        return r;
    double ran_ns = class_ns(spread, WAIT_CLASS_RUNNING);
    double scale = ret->ns / longer_fit(spread, wall, ret->ns);
    ret->stretch = fabs(1 / scale - 1);
    running_cap(spread, wall, ran_ns, scale);
    return rows_keep(arena, spread, scale, ret);
}

/* Without waits: samples of all threads, and what they do not cover is not seen. */
static int from_samples(struct arena *arena, struct spread *spread, struct path_costs *ret)
{
    for (size_t i = 0; i < spread->cpu->total_count; i++) {
        const struct profile_total *total = &spread->cpu->totals[i];
        struct path_cost *row = row_at(spread, total->thread, total->stack, 0, false);
        if (!row)
            return -ENOMEM;
        row->ns += (double)total->weight;
        row->count += total->count;
    }
    double sampled = (double)spread->cpu->weight;
    double scale = sampled > ret->ns && sampled > 0 ? ret->ns / sampled : 1;
    ret->samples = spread->cpu->count;
    ret->sampled_ns = sampled;
    ret->unseen_ns = fmax(0, ret->ns - sampled);
    return rows_keep(arena, spread, scale, ret);
}

static bool is_by_timer(const struct profile *cpu)
{
    return cpu && cpu->about && strstr(cpu->about, "cpu-clock");
}

int path_costs_build(struct arena *arena, const struct profile *cpu, const struct waits *waits,
                     const struct wait_classes *classes, const struct critical_path *path,
                     bool same, const struct path_wall *wall, struct path_costs *ret)
{
    bool walked = waits && path && !path->na && path->ns > 0;
    bool known = wall->ns > 0 && wall->low_ns > 0 && wall->high_ns > 0;
    struct spread spread = {.cpu = !walked || same ? cpu : NULL, .waits = waits, .path = path};
    *ret = (struct path_costs){
        .profile = spread.cpu ? spread.cpu
                   : waits    ? &waits->profile
                              : NULL,
        .ns = wall->ns > 0 ? wall->ns
              : walked     ? (double)path->ns
              : cpu        ? (double)cpu->weight
                           : 0,
        .sleep_ns = walked && is_by_timer(spread.cpu) ? TIMER_SLEEP_NS : 0,
        .wall_low = known ? fmin(wall->low_ns / wall->ns, 1) : 1,
        .wall_high = known ? fmax(wall->high_ns / wall->ns, 1) : 1,
        .few_runs = wall->few_runs,
        .na = walked  ? NULL
              : waits ? (path && path->na ? path->na : "the critical path is empty")
                      : "waits were not recorded",
    };
    int r = 0;
    if (walked)
        r = from_path(arena, &spread, classes, wall, ret);
    else if (spread.cpu)
        r = from_samples(arena, &spread, ret);
    map_u64_deinit(&spread.row_at);
    VEC_FREE(&spread.rows);
    return r;
}
