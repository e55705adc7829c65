/* Promises of the files of a run: the map, the whole result, the hand-off. Their schemas are
 * checked by tests/smoke/run_artifacts.py. */
#include "unit.h"

#include "capture.h"
#include "made_run.h"
#include "present/run_parts.h"
#include "present/run_screen.h"

static struct made_run *made;
static struct build_info binary;

static int begin(void **state)
{
    (void)state;
    made = made_run_new(980);
    made_run_cost(made, 1, 0, WAIT_CLASS_RUNNING, "", 200);
    made_run_cost(made, 1, 0, WAIT_CLASS_NET, "recvfrom", 700);
    binary = (struct build_info){.path = "/home/me/app"};
    made->evidence.binary = &binary;
    return 0;
}

static int end(void **state)
{
    (void)state;
    made_run_end(made);
    return 0;
}

static const char *text_at(const struct value *root, const char *path)
{
    const struct value *value = value_find(root, path);
    assert_non_null(value);
    assert_true(value->kind == VALUE_TEXT || value->kind == VALUE_NA);
    return arena_dup_len(&made->arena, value->text.data, value->text.len);
}

static void handoff(struct capture *capture)
{
    capture_begin(capture);
    run_handoff_draw(&made->arena, &made->run, capture->out);
    capture_text(capture);
}

static void every_field_of_the_baseline_is_there_or_says_why_not(void **state)
{
    (void)state;
    struct value root = run_map_file(&made->arena, &made->run);
    const struct value *baseline = value_get(&root, "baseline");
    assert_true(value_number(value_get(baseline, "wall_time_ms")) == 980);
    assert_true(value_number(value_get(baseline, "cpu_time_ms")) == 490);
    assert_true(value_number(value_get(baseline, "memory_peak_mb")) == 3);
    assert_true(value_number(value_get(baseline, "io_read_bytes")) == 10);
    assert_string_equal(text_at(&root, "baseline.io_write_bytes"), "not known");
    assert_string_equal(text_at(&root, "baseline.memory_delta_mb"), "not asked for");
    assert_string_equal(text_at(&root, "baseline.http_round_trips"), "calls were not recorded");
    assert_string_equal(text_at(&root, "test_command"), "./app x");
}

static void what_is_slow_is_the_first_finding_or_what_the_run_mostly_did(void **state)
{
    (void)state;
    struct value root = run_map_file(&made->arena, &made->run);
    assert_string_equal(text_at(&root, "bottleneck_classification"), "I/O-Network");
    struct finding *finding = made_run_finding(made, "hot_lock", 100);
    finding->category = CATEGORY_LOCK;
    root = run_map_file(&made->arena, &made->run);
    assert_string_equal(text_at(&root, "bottleneck_classification"), "Lock");
    assert_string_equal(text_at(&root, "bottleneck_detail"),
                        "it takes long; mending it saves 100 ms (90.0 to 110) of 980 ms");
}

static void hints_come_from_what_is_confirmed_and_not_with_the_wrong_tool(void **state)
{
    (void)state;
    made_run_finding(made, "hot_lock", 100);
    struct finding *other = finding_add(&made->run.findings, "small_io");
    other->verdict = FINDING_DISMISSED;
    other->reason = "few";
    struct finding *open = finding_add(&made->run.findings, "n_plus_one");
    open->verdict = FINDING_NOT_JUDGED;
    open->reason = "calls were not recorded";
    struct value root = run_profile_result(&made->arena, &made->run);
    assert_int_equal(value_get(&root, "optimization_hints")->items->len, 1);
    assert_int_equal(value_get(&root, "suspicion_stack")->items->len, 2);
    assert_int_equal(value_get(&root, "not_judged")->items->len, 1);
    assert_string_equal(text_at(&root, "entry_point_info.type"), "pipeline"); /* two programs */
    assert_string_equal(text_at(&root, "e2e_test.source"), "user");
    made->tools[0] = (struct wrong_tool){"already_optimized", true, "flat", "less input"};
    made->run.wrong_tools.count = 1;
    made->run.wrong_tools.first = &made->tools[0];
    made->profile.process_count = 2;
    made->run.about.chosen = "its Makefile has a target 'bench'";
    root = run_profile_result(&made->arena, &made->run);
    assert_int_equal(value_get(&root, "optimization_hints")->items->len, 0);
    assert_int_equal(value_get(&root, "wrong_tool_indicators")->items->len, 1);
    assert_string_equal(text_at(&root, "e2e_test.source"), "module");
    assert_string_equal(text_at(&root, "entry_point_info.type"), "function");
}

