/* Facts to a tree: what was compared, the verdict in words, what to do next. */
#include "cmd/compare_report.h"

#include "base/clock.h"
#include "cmd/ab_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* No budget beyond this is proposed. */
enum { BUDGET_PROPOSED_S_MAX = 3600 };

static const char *margin_text(const struct compare_facts *facts)
{
    return arena_printf(facts->arena, "%g%%", facts->question->margin * 100);
}

static struct value measured_text(const struct compare_facts *facts)
{
    const struct ab *ab = facts->ab;
    struct arena *arena = facts->arena;
    if (!ab)
        return value_text(arena_printf(arena,
                                       "stored runs: %zu of A, %zu of B; weaker: not interleaved",
                                       facts->results[0]->runs.len, facts->results[1]->runs.len));
    char took[48];
    units_format((double)ab->elapsed_ns, UNIT_NS, took, sizeof(took));
    size_t blocks = ab->results[1].runs.len;
    return value_text(arena_printf(
        arena, "%zu block%s of A and B %s, after %u warm-up run%s of each, in %s%s", blocks,
        blocks == 1 ? "" : "s", facts->duet ? "at the same time" : "in random order", ab->warmups,
        ab->warmups == 1 ? "" : "s", took, ab->end == AB_INTERRUPTED ? "; interrupted" : ""));
}

static const char *claim(const struct compare_facts *facts)
{
    const struct ab_line *line = &facts->answer->asked;
    int metric = facts->question->spec.metric;
    bool time = metric <= BENCH_CPU;
    switch (line->verdict) {
    case VERDICT_SLOWER:
        return time ? "B is slower than A" : "B needs more than A";
    case VERDICT_FASTER:
        return time ? "B is faster than A" : "B needs less than A";
    case VERDICT_EQUIVALENT:
        return "A and B are equivalent";
    default:
        return "unknown";
    }
}

static const char *because(const struct compare_facts *facts)
{
    const struct ab_line *line = &facts->answer->asked;
    const struct ratio *ratio = &line->ratio;
    const char *margin = margin_text(facts);
    double limit = 1 + facts->question->margin;
    switch (line->verdict) {
    case VERDICT_SLOWER:
    case VERDICT_FASTER:
        return arena_printf(facts->arena, "wholly beyond the margin of %s, %s", margin,
                            p_text(facts->arena, ratio->p));
    case VERDICT_EQUIVALENT:
        return arena_printf(facts->arena, "wholly within the margin of %s", margin);
    default:
        if (ratio->low > limit || ratio->high < 1 / limit)
            return arena_printf(facts->arena, "but chance could have done it, %s",
                                p_text(facts->arena, ratio->p));
        return arena_printf(facts->arena, "neither within nor beyond the margin of %s", margin);
    }
}

static struct value answer_text(const struct compare_facts *facts)
{
    const struct ab_line *line = &facts->answer->asked;
    const struct metric_spec *spec = &facts->question->spec;
    struct arena *arena = facts->arena;
    if (line->na)
        return value_tone(
            value_text(arena_printf(arena, "unknown: %s: n/a: %s", spec->label, line->na)),
            TONE_WARN);
    if (!line->ratio.has_interval)
        return value_tone(
            value_text(arena_printf(arena,
                                    "unknown: %zu %s too few to say anything about %s; at least "
                                    "%zu are needed",
                                    line->ratio.count,
                                    facts->ab ? line->ratio.count == 1 ? "block is" : "blocks are"
                                              : "runs are",
                                    spec->label, ratio_count_min(spec->share, 0.95))),
            TONE_WARN);
    enum tone tone = line->verdict == VERDICT_SLOWER    ? TONE_BAD
                     : line->verdict == VERDICT_UNKNOWN ? TONE_WARN
                                                        : TONE_GOOD;
    return value_tone(
        value_text(arena_printf(arena, "%s: %s %s, 95%% interval %s: %s", claim(facts), spec->label,
                                change_text(arena, line->ratio.ratio),
                                interval_text(arena, &line->ratio), because(facts))),
        tone);
}

