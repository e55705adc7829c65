/* bench: plan, fingerprint, runs, report, exports. */
#include "cmd/bench.h"

#include "base/clock.h"
#include "base/text.h"
#include "cmd/history_keep.h"
#include "cmd/interrupts.h"
#include "host/fingerprint.h"
#include "store/bench_file.h"
#include "target/interrupt.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHELL_BUDGET_S = 2 };

#define AT(field) offsetof(struct bench_opts, field)

static const struct opt bench_options[] = {
    {"warmup", 'w', OPT_TEXT, AT(warmup), "N",
     "runs before those that count; auto: until they no longer get faster", "auto", NULL, false, 0},
    {"runs", 'r', OPT_TEXT, AT(runs), "N",
     "exactly so many runs; auto: until the median is known to 1%", "auto", NULL, false, 0},
    {"min-runs", 'm', OPT_U32, AT(runs_min), "N", "at least so many (20, or 5 s of them)", NULL,
     NULL, false, 0},
    {"max-runs", 'M', OPT_U32, AT(runs_max), "N", "at most so many", NULL, NULL, false, 0},
    {"budget", 0, OPT_DURATION, AT(budget_ns), "TIME",
     "stop measuring a command when this time is spent (20s)", NULL, NULL, false, 0},
    {"timeout", 0, OPT_DURATION, AT(timeout_ns), "TIME", "end a run that takes longer (10m)", NULL,
     NULL, false, 0},
    {"shell", 'S', OPT_TEXT, AT(shell), "SHELL",
     "run the commands through a shell, whose own cost is shown; 'default' is sh", NULL, NULL,
     false, 0},
    {"no-shell", 'N', OPT_FLAG, AT(no_shell), NULL,
     "run them directly, and refuse what needs a shell", NULL, NULL, false, 0},
    {"setup", 's', OPT_LIST, AT(setup), "CMD", "before the runs of a command, once", NULL, NULL,
     false, 0},
    {"prepare", 'p', OPT_LIST, AT(prepare), "CMD",
     "before each run; once for all commands, or once for each", NULL, NULL, false, 0},
    {"cleanup", 'c', OPT_LIST, AT(cleanup), "CMD", "after the runs of a command, once", NULL, NULL,
     false, 0},
    {"parameter-list", 'L', OPT_LIST, AT(lists), "NAME A,B,...",
     "run with {NAME} replaced by each value; several give all combinations", NULL, NULL, false, 2},
    {"parameter-scan", 'P', OPT_LIST, AT(scans), "NAME MIN MAX", "the same for a range of numbers",
     NULL, NULL, false, 3},
    {"parameter-step-size", 'D', OPT_LIST, AT(step), "STEP", "step of the range (1)", NULL, NULL,
     false, 0},
    {"name", 'n', OPT_LIST, AT(names), "NAME", "a name for each command, in order", NULL, NULL,
     false, 0},
    {"command-name", 0, OPT_LIST, AT(names), "NAME", "the same", NULL, NULL, true, 0},
    {"ignore-failure", 'i', OPT_FLAG, AT(ignore_failure), NULL,
     "count runs that fail like any other", NULL, NULL, false, 0},
    {"input", 0, OPT_FILE, AT(input), "FILE", "stdin of the command (/dev/null)", NULL, NULL, false,
     0},
    {"output", 0, OPT_FILE, AT(output), "WHERE",
     "its stdout: pipe (read and hashed), null, inherit, or a file", NULL, NULL, false, 0},
    {"show-output", 0, OPT_FLAG, AT(show_output), NULL, "the same as --output inherit", NULL, NULL,
     false, 0},
    {"golden", 0, OPT_TEXT, AT(golden), "WHAT",
     "what every run must print: a file, sha256:HEX, or a command that checks its stdin", NULL,
     NULL, false, 0},
    {"metric", 0, OPT_TEXT, AT(metric), "NAME",
     "what the headline and the stop rule look at: wall, cpu, peak_rss, ... (wall)", NULL, NULL,
     false, 0},
    {"ops", 0, OPT_F64, AT(ops), "N", "operations in one run, for ops/s", NULL, NULL, false, 0},
    {"size", 0, OPT_SIZE, AT(size_bytes), "BYTES", "bytes worked on in one run, for bytes/s", NULL,
     NULL, false, 0},
    {"pss", 0, OPT_DURATION, AT(pss_every_ns), "EVERY", "sample the shared-out memory (PSS), too",
     NULL, NULL, false, 0},
    {"scenario", 0, OPT_FILE, AT(scenario), "FILE", "take command and settings from scenario.toml",
     NULL, NULL, false, 0},
    {"export-json", 0, OPT_FILE, AT(export_json), "FILE", "all figures of all runs", NULL, NULL,
     false, 0},
    {"export-csv", 0, OPT_FILE, AT(export_csv), "FILE", "one line a command, in seconds", NULL,
     NULL, false, 0},
    {"export-markdown", 0, OPT_FILE, AT(export_markdown), "FILE", "a table", NULL, NULL, false, 0},
    {"export-asciidoc", 0, OPT_FILE, AT(export_asciidoc), "FILE", "a table", NULL, NULL, false, 0},
    {"export-orgmode", 0, OPT_FILE, AT(export_orgmode), "FILE", "a table", NULL, NULL, false, 0},
    {"style", 0, OPT_CHOICE, AT(style), "STYLE", "colours and progress", "auto",
     "auto|basic|full|nocolor|color|none", false, 0},
    {"time-unit", 'u', OPT_CHOICE, AT(time_unit), "UNIT", "of times; as fits without it", NULL,
     "microsecond|millisecond|second", false, 0},
    {"no-history", 0, OPT_FLAG, AT(no_history), NULL,
     "do not keep the results in the history of the repository", NULL, NULL, false, 0},
    {"", 0, OPT_FLAG, AT(dashes), NULL, "", NULL, NULL, true, 0},
    KEEP_ARGUMENTS_OPTION(offsetof(struct bench_opts, keep_arguments)),
    OUTPUT_OPTIONS(struct bench_opts, print),
    {0},
};

