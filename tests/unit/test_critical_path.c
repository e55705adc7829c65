/* Critical paths of graphs whose answer is known, and of random ones that must at least add up. */
#include "unit.h"

#include "analyze/critical_path.h"
#include "made_waits.h"

struct answer {
    struct arena arena;
    struct critical_path path;
};

/* Whatever the graph: no gap, in order, and the sum is the life of the root. */
static void assert_whole(const struct made_waits *made, const struct critical_path *path)
{
    const struct waits_thread *root = &made->threads[made->waits.root_thread];
    uint64_t at = root->start_ns, shares = 0, steps = 0;
    for (size_t i = 0; i < path->step_count; i++) {
        const struct path_step *step = &path->steps[i];
        assert_int_equal(step->start_ns, at);
        assert_true(step->end_ns > step->start_ns);
        assert_true(step->thread > 0 && step->thread < made->waits.profile.thread_count);
        assert_true(step->wait < made->waits.row_count);
        assert_int_equal(step->what == PATH_WAIT, step->wait != 0);
        at = step->end_ns;
    }
    assert_int_equal(at, root->end_ns);
    assert_int_equal(path->ns, root->end_ns - root->start_ns);
    for (size_t i = 0; i < path->share_count; i++) {
        assert_true(i == 0 || path->shares[i].ns <= path->shares[i - 1].ns);
        shares += path->shares[i].ns;
        steps += path->shares[i].steps;
    }
    assert_int_equal(shares, path->ns);
    assert_int_equal(steps, path->step_count);
    for (size_t i = 0; i < made->waits.row_count; i++)
        assert_true(path->waits[i] <= path->ns);
}

static struct answer answer_of(struct made_waits *made)
{
    struct answer answer = {0};
    assert_int_equal(critical_path_build(&answer.arena, &made->waits, &answer.path), 0);
    assert_null(answer.path.na);
    assert_whole(made, &answer.path);
    return answer;
}

static void answer_end(struct answer *answer, struct made_waits *made)
{
    arena_deinit(&answer->arena);
    free(made);
}

static double share_ms(const struct answer *answer, enum path_what what, uint32_t thread,
                       uint32_t row)
{
    for (size_t i = 0; i < answer->path.share_count; i++) {
        const struct path_share *share = &answer->path.shares[i];
        if (share->what == what && share->thread == thread && share->wait == row)
            return (double)share->ns / MADE_MS;
    }
    return 0;
}

static double running_ms(const struct answer *answer, uint32_t thread)
{
    return share_ms(answer, PATH_RUNNING, thread, 0);
}

static double row_ms(const struct answer *answer, uint32_t row)
{
    return (double)answer->path.waits[row] / MADE_MS;
}

#define assert_ms(a, b) assert_float_equal(a, b, 0.02)

static void a_thread_that_only_runs_is_its_own_path(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t root = made_waits_thread(made, made_waits_process(made, 0), 0, 100);
    struct answer answer = answer_of(made);
    assert_int_equal(answer.path.step_count, 1);
    assert_ms(running_ms(&answer, root), 100);
    answer_end(&answer, made);
}

static void a_wait_for_one_that_waits_for_the_disk_is_charged_to_the_disk(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, process, 0, 100);
    uint32_t b = made_waits_thread(made, process, 0, 100);
    uint32_t hop = made_waits_long(made, a, b, 10, 90);
    uint32_t disk = made_waits_long(made, b, 0, 5, 80); /* begins before the wait for it */
    struct answer answer = answer_of(made);
    assert_ms(running_ms(&answer, a), 20);
    assert_ms(running_ms(&answer, b), 10);
    assert_ms(share_ms(&answer, PATH_WAIT, b, disk), 70);
    assert_ms(share_ms(&answer, PATH_WAIT, a, hop), 0);
    assert_ms(row_ms(&answer, hop), 80);  /* charged on, and still known */
    assert_ms(row_ms(&answer, disk), 70); /* 5 ms of it were before the wait */
    assert_int_equal(answer.path.shares[0].wait, disk);
    answer_end(&answer, made);
}