static struct value detectable_text(const struct compare_facts *facts)
{
    const struct ab_line *line = &facts->answer->asked;
    if (line->na || isnan(line->detectable))
        return value_na(line->na ? line->na : "too few runs for an interval");
    return value_text(arena_printf(facts->arena,
                                   "a change of %.*f%% or more would have been seen in 4 of 5 such "
                                   "comparisons",
                                   line->detectable < 0.1 ? 1 : 0, line->detectable * 100));
}

static const char *shell_quoted(const struct compare_facts *facts, int side)
{
    const char *words[] = {facts->texts[side], NULL};
    return command_quote(facts->arena, (char *const *)words);
}

/* How long it would take for the interval to fit into half the margin: its width shrinks with
 * the root of the time. 0: no telling. */
static double budget_wanted_s(const struct compare_facts *facts)
{
    const struct ratio *ratio = &facts->answer->asked.ratio;
    double spent_s = (double)facts->ab->elapsed_ns / NS_PER_SEC;
    size_t least = ratio_count_min(facts->question->spec.share, 0.95);
    if (!ratio->has_interval)
        return spent_s * 2 * (double)least / (double)MAX(ratio->count, (size_t)1);
    double half = (log(ratio->high) - log(ratio->low)) / 2;
    double wanted = fmax(log1p(facts->question->margin), 0.001) / 2;
    return spent_s * fmax(2, half * half / (wanted * wanted));
}

/* Not a word of what was typed may be lost, or the next comparison is another one. */
static const char *again(const struct compare_facts *facts, const char *command)
{
    const char *a = shell_quoted(facts, 0), *b = shell_quoted(facts, 1);
    const char *options = ab_cli_text(facts->arena, facts->cli);
    bool gate = strcmp(command, "gate") == 0;
    return gate ? arena_printf(facts->arena, "whyslow gate%s --baseline %s --candidate %s", options,
                               a, b)
                : arena_printf(facts->arena, "whyslow %s%s%s%s %s %s", command, options,
                               facts->duet ? " --duet" : "",
                               facts->question->margin == 0.01
                                   ? ""
                                   : arena_printf(facts->arena, " --margin %s", margin_text(facts)),
                               a, b);
}

static struct value next_list(const struct compare_facts *facts)
{
    struct arena *arena = facts->arena;
    const struct ab_line *line = &facts->answer->asked;
    struct value list = value_list(arena);
    if (!facts->ab) {
        value_append(&list, value_text("runs made side by side say more: whyslow compare 'CMD A' "
                                       "'CMD B'"));
        return list;
    }
    if (line->na) {
        value_append(&list, value_text("choose a --metric that can be measured here"));
    } else if (line->verdict == VERDICT_UNKNOWN) {
        double seconds = budget_wanted_s(facts);
        if (seconds <= BUDGET_PROPOSED_S_MAX)
            value_append(&list,
                         value_text(again(
                             facts, arena_printf(arena, "compare --budget %.0fs", ceil(seconds)))));
        else
            value_append(&list,
                         value_text("this machine is too noisy for a margin this small: "
                                    "see 'whyslow doctor', try --duet, or a wider --margin"));
    } else if (line->verdict == VERDICT_EQUIVALENT) {
        value_append(&list, value_text("nothing to do; a smaller --margin asks more closely"));
    } else if (line->verdict == VERDICT_SLOWER && !facts->cli->shell) {
        value_append(&list, value_text(arena_printf(arena, "whyslow run -- %s", facts->texts[1])));
    }
    if (line->verdict != VERDICT_UNKNOWN)
        value_append(&list, value_text(again(facts, "gate")));
    return list;
}

static void warn(struct compare_facts *facts, const char *text)
{
    value_append(&facts->warnings, value_tone(value_text(text), TONE_WARN));
}

