/* gate: may this change go in? Pairs of baseline and candidate, measured side by side and judged
 * against a threshold; the exit status is the answer. */
#include "cmd/gate.h"

#include "base/fd.h"
#include "cmd/gate_burn.h"
#include "cmd/interrupts.h"
#include "target/command.h"
#include "target/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct opt gate_options[] = {
    {"baseline", 0, OPT_LIST, offsetof(struct gate_opts, baselines), "CMD|FILE",
     "what is good: a command, run again here, or a stored result; may be repeated", NULL, NULL,
     false},
    {"candidate", 0, OPT_LIST, offsetof(struct gate_opts, candidates), "CMD|FILE",
     "what is judged; one for each baseline, in the same order", NULL, NULL, false},
    {"max-regression", 0, OPT_PERCENT, offsetof(struct gate_opts, max_regression_percent),
     "PERCENT", "how much worse the candidate may be", "10%", NULL, false},
    {"budget", 0, OPT_DURATION, offsetof(struct gate_opts, budget_ns), "TIME",
     "how long to measure at most, all benchmarks together", "60s", NULL, false},
    {"counts", 0, OPT_FLAG, offsetof(struct gate_opts, counts), NULL,
     "judge instructions counted by simulation (valgrind) instead of --metric", NULL, NULL, false},
    {"self-test", 0, OPT_FLAG, offsetof(struct gate_opts, self_test), NULL,
     "slow the baseline down on purpose, and see that the gate catches it", NULL, NULL, false},
    {"summary", 0, OPT_FILE, offsetof(struct gate_opts, summary), "FILE",
     "append the result as Markdown, e.g. to \"$GITHUB_STEP_SUMMARY\"", NULL, NULL, false},
    AB_OPTIONS(struct gate_opts, ab),
    KEEP_ARGUMENTS_OPTION(offsetof(struct gate_opts, keep_arguments)),
    OUTPUT_OPTIONS(struct gate_opts, output),
    {"burn", 0, OPT_FLAG, offsetof(struct gate_opts, burn), NULL, "for the self-test", NULL, NULL,
     true},
    {"burn-ns", 0, OPT_U64, offsetof(struct gate_opts, burn_ns), "N", "for the self-test", NULL,
     NULL, true},
    {"burn-kib", 0, OPT_U64, offsetof(struct gate_opts, burn_kib), "N", "for the self-test", NULL,
     NULL, true},
    {"burn-loops", 0, OPT_U64, offsetof(struct gate_opts, burn_loops), "N", "for the self-test",
     NULL, NULL, true},
    {0},
};

static void warn(struct gate *gate, const char *text)
{
    value_append(&gate->warnings, value_tone(value_text(text), TONE_WARN));
}

/* Two stored results: nothing is run. */
static int pair_load(struct gate *gate, struct gate_pair *pair, struct why *why)
{
    const char *warning = NULL;
    int r = ab_sources_choose(&pair->sources[0], &pair->sources[1], &gate->opts->ab, why);
    if (r == 0)
        r = ab_fingerprints_check(gate->arena, &pair->sources[0], &pair->sources[1],
                                  gate->opts->ab.force, &gate->differences, &warning, why);
    if (r < 0)
        return r;
    if (warning)
        warn(gate, arena_printf(gate->arena, "--force: %s", warning));
    warn(gate, arena_printf(gate->arena, "'%s' and '%s': weaker: not interleaved", pair->texts[0],
                            pair->texts[1]));
    pair->stored = true;
    for (int side = 0; side < AB_SIDES; side++)
        pair->results[side] = pair->sources[side].result;
    return 0;
}

/* A stored baseline against a command that is run here. */
static int pair_half(struct gate *gate, struct gate_pair *pair, struct why *why)
{
    const char *warning = NULL;
    struct value here = ab_fingerprint_here(gate->arena, pair->ab_opts.sides[1].path);
    int r = ab_source_choose(&pair->sources[0], &gate->opts->ab, why);
    if (r == 0)
        r = ab_fingerprint_check_here(gate->arena, &pair->sources[0], &here, gate->opts->ab.force,
                                      &gate->differences, &warning, why);
    if (r < 0)
        return r;
    if (warning)
        warn(gate, arena_printf(gate->arena, "--force: %s", warning));
    warn(gate, arena_printf(gate->arena,
                            "'%s' was measured at another time: weaker; a command as --baseline is "
                            "run side by side with the candidate",
                            pair->texts[0]));
    pair->alone = pair->ab_opts.alone = true;
    pair->results[0] = pair->sources[0].result;
    pair->results[1] = &pair->ab.results[1];
    return 0;
}

