/* From what was typed to a recording that can be read: opened, or made now and removed again. */
#include "cmd/axis.h"

#include "base/log.h"
#include "base/temporary.h"
#include "cmd/interrupts.h"
#include "cmd/newest.h"
#include "store/identify.h"
#include "symbolize/symbols.h"
#include "target/command.h"
#include "target/interrupt.h"
#include "target/program.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* A name that says so is believed: what is wrong with the file is then said by its reader. */
static bool is_recording(const struct cmd_call *call, const struct axis_opts *opts)
{
    struct identity identity;
    if (call->argc != 1 || opts->dashes)
        return false;
    return str_ends(str_from(call->argv[0]), ".whyslow") ||
           identify_recording(call->argv[0], &identity, NULL) == 0;
}

/* Then the newest recording is meant; not when options say that one is to be made. */
static bool names_nothing(const struct cmd_call *call, const struct axis_opts *opts)
{
    return call->argc == 0 && !opts->dashes && !opts->pid && !opts->all && !opts->cgroup &&
           !opts->keep && !opts->duration_ns;
}

/* What a recording must hold for this command. */
static const char *series_of(const struct record_run_opts *run)
{
    return run->io.calls ? "io" : run->heap.on ? "heap" : "offcpu";
}

static int scope_find(const struct cmd_call *call, const struct axis_opts *opts,
                      struct record_run_opts *run, struct why *why)
{
    int asked = (call->argc > 0) + (opts->pid != 0) + opts->all + (opts->cgroup != NULL);
    if (asked == 0)
        return why_set(why, WHY_USAGE, EINVAL,
                       "give a recording, or '-- COMMAND', -p PID, -a, --cgroup PATH",
                       "nothing to look at was named");
    if (asked > 1)
        return why_set(why, WHY_USAGE, EINVAL, "give one of them",
                       "a recording or command, -p, -a and --cgroup exclude each other");
    if (opts->pid > INT32_MAX)
        return why_set(why, WHY_USAGE, EINVAL, "'ps -e' lists the processes", "no process %u",
                       opts->pid);
    run->cpu.pid = (int)opts->pid;
    run->cpu.cgroup = opts->cgroup;
    run->cpu.scope = opts->pid      ? TARGET_ATTACHED
                     : opts->all    ? TARGET_SYSTEM
                     : opts->cgroup ? TARGET_CGROUP
                                    : TARGET_SPAWNED;
    return 0;
}

/* A recording takes no option that is about making one. */
static int reading_check(const struct axis_opts *opts, struct why *why)
{
    const char *option = opts->pid           ? "-p"
                         : opts->all         ? "-a"
                         : opts->cgroup      ? "--cgroup"
                         : opts->keep        ? "-o"
                         : opts->duration_ns ? "-d"
                                             : NULL;
    if (!option)
        return 0;
    return why_set(why, WHY_USAGE, EINVAL, "leave it out; to run a file put '--' before it",
                   "%s is for recording, and a recording was named", option);
}

static int open_recording(const char *path, struct recording **ret, struct why *why)
{
    int r = recording_open(path, ret, why);
    if (r == 0 && !recording_finished(*ret))
        log_warning("'%s' was not finished (still recording, or cut off): it holds what was "
                    "committed",
                    path);
    return r;
}

static enum tier tier_of(const char *name)
{
    if (name && strcmp(name, "kernel") == 0)
        return TIER_KERNEL;
    return name && strcmp(name, "user") == 0 ? TIER_USER : TIER_NONE;
}

/* A folder of its own: SQLite puts files beside a recording while it is written. */
static int folder_make_temporary(char folder[PATH_MAX], struct why *why)
{
    int r = temporary_folder(folder);
    if (r == -ENAMETOOLONG)
        return why_set(why, WHY_USAGE, ENAMETOOLONG, "set TMPDIR to a shorter path",
                       "the path in TMPDIR is too long");
    if (r < 0)
        return why_errno(why, -r, "set TMPDIR to a folder that can be written, or give -o FILE",
                         "cannot make a folder in '%s' for the recording", folder);
    return 0;
}

static void recording_remove(const char *path)
{
    char folder[PATH_MAX + 32];
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    temporary_remove(folder);
}

static int record(const struct cmd_call *call, struct record_run_opts *run,
                  struct record_run_result *ret, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    char program[PATH_MAX], cache[PATH_MAX];
    if (run->cpu.scope == TARGET_SPAWNED) {
        int r = program_find(call->argv[0], program, why);
        if (r < 0)
            return r;
        run->argv = call->argv;
        run->program = program;
        run->cpu.command = command_shown(&arena, call->argv);
    }
    run->cpu.cache_dir = symbols_cache_dir(cache, sizeof(cache));
    run->progress = call->notes;
    int r = record_into_file(run, ret, why);
    run->program = run->cpu.command = run->cpu.cache_dir = NULL; /* they end here */
    return r;
}

/* Recorded, and readable: what is left of a recording that failed helps nobody here. */
static int record_and_open(const struct cmd_call *call, const struct axis_opts *opts,
                           struct record_run_opts *run, struct recording **ret,
                           struct record_run_result *ret_result, struct why *why)
{
    char folder[PATH_MAX] = "", path[PATH_MAX + 32];
    struct record_run_result result = {0};
    int r = opts->keep ? 0 : folder_make_temporary(folder, why);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "%s/recording.whyslow", folder);
    run->output = opts->keep ? opts->keep : path;
    run->duration_ns = opts->duration_ns;
    run->offcpu.tier = run->io.tier = run->heap.tier = tier_of(opts->tier);
    r = record(call, run, &result, why);
    run->output = NULL;
    if (r == 0) {
        r = recording_open(result.path, ret, why);
        if (r < 0 && why)
            why->kind = WHY_FAILED; /* we made it: nobody typed a wrong name */
    }
    if (r < 0 && !opts->keep)
        recording_remove(path);
    if (r == 0)
        *ret_result = result;
    return r;
}

int axis_recording(const struct cmd_call *call, const struct axis_opts *opts,
                   struct record_run_opts *run, bool machine_output, struct recording **ret,
                   struct record_run_result *ret_result, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    const char *path = is_recording(call, opts) ? call->argv[0] : NULL;
    int r = names_nothing(call, opts) ? newest_recording(&arena, series_of(run), &path, why) : 0;
    if (r < 0)
        return r;
    if (path) {
        r = reading_check(opts, why);
        if (r == 0)
            r = open_recording(path, ret, why);
        if (r == 0)
            *ret_result = (struct record_run_result){0};
        return r;
    }
    r = scope_find(call, opts, run, why);
    if (r < 0)
        return r;
    run->output_to_stderr = machine_output;
    temporary_sweep();
    interrupt_watch(interrupts_tell);
    r = record_and_open(call, opts, run, ret, ret_result, why);
    if (r < 0)
        interrupt_unwatch();
    return r;
}

static bool is_own(const struct record_run_result *result)
{
    return result->path[0] != '\0';
}

bool axis_is_kept(const struct axis_opts *opts, const struct record_run_result *result)
{
    return !is_own(result) || opts->keep;
}

void axis_load_failed(const struct record_run_result *result, struct why *why)
{
    if (is_own(result) && why->kind != WHY_NOTHING)
        why->kind = WHY_FAILED;
}

int axis_end(const struct axis_opts *opts, struct recording *recording,
             const struct record_run_result *result, int r)
{
    recording_close(recording);
    if (!axis_is_kept(opts, result))
        recording_remove(result->path);
    if (is_own(result))
        interrupt_unwatch();
    return r < 0 ? r : result->status;
}
