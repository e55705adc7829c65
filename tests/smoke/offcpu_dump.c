/* Runs a command under the off-CPU collector and prints every row of waits as a line of JSON, for
 * offcpu.py to judge:
 *
 *     offcpu_dump [-l] [-L] [-k] [-o FILE] [-p PID|-a -d SECONDS|-w PID] -- /PATH/COMMAND…
 *
 * -l: with locks, -L: only locks, -k: the kernel tier or nothing, -o: what the command prints goes
 * there, -w: until this process has fallen asleep so often. The first line has the counters. */
#include "base/clock.h"
#include "base/jsonw.h"
#include "collect/cpu.h"
#include "collect/offcpu.h"
#include "model/sink_memory.h"
#include "target/proc.h"
#include "target/spawn.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FDS_MAX = 512, NAMES_MAX = 256, POLL_MS = 100, SWITCHES = 100 };

struct run {
    struct sink_memory memory;
    struct collector *cpu, *offcpu;
    struct spawn *spawn;
    uint32_t *function_of; /* by frame */
};

static int fail(const char *what, const struct why *why)
{
    fprintf(stderr, "offcpu_dump: %s: %s\n", what, why->what);
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
    const struct wait_row *row = &run->memory.book.waits.data[index];
    const struct wait_info *info = &row->info;
    struct jsonw json;
    jsonw_init(&json, stdout, 0);
    jsonw_object_begin(&json);
    u64_print(&json, "kind", info->kind);
    jsonw_key(&json, "thread");
    thread_print(&json, run, info->thread);
    jsonw_key(&json, "stack");
    stack_print(&json, run, info->stack);
    jsonw_key(&json, "waker");
    thread_print(&json, run, info->waker_thread);
    jsonw_key(&json, "waker_stack");
    stack_print(&json, run, info->waker_stack);
    jsonw_key(&json, "syscall");
    jsonw_i64(&json, info->syscall);
    u64_print(&json, "flags", info->flags);
    u64_print(&json, "detail", info->detail);
    if (info->object != 0) {
        const struct object_info *object = &run->memory.book.objects.data[info->object - 1].info;
        u64_print(&json, "object_kind", object->kind);
        u64_print(&json, "object_flags", object->flags);
        u64_print(&json, "object_key", object->key);
        jsonw_key(&json, "object_name");
        jsonw_text(&json, object->name);
    }
    u64_print(&json, "count", row->tally.count);
    u64_print(&json, "total_ns", row->tally.total_ns);
    u64_print(&json, "max_ns", row->tally.max_ns);
    u64_print(&json, "owned_ns", row->tally.owned_ns);
    u64_print(&json, "owner_off_ns", row->tally.owner_off_ns);
    uint64_t bucketed = 0, events = 0;
    for (size_t i = 0; i < WAIT_BUCKETS; i++)
        bucketed += row->tally.buckets[i];
    for (size_t i = 0; i < run->memory.wait_events.len; i++)
        events += run->memory.wait_events.data[i].wait == index + 1;
    u64_print(&json, "bucketed", bucketed);
    u64_print(&json, "events", events);
    jsonw_object_end(&json);
    printf("\n");
}