/* main() of an interpreter is no place of the program that runs in it. */
static void the_entry_point_is_a_line_only_where_it_is_the_users(void **state)
{
    (void)state;
    made_run_function(made, "main");
    struct value root = run_profile_result(&made->arena, &made->run);
    assert_string_equal(text_at(&root, "entry_point_info.location"), "/src/app.c:10");
    assert_string_equal(text_at(&root, "entry_point_info.function"), "main");
    made->images[1].path = STR("/root/.pyenv/versions/3.11.9/bin/python3.11");
    root = run_profile_result(&made->arena, &made->run);
    assert_string_equal(text_at(&root, "entry_point_info.location"), "/home/me/app");
    made->evidence.binary = NULL;
    root = run_profile_result(&made->arena, &made->run);
    assert_string_equal(text_at(&root, "entry_point_info.location"),
                        "in the interpreter (python3.11); which line of Python is not known yet");
}

static void evidence_says_which_figures_are_estimates(void **state)
{
    (void)state;
    struct findings *list = &made->run.findings;
    struct finding *finding = made_run_finding(made, "allocation_churn", 100);
    finding_fact(list, finding, "allocations", "allocations",
                 value_about(value_uint(5000, UNIT_COUNT)), "recording-heap.whyslow", "f1");
    finding_fact(list, finding, "share", "of the wall time", value_real(10, UNIT_PERCENT), NULL,
                 NULL);
    struct value facts = run_facts_list(&made->arena, finding);
    const struct value_item *first = facts.items->first;
    const struct value *estimated = value_get(&first->value, "estimated");
    assert_true(estimated && estimated->truth);
    assert_true(value_number(value_get(&first->value, "value")) == 5000);
    assert_null(value_get(&first->next->value, "estimated"));
    made->evidence.axes[AXIS_HEAP] = (struct axis_state){.sampled = true, .overhead = NAN};
    struct value honesty = run_screen_honesty(&made->arena, &made->run);
    bool said = false;
    for (const struct value_item *line = honesty.items->first; line; line = line->next)
        said |= str_contains(line->value.text, "allocations are sampled");
    assert_true(said);
}

static void the_users_own_program_is_kept_and_run_side_by_side(void **state)
{
    (void)state;
    made->run.about.command = "'./my app' 'a b'";
    struct run_validation validation = run_validate(&made->arena, &made->run);
    assert_string_equal(validation.before, "cp -p -- './my app' './my app.before'");
    assert_string_equal(validation.compare,
                        "whyslow compare --metric wall ''\\''./my app.before'\\'' "
                        "'\\''a b'\\''' ''\\''./my app'\\'' '\\''a b'\\'''");
    made->run.about.command = "./app";
    made->run.about.input = "in.txt";
    validation = run_validate(&made->arena, &made->run);
    assert_string_equal(validation.compare,
                        "whyslow compare --metric wall --input in.txt ./app.before ./app");
}

static void what_cannot_be_kept_is_compared_by_a_stored_result(void **state)
{
    (void)state;
    static const char *const commands[] = {"python3 app.py", "/usr/bin/gzip x", "sh -c 'a | b'"};
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        made->run.about.command = commands[i];
        struct run_validation validation = run_validate(&made->arena, &made->run);
        assert_non_null(strstr(validation.before, "bench --export-json out/RUN/before.json"));
        assert_non_null(strstr(validation.compare, "compare --metric wall out/RUN/before.json"));
    }
    made->run.about.command = "/root/.pyenv/versions/3.11.9/bin/python3.11 app.py";
    assert_non_null(strstr(run_validate(&made->arena, &made->run).before, "bench --export-json"));
    binary.script = "./app.py"; /* its interpreter would be copied */
    made->run.about.command = "./app.py x";
    struct run_validation validation = run_validate(&made->arena, &made->run);
    assert_non_null(strstr(validation.before, "bench --export-json"));
}

