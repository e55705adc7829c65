/* Promises of store/span_lines.h. */
#include "unit.h"

#include "store/span_lines.h"

#include <math.h>
#include <stdio.h>

static struct arena arena;

static struct spans read_lines(const char *text)
{
    struct spans spans = {0};
    assert_int_equal(span_lines_read(&arena, str_from(text), &spans), 0);
    return spans;
}

static void both_spellings_of_a_field_are_read(void **state)
{
    (void)state;
    struct spans spans = read_lines(
        "{\"event\":\"perf.profile.run_start\",\"scenario\":\"s\"}\n"
        "{\"event\":\"perf.profile.span_summary\",\"span\":\"a\",\"cumulative_us\":10,\"count\":2,"
        "\"p50_us\":4,\"p95_us\":6,\"category\":\"CPU\",\"evidence\":\"e1\"}\r\n"
        "  {\"type\":\"perf.profile.span_summary\",\"data\":{\"span_name\":\"b\","
        "\"cumulative_us\":\"30.5\",\"p50\":7,\"p95\":9}}\n"
        "{\"name\":\"perf.profile.span_summary\",\"span\":\"c\",\"p50\":1}");
    assert_int_equal(spans.lines, 4);
    assert_int_equal(spans.odd, 0);
    assert_int_equal(spans.count, 3);
    assert_true(str_is(spans.scenario, "s"));
    /* The most time first. */
    assert_true(str_is(spans.items[0].name, "b"));
    assert_true(spans.items[0].cumulative_us == 30.5 && spans.items[0].p50_us == 7 &&
                spans.items[0].p95_us == 9);
    assert_true(str_is(spans.items[1].name, "a"));
    assert_int_equal(spans.items[1].count, 2);
    assert_true(str_is(spans.items[1].category, "CPU") && str_is(spans.items[1].evidence, "e1"));
    assert_true(isnan(spans.items[2].cumulative_us) && spans.items[2].p50_us == 1);
}

static void what_makes_no_sense_is_counted_and_the_rest_passed_over(void **state)
{
    (void)state;
    struct spans spans = read_lines(
        "plain text about perf.profile.\n"
        "{\"event\":\"other\",\"text\":\"perf.profile. is only mentioned\"}\n"
        "{\"event\":\"perf.profile.span_summary\",\"span\":\"no time\"}\n"
        "{\"event\":\"perf.profile.span_summary\",\"span\":\"x\",\"cumulative_us\":-1}\n"
        "{\"event\":\"perf.profile.unheard_of\"}\n"
        "{\"event\":\"perf.profile.span_summary\", cut\n"
        "{\"event\":\"perf.profile.hypothesis_evaluated\",\"name\":\"n\",\"verdict\":\"maybe\"}\n"
        "{}\n");
    assert_int_equal(spans.count, 0);
    assert_int_equal(spans.lines, 6);
    assert_int_equal(spans.odd, 5);
}

static void a_hypothesis_has_a_name_of_its_own(void **state)
{
    (void)state;
    struct spans spans = read_lines(
        "{\"event\":\"perf.profile.hypothesis_evaluated\",\"name\":\"lock\",\"verdict\":"
        "\"rejects\","
        "\"evidence\":\"none\"}\n"
        "{\"event\":\"perf.profile.hypothesis_evaluated\",\"name\":\"io\","
        "\"verdict\":\"supports\"}\n");
    assert_int_equal(spans.hypothesis_count, 2);
    assert_true(str_is(spans.hypotheses[0].name, "lock") && !spans.hypotheses[0].supports);
    assert_true(str_is(spans.hypotheses[0].evidence, "none"));
    assert_true(spans.hypotheses[1].supports && spans.hypotheses[1].evidence.len == 0);
}

static void of_several_runs_the_last_counts_and_one_name_is_one_span(void **state)
{
    (void)state;
    const char *span = "{\"event\":\"perf.profile.span_summary\",\"span\":\"a\","
                       "\"cumulative_us\":5,\"count\":1,\"p95_us\":5}\n";
    const char *start = "{\"event\":\"perf.profile.run_start\",\"scenario\":\"s\"}\n";
    struct spans spans = read_lines(
        arena_printf(&arena, "%s%s%s%s%s%s", start, span, span, start, span, span));
    assert_int_equal(spans.count, 1);
    assert_int_equal(spans.items[0].count, 2);
    assert_true(spans.items[0].cumulative_us == 10 && spans.items[0].p95_us == 5);
}

static void a_line_without_end_and_too_many_names_are_bounded(void **state)
{
    (void)state;
    size_t len = 2 * SPAN_LINE_BYTES_MAX;
    char *line = arena_alloc(&arena, len + 1);
    memset(line, 'x', len);
    line[snprintf(line, len, "%s", "{\"event\":\"perf.profile.")] = 'x';
    struct spans spans = read_lines(line);
    assert_int_equal(spans.odd, 1);
    char *many = arena_alloc(&arena, (SPANS_MAX + 10) * 96), *to = many;
    for (int i = 0; i < SPANS_MAX + 10; i++)
        to += sprintf(to,
                      "{\"event\":\"perf.profile.span_summary\",\"span\":\"%d\","
                      "\"cumulative_us\":1}\n",
                      i);
    spans = read_lines(many);
    assert_int_equal(spans.count, SPANS_MAX);
    assert_int_equal(spans.odd, 10);
}

static int clean(void **state)
{
    (void)state;
    arena_deinit(&arena);
    arena = (struct arena)ARENA_INIT;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(both_spellings_of_a_field_are_read, clean),
        cmocka_unit_test_teardown(what_makes_no_sense_is_counted_and_the_rest_passed_over, clean),
        cmocka_unit_test_teardown(a_hypothesis_has_a_name_of_its_own, clean),
        cmocka_unit_test_teardown(of_several_runs_the_last_counts_and_one_name_is_one_span, clean),
        cmocka_unit_test_teardown(a_line_without_end_and_too_many_names_are_bounded, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
