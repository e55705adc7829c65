/* The result of `whyslow gate` as a tree; schema "whyslow.gate/1". */
#include "cmd/ab_report.h"
#include "cmd/gate.h"

#include <math.h>
#include <string.h>

/* In a self-test the question is whether the gate did what it should. */
static enum gate_verdict pair_verdict(const struct gate *gate, const struct gate_pair *pair)
{
    if (!gate->opts->self_test)
        return pair->answer == LOOK_PASS   ? GATE_PASS
               : pair->answer == LOOK_FAIL ? GATE_FAIL
                                           : GATE_INCONCLUSIVE;
    if (!pair->slowed)
        return pair->answer == LOOK_FAIL ? GATE_FAIL : GATE_PASS;
    return pair->answer == LOOK_FAIL   ? GATE_PASS
           : pair->answer == LOOK_PASS ? GATE_FAIL
                                       : GATE_INCONCLUSIVE;
}

enum gate_verdict gate_verdict(const struct gate *gate)
{
    enum gate_verdict all = GATE_PASS;
    for (size_t i = 0; i < gate->pair_count; i++) {
        enum gate_verdict one = pair_verdict(gate, &gate->pairs[i]);
        if (one == GATE_FAIL)
            return GATE_FAIL;
        if (one == GATE_INCONCLUSIVE)
            all = GATE_INCONCLUSIVE;
    }
    return all;
}

const char *gate_verdict_name(enum gate_verdict verdict)
{
    static const char *const names[] = {
        [GATE_PASS] = "pass", [GATE_FAIL] = "fail", [GATE_INCONCLUSIVE] = "inconclusive"};
    return names[verdict];
}

static enum tone verdict_tone(enum gate_verdict verdict)
{
    return verdict == GATE_PASS ? TONE_GOOD : verdict == GATE_FAIL ? TONE_BAD : TONE_WARN;
}

static const char *limit_text(const struct gate *gate)
{
    return arena_printf(gate->arena, "%g%%", (gate->threshold - 1) * 100);
}

/* Why it is what it is, in words. */
static const char *because(const struct gate *gate, const struct gate_pair *pair)
{
    struct arena *arena = gate->arena;
    const struct ratio *ratio = &pair->line.ratio;
    const char *limit = limit_text(gate);
    if (pair->line.na)
        return arena_printf(arena, "n/a: %s", pair->line.na);
    if (pair->looked == 0)
        return "not measured";
    size_t least = ratio_count_min(gate->spec.share, pair->confidence);
    if (!ratio->has_interval)
        return arena_printf(arena, "%zu runs of each are too few, at least %zu are needed%s",
                            ratio->count, least, pair->stored ? "" : ": a longer --budget");
    if (pair->answer == LOOK_FAIL)
        return arena_printf(arena, "the whole interval is beyond +%s", limit);
    if (pair->answer == LOOK_PASS)
        return arena_printf(arena, "the whole interval is below +%s", limit);
    if (ratio->low > gate->threshold)
        return arena_printf(arena, "beyond +%s, but chance could have done it (%s)", limit,
                            p_text(arena, pair->p_adjusted));
    return arena_printf(arena, "the interval reaches across +%s; %s", limit,
                        pair->stored         ? "more runs are needed"
                        : gate->opts->counts ? "the counts vary that much"
                                             : "the budget is spent");
}

enum {
    COL_TITLE,
    COL_BASELINE,
    COL_CANDIDATE,
    COL_A,
    COL_B,
    COL_CHANGE,
    COL_INTERVAL_TEXT,
    COL_VERDICT,
    COL_BECAUSE,
    COL_ANSWER,
    COL_MODE,
    COL_RATIO,
    COL_INTERVAL,
    COL_CONFIDENCE,
    COL_P,
    COL_P_ADJUSTED,
    COL_RUNS_A,
    COL_RUNS_B,
    COL_LOOKS,
    COLS,
};

static const struct column columns[COLS] = {
    [COL_TITLE] = {"name", "benchmark", SHOW_ALWAYS, false, true},
    [COL_BASELINE] = {"baseline", "baseline", SHOW_MACHINE, false, false},
    [COL_CANDIDATE] = {"candidate", "candidate", SHOW_MACHINE, false, false},
    [COL_A] = {"baseline_value", "baseline", SHOW_ALWAYS, true, false},
    [COL_B] = {"candidate_value", "candidate", SHOW_ALWAYS, true, false},
    [COL_CHANGE] = {"change", "change", SHOW_ALWAYS, true, false},
    [COL_INTERVAL_TEXT] = {"interval_text", "interval", SHOW_ALWAYS, true, false},
    [COL_VERDICT] = {"verdict", "verdict", SHOW_ALWAYS, false, false},
    [COL_BECAUSE] = {"because", "because", SHOW_ALWAYS, false, true},
    [COL_ANSWER] = {"answer", "answer", SHOW_MACHINE, false, false},
    [COL_MODE] = {"mode", "mode", SHOW_MACHINE, false, false},
    [COL_RATIO] = {"ratio", "ratio", SHOW_MACHINE, true, false},
    [COL_INTERVAL] = {"interval", "interval", SHOW_MACHINE, false, false},
    [COL_CONFIDENCE] = {"confidence", "confidence", SHOW_MACHINE, true, false},
    [COL_P] = {"p", "p", SHOW_MACHINE, true, false},
    [COL_P_ADJUSTED] = {"p_adjusted", "p, corrected", SHOW_MACHINE, true, false},
    [COL_RUNS_A] = {"baseline_runs", "runs", SHOW_MACHINE, true, false},
    [COL_RUNS_B] = {"candidate_runs", "runs", SHOW_MACHINE, true, false},
    [COL_LOOKS] = {"looks", "looks", SHOW_MACHINE, true, false},
};

