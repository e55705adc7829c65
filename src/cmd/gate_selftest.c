/* gate --self-test: does the gate, here and now, fail on a slowdown that is there, and keep quiet
 * when there is none? Every side goes through the same wrapper (gate_burn.h), so that the wrapper's
 * own cost is on both. */
#include "cmd/gate.h"

#include "base/clock.h"
#include "stats/summary.h"
#include "target/callgrind.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEARN_RUNS = 20, LEARN_RUNS_MIN = 3 };

/* What is burnt, by metric; NULL where nothing is known that would raise it by a known amount. */
static const char *burn_option(const struct gate *gate)
{
    if (gate->opts->counts)
        return "--burn-loops";
    switch (gate->spec.metric) {
    case BENCH_WALL:
    case BENCH_USER:
    case BENCH_CPU:
        return "--burn-ns";
    case BENCH_PEAK_RSS:
        return "--burn-kib";
    default:
        return NULL;
    }
}

/* `whyslow gate --burn --burn-ns N -- CMD…` */
static int wrap(struct gate *gate, const struct command_line *line, uint64_t amount,
                struct command_line *ret, struct why *why)
{
    size_t count = 0;
    while (line->argv[count])
        count++;
    enum { FIXED = 6 };
    char **argv = arena_alloc(gate->arena, (count + FIXED + 1) * sizeof(*argv));
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len < 0)
        return why_errno(why, errno, "is /proc mounted?", "cannot find whyslow's own program");
    if (!argv)
        return why_nomem(why);
    const char *fixed[FIXED] = {"whyslow",
                                "gate",
                                "--burn",
                                burn_option(gate),
                                arena_printf(gate->arena, "%llu", (unsigned long long)amount),
                                "--"};
    for (size_t i = 0; i < FIXED; i++)
        argv[i] = (char *)arena_dup(gate->arena, fixed[i]);
    for (size_t i = 0; i < count; i++)
        argv[FIXED + i] = line->argv[i];
    *ret = (struct command_line){
        .text = line->text, .argv = argv, .path = arena_dup_len(gate->arena, self, (size_t)len)};
    return arena_failed(gate->arena) ? why_nomem(why) : 0;
}

static int count_learn(const struct gate *gate, const struct ab_opts *opts, double *ret,
                       struct why *why)
{
    (void)gate;
    char valgrind[4096];
    struct callgrind_result result;
    struct callgrind_opts count = {.argv = opts->sides[1].argv,
                                   .path = opts->sides[1].path,
                                   .input = opts->input,
                                   .timeout_ns = opts->timeout_ns};
    int r = callgrind_find(valgrind, why);
    if (r == 0)
        r = callgrind_count(valgrind, &count, &result, why);
    if (r == 0)
        *ret = (double)result.instructions;
    return r;
}

static int double_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What the wrapped baseline costs, at the share the gate looks at; a few runs, a tenth of the
 * budget. */
static int time_learn(struct gate *gate, const struct ab_opts *opts, struct gate_pair *pair,
                      double *ret, struct why *why)
{
    struct progress progress;
    progress_begin(&progress, gate->call->notes, "learning what the baseline costs", 0);
    struct ab_opts alone = *opts;
    alone.alone = true;
    int r = ab_begin(&alone, &pair->ab, why);
    if (r == 0)
        r = ab_measure(&alone, LEARN_RUNS_MIN, LEARN_RUNS,
                       clock_mono_ns() + gate->opts->budget_ns / 10, &progress, &pair->ab, why);
    progress_end(&progress);
    if (r < 0)
        return r;
    if (pair->ab.end == AB_FAILED)
        gate->failed = pair;
    if (pair->ab.end == AB_INTERRUPTED)
        gate->signal = pair->ab.signal;
    if (pair->ab.end != AB_GOING)
        return 0;
    double values[LEARN_RUNS];
    size_t count = MIN(pair->ab.results[1].runs.len, (size_t)LEARN_RUNS);
    for (size_t i = 0; i < count; i++)
        values[i] = pair->ab.results[1].runs.data[i].value[gate->spec.metric];
    qsort(values, count, sizeof(*values), double_compare);
    *ret = percentile_sorted(values, count, gate->spec.share);
    ab_deinit(&pair->ab);
    pair->ab = (struct ab){0};
    return 0;
}

