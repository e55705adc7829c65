/* run: the whole loop in one command. Each step is a file beside this one. */
#include "cmd/run_parts.h"

#include "base/redact.h"
#include "base/temporary.h"
#include "base/text.h"
#include "cmd/interrupts.h"
#include "cmd/run_artifacts.h"
#include "cmd/run_passes.h"
#include "cmd/scenario.h"
#include "host/fingerprint.h"
#include "target/command.h"
#include "target/interrupt.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

enum { NOTE_BYTES_MAX = 1024 };

#define AT(field) offsetof(struct run_opts, field)

static const struct opt run_options[] = {
    {"budget", 0, OPT_DURATION, AT(budget_ns), "TIME",
     "all of it takes this long: as many runs as fit (60s)", NULL, NULL, false, 0},
    {"quick", 0, OPT_FLAG, AT(quick), NULL,
     "few runs and recordings: all of it takes 10 s (--budget 10s)", NULL, NULL, false, 0},
    {"deep", 0, OPT_FLAG, AT(deep), NULL,
     "more runs of everything, and every allocation (budget 5m)", NULL, NULL, false, 0},
    {"scenario", 0, OPT_FILE, AT(scenario), "FILE", "take command and settings from scenario.toml",
     NULL, NULL, false, 0},
    {"runs", 'r', OPT_TEXT, AT(runs), "N", "runs to measure (20)", NULL, NULL, false, 0},
    {"warmup", 'w', OPT_TEXT, AT(warmup), "N", "runs before them, not counted (1)", NULL, NULL,
     false, 0},
    {"timeout", 0, OPT_DURATION, AT(timeout_ns), "TIME", "end a run that takes longer (10m)", NULL,
     NULL, false, 0},
    {"input", 0, OPT_FILE, AT(input), "FILE", "stdin of the command (/dev/null)", NULL, NULL, false,
     0},
    {"golden", 0, OPT_TEXT, AT(golden), "WHAT",
     "what every run must print: a file, sha256:HEX, or a command that checks its stdin", NULL,
     NULL, false, 0},
    {"ingest", 0, OPT_FILE, AT(ingest), "FILE",
     "perf.profile.* lines of the program, if it does not print them", NULL, NULL, false, 0},
    {"out", 'o', OPT_FILE, AT(out), "DIR", "folder for the artifacts; each run gets its own inside",
     ARTIFACTS_FOLDER, NULL, false, 0},
    {"summary-out", 0, OPT_FILE, AT(summary_out), "FILE", "profile_result.json there, too", NULL,
     NULL, false, 0},
    {"force", 0, OPT_FLAG, AT(force), NULL,
     "go on where the result would be spoilt, and say so in it", NULL, NULL, false, 0},
    {"yes", 'y', OPT_FLAG, AT(yes), NULL, "run what was found in a folder without asking", NULL,
     NULL, false, 0},
    KEEP_ARGUMENTS_OPTION(offsetof(struct run_opts, keep_arguments)),
    OUTPUT_OPTIONS(struct run_opts, output),
    {0},
};

void run_note(struct run *run, struct run_notes *notes, const char *fmt, ...)
{
    va_list args;
    if (notes->len == RUN_NOTES_MAX) {
        notes->items[RUN_NOTES_MAX - 1] = "and more";
        return;
    }
    char text[NOTE_BYTES_MAX];
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    notes->items[notes->len++] = arena_dup(run->arena, text);
}

void run_kept(struct run *run, const char *name, int r, const struct why *why)
{
    if (r >= 0)
        return;
    cmd_print_error(run->call->err, why);
    run_note(run, &run->missing, "%s: %s", name, why->what);
    run->unkept = true;
}

uint64_t run_left_ns(const struct run *run)
{
    uint64_t spent_ns = clock_mono_ns() - run->start_ns;
    return spent_ns < run->plan.budget_ns ? run->plan.budget_ns - spent_ns : 0;
}

uint64_t run_left_to_record_ns(const struct run *run)
{
    uint64_t left_ns = run_left_ns(run);
    return left_ns > RUN_INTERPRET_NS ? left_ns - RUN_INTERPRET_NS : 0;
}

