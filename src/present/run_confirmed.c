/* Suspicions: all of them with what they rest on, for machines; those that were confirmed with
 * their why-chains, for people. */
#include "analyze/places.h"
#include "base/text.h"
#include "present/run_tables.h"
#include "target/command.h"

#include <math.h>
#include <string.h>

size_t run_verdicts(const struct interpretation *run, enum finding_verdict verdict)
{
    size_t count = 0;
    for (size_t i = 0; i < run->findings.count; i++)
        count += run->findings.items[i].class == FINDING_FIX &&
                 run->findings.items[i].verdict == verdict;
    return count;
}

/* "/src/build/../a.c" as people write it: "/src/a.c". Compilers leave the way they went. */
static struct str path_straight(struct arena *arena, struct str path)
{
    const char *made = arena_dup_len(arena, path.data ? path.data : "", path.len);
    for (char *up; (up = strstr((char *)made, "/../"));) {
        char *before = up;
        while (before > made && before[-1] != '/')
            before--;
        /* Nothing before it to go back to, or a way up itself. */
        if (before == made || before == up || strncmp(before, "..", 2) == 0)
            break;
        memmove(before, up + 4, strlen(up + 4) + 1);
    }
    return str_from(made);
}

const char *run_source_na(struct arena *arena, const struct place *place)
{
    const char *language = place_interpreted(place->image);
    struct str name = place->image;
    for (struct str path = place->image; path.len > 0;)
        name = str_cut(&path, '/');
    if (place->owner != FINDING_OWNER_INTERPRETER || !language)
        return "not known";
    return arena_printf(arena, "in the interpreter (%.*s); which line of %s is not known yet",
                        STR_FMT(name), language);
}

const char *run_source(struct arena *arena, const struct place *place)
{
    if (place->owner == FINDING_OWNER_INTERPRETER)
        return "";
    if (place->file.len > 0 && place->line > 0)
        return arena_printf(arena, "%.*s:%u", STR_FMT(path_straight(arena, place->file)),
                            place->line);
    struct str known = place->file.len > 0 ? place->file : place->image;
    return arena_dup_len(arena, known.data ? known.data : "", known.len);
}

/* Two lines of a usual terminal; the hand-off has all of a chain. */
enum { CHAIN_COLUMNS_MAX = 220 };

const char *run_why_line(struct arena *arena, const struct finding *finding)
{
    /* The first level says what is slow: the title has said so already. */
    size_t first = finding->why_count > 2, last = finding->why_count;
    const char *line = "";
    for (size_t i = first; i < last; i++)
        line = arena_printf(arena, "%s%s%s", line, *line ? " → " : "", finding->whys[i].text);
    if (text_width(str_from(line)) <= CHAIN_COLUMNS_MAX || last - first < 3)
        return line;
    return arena_printf(arena, "%s → … → %s", finding->whys[first].text,
                        finding->whys[last - 1].text);
}

/* A recording by its file name, wherever it is said to be, becomes the path to it from here. */
static struct str path_to(struct arena *arena, const struct interpretation *run, struct str word)
{
    struct str name = word;
    for (struct str path = word; path.len > 0;)
        name = str_cut(&path, '/');
    for (int i = 0; i < AXES; i++) {
        const struct axis_state *axis = &run->evidence->axes[i];
        if (axis->artifact && axis->path && str_is(name, axis->artifact)) {
            char *argv[] = {(char *)axis->path, NULL};
            return str_from(command_quote(arena, argv));
        }
    }
    return word;
}

/* A path that was put in as it is may have blanks in it: first back to the bare name. */
static const char *paths_bare(struct arena *arena, const struct interpretation *run,
                              const char *command)
{
    for (int i = 0; i < AXES; i++) {
        const struct axis_state *axis = &run->evidence->axes[i];
        const char *at = axis->artifact && axis->path ? strstr(command, axis->path) : NULL;
        if (at)
            command = arena_printf(arena, "%.*s%s%s", (int)(at - command), command, axis->artifact,
                                   at + strlen(axis->path));
    }
    return command;
}

