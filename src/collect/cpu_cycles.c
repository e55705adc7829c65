/* From cycles to nanoseconds: samples are weighted with time, whatever the event.
 *
 * The counters themselves tell how long they ran and how much they counted. Read once a
 * second, this follows a clock that changes. Before the first second our own thread is the
 * measure. */
#include "base/clock.h"
#include "base/fd.h"
#include "collect/cpu_parts.h"
#include "collect/perf_event.h"

#include <stddef.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { OWN_SPIN_MS = 2 };

/* Slower than 50 MHz or faster than 20 GHz is a misreading. */
#define NS_PER_CYCLE_MIN 0.05
#define NS_PER_CYCLE_MAX 20.0

/* What read() gives: PERF_FORMAT_TOTAL_TIME_RUNNING, and PERF_FORMAT_LOST where there is that. */
struct counted {
    uint64_t cycles;
    uint64_t running_ns;
    uint64_t lost;
};

static bool counted_read(int fd, struct counted *ret)
{
    return read(fd, ret, sizeof(*ret)) >= (ssize_t)offsetof(struct counted, lost);
}

static void ratio_take(struct collector *c, const struct counted *delta)
{
    if (delta->cycles == 0 || delta->running_ns == 0)
        return;
    double ratio = (double)delta->running_ns / (double)delta->cycles;
    if (ratio >= NS_PER_CYCLE_MIN && ratio <= NS_PER_CYCLE_MAX)
        c->ns_per_cycle = ratio;
}

void cpu_cycles_begin(struct collector *c)
{
    c->ns_per_cycle = 1;
    if (c->plan.clock != PERF_CYCLES)
        return;
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_HW_CPU_CYCLES,
        .read_format = PERF_FORMAT_TOTAL_TIME_RUNNING,
        .exclude_kernel = !c->plan.kernel,
        .exclude_hv = 1,
    };
    AUTO(fd_close) int fd = perf_event_open(&attr, 0, -1, 0);
    uint64_t end_ns = clock_mono_ns() + OWN_SPIN_MS * NS_PER_MS;
    while (fd >= 0 && clock_mono_ns() < end_ns) {
    }
    struct counted own;
    if (fd >= 0 && counted_read(fd, &own))
        ratio_take(c, &own);
}

void cpu_cycles_look(struct collector *c)
{
    if (c->plan.clock != PERF_CYCLES)
        return;
    struct counted now = {0}, one;
    for (size_t set = 0; set < c->set_count; set++)
        for (size_t i = 0; i < c->sets[set].fds.len; i++)
            if (counted_read(c->sets[set].fds.data[i], &one)) {
                now.cycles += one.cycles;
                now.running_ns += one.running_ns;
            }
    struct counted delta = {.cycles = now.cycles - c->cycles_seen,
                            .running_ns = now.running_ns - c->cycles_running_ns};
    /* A set that was opened anew with a larger slice counts from nothing again. */
    if (now.cycles > c->cycles_seen && now.running_ns > c->cycles_running_ns)
        ratio_take(c, &delta);
    c->cycles_seen = now.cycles;
    c->cycles_running_ns = now.running_ns;
}