static struct value number_or(double number, enum unit unit, const char *reason)
{
    return isnan(number) ? value_na(reason) : value_real(number, unit);
}

static void row_fill(const struct gate *gate, const struct gate_pair *pair, struct table_row *row)
{
    struct arena *arena = gate->arena;
    const struct ab_line *line = &pair->line;
    bool known = !line->na && pair->looked > 0;
    bool interval = known && line->ratio.has_interval;
    const char *na = line->na ? line->na : pair->looked ? "too few runs" : "not measured";
    enum unit unit = gate->opts->counts ? UNIT_COUNT : bench_metrics[gate->spec.metric].unit;
    enum gate_verdict verdict = pair_verdict(gate, pair);
    row->cells[COL_TITLE] = value_text(pair->title ? pair->title : pair->texts[1]);
    row->cells[COL_BASELINE] = value_text(pair->texts[0]);
    row->cells[COL_CANDIDATE] = value_text(pair->texts[1]);
    row->cells[COL_A] = number_or(pair->looked ? line->a : NAN, unit, na);
    row->cells[COL_B] = number_or(pair->looked ? line->b : NAN, unit, na);
    row->cells[COL_CHANGE] = known ? value_text(change_text(arena, line->ratio.ratio))
                                   : value_na(na);
    row->cells[COL_INTERVAL_TEXT] = interval ? value_text(interval_text(arena, &line->ratio))
                                             : value_na(na);
    row->cells[COL_VERDICT] = value_tone(value_text(gate_verdict_name(verdict)),
                                         verdict_tone(verdict));
    row->cells[COL_BECAUSE] = value_text(because(gate, pair));
    row->cells[COL_ANSWER] = value_text(pair->answer == LOOK_FAIL   ? "fail"
                                        : pair->answer == LOOK_PASS ? "pass"
                                                                    : "inconclusive");
    row->cells[COL_MODE] = value_text(gate->opts->counts ? "simulated"
                                      : pair->stored     ? "stored"
                                      : pair->alone      ? "stored baseline"
                                                         : "interleaved");
    row->cells[COL_RATIO] = known ? value_real(line->ratio.ratio, UNIT_NONE) : value_na(na);
    row->cells[COL_INTERVAL] = interval ? value_list(arena) : value_na(na);
    if (interval) {
        value_append(&row->cells[COL_INTERVAL], value_real(line->ratio.low, UNIT_NONE));
        value_append(&row->cells[COL_INTERVAL], value_real(line->ratio.high, UNIT_NONE));
    }
    const char *no_chance = gate->opts->counts ? "simulated: the range of all runs" : na;
    row->cells[COL_CONFIDENCE] = number_or(interval ? pair->confidence : NAN, UNIT_NONE, no_chance);
    row->cells[COL_P] = number_or(known ? line->ratio.p : NAN, UNIT_NONE, no_chance);
    row->cells[COL_P_ADJUSTED] = number_or(known ? pair->p_adjusted : NAN, UNIT_NONE, no_chance);
    row->cells[COL_RUNS_A] = value_uint(pair->results[0] ? pair->results[0]->runs.len : 0,
                                        UNIT_COUNT);
    row->cells[COL_RUNS_B] = value_uint(pair->results[1] ? pair->results[1]->runs.len : 0,
                                        UNIT_COUNT);
    row->cells[COL_LOOKS] = value_uint(pair->looked, UNIT_COUNT);
}

static struct value table_make(const struct gate *gate)
{
    struct value table = value_table(gate->arena, columns, COLS);
    for (size_t i = 0; i < gate->pair_count; i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            return table;
        row_fill(gate, &gate->pairs[i], row);
    }
    return table;
}

/* One axis a benchmark; of many, the table is enough. */
static struct value pictures_make(const struct gate *gate)
{
    enum { PICTURES_MAX = 4 };
    struct value all = value_list(gate->arena);
    for (size_t i = 0; i < gate->pair_count && i < PICTURES_MAX; i++) {
        const struct gate_pair *pair = &gate->pairs[i];
        if (pair->line.na || pair->looked == 0 || !pair->line.ratio.has_interval)
            continue;
        if (gate->pair_count > 1)
            value_append(&all, value_text(pair->title ? pair->title : pair->texts[1]));
        struct value lines = interval_picture(gate->arena, &pair->line.ratio, &gate->threshold, 1);
        for (struct value_item *item = lines.items ? lines.items->first : NULL; item;
             item = item->next)
            value_append(&all, item->value);
    }
    return all;
}

