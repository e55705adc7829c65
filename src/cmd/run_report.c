/* Facts to trees. No measuring, no printing, and nothing said that was not measured. */
#include "cmd/run_report.h"

#include "base/clock.h"
#include "present/run_screen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* M6: a baseline that moves more than this between its first and last third is not one. */
enum { DRIFT_PERCENT_MAX = 10, NOISE_PERCENT_MAX = 5 };

enum { COL_ID, COL_TITLE, COL_MEDIAN, COL_INTERVAL, COL_LOW, COL_HIGH, COL_P95, COL_MAX, COL_UNIT };

static const struct column metric_columns[] = {
    [COL_ID] = {"metric", "metric", SHOW_MACHINE, false, false},
    [COL_TITLE] = {"title", "metric", SHOW_ALWAYS, false, false},
    [COL_MEDIAN] = {"median", "median", SHOW_ALWAYS, true, false},
    [COL_INTERVAL] = {"interval", "95% interval", SHOW_ALWAYS, true, false},
    [COL_LOW] = {"median_low", "low", SHOW_MACHINE, true, false},
    [COL_HIGH] = {"median_high", "high", SHOW_MACHINE, true, false},
    [COL_P95] = {"p95", "p95", SHOW_ALWAYS, true, false},
    [COL_MAX] = {"max", "max", SHOW_ALWAYS, true, false},
    [COL_UNIT] = {"unit", "unit", SHOW_MACHINE, false, false},
};

static const char none_finished[] = "no plain run was finished";

static const char *unit_name(enum unit unit)
{
    switch (unit) {
    case UNIT_NS:
        return "ns";
    case UNIT_BYTES:
        return "bytes";
    case UNIT_PERCENT:
        return "percent";
    default:
        return "count";
    }
}

static struct value interval_text(struct arena *arena, const struct summary *s, enum unit unit)
{
    char low[48], high[48];
    if (!s->has_interval)
        return value_na("fewer than 6 runs");
    return value_text(arena_printf(arena, "%s - %s",
                                   units_format(s->median_low, unit, low, sizeof(low)),
                                   units_format(s->median_high, unit, high, sizeof(high))));
}

static struct value number_or(bool known, double number, enum unit unit, const char *reason)
{
    return known ? value_real(number, unit) : value_na(reason);
}

static struct value metrics_table(const struct run_facts *facts)
{
    const struct baseline *b = facts->baseline;
    struct value table = value_table(facts->arena, metric_columns, ARRAY_SIZE(metric_columns));
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct summary *s = &b->summaries[i];
        enum unit unit = metrics[i].unit;
        struct table_row *row = table_add(&table);
        if (!row)
            return table;
        const char *reason = b->na[i] ? b->na[i] : none_finished;
        row->cells[COL_ID] = value_text(metrics[i].id);
        row->cells[COL_TITLE] = value_text(metrics[i].title);
        row->cells[COL_UNIT] = value_text(unit_name(unit));
        row->cells[COL_MEDIAN] = number_or(s->count > 0, s->median, unit, reason);
        if (s->count == 0) {
            row->cells[COL_INTERVAL] = row->cells[COL_P95] = row->cells[COL_MAX] = value_text("");
            row->cells[COL_LOW] = row->cells[COL_HIGH] = value_na(reason);
            continue;
        }
        row->cells[COL_INTERVAL] = interval_text(facts->arena, s, unit);
        row->cells[COL_LOW] = number_or(s->has_interval, s->median_low, unit, "fewer than 6 runs");
        row->cells[COL_HIGH] = number_or(s->has_interval, s->median_high, unit,
                                         "fewer than 6 runs");
        row->cells[COL_P95] = number_or(s->p95_carried, s->p95, unit, "wants 20 runs");
        row->cells[COL_MAX] = value_real(s->max, unit);
    }
    return table;
}

/* The limit is what it was ended after: a part of the budget, since the rest is for recording. */
static const char *cut_text(struct arena *arena, const struct baseline *b, const char *budget)
{
    char after[48];
    return arena_printf(arena,
                        "a first one was ended after %s, as long as it may take of a budget "
                        "of %s",
                        units_format((double)b->cut_ns, UNIT_NS, after, sizeof(after)), budget);
}

