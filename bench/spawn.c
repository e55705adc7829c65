/* What measuring a run costs and bends: the wall time of /bin/true as measure_run() tells it
 * against bare posix_spawn and wait4, and runs a second beside hyperfine -N.
 *
 *     bench-spawn [RUNS [WHYSLOW]]
 *
 * The two ways take turns in small blocks, so that a machine that gets slower gets slower for
 * both. A rate is what more runs take more: what a command does before and after is printed
 * apart, and what it comes to with all of that. */
#include "base/clock.h"
#include "stats/summary.h"
#include "target/measure.h"
#include "target/program.h"

#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 25, ROUNDS = 5, PROCESSES = 25 };

static char *const true_argv[] = {(char[]){"/bin/true"}, NULL};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench-spawn: %s\n", what);
    exit(5);
}

static double bare_ms(const char *path, char *const *argv)
{
    pid_t pid;
    int status;
    uint64_t start_ns = clock_mono_ns();
    if (posix_spawn(&pid, path, NULL, NULL, argv, environ) != 0 || wait4(pid, &status, 0, NULL) < 0)
        fail("cannot start a program");
    return (double)(clock_mono_ns() - start_ns) / NS_PER_MS;
}

static double measured_ms(const struct measure_opts *opts)
{
    struct bench_run run;
    struct why why = {0};
    const char *missing[BENCH_METRICS] = {0};
    if (measure_run(opts, &run, missing, &why) < 0)
        fail(why.what);
    return run.value[BENCH_WALL];
}

static double median(const double *values, size_t count)
{
    struct summary s;
    if (summary_make(values, count, &s) < 0)
        fail("no figures");
    return s.median;
}

static bool report(const char *what, double value, const char *unit, double target, bool at_least)
{
    bool good = at_least ? value >= target : value <= target;
    printf("spawn  %-34s %14.2f %-12s target %s %-10.2f %s\n", what, value, unit,
           at_least ? ">=" : "<=", target, good ? "pass" : "MISS");
    return good;
}

/* Both ways in this process, in turns: medians of so many runs each. */
static void bias_once(size_t runs, double *ret_bare_ms, double *ret_ours_ms)
{
    struct measure_opts opts = {.argv = true_argv, .path = true_argv[0], .output = "null"};
    struct why why = {0};
    if (measure_nest_open(&opts, &opts.nest, &why) < 0)
        fail(why.what);
    double *bare = calloc(runs, sizeof(*bare)), *ours = calloc(runs, sizeof(*ours));
    if (!bare || !ours)
        fail("out of memory");
    for (size_t begin = 0; begin < runs; begin += BLOCK) {
        size_t end = MIN(begin + BLOCK, runs);
        for (size_t j = begin; j < end; j++)
            bare[j] = bare_ms(true_argv[0], true_argv);
        for (size_t j = begin; j < end; j++)
            ours[j] = measured_ms(&opts);
    }
    spawn_nest_close(opts.nest);
    *ret_bare_ms = median(bare, runs);
    *ret_ours_ms = median(ours, runs);
    free(bare);
    free(ours);
}

/* A process has its own luck with where its memory lies: several percent, for as long as it
 * lives. So many of them are asked. */
static struct summary bias_of(const char *self, size_t runs)
{
    double ratio[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        char count[32], line[128] = "";
        snprintf(count, sizeof(count), "%zu", runs / PROCESSES + BLOCK);
        int ends[2];
        pid_t pid;
        posix_spawn_file_actions_t actions;
        char *const argv[] = {(char *)self, (char *)"--bias", count, NULL};
        if (pipe2(ends, O_CLOEXEC) < 0 || posix_spawn_file_actions_init(&actions) != 0 ||
            posix_spawn_file_actions_adddup2(&actions, ends[1], 1) != 0 ||
            posix_spawn(&pid, self, &actions, NULL, argv, environ) != 0)
            fail("cannot start itself");
        posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        ssize_t n = read(ends[0], line, sizeof(line) - 1);
        close(ends[0]);
        waitpid(pid, NULL, 0);
        double bare = 0, ours = 0;
        if (n <= 0 || sscanf(line, "%lf %lf", &bare, &ours) != 2) /* NOLINT: our own text */
            fail("cannot read what it found");
        ratio[i] = ours / bare;
    }
    struct summary s;
    if (summary_make(ratio, PROCESSES, &s) < 0)
        fail("no figures");
    return s;
}

