/* Outcomes to one tree: JSON for machines with every figure of every run, and for people the
 * headline, the tables and the words. Nothing is said that was not measured. */
#include "cmd/bench.h"

#include "present/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { NOISE_PERCENT_MAX = 5 };

/* value_na() puts the "n/a: " before it by itself. */
static const char *reason_of(const struct bench_outcome *out, int metric)
{
    const char *missing = out->result.missing[metric];
    if (!missing)
        return "no run was finished";
    return strncmp(missing, "n/a: ", 5) == 0 ? missing + 5 : missing;
}

const char *bench_time_text(const char *time_unit, double ms, char *text, size_t size)
{
    if (!time_unit)
        return units_format(ms, UNIT_MS, text, size);
    if (strcmp(time_unit, "second") == 0)
        snprintf(text, size, "%.3f s", ms / 1000);
    else if (strcmp(time_unit, "microsecond") == 0)
        snprintf(text, size, "%.1f us", ms * 1000);
    else
        snprintf(text, size, "%.3f ms", ms);
    return text;
}

static const char *figure_text(const struct bench_facts *facts, int metric, double number)
{
    char text[48];
    if (bench_metrics[metric].unit == UNIT_MS)
        bench_time_text(facts->time_unit, number, text, sizeof(text));
    else
        units_format(number, bench_metrics[metric].unit, text, sizeof(text));
    return arena_dup(facts->arena, text);
}

static const char *interval_text(const struct bench_facts *facts, int metric,
                                 const struct summary *s)
{
    return arena_printf(facts->arena, "%s - %s", figure_text(facts, metric, s->median_low),
                        figure_text(facts, metric, s->median_high));
}

/* ---- for machines ---- */

static struct value interval_list(struct arena *arena, const struct summary *s)
{
    if (!s->has_interval)
        return value_na("fewer than 6 runs");
    struct value list = value_list(arena);
    value_append(&list, value_real(s->median_low, UNIT_NONE));
    value_append(&list, value_real(s->median_high, UNIT_NONE));
    return list;
}

static struct value real_or(double number, const char *reason)
{
    return isnan(number) ? value_na(reason) : value_real(number, UNIT_NONE);
}

struct percentile {
    const char *key, *title;
    double number;
    bool carried;
    unsigned wants; /* runs to carry it */
};

enum { PERCENTILES = 8 };

static void percentiles_fill(const struct summary *s, struct percentile rows[PERCENTILES])
{
    const struct percentile all[PERCENTILES] = {
        {"min", "min", s->min, true, 0},
        {"p5", "p5", s->p5, s->p5_carried, 20},
        {"p50", "p50", s->median, true, 0},
        {"p95", "p95", s->p95, s->p95_carried, 20},
        {"p99", "p99", s->p99, s->p99_carried, 100},
        {"p99_9", "p99.9", s->p99_9, s->p99_9_carried, 1000},
        {"p99_99", "p99.99", s->p99_99, s->p99_99_carried, 10000},
        {"max", "max", s->max, true, 0},
    };
    memcpy(rows, all, sizeof(all));
}

static const char one_run[] = "one run only";

