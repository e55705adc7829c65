/* compare: is B faster or slower than A? Two commands in interleaved blocks, or two stored
 * results; fingerprint, runs, statistics, report. */
#include "cmd/cmd.h"

#include "base/clock.h"
#include "cmd/ab_source.h"
#include "cmd/compare_report.h"
#include "cmd/interrupts.h"
#include "target/command.h"
#include "target/interrupt.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

extern const struct command cmd_report;

struct compare_opts {
    struct ab_cli ab;
    double margin_percent;
    uint32_t blocks;
    uint64_t budget_ns;
    bool duet;
    bool keep_arguments;
    struct output_opts output;
};

static const struct opt compare_options[] = {
    {"margin", 'm', OPT_PERCENT, offsetof(struct compare_opts, margin_percent), "PERCENT",
     "changes smaller than this do not matter", "1%", NULL, false},
    {"budget", 0, OPT_DURATION, offsetof(struct compare_opts, budget_ns), "TIME",
     "how long to measure; 10s when not given, and then at least 6 blocks", NULL, NULL, false},
    {"blocks", 'b', OPT_U32, offsetof(struct compare_opts, blocks), "N",
     "make this many blocks instead, each a run of A and one of B", NULL, NULL, false},
    {"duet", 0, OPT_FLAG, offsetof(struct compare_opts, duet), NULL,
     "run A and B at the same time instead of in turns", NULL, NULL, false},
    AB_OPTIONS(struct compare_opts, ab),
    KEEP_ARGUMENTS_OPTION(offsetof(struct compare_opts, keep_arguments)),
    OUTPUT_OPTIONS(struct compare_opts, output),
    {0},
};

enum { BUDGET_S = 10, BLOCKS_MIN = 6 };

/* What the steps of one call share. */
struct compare {
    const struct compare_opts *opts;
    const struct cmd_call *call;
    struct arena *arena;
    struct ab_source sources[AB_SIDES];
    struct ab_question question;
    struct ab_opts ab_opts;
    struct ab ab;
    struct compare_facts facts;
    struct ab_answer answer;
};

static int refuse_mixture(const struct compare *compare, struct why *why)
{
    const struct ab_source *a = &compare->sources[0], *b = &compare->sources[1];
    const struct ab_source *odd = a->kind == AB_COMMAND ? b : a;
    const struct ab_source *other = odd == a ? b : a;
    static const char *const kinds[] = {"a command", "a stored result", "a recording"};
    return why_set(
        why, WHY_USAGE, EINVAL,
        "give two commands, two stored results or two recordings; 'whyslow gate' judges a command "
        "against a stored result",
        "'%s' is %s and '%s' is %s", compare->facts.texts[odd - compare->sources], kinds[odd->kind],
        compare->facts.texts[other - compare->sources], kinds[other->kind]);
}

/* What was mistyped is found here, before time is spent. */
static int define(struct compare *compare, struct why *why)
{
    const struct compare_opts *opts = compare->opts;
    if (opts->margin_percent < 0 || opts->margin_percent >= 100)
        return why_set(why, WHY_USAGE, EINVAL, "1% is a good margin",
                       "--margin must be 0%% to 100%%");
    if (opts->blocks > AB_BLOCKS_MAX)
        return why_set(why, WHY_USAGE, EINVAL, "20 to 100 are usual", "--blocks must be 1 to %d",
                       AB_BLOCKS_MAX);
    compare->question = (struct ab_question){
        .margin = opts->margin_percent / 100, .confidence = 0.95, .threshold = 1};
    int r = metric_spec_parse(compare->arena, opts->ab.metric, &compare->question.spec, why);
    for (int side = 0; r == 0 && side < AB_SIDES; side++) {
        r = ab_source_open(compare->arena, compare->call->argv[side], &compare->sources[side], why);
        compare->facts.texts[side] = command_text_shown(compare->arena, compare->call->argv[side]);
    }
    if (r < 0)
        return r;
    return compare->sources[0].kind != compare->sources[1].kind ? refuse_mixture(compare, why) : 0;
}

