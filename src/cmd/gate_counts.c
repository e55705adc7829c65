/* gate --counts: instructions counted by simulation in the place of time. */
#include "cmd/gate.h"

#include "base/clock.h"
#include "target/callgrind.h"
#include "target/interrupt.h"

#include <errno.h>
#include <math.h>
#include <sys/wait.h>

/* The same program executes nearly the same instructions every time (addresses, hash seeds and
 * the clock make small differences): the range of a few runs is the interval. */
enum { COUNT_RUNS_MIN = 2, COUNT_RUNS = 5 };

static int side_count(struct gate *gate, struct gate_pair *pair, int side, const char *valgrind,
                      struct why *why)
{
    const struct command_line *line = &pair->ab_opts.sides[side];
    struct callgrind_opts opts = {.argv = line->argv,
                                  .path = line->path,
                                  .input = pair->ab_opts.input,
                                  .timeout_ns = pair->ab_opts.timeout_ns};
    struct callgrind_result result;
    int r = callgrind_count(valgrind, &opts, &result, why);
    if (r < 0)
        return r;
    if (result.interrupted || interrupt_signal()) {
        gate->signal = result.interrupted ? result.interrupted : interrupt_signal();
        return 0;
    }
    bool failed = result.timed_out || !WIFEXITED(result.status) || WEXITSTATUS(result.status) != 0;
    if (failed && (!pair->ab_opts.ignore_failure || result.timed_out)) {
        struct ab *ab = &pair->ab;
        ab->end = AB_FAILED;
        ab->failure = (struct spawn_result){.status = result.status, .timed_out = result.timed_out};
        snprintf(ab->failure_text, sizeof(ab->failure_text), "simulated run %zu of %c",
                 ab->results[side].runs.len + 1, "AB"[side]);
        ab->failure_what = ab->failure_text;
        ab->failure_command = line->text;
        gate->failed = pair;
        return 0;
    }
    struct bench_run run = {.status = result.status, .failed = failed, .running_share = NAN};
    for (int i = 0; i < BENCH_METRICS; i++)
        run.value[i] = i == BENCH_INSTRUCTIONS ? (double)result.instructions : NAN;
    return VEC_PUSH(&pair->ab.results[side].runs, run) < 0 ? why_nomem(why) : 0;
}

static void range_of(const struct bench_result *result, double *ret_low, double *ret_high)
{
    *ret_low = INFINITY;
    *ret_high = 0;
    for (size_t i = 0; i < result->runs.len; i++) {
        *ret_low = fmin(*ret_low, result->runs.data[i].value[BENCH_INSTRUCTIONS]);
        *ret_high = fmax(*ret_high, result->runs.data[i].value[BENCH_INSTRUCTIONS]);
    }
}

/* The least and the greatest ratio that any two of the runs have. */
static void pair_judge(struct gate *gate, struct gate_pair *pair)
{
    double low[AB_SIDES], high[AB_SIDES];
    for (int side = 0; side < AB_SIDES; side++)
        range_of(&pair->ab.results[side], &low[side], &high[side]);
    size_t count = pair->ab.results[1].runs.len;
    pair->line = (struct ab_line){.a = (low[0] + high[0]) / 2, .b = (low[1] + high[1]) / 2};
    pair->p_adjusted = pair->line.detectable = NAN;
    pair->confidence = NAN;
    if (count == 0 || low[0] == 0) {
        pair->line.na = "no simulated run was finished";
        return;
    }
    pair->line.ratio = (struct ratio){.count = count,
                                      .ratio = pair->line.b / pair->line.a,
                                      .has_interval = true,
                                      .low = low[1] / high[0],
                                      .high = high[1] / low[0],
                                      .p = NAN};
    pair->answer = pair->line.ratio.low > gate->threshold    ? LOOK_FAIL
                   : pair->line.ratio.high < gate->threshold ? LOOK_PASS
                                                             : LOOK_OPEN;
    pair->looked = 1;
}

int gate_count(struct gate *gate, struct why *why)
{
    char valgrind[4096];
    int r = callgrind_find(valgrind, why);
    if (r < 0)
        return r;
    uint64_t start_ns = clock_mono_ns();
    struct progress progress;
    progress_begin(&progress, gate->call->notes, "simulated runs", 0);
    for (size_t i = 0; r == 0 && i < gate->pair_count; i++) {
        struct gate_pair *pair = &gate->pairs[i];
        for (size_t run = 0; r == 0 && run < COUNT_RUNS; run++) {
            if (run >= COUNT_RUNS_MIN &&
                clock_mono_ns() - start_ns > gate->opts->budget_ns * (i + 1) / gate->pair_count)
                break;
            for (int side = 0; r == 0 && side < AB_SIDES && !gate->failed && !gate->signal; side++)
                r = side_count(gate, pair, side, valgrind, why);
            if (gate->failed || gate->signal)
                break;
            progress_update(&progress, run + 1, pair->texts[1]);
        }
        if (r == 0 && !gate->failed)
            pair_judge(gate, pair);
        if (gate->failed || gate->signal)
            break;
    }
    progress_end(&progress);
    return r;
}
