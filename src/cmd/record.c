/* record: what is to be recorded becomes a recording, and one line says how good it is. */
#include "cmd/cmd.h"

#include "analyze/heap_honesty.h"
#include "analyze/honesty.h"
#include "analyze/hotspots.h"
#include "analyze/io_honesty.h"
#include "analyze/profile_load.h"
#include "analyze/wait_honesty.h"
#include "base/temporary.h"
#include "base/text.h"
#include "cmd/interrupts.h"
#include "cmd/record_run.h"
#include "cmd/run_artifacts.h"
#include "present/profile_tables.h"
#include "store/reader.h"
#include "symbolize/symbols.h"
#include "target/command.h"
#include "target/interrupt.h"
#include "target/program.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { TOP_SHOWN = 5, NAME_COLUMNS = 60, SAMPLES_EXPECTED = 20 };

struct record_cmd_opts {
    uint32_t rate_hz;
    const char *output;
    const char *stacks;
    uint64_t duration_ns;
    uint32_t pid;
    bool all;
    const char *cgroup;
    bool cpu;
    bool offcpu;
    bool locks;
    bool io;
    bool no_io_stacks;
    bool no_requests;
    bool keep_payloads;
    bool heap;
    uint64_t sample_bytes;
    uint64_t snapshot_ns;
    uint32_t temporary_within;
    bool log;
    const char *tier;
    bool debuginfod;
    bool no_symbols;
    bool quiet;
    bool keep_arguments;
};

static const struct opt record_options[] = {
    {"rate", 'F', OPT_U32, offsetof(struct record_cmd_opts, rate_hz), "HZ",
     "samples per second of CPU time", "999", NULL, false},
    {"output", 'o', OPT_FILE, offsetof(struct record_cmd_opts, output), "FILE",
     "the recording, one that is there becomes FILE.old; without it recording.whyslow, or the next "
     "free name",
     NULL, NULL, false},
    {"stacks", 'g', OPT_CHOICE, offsetof(struct record_cmd_opts, stacks), "MODE",
     "auto: unwind without frame pointers; fp: frame pointers, walked by the kernel; none: only "
     "where it was",
     "auto", "auto|fp|none", false},
    {"duration", 'd', OPT_DURATION, offsetof(struct record_cmd_opts, duration_ns), "TIME",
     "record for so long; a command runs on to its end", NULL, NULL, false},
    {"pid", 'p', OPT_U32, offsetof(struct record_cmd_opts, pid), "PID",
     "record a running process, all its threads and what they start", NULL, NULL, false},
    {"all", 'a', OPT_FLAG, offsetof(struct record_cmd_opts, all), NULL,
     "record every process of the machine", NULL, NULL, false},
    {"cgroup", 0, OPT_TEXT, offsetof(struct record_cmd_opts, cgroup), "PATH",
     "record every process of a cgroup; the path below /sys/fs/cgroup", NULL, NULL, false},
    {"cpu", 0, OPT_FLAG, offsetof(struct record_cmd_opts, cpu), NULL,
     "where CPU time goes; the default unless --offcpu, --locks, --io or --heap is given", NULL,
     NULL, false},
    {"offcpu", 0, OPT_FLAG, offsetof(struct record_cmd_opts, offcpu), NULL,
     "where threads wait, for what, and who ends it", NULL, NULL, false},
    {"locks", 0, OPT_FLAG, offsetof(struct record_cmd_opts, locks), NULL,
     "which locks are waited for, and who holds them", NULL, NULL, false},
    {"io", 0, OPT_FLAG, offsetof(struct record_cmd_opts, io), NULL,
     "what threads ask of the kernel: files, devices, peers, and the requests on sockets", NULL,
     NULL, false},
    {"no-io-stacks", 0, OPT_FLAG, offsetof(struct record_cmd_opts, no_io_stacks), NULL,
     "--io without the stack of every call: cheaper", NULL, NULL, false},
    {"no-requests", 0, OPT_FLAG, offsetof(struct record_cmd_opts, no_requests), NULL,
     "--io without looking at what is said on sockets", NULL, NULL, false},
    {"keep-payloads", 0, OPT_FLAG, offsetof(struct record_cmd_opts, keep_payloads), NULL,
     "--io keeps the text of requests as it was sent; never passwords", NULL, NULL, false},
    {"heap", 0, OPT_FLAG, offsetof(struct record_cmd_opts, heap), NULL,
     "what is allocated and freed, what lives at the peak and what is left, by stack", NULL, NULL,
     false},
    {"sample", 0, OPT_SIZE, offsetof(struct record_cmd_opts, sample_bytes), "SIZE",
     "--heap counts one allocation in so many bytes (512KiB): cheaper, figures are estimates", NULL,
     NULL, false},
    {"snapshot", 0, OPT_DURATION, offsetof(struct record_cmd_opts, snapshot_ns), "TIME",
     "--heap keeps what lives each time so much has passed; SIGUSR2 to whyslow keeps it at once",
     NULL, NULL, false},
    {"temporary", 0, OPT_U32, offsetof(struct record_cmd_opts, temporary_within), "N",
     "--heap calls temporary what is freed before the thread's Nth next allocation", "1", NULL,
     false},
    {"log", 0, OPT_FLAG, offsetof(struct record_cmd_opts, log), NULL,
     "--heap keeps every event, too: a few bytes each", NULL, NULL, false},
    {"tier", 0, OPT_CHOICE, offsetof(struct record_cmd_opts, tier), "TIER",
     "how waits, locks, calls and the heap are seen: by the kernel (needs root, or CAP_BPF and "
     "CAP_PERFMON), "
     "or from user space",
     "auto", "auto|kernel|user", false},
    {"debuginfod", 0, OPT_FLAG, offsetof(struct record_cmd_opts, debuginfod), NULL,
     "may ask the servers in $DEBUGINFOD_URLS for debug information", NULL, NULL, false},
    {"no-symbols", 0, OPT_FLAG, offsetof(struct record_cmd_opts, no_symbols), NULL,
     "keep addresses only; names can be had where the files are", NULL, NULL, false},
    QUIET_OPTION(offsetof(struct record_cmd_opts, quiet)),
    KEEP_ARGUMENTS_OPTION(offsetof(struct record_cmd_opts, keep_arguments)),
    {0},
};

