/* `whyslow report`: what a recording says, ranked.
 *
 * open → honesty → profile (time range, filter, focus) → rank → one view → pictures → draw */
#include "cmd/report_parts.h"

#include "base/log.h"
#include "cmd/newest.h"

#include <errno.h>

static const struct opt report_options[] = {
    {"limit", 'n', OPT_U64, offsetof(struct report_opts, limit), "ROWS",
     "print at most this many rows; 0 prints all", "20", NULL, false},
    {"tree", 0, OPT_FLAG, offsetof(struct report_opts, tree), NULL, "the call tree from the root",
     NULL, NULL, false},
    {"callers", 0, OPT_TEXT, offsetof(struct report_opts, callers), "ID",
     "who calls a function: an id from the table, a name, or a part of one", NULL, NULL, false},
    {"callees", 0, OPT_TEXT, offsetof(struct report_opts, callees), "ID", "what a function calls",
     NULL, NULL, false},
    {"annotate", 0, OPT_TEXT, offsetof(struct report_opts, annotate), "ID",
     "source lines and instructions of a function with their cost", NULL, NULL, false},
    {"threads", 0, OPT_FLAG, offsetof(struct report_opts, threads), NULL,
     "time by group of threads and by thread", NULL, NULL, false},
    {"lines", 0, OPT_FLAG, offsetof(struct report_opts, lines), NULL, "the hottest source lines",
     NULL, NULL, false},
    {"diff", 0, OPT_FILE, offsetof(struct report_opts, diff), "REC2",
     "what changed from REC to REC2, function by function", NULL, NULL, false},
    {"work", 0, OPT_TEXT, offsetof(struct report_opts, work), "A:B",
     "with --diff: operations that REC and REC2 did, to compare the time of one", NULL, NULL,
     false},
    {"min-pct", 0, OPT_PERCENT, offsetof(struct report_opts, min_pct), "PCT",
     "leave calls below this share out of trees", "1", NULL, false},
    {"inverted", 0, OPT_FLAG, offsetof(struct report_opts, inverted), NULL,
     "trees and flame graphs from the innermost function out", NULL, NULL, false},
    {"time", 't', OPT_TEXT, offsetof(struct report_opts, time), "A..B",
     "only samples of this time: seconds since the start (2..5, 500ms..2s) or shares (10%..20%)",
     NULL, NULL, false},
    {"filter", 0, OPT_TEXT, offsetof(struct report_opts, filter), "TEXT",
     "only samples of threads, processes or innermost images whose name contains it", NULL, NULL,
     false},
    {"focus", 0, OPT_TEXT, offsetof(struct report_opts, focus), "TEXT",
     "only samples with a function whose name contains it, cut to begin there", NULL, NULL, false},
    {"series", 0, OPT_TEXT, offsetof(struct report_opts, series), "NAME",
     "what was sampled; 'whyslow query REC' lists it", "cpu", NULL, false},
    {"flame", 0, OPT_FILE, offsetof(struct report_opts, flame), "FILE.svg",
     "write a flame graph; with --diff, of what changed", NULL, NULL, false},
    {"icicle", 0, OPT_FILE, offsetof(struct report_opts, icicle), "FILE.svg",
     "the same with the root on top", NULL, NULL, false},
    {"html", 0, OPT_FILE, offsetof(struct report_opts, html), "FILE",
     "write one page with the table and the flame graph", NULL, NULL, false},
    OUTPUT_OPTIONS(struct report_opts, output),
    {0},
};

static int options_check(const struct report_opts *opts, struct why *why)
{
    int views = opts->tree + opts->threads + opts->lines + !!opts->callers + !!opts->callees +
                !!opts->annotate + !!opts->diff;
    if (views > 1)
        return why_set(why, WHY_USAGE, EINVAL,
                       "choose one of --tree, --callers, --callees, --annotate, --threads, "
                       "--lines, --diff",
                       "one view at a time");
    if (opts->work && !opts->diff)
        return why_set(why, WHY_USAGE, EINVAL, "add --diff REC2", "--work is for --diff");
    if (!(opts->min_pct >= 0 && opts->min_pct <= 100))
        return why_set(why, WHY_USAGE, EINVAL, "give a share from 0 to 100",
                       "--min-pct is no share");
    return 0;
}

static int load(struct report_run *run, const char *path, struct loaded *ret, struct why *why)
{
    const struct report_opts *opts = run->opts;
    int r = recording_open(path, &ret->recording, why);
    if (r < 0)
        return r;
    if (!recording_finished(ret->recording))
        log_warning("'%s' was not finished (still recording, or cut off): it holds what was "
                    "committed",
                    path);
    struct profile_opts wanted = {
        .series = opts->series, .filter = opts->filter, .focus = opts->focus};
    const struct recorded_series *series = recording_series_find(ret->recording, opts->series);
    if (opts->time && series)
        r = report_time_range(opts->time, series, &wanted.from_ns, &wanted.to_ns, why);
    if (r == 0)
        r = series_honesty_load(run->arena, ret->recording, opts->series, &ret->honesty, why);
    if (r == 0)
        r = profile_load(run->arena, ret->recording, &wanted, &ret->profile, why);
    if (r == 0 && hotspots_build(run->arena, &ret->profile, &ret->hotspots) < 0)
        r = why_nomem(why);
    return r;
}

