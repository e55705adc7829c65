/* scale: the same command at growing sizes or thread counts, and the law behind it. */
#include "cmd/cmd.h"

#include "base/clock.h"
#include "base/progress.h"
#include "cmd/interrupts.h"
#include "cmd/scale_report.h"
#include "host/fingerprint.h"
#include "stats/random.h"
#include "target/command.h"
#include "target/interrupt.h"
#include "target/measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { ROUNDS_MIN = 3, ROUNDS_MAX = 10000 };

struct scale_opts {
    const char *units;
    const char *threads;
    bool work_per_thread;
    const char *metric;
    const char *shell;
    uint32_t rounds;
    uint32_t warmup;
    uint64_t budget_ns;
    uint64_t timeout_ns;
    const char *input;
    const char *svg;
    bool ignore_failure;
    bool keep_arguments;
    struct output_opts output;
};

static const struct opt scale_options[] = {
    {"units", 0, OPT_TEXT, offsetof(struct scale_opts, units), "LIST",
     "sizes to run at, in place of {n}", "1,10,50,100,500,1000", NULL, false},
    {"threads", 0, OPT_TEXT, offsetof(struct scale_opts, threads), "LIST",
     "thread counts to run at, in place of {n}; fits the universal scalability law", NULL, NULL,
     false},
    {"work-per-thread", 0, OPT_FLAG, offsetof(struct scale_opts, work_per_thread), NULL,
     "with --threads: n threads do n times the work, not the same work", NULL, NULL, false},
    {"metric", 0, OPT_TEXT, offsetof(struct scale_opts, metric), "NAME",
     "what to fit: wall, user, cpu, peak_rss, …", "wall", NULL, false},
    {"runs", 'r', OPT_U32, offsetof(struct scale_opts, rounds), "N", "runs at every step", "20",
     NULL, false},
    {"warmup", 'w', OPT_U32, offsetof(struct scale_opts, warmup), "N",
     "runs of every step before them, not counted", "1", NULL, false},
    {"budget", 0, OPT_DURATION, offsetof(struct scale_opts, budget_ns), "TIME",
     "stop when this time is spent; sizes too large for 3 rounds of it are left out", "60s", NULL,
     false},
    {"timeout", 0, OPT_DURATION, offsetof(struct scale_opts, timeout_ns), "TIME",
     "end a run that takes longer than this", "10m", NULL, false},
    {"shell", 'S', OPT_TEXT, offsetof(struct scale_opts, shell), "SHELL",
     "run the command through this shell; without it sh, if it needs one", NULL, NULL, false},
    {"input", 0, OPT_FILE, offsetof(struct scale_opts, input), "FILE",
     "file for its standard input; {n} is replaced here too", NULL, NULL, false},
    {"ignore-failure", 'i', OPT_FLAG, offsetof(struct scale_opts, ignore_failure), NULL,
     "go on although a run exits with a failure", NULL, NULL, false},
    {"svg", 0, OPT_FILE, offsetof(struct scale_opts, svg), "FILE", "write the plot as SVG", NULL,
     NULL, false},
    KEEP_ARGUMENTS_OPTION(offsetof(struct scale_opts, keep_arguments)),
    OUTPUT_OPTIONS(struct scale_opts, output),
    {0},
};

static int ascending(const void *a, const void *b)
{
    const struct scale_step *x = a, *y = b;
    return (x->units > y->units) - (x->units < y->units);
}

