/* Promises of the screen of a run: numbers with their intervals, a bar that adds up, the same for
 * people and machines, and nothing a name could break. */
#include "unit.h"

#include "capture.h"
#include "made_run.h"
#include "present/renderers.h"
#include "present/run_screen.h"
#include "present/run_tables.h"

#include <jansson.h>

static struct made_run *made;

static int begin(void **state)
{
    (void)state;
    made = made_run_new(980);
    made_run_cost(made, 1, 0, WAIT_CLASS_RUNNING, "", 490);
    made_run_cost(made, 1, 0, WAIT_CLASS_DISK, "fsync", 391);
    made_run_cost(made, 1, 0, WAIT_CLASS_LOCK, "futex", 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    made_run_end(made);
    return 0;
}

static void draw(const char *renderer, struct render_opts opts, struct capture *capture)
{
    struct value root = value_map(&made->arena);
    run_screen_put(&made->arena, &made->run, &root);
    value_put(&root, "next", "Next", run_screen_next(&made->arena, &made->run));
    struct report report = {.schema = "whyslow.run/1", .root = &root};
    struct why why = {0};
    capture_begin(capture);
    assert_int_equal(render(renderer_find(renderer), &report, &opts, capture->out, &why), 0);
    capture_text(capture);
}

static void a_time_says_its_unit_once_unless_it_changes(void **state)
{
    (void)state;
    struct estimate close = {412e6, 380e6, 450e6}, wide = {1.59e9, 569e6, 2.62e9};
    struct estimate bare = {412e6, NAN, NAN}, none = {NAN, NAN, NAN};
    assert_string_equal(run_estimate_text(&made->arena, close), "412 ms (380 to 450)");
    assert_string_equal(run_estimate_text(&made->arena, wide), "1.59 s (569 ms to 2.62 s)");
    struct estimate from_none = {412e6, 0, 450e6}, far = {412e6, 0, 1.5e9};
    assert_string_equal(run_estimate_text(&made->arena, from_none), "412 ms (0 to 450)");
    assert_string_equal(run_estimate_text(&made->arena, far), "412 ms (0 to 1.50 s)");
    assert_string_equal(run_estimate_text(&made->arena, bare), "412 ms");
    assert_string_equal(run_estimate_text(&made->arena, none), "n/a: not known");
    struct finding *finding = made_run_finding(made, "small_io", 412);
    finding->recoverable = close;
    assert_string_equal(run_gain_text(&made->arena, &made->run, finding),
                        "saves 412 ms (380 to 450) of 980 ms");
    struct estimate after = run_after(&made->run, finding);
    assert_string_equal(run_estimate_text(&made->arena, after), "568 ms (530 to 600)");
}

/* 490 running, 391 disk, 1 lock of 980: the other 98 were seen by nobody. */
static void the_bar_adds_up_and_what_nobody_saw_is_in_it(void **state)
{
    (void)state;
    struct capture capture;
    draw("text", (struct render_opts){.width = 120}, &capture);
    const char *bar = strstr(capture.text, "  RRR");
    assert_non_null(bar);
    size_t len = strcspn(bar + 2, "\n");
    assert_int_equal(len, 76);
    assert_int_equal(strspn(bar + 2, "R"), 37); /* half, but for the one of the lock */
    assert_int_equal(bar[2 + 37], 'L');         /* a thousandth, and yet one column */
    assert_int_equal(strspn(bar + 2 + 38, "D"), 30);
    assert_int_equal(strspn(bar + 2 + 68, "."), 8);
    assert_non_null(strstr(capture.text, "R running 490 ms 50%"));
    assert_non_null(strstr(capture.text, ". unseen 98.0 ms 10%"));
    assert_non_null(
        strstr(capture.text, "coverage: 90.0% of the wall time was seen (98.0 ms unseen)"));
    capture_end(&capture);
    struct value time = run_screen_time(&made->arena, &made->run);
    double sum = 0;
    for (const struct table_row *row = time.table->first; row; row = row->next)
        sum += row->cells[2].real;
    assert_true(fabs(sum - 980) < 1e-6);
}

static void colours_are_for_terminals_and_the_bar_for_text(void **state)
{
    (void)state;
    struct capture capture;
    draw("text", (struct render_opts){.color = true}, &capture);
    assert_non_null(strstr(capture.text, "\033[34mDDD"));
    capture_end(&capture);
    draw("text", (struct render_opts){0}, &capture);
    assert_null(strchr(capture.text, '\033'));
    capture_end(&capture);
    draw("markdown", (struct render_opts){0}, &capture);
    assert_null(strstr(capture.text, "RRR"));
    assert_non_null(strstr(capture.text, "D disk 391 ms 40%"));
    capture_end(&capture);
}

static void a_legend_goes_on_below_where_it_does_not_fit(void **state)
{
    (void)state;
    struct capture capture;
    draw("text", (struct render_opts){.width = 40}, &capture);
    assert_non_null(strstr(capture.text, "  R running 490 ms 50%\n  L lock 1.00 ms 0.1%\n"));
    capture_end(&capture);
}

static void without_waits_their_classes_are_not_zero_but_unknown(void **state)
{
    (void)state;
    made->evidence.costs_on_path.na = "waits were not recorded";
    struct value time = run_screen_time(&made->arena, &made->run);
    const struct table_row *row = time.table->first;
    assert_int_equal(row->cells[2].kind, VALUE_REAL);
    for (row = row->next; row && row->next; row = row->next)
        assert_int_equal(row->cells[2].kind, VALUE_NA);
    assert_int_equal(time.table->last->cells[2].kind, VALUE_REAL); /* unseen */
}

/* The keys that the corpus and other programs read. */
static void suspicions_keep_their_keys_for_machines(void **state)
{
    (void)state;
    struct finding *finding = made_run_finding(made, "small_io", 412);
    finding_fact(&made->run.findings, finding, "calls", "calls", value_uint(7, UNIT_COUNT),
                 "recording-io.whyslow", "c1");
    finding_fact(&made->run.findings, finding, "calls", "again", value_uint(8, UNIT_COUNT), NULL,
                 NULL);
    finding_why(&made->run.findings, finding, "recording.whyslow", "because %d", 1);
    struct finding *other = finding_add(&made->run.findings, "hot_lock");
    other->verdict = FINDING_DISMISSED;
    other->reason = "0 waits; from 100 on it counts";
    struct capture capture;
    draw("json", (struct render_opts){0}, &capture);
    json_t *json = json_loads(capture.text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    json_t *first = json_array_get(json_object_get(json, "suspicions"), 0);
    json_t *second = json_array_get(json_object_get(json, "suspicions"), 1);
    assert_string_equal(json_string_value(json_object_get(first, "detector")), "small_io");
    assert_string_equal(json_string_value(json_object_get(first, "verdict")), "confirmed");
    assert_true(json_real_value(json_object_get(first, "recoverable_ms")) == 412 ||
                json_integer_value(json_object_get(first, "recoverable_ms")) == 412);
    assert_int_equal(json_integer_value(json_object_get(first, "rank")), 1);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(first, "facts"), "calls")),
                     7);
    assert_int_equal(json_array_size(json_object_get(first, "evidence")), 2);
    assert_string_equal(json_string_value(json_object_get(first, "location")), "slow (app.c:41)");
    assert_string_equal(json_string_value(json_object_get(second, "reason")), other->reason);
    assert_string_equal(json_string_value(json_object_get(second, "recoverable_ms")),
                        "n/a: not known");
    assert_null(json_object_get(json, "confirmed")); /* for people */
    json_decref(json);
    capture_end(&capture);
}

