/* Promises of the user tier of waits on a real program: with switch records, and on the floor
 * without them. The program says itself how long it waited; how long that is is ours to say, when
 * we have looked often enough (tests/workloads/told.h). */
#include "unit.h"

#include "base/clock.h"
#include "collect/cpu.h"
#include "collect/offcpu_user.h"
#include "model/sink_memory.h"
#include "target/spawn.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
    FDS_MAX = 1024,
    LOOKS = 40, /* one would do for a shallow stack; whoever has read large tables rests for some */
};
/* It may lose the CPU after its wait and before it looks at the clock. */
#define SLACK_NS 40e6

/* All threads of the process, which has some. */
static bool is_asleep(pid_t pid)
{
    char path[300];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    size_t asleep = 0, others = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        char text[512] = "";
        snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (!file)
            continue;
        bool is = fgets(text, sizeof(text), file) && strstr(text, ") S ");
        asleep += is;
        others += !is;
        fclose(file);
    }
    if (folder)
        closedir(folder);
    return asleep > 0 && others == 0;
}

/* Runs the workload to its end; what it printed comes back. */
static void record(struct sink_memory *memory, bool switches, const char *mode, char *printed,
                   size_t size)
{
    char path[4096], name[32];
    const char *root = getenv("BUILD_ROOT");
    assert_non_null(root);
    snprintf(path, sizeof(path), "%s/tests/workloads/waits-user", root);
    snprintf(name, sizeof(name), "%s", mode);
    setenv("UNTIL_TOLD", "1", true);
    char *const argv[] = {path, name, NULL};
    struct why why = {0};
    struct spawn_opts spawn_opts = {
        .argv = argv, .path = path, .output = SPAWN_CAPTURE, .error = SPAWN_INHERIT, .hold = true};
    struct spawn *spawn = NULL;
    assert_int_equal(spawn_start(&spawn_opts, &spawn, &why), 0);
    struct cpu_opts cpu_opts = {.scope = TARGET_SPAWNED,
                                .pid = spawn_pid(spawn),
                                .rate_hz = 99,
                                .no_samples = true,
                                .switches = switches};
    struct collector *cpu = NULL, *offcpu = NULL;
    assert_int_equal(cpu_start(&cpu_opts, &memory->sink, &cpu, &why), 0);
    struct collector_target target = {
        .pid = spawn_pid(spawn), .start_ns = clock_mono_ns(), .scope = TARGET_SPAWNED, .cpu = cpu};
    struct offcpu_opts opts = {.waits = true, .tier = TIER_USER};
    assert_int_equal(offcpu_user_start(&opts, &target, &memory->sink, &offcpu, &why), 0);
    assert_int_equal(offcpu_user_tier(offcpu), switches ? TIER_USER : TIER_FLOOR);
    uint64_t start_ns = clock_mono_ns();
    assert_int_equal(collector_cpu.begin(cpu, start_ns, &why), 0);
    assert_int_equal(offcpu_user_ops.begin(offcpu, start_ns, &why), 0);
    assert_int_equal(spawn_release(spawn, &why), 0);
    struct pollfd fds[FDS_MAX];
    size_t count = cpu_poll_fds(cpu, fds, FDS_MAX - 2);
    count += offcpu_user_poll_fds(offcpu, fds + count, FDS_MAX - count);
    for (int ended = 0, looks = 0; !ended;) {
        poll(fds, count, 50);
        /* The last fd is that of the timer that makes it look. */
        looks = !is_asleep(spawn_pid(spawn)) ? 0 : looks + ((fds[count - 1].revents & POLLIN) != 0);
        if (looks > LOOKS)
            kill(spawn_pid(spawn), SIGUSR1);
        ended = spawn_wait(spawn, clock_mono_ns() + NS_PER_MS / 10, &why);
        assert_true(ended >= 0);
        assert_int_equal(collector_cpu.drain(cpu, &why), 0);
        assert_int_equal(offcpu_user_ops.drain(offcpu, &why), 0);
    }
    assert_int_equal(offcpu_user_ops.stop(offcpu, &why), 0);
    assert_int_equal(collector_cpu.stop(cpu, &why), 0);
    struct spawn_result result;
    assert_int_equal(spawn_finish(spawn, &result, &why), 0);
    assert_int_equal(result.status, 0);
    snprintf(printed, size, "%.*s", (int)result.output.tail_len, result.output.tail);
    assert_int_equal(offcpu_user_ops.finish(offcpu, &why), 0);
    assert_int_equal(collector_cpu.finish(cpu, &why), 0);
    offcpu_user_ops.close(offcpu);
    collector_cpu.close(cpu);
    spawn_close(spawn);
}