static uint32_t at_stack(struct made_waits *made, uint32_t row, uint32_t stack, uint32_t flags)
{
    made->rows[row].info.stack = stack;
    made->rows[row].info.flags = flags;
    return row;
}

static void waits_with_a_time_limit_again_and_again_are_one_for_who_ends_the_last(void **state)
{
    (void)state;
    const uint32_t expired = WAIT_LIMITED | WAIT_BY_INTERRUPT;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, process, 0, 100);
    uint32_t b = made_waits_thread(made, process, 0, 100);
    /* One that nobody ends: 2 ms later the thread waits elsewhere. One that it comes back to too
     * late to have only looked. Two that end in b's. */
    uint32_t timer = at_stack(made, made_waits_long(made, a, 0, 2, 10), 3, expired);
    uint32_t again = at_stack(made, made_waits_long(made, a, 0, 12, 20), 7, expired);
    made_waits_event(made, again, 25, 50, 50);
    made_waits_event(made, again, 50.1, 75, 75);
    uint32_t last = at_stack(made, made_waits_long(made, a, b, 75.1, 90), 7, WAIT_LIMITED);
    struct answer answer = answer_of(made);
    assert_ms(running_ms(&answer, b), 25 + 24.9 + 14.9);
    assert_ms(share_ms(&answer, PATH_WAIT, a, timer), 8);
    assert_ms(share_ms(&answer, PATH_WAIT, a, again), 8);
    assert_ms(share_ms(&answer, PATH_WAIT, a, last), 0);
    assert_ms(row_ms(&answer, again), 8 + 25 + 24.9); /* the path stood there all the same */
    answer_end(&answer, made);
}

/* Stack 1: a condition variable; 2: a mutex; 3: a join. */
static void stacks_make(struct made_waits *made)
{
    static struct profile_function functions[] = {
        {.name = {"", 0}},
        {.name = {"pthread_cond_timedwait", 22}},
        {.name = {"pthread_mutex_lock", 18}},
        {.name = {"pthread_join", 12}},
    };
    static struct profile_place places[] = {
        {.function = 0}, {.function = 1}, {.function = 2}, {.function = 3}};
    static struct profile_frame frames[] = {{.place_count = 1},
                                            {.places = 1, .place_count = 1},
                                            {.places = 2, .place_count = 1},
                                            {.places = 3, .place_count = 1}};
    static struct profile_stack stacks[] = {{.frame = 0}, {.frame = 1}, {.frame = 2}, {.frame = 3}};
    made->waits.profile.functions = functions;
    made->waits.profile.places = places;
    made->waits.profile.frames = frames;
    made->waits.profile.stacks = stacks;
    made->waits.profile.function_count = ARRAY_SIZE(functions);
    made->waits.profile.place_count = ARRAY_SIZE(places);
    made->waits.profile.frame_count = ARRAY_SIZE(frames);
    made->waits.profile.stack_count = ARRAY_SIZE(stacks);
    made->objects[1] = (struct object_info){.kind = OBJECT_FUTEX};
    made->waits.object_count = 2;
}

/* What is said of a main thread that looks every 30 ms whether its two threads are done. */
static void cut_short(uint32_t stack, uint32_t last_flags, double wake_ms, bool goes_on,
                      double worker_ms, double waits_ms)
{
    const uint32_t expired = WAIT_LIMITED | WAIT_BY_INTERRUPT;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, process, 0, 99.9);
    uint32_t b = made_waits_thread(made, process, 0, 99.95);
    uint32_t c = made_waits_thread(made, process, 0, 99.95);
    stacks_make(made);
    made->threads[b].running_ns = made_ns(70);
    made->threads[c].running_ns = made_ns(90);
    made_waits_long(made, c, 0, 95, 99.94); /* it waits itself just then */
    uint32_t look = at_stack(made, made_waits_long(made, a, 0, 10, 40), stack, expired);
    made->rows[look].info.object = 1;
    made_waits_event(made, look, 40.1, 70, 70);
    uint32_t last = at_stack(made, made_waits_long(made, a, 0, 70.1, wake_ms), stack, last_flags);
    made->rows[last].info.object = 1;
    if (goes_on)
        made_waits_event(made, look, wake_ms + 0.1, 99.8, 99.8);
    struct answer answer = answer_of(made);
    assert_ms(running_ms(&answer, b), worker_ms);
    assert_ms(share_ms(&answer, PATH_WAIT, a, look) + share_ms(&answer, PATH_WAIT, a, last),
              waits_ms);
    answer_end(&answer, made);
}

