/* Runs the target and keeps one row of figures a run; the statistics are stats/'s. */
#include "cmd/baseline.h"

#include "base/clock.h"
#include "base/fd.h"
#include "target/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const struct metric_info metrics[METRIC_COUNT] = {
    [METRIC_WALL] = {"wall", "wall time", UNIT_NS},
    [METRIC_CPU_TIME] = {"cpu_time", "CPU time", UNIT_NS},
    [METRIC_USER] = {"user", "  in user space", UNIT_NS},
    [METRIC_SYSTEM] = {"system", "  in the kernel", UNIT_NS},
    [METRIC_CPU] = {"cpu", "CPU use", UNIT_PERCENT},
    [METRIC_PEAK_RSS] = {"peak_rss", "peak memory (RSS)", UNIT_BYTES},
    [METRIC_FAULTS_MINOR] = {"faults_minor", "page faults, minor", UNIT_COUNT},
    [METRIC_FAULTS_MAJOR] = {"faults_major", "page faults, from disk", UNIT_COUNT},
    [METRIC_SWITCHES_VOLUNTARY] = {"switches_voluntary", "switches, to wait", UNIT_COUNT},
    [METRIC_SWITCHES_INVOLUNTARY] = {"switches_involuntary", "switches, forced", UNIT_COUNT},
    [METRIC_READ] = {"read", "read by calls", UNIT_BYTES},
    [METRIC_WRITTEN] = {"written", "written by calls", UNIT_BYTES},
    [METRIC_STORAGE_READ] = {"storage_read", "read from storage", UNIT_BYTES},
    [METRIC_STORAGE_WRITTEN] = {"storage_written", "written to storage", UNIT_BYTES},
};

void status_describe(int status, bool timed_out, char *text, size_t size)
{
    if (timed_out)
        snprintf(text, size, "was ended because it ran longer than --timeout");
    else if (WIFSIGNALED(status))
        snprintf(text, size, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
}

bool status_is_good(const struct spawn_result *result)
{
    return !result->timed_out && WIFEXITED(result->status) && WEXITSTATUS(result->status) == 0;
}

static void figures_fill(const struct spawn_result *result, double *figures)
{
    double cpu_ns = (double)(result->user_ns + result->system_ns);
    bool io = result->io_error == 0;
    figures[METRIC_WALL] = (double)result->wall_ns;
    figures[METRIC_CPU_TIME] = cpu_ns;
    figures[METRIC_USER] = (double)result->user_ns;
    figures[METRIC_SYSTEM] = (double)result->system_ns;
    figures[METRIC_CPU] = result->wall_ns ? cpu_ns / (double)result->wall_ns * 100 : NAN;
    figures[METRIC_PEAK_RSS] = result->peak_rss_known ? (double)result->peak_rss_bytes : NAN;
    figures[METRIC_FAULTS_MINOR] = (double)result->faults_minor;
    figures[METRIC_FAULTS_MAJOR] = (double)result->faults_major;
    figures[METRIC_SWITCHES_VOLUNTARY] = (double)result->switches_voluntary;
    figures[METRIC_SWITCHES_INVOLUNTARY] = (double)result->switches_involuntary;
    figures[METRIC_READ] = io ? (double)result->read_bytes : NAN;
    figures[METRIC_WRITTEN] = io ? (double)result->write_bytes : NAN;
    figures[METRIC_STORAGE_READ] = io ? (double)result->storage_read_bytes : NAN;
    figures[METRIC_STORAGE_WRITTEN] = io ? (double)result->storage_write_bytes : NAN;
}

/* Why a figure is missing is known at the run, not later. */
static void reasons_note(struct baseline *baseline, const struct spawn_result *result)
{
    if (!result->peak_rss_known && !baseline->na[METRIC_PEAK_RSS]) {
        char floor[48];
        units_format((double)result->peak_rss_floor_bytes, UNIT_BYTES, floor, sizeof(floor));
        snprintf(baseline->na_text[METRIC_PEAK_RSS], sizeof(baseline->na_text[0]),
                 "below %s, the memory of the process that started it", floor);
        baseline->na[METRIC_PEAK_RSS] = baseline->na_text[METRIC_PEAK_RSS];
    }
    for (int i = METRIC_READ; result->io_error && i <= METRIC_STORAGE_WRITTEN; i++) {
        snprintf(baseline->na_text[i], sizeof(baseline->na_text[0]),
                 "/proc/PID/io could not be read: %s", strerror(result->io_error));
        baseline->na[i] = baseline->na_text[i];
    }
}

static void output_note(struct baseline *baseline, const struct spawn_result *result)
{
    baseline->output_bytes = result->output.bytes;
    baseline->error_bytes = result->error.bytes;
    baseline->output_open = baseline->output_open || result->output.still_open;
    for (size_t i = 0; i < baseline->runs.len; i++)
        if (strcmp(baseline->runs.data[i].output_sha256, result->output.sha256) == 0)
            return;
    baseline->outputs++;
}

static int run_keep(struct baseline *baseline, const struct spawn_result *result, struct why *why)
{
    struct baseline_run run = {.status = result->status};
    figures_fill(result, run.figures);
    memcpy(run.output_sha256, result->output.sha256, sizeof(run.output_sha256));
    reasons_note(baseline, result);
    output_note(baseline, result);
    baseline->failed += !status_is_good(result);
    return VEC_PUSH(&baseline->runs, run) < 0 ? why_nomem(why) : 0;
}

static int failure_keep(struct baseline *baseline, const struct spawn_result *result,
                        uint32_t number, bool warmup)
{
    baseline->end = BASELINE_FAILED;
    baseline->failure = *result;
    baseline->failure_kind = warmup ? "warm-up run" : "run";
    baseline->failure_run = number;
    return 1;
}

static void spawn_prepare(const struct baseline_opts *opts, bool first, struct spawn_opts *ret)
{
    bool short_first = first && opts->first_ns_max > 0 && opts->first_ns_max < opts->timeout_ns;
    *ret = (struct spawn_opts){
        .argv = opts->argv,
        .path = opts->path,
        .input = opts->input_path ? SPAWN_FILE : SPAWN_NULL,
        .input_path = opts->input_path,
        .output = opts->output_path ? SPAWN_FILE : SPAWN_CAPTURE,
        .output_path = opts->output_path,
        .error = SPAWN_CAPTURE,
        .timeout_ns = short_first ? opts->first_ns_max : opts->timeout_ns,
        .end_group = true,
        .listener = opts->listener,
    };
}

/* A command whose output goes to a file is hashed from there. */
static int output_hash(const char *path, struct spawn_captured *ret, struct why *why)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct sha256 hash;
    sha256_init(&hash);
    char bytes[65536];
    ssize_t n = -1;
    while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0) {
        sha256_add(&hash, bytes, (size_t)n);
        ret->bytes += (uint64_t)n;
    }
    if (n < 0)
        return why_errno(why, errno, NULL, "cannot read the output back from '%s'", path);
    sha256_finish(&hash, ret->sha256);
    return 0;
}

