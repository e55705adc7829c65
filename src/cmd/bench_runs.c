/* One command, again and again: setup, warm-up, runs until they say enough, cleanup. */
#include "cmd/bench.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/temporary.h"
#include "cmd/baseline.h"
#include "target/interrupt.h"
#include "target/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MEMORY_RUNS_MAX = 51, /* an odd number, for a median */
    MEMORY_MS_MAX = 250,  /* and no longer than this, but for the first */
    WARMUP_RUNS_MAX = 30, /* beyond those */
    WARMUP_MS_MAX = 1000,
    HELPER_TIMEOUT_S = 600,
    NOTE_MS = 100,
    OUTPUT_HASH_BYTES = 65536,
};

struct loop {
    struct arena *arena;
    const struct bench_plan *plan;
    const struct bench_job *job;
    struct bench_outcome *out;
    struct measure_opts measure;
    char check_file[PATH_MAX]; /* the output, for a check command */
    struct progress *progress;
    uint64_t noted_ns;
    size_t next_check;
};

static void failed(struct loop *loop, const struct spawn_captured *said, const char *what)
{
    loop->out->end = BENCH_FAILED;
    why_set(&loop->out->failure, WHY_FAILED, EIO, NULL, "%s", what);
    if (said)
        loop->out->last_said = *said;
}

static bool interrupted(struct loop *loop, const struct spawn_result *result)
{
    int signal = result && result->interrupted ? result->interrupted : interrupt_signal();
    if (signal == 0)
        return false;
    loop->out->end = BENCH_INTERRUPTED;
    loop->out->signal = signal;
    return true;
}

static bool is_good(const struct spawn_result *result)
{
    return !result->timed_out && WIFEXITED(result->status) && WEXITSTATUS(result->status) == 0;
}

/* Setup, prepare, cleanup and check commands: through a shell, since they are glue, and
 * without being measured. 0 went well, 1 ended the job (`out` says how). */
static int helper_run(struct loop *loop, const char *kind, const char *text, const char *input,
                      struct why *why)
{
    struct command_line line;
    int r = command_line_parse(loop->arena, text, loop->plan->shell ? loop->plan->shell : "sh",
                               &line, why);
    if (r < 0)
        return r;
    struct spawn_opts opts = {
        .argv = line.argv,
        .path = line.path,
        .input = input ? SPAWN_FILE : SPAWN_NULL,
        .input_path = input,
        .output = SPAWN_CAPTURE,
        .error = SPAWN_CAPTURE,
        .timeout_ns = HELPER_TIMEOUT_S * NS_PER_SEC,
    };
    struct spawn_result result;
    r = spawn_run(&opts, &result, why);
    if (r < 0)
        return r;
    if (result.interrupted && interrupted(loop, &result))
        return 1;
    if (is_good(&result))
        return 0;
    char how[128], what[512];
    status_describe(result.status, result.timed_out, how, sizeof(how));
    snprintf(what, sizeof(what), "the %s command %s: %s", kind, how, line.text);
    failed(loop, &result.error, what);
    why_set_remedy(&loop->out->failure, "mend it; or append '|| true' if that does not matter");
    return 1;
}

static int file_hash(const char *path, struct bench_run *run)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct sha256 hash;
    sha256_init(&hash);
    static char bytes[OUTPUT_HASH_BYTES];
    ssize_t n;
    while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
        sha256_add(&hash, bytes, (size_t)n);
        run->output_bytes += (uint64_t)n;
    }
    sha256_finish(&hash, run->output_sha256);
    run->output_known = n == 0;
    return n < 0 ? -errno : 0;
}

/* Says how in `how` when the output is not the golden one. 1 when it is not, 0 when it is. */
static int golden_check(struct loop *loop, struct bench_run *run, char *how, size_t size,
                        struct why *why)
{
    const struct golden *golden = &loop->plan->golden;
    if (golden->kind == GOLDEN_NONE)
        return 0;
    if (golden->kind == GOLDEN_HASH) {
        if (strcmp(run->output_sha256, golden->sha256) == 0)
            return 0;
        snprintf(how, size,
                 "printed something else than the golden output (sha256 %.16s..., wanted "
                 "%.16s...)",
                 run->output_sha256, golden->sha256);
        return 1;
    }
    int r = file_hash(loop->check_file, run);
    if (r < 0)
        return why_errno(why, -r, NULL, "cannot read the output back from '%s'", loop->check_file);
    r = helper_run(loop, "check", golden->given, loop->check_file, why);
    if (r == 1 && loop->out->end == BENCH_FAILED) {
        snprintf(how, size, "printed what the check command refuses: %s",
                 command_text_shown(loop->arena, golden->given));
        loop->out->end = BENCH_NOT_REACHED; /* whether that ends it is not ours to say */
    }
    return r;
}

