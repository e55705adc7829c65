/* Hotspots, hypotheses and opportunities as tables. */
#include "present/run_tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers with their intervals ---- */

static struct str without_unit(const char *text)
{
    const char *unit = strrchr(text, ' ');
    return (struct str){text, unit ? (size_t)(unit - text) : strlen(text)};
}

static bool same_unit(const char *a, const char *b)
{
    const char *left = strrchr(a, ' '), *right = strrchr(b, ' ');
    return left && right && strcmp(left, right) == 0;
}

const char *run_estimate_text(struct arena *arena, struct estimate estimate)
{
    char value[48], low[48], high[48];
    if (isnan(estimate.ns))
        return "n/a: not known";
    units_format(estimate.ns, UNIT_NS, value, sizeof(value));
    if (isnan(estimate.low_ns) || isnan(estimate.high_ns))
        return arena_dup(arena, value);
    units_format(estimate.low_ns, UNIT_NS, low, sizeof(low));
    units_format(estimate.high_ns, UNIT_NS, high, sizeof(high));
    /* The unit once, where it is the same for all; nothing needs none. */
    bool none = estimate.low_ns == 0;
    bool once = (none || same_unit(value, low)) && same_unit(value, high);
    struct str from = once || none ? without_unit(low) : str_from(low);
    struct str to = once ? without_unit(high) : str_from(high);
    return arena_printf(arena, "%s (%.*s to %.*s)", value, STR_FMT(from), STR_FMT(to));
}

static const char *share_text(struct arena *arena, double share, double low, double high)
{
    if (isnan(share))
        return "n/a: not known";
    int digits = share < 0.0995 ? 1 : 0;
    if (isnan(low) || isnan(high))
        return arena_printf(arena, "%.*f%%", digits, share * 100);
    return arena_printf(arena, "%.*f%% (%.*f to %.*f)", digits, share * 100, digits, low * 100,
                        digits, high * 100);
}

struct value run_ms(double ns, const char *reason)
{
    return isnan(ns) ? value_na(reason) : value_real(ns / 1e6, UNIT_MS);
}

struct value run_pct(double share, const char *reason)
{
    return isnan(share) ? value_na(reason) : value_real(share * 100, UNIT_PERCENT);
}

static struct value real_or(double number, const char *reason)
{
    return isnan(number) ? value_na(reason) : value_real(number, UNIT_NONE);
}

const char *run_gain_text(struct arena *arena, const struct interpretation *run,
                          const struct finding *finding)
{
    char wall[48];
    units_format(run->evidence->costs_on_path.ns, UNIT_NS, wall, sizeof(wall));
    if (isnan(finding->recoverable.ns))
        return "saves n/a: not known how much";
    return arena_printf(arena, "saves %s of %s", run_estimate_text(arena, finding->recoverable),
                        wall);
}

struct estimate run_after(const struct interpretation *run, const struct finding *finding)
{
    double wall = run->evidence->costs_on_path.ns;
    const struct estimate *gain = &finding->recoverable;
    return (struct estimate){fmax(0, wall - gain->ns),
                             isnan(gain->high_ns) ? NAN : fmax(0, wall - gain->high_ns),
                             isnan(gain->low_ns) ? NAN : fmax(0, wall - gain->low_ns)};
}

static struct value text_or_na(const char *text, const char *reason)
{
    return text && *text ? value_text(text) : value_na(reason);
}

/* ---- hotspots (M21) ---- */

#define SHOWN_SHARE_MIN 0.001 /* of the wall time; less is in the file only */

enum {
    HOT_RANK,
    HOT_PLACE,
    HOT_WHERE,
    HOT_METRIC,
    HOT_MS,
    HOT_LOW,
    HOT_HIGH,
    HOT_TIME,
    HOT_PCT,
    HOT_PCT_LOW,
    HOT_PCT_HIGH,
    HOT_SHARE,
    HOT_CATEGORY,
    HOT_EVIDENCE,
    HOT_ID,
    HOT_ARTIFACT,
    HOT_FUNCTION,
    HOT_FILE,
    HOT_LINE,
    HOT_OWNER,
    HOT_COMMAND,
};