static void warnings_add(struct compare_facts *facts)
{
    const struct ab *ab = facts->ab;
    struct arena *arena = facts->arena;
    if (!ab) {
        warn(facts, "weaker: not interleaved; what changed on the machine between the two "
                    "measurements looks like a difference between the programs");
        return;
    }
    if (strcmp(facts->texts[0], facts->texts[1]) == 0)
        warn(facts, "A and B are the same command: any difference is the machine's");
    if (ab->output_known[0] && ab->output_known[1] && strcmp(ab->output[0], ab->output[1]) != 0)
        warn(facts, "A and B print different output: do they do the same work?");
    for (int side = 0; side < AB_SIDES; side++)
        if (ab->failed[side] > 0)
            warn(facts, arena_printf(arena,
                                     "%u of %zu runs of %c failed and were counted "
                                     "(--ignore-failure)",
                                     ab->failed[side], ab->results[side].runs.len, "AB"[side]));
    if (ab->end == AB_INTERRUPTED)
        warn(facts, "interrupted: the blocks finished by then are compared");
}

struct value compare_report_make(struct compare_facts *facts)
{
    struct arena *arena = facts->arena;
    const struct ab_line *line = &facts->answer->asked;
    const struct ab_question *question = facts->question;
    struct value root = value_map(arena);
    warnings_add(facts);
    value_put(&root, "a", "A", value_text(facts->texts[0]));
    value_put(&root, "b", "B", value_text(facts->texts[1]));
    value_put(&root, "measured", NULL, measured_text(facts));
    value_put_machine(&root, "mode",
                      value_text(!facts->ab    ? "stored"
                                 : facts->duet ? "duet"
                                               : "interleaved"));
    value_put_machine(&root, "metric", value_text(facts->cli->metric));
    value_put_machine(&root, "margin", value_real(question->margin, UNIT_NONE));
    value_put_machine(&root, "verdict", value_text(verdict_name(line->verdict)));
    value_put(&root, "answer", "verdict", answer_text(facts));
    value_put(&root, "sensitivity", NULL, detectable_text(facts));
    value_put_machine(&root, "ratio", ratio_value(line, line->ratio.ratio));
    value_put_machine(&root, "ci95", ci_value(arena, line));
    value_put_machine(&root, "p", ratio_value(line, line->ratio.p));
    value_put_machine(&root, "min_detectable",
                      line->na || isnan(line->detectable)
                          ? value_na(line->na ? line->na : "too few runs for an interval")
                          : value_real(line->detectable, UNIT_NONE));
    value_put_machine(&root, "blocks",
                      facts->ab ? value_uint(facts->ab->results[1].runs.len, UNIT_COUNT)
                                : value_na("stored results are not interleaved"));
    value_put_machine(&root, "runs_a", value_uint(facts->results[0]->runs.len, UNIT_COUNT));
    value_put_machine(&root, "runs_b", value_uint(facts->results[1]->runs.len, UNIT_COUNT));
    value_put_machine(&root, "seed",
                      facts->ab ? value_uint(facts->seed, UNIT_NONE) : value_na("nothing was run"));
    if (line->ratio.has_interval) {
        const double marks[] = {1 / (1 + question->margin), 1 + question->margin};
        value_put_for(
            &root, SHOW_TERMINAL, "picture",
            arena_printf(arena, "%s of B against A; the margin is ':'", question->spec.label),
            interval_picture(arena, &line->ratio, marks, 2));
    }
    value_put(&root, "per_metric", "What a run costs", metrics_table(arena, facts->answer));
    struct value missing = metrics_missing(arena, facts->answer);
    if (missing.items && missing.items->len > 0)
        value_put_for(&root, SHOW_PEOPLE, "not_measured", "Not measured", missing);
    if (facts->differences.kind == VALUE_TABLE && facts->differences.table->row_count > 0)
        value_put(&root, "fingerprint_differences", "Where the fingerprints differ",
                  facts->differences);
    else
        value_put_machine(&root, "fingerprint_differences", facts->differences);
    if (facts->warnings.items && facts->warnings.items->len > 0)
        value_put(&root, "warnings", "Warnings", facts->warnings);
    else
        value_put_machine(&root, "warnings", facts->warnings);
    value_put(&root, "next", "Next", next_list(facts));
    value_put_machine(&root, "fingerprint", facts->fingerprint);
    return root;
}