static void bias_print(const struct summary *s, const char *where)
{
    printf("spawn  /bin/true, measured against bare, %s: %+.1f%% (95%%: %+.1f to %+.1f%%)\n", where,
           (s->median - 1) * 100, (s->median_low - 1) * 100, (s->median_high - 1) * 100);
}

/* Judged where the scheduler is free, as users run it. It places a process that two others wait
 * for otherwise than one that a single one waits for; how much of the bias that is, the same on
 * one CPU shows. */
static bool bench_bias(const char *self, size_t runs)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(all), &all) < 0)
        fail("cannot read the CPUs");
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && CPU_COUNT(&one) == 0; cpu--)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    struct summary anywhere = bias_of(self, runs);
    bias_print(&anywhere, "on any CPU");
    if (sched_setaffinity(0, sizeof(one), &one) < 0)
        fail("cannot stay on one CPU");
    struct summary pinned = bias_of(self, runs);
    if (sched_setaffinity(0, sizeof(all), &all) < 0)
        fail("cannot leave that CPU");
    bias_print(&pinned, "on one CPU");
    return report("bias against bare spawn and wait", fabs(anywhere.median - 1) * 100, "%", 2,
                  false);
}

/* The whole command, quiet; its wall time in seconds. */
static double command_s(const char *path, char *const *argv)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    int status;
    uint64_t start_ns = clock_mono_ns();
    if (posix_spawn(&pid, path, &actions, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > 3)
        fail(path);
    posix_spawn_file_actions_destroy(&actions);
    return (double)(clock_mono_ns() - start_ns) / NS_PER_SEC;
}

enum { WHYSLOW, HYPERFINE, COMMANDS };

/* The whole command with so many runs. */
static double runs_s(int which, const char *path, size_t runs)
{
    char count[32];
    snprintf(count, sizeof(count), "%zu", runs);
    const char *const ours[] = {"whyslow", "bench", "-N",       "-w",   "0",         "-r", count,
                                "--style", "none",  "--output", "null", "/bin/true", NULL};
    const char *const theirs[] = {"hyperfine", "-N",   "-r",        count,
                                  "--style",   "none", "/bin/true", NULL};
    return command_s(path, (char *const *)(which == WHYSLOW ? ours : theirs));
}

static bool bench_rate(const char *whyslow, size_t runs)
{
    char hyperfine[PATH_MAX];
    if (program_find("hyperfine", hyperfine, NULL) < 0) {
        printf("spawn  runs a second beside hyperfine: n/a: hyperfine is not installed "
               "('make bench' installs it)\n");
        return true;
    }
    const char *const paths[COMMANDS] = {whyslow, hyperfine};
    double few[COMMANDS][ROUNDS], many[COMMANDS][ROUNDS], rate[COMMANDS];
    for (int i = 0; i < ROUNDS; i++)
        for (int which = 0; which < COMMANDS; which++) {
            few[which][i] = runs_s(which, paths[which], runs);
            many[which][i] = runs_s(which, paths[which], 3 * runs);
        }
    static const char *const names[COMMANDS] = {"whyslow bench", "hyperfine -N"};
    for (int which = 0; which < COMMANDS; which++) {
        double few_s = median(few[which], ROUNDS), many_s = median(many[which], ROUNDS);
        double run_s = (many_s - few_s) / (2.0 * (double)runs);
        rate[which] = 1 / run_s;
        printf("spawn  /bin/true: %s %.0f runs a second, and %.0f ms to begin and end; all in all "
               "%.0f a second\n",
               names[which], rate[which], (few_s - run_s * (double)runs) * 1000,
               3 * (double)runs / many_s);
    }
    return report("runs a second against hyperfine -N", rate[WHYSLOW] / rate[HYPERFINE], "times", 1,
                  true);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--bias") == 0) {
        double bare, ours;
        bias_once(strtoull(argv[2], NULL, 10), &bare, &ours);
        printf("%.6f %.6f\n", bare, ours);
        return 0;
    }
    size_t runs = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
    char whyslow[PATH_MAX];
    /* BUILD/bench/bench-spawn stands beside BUILD/whyslow. */
    snprintf(whyslow, sizeof(whyslow), "%s/../whyslow", dirname(strdupa(argv[0])));
    if (runs == 0)
        fail("no runs");
    bool good = bench_bias(argv[0], 5 * runs);
    return bench_rate(argc > 2 ? argv[2] : whyslow, runs) && good ? 0 : 1;
}
