/* Where the time of a run goes, of runs whose every step is known. */
#include "unit.h"

#include "made_evidence.h"

#include "analyze/places.h"

#include <asm/unistd.h>

#define assert_near(a, b) assert_float_equal(a, b, 1e-6 * ((b) > 1 ? (b) : 1))

static struct place place_named(const struct made_run *run, const char *name)
{
    for (uint32_t i = 1; i < run->evidence.cpu.function_count; i++)
        if (str_is(run->functions[i].name, name))
            return place_of_function(&run->evidence.cpu, i);
    fail_msg("no function %s", name);
    return (struct place){0};
}

static double through_ms(const struct made_run *run, const char *name, int class,
                         const char *syscalls)
{
    struct place place = place_named(run, name);
    struct path_choice choice = {.place = &place, .class = class, .syscalls = syscalls};
    return run_ms(path_costs_of(&run->evidence.costs_on_path, &choice));
}

static void what_ran_and_what_waited_add_up_to_the_wall_time(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 300, "main f");
    run_runs(run, main, 200, "main g");
    run_waits(run, main, 400, WAIT_CLASS_DISK, __NR_fsync, "main g c:fsync k:ext4_sync_file");
    const struct path_costs *costs = &run_end(run, 900, 500)->costs_on_path;
    assert_null(costs->na);
    assert_near(through_ms(run, "f", -1, NULL), 300);
    assert_near(through_ms(run, "g", WAIT_CLASS_RUNNING, NULL), 200);
    assert_near(through_ms(run, "g", -1, NULL), 600);
    assert_near(through_ms(run, "g", -1, "fsync fdatasync"), 400);
    assert_near(through_ms(run, "main", -1, NULL), 900);
    assert_near(costs->classes[WAIT_CLASS_RUNNING] / RUN_MS, 500);
    assert_near(costs->classes[WAIT_CLASS_DISK] / RUN_MS, 400);
    assert_near(costs->sampled_ns / RUN_MS, 500);
    assert_near(costs->stretch, 0);
    assert_int_equal(costs->samples, 500);
    run_free(run);
}

/* A row of the run queue has no stack: it was once taken for a sample without one. */
static void waiting_for_a_cpu_is_not_running(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 100, "main f");
    run_queues(run, main, 60);
    run_runs(run, main, 40, "main f");
    const struct path_costs *costs = &run_end(run, 200, 140)->costs_on_path;
    assert_near(costs->classes[WAIT_CLASS_RUNQ] / RUN_MS, 60);
    assert_near(costs->classes[WAIT_CLASS_RUNNING] / RUN_MS, 140);
    assert_near(through_ms(run, "f", -1, NULL), 140);
    run_free(run);
}

static void until_it_runs_again_is_a_price_of_the_wait(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 100, "main f");
    run_waits(run, main, 60, WAIT_CLASS_DISK, __NR_fsync, "main save c:fsync");
    run_queues(run, main, 15); /* until it runs again */
    run_runs(run, main, 20, "main f");
    run_queues(run, main, 5); /* it had to make room */
    const struct path_costs *costs = &run_end(run, 200, 120)->costs_on_path;
    assert_near(through_ms(run, "save", -1, "fsync"), 75);
    assert_near(through_ms(run, "save", WAIT_CLASS_DISK, NULL), 60);
    assert_near(costs->classes[WAIT_CLASS_RUNQ] / RUN_MS, 20);
    run_free(run);
}

/* Short waits are only added up, and so is what follows them: the short delays, as many as there
 * were waits. The others are of being driven off the CPU, and nobody's. */
