/* The baseline: how many runs there is time for, whether each gave the right answer, and what was
 * taken from them meanwhile. */
#include "cmd/run_ingest.h"
#include "cmd/run_report.h"
#include "target/command.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

/* What is kept for the runs under collectors, and for reading what they recorded. */
#define PASSES          3
#define PASS_SLOWDOWN   1.25
#define PASS_EXTRA_NS   (700 * NS_PER_MS)
#define INTERPRET_NS    RUN_INTERPRET_NS
#define BASELINE_SHARE  0.5
#define FIRST_RUN_SHARE 0.6
/* --quick has to leave time to record as much again as was measured. */
#define FIRST_RUN_SHARE_QUICK 0.4
#define FIRST_RUN_NS_MIN      NS_PER_SEC
/* M6: a baseline that moves more than this between its first and last third is not one. */
#define DRIFT_PERCENT_MAX 10
#define CHECK_BUDGET_PART 4

static uint64_t baseline_budget(void *context, double wall_ns)
{
    struct run *run = context;
    const struct run_plan *plan = &run->plan;
    double pass = PASS_SLOWDOWN * wall_ns + (double)PASS_EXTRA_NS;
    double rest = run->passes_left * pass + (double)INTERPRET_NS;
    double left = (double)run_left_ns(run) - rest;
    double allowed = fmin(left, BASELINE_SHARE * (double)plan->budget_ns);
    return allowed > 0 ? (uint64_t)allowed : 0;
}

static int golden_judge(void *context, const struct spawn_result *result, char *how, size_t size)
{
    struct run *run = context;
    return run_golden_judge(&run->golden, result, how, size);
}

/* Said once the runs are over: what a reader of the figures has to know about them. */
static void baseline_say(struct run *run)
{
    const struct baseline *b = &run->baseline;
    const struct summary *wall = &b->summaries[METRIC_WALL];
    char text[48];
    units_format((double)run->plan.budget_ns, UNIT_NS, text, sizeof(text));
    if (b->end == BASELINE_INTERRUPTED)
        run_note(run, &run->missing, "baseline: interrupted after %zu of %u runs", b->runs.len,
                 run->plan.runs);
    if (b->end == BASELINE_BUDGET)
        run_note(run, &run->missing, "baseline: %zu of %u runs; the budget of %s allowed no more",
                 b->runs.len, run->plan.runs, text);
    if (b->cold)
        run_note(run, &run->marks,
                 "the one run that fitted into the budget is the first: it paid "
                 "for cold caches");
    if (b->left_behind > 0)
        run_note(run, &run->notes,
                 "%u runs left processes behind when they ended: those were ended, and what they "
                 "do is in no figure",
                 b->left_behind);
    if (b->output_open)
        run_note(run, &run->notes,
                 "a process of its own session was left behind and holds the output open: what it "
                 "does is in no figure");
    if (b->outputs > 1)
        run_note(run, &run->marks,
                 "%u different outputs in %zu runs: the work may not be the same each time",
                 b->outputs, b->runs.len);
    run->unstable = wall->count >= 6 && fabs(wall->drift_percent) > DRIFT_PERCENT_MAX;
    if (run->unstable)
        run_note(run, &run->marks,
                 "unstable: wall time moved by %+.1f%% from the first to the last third of the "
                 "runs (more than %d%% is no baseline)",
                 wall->drift_percent, DRIFT_PERCENT_MAX);
}

/* How long the first run may take. After one that was ended the length is known: it may take all
 * there is. */
static uint64_t first_ns_max(const struct run *run)
{
    double share = run->plan.depth == RUN_QUICK ? FIRST_RUN_SHARE_QUICK : FIRST_RUN_SHARE;
    uint64_t first_ns = run->passes_left < PASSES ? run_left_to_record_ns(run)
                                                  : (uint64_t)(share * (double)run_left_ns(run));
    return MAX(first_ns, (uint64_t)FIRST_RUN_NS_MIN);
}

