/* The replay: long waits in the order in which they ended, and in between, tick by tick, what was
 * only added up. */
#include "analyze/what_if.h"

#include "analyze/critical_path_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
    TICKS = 2000,
    SHORT_ROWS_MAX = 512, /* of waits for each other, the longest: others bind nobody */
};

struct runner { /* a thread */
    double ahead_ns;
    uint64_t seen_ns; /* until here */
    bool begun;
    /* Spread over its time outside of long waits, from first to last: what it gains. */
    double rate;
    uint64_t first_ns, last_ns;
};

struct bond { /* short waits of one thread for another */
    uint32_t thread, waker;
    uint64_t first_ns, last_ns;
    double ns, rate;
};

struct replay {
    const struct what_if *what;
    struct path_threads threads;
    struct runner *runners;
    struct bond *bonds;
    size_t bond_count;
    struct path_event **events; /* by wake_ns */
    uint32_t *event_threads;
    size_t event_count;
};

static bool is_waited(const struct waits *waits, const struct wait_row *row)
{
    return waits_is_off(waits, &row->info) && row->info.thread < waits->profile.thread_count;
}

/* A thread begins as far ahead as the one that made it was. */
static void runner_begin(struct replay *replay, uint32_t id)
{
    const struct path_thread *thread = &replay->threads.threads[id];
    struct runner *runner = &replay->runners[id];
    uint32_t from = thread->before ? thread->before : thread->creator;
    if (runner->begun)
        return;
    runner->begun = true;
    runner->seen_ns = replay->what->waits->threads[id].start_ns;
    if (from && from != id)
        runner->ahead_ns = replay->runners[from].ahead_ns;
}

/* Up to a moment, in which it did not wait for long. */
static void runner_run(struct replay *replay, uint32_t id, uint64_t to_ns)
{
    struct runner *runner = &replay->runners[id];
    uint64_t from_ns = MAX(runner->seen_ns, runner->first_ns);
    uint64_t until_ns = MIN(to_ns, runner->last_ns);
    if (until_ns > from_ns)
        runner->ahead_ns += runner->rate * (double)(until_ns - from_ns);
    runner->seen_ns = MAX(runner->seen_ns, to_ns);
}

/* Is it in a long wait at this moment? Then nothing is gained until it ends. */
static bool runner_waits(const struct replay *replay, uint32_t id, uint64_t time_ns)
{
    const struct path_event *event = path_threads_before(&replay->threads, id, time_ns);
    return event && event->run_ns > time_ns;
}

static void event_play(struct replay *replay, uint32_t id, const struct path_event *event)
{
    struct runner *runner = &replay->runners[id];
    runner_run(replay, id, event->start_ns);
    double waited = (double)(event->wake_ns - event->start_ns);
    double gone = (double)replay->what->gone[event->row];
    if (gone > 0) {
        runner->ahead_ns += gone * (double)(event->run_ns - event->start_ns);
    } else if (event->waker && event->waker != id) {
        struct runner *waker = &replay->runners[event->waker];
        runner_begin(replay, event->waker);
        if (!runner_waits(replay, event->waker, event->wake_ns))
            runner_run(replay, event->waker, event->wake_ns);
        runner->ahead_ns = fmin(runner->ahead_ns + waited, waker->ahead_ns);
    }
    runner->seen_ns = MAX(runner->seen_ns, event->run_ns);
}

static void bonds_hold(struct replay *replay, uint64_t from_ns, uint64_t to_ns)
{
    for (size_t i = 0; i < replay->bond_count; i++) {
        const struct bond *bond = &replay->bonds[i];
        uint64_t start = MAX(from_ns, bond->first_ns), end = MIN(to_ns, bond->last_ns);
        if (end <= start || runner_waits(replay, bond->thread, to_ns) ||
            runner_waits(replay, bond->waker, to_ns))
            continue;
        runner_begin(replay, bond->waker);
        runner_run(replay, bond->thread, to_ns);
        runner_run(replay, bond->waker, to_ns);
        struct runner *runner = &replay->runners[bond->thread];
        double waited = bond->rate * (double)(end - start);
        runner->ahead_ns = fmin(runner->ahead_ns + waited, replay->runners[bond->waker].ahead_ns);
    }
}

