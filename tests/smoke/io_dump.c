/* Runs a command under the io collector and prints every row of calls as a line of JSON, for
 * io_kernel.py to judge:
 *
 *     io_dump [-u] [-s] [-q] [-r BYTES] [-o FILE] [-g FILE] [-e FILE] [-p PID|-a -d SECONDS] --
 * /PATH/COMMAND…
 *
 * -u: by the library in the target, not by the kernel, -s: with stacks, -q: with requests, -r: a
 * ring of so few bytes, -o: what the command prints goes there, -g: is made when recording has
 * begun, -e: ends it when it is made. The first line has the counters. */
#include "base/clock.h"
#include "base/jsonw.h"
#include "collect/cpu.h"
#include "collect/io.h"
#include "model/sink_memory.h"
#include "target/preload.h"
#include "target/spawn.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FDS_MAX = 512, NAMES_MAX = 256, POLL_MS = 100 };

struct run {
    struct sink_memory memory;
    struct collector *cpu, *io;
    struct spawn *spawn;
    struct preload *preload; /* -u */
    uint32_t *function_of;   /* by frame */
};

static int fail(const char *what, const struct why *why)
{
    fprintf(stderr, "io_dump: %s: %s\n", what, why->what);
    return 4;
}

/* Innermost first; what has no name is "?". */
static void stack_print(struct jsonw *json, const struct run *run, uint32_t stack)
{
    const struct sink_memory *memory = &run->memory;
    jsonw_array_begin(json);
    for (int i = 0; i < NAMES_MAX && stack != 0; i++) {
        const struct stack_node *node = &memory->interned.stacks.data[stack - 1];
        struct frame_info frame = interned_frame_get(&memory->interned, node->frame);
        uint32_t function = run->function_of[node->frame];
        if (function != 0)
            jsonw_text(json, intern_get(&memory->interned.texts,
                                        memory->functions.data[function - 1].name));
        else
            jsonw_text(json, frame.kind == FRAME_UNKNOWN ? STR("[unknown]") : STR("?"));
        stack = node->parent;
    }
    jsonw_array_end(json);
}

static void thread_print(struct jsonw *json, const struct run *run, uint32_t thread)
{
    if (thread == 0) {
        jsonw_null(json);
        return;
    }
    const struct memory_thread *of = &run->memory.threads.data[thread - 1];
    const struct memory_process *process = &run->memory.processes.data[of->info.process - 1];
    jsonw_array_begin(json);
    jsonw_u64(json, process->info.pid);
    jsonw_u64(json, of->info.tid);
    jsonw_text(json, of->info.name);
    jsonw_array_end(json);
}

static void u64_print(struct jsonw *json, const char *key, uint64_t value)
{
    jsonw_key(json, key);
    jsonw_u64(json, value);
}

static void row_print(const struct run *run, size_t index)
{
    const struct call_row *row = &run->memory.calls.calls.data[index];
    const struct call_info *info = &row->info;
    const struct call_tally *tally = &row->tally;
    struct jsonw json;
    jsonw_init(&json, stdout, 0);
    jsonw_object_begin(&json);
    jsonw_key(&json, "thread");
    thread_print(&json, run, info->thread);
    jsonw_key(&json, "stack");
    stack_print(&json, run, info->stack);
    jsonw_key(&json, "syscall");
    jsonw_i64(&json, info->syscall);
    u64_print(&json, "error", info->error);
    u64_print(&json, "flags", info->flags);
    if (info->object != 0) {
        const struct object_info *object = &run->memory.book.objects.data[info->object - 1].info;
        u64_print(&json, "object", info->object);
        u64_print(&json, "object_kind", object->kind);
        u64_print(&json, "object_flags", object->flags);
        jsonw_key(&json, "name");
        jsonw_text(&json, object->name);
    }
    u64_print(&json, "count", tally->count);
    u64_print(&json, "total_ns", tally->total_ns);
    u64_print(&json, "max_ns", tally->max_ns);
    u64_print(&json, "bytes", tally->bytes);
    u64_print(&json, "asked_bytes", tally->asked_bytes);
    u64_print(&json, "partial", tally->partial);
    u64_print(&json, "placed", tally->placed);
    u64_print(&json, "sequential", tally->sequential);
    u64_print(&json, "missed", tally->missed);
    u64_print(&json, "missed_bytes", tally->missed_bytes);
    uint64_t bucketed = 0, sized = 0;
    for (size_t i = 0; i < WAIT_BUCKETS; i++)
        bucketed += tally->buckets[i];
    for (size_t i = 0; i < CALL_SIZES; i++)
        sized += tally->sizes[i];
    u64_print(&json, "bucketed", bucketed);
    u64_print(&json, "sized", sized);
    jsonw_object_end(&json);
    printf("\n");
}

static void facts_print(const struct run *run)
{
    struct jsonw json;
    uint64_t io_ns = 0;
    uint32_t series = sink_memory_series(&run->memory, "io");
    for (size_t i = 0; i < run->memory.samples.len; i++) {
        const struct sample *sample = &run->memory.samples.data[i];
        io_ns += sample->series == series ? sample->weight : 0;
    }
    jsonw_init(&json, stdout, 0);
    jsonw_object_begin(&json);
    for (size_t i = 0; i < run->memory.counters.len; i++)
        u64_print(&json, run->memory.counters.data[i].name, run->memory.counters.data[i].value);
    u64_print(&json, "io_ns", io_ns);
    u64_print(&json, "threads", run->memory.threads.len);
    u64_print(&json, "processes", run->memory.processes.len);
    u64_print(&json, "own_pid", (uint64_t)getpid());
    jsonw_object_end(&json);
    printf("\n");
}