static const char *next_typed(struct arena *arena, const struct interpretation *run,
                              const char *command)
{
    const char *made = "";
    struct str rest = str_from(paths_bare(arena, run, command));
    while (rest.len > 0) {
        struct str word = path_to(arena, run, str_cut(&rest, ' '));
        made = arena_printf(arena, "%s%s%.*s", made, *made ? " " : "", STR_FMT(word));
    }
    return made;
}

const char *run_next_look(struct arena *arena, const struct interpretation *run,
                          const struct finding *finding)
{
    static const struct {
        unsigned axis;
        enum axis of;
        const char *command;
    } looks[] = {
        {AXIS_BIT_IO, AXIS_IO, "io"},
        {AXIS_BIT_HEAP, AXIS_HEAP, "heap"},
        {AXIS_BIT_WAITS, AXIS_WAITS, "waits"},
        {AXIS_BIT_CPU, AXIS_CPU, "report"},
    };
    if (finding->measure_next)
        return next_typed(arena, run, finding->measure_next);
    for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
        const struct axis_state *axis = &run->evidence->axes[looks[i].of];
        if (!(finding->axes & looks[i].axis) || axis->na || !axis->path)
            continue;
        const char *command = finding->category == CATEGORY_LOCK && looks[i].of == AXIS_WAITS
                                  ? "locks"
                                  : looks[i].command;
        char *argv[] = {(char *)"whyslow", (char *)command, (char *)axis->path, NULL};
        return command_quote(arena, argv);
    }
    return "";
}

const char *run_verification(struct arena *arena, const struct finding *finding)
{
    if (finding->verdict != FINDING_CONFIRMED)
        return finding->reason ? finding->reason : "no reason was given";
    const char *text = "";
    unsigned supports = 0;
    for (int i = 0; i < ANGLES; i++) {
        const struct angle_word *word = &finding->angles[i];
        supports += word->verdict == ANGLE_SUPPORTS;
        if (word->verdict != ANGLE_SILENT || word->text)
            text = arena_printf(arena, "%s%s%s %s%s%s", text, *text ? "; " : "",
                                angle_name((enum angle)i), angle_verdict_name(word->verdict),
                                word->text ? ": " : "", word->text ? word->text : "");
    }
    return *text ? arena_printf(arena, "%u of 3 angles support it: %s", supports, text)
                 : "no second angle was asked";
}

struct value run_facts_list(struct arena *arena, const struct finding *finding)
{
    struct value list = value_list(arena);
    for (size_t i = 0; i < finding->fact_count; i++) {
        const struct finding_fact *fact = &finding->facts[i];
        struct value *one = value_append(&list, value_map(arena));
        value_put(one, "name", NULL, value_text(fact->name));
        value_put(one, "title", NULL, value_text(fact->title ? fact->title : fact->name));
        value_put(one, "value", NULL, fact->value);
        if (fact->value.about)
            value_put(one, "estimated", NULL, value_bool(true));
        value_put(one, "artifact", NULL,
                  fact->artifact ? value_text(fact->artifact) : value_na("it is in none"));
        value_put(one, "id", NULL, fact->id ? value_text(fact->id) : value_na("it has none"));
    }
    return list;
}

/* By name, for whoever knows what to look for. */
struct value run_facts_map(struct arena *arena, const struct finding *finding)
{
    struct value facts = value_map(arena);
    for (size_t i = 0; i < finding->fact_count; i++)
        if (!value_get(&facts, finding->facts[i].name))
            value_put(&facts, finding->facts[i].name, finding->facts[i].title,
                      finding->facts[i].value);
    return facts;
}

static struct value whys_list(struct arena *arena, const struct finding *finding)
{
    struct value list = value_list(arena);
    for (size_t i = 0; i < finding->why_count; i++) {
        struct value *one = value_append(&list, value_map(arena));
        value_put(one, "level", NULL, value_uint(i + 1, UNIT_NONE));
        value_put(one, "text", NULL, value_text(finding->whys[i].text));
        value_put(one, "evidence", NULL,
                  finding->whys[i].evidence ? value_text(finding->whys[i].evidence)
                                            : value_na("none was named"));
    }
    return list;
}