static double play(struct replay *replay)
{
    const struct waits *waits = replay->what->waits;
    uint64_t tick_ns = MAX((waits->end_ns - waits->start_ns) / TICKS, (uint64_t)1);
    uint64_t now_ns = waits->start_ns;
    uint32_t root = waits->root_thread;
    size_t at = 0;
    for (int tick = 0; tick <= TICKS; tick++) {
        uint64_t next_ns = now_ns + tick_ns;
        for (; at < replay->event_count && replay->events[at]->wake_ns <= next_ns; at++) {
            runner_begin(replay, replay->event_threads[at]);
            event_play(replay, replay->event_threads[at], replay->events[at]);
        }
        for (uint32_t i = 1; i < waits->profile.thread_count; i++)
            if (waits->threads[i].start_ns <= next_ns)
                runner_begin(replay, i);
        bonds_hold(replay, now_ns, next_ns);
        now_ns = next_ns;
    }
    runner_run(replay, root, waits->threads[root].end_ns);
    return replay->runners[root].ahead_ns;
}

struct placed {
    struct path_event *event;
    uint32_t thread;
};

static int by_wake(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->event->wake_ns != y->event->wake_ns)
        return x->event->wake_ns < y->event->wake_ns ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static int events_order(struct arena *arena, struct replay *replay)
{
    size_t room = MAX(replay->what->waits->event_count, (size_t)1), count = 0;
    struct placed *placed = calloc(room, sizeof(*placed));
    replay->events = arena_alloc(arena, room * sizeof(struct path_event *));
    replay->event_threads = arena_alloc(arena, room * sizeof(*replay->event_threads));
    if (!placed || !replay->events || !replay->event_threads) {
        free(placed);
        return -ENOMEM;
    }
    for (uint32_t i = 1; i < replay->threads.count; i++) {
        const struct path_thread *thread = &replay->threads.threads[i];
        for (size_t k = 0; k < thread->event_count && count < room; k++)
            placed[count++] = (struct placed){&replay->threads.events[thread->event_first + k], i};
    }
    qsort(placed, count, sizeof(*placed), by_wake);
    for (size_t i = 0; i < count; i++) {
        replay->events[i] = placed[i].event;
        replay->event_threads[i] = placed[i].thread;
    }
    replay->event_count = count;
    free(placed);
    return 0;
}

/* What of a row was told one by one. */
static double *long_sums(struct arena *arena, const struct replay *replay)
{
    double *sums = arena_alloc(arena,
                               MAX(replay->what->waits->row_count, (size_t)1) * sizeof(*sums));
    for (size_t i = 0; sums && i < replay->event_count; i++)
        sums[replay->events[i]->row] += (double)(replay->events[i]->wake_ns -
                                                 replay->events[i]->start_ns);
    return sums;
}

/* The time of a thread outside of its long waits, in a span. */
static double outside_ns(const struct replay *replay, uint32_t id, uint64_t from_ns, uint64_t to_ns)
{
    const struct path_thread *thread = &replay->threads.threads[id];
    double ns = to_ns > from_ns ? (double)(to_ns - from_ns) : 0;
    for (size_t i = 0; i < thread->event_count; i++) {
        const struct path_event *event = &replay->threads.events[thread->event_first + i];
        uint64_t start = MAX(event->start_ns, from_ns), end = MIN(event->run_ns, to_ns);
        if (end > start)
            ns -= (double)(end - start);
    }
    return fmax(ns, 1);
}