static const char *runs_text(struct arena *arena, const struct baseline *b, uint32_t asked,
                             uint64_t budget_ns)
{
    char took[48], budget[48];
    units_format((double)b->elapsed_ns, UNIT_NS, took, sizeof(took));
    units_format((double)budget_ns, UNIT_NS, budget, sizeof(budget));
    if (b->end == BASELINE_CUT)
        return arena_printf(arena, "no plain run was finished: %s", cut_text(arena, b, budget));
    const char *text = arena_printf(arena, "%zu run%s after %u warm-up, in %s", b->runs.len,
                                    b->runs.len == 1 ? "" : "s", b->warmups, took);
    if (b->cut_ns > 0)
        text = arena_printf(
            arena, "%zu run%s after the recorded one, in %s with a first one that was ended: %s",
            b->runs.len, b->runs.len == 1 ? "" : "s", took, cut_text(arena, b, budget));
    if (b->end == BASELINE_BUDGET)
        return arena_printf(arena, "%s; %u were asked for, the budget of %s allowed no more", text,
                            asked, budget);
    if (b->end == BASELINE_INTERRUPTED)
        return arena_printf(arena, "%s; interrupted, %u were asked for", text, asked);
    if (b->failed > 0)
        return arena_printf(arena, "%s; %u of them failed (--force)", text, b->failed);
    return text;
}

const char *run_runs_text(const struct run *run)
{
    return runs_text(run->arena, &run->baseline, run->plan.runs, run->plan.budget_ns);
}

/* The word first: stable, noisy, unstable, or why none can be said. Drift makes a median
 * meaningless; noise only makes it vague. */
static struct value stability(struct arena *arena, const struct baseline *b)
{
    const struct summary *s = &b->summaries[METRIC_WALL];
    if (s->count < 6)
        return value_na("fewer than 6 runs say nothing about drift");
    double half = (s->median_high - s->median_low) / 2 / s->median * 100;
    const char *numbers = arena_printf(
        arena,
        "wall time varies by %.1f%% (CV), drifts by %+.1f%% from first to last third, median known "
        "to +-%.1f%%, %zu outlier%s",
        s->cv_percent, s->drift_percent, half, s->outliers, s->outliers == 1 ? "" : "s");
    const char *word = fabs(s->drift_percent) > DRIFT_PERCENT_MAX ? "unstable"
                       : half > NOISE_PERCENT_MAX                 ? "noisy"
                                                                  : "stable";
    return value_tone(value_text(arena_printf(arena, "%s: %s", word, numbers)),
                      strcmp(word, "stable") == 0 ? TONE_GOOD : TONE_WARN);
}

const char *run_stability_text(struct arena *arena, const struct baseline *baseline)
{
    struct value word = stability(arena, baseline);
    return word.kind == VALUE_NA ? "not known: fewer than 6 runs say nothing about drift"
                                 : arena_dup_len(arena, word.text.data, word.text.len);
}

static struct value output_text(struct arena *arena, const struct baseline *b)
{
    if (b->runs.len == 0)
        return value_na(none_finished);
    const char *sha = b->runs.data[b->runs.len - 1].output_sha256;
    char bytes[48];
    units_format((double)b->output_bytes, UNIT_BYTES, bytes, sizeof(bytes));
    if (b->outputs > 1)
        return value_tone(
            value_text(arena_printf(arena,
                                    "differs: %u different outputs in %zu runs; is the work the "
                                    "same each time?",
                                    b->outputs, b->runs.len)),
            TONE_WARN);
    if (b->runs.len == 1)
        return value_text(arena_printf(arena,
                                       "%s (sha256 %.16s...); one run says nothing about "
                                       "others",
                                       b->output_bytes ? bytes : "empty", sha));
    return value_text(arena_printf(
        arena, "%s in all %zu runs (sha256 %.16s...)%s",
        b->output_bytes ? arena_printf(arena, "%s, the same", bytes) : "empty", b->runs.len, sha,
        b->output_open ? "; a process left behind may write more" : ""));
}

const char *run_golden_text(const struct run *run)
{
    struct value text = output_text(run->arena, &run->baseline);
    const char *words = text.kind == VALUE_NA
                            ? none_finished
                            : arena_dup_len(run->arena, text.text.data, text.text.len);
    return run->plan.golden.kind == GOLDEN_NONE
               ? words
               : arena_printf(run->arena, "%s; as the golden output wants it", words);
}

uint64_t run_own_cpu_ns(const struct run *run)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_SEC +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US +
           run->baseline.launcher_cpu_ns;
}

/* What the floor tier can tell: CPU time is known, so at least the rest of the wall time was
 * spent waiting. With several threads at work more may have been. */