static const struct column hotspot_columns[] = {
    [HOT_RANK] = {"rank", "#", SHOW_ALWAYS, true, false},
    [HOT_PLACE] = {"place", "where", SHOW_PEOPLE, false, true},
    [HOT_WHERE] = {"location", "where", SHOW_MACHINE, false, false},
    [HOT_METRIC] = {"metric", "what", SHOW_ALWAYS, false, false},
    [HOT_MS] = {"value_ms", "ms", SHOW_MACHINE, true, false},
    [HOT_LOW] = {"value_low_ms", "low", SHOW_MACHINE, true, false},
    [HOT_HIGH] = {"value_high_ms", "high", SHOW_MACHINE, true, false},
    [HOT_TIME] = {"time", "time (95%)", SHOW_PEOPLE, true, true},
    [HOT_PCT] = {"share_pct", "share", SHOW_MACHINE, true, false},
    [HOT_PCT_LOW] = {"share_low_pct", "low", SHOW_MACHINE, true, false},
    [HOT_PCT_HIGH] = {"share_high_pct", "high", SHOW_MACHINE, true, false},
    [HOT_SHARE] = {"share", "of the wall time", SHOW_PEOPLE, true, true},
    [HOT_CATEGORY] = {"category", "category", SHOW_ALWAYS, false, false},
    [HOT_EVIDENCE] = {"evidence", "evidence", SHOW_PEOPLE, false, false},
    [HOT_ID] = {"id", "id", SHOW_MACHINE, false, false},
    [HOT_ARTIFACT] = {"artifact", "in", SHOW_MACHINE, false, false},
    [HOT_FUNCTION] = {"function", "function", SHOW_MACHINE, false, false},
    [HOT_FILE] = {"file", "file", SHOW_MACHINE, false, false},
    [HOT_LINE] = {"line", "line", SHOW_MACHINE, true, false},
    [HOT_OWNER] = {"owner", "owner", SHOW_MACHINE, false, false},
    [HOT_COMMAND] = {"command", "command", SHOW_MACHINE, false, false},
};

const char *run_paths_shortened(struct arena *arena, const char *text)
{
    enum { PATH_COLUMNS = 24 };
    const char *made = "";
    struct str rest = str_from(text);
    while (rest.len > 0) {
        struct str word = str_cut(&rest, ' ');
        struct str end = word;
        for (struct str path = word; path.len > 0;)
            end = str_cut(&path, '/');
        bool cut = word.len > PATH_COLUMNS && word.data[0] == '/' && end.len < word.len;
        made = arena_printf(arena, "%s%s%s%.*s", made, *made ? " " : "", cut ? "…/" : "",
                            STR_FMT(cut ? end : word));
    }
    return made;
}

/* "f12" in recording.whyslow; "io:c7" in recording-io.whyslow. */
static const char *evidence_short(struct arena *arena, const struct run_hotspot *spot)
{
    if (!spot->artifact || !spot->id)
        return spot->id ? spot->id : "said by itself";
    struct str name = str_from(spot->artifact);
    if (str_is(name, "recording-io.whyslow"))
        return arena_printf(arena, "io:%s", spot->id);
    if (str_is(name, "recording-heap.whyslow"))
        return arena_printf(arena, "heap:%s", spot->id);
    return str_is(name, "recording.whyslow")
               ? spot->id
               : arena_printf(arena, "%s %s", spot->artifact, spot->id);
}