static int by_time(const void *a, const void *b)
{
    const struct bond *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static int bonds_make(struct arena *arena, struct replay *replay, const double *longs)
{
    const struct waits *waits = replay->what->waits;
    replay->bonds = arena_alloc(arena, MAX(waits->row_count, (size_t)1) * sizeof(*replay->bonds));
    if (!replay->bonds)
        return -ENOMEM;
    for (uint32_t i = 1; i < waits->row_count; i++) {
        const struct wait_row *row = &waits->rows[i];
        uint32_t waker = is_waited(waits, row) ? path_waker_of(waits, i) : 0;
        double ns = (double)row->tally.total_ns - longs[i];
        if (waker && ns > 0 && !(replay->what->gone[i] > 0))
            replay->bonds[replay->bond_count++] = (struct bond){
                .thread = row->info.thread,
                .waker = waker,
                .first_ns = row->tally.first_ns,
                .last_ns = row->tally.last_ns,
                .ns = ns,
            };
    }
    qsort(replay->bonds, replay->bond_count, sizeof(*replay->bonds), by_time);
    replay->bond_count = MIN(replay->bond_count, (size_t)SHORT_ROWS_MAX);
    for (size_t i = 0; i < replay->bond_count; i++) {
        struct bond *bond = &replay->bonds[i];
        bond->rate = bond->ns / outside_ns(replay, bond->thread, bond->first_ns, bond->last_ns);
    }
    return 0;
}

/* How much of the way to a CPU is not gone: after short waits, as many as are gone of all. */
static double runq_gone(const struct replay *replay, uint32_t id, double gone_count)
{
    const struct waits *waits = replay->what->waits;
    const struct path_thread *thread = &replay->threads.threads[id];
    double longs = 0;
    for (size_t i = 0; i < thread->event_count; i++) {
        const struct path_event *event = &replay->threads.events[thread->event_first + i];
        longs += (double)(event->run_ns - event->wake_ns);
    }
    double count = thread->runq_row ? (double)waits->rows[thread->runq_row].tally.count : 0;
    double ns = fmax(0, (double)waits->threads[id].runq_ns - longs);
    return count > 0 ? ns * fmin(gone_count / count, 1) : 0;
}

static int runners_make(struct arena *arena, struct replay *replay, const double *longs)
{
    const struct waits *waits = replay->what->waits;
    size_t count = waits->profile.thread_count;
    double *ns = arena_alloc(arena, (count + 1) * sizeof(*ns));
    double *gone = arena_alloc(arena, (count + 1) * sizeof(*gone));
    replay->runners = arena_alloc(arena, (count + 1) * sizeof(*replay->runners));
    if (!ns || !gone || !replay->runners)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        replay->runners[i] = (struct runner){.first_ns = UINT64_MAX};
    for (size_t i = 1; i < waits->row_count; i++) {
        const struct wait_row *row = &waits->rows[i];
        double part = (double)replay->what->gone[i];
        double left = (double)row->tally.total_ns - longs[i];
        if (!is_waited(waits, row) || !(part > 0) || left <= 0)
            continue;
        struct runner *runner = &replay->runners[row->info.thread];
        ns[row->info.thread] += part * left;
        gone[row->info.thread] += part * (double)row->tally.count;
        runner->first_ns = MIN(runner->first_ns, row->tally.first_ns);
        runner->last_ns = MAX(runner->last_ns, row->tally.last_ns);
    }
    for (uint32_t i = 1; i < count; i++) {
        struct runner *runner = &replay->runners[i];
        double lighter = replay->what->lighter ? replay->what->lighter[i] : 0;
        if (lighter > 0) {
            runner->first_ns = MIN(runner->first_ns, replay->what->start_ns);
            runner->last_ns = MAX(runner->last_ns, replay->what->end_ns);
        }
        if (runner->last_ns <= runner->first_ns)
            continue;
        uint64_t first = MAX(runner->first_ns, waits->threads[i].start_ns);
        uint64_t last = MIN(runner->last_ns, waits->threads[i].end_ns);
        double all = ns[i] + runq_gone(replay, i, gone[i]) + lighter;
        runner->rate = fmin(all / outside_ns(replay, i, first, last), 1);
    }
    return 0;
}

int what_if_gain(struct arena *arena, const struct what_if *what, double *ret_ns)
{
    struct replay replay = {.what = what};
    int r = path_threads_build(arena, what->waits, &replay.threads);
    if (r == 0)
        r = events_order(arena, &replay);
    double *longs = r == 0 ? long_sums(arena, &replay) : NULL;
    if (r == 0 && !longs)
        r = -ENOMEM;
    if (r == 0)
        r = bonds_make(arena, &replay, longs);
    if (r == 0)
        r = runners_make(arena, &replay, longs);
    if (r == 0)
        *ret_ns = play(&replay);
    return r;
}