/* "1,10,100" into steps, ascending, each once. */
static int steps_parse(struct scale *scale, const char *list, const char *option, struct why *why)
{
    const char *at = list;
    for (;;) {
        char *end = NULL;
        errno = 0;
        unsigned long long units = strtoull(at, &end, 10);
        bool digit = *at >= '0' && *at <= '9';
        if (!digit || errno != 0 || units == 0 || units > (1ull << 53) ||
            (*end != ',' && *end != '\0'))
            return why_set(why, WHY_USAGE, EINVAL, "such as --units 1,10,100,1000",
                           "--%s '%s': whole numbers from 1, separated by commas", option, list);
        if (scale->count == SCALE_STEPS_MAX)
            return why_set(why, WHY_USAGE, E2BIG, "choose fewer sizes, farther apart",
                           "--%s: more than %d steps", option, SCALE_STEPS_MAX);
        for (size_t i = 0; i < scale->count; i++)
            if (scale->steps[i].units == (double)units)
                return why_set(why, WHY_USAGE, EINVAL, "give each size once",
                               "--%s: %llu is given twice", option, units);
        scale->steps[scale->count++].units = (double)units;
        if (*end == '\0')
            break;
        at = end + 1;
    }
    qsort(scale->steps, scale->count, sizeof(scale->steps[0]), ascending);
    if (scale->count < 2)
        return why_set(why, WHY_USAGE, EINVAL, "such as --units 1,10,100,1000",
                       "--%s: one step shows no growth", option);
    return 0;
}

/* Every "{n}" becomes the number. */
static const char *substitute(struct arena *arena, const char *text, double units)
{
    const char *result = "";
    const char *found;
    while ((found = strstr(text, "{n}"))) {
        result = arena_printf(arena, "%s%.*s%.0f", result, (int)(found - text), text, units);
        text = found + strlen("{n}");
    }
    return arena_printf(arena, "%s%s", result, text);
}

struct plan {
    const struct scale_opts *opts;
    const struct cmd_call *call;
    struct scale *scale;
    struct command_line lines[SCALE_STEPS_MAX];
    struct bench_run first[SCALE_STEPS_MAX]; /* of each step */
    uint64_t random;
    uint64_t deadline_ns;
};

static int plan_commands(struct plan *plan, struct why *why)
{
    struct scale *scale = plan->scale;
    if (!strstr(scale->command, "{n}") && !(plan->opts->input && strstr(plan->opts->input, "{n}")))
        return why_set(why, WHY_USAGE, EINVAL,
                       "such as: whyslow scale 'sort --parallel={n} data.txt'",
                       "the command has no {n}, so every step would be the same");
    const char *shell = command_shell_for(scale->arena, plan->opts->shell, &scale->command, 1);
    for (size_t i = 0; i < scale->count; i++) {
        struct scale_step *step = &scale->steps[i];
        const char *command = substitute(scale->arena, scale->command, step->units);
        int r = command_line_parse(scale->arena, command, shell, &plan->lines[i], why);
        if (r < 0)
            return r;
        step->command = step->result.command = step->result.name = plan->lines[i].text;
    }
    scale->command = command_text_shown(scale->arena, scale->command);
    return 0;
}

static int failure(const struct scale_step *step, const struct bench_run *run, struct why *why)
{
    if (run->timed_out)
        return why_set(why, WHY_FAILED, ETIMEDOUT, "raise --timeout, or leave out the large sizes",
                       "'%s' ran longer than --timeout allows", step->command);
    if (WIFSIGNALED(run->status))
        return why_set(why, WHY_FAILED, ECANCELED, "run it once by hand",
                       "'%s' was killed by signal %d", step->command, WTERMSIG(run->status));
    return why_set(why, WHY_FAILED, ECANCELED, "run it once by hand, or say --ignore-failure",
                   "'%s' exited with status %d", step->command, WEXITSTATUS(run->status));
}