static int interruption_keep(struct baseline *baseline, int signal)
{
    baseline->end = BASELINE_INTERRUPTED;
    baseline->signal = signal;
    return 1;
}

/* 1 when the baseline ends here, 0 to go on. */
static int run_judge(const struct baseline_opts *opts, struct baseline *baseline,
                     struct spawn_result *result, uint32_t number, bool warmup)
{
    if (result->interrupted || interrupt_signal())
        return interruption_keep(baseline,
                                 result->interrupted ? result->interrupted : interrupt_signal());
    bool first = baseline->warmups == 0 && baseline->runs.len == 0;
    if (result->timed_out && first && result->wall_ns < opts->timeout_ns) {
        baseline->end = BASELINE_CUT;
        baseline->cut_ns = result->wall_ns;
        return 1;
    }
    if (!status_is_good(result) && (!opts->keep_going || result->timed_out))
        return failure_keep(baseline, result, number, warmup);
    if (!opts->judge || opts->judge(opts->context, result, baseline->failure_how,
                                    sizeof(baseline->failure_how)) == 0)
        return 0;
    /* The command that judges got the signal, too: what it says of the answer is no judgement. */
    return interrupt_signal() ? interruption_keep(baseline, interrupt_signal())
                              : failure_keep(baseline, result, number, warmup);
}

/* 1 when the baseline ends here, 0 to go on. */
static int run_once(const struct baseline_opts *opts, struct baseline *baseline, uint32_t number,
                    bool warmup, struct spawn_result *result, struct why *why)
{
    struct spawn_opts spawn;
    spawn_prepare(opts, baseline->warmups == 0 && baseline->runs.len == 0, &spawn);
    int r = spawn_run(&spawn, result, why);
    if (r == 0 && opts->output_path)
        r = output_hash(opts->output_path, &result->output, why);
    if (r < 0)
        return r;
    baseline->launcher_cpu_ns += result->launcher_cpu_ns;
    baseline->target_cpu_ns += result->user_ns + result->system_ns;
    if (!result->timed_out) /* then it was ended with all that belongs to it */
        baseline->left_behind += result->left_behind;
    r = run_judge(opts, baseline, result, number, warmup);
    return r == 0 && !warmup ? run_keep(baseline, result, why) : r;
}

