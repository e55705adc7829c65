/* Runs to statistics, and statistics to words with advice. */
#include "cmd/bench.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PIPE_BYTES_NOTED = 64 << 20,
    OUTPUTS_COUNTED_MAX = 64,
    ROUGH_KIB_MAX = 4096,
};

/* By how much ru_maxrss may be off: each CPU keeps up to `batch` pages of each of three counters
 * to itself (lib/percpu_counter.c). Bounded, since no small program visits a hundred CPUs. */
static double memory_roughness_kib(void)
{
    double cpus = (double)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
    double batch = fmax(32, 2 * cpus);
    return fmin(3 * batch * cpus * (double)sysconf(_SC_PAGESIZE) / 1024, ROUGH_KIB_MAX);
}

/* The exact figures stand for all runs unless the rough ones of the runs contradict: a child
 * may be larger than the process that was read, or the warm-up runs did something else. */
static int memory_describe(struct bench_outcome *out)
{
    struct summary exact, *rough = &out->summaries[BENCH_PEAK_RSS];
    if (out->exact_kib.len == 0)
        return 0;
    int r = summary_make(out->exact_kib.data, out->exact_kib.len, &exact);
    if (r < 0)
        return r;
    double slack = fmax(memory_roughness_kib(), rough->median / 100);
    if (rough->count > 0 && fabs(exact.median - rough->median) > slack)
        return 0;
    *rough = exact;
    out->exact_memory = true;
    return 0;
}

static void outputs_count(struct bench_outcome *out)
{
    const char *seen[OUTPUTS_COUNTED_MAX] = {0};
    for (size_t i = 0; i < out->result.runs.len; i++) {
        const struct bench_run *run = &out->result.runs.data[i];
        size_t j = 0;
        while (j < out->outputs && seen[j] && strcmp(seen[j], run->output_sha256) != 0)
            j++;
        if (run->output_known && j == out->outputs && out->outputs < OUTPUTS_COUNTED_MAX)
            seen[out->outputs++] = run->output_sha256;
    }
}

static int metric_describe(struct bench_outcome *out, int metric, double *values)
{
    size_t count = out->result.runs.len;
    for (size_t i = 0; i < count; i++)
        values[i] = out->result.runs.data[i].value[metric];
    int r = summary_make(values, count, &out->summaries[metric]);
    if (r == -EINVAL) { /* not known for every run */
        out->summaries[metric] = (struct summary){0};
        if (!out->result.missing[metric])
            out->result.missing[metric] = "n/a: not known for every run";
        return 0;
    }
    return r;
}

static int series_describe(struct bench_outcome *out, const double *values, size_t count)
{
    int r = modes_find(values, count, &out->modes);
    if (r == 0)
        r = series_dependence(values, count, &out->dependence);
    return r == 0 ? series_trend(values, count, &out->trend) : r;
}

int bench_describe(const struct bench_plan *plan, struct bench_outcome *out)
{
    size_t count = out->result.runs.len;
    out->half_width = NAN;
    out->dependence = (struct series_dependence){NAN, NAN};
    out->trend = (struct series_trend){NAN, NAN};
    if (count == 0)
        return 0;
    double *values = malloc(count * sizeof(*values));
    if (!values)
        return -ENOMEM;
    int r = 0;
    for (int i = 0; i < BENCH_METRICS && r == 0; i++)
        r = metric_describe(out, i, values);
    const struct summary *s = &out->summaries[plan->metric];
    for (size_t i = 0; i < count; i++)
        values[i] = out->result.runs.data[i].value[plan->metric];
    if (r == 0 && s->count > 0)
        r = series_describe(out, values, count);
    free(values);
    if (s->has_interval && s->median != 0)
        out->half_width = (s->median_high - s->median_low) / 2 / fabs(s->median);
    out->unstable = s->count > 0 && fabs(s->drift_percent) > BENCH_DRIFT_PERCENT;
    outputs_count(out);
    return r < 0 ? r : memory_describe(out);
}

struct words {
    struct arena *arena;
    const struct bench_plan *plan;
    const struct bench_outcome *out;
    struct bench_warning *list;
    size_t len;
};

static void say(struct words *words, const char *kind, const char *message, const char *advice)
{
    if (words->len < BENCH_WARNINGS_MAX)
        words->list[words->len++] = (struct bench_warning){kind, message, advice};
}

static const char *metric_title(const struct words *words)
{
    return bench_metrics[words->plan->metric].about;
}

static void say_counts(struct words *words)
{
    const struct bench_outcome *out = words->out;
    size_t count = out->result.runs.len;
    if (out->failed > 0)
        say(words, "failed_runs",
            arena_printf(words->arena, "%zu of %zu runs failed, and count like any other",
                         out->failed, count),
            "do not compare figures of a program that does not do its work");
    if (count < BENCH_INTERVAL_RUNS)
        say(words, "few_runs",
            arena_printf(words->arena, "%zu run%s: no interval can be given under %d", count,
                         count == 1 ? "" : "s", BENCH_INTERVAL_RUNS),
            "make more runs with --runs, or give more time with --budget");
    if (out->left_behind > 0)
        say(words, "left_behind",
            arena_printf(words->arena,
                         "%zu run%s left processes running; they were killed, and their figures "
                         "are not in the result",
                         out->left_behind, out->left_behind == 1 ? "" : "s"),
            "let the command wait for what it starts");
    if (out->outputs > 1 && words->plan->golden.kind == GOLDEN_NONE)
        say(words, "outputs_differ",
            arena_printf(words->arena, "%zu%s different outputs in %zu runs", out->outputs,
                         out->outputs == OUTPUTS_COUNTED_MAX ? " or more" : "", count),
            "is the work the same each time? --golden checks it");
}