struct bench {
    struct arena *arena;
    const struct cmd_call *call;
    struct bench_opts opts;
    struct bench_plan plan;
    struct bench_outcome *outcomes;
    size_t len;
    struct bench_job shell_job;
    struct bench_outcome shell;
    struct value fingerprint;
};

static bool style_is(const struct bench *b, const char *name)
{
    return strcmp(b->opts.style, name) == 0;
}

static void progress_start(const struct bench *b, struct progress *progress, const char *label)
{
    bool quiet = style_is(b, "basic") || style_is(b, "color") || style_is(b, "none") ||
                 b->opts.show_output;
    progress_begin(progress, b->call->notes, label, b->plan.runs);
    if (quiet)
        progress_end(progress);
}

/* The scenario may have its own folder; files that were typed are meant from here. */
static int paths_fix(struct bench *b, struct why *why)
{
    const char **paths[] = {&b->opts.export_json,     &b->opts.export_csv,
                            &b->opts.export_markdown, &b->opts.export_asciidoc,
                            &b->opts.export_orgmode,  &b->opts.input};
    char cwd[PATH_MAX];
    if (!b->opts.scenario)
        return 0;
    if (!getcwd(cwd, sizeof(cwd)))
        return why_errno(why, errno, NULL, "cannot tell the current folder");
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        if (*paths[i] && **paths[i] != '/')
            *paths[i] = arena_printf(b->arena, "%s/%s", cwd, *paths[i]);
    return 0;
}

