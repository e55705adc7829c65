/* Fork, exec, wait, tell. Built into the embedded helper and into whyslow; see launcher.h. */
#include "target/launcher.h"

#include "target/launcher_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { STOP_CHECK_MS = 250 };

static uint64_t now_ns(void)
{
    struct timespec ts = {0};
    sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&ts, 0, 0, 0);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t timeval_ns(struct timeval tv)
{
    return (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u;
}

static void event_send(const struct launcher_opts *opts, const struct launcher_event *event)
{
    long n;
    do
        n = sys_call(SYS_write, opts->event_fd, (long)event, sizeof(*event), 0, 0);
    while (n == -EINTR);
}

static void mask_set(uint64_t mask)
{
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof(mask), 0);
}

/* One byte, or the end of whyslow; true for the byte. */
static bool control_wait(const struct launcher_opts *opts)
{
    char byte;
    long n;
    do
        n = sys_call(SYS_read, opts->control_fd, (long)&byte, 1, 0, 0);
    while (n == -EINTR);
    return n == 1;
}

static void child_exit(int status)
{
    for (;;)
        sys_call(SYS_exit_group, status, 0, 0, 0, 0);
}

static void usage_fill(const struct rusage *usage, struct launcher_event *event)
{
    event->user_ns = timeval_ns(usage->ru_utime);
    event->system_ns = timeval_ns(usage->ru_stime);
    event->faults_minor = (uint64_t)usage->ru_minflt;
    event->faults_major = (uint64_t)usage->ru_majflt;
    event->switches_voluntary = (uint64_t)usage->ru_nvcsw;
    event->switches_involuntary = (uint64_t)usage->ru_nivcsw;
}

/* `ready_fd` ends when the launcher has opened what it needs of us. */
static void child_run(const struct launcher_opts *opts, int ready_fd)
{
    char byte;
    while (sys_call(SYS_read, ready_fd, (long)&byte, 1, 0, 0) == -EINTR)
        ;
    if (opts->flags & LAUNCHER_OWN_GROUP)
        sys_call(SYS_setpgid, 0, 0, 0, 0, 0);
    /* Held and then left alone: whyslow died before the target began, so it never does. */
    if ((opts->flags & LAUNCHER_HOLD) && !control_wait(opts))
        child_exit(125);
    struct rusage usage = {0};
    sys_call(SYS_getrusage, RUSAGE_SELF, (long)&usage, 0, 0, 0);
    struct launcher_event event = {.kind = LAUNCHER_EXEC};
    usage_fill(&usage, &event);
    event.rss_floor_bytes = (uint64_t)usage.ru_maxrss * 1024;
    event.start_ns = now_ns();
    event_send(opts, &event);
    mask_set(opts->signal_mask);
    long r = sys_call(SYS_execve, (long)opts->path, (long)opts->argv, (long)opts->env, 0, 0);
    mask_set(~0ull); /* so that a closed pipe does not end us before we have said why */
    event.kind = LAUNCHER_EXEC_FAILED;
    event.error = (int32_t)-r;
    event_send(opts, &event);
    child_exit(127);
}

/* Whyslow is gone: what the target writes is read and thrown away. False at its end. */
static bool drain(int *fd)
{
    static char bytes[4096];
    long n = sys_call(SYS_read, *fd, (long)bytes, sizeof(bytes), 0, 0);
    if (n > 0 || n == -EINTR || n == -EAGAIN)
        return true;
    *fd = -1;
    return false;
}

static void stop_check(const struct launcher_opts *opts, int pid, int *seen)
{
    siginfo_t info;
    info.si_pid = 0;
    info.si_status = 0;
    long r = sys_call(SYS_waitid, P_PID, pid, (long)&info, WSTOPPED | WNOHANG | WNOWAIT, 0);
    int signal = r == 0 && info.si_pid == pid ? info.si_status : 0;
    if (signal != 0 && signal != *seen) {
        struct launcher_event event = {.kind = LAUNCHER_STOPPED, .pid = pid, .status = signal};
        event_send(opts, &event);
    }
    *seen = signal;
}

/* Without pidfds (Linux before 5.3) we cannot watch whyslow and the target at once. */
static void wait_plain(int pid)
{
    siginfo_t info;
    while (sys_call(SYS_waitid, P_PID, pid, (long)&info, WEXITED | WNOWAIT, 0) == -EINTR)
        ;
}

