/* Two commands measured side by side, block for block.
 *
 *     ab_begin → ab_measure… → ab_deinit
 *
 * A block is one run of A and one of B, in random order, or both at once (duet). Whatever the
 * machine does at the time falls on both, and what the order itself does falls on both equally
 * often. The size of the environment, which moves the stack and with it the speed of some
 * programs by percents, is drawn anew for every block and is the same for both sides.
 *
 * Every run has a launcher of its own: one that stays with a side from run to run would have its
 * own place in memory and on the CPUs, which is a lasting difference between the sides that no
 * random order takes away (seen: A/A of /bin/true in a duet, 4% apart).
 *
 * Runs of a block have the same index in both results: a block that is not whole is not kept. */
#pragma once

#include "base/opt.h"
#include "base/progress.h"
#include "model/bench.h"
#include "target/command.h"
#include "target/spawn.h"

/* What compare and gate are told alike; AB_OPTIONS puts it into an option table. */
struct ab_cli {
    const char *metric;
    const char *shell;
    const char *prepare;
    const char *input;
    const char *output;
    const char *name;
    uint32_t warmup;
    uint64_t timeout_ns;
    uint64_t seed;
    bool ignore_failure;
    bool force;
};

#define AB_ROW(type, member, name, letter, kind, field, argument, help, fallback)                  \
    {                                                                                              \
        name, letter, kind, offsetof(type, member) + offsetof(struct ab_cli, field), argument,     \
            help, fallback, NULL, false                                                            \
    }

#define AB_OPTIONS(type, member)                                                                   \
    AB_ROW(type, member, "metric", 0, OPT_TEXT, metric, "METRIC",                                  \
           "what is judged: wall, user, system, cpu, peak_rss, faults_minor, …; p95 or p99 of "  \
           "wall; peak_rss:p95",                                                                   \
           "wall"),                                                                                \
        AB_ROW(type, member, "shell", 'S', OPT_TEXT, shell, "SHELL",                               \
               "run the commands through this shell; without it sh, if one of them needs a shell", \
               NULL),                                                                              \
        AB_ROW(type, member, "prepare", 'p', OPT_TEXT, prepare, "CMD",                             \
               "run this before every run, not measured", NULL),                                   \
        AB_ROW(type, member, "input", 0, OPT_FILE, input, "FILE",                                  \
               "file for the commands' stdin instead of /dev/null", NULL),                         \
        AB_ROW(type, member, "output", 0, OPT_TEXT, output, "WHERE",                               \
               "where their stdout goes: null, pipe, inherit or a file", "null"),                  \
        AB_ROW(type, member, "name", 'n', OPT_TEXT, name, "NAME",                                  \
               "which result of stored files that hold several", NULL),                            \
        AB_ROW(type, member, "warmup", 'w', OPT_U32, warmup, "N",                                  \
               "runs of each before those that count", "1"),                                       \
        AB_ROW(type, member, "timeout", 0, OPT_DURATION, timeout_ns, "TIME",                       \
               "end a run that takes longer than this", "10m"),                                    \
        AB_ROW(type, member, "ignore-failure", 'i', OPT_FLAG, ignore_failure, NULL,                \
               "count runs that exit with a failure", NULL),                                       \
        AB_ROW(type, member, "force", 0, OPT_FLAG, force, NULL,                                    \
               "compare stored results although their fingerprints forbid it", NULL),              \
        AB_ROW(type, member, "seed", 0, OPT_U64, seed, "N",                                        \
               "for the random order, to repeat it; 0 draws one", "0")

enum { AB_SIDES = 2, AB_BLOCKS_MAX = 100000, AB_WARMUP_MAX = 1000 };

struct ab_opts {
    struct command_line sides[AB_SIDES];
    bool alone; /* only B is run: A is a stored result */
    bool duet;
    struct command_line prepare; /* argv NULL: none */
    const char *input;
    const char *output;
    uint32_t warmup;
    uint64_t timeout_ns;
    bool ignore_failure;
    uint64_t seed;
};

enum ab_end { AB_GOING, AB_INTERRUPTED, AB_FAILED };

struct ab {
    struct bench_result results[AB_SIDES];
    struct spawn_nest *nest; /* B's launcher when it runs alone, as bench has one */
    bool uncounted;          /* there are no PMU counters to open: saves the attempt */
    uint64_t random;
    uint32_t warmups;
    uint64_t elapsed_ns;
    uint64_t block_ns; /* how long the last block took, all in all */
    enum ab_end end;
    int signal;                  /* for AB_INTERRUPTED */
    const char *failure_what;    /* for AB_FAILED: "warm-up run 1 of A" */
    const char *failure_command; /* its text */
    struct spawn_result failure;
    char failure_text[64];
    uint32_t failed[AB_SIDES];   /* runs that failed, with ignore_failure */
    bool output_known[AB_SIDES]; /* from the warm-up */
    char output[AB_SIDES][SHA256_TEXT_BYTES];
};

/* Commands to argv, refused here when they cannot be run; limits checked. A stored side has a
 * NULL text. */
MUST_USE int ab_opts_make(struct arena *arena, const struct ab_cli *cli,
                          const char *const texts[AB_SIDES], struct ab_opts *ret, struct why *why);

/* The options as they would be typed again, each after a blank, without secrets; defaults are left
 * out. */
const char *ab_cli_text(struct arena *arena, const struct ab_cli *cli);

/* Warms up. An error is ours; how the commands fared stands in ab->end. */
MUST_USE int ab_begin(const struct ab_opts *opts, struct ab *ab, struct why *why);
/* Makes blocks until there are `blocks` or another one like the last would end after `until_ns`
 * (CLOCK_MONOTONIC); at least `blocks_min` are made. May be called again to go on. */
MUST_USE int ab_measure(const struct ab_opts *opts, size_t blocks_min, size_t blocks,
                        uint64_t until_ns, struct progress *progress, struct ab *ab,
                        struct why *why);
void ab_deinit(struct ab *ab); /* zeroed is fine */

/* Says on `err` which run failed, how, and what it said last. */
void ab_failure_print(const struct ab *ab, FILE *err);