enum run_kind { RUN_MEMORY, RUN_WARMUP, RUN_MEASURED };

/* A run that went wrong. 1 ends the job, 0 goes on (--ignore-failure). */
static int run_failed(struct loop *loop, enum run_kind kind, size_t number,
                      const struct spawn_result *result, const char *golden_how)
{
    char how[256], what[700];
    if (golden_how)
        snprintf(how, sizeof(how), "%s", golden_how);
    else
        status_describe(result->status, result->timed_out, how, sizeof(how));
    /* A program that never ends takes the whole timeout every time. */
    if (loop->plan->ignore_failure && !result->timed_out)
        return 0;
    snprintf(what, sizeof(what), "%s %zu %s: %.300s", kind == RUN_MEASURED ? "run" : "warm-up run",
             number, how, loop->job->line.text);
    failed(loop, &result->error, what);
    if (result->timed_out)
        why_set_remedy(&loop->out->failure, "give it longer with --timeout");
    return 1;
}

/* What is known of a finished run is kept. */
static int run_keep(struct loop *loop, enum run_kind kind, const struct bench_run *run,
                    const struct spawn_result *result, struct why *why)
{
    struct bench_outcome *out = loop->out;
    out->left_behind += result->left_behind;
    if (kind == RUN_MEMORY && run->failed)
        return 0; /* it is made again, not watched */
    if (kind != RUN_MEASURED)
        out->result.warmup++;
    if (kind == RUN_MEMORY && result->peak_rss_exact_bytes > 0 &&
        VEC_PUSH(&out->exact_kib, (double)result->peak_rss_exact_bytes / 1024) < 0)
        return why_nomem(why);
    if (kind != RUN_MEASURED)
        return 0;
    out->failed += run->failed;
    return VEC_PUSH(&out->result.runs, *run) < 0 ? why_nomem(why) : 0;
}

/* 0 went well, 1 the job ends here, -errno is our own failure. */
static int run_once(struct loop *loop, enum run_kind kind, size_t number, struct bench_run *ret,
                    struct why *why)
{
    int r = loop->job->prepare ? helper_run(loop, "prepare", loop->job->prepare, NULL, why) : 0;
    if (r != 0)
        return r;
    struct spawn_result result;
    loop->measure.exact_memory = kind == RUN_MEMORY;
    r = measure_run_full(&loop->measure, ret, &result, loop->out->result.missing, why);
    if (r < 0)
        return r;
    if (interrupted(loop, &result))
        return 1;
    char golden_how[256] = "";
    if (!ret->failed) {
        r = golden_check(loop, ret, golden_how, sizeof(golden_how), why);
        if (r < 0 || (r == 1 && loop->out->end != BENCH_NOT_REACHED))
            return r;
        ret->failed = r == 1;
    }
    /* It may fail only because it is watched; it is run again without before that is said. */
    bool doubtful = kind == RUN_MEMORY && !ret->timed_out;
    if (ret->failed && !doubtful &&
        run_failed(loop, kind, number, &result, golden_how[0] ? golden_how : NULL) == 1)
        return 1;
    return run_keep(loop, kind, ret, &result, why);
}

/* The counters are tried once: a machine has them or has not. */
static void counters_settle(struct loop *loop, const struct bench_run *run)
{
    loop->measure.counters = loop->measure.counters && !isnan(run->value[BENCH_CYCLES]);
}

