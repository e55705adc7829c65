/* What spawn_start.c sets up and spawn.c runs. For these two files only. */
#pragma once

#include "target/launcher.h"
#include "target/spawn.h"

#include <sys/types.h>

struct spawn_pipe {
    int fd; /* our read end, or -1 */
    struct sha256 hash;
    struct spawn_captured got;
};

struct spawn {
    bool foreground;
    bool held;
    bool was_held;
    uint64_t timeout_ns;
    char name[128]; /* for messages */
    pid_t launcher;
    int pid; /* of the target; 0 until known */
    int event_fd;
    int control_fd;
    struct spawn_pipe output;
    struct spawn_pipe error;
    uint64_t begun_ns;  /* when it was started or released: timeouts count from here */
    uint64_t killed_ns; /* when SIGTERM or the interrupt was sent; 0 if not */
    bool killed_hard;
    bool timed_out;
    int interrupted;
    unsigned interrupts_seen;
    int stopped; /* the signal that stopped it, or 0 */
    bool exited;
    bool reaped;
    int exec_error;
    int fork_error;
    struct launcher_event exec;
    struct launcher_event end; /* EXITED, then REAPED */
};

/* Starts the launcher: from the embedded helper, else as a fork of ourselves. */
MUST_USE int spawn_launch(const struct spawn_opts *opts, struct spawn *spawn, struct why *why);
