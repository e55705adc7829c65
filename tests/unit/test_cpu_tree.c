/* Where the announcements of a whole machine are heard, only those of the target's tree count. */
#include "unit.h"

#include "collect/cpu_parts.h"

struct task { /* as FORK, EXIT, COMM and MMAP2 begin */
    struct perf_event_header header;
    uint32_t pid, ppid;
};

static bool concerns(struct collector *c, uint32_t type, uint32_t pid, uint32_t ppid)
{
    struct task task = {.header = {.type = type, .size = sizeof(task)}, .pid = pid, .ppid = ppid};
    return cpu_tree_concerns(c, &task.header);
}

static void children_and_threads_of_the_tree_count_others_do_not(void **state)
{
    (void)state;
    struct collector c = {.opts = {.pid = 100}};
    assert_int_equal(cpu_tree_begin(&c), 0);
    assert_true(concerns(&c, PERF_RECORD_COMM, 100, 0));
    assert_false(concerns(&c, PERF_RECORD_MMAP2, 200, 0));
    assert_true(concerns(&c, PERF_RECORD_FORK, 100, 100)); /* a thread */
    assert_true(concerns(&c, PERF_RECORD_FORK, 200, 100));
    assert_true(concerns(&c, PERF_RECORD_MMAP2, 200, 0));
    assert_true(concerns(&c, PERF_RECORD_FORK, 201, 200)); /* a grandchild */
    assert_true(concerns(&c, PERF_RECORD_EXIT, 201, 200));
    assert_false(concerns(&c, PERF_RECORD_FORK, 400, 300));
    assert_false(concerns(&c, PERF_RECORD_EXIT, 400, 300));
    map_u64_deinit(&c.tree);
}

static void a_pid_that_comes_back_belongs_to_whoever_made_it_last(void **state)
{
    (void)state;
    struct collector c = {.opts = {.pid = 100}};
    assert_int_equal(cpu_tree_begin(&c), 0);
    assert_true(concerns(&c, PERF_RECORD_FORK, 200, 100));
    assert_false(concerns(&c, PERF_RECORD_FORK, 200, 300));
    assert_false(concerns(&c, PERF_RECORD_COMM, 200, 0));
    assert_true(concerns(&c, PERF_RECORD_FORK, 200, 100));
    assert_true(concerns(&c, PERF_RECORD_COMM, 200, 0));
    map_u64_deinit(&c.tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_and_threads_of_the_tree_count_others_do_not),
        cmocka_unit_test(a_pid_that_comes_back_belongs_to_whoever_made_it_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
