/* The walk from the end of the root's main thread back to its beginning.
 *
 * A frame is a thread and the span of time to explain by it. A long wait inside of it that a
 * thread of the tree ended opens a frame for that thread, for as long as the wait; when that is
 * explained, the walk goes on before the wait. Time only ever goes backwards, a wait that is
 * being explained is not entered again, and beyond the bounds no frame is opened: the walk ends
 * whatever a recording says. */
#include "analyze/critical_path.h"

#include "analyze/critical_path_parts.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS_MAX = 4 << 20, /* then waits are no longer charged on */
    FRAMES_MAX = 1 << 16,
    CHAIN_FRAMES_MAX = 1 << 10, /* of a chain: whom it could go back to is forgotten beyond */
    STEP_NS_MIN = 1000,         /* of waits that were added up: smaller parts are saved up */
};

struct frame {
    uint32_t thread;
    uint64_t floor_ns;        /* explained down to here */
    struct path_event *event; /* the wait that led here; NULL at the root */
};

struct walk {
    const struct waits *waits;
    struct path_threads threads;
    VEC(struct path_step) steps; /* backwards */
    VEC(struct frame) frames;
    uint64_t *rows; /* ns by row */
    bool chain;     /* what was waited for is followed to its beginning, not to the wait's */
    uint64_t now_ns;
    uint64_t work; /* frames and steps so far */
    int failed;
};

/* The time from `to_ns` to now is explained. */
static void step(struct walk *walk, enum path_what what, uint32_t thread, uint32_t row,
                 uint64_t to_ns)
{
    if (to_ns >= walk->now_ns || walk->failed)
        return;
    struct path_step *last = walk->steps.len > 0 ? &walk->steps.data[walk->steps.len - 1] : NULL;
    struct path_step made = {what, thread, row, to_ns, walk->now_ns};
    walk->now_ns = to_ns;
    walk->work++;
    if (last && last->what == what && last->thread == thread && last->wait == row)
        last->start_ns = to_ns;
    else if (VEC_PUSH(&walk->steps, made) < 0)
        walk->failed = -ENOMEM;
}

static void step_wait(struct walk *walk, uint32_t row, uint64_t to_ns)
{
    step(walk, PATH_WAIT, walk->waits->rows[row].info.thread, row, to_ns);
}

/* The path stood in a wait, whoever is charged for it. A wait that was entered has been counted
 * as a whole. */
static void stood(struct walk *walk, uint32_t row, uint64_t to_ns)
{
    if (to_ns < walk->now_ns)
        walk->rows[row] += walk->now_ns - to_ns;
}

static void step_runq(struct walk *walk, uint32_t thread, uint64_t to_ns)
{
    uint32_t row = walk->threads.threads[thread].runq_row;
    if (row)
        stood(walk, row, to_ns);
    step(walk, PATH_RUNQ, thread, 0, to_ns);
}

/* Adds to what is saved up, and hands out what makes a step: at most what is left. */
static uint64_t carry_take(double *carry_ns, double add_ns, uint64_t left_ns)
{
    *carry_ns += add_ns;
    if (*carry_ns < STEP_NS_MIN)
        return 0;
    uint64_t taken = MIN((uint64_t)*carry_ns, left_ns);
    *carry_ns -= (double)taken;
    return taken;
}

/* Waits too short to be told one by one: one hop, to the waker as running. */
static void step_short(struct walk *walk, uint32_t row, uint64_t ns)
{
    uint32_t waker = path_waker_of(walk->waits, row);
    uint64_t to_ns = walk->now_ns - ns;
    stood(walk, row, to_ns);
    if (waker)
        step(walk, PATH_RUNNING, waker, 0, to_ns);
    else
        step_wait(walk, row, to_ns);
}

/* The rows beyond PATH_SHORT_MAX take turns by size, each with as much as it has: what one of
 * very many wakers did is not another's. */