static struct value metric_map(const struct bench_facts *facts, const struct bench_outcome *out,
                               int metric)
{
    const struct summary *s = &out->summaries[metric];
    struct value map = value_map(facts->arena);
    if (s->count == 0) {
        value_put(&map, "median", NULL, value_na(reason_of(out, metric)));
        return map;
    }
    value_put(&map, "n", NULL, value_uint(s->count, UNIT_NONE));
    value_put(&map, "median", NULL, value_real(s->median, UNIT_NONE));
    value_put(&map, "ci95", NULL, interval_list(facts->arena, s));
    value_put(&map, "mean", NULL, value_real(s->mean, UNIT_NONE));
    value_put(&map, "stddev", NULL, real_or(s->stddev, one_run));
    value_put(&map, "mad", NULL, real_or(s->mad, one_run));
    value_put(&map, "cv", NULL,
              real_or(s->cv_percent / 100, s->count > 1 ? "the mean is 0" : one_run));
    struct percentile rows[PERCENTILES];
    percentiles_fill(s, rows);
    struct value conservative = value_list(facts->arena);
    for (size_t i = 0; i < PERCENTILES; i++) {
        value_put(&map, rows[i].key, NULL, value_real(rows[i].number, UNIT_NONE));
        if (!rows[i].carried)
            value_append(&conservative, value_text(rows[i].key));
    }
    value_put(&map, "conservative", NULL, conservative);
    value_put(&map, "outliers", NULL, value_uint(s->outliers, UNIT_NONE));
    value_put(&map, "drift_percent", NULL, real_or(s->drift_percent, "fewer than 6 runs, or 0"));
    if (metric == BENCH_PEAK_RSS)
        value_put(
            &map, "source", NULL,
            value_text(out->exact_memory
                           ? "VmHWM at exit, in runs that were not timed"
                           : "ru_maxrss of every run, which the kernel keeps in coarse steps"));
    return map;
}

static const struct column run_columns[BENCH_METRICS + 8] = {
    {.key = "wall_ms"},
    {.key = "user_ms"},
    {.key = "sys_ms"},
    {.key = "cpu_ms"},
    {.key = "peak_rss_kb"},
    {.key = "peak_pss_kb"},
    {.key = "faults_minor"},
    {.key = "faults_major"},
    {.key = "switches_voluntary"},
    {.key = "switches_involuntary"},
    {.key = "read_bytes"},
    {.key = "written_bytes"},
    {.key = "storage_read_bytes"},
    {.key = "storage_written_bytes"},
    {.key = "cycles"},
    {.key = "instructions"},
    {.key = "cache_misses"},
    {.key = "branch_misses"},
    {.key = "running_share"},
    {.key = "exit_code"},
    {.key = "signal"},
    {.key = "timed_out"},
    {.key = "failed"},
    {.key = "output_sha256"},
    {.key = "output_bytes"},
    {.key = "start_ns"},
};

static struct value runs_table(const struct bench_facts *facts, const struct bench_outcome *out)
{
    struct value table = value_table(facts->arena, run_columns, ARRAY_SIZE(run_columns));
    for (size_t i = 0; i < out->result.runs.len; i++) {
        const struct bench_run *run = &out->result.runs.data[i];
        struct table_row *row = table_add(&table);
        if (!row)
            break;
        for (int j = 0; j < BENCH_METRICS; j++)
            row->cells[j] = real_or(run->value[j], reason_of(out, j));
        struct value *rest = row->cells + BENCH_METRICS;
        bool exited = WIFEXITED(run->status);
        const char *unread = "the output was not read";
        rest[0] = real_or(run->running_share, "no counters");
        rest[1] = exited ? value_int(WEXITSTATUS(run->status), UNIT_NONE) : value_null();
        rest[2] = exited ? value_null() : value_int(WTERMSIG(run->status), UNIT_NONE);
        rest[3] = value_bool(run->timed_out);
        rest[4] = value_bool(run->failed);
        rest[5] = run->output_known ? value_text(run->output_sha256) : value_na(unread);
        rest[6] = run->output_known ? value_uint(run->output_bytes, UNIT_NONE) : value_na(unread);
        rest[7] = value_uint(run->start_ns, UNIT_NONE);
    }
    return table;
}