/* Exactly one thing to record. */
static int scope_find(const struct cmd_call *call, struct record_run_opts *run, struct why *why)
{
    const struct record_cmd_opts *opts = call->opts;
    int asked = (call->argc > 0) + (opts->pid != 0) + opts->all + (opts->cgroup != NULL);
    if (asked == 0)
        return why_set(why, WHY_USAGE, EINVAL,
                       "whyslow record -- COMMAND; or -p PID, -a, --cgroup PATH",
                       "nothing to record was named");
    if (asked > 1)
        return why_set(why, WHY_USAGE, EINVAL,
                       "give one of them; 'whyslow record -a -d 10' records the machine for 10 s",
                       "a command, -p, -a and --cgroup exclude each other");
    if (opts->pid > INT32_MAX)
        return why_set(why, WHY_USAGE, EINVAL, "'ps -e' lists the processes", "no process %u",
                       opts->pid);
    run->cpu.pid = (int)opts->pid;
    run->cpu.cgroup = opts->cgroup;
    run->cpu.scope = opts->pid      ? TARGET_ATTACHED
                     : opts->all    ? TARGET_SYSTEM
                     : opts->cgroup ? TARGET_CGROUP
                                    : TARGET_SPAWNED;
    return 0;
}

/* Options that say how to do what is not done are a mistake somewhere. */
static int io_check(const struct record_cmd_opts *opts, struct why *why)
{
    const char *name = opts->no_io_stacks    ? "--no-io-stacks"
                       : opts->no_requests   ? "--no-requests"
                       : opts->keep_payloads ? "--keep-payloads"
                                             : NULL;
    if (name && !opts->io)
        return why_set(why, WHY_USAGE, EINVAL, "add --io, or leave it out",
                       "%s says how calls are recorded, but --io is missing", name);
    if (opts->keep_payloads && opts->no_requests)
        return why_set(why, WHY_USAGE, EINVAL, "give one of them",
                       "--keep-payloads and --no-requests exclude each other");
    return 0;
}