static int load_diff(struct report_run *run, struct why *why)
{
    const struct report_opts *opts = run->opts;
    int r = opts->work ? report_work(opts->work, &run->work[0], &run->work[1], why) : 0;
    if (r == 0)
        r = load(run, opts->diff, &run->other, why);
    struct profile_diff_opts diff = {.before_work = run->work[0], .after_work = run->work[1]};
    if (r == 0)
        r = profile_diff_build(run->arena, &run->main.profile, &run->other.profile, &diff,
                               &run->diff, why);
    return r;
}

static void put_head(struct report_run *run, struct value *root)
{
    const struct profile *profile = &run->main.profile;
    const struct report_opts *opts = run->opts;
    bool time = profile->unit == UNIT_NS;
    value_put_machine(root, "recording", value_text(recording_path(run->main.recording)));
    value_put_machine(root, "finished", value_bool(recording_finished(run->main.recording)));
    if (profile->command.len > 0)
        value_put(root, "command", NULL, value_str(profile->command));
    value_put_machine(root, "series", value_text(profile->series));
    value_put_machine(root, "span_ms",
                      value_real((double)(profile->end_ns - profile->start_ns) / 1e6, UNIT_MS));
    value_put_machine(root, "about", value_text(profile->about));
    value_put(root, time ? "shown_ms" : "shown_weight", "in all",
              tables_weight(profile, (double)profile->weight));
    value_put_machine(root, "shown_samples", value_uint(profile->count, UNIT_COUNT));
    value_put_machine(root, "effective_samples",
                      value_real(run->main.hotspots.effective_samples, UNIT_NONE));
    if (opts->time)
        value_put(root, "time", NULL, value_text(opts->time));
    if (opts->filter)
        value_put(root, "filter", NULL, value_text(opts->filter));
    if (opts->focus)
        value_put(root, "focus", NULL, value_text(opts->focus));
    series_honesty_put(run->arena, root, &run->main.honesty);
    if (!opts->diff)
        return;
    value_put(root, "after_recording", "compared with",
              value_text(recording_path(run->other.recording)));
    value_put_machine(root, "after_honesty", series_honesty_value(run->arena, &run->other.honesty));
    value_put(root, "after_honesty_line", "its honesty",
              value_text(series_honesty_line(run->arena, &run->other.honesty)));
}

static int report_draw(const struct cmd_call *call, struct report_run *run, struct why *why)
{
    struct value root = value_map(run->arena);
    put_head(run, &root);
    int r = report_view(run, &root, why);
    if (r == 0)
        r = report_pictures(run, &root, why);
    if (r == 0 && arena_failed(run->arena))
        r = why_nomem(why);
    if (r < 0)
        return r;
    struct report report = {.schema = "whyslow.report/1", .root = &root};
    return cmd_render(call, &run->opts->output, &report, why);
}

static int report_run(const struct cmd_call *call, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct report_run run = {.opts = call->opts, .arena = &arena};
    int r = options_check(run.opts, why);
    const char *path = call->argc > 0 ? call->argv[0] : NULL;
    if (r == 0 && !path)
        r = newest_recording(&arena, run.opts->series, &path, why);
    if (r == 0 && !path)
        r = why_set(why, WHY_USAGE, ENOENT, "name one; or make one: whyslow record -- COMMAND",
                    "there is no recording in this folder");
    if (r == 0)
        r = load(&run, path, &run.main, why);
    if (r == 0 && run.opts->diff)
        r = load_diff(&run, why);
    if (r == 0)
        r = report_draw(call, &run, why);
    recording_close(run.main.recording);
    recording_close(run.other.recording);
    return r < 0 ? r : EXIT_DONE;
}

static const struct cmd_example examples[] = {
    {"whyslow report recording.whyslow", "the functions that cost most"},
    {"whyslow report recording.whyslow --callers f12", "who calls function f12"},
    {"whyslow report recording.whyslow --annotate f12", "which lines and instructions of it"},
    {"whyslow report old.whyslow --diff new.whyslow --flame diff.svg",
     "what changed, as a table and as a picture"},
    {NULL, NULL},
};

const struct command cmd_report = {
    .name = "report",
    .group = "Look into a recording",
    .operands = "[REC]",
    .summary = "rank what a recording has seen: functions, calls, lines, threads",
    .about =
        "Ranks the functions of a recording by the time spent in them themselves (self), with "
        "the time of all they called (total), a 95% interval of the share, and where they are. "
        "Ids such as f12 are stable for one recording, whatever the filters.\n\n"
        "The interval speaks of sampling: 95 of 100 such intervals hold the true share of the "
        "run that was recorded. It does not speak of how one run differs from the next.\n\n"
        "Without REC the newest recording of this folder is read, or of the last run in "
        "whyslow-out.",
    .options = report_options,
    .options_size = sizeof(struct report_opts),
    .operands_min = 0,
    .operands_max = 1,
    .examples = examples,
    .run = report_run,
};
