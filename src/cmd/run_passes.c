/* One recorded run after another. */
#include "cmd/run_passes.h"

#include "cmd/record_run.h"
#include "symbolize/symbols.h"
#include "target/interrupt.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAP_SAMPLE_BYTES ((uint64_t)512 << 10)
#define HEAP_SNAPSHOTS    8
#define SNAPSHOT_NS_MIN   (10 * NS_PER_MS)
/* A pass may take this much longer than a plain run before it counts as stuck. */
#define TIMEOUT_FACTOR 3
#define TIMEOUT_NS     (2 * NS_PER_SEC)
/* What a pass takes beyond the program: to start, to name what was seen, to be read. */
#define EXTRA_NS    (700 * NS_PER_MS)
#define SLOWDOWN    1.1
#define PART_NS_MIN NS_PER_SEC
/* Slower than the slowest plain run: else it is the machine that varies, not the collectors. */
#define BEYOND_SLOWEST 1.02
#define PAID_SHARE_MIN 0.25
#define CPU_SHARE_MIN  0.1
enum { SAMPLES_FEW = 100, ROUNDS_DEEP = 3 };
/* A thread that lives for less than a period is not sampled: where samples show less than this
 * share of the CPU time, the period is made so many times shorter. */
#define SEEN_SHARE_MIN 0.5
enum { RATE_FACTOR = 10, SAMPLES_DUE_MIN = 20 };

static const char cut_na[] = "the budget ended it before the run was over; give more with "
                             "--budget";

/* How a pass can be made, the best first. */
struct mode {
    const char *what; /* for sentences: "recording waits" */
    unsigned axes;    /* bits */
    bool locks;       /* with their owners */
    bool stacks;      /* of calls */
    bool exact;       /* every allocation */
};

enum { MODES_MAX = 4 };
struct pass {
    const char *artifact;
    const char *name;
    unsigned axes; /* of all its modes */
    /* Up to this overhead what was recorded is of use, although not its times: above it a
     * cheaper mode takes its place. */
    double overhead_max;
    struct mode modes[MODES_MAX];
    size_t mode_count;
};

static const struct pass passes[] = {
    {"recording.whyslow",
     "CPU and waits",
     AXIS_BIT_CPU | AXIS_BIT_WAITS,
     0.5,
     {{"CPU samples with waits and locks", AXIS_BIT_CPU | AXIS_BIT_WAITS, true, false, false},
      {"CPU samples with waits", AXIS_BIT_CPU | AXIS_BIT_WAITS, false, false, false},
      {"CPU samples alone", AXIS_BIT_CPU, false, false, false},
      {"waits alone", AXIS_BIT_WAITS, true, false, false}},
     4},
    {"recording-io.whyslow",
     "I/O",
     AXIS_BIT_IO,
     1.0,
     {{"calls with their stacks", AXIS_BIT_IO, false, true, false},
      {"calls without stacks", AXIS_BIT_IO, false, false, false}},
     2},
    {"recording-heap.whyslow",
     "heap",
     AXIS_BIT_HEAP,
     INFINITY,
     {{"allocations, sampled", AXIS_BIT_HEAP, false, false, false},
      {"every allocation", AXIS_BIT_HEAP, false, false, true}},
     2},
};

/* One run under collectors. */
struct round {
    const struct mode *mode;
    uint32_t rate_hz; /* of CPU samples */
    const char *path;
    const char *na; /* why it counts for nothing; NULL: it counts */
    bool failed;    /* another mode may fare better */
    bool cut;       /* the budget ended it */
    double wall_ns;
    double cpu_ns;
    double overhead; /* NaN: not known */
    uint64_t samples;
    struct record_run_result result;
};

static double usual_wall_ns(const struct run *run)
{
    const struct summary *wall = &run->baseline.summaries[METRIC_WALL];
    return wall->count > 0 ? wall->median : NAN;
}

/* NaN: a run is longer than there is time for. */
static double round_estimate_ns(const struct run *run)
{
    return usual_wall_ns(run) * SLOWDOWN + (double)EXTRA_NS;
}

/* So many rounds: this one, and those that are to come. */
static bool rounds_fit(const struct run *run, size_t count)
{
    return (double)count * round_estimate_ns(run) <= (double)run_left_to_record_ns(run);
}