/* Twice the threshold, in the unit of the burner. */
static uint64_t amount_of(const struct gate *gate, double baseline)
{
    double extra = 2 * (gate->threshold - 1) * baseline;
    if (gate->opts->counts)
        return (uint64_t)ceil(extra / 2); /* two instructions a loop */
    if (gate->spec.metric == BENCH_PEAK_RSS)
        return (uint64_t)ceil(baseline + extra);
    return (uint64_t)ceil(extra * NS_PER_MS);
}

static int baseline_test(struct gate *gate, const char *text, struct gate_pair *pairs,
                         struct why *why)
{
    const char *const texts[AB_SIDES] = {text, text};
    struct ab_opts opts;
    int r = ab_opts_make(gate->arena, &gate->opts->ab, texts, &opts, why);
    if (r < 0)
        return r;
    struct command_line plain = opts.sides[0];
    /* 1 KiB is there anyway; 0 would run the command as a child, unlike the other side. */
    bool memory = !gate->opts->counts && gate->spec.metric == BENCH_PEAK_RSS;
    r = wrap(gate, &plain, memory ? 1 : 0, &opts.sides[0], why);
    if (r < 0)
        return r;
    opts.sides[1] = opts.sides[0];
    double baseline = NAN;
    pairs[0].texts[0] = pairs[0].texts[1] = pairs[1].texts[0] = pairs[1].texts[1] = plain.text;
    pairs[0].ab_opts = pairs[1].ab_opts = opts;
    r = gate->opts->counts ? count_learn(gate, &opts, &baseline, why)
                           : time_learn(gate, &opts, &pairs[0], &baseline, why);
    if (r < 0 || gate->failed || gate->signal)
        return r;
    if (!(baseline > 0))
        return why_set(why, WHY_DENIED, ENODATA, "choose another --metric",
                       "self-test: n/a: the baseline's %s is not known or 0", gate->spec.label);
    pairs[0].title = "nothing changed: must not fail";
    pairs[1].title = arena_printf(gate->arena, "made worse by %g%%: must fail",
                                  200 * (gate->threshold - 1));
    pairs[1].slowed = true;
    return wrap(gate, &plain, amount_of(gate, baseline), &pairs[1].ab_opts.sides[1], why);
}

int gate_selftest_make(struct gate *gate, struct why *why)
{
    const struct opt_list *baselines = &gate->opts->baselines;
    if (baselines->len == 0 || baselines->len > GATE_PAIRS_MAX / 2)
        return why_set(why, WHY_USAGE, EINVAL, "whyslow gate --self-test --baseline CMD",
                       "a self-test needs 1 to %d baselines", GATE_PAIRS_MAX / 2);
    if (!burn_option(gate))
        return why_set(
            why, WHY_USAGE, EINVAL,
            "use wall, user, cpu, peak_rss or --counts; the gate itself takes any metric",
            "self-test: n/a: no known way to raise '%s' by a known amount", gate->spec.label);
    gate->pair_count = 2 * baselines->len;
    gate->family = false; /* two expectations, not several questions */
    for (size_t i = 0; i < baselines->len && !gate->failed && !gate->signal; i++) {
        struct ab_source source = {0};
        int r = ab_source_open(gate->arena, baselines->items[i], &source, why);
        if (r < 0)
            return r;
        ab_source_close(&source);
        if (source.kind != AB_COMMAND)
            return why_set(why, WHY_USAGE, EINVAL, "give the command that made it",
                           "a self-test runs the baseline; '%s' is no command",
                           baselines->items[i]);
        r = baseline_test(gate, baselines->items[i], &gate->pairs[2 * i], why);
        if (r < 0)
            return r;
    }
    return 0;
}