static void a_run_that_is_cut_short_hung_on_what_was_at_work_then(void **state)
{
    (void)state;
    const double all = 30 + 29.9 + 29.7;
    /* Killed in the wait; still in it; told to end, which it does when it has looked once more. */
    cut_short(1, WAIT_LIMITED, 99.8, false, all, 0);
    cut_short(1, WAIT_LIMITED | WAIT_OPEN, 99.8, false, all, 0);
    cut_short(3, WAIT_OPEN, 99.8, false, all, 0);
    cut_short(1, WAIT_LIMITED, 80, true, all - 0.1, 0);
    /* Its own limit ended it, or it is not for its threads: nothing is made up. */
    cut_short(1, WAIT_LIMITED | WAIT_BY_INTERRUPT, 99.8, false, 0, all);
    cut_short(2, WAIT_LIMITED, 99.8, false, 0, all);
    /* It went on to something else; nobody knows who ended waits. */
    cut_short(1, WAIT_LIMITED, 97, false, 0, all - 2.8);
    cut_short(1, WAIT_LIMITED | WAIT_SAMPLED, 99.8, false, 0, all);
}

static void time_from_being_woken_to_running_is_the_run_queue(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, process, 0, 100);
    uint32_t b = made_waits_thread(made, process, 0, 100);
    uint32_t hop = made_waits_blocked(made, a, b);
    made_waits_event(made, hop, 10, 50, 75);
    uint32_t runq = made_waits_runq(made, a, 25);
    struct answer answer = answer_of(made);
    assert_ms(share_ms(&answer, PATH_RUNQ, a, 0), 25);
    assert_ms(running_ms(&answer, b), 40);
    assert_ms(running_ms(&answer, a), 35);
    assert_ms(row_ms(&answer, runq), 25);
    answer_end(&answer, made);
}

static void of_workers_that_are_joined_each_has_the_time_it_was_waited_for(void **state)
{
    (void)state;
    static const double ends[] = {10, 40, 20, 90};
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0), workers[4];
    uint32_t root = made_waits_thread(made, process, 0, 100);
    for (int i = 0; i < 4; i++)
        workers[i] = made_waits_thread(made, process, 2, ends[i]);
    double now = 4;
    for (int i = 0; i < 4; i++) {
        if (ends[i] > now)
            made_waits_long(made, root, workers[i], now, ends[i]);
        now = ends[i] > now ? ends[i] : now;
    }
    struct answer answer = answer_of(made);
    assert_ms(running_ms(&answer, root), 14);
    assert_ms(running_ms(&answer, workers[0]), 6);
    assert_ms(running_ms(&answer, workers[1]), 30);
    assert_ms(running_ms(&answer, workers[2]), 0); /* it was done before anybody asked */
    assert_ms(running_ms(&answer, workers[3]), 50);
    answer_end(&answer, made);
}

static void the_slow_stage_of_a_pipeline_has_most_of_the_path(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t sink = made_waits_thread(made, process, 0, 100);
    uint32_t slow = made_waits_thread(made, process, 0, 100);
    uint32_t source = made_waits_thread(made, process, 0, 100);
    /* Ten items: the source gives one at 10n+2, the slow stage hands it on at 10n+9, the last
     * stage works for 1 ms. */
    for (int n = 0; n < 10; n++) {
        double t = 10.0 * n;
        made_waits_long(made, slow, source, t, t + 2);
        made_waits_long(made, sink, slow, t, t + 9);
    }
    struct answer answer = answer_of(made);
    assert_ms(running_ms(&answer, slow), 70);
    assert_ms(running_ms(&answer, source), 20);
    assert_ms(running_ms(&answer, sink), 10);
    answer_end(&answer, made);
}

