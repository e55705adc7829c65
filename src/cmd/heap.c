/* `whyslow heap`: what a program does with memory, by stack.
 *
 * record or open → rows → sums, notes → one report → pictures → draw */
#include "cmd/heap_parts.h"

#include "base/log.h"

#include <errno.h>

enum {
    BRIEF_ROWS = 10,      /* where several tables share a screen */
    MACHINE_ROWS = 10000, /* of each table, in JSON */
};

static const struct opt heap_options[] = {
    {"peak", 0, OPT_FLAG, offsetof(struct heap_cmd_opts, peak), NULL,
     "what lived when most did, by stack", NULL, NULL, false},
    {"leaks", 0, OPT_FLAG, offsetof(struct heap_cmd_opts, leaks), NULL,
     "what was not freed at the end, by stack; with snapshots, what grew", NULL, NULL, false},
    {"churn", 0, OPT_FLAG, offsetof(struct heap_cmd_opts, churn), NULL,
     "where most calls come from", NULL, NULL, false},
    {"temporary-sites", 0, OPT_FLAG, offsetof(struct heap_cmd_opts, temporary_sites), NULL,
     "memory that was freed right after it was allocated", NULL, NULL, false},
    {"growth", 0, OPT_FLAG, offsetof(struct heap_cmd_opts, growth), NULL,
     "memory that was made larger again and again: realloc()", NULL, NULL, false},
    {"functions", 0, OPT_FLAG, offsetof(struct heap_cmd_opts, functions), NULL,
     "every function that asks for memory", NULL, NULL, false},
    {"threads", 0, OPT_FLAG, offsetof(struct heap_cmd_opts, threads), NULL,
     "by thread and by process", NULL, NULL, false},
    {"images", 0, OPT_FLAG, offsetof(struct heap_cmd_opts, images), NULL, "by program and library",
     NULL, NULL, false},
    {"sizes", 0, OPT_FLAG, offsetof(struct heap_cmd_opts, sizes), NULL,
     "how large pieces are, and how long they live", NULL, NULL, false},
    {"timeline", 0, OPT_FLAG, offsetof(struct heap_cmd_opts, timeline), NULL,
     "heap and resident memory over time, and the snapshots", NULL, NULL, false},
    {"at", 0, OPT_U32, offsetof(struct heap_cmd_opts, at), "N",
     "what lived at the Nth snapshot, by stack; --timeline numbers them", NULL, NULL, false},
    {"diff", 0, OPT_FILE, offsetof(struct heap_cmd_opts, diff), "REC2",
     "what changed from REC to REC2, function by function; with --peak, --leaks, --churn, "
     "--temporary-sites or --growth: of that",
     NULL, NULL, false},
    {"limit", 'n', OPT_U64, offsetof(struct heap_cmd_opts, limit), "ROWS",
     "print at most this many rows of a table; 0 prints all; JSON has up to 10,000", "20", NULL,
     false},
    {"exact", 0, OPT_FLAG, offsetof(struct heap_cmd_opts, exact), NULL,
     "count every call; the default unless --sample is given", NULL, NULL, false},
    {"sample", 0, OPT_SIZE, offsetof(struct heap_cmd_opts, sample_bytes), "SIZE",
     "count one call in so many bytes, on average (512KiB): cheaper, figures are estimates", NULL,
     NULL, false},
    {"snapshot", 0, OPT_DURATION, offsetof(struct heap_cmd_opts, snapshot_ns), "TIME",
     "keep what lives every so often; SIGUSR2 to whyslow does it once", NULL, NULL, false},
    {"temporary", 0, OPT_U32, offsetof(struct heap_cmd_opts, temporary_within), "N",
     "temporary is what is freed before the thread's Nth next allocation", "1", NULL, false},
    {"log", 0, OPT_FLAG, offsetof(struct heap_cmd_opts, log), NULL,
     "keep every single call, too: the file grows with them", NULL, NULL, false},
    {"flame-by", 0, OPT_CHOICE, offsetof(struct heap_cmd_opts, flame_by), "WHAT",
     "what flame graphs draw: allocated bytes, calls, the peak, what was not freed, temporaries",
     "peak", "bytes|count|peak|leak|temporary", false},
    PICTURE_OPTIONS(struct heap_cmd_opts, pictures),
    AXIS_OPTIONS(struct heap_cmd_opts, axis),
    OUTPUT_OPTIONS(struct heap_cmd_opts, output),
    {0},
};

