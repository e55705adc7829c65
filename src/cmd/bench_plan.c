/* From options and scenario to a list of jobs. Everything that was mistyped is found here. */
#include "cmd/bench.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/redact.h"
#include "base/words.h"
#include "cmd/scenario.h"
#include "target/program.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEFAULT_BUDGET_S = 20, DEFAULT_TIMEOUT_S = 600, PARAMETER_VALUES_MAX = 1000 };

struct axis { /* one parameter and all its values */
    const char *name;
    const char **values;
    size_t len;
};

struct planner {
    struct arena *arena;
    const struct bench_opts *opts;
    struct bench_plan *plan;
    struct axis axes[BENCH_PARAMETERS_MAX];
    size_t axes_len;
    struct why *why;
};

static int usage(const struct planner *p, const char *remedy, const char *what)
{
    return why_set(p->why, WHY_USAGE, EINVAL, remedy, "%s", what);
}

static int axis_add(struct planner *p, const char *name, size_t room)
{
    if (p->axes_len == BENCH_PARAMETERS_MAX)
        return usage(p, NULL, "more than 8 parameters");
    for (size_t i = 0; i < p->axes_len; i++)
        if (strcmp(p->axes[i].name, name) == 0)
            return why_set(p->why, WHY_USAGE, EINVAL, NULL, "parameter '%s' is given twice", name);
    struct axis *axis = &p->axes[p->axes_len];
    axis->name = name;
    axis->values = arena_alloc(p->arena, (room + 1) * sizeof(*axis->values));
    if (!axis->values)
        return why_nomem(p->why);
    p->axes_len++;
    return 0;
}

/* -L name a,b,c; a comma of a value is written "\,". */
static int list_add(struct planner *p, const char *name, const char *values)
{
    size_t commas = 0;
    for (const char *c = values; *c; c++)
        commas += *c == ',';
    int r = axis_add(p, name, commas + 1);
    if (r < 0)
        return r;
    struct axis *axis = &p->axes[p->axes_len - 1];
    char *text = arena_alloc(p->arena, strlen(values) + 1), *to = text;
    if (!text)
        return why_nomem(p->why);
    axis->values[axis->len++] = text;
    for (const char *c = values; *c; c++) {
        if (*c == '\\' && c[1] == ',')
            *to++ = *++c;
        else if (*c != ',')
            *to++ = *c;
        else {
            *to++ = '\0';
            axis->values[axis->len++] = to;
        }
    }
    return axis->len > PARAMETER_VALUES_MAX ? usage(p, NULL, "too many values of a parameter") : 0;
}

static int decimals_of(const char *text)
{
    const char *dot = strchr(text, '.');
    return dot ? (int)strlen(dot + 1) : 0;
}

/* -P name low high, in steps. */
static int scan_add(struct planner *p, const char *name, const char *low_text,
                    const char *high_text)
{
    const char *step_text = p->opts->step.len > 0 ? p->opts->step.items[0] : "1";
    double low, high, step;
    if (str_to_f64(str_from(low_text), &low) < 0 || str_to_f64(str_from(high_text), &high) < 0 ||
        str_to_f64(str_from(step_text), &step) < 0)
        return usage(p, "-P threads 1 8 -D 1", "the bounds and step of a parameter are numbers");
    if (!(step > 0) || high < low)
        return usage(p, "-P threads 1 8 -D 1",
                     "a parameter goes from its smaller to its larger bound in steps above 0");
    double steps = floor((high - low) / step + 1e-9);
    if (!(steps < PARAMETER_VALUES_MAX))
        return usage(p, "take larger steps: -D", "too many values of a parameter");
    int r = axis_add(p, name, (size_t)steps + 1);
    if (r < 0)
        return r;
    struct axis *axis = &p->axes[p->axes_len - 1];
    int decimals = MIN(MAX(decimals_of(low_text), decimals_of(step_text)), 12);
    for (size_t i = 0; i <= (size_t)steps; i++)
        axis->values[axis->len++] = arena_printf(p->arena, "%.*f", decimals,
                                                 low + (double)i * step);
    return 0;
}

static int axes_make(struct planner *p)
{
    const struct opt_list *lists = &p->opts->lists, *scans = &p->opts->scans;
    int r = 0;
    for (size_t i = 0; i + 1 < lists->len && r == 0; i += 2)
        r = list_add(p, lists->items[i], lists->items[i + 1]);
    for (size_t i = 0; i + 2 < scans->len && r == 0; i += 3)
        r = scan_add(p, scans->items[i], scans->items[i + 1], scans->items[i + 2]);
    if (r == 0 && p->opts->step.len > 0 && scans->len == 0)
        return usage(p, "-P threads 1 8 -D 1", "--parameter-step-size without --parameter-scan");
    return r;
}

