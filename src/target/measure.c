/* Starts, watches and ends one run, and turns what the kernel said into figures. */
#include "target/measure.h"

#include "base/clock.h"
#include "target/counters.h"
#include "target/proc.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>

enum { WAIT_SLICE_MS = 1000 };

/* What one run needs while it is going on. */
struct session {
    struct spawn *spawn;
    struct counters counters;
    bool counting;
    int counters_error;
    uint64_t pss_bytes;
    int pss_error;
};

static enum spawn_stream output_kind(const char *output)
{
    if (!output || strcmp(output, "null") == 0)
        return SPAWN_NULL;
    if (strcmp(output, "pipe") == 0)
        return SPAWN_CAPTURE;
    return strcmp(output, "inherit") == 0 ? SPAWN_INHERIT : SPAWN_FILE;
}

static struct spawn_opts spawn_opts_make(const struct measure_opts *opts)
{
    enum spawn_stream output = output_kind(opts->output);
    return (struct spawn_opts){
        .argv = opts->argv,
        .path = opts->path,
        .input = opts->input ? SPAWN_FILE : SPAWN_NULL,
        .input_path = opts->input,
        .output = output,
        .output_path = opts->output,
        /* What a failing command said last is worth a pipe, unless its user asked for silence
         * or wants to see it. */
        .error = output == SPAWN_NULL      ? SPAWN_NULL
                 : output == SPAWN_INHERIT ? SPAWN_INHERIT
                                           : SPAWN_CAPTURE,
        .environment_bytes = opts->environment_bytes,
        .timeout_ns = opts->timeout_ns,
        .hold = opts->counters,
        .trace = opts->exact_memory,
        .end_group = true,
        .nest = opts->nest,
        /* Its pid is needed for PSS, and at once for a short timeout. */
        .late = opts->pss_every_ns == 0 &&
                (opts->timeout_ns == 0 || opts->timeout_ns >= NS_PER_SEC),
    };
}

static void pss_take(struct session *session)
{
    uint64_t bytes;
    int r = proc_pss_read(spawn_pid(session->spawn), &bytes);
    if (r < 0)
        session->pss_error = -r;
    else
        session->pss_bytes = MAX(session->pss_bytes, bytes);
}

static int watch(const struct measure_opts *opts, struct session *session, struct why *why)
{
    uint64_t slice_ns = opts->pss_every_ns ? opts->pss_every_ns : WAIT_SLICE_MS * NS_PER_MS;
    for (;;) {
        int r = spawn_wait(session->spawn, clock_mono_ns() + slice_ns, why);
        if (r != 0)
            return r < 0 ? r : 0;
        if (opts->pss_every_ns)
            pss_take(session);
    }
}

static int session_run(const struct measure_opts *opts, struct session *session,
                       struct spawn_result *ret, struct why *why)
{
    if (opts->counters) {
        int r = counters_open(&session->counters, spawn_pid(session->spawn));
        session->counting = r == 0;
        session->counters_error = r < 0 ? -r : session->counters.error;
    }
    int r = spawn_release(session->spawn, why);
    if (r == 0)
        r = watch(opts, session, why);
    if (r == 0)
        r = spawn_finish(session->spawn, ret, why);
    return r;
}

static void figures_fill(const struct spawn_result *result, struct bench_run *run)
{
    double *value = run->value;
    bool io = result->io_error == 0;
    value[BENCH_WALL] = (double)result->wall_ns / NS_PER_MS;
    value[BENCH_USER] = (double)result->user_ns / NS_PER_MS;
    value[BENCH_SYSTEM] = (double)result->system_ns / NS_PER_MS;
    value[BENCH_CPU] = (double)(result->user_ns + result->system_ns) / NS_PER_MS;
    value[BENCH_PEAK_RSS] = result->peak_rss_known ? (double)result->peak_rss_bytes / 1024 : NAN;
    if (result->peak_rss_exact_bytes > 0)
        value[BENCH_PEAK_RSS] = (double)result->peak_rss_exact_bytes / 1024;
    value[BENCH_FAULTS_MINOR] = (double)result->faults_minor;
    value[BENCH_FAULTS_MAJOR] = (double)result->faults_major;
    value[BENCH_SWITCHES_VOLUNTARY] = (double)result->switches_voluntary;
    value[BENCH_SWITCHES_INVOLUNTARY] = (double)result->switches_involuntary;
    value[BENCH_READ] = io ? (double)result->read_bytes : NAN;
    value[BENCH_WRITTEN] = io ? (double)result->write_bytes : NAN;
    value[BENCH_STORAGE_READ] = io ? (double)result->storage_read_bytes : NAN;
    value[BENCH_STORAGE_WRITTEN] = io ? (double)result->storage_write_bytes : NAN;
}