static void note_make(const struct baseline *baseline, char *text, size_t size)
{
    char last[48];
    if (baseline->runs.len == 0) {
        snprintf(text, size, "warming up");
        return;
    }
    double wall = baseline->runs.data[baseline->runs.len - 1].figures[METRIC_WALL];
    snprintf(text, size, "last run %s", units_format(wall, UNIT_NS, last, sizeof(last)));
}

/* What a run that begins now must be finished by, once the length of one is known. */
struct pace {
    uint64_t until_ns; /* 0: not known yet */
    double last_ns;
};

static void pace_set(const struct baseline_opts *opts, const struct spawn_result *result,
                     struct pace *pace)
{
    pace->last_ns = (double)result->wall_ns;
    if (pace->until_ns == 0)
        pace->until_ns = clock_mono_ns() + opts->budget(opts->context, pace->last_ns);
}

/* Another run of the length of the last would pass the budget. */
static bool pace_is_spent(const struct pace *pace)
{
    return pace->until_ns > 0 && (double)clock_mono_ns() + pace->last_ns > (double)pace->until_ns;
}

/* Nothing but the warm-up fitted: it is what there is. */
static int warmup_promote(struct baseline *baseline, const struct spawn_result *result,
                          struct why *why)
{
    if (baseline->runs.len > 0 || baseline->warmups == 0)
        return 0;
    baseline->warmups--;
    baseline->cold = true;
    return run_keep(baseline, result, why);
}

static int runs_make(const struct baseline_opts *opts, struct progress *progress,
                     struct baseline *baseline, struct why *why)
{
    uint32_t total = opts->warmup + MIN(opts->runs, (uint32_t)BASELINE_RUNS_MAX);
    struct pace pace = {0};
    struct spawn_result result = {0};
    for (uint32_t i = 0; i < total; i++) {
        bool warmup = i < opts->warmup;
        if (interrupt_signal()) { /* between two runs */
            interruption_keep(baseline, interrupt_signal());
            return 0;
        }
        if (warmup && pace_is_spent(&pace))
            continue;
        if (!warmup && pace_is_spent(&pace)) {
            baseline->end = BASELINE_BUDGET;
            return warmup_promote(baseline, &result, why);
        }
        int r = run_once(opts, baseline, warmup ? i + 1 : i - opts->warmup + 1, warmup, &result,
                         why);
        if (r != 0)
            return r < 0 ? r : 0;
        pace_set(opts, &result, &pace);
        baseline->warmups += warmup;
        char note[64];
        note_make(baseline, note, sizeof(note));
        progress_update(progress, baseline->runs.len, note);
    }
    return 0;
}

static int summarize(struct baseline *baseline, struct why *why)
{
    size_t count = baseline->runs.len;
    double *values = calloc(count ? count : 1, sizeof(*values));
    if (!values)
        return why_nomem(why);
    for (size_t metric = 0; metric < METRIC_COUNT && count > 0; metric++) {
        for (size_t i = 0; i < count; i++)
            values[i] = baseline->runs.data[i].figures[metric];
        if (summary_make(values, count, &baseline->summaries[metric]) < 0) {
            baseline->summaries[metric] = (struct summary){0};
            if (!baseline->na[metric])
                baseline->na[metric] = "not known for every run";
        }
    }
    free(values);
    return 0;
}

int baseline_measure(const struct baseline_opts *opts, struct progress *progress,
                     struct baseline *ret, struct why *why)
{
    struct baseline baseline = {.end = BASELINE_ENOUGH};
    uint64_t start_ns = clock_mono_ns();
    int r = runs_make(opts, progress, &baseline, why);
    baseline.elapsed_ns = clock_mono_ns() - start_ns;
    if (r == 0)
        r = summarize(&baseline, why);
    if (r < 0) {
        baseline_deinit(&baseline);
        return r;
    }
    *ret = baseline;
    /* The reasons point into the struct, which has just moved. */
    for (size_t i = 0; i < METRIC_COUNT; i++)
        if (ret->na_text[i][0])
            ret->na[i] = ret->na_text[i];
    return 0;
}

void baseline_deinit(struct baseline *baseline)
{
    VEC_FREE(&baseline->runs);
}