/* 1: it was ended at `limit_ns`, which is the budget's. */
static int run_once(struct plan *plan, size_t index, uint64_t limit_ns, struct bench_run *run,
                    struct why *why)
{
    struct scale_step *step = &plan->scale->steps[index];
    const struct command_line *line = &plan->lines[index];
    struct measure_opts opts = {
        .argv = line->argv,
        .path = line->path,
        .input = plan->opts->input ? substitute(plan->scale->arena, plan->opts->input, step->units)
                                   : NULL,
        .timeout_ns = MAX(MIN(plan->opts->timeout_ns, limit_ns), (uint64_t)NS_PER_MS),
    };
    *run = (struct bench_run){0};
    int r = measure_run(&opts, run, step->result.missing, why);
    if (r < 0 || interrupt_signal() != 0)
        return r;
    if (run->timed_out && limit_ns < plan->opts->timeout_ns)
        return 1;
    run->failed = run->timed_out || run->status != 0;
    return run->failed && !plan->opts->ignore_failure ? failure(step, run, why) : 0;
}

static int run_count(struct plan *plan, size_t index, const struct bench_run *run, struct why *why)
{
    struct scale_step *step = &plan->scale->steps[index];
    double cost = run->value[plan->scale->metric];
    if (isnan(cost))
        return why_set(why, WHY_DENIED, EOPNOTSUPP, "choose another --metric",
                       "%s could not be measured: %s", bench_metrics[plan->scale->metric].name,
                       step->result.missing[plan->scale->metric]
                           ? step->result.missing[plan->scale->metric]
                           : "no reason known");
    if (VEC_PUSH(&step->result.runs, *run) < 0 ||
        (!run->timed_out && VEC_PUSH(&step->costs, cost) < 0))
        return why_nomem(why);
    return 0;
}

static uint64_t budget_left_ns(const struct plan *plan)
{
    uint64_t now_ns = clock_mono_ns();
    return now_ns < plan->deadline_ns ? plan->deadline_ns - now_ns : 0;
}

/* This step and all larger ones. */
static void steps_leave_out(struct scale *scale, size_t from, double ns, bool ended)
{
    for (size_t i = from; i < scale->count; i++)
        scale->left_out[scale->left_out_count++] = scale->steps[i].units;
    scale->left_out_ns = ns;
    scale->left_out_ended = ended;
    scale->count = from;
}

/* Each size once, the small ones first: what does not fit into the budget with the rounds that are
 * to follow is left out, foretold from the sizes before it or ended when it shows. */
static int run_first(struct plan *plan, struct progress *progress, uint64_t *done, struct why *why)
{
    struct scale *scale = plan->scale;
    double units[SCALE_STEPS_MAX], costs[SCALE_STEPS_MAX], sum_ns = 0;
    for (size_t i = 0; i < scale->count && interrupt_signal() == 0; i++) {
        struct bench_run *run = &plan->first[i];
        /* Of as many sizes as a law needs, one round is better than none. */
        uint64_t rounds = i < GROWTH_STEPS_MIN ? 1 : MIN(plan->opts->rounds, (uint32_t)ROUNDS_MIN);
        uint64_t left_ns = budget_left_ns(plan);
        double next_ns = growth_next(units, costs, i, scale->steps[i].units);
        double all_ns = next_ns + (double)rounds * (sum_ns + next_ns);
        if (i > 0 && all_ns > (double)left_ns) {
            steps_leave_out(scale, i, next_ns, false);
            return 0;
        }
        progress_update(progress, (*done)++, scale->steps[i].command);
        double spare_ns = fmax(0, (double)left_ns - (double)rounds * sum_ns);
        uint64_t limit_ns = (uint64_t)(spare_ns / (i > 0 ? (double)rounds + 1 : 1));
        int r = run_once(plan, i, limit_ns, run, why);
        if (r == 1 && i > 0) {
            steps_leave_out(scale, i, (double)limit_ns, true);
            return 0;
        }
        if (r == 1)
            return why_set(why, WHY_FAILED, ETIMEDOUT, "raise --budget, or choose smaller sizes",
                           "'%s' alone takes longer than the budget", scale->steps[i].command);
        if (r < 0)
            return r;
        units[i] = scale->steps[i].units;
        costs[i] = run->value[BENCH_WALL] * (double)NS_PER_MS;
        sum_ns += costs[i];
    }
    return 0;
}

