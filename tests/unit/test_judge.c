/* What happens to findings after their detectors have spoken: merged, gated, given way. */
#include "unit.h"

#include "made_evidence.h"

#include "detect/judge_parts.h"

#include <asm/unistd.h>
#include <errno.h>

#define assert_near(a, b) assert_float_equal(a, b, 1e-3 * ((b) > 1 ? (b) : 1))

/* 400 ms in f, 300 in g, 200 in h, 100 waiting for the disk. */
static struct evidence *evidence_new(struct made_run *run)
{
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 400, "main f");
    run_runs(run, main, 300, "main g");
    run_runs(run, main, 200, "main h");
    run_waits(run, main, 100, WAIT_CLASS_DISK, __NR_fsync, "main h c:fsync");
    return run_end(run, 1000, 900);
}

struct said { /* what a made-up detector says: places, each with a part of their time */
    const char *functions[4];
    double part;
    uint64_t occurrences;
    bool no_covers;
};

static double part_of(void *context, const struct path_costs *costs, const struct path_cost *row)
{
    (void)costs;
    return str_is(row->place.function, context) ? 1 : 0;
}

static int say(const struct evidence *evidence, const struct detector *self, struct findings *ret,
               const struct said *said)
{
    for (size_t i = 0; i < ARRAY_SIZE(said->functions) && said->functions[i]; i++) {
        struct finding *finding = detected(ret, self);
        if (!finding)
            return -ENOMEM;
        char *name = (char *)(uintptr_t)said->functions[i];
        struct estimate cost = path_costs_cover(ret->arena, &evidence->costs_on_path, part_of, name,
                                                finding);
        finding->recoverable = estimate_scale(cost, said->part);
        finding->title = said->functions[i];
        finding->place.function = str_from(said->functions[i]);
        finding->occurrences = said->occurrences;
        if (said->no_covers)
            finding->covers = NULL;
    }
    return 0;
}