static void wait_end(const struct launcher_opts *opts, int pid, int drains[2])
{
    int pidfd = (int)sys_call(SYS_pidfd_open, pid, 0, 0, 0, 0);
    if (pidfd < 0) {
        wait_plain(pid);
        return;
    }
    bool orphaned = false;
    int stopped = 0;
    for (;;) {
        struct timespec tick = {.tv_nsec = STOP_CHECK_MS * 1000000L};
        struct pollfd fds[4] = {
            {.fd = pidfd, .events = POLLIN},
            {.fd = orphaned ? -1 : opts->control_fd, .events = 0},
            {.fd = orphaned ? drains[0] : -1, .events = POLLIN},
            {.fd = orphaned ? drains[1] : -1, .events = POLLIN},
        };
        long n = sys_call(SYS_ppoll, (long)fds, 4, (long)&tick, 0, 0);
        if (n <= 0) {
            stop_check(opts, pid, &stopped);
            continue;
        }
        if (fds[0].revents)
            break;
        orphaned = orphaned || fds[1].revents;
        for (int i = 0; i < 2; i++)
            if (fds[2 + i].revents)
                drain(&drains[i]);
    }
    sys_call(SYS_close, pidfd, 0, 0, 0, 0);
}

/* "/proc/PID/io"; no snprintf here. */
static void io_path(int pid, char path[32])
{
    char digits[12];
    int len = 0, at = 0;
    for (const char *p = "/proc/"; *p; p++)
        path[at++] = *p;
    do
        digits[len++] = (char)('0' + pid % 10);
    while ((pid /= 10) > 0);
    while (len > 0)
        path[at++] = digits[--len];
    for (const char *p = "/io"; *p; p++)
        path[at++] = *p;
    path[at] = '\0';
}

/* Opened while it lives: a zombie's file belongs to root, but what is open can be read. */
static int io_open(int pid)
{
    char path[32];
    io_path(pid, path);
    return (int)sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0);
}

/* A zombie's figures are complete, with those of children it reaped. */
static void io_read(int fd, struct launcher_event *event)
{
    long n = fd < 0 ? fd : sys_call(SYS_read, fd, (long)event->io, sizeof(event->io), 0, 0);
    event->io_error = n < 0 ? (int32_t)-n : 0;
    event->io_len = n < 0 ? 0 : (uint32_t)n;
}

static void reap(int pid, struct launcher_event *event)
{
    struct rusage usage = {0};
    int status = 0;
    while (sys_call(SYS_wait4, pid, (long)&status, 0, (long)&usage, 0) == -EINTR)
        ;
    event->status = status;
    usage_fill(&usage, event);
    event->rss_peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    sys_call(SYS_getrusage, RUSAGE_SELF, (long)&usage, 0, 0, 0);
    event->own_cpu_ns = timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
}

static void watch(const struct launcher_opts *opts, int pid, int io_fd)
{
    if (opts->flags & LAUNCHER_OWN_GROUP)
        sys_call(SYS_setpgid, pid, pid, 0, 0, 0);
    struct launcher_event event = {.kind = LAUNCHER_FORKED, .pid = pid};
    event_send(opts, &event);
    /* Our copies of the target's streams would hide its end of file. */
    for (int fd = 0; fd < 3; fd++)
        sys_call(SYS_close, fd, 0, 0, 0, 0);
    int drains[2] = {opts->drain_fd[0], opts->drain_fd[1]};
    wait_end(opts, pid, drains);
    event.kind = LAUNCHER_EXITED;
    event.end_ns = now_ns();
    event_send(opts, &event);
    io_read(io_fd, &event);
    bool alive = control_wait(opts);
    reap(pid, &event);
    event.kind = LAUNCHER_REAPED;
    event_send(opts, &event);
    for (int i = 0; !alive && i < 2; i++)
        while (drains[i] >= 0 && drain(&drains[i]))
            ;
}

void launcher_run(const struct launcher_opts *opts)
{
    const int fds[] = {opts->event_fd, opts->control_fd, opts->drain_fd[0], opts->drain_fd[1]};
    for (int i = 0; i < 4; i++)
        if (fds[i] >= 0)
            sys_call(SYS_fcntl, fds[i], F_SETFD, FD_CLOEXEC, 0, 0);
    /* Ctrl-C is for the target and for whyslow; whoever waits for the end must see it. */
    mask_set(~0ull);
    int ready[2] = {-1, -1};
    long pid = sys_call(SYS_pipe2, (long)ready, O_CLOEXEC, 0, 0, 0);
    if (pid == 0)
        pid = sys_call(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        sys_call(SYS_close, ready[1], 0, 0, 0, 0);
        child_run(opts, ready[0]);
    }
    if (pid > 0) {
        int io_fd = io_open((int)pid);
        sys_call(SYS_close, ready[0], 0, 0, 0, 0);
        sys_call(SYS_close, ready[1], 0, 0, 0, 0);
        watch(opts, (int)pid, io_fd);
        return;
    }
    struct launcher_event event = {.kind = LAUNCHER_FORK_FAILED, .error = (int32_t)-pid};
    event_send(opts, &event);
}
