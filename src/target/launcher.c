/* Fork, exec, wait, tell. Built into the embedded helper and into whyslow; see launcher.h.
 *
 * The child shares our memory until its exec (as after vfork), so that it costs little and can
 * leave its figures in `struct launcher_run` without a call that would count as the target's. */
#include "target/launcher.h"

#include "target/launcher_run.h"
#include "target/launcher_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { STOP_CHECK_MS = 250, LATE_MS = 20 };

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

void launcher_event_send(struct launcher_run *run, struct launcher_event *event)
{
    long n;
    event->pid = run->pid;
    do
        n = sys_call(SYS_write, run->opts->event_fd, (long)event, sizeof(*event), 0, 0);
    while (n == -EINTR);
    run->orphaned = run->orphaned || n == -EPIPE;
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

static void usage_fill(const struct rusage *usage, struct launcher_usage *ret)
{
    ret->rss_peak_bytes = (uint64_t)usage->ru_maxrss * 1024;
    ret->user_ns = timeval_ns(usage->ru_utime);
    ret->system_ns = timeval_ns(usage->ru_stime);
    ret->faults_minor = (uint64_t)usage->ru_minflt;
    ret->faults_major = (uint64_t)usage->ru_majflt;
    ret->switches_voluntary = (uint64_t)usage->ru_nvcsw;
    ret->switches_involuntary = (uint64_t)usage->ru_nivcsw;
}

/* Whyslow learns of a held process from the process itself: we sleep until its exec. */
static void child_hold(struct launcher_run *run)
{
    struct launcher_event event = {.kind = LAUNCHER_FORKED};
    launcher_event_send(run, &event);
    /* Held and then left alone: whyslow died before the target began, so it never does. */
    if (!control_wait(run->opts))
        child_exit(125);
}

/* Opened in the table we still share: the launcher reads it when we are a zombie, whose file
 * it could not open any more. */
static void child_io_open(struct launcher_run *run)
{
    run->io_fd = (int)sys_call(SYS_openat, AT_FDCWD, (long)"/proc/self/io", O_RDONLY | O_CLOEXEC, 0,
                               0);
    sys_call(SYS_unshare, CLONE_FILES, 0, 0, 0, 0);
}

static void child_run(struct launcher_run *run)
{
    const struct launcher_opts *opts = run->opts;
    run->pid = (int)sys_call(SYS_getpid, 0, 0, 0, 0, 0);
    child_io_open(run);
    for (int i = 0; i < 3; i++) {
        int fd = run->nulls & (1u << i) ? run->null_fd : run->streams[i];
        if (fd >= 0)
            sys_call(SYS_dup3, fd, i, 0, 0, 0);
    }
    if (run->flags & LAUNCHER_OWN_GROUP)
        sys_call(SYS_setpgid, 0, 0, 0, 0, 0);
    if (run->flags & LAUNCHER_HOLD)
        child_hold(run);
    if (run->flags & LAUNCHER_TRACE)
        run->traced = launcher_trace_me();
    struct rusage usage = {0};
    sys_call(SYS_getrusage, RUSAGE_SELF, (long)&usage, 0, 0, 0);
    usage_fill(&usage, &run->event.before);
    if (run->flags & LAUNCHER_HOLD)
        run->event.start_ns = now_ns();
    mask_set(opts->signal_mask);
    long r = sys_call(SYS_execve, (long)opts->path, (long)opts->argv, (long)opts->env, 0, 0);
    run->exec_error = (int)-r;
    child_exit(127);
}

/* With libc the memory of whyslow must not be shared: its code is not made for that. Then only
 * the figures are, and the child is a copy. */
#ifdef LAUNCHER_FREESTANDING
enum { CHILD_FLAGS = CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD };

static struct launcher_run *run_memory(void)
{
    static struct launcher_run run;
    return &run;
}
#else

enum { CHILD_FLAGS = CLONE_VFORK | CLONE_FILES | SIGCHLD };

static struct launcher_run *run_memory(void)
{
    void *at = mmap(NULL, sizeof(struct launcher_run), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}
#endif

/* Where memory is shared, the child goes on in this very frame while we sleep; it never
 * returns from child_run(). */
static __attribute__((noinline)) long child_start(struct launcher_run *run)
{
    long pid = sys_call(SYS_clone, CHILD_FLAGS, 0, 0, 0, 0);
    if (pid == 0)
        child_run(run);
    return pid;
}

/* Whyslow is gone: what the target writes is read and thrown away. False at its end. */
static bool drain(int *fd)
{
    static char bytes[4096];
    long n = sys_call(SYS_read, *fd, (long)bytes, sizeof(bytes), 0, 0);
    if (n > 0 || n == -EINTR || n == -EAGAIN)
        return true;
    sys_call(SYS_close, *fd, 0, 0, 0, 0);
    *fd = -1;
    return false;
}

static void stop_check(struct launcher_run *run)
{
    siginfo_t info;
    info.si_pid = 0;
    info.si_status = 0;
    long r = sys_call(SYS_waitid, P_PID, run->pid, (long)&info, WSTOPPED | WNOHANG | WNOWAIT, 0);
    int signal = r == 0 && info.si_pid == run->pid ? info.si_status : 0;
    if (signal != 0 && signal != run->stop_signal) {
        struct launcher_event event = {.kind = LAUNCHER_STOPPED, .status = signal};
        launcher_event_send(run, &event);
    }
    run->stop_signal = signal;
}

/* Without pidfds (Linux before 5.3) we cannot watch whyslow and the target at once. */
static void wait_plain(const struct launcher_run *run)
{
    siginfo_t info;
    while (sys_call(SYS_waitid, P_PID, run->pid, (long)&info, WEXITED | WNOWAIT, 0) == -EINTR)
        ;
}

static void forked_tell(struct launcher_run *run)
{
    struct launcher_event event = {.kind = LAUNCHER_FORKED};
    if (!run->told)
        launcher_event_send(run, &event);
    run->told = true;
}

bool launcher_poll(struct launcher_run *run, int fd)
{
    struct timespec tick = {.tv_nsec = (run->told ? STOP_CHECK_MS : LATE_MS) * 1000000L};
    struct pollfd fds[4] = {
        {.fd = fd, .events = POLLIN},
        /* Only its hang-up: bytes on it are for later. */
        {.fd = run->orphaned ? -1 : run->opts->control_fd, .events = 0},
        {.fd = run->orphaned ? run->streams[LAUNCHER_DRAIN_OUT] : -1, .events = POLLIN},
        {.fd = run->orphaned ? run->streams[LAUNCHER_DRAIN_ERR] : -1, .events = POLLIN},
    };
    if (sys_call(SYS_ppoll, (long)fds, 4, (long)&tick, 0, 0) <= 0) {
        forked_tell(run);
        if (!run->traced)
            stop_check(run);
        return false;
    }
    run->orphaned = run->orphaned || fds[1].revents;
    for (int i = 0; i < 2; i++)
        if (fds[2 + i].revents)
            drain(&run->streams[LAUNCHER_DRAIN_OUT + i]);
    return fds[0].revents;
}

static void wait_end(struct launcher_run *run)
{
    int pidfd = (int)sys_call(SYS_pidfd_open, run->pid, 0, 0, 0, 0);
    if (pidfd < 0) {
        wait_plain(run);
        return;
    }
    while (!launcher_poll(run, pidfd))
        ;
    sys_call(SYS_close, pidfd, 0, 0, 0, 0);
}

/* A zombie's figures are complete, with those of children it reaped. */
static void io_read(struct launcher_run *run)
{
    struct launcher_event *event = &run->event;
    long n = run->io_fd;
    if (n >= 0) {
        n = sys_call(SYS_read, run->io_fd, (long)event->io, sizeof(event->io), 0, 0);
        sys_call(SYS_close, run->io_fd, 0, 0, 0, 0);
    }
    event->io_error = n < 0 ? (int32_t)-n : 0;
    event->io_len = n < 0 ? 0 : (uint32_t)n;
}

static void reap(struct launcher_run *run)
{
    struct launcher_event *event = &run->event;
    struct rusage usage = {0};
    int status = 0;
    /* Whoever waits for a process also waits for the kernel to clear it away: that belongs to
     * its wall time as any other tool sees it. What we do between its end and here does not. */
    uint64_t start_ns = now_ns();
    while (sys_call(SYS_wait4, run->pid, (long)&status, 0, (long)&usage, 0) == -EINTR)
        ;
    event->end_ns += now_ns() - start_ns;
    event->status = status;
    usage_fill(&usage, &event->all);
    sys_call(SYS_getrusage, RUSAGE_SELF, (long)&usage, 0, 0, 0);
    event->own_cpu_ns = timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
    event->kind = LAUNCHER_REAPED;
    launcher_event_send(run, event);
}

/* Our copies of the target's streams would hide its end of file. */
static void streams_leave(struct launcher_run *run)
{
    for (int i = 0; i < 3; i++) {
        int fd = run->flags & LAUNCHER_RESIDENT ? run->streams[i] : i;
        if (fd >= 0)
            sys_call(SYS_close, fd, 0, 0, 0, 0);
    }
}

static void watch(struct launcher_run *run)
{
    streams_leave(run);
    run->told = run->flags & LAUNCHER_HOLD; /* the child did */
    if (!(run->flags & LAUNCHER_LATE))
        forked_tell(run);
    if (run->exec_error) {
        struct launcher_event event = {.kind = LAUNCHER_EXEC_FAILED, .error = run->exec_error};
        launcher_event_send(run, &event);
    }
    if (run->traced && !run->exec_error)
        launcher_trace_wait(run);
    wait_end(run);
    run->event.end_ns = now_ns();
    if (!(run->flags & LAUNCHER_REAP)) {
        run->event.kind = LAUNCHER_EXITED;
        launcher_event_send(run, &run->event);
    }
    io_read(run);
    if (!(run->flags & LAUNCHER_REAP) && !control_wait(run->opts))
        run->orphaned = true;
    reap(run);
    for (int i = LAUNCHER_DRAIN_OUT; i <= LAUNCHER_DRAIN_ERR; i++) {
        while (run->orphaned && run->streams[i] >= 0 && drain(&run->streams[i]))
            ;
        if (run->streams[i] >= 0 && (run->flags & LAUNCHER_RESIDENT))
            sys_call(SYS_close, run->streams[i], 0, 0, 0, 0);
    }
}

static void run_once(struct launcher_run *run)
{
    run->event.start_ns = now_ns();
    long pid = child_start(run);
    if (pid > 0) {
        run->pid = (int)pid;
        watch(run);
        return;
    }
    struct launcher_event event = {.kind = LAUNCHER_FORK_FAILED, .error = (int32_t)-pid};
    launcher_event_send(run, &event);
}

/* A stream that was closed when whyslow started stays closed for the target, but its number
 * must not be given to a descriptor that comes with a request. */
static void numbers_fill(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (sys_call(SYS_fcntl, fd, F_GETFD, 0, 0, 0) == -EBADF)
            sys_call(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR | O_CLOEXEC, 0, 0);
}

static void serve(const struct launcher_opts *opts, struct launcher_run *run)
{
    numbers_fill();
    int null_fd = (int)sys_call(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR | O_CLOEXEC, 0, 0);
    for (;;) {
        *run = (struct launcher_run){.opts = opts, .io_fd = -1, .null_fd = null_fd};
        struct launcher_request request;
        if (!launcher_request_take(opts, &request, run->streams))
            return;
        run->flags = request.flags | LAUNCHER_RESIDENT;
        run->nulls = request.nulls;
        char *cut = launcher_padding_cut(opts, request.padding_bytes);
        run_once(run);
        if (cut)
            *cut = 'x';
    }
}

void launcher_run(const struct launcher_opts *opts)
{
    const int fds[] = {opts->event_fd, opts->control_fd, opts->drain_fd[0], opts->drain_fd[1]};
    for (int i = 0; i < 4; i++)
        if (fds[i] >= 0)
            sys_call(SYS_fcntl, fds[i], F_SETFD, FD_CLOEXEC, 0, 0);
    /* Ctrl-C is for the target and for whyslow; whoever waits for the end must see it. */
    mask_set(~0ull);
    struct launcher_run *run = run_memory();
    if (!run)
        return; /* whyslow sees our end */
    if (opts->flags & LAUNCHER_RESIDENT) {
        serve(opts, run);
        return;
    }
    *run = (struct launcher_run){.opts = opts,
                                 .flags = opts->flags,
                                 .streams = {-1, -1, -1, opts->drain_fd[0], opts->drain_fd[1]},
                                 .io_fd = -1};
    run_once(run);
}