static int baseline_run(struct run *run, uint32_t warmup, struct ingest *ingest, struct why *why)
{
    const struct run_plan *plan = &run->plan;
    struct baseline_opts opts = {
        .argv = plan->argv,
        .path = plan->path,
        .runs = plan->runs,
        .warmup = warmup,
        .timeout_ns = plan->timeout_ns,
        .first_ns_max = first_ns_max(run),
        .budget = baseline_budget,
        .input_path = plan->input,
        .output_path = run->golden.output_path,
        .listener = &ingest->listener,
        .judge = plan->golden.kind == GOLDEN_NONE ? NULL : golden_judge,
        .context = run,
        .keep_going = run->opts->force,
    };
    struct taken before, after;
    struct progress progress;
    uint64_t own_ns = run_own_cpu_ns(run);
    taken_read(&run->host, &before);
    progress_begin(&progress, run->call->notes, "baseline", plan->runs);
    int r = baseline_measure(&opts, &progress, &run->baseline, why);
    progress_end(&progress);
    taken_read(&run->host, &after);
    run->taken = taken_since(&before, &after);
    /* Of what the CPUs did, neither the program's nor ours. */
    uint64_t ours_ns = run->baseline.target_cpu_ns + run_own_cpu_ns(run) - own_ns;
    run->others_ns = isnan(run->taken.busy_ns) ? NAN
                                               : fmax(0, run->taken.busy_ns - (double)ours_ns);
    return r;
}

/* The check that was found beside a benchmark, once: a broken program is not worth measuring. */
static int check_once(struct run *run, struct why *why)
{
    struct command_line line;
    struct spawn_result result;
    char how[128];
    if (!run->plan.check)
        return 0;
    int r = command_line_parse(run->arena, run->plan.check, NULL, &line, why);
    if (r < 0)
        return r;
    run_step(run, 3, arena_printf(run->arena, "functional check: %s", run->plan.check));
    struct spawn_opts opts = {
        .argv = line.argv,
        .path = line.path,
        .output = SPAWN_CAPTURE,
        .error = SPAWN_CAPTURE,
        .timeout_ns = run->plan.budget_ns / CHECK_BUDGET_PART,
        .end_group = true,
    };
    r = spawn_run(&opts, &result, why);
    if (r < 0 || result.interrupted)
        return r;
    if (result.timed_out) {
        run_note(run, &run->missing,
                 "functional check: not finished within a quarter of the "
                 "budget: '%s'",
                 run->plan.check);
        return 0;
    }
    status_describe(result.status, false, how, sizeof(how));
    if (status_is_good(&result)) {
        run_note(run, &run->notes, "functional check: '%s' went well", run->plan.check);
        return 0;
    }
    if (run->opts->force) {
        run_note(run, &run->marks, "the functional check '%s' %s", run->plan.check, how);
        return 0;
    }
    struct why failure = {0};
    why_set(&failure, WHY_FAILED, EIO, "mend it; or measure all the same with --force",
            "not measured: the functional check '%s' %s", run->plan.check, how);
    cmd_print_error(run->call->err, &failure);
    return EXIT_REGRESSION;
}

static int plain_runs(struct run *run, uint32_t warmup, struct why *why)
{
    struct ingest *ingest = ARENA_NEW(run->arena, struct ingest);
    if (!ingest)
        return why_nomem(why);
    ingest_init(ingest);
    int r = baseline_run(run, warmup, ingest, why);
    if (r == 0)
        r = run_ingest(run, ingest, why);
    ingest_deinit(ingest);
    if (r == 0)
        baseline_say(run);
    return r;
}

