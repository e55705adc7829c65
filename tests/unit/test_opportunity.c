/* Ranks, scores and what all findings gain together; the tables of docs/run-ranking.md. */
#include "unit.h"

#include "made_evidence.h"

#include "analyze/opportunity.h"

#include <stdio.h>

#define assert_near(a, b) assert_float_equal(a, b, 1e-3 * ((b) > 1 ? (b) : 1))

static struct evidence *evidence_new(struct made_run *run)
{
    uint32_t main = run_process(run, 0);
    run_runs(run, main, 500, "main f");
    run_runs(run, main, 300, "main g");
    run_runs(run, main, 200, "main h");
    return run_end(run, 1000, 1000);
}

static double named(void *context, const struct path_costs *costs, const struct path_cost *row)
{
    (void)costs;
    return str_is(row->place.function, context) ? 1 : 0;
}

static struct finding *add(struct made_run *run, struct findings *findings, const char *function,
                           double part, unsigned supports)
{
    struct finding *finding = finding_add(findings, function);
    if (!finding)
        abort();
    struct estimate cost = path_costs_cover(&run->arena, &run->evidence.costs_on_path, named,
                                            (char *)(uintptr_t)function, finding);
    finding->recoverable = (struct estimate){part * cost.ns, part * cost.ns * 0.95,
                                             part * cost.ns * 1.05};
    finding->place.owner = FINDING_OWNER_USER;
    finding->remedy = REMEDY_BATCH;
    finding->axes = AXIS_BIT_CPU;
    for (unsigned i = 0; i < supports; i++)
        finding->angles[i].verdict = ANGLE_SUPPORTS;
    return finding;
}

static void ranks_follow_what_can_be_saved(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    evidence_new(run);
    struct findings findings = {.arena = &run->arena};
    add(run, &findings, "h", 1, 3);
    add(run, &findings, "f", 1, 1);
    finding_add(&findings, "none")->verdict = FINDING_NOT_JUDGED;
    finding_add(&findings, "no")->verdict = FINDING_DISMISSED;
    add(run, &findings, "g", 0.9, 2);
    assert_int_equal(opportunity_rank(&run->evidence, &findings), 0);
    static const char *const order[] = {"f", "g", "h", "no", "none"};
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        assert_string_equal(findings.items[i].detector, order[i]);
        assert_int_equal(findings.items[i].rank, i < 3 ? i + 1 : 0);
    }
    const struct finding *g = &findings.items[1];
    assert_near(g->impact, 5.4);
    assert_near(g->confidence, 0.75);
    assert_near(g->effort, 2);
    assert_near(g->score, 5.4 * 0.75 / 2);
    assert_near(g->path_share, 0.3);
    assert_near(g->ceiling, 1 / 0.7);
    assert_string_equal(opportunity_formula(&run->arena, g),
                        "impact 5.4 × confidence 0.75 / effort 2.0 = 2.0");
    run_free(run);
}

static void what_is_hardly_believed_counts_by_as_much_as_it_is(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    evidence_new(run);
    struct findings findings = {.arena = &run->arena};
    struct finding *f = add(run, &findings, "f", 1, 1);
    f->angles[ANGLE_COUNTING].verdict = ANGLE_REJECTS; /* 0.25 of 500 ms */
    add(run, &findings, "h", 1, 2);                    /* 200 ms */
    assert_int_equal(opportunity_rank(&run->evidence, &findings), 0);
    assert_string_equal(findings.items[0].detector, "h");
    assert_near(findings.items[1].confidence, 0.25);
    run_free(run);
}

/* The environment took most, context has most; neither is something to do. */
static void what_cannot_be_fixed_is_not_ranked(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    evidence_new(run);
    struct findings findings = {.arena = &run->arena};
    add(run, &findings, "f", 1, 3)->class = FINDING_ENVIRONMENT;
    add(run, &findings, "g", 1, 3)->class = FINDING_CONTEXT;
    add(run, &findings, "h", 1, 1);
    assert_int_equal(opportunity_rank(&run->evidence, &findings), 0);
    static const char *const order[] = {"h", "g", "f"};
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        assert_string_equal(findings.items[i].detector, order[i]);
        assert_int_equal(findings.items[i].rank, i == 0);
        assert_true(i == 0 || findings.items[i].score == 0);
        assert_true(i == 0 || !opportunity_is_worth(&findings.items[i]));
    }
    struct opportunity_sum sum;
    assert_int_equal(opportunity_together(&run->evidence, &findings, &sum), 0);
    assert_int_equal(sum.findings, 1);
    assert_near(sum.recoverable.ns / RUN_MS, 200);
    run_free(run);
}

static void what_may_save_nothing_is_not_worth_it(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    evidence_new(run);
    struct findings findings = {.arena = &run->arena};
    struct finding *f = add(run, &findings, "f", 1, 3);
    assert_int_equal(opportunity_rank(&run->evidence, &findings), 0);
    assert_true(f->score >= OPPORTUNITY_WORTH && opportunity_is_worth(f));
    f->recoverable.low_ns = 0;
    assert_int_equal(opportunity_rank(&run->evidence, &findings), 0);
    assert_true(f->score >= OPPORTUNITY_WORTH && !opportunity_is_worth(f));
    run_free(run);
}

