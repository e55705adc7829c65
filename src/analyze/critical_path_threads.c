/* Every thread's long waits in order, and how the time between them is made up.
 *
 * A recording is not trusted: events that overlap (clocks of two CPUs, damage) are cut to
 * follow each other, so that the walk can rely on it. */
#include "analyze/critical_path_parts.h"

#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A tally that leaves more than this of a thread's time unexplained has lost some. */
static const double accounted_enough = 0.99;
/* What an announcement may be late by, when one name takes over from another. */
static const uint64_t name_gap_ns_max = 1000000;

static uint32_t row_thread(const struct waits *waits, uint32_t row)
{
    uint32_t thread = row < waits->row_count ? waits->rows[row].info.thread : 0;
    return thread < waits->profile.thread_count ? thread : 0;
}

static uint32_t event_thread(const struct waits *waits, const struct wait_event *event)
{
    return event->wait ? row_thread(waits, event->wait) : 0;
}

static int event_order(const void *a, const void *b)
{
    const struct path_event *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->run_ns != y->run_ns)
        return x->run_ns < y->run_ns ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* In order and without overlap; what is left of nothing is dropped. */
static void events_order(struct path_thread *thread, struct path_event *events)
{
    qsort(events, thread->event_count, sizeof(*events), event_order);
    size_t kept = 0;
    uint64_t free_ns = 0, covered_ns = 0;
    for (size_t i = 0; i < thread->event_count; i++) {
        struct path_event event = events[i];
        event.start_ns = MAX(event.start_ns, free_ns);
        event.run_ns = MAX(event.run_ns, event.wake_ns);
        if (event.wake_ns <= event.start_ns)
            continue;
        event.covered_ns = covered_ns;
        covered_ns += event.run_ns - event.start_ns;
        free_ns = event.run_ns;
        events[kept++] = event;
    }
    thread->event_count = kept;
}

uint32_t path_waker_of(const struct waits *waits, uint32_t row)
{
    const struct wait_info *info = &waits->rows[row].info;
    uint32_t waker = info->waker_thread;
    return waker < waits->profile.thread_count && waker != info->thread ? waker : 0;
}

/* The object may be another: glibc's condition variables have two, by turns. */
bool path_goes_on(const struct waits *waits, const struct path_event *first,
                  const struct path_event *second)
{
    const struct wait_info *a = &waits->rows[first->row].info, *b = &waits->rows[second->row].info;
    bool limit = (a->flags & WAIT_LIMITED) && (a->flags & WAIT_BY_INTERRUPT);
    return (limit || waits_is_cut(waits, a)) && a->stack != 0 && a->stack == b->stack &&
           a->syscall == b->syscall && second->start_ns - first->run_ns <= PATH_LOOK_NS_MAX;
}

/* Waits with a time limit, again and again, are one wait for whoever ends the last of them. */
static void wakers_find(const struct waits *waits, const struct path_thread *thread,
                        struct path_event *events)
{
    for (size_t i = thread->event_count; i-- > 0;) {
        events[i].waker = path_waker_of(waits, events[i].row);
        if (events[i].waker == 0 && i + 1 < thread->event_count &&
            path_goes_on(waits, &events[i], &events[i + 1]))
            events[i].waker = events[i + 1].waker;
    }
}

static int events_build(struct arena *arena, const struct waits *waits, struct path_threads *ret)
{
    ret->events = arena_alloc(arena, MAX(waits->event_count, (size_t)1) * sizeof(*ret->events));
    if (!ret->events)
        return -ENOMEM;
    for (size_t i = 0; i < waits->event_count; i++)
        ret->threads[event_thread(waits, &waits->events[i])].event_count++;
    size_t at = 0;
    for (size_t i = 0; i < ret->count; i++) {
        ret->threads[i].event_first = at;
        at += ret->threads[i].event_count;
        ret->threads[i].event_count = 0;
    }
    for (size_t i = 0; i < waits->event_count; i++) {
        const struct wait_event *event = &waits->events[i];
        struct path_thread *thread = &ret->threads[event_thread(waits, event)];
        ret->events[thread->event_first + thread->event_count++] = (struct path_event){
            .start_ns = event->start_ns,
            .wake_ns = event->wake_ns,
            .run_ns = event->run_ns,
            .row = event->wait,
        };
    }
    for (size_t i = 0; i < ret->count; i++) {
        struct path_event *events = ret->events + ret->threads[i].event_first;
        events_order(&ret->threads[i], events);
        wakers_find(waits, &ret->threads[i], events);
    }
    return 0;
}