static void confirmed_ones_have_their_chain_and_numbers_of_the_rest(void **state)
{
    (void)state;
    struct finding *finding = made_run_finding(made, "small_io", 412);
    finding_why(&made->run.findings, finding, NULL, "what the title says");
    finding_why(&made->run.findings, finding, NULL, "64 bytes a call");
    finding_why(&made->run.findings, finding, NULL, "the buffer is off");
    struct finding *other = finding_add(&made->run.findings, "hot_lock");
    other->verdict = FINDING_NOT_JUDGED;
    other->reason = "waits were not recorded";
    struct capture capture;
    draw("text", (struct render_opts){.width = 120}, &capture);
    assert_non_null(strstr(capture.text, "Suspicions: 1 confirmed, 0 dismissed, 1 not judged"));
    assert_non_null(strstr(capture.text, "1  it takes long; mending saves 412 ms (371 to 453)"));
    assert_non_null(strstr(capture.text, "why: 64 bytes a call → the buffer is off\n"));
    assert_non_null(strstr(capture.text, "4.0 × 0.50 / 1.0 = 2.0"));
    assert_non_null(strstr(capture.text, "1.25x"));
    assert_non_null(strstr(capture.text, "568 ms (527 to 609)"));
    capture_end(&capture);
}

/* Both speak of the 391 ms on the disk: these are saved once. */
static void time_that_two_findings_speak_of_is_saved_once(void **state)
{
    (void)state;
    made_run_finding(made, "small_io", 391);
    assert_null(run_together_text(&made->arena, &made->run));
    made_run_finding(made, "fsync_per_message", 391);
    static float covers[3] = {0, 1, 0};
    for (size_t i = 0; i < 2; i++)
        made->run.findings.items[i].covers = covers;
    assert_non_null(
        strstr(run_together_text(&made->arena, &made->run), "all 2 confirmed: saves 391 ms"));
    struct value sum = run_together(&made->arena, &made->run);
    assert_true(fabs(value_number(value_get(&sum, "recoverable_ms")) - 391) < 1e-6);
    assert_true(fabs(value_number(value_get(&sum, "wall_after_ms")) - (980 - 391)) < 1e-6);
    struct wrong_tool wrong = {"infrastructure_bound", true, "the disk"};
    made->run.wrong_tools.first = &wrong;
    assert_null(run_together_text(&made->arena, &made->run));
}

