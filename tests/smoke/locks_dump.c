/* Runs a command with the library for locks in it and prints what it told, one row a line:
 *
 *     wait|hold|open TID OBJECT COUNT TOTAL_NS MAX_NS FLAGS WAKER_TID EVENTS OWNED_NS OWNER_OFF_NS
 * STACK thread TID counter NAME VALUE
 *
 * STACK is the names of functions, innermost first, joined by ";". */
#include "base/clock.h"
#include "collect/cpu.h"
#include "collect/locks_user.h"
#include "collect/stacks.h"
#include "model/sink_memory.h"
#include "target/program.h"
#include "target/spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const struct why *why)
{
    fprintf(stderr, "locks-dump: %s\n%s\n", why->what, why->remedy);
    exit(5);
}

static uint32_t tid_of(const struct sink_memory *memory, uint32_t thread)
{
    return thread ? memory->threads.data[thread - 1].info.tid : 0;
}

static void frame_print(const struct sink_memory *memory, uint32_t frame)
{
    for (size_t i = 0; i < memory->locations.len; i++) {
        const struct location_info *location = &memory->locations.data[i];
        if (location->frame != frame || location->depth != 0)
            continue;
        uint32_t name = memory->functions.data[location->function - 1].name;
        struct str text = intern_get(&memory->interned.texts, name);
        printf("%.*s;", (int)text.len, text.data);
        return;
    }
    printf("[unknown];");
}

static void stack_print(const struct sink_memory *memory, uint32_t stack)
{
    while (stack != 0) {
        const struct stack_node *row = &memory->interned.stacks.data[stack - 1];
        frame_print(memory, row->frame);
        stack = row->parent;
    }
    printf("\n");
}

static void rows_print(const struct sink_memory *memory)
{
    for (size_t i = 0; i < memory->book.waits.len; i++) {
        const struct wait_row *row = &memory->book.waits.data[i];
        size_t events = 0;
        for (size_t j = 0; j < memory->wait_events.len; j++)
            events += memory->wait_events.data[j].wait == i + 1;
        printf("%s %u %llx %llu %llu %llu %u %u %zu %llu %llu ",
               row->info.kind == WAIT_HOLD   ? "hold"
               : row->info.flags & WAIT_OPEN ? "open"
                                             : "wait",
               tid_of(memory, row->info.thread),
               (unsigned long long)memory->book.objects.data[row->info.object - 1].info.key,
               (unsigned long long)row->tally.count, (unsigned long long)row->tally.total_ns,
               (unsigned long long)row->tally.max_ns, row->info.flags,
               tid_of(memory, row->info.waker_thread), events,
               (unsigned long long)row->tally.owned_ns,
               (unsigned long long)row->tally.owner_off_ns);
        stack_print(memory, row->info.stack);
    }
    for (size_t i = 0; i < memory->threads.len; i++)
        printf("thread %u\n", memory->threads.data[i].info.tid);
    for (size_t i = 0; i < memory->counters.len; i++)
        printf("counter %s %llu\n", memory->counters.data[i].name,
               (unsigned long long)memory->counters.data[i].value);
}

struct run {
    struct preload *preload;
    struct spawn *spawn;
    struct collector *cpu, *locks;
};

static void run_start(struct run *run, char **argv, struct sink *sink, struct why *why)
{
    char path[PATH_MAX];
    if (preload_open(&run->preload, why) < 0 || program_find(argv[0], path, why) < 0)
        fail(why);
    struct spawn_opts opts = {
        .argv = argv,
        .path = path,
        .input = SPAWN_NULL,
        .output = SPAWN_INHERIT,
        .error = SPAWN_INHERIT,
        .foreground = true,
        .hold = true,
        .environment = preload_environment(run->preload),
    };
    if (spawn_start(&opts, &run->spawn, why) < 0)
        fail(why);
    struct cpu_opts cpu = {.scope = TARGET_SPAWNED,
                           .pid = spawn_pid(run->spawn),
                           .rate_hz = CPU_RATE_HZ,
                           .no_samples = true,
                           .switches = true};
    if (cpu_start(&cpu, sink, &run->cpu, why) < 0)
        fail(why);
    struct collector_target target = {
        .pid = cpu.pid, .scope = TARGET_SPAWNED, .cpu = run->cpu, .start_ns = clock_mono_ns()};
    if (locks_user_start(run->preload, &target, sink, &run->locks, why) < 0 ||
        collector_cpu.begin(run->cpu, clock_mono_ns(), why) < 0 ||
        spawn_release(run->spawn, why) < 0)
        fail(why);
}

static void run_drain(const struct run *run, uint64_t until_ns, struct why *why)
{
    struct pollfd fds[2] = {{.fd = spawn_event_fd(run->spawn), .events = POLLIN}};
    int ended = 0;
    locks_user_poll_fds(run->locks, fds + 1, 1);
    while (ended == 0 && clock_mono_ns() < until_ns) {
        poll(fds, 2, 100);
        ended = spawn_wait(run->spawn, fds[0].revents ? clock_mono_ns() + NS_PER_MS : 0, why);
        if (ended < 0 || collector_cpu.drain(run->cpu, why) < 0 ||
            locks_user_ops.drain(run->locks, why) < 0)
            fail(why);
    }
}

int main(int argc, char **argv)
{
    struct sink_memory memory = SINK_MEMORY_INIT;
    struct why why = {0};
    struct run run = {0};
    struct spawn_result result = {0};
    if (argc < 3)
        return 2;
    /* So long at most: a target that hangs is ended, and its open waits are told. */
    uint64_t until_ns = clock_mono_ns() + strtoull(argv[1], NULL, 10) * NS_PER_MS;
    run_start(&run, argv + 2, &memory.sink, &why);
    run_drain(&run, until_ns, &why);
    if (locks_user_ops.stop(run.locks, &why) < 0 || collector_cpu.stop(run.cpu, &why) < 0 ||
        locks_user_ops.finish(run.locks, &why) < 0 || collector_cpu.finish(run.cpu, &why) < 0)
        fail(&why);
    if (clock_mono_ns() < until_ns && spawn_finish(run.spawn, &result, &why) < 0)
        fail(&why);
    rows_print(&memory);
    printf("na %s\nstatus %d\nlibrary %s\n",
           locks_user_na(run.locks) ? locks_user_na(run.locks) : "-", result.status,
           preload_path(run.preload));
    locks_user_ops.close(run.locks);
    collector_cpu.close(run.cpu);
    spawn_close(run.spawn);
    preload_close(run.preload);
    sink_memory_deinit(&memory);
    return 0;
}
