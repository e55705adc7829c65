/* From options and scenario to a plan. */
#include "base/text.h"
#include "cmd/run_discover.h"
#include "cmd/run_parts.h"
#include "cmd/scenario.h"
#include "model/bench.h"
#include "target/command.h"
#include "target/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUNS = 20, RUNS_QUICK = 10, RUNS_DEEP = 40, TIMEOUT_S = 600 };
enum { BUDGET_S = 60, BUDGET_QUICK_S = 10, BUDGET_DEEP_S = 300 };

static int count_parse(const char *text, const char *option, uint32_t least, uint32_t *ret,
                       struct why *why)
{
    uint64_t number;
    if (str_to_u64(str_from(text), 10, &number) < 0 || number < least || number > BASELINE_RUNS_MAX)
        return why_set(why, WHY_USAGE, EINVAL, "leave it out to let whyslow decide",
                       "--%s takes a number from %u to %d, not '%s'", option, least,
                       BASELINE_RUNS_MAX, text);
    *ret = (uint32_t)number;
    return 0;
}

static int counts_make(const struct run_opts *opts, const struct scenario *scenario,
                       struct run_plan *plan, struct why *why)
{
    static const uint32_t runs[] = {RUNS, RUNS_QUICK, RUNS_DEEP};
    static const uint64_t budgets_s[] = {BUDGET_S, BUDGET_QUICK_S, BUDGET_DEEP_S};
    if (opts->quick && opts->deep)
        return why_set(why, WHY_USAGE, EINVAL, "leave one of them out",
                       "--quick and --deep exclude each other");
    plan->depth = opts->quick ? RUN_QUICK : opts->deep ? RUN_DEEP : RUN_NORMAL;
    /* How deep was typed: that wins over a scenario, as any option does. */
    bool typed = plan->depth != RUN_NORMAL;
    plan->runs = scenario->runs && !typed ? scenario->runs : runs[plan->depth];
    plan->warmup = scenario->has_warmup ? scenario->warmup : 1;
    plan->budget_ns = opts->budget_ns                 ? opts->budget_ns
                      : scenario->budget_ns && !typed ? scenario->budget_ns
                                                      : budgets_s[plan->depth] * NS_PER_SEC;
    plan->timeout_ns = opts->timeout_ns       ? opts->timeout_ns
                       : scenario->timeout_ns ? scenario->timeout_ns
                                              : TIMEOUT_S * NS_PER_SEC;
    int r = opts->runs ? count_parse(opts->runs, "runs", 1, &plan->runs, why) : 0;
    if (r == 0 && opts->warmup)
        r = count_parse(opts->warmup, "warmup", 0, &plan->warmup, why);
    return r;
}

/* The scenario may have its own folder; files that were typed are meant from where we were. */
static int folder_enter(struct run *run, const char *folder, struct why *why)
{
    const char **paths[] = {&run->plan.out, &run->plan.summary_out, &run->plan.ingest,
                            &run->plan.input};
    char cwd[PATH_MAX];
    if (!folder)
        return 0;
    if (!getcwd(cwd, sizeof(cwd)))
        return why_errno(why, errno, NULL, "cannot tell the current folder");
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        if (*paths[i] && **paths[i] != '/')
            *paths[i] = arena_printf(run->arena, "%s/%s", cwd, *paths[i]);
    if (chdir(folder) < 0)
        return why_errno(why, errno, "correct or remove its line 'folder'",
                         "cannot work in the scenario's folder '%s'", folder);
    return 0;
}

static int input_make(struct run *run, const struct scenario *scenario, struct why *why)
{
    struct run_plan *plan = &run->plan;
    if (!plan->input)
        plan->input = scenario->input;
    if (plan->input && (strcmp(plan->input, "null") == 0 || strcmp(plan->input, "/dev/null") == 0))
        plan->input = NULL;
    if (plan->input && access(plan->input, R_OK) < 0)
        return why_errno(why, errno, "give a file that can be read: --input FILE",
                         "cannot open the input '%s'", plan->input);
    return 0;
}

static int metric_make(struct run_plan *plan, const struct scenario *scenario, struct why *why)
{
    plan->metric = scenario->metric ? scenario->metric : "wall";
    static const char *const of_wall[] = {"p5", "p50", "p95", "p99", "p99.9", "p99.99", "ops/s"};
    for (size_t i = 0; i < ARRAY_SIZE(of_wall); i++)
        if (strcmp(plan->metric, of_wall[i]) == 0)
            return 0;
    if (bench_metric_find(plan->metric) >= 0)
        return 0;
    return why_set(why, WHY_USAGE, EINVAL, "wall, user, system, cpu, peak_rss, …",
                   "there is no metric '%s'", plan->metric);
}

static int command_make(struct run *run, const struct scenario *scenario, struct why *why)
{
    struct run_plan *plan = &run->plan;
    struct command_line line = {0};
    bool typed = run->call->argc > 0 && !run->plan.discovered;
    if (!typed && !scenario->argv && !scenario->text)
        return why_set(why, WHY_USAGE, EINVAL, "whyslow run -- ./app --size 10",
                       "'whyslow run' needs [--] COMMAND [ARGUMENT...], a folder, or --scenario");
    int r = typed            ? command_line_from_argv(run->arena, run->call->argv, &line, why)
            : scenario->argv ? command_line_from_argv(run->arena, scenario->argv, &line, why)
                             : command_line_parse(run->arena, scenario->text, NULL, &line, why);
    if (r < 0)
        return r;
    plan->argv = line.argv;
    plan->command = command_shown(run->arena, line.argv);
    plan->secrets = command_secrets(run->arena, line.argv);
    plan->scenario = typed              ? "command line"
                     : plan->discovered ? plan->discovered
                                        : run->opts->scenario;
    snprintf(plan->path, sizeof(plan->path), "%s", line.path);
    return 0;
}