/* `text` with every {name} replaced. NULL stays NULL. */
static const char *fill_in(struct arena *arena, const char *text, const struct bench_job *job)
{
    for (size_t i = 0; text && i < job->parameter_count; i++) {
        const char *mark = arena_printf(arena, "{%s}", job->parameters[i].name);
        const char *value = job->parameters[i].value, *rest = text, *at;
        size_t count = 0;
        for (at = text; (at = strstr(at, mark)); at += strlen(mark))
            count++;
        if (count == 0 || !*mark)
            continue;
        char *filled = arena_alloc(arena, strlen(text) + count * strlen(value) + 1), *to = filled;
        if (!filled)
            return "";
        while ((at = strstr(rest, mark))) {
            to = mempcpy(to, rest, (size_t)(at - rest));
            to = stpcpy(to, value);
            rest = at + strlen(mark);
        }
        memcpy(to, rest, strlen(rest) + 1);
        text = filled;
    }
    return text;
}

/* A job with nothing but its parameters. */
static struct bench_job job_marks(const struct planner *p, const size_t *at)
{
    struct bench_job job = {.parameter_count = p->axes_len};
    for (size_t i = 0; i < p->axes_len; i++)
        job.parameters[i] = (struct bench_parameter){p->axes[i].name, p->axes[i].values[at[i]]};
    return job;
}

/* One for all count, or one for each. */
static int per_command(const struct planner *p, const struct opt_list *list, size_t count,
                       const char *option)
{
    if (list->len <= 1 || list->len == count)
        return 0;
    return why_set(p->why, WHY_USAGE, EINVAL, "give it once for all, or once for each command",
                   "--%s is given %zu times for %zu commands", option, list->len, count);
}

static const char *nth(const struct opt_list *list, size_t command)
{
    return list->len == 0 ? NULL : list->items[list->len == 1 ? 0 : command];
}

/* `text` is filled in, or `argv`. */
static int job_add(struct planner *p, size_t command, const char *text, char *const *argv,
                   const size_t *at)
{
    struct bench_plan *plan = p->plan;
    struct bench_job *job = &plan->jobs[plan->len];
    *job = job_marks(p, at);
    job->setup = fill_in(p->arena, nth(&p->opts->setup, command), job);
    job->prepare = fill_in(p->arena, nth(&p->opts->prepare, command), job);
    job->cleanup = fill_in(p->arena, nth(&p->opts->cleanup, command), job);
    int r = argv ? command_line_from_argv(p->arena, argv, &job->line, p->why)
                 : command_line_parse(p->arena, text, plan->shell, &job->line, p->why);
    if (r < 0)
        return r;
    const char *name = command < p->opts->names.len ? p->opts->names.items[command] : NULL;
    job->name = name ? fill_in(p->arena, name, job) : job->line.text;
    /* All is filled in: what is left to do with the values is to show them. */
    for (size_t i = 0; i < job->parameter_count; i++)
        if (!p->opts->keep_arguments && redact_is_secret_name(str_from(job->parameters[i].name)))
            job->parameters[i].value = REDACTED;
    plan->len++;
    return 0;
}

/* Every word with the parameters filled in. */
static char *const *words_fill(struct planner *p, char *const *words, size_t count,
                               const size_t *at)
{
    struct bench_job marks = job_marks(p, at);
    const char **filled = arena_alloc(p->arena, (count + 1) * sizeof(*filled));
    for (size_t i = 0; filled && i < count; i++)
        filled[i] = fill_in(p->arena, words[i], &marks);
    return (char *const *)filled;
}

/* The nth combination of parameters, the first parameter slowest. */
static void combination_at(const struct planner *p, size_t n, size_t *at)
{
    for (size_t i = p->axes_len; i-- > 0; n /= p->axes[i].len)
        at[i] = n % p->axes[i].len;
}

/* A value may be what needs the shell: it is looked for in what would be run. */
static int shell_find(struct planner *p, char *const *texts, size_t count, size_t combinations)
{
    for (size_t n = 0; n < combinations && !p->plan->shell; n++) {
        size_t at[BENCH_PARAMETERS_MAX];
        combination_at(p, n, at);
        char *const *filled = words_fill(p, texts, count, at);
        if (!filled)
            return why_nomem(p->why);
        p->plan->shell = command_shell_for(p->arena, NULL, (const char *const *)filled, count);
    }
    return 0;
}

