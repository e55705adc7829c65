/* Starts the target, waits for it, and says what the run cost.
 *
 *     spawn_start → [spawn_release] → spawn_wait… → spawn_finish → spawn_close
 *     spawn_run does all of it.
 *
 * The target gets the environment, signal mask, dispositions and inherited fds
 * that whyslow was given, and none of whyslow's own fds. It is started by a
 * launcher of a few pages (launcher.h), so that its peak memory is its own.
 *
 * A background target (the default) leads its own process group: timeouts and
 * Ctrl-C (see interrupt.h; passed on to it) reach its children too; after an interrupt
 * it has INTERRUPT_PATIENCE_MS to end. If it asks
 * the terminal for input it is stopped by the kernel; that is an error with
 * words. A foreground target stays in whyslow's group, keeps the terminal, and
 * gets Ctrl-C from it directly; other interrupts are passed on to the process itself. A
 * timeout ends that one only, a second interrupt all that it started, too.
 *
 * Many runs of one command share a launcher (spawn_nest_open), which saves an exec a run.
 *
 * What a captured stream brings is counted and hashed as it arrives, and only
 * its end is kept: any amount of output takes the same memory. */
#pragma once

#include "base/macros.h"
#include "base/sha256.h"
#include "base/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SPAWN_STDERR: what the target prints goes where whyslow's own messages go. */
enum spawn_stream { SPAWN_NULL, SPAWN_INHERIT, SPAWN_CAPTURE, SPAWN_FILE, SPAWN_STDERR };

enum { SPAWN_TAIL_BYTES = 2048, SPAWN_ENVIRONMENT_MAX = 65536 };

/* Told what captured streams bring, as it comes; must be quick. */
struct spawn_listener {
    void (*begin)(struct spawn_listener *listener); /* a run */
    void (*take)(struct spawn_listener *listener, bool error, const char *data, size_t len);
};

struct spawn_opts {
    char *const *argv;       /* ends with NULL; argv[0] as typed */
    const char *path;        /* from program_find() */
    enum spawn_stream input; /* neither SPAWN_CAPTURE nor SPAWN_STDERR */
    enum spawn_stream output;
    enum spawn_stream error;
    const char *input_path;   /* for SPAWN_FILE */
    const char *output_path;  /* the same; made or emptied before each run */
    size_t environment_bytes; /* of one more variable, WHYSLOW_PADDING; 0: none */
    /* More variables, "NAME=value", in the place of ours of that name; ends with NULL. NULL:
     * none. With a nest they are those of its opening. */
    const char *const *environment;
    struct spawn_listener *listener; /* NULL: none */
    uint64_t timeout_ns;             /* 0: none. SIGTERM then, and SIGKILL a second later */
    bool foreground;
    bool hold;  /* do not exec before spawn_release(): collectors are set up in between */
    bool plain; /* do without the embedded helper; for tests of that path */
    /* Stop the target at its exit to read the exact peak of its memory. It can notice, and its
     * times are longer: not for runs that are timed. */
    bool trace;
    bool end_group;          /* what is left of its process group when it has ended is killed */
    struct spawn_nest *nest; /* a launcher kept from run to run; NULL: one for this run alone */
    bool late; /* with a nest: spawn_pid() is 0 at first, or for ever in a short run */
};

struct spawn_captured {
    bool captured;
    bool still_open; /* a process it left behind holds the stream: it may get longer */
    uint64_t bytes;
    char sha256[SHA256_TEXT_BYTES];
    char tail[SPAWN_TAIL_BYTES]; /* the last `tail_len` bytes; no NUL */
    size_t tail_len;
};

/* Times and counts are those of the process and of the children it waited for. */
struct spawn_result {
    int status;       /* as from wait4 */
    bool timed_out;   /* we ended it */
    bool left_behind; /* with end_group: there was something */
    int interrupted;  /* the signal that whyslow got while it ran, or 0 */
    uint64_t wall_ns; /* from just before it is made (if held: before its exec) to its end */
    uint64_t user_ns;
    uint64_t system_ns;
    bool peak_rss_known; /* false: hidden below the launcher's own memory */
    /* Of the largest process. The kernel's own figure; since 6.2 it is rough by some 100 KiB
     * a CPU, which shows in small programs. */
    uint64_t peak_rss_bytes;
    uint64_t peak_rss_exact_bytes; /* of the first process, with `trace`; 0: not known */
    uint64_t peak_rss_floor_bytes;
    uint64_t faults_minor;
    uint64_t faults_major;
    uint64_t switches_voluntary;
    uint64_t switches_involuntary;
    int io_error;        /* errno when the next four could not be read, 0 if they were */
    uint64_t read_bytes; /* through system calls, from whatever source */
    uint64_t write_bytes;
    uint64_t storage_read_bytes; /* fetched from, sent to storage */
    uint64_t storage_write_bytes;
    uint64_t launcher_cpu_ns; /* spent on our side, outside whyslow itself */
    struct spawn_captured output;
    struct spawn_captured error;
};

struct spawn;

/* A launcher that stays. Only argv, path, plain, environment and environment_bytes of `opts`
 * count: the last as the largest that a run will ask for. One run at a time. */
struct spawn_nest;
MUST_USE int spawn_nest_open(const struct spawn_opts *opts, struct spawn_nest **ret,
                             struct why *why);
/* NULL is fine. Only when no run of it is left. */
void spawn_nest_close(struct spawn_nest *nest);

MUST_USE int spawn_start(const struct spawn_opts *opts, struct spawn **ret, struct why *why);
int spawn_pid(const struct spawn *spawn);
/* Readable when there is something for spawn_wait() to see; for callers that poll() on more. */
int spawn_event_fd(const struct spawn *spawn);
/* The same for what it prints, when that is captured; -1 when a stream is not, or has ended. Ask
 * before every poll(). */
int spawn_output_fd(const struct spawn *spawn);
int spawn_error_fd(const struct spawn *spawn);
MUST_USE int spawn_release(struct spawn *spawn, struct why *why);

/* Takes output until `until_ns` (CLOCK_MONOTONIC) or the end of the target.
 * 1 when it has ended: its pid stays a zombie, so that the last figures in
 * /proc can be read, until spawn_finish(). 0 when it still runs. SPAWN_UNMOVED: a foreground
 * target runs on although it was interrupted (interrupt.h) and then given time to end. */
enum { SPAWN_UNMOVED = 2 };
MUST_USE int spawn_wait(struct spawn *spawn, uint64_t until_ns, struct why *why);

/* Only after spawn_wait() returned 1. Failing to start the program is an error
 * here at the latest; a target that fails is not: look at ret->status. */
MUST_USE int spawn_finish(struct spawn *spawn, struct spawn_result *ret, struct why *why);

/* A target that still runs is left to itself by spawn_close(): its launcher waits for it. */
void spawn_leave(struct spawn *spawn);
/* NULL is fine. Ends a target that still runs, unless it was left. */
void spawn_close(struct spawn *spawn);

MUST_USE int spawn_run(const struct spawn_opts *opts, struct spawn_result *ret, struct why *why);