/* Two recordings: function by function, which is what report --diff does. */
static int recordings(const struct compare *compare, struct why *why)
{
    const struct output_opts *output = &compare->opts->output;
    char report[] = "report", diff[] = "--diff", json[] = "--json", markdown[] = "--markdown";
    char *form = output->json ? json : output->markdown ? markdown : NULL;
    char *argv[] = {report, compare->call->argv[0], diff, compare->call->argv[1], form, NULL};
    struct cmd_call call = *compare->call;
    void *opts = arena_alloc(compare->arena, cmd_report.options_size);
    if (!opts)
        return why_nomem(why);
    memset(opts, 0, cmd_report.options_size);
    int words = form ? 5 : 4;
    call.argc = opt_parse(cmd_report.options, cmd_report.stop, words, argv, opts, why);
    if (call.argc < 0)
        return call.argc;
    call.argv = argv;
    call.opts = opts;
    return cmd_report.run(&call, why);
}

static void duet_check(struct compare *compare)
{
    cpu_set_t set;
    if (compare->opts->duet && sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < 2)
        value_append(&compare->facts.warnings,
                     value_tone(value_text("only one CPU is allowed: in a duet A and B share it"),
                                TONE_WARN));
}

static int measure(struct compare *compare, struct why *why)
{
    const struct compare_opts *opts = compare->opts;
    /* facts.texts are for showing: what they hide must be run all the same. */
    const char *const given[AB_SIDES] = {compare->call->argv[0], compare->call->argv[1]};
    int r = ab_opts_make(compare->arena, &opts->ab, given, &compare->ab_opts, why);
    if (r < 0)
        return r;
    compare->ab_opts.duet = opts->duet;
    compare->question.interleaved = true;
    duet_check(compare);
    compare->facts.fingerprint = ab_fingerprint_here(compare->arena,
                                                     compare->ab_opts.sides[1].path);
    compare->facts.differences = value_na("one machine: nothing to compare");
    uint64_t budget_ns = opts->budget_ns ? opts->budget_ns : BUDGET_S * NS_PER_SEC;
    uint64_t until_ns = opts->blocks && !opts->budget_ns ? UINT64_MAX : clock_mono_ns() + budget_ns;
    size_t blocks = opts->blocks ? opts->blocks : AB_BLOCKS_MAX;
    size_t least = opts->budget_ns ? 1 : MIN(blocks, (size_t)BLOCKS_MIN);
    struct progress progress;
    progress_begin(&progress, compare->call->notes, "blocks", opts->blocks);
    r = ab_begin(&compare->ab_opts, &compare->ab, why);
    if (r == 0)
        r = ab_measure(&compare->ab_opts, least, blocks, until_ns, &progress, &compare->ab, why);
    progress_end(&progress);
    compare->facts.ab = &compare->ab;
    compare->facts.duet = opts->duet;
    compare->facts.budget_ns = budget_ns;
    compare->facts.seed = compare->ab_opts.seed;
    for (int side = 0; side < AB_SIDES; side++)
        compare->facts.results[side] = &compare->ab.results[side];
    return r;
}

static int load(struct compare *compare, struct why *why)
{
    struct ab_source *a = &compare->sources[0], *b = &compare->sources[1];
    if (compare->opts->duet || compare->opts->ab.prepare)
        return why_set(why, WHY_USAGE, EINVAL, "leave --duet and --prepare away",
                       "stored results are compared as they are: nothing is run");
    int r = ab_sources_choose(a, b, &compare->opts->ab, why);
    const char *warning = NULL;
    if (r == 0)
        r = ab_fingerprints_check(compare->arena, a, b, compare->opts->ab.force,
                                  &compare->facts.differences, &warning, why);
    if (r < 0)
        return r;
    if (warning)
        value_append(&compare->facts.warnings,
                     value_tone(value_text(arena_printf(compare->arena, "--force: %s", warning)),
                                TONE_WARN));
    compare->facts.fingerprint = value_na("stored results: each file has its own");
    compare->facts.results[0] = a->result;
    compare->facts.results[1] = b->result;
    return 0;
}