static struct value split_map(const struct run_facts *facts)
{
    const struct baseline *b = facts->baseline;
    struct value map = value_map(facts->arena);
    const struct summary *wall = &b->summaries[METRIC_WALL];
    if (wall->count == 0) {
        value_put(&map, "running", NULL, value_na(none_finished));
        return map;
    }
    double cpu_ns = b->summaries[METRIC_CPU_TIME].median;
    double wait_ns = wall->median - cpu_ns;
    char cpu[48], wait[48];
    units_format(cpu_ns, UNIT_NS, cpu, sizeof(cpu));
    units_format(wait_ns, UNIT_NS, wait, sizeof(wait));
    value_put_machine(&map, "running_ns", value_real(cpu_ns, UNIT_NS));
    value_put_machine(&map, "waiting_ns_min",
                      wait_ns >= 0
                          ? value_real(wait_ns, UNIT_NS)
                          : value_na("more CPU time than wall time: several CPUs at work"));
    value_put(&map, "running", "running on a CPU",
              value_text(arena_printf(facts->arena, "%s of CPU time, %.0f%% of the wall time", cpu,
                                      cpu_ns / wall->median * 100)));
    if (wait_ns >= 0)
        value_put(&map, "waiting", NULL,
                  value_text(arena_printf(facts->arena,
                                          "at least %s, %.0f%% of the wall time (disk, locks, "
                                          "sleep, other processes: not told apart yet)",
                                          wait, wait_ns / wall->median * 100)));
    else
        value_put(&map, "waiting", NULL,
                  value_na("more CPU time than wall time: several CPUs were at work"));
    return map;
}

static void notes_append(struct value *list, const char *const *notes, enum tone tone)
{
    for (; notes && *notes; notes++)
        value_append(list, tone ? value_tone(value_text(*notes), tone) : value_text(*notes));
}

static struct value notes_list(struct arena *arena, const char *const *notes)
{
    struct value list = value_list(arena);
    notes_append(&list, notes, TONE_PLAIN);
    return list;
}

static struct value honesty_list(const struct run_facts *facts)
{
    struct value list = value_list(facts->arena);
    const struct baseline *b = facts->baseline;
    char own[48], total[48];
    units_format((double)facts->own_cpu_ns, UNIT_NS, own, sizeof(own));
    units_format((double)b->elapsed_ns, UNIT_NS, total, sizeof(total));
    notes_append(&list, facts->marks, TONE_WARN);
    notes_append(&list, facts->missing, TONE_WARN);
    notes_append(&list, facts->notes, TONE_PLAIN);
    value_append(&list, value_text(arena_printf(facts->arena,
                                                "whyslow itself used %s of CPU time beside %s of "
                                                "runs",
                                                own, total)));
    value_append(&list, value_text("its stdout and stderr were counted, hashed and thrown away"));
    value_append(&list, value_text("figures include children the program waited for; peak memory "
                                   "is that of the largest process"));
    return list;
}

/* Files that a run may leave, in the order in which a reader would want them; for machines under
 * their keys. */
static const struct {
    const char *key, *name;
    bool first; /* said on a line of its own, with what it is */
    const char *about;
} artifacts[] = {
    {"report", "report.html", true,
     "this screen, flame graphs, timeline, evidence: open it in a browser"},
    {"handoff", "handoff.md", true, "for whoever mends it: causes, advice, how to check it"},
    {"profile_result", "profile_result.json", true, "the whole result as one object, for programs"},
    {"scenario", "scenario.toml", false, NULL},
    {"fingerprint", "fingerprint.json", false, NULL},
    {"baseline", "baseline.json", false, NULL},
    {"evidence", "evidence.json", false, NULL},
    {"hotspots", "hotspots.json", false, NULL},
    {"suspicions", "suspicions.json", false, NULL},
    {"ledger", "ledger.json", false, NULL},
    {"map", "map.json", false, NULL},
    {"map_yaml", "map.yaml", false, NULL},
    {"flame_cpu", "flame-cpu.svg", false, NULL},
    {"flame_offcpu", "flame-offcpu.svg", false, NULL},
    {"flame_alloc", "flame-alloc.svg", false, NULL},
    {"flame_io", "flame-io.svg", false, NULL},
};

static const char *const recording_keys[AXES] = {"recording", NULL, "recording_io",
                                                 "recording_heap"};

static struct value artifacts_map(const struct run_facts *facts)
{
    struct value map = value_map(facts->arena);
    for (size_t i = 0; i < ARRAY_SIZE(artifacts); i++) {
        const char *path = arena_printf(facts->arena, "%s/%s", facts->folder, artifacts[i].name);
        if (access(path, F_OK) == 0)
            value_put(&map, artifacts[i].key, NULL, value_text(path));
    }
    for (int i = 0; i < AXES; i++) {
        const char *path = facts->input->axes[i].recording, *na = facts->input->axes[i].na;
        if (recording_keys[i])
            value_put(&map, recording_keys[i], NULL,
                      path ? value_text(path) : value_na(na ? na : "not recorded"));
    }
    return map;
}

