/* What spawn_start.c sets up and spawn.c runs. For these two files only. */
#pragma once

#include "target/launcher.h"
#include "target/spawn.h"

#include <sys/types.h>

struct spawn_pipe {
    int fd; /* our read end, or -1 */
    bool error;
    struct sha256 hash;
    struct spawn_captured got;
    struct spawn_listener *listener;
};

struct spawn {
    bool foreground;
    bool end_group;
    bool held;
    bool was_held;
    uint64_t timeout_ns;
    char name[128];          /* for messages */
    pid_t launcher;          /* 0 when it is the nest's */
    struct spawn_nest *nest; /* its fds are borrowed then */
    bool reap;               /* ends with LAUNCHER_REAPED, without a zombie for us */
    bool late;               /* its pid may come late */
    int pid;                 /* of the target; 0 until known */
    int event_fd;
    int control_fd;
    struct spawn_pipe output;
    struct spawn_pipe error;
    uint64_t begun_ns;  /* when it was started or released: timeouts count from here */
    uint64_t killed_ns; /* when SIGTERM or the last interrupt was sent; 0 if not */
    bool killed_hard;
    bool left; /* it is to run on when we close */
    bool timed_out;
    int interrupted;
    unsigned interrupts_seen;
    int stopped; /* the signal that stopped it, or 0 */
    bool exited;
    bool reaped;
    int exec_error;
    int fork_error;
    struct launcher_event end; /* EXITED, then REAPED */
};

struct spawn_nest {
    pid_t launcher;
    int event_fd;
    int control_fd;
    uint64_t cpu_ns; /* of the launcher, up to the last run */
    bool broken;     /* a run of it could not be ended: no more requests */
};

struct spawn_ends { /* what the launcher gets; all close-on-exec here */
    int stdio[3];
    int event;
    int control;
};
#define SPAWN_ENDS_INIT ((struct spawn_ends){{-1, -1, -1}, -1, -1})
void spawn_ends_close(struct spawn_ends *ends);
MUST_USE int spawn_streams_open(const struct spawn_opts *opts, struct spawn *spawn,
                                struct spawn_ends *ends, struct why *why);
/* An end that is not 0 to 2, where the target's streams go. */
int spawn_lift(int fd);

/* A process that runs launcher_run(): the embedded helper, else a fork of ourselves. `ours`
 * are the two ends that a fork must not keep. */
MUST_USE int spawn_launcher_start(struct launcher_opts *launcher, const struct spawn_ends *ends,
                                  const int ours[2], bool plain, pid_t *ret_pid);
/* Our environment with the variables of `opts` and room for padding; ours itself if nothing is
 * asked for. Freed by environment_free(). */
char **environment_make(const struct spawn_opts *opts);
void environment_free(char **env);

/* Starts the launcher of one run, or asks the one that is there. */
MUST_USE int spawn_launch(const struct spawn_opts *opts, struct spawn *spawn, struct why *why);
MUST_USE int spawn_nest_request(const struct spawn_opts *opts, struct spawn *spawn,
                                struct why *why);
int spawn_launch_failed(int error, const char *name, struct why *why);
