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
    evidence_new(run)->axes[AXIS_CPU].lost = 0.02;
    struct findings findings = {0};
    const struct finding *finding = judged(run, &findings, &specific_f, NULL);
    assert_int_equal(finding->verdict, FINDING_DISMISSED);
    assert_non_null(strstr(finding->reason, "2.0%"));
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

static void what_is_about_trust_claims_no_seconds_that_a_slow_recording_spoils(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    struct evidence *evidence = evidence_new(run);
    evidence->axes[AXIS_CPU].overhead = 0.36;
    evidence->axes[AXIS_CPU].disturbed = true;
    for (int trust = 0; trust < 2; trust++) {
        struct finding finding = {.axes = AXIS_BIT_CPU,
                                  .verdict = FINDING_CONFIRMED,
                                  .trust = trust,
                                  .occurrences = 1000,
                                  .cost_ns = evidence->costs_on_path.ns / 2,
                                  .recoverable.ns = evidence->costs_on_path.ns / 2};
        finding_gate(evidence, evidence->arena, &finding);
        assert_int_equal(finding.verdict, trust ? FINDING_CONFIRMED : FINDING_DISMISSED);
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
        cmocka_unit_test(times_of_an_axis_that_disturbed_rank_nothing_but_its_counts_do),
        cmocka_unit_test(what_is_about_trust_claims_no_seconds_that_a_slow_recording_spoils),
        cmocka_unit_test(what_says_only_where_gives_way_to_what_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