static int heap_check(const struct record_cmd_opts *opts, struct why *why)
{
    enum { TEMPORARY_MAX = 16 };
    const char *name = opts->sample_bytes            ? "--sample"
                       : opts->snapshot_ns           ? "--snapshot"
                       : opts->temporary_within != 1 ? "--temporary"
                       : opts->log                   ? "--log"
                                                     : NULL;
    if (name && !opts->heap)
        return why_set(why, WHY_USAGE, EINVAL, "add --heap, or leave it out",
                       "%s says how the heap is recorded, but --heap is missing", name);
    if (opts->temporary_within < 1 || opts->temporary_within > TEMPORARY_MAX)
        return why_set(why, WHY_USAGE, EINVAL, NULL, "--temporary must be 1 to %d", TEMPORARY_MAX);
    if (opts->heap && (opts->all || opts->cgroup))
        return why_set(why, WHY_USAGE, EINVAL,
                       "whyslow record --heap -- COMMAND; as root also --heap -p PID",
                       "--heap is for a program, not for all of them");
    return 0;
}

/* The first few lines of the report, so that a look may be enough. */
static int top_show(const struct cmd_call *call, struct arena *arena, struct recording *recording,
                    struct why *why)
{
    struct profile profile = {0};
    struct hotspots hotspots = {0};
    int r = profile_load(arena, recording, &(struct profile_opts){0}, &profile, why);
    if (r == 0)
        r = hotspots_build(arena, &profile, &hotspots);
    if (r < 0)
        return r;
    for (size_t i = 0; i < hotspots.count && i < TOP_SHOWN; i++) {
        const struct hotspot *row = &hotspots.rows[i];
        const struct profile_function *function = &profile.functions[row->function];
        if (row->self_weight == 0)
            break;
        fprintf(call->notes, "  %5.1f%%  ",
                (double)row->self_weight / (double)profile.weight * 100);
        struct str name = function->name;
        name.len = text_fit(name, NAME_COLUMNS);
        text_print(call->notes, name);
        struct str image = tables_image(&profile, row->function);
        if (!function->unnamed && image.len > 0) {
            fputs("  ", call->notes);
            text_print(call->notes, image);
        }
        fputc('\n', call->notes);
    }
    return 0;
}

/* Enough CPU time for so many samples that none at all means that something is wrong. */
static bool is_worth_samples(const struct cmd_call *call, const struct honesty *honesty)
{
    const struct record_cmd_opts *opts = call->opts;
    return honesty->rusage_ns.known &&
           honesty->rusage_ns.value / 1000000000.0 * opts->rate_hz > SAMPLES_EXPECTED;
}

/* How good the samples are, and the first few lines of their report. */
static int samples_show(const struct cmd_call *call, struct arena *arena,
                        struct recording *recording, const struct record_run_result *result,
                        struct why *why)
{
    FILE *err = call->notes;
    struct honesty honesty;
    int r = honesty_load(recording, &honesty, why);
    if (r < 0)
        return r;
    fprintf(err, "whyslow: %s: %s\n", result->event, honesty_line(arena, &honesty));
    if (result->kernel_na[0])
        fprintf(err, "whyslow: kernel frames: n/a: %s\n", result->kernel_na);
    if (result->deep_na[0])
        fprintf(err, "whyslow: stacks deeper than the slice: n/a: %s\n", result->deep_na);
    if (result->samples > 0)
        return top_show(call, arena, recording, why);
    if (is_worth_samples(call, &honesty))
        return why_set(why, WHY_FAILED, ENODATA,
                       "are its threads shorter than a sample? raise -F, or record with -a",
                       "no sample, although %.0f ms of CPU time were used; '%s' is empty",
                       (double)honesty.rusage_ns.value / 1e6, result->path);
    fputs("whyslow: no sample: too little CPU time was used for one at this rate; raise "
          "it with -F\n",
          err);
    return 0;
}

static int waits_show(const struct cmd_call *call, struct arena *arena, struct recording *recording,
                      const struct record_run_result *result, struct why *why)
{
    struct wait_honesty honesty;
    int r = wait_honesty_load(arena, recording, &honesty, why);
    if (r < 0)
        return r;
    if (!honesty.tier)
        honesty.tier = result->waits_tier;
    if (!honesty.not_higher && result->waits_na[0])
        honesty.not_higher = result->waits_na;
    fprintf(call->notes, "whyslow: waits: ");
    text_print(call->notes, str_from(wait_honesty_line(arena, &honesty)));
    fputc('\n', call->notes);
    return 0;
}