static void short_waits_have_the_delays_after_them_by_count(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    uint32_t ask = run_waits(run, main, 30, WAIT_CLASS_NET, __NR_recvfrom, "main ask c:recv");
    uint32_t save = run_waits(run, main, 30, WAIT_CLASS_DISK, __NR_fsync, "main save c:fsync");
    run_runs(run, main, 12, "main f");
    run_queues(run, main, 48);
    run->rows[ask].tally = (struct wait_tally){.count = 30, .total_ns = 30 * RUN_MS};
    run->rows[save].tally = (struct wait_tally){.count = 10, .total_ns = 30 * RUN_MS};
    uint32_t id = (uint32_t)run->evidence.waits.row_count++;
    run->rows[id].info = (struct wait_info){.kind = WAIT_RUNQ, .thread = main};
    unsigned usual = wait_bucket(RUN_MS), slice = wait_bucket(wait_bucket_ns(usual) * 4);
    run->rows[id].tally.buckets[usual] = 40;
    run->rows[id].tally.buckets[slice] = 2; /* four times as long each */
    assert_int_equal(wait_bucket_ns(slice), 4 * wait_bucket_ns(usual));
    const struct path_costs *costs = &run_end(run, 120, 12)->costs_on_path;
    assert_near(costs->classes[WAIT_CLASS_RUNQ] / RUN_MS, 48);
    assert_near(through_ms(run, "ask", -1, NULL), 30 + 30);
    assert_near(through_ms(run, "save", -1, "fsync"), 30 + 10);
    assert_near(through_ms(run, "save", WAIT_CLASS_RUNQ, NULL), 10);
    run_free(run);
}

/* A timer that samples makes each sleep longer: what was waited may be less without, never more. */
static void sleeps_under_a_timer_may_have_been_shorter(void **state)
{
    (void)state;
    static const struct {
        const char *about;
        uint64_t count;
        double low_ms;
    } cases[] = {
        {"CPU time, sampled by cycles:ppp at 999 Hz a CPU", 1000, 100},
        {"CPU time, sampled by cpu-clock at 999 Hz a CPU", 1000, 60},
        {"CPU time, sampled by cpu-clock at 999 Hz a CPU", 100000, 50}, /* no more than half */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct made_run *run = run_new();
        uint32_t main = run_process(run, 0);
        uint32_t save = run_waits(run, main, 100, WAIT_CLASS_DISK, __NR_fsync, "main c:fsync");
        run_runs(run, main, 20, "main f");
        run->rows[save].tally = (struct wait_tally){.count = cases[i].count,
                                                    .total_ns = 100 * RUN_MS};
        run->evidence.cpu.about = cases[i].about;
        struct path_choice choice = {.class = WAIT_CLASS_DISK};
        struct estimate found = path_costs_of(&run_end(run, 120, 20)->costs_on_path, &choice);
        assert_near(found.ns / RUN_MS, 100);
        assert_near(found.low_ns / RUN_MS, cases[i].low_ms);
        assert_near(found.high_ns / RUN_MS, 100);
        run_free(run);
    }
}

static void samples_beside_the_path_count_nothing(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0), other = run_thread(run, 1);
    for (uint64_t i = 0; i < 100; i++) { /* both at once, in the order of time */
        run_sample(run, main, "main f", i * RUN_MS + 1);
        run_sample(run, other, "worker g", i * RUN_MS + 2);
    }
    run_step(run, PATH_RUNNING, main, 0, 100);
    run_end(run, 100, 200);
    assert_near(through_ms(run, "f", -1, NULL), 100);
    assert_near(through_ms(run, "g", -1, NULL), 0);
    run_free(run);
}

/* Short waits stand as a block somewhere in their span: who is sampled there ran all the same. */
static void samples_in_a_block_of_short_waits_are_of_the_path(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    for (uint64_t i = 0; i < 50; i++)
        run_sample(run, main, i % 2 ? "main f" : "main g", i * 2 * RUN_MS + 1);
    run_waits(run, main, 50, WAIT_CLASS_NET, __NR_recvfrom, "main ask c:recv");
    run_step(run, PATH_RUNNING, main, 0, 50);
    run_end(run, 100, 50);
    assert_int_equal(run->evidence.costs_on_path.samples, 50);
    assert_near(through_ms(run, "f", -1, NULL), 25);
    assert_near(through_ms(run, "g", -1, NULL), 25);
    run_free(run);
}