static void a_convoy_charges_every_holder_with_its_turn(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0), threads[8];
    uint32_t root = made_waits_thread(made, process, 0, 100);
    for (int i = 0; i < 8; i++)
        threads[i] = made_waits_thread(made, process, 0, 10.0 * (i + 1));
    for (int i = 1; i < 8; i++)
        made_waits_long(made, threads[i], threads[i - 1], 0, 10.0 * i);
    made_waits_long(made, root, threads[7], 0, 80);
    struct answer answer = answer_of(made);
    for (int i = 0; i < 8; i++)
        assert_ms(running_ms(&answer, threads[i]), 10);
    assert_ms(running_ms(&answer, root), 20);
    answer_end(&answer, made);
}

static void ping_pong_of_short_waits_is_charged_to_the_other_side_in_proportion(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, process, 0, 100);
    uint32_t b = made_waits_thread(made, process, 0, 100);
    uint32_t ping = made_waits_blocked(made, a, b), pong = made_waits_blocked(made, b, a);
    made_waits_short(made, ping, 6000, 30, 50, 100); /* only in the second half */
    made_waits_short(made, pong, 6000, 20, 50, 100);
    made->threads[a].running_ns = made_ns(70);
    struct answer answer = answer_of(made);
    assert_ms(running_ms(&answer, a), 70);
    assert_ms(running_ms(&answer, b), 30);
    assert_ms(row_ms(&answer, ping), 30);
    assert_ms(row_ms(&answer, pong), 0); /* one hop, not more */
    for (size_t i = 0; i < answer.path.step_count; i++)
        assert_true(answer.path.steps[i].thread == a || answer.path.steps[i].start_ns >= 49000000);
    answer_end(&answer, made);
}

static void short_waits_for_nobody_of_the_tree_stay_waits(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t a = made_waits_thread(made, made_waits_process(made, 0), 0, 100);
    uint32_t disk = made_waits_blocked(made, a, 0);
    made_waits_event(made, disk, 20, 40, 40);
    made_waits_short(made, disk, 100, 16, 0, 100);
    made_waits_runq(made, a, 8);
    struct answer answer = answer_of(made);
    assert_ms(share_ms(&answer, PATH_WAIT, a, disk), 36);
    assert_ms(share_ms(&answer, PATH_RUNQ, a, 0), 8);
    assert_ms(running_ms(&answer, a), 56);
    answer_end(&answer, made);
}

static void locks_of_the_kernel_are_told_twice_and_count_once(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t a = made_waits_thread(made, made_waits_process(made, 0), 0, 100);
    made->objects[made->waits.object_count++].kind = OBJECT_KERNEL_LOCK;
    struct wait_info info;
    memset(&info, 0, sizeof(info));
    info.thread = a;
    info.object = 1;
    uint32_t lock = made_waits_row(made, &info), wait = made_waits_blocked(made, a, 0);
    made_waits_short(made, wait, 10, 30, 0, 100);
    made_waits_short(made, lock, 10, 30, 0, 100);
    struct answer answer = answer_of(made);
    assert_ms(running_ms(&answer, a), 70);
    assert_ms(row_ms(&answer, wait), 30);
    assert_ms(row_ms(&answer, lock), 0);
    answer_end(&answer, made);
}

static void of_very_many_kinds_of_short_waits_the_sum_is_kept(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(1000);
    uint32_t a = made_waits_thread(made, made_waits_process(made, 0), 0, 1000);
    uint32_t first = 0;
    for (uint32_t i = 0; i < 400; i++) {
        struct wait_info info;
        memset(&info, 0, sizeof(info));
        info.thread = a;
        info.stack = i + 1;
        uint32_t row = made_waits_row(made, &info);
        first = first ? first : row;
        made_waits_short(made, row, 10, 1, 0, 1000);
    }
    uint32_t tick = made_waits_blocked(made, a, 0);
    for (int i = 0; i < 100; i++)
        made_waits_event(made, tick, 10.0 * i, 10.0 * i + 2, 10.0 * i + 2);
    struct answer answer = answer_of(made);
    double sum = 0;
    unsigned seen = 0;
    for (uint32_t row = first; row < first + 400; row++) {
        sum += row_ms(&answer, row);
        seen += answer.path.waits[row] > 0;
    }
    assert_float_equal(sum, 400, 4); /* what is saved up below a step at the end is not told */
    assert_true(seen > 100);
    assert_ms(row_ms(&answer, tick), 200);
    answer_end(&answer, made);
}

