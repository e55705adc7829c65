/* What the commands of one axis (waits, locks, …) share: a recording to look at, from a command,
 * a process, the machine, or a file that is there already. */
#pragma once

#include "cmd/cmd.h"
#include "cmd/record_run.h"
#include "store/reader.h"

struct axis_opts {
    const char *keep; /* -o: the recording stays there; NULL: it is removed after the report */
    uint64_t duration_ns;
    uint32_t pid;
    bool all;
    const char *cgroup;
    const char *tier;
    bool keep_arguments;
    bool dashes; /* "--" was given: what follows is a command, whatever it looks like */
};

#define AXIS_OPTIONS(type, member)                                                                 \
    {"output", 'o',                                                                                \
     OPT_FILE, offsetof(type, member) + offsetof(struct axis_opts, keep),                          \
     "FILE",   "keep the recording, to look at it again",                                          \
     NULL,     NULL,                                                                               \
     false},                                                                                       \
        {"duration",   'd',                                                                        \
         OPT_DURATION, offsetof(type, member) + offsetof(struct axis_opts, duration_ns),           \
         "TIME",       "record for so long; a command runs on to its end",                         \
         NULL,         NULL,                                                                       \
         false},                                                                                   \
        {"pid",   'p',                                                                             \
         OPT_U32, offsetof(type, member) + offsetof(struct axis_opts, pid),                        \
         "PID",   "a running process, all its threads and what they start",                        \
         NULL,    NULL,                                                                            \
         false},                                                                                   \
        {"all",    'a',                                                                            \
         OPT_FLAG, offsetof(type, member) + offsetof(struct axis_opts, all),                       \
         NULL,     "every process of the machine",                                                 \
         NULL,     NULL,                                                                           \
         false},                                                                                   \
        {"cgroup", 0,                                                                              \
         OPT_TEXT, offsetof(type, member) + offsetof(struct axis_opts, cgroup),                    \
         "PATH",   "every process of a cgroup; the path below /sys/fs/cgroup",                     \
         NULL,     NULL,                                                                           \
         false},                                                                                   \
        KEEP_ARGUMENTS_OPTION(offsetof(type, member) +                                             \
                              offsetof(struct axis_opts, keep_arguments)),                         \
        {"",   0,  OPT_FLAG, offsetof(type, member) + offsetof(struct axis_opts, dashes),          \
         NULL, "", NULL,     NULL,                                                                 \
         true},                                                                                    \
    {                                                                                              \
        "tier", 0, OPT_CHOICE, offsetof(type, member) + offsetof(struct axis_opts, tier), "TIER",  \
            "by the kernel (needs root, or CAP_BPF and CAP_PERFMON) or from user space", "auto",   \
            "auto|kernel|user", false                                                              \
    }

/* `run` says which collectors are wanted; scope, target and output are filled in here. One
 * operand that is a recording is opened, anything else is run; after "--" it is always run. Where
 * nothing is named, the newest recording here is read.
 * With `machine_output` the target's stdout goes to stderr, so that ours is the answer alone.
 * ret_result->path is empty if nothing was run. Until axis_end() Ctrl-C is only noted, so that
 * no file is left behind. */
MUST_USE int axis_recording(const struct cmd_call *call, const struct axis_opts *opts,
                            struct record_run_opts *run, bool machine_output,
                            struct recording **ret, struct record_run_result *ret_result,
                            struct why *why);
/* Whether the recording is still there when we are done. */
bool axis_is_kept(const struct axis_opts *opts, const struct record_run_result *result);
/* A recording that we made ourselves cannot be read: nobody named a wrong one. */
void axis_load_failed(const struct record_run_result *result, struct why *why);
/* Closes it, removes the file if nobody asked for it, and returns what the command returns after
 * `r`. Only after axis_recording() succeeded. */
MUST_USE int axis_end(const struct axis_opts *opts, struct recording *recording,
                      const struct record_run_result *result, int r);
