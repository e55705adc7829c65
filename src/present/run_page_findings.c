/* Findings on the page: each opens to what it rests on. */
#include "analyze/opportunity.h"
#include "present/html_parts.h"
#include "present/markup.h"
#include "present/renderers.h"
#include "present/run_page_parts.h"
#include "present/run_parts.h"

#include <math.h>
#include <string.h>

static const struct {
    char letter; /* ids of a recording begin with it; 0: any other */
    const char *artifact;
    const char *command;
} looks[] = {
    {'f', "recording.whyslow", "whyslow report --callers"},
    {'l', "recording.whyslow", "whyslow locks --lock"},
    {'w', "recording.whyslow", "whyslow waits --stack"},
    {0, "recording.whyslow", "whyslow waits"},
    {0, "recording-io.whyslow", "whyslow io"},
    {0, "recording-heap.whyslow", "whyslow heap"},
};

/* The command that shows what a fact comes from; NULL for what is no recording. */
static const char *look_of(struct arena *arena, const char *folder, const struct finding_fact *fact)
{
    const char *id = fact->id ? fact->id : "";
    bool numbered = id[0] && id[1] && strspn(id + 1, "0123456789") == strlen(id + 1);
    for (size_t i = 0; fact->artifact && i < ARRAY_SIZE(looks); i++) {
        if (strcmp(looks[i].artifact, fact->artifact) != 0 ||
            (looks[i].letter && !(numbered && id[0] == looks[i].letter)))
            continue;
        return arena_printf(arena, "%s%s%s %s%s%s", looks[i].command, looks[i].letter ? " " : "",
                            looks[i].letter ? id : "", folder ? folder : "", folder ? "/" : "",
                            fact->artifact);
    }
    return NULL;
}

/* Once each. */
static void put_looks(FILE *out, struct arena *arena, const char *folder,
                      const struct finding *finding)
{
    fputs("<p class=\"looks\">", out);
    for (size_t i = 0; i < finding->fact_count; i++) {
        const char *command = look_of(arena, folder, &finding->facts[i]);
        bool told = !command;
        for (size_t j = 0; j < i && !told; j++) {
            const char *before = look_of(arena, folder, &finding->facts[j]);
            told = before && strcmp(before, command) == 0;
        }
        if (told)
            continue;
        fputs("<code class=\"command\">", out);
        markup_text(out, str_from(command));
        fputs("</code>\n", out);
    }
    fputs("</p>\n", out);
}