static bool can_ask(const struct run *run)
{
    return !run->opts->yes && isatty(STDIN_FILENO) && isatty(fileno(run->call->err));
}

/* Programs of others are not run unasked. */
static int discovery_agree(const struct run *run, const char *folder, const char *command,
                           struct why *why)
{
    FILE *err = run->call->err;
    if (run->opts->yes)
        return 0;
    if (!can_ask(run))
        return why_set(why, WHY_USAGE, EPERM,
                       arena_printf(run->arena,
                                    "whyslow run --yes '%s'; or: cd '%s' && whyslow run -- %s",
                                    folder, folder, command),
                       "not run: there is no terminal to ask on whether to run '%s'", command);
    fputs("run it? [y/N] ", err);
    fflush(err);
    char answer[16];
    if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return 0;
    return why_set(why, WHY_USAGE, EPERM, "name the command: whyslow run -- COMMAND", "not run");
}

/* Does the path lead out of the folder? What cannot be told does. */
static bool lies_outside(const char *folder, const char *path)
{
    char outer[PATH_MAX], inner[PATH_MAX];
    if (!realpath(folder, outer) || !realpath(path, inner))
        return true;
    size_t len = strcmp(outer, "/") == 0 ? 0 : strlen(outer);
    return strncmp(inner, outer, len) != 0 || (inner[len] != '/' && inner[len] != '\0');
}

/* What a folder's scenario works in and reads elsewhere is part of what is agreed to. */
static const char *elsewhere_text(struct arena *arena, const char *folder,
                                  const struct scenario *scenario)
{
    const char *text = "", *input = scenario->input;
    if (lies_outside(folder, scenario->folder))
        text = arena_printf(arena, "; works in another folder: %s", scenario->folder);
    if (!input || strcmp(input, "null") == 0 || strcmp(input, "/dev/null") == 0)
        return text;
    if (input[0] != '/')
        input = arena_printf(arena, "%s/%s", scenario->folder, input);
    return lies_outside(folder, input)
               ? arena_printf(arena, "%s; its input is another folder's: %s", text, input)
               : text;
}

/* A folder as the only operand: its scenario, or what its build has. */
static int folder_take(struct run *run, struct scenario *scenario, struct why *why)
{
    struct run_plan *plan = &run->plan;
    FILE *err = run->call->err;
    struct discovery found;
    struct stat st;
    const char *folder = run->call->argc == 1 ? run->call->argv[0] : NULL;
    if (!folder || run->opts->scenario || stat(folder, &st) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    int r = run_discover(run->arena, folder, &found, why);
    if (r == 0 && found.scenario) {
        plan->discovered = found.scenario;
        plan->chosen = arena_printf(run->arena, "the folder's own %s", found.scenario);
        r = scenario_read(run->arena, found.scenario, scenario, why);
        /* A check is a command, too: it is agreed to only if it is shown. */
        if (r == 0 && scenario->golden && strncmp(scenario->golden, "sha256:", 7) != 0)
            plan->chosen = arena_printf(run->arena, "%s; functional check: %s", plan->chosen,
                                        scenario->golden);
    } else if (r == 0) {
        plan->discovered = folder;
        plan->chosen = arena_printf(run->arena, "%s%s%s", found.why,
                                    found.check ? "; functional check: " : "",
                                    found.check ? found.check : "");
        plan->check = found.check;
        scenario->text = found.command;
    }
    if (r < 0)
        return r;
    if (!scenario->folder)
        scenario->folder = folder;
    plan->chosen = arena_printf(run->arena, "%s%s", plan->chosen,
                                elsewhere_text(run->arena, folder, scenario));
    const char *command = scenario->argv ? command_quote(run->arena, scenario->argv)
                                         : scenario->text;
    /* Who is asked sees all of it: a part that looks like a secret would be a place to hide. */
    const char *shown = command_text_shown(run->arena, command);
    const char *chosen = command_text_shown(run->arena, plan->chosen);
    fputs("whyslow: found ", err);
    text_print(err, str_from(can_ask(run) ? command : shown));
    fputs(": ", err);
    text_print(err, str_from(can_ask(run) ? plan->chosen : chosen));
    fputc('\n', err);
    plan->chosen = chosen;
    return discovery_agree(run, folder, command, why);
}

int run_plan_make(struct run *run, struct why *why)
{
    const struct run_opts *opts = run->opts;
    struct run_plan *plan = &run->plan;
    struct scenario scenario = {0};
    plan->out = opts->out;
    plan->summary_out = opts->summary_out;
    plan->ingest = opts->ingest;
    plan->input = opts->input;
    int r = opts->scenario ? scenario_read(run->arena, opts->scenario, &scenario, why) : 0;
    if (r == 0)
        r = folder_take(run, &scenario, why);
    if (r == 0)
        r = folder_enter(run, scenario.folder, why);
    if (r == 0)
        r = counts_make(opts, &scenario, plan, why);
    if (r == 0)
        r = metric_make(plan, &scenario, why);
    if (r == 0)
        r = golden_make(run->arena, opts->golden ? opts->golden : scenario.golden, &plan->golden,
                        why);
    if (r == 0)
        r = input_make(run, &scenario, why);
    if (r == 0)
        r = command_make(run, &scenario, why);
    if (r < 0)
        return r;
    return arena_failed(run->arena) ? why_nomem(why) : 0;
}