static uint64_t number_of(const char *printed, const char *key)
{
    const char *at = strstr(printed, key);
    assert_non_null(at);
    return strtoull(at + strlen(key) + 3, NULL, 10); /* "key": N */
}

/* The longest wait of all rows of a call. */
static const struct wait_row *row_of(const struct sink_memory *memory, int32_t syscall)
{
    const struct wait_row *found = NULL;
    for (size_t i = 0; i < memory->book.waits.len; i++) {
        const struct wait_row *row = &memory->book.waits.data[i];
        if (row->info.kind == WAIT_BLOCKED && row->info.syscall == syscall &&
            (!found || row->tally.total_ns > found->tally.total_ns))
            found = row;
    }
    return found;
}

static bool stack_has(const struct sink_memory *memory, uint32_t stack, const char *name)
{
    while (stack) {
        uint32_t frame = memory->interned.stacks.data[stack - 1].frame;
        for (size_t i = 0; i < memory->locations.len; i++) {
            const struct location_info *location = &memory->locations.data[i];
            if (location->frame != frame)
                continue;
            uint32_t text = memory->functions.data[location->function - 1].name;
            if (str_is(intern_get(&memory->interned.texts, text), name))
                return true;
        }
        stack = memory->interned.stacks.data[stack - 1].parent;
    }
    return false;
}

static void check_sleep(bool switches, double tolerance)
{
    struct sink_memory memory = SINK_MEMORY_INIT;
    char printed[512];
    record(&memory, switches, "sleep", printed, sizeof(printed));
    const struct wait_row *row = row_of(&memory, SYS_clock_nanosleep);
    assert_non_null(row);
    double truth_ns = (double)number_of(printed, "wait_ns"), seen_ns = (double)row->tally.total_ns;
    assert_time(seen_ns > truth_ns * (1 - tolerance) - SLACK_NS);
    assert_time(seen_ns < truth_ns * (1 + tolerance));
    assert_true(row->info.flags & WAIT_SAMPLED);
    assert_true(row->info.flags & WAIT_LIMITED);
    assert_true(stack_has(&memory, row->info.stack, "sleeps_here"));
    assert_true(stack_has(&memory, row->info.stack, "main"));
    assert_true(memory.wait_events.len >= 1);
    assert_non_null(sink_memory_counter(&memory, "waits.seen"));
    sink_memory_deinit(&memory);
}

/* The clock of the program against the kernel's records of the same thing. */
static void a_sleep_has_its_length_and_its_stack(void **state)
{
    (void)state;
    check_sleep(true, 0.05);
}

/* Two looks of 10 ms each may miss at either end, more on a machine that is busy. */
static void on_the_floor_a_sleep_is_as_long_as_it_was_seen(void **state)
{
    (void)state;
    check_sleep(false, 0.3);
}

static void a_wait_for_a_mutex_knows_the_lock_and_its_owner(void **state)
{
    (void)state;
    struct sink_memory memory = SINK_MEMORY_INIT;
    char printed[512];
    record(&memory, true, "lock", printed, sizeof(printed));
    const struct wait_row *found = row_of(&memory, SYS_futex);
    if (!found || found->info.object == 0) {
        fail_msg("no wait for a lock was seen");
        return;
    }
    assert_int_equal(found->info.detail, WAIT_FUTEX_VALUE_2);
    double truth_ns = (double)number_of(printed, "wait_ns");
    assert_time((double)found->tally.total_ns > truth_ns * 0.95 - SLACK_NS);
    assert_time((double)found->tally.total_ns < truth_ns * 1.05);
    const struct object_info *object = &memory.book.objects.data[found->info.object - 1].info;
    assert_int_equal(object->kind, OBJECT_FUTEX);
    assert_int_equal(object->key, number_of(printed, "mutex"));
    assert_true(object->process > 0);
    assert_true(stack_has(&memory, found->info.stack, "waits_for_the_lock"));
    /* It held the lock asleep. */
    assert_true(found->info.waker_thread > 0);
    assert_true(found->info.waker_thread != found->info.thread);
    assert_true(found->tally.owner_off_ns > 0);
    assert_true(found->tally.owner_off_ns <= found->tally.owned_ns);
    assert_true(found->tally.owned_ns <= found->tally.total_ns);
    assert_time(found->tally.owned_ns > found->tally.total_ns / 2);
    assert_time(found->tally.owner_off_ns > found->tally.owned_ns / 2);
    sink_memory_deinit(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleep_has_its_length_and_its_stack),
        cmocka_unit_test(on_the_floor_a_sleep_is_as_long_as_it_was_seen),
        cmocka_unit_test(a_wait_for_a_mutex_knows_the_lock_and_its_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
