/* The screen of a run, section by section. */
#include "present/run_screen.h"

#include "present/run_tables.h"
#include "target/command.h"

#include <math.h>
#include <stdio.h>

#define REQUESTS_SHARE_MIN 0.10 /* of the wall time waiting for the network */
enum { REQUESTS_SHOWN = 3 };
enum { BAR_COLUMNS = 76, HOTSPOTS_SHOWN = 6, CONFIRMED_SHOWN = 5 };

/* A letter and a colour each, in the order of reports; the last is what nobody saw. */
static const struct band {
    const char *letter, *title;
    enum tone tone;
    const char *meaning;
} bands[WAIT_CLASS_UNKNOWN + 2] = {
    [WAIT_CLASS_RUNNING] = {"R", "running", TONE_GOOD, "on a CPU"},
    [WAIT_CLASS_RUNQ] = {"Q", "run queue", TONE_WARN, "ready to run, no CPU was free"},
    [WAIT_CLASS_LOCK] = {"L", "lock", TONE_BAD, "held by another thread"},
    [WAIT_CLASS_DISK] = {"D", "disk", TONE_BLUE, "files and block devices"},
    [WAIT_CLASS_NET] = {"N", "network", TONE_MAGENTA, "the reply of a peer"},
    [WAIT_CLASS_PAGEFAULT] = {"P", "page faults", TONE_CYAN, "pages that were not there"},
    [WAIT_CLASS_CHILD] = {"C", "child", TONE_CYAN, "another process or the end of a thread"},
    [WAIT_CLASS_PIPE] = {"W", "pipe", TONE_CYAN, "the reader of a pipe does not keep up"},
    [WAIT_CLASS_TIMER] = {"T", "timer", TONE_PLAIN, "sleep"},
    [WAIT_CLASS_IDLE] = {"I", "idle", TONE_DIM, "nothing to do"},
    [WAIT_CLASS_UNKNOWN] = {"?", "unknown wait", TONE_DIM,
                            "off the CPU for no reason that was seen"},
    [WAIT_CLASS_UNKNOWN + 1] = {".", "unseen", TONE_DIM, "no sample, no wait"},
};

/* All of them add up to the wall time. */
static double band_ns(const struct path_costs *costs, size_t band)
{
    return band <= WAIT_CLASS_UNKNOWN ? costs->classes[band] : run_unseen_ns(costs);
}

struct value run_screen_time(struct arena *arena, const struct interpretation *run)
{
    static const struct column columns[] = {
        {"class", "class", SHOW_ALWAYS, false, false},
        {"title", "where", SHOW_ALWAYS, false, false},
        {"ms", "time", SHOW_ALWAYS, true, false},
        {"pct", "of the wall time", SHOW_ALWAYS, true, false},
        {"meaning", "meaning", SHOW_ALWAYS, false, true},
    };
    const struct path_costs *costs = &run->evidence->costs_on_path;
    struct value table = value_table(arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < ARRAY_SIZE(bands); i++) {
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        double ns = band_ns(costs, i);
        /* Without waits nobody looked: that is no zero. */
        bool known = !costs->na || i == WAIT_CLASS_RUNNING || i > WAIT_CLASS_UNKNOWN;
        row->cells[0] = value_text(i <= WAIT_CLASS_UNKNOWN ? wait_class_name((enum wait_class)i)
                                                           : "unseen");
        row->cells[1] = value_text(bands[i].title);
        row->cells[2] = known ? run_ms(ns, "") : value_na(costs->na);
        row->cells[3] = known ? run_pct(costs->ns > 0 ? ns / costs->ns : NAN, "no wall time")
                              : value_na(costs->na);
        row->cells[4] = value_text(bands[i].meaning);
        row->show = ns > 0 ? SHOW_ALWAYS : SHOW_MACHINE;
    }
    return table;
}

/* Columns of each band: all of them together fill the bar; what is there has one at least. */
static void bar_columns(const struct path_costs *costs, size_t *columns)
{
    size_t used = 0, widest = 0;
    for (size_t i = 0; i < ARRAY_SIZE(bands); i++) {
        double share = band_ns(costs, i) / costs->ns;
        columns[i] = share >= 0.001 ? MAX((size_t)(share * BAR_COLUMNS + 0.5), (size_t)1) : 0;
        used += columns[i];
        widest = columns[i] > columns[widest] ? i : widest;
    }
    /* Rounding goes to the widest, where it shows least. */
    if (columns[widest] + BAR_COLUMNS > used)
        columns[widest] += BAR_COLUMNS - used;
}