static int answer(struct compare *compare, struct why *why)
{
    struct compare_facts *facts = &compare->facts;
    int r = ab_answer_make(compare->arena, &compare->question, facts->results[0], facts->results[1],
                           &compare->answer, why);
    if (r < 0)
        return r;
    facts->question = &compare->question;
    facts->answer = &compare->answer;
    facts->cli = &compare->opts->ab;
    struct value root = compare_report_make(facts);
    if (arena_failed(compare->arena))
        return why_nomem(why);
    struct report rendered = {.schema = "whyslow.compare/1", .root = &root};
    return cmd_render(compare->call, &compare->opts->output, &rendered, why);
}

static int compare_steps(struct compare *compare, struct why *why)
{
    int r = define(compare, why);
    if (r < 0)
        return r;
    if (compare->sources[0].kind == AB_RECORDING)
        return recordings(compare, why);
    r = compare->sources[0].kind == AB_STORED ? load(compare, why) : measure(compare, why);
    if (r < 0)
        return r;
    if (compare->ab.end == AB_FAILED) {
        ab_failure_print(&compare->ab, compare->call->err);
        return EXIT_REGRESSION;
    }
    r = answer(compare, why);
    if (r < 0)
        return r;
    return compare->ab.end == AB_INTERRUPTED ? 128 + compare->ab.signal : EXIT_DONE;
}

static int compare_run(const struct cmd_call *call, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct compare *compare = ARENA_NEW(&arena, struct compare);
    if (!compare)
        return why_nomem(why);
    compare->opts = call->opts;
    compare->call = call;
    compare->arena = &arena;
    compare->facts.arena = &arena;
    compare->facts.warnings = value_list(&arena);
    interrupt_watch(interrupts_tell);
    int r = compare_steps(compare, why);
    interrupt_unwatch();
    ab_deinit(&compare->ab);
    for (int side = 0; side < AB_SIDES; side++)
        ab_source_close(&compare->sources[side]);
    return r;
}

static const struct cmd_example compare_examples[] = {
    {"whyslow compare './old --size 10' './new --size 10'", "is new faster or slower?"},
    {"whyslow compare --metric peak_rss --margin 5% ./old ./new", "does it need more memory?"},
    {"whyslow compare 'zcat a.gz | ./old' 'zcat a.gz | ./new'", "pipelines"},
    {"whyslow compare monday.json friday.json", "two results of 'whyslow bench --export-json'"},
    {"whyslow compare old.whyslow new.whyslow", "two recordings, function by function"},
    {NULL, NULL},
};

const struct command cmd_compare = {
    .name = "compare",
    .group = "Measure",
    .operands = "A B",
    .summary = "is B faster or slower than A? two commands side by side, or stored results",
    .about =
        "Runs A and B in blocks, one run of each in random order, so that whatever the machine "
        "does "
        "falls on both. Answers faster, slower, equivalent or unknown: B against A. Faster or "
        "slower "
        "only when the whole 95% interval of the ratio is beyond the margin and chance is ruled "
        "out "
        "at 5%; equivalent when the interval is wholly within the margin; else unknown, with the "
        "smallest change that could have been seen.\n\n"
        "A and B are one text each, split as a shell would split them. When one of them needs a "
        "shell "
        "(a pipe, a variable), both run through sh, or what --shell names. The commands get "
        "/dev/null as stdin, and what they print is "
        "thrown "
        "away; the output of the warm-up runs is hashed, and a difference between A and B is "
        "told.\n\n"
        "Two files made by 'whyslow bench --export-json' are compared as they are. That is weaker, "
        "since they were measured at different times. When their fingerprints tell of two "
        "different "
        "machines, it is refused without --force.\n\n"
        "The ratio is the median of the blocks' ratios, its interval a bootstrap over blocks, p "
        "from "
        "flipping signs of blocks. Metrics that were not asked about are corrected for their "
        "number "
        "(Holm).\n\n"
        "Exit status: 0 when compared, whatever the verdict ('whyslow gate' turns one into a "
        "status); "
        "1 when a command failed; 2 when it cannot be started; 128 and the signal's number when "
        "interrupted: the blocks finished by then are compared.",
    .options = compare_options,
    .options_size = sizeof(struct compare_opts),
    .stop = OPT_MIXED,
    .operands_min = 2,
    .operands_max = 2,
    .examples = compare_examples,
    .run = compare_run,
};