/* hyperfine's own names, in seconds, so that scripts for its exports work. */
static void hyperfine_put(const struct bench_facts *facts, const struct bench_outcome *out,
                          struct value *map)
{
    const struct summary *wall = &out->summaries[BENCH_WALL];
    value_put(map, "mean", NULL, value_real(wall->mean / 1000, UNIT_NONE));
    value_put(map, "stddev", NULL,
              wall->count > 1 ? value_real(wall->stddev / 1000, UNIT_NONE) : value_null());
    value_put(map, "median", NULL, value_real(wall->median / 1000, UNIT_NONE));
    value_put(map, "user", NULL, value_real(out->summaries[BENCH_USER].mean / 1000, UNIT_NONE));
    value_put(map, "system", NULL, value_real(out->summaries[BENCH_SYSTEM].mean / 1000, UNIT_NONE));
    value_put(map, "min", NULL, value_real(wall->min / 1000, UNIT_NONE));
    value_put(map, "max", NULL, value_real(wall->max / 1000, UNIT_NONE));
    struct value *times = value_put(map, "times", NULL, value_list(facts->arena));
    struct value *codes = value_put(map, "exit_codes", NULL, value_list(facts->arena));
    for (size_t i = 0; i < out->result.runs.len; i++) {
        const struct bench_run *run = &out->result.runs.data[i];
        value_append(times, value_real(run->value[BENCH_WALL] / 1000, UNIT_NONE));
        value_append(codes, WIFEXITED(run->status) ? value_int(WEXITSTATUS(run->status), UNIT_NONE)
                                                   : value_null());
    }
    if (out->job->parameter_count == 0)
        return;
    struct value *parameters = value_put(map, "parameters", NULL, value_map(facts->arena));
    for (size_t i = 0; i < out->job->parameter_count; i++)
        value_put(parameters, out->job->parameters[i].name, NULL,
                  value_text(out->job->parameters[i].value));
}

/* Work a second, from the interval of the wall time. */
static void rate_put(const struct bench_facts *facts, const struct bench_outcome *out,
                     struct value *map, const char *key, double work)
{
    const struct summary *wall = &out->summaries[BENCH_WALL];
    if (!(work > 0) || !(wall->median > 0))
        return;
    struct value *rate = value_put(map, key, NULL, value_map(facts->arena));
    value_put(rate, "median", NULL, value_real(work / wall->median * 1000, UNIT_NONE));
    if (!wall->has_interval) {
        value_put(rate, "ci95", NULL, value_na("fewer than 6 runs"));
        return;
    }
    struct value *interval = value_put(rate, "ci95", NULL, value_list(facts->arena));
    value_append(interval, value_real(work / wall->median_high * 1000, UNIT_NONE));
    value_append(interval, value_real(work / wall->median_low * 1000, UNIT_NONE));
}

static const char *end_name(enum bench_end end)
{
    static const char *const names[] = {
        [BENCH_NOT_REACHED] = "not reached", [BENCH_CERTAIN] = "certain",
        [BENCH_ENOUGH] = "enough",           [BENCH_BUDGET] = "budget",
        [BENCH_INTERRUPTED] = "interrupted", [BENCH_FAILED] = "failed",
    };
    return names[end];
}

static const struct column warning_columns[] = {
    {.key = "result"}, {.key = "kind"}, {.key = "message"}, {.key = "advice"}};

static void warnings_add(const struct bench_facts *facts, const struct bench_outcome *out,
                         struct value *table)
{
    struct bench_warning warnings[BENCH_WARNINGS_MAX];
    size_t len = bench_warn(facts->arena, facts->plan, out, facts->shell, warnings);
    for (size_t i = 0; i < len; i++) {
        struct table_row *row = table_add(table);
        if (!row)
            return;
        row->cells[0] = value_text(out->result.name);
        row->cells[1] = value_text(warnings[i].kind);
        row->cells[2] = value_text(warnings[i].message);
        row->cells[3] = value_text(warnings[i].advice);
    }
}

static struct value warnings_table(const struct bench_facts *facts, const struct bench_outcome *out)
{
    struct value table = value_table(facts->arena, warning_columns, ARRAY_SIZE(warning_columns));
    if (out)
        warnings_add(facts, out, &table);
    for (size_t i = 0; !out && i < facts->len; i++)
        warnings_add(facts, &facts->outcomes[i], &table);
    return table;
}

