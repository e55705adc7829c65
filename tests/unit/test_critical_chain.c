/* What the end of a command hung on: graphs whose answer is known, and random ones that must at
 * least end and add up. */
#include "unit.h"

#include "analyze/critical_path.h"
#include "made_waits.h"

struct answer {
    struct arena arena;
    struct critical_path path;
};

static struct answer chain_of(struct made_waits *made)
{
    struct answer answer = {0};
    assert_int_equal(critical_chain_build(&answer.arena, &made->waits, &answer.path), 0);
    assert_null(answer.path.na);
    const struct waits_thread *root = &made->threads[made->waits.root_thread];
    uint64_t at = root->start_ns;
    for (size_t i = 0; i < answer.path.step_count; i++) {
        assert_int_equal(answer.path.steps[i].start_ns, at);
        assert_true(answer.path.steps[i].end_ns > at);
        at = answer.path.steps[i].end_ns;
    }
    assert_int_equal(at, root->end_ns);
    return answer;
}

static void answer_end(struct answer *answer, struct made_waits *made)
{
    arena_deinit(&answer->arena);
    free(made);
}

static double share_ms(const struct answer *answer, enum path_what what, uint32_t thread)
{
    double ms = 0;
    for (size_t i = 0; i < answer->path.share_count; i++)
        if (answer->path.shares[i].what == what && answer->path.shares[i].thread == thread)
            ms += (double)answer->path.shares[i].ns / MADE_MS;
    return ms;
}

static double running_ms(const struct answer *answer, uint32_t thread)
{
    return share_ms(answer, PATH_RUNNING, thread);
}

#define assert_ms(a, b) assert_float_equal(a, b, 0.02)

static void of_workers_that_are_joined_only_the_longest_is_on_it(void **state)
{
    (void)state;
    static const double ends[] = {10, 40, 90};
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0), workers[3];
    uint32_t root = made_waits_thread(made, process, 0, 100);
    for (int i = 0; i < 3; i++)
        workers[i] = made_waits_thread(made, process, 2, ends[i]);
    double now = 4;
    for (int i = 0; i < 3; i++) {
        made_waits_long(made, root, workers[i], now, ends[i]);
        now = ends[i];
    }
    struct answer answer = chain_of(made);
    assert_ms(running_ms(&answer, root), 12); /* before it was made, and after it was joined */
    assert_ms(running_ms(&answer, workers[0]), 0);
    assert_ms(running_ms(&answer, workers[1]), 0);
    assert_ms(running_ms(&answer, workers[2]), 88);
    answer_end(&answer, made);
}

/* Two jobs at a time: the third can begin when the first has ended. */
static void of_jobs_the_chain_is_the_one_that_made_the_end_late(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t make = made_waits_process(made, 0);
    uint32_t root = made_waits_thread(made, make, 0, 100), jobs[3];
    static const double starts[] = {0.5, 1, 31}, ends[] = {30, 60, 99};
    for (int i = 0; i < 3; i++)
        jobs[i] = made_waits_thread(made, made_waits_process(made, make), starts[i], ends[i]);
    made_waits_long(made, root, jobs[0], 2, 30);
    made_waits_long(made, root, jobs[1], 32, 60);
    made_waits_long(made, root, jobs[2], 60.5, 99);
    struct answer answer = chain_of(made);
    assert_ms(running_ms(&answer, jobs[2]), 68);
    assert_ms(running_ms(&answer, jobs[0]), 29.5);
    assert_ms(running_ms(&answer, jobs[1]), 0);
    answer_end(&answer, made);
}

static void a_lock_leads_to_its_holder_and_what_that_did_before(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t root = made_waits_thread(made, process, 0, 100);
    uint32_t holder = made_waits_thread(made, process, 10, 100);
    made_waits_long(made, root, holder, 50, 80);
    struct answer answer = chain_of(made);
    assert_ms(running_ms(&answer, holder), 70);
    assert_ms(running_ms(&answer, root), 30);
    answer_end(&answer, made);
}