static void step_rest(struct walk *walk, uint32_t id, uint64_t ns)
{
    struct path_thread *thread = &walk->threads.threads[id];
    while (ns > 0 && !walk->failed) {
        uint64_t left_ns = 0;
        uint32_t row = path_threads_rest_row(&walk->threads, id, thread->rest_at, &left_ns);
        uint64_t part = walk->work < STEPS_MAX ? MIN(ns, MAX(left_ns, (uint64_t)STEP_NS_MIN)) : ns;
        step_short(walk, row, part);
        thread->rest_at += (double)part;
        ns -= part;
    }
}

static uint64_t overlap_ns(uint64_t a_start, uint64_t a_end, uint64_t b_start, uint64_t b_end)
{
    uint64_t start = MAX(a_start, b_start), end = MIN(a_end, b_end);
    return end > start ? end - start : 0;
}

/* The time between two long waits: running, but for what the tallies say of it. */
static void between(struct walk *walk, uint32_t id, uint64_t to_ns)
{
    struct path_thread *thread = &walk->threads.threads[id];
    struct path_short *shorts = walk->threads.shorts + thread->short_first;
    size_t count = MIN(thread->short_count, (size_t)PATH_SHORT_MAX);
    uint64_t from_ns = walk->now_ns;
    if (to_ns >= from_ns)
        return;
    double parts[PATH_SHORT_MAX], len = (double)(from_ns - to_ns);
    double runq = thread->runq_density * len, rest = thread->rest_density * len;
    double sum = runq + rest;
    for (size_t i = 0; i < count; i++) {
        parts[i] = shorts[i].density *
                   (double)overlap_ns(to_ns, from_ns, shorts[i].first_ns, shorts[i].last_ns);
        sum += parts[i];
    }
    double scale = sum > len ? len / sum : 1;
    for (size_t i = 0; i < count; i++)
        step_short(walk, shorts[i].row,
                   carry_take(&shorts[i].carry_ns, scale * parts[i], walk->now_ns - to_ns));
    step_rest(walk, id, carry_take(&thread->rest_carry_ns, scale * rest, walk->now_ns - to_ns));
    uint64_t waited = carry_take(&thread->runq_carry_ns, scale * runq, walk->now_ns - to_ns);
    step_runq(walk, id, walk->now_ns - waited);
    step(walk, PATH_RUNNING, id, 0, to_ns);
}

static bool may_enter(const struct walk *walk, const struct path_event *event)
{
    return !event->entered && walk->work < STEPS_MAX &&
           (walk->chain || walk->frames.len < FRAMES_MAX);
}

/* The oldest half goes, but for the root. */
static void frames_forget(struct walk *walk)
{
    size_t gone = CHAIN_FRAMES_MAX / 2;
    if (!walk->chain || walk->frames.len < CHAIN_FRAMES_MAX)
        return;
    walk->frames.len -= gone;
    memmove(walk->frames.data + 1, walk->frames.data + 1 + gone,
            (walk->frames.len - 1) * sizeof(*walk->frames.data));
}

/* When a thread ended. One that is said to have woken somebody later did not. */
static uint64_t alive_until(const struct walk *walk, uint32_t thread)
{
    const struct waits_thread *life = &walk->waits->threads[thread];
    return life->ended ? life->end_ns : UINT64_MAX;
}

/* Explains the wait by its waker, or by itself. */
static void wait_enter(struct walk *walk, struct path_event *event, uint64_t to_ns, bool follow)
{
    uint32_t waker = event->waker;
    if (!event->entered)
        stood(walk, event->row, to_ns);
    if (!follow || !waker || !may_enter(walk, event)) {
        step_wait(walk, event->row, to_ns);
        return;
    }
    uint64_t end_ns = alive_until(walk, waker);
    if (end_ns < walk->now_ns)
        step_wait(walk, event->row, MAX(end_ns, to_ns));
    if (walk->now_ns <= to_ns)
        return;
    frames_forget(walk);
    uint64_t floor_ns = walk->chain ? walk->frames.data[0].floor_ns : to_ns;
    struct frame frame = {waker, floor_ns, event};
    if (VEC_PUSH(&walk->frames, frame) < 0) {
        walk->failed = -ENOMEM;
        return;
    }
    event->entered = true;
    walk->work++;
}