#define DETECTOR(name, is_generic, on, ...)                                                        \
    static int name##_judge(const struct evidence *evidence, const struct detector *self,          \
                            struct findings *ret)                                                  \
    {                                                                                              \
        static const struct said said = __VA_ARGS__;                                               \
        return say(evidence, self, ret, &said);                                                    \
    }                                                                                              \
    static const struct detector name = {                                                          \
        .id = #name, .title = #name, .axes = on, .generic = is_generic, .judge = name##_judge}

DETECTOR(several, false, AXIS_BIT_CPU, {{"g", "f", "h"}, 0.5, 10, false});
DETECTOR(twice, false, AXIS_BIT_CPU, {{"f", "f"}, 1, 10, false});
DETECTOR(seldom, false, AXIS_BIT_CPU, {{"f"}, 1, 2, false});
DETECTOR(seldom_each, false, AXIS_BIT_CPU, {{"f", "g"}, 1, 2, false});
DETECTOR(little, false, AXIS_BIT_CPU, {{"h"}, 0.01, 10, false});
DETECTOR(needs_heap, false, AXIS_BIT_CPU | AXIS_BIT_HEAP, {{"f"}, 1, 10, false});
DETECTOR(of_its_axis, false, AXIS_BIT_IO, {{"f"}, 1, 10, true});
DETECTOR(of_the_path, false, AXIS_BIT_IO, {{"f"}, 1, 10, false});
DETECTOR(generic_f, true, AXIS_BIT_CPU, {{"f"}, 1, 10, false});
DETECTOR(generic_g, true, AXIS_BIT_CPU, {{"g"}, 1, 10, false});
DETECTOR(specific_f, false, AXIS_BIT_CPU, {{"f"}, 0.5, 10, false});
DETECTOR(saves_little_of_f, false, AXIS_BIT_CPU, {{"f"}, 0.2, 10, false});

static const struct finding *judged(struct made_run *run, struct findings *ret,
                                    const struct detector *one, const struct detector *two)
{
    const struct detector *list[] = {one, two, NULL};
    assert_int_equal(table_judge(&run->evidence, list, ret), 0);
    assert_true(ret->count > 0);
    return &ret->items[0];
}

static void the_same_trouble_at_several_places_is_one_finding(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    evidence_new(run);
    struct findings findings = {0};
    const struct finding *finding = judged(run, &findings, &several, NULL);
    assert_int_equal(findings.count, 1);
    assert_int_equal(finding->verdict, FINDING_CONFIRMED);
    assert_true(str_is(finding->place.function, "f")); /* the heaviest */
    assert_int_equal(finding->affected_count, 2);
    assert_true(str_is(finding->affected[0].place.function, "g") ||
                str_is(finding->affected[0].place.function, "h"));
    assert_near(run_ms(finding->recoverable), 500);
    assert_near(finding->cost_ns / RUN_MS, 1000);
    assert_int_equal(finding->occurrences, 30);
    assert_true(finding->recoverable.low_ns < finding->recoverable.ns);
    assert_non_null(strstr(finding->title, "2 more places"));
    for (size_t i = 0; i < run->evidence.costs_on_path.count; i++)
        assert_near(finding->covers[i], 1);
    run_free(run);
}

static void time_that_two_places_speak_of_counts_once(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    evidence_new(run);
    struct findings findings = {0};
    const struct finding *finding = judged(run, &findings, &twice, NULL);
    assert_near(run_ms(finding->recoverable), 400);
    assert_near(finding->cost_ns / RUN_MS, 400);
    run_free(run);
}

static void what_is_rare_or_small_is_dismissed_with_the_number(void **state)
{
    (void)state;
    static const struct {
        const struct detector *detector;
        const char *reason;
    } rows[] = {{&seldom, "it happened 2 times"}, {&little, "0.30% of the wall time"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct made_run *run = run_new();
        evidence_new(run);
        struct findings findings = {0};
        const struct finding *finding = judged(run, &findings, rows[i].detector, NULL);
        assert_int_equal(finding->verdict, FINDING_DISMISSED);
        assert_non_null(strstr(finding->reason, rows[i].reason));
        run_free(run);
    }
    /* Together they are often enough. */
    struct made_run *run = run_new();
    evidence_new(run);
    struct findings findings = {0};
    assert_int_equal(judged(run, &findings, &seldom_each, NULL)->verdict, FINDING_CONFIRMED);
    run_free(run);
}

static void without_its_axis_a_suspicion_is_not_judged(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    evidence_new(run);
    struct findings findings = {0};
    const struct finding *finding = judged(run, &findings, &needs_heap, NULL);
    assert_int_equal(finding->verdict, FINDING_NOT_JUDGED);
    assert_non_null(strstr(finding->reason, "heap was not recorded: not asked for"));
    run_free(run);
}

static void an_axis_that_lost_too_much_confirms_nothing(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    evidence_new(run)->axes[AXIS_CPU].uncounted = 0.02;
    struct findings findings = {0};
    const struct finding *finding = judged(run, &findings, &specific_f, NULL);
    assert_int_equal(finding->verdict, FINDING_DISMISSED);
    assert_non_null(strstr(finding->reason, "2.0%"));
    run_free(run);
}

static void what_lost_only_its_stack_is_no_reason_to_dismiss(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    evidence_new(run)->axes[AXIS_CPU].lost = 0.02;
    struct findings findings = {0};
    const struct finding *finding = judged(run, &findings, &specific_f, NULL);
    assert_int_equal(finding->verdict, FINDING_CONFIRMED);
    run_free(run);
}

static void times_of_an_axis_that_disturbed_rank_nothing_but_its_counts_do(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    struct evidence *evidence = evidence_new(run);
    evidence->axes[AXIS_IO].na = NULL;
    evidence->axes[AXIS_IO].overhead = 0.5;
    evidence->axes[AXIS_IO].disturbed = true;
    struct findings findings = {0};
    judged(run, &findings, &of_its_axis, &of_the_path);
    assert_int_equal(findings.items[0].verdict, FINDING_DISMISSED);
    assert_non_null(strstr(findings.items[0].reason, "50% longer"));
    assert_int_equal(findings.items[1].verdict, FINDING_CONFIRMED);
    run_free(run);
}

static void context_claims_no_seconds_that_a_slow_recording_spoils(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    struct evidence *evidence = evidence_new(run);
    evidence->axes[AXIS_CPU].overhead = 0.36;
    evidence->axes[AXIS_CPU].disturbed = true;
    for (int context = 0; context < 2; context++) {
        struct finding finding = {.axes = AXIS_BIT_CPU,
                                  .verdict = FINDING_CONFIRMED,
                                  .class = context ? FINDING_CONTEXT : FINDING_FIX,
                                  .occurrences = 1000,
                                  .cost_ns = evidence->costs_on_path.ns / 2,
                                  .recoverable.ns = evidence->costs_on_path.ns / 2};
        finding_gate(evidence, evidence->arena, &finding);
        assert_int_equal(finding.verdict, context ? FINDING_CONFIRMED : FINDING_DISMISSED);
    }
    run_free(run);
}

static void what_says_only_where_gives_way_to_what_says_why(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    evidence_new(run);
    struct findings findings = {0};
    const struct finding *finding = judged(run, &findings, &generic_f, &specific_f);
    assert_int_equal(finding->verdict, FINDING_DISMISSED);
    assert_non_null(strstr(finding->reason, "100% of this time is explained by specific_f"));
    assert_int_equal(findings.items[1].verdict, FINDING_CONFIRMED);
    findings = (struct findings){0};
    finding = judged(run, &findings, &generic_g, &specific_f); /* another place */
    assert_int_equal(finding->verdict, FINDING_CONFIRMED);
    findings = (struct findings){0};
    finding = judged(run, &findings, &generic_f, &seldom); /* one that is dismissed itself */
    assert_int_equal(finding->verdict, FINDING_CONFIRMED);
    findings = (struct findings){0};
    finding = judged(run, &findings, &generic_f,
                     &saves_little_of_f); /* a lock around a hot function */
    assert_int_equal(finding->verdict, FINDING_CONFIRMED);
    assert_int_equal(findings.items[1].verdict, FINDING_CONFIRMED);
    run_free(run);
}

static void two_sources_that_reject_it_outweigh_one_that_supports_it(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    struct evidence *evidence = evidence_new(run);
    for (int rejects = 0; rejects < ANGLES; rejects++) {
        struct finding finding = {.verdict = FINDING_CONFIRMED,
                                  .occurrences = 1000,
                                  .recoverable.ns = evidence->costs_on_path.ns / 2};
        finding.angles[ANGLE_TRACING].verdict = ANGLE_SUPPORTS;
        if (rejects > 0)
            finding.angles[ANGLE_SAMPLING] = (struct angle_word){ANGLE_REJECTS, "0.9 CPUs"};
        if (rejects > 1)
            finding.angles[ANGLE_COUNTING] = (struct angle_word){ANGLE_REJECTS, "1.0 CPUs"};
        finding_gate(evidence, evidence->arena, &finding);
        assert_int_equal(finding.verdict, rejects < 2 ? FINDING_CONFIRMED : FINDING_DISMISSED);
        if (rejects == 2)
            assert_string_equal(finding.reason,
                                "sampling rejects it: 0.9 CPUs; counting rejects it: 1.0 CPUs");
    }
    run_free(run);
}

static int boast(const struct evidence *evidence, const struct detector *self, struct findings *ret)
{
    struct finding *finding = detected(ret, self);
    if (!finding)
        return -ENOMEM;
    double wall = evidence->costs_on_path.ns;
    finding->recoverable = (struct estimate){2 * wall, 1.5 * wall, 3 * wall};
    finding->cost_ns = 4 * wall;
    finding->occurrences = 1000;
    return 0;
}
static const struct detector boast_fix = {.id = "boast_fix", .judge = boast};
static const struct detector boast_environment = {
    .id = "boast_environment", .class = FINDING_ENVIRONMENT, .judge = boast};

static void bounded(const struct evidence *evidence, const struct findings *findings)
{
    double wall = evidence->costs_on_path.ns * (1 + 1e-9);
    double gap = evidence_gap_ns(evidence) * (1 + 1e-9), taken = 0, saved = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        const struct estimate *gain = &finding->recoverable;
        double most = wall;
        if (finding->class == FINDING_ENVIRONMENT)
            most = fmin(most, gap); /* NaN: not known */
        if (finding->class == FINDING_ENVIRONMENT && finding->verdict == FINDING_CONFIRMED)
            taken += gain->ns;
        if (finding_is_fix(finding))
            saved = fmax(saved, gain->high_ns);
        if (gain->ns > most || gain->high_ns > most || gain->low_ns > gain->ns ||
            finding->cost_ns > wall)
            fail_msg("%s: %.1f ms (%.1f to %.1f) of at most %.1f, costs %.1f of %.1f",
                     finding->detector, gain->ns / RUN_MS, gain->low_ns / RUN_MS,
                     gain->high_ns / RUN_MS, most / RUN_MS, finding->cost_ns / RUN_MS,
                     wall / RUN_MS);
    }
    if (taken > gap)
        fail_msg("the environment took %.1f ms of a gap of %.1f", taken / RUN_MS, gap / RUN_MS);
    if (taken + saved > wall)
        fail_msg("the environment took %.1f ms, and %.1f more are to be saved: of %.1f",
                 taken / RUN_MS, saved / RUN_MS, wall / RUN_MS);
}

/* 900 ms of 1,000 are computed, 100 waited for the disk: the environment took nothing. */
static void nothing_takes_more_than_there_is(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    struct evidence *evidence = evidence_new(run);
    struct findings findings = {0};
    judged(run, &findings, &boast_fix, &boast_environment);
    bounded(evidence, &findings);
    assert_near(run_ms(findings.items[0].recoverable), 1000);
    assert_int_equal(findings.items[0].verdict, FINDING_CONFIRMED);
    assert_near(run_ms(findings.items[1].recoverable) + 1, 1);
    assert_int_equal(findings.items[1].verdict, FINDING_DISMISSED);
    /* Plain runs computed less than the recorded one, and did not get the CPU for the rest. */
    evidence->costs.cpu_ns = 600e6;
    assert_near(evidence_gap_ns(evidence) / RUN_MS, 300);
    findings = (struct findings){0};
    judged(run, &findings, &boast_environment, NULL);
    assert_near(run_ms(findings.items[0].recoverable), 300);
    assert_int_equal(findings.items[0].verdict, FINDING_CONFIRMED);
    run_free(run);
}

/* Of 350 ms it waits for a CPU for 150 that others have; a fix would remove all that it does. */
DETECTOR(whole_path, false, AXIS_BIT_CPU, {{"f"}, 1, 10, false});
static void what_the_environment_took_no_fix_saves(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 150, "main f");
    run_waits(run, main, 50, WAIT_CLASS_DISK, 1, "main f c:write");
    run_queues(run, main, 150); /* after the wait, and so a price of it */
    struct evidence *evidence = run_end(run, 350, 150);
    evidence->command = "./app";
    struct findings findings = {0};
    judged(run, &findings, &whole_path, NULL);
    assert_near(run_ms(findings.items[0].recoverable), 350); /* if nobody took anything */
    findings = (struct findings){0};
    judged(run, &findings, &whole_path, &boast_environment);
    assert_near(evidence->costs_on_path.environment_ns / RUN_MS, 150);
    assert_near(run_ms(findings.items[0].recoverable), 200);
    assert_near(findings.items[0].cost_ns / RUN_MS, 200);
    assert_near(run_ms(findings.items[1].recoverable), 150);
    bounded(evidence, &findings);
    run_free(run);
}

