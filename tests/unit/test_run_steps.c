/* Promises of the map of steps: the path merged by function, calls and requests found again by
 * name, nothing that is small, nothing counted twice. */
#include "unit.h"

#include "analyze/run_steps.h"
#include "made_run.h"

#include <stdio.h>

static struct made_run *made;
static struct run_steps steps;

static int begin(void **state)
{
    (void)state;
    made = made_run_new(100);
    return 0;
}

static int end(void **state)
{
    (void)state;
    made_run_end(made);
    return 0;
}

static void build(void)
{
    assert_int_equal(run_steps_build(&made->arena, &made->evidence, &steps), 0);
}

/* The n-th child of a step, from 0; NULL when there are fewer. */
static const struct run_step *child(const struct run_step *step, unsigned n)
{
    uint32_t at = step->first_child;
    while (at && n-- > 0)
        at = steps.rows[at].next_sibling;
    return at ? &steps.rows[at] : NULL;
}

static void assert_step(const struct run_step *step, const char *function, double ms)
{
    assert_non_null(step);
    assert_true(str_is(step->function, function));
    assert_true(fabs(step->ns - ms * 1e6) < 1);
}

static void stacks_are_merged_by_function_and_the_longest_comes_first(void **state)
{
    (void)state;
    uint32_t start = made_run_function(made, "_start"), main_ = made_run_function(made, "main");
    uint32_t f = made_run_function(made, "f"), g = made_run_function(made, "g");
    uint32_t kernel = made_run_function(made, "[vfs_write]");
    uint32_t at_main = made_run_stack(made, made_run_stack(made, 0, start), main_);
    uint32_t at_f = made_run_stack(made, at_main, f), at_g = made_run_stack(made, at_main, g);
    made_run_cost(made, 1, at_f, WAIT_CLASS_RUNNING, "", 20);
    made_run_cost(made, 1, at_g, WAIT_CLASS_DISK, "fsync", 50);
    made_run_cost(made, 1, made_run_stack(made, at_g, kernel), WAIT_CLASS_RUNNING, "write", 10);
    made_run_cost(made, 1, at_main, WAIT_CLASS_LOCK, "futex", 5);
    made_run_cost(made, 1, 0, WAIT_CLASS_RUNQ, "", 15);
    build();
    const struct run_step *top = child(&steps.rows[0], 0);
    assert_step(top, "main", 85);
    assert_null(child(&steps.rows[0], 1));
    assert_step(child(top, 0), "g", 60); /* the kernel's functions are its time */
    assert_step(child(top, 1), "f", 20);
    assert_int_equal(child(top, 0)->type, CATEGORY_IO_FILE);
    assert_int_equal(child(top, 1)->type, CATEGORY_CPU);
    assert_int_equal(child(top, 0)->place.line, 40);
    assert_true(fabs(steps.left_out_ns - 15e6) < 1);
    assert_false(steps.io_known);
}

static void recursion_is_one_step_and_small_steps_are_left_out(void **state)
{
    (void)state;
    uint32_t walk = made_run_function(made, "walk"), leaf = made_run_function(made, "leaf");
    uint32_t tiny = made_run_function(made, "tiny");
    uint32_t at = made_run_stack(made, 0, walk);
    uint32_t deep = made_run_stack(made, made_run_stack(made, made_run_stack(made, at, leaf), walk),
                                   leaf);
    made_run_cost(made, 1, deep, WAIT_CLASS_RUNNING, "", 90);
    made_run_cost(made, 1, made_run_stack(made, at, tiny), WAIT_CLASS_RUNNING, "", 0.5);
    build();
    const struct run_step *top = child(&steps.rows[0], 0);
    assert_step(top, "walk", 90.5);
    assert_step(child(top, 0), "leaf", 90);
    assert_null(child(child(top, 0), 0));
    assert_null(child(top, 1));
}

static void a_stack_deeper_than_the_map_is_the_time_of_its_last_step(void **state)
{
    (void)state;
    static char names[40][16];
    uint32_t at = 0;
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof(names[i]), "f%d", i);
        at = made_run_stack(made, at, made_run_function(made, names[i]));
    }
    made_run_cost(made, 1, at, WAIT_CLASS_RUNNING, "", 100);
    build();
    unsigned depth = 0;
    for (const struct run_step *step = &steps.rows[0]; (step = child(step, 0));)
        depth++;
    assert_int_equal(depth, RUN_STEPS_DEPTH_MAX);
    assert_int_equal(steps.count, RUN_STEPS_DEPTH_MAX + 1);
}