static struct record_run_opts round_opts(struct run *run, const struct mode *mode, uint32_t rate_hz,
                                         char *cache, size_t cache_size)
{
    double wall_ns = usual_wall_ns(run);
    uint64_t snapshot_ns = isnan(wall_ns) ? NS_PER_SEC : (uint64_t)(wall_ns / HEAP_SNAPSHOTS);
    bool io = mode->axes & AXIS_BIT_IO, waits = mode->axes & AXIS_BIT_WAITS;
    return (struct record_run_opts){
        .cpu = {.rate_hz = rate_hz,
                .stacks = PERF_STACKS_SLICE,
                .command = run->plan.command,
                .no_samples = !(mode->axes & AXIS_BIT_CPU),
                .no_code = run->plan.depth == RUN_QUICK,
                .cache_dir = symbols_cache_dir(cache, cache_size)},
        .offcpu = {.waits = waits, .locks = waits && mode->locks},
        .io = {.calls = io, .stacks = io && mode->stacks, .requests = io},
        .heap = {.on = mode->axes & AXIS_BIT_HEAP,
                 .sample_bytes = mode->exact ? 0 : HEAP_SAMPLE_BYTES,
                 .snapshot_ns = MAX(snapshot_ns, (uint64_t)SNAPSHOT_NS_MIN)},
        .argv = run->plan.argv,
        .program = run->plan.path,
        .progress = run->call->notes,
        .apart = true,
        .input_path = run->plan.input,
    };
}

/* Did it do what it does without us? NULL, or what was different. */
static const char *round_judge(struct run *run, const struct round *round, bool part)
{
    const struct baseline *b = &run->baseline;
    const struct spawn_result *result = &round->result.spawned;
    char how[128];
    if (result->interrupted || interrupt_signal())
        return "interrupted";
    if (part)
        return NULL;
    if (round->cut)
        return cut_na;
    if (result->timed_out)
        return arena_printf(run->arena,
                            "the program did not end within %d times its usual time while it was "
                            "recorded",
                            TIMEOUT_FACTOR);
    int usual = b->runs.len > 0 ? b->runs.data[b->runs.len - 1].status : 0;
    if (result->status != usual) {
        status_describe(result->status, false, how, sizeof(how));
        return arena_printf(run->arena, "the program %s while it was recorded, not without", how);
    }
    if (b->outputs == 1 && b->runs.len > 1 &&
        strcmp(result->output.sha256, b->runs.data[0].output_sha256) != 0)
        return "the program's answer changed while it was recorded";
    return NULL;
}

/* The beginning of a run is what there is: its figures are of that. */
static void part_take(struct run *run, struct round *round)
{
    uint64_t wall_ns = round->result.spawned.wall_ns;
    char seen[48];
    units_format((double)wall_ns, UNIT_NS, seen, sizeof(seen));
    run_note(run, &run->missing, "%s holds the first %s of a run: the budget ended it", round->path,
             seen);
    round->na = NULL;
    round->wall_ns = round->overhead = NAN;
    if (isnan(usual_wall_ns(run)))
        run->input.costs.recorded_ns = (double)wall_ns;
}

static void round_record(struct run *run, const struct mode *mode, uint32_t rate_hz,
                         const char *path, struct round *ret)
{
    char cache[PATH_MAX];
    double usual_ns = usual_wall_ns(run);
    bool part = isnan(usual_ns) || !rounds_fit(run, 1);
    struct record_run_opts opts = round_opts(run, mode, rate_hz, cache, sizeof(cache));
    uint64_t left_ns = MAX(run_left_to_record_ns(run), (uint64_t)(PART_NS_MIN + EXTRA_NS)) -
                       EXTRA_NS;
    uint64_t stuck_ns = part ? UINT64_MAX : TIMEOUT_FACTOR * (uint64_t)usual_ns + TIMEOUT_NS;
    opts.output = path;
    opts.timeout_ns = MIN(left_ns, stuck_ns);
    *ret = (struct round){
        .mode = mode, .rate_hz = rate_hz, .path = path, .wall_ns = NAN, .overhead = NAN};
    struct why why = {0};
    uint64_t start_ns = clock_mono_ns();
    int r = record_into_file(&opts, &ret->result, &why);
    if (r == 0 && (mode->axes & AXIS_BIT_HEAP) && ret->result.heap_na[0])
        r = record_heap_unseen(&ret->result, &why);
    if (r < 0) {
        ret->failed = true;
        bool too_little = r == -ENODATA && (mode->axes & AXIS_BIT_HEAP) && !mode->exact;
        ret->cut = too_little && left_ns < stuck_ns &&
                   clock_mono_ns() - start_ns >= opts.timeout_ns;
        ret->na = interrupt_signal() ? "interrupted"
                  : ret->cut         ? cut_na
                  : too_little       ? "too little is allocated to sample one in 512 KiB"
                                     : arena_dup(run->arena, why.what);
        return;
    }
    const struct spawn_result *spawned = &ret->result.spawned;
    ret->cut = spawned->timed_out && left_ns < stuck_ns;
    ret->na = round_judge(run, ret, part);
    ret->samples = ret->result.samples;
    if (part && ret->cut && !ret->na) {
        part_take(run, ret);
        return;
    }
    ret->wall_ns = (double)spawned->wall_ns;
    ret->cpu_ns = (double)(spawned->user_ns + spawned->system_ns);
    ret->overhead = ret->wall_ns / usual_ns - 1;
    if (isnan(usual_ns)) {
        run->input.costs.recorded_ns = ret->wall_ns;
        run->input.costs.recorded_whole = true;
    }
}

