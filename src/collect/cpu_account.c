/* What samples are held against: the CPU time the kernel itself books for the target, and
 * what a sample costs. */
#include "base/clock.h"
#include "base/fd.h"
#include "collect/cpu_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    CALIBRATION_MS = 6,
    CALIBRATION_PERIOD_NS = 100000,
    CALIBRATION_GAPS_MAX = 256,
    CALIBRATION_GAPS_MIN = 8, /* fewer say nothing */
};

static int small_read(int dir_fd, const char *path, char *text, size_t size)
{
    AUTO(fd_close) int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (n <= 0)
        return -ENOENT;
    text[n] = '\0';
    return 0;
}

/* user, nice, system, irq and softirq of all CPUs, in clock ticks. */
static int system_cpu_read(uint64_t *ret_ns)
{
    char text[512];
    int r = small_read(AT_FDCWD, "/proc/stat", text, sizeof(text));
    if (r < 0)
        return r;
    struct str line = str_from(text);
    line = str_cut(&line, '\n');
    str_word(&line);
    uint64_t busy = 0, value;
    static const bool counts[] = {true, true, true, false, false, true, true};
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        if (str_to_u64(str_word(&line), 10, &value) < 0)
            return -EBADMSG;
        busy += counts[i] ? value : 0;
    }
    *ret_ns = busy * (NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
    return 0;
}

static int cgroup_cpu_read(int dir_fd, uint64_t *ret_ns)
{
    char text[4096];
    uint64_t us;
    int r = small_read(dir_fd, "cpu.stat", text, sizeof(text));
    if (r == 0)
        r = str_to_u64(str_field(str_from(text), "usage_usec"), 10, &us);
    if (r < 0)
        return r;
    *ret_ns = us * NS_PER_US;
    return 0;
}

static int process_cpu_read(int pid, uint64_t *ret_ns)
{
    clockid_t clock;
    struct timespec ts;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) < 0)
        return -ESRCH;
    *ret_ns = (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
    return 0;
}

static int account_read(const struct collector *c, uint64_t *ret_ns)
{
    switch (c->opts.scope) {
    case TARGET_ATTACHED:
        return process_cpu_read(c->opts.pid, ret_ns);
    case TARGET_SYSTEM:
        return system_cpu_read(ret_ns);
    case TARGET_CGROUP:
        return cgroup_cpu_read(c->cgroup_fd, ret_ns);
    case TARGET_SPAWNED:
        break; /* whoever waits for it knows */
    }
    return -ENODATA;
}

void cpu_account_begin(struct collector *c)
{
    c->account_known = account_read(c, &c->account_start_ns) == 0;
    c->account_last_ns = c->account_start_ns;
}

void cpu_account_look(struct collector *c)
{
    uint64_t now_ns;
    if (c->account_known && account_read(c, &now_ns) == 0)
        c->account_last_ns = now_ns;
}

bool cpu_account_get(const struct collector *c, uint64_t *ret_ns)
{
    /* Of processes that it started we have samples, but no account. */
    if (!c->account_known || (c->opts.scope == TARGET_ATTACHED && c->processes_started))
        return false;
    *ret_ns = c->account_last_ns - c->account_start_ns;
    return true;
}

static size_t ring_here(const struct collector *c)
{
    int cpu = sched_getcpu();
    for (size_t i = 0; i < c->cpu_count; i++)
        if (c->cpus[i] == cpu)
            return i;
    return 0;
}

static void rings_empty(struct collector *c)
{
    for (size_t i = 0; i < c->cpu_count; i++) {
        struct perf_ring *ring = &c->rings.rings[i];
        ring->tail = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
        __atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
    }
}

/* Looks at the clock without pause: where a sample came, time is missing. */
static size_t gaps_measure(struct collector *c, uint64_t *gaps)
{
    size_t count = 0, at = ring_here(c);
    uint64_t end_ns = clock_mono_ns() + CALIBRATION_MS * NS_PER_MS, last_ns = clock_mono_ns();
    uint64_t head = c->rings.rings[at].page->data_head;
    while (last_ns < end_ns && count < CALIBRATION_GAPS_MAX) {
        uint64_t now_ns = clock_mono_ns();
        if (__atomic_load_n(&c->rings.rings[at].page->data_head, __ATOMIC_ACQUIRE) != head) {
            /* It may have come before or after we looked at the clock: look once more. */
            gaps[count++] = clock_mono_ns() - last_ns;
            rings_empty(c);
            at = ring_here(c);
            head = c->rings.rings[at].page->data_head;
            now_ns = clock_mono_ns();
        }
        last_ns = now_ns;
    }
    return count;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x, y;
    __builtin_memcpy(&x, a, sizeof(x));
    __builtin_memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

/* On ourselves, with the same attributes as the target's, before the target runs. Our stack
 * is not the target's, so this is an estimate and labelled so. */
void cpu_calibrate(struct collector *c)
{
    struct perf_event_attr attr = perf_attr_sampling(&c->plan, CALIBRATION_PERIOD_NS,
                                                     c->slice_bytes);
    if (c->plan.clock == PERF_CYCLES)
        attr.sample_freq = NS_PER_SEC / CALIBRATION_PERIOD_NS;
    attr.inherit = 0;
    int *fds = malloc(c->cpu_count * sizeof(*fds));
    size_t opened = 0;
    for (; fds && opened < c->cpu_count; opened++) {
        fds[opened] = perf_event_open(&attr, 0, c->cpus[opened], 0);
        if (fds[opened] < 0)
            break;
        if (ioctl(fds[opened], PERF_EVENT_IOC_SET_OUTPUT, c->ring_fds[opened]) < 0)
            break;
        if (c->deep) /* it has its cost, too */
            ioctl(fds[opened], PERF_EVENT_IOC_SET_BPF, cpu_deep_program_fd(c->deep));
    }
    uint64_t gaps[CALIBRATION_GAPS_MAX];
    size_t count = 0;
    bool whole = fds && opened == c->cpu_count;
    for (size_t i = 0; whole && i < opened; i++)
        ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0);
    if (whole)
        count = gaps_measure(c, gaps);
    for (size_t i = 0; fds && i < MIN(opened + 1, c->cpu_count); i++)
        fd_close(&fds[i]);
    free(fds);
    rings_empty(c);
    if (count < CALIBRATION_GAPS_MIN)
        return;
    qsort(gaps, count, sizeof(gaps[0]), compare_u64);
    c->sample_cost_ns = gaps[count / 2]; /* others are cut by ticks and neighbours */
}