static struct value result_map(const struct bench_facts *facts, const struct bench_outcome *out)
{
    struct value map = value_map(facts->arena);
    value_put(&map, "command", NULL, value_text(out->result.command));
    value_put(&map, "redacted", NULL,
              value_uint(command_secrets(facts->arena, out->job->line.argv), UNIT_NONE));
    value_put(&map, "name", NULL, value_text(out->result.name));
    value_put(&map, "n", NULL, value_uint(out->result.runs.len, UNIT_NONE));
    value_put(&map, "warmup", NULL, value_uint(out->result.warmup, UNIT_NONE));
    value_put(&map, "end", NULL, value_text(end_name(out->end)));
    value_put(&map, "failed_runs", NULL, value_uint(out->failed, UNIT_NONE));
    if (out->end == BENCH_FAILED)
        value_put(&map, "failure", NULL, value_text(out->failure.what));
    value_put(&map, "metric", NULL, value_text(bench_metrics[facts->plan->metric].name));
    value_put(&map, "stable", NULL,
              out->result.runs.len >= BENCH_INTERVAL_RUNS ? value_bool(!out->unstable)
                                                          : value_na("fewer than 6 runs"));
    value_put(&map, "outputs", NULL,
              out->outputs > 0 ? value_uint(out->outputs, UNIT_NONE)
                               : value_na("the output was not read"));
    hyperfine_put(facts, out, &map);
    for (int i = 0; i < BENCH_METRICS; i++)
        value_put(&map, bench_metrics[i].key, NULL, metric_map(facts, out, i));
    rate_put(facts, out, &map, "ops_per_s", facts->plan->ops);
    rate_put(facts, out, &map, "bytes_per_s", (double)facts->plan->size_bytes);
    struct value *series = value_put(&map, "series", NULL, value_map(facts->arena));
    value_put(series, "lag1", NULL, real_or(out->dependence.lag1, "too few or equal runs"));
    value_put(series, "trend_rho", NULL, real_or(out->trend.rho, "too few or equal runs"));
    value_put(series, "dip", NULL, value_real(out->modes.dip, UNIT_NONE));
    value_put(series, "two_modes", NULL, value_bool(out->modes.two));
    value_put(&map, "warnings", NULL, warnings_table(facts, out));
    value_put(&map, "runs", NULL, runs_table(facts, out));
    return map;
}

/* ---- for people ---- */

static const char *measured_text(const struct bench_facts *facts, const struct bench_outcome *out)
{
    char took[48];
    units_format((double)out->elapsed_ns, UNIT_NS, took, sizeof(took));
    const char *why = out->end == BENCH_CERTAIN       ? "; the median is certain enough"
                      : out->end == BENCH_BUDGET      ? "; the budget ended"
                      : out->end == BENCH_INTERRUPTED ? "; interrupted"
                      : out->end == BENCH_FAILED      ? "; ended by a failure"
                                                      : "";
    return arena_printf(facts->arena, "%zu run%s after %zu warm-up, in %s%s", out->result.runs.len,
                        out->result.runs.len == 1 ? "" : "s", out->result.warmup, took, why);
}

static struct value headline(const struct bench_facts *facts, const struct bench_outcome *out)
{
    int metric = (int)facts->plan->metric;
    const struct summary *s = &out->summaries[metric];
    if (s->count == 0)
        return value_na(reason_of(out, metric));
    if (!s->has_interval)
        return value_text(arena_printf(facts->arena, "%s, from fewer than 6 runs",
                                       figure_text(facts, metric, s->median)));
    return value_text(arena_printf(facts->arena, "%s, 95%% interval %s (+-%.1f%%)",
                                   figure_text(facts, metric, s->median),
                                   interval_text(facts, metric, s), out->half_width * 100));
}

static struct value stability(const struct bench_facts *facts, const struct bench_outcome *out)
{
    const struct summary *s = &out->summaries[facts->plan->metric];
    if (s->count < BENCH_INTERVAL_RUNS)
        return value_na("fewer than 6 runs say nothing about drift");
    const char *word = out->unstable                               ? "unstable"
                       : out->half_width * 100 > NOISE_PERCENT_MAX ? "noisy"
                                                                   : "stable";
    const char *text = arena_printf(
        facts->arena, "%s: varies by %.1f%% (CV), drifts by %+.1f%%, %zu outlier%s kept", word,
        s->cv_percent, s->drift_percent, s->outliers, s->outliers == 1 ? "" : "s");
    return value_tone(value_text(text), strcmp(word, "stable") == 0 ? TONE_GOOD : TONE_WARN);
}