struct value run_affected_list(struct arena *arena, const struct finding *finding)
{
    struct value list = value_list(arena);
    for (size_t i = 0; i < finding->affected_count; i++) {
        const struct finding_affected *step = &finding->affected[i];
        struct value *one = value_append(&list, value_map(arena));
        value_put(one, "location", NULL, value_text(place_text(arena, &step->place)));
        value_put(one, "source", NULL, value_text(run_source(arena, &step->place)));
        value_put(one, "recoverable_ms", NULL, run_ms(step->recoverable_ns, "not known"));
        value_put(one, "occurrences", NULL, value_uint(step->occurrences, UNIT_COUNT));
    }
    return list;
}

enum {
    SUS_RANK,
    SUS_DETECTOR,
    SUS_VERDICT,
    SUS_TITLE,
    SUS_MS,
    SUS_LOW,
    SUS_HIGH,
    SUS_WHERE,
    SUS_SOURCE,
    SUS_OWNER,
    SUS_REASON,
    SUS_CATEGORY,
    SUS_OCCURRENCES,
    SUS_COST,
    SUS_CONFIDENCE,
    SUS_FACTS,
    SUS_EVIDENCE,
    SUS_ANGLES,
    SUS_WHY,
    SUS_NEXT,
    SUS_ADVICE,
    SUS_CAUTION,
    SUS_NOTE,
    SUS_AFFECTED,
};

static const struct column suspicion_columns[] = {
    [SUS_RANK] = {"rank", "#", SHOW_ALWAYS, true, false},
    [SUS_DETECTOR] = {"detector", "suspicion", SHOW_ALWAYS, false, false},
    [SUS_VERDICT] = {"verdict", "verdict", SHOW_ALWAYS, false, false},
    [SUS_TITLE] = {"title", "what", SHOW_ALWAYS, false, true},
    [SUS_MS] = {"recoverable_ms", "recoverable", SHOW_ALWAYS, true, false},
    [SUS_LOW] = {"recoverable_low_ms", "low", SHOW_MACHINE, true, false},
    [SUS_HIGH] = {"recoverable_high_ms", "high", SHOW_MACHINE, true, false},
    [SUS_WHERE] = {"location", "where", SHOW_ALWAYS, false, true},
    [SUS_SOURCE] = {"source", "source", SHOW_MACHINE, false, false},
    [SUS_OWNER] = {"owner", "owner", SHOW_MACHINE, false, false},
    [SUS_REASON] = {"reason", "reason", SHOW_ALWAYS, false, true},
    [SUS_CATEGORY] = {"category", "category", SHOW_MACHINE, false, false},
    [SUS_OCCURRENCES] = {"occurrences", "occurrences", SHOW_MACHINE, true, false},
    [SUS_COST] = {"cost_ms", "cost", SHOW_MACHINE, true, false},
    [SUS_CONFIDENCE] = {"confidence", "confidence", SHOW_MACHINE, true, false},
    [SUS_FACTS] = {"facts", "facts", SHOW_MACHINE, false, false},
    [SUS_EVIDENCE] = {"evidence", "evidence", SHOW_MACHINE, false, false},
    [SUS_ANGLES] = {"angles", "angles", SHOW_MACHINE, false, false},
    [SUS_WHY] = {"why", "why", SHOW_MACHINE, false, false},
    [SUS_NEXT] = {"measure_next", "next", SHOW_MACHINE, false, false},
    [SUS_ADVICE] = {"advice", "advice", SHOW_MACHINE, false, false},
    [SUS_CAUTION] = {"caution", "caution", SHOW_MACHINE, false, false},
    [SUS_NOTE] = {"verification_note", "verified", SHOW_MACHINE, false, false},
    [SUS_AFFECTED] = {"affected_steps", "affected", SHOW_MACHINE, false, false},
};

static struct value text_or(const char *text, const char *reason)
{
    return text && *text ? value_text(text) : value_na(reason);
}

