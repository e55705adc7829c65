/* How far a run can be trusted (M29): coverage, losses, what measuring cost, what is missing. */
#include "present/run_screen.h"
#include "present/run_tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Axes of one recording are one run: told once. */
static const char *axes_of(struct arena *arena, const struct evidence *evidence,
                           const char *artifact)
{
    const char *names = "";
    for (int i = 0; i < AXES; i++) {
        const struct axis_state *axis = &evidence->axes[i];
        if (!axis->na && axis->artifact && strcmp(axis->artifact, artifact) == 0)
            names = arena_printf(arena, "%s%s%s", names, *names ? " and " : "",
                                 axis_name((enum axis)i));
    }
    return names;
}

static bool told_before(const struct evidence *evidence, int index)
{
    for (int i = 0; i < index; i++)
        if (!evidence->axes[i].na && evidence->axes[i].artifact &&
            strcmp(evidence->axes[i].artifact, evidence->axes[index].artifact) == 0)
            return true;
    return false;
}

static const char *overhead_text(struct arena *arena, const struct evidence *evidence)
{
    const char *text = "";
    for (int i = 0; i < AXES; i++) {
        const struct axis_state *axis = &evidence->axes[i];
        if (axis->na || !axis->artifact || told_before(evidence, i))
            continue;
        const char *names = axes_of(arena, evidence, axis->artifact);
        const char *much = isnan(axis->overhead)
                               ? arena_printf(arena, "n/a: %s",
                                              axis->overhead_na ? axis->overhead_na : "not known")
                               : arena_printf(arena, "%+.1f%%", axis->overhead * 100);
        text = arena_printf(arena, "%s%s%s %s%s", text, *text ? ", " : "", names, much,
                            axis->disturbed ? " (above 20%: its times rank nothing)" : "");
    }
    return *text ? text : "n/a: no run was recorded";
}

static void figure(struct arena *arena, const char **text, const char *title,
                   const struct honesty_figure *count, const struct honesty_figure *lost,
                   const char *word)
{
    char number[48], gone[48];
    if (!count->known)
        return;
    units_format((double)count->value, UNIT_COUNT, number, sizeof(number));
    units_format((double)lost->value, UNIT_COUNT, gone, sizeof(gone));
    *text = arena_printf(arena, "%s%s%s: %s (%s %s)", *text, **text ? ", " : "", title, number,
                         lost->known ? gone : "n/a", word);
}

static const char *seen_text(struct arena *arena, const struct evidence *evidence)
{
    const struct io_honesty *io = &evidence->io_honesty;
    const char *text = evidence_has(evidence, AXIS_IO) ? io_honesty_unattributed(arena, io) : "";
    if (evidence_has(evidence, AXIS_CPU)) {
        const struct honesty *cpu = &evidence->cpu_honesty;
        figure(arena, &text, "samples", &cpu->samples, &cpu->lost, "lost");
        if (cpu->samples.known && cpu->truncated.known && cpu->samples.value > 0)
            text = arena_printf(arena, "%s, %.1f%% of their stacks cut short", text,
                                100.0 * (double)cpu->truncated.value / (double)cpu->samples.value);
    }
    if (evidence_has(evidence, AXIS_WAITS))
        figure(arena, &text, "waits", &evidence->wait_honesty.seen, &evidence->wait_honesty.lost,
               "lost");
    if (evidence_has(evidence, AXIS_IO))
        figure(arena, &text, "calls", &io->calls, &io->lost, io_honesty_lost_word(io));
    if (evidence_has(evidence, AXIS_HEAP))
        figure(arena, &text, "stacks of the heap", &evidence->heap_honesty.stacks,
               &evidence->heap_honesty.lost, "lost");
    if (evidence_has(evidence, AXIS_HEAP) && evidence->axes[AXIS_HEAP].sampled)
        text = arena_printf(arena,
                            "%s%sallocations are sampled: what is said of the heap are estimates",
                            text, *text ? "; " : "");
    return *text ? text : "n/a: nothing was recorded";
}

double run_unseen_ns(const struct path_costs *costs)
{
    double rest = costs->ns;
    for (size_t i = 0; i <= WAIT_CLASS_UNKNOWN; i++)
        rest -= costs->classes[i];
    return rest > costs->ns * 1e-6 ? rest : 0; /* less is rounding */
}

static const char *coverage_text(struct arena *arena, const struct path_costs *costs)
{
    char unseen[48];
    if (!(costs->ns > 0))
        return "n/a: no wall time";
    double unseen_ns = run_unseen_ns(costs), placed_ns = 0;
    for (size_t i = 0; i < costs->count; i++)
        placed_ns += costs->rows[i].stack ? costs->rows[i].ns : 0;
    units_format(unseen_ns, UNIT_NS, unseen, sizeof(unseen));
    return arena_printf(arena,
                        "%.1f%% of the wall time was seen (%s unseen), %.1f%% with a stack%s%s",
                        (1 - unseen_ns / costs->ns) * 100, unseen, placed_ns / costs->ns * 100,
                        costs->na ? "; no critical path, samples of all threads stand in: " : "",
                        costs->na ? costs->na : "");
}

static void lines_add(struct arena *arena, struct value *list, const char *label,
                      const char *const *lines, enum tone tone)
{
    for (; lines && *lines; lines++)
        value_append(list,
                     value_tone(value_text(arena_printf(arena, "%s: %s", label, *lines)), tone));
}

static void line_add(struct arena *arena, struct value *list, const char *label, const char *text)
{
    value_append(list, value_text(arena_printf(arena, "%s: %s", label, text)));
}

/* A step that was not finished has told of its axes already. */
static bool is_told(const char *const *lines, const char *reason)
{
    for (; lines && *lines; lines++)
        if (strstr(*lines, reason))
            return true;
    return false;
}

struct value run_screen_honesty(struct arena *arena, const struct interpretation *run)
{
    const struct evidence *evidence = run->evidence;
    struct value list = value_list(arena);
    char own[48], elapsed[48];
    lines_add(arena, &list, "spoiled", run->about.marks, TONE_WARN);
    lines_add(arena, &list, "not finished", run->about.missing, TONE_WARN);
    lines_add(arena, &list, "note", run->about.notes, TONE_PLAIN);
    for (int i = 0; i < AXES; i++)
        if (evidence->axes[i].na && !is_told(run->about.missing, evidence->axes[i].na))
            value_append(&list, value_tone(value_text(arena_printf(arena, "not measured: %s: %s",
                                                                   axis_name((enum axis)i),
                                                                   evidence->axes[i].na)),
                                           TONE_WARN));
    line_add(arena, &list, "coverage", coverage_text(arena, &evidence->costs_on_path));
    line_add(arena, &list, "seen", seen_text(arena, evidence));
    if (evidence->costs_on_path.few_runs && evidence->costs_on_path.ns > 0)
        line_add(arena, &list, "intervals",
                 "fewer than 2 plain runs say nothing of how much runs differ: they are as wide as "
                 "the recorded one differed, and n/a where that is less than 1%");
    units_format(run->about.own_cpu_ns, UNIT_NS, own, sizeof(own));
    units_format(run->about.elapsed_ns, UNIT_NS, elapsed, sizeof(elapsed));
    line_add(arena, &list, "cost",
             arena_printf(arena, "wall time under each recording against the baseline: %s%s",
                          overhead_text(arena, evidence),
                          run->about.own_cpu_ns > 0
                              ? arena_printf(arena, "; whyslow itself used %s of CPU time in %s",
                                             own, elapsed)
                              : ""));
    return list;
}