static struct value answer_text(const struct gate *gate, enum gate_verdict verdict)
{
    struct arena *arena = gate->arena;
    size_t counts[3] = {0};
    for (size_t i = 0; i < gate->pair_count; i++)
        counts[pair_verdict(gate, &gate->pairs[i])]++;
    const char *text;
    if (gate->opts->self_test)
        text = verdict == GATE_PASS
                   ? "pass: the gate caught the slowdown and kept quiet without one"
               : verdict == GATE_FAIL
                   ? "fail: the gate did not do what it must; do not rely on it here"
                   : "inconclusive: the slowdown is there, but the gate could not tell; give it a "
                     "longer --budget";
    else if (gate->pair_count == 1)
        text = arena_printf(arena, "%s: %s", gate_verdict_name(verdict),
                            because(gate, &gate->pairs[0]));
    else
        text = arena_printf(arena, "%s: of %zu benchmarks %zu pass, %zu fail, %zu inconclusive",
                            gate_verdict_name(verdict), gate->pair_count, counts[GATE_PASS],
                            counts[GATE_FAIL], counts[GATE_INCONCLUSIVE]);
    return value_tone(value_text(text), verdict_tone(verdict));
}

static struct value next_list(const struct gate *gate, enum gate_verdict verdict)
{
    struct value list = value_list(gate->arena);
    const struct gate_pair *pair = &gate->pairs[0];
    for (size_t i = 0; i < gate->pair_count; i++)
        if (pair_verdict(gate, &gate->pairs[i]) == verdict)
            pair = &gate->pairs[i];
    const char *a[] = {pair->texts[0], NULL}, *b[] = {pair->texts[1], NULL};
    const char *options = ab_cli_text(gate->arena, &gate->opts->ab);
    const char *quoted_a = command_quote(gate->arena, (char *const *)a);
    const char *quoted_b = command_quote(gate->arena, (char *const *)b);
    if (gate->opts->self_test && verdict == GATE_PASS)
        value_append(&list,
                     value_text(arena_printf(
                         gate->arena, "whyslow gate --baseline %s --candidate CMD", quoted_a)));
    else if (verdict == GATE_FAIL && !gate->opts->self_test)
        value_append(&list, value_text(arena_printf(gate->arena, "whyslow compare%s %s %s", options,
                                                    quoted_a, quoted_b)));
    else if (verdict != GATE_PASS && pair->stored)
        value_append(&list, value_text("commands in the place of files are run side by side, up to "
                                       "the budget"));
    else if (verdict != GATE_PASS)
        value_append(&list, value_text("whyslow doctor: what disturbs this machine; a longer "
                                       "--budget; or --counts, which noise does not reach"));
    return list;
}

struct value gate_report_make(const struct gate *gate)
{
    struct arena *arena = gate->arena;
    enum gate_verdict verdict = gate_verdict(gate);
    struct value root = value_map(arena);
    value_put_machine(&root, "verdict", value_text(gate_verdict_name(verdict)));
    value_put(&root, "answer", gate->opts->self_test ? "self-test" : "gate",
              answer_text(gate, verdict));
    value_put_machine(
        &root, "metric",
        value_text(gate->opts->counts ? "instructions, simulated" : gate->opts->ab.metric));
    value_put(&root, "rule", NULL,
              value_text(arena_printf(arena, "%s: more than +%s fails",
                                      gate->opts->counts ? "instructions, simulated by callgrind"
                                                         : gate->spec.label,
                                      limit_text(gate))));
    value_put_machine(&root, "max_regression", value_real(gate->threshold - 1, UNIT_NONE));
    value_put_machine(&root, "self_test", value_bool(gate->opts->self_test));
    value_put(&root, "benchmarks", "Benchmarks", table_make(gate));
    struct value pictures = pictures_make(gate);
    if (pictures.items && pictures.items->len > 0)
        value_put_for(&root, SHOW_TERMINAL, "picture",
                      "Candidate (B) against baseline (A); the threshold is ':'", pictures);
    if (gate->differences.kind == VALUE_TABLE && gate->differences.table->row_count > 0)
        value_put(&root, "fingerprint_differences", "Where the fingerprints differ",
                  gate->differences);
    else
        value_put_machine(&root, "fingerprint_differences", gate->differences);
    bool warned = gate->warnings.items && gate->warnings.items->len > 0;
    if (warned)
        value_put(&root, "warnings", "Warnings", gate->warnings);
    else
        value_put_machine(&root, "warnings", gate->warnings);
    struct value next = next_list(gate, verdict);
    if (next.items && next.items->len > 0)
        value_put(&root, "next", "Next", next);
    else
        value_put_machine(&root, "next", next);
    value_put_machine(&root, "fingerprint", gate->fingerprint);
    return root;
}