/* Before time is spent: can the exports be written where they are to go? */
static int exports_check(const struct bench *b, struct why *why)
{
    const char *const paths[] = {b->opts.export_json, b->opts.export_csv, b->opts.export_markdown,
                                 b->opts.export_asciidoc, b->opts.export_orgmode};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        if (!paths[i] || access(paths[i], W_OK) == 0)
            continue;
        const char *slash = strrchr(paths[i], '/');
        const char *folder = !slash ? "."
                             : slash == paths[i]
                                 ? "/"
                                 : arena_dup_len(b->arena, paths[i], (size_t)(slash - paths[i]));
        if (access(folder, W_OK | X_OK) < 0)
            return why_errno(why, errno, "choose a folder you may write to", "cannot write '%s'",
                             paths[i]);
    }
    return 0;
}

static void look(struct bench *b)
{
    static const char unread[] = "the binary could not be read";
    const char *path = b->plan.jobs[0].line.path;
    struct host *host = ARENA_NEW(b->arena, struct host);
    struct build_info *binary = ARENA_NEW(b->arena, struct build_info);
    b->fingerprint = value_map(b->arena);
    if (!host || !binary)
        return; /* the arena remembers */
    *host = (struct host){.root = "", .arena = b->arena};
    double share = 0;
    bool share_known = fingerprint_resident_share(path, &share) == 0;
    bool known = build_info_read(b->arena, path, binary, NULL) == 0;
    struct fingerprint_input input = {.host = host,
                                      .binary = known ? binary : NULL,
                                      .binary_na = known ? NULL : unread,
                                      .folder = ".",
                                      .resident_share = share_known ? &share : NULL};
    b->fingerprint = fingerprint_read(&input);
}

/* What the shell costs by itself: a row of its own, never taken off in silence. */
static int shell_measure(struct bench *b, struct why *why)
{
    if (!b->plan.shell)
        return 0;
    struct bench_plan plan = b->plan;
    plan.golden = (struct golden){.kind = GOLDEN_NONE};
    plan.output = "pipe";
    plan.runs = 0;
    plan.runs_min = BENCH_RUNS_MIN;
    plan.runs_max = BENCH_RUNS_MAX;
    plan.warmup_given = false;
    plan.budget_ns = SHELL_BUDGET_S * NS_PER_SEC;
    plan.metric = BENCH_WALL;
    b->shell_job.name = "the shell alone";
    int r = command_line_parse(b->arena, "", plan.shell, &b->shell_job.line, why);
    if (r < 0)
        return r;
    struct progress progress;
    progress_start(b, &progress, "shell");
    r = bench_job_run(b->arena, &plan, &b->shell_job, &progress, &b->shell, why);
    progress_end(&progress);
    if (r == 0 && bench_describe(&plan, &b->shell) < 0)
        return why_nomem(why);
    return r;
}

static bool is_broken_off(const struct bench_outcome *outcome)
{
    return outcome->end == BENCH_INTERRUPTED || outcome->end == BENCH_FAILED;
}

static int jobs_run(struct bench *b, struct why *why)
{
    for (size_t i = 0; i < b->plan.len; i++) {
        struct progress progress;
        const char *label = arena_printf(b->arena, "bench %zu/%zu", i + 1, b->plan.len);
        progress_start(b, &progress, label);
        int r = bench_job_run(b->arena, &b->plan, &b->plan.jobs[i], &progress, &b->outcomes[b->len],
                              why);
        progress_end(&progress);
        if (r < 0)
            return r;
        struct bench_outcome *outcome = &b->outcomes[b->len++];
        if (bench_describe(&b->plan, outcome) < 0)
            return why_nomem(why);
        if (is_broken_off(outcome))
            break;
    }
    return 0;
}