struct path_event *path_threads_before(const struct path_threads *threads, uint32_t thread,
                                       uint64_t time_ns)
{
    const struct path_thread *t = &threads->threads[thread];
    struct path_event *events = threads->events + t->event_first;
    size_t low = 0, high = t->event_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (events[middle].start_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &events[low - 1] : NULL;
}

/* How much of a thread's time before `time_ns` its long waits took. */
static uint64_t covered_before(const struct path_threads *threads, uint32_t thread,
                               uint64_t time_ns)
{
    const struct path_event *event = path_threads_before(threads, thread, time_ns);
    if (!event)
        return 0;
    return event->covered_ns + MIN(time_ns, event->run_ns) - event->start_ns;
}

/* The time between long waits from one moment to another. */
static uint64_t between_ns(const struct path_threads *threads, uint32_t thread, uint64_t from_ns,
                           uint64_t to_ns)
{
    if (to_ns <= from_ns)
        return 0;
    uint64_t covered = covered_before(threads, thread, to_ns) -
                       covered_before(threads, thread, from_ns);
    return to_ns - from_ns - MIN(covered, to_ns - from_ns);
}

static int short_order(const void *a, const void *b)
{
    const struct path_short *x = a, *y = b;
    if (x->carry_ns != y->carry_ns)
        return x->carry_ns < y->carry_ns ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

/* What of a thread's time between long waits is told by nobody else is taken to be like what
 * is told: then all densities grow by the same factor. 1 when nothing is missing, or when it
 * is not known how long the thread ran. */
static double missing_factor(const struct waits_thread *life, double between, double short_ns,
                             double runq_ns)
{
    double told = (double)life->running_ns + short_ns + runq_ns;
    if (life->running_ns == 0 || told <= 0 || told >= accounted_enough * between)
        return 1;
    return between / told;
}

/* carry_ns holds the time of each row until here. */
static void densities_make(const struct waits *waits, struct path_threads *threads, uint32_t id)
{
    struct path_thread *thread = &threads->threads[id];
    const struct waits_thread *life = &waits->threads[id];
    struct path_short *shorts = threads->shorts + thread->short_first;
    double between = (double)between_ns(threads, id, life->start_ns, life->end_ns), short_ns = 0;
    uint64_t runq_long_ns = 0;
    for (size_t i = 0; i < thread->event_count; i++) {
        const struct path_event *event = &threads->events[thread->event_first + i];
        runq_long_ns += event->run_ns - event->wake_ns;
    }
    double runq_ns = (double)(life->runq_ns - MIN(runq_long_ns, life->runq_ns));
    for (size_t i = 0; i < thread->short_count; i++)
        short_ns += shorts[i].carry_ns;
    double factor = missing_factor(life, between, short_ns, runq_ns);
    if (between > 0)
        thread->runq_density = factor * runq_ns / between;
    qsort(shorts, thread->short_count, sizeof(*shorts), short_order);
    double rest_ns = 0;
    for (size_t i = 0; i < thread->short_count; i++) {
        struct path_short *row = &shorts[i];
        double total_ns = row->carry_ns;
        uint64_t window = between_ns(threads, id, row->first_ns, row->last_ns);
        row->carry_ns = 0;
        if (i < PATH_SHORT_MAX)
            row->density = factor * total_ns / (double)MAX(window, (uint64_t)1);
        else if (between > 0) {
            rest_ns += total_ns;
            row->density = rest_ns; /* so far: they take turns by size */
            thread->rest_density = factor * rest_ns / between;
        }
    }
}

static int shorts_build(struct arena *arena, const struct waits *waits, struct path_threads *ret)
{
    uint64_t *long_ns = calloc(MAX(waits->row_count, (size_t)1), sizeof(*long_ns));
    ret->shorts = arena_alloc(arena, MAX(waits->row_count, (size_t)1) * sizeof(*ret->shorts));
    if (!long_ns || !ret->shorts) {
        free(long_ns);
        return -ENOMEM;
    }
    for (size_t i = 0; i < waits->event_count; i++) {
        const struct wait_event *event = &waits->events[i];
        if (event_thread(waits, event) && event->wake_ns > event->start_ns)
            long_ns[event->wait] += event->wake_ns - event->start_ns;
    }
    /* Twice over the rows: how many of each thread, then each to its place. */
    size_t at = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 1; i < waits->row_count; i++) {
            const struct wait_row *row = &waits->rows[i];
            struct path_thread *thread = &ret->threads[row_thread(waits, (uint32_t)i)];
            if (row->info.kind == WAIT_RUNQ)
                thread->runq_row = (uint32_t)i;
            if (!waits_is_off(waits, &row->info) || row->tally.total_ns <= long_ns[i])
                continue;
            if (pass == 1)
                ret->shorts[thread->short_first + thread->short_count] = (struct path_short){
                    .row = (uint32_t)i,
                    .first_ns = row->tally.first_ns,
                    .last_ns = row->tally.last_ns,
                    .carry_ns = (double)(row->tally.total_ns - long_ns[i]),
                };
            thread->short_count++;
        }
        for (size_t i = 0; i < ret->count && pass == 0; i++) {
            ret->threads[i].short_first = at;
            at += ret->threads[i].short_count;
            ret->threads[i].short_count = 0;
        }
    }
    free(long_ns);
    for (size_t i = 1; i < ret->count; i++)
        densities_make(waits, ret, (uint32_t)i);
    return 0;
}

