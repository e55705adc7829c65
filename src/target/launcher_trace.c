/* The exact peak of a target's memory: VmHWM, read when it is about to exit.
 *
 * A zombie has no memory left to ask for, and what wait4 tells (ru_maxrss) is summed from
 * counters that each CPU updates in steps of 32 pages and more. So the target is stopped at
 * its exit, by ptrace. That costs time and is visible to it, so only runs that are not timed
 * are made this way. */
#include "target/launcher_run.h"
#include "target/launcher_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

bool launcher_trace_me(void)
{
    return sys_call(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0, 0) == 0;
}

/* "/proc/PID/status"; no snprintf here. */
static void status_path(int pid, char path[40])
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
    for (const char *p = "/status"; *p; p++)
        path[at++] = *p;
    path[at] = '\0';
}

/* The number after "VmHWM:", in KiB; 0 when there is none. */
static uint64_t peak_parse(const char *text)
{
    for (const char *p = text; *p; p++) {
        const char *key = "\nVmHWM:", *at = p;
        while (*key && *at == *key) {
            key++;
            at++;
        }
        if (*key)
            continue;
        uint64_t number = 0;
        while (*at == ' ' || *at == '\t')
            at++;
        for (; *at >= '0' && *at <= '9'; at++)
            number = number * 10 + (uint64_t)(*at - '0');
        return number;
    }
    return 0;
}

static uint64_t peak_read(int pid)
{
    char path[40], text[2048];
    status_path(pid, path);
    int fd = (int)sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0);
    if (fd < 0)
        return 0;
    long n = sys_call(SYS_read, fd, (long)text, sizeof(text) - 1, 0, 0);
    sys_call(SYS_close, fd, 0, 0, 0, 0);
    text[n > 0 ? n : 0] = '\0';
    return peak_parse(text) * 1024;
}

static void resume(const struct launcher_run *run, int signal)
{
    sys_call(SYS_ptrace, PTRACE_CONT, run->pid, 0, signal, 0);
}

/* One stop; true when it was the last. */
static bool stop_handle(struct launcher_run *run, int stop, bool *started)
{
    int signal = stop & 0xff, event = stop >> 8;
    if (!*started) { /* the trap of the first exec */
        *started = true;
        sys_call(SYS_ptrace, PTRACE_SETOPTIONS, run->pid, 0,
                 PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC, 0);
        resume(run, signal == SIGTRAP ? 0 : signal);
        return false;
    }
    if (event == PTRACE_EVENT_EXIT) {
        run->event.rss_exact_bytes = peak_read(run->pid);
        sys_call(SYS_ptrace, PTRACE_DETACH, run->pid, 0, 0, 0);
        return true;
    }
    if (signal == SIGTTIN || signal == SIGTTOU) {
        struct launcher_event told = {.kind = LAUNCHER_STOPPED, .status = signal};
        launcher_event_send(run, &told);
    }
    resume(run, event ? 0 : signal);
    return false;
}

/* Handles every stop that is there; true when the target needs us no more. Its end is left
 * for the caller to take. */
static bool stops_handle(struct launcher_run *run, bool *started)
{
    for (;;) {
        siginfo_t info;
        info.si_pid = 0;
        info.si_status = 0;
        long r = sys_call(SYS_waitid, P_PID, run->pid, (long)&info, WSTOPPED | WNOHANG | __WALL, 0);
        if (r == 0 && info.si_pid == run->pid) {
            if (stop_handle(run, info.si_status, started))
                return true;
            continue;
        }
        info.si_pid = 0;
        info.si_code = 0;
        r = sys_call(SYS_waitid, P_PID, run->pid, (long)&info, WEXITED | WNOHANG | WNOWAIT | __WALL,
                     0);
        if (r < 0)
            return true;
        if (info.si_pid != run->pid)
            return false;
        /* A stop that came in between is told here too, although nobody asked for stops. */
        if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)
            return true;
    }
}

void launcher_trace_wait(struct launcher_run *run)
{
    uint64_t child = 1ull << (SIGCHLD - 1);
    int fd = (int)sys_call(SYS_signalfd4, -1, (long)&child, sizeof(child),
                           SFD_CLOEXEC | SFD_NONBLOCK, 0);
    bool started = false;
    while (!stops_handle(run, &started)) {
        struct signalfd_siginfo info;
        if (fd >= 0 ? launcher_poll(run, fd) : launcher_poll(run, -1))
            sys_call(SYS_read, fd, (long)&info, sizeof(info), 0, 0);
    }
    if (fd >= 0)
        sys_call(SYS_close, fd, 0, 0, 0, 0);
}
