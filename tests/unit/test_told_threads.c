/* Promises of collect/told_threads.c: within one moment, too, a thread is who it is at the time,
 * whatever was announced in between. */
#include "unit.h"

#include "collect/told_threads.h"
#include "model/sink_memory.h"

#include <stdlib.h>

enum { PID = 100, TID = 101, OTHER = 102, NOW_NS = 1000 };

struct fixture {
    struct sink_memory memory;
    struct told_threads threads;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct stacks_opts opts = {.machine = unwind_machine_here()};
    f->memory = SINK_MEMORY_INIT;
    *state = f;
    int r = stacks_open(&opts, &f->memory.sink, &f->threads.stacks, NULL);
    r = r == 0 ? stacks_fork(f->threads.stacks, NOW_NS, 1, PID, PID) : r;
    r = r == 0 ? stacks_fork(f->threads.stacks, NOW_NS, PID, PID, TID) : r;
    return r == 0 ? stacks_fork(f->threads.stacks, NOW_NS, PID, PID, OTHER) : r;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    struct stacks *stacks = f->threads.stacks;
    told_threads_deinit(&f->threads);
    stacks_close(stacks);
    sink_memory_deinit(&f->memory);
    free(f);
    return 0;
}

static struct told_thread get(struct fixture *f, uint32_t tid, uint32_t exec)
{
    struct told_thread *seen = NULL;
    assert_int_equal(told_threads_get(&f->threads, tid, PID, exec, NOW_NS, &seen), 0);
    assert_int_not_equal(seen->thread, 0);
    assert_int_not_equal(seen->process, 0);
    return *seen;
}

static void task(struct fixture *f, enum cpu_task task, int tid)
{
    assert_int_equal(told_threads_task(&f->threads, NOW_NS, task, PID, tid), 0);
}

static void test_threads_of_one_moment_are_told_apart(void **state)
{
    struct fixture *f = *state;
    uint32_t first = get(f, TID, 0).thread;
    assert_int_not_equal(get(f, OTHER, 0).thread, first);
    assert_int_equal(get(f, TID, 0).thread, first);
}

static void test_one_that_ended_keeps_its_ids(void **state)
{
    struct fixture *f = *state;
    uint32_t first = get(f, TID, 0).thread;
    task(f, CPU_TASK_EXIT, TID);
    assert_int_equal(stacks_exit(f->threads.stacks, NOW_NS, PID, TID), 0);
    assert_int_equal(get(f, TID, 0).thread, first);
    assert_true(get(f, TID, 0).ended);
}

static void test_an_id_that_comes_back_is_another_thread(void **state)
{
    struct fixture *f = *state;
    uint32_t first = get(f, TID, 0).thread;
    task(f, CPU_TASK_EXIT, TID);
    assert_int_equal(stacks_exit(f->threads.stacks, NOW_NS, PID, TID), 0);
    assert_int_equal(get(f, TID, 0).thread, first); /* told late */
    task(f, CPU_TASK_FORK, TID);
    assert_int_equal(stacks_fork(f->threads.stacks, NOW_NS, PID, PID, TID), 0);
    assert_int_not_equal(get(f, TID, 0).thread, first);
    assert_false(get(f, TID, 0).ended);
}

static void test_after_exec_both_are_known(void **state)
{
    struct fixture *f = *state;
    uint32_t before = get(f, TID, 0).thread;
    task(f, CPU_TASK_EXEC, TID);
    assert_int_equal(get(f, TID, 0).thread, before);
    assert_true(get(f, TID, 0).ended);
    assert_false(get(f, TID, 1).ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_threads_of_one_moment_are_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_ended_keeps_its_ids, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_id_that_comes_back_is_another_thread, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_after_exec_both_are_known, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