/* The command failed: say which run, how, and what it said last. */
static void failure_print(const struct bench *b, const struct bench_outcome *outcome)
{
    FILE *err = b->call->err;
    struct why why = outcome->failure;
    if (!why.remedy[0])
        why_set_remedy(&why, "mend the command; or count failing runs, too: --ignore-failure");
    cmd_print_error(err, &why);
    struct str tail = {outcome->last_said.tail, outcome->last_said.tail_len};
    if (tail.len > 0)
        fputs("  the end of its stderr:\n", err);
    for (int lines = 0; tail.len > 0 && lines < 40; lines++) {
        fputs("  | ", err);
        text_print(err, str_cut(&tail, '\n'));
        fputc('\n', err);
    }
}

static int show(const struct bench *b, const struct value *root, struct why *why)
{
    if (style_is(b, "none") && !b->opts.print.json && !b->opts.print.markdown)
        return 0;
    const char *name = b->opts.print.json ? "json" : b->opts.print.markdown ? "markdown" : "text";
    struct render_opts opts = cmd_render_opts(b->call->out);
    if (style_is(b, "basic") || style_is(b, "nocolor"))
        opts.color = false;
    else if (style_is(b, "color") || style_is(b, "full"))
        opts.color = true;
    struct report report = {.schema = BENCH_SCHEMA, .root = root};
    return render(renderer_find(name), &report, &opts, b->call->out, why);
}

static int report(struct bench *b, struct why *why)
{
    /* A command without a finished run has nothing to show. */
    size_t shown = b->len > 0 && b->outcomes[b->len - 1].result.runs.len == 0 ? b->len - 1 : b->len;
    if (shown == 0)
        return 0;
    struct bench_facts facts = {.arena = b->arena,
                                .plan = &b->plan,
                                .outcomes = b->outcomes,
                                .len = shown,
                                .shell = b->plan.shell ? &b->shell : NULL,
                                .fingerprint = &b->fingerprint,
                                .time_unit = b->opts.time_unit};
    struct value root = bench_report_make(&facts);
    if (arena_failed(b->arena))
        return why_nomem(why);
    int r = show(b, &root, why);
    return r < 0 ? r : bench_export(&facts, &b->opts, &root, why);
}

/* What is whole and stable goes into the history. That it cannot be kept spoils nothing. */
static void keep(const struct bench *b)
{
    for (size_t i = 0; i < b->len && !b->opts.no_history; i++) {
        const struct bench_outcome *outcome = &b->outcomes[i];
        struct why why = {0};
        if (is_broken_off(outcome))
            continue;
        int r = 0;
        if (!outcome->unstable)
            r = history_keep(b->arena, &outcome->result, 1, &b->fingerprint, &why);
        else if (history_default(b->arena, NULL))
            r = why_set(&why, WHY_FAILED, EAGAIN, NULL, "the result is unstable");
        if (r >= 0)
            continue;
        fputs("whyslow: not kept in the history: ", b->call->notes);
        text_print(b->call->notes, str_from(why.what));
        fputc('\n', b->call->notes);
    }
}

static int status_of(const struct bench *b)
{
    int status = EXIT_DONE;
    for (size_t i = 0; i < b->len; i++) {
        const struct bench_outcome *outcome = &b->outcomes[i];
        if (outcome->end == BENCH_INTERRUPTED)
            return 128 + outcome->signal;
        if (outcome->end == BENCH_FAILED)
            return EXIT_REGRESSION;
        if (outcome->unstable)
            status = EXIT_INCONCLUSIVE;
    }
    return status;
}

static int bench_steps(struct bench *b, struct why *why)
{
    int r = paths_fix(b, why);
    if (r == 0)
        r = exports_check(b, why);
    struct cmd_call call = *b->call;
    call.opts = &b->opts;
    if (r == 0)
        r = bench_plan_make(b->arena, &call, &b->plan, why);
    if (r < 0)
        return r;
    b->outcomes = arena_alloc(b->arena, b->plan.len * sizeof(*b->outcomes));
    if (!b->outcomes)
        return why_nomem(why);
    look(b);
    r = shell_measure(b, why);
    if (r == 0 && !is_broken_off(&b->shell))
        r = jobs_run(b, why);
    if (r < 0)
        return r;
    r = report(b, why);
    keep(b);
    const struct bench_outcome *last = b->len > 0 ? &b->outcomes[b->len - 1] : &b->shell;
    if (last->end == BENCH_FAILED)
        failure_print(b, last);
    if (r < 0)
        return r;
    return b->len == 0 && b->shell.signal ? 128 + b->shell.signal : status_of(b);
}