static struct value bar_list(struct arena *arena, const struct interpretation *run)
{
    const struct path_costs *costs = &run->evidence->costs_on_path;
    struct value list = value_list(arena);
    if (!(costs->ns > 0)) {
        value_append(&list, value_na("no run was recorded"));
        return list;
    }
    size_t columns[ARRAY_SIZE(bands)];
    bar_columns(costs, columns);
    struct value *bar = value_append(&list, value_list(arena));
    if (list.items && list.items->last)
        list.items->last->show = SHOW_TERMINAL;
    struct value *legend = value_append(&list, value_list(arena));
    bool first = true;
    for (size_t i = 0; i < ARRAY_SIZE(bands); i++) {
        if (columns[i] == 0)
            continue;
        char text[BAR_COLUMNS + 1], time[48];
        memset(text, bands[i].letter[0], columns[i]);
        value_append(bar,
                     value_tone(value_text(arena_dup_len(arena, text, columns[i])), bands[i].tone));
        double ns = band_ns(costs, i);
        units_format(ns, UNIT_NS, time, sizeof(time));
        const char *words = arena_printf(arena, "%s%s %s %s %.*f%%", first ? "" : "   ",
                                         bands[i].letter, bands[i].title, time,
                                         ns / costs->ns < 0.0995 ? 1 : 0, ns / costs->ns * 100);
        value_append(legend, value_tone(value_text(words), bands[i].tone));
        first = false;
    }
    return list;
}

/* How long the recorded run is says what was seen, not what a run costs. */
static struct value seen_instead(struct arena *arena, const struct run_costs *costs)
{
    char seen[48];
    if (!(costs->recorded_ns > 0))
        return value_na("no plain run was finished");
    units_format(costs->recorded_ns, UNIT_NS, seen, sizeof(seen));
    if (costs->recorded_whole)
        return value_na_printf(arena,
                               "no plain run was finished; the recorded one ended by itself after "
                               "%s",
                               seen);
    return value_na_printf(arena,
                           "no plain run was finished; seen are the first %s of the recorded one, "
                           "until it was ended",
                           seen);
}

/* "wall 1.31 s (1.29 to 1.35), CPU 1.90 s (145%), peak memory 12.3 MiB". */
static struct value cost_text(struct arena *arena, const struct run_costs *costs)
{
    char cpu[48], memory[48];
    struct estimate wall = {costs->wall_ns, costs->wall_low_ns, costs->wall_high_ns};
    if (isnan(costs->wall_ns))
        return seen_instead(arena, costs);
    const char *text = arena_printf(arena, "wall time %s", run_estimate_text(arena, wall));
    if (!isnan(costs->cpu_ns))
        text = arena_printf(arena, "%s, CPU time %s (%.0f%% of one CPU)", text,
                            units_format(costs->cpu_ns, UNIT_NS, cpu, sizeof(cpu)),
                            costs->wall_ns > 0 ? costs->cpu_ns / costs->wall_ns * 100 : 0);
    if (!isnan(costs->peak_rss_bytes))
        text = arena_printf(
            arena, "%s, peak memory %s", text,
            units_format(costs->peak_rss_bytes, UNIT_BYTES, memory, sizeof(memory)));
    return value_text(text);
}

static void suspicions_put(struct arena *arena, const struct interpretation *run,
                           struct value *root)
{
    size_t confirmed = run_verdicts(run, FINDING_CONFIRMED);
    const char *title = arena_printf(
        arena, "Suspicions: %zu confirmed%s, %zu dismissed, %zu not judged (why: suspicions.json)",
        confirmed, confirmed > CONFIRMED_SHOWN ? ", the first ones here" : "",
        run_verdicts(run, FINDING_DISMISSED), run_verdicts(run, FINDING_NOT_JUDGED));
    value_put_machine(root, "suspicions", run_suspicion_table(arena, run));
    value_put_for(root, SHOW_PEOPLE, "confirmed", title,
                  run_confirmed_table(arena, run, CONFIRMED_SHOWN));
}

/* Neither is ranked: beside what can be fixed, and never in its place. */
static void apart_put(struct arena *arena, const struct interpretation *run,
                      enum finding_class class, struct value *root)
{
    bool environment = class == FINDING_ENVIRONMENT;
    struct value lines;
    value_put_machine(root, finding_class_name(class), run_apart_table(arena, run, class));
    if (run_apart_lines(arena, run, class, &lines) > 0)
        value_put_for(root, SHOW_PEOPLE, environment ? "environment_lines" : "context_lines",
                      environment ? "Environment (not the program's: it is not ranked)"
                                  : "Context (true, but no fix follows from it)",
                      lines);
}

/* Who waits for the network asks for something: that belongs on the first screen, with its place.
 */