/* One that waits for a CPU as much as it runs, on machines that tell all kinds of things. */
static void nothing_takes_more_than_there_is_whatever_the_machine_says(void **state)
{
    (void)state;
    static const double cpu[] = {20, 100, 200, 350, 400, 1500};
    static const double taken[] = {0, 10, 90, 207, 958, 5000};
    size_t confirmed = 0;
    for (size_t i = 0; i < ARRAY_SIZE(cpu) * ARRAY_SIZE(taken) * 6; i++) {
        struct made_run *run = run_new();
        uint32_t main = run_process(run, 0);
        double amount = taken[i / 6 % ARRAY_SIZE(taken)];
        run->lives[main] = (struct waits_thread){.end_ns = 400 * RUN_MS,
                                                 .running_ns = 200 * RUN_MS};
        run->rows[1].info = (struct wait_info){.kind = WAIT_RUNQ, .thread = main};
        run->rows[1].tally = (struct wait_tally){
            .count = 50, .total_ns = 200 * RUN_MS, .max_ns = 4 * RUN_MS};
        run->rows[1].tally.buckets[wait_bucket(4 * RUN_MS)] = 50;
        run->classes[1] = WAIT_CLASS_RUNQ;
        run->row_ns[1] = 200 * RUN_MS;
        run->evidence.waits.row_count = 2;
        run_runs(run, main, 200, "main burn");
        run_queues(run, main, 200);
        struct evidence *evidence = run_end(run, i % 2 ? 400 : 250,
                                            cpu[i / 6 / ARRAY_SIZE(taken) % ARRAY_SIZE(cpu)]);
        evidence->costs.runs = 10;
        evidence->costs.steal_ns = i % 6 < 4 ? amount * RUN_MS : NAN;
        evidence->costs.throttled_ns = i % 6 > 1 ? amount * RUN_MS : NAN;
        evidence->command = "./app";
        if (i % 6 == 5)
            evidence->axes[AXIS_WAITS].na = "no permission";
        struct findings findings = {0};
        assert_int_equal(detectors_judge(evidence, &findings), 0);
        bounded(evidence, &findings);
        for (size_t k = 0; k < findings.count; k++)
            confirmed += findings.items[k].class == FINDING_ENVIRONMENT &&
                         findings.items[k].verdict == FINDING_CONFIRMED;
        assert_true(evidence_stolen_ns(evidence) <= fmax(0, amount) * RUN_MS);
        run_free(run);
    }
    assert_true(confirmed > 20); /* so that it is about something */
}