/* The same for people: what to read first, then the names of the rest. */
static struct value artifacts_list(const struct run_facts *facts, const struct value *map)
{
    struct value list = value_list(facts->arena);
    const char *rest = "";
    for (size_t i = 0; i < ARRAY_SIZE(artifacts); i++) {
        if (!value_get(map, artifacts[i].key))
            continue;
        if (artifacts[i].first)
            value_append(&list, value_text(arena_printf(facts->arena, "%-20s %s", artifacts[i].name,
                                                        artifacts[i].about)));
        else
            rest = arena_printf(facts->arena, "%s%s%s", rest, *rest ? ", " : "", artifacts[i].name);
    }
    for (int i = 0; i < AXES; i++) {
        const char *path = facts->input->axes[i].recording;
        const char *slash = path ? strrchr(path, '/') : NULL;
        if (path && recording_keys[i])
            rest = arena_printf(facts->arena, "%s%s%s", rest, *rest ? ", " : "",
                                slash ? slash + 1 : path);
    }
    value_append(&list, value_text(rest));
    return list;
}

static struct value next_list(const struct run_facts *facts)
{
    struct value list = value_list(facts->arena);
    value_append(&list,
                 value_text(arena_printf(facts->arena, "whyslow doctor --for %s", facts->binary)));
    return list;
}

/* What the scenario is about, when it is not the wall time. */
static struct value metric_value(const struct run_facts *facts)
{
    const struct baseline *b = facts->baseline;
    const struct summary *wall = &b->summaries[METRIC_WALL];
    const char *name = facts->metric;
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        bool cpu = strcmp(name, "cpu") == 0; /* bench's word for CPU time */
        if (cpu ? i != METRIC_CPU_TIME : strcmp(metrics[i].id, name) != 0)
            continue;
        const struct summary *s = &b->summaries[i];
        return number_or(s->count > 0, s->median, metrics[i].unit,
                         b->na[i] ? b->na[i] : none_finished);
    }
    if (strcmp(name, "p50") == 0)
        return number_or(wall->count > 0, wall->median, UNIT_NS, none_finished);
    if (strcmp(name, "p95") == 0)
        return number_or(wall->p95_carried, wall->p95, UNIT_NS, "wants 20 runs");
    if (strcmp(name, "p99") == 0)
        return number_or(wall->p99_carried, wall->p99, UNIT_NS, "wants 100 runs");
    return value_na("'whyslow run' does not measure it; 'whyslow bench --metric' does");
}

struct value run_report_make(const struct run_facts *facts)
{
    struct value root = value_map(facts->arena);
    const struct baseline *b = facts->baseline;
    value_put(&root, "command", NULL, value_text(facts->command));
    value_put_machine(&root, "run_id", value_text(facts->run_id));
    value_put_machine(&root, "binary", value_text(facts->binary));
    value_put_machine(&root, "runs", value_uint(b->runs.len, UNIT_COUNT));
    value_put_machine(&root, "runs_asked", value_uint(facts->runs_asked, UNIT_COUNT));
    value_put_machine(&root, "complete", value_bool(b->end == BASELINE_ENOUGH));
    value_put_machine(&root, "failed_runs", value_uint(b->failed, UNIT_COUNT));
    value_put(&root, "measured", NULL,
              value_text(runs_text(facts->arena, b, facts->runs_asked, facts->budget_ns)));
    value_put(&root, "stability", NULL, stability(facts->arena, b));
    value_put(&root, "output", NULL, output_text(facts->arena, b));
    value_put_machine(&root, "metric", value_text(facts->metric));
    if (strcmp(facts->metric, "wall") == 0)
        value_put_machine(&root, "metric_value", metric_value(facts));
    else
        value_put(&root, "metric_value", facts->metric, metric_value(facts));
    value_put_machine(&root, "output_stable",
                      b->runs.len > 1    ? value_bool(b->outputs == 1)
                      : b->runs.len == 1 ? value_na("one run says nothing about others")
                                         : value_na(none_finished));
    value_put_machine(&root, "checks_failed", value_uint(facts->checks_failed, UNIT_COUNT));
    if (facts->said) {
        value_put_machine(&root, "metrics", metrics_table(facts));
        value_put_machine(&root, "split", split_map(facts));
        run_screen_put(facts->arena, facts->said, &root);
    } else {
        value_put(&root, "metrics", "What a run costs", metrics_table(facts));
        value_put(&root, "split", "Where the wall time goes", split_map(facts));
        value_put(&root, "honesty", "How far to trust this", honesty_list(facts));
    }
    struct value files = artifacts_map(facts);
    value_put_machine(&root, "artifacts", files);
    value_put_for(&root, SHOW_PEOPLE, "files",
                  arena_printf(facts->arena, "Artifacts in %s", facts->folder),
                  artifacts_list(facts, &files));
    value_put(&root, "next", "Next",
              facts->said ? run_screen_next(facts->arena, facts->said) : next_list(facts));
    value_put_machine(&root, "marks", notes_list(facts->arena, facts->marks));
    value_put_machine(&root, "missing", notes_list(facts->arena, facts->missing));
    value_put_machine(&root, "notes", notes_list(facts->arena, facts->notes));
    value_put_machine(&root, "checks", *facts->checks);
    value_put_machine(&root, "fingerprint", *facts->fingerprint);
    return root;
}