/* Every command with every combination of parameters. */
static int jobs_make(struct planner *p, char *const *texts, size_t count, bool one_argv)
{
    const struct bench_opts *opts = p->opts;
    bool no_shell = opts->no_shell || (opts->shell && strcmp(opts->shell, "none") == 0);
    size_t combinations = 1;
    for (size_t i = 0; i < p->axes_len; i++)
        combinations *= MIN(p->axes[i].len, (size_t)BENCH_JOBS_MAX);
    if (combinations * count > BENCH_JOBS_MAX)
        return why_set(p->why, WHY_USAGE, E2BIG, "give fewer values",
                       "more than %d commands and combinations of parameters", BENCH_JOBS_MAX);
    p->plan->jobs = arena_alloc(p->arena, combinations * count * sizeof(*p->plan->jobs));
    if (!p->plan->jobs)
        return why_nomem(p->why);
    size_t words = 0;
    while (one_argv && texts[words])
        words++;
    int r = one_argv || no_shell ? 0 : shell_find(p, texts, count, combinations);
    for (size_t n = 0; n < combinations && r == 0; n++) {
        size_t at[BENCH_PARAMETERS_MAX];
        combination_at(p, n, at);
        char *const *filled = words_fill(p, texts, one_argv ? words : count, at);
        if (!filled)
            return why_nomem(p->why);
        for (size_t c = 0; c < count && r == 0; c++)
            r = job_add(p, c, one_argv ? NULL : filled[c], one_argv ? filled : NULL, at);
    }
    return r;
}

static int count_parse(const struct planner *p, const char *text, const char *option,
                       uint32_t least, uint32_t *ret)
{
    uint64_t number;
    if (str_to_u64(str_from(text), 10, &number) < 0 || number < least || number > BENCH_RUNS_MAX)
        return why_set(p->why, WHY_USAGE, EINVAL, "leave it out to let whyslow decide",
                       "--%s takes a number from %u to %d, not '%s'", option, least, BENCH_RUNS_MAX,
                       text);
    *ret = (uint32_t)number;
    return 0;
}

static int counts_make(struct planner *p, const struct scenario *scenario)
{
    const struct bench_opts *opts = p->opts;
    struct bench_plan *plan = p->plan;
    int r = 0;
    plan->runs_min = opts->runs_min ? opts->runs_min : BENCH_RUNS_MIN;
    plan->runs_max = opts->runs_max ? MIN(opts->runs_max, (uint32_t)BENCH_RUNS_MAX)
                                    : BENCH_RUNS_MAX;
    plan->runs_min = opts->runs_min ? plan->runs_min : MIN(plan->runs_min, plan->runs_max);
    if (plan->runs_min > plan->runs_max)
        return usage(p, NULL, "--min-runs is larger than --max-runs");
    plan->warmup_given = strcmp(opts->warmup, "auto") != 0;
    if (plan->warmup_given)
        r = count_parse(p, opts->warmup, "warmup", 0, &plan->warmup);
    else if (scenario->has_warmup) {
        plan->warmup_given = true;
        plan->warmup = scenario->warmup;
    }
    if (r == 0 && strcmp(opts->runs, "auto") != 0)
        r = count_parse(p, opts->runs, "runs", 1, &plan->runs);
    else if (r == 0)
        plan->runs = scenario->runs;
    plan->budget_ns = opts->budget_ns       ? opts->budget_ns
                      : scenario->budget_ns ? scenario->budget_ns
                                            : DEFAULT_BUDGET_S * NS_PER_SEC;
    plan->timeout_ns = opts->timeout_ns       ? opts->timeout_ns
                       : scenario->timeout_ns ? scenario->timeout_ns
                                              : DEFAULT_TIMEOUT_S * NS_PER_SEC;
    plan->pss_every_ns = opts->pss_every_ns;
    return r;
}

/* "none", "default", or a shell. */
static void shell_choose(struct planner *p)
{
    const char *shell = p->opts->shell;
    if (!shell || p->opts->no_shell || strcmp(shell, "none") == 0)
        p->plan->shell = NULL;
    else
        p->plan->shell = strcmp(shell, "default") == 0 ? "sh" : shell;
}