static void hotspot_row(struct arena *arena, const struct run_hotspot *spot, struct value *cells)
{
    const char *none = "not known";
    cells[HOT_RANK] = value_uint(spot->rank, UNIT_NONE);
    cells[HOT_EVIDENCE] = value_text(evidence_short(arena, spot));
    cells[HOT_WHERE] = value_text(spot->location ? spot->location
                                                 : place_text(arena, &spot->place));
    cells[HOT_PLACE] = value_text(run_paths_shortened(
        arena, spot->location ? spot->location : place_text(arena, &spot->place)));
    cells[HOT_METRIC] = text_or_na(spot->metric, none);
    cells[HOT_MS] = run_ms(spot->value.ns, none);
    cells[HOT_LOW] = run_ms(spot->value.low_ns, none);
    cells[HOT_HIGH] = run_ms(spot->value.high_ns, none);
    cells[HOT_TIME] = value_text(run_estimate_text(arena, spot->value));
    cells[HOT_PCT] = run_pct(spot->share, none);
    cells[HOT_PCT_LOW] = run_pct(spot->share_low, none);
    cells[HOT_PCT_HIGH] = run_pct(spot->share_high, none);
    cells[HOT_SHARE] = value_text(
        share_text(arena, spot->share, spot->share_low, spot->share_high));
    cells[HOT_CATEGORY] = text_or_na(spot->category, none);
    cells[HOT_ID] = text_or_na(spot->id, "it has none");
    cells[HOT_ARTIFACT] = text_or_na(spot->artifact, "the program said so itself");
    cells[HOT_FUNCTION] = spot->place.function.len ? value_str(spot->place.function)
                                                   : value_na(none);
    cells[HOT_FILE] = spot->place.file.len ? value_str(spot->place.file) : value_na(none);
    cells[HOT_LINE] = spot->place.line ? value_uint(spot->place.line, UNIT_NONE) : value_na(none);
    cells[HOT_OWNER] = value_text(finding_owner_name(spot->place.owner));
    cells[HOT_COMMAND] = text_or_na(spot->command, "none shows it");
}

struct value run_hotspot_table(struct arena *arena, const struct interpretation *run, size_t max)
{
    struct value table = value_table(arena, hotspot_columns, ARRAY_SIZE(hotspot_columns));
    if (table.table)
        table.table->empty = "no place could be told: nothing was sampled, and no wait recorded";
    for (size_t i = 0; i < run->hotspots.count; i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        hotspot_row(arena, &run->hotspots.rows[i], row->cells);
        bool small = i > 0 && run->hotspots.rows[i].share < SHOWN_SHARE_MIN;
        row->show = max > 0 && (i >= max || small) ? SHOW_MACHINE : SHOW_ALWAYS;
    }
    return table;
}

/* ---- the ledger (M22) ---- */

static const struct column ledger_columns[] = {
    {"id", "id", SHOW_MACHINE, false, false},
    {"hypothesis", "hypothesis", SHOW_ALWAYS, false, true},
    {"verdict", "verdict", SHOW_ALWAYS, false, false},
    {"share_pct", "of the wall time", SHOW_ALWAYS, true, false},
    {"sampling", "sampling", SHOW_ALWAYS, false, true},
    {"tracing", "tracing", SHOW_ALWAYS, false, true},
    {"counting", "counting", SHOW_ALWAYS, false, true},
    {"angles", "angles", SHOW_MACHINE, false, false},
    {"finding", "finding", SHOW_MACHINE, false, false},
    {"from_target", "the program says", SHOW_ALWAYS, false, true},
};

static const char *angle_text(struct arena *arena, const struct angle_word *word)
{
    return arena_printf(arena, "%s%s%s", angle_verdict_name(word->verdict), word->text ? ": " : "",
                        word->text ? word->text : "");
}

struct value run_angles(struct arena *arena, const struct angle_word *words)
{
    struct value map = value_map(arena);
    for (int i = 0; i < ANGLES; i++) {
        struct value *one = value_put(&map, angle_name((enum angle)i), NULL, value_map(arena));
        value_put(one, "verdict", NULL, value_text(angle_verdict_name(words[i].verdict)));
        value_put(one, "evidence", NULL, text_or_na(words[i].text, "was not asked"));
    }
    return map;
}

