/* What measuring a run costs and bends: the wall time of /bin/true as measure_run() tells it
 * against bare posix_spawn and wait4, and runs a second beside hyperfine -N.
 *
 *     bench-spawn [RUNS [WHYSLOW]]
 *
 * The two ways take turns in small blocks, so that a machine that gets slower gets slower for
 * both. Rates are those of the whole commands, from start to end. */
#include "base/clock.h"
#include "stats/summary.h"
#include "target/measure.h"
#include "target/program.h"

#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 25, ROUNDS = 5 };

static char *const true_argv[] = {(char[]){"/bin/true"}, NULL};

static void fail(const char *what)
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

static bool bench_bias(size_t runs)
{
    struct measure_opts opts = {.argv = true_argv, .path = true_argv[0], .output = "null"};
    struct why why = {0};
    if (measure_nest_open(&opts, &opts.nest, &why) < 0)
        fail(why.what);
    double *bare = calloc(runs, sizeof(*bare)), *ours = calloc(runs, sizeof(*ours));
    if (!bare || !ours)
        fail("out of memory");
    for (size_t i = 0; i < runs; i++) { /* whose block it is alternates */
        size_t begin = i / BLOCK * BLOCK;
        if (i != begin)
            continue;
        size_t end = MIN(begin + BLOCK, runs);
        for (size_t j = begin; j < end; j++)
            bare[j] = bare_ms(true_argv[0], true_argv);
        for (size_t j = begin; j < end; j++)
            ours[j] = measured_ms(&opts);
    }
    spawn_nest_close(opts.nest);
    double theirs_ms = median(bare, runs), ours_ms = median(ours, runs);
    free(bare);
    free(ours);
    printf("spawn  /bin/true: bare %.1f us, measured %.1f us, medians of %zu runs each\n",
           theirs_ms * 1000, ours_ms * 1000, runs);
    return report("bias against bare spawn and wait", fabs(ours_ms / theirs_ms - 1) * 100, "%", 2,
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

static bool bench_rate(const char *whyslow, size_t runs)
{
    char hyperfine[PATH_MAX], count[32];
    if (program_find("hyperfine", hyperfine, NULL) < 0) {
        printf("spawn  runs a second beside hyperfine: n/a: hyperfine is not installed "
               "('make bench' installs it)\n");
        return true;
    }
    snprintf(count, sizeof(count), "%zu", runs);
    const char *const ours[] = {"whyslow", "bench", "-N",       "-w",   "0",         "-r", count,
                                "--style", "none",  "--output", "null", "/bin/true", NULL};
    const char *const theirs[] = {"hyperfine", "-N",   "-r",        count,
                                  "--style",   "none", "/bin/true", NULL};
    double ours_s[ROUNDS], theirs_s[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        ours_s[i] = command_s(whyslow, (char *const *)ours);
        theirs_s[i] = command_s(hyperfine, (char *const *)theirs);
    }
    double our_rate = (double)runs / median(ours_s, ROUNDS);
    double their_rate = (double)runs / median(theirs_s, ROUNDS);
    printf("spawn  /bin/true: whyslow bench %.0f, hyperfine -N %.0f runs a second\n", our_rate,
           their_rate);
    return report("runs a second against hyperfine -N", our_rate / their_rate, "times", 1, true);
}

int main(int argc, char **argv)
{
    size_t runs = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
    char whyslow[PATH_MAX];
    /* BUILD/bench/bench-spawn stands beside BUILD/whyslow. */
    snprintf(whyslow, sizeof(whyslow), "%s/../whyslow", dirname(strdupa(argv[0])));
    if (runs == 0)
        fail("no runs");
    bool good = bench_bias(runs);
    return bench_rate(argc > 2 ? argv[2] : whyslow, runs) && good ? 0 : 1;
}