static void output_fill(const struct spawn_result *result, struct bench_run *run)
{
    run->output_known = result->output.captured;
    run->output_bytes = result->output.bytes;
    if (run->output_known)
        memcpy(run->output_sha256, result->output.sha256, sizeof(run->output_sha256));
}

static const char *pss_reason(const struct measure_opts *opts, const struct session *session)
{
    if (opts->pss_every_ns == 0)
        return "n/a: PSS was not sampled";
    if (session->pss_error == EACCES || session->pss_error == EPERM)
        return "n/a: not permitted to read /proc/PID/smaps_rollup";
    return session->pss_error == ENOENT || session->pss_error == ESRCH || !session->pss_error
               ? "n/a: it ended before the first PSS sample"
               : "n/a: /proc/PID/smaps_rollup could not be read";
}

static void missing_note(const struct measure_opts *opts, const struct session *session,
                         const struct spawn_result *result, const struct bench_run *run,
                         const char *missing[BENCH_METRICS])
{
    for (int i = 0; i < BENCH_METRICS; i++) {
        if (!isnan(run->value[i]) || missing[i])
            continue;
        if (i == BENCH_PEAK_RSS)
            missing[i] = "n/a: hidden below the memory of the process that started it";
        else if (i == BENCH_PEAK_PSS)
            missing[i] = pss_reason(opts, session);
        else if (i >= BENCH_READ && i <= BENCH_STORAGE_WRITTEN)
            missing[i] = result->io_error == EACCES ? "n/a: not permitted to read /proc/PID/io"
                                                    : "n/a: /proc/PID/io could not be read";
        else if (!opts->counters)
            missing[i] = "n/a: counters were not asked for";
        else
            missing[i] = counters_reason(session->counters_error);
    }
}

int measure_run_full(const struct measure_opts *opts, struct bench_run *ret,
                     struct spawn_result *ret_result, const char *missing[BENCH_METRICS],
                     struct why *why)
{
    struct session session = {.spawn = NULL};
    struct spawn_opts spawn = spawn_opts_make(opts);
    struct bench_run run = {.running_share = NAN, .start_ns = clock_mono_ns()};
    for (int i = 0; i < BENCH_METRICS; i++)
        run.value[i] = NAN;
    int r = spawn_start(&spawn, &session.spawn, why);
    if (r < 0)
        return r;
    struct spawn_result result;
    r = session_run(opts, &session, &result, why);
    if (r == 0) {
        figures_fill(&result, &run);
        output_fill(&result, &run);
        if (session.pss_bytes > 0)
            run.value[BENCH_PEAK_PSS] = (double)session.pss_bytes / 1024;
        if (session.counting)
            counters_read(&session.counters, &run);
        run.status = result.status;
        run.timed_out = result.timed_out;
        run.failed = result.timed_out || !WIFEXITED(run.status) || WEXITSTATUS(run.status) != 0;
        missing_note(opts, &session, &result, &run, missing);
        *ret = run;
        *ret_result = result;
    }
    if (session.counting)
        counters_close(&session.counters);
    spawn_close(session.spawn);
    return r;
}

int measure_nest_open(const struct measure_opts *opts, struct spawn_nest **ret, struct why *why)
{
    struct spawn_opts spawn = spawn_opts_make(opts);
    return spawn_nest_open(&spawn, ret, why);
}

int measure_run(const struct measure_opts *opts, struct bench_run *ret,
                const char *missing[BENCH_METRICS], struct why *why)
{
    struct spawn_result result;
    return measure_run_full(opts, ret, &result, missing, why);
}
