/* Promises of collect/usage.c, and of the table of collectors. */
#include "unit.h"

#include "base/clock.h"
#include "collect/usage.h"
#include "target/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A sink that sums up. */
enum { NAMES_MAX = 32, PROCESSES_MAX = 16 };

struct catcher {
    struct sink sink;
    size_t series_count;
    char names[NAMES_MAX][32];
    enum series_kind kinds[NAMES_MAX];
    uint64_t sums[NAMES_MAX];
    uint64_t maxima[NAMES_MAX];
    uint64_t samples[NAMES_MAX];
    uint64_t last_ns;
    size_t process_count;
    uint32_t parents[PROCESSES_MAX];
    char commands[PROCESSES_MAX][256];
    int ends[PROCESSES_MAX];
    size_t thread_count;
    size_t threads_ended;
    size_t counter_count;
    uint64_t own_cpu_ns;
    uint64_t readings;
    uint64_t elapsed_ns;
    int refuse_samples; /* an errno */
};

static int catch_process(struct sink *sink, const struct process_info *info, uint32_t *ret_id)
{
    struct catcher *c = (struct catcher *)sink;
    assert_true(c->process_count < PROCESSES_MAX);
    c->parents[c->process_count] = info->parent;
    c->ends[c->process_count] = -77;
    snprintf(c->commands[c->process_count], sizeof(c->commands[0]), "%.*s", STR_FMT(info->command));
    *ret_id = (uint32_t)++c->process_count;
    return 0;
}
static int catch_process_end(struct sink *sink, uint32_t process, uint64_t end_ns, int status)
{
    (void)end_ns;
    struct catcher *c = (struct catcher *)sink;
    assert_in_range(process, 1, c->process_count);
    assert_int_equal(c->ends[process - 1], -77); /* ends once */
    c->ends[process - 1] = status;
    return 0;
}
static int catch_thread(struct sink *sink, const struct thread_info *info, uint32_t *ret_id)
{
    struct catcher *c = (struct catcher *)sink;
    assert_in_range(info->process, 1, c->process_count);
    *ret_id = (uint32_t)++c->thread_count;
    return 0;
}
static int catch_thread_end(struct sink *sink, uint32_t thread, uint64_t end_ns)
{
    (void)end_ns;
    struct catcher *c = (struct catcher *)sink;
    assert_in_range(thread, 1, c->thread_count);
    c->threads_ended++;
    return 0;
}
static int catch_series(struct sink *sink, const struct series_info *info, uint32_t *ret_id)
{
    struct catcher *c = (struct catcher *)sink;
    snprintf(c->names[c->series_count], sizeof(c->names[0]), "%s", info->name);
    c->kinds[c->series_count] = info->kind;
    *ret_id = (uint32_t)++c->series_count;
    return 0;
}
static int catch_sample(struct sink *sink, const struct sample *sample)
{
    struct catcher *c = (struct catcher *)sink;
    if (c->refuse_samples)
        return -c->refuse_samples;
    assert_in_range(sample->series, 1, c->series_count);
    assert_in_range(sample->thread, 1, c->thread_count);
    assert_true(sample->time_ns >= c->last_ns);
    c->last_ns = sample->time_ns;
    size_t i = sample->series - 1;
    c->sums[i] += sample->weight;
    c->samples[i]++;
    if (sample->weight > c->maxima[i])
        c->maxima[i] = sample->weight;
    return 0;
}
static int catch_counter(struct sink *sink, const char *name, enum unit unit, uint64_t add)
{
    (void)unit;
    struct catcher *c = (struct catcher *)sink;
    c->counter_count++;
    if (strcmp(name, "own.usage_cpu_ns") == 0)
        c->own_cpu_ns = add;
    if (strcmp(name, "usage.readings") == 0)
        c->readings = add;
    return 0;
}

static const struct sink_ops catcher_ops = {
    .process = catch_process,
    .process_end = catch_process_end,
    .thread = catch_thread,
    .thread_end = catch_thread_end,
    .series = catch_series,
    .sample = catch_sample,
    .counter = catch_counter,
};

static uint64_t sum_of(const struct catcher *c, const char *name)
{
    for (size_t i = 0; i < c->series_count; i++)
        if (strcmp(c->names[i], name) == 0)
            return c->kinds[i] == SERIES_SUM ? c->sums[i] : c->maxima[i];
    fail_msg("no series %s", name);
    return 0;
}

/* A FIFO that a script opens, which makes it wait until what is wanted was seen. */
struct gate {
    char path[64];
    bool (*seen)(const struct catcher *c);
};

