/* run: the loop as far as it goes in this version. Scenario, fingerprint and pre-flight,
 * baseline, one recorded run; each leaves its artifact in the folder of the run. */
#include "cmd/cmd.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "cmd/run_artifacts.h"
#include "cmd/run_record.h"
#include "cmd/run_report.h"
#include "cmd/scenario.h"
#include "host/checks.h"
#include "host/fingerprint.h"
#include "target/command.h"
#include "target/interrupt.h"
#include "target/program.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct run_opts {
    uint32_t runs;
    uint32_t warmup;
    uint64_t budget_ns;
    uint64_t timeout_ns;
    const char *out;
    bool force;
    struct output_opts output;
};

static const struct opt run_options[] = {
    {"runs", 'r', OPT_U32, offsetof(struct run_opts, runs), "N", "runs to measure", "20", NULL,
     false},
    {"warmup", 'w', OPT_U32, offsetof(struct run_opts, warmup), "N",
     "runs before them, not counted", "1", NULL, false},
    {"budget", 0, OPT_DURATION, offsetof(struct run_opts, budget_ns), "TIME",
     "stop measuring when this time is spent, with as many runs as it allowed", "60s", NULL, false},
    {"timeout", 0, OPT_DURATION, offsetof(struct run_opts, timeout_ns), "TIME",
     "end a run that takes longer than this", "10m", NULL, false},
    {"out", 'o', OPT_FILE, offsetof(struct run_opts, out), "DIR",
     "folder for the artifacts; each run gets its own inside", "whyslow-out", NULL, false},
    {"force", 0, OPT_FLAG, offsetof(struct run_opts, force), NULL,
     "measure a program although it exits with a failure", NULL, NULL, false},
    OUTPUT_OPTIONS(struct run_opts, output),
    {0},
};

/* What the steps of one call share. */
struct run {
    const struct run_opts *opts;
    const struct cmd_call *call;
    struct arena *arena;
    struct host host;
    char path[PATH_MAX]; /* of the program */
    const char *command;
    const char *run_id;
    const char *folder; /* of this run */
    struct build_info binary;
    const char *binary_na; /* NULL when `binary` is filled */
    struct value fingerprint;
    struct value checks;
    unsigned checks_failed;
    struct baseline baseline;
    struct run_recorded recorded;
};

static void step(const struct run *run, int number, const char *text)
{
    fprintf(run->call->err, "[%d/4] ", number);
    text_print(run->call->err, str_from(text));
    fputc('\n', run->call->err);
    fflush(run->call->err);
}

/* 1: what is to be run. Everything that was mistyped is found here. */
static int define(struct run *run, struct why *why)
{
    int r = program_find(run->call->argv[0], run->path, why);
    if (r < 0)
        return r;
    if (run->opts->runs == 0 || run->opts->runs > BASELINE_RUNS_MAX)
        return why_set(why, WHY_USAGE, EINVAL, "20 is a good number", "--runs must be 1 to %d",
                       BASELINE_RUNS_MAX);
    if (run->opts->warmup > BASELINE_RUNS_MAX)
        return why_set(why, WHY_USAGE, EINVAL, "1 is enough for most programs",
                       "--warmup must be 0 to %d", BASELINE_RUNS_MAX);
    run->command = command_quote(run->arena, run->call->argv);
    run->run_id = run_id_make(run->arena);
    r = artifacts_folder_make(run->arena, run->opts->out, run->run_id, &run->folder, why);
    if (r < 0)
        return r;
    step(run, 1, arena_printf(run->arena, "scenario: %s", run->command));
    return 0;
}

static void check_line(const struct run *run, const char *label, struct str text)
{
    if (text.len == 0)
        return;
    fputs(label, run->call->err);
    text_print(run->call->err, text);
    fputc('\n', run->call->err);
}

/* Before time is spent: what would spoil the result, in the same words as doctor's. */
static void show_checks(const struct run *run)
{
    const struct table *table = run->checks.kind == VALUE_TABLE ? run->checks.table : NULL;
    for (const struct table_row *row = table ? table->first : NULL; row; row = row->next) {
        if (!str_is(table_text(table, row, "verdict"), "fail"))
            continue;
        struct str name = table_text(table, row, "check");
        struct str detail = table_text(table, row, "detail");
        check_line(
            run, "whyslow: check failed: ",
            str_from(arena_printf(run->arena, "%.*s: %.*s", STR_FMT(name), STR_FMT(detail))));
        check_line(run, "  spoils: ", table_text(table, row, "spoils"));
        check_line(run, "  mend: ", table_text(table, row, "mend"));
    }
    fflush(run->call->err);
}