/* All steps once, in an order of its own: what drifts with time hits all sizes alike. 1: the
 * budget ended it. */
static int run_round(struct plan *plan, bool counted, struct progress *progress, uint64_t *done,
                     struct why *why)
{
    size_t order[SCALE_STEPS_MAX] = {0}, count = plan->scale->count;
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count; i-- > 1;) {
        size_t k = (size_t)random_below(&plan->random, i + 1);
        size_t swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
    for (size_t i = 0; i < count && interrupt_signal() == 0; i++) {
        struct bench_run run;
        uint64_t left_ns = budget_left_ns(plan);
        if (left_ns == 0)
            return 1;
        progress_update(progress, (*done)++, plan->scale->steps[order[i]].command);
        int r = run_once(plan, order[i], left_ns, &run, why);
        if (r == 0 && counted && interrupt_signal() == 0)
            r = run_count(plan, order[i], &run, why);
        if (r != 0)
            return r;
    }
    return 0;
}

/* Where not one round fitted, the first pass is all there is. */
static int first_count(struct plan *plan, struct why *why)
{
    struct scale *scale = plan->scale;
    for (size_t i = 0; i < scale->count; i++)
        for (; scale->steps[i].result.runs.len == 0;) {
            int r = run_count(plan, i, &plan->first[i], why);
            if (r < 0)
                return r;
        }
    scale->rounds = 1;
    return 0;
}

static int run_rounds(struct plan *plan, struct why *why)
{
    struct scale *scale = plan->scale;
    struct progress progress;
    uint64_t done = 0;
    uint32_t rounds = plan->opts->rounds, warmup = plan->opts->warmup;
    progress_begin(&progress, plan->call->notes, "scale",
                   (uint64_t)(rounds + warmup) * scale->count);
    int r = run_first(plan, &progress, &done, why);
    bool whole = r == 0 && interrupt_signal() == 0;
    if (whole && warmup == 0)
        r = first_count(plan, why);
    for (uint32_t i = 1; i < warmup && r == 0 && interrupt_signal() == 0; i++)
        r = run_round(plan, false, &progress, &done, why);
    while (scale->rounds < rounds && r == 0 && interrupt_signal() == 0) {
        r = run_round(plan, true, &progress, &done, why);
        scale->rounds += r == 0 && interrupt_signal() == 0;
    }
    scale->budget_spent = r == 1;
    r = r == 1 ? 0 : r;
    progress_end(&progress);
    scale->signal = interrupt_signal();
    if (r == 0 && scale->rounds == 0 && !whole)
        return why_set(why, WHY_FAILED, EINTR, "let it finish one round, or choose smaller sizes",
                       "interrupted before the first round was whole");
    return r == 0 && scale->rounds == 0 ? first_count(plan, why) : r;
}

static int check(const struct scale_opts *opts, struct scale *scale, struct why *why)
{
    int metric = bench_metric_find(opts->metric);
    if (metric < 0)
        return why_set(why, WHY_USAGE, EINVAL, "such as wall, user, system, cpu or peak_rss",
                       "there is no metric '%s'", opts->metric);
    if (opts->rounds < 1 || opts->rounds > ROUNDS_MAX || opts->warmup > ROUNDS_MAX)
        return why_set(why, WHY_USAGE, EINVAL, "20 is a good number",
                       "--runs must be 1 to %d, --warmup at most as many", ROUNDS_MAX);
    if (opts->work_per_thread && !opts->threads)
        return why_set(why, WHY_USAGE, EINVAL, "such as --threads 1,2,4",
                       "--work-per-thread means nothing without --threads");
    scale->metric = (enum bench_metric)metric;
    scale->threads = opts->threads != NULL;
    scale->work_per_thread = opts->work_per_thread;
    return scale->threads ? steps_parse(scale, opts->threads, "threads", why)
                          : steps_parse(scale, opts->units, "units", why);
}

