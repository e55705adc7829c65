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

/* One source: the screen's words, its JSON and the hand-off's are of the same finding. */
static void the_environment_is_stated_apart_and_never_ranked(void **state)
{
    (void)state;
    struct finding *load = made_run_finding(made, "cpu_starvation", 98);
    load->class = FINDING_ENVIRONMENT;
    load->rank = 0;
    load->title = "it waits for a CPU";
    load->advice = "run it elsewhere";
    struct finding *names = made_run_finding(made, "unsymbolised_build", 0);
    names->class = FINDING_CONTEXT;
    names->rank = 0;
    names->title = "functions without a name";
    names->cost_ns = 490e6;
    struct capture capture;
    draw("text", (struct render_opts){.width = 200}, &capture);
    static const char *const words[] = {
        "Environment (not the program's: it is not ranked)\n  it waits for a CPU\n",
        "  effect: 98.0 ms (88.2 to 108) of 980 ms (10%) a run are not the program's time",
        "  to be without it: run it elsewhere\n",
        "Context (true, but no fix follows from it)\n  functions without a name\n",
        "Suspicions: 0 confirmed, 0 dismissed, 0 not judged",
    };
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (!strstr(capture.text, words[i]))
            fail_msg("not on the screen: %s\n%s", words[i], capture.text);
    assert_null(strstr(capture.text, "What to do first"));
    assert_null(strstr(capture.text, "worth it"));
    assert_null(strstr(capture.text, "saves"));
    capture_end(&capture);
    draw("json", (struct render_opts){0}, &capture);
    json_t *json = json_loads(capture.text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    assert_int_equal(json_array_size(json_object_get(json, "suspicions")), 0);
    assert_int_equal(json_array_size(json_object_get(json, "opportunities")), 0);
    json_t *row = json_array_get(json_object_get(json, "environment"), 0);
    assert_string_equal(json_string_value(json_object_get(row, "detector")), "cpu_starvation");
    assert_string_equal(json_string_value(json_object_get(row, "verdict")), "confirmed");
    assert_true(json_number_value(json_object_get(row, "ms")) == 98);
    assert_true(fabs(json_number_value(json_object_get(row, "pct")) - 10) < 1e-9);
    row = json_array_get(json_object_get(json, "context"), 0);
    assert_true(json_number_value(json_object_get(row, "ms")) == 490);
    json_decref(json);
    capture_end(&capture);
}

/* Who waits for the network sees for what, and where it is asked, without another command. */
static void a_hypothesis_says_who_supports_it(void **state)
{
    (void)state;
    made->hypotheses[0] = (struct hypothesis){.statement = "the kernel works for it",
                                              .verdict = LEDGER_SUPPORTED,
                                              .finding = "kernel_dominated: confirmed",
                                              .share = 0.17};
    made->hypotheses[1] = (struct hypothesis){.statement = "waiting for locks",
                                              .verdict = LEDGER_DISPUTED,
                                              .finding = "hot_lock: confirmed",
                                              .share = 0.2};
    made->hypotheses[1].angles[ANGLE_TRACING].verdict = ANGLE_SUPPORTS;
    made->hypotheses[1].angles[ANGLE_COUNTING].verdict = ANGLE_REJECTS;
    made->run.ledger.count = 2;
    struct value brief = run_ledger_brief(&made->arena, &made->run);
    assert_true(str_is(value_get(&brief, "supported")->text,
                       "the kernel works for it (17%; by kernel_dominated)"));
    assert_true(str_is(value_get(&brief, "disputed")->text,
                       "waiting for locks (20%; tracing supports, counting rejects)"));
    /* The replay knows what the lock costs; on the path nobody waits for it. */
    made->hypotheses[1].angles[ANGLE_TRACING].verdict = ANGLE_REJECTS;
    made->hypotheses[1].angles[ANGLE_COUNTING].verdict = ANGLE_SILENT;
    made->hypotheses[1].share = 0;
    brief = run_ledger_brief(&made->arena, &made->run);
    assert_true(str_is(value_get(&brief, "disputed")->text,
                       "waiting for locks (hot_lock is confirmed, tracing rejects)"));
}

static void requests_are_named_where_the_network_has_the_time(void **state)
{
    (void)state;
    static struct str texts[] = {STR(""), STR("SELECT name FROM users WHERE id = ?"),
                                 STR("10.0.0.5:5432"), STR("GET /served")};
    static struct io_request_group groups[2];
    groups[0] = (struct io_request_group){.protocol = REQUEST_POSTGRESQL,
                                          .text = 1,
                                          .peer = 2,
                                          .tally = {.count = 412, .total_ns = 600000000}};
    groups[1] = (struct io_request_group){.role = REQUEST_SERVER, .text = 3, .tally = {.count = 9}};
    struct evidence *evidence = &made->evidence;
    evidence->axes[AXIS_IO] = (struct axis_state){.artifact = "recording-io.whyslow", .scale = 0.5};
    evidence->io.texts = texts;
    evidence->io.text_count = ARRAY_SIZE(texts);
    evidence->io.profile = made->profile;
    evidence->requests.groups = groups;
    evidence->requests.count = ARRAY_SIZE(groups);
    uint32_t function = made_run_function(made, "load_user");
    evidence->io.profile = made->profile;
    groups[0].stack = made_run_stack(made, 0, function);
    evidence->io.profile = made->profile;
    struct capture capture;
    draw("text", (struct render_opts){.width = 140}, &capture);
    assert_null(strstr(capture.text, "Requests")); /* hardly waits for the network */
    capture_end(&capture);
    made_run_cost(made, 1, 0, WAIT_CLASS_NET, "recvfrom", 98);
    draw("text", (struct render_opts){.width = 140}, &capture);
    assert_non_null(
        strstr(capture.text, "Requests (the network's replies take 10% of the wall time)\n"));
    const char *row = strstr(capture.text, "\n  SELECT name FROM users WHERE id = ?");
    assert_non_null(row);
    assert_true(row < strstr(capture.text, "Hotspots")); /* on the first screen */
    row = arena_dup_len(&made->arena, row + 1, strcspn(row + 1, "\n"));
    assert_non_null(
        strstr(row, "412  300 ms  728 us  postgresql  10.0.0.5:5432  load_user (app.c:"));
    assert_null(strstr(capture.text, "GET /served"));
    capture_end(&capture);
    /* Where nobody listened, the same place says why. */
    evidence->axes[AXIS_IO] = (struct axis_state){.na = "the budget left no time for it"};
    draw("text", (struct render_opts){.width = 140}, &capture);
    row = strstr(capture.text, "Requests (the network's replies take 10% of the wall time)\n"
                               "  n/a: I/O was not recorded: the budget left no time for it\n");
    assert_true(row && row < strstr(capture.text, "Hotspots"));
    capture_end(&capture);
}

static void an_interval_from_0_is_not_worth_it(void **state)
{
    (void)state;
    struct finding *finding = made_run_finding(made, "one_function", 412);
    finding->recoverable.low_ns = 0;
    struct capture capture;
    draw("json", (struct render_opts){0}, &capture);
    assert_non_null(strstr(capture.text, "\"worth_doing\": false"));
    capture_end(&capture);
    finding->recoverable.low_ns = 1e6;
    draw("json", (struct render_opts){0}, &capture);
    assert_non_null(strstr(capture.text, "\"worth_doing\": true"));
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
    struct wrong_tool wrong = {"infrastructure_bound", true, "the disk", "another"};
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
    made->tools[0] = (struct wrong_tool){"infrastructure_bound", true, "a limit takes 95%",
                                         "raise it"};
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

static void calls_that_lost_their_stack_are_a_percentage_before_anything_was_seen(void **state)
{
    (void)state;
    made->evidence.axes[AXIS_CPU] = made->evidence.axes[AXIS_IO] = (struct axis_state){
        .artifact = "recording-io.whyslow", .overhead = 0};
    made->evidence.cpu_honesty.samples = (struct honesty_figure){1000, true};
    made->evidence.cpu_honesty.lost = (struct honesty_figure){3, true};
    made->evidence.io_honesty.calls = (struct honesty_figure){286301, true};
    made->evidence.io_honesty.lost = (struct honesty_figure){0, true};
    struct capture capture;
    draw("text", (struct render_opts){.width = 200}, &capture);
    assert_non_null(strstr(capture.text, "seen: samples: 1,000 (3 lost), calls: 286,301 (0 lost)"));
    capture_end(&capture);
    made->evidence.io_honesty.unattributed = (struct honesty_figure){157465, true};
    draw("text", (struct render_opts){.width = 200}, &capture);
    assert_non_null(strstr(capture.text, "seen: 55.0% of calls lost their stack or object "
                                         "(157,465), samples: 1,000 (3 lost), calls: 286,301 (0 "
                                         "not counted)"));
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
        TEST(the_environment_is_stated_apart_and_never_ranked),
        TEST(a_hypothesis_says_who_supports_it),
        TEST(requests_are_named_where_the_network_has_the_time),
        TEST(an_interval_from_0_is_not_worth_it),
        TEST(time_that_two_findings_speak_of_is_saved_once),
        TEST(a_long_chain_shows_where_it_begins_and_ends),
        TEST(where_changing_code_is_the_wrong_tool_nothing_is_advised),
        TEST(the_next_command_can_be_typed_from_here),
        TEST(names_of_a_target_cannot_break_the_screen),
        TEST(honesty_names_what_is_missing_first),
        TEST(calls_that_lost_their_stack_are_a_percentage_before_anything_was_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