/* 2: the machine and the binary. */
static int look(struct run *run, struct why *why)
{
    step(run, 2, "fingerprint and pre-flight");
    /* Before the binary is read: reading it would warm the cache. */
    double share = 0;
    bool share_known = fingerprint_resident_share(run->path, &share) == 0;
    struct why binary_why = {0};
    if (build_info_read(run->arena, run->path, &run->binary, &binary_why) < 0)
        run->binary_na = arena_dup(run->arena, binary_why.what);
    const struct build_info *binary = run->binary_na ? NULL : &run->binary;
    struct fingerprint_input fingerprint = {.host = &run->host,
                                            .binary = binary,
                                            .binary_na = run->binary_na,
                                            .folder = ".",
                                            .resident_share = share_known ? &share : NULL,
                                            .run_id = run->run_id};
    run->fingerprint = fingerprint_read(&fingerprint);
    struct check_input check = {.host = &run->host,
                                .binary = binary,
                                .binary_na = run->binary_na,
                                .output_folder = run->folder};
    run->checks = checks_table(&check, &run->checks_failed);
    show_checks(run);
    return artifact_json(run->folder, "fingerprint.json", "whyslow.fingerprint/1",
                         &run->fingerprint, why);
}

/* 3: what a run costs, and how surely. */
static int measure(struct run *run, struct why *why)
{
    char budget[48];
    units_format((double)run->opts->budget_ns, UNIT_NS, budget, sizeof(budget));
    step(run, 3,
         arena_printf(run->arena, "baseline: %u runs after %u warm-up, within %s", run->opts->runs,
                      run->opts->warmup, budget));
    struct baseline_opts opts = {
        .argv = run->call->argv,
        .path = run->path,
        .runs = run->opts->runs,
        .warmup = run->opts->warmup,
        .budget_ns = run->opts->budget_ns,
        .timeout_ns = run->opts->timeout_ns,
        .keep_going = run->opts->force,
    };
    struct progress progress;
    progress_begin(&progress, run->call->err, "baseline", run->opts->runs);
    int r = baseline_measure(&opts, &progress, &run->baseline, why);
    progress_end(&progress);
    return r;
}

/* 4: one run under the collectors. */
static int record(struct run *run, struct why *why)
{
    if (run->baseline.end == BASELINE_INTERRUPTED) {
        run->recorded.na = "interrupted before";
        return 0;
    }
    step(run, 4, "recording one run (collector: usage)");
    struct record_opts opts = {
        .argv = run->call->argv,
        .path = run->path,
        .command = run->command,
        .recording = arena_printf(run->arena, "%s/recording.whyslow", run->folder),
        .timeout_ns = run->opts->timeout_ns,
        .fingerprint = &run->fingerprint,
    };
    int r = run_record(&opts, &run->recorded, why);
    if (r < 0)
        return r;
    if (run->recorded.result.interrupted)
        run->baseline.signal = run->recorded.result.interrupted;
    return 0;
}

static uint64_t own_cpu_ns(const struct run *run)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_SEC +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US +
           run->baseline.launcher_cpu_ns + run->recorded.result.launcher_cpu_ns;
}

static int report(struct run *run, struct why *why)
{
    struct run_facts facts = {
        .arena = run->arena,
        .command = run->command,
        .binary = run->path,
        .run_id = run->run_id,
        .folder = run->folder,
        .runs_asked = run->opts->runs,
        .budget_ns = run->opts->budget_ns,
        .baseline = &run->baseline,
        .recorded = &run->recorded,
        .fingerprint = &run->fingerprint,
        .checks = &run->checks,
        .checks_failed = run->checks_failed,
        .own_cpu_ns = own_cpu_ns(run),
    };
    struct value baseline = run_baseline_make(&facts);
    struct value root = run_report_make(&facts);
    if (arena_failed(run->arena))
        return why_nomem(why);
    int r = artifact_json(run->folder, "baseline.json", "whyslow.baseline/1", &baseline, why);
    if (r < 0)
        return r;
    struct report rendered = {.schema = "whyslow.run/1", .root = &root};
    return cmd_render(run->call, &run->opts->output, &rendered, why);
}