static int bench_run(const struct cmd_call *call, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct bench *b = ARENA_NEW(&arena, struct bench);
    if (!b)
        return why_nomem(why);
    b->arena = &arena;
    b->call = call;
    b->opts = *(const struct bench_opts *)call->opts;
    interrupt_watch(interrupts_tell);
    int r = bench_steps(b, why);
    interrupt_unwatch();
    for (size_t i = 0; i < b->len; i++)
        bench_outcome_deinit(&b->outcomes[i]);
    bench_outcome_deinit(&b->shell);
    return r;
}

static const struct cmd_example bench_examples[] = {
    {"whyslow bench './app --size 10'", "the median of its wall time, and how sure that is"},
    {"whyslow bench -- ./app --size 10", "the same, word by word"},
    {"whyslow bench 'sort a' 'sort -u a' --export-json r.json", "two commands, kept for compare"},
    {"whyslow bench -L n 1,2,4 './app -j {n}'", "a command with each of several values"},
    {"whyslow bench 'zcat a.gz | ./app'", "a pipeline, through sh; the shell's cost is a row"},
    {"whyslow bench -p 'rm -rf cache' './app' -r 10", "with a cold cache, exactly ten runs"},
    {"whyslow bench --golden expected.txt ./app", "a run that prints something else fails"},
    {NULL, NULL},
};

const struct command cmd_bench = {
    .name = "bench",
    .group = "Measure",
    .operands = "COMMAND...",
    .summary = "measure commands until their median is certain, with every figure of every run",
    .about =
        "Runs each command (one text each, or one command word by word after --) until the 95% "
        "interval of its median is within 1%, but at least 20 times or for 5 s, and no longer than "
        "the budget. No shell stands between unless one of the commands needs it (a pipe, a "
        "redirection, a variable) or --shell names one: then all of them run through it, and its "
        "own cost is a row. Quotes and backslashes are understood without one.\n\n"
        "Per run: wall time, CPU time, peak memory, page faults, context switches, bytes read and "
        "written, hardware counters where there are any, a hash of the output, the exit status. "
        "The wall time goes from the making of the process to its end. Peak memory is the kernel's "
        "VmHWM, read at the exit of warm-up runs; with --warmup 0 it is ru_maxrss, which is rough "
        "by some 100 KiB.\n\n"
        "A percentile that the number of runs cannot carry is marked conservative. Drift of more "
        "than 10%, two kinds of runs, a trend, and runs that depend on each other are named in "
        "words. Setup, prepare, cleanup and check commands always run through a shell.\n\n"
        "Processes that a run leaves behind are killed.\n\n"
        "scenario.toml holds: command (a text or a list of words), folder, input, metric, runs, "
        "warmup, budget_s, timeout_s, golden; options that are typed win.\n\n"
        "Stable results are kept in the history of the git repository around (see 'whyslow help "
        "history'), unless --no-history.\n\n"
        "Exit status: 0 when measured; 1 when a command failed, hung or printed something else "
        "than the golden output; 2 when it cannot be started; 3 when a result is unstable; 5 when "
        "an export could not be written; 128 and the signal's number when interrupted. Whatever "
        "was measured by then is shown and exported.",
    .options = bench_options,
    .options_size = sizeof(struct bench_opts),
    .stop = OPT_MIXED,
    .operands_min = 0,
    .operands_max = -1,
    .examples = bench_examples,
    .run = bench_run,
};