static struct value output_text(const struct bench_facts *facts, const struct bench_outcome *out)
{
    if (out->outputs == 0)
        return value_na("the output was not read (--output)");
    const struct bench_run *last = &out->result.runs.data[out->result.runs.len - 1];
    char bytes[48];
    units_format((double)last->output_bytes, UNIT_BYTES, bytes, sizeof(bytes));
    const char *golden = facts->plan->golden.kind == GOLDEN_NONE ? ""
                         : out->failed == 0                      ? ", as golden"
                                                                 : ", not always as golden";
    if (out->outputs > 1)
        return value_tone(
            value_text(arena_printf(facts->arena, "%zu different ones%s", out->outputs, golden)),
            TONE_WARN);
    return value_text(last->output_bytes == 0
                          ? arena_printf(facts->arena, "empty in every run%s", golden)
                          : arena_printf(facts->arena,
                                         "%s, the same in every run (sha256 %.16s...)%s", bytes,
                                         last->output_sha256, golden));
}

static const struct column cost_columns[] = {
    {"metric", "metric", SHOW_ALWAYS, false, false},
    {"median", "median", SHOW_ALWAYS, true, false},
    {"ci95", "95% interval", SHOW_ALWAYS, true, false},
    {"mean", "mean", SHOW_ALWAYS, true, false},
    {"p95", "p95", SHOW_ALWAYS, true, false},
    {"max", "max", SHOW_ALWAYS, true, false},
};

static void cost_row(const struct bench_facts *facts, const struct bench_outcome *out,
                     struct value *table, int metric)
{
    const struct summary *s = &out->summaries[metric];
    struct table_row *row = table_add(table);
    if (!row)
        return;
    row->cells[0] = value_text(bench_metrics[metric].about);
    row->cells[1] = value_text(figure_text(facts, metric, s->median));
    row->cells[2] = s->has_interval ? value_text(interval_text(facts, metric, s))
                                    : value_na("fewer than 6 runs");
    row->cells[3] = value_text(figure_text(facts, metric, s->mean));
    row->cells[4] = s->p95_carried ? value_text(figure_text(facts, metric, s->p95))
                                   : value_na("wants 20 runs");
    row->cells[5] = value_text(figure_text(facts, metric, s->max));
}

static struct value cost_table(const struct bench_facts *facts, const struct bench_outcome *out)
{
    struct value table = value_table(facts->arena, cost_columns, ARRAY_SIZE(cost_columns));
    for (int i = 0; i < BENCH_METRICS; i++)
        if (out->summaries[i].count > 0)
            cost_row(facts, out, &table, i);
    return table;
}

/* What could not be had, with its reason; all counters in one line, and nothing about PSS when
 * it was not asked for. */
static void missing_put(const struct bench_facts *facts, const struct bench_outcome *out,
                        struct value *map)
{
    for (int i = 0; i < BENCH_METRICS; i++) {
        bool same = i > BENCH_CYCLES && out->summaries[BENCH_CYCLES].count == 0;
        bool unasked = i == BENCH_PEAK_PSS && facts->plan->pss_every_ns == 0;
        if (out->summaries[i].count > 0 || same || unasked)
            continue;
        value_put_for(map, SHOW_PEOPLE, bench_metrics[i].key,
                      i == BENCH_CYCLES ? "hardware counters" : bench_metrics[i].about,
                      value_na(reason_of(out, i)));
    }
}

static const struct column spread_columns[] = {
    {"statistic", "statistic", SHOW_ALWAYS, false, false},
    {"value", "value", SHOW_ALWAYS, true, false},
    {"note", "note", SHOW_ALWAYS, false, true},
};

static void spread_row(const struct bench_facts *facts, struct value *table, const char *name,
                       const char *text, unsigned wants)
{
    struct table_row *row = table_add(table);
    if (!row)
        return;
    row->cells[0] = value_text(name);
    row->cells[1] = value_text(text);
    row->cells[2] = value_text(
        wants ? arena_printf(facts->arena, "conservative: wants %u runs to carry it", wants) : "");
}

