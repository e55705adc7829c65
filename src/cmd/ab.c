/* The blocks of compare and gate; see ab.h. */
#include "cmd/ab.h"

#include "base/clock.h"
#include "base/text.h"
#include "cmd/baseline.h"
#include "cmd/cmd.h"
#include "stats/random.h"
#include "target/interrupt.h"
#include "target/measure.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { PADDING_MAX = 4096 };

static const char side_names[AB_SIDES] = {'A', 'B'};

int ab_opts_make(struct arena *arena, const struct ab_cli *cli, const char *const texts[AB_SIDES],
                 struct ab_opts *ret, struct why *why)
{
    if (cli->warmup > AB_WARMUP_MAX)
        return why_set(why, WHY_USAGE, EINVAL, "1 is enough for most programs",
                       "--warmup must be 0 to %d", AB_WARMUP_MAX);
    struct ab_opts opts = {
        .input = cli->input,
        .output = cli->output,
        .warmup = cli->warmup,
        .timeout_ns = cli->timeout_ns,
        .ignore_failure = cli->ignore_failure,
        .seed = cli->seed,
    };
    const char *shell = command_shell_for(arena, cli->shell, texts, AB_SIDES);
    for (int side = 0; side < AB_SIDES; side++) {
        int r = texts[side] ? command_line_parse(arena, texts[side], shell, &opts.sides[side], why)
                            : 0;
        if (r < 0)
            return r;
    }
    if (cli->prepare) {
        /* Nothing is said: it is not in the runs, which may do without. */
        const char *own = shell ? shell : command_shell_syntax(arena, cli->prepare) ? "sh" : NULL;
        int r = command_line_parse(arena, cli->prepare, own, &opts.prepare, why);
        if (r < 0)
            return r;
    }
    if (opts.seed == 0) {
        if (getrandom(&opts.seed, sizeof(opts.seed), GRND_NONBLOCK) != (ssize_t)sizeof(opts.seed))
            opts.seed = clock_mono_ns();
        opts.seed = (opts.seed >> 11) | 1; /* 53 bits: what every reader of JSON keeps */
    }
    *ret = opts;
    return 0;
}

const char *ab_cli_text(struct arena *arena, const struct ab_cli *cli)
{
    const struct {
        const char *name, *value;
    } rows[] = {
        {"metric", strcmp(cli->metric, "wall") == 0 ? NULL : cli->metric},
        {"shell", cli->shell ? command_text_shown(arena, cli->shell) : NULL},
        {"prepare", cli->prepare ? command_text_shown(arena, cli->prepare) : NULL},
        {"input", cli->input},
        {"output", strcmp(cli->output, "null") == 0 ? NULL : cli->output},
    };
    const char *text = cli->ignore_failure ? " --ignore-failure" : "";
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *word[] = {rows[i].value, NULL};
        if (rows[i].value)
            text = arena_printf(arena, "%s --%s %s", text, rows[i].name,
                                command_quote(arena, (char *const *)word));
    }
    return text;
}

static struct measure_opts measure_opts_make(const struct ab_opts *opts,
                                             const struct command_line *line, size_t padding)
{
    return (struct measure_opts){
        .argv = line->argv,
        .path = line->path,
        .input = opts->input,
        .output = opts->output,
        .timeout_ns = opts->timeout_ns,
        .environment_bytes = padding,
    };
}

static void failure_note(struct ab *ab, const char *command, const struct spawn_result *result)
{
    ab->end = AB_FAILED;
    ab->failure_command = command;
    ab->failure = *result;
    ab->failure_what = ab->failure_text;
}

static bool is_interrupted(struct ab *ab, const struct spawn_result *result)
{
    int signal = result->interrupted ? result->interrupted : interrupt_signal();
    if (signal == 0)
        return false;
    ab->end = AB_INTERRUPTED;
    ab->signal = signal;
    return true;
}

/* One run of one side. ab->end tells when it was the last. */
struct shot {
    const struct ab_opts *opts;
    const struct command_line *line;
    const char *output; /* NULL: as the options say */
    struct spawn_nest *nest;
    bool counters;
    size_t padding;
    const char *missing[BENCH_METRICS];
    struct bench_run run;
    struct spawn_result result;
    struct why why;
    int error;
};