static void suspicion_row(struct arena *arena, const struct interpretation *run,
                          const struct finding *finding, struct value *cells)
{
    const char *none = finding->verdict == FINDING_NOT_JUDGED ? "not judged" : "not known";
    bool confirmed = finding->verdict == FINDING_CONFIRMED;
    bool withheld = run->wrong_tools.first;
    cells[SUS_RANK] = value_uint(finding->rank, UNIT_NONE);
    cells[SUS_DETECTOR] = value_text(finding->detector);
    cells[SUS_VERDICT] = value_text(finding_verdict_name(finding->verdict));
    cells[SUS_TITLE] = value_text(finding->title ? finding->title : "");
    cells[SUS_MS] = run_ms(finding->recoverable.ns, none);
    cells[SUS_LOW] = run_ms(finding->recoverable.low_ns, none);
    cells[SUS_HIGH] = run_ms(finding->recoverable.high_ns, none);
    cells[SUS_WHERE] = value_text(place_text(arena, &finding->place));
    cells[SUS_SOURCE] = text_or(run_source(arena, &finding->place),
                                run_source_na(arena, &finding->place));
    cells[SUS_OWNER] = value_text(finding_owner_name(finding->place.owner));
    cells[SUS_REASON] = value_text(finding->reason ? finding->reason : "");
    cells[SUS_CATEGORY] = value_text(finding_category_name(finding->category));
    cells[SUS_OCCURRENCES] = value_uint(finding->occurrences, UNIT_COUNT);
    cells[SUS_COST] = run_ms(finding->cost_ns, none);
    cells[SUS_CONFIDENCE] = confirmed ? value_real(finding->confidence, UNIT_NONE)
                                      : value_na("not confirmed");
    cells[SUS_FACTS] = run_facts_map(arena, finding);
    cells[SUS_EVIDENCE] = run_facts_list(arena, finding);
    cells[SUS_ANGLES] = run_angles(arena, finding->angles);
    cells[SUS_WHY] = whys_list(arena, finding);
    cells[SUS_NEXT] = text_or(run_next_look(arena, run, finding), "nothing shows more");
    cells[SUS_ADVICE] = !confirmed ? value_na("not confirmed")
                        : withheld
                            ? value_na_printf(arena, "withheld: %s", run->wrong_tools.first->id)
                            : text_or(finding->advice, "nothing can be advised");
    cells[SUS_CAUTION] = text_or(finding->caution, "none");
    cells[SUS_NOTE] = value_text(run_verification(arena, finding));
    cells[SUS_AFFECTED] = run_affected_list(arena, finding);
}

struct value run_suspicion_table(struct arena *arena, const struct interpretation *run)
{
    struct value table = value_table(arena, suspicion_columns, ARRAY_SIZE(suspicion_columns));
    for (size_t i = 0; i < run->findings.count; i++) {
        bool apart = run->findings.items[i].class != FINDING_FIX;
        struct table_row *row = apart ? NULL : table_add(&table);
        if (row)
            suspicion_row(arena, run, &run->findings.items[i], row->cells);
    }
    return table;
}

/* Rows below the title of a finding: the chain, or what to look at where there is none. */
static void confirmed_more(struct value *table, const char *text)
{
    struct table_row *row = table_add(table);
    if (!row)
        return;
    row->cells[0] = value_text("");
    row->cells[1] = value_tone(value_text(text), TONE_DIM);
}

struct value run_confirmed_table(struct arena *arena, const struct interpretation *run, size_t max)
{
    static const struct column columns[] = {
        {"rank", "#", SHOW_ALWAYS, true, false},
        {"what", "what, and why", SHOW_ALWAYS, false, true},
    };
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    if (table.table)
        table.table->empty = "none";
    size_t shown = 0;
    for (size_t i = 0; i < run->findings.count; i++) {
        const struct finding *finding = &run->findings.items[i];
        if (!finding_is_fix(finding) || (max > 0 && shown == max))
            continue;
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        shown++;
        row->cells[0] = value_uint(finding->rank, UNIT_NONE);
        const char *title = run_paths_shortened(arena, finding->title);
        /* What is only in the way of knowing saves nothing by itself. */
        if (finding->recoverable.ns > 0)
            title = arena_printf(arena, "%s; mending saves %s", title,
                                 run_estimate_text(arena, finding->recoverable));
        row->cells[1] = value_tone(value_text(title),
                                   opportunity_is_worth(finding) ? TONE_BAD : TONE_WARN);
        const char *chain = run_why_line(arena, finding);
        confirmed_more(&table, *chain ? arena_printf(arena, "why: %s", chain)
                                      : arena_printf(arena, "why: the facts end here; look with %s",
                                                     run_next_look(arena, run, finding)));
    }
    return table;
}