/* Each is worth more than looking at this one again. */
static size_t passes_after(const struct pass *pass)
{
    return (size_t)(passes + ARRAY_SIZE(passes) - pass) - 1;
}

/* The first run was so long that it was ended, this one is not: plain ones come after all. At least
 * one, if it fits: an axis more is worth less than knowing what recording costs. */
static void plain_runs_again(struct run *run, const struct pass *pass, struct round *round)
{
    struct why why = {0};
    if (run->baseline.end != BASELINE_CUT || round->na || round->cut || interrupt_signal() ||
        !status_is_good(&round->result.spawned) ||
        !(round->wall_ns <= (double)run_left_to_record_ns(run)))
        return;
    run->passes_left = (unsigned)passes_after(pass);
    if (run_measure_again(run, &why) < 0)
        run_note(run, &run->missing, "baseline: %s", why.what);
    if (run->baseline.runs.len == 0)
        return;
    run->input.costs = run_costs_of(run);
    round->na = round_judge(run, round, false);
    round->overhead = round->wall_ns / usual_wall_ns(run) - 1;
}

/* Twenty percent above the median, above every plain run, and paid for by the program itself:
 * collectors work on its CPU time. A wall time that grows without it is a busy machine's, where
 * each ms of work takes several of wall time. */
static bool round_is_dear(const struct run *run, const struct round *round)
{
    const struct summary *wall = &run->baseline.summaries[METRIC_WALL];
    const struct summary *cpu = &run->baseline.summaries[METRIC_CPU_TIME];
    return !round->na && round->overhead > AXIS_OVERHEAD_MAX &&
           round->wall_ns > wall->max * BEYOND_SLOWEST &&
           round->cpu_ns - cpu->median >= PAID_SHARE_MIN * (round->wall_ns - wall->median);
}

static void recording_remove(const char *path)
{
    char beside[PATH_MAX];
    unlink(path);
    snprintf(beside, sizeof(beside), "%s-wal", path);
    unlink(beside);
    snprintf(beside, sizeof(beside), "%s-shm", path);
    unlink(beside);
}

/* The better one stays, under the name of the first. */
static void round_choose(struct round *kept, struct round *other, bool other_is_better)
{
    if (!other_is_better) {
        recording_remove(other->path);
        return;
    }
    const char *path = kept->path;
    recording_remove(path);
    if (rename(other->path, path) == 0)
        other->path = path;
    *kept = *other;
}

static const char *path_beside(const struct run *run, const struct pass *pass, const char *mark)
{
    size_t stem = strlen(pass->artifact) - strlen(".whyslow");
    return arena_printf(run->arena, "%s/%.*s-%s.whyslow", run->folder, (int)stem, pass->artifact,
                        mark);
}

/* Ids are those of one recording, so that rounds cannot be put together: the one in the middle
 * is the one to look at. Rounds that count for nothing are no choice. */