/* How sure it is costs confidence; that nobody knows it does not make it a whole run's. */
static void ends_that_are_not_known_stay_so(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    evidence_new(run);
    struct findings findings = {.arena = &run->arena};
    struct finding *f = add(run, &findings, "f", 1, 3);
    f->recoverable.low_ns = f->recoverable.high_ns = NAN;
    assert_int_equal(opportunity_rank(&run->evidence, &findings), 0);
    assert_true(f->score >= OPPORTUNITY_WORTH && opportunity_is_worth(f));
    struct opportunity_sum sum;
    assert_int_equal(opportunity_together(&run->evidence, &findings, &sum), 0);
    assert_near(sum.recoverable.ns, f->recoverable.ns);
    assert_true(isnan(sum.recoverable.low_ns) && isnan(sum.recoverable.high_ns));
    run_free(run);
}

static void loss_and_width_cost_confidence(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    struct evidence *evidence = evidence_new(run);
    struct findings findings = {.arena = &run->arena};
    struct finding *f = add(run, &findings, "f", 1, 3);
    assert_near(opportunity_confidence(evidence, f), 0.95);
    evidence->axes[AXIS_CPU].lost = 0.01;
    assert_near(opportunity_confidence(evidence, f), 0.95 * 0.9);
    evidence->axes[AXIS_CPU].lost = NAN;
    assert_near(opportunity_confidence(evidence, f), 0.95);
    f->recoverable.low_ns = f->recoverable.ns * 0.6;
    f->recoverable.high_ns = f->recoverable.ns * 1.4;
    assert_near(opportunity_confidence(evidence, f), 0.95 * 0.9);
    f->recoverable.high_ns = NAN;
    assert_near(opportunity_confidence(evidence, f), 0.95 * 0.8);
    run_free(run);
}

static void together_the_same_time_is_saved_once(void **state)
{
    (void)state;
    struct made_run *run = run_new();
    struct evidence *evidence = evidence_new(run);
    struct findings findings = {.arena = &run->arena};
    struct opportunity_sum sum;
    assert_int_equal(opportunity_together(evidence, &findings, &sum), 0);
    assert_near(sum.recoverable.ns, 0);
    assert_near(sum.ceiling, 1);
    add(run, &findings, "f", 0.8, 3);
    add(run, &findings, "f", 0.6, 3); /* the same rows: nothing new */
    add(run, &findings, "g", 1, 3);
    finding_add(&findings, "no")->verdict = FINDING_DISMISSED;
    assert_int_equal(opportunity_together(evidence, &findings, &sum), 0);
    assert_int_equal(sum.findings, 3);
    assert_near(run_ms(sum.recoverable), 700);
    assert_near(sum.cost_ns / RUN_MS, 800);
    assert_near(sum.share, 0.7);
    assert_near(sum.ceiling, 5);
    assert_int_equal(sum.uncovered, 0);
    struct finding *more = add(run, &findings, "h", 1, 3);
    more->covers = NULL;
    more->recoverable.ns *= 4; /* never more than there is */
    assert_int_equal(opportunity_together(evidence, &findings, &sum), 0);
    assert_near(run_ms(sum.recoverable), 1000);
    assert_int_equal(sum.uncovered, 1);
    run_free(run);
}

/* The row of a table of the document that begins with a word, as numbers. */
static size_t row_read(const char *first, double *ret, size_t max)
{
    FILE *file = fopen(DOCS "/run-ranking.md", "re");
    assert_non_null(file);
    char line[1024], begin[64];
    size_t count = 0;
    snprintf(begin, sizeof(begin), "| %s |", first);
    while (fgets(line, sizeof(line), file)) {
        struct str rest = str_from(line);
        if (!str_starts(rest, begin))
            continue;
        rest = (struct str){line + strlen(begin), strcspn(line, "\n") - strlen(begin)};
        while (rest.len > 0 && count < max)
            if (str_to_f64(str_trim(str_cut(&rest, '|')), &ret[count]) == 0)
                count++;
        break;
    }
    fclose(file);
    return count;
}

static void the_tables_of_the_document_are_those_of_the_program(void **state)
{
    (void)state;
    double row[8] = {0};
    for (int remedy = 0; remedy < REMEDIES; remedy++) {
        const char *name = finding_remedy_name((enum finding_remedy)remedy);
        assert_int_equal(row_read(name, row, ARRAY_SIZE(row)), FINDING_OWNERS);
        for (int owner = 0; owner < FINDING_OWNERS; owner++)
            assert_near(row[owner],
                        opportunity_effort((enum finding_remedy)remedy, (enum finding_owner)owner));
    }
    assert_int_equal(row_read("confidence", row, ARRAY_SIZE(row)), ANGLES + 1);
    for (int i = 0; i <= ANGLES; i++)
        assert_near(row[i], opportunity_by_support[i]);
    assert_int_equal(row_read("factor", row, ARRAY_SIZE(row)), OPPORTUNITY_WIDTHS);
    for (int i = 0; i < OPPORTUNITY_WIDTHS; i++)
        assert_near(row[i], opportunity_by_width[i].factor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_follow_what_can_be_saved),
        cmocka_unit_test(what_is_hardly_believed_counts_by_as_much_as_it_is),
        cmocka_unit_test(what_cannot_be_fixed_is_not_ranked),
        cmocka_unit_test(what_may_save_nothing_is_not_worth_it),
        cmocka_unit_test(ends_that_are_not_known_stay_so),
        cmocka_unit_test(loss_and_width_cost_confidence),
        cmocka_unit_test(together_the_same_time_is_saved_once),
        cmocka_unit_test(the_tables_of_the_document_are_those_of_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