static void the_handoff_names_place_gain_formula_and_command(void **state)
{
    (void)state;
    struct finding *finding = made_run_finding(made, "small_io", 412);
    finding->caution = "after a crash the last writes are gone";
    finding_fact(&made->run.findings, finding, "calls", "calls", value_uint(12000, UNIT_COUNT),
                 "recording-io.whyslow", "c1");
    finding_why(&made->run.findings, finding, "recording.whyslow w1", "it writes byte by byte");
    struct capture capture;
    handoff(&capture);
    static const char *const words[] = {
        "One run takes 980 ms",
        "### 1. it takes long\n",
        "- **Where:** slow, /src/app.c:41 (the program's own code)\n",
        "- **Do this:** keep it in app.c:41\n",
        "wall time: saves 412 ms (371 to 453) of 980 ms; 568 ms (527 to 609) afterwards;",
        "at most 1.25x as fast\n",
        "impact 4.0 × confidence 0.50 / effort 1.0 = 2.0 (worth doing",
        "- **Caution:** after a crash",
        "1. it writes byte by byte (recording.whyslow w1)\n",
        "- calls: 12,000 (recording-io.whyslow c1)\n",
        "```sh\nwhyslow compare --metric wall './app.before x' './app x'\n```\n",
        "```sh\ncp -p -- ./app ./app.before\n```\n",
        "--scenario out/RUN/scenario.toml",
        "not measured: heap: not asked for",
    };
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (!strstr(capture.text, words[i]))
            fail_msg("not in the hand-off: %s\n%s", words[i], capture.text);
    capture_end(&capture);
}