struct value run_ledger_table(struct arena *arena, const struct interpretation *run)
{
    struct value table = value_table(arena, ledger_columns, ARRAY_SIZE(ledger_columns));
    for (size_t i = 0; i < run->ledger.count; i++) {
        const struct hypothesis *row = &run->ledger.rows[i];
        struct table_row *made = table_add(&table);
        if (!made)
            break;
        made->cells[0] = value_text(row->id);
        made->cells[1] = value_text(row->statement);
        made->cells[2] = value_text(ledger_verdict_name(row->verdict));
        made->cells[3] = run_pct(row->share, "not known");
        for (int angle = 0; angle < ANGLES; angle++)
            made->cells[4 + angle] = value_text(angle_text(arena, &row->angles[angle]));
        made->cells[7] = run_angles(arena, row->angles);
        made->cells[8] = text_or_na(row->finding, "no finding is about it");
        made->cells[9] = row->from_target ? value_text(row->from_target) : value_text("");
    }
    return table;
}

/* "fsync (22%: counting rejects)": what stands against it, where somebody does. */
static const char *ledger_words(struct arena *arena, const struct hypothesis *row)
{
    const char *text = row->statement;
    const char *share = isnan(row->share) || row->share <= 0
                            ? ""
                            : arena_printf(arena, "%.*f%%", row->share < 0.0995 ? 1 : 0,
                                           row->share * 100);
    const char *against = "";
    bool seen = false;
    for (int i = 0; i < ANGLES; i++)
        seen |= row->angles[i].verdict == ANGLE_SUPPORTS;
    /* No angle has as much as it needs by itself: then it is the finding that supports it. */
    bool by_finding = !seen && row->verdict == LEDGER_SUPPORTED && row->finding;
    bool for_finding = !seen && row->verdict == LEDGER_DISPUTED && row->finding;
    if (by_finding || for_finding)
        against = arena_printf(arena, "%s%.*s%s", by_finding ? "by " : "",
                               (int)strcspn(row->finding, ":"), row->finding,
                               by_finding ? "" : " is confirmed");
    for (int i = 0; i < ANGLES && !by_finding; i++) {
        enum angle_verdict verdict = row->angles[i].verdict;
        bool told = (row->verdict == LEDGER_DISPUTED && verdict != ANGLE_SILENT) ||
                    (row->verdict == LEDGER_SUPPORTED && verdict == ANGLE_SILENT);
        if (told)
            against = arena_printf(arena, "%s%s%s %s", against, *against ? ", " : "",
                                   angle_name((enum angle)i), angle_verdict_name(verdict));
    }
    if (row->verdict == LEDGER_REJECTED || row->verdict == LEDGER_OPEN)
        share = "";
    if (!*share && !*against)
        return text;
    return arena_printf(arena, "%s (%s%s%s)", text, share, *share && *against ? "; " : "", against);
}

struct value run_ledger_brief(struct arena *arena, const struct interpretation *run)
{
    static const enum tone tones[] = {TONE_BAD, TONE_WARN, TONE_WARN, TONE_DIM, TONE_DIM};
    struct value map = value_map(arena);
    for (unsigned verdict = LEDGER_CONFIRMED; verdict <= LEDGER_OPEN; verdict++) {
        const char *line = "";
        size_t count = 0;
        for (size_t i = 0; i < run->ledger.count; i++) {
            const struct hypothesis *row = &run->ledger.rows[i];
            if (row->verdict != (enum ledger_verdict)verdict)
                continue;
            count++;
            line = arena_printf(arena, "%s%s%s", line, *line ? ", " : "", ledger_words(arena, row));
        }
        if (verdict == LEDGER_REJECTED && count > 0)
            line = arena_printf(arena, "%zu of %zu, by the numbers in ledger.json", count,
                                run->ledger.count);
        if (*line)
            value_put(&map, ledger_verdict_name((enum ledger_verdict)verdict), NULL,
                      value_tone(value_text(line), tones[verdict]));
    }
    return map;
}

