/* What is stated apart from what can be fixed: context, and the environment a run was measured in.
 * Neither is ranked, and neither saves anything by a change of the program. */
#include "present/run_tables.h"

#include <math.h>
#include <stdio.h>

enum {
    APART_DETECTOR,
    APART_VERDICT,
    APART_TITLE,
    APART_MS,
    APART_LOW,
    APART_HIGH,
    APART_PCT,
    APART_EFFECT,
    APART_REASON,
    APART_ADVICE,
    APART_CAUTION,
    APART_NEXT,
    APART_FACTS,
    APART_EVIDENCE,
    APART_ANGLES,
    APART_NOTE,
};

static const struct column columns[] = {
    [APART_DETECTOR] = {"detector", "what", SHOW_ALWAYS, false, false},
    [APART_VERDICT] = {"verdict", "verdict", SHOW_ALWAYS, false, false},
    [APART_TITLE] = {"title", "title", SHOW_ALWAYS, false, true},
    [APART_MS] = {"ms", "ms", SHOW_MACHINE, true, false},
    [APART_LOW] = {"low_ms", "low", SHOW_MACHINE, true, false},
    [APART_HIGH] = {"high_ms", "high", SHOW_MACHINE, true, false},
    [APART_PCT] = {"pct", "of the wall time", SHOW_MACHINE, true, false},
    [APART_EFFECT] = {"effect", "effect on this measurement", SHOW_ALWAYS, false, true},
    [APART_REASON] = {"reason", "reason", SHOW_ALWAYS, false, true},
    [APART_ADVICE] = {"advice", "advice", SHOW_ALWAYS, false, true},
    [APART_CAUTION] = {"caution", "caution", SHOW_MACHINE, false, false},
    [APART_NEXT] = {"measure_next", "next", SHOW_MACHINE, false, false},
    [APART_FACTS] = {"facts", "facts", SHOW_MACHINE, false, false},
    [APART_EVIDENCE] = {"evidence", "evidence", SHOW_MACHINE, false, false},
    [APART_ANGLES] = {"angles", "angles", SHOW_MACHINE, false, false},
    [APART_NOTE] = {"verification_note", "verified", SHOW_MACHINE, false, false},
};

/* Of the environment what it took, of context what it costs: with an interval only the first. */
static struct estimate spent(const struct finding *finding)
{
    if (finding->class == FINDING_ENVIRONMENT)
        return finding->recoverable;
    return (struct estimate){finding->cost_ns, NAN, NAN};
}

/* NULL where it has none. */
static const char *effect_text(struct arena *arena, const struct interpretation *run,
                               const struct finding *finding)
{
    char wall[48], left[48], share[16];
    double all = run->evidence->costs_on_path.ns;
    struct estimate ns = spent(finding);
    if (finding->verdict != FINDING_CONFIRMED || isnan(ns.ns) || !(all > 0))
        return NULL;
    units_format(all, UNIT_NS, wall, sizeof(wall));
    units_format(fmax(0, all - ns.ns), UNIT_NS, left, sizeof(left));
    snprintf(share, sizeof(share), "%.0f%%", ns.ns / all * 100);
    if (finding->class == FINDING_CONTEXT)
        return arena_printf(arena, "%s of %s (%s)", run_estimate_text(arena, ns), wall, share);
    if (isnan(run->evidence->costs.wall_ns) && !run->evidence->costs.recorded_whole)
        return arena_printf(arena,
                            "%s of the %s (%s) that were seen of a run are not the "
                            "program's time",
                            run_estimate_text(arena, ns), wall, share);
    return arena_printf(arena,
                        "%s of %s (%s) a run are not the program's time: without it a run would "
                        "take about %s",
                        run_estimate_text(arena, ns), wall, share, left);
}

static struct value text_or(const char *text, const char *reason)
{
    return text && *text ? value_text(text) : value_na(reason);
}

static void row_put(struct arena *arena, const struct interpretation *run,
                    const struct finding *finding, struct value *cells)
{
    const char *none = finding->verdict == FINDING_NOT_JUDGED ? "not judged" : "not known";
    double wall = run->evidence->costs_on_path.ns;
    struct estimate ns = spent(finding);
    cells[APART_DETECTOR] = value_text(finding->detector);
    cells[APART_VERDICT] = value_text(finding_verdict_name(finding->verdict));
    cells[APART_TITLE] = value_text(finding->title ? finding->title : "");
    cells[APART_MS] = run_ms(ns.ns, none);
    cells[APART_LOW] = run_ms(ns.low_ns, none);
    cells[APART_HIGH] = run_ms(ns.high_ns, none);
    cells[APART_PCT] = run_pct(wall > 0 ? ns.ns / wall : NAN, none);
    cells[APART_EFFECT] = text_or(effect_text(arena, run, finding), "not confirmed");
    cells[APART_REASON] = value_text(finding->reason ? finding->reason : "");
    cells[APART_ADVICE] = finding->verdict == FINDING_CONFIRMED
                              ? text_or(finding->advice, "nothing follows from it")
                              : value_na("not confirmed");
    cells[APART_CAUTION] = text_or(finding->caution, "none");
    cells[APART_NEXT] = text_or(run_next_look(arena, run, finding), "nothing shows more");
    cells[APART_FACTS] = run_facts_map(arena, finding);
    cells[APART_EVIDENCE] = run_facts_list(arena, finding);
    cells[APART_ANGLES] = run_angles(arena, finding->angles);
    cells[APART_NOTE] = value_text(run_verification(arena, finding));
}

struct value run_apart_table(struct arena *arena, const struct interpretation *run,
                             enum finding_class class)
{
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    if (table.table)
        table.table->empty = "nothing";
    for (size_t i = 0; i < run->findings.count; i++) {
        const struct finding *finding = &run->findings.items[i];
        struct table_row *row = finding->class == class ? table_add(&table) : NULL;
        if (row)
            row_put(arena, run, finding, row->cells);
    }
    return table;
}

size_t run_apart_lines(struct arena *arena, const struct interpretation *run,
                       enum finding_class class, struct value *ret)
{
    size_t count = 0;
    *ret = value_list(arena);
    for (size_t i = 0; i < run->findings.count; i++) {
        const struct finding *finding = &run->findings.items[i];
        if (finding->class != class || finding->verdict != FINDING_CONFIRMED)
            continue;
        count++;
        const char *effect = effect_text(arena, run, finding);
        const char *title = run_paths_shortened(arena, finding->title);
        value_append(ret, value_tone(value_text(title), TONE_WARN));
        if (class == FINDING_ENVIRONMENT && effect)
            value_append(ret, value_text(arena_printf(arena, "effect: %s", effect)));
        if (finding->advice)
            value_append(ret, value_tone(value_text(arena_printf(arena, "%s: %s",
                                                                 class == FINDING_ENVIRONMENT
                                                                     ? "to be without it"
                                                                     : "to know more",
                                                                 finding->advice)),
                                         TONE_DIM));
        else if (finding->caution)
            value_append(ret, value_tone(value_text(finding->caution), TONE_DIM));
    }
    return count;
}