static size_t round_middle(const struct round *rounds, size_t count)
{
    size_t order[ROUNDS_DEEP], good = 0;
    for (size_t i = 0; i < count; i++) {
        if (rounds[i].na)
            continue;
        size_t at = good++;
        for (; at > 0 && rounds[order[at - 1]].wall_ns > rounds[i].wall_ns; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return good > 0 ? order[(good - 1) / 2] : 0;
}

/* A noisy machine is blamed first; --deep looks three times in any case. */
static void rounds_more(struct run *run, const struct pass *pass, struct round *kept)
{
    bool deep = run->plan.depth == RUN_DEEP;
    struct round rounds[ROUNDS_DEEP] = {*kept};
    size_t count = 1;
    while (count < (deep ? ROUNDS_DEEP : 2) && !rounds[0].na && !interrupt_signal() &&
           rounds_fit(run, 1 + passes_after(pass)) && (deep || round_is_dear(run, kept))) {
        const char *path = path_beside(run, pass, count == 1 ? "second" : "third");
        round_record(run, kept->mode, kept->rate_hz, path, &rounds[count++]);
    }
    size_t middle = round_middle(rounds, count);
    for (size_t i = 1; i < count; i++)
        if (i != middle)
            recording_remove(rounds[i].path);
    if (middle > 0)
        round_choose(kept, &rounds[middle], true);
    if (count > 1)
        run_note(run, &run->notes, "%s: recorded %zu times, the run of middle length is kept",
                 pass->name, count);
}

/* Too dear twice: its times rank nothing (M18). Far too dear, and it changes what it looks at: what
 * is cheaper is tried, and what was given up for it is said. */
static void pass_cheapen(struct run *run, const struct pass *pass, struct round *kept)
{
    const struct mode *cheaper = kept->mode + 1;
    const struct mode *end = pass->modes + pass->mode_count;
    while (round_is_dear(run, kept) && kept->overhead > pass->overhead_max && cheaper < end &&
           !(cheaper->axes & ~kept->mode->axes) && !interrupt_signal() &&
           rounds_fit(run, 1 + passes_after(pass))) {
        struct round other;
        round_record(run, cheaper, kept->rate_hz, path_beside(run, pass, "cheaper"), &other);
        bool better = !other.na && other.wall_ns < kept->wall_ns;
        run_note(run, &run->marks, "%s: recording %s slows the program down by %.0f%%: %s%s",
                 pass->name, kept->mode->what, kept->overhead * 100,
                 better ? "stopped, and instead " : "no better with ", cheaper->what);
        round_choose(kept, &other, better);
        cheaper++;
    }
    if (round_is_dear(run, kept))
        run_note(run, &run->marks,
                 "%s: recording %s slows the program down by %.0f%%: stopped there; its counts "
                 "count, its own times rank nothing",
                 pass->name, kept->mode->what, kept->overhead * 100);
}

static void axes_fill(struct run *run, const struct pass *pass, const struct round *round)
{
    for (int i = 0; i < AXES; i++) {
        if (!(pass->axes & 1u << i))
            continue;
        bool has = !round->na && (round->mode->axes & 1u << i);
        run->input.axes[i].artifact = pass->artifact;
        run->input.axes[i].recording = has ? round->path : NULL;
        run->input.axes[i].wall_ns = has ? round->wall_ns : NAN;
        run->input.axes[i].is_dear = has && round_is_dear(run, round);
        run->input.axes[i].na = has ? NULL
                                : round->na
                                    ? round->na
                                    : arena_printf(
                                          run->arena,
                                          "given up: with it the program was slowed down by more "
                                          "than %.0f%%, or it failed",
                                          AXIS_OVERHEAD_MAX * 100);
    }
}

static void pass_skip(struct run *run, const struct pass *pass, const char *why)
{
    struct round none = {.mode = &pass->modes[0], .na = why, .wall_ns = NAN};
    axes_fill(run, pass, &none);
    run_note(run, &run->missing, "%s: not recorded: %s", pass->name, why);
}

static void exact_missed(struct run *run, const struct round *kept, const char *reason)
{
    if (!kept->na)
        run_note(run, &run->missing,
                 "allocations are sampled, although %s: the budget left no time to count all",
                 reason);
}

/* What else the heap needs: every allocation, when samples tell too little. */
static void heap_escalate(struct run *run, const struct pass *pass, struct round *kept)
{
    const struct mode *exact = &pass->modes[1];
    const char *reason = kept->failed ? "too little is allocated to sample"
                                      : run_escalate_heap(run);
    if (kept->mode == exact || interrupt_signal() || !reason)
        return;
    if (!rounds_fit(run, 1)) {
        exact_missed(run, kept, reason);
        return;
    }
    struct round other;
    round_record(run, exact, kept->rate_hz, path_beside(run, pass, "exact"), &other);
    if (other.cut)
        exact_missed(run, kept, reason);
    bool better = !other.na && !round_is_dear(run, &other);
    if (better && !kept->failed)
        run_note(run, &run->notes, "level 3: every allocation was counted, because %s", reason);
    else if (!other.na && !kept->failed)
        run_note(run, &run->notes,
                 "counting every allocation (because %s) slows the program down by %.0f%%: samples "
                 "stay",
                 reason, other.overhead * 100);
    round_choose(kept, &other, better || kept->na);
}

/* Samples that CPU time of plain runs is worth: that of the program alone where the kernel's is not
 * sampled. */
static double samples_due(const struct run *run, const struct round *kept)
{
    bool whole = !kept->result.kernel_na[0];
    const struct summary *cpu = &run->baseline.summaries[whole ? METRIC_CPU_TIME : METRIC_USER];
    return cpu->count > 0 ? cpu->median / NS_PER_SEC * kept->rate_hz : 0;
}

static void samples_escalate(struct run *run, const struct pass *pass, struct round *kept)
{
    double due = samples_due(run, kept);
    if (kept->na || kept->cut || !(kept->mode->axes & AXIS_BIT_CPU) || due < SAMPLES_DUE_MIN ||
        (double)kept->samples >= SEEN_SHARE_MIN * due || interrupt_signal())
        return;
    const char *seen = arena_printf(
        run->arena,
        "CPU samples show %.0f%% of the CPU time: threads that live for "
        "less than %.1f ms are not sampled",
        (double)kept->samples / due * 100, 1e3 / kept->rate_hz);
    if (!rounds_fit(run, 1 + passes_after(pass))) {
        run_note(run, &run->missing, "%s; the budget left no time to sample faster", seen);
        return;
    }
    struct round other;
    uint32_t rate_hz = kept->rate_hz * RATE_FACTOR;
    round_record(run, kept->mode, rate_hz, path_beside(run, pass, "faster"), &other);
    /* Without a sample the axis is n/a: then one that costs too much is better than none, and says
     * what it costs. */
    bool better = !other.na && (kept->samples == 0 || !round_is_dear(run, &other)) &&
                  (double)other.samples / RATE_FACTOR > (double)kept->samples;
    run_note(run, &run->notes, "%s; %s %u times a second", seen,
             better ? "recorded again," : "no better when sampled", rate_hz);
    round_choose(kept, &other, better);
}

/* A program that waits has few samples, and needs none. */
static void samples_say(struct run *run, const struct round *kept)
{
    const struct run_costs *costs = &run->input.costs;
    bool computes = costs->cpu_ns > CPU_SHARE_MIN * costs->wall_ns;
    if (!kept->na && (kept->mode->axes & AXIS_BIT_CPU) && kept->samples < SAMPLES_FEW && computes)
        run_note(run, &run->marks,
                 "only %llu CPU samples: shares are rough, and functions with a small one are "
                 "missing; give the program more work",
                 (unsigned long long)kept->samples);
}

/* The axis is good for something from here on, or n/a. */
static void pass_run(struct run *run, const struct pass *pass)
{
    bool is_first = pass == passes;
    if (interrupt_signal()) {
        pass_skip(run, pass, "interrupted before");
        if (is_first)
            run_cut_say(run);
        return;
    }
    double need_ns = round_estimate_ns(run);
    if (!is_first && !(need_ns <= (double)run_left_to_record_ns(run))) {
        pass_skip(run, pass, "the budget left no time for it; give more with --budget");
        return;
    }
    run_step(run, 4, arena_printf(run->arena, "recorded run: %s", pass->name));
    const struct mode *mode = &pass->modes[0];
    if ((pass->axes & AXIS_BIT_HEAP) && run->plan.depth == RUN_DEEP)
        mode = &pass->modes[1];
    struct round kept;
    const char *path = arena_printf(run->arena, "%s/%s", run->folder, pass->artifact);
    round_record(run, mode, CPU_RATE_HZ, path, &kept);
    if (is_first && kept.cut && kept.na && !interrupt_signal())
        part_take(run, &kept); /* without this axis nothing could be said at all */
    const char *first_na = kept.na;
    while (kept.failed && !interrupt_signal() && !(pass->axes & AXIS_BIT_HEAP) &&
           kept.mode + 1 < pass->modes + pass->mode_count) {
        recording_remove(path);
        round_record(run, kept.mode + 1, CPU_RATE_HZ, path, &kept);
    }
    if (first_na && !kept.na)
        run_note(run, &run->missing, "%s: %s", mode->what, first_na);
    if (kept.na && first_na)
        kept.na = first_na;
    if (is_first) {
        plain_runs_again(run, pass, &kept);
        run_cut_say(run);
    }
    samples_escalate(run, pass, &kept);
    rounds_more(run, pass, &kept);
    pass_cheapen(run, pass, &kept);
    axes_fill(run, pass, &kept); /* the next question is asked of it */
    if (pass->axes & AXIS_BIT_HEAP)
        heap_escalate(run, pass, &kept);
    axes_fill(run, pass, &kept);
    if (kept.na)
        run_note(run, &run->missing, "%s: %s", pass->name, kept.na);
    if (pass->axes & AXIS_BIT_CPU)
        samples_say(run, &kept);
}

int run_passes(struct run *run, struct why *why)
{
    for (size_t i = 0; i < ARRAY_SIZE(passes) && run->baseline.end != BASELINE_FAILED; i++)
        pass_run(run, &passes[i]);
    return arena_failed(run->arena) ? why_nomem(why) : 0;
}