/* The entry of a thread that was there before a moment: an earlier name, if need be. 0: none. */
static uint32_t name_before(const struct walk *walk, uint32_t thread, uint64_t time_ns)
{
    while (thread && walk->waits->threads[thread].start_ns >= time_ns)
        thread = walk->threads.threads[thread].before;
    return thread;
}

/* Was the thread there and on a CPU, so that it can have made another? */
static bool can_create(const struct walk *walk, uint32_t thread, uint64_t time_ns)
{
    if (thread == 0 || alive_until(walk, thread) < time_ns)
        return false;
    const struct path_event *event = path_threads_before(&walk->threads, thread, time_ns);
    return !event || event->wake_ns <= time_ns;
}

/* Nobody can have made the thread: what is left of the wait that led to it stays with the wait,
 * and the chain goes on in who waited. */
static void chain_return(struct walk *walk, const struct frame *frame)
{
    const struct path_event *event = frame->event;
    step_wait(walk, event->row, MAX(event->start_ns, frame->floor_ns));
    walk->frames.len--;
}

/* Before its thread began: the same under another name, its maker, or the wait that led here.
 * At the root nobody waited: the walk is at its beginning. */
static void frame_begin(struct walk *walk, struct frame *frame)
{
    const struct path_thread *thread = &walk->threads.threads[frame->thread];
    uint32_t same = name_before(walk, thread->before, walk->now_ns);
    uint32_t creator = name_before(walk, thread->creator, walk->now_ns);
    if (same)
        frame->thread = same;
    else if (can_create(walk, creator, walk->now_ns))
        frame->thread = creator;
    else if (frame->event && walk->chain)
        chain_return(walk, frame);
    else if (frame->event)
        step_wait(walk, frame->event->row, frame->floor_ns);
    else
        step(walk, PATH_RUNNING, frame->thread, 0, frame->floor_ns);
}

/* One wait further back, or to the end of the frame. */
static void frame_step(struct walk *walk, struct frame *frame)
{
    uint64_t start_ns = walk->waits->threads[frame->thread].start_ns;
    uint64_t floor_ns = MAX(frame->floor_ns, start_ns);
    if (walk->now_ns <= start_ns) {
        frame_begin(walk, frame);
        return;
    }
    struct path_event *event = path_threads_before(&walk->threads, frame->thread, walk->now_ns);
    if (!event || event->run_ns <= floor_ns) {
        between(walk, frame->thread, floor_ns);
        return;
    }
    /* Somebody who waits cannot end another's wait: clocks disagree, and nothing is made of it. */
    bool inside = event->wake_ns > walk->now_ns;
    between(walk, frame->thread, MAX(event->run_ns, floor_ns));
    step_runq(walk, frame->thread, MAX(event->wake_ns, floor_ns));
    if (walk->now_ns <= floor_ns)
        return;
    wait_enter(walk, event, MAX(event->start_ns, floor_ns), !inside);
}

static int walk_back(struct walk *walk)
{
    while (walk->frames.len > 0 && !walk->failed) {
        struct frame *frame = &walk->frames.data[walk->frames.len - 1];
        if (walk->now_ns > frame->floor_ns) {
            frame_step(walk, frame);
            continue;
        }
        if (frame->event && !walk->chain)
            frame->event->entered = false;
        walk->frames.len--;
    }
    return walk->failed;
}

static int share_order(const void *a, const void *b)
{
    const struct path_share *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? 1 : -1;
    if (x->what != y->what)
        return x->what < y->what ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->wait > y->wait) - (x->wait < y->wait);
}

static uint64_t share_key(const struct path_step *one)
{
    uint64_t id = one->what == PATH_WAIT ? one->wait : one->thread;
    return id << 2 | (uint64_t)one->what;
}