/* A shell that starts one program after the other: short waits, each ended by another process. */
static void of_very_many_wakers_each_has_what_it_was_waited_for(void **state)
{
    (void)state;
    enum { CHILDREN = 60 };
    struct made_waits *made = made_waits_new(1000);
    uint32_t process = made_waits_process(made, 0);
    uint32_t shell = made_waits_thread(made, process, 0, 1000);
    uint32_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = made_waits_thread(made, process, 0, 1000);
        made_waits_short(made, made_waits_blocked(made, shell, children[i]), 10, 10, 0, 1000);
    }
    struct answer answer = answer_of(made);
    for (int i = 0; i < CHILDREN; i++)
        assert_float_equal(running_ms(&answer, children[i]), 10, 1);
    assert_float_equal(running_ms(&answer, shell), 1000 - CHILDREN * 10, 10);
    answer_end(&answer, made);
}

static void time_that_nobody_told_is_taken_to_be_like_what_was_told(void **state)
{
    (void)state;
    /* Half of it was lost: of the rest 30 of 50 were waits. */
    struct made_waits *made = made_waits_new(100);
    uint32_t a = made_waits_thread(made, made_waits_process(made, 0), 0, 100);
    uint32_t disk = made_waits_blocked(made, a, 0);
    made_waits_short(made, disk, 100, 30, 0, 100);
    made->threads[a].running_ns = made_ns(20);
    struct answer answer = answer_of(made);
    assert_ms(share_ms(&answer, PATH_WAIT, a, disk), 60);
    assert_ms(running_ms(&answer, a), 40);
    answer_end(&answer, made);
}

static void a_waker_outside_of_the_tree_leaves_the_wait_on_the_path(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t a = made_waits_thread(made, made_waits_process(made, 0), 0, 100);
    uint32_t reply = made_waits_long(made, a, 0, 10, 60);
    uint32_t own = made_waits_long(made, a, a, 70, 80); /* by itself: no hop either */
    struct answer answer = answer_of(made);
    assert_ms(share_ms(&answer, PATH_WAIT, a, reply), 50);
    assert_ms(share_ms(&answer, PATH_WAIT, a, own), 10);
    answer_end(&answer, made);
}

static void long_waits_whose_events_were_lost_count_by_their_tally(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, process, 0, 100);
    uint32_t b = made_waits_thread(made, process, 0, 100);
    uint32_t hop = made_waits_blocked(made, a, b);
    made_waits_short(made, hop, 2, 40, 20, 80);
    made->threads[a].running_ns = made_ns(60);
    struct answer answer = answer_of(made);
    assert_ms(running_ms(&answer, b), 40);
    assert_ms(running_ms(&answer, a), 60);
    answer_end(&answer, made);
}

static void a_wait_that_is_open_at_the_end_is_the_end_of_the_path(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, process, 0, 100);
    struct wait_info info;
    memset(&info, 0, sizeof(info));
    info.thread = a;
    info.flags = WAIT_OPEN;
    uint32_t open = made_waits_row(made, &info);
    made_waits_event(made, open, 70, 100, 100);
    /* One that went on beyond the end of the recording is cut there. */
    struct answer answer = answer_of(made);
    assert_ms(share_ms(&answer, PATH_WAIT, a, open), 30);
    assert_ms(running_ms(&answer, a), 70);
    arena_deinit(&answer.arena);
    made->events[0].wake_ns = made->events[0].run_ns = made_ns(500);
    answer = answer_of(made);
    assert_ms(share_ms(&answer, PATH_WAIT, a, open), 30);
    answer_end(&answer, made);
}