/* ---- opportunities (M28) ---- */

enum {
    OPP_RANK,
    OPP_WHAT,
    OPP_WHERE,
    OPP_FORMULA,
    OPP_SCORE,
    OPP_WORTH,
    OPP_CEILING,
    OPP_SAVES,
    OPP_AFTER,
    OPP_IMPACT,
    OPP_CONFIDENCE,
    OPP_EFFORT,
    OPP_REMEDY,
    OPP_OWNER,
    OPP_CEILING_X,
    OPP_PATH_PCT,
    OPP_SAVES_MS,
    OPP_SAVES_LOW,
    OPP_SAVES_HIGH,
    OPP_AFTER_MS,
    OPP_AFTER_LOW,
    OPP_AFTER_HIGH,
    OPP_ADVICE,
    OPP_CAUTION,
};

static const struct column opportunity_columns[] = {
    [OPP_RANK] = {"rank", "#", SHOW_ALWAYS, true, false},
    [OPP_WHAT] = {"detector", "mend", SHOW_ALWAYS, false, false},
    [OPP_WHERE] = {"location", "at", SHOW_MACHINE, false, false},
    [OPP_FORMULA] = {"formula", "impact × conf. / effort = score", SHOW_PEOPLE, true, false},
    [OPP_SCORE] = {"score", "score", SHOW_MACHINE, true, false},
    [OPP_WORTH] = {"worth_doing", "worth it", SHOW_ALWAYS, false, false},
    [OPP_CEILING] = {"ceiling", "ceiling", SHOW_PEOPLE, true, false},
    [OPP_SAVES] = {"saves", "saves", SHOW_PEOPLE, true, true},
    [OPP_AFTER] = {"after", "wall time after", SHOW_PEOPLE, true, true},
    [OPP_IMPACT] = {"impact", "impact", SHOW_MACHINE, true, false},
    [OPP_CONFIDENCE] = {"confidence", "confidence", SHOW_MACHINE, true, false},
    [OPP_EFFORT] = {"effort", "effort", SHOW_MACHINE, true, false},
    [OPP_REMEDY] = {"remedy", "remedy", SHOW_MACHINE, false, false},
    [OPP_OWNER] = {"owner", "owner", SHOW_MACHINE, false, false},
    [OPP_CEILING_X] = {"amdahl_ceiling", "ceiling", SHOW_MACHINE, true, false},
    [OPP_PATH_PCT] = {"critical_path_pct", "on the path", SHOW_MACHINE, true, false},
    [OPP_SAVES_MS] = {"recoverable_ms", "saves", SHOW_MACHINE, true, false},
    [OPP_SAVES_LOW] = {"recoverable_low_ms", "low", SHOW_MACHINE, true, false},
    [OPP_SAVES_HIGH] = {"recoverable_high_ms", "high", SHOW_MACHINE, true, false},
    [OPP_AFTER_MS] = {"wall_after_ms", "after", SHOW_MACHINE, true, false},
    [OPP_AFTER_LOW] = {"wall_after_low_ms", "low", SHOW_MACHINE, true, false},
    [OPP_AFTER_HIGH] = {"wall_after_high_ms", "high", SHOW_MACHINE, true, false},
    [OPP_ADVICE] = {"advice", "advice", SHOW_MACHINE, false, false},
    [OPP_CAUTION] = {"caution", "caution", SHOW_MACHINE, false, false},
};

const char *run_ceiling_text(struct arena *arena, const struct finding *finding)
{
    return finding->ceiling < 100 ? arena_printf(arena, "%.2fx", finding->ceiling) : ">100x";
}

