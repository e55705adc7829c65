/* perf_event_open in counting mode; see counters.h. */
#include "target/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    uint64_t config;
    enum bench_metric metric;
} events[COUNTERS_MAX] = {
    {PERF_COUNT_HW_CPU_CYCLES, BENCH_CYCLES},
    {PERF_COUNT_HW_INSTRUCTIONS, BENCH_INSTRUCTIONS},
    {PERF_COUNT_HW_CACHE_MISSES, BENCH_CACHE_MISSES},
    {PERF_COUNT_HW_BRANCH_MISSES, BENCH_BRANCH_MISSES},
};

static int event_open(uint64_t config, int pid)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof(attr),
        .config = config,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .disabled = 1,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .enable_on_exec = 1,
    };
    int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int counters_open(struct counters *ret, int pid)
{
    struct counters counters = {.error = 0};
    int opened = 0;
    for (int i = 0; i < COUNTERS_MAX; i++) {
        int fd = event_open(events[i].config, pid);
        counters.fds[i] = fd < 0 ? -1 : fd;
        opened += fd >= 0;
        if (fd < 0 && counters.error == 0)
            counters.error = -fd;
    }
    if (opened == 0)
        return -counters.error;
    *ret = counters;
    return 0;
}

void counters_read(const struct counters *counters, struct bench_run *run)
{
    for (int i = 0; i < COUNTERS_MAX; i++) {
        uint64_t got[3]; /* count, time enabled, time running */
        if (counters->fds[i] < 0 || read(counters->fds[i], got, sizeof(got)) != sizeof(got))
            continue;
        /* Never scheduled in: nothing was counted, which is not the same as zero. */
        if (got[2] == 0)
            continue;
        double share = (double)got[2] / (double)got[1];
        run->value[events[i].metric] = (double)got[0] / share;
        run->running_share = isnan(run->running_share) ? share : fmin(run->running_share, share);
    }
}

void counters_close(struct counters *counters)
{
    for (int i = 0; i < COUNTERS_MAX; i++) {
        if (counters->fds[i] >= 0)
            close(counters->fds[i]);
        counters->fds[i] = -1;
    }
}

const char *counters_reason(int error)
{
    switch (error) {
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
        return "n/a: this machine has no hardware counters (a virtual machine without a PMU?)";
    case EACCES:
    case EPERM:
        return "n/a: not permitted to count (kernel.perf_event_paranoid, or a container's filter)";
    case ENOSYS:
        return "n/a: this kernel has no perf_event_open";
    default:
        return "n/a: the hardware counters could not be opened";
    }
}