static void what_came_after_the_waker_ended_stays_with_the_wait(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, process, 0, 100);
    uint32_t b = made_waits_thread(made, process, 0, 60);
    uint32_t c = made_waits_thread(made, process, 0, 5);
    uint32_t row = made_waits_long(made, a, b, 10, 80);
    uint32_t gone = made_waits_long(made, a, c, 85, 95);
    struct answer answer = answer_of(made);
    assert_ms(share_ms(&answer, PATH_WAIT, a, row), 20);
    assert_ms(running_ms(&answer, b), 50);
    assert_ms(share_ms(&answer, PATH_WAIT, a, gone), 10);
    assert_ms(row_ms(&answer, row), 70);
    answer_end(&answer, made);
}

static void before_a_child_began_the_path_is_in_its_maker(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t shell = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, shell, 0, 100);
    uint32_t middle = made_waits_process(made, shell);
    uint32_t b = made_waits_thread(made, middle, 10, 80);
    uint32_t leaf = made_waits_process(made, middle);
    uint32_t c = made_waits_thread(made, leaf, 30, 70);
    /* The shell waits for the middle one, though the leaf is what ends the wait (a pipe). */
    made_waits_long(made, a, c, 5, 65);
    struct answer answer = answer_of(made);
    assert_ms(running_ms(&answer, c), 35);
    assert_ms(running_ms(&answer, b), 20);
    /* Before the middle one began the shell itself was waiting: it cannot have made it. */
    assert_ms(running_ms(&answer, a), 40);
    assert_ms(share_ms(&answer, PATH_WAIT, a, 1), 5);
    answer_end(&answer, made);
}

static void a_thread_that_begins_in_the_span_hands_on_to_the_main_thread(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t first = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, first, 0, 100);
    uint32_t second = made_waits_process(made, first);
    uint32_t b = made_waits_thread(made, second, 1, 100);
    uint32_t worker = made_waits_thread(made, second, 40, 90);
    made_waits_long(made, a, worker, 20, 60);
    struct answer answer = answer_of(made);
    assert_ms(running_ms(&answer, worker), 20);
    assert_ms(running_ms(&answer, b), 20);
    answer_end(&answer, made);
}

static void one_that_waited_when_a_thread_began_is_not_its_maker(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t first = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, first, 0, 100);
    uint32_t second = made_waits_process(made, first);
    uint32_t b = made_waits_thread(made, second, 1, 100);
    uint32_t worker = made_waits_thread(made, second, 40, 90);
    uint32_t row = made_waits_long(made, a, worker, 20, 60);
    made_waits_long(made, b, 0, 10, 80);
    struct answer answer = answer_of(made);
    assert_ms(running_ms(&answer, worker), 20);
    assert_ms(share_ms(&answer, PATH_WAIT, a, row), 20);
    answer_end(&answer, made);
}

static void tallies_of_more_time_than_there_is_share_it(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, process, 0, 100);
    uint32_t b = made_waits_thread(made, process, 0, 100);
    made_waits_short(made, made_waits_blocked(made, a, 0), 9, 100, 0, 100);
    made_waits_short(made, made_waits_blocked(made, a, b), 9, 300, 0, 100);
    struct answer answer = answer_of(made);
    assert_ms(row_ms(&answer, 1), 25);
    assert_ms(running_ms(&answer, b), 75);
    answer_end(&answer, made);
}

static void waits_of_one_thread_that_overlap_follow_each_other(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, process, 0, 100);
    uint32_t b = made_waits_thread(made, process, 0, 100);
    uint32_t one = made_waits_long(made, a, 0, 10, 50);
    uint32_t two = made_waits_long(made, a, b, 40, 60);
    struct answer answer = answer_of(made);
    assert_ms(row_ms(&answer, one), 40);
    assert_ms(row_ms(&answer, two), 10);
    answer_end(&answer, made);
}

static uint32_t thread_again(struct made_waits *made, uint32_t before, uint32_t process,
                             double start_ms, double end_ms)
{
    uint32_t id = made_waits_thread(made, process, start_ms, end_ms);
    made->profile_threads[id].tid = made->profile_threads[before].tid;
    made->threads[before].end_ns = made_ns(start_ms);
    return id;
}

