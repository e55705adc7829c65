/* A look at one thread that is off the CPU: where it sits, and its stack.
 *
 * Nothing holds it still meanwhile. So /proc is asked again after its memory was read: only if
 * it sits in the same call with the same arguments at the same place is there something to
 * tell. That it did not run in between is for the switch records to say. */
#include "base/clock.h"
#include "base/fd.h"
#include "collect/offcpu_user_parts.h"
#include "host/probe.h"
#include "target/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    TRIES_MAX = 8,
    LINE_BYTES = 256,
    PAGE_BYTES = 4096,
    PAGES_MAX = USER_SLICE_BYTES_MAX / PAGE_BYTES + 1
};

/* The kernel makes the line anew for each read from the beginning. */
static int line_read(int fd, char line[LINE_BYTES])
{
    ssize_t n = pread(fd, line, LINE_BYTES - 1, 0);
    if (n < 0)
        return -errno;
    line[n] = '\0';
    return 0;
}

/* As much as there is: what lies above a stack may not be mapped. */
size_t user_memory_read(int pid, uint64_t address, void *to, size_t len)
{
    struct iovec local = {to, len}, remote[PAGES_MAX];
    size_t count = 0;
    for (size_t at = 0; at < len && count < PAGES_MAX; count++) {
        size_t step = PAGE_BYTES - (size_t)((address + at) % PAGE_BYTES);
        step = MIN(step, len - at);
        remote[count] = (struct iovec){(void *)(uintptr_t)(address + at), step};
        at += step;
    }
    ssize_t n = process_vm_readv(pid, &local, 1, remote, count, 0);
    return n > 0 ? (size_t)n : 0;
}

/* glibc keeps the owner two words behind a mutex, also of the default kind; a mutex with
 * priority inheritance is the owner's tid itself. */
static int owner_read(int pid, const struct user_call_facts *facts)
{
    uint32_t words[3] = {0};
    if (facts->on != USER_CALL_ON_FUTEX ||
        (facts->detail != WAIT_FUTEX_VALUE_2 && facts->detail != WAIT_FUTEX_PI))
        return 0;
    if (user_memory_read(pid, facts->address, words, sizeof(words)) != sizeof(words))
        return 0;
    uint32_t owner = facts->detail == WAIT_FUTEX_PI ? words[0] & FUTEX_TID_MASK : words[2];
    return owner <= INT32_MAX ? (int)owner : 0;
}

/* Of several there is no telling which one it is. */
static int fd_read(int pid, const struct user_call_facts *facts)
{
    struct pollfd one;
    if (facts->on == USER_CALL_ON_FD)
        return facts->fd;
    if (facts->on != USER_CALL_ON_FDS || facts->count != 1 ||
        user_memory_read(pid, facts->address, &one, sizeof(one)) != sizeof(one))
        return -1;
    return one.fd;
}

static uint64_t real_now_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

/* Copies of the C library stay as they were while the call waits. */
void user_limit_read(struct user_look *look)
{
    const struct user_call_facts *facts = &look->facts;
    int64_t words[2] = {0}; /* seconds, and what is less than one */
    look->limit_ns = look->until_ns = 0;
    if (facts->limit_is == USER_LIMIT_UNKNOWN)
        return;
    if (facts->limit_is == USER_LIMIT_MS) {
        look->limit_ns = (uint64_t)(uint32_t)facts->limit * NS_PER_MS;
        return;
    }
    uint64_t second = facts->limit_is == USER_LIMIT_TIMEVAL ? 1000000 : NS_PER_SEC;
    if (user_memory_read(look->pid, facts->limit, words, sizeof(words)) != sizeof(words) ||
        words[0] < 0 || words[0] > INT32_MAX * 4ll || words[1] < 0 || (uint64_t)words[1] >= second)
        return;
    uint64_t ns = (uint64_t)words[0] * NS_PER_SEC + (uint64_t)words[1] * (NS_PER_SEC / second);
    if (facts->limit_is == USER_LIMIT_TIMESPEC || facts->limit_is == USER_LIMIT_TIMEVAL) {
        look->limit_ns = ns;
        return;
    }
    uint64_t now_ns = clock_mono_ns();
    uint64_t left_from_ns = facts->limit_is == USER_LIMIT_UNTIL ? now_ns : real_now_ns();
    look->until_ns = ns > left_from_ns ? now_ns + (ns - left_from_ns) : now_ns;
}

/* Outside of a call it may also have been stopped, by a signal or a debugger. */
static uint32_t state_flags(int pid, int tid, const struct user_call_facts *facts)
{
    struct proc_stat stat;
    uint32_t flags = facts->flags;
    if (!facts->may_be_disk || proc_stat_read(pid, tid, &stat) < 0)
        return flags;
    if (stat.state == 'D')
        return flags | WAIT_UNINTERRUPTIBLE;
    return stat.state == 'T' || stat.state == 't' ? flags & ~(uint32_t)WAIT_FAULT : flags;
}

static int look_once(int fd, struct user_look *look)
{
    char before[LINE_BYTES], after[LINE_BYTES];
    int pid = look->pid;
    look->begin_ns = clock_mono_ns();
    int r = line_read(fd, before);
    if (r == 0)
        r = user_call_parse(str_from(before), &look->call);
    if (r < 0)
        return r;
    user_call_facts(&look->call, &look->facts);
    look->len = user_memory_read(pid, look->call.sp, look->bytes, look->cap);
    look->owner = owner_read(pid, &look->facts);
    look->fd = fd_read(pid, &look->facts);
    user_limit_read(look);
    look->flags = state_flags(pid, look->tid, &look->facts);
    r = line_read(fd, after);
    if (r < 0)
        return r;
    look->end_ns = clock_mono_ns();
    return strcmp(before, after) == 0 ? 0 : -EAGAIN;
}

int user_look(int pid, int tid, struct user_look *look)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    look->pid = pid;
    look->tid = tid;
    look->len = 0;
    /* One that waits for moments only, again and again, is not found waiting at once. */
    int r = -EAGAIN;
    for (int i = 0; i < TRIES_MAX && r == -EAGAIN; i++)
        r = look_once(fd, look);
    return r;
}

void user_look_denied(int error, int pid, char *text, size_t size)
{
    char scope[16] = "";
    AUTO(fd_close) int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, scope, sizeof(scope) - 1);
    scope[MAX(n, 0)] = '\0';
    struct str value = str_trim(str_from(scope));
    if (value.len > 0 && !str_is(value, "0"))
        snprintf(text, size,
                 "threads of process %d may not be looked at: %s; kernel.yama.ptrace_scope is "
                 "%.*s, 0 allows it (sudo sysctl kernel.yama.ptrace_scope=0)",
                 pid, strerror(error), STR_FMT(value));
    else if (error == ENOSYS)
        snprintf(text, size,
                 "threads of process %d cannot be looked at: this kernel lacks "
                 "CONFIG_HAVE_ARCH_TRACEHOOK or CONFIG_CROSS_MEMORY_ATTACH",
                 pid);
    else
        snprintf(text, size,
                 "threads of process %d may not be looked at: %s; it has another user, or its file "
                 "has capabilities or may not be read%s",
                 pid, strerror(error),
                 probe_seccomp() ? "; a seccomp filter is active (docker: --cap-add SYS_PTRACE)"
                                 : "");
}