static void a_thread_without_a_sample_on_the_path_is_like_all_of_its_time(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0), other = run_thread(run, 1), third = run_thread(run, 1);
    run_runs(run, main, 90, "main f");
    run_sample(run, other, "worker g", 10 * RUN_MS); /* while the path was in main */
    run_step(run, PATH_RUNNING, other, 0, 6);
    run_step(run, PATH_RUNNING, third, 0, 4); /* nobody ever sampled it */
    const struct path_costs *costs = &run_end(run, 100, 100)->costs_on_path;
    assert_near(through_ms(run, "g", -1, NULL), 6);
    double unknown = 0;
    for (size_t i = 0; i < costs->count; i++)
        unknown += costs->rows[i].stack == 0 ? costs->rows[i].ns : 0;
    assert_near(unknown / RUN_MS, 4);
    run_free(run);
}

static void a_recorded_run_that_was_slower_is_scaled_and_less_sure(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 400, "main f");
    run_waits(run, main, 400, WAIT_CLASS_TIMER, __NR_nanosleep, "main c:sleep");
    run_end(run, 400, 200);
    struct path_choice sleeps = {.class = WAIT_CLASS_TIMER};
    struct estimate slept = path_costs_of(&run->evidence.costs_on_path, &sleeps);
    assert_near(run_ms(slept), 200);
    assert_near(run->evidence.costs_on_path.stretch, 1);
    assert_near(slept.low_ns, 0); /* twice as long: nobody knows where that was */
    assert_near(slept.high_ns / RUN_MS, 400);
    run_free(run);
}

/* Nobody knows where the rest of a plain run went that was twice as long: not into more computing.
 */
static void what_only_runs_takes_no_more_than_all_that_ran(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 90, "main f");
    run_runs(run, main, 10, "main g");
    run_waits(run, main, 100, WAIT_CLASS_DISK, __NR_fsync, "main g c:fsync");
    run_end(run, 400, 100);
    struct place f = place_named(run, "f");
    struct path_choice choice = {.place = &f, .class = -1};
    struct estimate cost = path_costs_of(&run->evidence.costs_on_path, &choice);
    double ran = run->evidence.costs_on_path.classes[WAIT_CLASS_RUNNING];
    assert_near(cost.ns, 0.9 * ran);
    assert_near(cost.high_ns, ran);
    run_free(run);
}

/* Others kept plain runs from the CPU, and not the recorded one. */
static void what_ran_is_stretched_to_the_cpu_time_of_plain_runs_and_no_further(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 100, "main f");
    run_waits(run, main, 20, WAIT_CLASS_DISK, __NR_fsync, "main g c:fsync");
    const struct path_costs *costs = &run_end(run, 240, 110)->costs_on_path;
    double most = 1.05 * 110; /* twice as long would be 200 */
    assert_near(costs->classes[WAIT_CLASS_RUNNING] / RUN_MS, most);
    assert_near(through_ms(run, "f", -1, NULL), most);
    assert_near(costs->classes[WAIT_CLASS_DISK] / RUN_MS, 40);
    assert_near(costs->ns / RUN_MS, 240); /* the rest is in no row */
    run_free(run);

    /* The kernel leaves stolen time out of CPU time: what was recorded was there all the same. */
    run = run_new();
    main = run_process(run, 0);
    run_runs(run, main, 100, "main f");
    run_waits(run, main, 20, WAIT_CLASS_DISK, __NR_fsync, "main g c:fsync");
    assert_near(run_end(run, 240, 60)->costs_on_path.classes[WAIT_CLASS_RUNNING] / RUN_MS, 100);
    run_free(run);
}