static int shares_build(struct arena *arena, struct critical_path *path)
{
    struct map_u64 places = {0}; /* of a kind of step, its share's place plus one */
    int r = 0;
    for (size_t i = 0; i < path->step_count && r == 0; i++) {
        uint64_t *place = map_u64_at(&places, share_key(&path->steps[i]), NULL);
        if (!place)
            r = -ENOMEM;
        else if (*place == 0)
            *place = places.len;
    }
    path->shares = arena_alloc(arena, MAX(places.len, (size_t)1) * sizeof(*path->shares));
    if (r < 0 || !path->shares) {
        map_u64_deinit(&places);
        return -ENOMEM;
    }
    for (size_t i = 0; i < path->step_count; i++) {
        const struct path_step *one = &path->steps[i];
        struct path_share *share = &path->shares[*map_u64_find(&places, share_key(one)) - 1];
        *share = (struct path_share){one->what, one->thread, one->wait,
                                     share->ns + (one->end_ns - one->start_ns), share->steps + 1};
    }
    path->share_count = places.len;
    map_u64_deinit(&places);
    qsort(path->shares, path->share_count, sizeof(*path->shares), share_order);
    return 0;
}

/* Steps in the order of time. */
static int steps_keep(struct arena *arena, const struct walk *walk, struct critical_path *path)
{
    size_t count = walk->steps.len;
    path->steps = arena_alloc(arena, MAX(count, (size_t)1) * sizeof(*path->steps));
    if (!path->steps)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        path->steps[i] = walk->steps.data[count - 1 - i];
        path->ns += path->steps[i].end_ns - path->steps[i].start_ns;
    }
    path->step_count = count;
    return shares_build(arena, path);
}

static const char *path_missing(const struct waits *waits)
{
    if (waits->root_process == 0)
        return "the whole machine has no end to walk back from: record a command or a process";
    if (waits->root_thread == 0 || waits->root_thread >= waits->profile.thread_count)
        return "the main thread was not seen: it neither ran nor waited anew";
    const struct waits_thread *root = &waits->threads[waits->root_thread];
    if (root->end_ns <= root->start_ns)
        return "the main thread was not recorded";
    return NULL;
}

/* When the root began under its first name. */
static uint64_t root_start(const struct walk *walk)
{
    uint32_t thread = walk->waits->root_thread;
    while (walk->threads.threads[thread].before)
        thread = walk->threads.threads[thread].before;
    return walk->waits->threads[thread].start_ns;
}

static int path_build(struct arena *arena, const struct waits *waits, bool chain,
                      struct critical_path *ret)
{
    struct critical_path path = {.na = path_missing(waits)};
    path.waits = arena_alloc(arena, MAX(waits->row_count, (size_t)1) * sizeof(*path.waits));
    if (!path.waits)
        return -ENOMEM;
    if (path.na) {
        *ret = path;
        return 0;
    }
    uint32_t root = waits->root_thread;
    struct walk walk = {.waits = waits, .rows = path.waits, .chain = chain};
    walk.now_ns = waits->threads[root].end_ns;
    int r = path_threads_build(arena, waits, &walk.threads);
    if (r == 0)
        path_threads_cut(waits, &walk.threads);
    if (r == 0 && chain)
        r = path_threads_ends(waits, &walk.threads);
    struct frame frame = {root, waits->threads[root].start_ns, NULL};
    if (r == 0) {
        frame.floor_ns = root_start(&walk);
        r = VEC_PUSH(&walk.frames, frame);
    }
    if (r == 0)
        r = walk_back(&walk);
    if (r == 0)
        r = steps_keep(arena, &walk, &path);
    VEC_FREE(&walk.steps);
    VEC_FREE(&walk.frames);
    if (r == 0)
        *ret = path;
    return r;
}

int critical_path_build(struct arena *arena, const struct waits *waits, struct critical_path *ret)
{
    return path_build(arena, waits, false, ret);
}

int critical_chain_build(struct arena *arena, const struct waits *waits, struct critical_path *ret)
{
    return path_build(arena, waits, true, ret);
}