static const struct detector context_f = {
    .id = "context_f", .class = FINDING_CONTEXT, .axes = AXIS_BIT_CPU, .judge = specific_f_judge};

static void what_cannot_be_fixed_explains_nothing(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    evidence_new(run);
    struct findings findings = {0};
    const struct finding *finding = judged(run, &findings, &generic_f, &context_f);
    assert_int_equal(finding->verdict, FINDING_CONFIRMED);
    assert_int_equal(findings.items[1].class, FINDING_CONTEXT);
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_trouble_at_several_places_is_one_finding),
        cmocka_unit_test(time_that_two_places_speak_of_counts_once),
        cmocka_unit_test(what_is_rare_or_small_is_dismissed_with_the_number),
        cmocka_unit_test(without_its_axis_a_suspicion_is_not_judged),
        cmocka_unit_test(an_axis_that_lost_too_much_confirms_nothing),
        cmocka_unit_test(what_lost_only_its_stack_is_no_reason_to_dismiss),
        cmocka_unit_test(times_of_an_axis_that_disturbed_rank_nothing_but_its_counts_do),
        cmocka_unit_test(context_claims_no_seconds_that_a_slow_recording_spoils),
        cmocka_unit_test(two_sources_that_reject_it_outweigh_one_that_supports_it),
        cmocka_unit_test(nothing_takes_more_than_there_is),
        cmocka_unit_test(what_the_environment_took_no_fix_saves),
        cmocka_unit_test(nothing_takes_more_than_there_is_whatever_the_machine_says),
        cmocka_unit_test(what_cannot_be_fixed_explains_nothing),
        cmocka_unit_test(what_says_only_where_gives_way_to_what_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