void run_step(const struct run *run, int number, const char *text)
{
    fprintf(run->call->notes, "[%d/5] ", number);
    text_print(run->call->notes, str_from(text));
    fprintf(run->call->notes, " (at %.1f of %.0f s)\n",
            (double)(clock_mono_ns() - run->start_ns) / 1e9, (double)run->plan.budget_ns / 1e9);
    fflush(run->call->notes);
}

/* 1: what is to be run. */
static int define(struct run *run, struct why *why)
{
    int r = run_plan_make(run, why);
    if (r < 0)
        return r;
    run->run_id = run_id_make(run->arena);
    if (strcmp(run->opts->out, ARTIFACTS_FOLDER) == 0)
        r = artifacts_default_check(run->plan.out, why);
    if (r < 0)
        return r;
    r = artifacts_folder_make(run->arena, run->plan.out, run->run_id, &run->folder, why);
    if (r == 0)
        run_step(run, 1, arena_printf(run->arena, "scenario: %s", run->plan.command));
    return r;
}

/* 4: runs under the collectors. */
static int record(struct run *run, struct why *why)
{
    run->input = (struct evidence_input){
        .costs = run_costs_of(run),
        .binary = run->binary_na ? NULL : &run->binary,
        .binary_na = run->binary_na,
        .fingerprint = &run->fingerprint,
        .checks = &run->checks,
        .command = run->plan.command,
        .spans = &run->spans,
    };
    return run_passes(run, why);
}