static int show(const struct scale_opts *opts, const struct cmd_call *call,
                const struct scale *scale, struct why *why)
{
    struct value root = scale_value(scale);
    if (arena_failed(scale->arena))
        return why_nomem(why);
    struct report report = {"whyslow.scale/1", &root};
    int r = cmd_render(call, &opts->output, &report, why);
    if (r == 0 && !opts->output.json && !opts->output.markdown) {
        fputc('\n', call->out);
        r = scale_plot(scale, call->out, 78, NULL, why);
    }
    if (r == 0 && opts->svg)
        r = scale_plot(scale, NULL, 0, opts->svg, why);
    return r;
}

static int scale_all(const struct scale_opts *opts, const struct cmd_call *call,
                     struct scale *scale, struct why *why)
{
    int r = check(opts, scale, why);
    if (r < 0)
        return r;
    struct plan *plan = arena_alloc(scale->arena, sizeof(*plan));
    if (!plan)
        return why_nomem(why);
    *plan = (struct plan){.opts = opts,
                          .call = call,
                          .scale = scale,
                          .random = clock_mono_ns(),
                          .deadline_ns = clock_mono_ns() + opts->budget_ns};
    r = plan_commands(plan, why);
    if (r < 0)
        return r;
    struct host host = {.root = "", .arena = scale->arena};
    scale->fingerprint = fingerprint_read(&(struct fingerprint_input){
        .host = &host, .binary_na = "not read by scale", .folder = "."});
    interrupt_watch(interrupts_tell);
    r = run_rounds(plan, why);
    interrupt_unwatch();
    if (r == 0)
        r = scale_fit(scale, why);
    return r < 0 ? r : show(opts, call, scale, why);
}

static int scale_run(const struct cmd_call *call, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct scale *scale = arena_alloc(&arena, sizeof(*scale));
    if (!scale)
        return why_nomem(why);
    *scale = (struct scale){.arena = &arena, .command = call->argv[0]};
    int r = scale_all(call->opts, call, scale, why);
    for (size_t i = 0; i < scale->count; i++) {
        bench_result_deinit(&scale->steps[i].result);
        VEC_FREE(&scale->steps[i].costs);
    }
    if (scale->signal == 0)
        return r < 0 ? r : EXIT_DONE;
    if (r < 0)
        cmd_print_error(call->err, why);
    return 128 + scale->signal;
}

static const struct cmd_example examples[] = {
    {"whyslow scale --units 1,10,100,1000 './import rows-{n}.csv'",
     "which law the time follows as the input grows"},
    {"whyslow scale --threads 1,2,4,8 'xz -9 -k -c -T{n} big.tar'",
     "what more threads bring, and where they stop"},
    {"whyslow scale --metric peak_rss --svg growth.svg './app {n}'",
     "the same for memory, with a picture"},
    {NULL, NULL},
};

const struct command cmd_scale = {
    .name = "scale",
    .group = "Measure",
    .operands = "'CMD {n}'",
    .summary = "how the cost grows with the input, or falls with threads",
    .about =
        "Runs the command at several sizes, each in place of {n}, all sizes once a round in random "
        "order, and says which law fits best: constant, log n, linear, n log n, quadratic or "
        "cubic. The weights say what the sizes can tell; 'first in draws' is how often the "
        "law came out best when the runs were drawn anew.\n\n"
        "With --threads the universal scalability law is fitted: how much is done one thread at a "
        "time, and from which number of threads on it gets slower.\n\n"
        "When interrupted it reports the whole rounds made by then, and exits with 128 and the "
        "signal's number.",
    .options = scale_options,
    .options_size = sizeof(struct scale_opts),
    .stop = OPT_MIXED,
    .operands_min = 1,
    .operands_max = 1,
    .examples = examples,
    .run = scale_run,
};