/* Runs that read the exact peak of memory; they warm up, too. */
static int memory_runs(struct loop *loop, size_t max, struct why *why)
{
    uint64_t start_ns = clock_mono_ns();
    size_t limit = MIN(max, (size_t)MEMORY_RUNS_MAX);
    for (size_t i = 0; i < limit; i++) {
        struct bench_run run;
        int r = run_once(loop, RUN_MEMORY, i + 1, &run, why);
        if (r != 0)
            return r;
        counters_settle(loop, &run);
        progress_update(loop->progress, 0, "warming up");
        if (loop->out->exact_kib.len == 0 || clock_mono_ns() - start_ns > MEMORY_MS_MAX * NS_PER_MS)
            return 0;
    }
    return 0;
}

static int warmup(struct loop *loop, struct why *why)
{
    const struct bench_plan *plan = loop->plan;
    uint64_t start_ns = clock_mono_ns();
    if (plan->warmup_given && plan->warmup == 0)
        return 0;
    int r = memory_runs(loop, plan->warmup_given ? plan->warmup : SIZE_MAX, why);
    double times[WARMUP_RUNS_MAX];
    size_t count = 0;
    while (r == 0) {
        bool more = plan->warmup_given ? loop->out->result.warmup < plan->warmup
                                       : !loop->out->settled && count < WARMUP_RUNS_MAX &&
                                             clock_mono_ns() - start_ns < WARMUP_MS_MAX * NS_PER_MS;
        if (!more)
            break;
        struct bench_run run;
        r = run_once(loop, RUN_WARMUP, loop->out->result.warmup + 1, &run, why);
        if (r != 0)
            break;
        progress_update(loop->progress, 0, "warming up");
        if (plan->warmup_given)
            continue;
        times[count++] = run.value[BENCH_WALL];
        loop->out->settled = series_settled(times, count, 0.02);
    }
    return r;
}

/* The metric's figures so far; malloc'ed. NULL when there are none. */
static double *figures(const struct bench_outcome *out, int metric)
{
    size_t count = out->result.runs.len;
    double *values = count > 0 ? malloc(count * sizeof(*values)) : NULL;
    for (size_t i = 0; values && i < count; i++)
        values[i] = out->result.runs.data[i].value[metric];
    return values;
}

/* Half of the interval's width, as a share of the median; NaN when there is none. */
static double half_width(const struct summary *s)
{
    if (!s->has_interval || s->median == 0)
        return NAN;
    return (s->median_high - s->median_low) / 2 / fabs(s->median);
}

static bool summary_now(const struct loop *loop, struct summary *ret)
{
    double *values = figures(loop->out, (int)loop->plan->metric);
    int r = values ? summary_make(values, loop->out->result.runs.len, ret) : -EINVAL;
    free(values);
    return r == 0;
}

static void note(struct loop *loop)
{
    uint64_t now_ns = clock_mono_ns();
    if (!loop->progress->shown || now_ns - loop->noted_ns < NOTE_MS * NS_PER_MS)
        return;
    loop->noted_ns = now_ns;
    struct summary s;
    char text[128], median[48];
    if (!summary_now(loop, &s))
        return;
    const struct bench_metric_info *metric = &bench_metrics[loop->plan->metric];
    units_format(s.median, metric->unit, median, sizeof(median));
    if (s.has_interval)
        snprintf(text, sizeof(text), "median %s +-%.1f%%", median, half_width(&s) * 100);
    else
        snprintf(text, sizeof(text), "median %s", median);
    progress_update(loop->progress, s.count, text);
}

/* Sorting all runs after each would cost more than a short run: looked at after every tenth
 * part more. */
static bool is_certain(struct loop *loop)
{
    size_t count = loop->out->result.runs.len;
    if (count < loop->next_check)
        return false;
    loop->next_check = count + MAX(count / 10, (size_t)1);
    struct summary s;
    return summary_now(loop, &s) && half_width(&s) <= BENCH_PRECISION;
}

/* Whether to stop, and why. */
static bool is_enough(struct loop *loop, uint64_t start_ns, uint64_t last_ns)
{
    const struct bench_plan *plan = loop->plan;
    size_t count = loop->out->result.runs.len;
    uint64_t spent_ns = clock_mono_ns() - start_ns;
    if (plan->runs > 0 || count >= plan->runs_max) {
        loop->out->end = BENCH_ENOUGH;
        return count >= (plan->runs > 0 ? plan->runs : plan->runs_max);
    }
    loop->out->end = BENCH_BUDGET;
    if (count > 0 && spent_ns + last_ns > plan->budget_ns)
        return true;
    bool seen = count >= plan->runs_min ||
                (count >= BENCH_INTERVAL_RUNS && spent_ns >= BENCH_TIME_MIN_S * NS_PER_SEC);
    loop->out->end = BENCH_CERTAIN;
    return seen && is_certain(loop);
}