/* `pair->texts` become what may be shown. */
static int pair_define(struct gate *gate, struct gate_pair *pair, struct why *why)
{
    const char *const given[AB_SIDES] = {pair->texts[0], pair->texts[1]};
    const struct ab_source *sources = pair->sources;
    for (int side = 0; side < AB_SIDES; side++) {
        int r = ab_source_open(gate->arena, given[side], &pair->sources[side], why);
        pair->texts[side] = command_text_shown(gate->arena, given[side]);
        if (r < 0)
            return r;
        if (sources[side].kind == AB_RECORDING)
            return why_set(why, WHY_USAGE, EINVAL,
                           "give a command, or a file made by 'whyslow bench --export-json'",
                           "'%s' is a recording; a gate does not judge those", pair->texts[side]);
    }
    if (gate->opts->counts && (sources[0].kind != AB_COMMAND || sources[1].kind != AB_COMMAND))
        return why_set(why, WHY_USAGE, EINVAL, "give two commands",
                       "--counts simulates both sides; a stored result has no simulated counts");
    if (sources[0].kind == AB_COMMAND && sources[1].kind == AB_STORED)
        return why_set(why, WHY_USAGE, EINVAL, "give the candidate as a command",
                       "the baseline '%s' is a command and the candidate '%s' a stored result",
                       pair->texts[0], pair->texts[1]);
    if (sources[1].kind == AB_STORED)
        return pair_load(gate, pair, why);
    const char *const texts[AB_SIDES] = {sources[0].kind == AB_STORED ? NULL : given[0], given[1]};
    int r = ab_opts_make(gate->arena, &gate->opts->ab, texts, &pair->ab_opts, why);
    if (r < 0)
        return r;
    if (sources[0].kind == AB_STORED)
        return pair_half(gate, pair, why);
    for (int side = 0; side < AB_SIDES; side++)
        pair->results[side] = &pair->ab.results[side];
    return 0;
}