/* One run does not vary. */
static const char *spread_text(const struct bench_facts *facts, int metric, double spread)
{
    return isnan(spread) ? "n/a: one run only" : figure_text(facts, metric, spread);
}

static struct value spread_table(const struct bench_facts *facts, const struct bench_outcome *out)
{
    int metric = (int)facts->plan->metric;
    const struct summary *s = &out->summaries[metric];
    struct value table = value_table(facts->arena, spread_columns, ARRAY_SIZE(spread_columns));
    if (s->count == 0)
        return table;
    struct percentile rows[PERCENTILES];
    percentiles_fill(s, rows);
    for (size_t i = 0; i < PERCENTILES; i++)
        spread_row(facts, &table, rows[i].title, figure_text(facts, metric, rows[i].number),
                   rows[i].carried ? 0 : rows[i].wants);
    spread_row(facts, &table, "standard deviation", spread_text(facts, metric, s->stddev), 0);
    spread_row(facts, &table, "MAD", spread_text(facts, metric, s->mad), 0);
    return table;
}

static void plots_put(const struct bench_facts *facts, const struct bench_outcome *out,
                      struct value *map)
{
    int metric = (int)facts->plan->metric;
    size_t count = out->result.runs.len;
    double *values = arena_alloc(facts->arena, count * sizeof(*values));
    if (!values || out->summaries[metric].count == 0)
        return;
    for (size_t i = 0; i < count; i++)
        values[i] = out->result.runs.data[i].value[metric];
    enum unit unit = bench_metrics[metric].unit;
    value_put_for(map, SHOW_TERMINAL, "histogram", "How often",
                  plot_histogram(facts->arena, values, count, unit));
    value_put_for(map, SHOW_TERMINAL, "order", "In the order of the runs",
                  plot_order(facts->arena, values, count, unit));
}

static struct value rate_text(const struct bench_facts *facts, const struct bench_outcome *out,
                              double work, bool bytes)
{
    double rate = work / out->summaries[BENCH_WALL].median * 1000;
    char text[48];
    units_format(rate, bytes ? UNIT_BYTES : UNIT_COUNT, text, sizeof(text));
    return value_text(arena_printf(facts->arena, "%s/s", text));
}

static void people_put(const struct bench_facts *facts, const struct bench_outcome *out,
                       struct value *map)
{
    value_put_for(map, SHOW_PEOPLE, "command", NULL, value_text(out->result.command));
    if (strcmp(out->result.name, out->result.command) != 0)
        value_put_for(map, SHOW_PEOPLE, "name", NULL, value_text(out->result.name));
    value_put_for(map, SHOW_PEOPLE, "measured", NULL, value_text(measured_text(facts, out)));
    value_put_for(map, SHOW_PEOPLE, "headline", bench_metrics[facts->plan->metric].about,
                  headline(facts, out));
    value_put_for(map, SHOW_PEOPLE, "stability", NULL, stability(facts, out));
    value_put_for(map, SHOW_PEOPLE, "output", NULL, output_text(facts, out));
    if (facts->plan->ops > 0)
        value_put_for(map, SHOW_PEOPLE, "ops", "operations",
                      rate_text(facts, out, facts->plan->ops, false));
    if (facts->plan->size_bytes > 0)
        value_put_for(map, SHOW_PEOPLE, "bytes", "throughput",
                      rate_text(facts, out, (double)facts->plan->size_bytes, true));
    missing_put(facts, out, map);
    struct bench_warning warnings[BENCH_WARNINGS_MAX];
    size_t len = bench_warn(facts->arena, facts->plan, out, facts->shell, warnings);
    if (len > 0) {
        struct value *list = value_put_for(map, SHOW_PEOPLE, "notes", "To know",
                                           value_list(facts->arena));
        for (size_t i = 0; i < len; i++)
            value_append(
                list, value_tone(value_text(arena_printf(facts->arena, "%s; %s",
                                                         warnings[i].message, warnings[i].advice)),
                                 TONE_WARN));
    }
    value_put_for(map, SHOW_PEOPLE, "costs", "What a run costs", cost_table(facts, out));
}