static struct value summary_map(const struct run_facts *facts, size_t metric)
{
    const struct summary *s = &facts->baseline->summaries[metric];
    enum unit unit = metrics[metric].unit;
    struct value map = value_map(facts->arena);
    value_put(&map, "unit", NULL, value_text(unit_name(unit)));
    if (s->count == 0) {
        const char *reason = facts->baseline->na[metric];
        value_put(&map, "median", NULL, value_na(reason ? reason : none_finished));
        return map;
    }
    const struct {
        const char *key;
        double number;
        bool known;
    } rows[] = {
        {"median", s->median, true},
        {"median_low", s->median_low, s->has_interval},
        {"median_high", s->median_high, s->has_interval},
        {"min", s->min, true},
        {"mean", s->mean, true},
        {"max", s->max, true},
        {"p95", s->p95, s->p95_carried},
        {"p99", s->p99, s->p99_carried},
        {"stddev", s->stddev, !isnan(s->stddev)},
        {"mad", s->mad, !isnan(s->mad)},
        {"cv_percent", s->cv_percent, !isnan(s->cv_percent)},
        {"drift_percent", s->drift_percent, !isnan(s->drift_percent)},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        value_put(&map, rows[i].key, NULL,
                  number_or(rows[i].known, rows[i].number, UNIT_NONE,
                            s->count > 1 ? "too few runs" : "one run only"));
    value_put(&map, "outliers", NULL, value_uint(s->outliers, UNIT_COUNT));
    return map;
}

struct value run_baseline_make(const struct run_facts *facts)
{
    static const struct column columns[METRIC_COUNT + 2] = {
        {.key = "wall"},
        {.key = "cpu_time"},
        {.key = "user"},
        {.key = "system"},
        {.key = "cpu"},
        {.key = "peak_rss"},
        {.key = "faults_minor"},
        {.key = "faults_major"},
        {.key = "switches_voluntary"},
        {.key = "switches_involuntary"},
        {.key = "read"},
        {.key = "written"},
        {.key = "storage_read"},
        {.key = "storage_written"},
        {.key = "status"},
        {.key = "output_sha256"},
    };
    const struct baseline *b = facts->baseline;
    struct value root = value_map(facts->arena);
    value_put(&root, "run_id", NULL, value_text(facts->run_id));
    value_put(&root, "command", NULL, value_text(facts->command));
    value_put(&root, "warmup_runs", NULL, value_uint(b->warmups, UNIT_COUNT));
    value_put(&root, "runs_asked", NULL, value_uint(facts->runs_asked, UNIT_COUNT));
    value_put(&root, "complete", NULL, value_bool(b->end == BASELINE_ENOUGH));
    struct value *all = value_put(&root, "metrics", NULL, value_map(facts->arena));
    for (size_t i = 0; i < METRIC_COUNT; i++)
        value_put(all, metrics[i].id, NULL, summary_map(facts, i));
    struct value table = value_table(facts->arena, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < b->runs.len; i++) {
        struct table_row *row = table_add(&table);
        for (size_t j = 0; row && j < METRIC_COUNT; j++)
            row->cells[j] = number_or(!isnan(b->runs.data[i].figures[j]),
                                      b->runs.data[i].figures[j], UNIT_NONE,
                                      b->na[j] ? b->na[j] : "not known");
        if (!row)
            break;
        row->cells[METRIC_COUNT] = value_int(b->runs.data[i].status, UNIT_NONE);
        row->cells[METRIC_COUNT + 1] = value_text(b->runs.data[i].output_sha256);
    }
    value_put(&root, "runs", NULL, table);
    return root;
}