static int pairs_define(struct gate *gate, struct why *why)
{
    const struct gate_opts *opts = gate->opts;
    if (opts->baselines.len == 0 || opts->candidates.len != opts->baselines.len)
        return why_set(why, WHY_USAGE, EINVAL,
                       "whyslow gate --baseline ./old --candidate ./new; repeat both for more",
                       "every --baseline needs a --candidate: there are %zu and %zu",
                       opts->baselines.len, opts->candidates.len);
    gate->pair_count = opts->baselines.len;
    for (size_t i = 0; i < gate->pair_count; i++) {
        gate->pairs[i].texts[0] = opts->baselines.items[i];
        gate->pairs[i].texts[1] = opts->candidates.items[i];
        int r = pair_define(gate, &gate->pairs[i], why);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What was mistyped is found here, before time is spent. */
static int define(struct gate *gate, struct why *why)
{
    const struct gate_opts *opts = gate->opts;
    if (gate->call->argc > 0)
        return why_set(why, WHY_USAGE, EINVAL, "put the whole command in quotes after --candidate",
                       "'%s' belongs to no option",
                       command_text_shown(gate->arena, gate->call->argv[0]));
    if (!(opts->max_regression_percent >= 0) || opts->max_regression_percent > 10000)
        return why_set(why, WHY_USAGE, EINVAL, "10% is usual",
                       "--max-regression must be 0%% to 10000%%");
    if (opts->self_test && opts->max_regression_percent == 0)
        return why_set(why, WHY_USAGE, EINVAL, "give the --max-regression you gate with",
                       "a self-test slows down by twice the threshold, which is 0");
    gate->threshold = 1 + opts->max_regression_percent / 100;
    int r = metric_spec_parse(gate->arena, opts->ab.metric, &gate->spec, why);
    if (r < 0)
        return r;
    if (opts->counts)
        gate->spec = (struct metric_spec){BENCH_INSTRUCTIONS, 0.5, "instructions, simulated"};
    r = opts->self_test ? gate_selftest_make(gate, why) : pairs_define(gate, why);
    if (r < 0)
        return r;
    for (size_t i = 0; i < gate->pair_count; i++)
        for (int side = 0; opts->self_test && side < AB_SIDES; side++)
            gate->pairs[i].results[side] = &gate->pairs[i].ab.results[side];
    return 0;
}

static int summary_append(const char *path, const struct gate *gate, const struct report *report,
                          struct why *why)
{
    FILE *out = file_open_private(path, true);
    if (!out)
        return why_errno(why, errno, "choose a file you may write to", "cannot write '%s'", path);
    fprintf(out, "## whyslow gate: %s\n\n", gate_verdict_name(gate_verdict(gate)));
    struct render_opts opts = {0};
    int r = render(renderer_find("markdown"), report, &opts, out, why);
    if (fclose(out) != 0 && r == 0)
        r = why_errno(why, errno, "is the disk full?", "cannot write '%s'", path);
    return r;
}

/* Before the first run: running the binary warms the cache that the fingerprint tells of. */
static void look(struct gate *gate)
{
    const char *binary = NULL;
    for (size_t i = 0; !binary && i < gate->pair_count; i++)
        binary = gate->pairs[i].ab_opts.sides[1].path;
    gate->fingerprint = binary ? ab_fingerprint_here(gate->arena, binary)
                               : value_na("stored results: each file has its own");
}

static int report(struct gate *gate, struct why *why)
{
    struct value root = gate_report_make(gate);
    if (arena_failed(gate->arena))
        return why_nomem(why);
    struct report rendered = {.schema = "whyslow.gate/1", .root = &root};
    int r = cmd_render(gate->call, &gate->opts->output, &rendered, why);
    if (r == 0 && gate->opts->summary)
        r = summary_append(gate->opts->summary, gate, &rendered, why);
    return r;
}

static int gate_steps(struct gate *gate, struct why *why)
{
    int r = define(gate, why);
    if (r == 0)
        look(gate);
    if (r == 0 && !gate->failed && !gate->signal)
        r = gate->opts->counts ? gate_count(gate, why) : gate_measure(gate, why);
    if (r < 0)
        return r;
    if (gate->failed) {
        ab_failure_print(&gate->failed->ab, gate->call->err);
        return EXIT_REGRESSION;
    }
    r = report(gate, why);
    if (r < 0)
        return r;
    if (gate->signal)
        return 128 + gate->signal;
    static const int statuses[] = {[GATE_PASS] = EXIT_DONE,
                                   [GATE_FAIL] = EXIT_REGRESSION,
                                   [GATE_INCONCLUSIVE] = EXIT_INCONCLUSIVE};
    return statuses[gate_verdict(gate)];
}

static int gate_run(const struct cmd_call *call, struct why *why)
{
    const struct gate_opts *opts = call->opts;
    if (opts->burn) {
        struct burn burn = {opts->burn_ns, opts->burn_loops, opts->burn_kib};
        return burn_and_run(&burn, call->argv, why);
    }
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct gate *gate = ARENA_NEW(&arena, struct gate);
    if (gate)
        gate->pairs = arena_alloc(&arena, GATE_PAIRS_MAX * sizeof(*gate->pairs));
    if (!gate || !gate->pairs)
        return why_nomem(why);
    gate->opts = opts;
    gate->call = call;
    gate->arena = &arena;
    gate->family = true;
    gate->warnings = value_list(&arena);
    gate->differences = value_na("one machine: nothing to compare");
    interrupt_watch(interrupts_tell);
    int r = gate_steps(gate, why);
    interrupt_unwatch();
    for (size_t i = 0; i < GATE_PAIRS_MAX; i++) {
        ab_deinit(&gate->pairs[i].ab);
        for (int side = 0; side < AB_SIDES; side++)
            ab_source_close(&gate->pairs[i].sources[side]);
    }
    return r;
}

static const struct cmd_example gate_examples[] = {
    {"whyslow gate --baseline ./old --candidate ./new --metric p95 --max-regression 10%",
     "fail when the slow tail got more than 10% slower"},
    {"whyslow gate --baseline ./old --candidate ./new --summary \"$GITHUB_STEP_SUMMARY\"",
     "in a CI job"},
    {"whyslow gate --baseline main.json --candidate ./new", "against a stored result; weaker"},
    {"whyslow gate --counts --max-regression 2% --baseline ./old --candidate ./new",
     "simulated instruction counts: small changes on noisy machines"},
    {"whyslow gate --self-test --baseline ./old", "would it catch a regression here?"},
    {NULL, NULL},
};

const struct command cmd_gate = {
    .name = "gate",
    .group = "Measure",
    .operands = "",
    .summary = "may this change go in? pass, fail or inconclusive against a threshold",
    .about =
        "Runs baseline and candidate side by side, as 'whyslow compare' does, and judges the "
        "candidate. It fails only if the whole interval of the ratio is beyond --max-regression, "
        "and "
        "passes only if it is wholly below. Otherwise it measures on, up to the budget, and ends "
        "inconclusive. It looks three times, at a quarter, a half and all of the budget, with the "
        "5% "
        "of wrong answers dealt out among the looks (1%, 1.5%, 2.5%), so that an early answer is "
        "no "
        "worse than a late one.\n\n"
        "--baseline and --candidate may be repeated, in pairs; then chance is held to 5% for all "
        "of "
        "them together (Holm).\n\n"
        "--counts runs both sides under valgrind's callgrind and judges the instructions counted. "
        "They hardly vary, so that 1% can be seen; but they miss waiting, the kernel, caches and "
        "threads, and the result is called simulated.\n\n"
        "--self-test takes the baseline alone, slows it down by twice --max-regression, and checks "
        "that the gate fails on that and does not fail without.\n\n"
        "Exit status: 0 pass; 1 fail, or a command failed; 2 usage; 3 inconclusive; 4 not possible "
        "here, such as --counts without valgrind; 128 and the signal's number when interrupted.",
    .options = gate_options,
    .options_size = sizeof(struct gate_opts),
    .stop = OPT_MIXED,
    .operands_min = 0,
    .operands_max = -1,
    .examples = gate_examples,
    .run = gate_run,
};