static void *shot_take(void *argument)
{
    struct shot *shot = argument;
    struct measure_opts measure = measure_opts_make(shot->opts, shot->line, shot->padding);
    if (shot->output)
        measure.output = shot->output;
    measure.nest = shot->nest;
    measure.counters = shot->counters;
    shot->error = measure_run_full(&measure, &shot->run, &shot->result, shot->missing, &shot->why);
    return NULL;
}

static int prepare(const struct ab_opts *opts, struct ab *ab, struct why *why)
{
    if (!opts->prepare.argv)
        return 0;
    struct shot shot = {.opts = opts, .line = &opts->prepare, .output = "pipe"};
    shot_take(&shot);
    if (shot.error < 0) {
        *why = shot.why;
        return shot.error;
    }
    if (is_interrupted(ab, &shot.result) || !shot.run.failed)
        return 0;
    snprintf(ab->failure_text, sizeof(ab->failure_text), "--prepare");
    failure_note(ab, opts->prepare.text, &shot.result);
    return 0;
}

/* Looks at what came of a run: 0, or -errno when it could not be made at all. */
static int shot_judge(struct shot *shot, int side, const char *kind, size_t number, struct ab *ab,
                      struct why *why)
{
    if (shot->error < 0) {
        *why = shot->why;
        return shot->error;
    }
    if (is_interrupted(ab, &shot->result) || !shot->run.failed)
        return 0;
    if (shot->opts->ignore_failure && !shot->run.timed_out)
        return 0;
    snprintf(ab->failure_text, sizeof(ab->failure_text), "%s %zu of %c", kind, number,
             side_names[side]);
    failure_note(ab, shot->line->text, &shot->result);
    return 0;
}

static struct shot shot_make(const struct ab_opts *opts, const struct ab *ab, int side,
                             size_t padding)
{
    return (struct shot){
        .opts = opts, .line = &opts->sides[side], .counters = !ab->uncounted, .padding = padding};
}

/* The first reason why a figure is missing is the true one: "not asked for" comes later, when it
 * was found that there is nothing to ask. */
static void missing_keep(struct ab *ab, int side, const struct shot *shot)
{
    for (int i = 0; i < BENCH_METRICS; i++)
        if (isnan(shot->run.value[i]) && !ab->results[side].missing[i])
            ab->results[side].missing[i] = shot->missing[i];
    if (shot->counters && isnan(shot->run.value[BENCH_CYCLES]) &&
        isnan(shot->run.value[BENCH_INSTRUCTIONS]))
        ab->uncounted = true;
}

int ab_begin(const struct ab_opts *opts, struct ab *ab, struct why *why)
{
    uint64_t start_ns = clock_mono_ns();
    ab->random = opts->seed;
    for (int side = 0; side < AB_SIDES; side++) {
        ab->results[side].command = ab->results[side].name = opts->sides[side].text;
        ab->results[side].warmup = opts->warmup;
    }
    if (opts->alone) {
        struct measure_opts measure = measure_opts_make(opts, &opts->sides[1], PADDING_MAX);
        int r = measure_nest_open(&measure, &ab->nest, why);
        if (r < 0)
            return r;
    }
    for (uint32_t i = 0; i < opts->warmup && ab->end == AB_GOING; i++) {
        for (int side = opts->alone ? 1 : 0; side < AB_SIDES && ab->end == AB_GOING; side++) {
            int r = prepare(opts, ab, why);
            if (r < 0 || ab->end != AB_GOING)
                return r;
            /* The one run whose output is looked at: a pipe in every run would cost time. */
            struct shot shot = shot_make(opts, ab, side, 0);
            if (strcmp(opts->output, "null") == 0)
                shot.output = "pipe";
            shot_take(&shot);
            r = shot_judge(&shot, side, "warm-up run", i + 1, ab, why);
            if (r < 0 || ab->end != AB_GOING)
                return r;
            missing_keep(ab, side, &shot);
            ab->output_known[side] = shot.run.output_known;
            memcpy(ab->output[side], shot.run.output_sha256, sizeof(ab->output[side]));
        }
        ab->warmups++;
    }
    ab->elapsed_ns += clock_mono_ns() - start_ns;
    return 0;
}