static void a_wait_that_nobody_of_the_tree_ended_stays(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t root = made_waits_thread(made, process, 0, 100);
    uint32_t worker = made_waits_thread(made, process, 5, 90);
    made_waits_long(made, worker, 0, 20, 60); /* the disk */
    made_waits_long(made, root, worker, 10, 90);
    struct answer answer = chain_of(made);
    assert_ms(share_ms(&answer, PATH_WAIT, worker), 40);
    assert_ms(running_ms(&answer, worker), 45);
    assert_ms(running_ms(&answer, root), 15);
    answer_end(&answer, made);
}

/* Whoever made the thread waited then: what is left goes back to who waited for it. */
static void a_thread_that_nobody_can_have_made_leads_back(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(100);
    uint32_t process = made_waits_process(made, 0);
    uint32_t root = made_waits_thread(made, process, 0, 100);
    uint32_t worker = made_waits_thread(made, process, 50, 90);
    made_waits_long(made, root, worker, 20, 90);
    struct answer answer = chain_of(made);
    assert_ms(running_ms(&answer, worker), 40);
    assert_ms(share_ms(&answer, PATH_WAIT, root), 30);
    assert_ms(running_ms(&answer, root), 30);
    answer_end(&answer, made);
}

static void a_wait_for_a_process_whose_waker_is_not_known_leads_into_it(void **state)
{
    (void)state;
    for (int named = 0; named < 2; named++) {
        struct made_waits *made = made_waits_new(100);
        uint32_t parent = made_waits_process(made, 0);
        uint32_t root = made_waits_thread(made, parent, 0, 100);
        uint32_t process = made_waits_process(made, parent);
        uint32_t child = made_waits_thread(made, process, 10, 60);        /* its parent runs late */
        made_waits_thread(made, made_waits_process(made, 0), 0, 50);      /* of somebody else */
        made_waits_thread(made, made_waits_process(made, parent), 0, 15); /* before */
        uint32_t object = (uint32_t)made->waits.object_count++;
        made->objects[object] = (struct object_info){
            .kind = OBJECT_PROCESS, .key = named ? made->processes[process].pid : 0};
        uint32_t row = made_waits_blocked(made, root, 0);
        made->rows[row].info.object = object;
        made_waits_event(made, row, 20, 70, 70);
        struct answer answer = chain_of(made);
        assert_ms(running_ms(&answer, child), 50);
        assert_ms(share_ms(&answer, PATH_WAIT, root), 10);
        assert_ms(running_ms(&answer, root), 40);
        answer_end(&answer, made);
    }
}

static void very_many_hops_are_followed_to_the_beginning(void **state)
{
    (void)state;
    struct made_waits *made = made_waits_new(2000);
    uint32_t process = made_waits_process(made, 0);
    uint32_t one = made_waits_thread(made, process, 0, 2000);
    uint32_t two = made_waits_thread(made, process, 0, 2000);
    for (int i = 0; i < 1900; i++) /* each waits while the other runs */
        made_waits_long(made, i % 2 ? one : two, i % 2 ? two : one, i, i + 1);
    struct answer answer = chain_of(made);
    assert_float_equal(running_ms(&answer, one) + running_ms(&answer, two), 2000, 1);
    answer_end(&answer, made);
}

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

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
            uint32_t waker = (uint32_t)(next(&seed) % (threads + 2));
            uint32_t row = made_waits_blocked(made, thread, waker);
            double start = (double)(next(&seed) % 1000), len = (double)(next(&seed) % 100);
            if (next(&seed) % 3 == 0)
                made_waits_short(made, row, 5, len, start, start + len * 2);
            else
                made_waits_event(made, row, start, start + len,
                                 start + len + (double)(next(&seed) % 5));
        }
        struct answer answer = chain_of(made);
        answer_end(&answer, made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_workers_that_are_joined_only_the_longest_is_on_it),
        cmocka_unit_test(of_jobs_the_chain_is_the_one_that_made_the_end_late),
        cmocka_unit_test(a_lock_leads_to_its_holder_and_what_that_did_before),
        cmocka_unit_test(a_wait_that_nobody_of_the_tree_ended_stays),
        cmocka_unit_test(a_thread_that_nobody_can_have_made_leads_back),
        cmocka_unit_test(a_wait_for_a_process_whose_waker_is_not_known_leads_into_it),
        cmocka_unit_test(very_many_hops_are_followed_to_the_beginning),
        cmocka_unit_test(any_graph_ends_and_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