static int options_check(const struct cmd_call *call, struct why *why)
{
    const struct heap_cmd_opts *opts = call->opts;
    if (opts->exact && opts->sample_bytes > 0)
        return why_set(why, WHY_USAGE, EINVAL, "give one of them",
                       "--exact and --sample exclude each other");
    if (opts->axis.all || opts->axis.cgroup)
        return why_set(why, WHY_USAGE, EINVAL, "name a command, or a process with -p PID",
                       "%s: the heap is counted program by program",
                       opts->axis.all ? "-a" : "--cgroup");
    if (call->argc == 0 && opts->axis.pid == 0)
        return why_set(why, WHY_USAGE, EINVAL, "give a recording, or '-- COMMAND', or -p PID",
                       "nothing to look at was named");
    if (opts->diff && (call->argc != 1 || opts->axis.dashes || opts->axis.pid))
        return why_set(why, WHY_USAGE, EINVAL, "record both with -o FILE first",
                       "--diff compares two recordings");
    if (opts->temporary_within == 0)
        return why_set(why, WHY_USAGE, EINVAL, "--temporary 1: freed before the next allocation",
                       "--temporary counts allocations, from 1 on");
    int measures = opts->peak + opts->leaks + opts->churn + opts->temporary_sites + opts->growth;
    bool others = opts->functions || opts->threads || opts->images || opts->sizes ||
                  opts->timeline || opts->at > 0;
    if (opts->diff && (measures > 1 || others))
        return why_set(why, WHY_USAGE, EINVAL,
                       "give one of --peak, --leaks, --churn, --temporary-sites, --growth, or none",
                       "--diff compares functions by one measure");
    return 0;
}

/* A recording takes no option that is about making one. */
static int made_check(const struct heap_cmd_opts *opts, bool made, struct why *why)
{
    const char *option = opts->sample_bytes           ? "--sample"
                         : opts->exact                ? "--exact"
                         : opts->snapshot_ns          ? "--snapshot"
                         : opts->log                  ? "--log"
                         : opts->temporary_within > 1 ? "--temporary"
                                                      : NULL;
    if (made || !option)
        return 0;
    return why_set(why, WHY_USAGE, EINVAL, "leave it out; to run a file put '--' before it",
                   "%s is for recording, and a recording was named", option);
}

static int side_load(struct heap_run *run, struct heap_side *side, struct why *why)
{
    int r = heap_honesty_load(run->arena, side->recording, &side->honesty, why);
    if (r == 0)
        r = heap_load(run->arena, side->recording, &side->heap, why);
    if (r < 0)
        return r;
    if (heap_sums_build(run->arena, &side->heap, &side->sums) < 0)
        return why_nomem(why);
    struct heap_sure sure = heap_sure_of(&side->sums, side->honesty.sample_bytes);
    if (heap_notes_build(run->arena, &side->sums, &sure, &side->notes) < 0)
        return why_nomem(why);
    uint64_t limit = run->opts->limit;
    if (limit > 0 && !heap_is_narrowed(run->opts))
        limit = MIN(limit, (uint64_t)BRIEF_ROWS);
    side->tables = (struct heap_tables){
        .arena = run->arena,
        .sums = &side->sums,
        .notes = &side->notes,
        .limit = limit,
        .machine_rows = run->opts->output.json ? MACHINE_ROWS : 0,
        .sampled = sure.every > 0,
        .sure = sure,
        .start_ns = side->heap.start_ns,
    };
    return 0;
}

static enum heap_rank diff_rank(const struct heap_cmd_opts *opts)
{
    return opts->peak              ? HEAP_RANK_PEAK
           : opts->leaks           ? HEAP_RANK_LEAK
           : opts->churn           ? HEAP_RANK_CHURN
           : opts->temporary_sites ? HEAP_RANK_TEMPORARY
           : opts->growth          ? HEAP_RANK_GROWTH
                                   : HEAP_RANK_BYTES;
}

static int side_open(struct heap_side *side, const char *path, struct why *why)
{
    int r = recording_open(path, &side->recording, why);
    if (r == 0 && !recording_finished(side->recording))
        log_warning("'%s' was not finished (still recording, or cut off): it holds what was "
                    "committed",
                    path);
    return r;
}