/* Sampling often computes, too, in the program's own time. */
static void what_recording_computed_is_no_cost_of_the_program(void **state)
{
    (void)state;
    static const struct {
        double recorded_cpu_ms, wall_ms, running_ms, disk_ms;
    } rows[] = {
        {0, 240, 200, 40},              /* not known: all of it may be the program's */
        {200, 145, 105, 40},            /* longer by just that */
        {200, 260, 105, 40.0 / 12 * 13} /* no longer: what it did instead was not seen */
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct made_run *run = run_new();
        uint32_t main = run_process(run, 0);
        run_runs(run, main, 200, "main f");
        run_waits(run, main, 40, WAIT_CLASS_DISK, __NR_fsync, "main g c:fsync");
        run->evidence.cpu_honesty.rusage_ns = (struct honesty_figure){
            (uint64_t)(rows[i].recorded_cpu_ms * RUN_MS), rows[i].recorded_cpu_ms > 0};
        const struct path_costs *costs = &run_end(run, rows[i].wall_ms, 100)->costs_on_path;
        assert_near(costs->classes[WAIT_CLASS_RUNNING] / RUN_MS, rows[i].running_ms);
        assert_near(costs->classes[WAIT_CLASS_DISK] / RUN_MS, rows[i].disk_ms);
        run_free(run);
    }
}

static void what_the_recorded_run_waited_for_a_cpu_beyond_a_plain_one_is_cut(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 500, "main f");
    run_queues(run, main, 500);
    const struct path_costs *costs = &run_end(run, 600, 500)->costs_on_path;
    assert_near(costs->classes[WAIT_CLASS_RUNQ] / RUN_MS, 100);
    assert_near(costs->classes[WAIT_CLASS_RUNNING] / RUN_MS, 500);
    assert_near(costs->stretch, 0);
    run_free(run);

    /* Without a plain one nothing is. */
    run = run_new();
    main = run_process(run, 0);
    run_runs(run, main, 500, "main f");
    run_queues(run, main, 500);
    assert_near(run_end(run, NAN, NAN)->costs_on_path.classes[WAIT_CLASS_RUNQ] / RUN_MS, 500);
    run_free(run);
}

/* It would say that runs do not differ, which one run cannot tell. */
static void an_interval_of_one_run_is_not_empty(void **state)
{
    (void)state;
    struct path_costs costs = {.ns = 100, .few_runs = true, .wall_low = 1, .wall_high = 1};
    struct estimate all = path_costs_sure(&costs, path_costs_estimate(&costs, 0, 100, 0));
    assert_near(all.ns, 100);
    assert_true(isnan(all.low_ns) && isnan(all.high_ns));
    costs.wall_low = 0.9; /* by so much the recorded one differs */
    all = path_costs_sure(&costs, path_costs_estimate(&costs, 0, 50, 0));
    assert_near(all.low_ns, 45);
    assert_near(all.high_ns, 50);
    costs = (struct path_costs){.ns = 100, .wall_low = 1, .wall_high = 1};
    all = path_costs_sure(&costs, path_costs_estimate(&costs, 0, 100, 0));
    assert_near(all.low_ns, 100); /* many runs can be alike */
}

static void fewer_samples_make_a_wider_interval(void **state)
{
    (void)state;
    double widths[2];
    for (int many = 0; many < 2; many++) {
        struct made_run *run = run_new();
        uint32_t main = run_process(run, 0);
        run_runs(run, main, many ? 800 : 8, "main f");
        run_runs(run, main, many ? 800 : 8, "main g");
        double wall_ms = many ? 1600 : 16;
        run_end(run, wall_ms, wall_ms);
        struct place f = place_named(run, "f");
        struct path_choice choice = {.place = &f, .class = -1};
        struct estimate cost = path_costs_of(&run->evidence.costs_on_path, &choice);
        assert_near(run_ms(cost), wall_ms / 2);
        assert_true(cost.low_ns < cost.ns && cost.ns < cost.high_ns);
        widths[many] = (cost.high_ns - cost.low_ns) / cost.ns;
        run_free(run);
    }
    assert_true(widths[0] > 5 * widths[1]);
}

static double half(void *context, const struct path_costs *costs, const struct path_cost *row)
{
    (void)context, (void)costs;
    return row->class == WAIT_CLASS_DISK ? 0.5 : 0;
}