static void a_thread_with_another_name_or_program_is_the_same_thread(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t shell = made_waits_process(made, 0), app = made_waits_process(made, 0);
    made->processes[app].pid = made->processes[shell].pid; /* by exec */
    uint32_t a = made_waits_thread(made, shell, 0, 100);
    uint32_t b = thread_again(made, a, app, 10, 100);
    uint32_t worker = made_waits_thread(made, app, 15, 100);
    made->profile_threads[worker].tid = 77;
    uint32_t c = thread_again(made, b, app, 30, 100);      /* main got a name of its own */
    uint32_t d = thread_again(made, worker, app, 60, 100); /* so did the worker */
    made->waits.root_process = app;
    made->waits.root_thread = c;
    made_waits_long(made, a, 0, 2, 5);
    made_waits_long(made, c, d, 40, 80);
    struct answer answer = {0};
    assert_int_equal(critical_path_build(&answer.arena, &made->waits, &answer.path), 0);
    assert_int_equal(answer.path.ns, made_ns(100)); /* from the beginning of the shell */
    assert_ms(running_ms(&answer, c), 30);
    assert_ms(running_ms(&answer, d), 20);
    assert_ms(running_ms(&answer, worker), 20);
    assert_ms(running_ms(&answer, b), 20);
    assert_ms(running_ms(&answer, a), 7);
    answer_end(&answer, made);
}

static void a_number_that_is_given_out_again_is_another_thread(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t old = made_waits_thread(made, process, 0, 20);
    uint32_t root = made_waits_thread(made, process, 50, 100);
    made->profile_threads[root].tid = made->profile_threads[old].tid;
    made->waits.root_thread = root;
    struct answer answer = answer_of(made);
    assert_int_equal(answer.path.ns, made_ns(50));
    answer_end(&answer, made);
}

static void waits_that_end_each_other_at_one_moment_end_the_walk(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, process, 0, 100);
    uint32_t b = made_waits_thread(made, process, 0, 100);
    uint32_t one = made_waits_long(made, a, b, 10, 50);
    uint32_t two = made_waits_long(made, b, a, 10, 50);
    struct answer answer = answer_of(made);
    assert_ms(running_ms(&answer, a), 60);
    assert_ms(row_ms(&answer, one), 40); /* once, though the walk came by twice */
    assert_ms(row_ms(&answer, two), 40);
    answer_end(&answer, made);
}

static void a_waker_that_was_waiting_itself_is_not_followed_in_circles(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t a = made_waits_thread(made, process, 0, 100);
    uint32_t b = made_waits_thread(made, process, 0, 100);
    made_waits_long(made, a, b, 10, 50);
    uint32_t inside = made_waits_long(made, b, a, 20, 70); /* b waits when it wakes a */
    struct answer answer = answer_of(made);
    assert_ms(share_ms(&answer, PATH_WAIT, b, inside), 30);
    assert_ms(running_ms(&answer, b), 10);
    answer_end(&answer, made);
}