static void requests_put(struct arena *arena, const struct interpretation *run, struct value *root)
{
    const struct path_costs *costs = &run->evidence->costs_on_path;
    double share = costs->ns > 0 ? costs->classes[WAIT_CLASS_NET] / costs->ns : 0;
    struct value table = run_request_table(arena, run, REQUESTS_SHOWN);
    bool wanted = share >= REQUESTS_SHARE_MIN;
    const char *na = run->evidence->axes[AXIS_IO].na;
    const char *title = arena_printf(
        arena, "Requests (the network's replies take %.0f%% of the wall time)", share * 100);
    if (wanted && table.table && table.table->row_count > 0)
        value_put(root, "requests", title, table);
    else
        value_put_machine(root, "requests", table);
    if (wanted && na) {
        struct value list = value_list(arena);
        value_append(&list, value_na_printf(arena, "I/O was not recorded: %s", na));
        value_put_for(root, SHOW_PEOPLE, "requests_na", title, list);
    }
}

static void opportunities_put(struct arena *arena, const struct interpretation *run,
                              struct value *root)
{
    const struct wrong_tool *wrong = run->wrong_tools.first;
    value_put_machine(root, "wrong_tools", run_wrong_tool_table(arena, run));
    value_put_machine(root, "together", run_together(arena, run));
    if (wrong) {
        struct value list = value_list(arena);
        value_append(&list, value_tone(value_text(arena_printf(arena, "%s: %s", wrong->id,
                                                               wrong->why ? wrong->why : "")),
                                       TONE_WARN));
        value_append(&list, value_text(arena_printf(arena,
                                                    "Changing code is the wrong tool here, and "
                                                    "none is advised: %s.",
                                                    wrong->instead)));
        value_put_for(root, SHOW_PEOPLE, "wrong_tool", "Wrong tool", list);
        value_put_machine(root, "opportunities", run_opportunity_table(arena, run, 0));
        return;
    }
    const char *together = run_together_text(arena, run);
    const char *title = together ? arena_printf(arena, "What to do first (%s)", together)
                                 : "What to do first";
    struct value table = run_opportunity_table(arena, run, CONFIRMED_SHOWN);
    if (run_verdicts(run, FINDING_CONFIRMED) > 0)
        value_put(root, "opportunities", title, table);
    else
        value_put_machine(root, "opportunities", table);
}

void run_screen_put(struct arena *arena, const struct interpretation *run, struct value *root)
{
    const struct path_costs *costs = &run->evidence->costs_on_path;
    value_put(root, "cost", "a run costs", cost_text(arena, &run->evidence->costs));
    value_put_for(root, SHOW_PEOPLE, "bar",
                  costs->na ? "Where the wall time goes (CPU samples only)"
                            : "Where the wall time goes (critical path)",
                  bar_list(arena, run));
    value_put_machine(root, "time", run_screen_time(arena, run));
    apart_put(arena, run, FINDING_ENVIRONMENT, root);
    requests_put(arena, run, root);
    size_t hidden = run->hotspots.left_out + (run->hotspots.count > HOTSPOTS_SHOWN
                                                  ? run->hotspots.count - HOTSPOTS_SHOWN
                                                  : 0);
    value_put(root, "hotspots",
              hidden > 0 ? arena_printf(arena, "Hotspots (%zu more in hotspots.json)", hidden)
                         : "Hotspots",
              run_hotspot_table(arena, run, HOTSPOTS_SHOWN));
    suspicions_put(arena, run, root);
    value_put_machine(root, "ledger", run_ledger_table(arena, run));
    if (run->ledger.count > 0)
        value_put_for(root, SHOW_PEOPLE, "hypotheses",
                      "Hypotheses (confirmed: sampling, tracing and counting support it, and a "
                      "finding is confirmed)",
                      run_ledger_brief(arena, run));
    opportunities_put(arena, run, root);
    apart_put(arena, run, FINDING_CONTEXT, root);
    value_put(root, "honesty", "How far to trust this", run_screen_honesty(arena, run));
}

struct value run_screen_next(struct arena *arena, const struct interpretation *run)
{
    struct value list = value_list(arena);
    const struct finding *first = run->findings.count > 0 ? &run->findings.items[0] : NULL;
    const char *look = first && finding_is_fix(first) ? run_next_look(arena, run, first) : "";
    if (*look)
        value_append(&list, value_text(look));
    const struct axis_state *cpu = &run->evidence->axes[AXIS_CPU];
    if (!*look && !cpu->na && cpu->path) {
        char *argv[] = {(char *)"whyslow", (char *)"report", (char *)cpu->path, NULL};
        value_append(&list, value_text(command_quote(arena, argv)));
    }
    char *argv[] = {(char *)"less", (char *)arena_printf(arena, "%s/handoff.md", run->about.folder),
                    NULL};
    value_append(&list, value_text(command_quote(arena, argv)));
    return list;
}