static void say_drift(struct words *words)
{
    const struct bench_outcome *out = words->out;
    const struct summary *s = &out->summaries[words->plan->metric];
    if (s->count == 0)
        return;
    if (out->unstable)
        say(words, "unstable",
            arena_printf(words->arena,
                         "unstable: %s moved by %+.1f%% from the first to the last third of the "
                         "runs; more than %d%% is no baseline",
                         metric_title(words), s->drift_percent, BENCH_DRIFT_PERCENT),
            "look for other load, heat or a filling cache ('whyslow doctor'), then measure again");
    else if (fabs(out->trend.z) > 2.576 && fabs(s->drift_percent) >= 2)
        say(words, "trend",
            arena_printf(words->arena, "the runs get %s: %+.1f%% from the first to the last third",
                         s->drift_percent > 0 ? "slower" : "faster", s->drift_percent),
            s->drift_percent > 0 ? "does the command leave more behind each time? --prepare can "
                                   "put it back"
                                 : "give more warm-up runs: --warmup N");
    if (!words->plan->warmup_given && !out->settled && s->count >= BENCH_INTERVAL_RUNS &&
        s->drift_percent < -2)
        say(words, "warmup",
            arena_printf(words->arena, "the warm-up of %zu runs ended by its limit, not by calm",
                         out->result.warmup),
            "give its length: --warmup N");
}

static void say_shape(struct words *words)
{
    const struct bench_outcome *out = words->out;
    const struct summary *s = &out->summaries[words->plan->metric];
    enum unit unit = bench_metrics[words->plan->metric].unit;
    char low[48], high[48];
    if (out->modes.two)
        say(words, "two_modes",
            arena_printf(words->arena, "two kinds of runs: %.0f%% near %s, %.0f%% near %s",
                         out->modes.low_share * 100,
                         units_format(out->modes.low, unit, low, sizeof(low)),
                         100 - out->modes.low_share * 100,
                         units_format(out->modes.high, unit, high, sizeof(high))),
            "the median stands for neither: find what differs (cache, CPU, input order)");
    double lag1 = out->dependence.lag1;
    if (fabs(lag1) > fmax(out->dependence.limit, 0.2))
        say(words, "dependent",
            arena_printf(words->arena,
                         "runs depend on the one before (lag-1 correlation %+.2f): the interval is "
                         "%s than it looks",
                         lag1, lag1 > 0 ? "less certain" : "more certain"),
            "put back what a run changes with --prepare, or compare interleaved: 'whyslow "
            "compare'");
    if (s->outliers * 20 > s->count)
        say(words, "outliers",
            arena_printf(words->arena, "%zu of %zu runs are outliers; they are kept", s->outliers,
                         s->count),
            "is anything else running? 'whyslow doctor' looks");
    if (out->end == BENCH_BUDGET && out->half_width > 5 * BENCH_PRECISION)
        say(words, "noisy",
            arena_printf(words->arena, "the budget ended with the median known to +-%.1f%% only",
                         out->half_width * 100),
            "give more time with --budget, or a quieter machine");
}

static void say_streams(struct words *words, const struct bench_outcome *shell)
{
    const struct bench_outcome *out = words->out;
    size_t count = out->result.runs.len;
    const struct bench_run *last = count > 0 ? &out->result.runs.data[count - 1] : NULL;
    char size[48], share[48];
    if (last && last->output_bytes > PIPE_BYTES_NOTED)
        say(words, "large_output",
            arena_printf(words->arena,
                         "each run prints %s; reading it back takes time that counts as the "
                         "program's",
                         units_format((double)last->output_bytes, UNIT_BYTES, size, sizeof(size))),
            "--output null measures without reading it");
    if (last && last->running_share < 0.9)
        say(words, "multiplexed",
            arena_printf(words->arena, "hardware counters ran %.0f%% of the time and are scaled up",
                         last->running_share * 100),
            "stop other users of the counters");
    double all = out->summaries[BENCH_WALL].median;
    double own = shell ? shell->summaries[BENCH_WALL].median : 0;
    if (all > 0 && own > all / 20)
        say(words, "shell_cost",
            arena_printf(words->arena, "the shell itself takes %s of it, %.0f%%",
                         units_format(own, UNIT_MS, share, sizeof(share)), own / all * 100),
            "measure the program without a shell");
}

size_t bench_warn(struct arena *arena, const struct bench_plan *plan,
                  const struct bench_outcome *outcome, const struct bench_outcome *shell,
                  struct bench_warning ret[BENCH_WARNINGS_MAX])
{
    struct words words = {.arena = arena, .plan = plan, .out = outcome, .list = ret};
    say_counts(&words);
    say_drift(&words);
    say_shape(&words);
    say_streams(&words, shell);
    return words.len;
}