static void gate_make(struct gate *gate, bool (*seen)(const struct catcher *c))
{
    snprintf(gate->path, sizeof(gate->path), "/tmp/whyslow-usage-%d", (int)getpid());
    unlink(gate->path);
    assert_int_equal(mkfifo(gate->path, 0600), 0);
    gate->seen = seen;
}

static void gate_try(const struct gate *gate, const struct catcher *c)
{
    int fd = gate->seen(c) ? open(gate->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    if (fd >= 0) /* else nobody is there yet */
        close(fd);
}

/* Runs the script under the collector as `whyslow run` does; NULL: without a gate. */
static void record(const char *script, const struct gate *gate, struct catcher *c,
                   struct spawn_result *result)
{
    uint64_t start_ns = clock_mono_ns();
    const char *argv[] = {"sh", "-c", script, NULL};
    struct spawn_opts opts = {.argv = (char *const *)argv,
                              .path = "/bin/sh",
                              .hold = true,
                              .timeout_ns = 600 * NS_PER_SEC};
    struct spawn *spawn = NULL;
    assert_int_equal(spawn_start(&opts, &spawn, NULL), 0);
    struct collector_target target = {spawn_pid(spawn), clock_mono_ns(), "the command"};
    struct collector *collector = NULL;
    c->sink.ops = &catcher_ops;
    assert_int_equal(collector_usage.start(&target, &c->sink, &collector, NULL), 0);
    assert_int_equal(spawn_release(spawn, NULL), 0);
    int r = 0;
    while (r == 0) {
        r = spawn_wait(spawn, clock_mono_ns() + 10 * NS_PER_MS, NULL);
        if (r == 0)
            assert_int_equal(collector_usage.drain(collector, NULL), 0);
        if (r == 0 && gate)
            gate_try(gate, c);
    }
    assert_int_equal(r, 1);
    assert_int_equal(collector_usage.stop(collector, NULL), 0);
    assert_int_equal(collector_usage.finish(collector, NULL), 0);
    collector_usage.close(collector);
    assert_int_equal(spawn_finish(spawn, result, NULL), 0);
    assert_false(result->timed_out);
    spawn_close(spawn);
    c->elapsed_ns = clock_mono_ns() - start_ns;
}

static void script(char *text, size_t size, const char *format, const char *arguments)
{
    char known[PATH_MAX];
    snprintf(known, sizeof(known), "%s/tests/workloads/known %s", getenv("BUILD_ROOT"), arguments);
    snprintf(text, size, format, known);
}

static uint64_t differ(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Its own: of a zombie no memory is known, and the time says that it is the program. */
static bool is_program_read(const struct catcher *c)
{
    return sum_of(c, "on_cpu") >= 300 * NS_PER_MS && sum_of(c, "rss") > 500000;
}

static void totals_agree_with_what_the_kernel_says_at_the_end(void **state)
{
    (void)state;
    char text[PATH_MAX + 256];
    struct catcher c = {0};
    struct spawn_result result;
    struct gate gate;
    gate_make(&gate, is_program_read);
    /* exec: one process, the whole run. */
    char arguments[160];
    snprintf(arguments, sizeof(arguments),
             "burn-ms=300 open=%s sleep-ms=120 write-mib=3 file=usage-test", gate.path);
    script(text, sizeof(text), "exec %s", arguments);
    record(text, &gate, &c, &result);
    unlink(gate.path);
    assert_int_equal(c.process_count, 1);
    assert_string_equal(c.commands[0], "the command");
    assert_true(WIFEXITED(c.ends[0]) && WEXITSTATUS(c.ends[0]) == 0);
    uint64_t cpu_ns = result.user_ns + result.system_ns;
    uint64_t in_ticks_ns = sum_of(&c, "cpu_user") + sum_of(&c, "cpu_system");
    /* on_cpu is exact; the zombie's is complete. The launcher's fork belongs to it too: 5 ms. */
    assert_true(sum_of(&c, "on_cpu") >= 300 * NS_PER_MS);
    assert_time(differ(sum_of(&c, "on_cpu"), cpu_ns) <= 5 * NS_PER_MS);
    /* Two clock ticks of 10 ms. */
    assert_true(in_ticks_ns >= 280 * NS_PER_MS);
    assert_time(differ(in_ticks_ns, cpu_ns) <= 20 * NS_PER_MS);
    assert_in_range(sum_of(&c, "write"), 3 << 20, (3 << 20) + 4096);
    assert_true(sum_of(&c, "switches_voluntary") >= 1);
    /* The steps before exec are in the one and not in the other. */
    assert_in_range(sum_of(&c, "switches_voluntary") + sum_of(&c, "switches_involuntary"), 1,
                    result.switches_voluntary + result.switches_involuntary + 10);
    assert_true(sum_of(&c, "rss") > 500000);
    assert_int_equal(sum_of(&c, "threads"), 1);
    assert_int_equal(c.threads_ended, c.thread_count);
    /* 20 a second at most, the first and last besides. */
    assert_in_range(c.readings, 2, c.elapsed_ns / (50 * NS_PER_MS) + 2);
    assert_time(c.readings >= result.wall_ns / (50 * NS_PER_MS) / 2);
    assert_true(c.own_cpu_ns > 0);
    assert_time(c.own_cpu_ns < 20 * NS_PER_MS);
    assert_true(c.counter_count >= 5);
}

static void what_came_after_the_last_reading_is_read_from_the_zombie(void **state)
{
    (void)state;
    char text[PATH_MAX + 256];
    struct catcher c = {0};
    struct spawn_result result;
    script(text, sizeof(text), "exec %s", "burn-ms=320"); /* busy to its last moment */
    record(text, NULL, &c, &result);
    uint64_t cpu_ns = result.user_ns + result.system_ns;
    assert_true(sum_of(&c, "on_cpu") >= 320 * NS_PER_MS);
    assert_time(differ(sum_of(&c, "on_cpu"), cpu_ns) <= 5 * NS_PER_MS);
}

static bool is_child_read(const struct catcher *c)
{
    return c->process_count == 2 && sum_of(c, "on_cpu") >= 200 * NS_PER_MS;
}

static void children_are_found_and_told_apart(void **state)
{
    (void)state;
    char text[2 * PATH_MAX];
    struct catcher c = {0};
    struct spawn_result result;
    struct gate gate;
    gate_make(&gate, is_child_read);
    char arguments[96];
    snprintf(arguments, sizeof(arguments), "burn-ms=200 open=%s", gate.path);
    script(text, sizeof(text), "%s & wait; exit 3", arguments);
    record(text, &gate, &c, &result);
    unlink(gate.path);
    assert_int_equal(c.process_count, 2);
    assert_int_equal(c.parents[0], 0);
    assert_int_equal(c.parents[1], 1);
    assert_non_null(strstr(c.commands[1], "burn-ms=200"));
    assert_true(WIFEXITED(c.ends[0]) && WEXITSTATUS(c.ends[0]) == 3);
    /* Nobody tells us how somebody else's child ended. */
    assert_true(c.ends[1] == -1 || c.ends[1] == 0);
}

static bool is_memory_read(const struct catcher *c)
{
    return sum_of(c, "rss") > 96 << 20 && sum_of(c, "pss") > 96 << 20;
}

static void memory_over_time_is_seen(void **state)
{
    (void)state;
    struct catcher c = {0};
    struct spawn_result result;
    struct gate gate;
    gate_make(&gate, is_memory_read);
    char text[256];
    snprintf(text, sizeof(text),
             "exec /usr/bin/python3 -c 'b = bytearray(96 << 20); open(\"%s\").read()'", gate.path);
    record(text, &gate, &c, &result);
    unlink(gate.path);
    assert_true(sum_of(&c, "pss") <= sum_of(&c, "rss") + (1 << 20));
}

static void a_full_disk_is_an_error_and_no_crash(void **state)
{
    (void)state;
    struct catcher c = {.sink.ops = &catcher_ops, .refuse_samples = ENOSPC};
    struct collector_target target = {getpid(), clock_mono_ns(), "self"};
    struct collector *collector = NULL;
    struct why why = {0};
    assert_int_equal(collector_usage.start(&target, &c.sink, &collector, &why), 0);
    assert_int_equal(collector_usage.drain(collector, &why), -ENOSPC);
    assert_int_equal(why.error, ENOSPC);
    assert_int_equal(collector_usage.finish(collector, &why), 0);
    collector_usage.close(collector);
    collector_usage.close(NULL);
}

static void every_collector_says_what_it_can_do_here(void **state)
{
    (void)state;
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    for (size_t i = 0; collectors[i]; i++) {
        struct collector_probe probe = {.tier = 99};
        collectors[i]->probe(&arena, &probe);
        assert_true(probe.tier <= TIER_KERNEL);
        assert_non_null(probe.gives);
        if (probe.tier == TIER_NONE)
            assert_non_null(probe.not_higher);
        if (collectors[i]->built)
            assert_true(collectors[i]->start && collectors[i]->drain && collectors[i]->stop &&
                        collectors[i]->finish && collectors[i]->close);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_agree_with_what_the_kernel_says_at_the_end),
        cmocka_unit_test(what_came_after_the_last_reading_is_read_from_the_zombie),
        cmocka_unit_test(children_are_found_and_told_apart),
        cmocka_unit_test(memory_over_time_is_seen),
        cmocka_unit_test(a_full_disk_is_an_error_and_no_crash),
        cmocka_unit_test(every_collector_says_what_it_can_do_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