/* What cannot be fixed stands in a section of its own, and nowhere else. */
static void the_handoff_states_context_and_environment_apart(void **state)
{
    (void)state;
    struct finding *load = made_run_finding(made, "cpu_starvation", 98);
    load->class = FINDING_ENVIRONMENT;
    load->title = "it waits for a CPU";
    load->advice = "run it elsewhere";
    struct finding *kernel = made_run_finding(made, "kernel_dominated", 196);
    kernel->class = FINDING_CONTEXT;
    kernel->title = "the kernel has it";
    kernel->advice = NULL;
    struct finding *limit = finding_add(&made->run.findings, "cgroup_throttling");
    limit->class = FINDING_ENVIRONMENT;
    limit->verdict = FINDING_DISMISSED;
    limit->reason = "0.1% of the wall time";
    struct capture capture;
    handoff(&capture);
    static const char *const words[] = {
        "No suspicion was confirmed; dismissed: 0, not judged: 0.",
        "## Causes and recommendations\n\nNone was confirmed.\n",
        "## Environment: not the program's, and not ranked\n\n- it waits for a CPU\n",
        "- effect: 98.0 ms (88.2 to 108) of 980 ms (10%) a run are not the program's time: ",
        "without it a run would take about 882 ms\n- to be without it: run it elsewhere\n",
        "- cgroup\\_throttling, dismissed: 0.1% of the wall time\n",
        "## Context: true, but no fix follows from it\n\n- the kernel has it\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (!strstr(capture.text, words[i]))
            fail_msg("not in the hand-off: %s\n%s", words[i], capture.text);
    assert_null(strstr(capture.text, "Worth"));
    assert_null(strstr(capture.text, "### "));
    capture_end(&capture);
    struct value root = run_profile_result(&made->arena, &made->run);
    assert_string_equal(text_at(&root, "bottleneck_classification"), "I/O-Network");
    assert_null(value_get(&root, "optimization_hints")->items->first);
    assert_null(value_get(&root, "suspicion_stack")->items->first);
    assert_int_equal(value_get(&root, "environment")->table->first->cells[0].kind, VALUE_TEXT);
    assert_non_null(value_get(&root, "context")->table->first);
}

static void an_interval_from_0_is_not_worth_doing(void **state)
{
    (void)state;
    made_run_finding(made, "one_function", 412)->recoverable.low_ns = 0;
    struct capture capture;
    handoff(&capture);
    assert_non_null(strstr(capture.text, "(not known: the interval of what it saves begins at 0;"));
    assert_null(strstr(capture.text, "worth doing, from"));
    capture_end(&capture);
}

static void a_place_in_an_interpreter_is_no_line_of_the_user(void **state)
{
    (void)state;
    struct finding *finding = made_run_finding(made, "n_plus_one", 412);
    finding->place = (struct place){.function = STR("method_call"),
                                    .image = STR("/root/.pyenv/versions/3.11.9/bin/python3.11"),
                                    .file = STR("/src/Objects/descrobject.c"),
                                    .line = 330,
                                    .owner = FINDING_OWNER_INTERPRETER};
    struct capture capture;
    handoff(&capture);
    if (!strstr(capture.text, "- **Where:** method\\_call, in the interpreter (python3.11); which "
                              "line of Python is not known yet\n"))
        fail_msg("%s", capture.text);
    assert_null(strstr(capture.text, "descrobject"));
    assert_null(strstr(capture.text, "own code"));
    capture_end(&capture);
    assert_string_equal(run_source(&made->arena, &finding->place), "");
}

static void a_source_is_written_as_people_write_it(void **state)
{
    (void)state;
    static const char *const files[][2] = {
        {"/src/build/../a.c", "/src/a.c:7"},
        {"/a/b/c/../../d.c", "/a/d.c:7"},
        {"../a.c", "../a.c:7"},
        {"./x/../y/../../a.c", "./../a.c:7"},
        {"/../a.c", "/../a.c:7"},
        {"/a/..b/../c.c", "/a/..b/../c.c:7"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        struct place place = {.file = str_from(files[i][0]), .line = 7};
        assert_string_equal(run_source(&made->arena, &place), files[i][1]);
    }
}

static void with_the_wrong_tool_the_handoff_advises_nothing(void **state)
{
    (void)state;
    made_run_finding(made, "small_io", 412);
    made->tools[0] = (struct wrong_tool){"already_optimized", true, "flat", "less input"};
    made->run.wrong_tools.count = 1;
    made->run.wrong_tools.first = &made->tools[0];
    struct capture capture;
    handoff(&capture);
    const char *wrong = strstr(capture.text,
                               "wrong tool here (already\\_optimized: flat), so nothing "
                               "is advised: less input.");
    assert_non_null(wrong);
    assert_null(strstr(capture.text, "First: "));
    assert_non_null(strstr(wrong, "Confirmed beside it: "));
    assert_null(strstr(capture.text, "Do this"));
    assert_null(strstr(capture.text, "keep it in app.c:41"));
    capture_end(&capture);
}

static void a_name_cannot_end_a_block_or_begin_a_heading(void **state)
{
    (void)state;
    made->run.about.command = "./a '```\n# evil'";
    struct finding *finding = made_run_finding(made, "small_io", 412);
    finding->title = "x\n# evil <script>";
    finding->place.function = STR("f`*<b>|");
    struct capture capture;
    handoff(&capture);
    assert_non_null(strstr(capture.text, "````sh\n./a '```\n"));
    assert_null(strstr(capture.text, "<script>"));
    assert_null(strstr(capture.text, "### 1. x\n"));
    assert_non_null(strstr(capture.text, "f\\`\\*\\<b\\>\\|"));
    capture_end(&capture);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_field_of_the_baseline_is_there_or_says_why_not),
        TEST(what_is_slow_is_the_first_finding_or_what_the_run_mostly_did),
        TEST(hints_come_from_what_is_confirmed_and_not_with_the_wrong_tool),
        TEST(the_entry_point_is_a_line_only_where_it_is_the_users),
        TEST(evidence_says_which_figures_are_estimates),
        TEST(the_users_own_program_is_kept_and_run_side_by_side),
        TEST(what_cannot_be_kept_is_compared_by_a_stored_result),
        TEST(the_handoff_names_place_gain_formula_and_command),
        TEST(the_handoff_states_context_and_environment_apart),
        TEST(an_interval_from_0_is_not_worth_doing),
        TEST(a_place_in_an_interpreter_is_no_line_of_the_user),
        TEST(a_source_is_written_as_people_write_it),
        TEST(with_the_wrong_tool_the_handoff_advises_nothing),
        TEST(a_name_cannot_end_a_block_or_begin_a_heading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