uint32_t path_threads_rest_row(const struct path_threads *threads, uint32_t thread, double at_ns,
                               uint64_t *ret_left_ns)
{
    const struct path_thread *t = &threads->threads[thread];
    const struct path_short *shorts = threads->shorts + t->short_first;
    if (t->short_count <= PATH_SHORT_MAX)
        return 0;
    size_t low = PATH_SHORT_MAX, high = t->short_count - 1;
    double sum = shorts[high].density;
    at_ns -= (double)(uint64_t)(at_ns / sum) * sum;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (shorts[middle].density <= at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_left_ns = (uint64_t)(shorts[low].density - at_ns);
    return shorts[low].row;
}

static uint64_t apart_ns(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* A thread that gets another name, or another program by exec, goes on as another entry: one
 * begins where the other ends. A number that is given out again later is another thread. */
static int names_join(const struct waits *waits, struct path_threads *ret)
{
    const struct profile *profile = &waits->profile;
    struct map_u64 last = {0};
    int r = 0;
    for (size_t i = 1; i < profile->thread_count; i++) {
        uint64_t *at = map_u64_at(&last, profile->threads[i].tid, NULL);
        if (!at) {
            r = -ENOMEM;
            break;
        }
        const struct waits_thread *before = &waits->threads[*at], *life = &waits->threads[i];
        uint32_t process = profile->threads[i].process;
        bool same = process == profile->threads[*at].process ||
                    (process < profile->process_count &&
                     profile->threads[i].tid == profile->processes[process].pid);
        if (*at != 0 && same && before->start_ns <= life->start_ns &&
            apart_ns(before->end_ns, life->start_ns) <= name_gap_ns_max)
            ret->threads[i].before = (uint32_t)*at;
        *at = i;
    }
    map_u64_deinit(&last);
    return r;
}

/* A recording says when a thread began, not who made it: the main thread of its process, or of
 * a main thread the main thread of the parent. */
static int creators_find(const struct waits *waits, struct path_threads *ret)
{
    const struct profile *profile = &waits->profile;
    uint32_t *mains = calloc(MAX(profile->process_count, (size_t)1), sizeof(*mains));
    if (!mains)
        return -ENOMEM;
    for (size_t i = 1; i < profile->thread_count; i++) {
        uint32_t process = profile->threads[i].process;
        if (process < profile->process_count &&
            profile->threads[i].tid == profile->processes[process].pid)
            mains[process] = (uint32_t)i;
    }
    for (size_t i = 1; i < profile->thread_count; i++) {
        uint32_t process = profile->threads[i].process;
        if (process == 0 || process >= profile->process_count)
            continue;
        uint32_t parent = profile->processes[process].parent;
        if (profile->threads[i].tid != profile->processes[process].pid)
            ret->threads[i].creator = mains[process];
        else if (parent < profile->process_count)
            ret->threads[i].creator = mains[parent];
    }
    free(mains);
    return 0;
}

int path_threads_build(struct arena *arena, const struct waits *waits, struct path_threads *ret)
{
    struct path_threads threads = {.count = MAX(waits->profile.thread_count, (size_t)1)};
    threads.threads = arena_alloc(arena, threads.count * sizeof(*threads.threads));
    if (!threads.threads)
        return -ENOMEM;
    int r = events_build(arena, waits, &threads);
    if (r == 0)
        r = shorts_build(arena, waits, &threads);
    if (r == 0)
        r = names_join(waits, &threads);
    if (r == 0)
        r = creators_find(waits, &threads);
    if (r == 0)
        *ret = threads;
    return r;
}