static int streams_make(struct planner *p, const struct scenario *scenario)
{
    const struct bench_opts *opts = p->opts;
    struct bench_plan *plan = p->plan;
    plan->input = opts->input ? opts->input : scenario->input;
    if (plan->input && (strcmp(plan->input, "null") == 0 || strcmp(plan->input, "/dev/null") == 0))
        plan->input = NULL;
    if (plan->input && access(plan->input, R_OK) < 0)
        return why_errno(p->why, errno, "give a file that can be read: --input FILE",
                         "cannot open the input '%s'", plan->input);
    plan->output = opts->show_output ? "inherit" : opts->output ? opts->output : "pipe";
    if (opts->show_output && opts->output && strcmp(opts->output, "inherit") != 0)
        return usage(p, "leave one of them out", "--show-output and --output exclude each other");
    bool piped = strcmp(plan->output, "pipe") == 0;
    if (plan->golden.kind != GOLDEN_NONE && !piped)
        return usage(p, "leave --output and --show-output out",
                     "--golden has to read the output itself");
    return 0;
}

static int metric_make(struct planner *p, const struct scenario *scenario)
{
    static const char *const percentiles[] = {"p5",    "p50",    "p95",  "p99",
                                              "p99.9", "p99.99", "ops/s"};
    const char *name = p->opts->metric ? p->opts->metric : scenario->metric;
    if (!name)
        return 0; /* wall */
    for (size_t i = 0; i < ARRAY_SIZE(percentiles); i++)
        if (strcmp(name, percentiles[i]) == 0)
            return 0; /* of the wall time: the same runs tell it */
    int found = bench_metric_find(name);
    if (found >= 0) {
        p->plan->metric = (enum bench_metric)found;
        return 0;
    }
    const char *names[BENCH_METRICS];
    for (int i = 0; i < BENCH_METRICS; i++)
        names[i] = bench_metrics[i].name;
    const char *nearest = opt_nearest(name, names, BENCH_METRICS);
    why_set(p->why, WHY_USAGE, EINVAL, "wall, user, system, cpu, peak_rss, …",
            "there is no metric '%s'", name);
    if (nearest)
        why_set_remedy(p->why, "did you mean '%s'?", nearest);
    return -EINVAL;
}

static int commands_make(struct planner *p, const struct cmd_call *call,
                         const struct scenario *scenario)
{
    const struct bench_opts *opts = p->opts;
    bool scripted = call->argc == 0 && scenario->argv;
    char *const one[] = {(char *)scenario->text, NULL};
    char *const *texts = call->argc > 0 ? call->argv : scripted ? scenario->argv : one;
    bool one_argv = opts->dashes || scripted;
    size_t count = one_argv || call->argc == 0 ? 1 : (size_t)call->argc;
    if (call->argc == 0 && !scripted && !scenario->text)
        return usage(p, "whyslow bench './app --size 10'", "no command was given");
    if (one_argv && p->plan->shell)
        return usage(p, "give the command as one text",
                     "--shell wants the command as one text, not word by word");
    int r = per_command(p, &opts->setup, count, "setup");
    if (r == 0)
        r = per_command(p, &opts->prepare, count, "prepare");
    if (r == 0)
        r = per_command(p, &opts->cleanup, count, "cleanup");
    if (r == 0 && opts->names.len > count)
        r = usage(p, NULL, "there are more names (-n) than commands");
    if (r == 0)
        r = axes_make(p);
    return r == 0 ? jobs_make(p, texts, count, one_argv) : r;
}

int bench_plan_make(struct arena *arena, const struct cmd_call *call, struct bench_plan *ret,
                    struct why *why)
{
    const struct bench_opts *opts = call->opts;
    struct bench_plan plan = {
        .ignore_failure = opts->ignore_failure, .ops = opts->ops, .size_bytes = opts->size_bytes};
    struct planner planner = {.arena = arena, .opts = opts, .plan = &plan, .why = why};
    struct scenario scenario = {0};
    int r = opts->scenario ? scenario_read(arena, opts->scenario, &scenario, why) : 0;
    if (r < 0)
        return r;
    plan.folder = scenario.folder;
    if (plan.folder && chdir(plan.folder) < 0)
        return why_errno(why, errno, "correct or remove its line 'folder'",
                         "cannot work in the scenario's folder '%s'", plan.folder);
    shell_choose(&planner);
    r = counts_make(&planner, &scenario);
    if (r == 0)
        r = metric_make(&planner, &scenario);
    if (r == 0)
        r = golden_make(arena, opts->golden ? opts->golden : scenario.golden, &plan.golden, why);
    if (r == 0)
        r = streams_make(&planner, &scenario);
    if (r == 0)
        r = commands_make(&planner, call, &scenario);
    if (r < 0)
        return r;
    if (arena_failed(arena))
        return why_nomem(why);
    *ret = plan;
    return 0;
}