static void a_finding_knows_its_rows_and_its_part_of_them(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 100, "main f");
    run_waits(run, main, 300, WAIT_CLASS_DISK, __NR_fsync, "main c:fsync");
    const struct path_costs *costs = &run_end(run, 400, 100)->costs_on_path;
    struct finding finding = {.recoverable = {NAN, NAN, NAN}};
    struct estimate cost = path_costs_cover(&run->arena, costs, half, NULL, &finding);
    assert_near(run_ms(cost), 150);
    assert_near(finding.cost_ns, cost.ns);
    assert_near(finding.recoverable.ns, cost.ns);
    for (size_t i = 0; i < costs->count; i++)
        assert_near(finding.covers[i], costs->rows[i].class == WAIT_CLASS_DISK ? 0.5 : 0);
    finding.recoverable = (struct estimate){1, 1, 1};
    path_costs_cover(&run->arena, costs, half, NULL, &finding);
    assert_near(finding.recoverable.ns, 1); /* set already */
    run_free(run);
}

static void without_waits_samples_stand_in_and_the_rest_is_not_seen(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 300, "main f");
    struct path_costs costs;
    const struct path_wall wall = {1000.0 * RUN_MS, NAN, NAN, NAN}, none = {NAN, NAN, NAN, NAN};
    assert_int_equal(
        path_costs_build(&run->arena, &run->evidence.cpu, NULL, NULL, NULL, false, &wall, &costs),
        0);
    assert_non_null(costs.na);
    assert_near(costs.unseen_ns / RUN_MS, 700);
    assert_near(costs.classes[WAIT_CLASS_RUNNING] / RUN_MS, 300);
    assert_int_equal(path_costs_build(&run->arena, NULL, NULL, NULL, NULL, false, &none, &costs),
                     0);
    assert_int_equal(costs.count, 0);
    run_free(run);
}

static void ids_that_are_none_of_the_recording_are_no_place(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 10, "main f");
    run_waits(run, main, 10, WAIT_CLASS_DISK, 100000, "main g");
    run->rows[1].info.stack = 4000000000u;
    run->sample_thread[3] = 77; /* beyond the waits' threads */
    const struct path_costs *costs = &run_end(run, 20, 10)->costs_on_path;
    assert_near(costs->classes[WAIT_CLASS_DISK] / RUN_MS, 10);
    assert_near(costs->classes[WAIT_CLASS_RUNNING] / RUN_MS, 10);
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ran_and_what_waited_add_up_to_the_wall_time),
        cmocka_unit_test(waiting_for_a_cpu_is_not_running),
        cmocka_unit_test(until_it_runs_again_is_a_price_of_the_wait),
        cmocka_unit_test(short_waits_have_the_delays_after_them_by_count),
        cmocka_unit_test(sleeps_under_a_timer_may_have_been_shorter),
        cmocka_unit_test(samples_beside_the_path_count_nothing),
        cmocka_unit_test(samples_in_a_block_of_short_waits_are_of_the_path),
        cmocka_unit_test(a_thread_without_a_sample_on_the_path_is_like_all_of_its_time),
        cmocka_unit_test(a_recorded_run_that_was_slower_is_scaled_and_less_sure),
        cmocka_unit_test(what_only_runs_takes_no_more_than_all_that_ran),
        cmocka_unit_test(what_ran_is_stretched_to_the_cpu_time_of_plain_runs_and_no_further),
        cmocka_unit_test(what_recording_computed_is_no_cost_of_the_program),
        cmocka_unit_test(what_the_recorded_run_waited_for_a_cpu_beyond_a_plain_one_is_cut),
        cmocka_unit_test(an_interval_of_one_run_is_not_empty),
        cmocka_unit_test(fewer_samples_make_a_wider_interval),
        cmocka_unit_test(a_finding_knows_its_rows_and_its_part_of_them),
        cmocka_unit_test(without_waits_samples_stand_in_and_the_rest_is_not_seen),
        cmocka_unit_test(ids_that_are_none_of_the_recording_are_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