static void names_join(struct run *run)
{
    const struct sink_memory *memory = &run->memory;
    run->function_of = calloc(memory->interned.frames.len + 1, sizeof(*run->function_of));
    for (size_t i = 0; run->function_of && i < memory->locations.len; i++)
        if (memory->locations.data[i].depth == 0)
            run->function_of[memory->locations.data[i].frame] = memory->locations.data[i].function;
}

/* Until the command or the time is over, or somebody has made that file. */
static int collect(struct run *run, uint64_t end_ns, const char *end, struct why *why)
{
    struct pollfd fds[FDS_MAX];
    for (;;) {
        size_t count = cpu_poll_fds(run->cpu, fds, FDS_MAX / 2);
        count += io_poll_fds(run->io, fds + count, FDS_MAX / 2 - 1);
        if (run->spawn)
            fds[count++] = (struct pollfd){.fd = spawn_event_fd(run->spawn), .events = POLLIN};
        poll(fds, count, POLL_MS);
        int r = run->spawn ? spawn_wait(run->spawn, clock_mono_ns() + NS_PER_MS, why) : 0;
        bool over = r > 0 || (end_ns != 0 && clock_mono_ns() >= end_ns) ||
                    (end && access(end, F_OK) == 0);
        if (r >= 0)
            r = collector_cpu.drain(run->cpu, why);
        if (r == 0)
            r = collector_io.drain(run->io, why);
        if (r < 0 || over)
            return r;
    }
}

static int finish(struct run *run, struct why *why)
{
    int r = collector_io.stop(run->io, why);
    if (r == 0)
        r = collector_cpu.stop(run->cpu, why);
    if (r == 0)
        r = collector_io.finish(run->io, why);
    return r < 0 ? r : collector_cpu.finish(run->cpu, why);
}

static int run_begin(struct run *run, struct why *why)
{
    uint64_t start_ns = clock_mono_ns();
    int r = collector_cpu.begin(run->cpu, start_ns, why);
    if (r == 0)
        r = collector_io.begin(run->io, start_ns, why);
    return r == 0 && run->spawn ? spawn_release(run->spawn, why) : r;
}

/* A command with its path: it is not searched for. */
static int command_start(struct run *run, char **argv, const char *output, struct why *why)
{
    struct spawn_opts spawn = {
        .argv = argv,
        .path = argv[0],
        .input = SPAWN_INHERIT,
        .output = output ? SPAWN_FILE : SPAWN_NULL,
        .output_path = output,
        .error = SPAWN_INHERIT,
        .hold = true,
        .environment = run->preload ? preload_environment(run->preload) : NULL,
    };
    return spawn_start(&spawn, &run->spawn, why);
}

int main(int argc, char **argv)
{
    struct run run = {.memory = SINK_MEMORY_INIT};
    struct io_opts opts = {.calls = true, .tier = TIER_KERNEL};
    struct why why = {0};
    int option, pid = 0;
    const char *output = NULL, *go = NULL, *end = NULL;
    bool machine = false;
    uint64_t seconds = 0;
    while ((option = getopt(argc, argv, "+ausqr:p:d:o:g:e:")) != -1) {
        machine |= option == 'a';
        opts.tier = option == 'u' ? TIER_USER : opts.tier;
        opts.stacks |= option == 's';
        opts.requests |= option == 'q';
        opts.ring_bytes = option == 'r' ? (uint32_t)atoi(optarg) : opts.ring_bytes;
        output = option == 'o' ? optarg : output;
        go = option == 'g' ? optarg : go;
        end = option == 'e' ? optarg : end;
        pid = option == 'p' ? atoi(optarg) : pid;
        seconds = option == 'd' ? (uint64_t)atoi(optarg) : seconds;
    }
    if (opts.tier == TIER_USER && preload_open(&run.preload, &why) < 0)
        return fail("library", &why);
    if (pid == 0 && !machine) {
        if (command_start(&run, argv + optind, output, &why) < 0)
            return fail("start", &why);
        pid = spawn_pid(run.spawn);
    }
    struct cpu_opts cpu = {
        .scope = machine     ? TARGET_SYSTEM
                 : run.spawn ? TARGET_SPAWNED
                             : TARGET_ATTACHED,
        .pid = pid,
        .command = run.spawn ? argv[optind] : NULL,
        .rate_hz = CPU_RATE_HZ,
        .no_samples = true,
    };
    if (cpu_start(&cpu, &run.memory.sink, &run.cpu, &why) < 0)
        return fail("cpu", &why);
    struct collector_target target = {.pid = pid,
                                      .start_ns = clock_mono_ns(),
                                      .command = cpu.command,
                                      .scope = cpu.scope,
                                      .cpu = run.cpu,
                                      .preload = run.preload};
    if (io_start(&opts, &target, &run.memory.sink, &run.io, &why) < 0)
        return fail("io", &why);
    if (run_begin(&run, &why) < 0)
        return fail("begin", &why);
    FILE *begun = go ? fopen(go, "w") : NULL;
    if (begun)
        fclose(begun);
    if (collect(&run, seconds ? clock_mono_ns() + seconds * NS_PER_SEC : 0, end, &why) < 0 ||
        finish(&run, &why) < 0)
        return fail("collect", &why);
    names_join(&run);
    facts_print(&run);
    for (size_t i = 0; i < run.memory.calls.calls.len; i++)
        row_print(&run, i);
    collector_io.close(run.io);
    collector_cpu.close(run.cpu);
    struct spawn_result result;
    if (run.spawn && spawn_finish(run.spawn, &result, &why) < 0)
        return fail("finish", &why);
    spawn_close(run.spawn);
    preload_close(run.preload);
    free(run.function_of);
    sink_memory_deinit(&run.memory);
    return 0;
}
