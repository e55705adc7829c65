/* The hand-off (M27): what is slow, why, what to do about it and how to check that, for whoever
 * mends it: numbers tied to lines of source, and commands that can be typed as they are. */
#include "present/run_parts.h"

#include "present/markdown.h"
#include "present/run_screen.h"
#include "target/command.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

struct handoff {
    struct arena *arena;
    const struct interpretation *run;
    FILE *out;
    struct run_validation validation;
};

/* ---- words ---- */

/* Text with names in it: formatted, then made harmless. */
static void say(const struct handoff *handoff, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say(const struct handoff *handoff, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    markdown_text(handoff->out, str_from(text));
}

static void heading(const struct handoff *handoff, const char *title)
{
    fprintf(handoff->out, "## %s\n\n", title);
}

/* "- **Label:** text". */
static void point(const struct handoff *handoff, const char *label, const char *text)
{
    if (!text || !*text)
        return;
    fprintf(handoff->out, "- **%s:** ", label);
    say(handoff, "%s", text);
    fputc('\n', handoff->out);
}

static const char *owner_words(enum finding_owner owner)
{
    static const char *const words[FINDING_OWNERS] = {
        "whose code it is is not known", "the program's own code",
        "code of a library or of a program of the system", "code of the kernel",
        "code of an interpreter"};
    return words[owner];
}

static const char *where_text(struct arena *arena, const struct place *place)
{
    const char *source = run_source(arena, place);
    if (place->owner == FINDING_OWNER_INTERPRETER)
        return arena_printf(arena, "%.*s, %s", STR_FMT(place->function),
                            run_source_na(arena, place));
    if (place->function.len == 0)
        return *source ? source : "no one place in the program";
    return arena_printf(arena, "%.*s%s%s (%s)", STR_FMT(place->function), *source ? ", " : "",
                        source, owner_words(place->owner));
}

/* ---- the story ---- */

/* The classes with most time: "62% running, 20% disk". */
static const char *shares_text(struct arena *arena, const struct path_costs *costs)
{
    static const char *const words[WAIT_CLASS_UNKNOWN + 1] = {
        [WAIT_CLASS_RUNNING] = "running on a CPU",
        [WAIT_CLASS_RUNQ] = "ready to run without a CPU",
        [WAIT_CLASS_LOCK] = "waiting for locks",
        [WAIT_CLASS_DISK] = "waiting for the disk",
        [WAIT_CLASS_NET] = "waiting for the network",
        [WAIT_CLASS_PAGEFAULT] = "waiting for pages",
        [WAIT_CLASS_CHILD] = "waiting for other processes",
        [WAIT_CLASS_PIPE] = "waiting for the reader of a pipe",
        [WAIT_CLASS_TIMER] = "asleep",
        [WAIT_CLASS_IDLE] = "idle",
        [WAIT_CLASS_UNKNOWN] = "off the CPU for an unknown reason",
    };
    const char *text = "";
    for (size_t i = 0; i <= WAIT_CLASS_UNKNOWN && costs->ns > 0; i++) {
        double share = costs->classes[i] / costs->ns;
        if (share >= 0.01)
            text = arena_printf(arena, "%s%s%.0f%% %s", text, *text ? ", " : "", share * 100,
                                words[i]);
    }
    return *text ? arena_printf(arena, "Of it, %s", text) : "Where it goes was not recorded";
}

/* What one run takes is not known: what is divided up then. */
static const char *seen_text(struct arena *arena, const struct run_costs *costs)
{
    char seen[48];
    if (!(costs->recorded_ns > 0))
        return "What one run takes is not known";
    units_format(costs->recorded_ns, UNIT_NS, seen, sizeof(seen));
    return arena_printf(arena,
                        "What one run takes is not known: this is of %s of the recorded one%s",
                        costs->recorded_whole ? arena_printf(arena, "the %s", seen)
                                              : arena_printf(arena, "the first %s", seen),
                        costs->recorded_whole ? "" : ", which was ended then");
}

static void story(const struct handoff *handoff)
{
    const struct interpretation *run = handoff->run;
    const struct run_costs *costs = &run->evidence->costs;
    struct arena *arena = handoff->arena;
    struct estimate wall = {costs->wall_ns, costs->wall_low_ns, costs->wall_high_ns};
    size_t confirmed = run_verdicts(run, FINDING_CONFIRMED);
    fputs("# Why is it slow?\n\n", handoff->out);
    markdown_code(handoff->out, "sh", str_from(run->about.command));
    const char *runs = run->about.runs ? run->about.runs : "number of runs not known";
    const char *takes = isnan(costs->wall_ns) ? seen_text(arena, costs)
                                              : arena_printf(arena, "One run takes %s of wall time",
                                                             run_estimate_text(arena, wall));
    say(handoff, "%s (%s). %s.", takes, runs, shares_text(arena, &run->evidence->costs_on_path));
    fputs("\n\n", handoff->out);
    const struct wrong_tool *wrong = run->wrong_tools.first;
    if (wrong)
        say(handoff, "Changing code is the wrong tool here (%s: %s), so nothing is advised: %s. ",
            wrong->id, wrong->why, wrong->instead);
    for (size_t i = 0; i < confirmed && i < 3; i++) {
        const struct finding *finding = &run->findings.items[i];
        const char *source = run_source(arena, &finding->place);
        say(handoff, "%s%s%s%s. Mending it %s. ",
            i > 0   ? "Then: "
            : wrong ? "Confirmed beside it: "
                    : "First: ",
            finding->title, *source ? ", at " : "", source, run_gain_text(arena, run, finding));
    }
    const char *together = run_together_text(arena, run);
    if (together)
        say(handoff, "Mending %s.", together);
    if (confirmed == 0)
        say(handoff, "No suspicion was confirmed; dismissed: %zu, not judged: %zu.",
            run_verdicts(run, FINDING_DISMISSED), run_verdicts(run, FINDING_NOT_JUDGED));
    fputs("\n\n", handoff->out);
    point(handoff, "Stability", run->about.stability);
    point(handoff, "Output", run->about.golden);
    point(handoff, "Why this command", run->about.chosen);
    point(handoff, "Run", run->about.run_id);
    fputc('\n', handoff->out);
}

/* ---- recommendations ---- */

static void chain(const struct handoff *handoff, const struct finding *finding)
{
    fputs("**Why:**\n\n", handoff->out);
    for (size_t i = 0; i < finding->why_count; i++) {
        fprintf(handoff->out, "%zu. ", i + 1);
        say(handoff, "%s%s%s%s", finding->whys[i].text, finding->whys[i].evidence ? " (" : "",
            finding->whys[i].evidence ? finding->whys[i].evidence : "",
            finding->whys[i].evidence ? ")" : "");
        fputc('\n', handoff->out);
    }
    const char *next = run_next_look(handoff->arena, handoff->run, finding);
    fputs(finding->why_count > 0 ? "\nHere the facts end. What to look at next:\n\n"
                                 : "No reason behind it was recorded. What to look at next:\n\n",
          handoff->out);
    if (*next)
        markdown_code(handoff->out, "sh", str_from(next));
}

static void facts(const struct handoff *handoff, const struct finding *finding)
{
    for (size_t i = 0; i < finding->fact_count; i++) {
        const struct finding_fact *fact = &finding->facts[i];
        char buffer[600];
        struct str value = value_display(&fact->value, buffer, sizeof(buffer));
        fputs(i == 0 ? "**Evidence:**\n\n- " : "- ", handoff->out);
        say(handoff, "%s: %.*s%s%s%s%s%s", fact->title ? fact->title : fact->name, STR_FMT(value),
            fact->artifact ? " (" : "", fact->artifact ? fact->artifact : "",
            fact->artifact && fact->id ? " " : "", fact->artifact && fact->id ? fact->id : "",
            fact->artifact ? ")" : "");
        fputc('\n', handoff->out);
    }
    for (size_t i = 0; i < finding->affected_count; i++) {
        fputs("- ", handoff->out);
        say(handoff, "also at %s", where_text(handoff->arena, &finding->affected[i].place));
        fputc('\n', handoff->out);
    }
    if (finding->fact_count + finding->affected_count > 0)
        fputc('\n', handoff->out);
}

static void recommendation(const struct handoff *handoff, const struct finding *finding)
{
    struct arena *arena = handoff->arena;
    const struct interpretation *run = handoff->run;
    bool withheld = run->wrong_tools.first;
    fprintf(handoff->out, "### %u. ", finding->rank);
    say(handoff, "%s", finding->title);
    fputs("\n\n", handoff->out);
    point(handoff, "Where", where_text(arena, &finding->place));
    point(handoff, "Type", finding_category_name(finding->category));
    if (!withheld)
        point(handoff, "Do this",
              finding->advice ? finding->advice
                              : "nothing more exact can be advised from what was recorded");
    point(handoff, "Expected effect",
          arena_printf(arena, "wall time: %s; %s afterwards; at most %s as fast",
                       run_gain_text(arena, run, finding),
                       run_estimate_text(arena, run_after(run, finding)),
                       run_ceiling_text(arena, finding)));
    if (!withheld)
        point(handoff, "Worth",
              arena_printf(arena, "%s (%s; %s, %s)", opportunity_formula(arena, finding),
                           opportunity_is_worth(finding)         ? "worth doing, from 2.0 on"
                           : finding->score >= OPPORTUNITY_WORTH ? "not known: the interval of "
                                                                   "what it saves begins at 0"
                                                                 : "below 2.0: others first",
                           finding_remedy_name(finding->remedy),
                           finding_owner_name(finding->place.owner)));
    point(handoff, "How sure", run_verification(arena, finding));
    point(handoff, "Caution", finding->caution);
    fputc('\n', handoff->out);
    chain(handoff, finding);
    facts(handoff, finding);
    if (withheld)
        return;
    fputs("**Check it** after the change (what to keep before it is in the validation plan):\n\n",
          handoff->out);
    markdown_code(handoff->out, "sh",
                  str_from(finding->validate ? finding->validate : handoff->validation.compare));
}

static void recommendations(const struct handoff *handoff)
{
    const struct interpretation *run = handoff->run;
    heading(handoff, run->wrong_tools.first ? "Causes" : "Causes and recommendations");
    if (run_verdicts(run, FINDING_CONFIRMED) == 0)
        fputs("None was confirmed.\n\n", handoff->out);
    for (size_t i = 0; i < run->findings.count; i++)
        if (finding_is_fix(&run->findings.items[i]))
            recommendation(handoff, &run->findings.items[i]);
}

/* ---- what else there is ---- */

static void table(const struct handoff *handoff, const char *title, struct value value)
{
    heading(handoff, title);
    if (value.kind == VALUE_TABLE)
        markdown_table(handoff->out, value.table);
}

static void list(const struct handoff *handoff, const struct value *lines)
{
    for (const struct value_item *item = lines->items ? lines->items->first : NULL; item;
         item = item->next) {
        fputs("- ", handoff->out);
        markdown_text(handoff->out, item->value.text);
        fputc('\n', handoff->out);
    }
    fputc('\n', handoff->out);
}

static void dismissed(const struct handoff *handoff)
{
    const struct interpretation *run = handoff->run;
    heading(handoff, "Looked into and dismissed, or not judged");
    size_t told = 0;
    for (size_t i = 0; i < run->findings.count; i++) {
        const struct finding *finding = &run->findings.items[i];
        if (finding->class != FINDING_FIX || finding->verdict == FINDING_CONFIRMED)
            continue;
        told++;
        fputs("- ", handoff->out);
        say(handoff, "%s, %s: %s", finding->detector, finding_verdict_name(finding->verdict),
            finding->reason ? finding->reason : "no reason was given");
        fputc('\n', handoff->out);
    }
    fputs(told > 0 ? "\n" : "Nothing.\n\n", handoff->out);
}

/* Beside what can be fixed: never among it. Nothing of it: said, too. */
static void apart(const struct handoff *handoff, enum finding_class class)
{
    const struct interpretation *run = handoff->run;
    bool environment = class == FINDING_ENVIRONMENT;
    struct value lines;
    heading(handoff, environment ? "Environment: not the program's, and not ranked"
                                 : "Context: true, but no fix follows from it");
    if (run_apart_lines(handoff->arena, run, class, &lines) > 0)
        list(handoff, &lines);
    for (size_t i = 0; i < run->findings.count; i++) {
        const struct finding *finding = &run->findings.items[i];
        if (finding->class != class)
            continue;
        fputs("- ", handoff->out);
        say(handoff, "%s, %s: %s", finding->detector, finding_verdict_name(finding->verdict),
            run_verification(handoff->arena, finding));
        fputc('\n', handoff->out);
    }
    fputs("\n", handoff->out);
}

static void plan(const struct handoff *handoff)
{
    const struct run_validation *validation = &handoff->validation;
    struct arena *arena = handoff->arena;
    const struct run_about *about = &handoff->run->about;
    heading(handoff, "Validation plan");
    fputs("One change at a time. Before anything is changed, keep what there is now:\n\n",
          handoff->out);
    markdown_code(handoff->out, "sh", str_from(validation->before));
    fputs("After each change, build, and see whether the gain is the expected one:\n\n",
          handoff->out);
    markdown_code(handoff->out, "sh", str_from(validation->compare));
    fputs("Before it goes in, and in CI from then on (0: pass, 1: fail, 3: inconclusive):\n\n",
          handoff->out);
    markdown_code(handoff->out, "sh", str_from(validation->gate));
    fputs("Then measure again what is left, with the same scenario:\n\n", handoff->out);
    char *argv[] = {(char *)"whyslow", (char *)"run", (char *)"--scenario",
                    (char *)arena_printf(arena, "%s/scenario.toml", about->folder), NULL};
    markdown_code(handoff->out, "sh", str_from(command_quote(arena, argv)));
}

void run_handoff_draw(struct arena *arena, const struct interpretation *run, FILE *out)
{
    struct handoff handoff = {
        .arena = arena, .run = run, .out = out, .validation = run_validate(arena, run)};
    story(&handoff);
    recommendations(&handoff);
    plan(&handoff);
    table(&handoff, "Where the wall time goes", run_screen_time(arena, run));
    table(&handoff, "Hotspots", run_hotspot_table(arena, run, 20));
    apart(&handoff, FINDING_ENVIRONMENT);
    apart(&handoff, FINDING_CONTEXT);
    table(&handoff, "Hypotheses", run_ledger_table(arena, run));
    dismissed(&handoff);
    if (run->wrong_tools.count > 0)
        table(&handoff, "Is changing code the right tool?", run_wrong_tool_table(arena, run));
    heading(&handoff, "How far to trust this, and what was not measured");
    struct value honesty = run_screen_honesty(arena, run);
    list(&handoff, &honesty);
    fputs(
        "Standard input was /dev/null unless a file was named; what the program printed was hashed "
        "and thrown away; children that were waited for are counted.\n",
        out);
}