static const struct column summary_columns[] = {
    {"result", "command", SHOW_ALWAYS, false, true},
    {"median", "median", SHOW_ALWAYS, true, false},
    {"ci95", "95% interval", SHOW_ALWAYS, true, false},
    {"relative", "relative", SHOW_ALWAYS, true, false},
};

static void summary_row(const struct bench_facts *facts, const struct bench_outcome *out,
                        struct value *table, const char *name, double best)
{
    int metric = (int)facts->plan->metric;
    const struct summary *s = &out->summaries[metric];
    struct table_row *row = table_add(table);
    if (!row)
        return;
    row->cells[0] = value_text(name);
    if (s->count == 0) {
        row->cells[1] = value_na(reason_of(out, metric));
        row->cells[2] = row->cells[3] = value_text("");
        return;
    }
    row->cells[1] = value_text(figure_text(facts, metric, s->median));
    row->cells[2] = s->has_interval ? value_text(interval_text(facts, metric, s))
                                    : value_na("fewer than 6 runs");
    row->cells[3] = best > 0 ? value_text(arena_printf(facts->arena, "%.2f", s->median / best))
                             : value_text("");
}

static struct value summary_table(const struct bench_facts *facts)
{
    struct value table = value_table(facts->arena, summary_columns, ARRAY_SIZE(summary_columns));
    double best = INFINITY;
    for (size_t i = 0; i < facts->len; i++)
        if (facts->outcomes[i].summaries[facts->plan->metric].count > 0)
            best = fmin(best, facts->outcomes[i].summaries[facts->plan->metric].median);
    for (size_t i = 0; i < facts->len; i++)
        summary_row(facts, &facts->outcomes[i], &table, facts->outcomes[i].result.name, best);
    if (facts->shell && facts->shell->result.runs.len > 0)
        summary_row(facts, facts->shell, &table, "the shell alone, in each of them", 0);
    return table;
}

static void shell_put(const struct bench_facts *facts, struct value *root)
{
    const struct bench_outcome *shell = facts->shell;
    if (!shell || shell->result.runs.len == 0)
        return;
    struct value map = value_map(facts->arena);
    value_put(&map, "command", NULL,
              value_text(command_quote(facts->arena, shell->job->line.argv)));
    value_put(&map, "n", NULL, value_uint(shell->result.runs.len, UNIT_NONE));
    for (int i = BENCH_WALL; i <= BENCH_CPU; i++)
        value_put(&map, bench_metrics[i].key, NULL, metric_map(facts, shell, i));
    value_put_machine(root, "shell", map);
}

struct value bench_report_make(const struct bench_facts *facts)
{
    struct value root = value_map(facts->arena);
    bool several = facts->len > 1 || facts->shell;
    struct value *results = value_put_machine(&root, "results", value_list(facts->arena));
    for (size_t i = 0; i < facts->len; i++)
        value_append(results, result_map(facts, &facts->outcomes[i]));
    shell_put(facts, &root);
    value_put_machine(&root, "warnings", warnings_table(facts, NULL));
    value_put_machine(&root, "fingerprint", *facts->fingerprint);
    if (facts->len == 1) {
        people_put(facts, &facts->outcomes[0], &root);
        value_put_for(&root, SHOW_PEOPLE, "spread", "Spread",
                      spread_table(facts, &facts->outcomes[0]));
        plots_put(facts, &facts->outcomes[0], &root);
    }
    for (size_t i = 0; facts->len > 1 && i < facts->len; i++) {
        struct value map = value_map(facts->arena);
        people_put(facts, &facts->outcomes[i], &map);
        value_put_for(&root, SHOW_PEOPLE, "section",
                      arena_printf(facts->arena, "Command %zu", i + 1), map);
    }
    if (several)
        value_put_for(&root, SHOW_PEOPLE, "summary",
                      "Summary (made one after the other; 'whyslow compare' gives a verdict)",
                      summary_table(facts));
    return root;
}