static int measured_runs(struct loop *loop, struct why *why)
{
    uint64_t start_ns = clock_mono_ns(), last_ns = 0;
    while (!is_enough(loop, start_ns, last_ns)) {
        uint64_t begun_ns = clock_mono_ns();
        struct bench_run run;
        loop->out->end = BENCH_NOT_REACHED;
        int r = run_once(loop, RUN_MEASURED, loop->out->result.runs.len + 1, &run, why);
        loop->out->elapsed_ns = clock_mono_ns() - start_ns;
        if (r != 0)
            return r;
        last_ns = clock_mono_ns() - begun_ns;
        counters_settle(loop, &run);
        note(loop);
    }
    return 0;
}

/* Our own failure in the midst of it: what was measured before stands. */
static int salvage(struct loop *loop, int r, struct why *why)
{
    if (r >= 0 || loop->out->result.runs.len == 0)
        return MIN(r, 0);
    loop->out->end = BENCH_FAILED;
    loop->out->failure = *why;
    *why = (struct why){0};
    return 0;
}

static int check_file_make(struct loop *loop, struct why *why)
{
    if (loop->plan->golden.kind != GOLDEN_CHECK)
        return 0;
    int r = temporary_file(loop->check_file);
    if (r < 0)
        return why_errno(why, -r, "set TMPDIR to a folder you may write to",
                         "cannot create a file for the output in '%s'", loop->check_file);
    loop->measure.output = loop->check_file;
    return 0;
}

/* Also after a failure or Ctrl-C: it was asked for to leave nothing behind. Then the first
 * failure is the one to tell. */
static int cleanup(struct loop *loop, bool lost, struct why *why)
{
    struct why ignored = {0};
    struct bench_outcome kept = *loop->out;
    bool told = lost || kept.end == BENCH_FAILED || kept.end == BENCH_INTERRUPTED;
    int r = helper_run(loop, "cleanup", loop->job->cleanup, NULL, told ? &ignored : why);
    if (told)
        *loop->out = kept;
    return told ? 0 : r;
}

static int stages(struct loop *loop, struct why *why)
{
    int r = loop->job->setup ? helper_run(loop, "setup", loop->job->setup, NULL, why) : 0;
    if (r == 0)
        r = measure_nest_open(&loop->measure, &loop->measure.nest, why);
    if (r == 0)
        r = warmup(loop, why);
    if (r == 0)
        r = measured_runs(loop, why);
    spawn_nest_close(loop->measure.nest);
    r = salvage(loop, r, why);
    int cleaned = loop->job->cleanup ? cleanup(loop, r < 0, why) : 0;
    return MIN(r < 0 ? r : cleaned, 0);
}

int bench_job_run(struct arena *arena, const struct bench_plan *plan, const struct bench_job *job,
                  struct progress *progress, struct bench_outcome *ret, struct why *why)
{
    struct bench_outcome out = {.job = job};
    out.result.command = job->line.text;
    out.result.name = job->name;
    struct loop loop = {
        .arena = arena,
        .plan = plan,
        .job = job,
        .out = &out,
        .progress = progress,
        .next_check = 1,
        .measure = {.argv = job->line.argv,
                    .path = job->line.path,
                    .input = plan->input,
                    .output = plan->output,
                    .timeout_ns = plan->timeout_ns,
                    .counters = true,
                    .pss_every_ns = plan->pss_every_ns},
    };
    int r = check_file_make(&loop, why);
    if (r == 0)
        r = stages(&loop, why);
    if (loop.check_file[0])
        temporary_remove(loop.check_file);
    if (r < 0) {
        bench_outcome_deinit(&out);
        return r;
    }
    *ret = out;
    return 0;
}

void bench_outcome_deinit(struct bench_outcome *outcome)
{
    bench_result_deinit(&outcome->result);
    VEC_FREE(&outcome->exact_kib);
}