static void the_whole_machine_has_no_path_and_says_why(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    struct answer answer = {0};
    made->waits.root_process = made->waits.root_thread = 0;
    assert_int_equal(critical_path_build(&answer.arena, &made->waits, &answer.path), 0);
    assert_non_null(strstr(answer.path.na, "whole machine"));
    assert_int_equal(answer.path.step_count, 0);
    made->waits.root_process = 1;
    assert_int_equal(critical_path_build(&answer.arena, &made->waits, &answer.path), 0);
    assert_non_null(strstr(answer.path.na, "main thread was not seen"));
    made->waits.root_thread = 1;
    made_waits_thread(made, made_waits_process(made, 0), 50, 50);
    assert_int_equal(critical_path_build(&answer.arena, &made->waits, &answer.path), 0);
    assert_non_null(answer.path.na);
    answer_end(&answer, made);
}

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Threads that wait for each other at random: overlapping, in circles, before they are born. */
static void any_graph_ends_and_adds_up(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= 300; round++) {
        uint64_t seed = round * 0x9e3779b97f4a7c15;
        struct made_waits *made = made_waits_new(1000);
        uint32_t threads = 1 + (uint32_t)(next(&seed) % 12);
        for (uint32_t i = 0; i < 1 + threads / 4; i++)
            made_waits_process(made, (uint32_t)(next(&seed) % (threads + 1)) % (i + 2));
        for (uint32_t i = 0; i < threads; i++) {
            double start = (double)(next(&seed) % 500), end = start + (double)(next(&seed) % 800);
            made_waits_thread(made, 1 + i % (1 + threads / 4), i ? start : 0, i ? end : 1000);
        }
        uint64_t waits = next(&seed) % (round % 10 == 0 ? 2000 : 60);
        for (uint64_t i = 0; i < waits; i++) {
            uint32_t thread = 1 + (uint32_t)(next(&seed) % threads);
            uint32_t row = made_waits_blocked(made, thread,
                                              (uint32_t)(next(&seed) % (threads + 2)));
            double start = (double)(next(&seed) % 1000), len = (double)(next(&seed) % 100);
            if (next(&seed) % 3 == 0)
                made_waits_short(made, row, 5, len, start, start + len * 2);
            else
                made_waits_event(made, row, start, start + len,
                                 start + len + (double)(next(&seed) % 5));
        }
        struct answer answer = answer_of(made);
        answer_end(&answer, made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_only_runs_is_its_own_path),
        cmocka_unit_test(a_wait_for_one_that_waits_for_the_disk_is_charged_to_the_disk),
        cmocka_unit_test(waits_with_a_time_limit_again_and_again_are_one_for_who_ends_the_last),
        cmocka_unit_test(a_run_that_is_cut_short_hung_on_what_was_at_work_then),
        cmocka_unit_test(time_from_being_woken_to_running_is_the_run_queue),
        cmocka_unit_test(of_workers_that_are_joined_each_has_the_time_it_was_waited_for),
        cmocka_unit_test(the_slow_stage_of_a_pipeline_has_most_of_the_path),
        cmocka_unit_test(a_convoy_charges_every_holder_with_its_turn),
        cmocka_unit_test(ping_pong_of_short_waits_is_charged_to_the_other_side_in_proportion),
        cmocka_unit_test(short_waits_for_nobody_of_the_tree_stay_waits),
        cmocka_unit_test(locks_of_the_kernel_are_told_twice_and_count_once),
        cmocka_unit_test(of_very_many_kinds_of_short_waits_the_sum_is_kept),
        cmocka_unit_test(of_very_many_wakers_each_has_what_it_was_waited_for),
        cmocka_unit_test(time_that_nobody_told_is_taken_to_be_like_what_was_told),
        cmocka_unit_test(a_waker_outside_of_the_tree_leaves_the_wait_on_the_path),
        cmocka_unit_test(long_waits_whose_events_were_lost_count_by_their_tally),
        cmocka_unit_test(a_wait_that_is_open_at_the_end_is_the_end_of_the_path),
        cmocka_unit_test(what_came_after_the_waker_ended_stays_with_the_wait),
        cmocka_unit_test(before_a_child_began_the_path_is_in_its_maker),
        cmocka_unit_test(a_thread_that_begins_in_the_span_hands_on_to_the_main_thread),
        cmocka_unit_test(one_that_waited_when_a_thread_began_is_not_its_maker),
        cmocka_unit_test(tallies_of_more_time_than_there_is_share_it),
        cmocka_unit_test(waits_of_one_thread_that_overlap_follow_each_other),
        cmocka_unit_test(a_thread_with_another_name_or_program_is_the_same_thread),
        cmocka_unit_test(a_number_that_is_given_out_again_is_another_thread),
        cmocka_unit_test(waits_that_end_each_other_at_one_moment_end_the_walk),
        cmocka_unit_test(a_waker_that_was_waiting_itself_is_not_followed_in_circles),
        cmocka_unit_test(the_whole_machine_has_no_path_and_says_why),
        cmocka_unit_test(any_graph_ends_and_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
