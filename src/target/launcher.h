/* The process between whyslow and its target, and what the two say to each other.
 *
 * Why there is one: at exec Linux folds the memory of the process that calls it
 * into the new program's peak (ru_maxrss). A target started from whyslow itself
 * would show whyslow's memory. So a launcher with a handful of pages forks,
 * starts the target, waits for it, and sends events through a pipe.
 *
 * The same code is built twice: freestanding, into a small program that is
 * embedded in whyslow (helper/), and into whyslow, for machines where a program
 * cannot be started from memory. It makes system calls and nothing else: no
 * allocation, no libc state, so it may run in a fork of a threaded process.
 *
 * The launcher outlives whyslow when it must: if whyslow is killed, the target
 * runs on, and the launcher takes what it writes so that it gets no SIGPIPE. */
#pragma once

#include <assert.h>
#include <stdint.h>

enum launcher_flags {
    LAUNCHER_OWN_GROUP = 1, /* the target leads a process group of its own */
    LAUNCHER_HOLD = 2,      /* exec only after one byte on the control pipe */
    LAUNCHER_RESIDENT = 4,  /* many runs: one struct launcher_request each */
    LAUNCHER_REAP = 8,      /* no zombie is kept for whyslow: the run ends with LAUNCHER_REAPED */
    LAUNCHER_TRACE = 16,    /* stop it at its exit to read the peak of its memory */
    /* LAUNCHER_FORKED only of a run that lasts: to wake whyslow for it would disturb a short
     * one, and take longer than it. */
    LAUNCHER_LATE = 32,
};

/* Streams a request brings along, as file descriptors in this order. */
enum launcher_stream {
    LAUNCHER_STDIN,
    LAUNCHER_STDOUT,
    LAUNCHER_STDERR,
    LAUNCHER_DRAIN_OUT,
    LAUNCHER_DRAIN_ERR,
    LAUNCHER_STREAMS,
};

/* One run of a resident launcher. The control pipe is a socket then (SOCK_SEQPACKET), and
 * the streams come with the message (SCM_RIGHTS). */
struct launcher_request {
    uint32_t flags;
    uint32_t streams; /* bit i: launcher_stream i is among the descriptors */
    uint32_t nulls;   /* bit i: launcher_stream i is /dev/null */
    uint32_t padding_bytes;
};

/* The last variable of the environment of a launcher whose runs get differently large ones. */
#define LAUNCHER_PADDING "WHYSLOW_PADDING="

struct launcher_opts {
    int event_fd;    /* write end: struct launcher_event */
    int control_fd;  /* read end; its end of file means that whyslow is gone */
    int drain_fd[2]; /* read ends of what the target writes to, or -1 */
    uint32_t flags;
    uint64_t signal_mask; /* the target's */
    const char *path;
    char *const *argv;
    char *const *env;
};

enum launcher_event_kind {
    LAUNCHER_FORKED = 1,  /* pid */
    LAUNCHER_EXEC_FAILED, /* error */
    LAUNCHER_FORK_FAILED, /* error */
    LAUNCHER_STOPPED,     /* status is the stop signal */
    LAUNCHER_EXITED,      /* end_ns; a zombie that is reaped after one byte on the control pipe */
    LAUNCHER_REAPED,      /* all figures */
};

/* What a process has used. */
struct launcher_usage {
    uint64_t rss_peak_bytes;
    uint64_t user_ns;
    uint64_t system_ns;
    uint64_t faults_minor;
    uint64_t faults_major;
    uint64_t switches_voluntary;
    uint64_t switches_involuntary;
};

struct launcher_event {
    uint32_t kind;
    int32_t error;
    int32_t pid;
    int32_t status;    /* as from wait4 */
    uint64_t start_ns; /* just before the process is made; for a held one, before its exec */
    uint64_t end_ns;
    struct launcher_usage before; /* up to exec: a peak of the target below this cannot show */
    struct launcher_usage all;
    uint64_t rss_exact_bytes; /* VmHWM as it stood at exit; 0: not read */
    uint64_t own_cpu_ns;      /* the launcher's, in all its runs so far */
    int32_t io_error;         /* errno when /proc/PID/io could not be read */
    uint32_t io_len;
    char io[256]; /* its text */
};

/* A pipe takes it whole or not at all (PIPE_BUF), so that two writers cannot mix. */
static_assert(sizeof(struct launcher_event) <= 4096, "events must be atomic");

/* Returns when the target has ended, or when no more requests come; the caller exits then. */
void launcher_run(const struct launcher_opts *opts);