static void a_long_chain_shows_where_it_begins_and_ends(void **state)
{
    (void)state;
    struct finding *finding = made_run_finding(made, "small_io", 412);
    for (int i = 0; i < FINDING_WHYS_MAX; i++)
        finding_why(&made->run.findings, finding, NULL, "level %d %0*d", i, 60, 0);
    const char *line = run_why_line(&made->arena, finding);
    assert_true(str_starts(str_from(line), "level 1 0"));
    assert_non_null(strstr(line, " → … → level 4 0"));
    assert_null(strstr(line, "level 2"));
    finding->why_count = 3;
    line = run_why_line(&made->arena, finding);
    assert_non_null(strstr(line, "0 → level 2 0"));
}

static void where_changing_code_is_the_wrong_tool_nothing_is_advised(void **state)
{
    (void)state;
    made_run_finding(made, "small_io", 412);
    made->tools[0] = (struct wrong_tool){"infrastructure_bound", true, "a limit takes 95%"};
    made->run.wrong_tools.count = 1;
    made->run.wrong_tools.first = &made->tools[0];
    struct capture capture;
    draw("text", (struct render_opts){.width = 120}, &capture);
    assert_non_null(strstr(capture.text, "infrastructure_bound: a limit takes 95%"));
    assert_null(strstr(capture.text, "What to do first"));
    capture_end(&capture);
    draw("json", (struct render_opts){0}, &capture);
    assert_null(strstr(capture.text, "keep it in app.c:41"));
    assert_non_null(strstr(capture.text, "\"n/a: withheld: infrastructure_bound\""));
    capture_end(&capture);
}