/* The program failed: say which run, how, and what it said last. */
static int target_failed(const struct run *run)
{
    const struct baseline *b = &run->baseline;
    FILE *err = run->call->err;
    char how[128];
    status_describe(b->failure.status, b->failure.timed_out, how, sizeof(how));
    struct why why = {0};
    why_set(&why, WHY_FAILED, EIO,
            b->failure.timed_out ? "give it longer with --timeout"
                                 : "mend the command; or measure it as it is with --force",
            "%s %u %s: %s", b->failure_kind, b->failure_run, how, run->command);
    cmd_print_error(err, &why);
    struct str tail = {b->failure.error.tail, b->failure.error.tail_len};
    if (tail.len > 0)
        fputs("  the end of its stderr:\n", err);
    for (int lines = 0; tail.len > 0 && lines < 40; lines++) {
        fputs("  | ", err);
        text_print(err, str_cut(&tail, '\n'));
        fputc('\n', err);
    }
    return EXIT_REGRESSION;
}

static int scenario_keep(const struct run *run, struct why *why)
{
    const struct baseline *b = &run->baseline;
    bool same = b->runs.len > 0 && b->outputs == 1;
    char cwd[PATH_MAX];
    struct scenario scenario = {
        .argv = run->call->argv,
        .folder = getcwd(cwd, sizeof(cwd)),
        .input = "/dev/null",
        .metric = "wall",
        .runs = run->opts->runs,
        .has_warmup = true,
        .warmup = run->opts->warmup,
        .budget_ns = run->opts->budget_ns,
        .timeout_ns = run->opts->timeout_ns,
        .golden = same ? arena_printf(run->arena, "sha256:%s", b->runs.data[0].output_sha256)
                       : NULL,
        .run_id = run->run_id,
    };
    return scenario_write(run->folder, &scenario, why);
}

static int run_steps(struct run *run, struct why *why)
{
    int r = define(run, why);
    if (r == 0)
        r = look(run, why);
    if (r == 0)
        r = measure(run, why);
    if (r == 0)
        r = scenario_keep(run, why);
    if (r < 0)
        return r;
    if (run->baseline.end == BASELINE_FAILED)
        return target_failed(run);
    r = record(run, why);
    if (r == 0)
        r = report(run, why);
    if (r == 0)
        artifacts_latest(run->opts->out, run->run_id);
    if (r < 0)
        return r;
    return run->baseline.signal ? 128 + run->baseline.signal : EXIT_DONE;
}

static int run_run(const struct cmd_call *call, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct run *run = ARENA_NEW(&arena, struct run);
    if (!run)
        return why_nomem(why);
    run->opts = call->opts;
    run->call = call;
    run->arena = &arena;
    run->host = (struct host){.root = "", .arena = &arena};
    run->recorded.na = "not reached";
    interrupt_watch();
    int r = run_steps(run, why);
    interrupt_unwatch();
    baseline_deinit(&run->baseline);
    return r;
}

static const struct cmd_example run_examples[] = {
    {"whyslow run -- ./app --size 10", "what does it cost, and how stable is that?"},
    {"whyslow ./app --size 10", "the same; 'run' may be left out"},
    {"whyslow run --runs 50 --budget 5m --json -- ./app", "more runs, for a program to read"},
    {"whyslow run -- sh -c 'zcat big.gz | ./parse'", "a pipeline needs a shell"},
    {NULL, NULL},
};

const struct command cmd_run = {
    .name = "run",
    .group = "Measure",
    .operands = "[--] COMMAND [ARGUMENT...]",
    .summary = "measure a command: what a run costs, and how stable that is",
    .about =
        "Runs the command again and again and prints what a run costs: wall time, CPU time, "
        "memory, page faults, context switches and I/O, each with the interval in which its median "
        "lies. Looks first at the machine and the binary, and says before time is spent what would "
        "spoil the result. Then one more run is recorded. Options end at the first word that is "
        "none: the rest is the command.\n\n"
        "The command gets /dev/null as stdin. What it prints is counted and hashed, so that a run "
        "whose output differs is noticed, and thrown away.\n\n"
        "Artifacts are written to DIR/RUN-ID (DIR is whyslow-out): scenario.toml, "
        "fingerprint.json, "
        "baseline.json, recording.whyslow; DIR/latest points to the last one.\n\n"
        "Exit status: 0 when measured; 1 when the command failed in one of the runs; 2 when it "
        "cannot be started; 128 and the signal's number when interrupted (130 for Ctrl-C): the "
        "runs "
        "finished by then are reported and kept.",
    .options = run_options,
    .options_size = sizeof(struct run_opts),
    .stop = OPT_FIRST_OPERAND,
    .operands_min = 1,
    .operands_max = -1,
    .examples = run_examples,
    .run = run_run,
};
