/* Runs a command under the kernel tier of the heap collector, or looks at one that runs, and
 * prints all rows as one object of JSON, for heap_kernel.py to judge:
 *
 *     heap_dump [-o FILE] [-l] [-S MS] [-w N] [-p PID -d SECONDS|-e FILE] -- /PATH/COMMAND…
 *
 * -o: what the command prints goes there; -l: with every event; -S: a snapshot every so often;
 * -w: freed before the Nth next allocation is temporary; -e: looks until that file is made. */
#include "base/clock.h"
#include "base/jsonw.h"
#include "collect/cpu.h"
#include "collect/heap_kernel.h"
#include "model/sink_memory.h"
#include "target/spawn.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FDS_MAX = 512, NAMES_MAX = 256, POLL_MS = 100 };

struct run {
    struct sink_memory memory;
    struct collector *cpu, *heap;
    struct spawn *spawn;
    uint32_t *function_of; /* by frame */
};

static int fail(const char *what, const struct why *why)
{
    fprintf(stderr, "heap_dump: %s: %s; %s\n", what, why->what, why->remedy);
    return 4;
}

static void u64_print(struct jsonw *json, const char *key, uint64_t value)
{
    jsonw_key(json, key);
    jsonw_u64(json, value);
}

static void i64_print(struct jsonw *json, const char *key, int64_t value)
{
    jsonw_key(json, key);
    jsonw_i64(json, value);
}

/* Innermost first; what has no name is "?". */
static void stack_print(struct jsonw *json, const struct run *run, uint32_t stack)
{
    const struct sink_memory *memory = &run->memory;
    jsonw_key(json, "stack");
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

static void site_print(struct jsonw *json, const struct run *run, const struct heap_site_row *site)
{
    const struct memory_thread *thread = &run->memory.threads.data[site->info.thread - 1];
    const struct heap_tally *tally = &site->tally;
    jsonw_object_begin(json);
    u64_print(json, "process", thread->info.process);
    u64_print(json, "pid", run->memory.processes.data[thread->info.process - 1].info.pid);
    u64_print(json, "tid", thread->info.tid);
    stack_print(json, run, site->info.stack);
    u64_print(json, "allocations", tally->allocations);
    u64_print(json, "allocated_bytes", tally->allocated_bytes);
    u64_print(json, "frees", tally->frees);
    u64_print(json, "freed_bytes", tally->freed_bytes);
    u64_print(json, "temporary", tally->temporary);
    u64_print(json, "temporary_bytes", tally->temporary_bytes);
    i64_print(json, "peak_count", tally->peak_count);
    i64_print(json, "peak_bytes", tally->peak_bytes);
    u64_print(json, "grown", tally->grown);
    u64_print(json, "grown_bytes", tally->grown_bytes);
    u64_print(json, "moved", tally->moved);
    u64_print(json, "chain_max", tally->chain_max);
    u64_print(json, "size_max", tally->size_max);
    u64_print(json, "lived_ns", tally->lived_ns);
    jsonw_object_end(json);
}

static void process_print(struct jsonw *json, const struct run *run,
                          const struct heap_process_book *book)
{
    const struct heap_process_tally *tally = &book->tally;
    const struct memory_process *process = &run->memory.processes.data[book->process - 1];
    uint64_t sizes = 0, lives = 0;
    for (size_t i = 0; i < HEAP_SIZE_BUCKETS; i++)
        sizes += tally->sizes[i];
    for (size_t i = 0; i < HEAP_LIFE_BUCKETS; i++)
        lives += tally->lives[i];
    jsonw_object_begin(json);
    u64_print(json, "process", book->process);
    u64_print(json, "pid", process->info.pid);
    jsonw_key(json, "exe");
    jsonw_text(json, process->info.exe);
    u64_print(json, "peak_bytes", tally->peak_bytes);
    u64_print(json, "peak_count", tally->peak_count);
    u64_print(json, "unseen_frees", tally->unseen_frees);
    u64_print(json, "inherited_frees", tally->inherited_frees);
    u64_print(json, "inherited_bytes", tally->inherited_bytes);
    u64_print(json, "failed", tally->failed);
    u64_print(json, "sizes", sizes);
    u64_print(json, "lives", lives);
    u64_print(json, "moments", book->moments.len);
    jsonw_object_end(json);
}

static void snapshot_print(struct jsonw *json, const struct run *run, uint32_t id)
{
    const struct sink_memory *memory = &run->memory;
    int64_t count = 0, bytes = 0;
    for (size_t i = 0; i < memory->heap_snapshot_rows.len; i++) {
        const struct heap_snapshot_row *row = &memory->heap_snapshot_rows.data[i];
        count += row->snapshot == id ? row->count : 0;
        bytes += row->snapshot == id ? row->bytes : 0;
    }
    jsonw_object_begin(json);
    u64_print(json, "process", memory->heap_snapshots.data[id - 1].process);
    u64_print(json, "time_ns", memory->heap_snapshots.data[id - 1].time_ns);
    i64_print(json, "count", count);
    i64_print(json, "bytes", bytes);
    jsonw_object_end(json);
}

static void facts_print(struct jsonw *json, const struct run *run)
{
    const struct sink_memory *memory = &run->memory;
    const char *na = heap_kernel_na(run->heap);
    jsonw_key(json, "counters");
    jsonw_object_begin(json);
    for (size_t i = 0; i < memory->counters.len; i++)
        u64_print(json, memory->counters.data[i].name, memory->counters.data[i].value);
    jsonw_object_end(json);
    jsonw_key(json, "na");
    jsonw_text(json, str_from(na ? na : ""));
    jsonw_key(json, "document");
    for (size_t i = 0; i < memory->documents.len; i++)
        if (strcmp(memory->documents.data[i].name, "heap") == 0) {
            jsonw_text(json, memory->documents.data[i].json);
            return;
        }
    jsonw_null(json);
}

static void print(const struct run *run)
{
    const struct sink_memory *memory = &run->memory;
    struct jsonw json;
    jsonw_init(&json, stdout, 0);
    jsonw_object_begin(&json);
    facts_print(&json, run);
    u64_print(&json, "events", memory->heap_events.len);
    jsonw_key(&json, "processes");
    jsonw_array_begin(&json);
    for (size_t i = 0; i < memory->heap.processes.len; i++)
        if (memory->heap.processes.data[i].known)
            process_print(&json, run, &memory->heap.processes.data[i]);
    jsonw_array_end(&json);
    jsonw_key(&json, "sites");
    jsonw_array_begin(&json);
    for (size_t i = 0; i < memory->heap.sites.len; i++)
        site_print(&json, run, &memory->heap.sites.data[i]);
    jsonw_array_end(&json);
    jsonw_key(&json, "snapshots");
    jsonw_array_begin(&json);
    for (uint32_t i = 1; i <= memory->heap_snapshots.len; i++)
        snapshot_print(&json, run, i);
    jsonw_array_end(&json);
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
        count += heap_kernel_poll_fds(run->heap, fds + count, FDS_MAX / 2 - 1);
        if (run->spawn)
            fds[count++] = (struct pollfd){.fd = spawn_event_fd(run->spawn), .events = POLLIN};
        poll(fds, count, POLL_MS);
        int r = run->spawn ? spawn_wait(run->spawn, clock_mono_ns() + NS_PER_MS, why) : 0;
        bool over = r > 0 || (end_ns != 0 && clock_mono_ns() >= end_ns) ||
                    (end && access(end, F_OK) == 0);
        if (r >= 0)
            r = collector_cpu.drain(run->cpu, why);
        if (r == 0)
            r = heap_kernel_ops.drain(run->heap, why);
        if (r < 0 || over)
            return r;
    }
}

