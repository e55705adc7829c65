/* The life of a started target: its events, its output, its end. */
#include "target/spawn.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "target/interrupt.h"
#include "target/spawn_internal.h"
#include "target/tree.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    POLL_MS_MAX = 100,        /* an interrupt that slips in between is seen this late */
    GRACE_MS = 1000,          /* from SIGTERM to SIGKILL */
    LEFT_OPEN_GRACE_MS = 100, /* for output of what the target left running */
    START_MS_MAX = 10000,
    CLOSE_MS_MAX = 1000,
    PEAK_SLACK_BYTES = 64 * 1024,
};

static void tail_add(struct spawn_captured *got, const char *data, size_t len)
{
    if (len >= sizeof(got->tail)) {
        memcpy(got->tail, data + len - sizeof(got->tail), sizeof(got->tail));
        got->tail_len = sizeof(got->tail);
        return;
    }
    size_t keep = MIN(got->tail_len, sizeof(got->tail) - len);
    memmove(got->tail, got->tail + got->tail_len - keep, keep);
    memcpy(got->tail + keep, data, len);
    got->tail_len = keep + len;
}

/* Takes what is there, at most a megabyte at once, so that two streams share. */
static void pipe_drain(struct spawn_pipe *pipe)
{
    char data[65536];
    for (int i = 0; i < 16 && pipe->fd >= 0; i++) {
        ssize_t n = read(pipe->fd, data, sizeof(data));
        if (n > 0) {
            sha256_add(&pipe->hash, data, (size_t)n);
            pipe->got.bytes += (uint64_t)n;
            tail_add(&pipe->got, data, (size_t)n);
            if (pipe->listener)
                pipe->listener->take(pipe->listener, pipe->error, data, (size_t)n);
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            fd_close(&pipe->fd);
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

/* What a signal is about from now on; its pid may come later. */
static void target_announce(const struct spawn *spawn)
{
    interrupt_target_set(spawn, spawn->foreground ? INTERRUPT_OWN : INTERRUPT_APART, spawn->pid);
}

static void event_take(struct spawn *spawn, const struct launcher_event *event)
{
    if (event->kind != LAUNCHER_FORK_FAILED && spawn->pid == 0) {
        spawn->pid = event->pid;
        target_announce(spawn);
    }
    if (event->kind == LAUNCHER_EXITED || event->kind == LAUNCHER_REAPED ||
        event->kind == LAUNCHER_EXEC_FAILED)
        interrupt_target_set(spawn, INTERRUPT_NONE, 0);
    switch (event->kind) {
    case LAUNCHER_EXEC_FAILED:
        spawn->exec_error = event->error;
        break;
    case LAUNCHER_FORK_FAILED:
        spawn->fork_error = event->error;
        break;
    case LAUNCHER_STOPPED:
        spawn->stopped = event->status;
        break;
    case LAUNCHER_EXITED:
        spawn->exited = true;
        spawn->end = *event;
        break;
    case LAUNCHER_REAPED:
        spawn->exited = true;
        spawn->reaped = true;
        spawn->end = *event;
        break;
    default:
        break;
    }
}

static int events_read(struct spawn *spawn, struct why *why)
{
    struct launcher_event event;
    ssize_t n = read(spawn->event_fd, &event, sizeof(event));
    if (n == (ssize_t)sizeof(event)) {
        event_take(spawn, &event);
        return 0;
    }
    if (n < 0 && errno == EINTR)
        return 0;
    return why_set(why, WHY_FAILED, ECHILD, "run it again; was a process of whyslow killed?",
                   "lost sight of '%s': its launcher ended", spawn->name);
}

/* One round of waiting: events and output, until something came or `wait_ms` passed. */
static int pump(struct spawn *spawn, int wait_ms, struct why *why)
{
    struct pollfd fds[] = {
        {.fd = spawn->event_fd, .events = POLLIN},
        {.fd = spawn->output.fd, .events = POLLIN},
        {.fd = spawn->error.fd, .events = POLLIN},
    };
    int n = poll(fds, ARRAY_SIZE(fds), wait_ms);
    if (n < 0 && errno != EINTR)
        return why_errno(why, errno, NULL, "cannot wait for '%s'", spawn->name);
    if (n <= 0)
        return 0;
    if (fds[1].revents)
        pipe_drain(&spawn->output);
    if (fds[2].revents)
        pipe_drain(&spawn->error);
    return fds[0].revents ? events_read(spawn, why) : 0;
}

static void signal_target(const struct spawn *spawn, int signal)
{
    /* The launcher keeps the zombie until we say so: this pid cannot be another's. */
    if (spawn->pid > 0 && !spawn->reaped)
        kill(spawn->foreground ? spawn->pid : -spawn->pid, signal);
}

static void interrupts_take(struct spawn *spawn, uint64_t now_ns)
{
    if (interrupt_count() == spawn->interrupts_seen)
        return;
    spawn->interrupts_seen = interrupt_count();
    spawn->interrupted = interrupt_signal();
    spawn->killed_ns = now_ns;
    if (spawn->interrupts_seen > 1) {
        spawn->killed_hard = true;
        tree_kill(spawn->pid);
        signal_target(spawn, SIGKILL);
    } else if (!spawn->foreground || !interrupt_has_reached_target()) {
        signal_target(spawn, spawn->interrupted);
        signal_target(spawn, SIGCONT); /* a stopped process takes none */
    }
}

/* Timeouts and interrupts: first asked, then made. */
static void press(struct spawn *spawn, uint64_t now_ns)
{
    if (spawn->pid == 0)
        return; /* it comes in a moment */
    interrupts_take(spawn, now_ns);
    if (spawn->killed_ns == 0 && spawn->timeout_ns > 0 && !spawn->held &&
        now_ns - spawn->begun_ns >= spawn->timeout_ns) {
        spawn->timed_out = true;
        spawn->killed_ns = now_ns;
        signal_target(spawn, SIGTERM);
        signal_target(spawn, SIGCONT); /* a stopped process takes no SIGTERM */
    }
    /* A foreground target that handles Ctrl-C is its user's business: it is left running. */
    bool patient = spawn->foreground && spawn->interrupted && !spawn->timed_out;
    uint64_t grace_ms = spawn->interrupted ? INTERRUPT_PATIENCE_MS : GRACE_MS;
    if (spawn->killed_ns && !spawn->killed_hard && !patient &&
        now_ns - spawn->killed_ns >= grace_ms * NS_PER_MS) {
        spawn->killed_hard = true;
        signal_target(spawn, SIGKILL);
    }
}

static bool is_unmoved(const struct spawn *spawn, uint64_t now_ns)
{
    return spawn->foreground && spawn->interrupted && spawn->killed_ns &&
           now_ns - spawn->killed_ns >= INTERRUPT_PATIENCE_MS * NS_PER_MS;
}

static int start_failed(const struct spawn *spawn, struct why *why)
{
    return why_errno(why, spawn->fork_error ? spawn->fork_error : ETIMEDOUT,
                     "free some memory, or raise 'ulimit -u'", "cannot start a process for '%s'",
                     spawn->name);
}

static int start_wait(struct spawn *spawn, struct why *why)
{
    uint64_t until_ns = clock_mono_ns() + START_MS_MAX * NS_PER_MS;
    while (spawn->pid == 0 && spawn->fork_error == 0 && clock_mono_ns() < until_ns) {
        int r = pump(spawn, POLL_MS_MAX, why);
        if (r < 0)
            return r;
    }
    return spawn->pid == 0 ? start_failed(spawn, why) : 0;
}

int spawn_start(const struct spawn_opts *opts, struct spawn **ret, struct why *why)
{
    struct spawn *spawn = calloc(1, sizeof(*spawn));
    if (!spawn)
        return why_nomem(why);
    *spawn = (struct spawn){.foreground = opts->foreground,
                            .end_group = opts->end_group && !opts->foreground,
                            .held = opts->hold,
                            .was_held = opts->hold,
                            .timeout_ns = opts->timeout_ns,
                            .interrupts_seen = opts->foreground ? 0 : interrupt_count(),
                            .event_fd = -1,
                            .control_fd = -1};
    snprintf(spawn->name, sizeof(spawn->name), "%s", opts->argv[0]);
    struct spawn_pipe *pipes[] = {&spawn->output, &spawn->error};
    for (size_t i = 0; i < ARRAY_SIZE(pipes); i++) {
        pipes[i]->fd = -1;
        pipes[i]->error = i == 1;
        pipes[i]->listener = opts->listener;
        pipes[i]->got.captured = (i == 0 ? opts->output : opts->error) == SPAWN_CAPTURE;
        sha256_init(&pipes[i]->hash);
    }
    if (opts->listener)
        opts->listener->begin(opts->listener);
    target_announce(spawn);
    int r = spawn_launch(opts, spawn, why);
    spawn->begun_ns = clock_mono_ns();
    if (r == 0 && !spawn->late)
        r = start_wait(spawn, why);
    if (r < 0) {
        spawn_close(spawn);
        return r;
    }
    *ret = spawn;
    return 0;
}

int spawn_pid(const struct spawn *spawn)
{
    return spawn->pid;
}

int spawn_event_fd(const struct spawn *spawn)
{
    return spawn->event_fd;
}

int spawn_output_fd(const struct spawn *spawn)
{
    return spawn->output.got.captured ? spawn->output.fd : -1;
}

int spawn_error_fd(const struct spawn *spawn)
{
    return spawn->error.got.captured ? spawn->error.fd : -1;
}

static int control_say(struct spawn *spawn, struct why *why)
{
    int r = fd_write_all(spawn->control_fd, "g", 1);
    if (r < 0)
        return why_errno(why, -r, NULL, "lost the launcher of '%s'", spawn->name);
    return 0;
}

int spawn_release(struct spawn *spawn, struct why *why)
{
    if (!spawn->held)
        return 0;
    spawn->held = false;
    spawn->begun_ns = clock_mono_ns();
    return control_say(spawn, why);
}

static int stopped_error(const struct spawn *spawn, struct why *why)
{
    return why_set(why, WHY_USAGE, EIO,
                   "give it what it asks for through options or files: here it runs without "
                   "a terminal",
                   "'%s' was stopped because it wants to %s the terminal", spawn->name,
                   spawn->stopped == SIGTTIN ? "read from" : "change");
}

int spawn_wait(struct spawn *spawn, uint64_t until_ns, struct why *why)
{
    while (!spawn->exited) {
        uint64_t now_ns = clock_mono_ns();
        press(spawn, now_ns);
        if (is_unmoved(spawn, now_ns))
            return SPAWN_UNMOVED;
        if (now_ns >= until_ns)
            return 0;
        uint64_t left_ms = (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
        int r = pump(spawn, (int)MIN(left_ms, (uint64_t)POLL_MS_MAX), why);
        if (r < 0)
            return r;
        if (spawn->fork_error)
            return start_failed(spawn, why);
        if (spawn->stopped == SIGTTIN || spawn->stopped == SIGTTOU)
            return stopped_error(spawn, why);
    }
    return 1;
}

static int exec_error(const struct spawn *spawn, struct why *why)
{
    int error = spawn->exec_error;
    if (error == ENOEXEC)
        return why_set(why, WHY_USAGE, error,
                       "a script needs a first line such as '#!/bin/sh', or start it with its "
                       "interpreter: sh FILE",
                       "'%s' is no program this machine can run", spawn->name);
    if (error == ENOENT)
        return why_set(why, WHY_USAGE, error,
                       "look at its first line ('head -1') or, for a binary, at 'readelf -l'",
                       "'%s' exists, but the interpreter or loader it names does not", spawn->name);
    if (error == EACCES)
        return why_set(why, WHY_USAGE, error, "is it on a filesystem mounted noexec?",
                       "'%s' may not be executed", spawn->name);
    return why_errno(why, error, NULL, "cannot execute '%s'", spawn->name);
}

static void captured_finish(struct spawn_pipe *pipe, struct spawn_captured *ret)
{
    pipe->got.still_open = pipe->fd >= 0;
    if (pipe->got.captured)
        sha256_finish(&pipe->hash, pipe->got.sha256);
    *ret = pipe->got;
}

/* The target is gone; what is left in the pipes belongs to the run. Children that it left
 * behind may hold them open for ever, so the patience ends. */
static void drain_rest(struct spawn *spawn)
{
    uint64_t until_ns = clock_mono_ns() + LEFT_OPEN_GRACE_MS * NS_PER_MS;
    while ((spawn->output.fd >= 0 || spawn->error.fd >= 0) && clock_mono_ns() < until_ns) {
        struct pollfd fds[] = {{.fd = spawn->output.fd, .events = POLLIN},
                               {.fd = spawn->error.fd, .events = POLLIN}};
        if (poll(fds, ARRAY_SIZE(fds), 10) > 0) {
            pipe_drain(&spawn->output);
            pipe_drain(&spawn->error);
        }
    }
}

/* What happened between fork and exec is the target's by the kernel's books, not by ours. */
static uint64_t without(uint64_t all, uint64_t ours)
{
    return all > ours ? all - ours : 0;
}

static void io_fill(const struct spawn *spawn, struct spawn_result *result)
{
    const struct launcher_event *end = &spawn->end;
    struct str text = {end->io, MIN(end->io_len, sizeof(end->io))};
    result->io_error = end->io_error;
    if (result->io_error)
        return;
    if (str_to_u64(str_field(text, "rchar"), 10, &result->read_bytes) < 0 ||
        str_to_u64(str_field(text, "wchar"), 10, &result->write_bytes) < 0 ||
        str_to_u64(str_field(text, "read_bytes"), 10, &result->storage_read_bytes) < 0 ||
        str_to_u64(str_field(text, "write_bytes"), 10, &result->storage_write_bytes) < 0)
        result->io_error = ENODATA;
    result->read_bytes = without(result->read_bytes, spawn->was_held ? 1 : 0);
    result->write_bytes = without(result->write_bytes,
                                  spawn->was_held ? sizeof(struct launcher_event) : 0);
}

/* The kernel's counters lag by some pages, and the last steps to exec touch a few: a peak
 * this near to the launcher's own says nothing about the target. */
static bool peak_is_targets(uint64_t peak_bytes, uint64_t floor_bytes)
{
    return peak_bytes > floor_bytes + floor_bytes / 50 + PEAK_SLACK_BYTES;
}

static uint64_t launcher_cpu_ns(const struct spawn *spawn)
{
    uint64_t all_ns = spawn->end.own_cpu_ns;
    if (!spawn->nest)
        return all_ns;
    uint64_t ns = without(all_ns, spawn->nest->cpu_ns);
    spawn->nest->cpu_ns = all_ns;
    return ns;
}

/* Processes that the target started and did not wait for. Its group has no other members: it
 * led it, and it is gone. */
static bool group_end(const struct spawn *spawn)
{
    return spawn->end_group && spawn->reaped && kill(-spawn->pid, SIGKILL) == 0;
}

int spawn_finish(struct spawn *spawn, struct spawn_result *ret, struct why *why)
{
    int r = spawn->reap ? 0 : control_say(spawn, why);
    while (r == 0 && !spawn->reaped)
        r = pump(spawn, POLL_MS_MAX, why);
    bool left_behind = r == 0 && group_end(spawn);
    if (r < 0)
        return r;
    drain_rest(spawn);
    if (spawn->exec_error)
        return exec_error(spawn, why);
    const struct launcher_event *end = &spawn->end;
    const struct launcher_usage *all = &end->all, *before = &end->before;
    struct spawn_result result = {
        .status = end->status,
        .timed_out = spawn->timed_out,
        .left_behind = left_behind,
        .interrupted = spawn->interrupted,
        .wall_ns = without(end->end_ns, end->start_ns),
        .user_ns = without(all->user_ns, before->user_ns),
        .system_ns = without(all->system_ns, before->system_ns),
        .peak_rss_known = peak_is_targets(all->rss_peak_bytes, before->rss_peak_bytes),
        .peak_rss_bytes = all->rss_peak_bytes,
        .peak_rss_exact_bytes = end->rss_exact_bytes,
        .peak_rss_floor_bytes = before->rss_peak_bytes,
        .faults_minor = without(all->faults_minor, before->faults_minor),
        .faults_major = without(all->faults_major, before->faults_major),
        .switches_voluntary = without(all->switches_voluntary, before->switches_voluntary),
        .switches_involuntary = without(all->switches_involuntary, before->switches_involuntary),
        .launcher_cpu_ns = launcher_cpu_ns(spawn),
    };
    io_fill(spawn, &result);
    captured_finish(&spawn->output, &result.output);
    captured_finish(&spawn->error, &result.error);
    *ret = result;
    return 0;
}

/* The launcher goes on to the next run only when this one is over. */
static void nest_leave(struct spawn *spawn)
{
    uint64_t until_ns = clock_mono_ns() + CLOSE_MS_MAX * NS_PER_MS;
    while (!spawn->reaped && !spawn->fork_error && clock_mono_ns() < until_ns)
        if (pump(spawn, POLL_MS_MAX, NULL) < 0)
            break;
    spawn->nest->broken = !spawn->reaped && !spawn->fork_error;
    fd_close(&spawn->output.fd);
    fd_close(&spawn->error.fd);
}

void spawn_leave(struct spawn *spawn)
{
    spawn->left = true;
    interrupt_target_set(spawn, INTERRUPT_NONE, 0); /* signals are no longer about it */
}

void spawn_close(struct spawn *spawn)
{
    if (!spawn)
        return;
    if (spawn->late && !spawn->exited && start_wait(spawn, NULL) < 0)
        spawn->nest->broken = true;
    if (!spawn->exited && !spawn->left)
        signal_target(spawn, SIGKILL);
    interrupt_target_set(spawn, INTERRUPT_NONE, 0);
    if (spawn->nest) {
        nest_leave(spawn);
        free(spawn);
        return;
    }
    /* The end of the control pipe lets the launcher reap and go. */
    fd_close(&spawn->control_fd);
    fd_close(&spawn->output.fd);
    fd_close(&spawn->error.fd);
    fd_close(&spawn->event_fd);
    /* After an error it may still serve processes that the target left behind: then it is
     * left to init. */
    for (int i = 0; i < CLOSE_MS_MAX && spawn->launcher > 0 && !spawn->left; i++) {
        if (waitpid(spawn->launcher, NULL, WNOHANG) != 0)
            break;
        clock_sleep_ns(i < 20 ? NS_PER_MS / 20 : NS_PER_MS);
    }
    free(spawn);
}

int spawn_run(const struct spawn_opts *opts, struct spawn_result *ret, struct why *why)
{
    struct spawn *spawn = NULL;
    int r = spawn_start(opts, &spawn, why);
    if (r < 0)
        return r;
    assert(spawn);
    r = spawn_release(spawn, why);
    while (r == 0)
        r = spawn_wait(spawn, clock_mono_ns() + NS_PER_SEC, why);
    if (r > 0)
        r = spawn_finish(spawn, ret, why);
    spawn_close(spawn);
    return r;
}