/* Both at once: whatever happens on the machine happens to both at the same time. */
static int duet_take(struct shot shots[AB_SIDES], int first, struct why *why)
{
    pthread_t thread;
    int r = pthread_create(&thread, NULL, shot_take, &shots[first]);
    if (r != 0)
        return why_errno(why, r, NULL, "cannot start a thread");
    shot_take(&shots[!first]);
    pthread_join(thread, NULL);
    return 0;
}

static int block_make(const struct ab_opts *opts, struct ab *ab, struct why *why)
{
    size_t padding = 1 + random_below(&ab->random, PADDING_MAX);
    int first = (int)random_below(&ab->random, AB_SIDES);
    size_t number = ab->results[1].runs.len + 1;
    struct shot shots[AB_SIDES];
    for (int side = 0; side < AB_SIDES; side++)
        shots[side] = shot_make(opts, ab, side, padding);
    for (int i = 0; i < AB_SIDES; i++) {
        int side = i == 0 ? first : !first;
        if (opts->alone && side == 0)
            continue;
        int r = prepare(opts, ab, why);
        if (r < 0 || ab->end != AB_GOING)
            return r;
        if (opts->duet && i == 0)
            continue; /* prepared twice, started together */
        if (opts->duet) {
            r = duet_take(shots, first, why);
            if (r == 0)
                r = shot_judge(&shots[first], first, "run", number, ab, why);
        } else {
            shot_take(&shots[side]);
        }
        if (r == 0)
            r = shot_judge(&shots[side], side, "run", number, ab, why);
        if (r < 0 || ab->end != AB_GOING)
            return r;
    }
    for (int side = opts->alone ? 1 : 0; side < AB_SIDES; side++) {
        missing_keep(ab, side, &shots[side]);
        ab->failed[side] += shots[side].run.failed;
        if (VEC_PUSH(&ab->results[side].runs, shots[side].run) < 0)
            return why_nomem(why);
    }
    return 0;
}

static void note_update(const struct ab *ab, struct progress *progress)
{
    char text[2][48], note[128];
    for (int side = 0; side < AB_SIDES; side++) {
        const struct bench_result *result = &ab->results[side];
        snprintf(text[side], sizeof(text[side]), "-");
        if (result->runs.len > 0)
            units_format(result->runs.data[result->runs.len - 1].value[BENCH_WALL], UNIT_MS,
                         text[side], sizeof(text[side]));
    }
    snprintf(note, sizeof(note), "last block: A %s, B %s", text[0], text[1]);
    progress_update(progress, ab->results[1].runs.len, note);
}

int ab_measure(const struct ab_opts *opts, size_t blocks_min, size_t blocks, uint64_t until_ns,
               struct progress *progress, struct ab *ab, struct why *why)
{
    uint64_t start_ns = clock_mono_ns();
    int r = 0;
    while (ab->end == AB_GOING && ab->results[1].runs.len < MIN(blocks, (size_t)AB_BLOCKS_MAX)) {
        uint64_t now_ns = clock_mono_ns();
        if (ab->results[1].runs.len >= blocks_min && now_ns + ab->block_ns > until_ns)
            break;
        r = block_make(opts, ab, why);
        if (r < 0)
            break;
        ab->block_ns = clock_mono_ns() - now_ns;
        note_update(ab, progress);
    }
    ab->elapsed_ns += clock_mono_ns() - start_ns;
    return r;
}

void ab_deinit(struct ab *ab)
{
    spawn_nest_close(ab->nest);
    ab->nest = NULL;
    for (int side = 0; side < AB_SIDES; side++)
        bench_result_deinit(&ab->results[side]);
}

void ab_failure_print(const struct ab *ab, FILE *err)
{
    char how[128];
    status_describe(ab->failure.status, ab->failure.timed_out, how, sizeof(how));
    struct why why = {0};
    why_set(&why, WHY_FAILED, EIO,
            ab->failure.timed_out ? "give it longer with --timeout"
                                  : "mend the command; or count failing runs with --ignore-failure",
            "%s %s: %s", ab->failure_what, how, ab->failure_command);
    cmd_print_error(err, &why);
    struct str tail = {ab->failure.error.tail, ab->failure.error.tail_len};
    if (tail.len > 0)
        fputs("  the end of its stderr:\n", err);
    for (int lines = 0; tail.len > 0 && lines < 40; lines++) {
        fputs("  | ", err);
        text_print(err, str_cut(&tail, '\n'));
        fputc('\n', err);
    }
}