static int io_show(const struct cmd_call *call, struct arena *arena, struct recording *recording,
                   const struct record_run_result *result, struct why *why)
{
    struct io_honesty honesty;
    int r = io_honesty_load(arena, recording, &honesty, why);
    if (r < 0)
        return r;
    if (!honesty.facts.tier)
        honesty.facts.tier = result->io_tier;
    if (!honesty.facts.not_higher && result->io_na[0])
        honesty.facts.not_higher = result->io_na;
    fprintf(call->notes, "whyslow: io: ");
    text_print(call->notes, str_from(io_honesty_line(arena, &honesty)));
    fputc('\n', call->notes);
    return 0;
}

/* What was not seen is an error, but not before the rest is shown. */
static int heap_show(const struct cmd_call *call, struct arena *arena, struct recording *recording,
                     const struct record_run_result *result, struct why *why)
{
    struct heap_honesty honesty;
    if (result->heap_na[0])
        return 0;
    int r = heap_honesty_load(arena, recording, &honesty, why);
    if (r < 0)
        return r;
    fprintf(call->notes, "whyslow: heap: ");
    text_print(call->notes, str_from(heap_honesty_line(arena, &honesty)));
    fputc('\n', call->notes);
    return 0;
}

static void next_show(FILE *err, const char *command, const char *path)
{
    fprintf(err, "whyslow: next: whyslow %s ", command);
    text_print(err, str_from(path));
    fputc('\n', err);
}

static int show(const struct cmd_call *call, const struct record_run_opts *run,
                const struct record_run_result *result, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct recording *recording = NULL;
    bool sampled = !run->cpu.no_samples;
    int r = recording_open(result->path, &recording, why);
    if (r == 0 && sampled)
        r = samples_show(call, &arena, recording, result, why);
    if (r == 0 && result->waits_tier[0])
        r = waits_show(call, &arena, recording, result, why);
    if (r == 0 && result->io_tier[0])
        r = io_show(call, &arena, recording, result, why);
    if (r == 0 && result->heap_tier[0])
        r = heap_show(call, &arena, recording, result, why);
    recording_close(recording);
    if (r < 0)
        return r;
    fputs("whyslow: recorded to ", call->notes);
    text_print(call->notes, str_from(result->path));
    fputc('\n', call->notes);
    if (sampled)
        next_show(call->notes, "report", result->path);
    if (run->offcpu.waits)
        next_show(call->notes, "waits", result->path);
    if (run->offcpu.locks)
        next_show(call->notes, "locks", result->path);
    if (run->io.calls)
        next_show(call->notes, "io", result->path);
    if (run->heap.on && !result->heap_na[0])
        next_show(call->notes, "heap", result->path);
    if (result->heap_na[0])
        return record_heap_unseen(result, why);
    return arena_failed(&arena) ? why_nomem(why) : 0;
}

static int record_run(const struct cmd_call *call, struct why *why)
{
    const struct record_cmd_opts *opts = call->opts;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    char path[PATH_MAX], cache[PATH_MAX];
    enum tier tier = strcmp(opts->tier, "kernel") == 0 ? TIER_KERNEL
                     : strcmp(opts->tier, "user") == 0 ? TIER_USER
                                                       : TIER_NONE;
    struct record_run_opts run = {
        .cpu = {.rate_hz = opts->rate_hz,
                .stacks = strcmp(opts->stacks, "fp") == 0     ? PERF_STACKS_FP
                          : strcmp(opts->stacks, "none") == 0 ? PERF_STACKS_NONE
                                                              : PERF_STACKS_SLICE,
                .debuginfod = opts->debuginfod,
                .no_symbols = opts->no_symbols,
                .no_samples = (opts->offcpu || opts->locks || opts->io || opts->heap) && !opts->cpu,
                .cache_dir = symbols_cache_dir(cache, sizeof(cache))},
        .offcpu = {.waits = opts->offcpu, .locks = opts->locks, .tier = tier},
        .io = {.calls = opts->io,
               .stacks = !opts->no_io_stacks,
               .requests = !opts->no_requests,
               .payloads = opts->keep_payloads,
               .tier = tier},
        .heap = {.on = opts->heap,
                 .tier = tier,
                 .sample_bytes = opts->sample_bytes,
                 .snapshot_ns = opts->snapshot_ns,
                 .temporary_within = opts->temporary_within,
                 .log = opts->log},
        .output = opts->output,
        .duration_ns = opts->duration_ns,
        .progress = call->notes,
    };
    int r = io_check(opts, why);
    if (r == 0)
        r = heap_check(opts, why);
    if (r == 0)
        r = scope_find(call, &run, why);
    if (r == 0 && run.cpu.scope == TARGET_SPAWNED) {
        r = program_find(call->argv[0], path, why);
        run.argv = call->argv;
        run.program = path;
        run.cpu.command = r == 0 ? command_shown(&arena, call->argv) : NULL;
    }
    if (r < 0)
        return r;
    struct record_run_result result = {0};
    temporary_sweep();
    interrupt_watch(interrupts_tell);
    r = record_into_file(&run, &result, why);
    if (r == 0)
        r = show(call, &run, &result, why);
    interrupt_unwatch();
    return r < 0 ? r : result.status;
}