static void facts_print(const struct run *run)
{
    struct jsonw json;
    uint64_t running_ns = 0, offcpu_ns = 0;
    uint32_t running = sink_memory_series(&run->memory, "running");
    uint32_t offcpu = sink_memory_series(&run->memory, "offcpu");
    for (size_t i = 0; i < run->memory.samples.len; i++) {
        const struct sample *sample = &run->memory.samples.data[i];
        running_ns += sample->series == running ? sample->weight : 0;
        offcpu_ns += sample->series == offcpu ? sample->weight : 0;
    }
    jsonw_init(&json, stdout, 0);
    jsonw_object_begin(&json);
    for (size_t i = 0; i < run->memory.counters.len; i++)
        u64_print(&json, run->memory.counters.data[i].name, run->memory.counters.data[i].value);
    u64_print(&json, "running_ns", running_ns);
    u64_print(&json, "offcpu_ns", offcpu_ns);
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

static uint64_t switches(int pid)
{
    uint64_t voluntary = 0, involuntary = 0;
    return pid > 0 && proc_switches_read(pid, pid, &voluntary, &involuntary) == 0 ? voluntary : 0;
}

static int collect(struct run *run, uint64_t end_ns, int watched, struct why *why)
{
    struct pollfd fds[FDS_MAX];
    uint64_t first = switches(watched);
    for (;;) {
        size_t count = cpu_poll_fds(run->cpu, fds, FDS_MAX / 2);
        count += offcpu_poll_fds(run->offcpu, fds + count, FDS_MAX / 2 - 1);
        if (run->spawn)
            fds[count++] = (struct pollfd){.fd = spawn_event_fd(run->spawn), .events = POLLIN};
        poll(fds, count, POLL_MS);
        int r = run->spawn ? spawn_wait(run->spawn, clock_mono_ns() + NS_PER_MS, why) : 0;
        bool over = r > 0 || (end_ns != 0 && clock_mono_ns() >= end_ns) ||
                    (watched != 0 && switches(watched) >= first + SWITCHES);
        if (r >= 0)
            r = collector_cpu.drain(run->cpu, why);
        if (r == 0)
            r = collector_offcpu.drain(run->offcpu, why);
        if (r < 0 || over)
            return r;
    }
}

static int finish(struct run *run, struct why *why)
{
    int r = collector_offcpu.stop(run->offcpu, why);
    if (r == 0)
        r = collector_cpu.stop(run->cpu, why);
    if (r == 0)
        r = collector_offcpu.finish(run->offcpu, why);
    return r < 0 ? r : collector_cpu.finish(run->cpu, why);
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
    };
    return spawn_start(&spawn, &run->spawn, why);
}

int main(int argc, char **argv)
{
    struct run run = {.memory = SINK_MEMORY_INIT};
    struct offcpu_opts opts = {.waits = true};
    struct why why = {0};
    int option, pid = 0, watched = 0;
    const char *output = NULL;
    bool machine = false;
    uint64_t seconds = 0;
    while ((option = getopt(argc, argv, "+alLkp:d:o:w:")) != -1) {
        machine |= option == 'a';
        opts.locks |= option == 'l' || option == 'L';
        opts.waits &= option != 'L';
        opts.tier = option == 'k' ? TIER_KERNEL : opts.tier;
        output = option == 'o' ? optarg : output;
        pid = option == 'p' ? atoi(optarg) : pid;
        watched = option == 'w' ? atoi(optarg) : watched;
        seconds = option == 'd' ? (uint64_t)atoi(optarg) : seconds;
    }
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
                                      .cpu = run.cpu};
    if (offcpu_start(&opts, &target, &run.memory.sink, &run.offcpu, &why) < 0)
        return fail("offcpu", &why);
    uint64_t start_ns = clock_mono_ns();
    if (collector_cpu.begin(run.cpu, start_ns, &why) < 0 ||
        collector_offcpu.begin(run.offcpu, start_ns, &why) < 0)
        return fail("begin", &why);
    if (run.spawn && spawn_release(run.spawn, &why) < 0)
        return fail("release", &why);
    if (collect(&run, seconds ? clock_mono_ns() + seconds * NS_PER_SEC : 0, watched, &why) < 0 ||
        finish(&run, &why) < 0)
        return fail("collect", &why);
    names_join(&run);
    facts_print(&run);
    for (size_t i = 0; i < run.memory.book.waits.len; i++)
        row_print(&run, i);
    collector_offcpu.close(run.offcpu);
    collector_cpu.close(run.cpu);
    struct spawn_result result;
    if (run.spawn && spawn_finish(run.spawn, &result, &why) < 0)
        return fail("finish", &why);
    spawn_close(run.spawn);
    free(run.function_of);
    sink_memory_deinit(&run.memory);
    return 0;
}