static int diff_load(struct heap_run *run, struct why *why)
{
    int r = side_open(&run->other, run->opts->diff, why);
    if (r == 0)
        r = side_load(run, &run->other, why);
    run->diff_rank = diff_rank(run->opts);
    if (r == 0 && heap_diff_build(run->arena, &run->main.sums, &run->other.sums, run->diff_rank,
                                  &run->diff) < 0)
        r = why_nomem(why);
    return r;
}

static int draw(const struct cmd_call *call, struct heap_run *run, struct why *why)
{
    struct value root = value_map(run->arena);
    int r = heap_report(run, &root, why);
    if (r == 0)
        r = heap_pictures(run, &root, why);
    if (r == 0 && arena_failed(run->arena))
        r = why_nomem(why);
    if (r < 0)
        return r;
    struct report report = {.schema = "whyslow.heap/1", .root = &root};
    return cmd_render(call, &run->opts->output, &report, why);
}

static int recorded(const struct cmd_call *call, struct heap_run *run,
                    struct record_run_result *ret_result, struct why *why)
{
    const struct heap_cmd_opts *opts = run->opts;
    if (opts->diff) /* what is named is a recording: it is not run, whatever it is */
        return side_open(&run->main, call->argv[0], why);
    struct record_run_opts record = {.cpu = {.no_samples = true},
                                     .heap = {.on = true,
                                              .sample_bytes = opts->sample_bytes,
                                              .snapshot_ns = opts->snapshot_ns,
                                              .temporary_within = opts->temporary_within,
                                              .log = opts->log}};
    return axis_recording(call, &opts->axis, &record, opts->output.json || opts->output.markdown,
                          &run->main.recording, ret_result, why);
}

static int heap_run(const struct cmd_call *call, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct heap_run run = {.opts = call->opts, .arena = &arena};
    struct record_run_result result = {0};
    int r = options_check(call, why);
    if (r == 0)
        r = recorded(call, &run, &result, why);
    if (r < 0)
        return r;
    run.kept = axis_is_kept(&run.opts->axis, &result);
    r = made_check(run.opts, result.path[0] != '\0', why);
    if (r == 0) {
        r = side_load(&run, &run.main, why);
        if (r < 0)
            axis_load_failed(&result, why);
    }
    if (r == 0 && run.opts->diff)
        r = diff_load(&run, why);
    if (r == 0)
        r = draw(call, &run, why);
    recording_close(run.other.recording);
    return axis_end(&run.opts->axis, run.main.recording, &result, r);
}

static const struct cmd_example examples[] = {
    {"whyslow heap -- ./app input", "run it: peak, what was not freed, temporaries, by function"},
    {"whyslow heap -o app.whyslow --snapshot 10s -- ./server", "what grows while it runs"},
    {"whyslow heap app.whyslow --leaks", "what was not freed, by stack"},
    {"whyslow heap app.whyslow --flame heap.svg --flame-by peak", "the peak as a picture"},
    {"whyslow heap old.whyslow --diff new.whyslow --peak", "what made the peak higher"},
    {NULL, NULL},
};

const struct command cmd_heap = {
    .name = "heap",
    .group = "Measure",
    .operands = "[REC | -- COMMAND [ARGUMENT...]]",
    .summary = "memory: the peak, what is not freed, churn and temporaries, by stack",
    .about =
        "Counts every allocation and every free of a program and all it starts, by stack and "
        "thread: what lived when most did, what was not freed at the end, where most calls come "
        "from, what was freed right after it was allocated, what grew by realloc(), how large "
        "pieces are and how long they live, and the heap beside resident memory over time.\n\n"
        "What is not freed at the end is not lost for that: a program may still use it, and need "
        "not free it to exit. What grows from snapshot to snapshot (--snapshot 10s) is what to "
        "look at.\n\n"
        "Calls are counted by a library inside the program; --sample counts one in so many bytes "
        "and says how far estimates can be off. With -p, and for programs that are static or bring "
        "an allocator of their own, the kernel tells of calls instead (needs root): what was "
        "allocated before is not seen.\n\n"
        "A recording made with 'whyslow record --heap' is read; a command or -p is recorded first, "
        "and the recording thrown away unless -o keeps it. The exit status is the command's. With "
        "--json or --markdown the command's stdout goes to stderr.",
    .options = heap_options,
    .options_size = sizeof(struct heap_cmd_opts),
    .stop = OPT_MIXED,
    .operands_min = 0,
    .operands_max = -1,
    .examples = examples,
    .run = heap_run,
};