static int finish(struct run *run, struct why *why)
{
    int r = heap_kernel_ops.stop(run->heap, why);
    if (r == 0)
        r = collector_cpu.stop(run->cpu, why);
    if (r == 0)
        r = heap_kernel_ops.finish(run->heap, why);
    return r < 0 ? r : collector_cpu.finish(run->cpu, why);
}

int main(int argc, char **argv)
{
    struct run run = {.memory = SINK_MEMORY_INIT};
    struct heap_opts opts = {.on = true, .tier = TIER_KERNEL};
    struct why why = {0};
    int option, pid = 0;
    const char *output = NULL, *end = NULL;
    uint64_t seconds = 0;
    while ((option = getopt(argc, argv, "+lo:S:w:p:d:e:")) != -1) {
        opts.log |= option == 'l';
        output = option == 'o' ? optarg : output;
        end = option == 'e' ? optarg : end;
        opts.snapshot_ns = option == 'S' ? (uint64_t)atoi(optarg) * NS_PER_MS : opts.snapshot_ns;
        opts.temporary_within = option == 'w' ? (uint32_t)atoi(optarg) : opts.temporary_within;
        pid = option == 'p' ? atoi(optarg) : pid;
        seconds = option == 'd' ? (uint64_t)atoi(optarg) : seconds;
    }
    if (pid == 0) { /* a command with its path: it is not searched for */
        struct spawn_opts spawn = {
            .argv = argv + optind,
            .path = argv[optind],
            .input = SPAWN_INHERIT,
            .output = output ? SPAWN_FILE : SPAWN_NULL,
            .output_path = output,
            .error = SPAWN_INHERIT,
            .hold = true,
        };
        if (spawn_start(&spawn, &run.spawn, &why) < 0)
            return fail("start", &why);
        pid = spawn_pid(run.spawn);
    }
    struct cpu_opts cpu = {
        .scope = run.spawn ? TARGET_SPAWNED : TARGET_ATTACHED,
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
                                      .program = cpu.command,
                                      .scope = cpu.scope,
                                      .cpu = run.cpu};
    if (heap_kernel_start(&opts, &target, &run.memory.sink, &run.heap, &why) < 0)
        return fail("heap", &why);
    uint64_t start_ns = clock_mono_ns();
    if (collector_cpu.begin(run.cpu, start_ns, &why) < 0 ||
        heap_kernel_ops.begin(run.heap, start_ns, &why) < 0)
        return fail("begin", &why);
    if (!run.spawn)
        fprintf(stderr, "started\n"); /* who waits for us may go on */
    if (run.spawn && spawn_release(run.spawn, &why) < 0)
        return fail("release", &why);
    if (collect(&run, seconds ? clock_mono_ns() + seconds * NS_PER_SEC : 0, end, &why) < 0 ||
        finish(&run, &why) < 0)
        return fail("collect", &why);
    names_join(&run);
    print(&run);
    free(run.function_of);
    heap_kernel_ops.close(run.heap);
    collector_cpu.close(run.cpu);
    struct spawn_result result;
    if (run.spawn && spawn_finish(run.spawn, &result, &why) < 0)
        return fail("finish", &why);
    spawn_close(run.spawn);
    sink_memory_deinit(&run.memory);
    return 0;
}