static void opportunity_row(struct arena *arena, const struct interpretation *run,
                            const struct finding *finding, struct value *cells)
{
    double wall = run->evidence->costs_on_path.ns;
    struct estimate after = run_after(run, finding);
    bool worth = opportunity_is_worth(finding);
    const char *none = "not known";
    cells[OPP_RANK] = value_uint(finding->rank, UNIT_NONE);
    cells[OPP_WHAT] = value_text(finding->detector);
    cells[OPP_WHERE] = value_text(place_text(arena, &finding->place));
    cells[OPP_FORMULA] = value_text(arena_printf(arena, "%.1f × %.2f / %.1f = %.1f",
                                                 finding->impact, finding->confidence,
                                                 finding->effort, finding->score));
    cells[OPP_SCORE] = value_real(round(finding->score * 100) / 100, UNIT_NONE);
    cells[OPP_WORTH] = value_tone(value_bool(worth), worth ? TONE_GOOD : TONE_PLAIN);
    cells[OPP_CEILING] = value_text(run_ceiling_text(arena, finding));
    cells[OPP_SAVES] = value_text(run_estimate_text(arena, finding->recoverable));
    cells[OPP_AFTER] = value_text(run_estimate_text(arena, after));
    cells[OPP_IMPACT] = real_or(finding->impact, none);
    cells[OPP_CONFIDENCE] = real_or(finding->confidence, none);
    cells[OPP_EFFORT] = real_or(finding->effort, none);
    cells[OPP_REMEDY] = value_text(finding_remedy_name(finding->remedy));
    cells[OPP_OWNER] = value_text(finding_owner_name(finding->place.owner));
    cells[OPP_CEILING_X] = real_or(finding->ceiling, none);
    cells[OPP_PATH_PCT] = run_pct(wall > 0 ? finding->cost_ns / wall : NAN, none);
    cells[OPP_SAVES_MS] = run_ms(finding->recoverable.ns, none);
    cells[OPP_SAVES_LOW] = run_ms(finding->recoverable.low_ns, none);
    cells[OPP_SAVES_HIGH] = run_ms(finding->recoverable.high_ns, none);
    cells[OPP_AFTER_MS] = run_ms(after.ns, none);
    cells[OPP_AFTER_LOW] = run_ms(after.low_ns, none);
    cells[OPP_AFTER_HIGH] = run_ms(after.high_ns, none);
    bool withheld = run->wrong_tools.first;
    cells[OPP_ADVICE] = withheld
                            ? value_na_printf(arena, "withheld: %s", run->wrong_tools.first->id)
                            : text_or_na(finding->advice, "nothing can be advised");
    cells[OPP_CAUTION] = text_or_na(finding->caution, "none");
}

struct value run_opportunity_table(struct arena *arena, const struct interpretation *run,
                                   size_t max)
{
    struct value table = value_table(arena, opportunity_columns, ARRAY_SIZE(opportunity_columns));
    if (table.table)
        table.table->empty = "none: no suspicion was confirmed";
    size_t shown = 0;
    for (size_t i = 0; i < run->findings.count; i++) {
        const struct finding *finding = &run->findings.items[i];
        struct table_row *row = finding_is_fix(finding) ? table_add(&table) : NULL;
        if (!row)
            continue;
        opportunity_row(arena, run, finding, row->cells);
        row->show = max > 0 && shown++ >= max ? SHOW_MACHINE : SHOW_ALWAYS;
    }
    return table;
}

struct value run_wrong_tool_table(struct arena *arena, const struct interpretation *run)
{
    static const struct column columns[] = {
        {"id", "indicator", SHOW_ALWAYS, false, false},
        {"holds", "holds", SHOW_ALWAYS, false, false},
        {"why", "numbers", SHOW_ALWAYS, false, true},
    };
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < run->wrong_tools.count; i++) {
        const struct wrong_tool *tool = &run->wrong_tools.rows[i];
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        row->cells[0] = value_text(tool->id);
        row->cells[1] = value_bool(tool->holds);
        row->cells[2] = text_or_na(tool->why, "not judged");
    }
    return table;
}
