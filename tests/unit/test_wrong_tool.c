/* When changing code is the wrong tool, and the near misses. */
#include "unit.h"

#include "made_evidence.h"

#include "analyze/wrong_tool.h"

#include <asm/unistd.h>

static struct wrong_tools tools_of(struct made_run *run, const struct findings *findings)
{
    struct findings none = {.arena = &run->arena};
    struct wrong_tools tools;
    assert_int_equal(
        wrong_tools_build(&run->arena, &run->evidence, findings ? findings : &none, &tools), 0);
    assert_int_equal(tools.count, 4);
    for (size_t i = 0; i < tools.count; i++)
        assert_true(tools.rows[i].why && tools.rows[i].why[0]);
    return tools;
}

static void assert_first(const struct wrong_tools *tools, const char *id)
{
    if (!tools->first || strcmp(tools->first->id, id) != 0)
        fail_msg("%s, not %s", tools->first ? tools->first->id : "none", id);
}

/* `percent` of the time in replies of a peer. */
static struct made_run *asking(double percent)
{
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 1000 - 10 * percent, "main f");
    run_waits(run, main, 10 * percent, WAIT_CLASS_NET, __NR_recvfrom, "main ask c:recv");
    run_end(run, 1000, 1000 - 10 * percent);
    run->evidence.axes[AXIS_IO].na = NULL;
    return run;
}

static void a_peer_that_takes_it_all_without_another_way(void **state)
{
    (void)state;
    struct made_run *run = asking(95);
    struct wrong_tools tools = tools_of(run, NULL);
    assert_first(&tools, "external_service_no_alternative");
    struct findings findings = {.arena = &run->arena};
    struct finding *way = finding_add(&findings, "n_plus_one");
    assert_non_null(way);
    way->category = CATEGORY_IO_DB;
    tools = tools_of(run, &findings);
    assert_null(tools.first); /* there is a way */
    assert_non_null(strstr(tools.rows[0].why, "n_plus_one"));
    run->evidence.axes[AXIS_IO].na = "no permission";
    tools = tools_of(run, NULL);
    assert_null(tools.first); /* nobody looked for one */
    run_free(run);
    run = asking(85);
    tools = tools_of(run, NULL);
    assert_null(tools.first);
    run_free(run);
}

static void a_machine_that_gives_no_cpu(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 400, "main f");
    run_queues(run, main, 600);
    run_end(run, 1000, 400);
    struct wrong_tools tools = tools_of(run, NULL);
    assert_null(tools.first); /* nobody judged */
    assert_non_null(strstr(tools.rows[2].why, "n/a: not judged"));
    struct findings findings = {.arena = &run->arena};
    struct finding *load = finding_add(&findings, "cpu_starvation");
    assert_non_null(load);
    load->class = FINDING_ENVIRONMENT;
    load->recoverable.ns = 600.0 * RUN_MS;
    struct finding *code = finding_add(&findings,
                                       "small_io"); /* the program's: it counts nothing */
    assert_non_null(code);
    code->recoverable.ns = 300.0 * RUN_MS;
    load = &findings.items[0];
    tools = tools_of(run, &findings);
    assert_first(&tools, "infrastructure_bound");
    assert_non_null(strstr(tools.first->why, "took 60% of the wall time"));
    load->recoverable.ns = 1050.0 * RUN_MS; /* it cannot be more than all */
    assert_non_null(strstr(tools_of(run, &findings).first->why, "took 100% of the wall time"));
    load->verdict = FINDING_DISMISSED; /* it keeps the CPUs busy itself */
    load->reason = "they wait for each other";
    tools = tools_of(run, &findings);
    assert_null(tools.first);
    assert_non_null(strstr(tools.rows[2].why, "took 0% of the wall time"));
    struct finding *limit = finding_add(&findings, "cgroup_throttling");
    assert_non_null(limit);
    limit->class = FINDING_ENVIRONMENT; /* but a limit does not let it */
    limit->recoverable.ns = 700.0 * RUN_MS;
    tools = tools_of(run, &findings);
    assert_first(&tools, "infrastructure_bound");
    run_free(run);
}

static void a_disk_that_is_slow_and_asked_well(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 200, "main f");
    run_waits(run, main, 800, WAIT_CLASS_DISK, __NR_read, "main load c:read");
    struct evidence *evidence = run_end(run, 1000, 200);
    struct device_row devices[2] = {{{0}}};
    devices[1].info.name = STR("sda");
    devices[1].tally.count = 40;
    devices[1].tally.total_ns = 800ull * RUN_MS;
    evidence->io.devices = devices;
    evidence->io.device_count = 2;
    evidence->axes[AXIS_IO].na = NULL;
    struct wrong_tools tools = tools_of(run, NULL);
    assert_first(&tools, "infrastructure_bound");
    assert_non_null(strstr(tools.first->why, "sda takes 20.0 ms"));
    struct findings findings = {.arena = &run->arena};
    struct finding *way = finding_add(&findings, "file_reread");
    assert_non_null(way);
    way->category = CATEGORY_IO_FILE;
    tools = tools_of(run, &findings);
    assert_null(tools.first);
    devices[1].tally.count = 800; /* 1 ms each */
    tools = tools_of(run, NULL);
    assert_null(tools.first);
    run_free(run);
}

static void a_flat_profile_of_an_optimized_build(void **state)
{
    (void)state;
    static const char *const stacks[] = {"main a", "main b", "main c", "main d", "main e", "main f",
                                         "main g", "main h", "main i", "main j", "main k", "main l",
                                         "main m", "main n", "main o", "main p"};
    struct build_info binary = {.optimized = {BUILD_YES, "-O2"}};
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    for (size_t i = 0; i < ARRAY_SIZE(stacks); i++)
        run_runs(run, main, 100, stacks[i]);
    struct evidence *evidence = run_end(run, 1600, 1600);
    evidence->binary = &binary;
    struct wrong_tools tools = tools_of(run, NULL);
    assert_first(&tools, "already_optimized");
    binary.optimized.answer = BUILD_NO;
    tools = tools_of(run, NULL);
    assert_null(tools.first);
    binary.optimized.answer = BUILD_YES;
    struct findings findings = {.arena = &run->arena};
    assert_non_null(finding_add(&findings, "small_io"));
    tools = tools_of(run, &findings);
    assert_null(tools.first);
    run_free(run);
    run = run_new();
    run_runs(run, run_process(run, 0), 500, "main f");
    run_end(run, 500, 500)->binary = &binary;
    tools = tools_of(run, NULL);
    assert_null(tools.first); /* one function has it all */
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_that_takes_it_all_without_another_way),
        cmocka_unit_test(a_machine_that_gives_no_cpu),
        cmocka_unit_test(a_disk_that_is_slow_and_asked_well),
        cmocka_unit_test(a_flat_profile_of_an_optimized_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