static void several_programs_are_a_step_each(void **state)
{
    (void)state;
    uint32_t main_ = made_run_function(made, "main");
    uint32_t at = made_run_stack(made, 0, main_);
    made_run_cost(made, 1, at, WAIT_CLASS_RUNNING, "", 30);
    made_run_cost(made, 2, at, WAIT_CLASS_RUNNING, "", 70);
    build();
    assert_step(child(&steps.rows[0], 0), "helper", 70);
    assert_step(child(&steps.rows[0], 1), "app", 30);
    assert_step(child(child(&steps.rows[0], 0), 0), "main", 70);
    assert_true(str_is(child(&steps.rows[0], 1)->service, "app"));
    assert_true(str_is(child(&steps.rows[0], 1)->place.image, "/home/me/app"));
}

/* Calls and requests of another recording, whose ids are other ones: here only the names agree. */
static void calls_and_requests_are_hung_in_by_the_names_on_their_stacks(void **state)
{
    (void)state;
    uint32_t main_ = made_run_function(made, "main"), load = made_run_function(made, "load");
    uint32_t at = made_run_stack(made, 0, main_), at_load = made_run_stack(made, at, load);
    made_run_cost(made, 1, at_load, WAIT_CLASS_NET, "recvfrom", 80);
    struct made_io *io = made_io_new();
    struct made_run *other = made_run_new(1);
    made_run_function(other, "unused");
    uint32_t there = made_run_function(other, "load"), outer = made_run_function(other, "main");
    uint32_t library = made_run_function(other, "PQexec");
    uint32_t stack = made_run_stack(
        other, made_run_stack(other, made_run_stack(other, 0, outer), there), library);
    io->io.profile = other->profile;
    uint32_t file = made_io_object(io, OBJECT_FILE, 0, "/a");
    made_io_call(io, 1, stack, "read", file, 3, 1, 100);
    io->texts[1] = STR("SELECT ?");
    io->texts[2] = STR("127.0.0.1:5432");
    io->io.text_count = 3;
    struct io_request_group groups[2] = {
        {.protocol = REQUEST_POSTGRESQL,
         .role = REQUEST_CLIENT,
         .peer = 2,
         .text = 1,
         .stack = stack,
         .tally = {.count = 50, .total_ns = 60000000, .bytes_in = 7}},
        {.protocol = REQUEST_HTTP1,
         .role = REQUEST_SERVER,
         .text = 1,
         .stack = stack,
         .tally = {.count = 9, .total_ns = 60000000}},
    };
    made->evidence.io = io->io;
    assert_int_equal(io_sums_build(&made->arena, &made->evidence.io, &made->evidence.io_sums), 0);
    made->evidence.requests = (struct io_request_groups){.groups = groups, .count = 2};
    made->evidence.axes[AXIS_IO] = (struct axis_state){.scale = 0.5};
    build();
    const struct run_step *loaded = child(child(&steps.rows[0], 0), 0);
    assert_step(loaded, "load", 80);
    assert_int_equal(loaded->type, CATEGORY_IO_DB);
    assert_int_equal(loaded->calls, 3);
    assert_int_equal(loaded->read_bytes, 300);
    assert_int_equal(loaded->http_round_trips, 0); /* it answered those, it did not ask */
    const struct run_step *request = child(loaded, 0);
    assert_step(request, "SELECT ?", 30); /* traced, in nanoseconds of the baseline */
    assert_int_equal(request->requests, 50);
    assert_true(str_is(request->service, "127.0.0.1:5432"));
    made_run_end(other);
    free(io);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stacks_are_merged_by_function_and_the_longest_comes_first,
                                        begin, end),
        cmocka_unit_test_setup_teardown(recursion_is_one_step_and_small_steps_are_left_out, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_stack_deeper_than_the_map_is_the_time_of_its_last_step,
                                        begin, end),
        cmocka_unit_test_setup_teardown(several_programs_are_a_step_each, begin, end),
        cmocka_unit_test_setup_teardown(calls_and_requests_are_hung_in_by_the_names_on_their_stacks,
                                        begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