/* The program failed: say which run, how, and what it said last. */
static int target_failed(const struct run *run)
{
    const struct baseline *b = &run->baseline;
    FILE *err = run->call->err;
    char how[128];
    status_describe(b->failure.status, b->failure.timed_out, how, sizeof(how));
    bool wrong = b->failure_how[0] != '\0';
    struct why why = {0};
    why_set(&why, WHY_FAILED, EIO,
            wrong ? "a faster wrong answer is no gain: mend it, or the golden output"
            : b->failure.timed_out ? "give it longer with --timeout"
                                   : "mend the command; or measure it as it is with --force",
            "%s %u %s: %s", b->failure_kind, b->failure_run, wrong ? b->failure_how : how,
            run->plan.command);
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

static void scenario_keep(struct run *run)
{
    const struct baseline *b = &run->baseline;
    const struct run_plan *plan = &run->plan;
    bool same = b->runs.len > 1 && b->outputs == 1; /* one run may be any */
    /* A check command with secrets is not kept: the output stands for it. */
    const char *given = plan->golden.given;
    bool secret_check = given && strcmp(command_text_shown(run->arena, given), given) != 0;
    char cwd[PATH_MAX];
    struct scenario scenario = {
        .argv = plan->argv,
        .shown = plan->secrets > 0 ? redact_argv(run->arena, plan->argv, NULL) : NULL,
        .folder = getcwd(cwd, sizeof(cwd)),
        .input = plan->input ? plan->input : "/dev/null",
        .metric = plan->metric,
        .runs = plan->runs,
        .has_warmup = true,
        .warmup = plan->warmup,
        .budget_ns = plan->budget_ns,
        .timeout_ns = plan->timeout_ns,
        .golden = plan->golden.given && !secret_check ? plan->golden.given
                  : same ? arena_printf(run->arena, "sha256:%s", b->runs.data[0].output_sha256)
                         : NULL,
        .run_id = run->run_id,
    };
    struct why why = {0};
    run_kept(run, "scenario.toml", scenario_write(run->folder, &scenario, &why), &why);
}

/* An interrupt ends a step, not the command: what there is by then is told. */
static int run_status(const struct run *run)
{
    if (interrupt_signal())
        return 128 + interrupt_signal();
    if (run->unkept)
        return EXIT_OWN_FAILURE;
    return run->unstable && !run->opts->force ? EXIT_INCONCLUSIVE : EXIT_DONE;
}

static int run_steps(struct run *run, struct why *why)
{
    int r = define(run, why);
    if (r == 0)
        r = run_look(run, why);
    if (r == 0)
        r = run_measure(run, why);
    if (r != 0)
        return r; /* ours, or the program's: said already */
    scenario_keep(run);
    if (run->baseline.end == BASELINE_FAILED)
        return target_failed(run);
    r = record(run, why);
    if (run->baseline.cut_ns > 0 && run->baseline.runs.len > 0)
        scenario_keep(run); /* what it prints is known now */
    if (r == 0 && run->baseline.end == BASELINE_FAILED)
        return target_failed(run);
    if (r == 0)
        r = run_hand_off(run, why);
    if (r < 0)
        return r;
    artifacts_latest(run->plan.out, run->run_id);
    return run_status(run);
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
    run->start_ns = clock_mono_ns();
    run->host = (struct host){.root = "", .arena = &arena};
    temporary_sweep();
    interrupt_watch(interrupts_tell);
    int r = run_steps(run, why);
    if (r < 0 && interrupt_signal()) { /* that is why */
        cmd_print_error(call->err, why);
        r = 128 + interrupt_signal();
    }
    interrupt_unwatch();
    if (r != 0 && run->folder)
        rmdir(run->folder); /* with nothing in it, it is of no use */
    run_golden_close(&run->golden);
    baseline_deinit(&run->baseline);
    return r;
}

static const struct cmd_example run_examples[] = {
    {"whyslow run -- ./app --size 10", "why is it slow?"},
    {"whyslow ./app --size 10", "the same; 'run' may be left out"},
    {"whyslow run --quick -- ./app", "an answer in some 10 s"},
    {"whyslow run --deep --budget 10m --json -- ./app",
     "more of everything, for a program to read"},
    {"whyslow run --scenario whyslow-out/latest/scenario.toml", "the same again"},
    {"whyslow run .", "whatever benchmark or test this folder has"},
    {"whyslow run -- sh -c 'zcat big.gz | ./parse'", "a pipeline needs a shell"},
    {NULL, NULL},
};

const struct command cmd_run = {
    .name = "run",
    .group = "Measure",
    .operands = "[--] COMMAND [ARGUMENT...] | FOLDER",
    .summary = "why a command is slow: measured, profiled, ranked and handed over",
    .about =
        "Looks at the machine and the binary, and stops before time is spent if that would spoil "
        "the result. Runs the command again and again (20 times, or as often as half of the "
        "budget allows) for a baseline, then once under each kind of recording: CPU samples with "
        "waits and locks, I/O, heap. Says where the wall time goes, what was suspected and is "
        "confirmed or dismissed, and what mending it would save, with intervals and evidence. "
        "Options end at the first word that is none: the rest is the command.\n\n"
        "A recording that slows the program down by more than 20% is made again, then gives way "
        "to a cheaper one; every allocation is counted only when samples call for it. What was "
        "cut, repeated or given up is said.\n\n"
        "The command gets /dev/null as stdin, or --input. What it prints is counted and hashed: a "
        "run whose output differs is noticed, and one that differs from --golden is a failure. "
        "Lines of JSON with perf.profile.* events are read from it.\n\n"
        "With a folder in the place of a command its scenario.toml is run, else a benchmark or "
        "the tests of its build; on a terminal after asking, otherwise only with --yes.\n\n"
        "Artifacts are written to DIR/RUN-ID (DIR is whyslow-out); DIR/latest points to the last "
        "one. docs/run.md describes the steps and what each status means.\n\n"
        "Exit status: 0 when measured; 1 when the command failed in one of the runs, or gave a "
        "wrong answer; 2 when it cannot be started; 3 when the baseline drifted by more than 10%: "
        "the result is shown and marked, --force makes it 0; 4 when a check says that the result "
        "would be spoilt; 5 when an artifact could not be written; 128 and the signal's number "
        "when interrupted (130 for Ctrl-C): what was finished by then is reported and kept.",
    .options = run_options,
    .options_size = sizeof(struct run_opts),
    .stop = OPT_FIRST_OPERAND,
    .operands_min = 0,
    .operands_max = -1,
    .examples = run_examples,
    .run = run_run,
};