static void put_facts(FILE *out, struct arena *arena, const struct interpretation *run,
                      const struct finding *finding)
{
    char buffer[MARKUP_TEXT_BYTES_MAX];
    if (finding->fact_count == 0)
        return;
    fputs("<h4>Numbers, and where they come from</h4>\n<div class=\"table\"><table><thead><tr>"
          "<th scope=\"col\">fact</th><th scope=\"col\" class=\"right\">value</th>"
          "<th scope=\"col\">source</th></tr></thead>\n<tbody>\n",
          out);
    for (size_t i = 0; i < finding->fact_count; i++) {
        const struct finding_fact *fact = &finding->facts[i];
        fputs("<tr><td class=\"wrap\">", out);
        markup_text(out, str_from(fact->title ? fact->title : fact->name));
        fputs("</td><td class=\"right\">", out);
        markup_text(out, value_display(&fact->value, buffer, sizeof(buffer)));
        fputs("</td><td class=\"wrap\">", out);
        markup_text(out, str_from(fact->artifact ? fact->artifact : "n/a: not said"));
        if (fact->id) {
            fputs(" <b>", out);
            markup_text(out, str_from(fact->id));
            fputs("</b>", out);
        }
        fputs("</td></tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
    put_looks(out, arena, run->about.folder, finding);
}

static void put_angles(FILE *out, const struct finding *finding)
{
    static const char *const marks[] = {
        [ANGLE_SILENT] = "–", [ANGLE_SUPPORTS] = "✓", [ANGLE_REJECTS] = "✗"};
    static const char *const classes[] = {
        [ANGLE_SILENT] = "dim", [ANGLE_SUPPORTS] = "good", [ANGLE_REJECTS] = "bad"};
    fputs("<h4>Three independent angles</h4>\n<ul class=\"angles\">\n", out);
    for (int i = 0; i < ANGLES; i++) {
        const struct angle_word *word = &finding->angles[i];
        fprintf(out, "<li class=\"%s\"><span aria-hidden=\"true\">%s</span> <b>%s</b> %s",
                classes[word->verdict], marks[word->verdict], angle_name((enum angle)i),
                word->verdict == ANGLE_SILENT ? "cannot say" : angle_verdict_name(word->verdict));
        if (word->text) {
            fputs(": ", out);
            markup_text(out, str_from(word->text));
        }
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
}

static void put_command(FILE *out, const char *what, const char *command)
{
    if (!command || !command[0])
        return;
    fprintf(out, "<p>%s: <code class=\"command\">", what);
    markup_text(out, str_from(command));
    fputs("</code></p>\n", out);
}

static void put_whys(FILE *out, struct arena *arena, const struct interpretation *run,
                     const struct finding *finding)
{
    if (finding->why_count > 0) {
        fputs("<h4>Why</h4>\n<ol class=\"whys\">\n", out);
        for (size_t i = 0; i < finding->why_count; i++) {
            fputs("<li>", out);
            markup_text(out, str_from(finding->whys[i].text));
            if (finding->whys[i].evidence) {
                fputs(" <code class=\"source\">", out);
                markup_text(out, str_from(finding->whys[i].evidence));
                fputs("</code>", out);
            }
            fputs("</li>\n", out);
        }
        fputs("</ol>\n", out);
    }
    put_command(out, "Measure next", run_next_look(arena, run, finding));
}

static void put_affected(FILE *out, struct arena *arena, const struct finding *finding)
{
    if (finding->affected_count == 0)
        return;
    fputs("<h4>The same elsewhere</h4>\n<ul>\n", out);
    for (size_t i = 0; i < finding->affected_count; i++) {
        const struct finding_affected *affected = &finding->affected[i];
        char time[48];
        fputs("<li><code>", out);
        markup_text(out, str_from(place_text(arena, &affected->place)));
        fprintf(out, "</code>, %s",
                isfinite(affected->recoverable_ns)
                    ? units_format(affected->recoverable_ns, UNIT_NS, time, sizeof(time))
                    : "n/a: not known");
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
}

static void put_worth(FILE *out, struct arena *arena, const struct interpretation *run,
                      const struct finding *finding)
{
    fputs("<h4>What it is worth</h4>\n<p>", out);
    markup_text(out, str_from(opportunity_formula(arena, finding)));
    if (isfinite(finding->ceiling) && finding->ceiling > 0)
        fprintf(out, "; at most %.2f times as fast if all of its cost went away", finding->ceiling);
    fputs("</p>\n", out);
    struct run_validation usual = run_validate(arena, run);
    if (!finding->validate)
        put_command(out, "Before anything is changed", usual.before);
    put_command(out, "Check the effect", finding->validate ? finding->validate : usual.compare);
}

/* How much of the wall time it is. */
static void put_share(FILE *out, const struct interpretation *run, const struct finding *finding)
{
    double share = finding->recoverable.ns / run->evidence->costs_on_path.ns * 100;
    if (!isfinite(share) || share <= 0)
        return;
    fprintf(out,
            "<svg class=\"share\" viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" "
            "aria-hidden=\"true\"><rect class=\"rest\" width=\"100\" height=\"4\"/>"
            "<rect width=\"%.1f\" height=\"4\"/></svg><span class=\"dim\">%.0f%% of the wall "
            "time</span>\n",
            fmin(share, 100), share);
}

static void put_confirmed(FILE *out, struct arena *arena, const struct interpretation *run,
                          const struct finding *finding)
{
    fprintf(out,
            "<details class=\"finding\" id=\"finding-%u\"%s>\n<summary><span class=\"rank\">"
            "%u</span><span class=\"what\"><span class=\"title\">",
            finding->rank, finding->rank == 1 ? " open" : "", finding->rank);
    markup_text(out, str_from(finding->title));
    fputs("</span><span class=\"place\">", out);
    if (finding->place.function.len > 0) {
        markup_text(out, str_from(place_text(arena, &finding->place)));
        fputs(" · ", out);
    }
    fprintf(out, "%s · ", finding_category_name(finding->category));
    markup_text(out, str_from(finding->detector));
    fputs("</span></span><span class=\"gain\"><span>saves ", out);
    page_estimate(out, &finding->recoverable);
    fputs("</span>", out);
    put_share(out, run, finding);
    fputs("</span></summary>\n<div class=\"body\">\n", out);
    /* Where changing code is the wrong tool, nothing is advised (M26). */
    if (!run->wrong_tools.first) {
        page_text(out, "p", "advice", finding->advice);
        page_text(out, "p", "warn", finding->caution);
    }
    put_whys(out, arena, run, finding);
    put_angles(out, finding);
    put_facts(out, arena, run, finding);
    put_affected(out, arena, finding);
    put_worth(out, arena, run, finding);
    fputs("</div>\n</details>\n", out);
}

/* What is stated apart has a section of the screen. */
static bool is_other(const struct finding *finding, enum finding_verdict verdict)
{
    return finding->class == FINDING_FIX && finding->verdict == verdict;
}

static void put_others(FILE *out, struct arena *arena, const struct interpretation *run,
                       enum finding_verdict verdict, const char *what)
{
    size_t count = 0;
    for (size_t i = 0; i < run->findings.count; i++)
        count += is_other(&run->findings.items[i], verdict);
    if (count == 0)
        return;
    fprintf(out,
            "<details class=\"others\"><summary>%zu %s</summary>\n<div class=\"table\">"
            "<table><thead><tr><th scope=\"col\">suspicion</th><th scope=\"col\">what</th>"
            "<th scope=\"col\">why not</th><th scope=\"col\">where</th></tr></thead>\n<tbody>\n",
            count, what);
    for (size_t i = 0; i < run->findings.count; i++) {
        const struct finding *finding = &run->findings.items[i];
        if (!is_other(finding, verdict))
            continue;
        const char *cells[] = {finding->detector, finding->title, finding->reason,
                               finding->place.function.len > 0 ? place_text(arena, &finding->place)
                                                               : ""};
        fputs("<tr>", out);
        for (size_t j = 0; j < ARRAY_SIZE(cells); j++) {
            fputs(j == 0 ? "<td>" : "<td class=\"wrap\">", out);
            markup_text(out, str_from(cells[j] ? cells[j] : ""));
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div></details>\n", out);
}

void page_findings(FILE *out, const struct interpretation *run)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    size_t confirmed = 0;
    fputs("<section id=\"findings\" aria-labelledby=\"findings-title\">\n"
          "<h2 id=\"findings-title\">Findings</h2>\n",
          out);
    for (size_t i = 0; i < run->findings.count; i++) {
        if (!finding_is_fix(&run->findings.items[i]))
            continue;
        put_confirmed(out, &arena, run, &run->findings.items[i]);
        confirmed++;
    }
    if (confirmed == 0)
        html_note(out, "none is confirmed");
    put_others(out, &arena, run, FINDING_DISMISSED, "dismissed, with the numbers that decide it");
    put_others(out, &arena, run, FINDING_NOT_JUDGED, "not judged: what they need was not measured");
    fputs("</section>\n", out);
}