int run_measure(struct run *run, struct why *why)
{
    int checked = check_once(run, why);
    if (checked != 0)
        return checked;
    const struct run_plan *plan = &run->plan;
    run_step(
        run, 3,
        arena_printf(run->arena, "baseline: %u runs after %u warm-up", plan->runs, plan->warmup));
    run->passes_left = PASSES;
    int r = run_golden_open(&run->golden, run->arena, &plan->golden, why);
    return r == 0 ? plain_runs(run, plan->warmup, why) : r;
}

int run_measure_again(struct run *run, struct why *why)
{
    const struct baseline cut = run->baseline; /* it has no runs */
    run_step(run, 3, "baseline again: the recorded run ended by itself");
    run->baseline = (struct baseline){0};
    int r = plain_runs(run, 0, why); /* the recorded one was the warm-up */
    struct baseline *b = &run->baseline;
    b->cut_ns = cut.cut_ns;
    b->elapsed_ns += cut.elapsed_ns;
    b->launcher_cpu_ns += cut.launcher_cpu_ns;
    b->target_cpu_ns += cut.target_cpu_ns;
    return r;
}

void run_cut_say(struct run *run)
{
    const struct baseline *b = &run->baseline;
    const struct run_costs *costs = &run->input.costs;
    char after[48], budget[48];
    if (b->cut_ns == 0)
        return;
    units_format((double)b->cut_ns, UNIT_NS, after, sizeof(after));
    units_format((double)run->plan.budget_ns, UNIT_NS, budget, sizeof(budget));
    run_note(run, &run->missing,
             "baseline: the first run was ended after %s, as long as one may take of a budget of "
             "%s%s",
             after, budget,
             b->runs.len > 0
                 ? "; the recorded one and those after it were shorter: figures are of these, and "
                   "what only a first run does is in none"
             : costs->recorded_whole  ? "; the recorded one ended by itself, but no plain one was "
                                        "finished in what was left"
             : costs->recorded_ns > 0 ? "; only the beginning of another is recorded"
                                      : "");
}

static double median_of(const struct run *run, enum metric metric)
{
    const struct summary *s = &run->baseline.summaries[metric];
    return s->count > 0 ? s->median : NAN;
}

struct run_costs run_costs_of(const struct run *run)
{
    const struct baseline *b = &run->baseline;
    const struct summary *wall = &b->summaries[METRIC_WALL];
    double runs = (double)(b->runs.len + b->warmups);
    return (struct run_costs){
        .runs = b->runs.len,
        .wall_ns = median_of(run, METRIC_WALL),
        .recorded_ns = NAN,
        .wall_min_ns = wall->count > 0 ? wall->min : NAN,
        .wall_max_ns = wall->count > 0 ? wall->max : NAN,
        .wall_low_ns = wall->has_interval ? wall->median_low : NAN,
        .wall_high_ns = wall->has_interval ? wall->median_high : NAN,
        .cpu_ns = median_of(run, METRIC_CPU_TIME),
        .user_ns = median_of(run, METRIC_USER),
        .system_ns = median_of(run, METRIC_SYSTEM),
        .faults_minor = median_of(run, METRIC_FAULTS_MINOR),
        .faults_major = median_of(run, METRIC_FAULTS_MAJOR),
        .switches_voluntary = median_of(run, METRIC_SWITCHES_VOLUNTARY),
        .switches_involuntary = median_of(run, METRIC_SWITCHES_INVOLUNTARY),
        .read_bytes = median_of(run, METRIC_READ),
        .written_bytes = median_of(run, METRIC_WRITTEN),
        .storage_read_bytes = median_of(run, METRIC_STORAGE_READ),
        .storage_written_bytes = median_of(run, METRIC_STORAGE_WRITTEN),
        .peak_rss_bytes = median_of(run, METRIC_PEAK_RSS),
        .throttled_ns = runs > 0 ? run->taken.throttled_ns / runs : NAN,
        .steal_ns = runs > 0 ? run->taken.steal_ns / runs : NAN,
        .others_ns = runs > 0 ? run->others_ns / runs : NAN,
        .outputs_differ = b->outputs > 1,
        .cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
    };
}