/* A detector knows the name of the file, not the folder it will be in. */
static void the_next_command_can_be_typed_from_here(void **state)
{
    (void)state;
    made->evidence.axes[AXIS_IO] = (struct axis_state){.artifact = "recording-io.whyslow",
                                                       .path = "my out/RUN/recording-io.whyslow"};
    struct finding *finding = made_run_finding(made, "small_io", 412);
    finding->measure_next = "whyslow io --files whyslow-out/latest/recording-io.whyslow";
    assert_string_equal(run_next_look(&made->arena, &made->run, finding),
                        "whyslow io --files 'my out/RUN/recording-io.whyslow'");
    finding->measure_next = "whyslow io my out/RUN/recording-io.whyslow --files";
    assert_string_equal(run_next_look(&made->arena, &made->run, finding),
                        "whyslow io 'my out/RUN/recording-io.whyslow' --files");
    finding->measure_next = NULL;
    assert_string_equal(run_next_look(&made->arena, &made->run, finding), "");
    finding->axes |= AXIS_BIT_IO;
    assert_string_equal(run_next_look(&made->arena, &made->run, finding),
                        "whyslow io 'my out/RUN/recording-io.whyslow'");
}

static void names_of_a_target_cannot_break_the_screen(void **state)
{
    (void)state;
    struct finding *finding = made_run_finding(made, "small_io", 412);
    finding->title = "evil \033[2J | <b> `x`\n# y";
    made->hotspots[0] = (struct run_hotspot){.rank = 1,
                                             .location = "a|b\033[2J",
                                             .metric = "self CPU",
                                             .value = {1e6, 1e6, 1e6},
                                             .category = "CPU",
                                             .artifact = "recording.whyslow",
                                             .id = "f1"};
    made->run.hotspots.count = 1;
    struct capture capture;
    draw("text", (struct render_opts){.width = 120}, &capture);
    assert_null(strchr(capture.text, '\033'));
    assert_null(strstr(capture.text, "\n# y"));
    capture_end(&capture);
    draw("markdown", (struct render_opts){0}, &capture);
    assert_null(strstr(capture.text, "\n# y"));
    assert_non_null(strstr(capture.text, "a\\|b"));
    assert_null(strstr(capture.text, "<b>"));
    capture_end(&capture);
}

static void honesty_names_what_is_missing_first(void **state)
{
    (void)state;
    static const char *const missing[] = {"I/O: not recorded: the budget is spent", NULL};
    made->run.about.missing = missing;
    made->evidence.axes[AXIS_IO].na = "the budget is spent";
    made->evidence.axes[AXIS_CPU] = (struct axis_state){
        .artifact = "recording.whyslow", .overhead = 0.31, .disturbed = true};
    made->evidence.axes[AXIS_WAITS] = made->evidence.axes[AXIS_CPU];
    made->evidence.cpu_honesty.samples = (struct honesty_figure){1000, true};
    made->evidence.cpu_honesty.lost = (struct honesty_figure){3, true};
    made->evidence.cpu_honesty.truncated = (struct honesty_figure){20, true};
    struct capture capture;
    draw("text", (struct render_opts){0}, &capture);
    assert_non_null(
        strstr(capture.text, "  not finished: I/O: not recorded: the budget is spent\n"));
    assert_null(strstr(capture.text, "not measured: io")); /* said already */
    assert_non_null(strstr(capture.text, "  not measured: heap: not asked for\n"));
    assert_non_null(
        strstr(capture.text, "samples: 1,000 (3 lost), 2.0% of their stacks cut short"));
    assert_non_null(
        strstr(capture.text, "cpu and waits +31.0% (above 20%: its times rank nothing)"));
    capture_end(&capture);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_time_says_its_unit_once_unless_it_changes),
        TEST(the_bar_adds_up_and_what_nobody_saw_is_in_it),
        TEST(colours_are_for_terminals_and_the_bar_for_text),
        TEST(a_legend_goes_on_below_where_it_does_not_fit),
        TEST(without_waits_their_classes_are_not_zero_but_unknown),
        TEST(suspicions_keep_their_keys_for_machines),
        TEST(confirmed_ones_have_their_chain_and_numbers_of_the_rest),
        TEST(time_that_two_findings_speak_of_is_saved_once),
        TEST(a_long_chain_shows_where_it_begins_and_ends),
        TEST(where_changing_code_is_the_wrong_tool_nothing_is_advised),
        TEST(the_next_command_can_be_typed_from_here),
        TEST(names_of_a_target_cannot_break_the_screen),
        TEST(honesty_names_what_is_missing_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