static const struct cmd_example record_examples[] = {
    {"whyslow record -- ./app input", "a command and all it starts"},
    {"whyslow record -p 1234 -d 10", "a running process for ten seconds"},
    {"whyslow record --cpu --offcpu --locks -- ./app", "where it computes and where it waits"},
    {"whyslow record --io -- ./app", "its files, peers and requests"},
    {"whyslow record --heap -- ./app", "what it allocates, and what is left"},
    {"whyslow record -a -d 10 -o machine.whyslow", "the whole machine"},
    {0},
};

const struct command cmd_record = {
    .name = "record",
    .group = "Measure",
    .operands = "[--] [COMMAND [ARGUMENT...]]",
    .summary = "record where time goes, on the CPU and off it, with full call stacks",
    .about =
        "Samples running code with its call stacks: cycles at the highest precision the machine "
        "has, else a CPU clock. Stacks are unwound from the compiler's own tables, so programs "
        "need no frame pointers and no rebuild. Threads, forks and execs are followed.\n\n"
        "--offcpu records waits instead: where threads leave the CPU, for what, and who wakes "
        "them; --locks the locks among these, with their owners. With --cpu both come into one "
        "recording. The kernel tells of every wait where it may be asked (BPF); elsewhere blocked "
        "threads are looked at from user space, which sees less, and the tier is named.\n\n"
        "--io records calls to the kernel: how many, how long, how many bytes, of which file, "
        "device or peer, from which stack; and on sockets the requests in them (HTTP, PostgreSQL, "
        "MySQL, Redis, DNS). Texts are kept without their values, of values only whether they "
        "differ; --keep-payloads keeps them as they were sent, but never passwords. Without the "
        "kernel's help a library in the command tells of its calls, of calls through libc only.\n\n"
        "--heap counts every allocation where it is made: a library in the command walks the stack "
        "and adds it up, so that nothing is lost and nothing is waited for; with --sample only "
        "some "
        "are looked at. What lives is kept at the end, at the peak, at --snapshot and at each "
        "SIGUSR2 that whyslow gets. Programs that do not take the library (static ones, those with "
        "a malloc() of their own, running ones with -p) the kernel tells of, as root.\n\n"
        "A command keeps its terminal, streams and signals; its exit status is passed on (128 and "
        "the signal's number if one ended it). SIGINT or SIGTERM to whyslow is handed to it "
        "(Ctrl-C in "
        "a terminal it gets by itself): the recording ends when it does, in 5 s at the latest. A "
        "second one kills the command and all it started, a third ends whyslow at once. With -p, "
        "-a or --cgroup the first ends the recording. Killing whyslow leaves the target running "
        "and what was recorded readable; what it left in /tmp is removed by the next run.\n\n"
        "At its end record says on stderr how good the recording is: samples, complete and "
        "truncated stacks, losses, sampled CPU time against the kernel's own account, and what "
        "recording cost; of waits and calls how many there were, how their stacks were found, "
        "what was lost and what it cost.",
    .options = record_options,
    .options_size = sizeof(struct record_cmd_opts),
    .stop = OPT_FIRST_OPERAND,
    .operands_min = 0,
    .operands_max = -1,
    .examples = record_examples,
    .run = record_run,
};
