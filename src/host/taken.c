/* cpu.stat of cgroups, and /proc/stat. */
#include "host/taken.h"

#include "base/clock.h"

#include <math.h>
#include <unistd.h>

enum { LEVELS_MAX = 64, STEAL_FIELD = 8 };

/* "throttled_usec 12" of v2, "throttled_time 12000" (ns) of v1. */
static double throttled_parse(struct str text)
{
    while (text.len > 0) {
        struct str line = str_cut(&text, '\n');
        struct str key = str_word(&line);
        bool v2 = str_is(key, "throttled_usec");
        uint64_t number;
        if ((v2 || str_is(key, "throttled_time")) && str_to_u64(str_word(&line), 10, &number) == 0)
            return (double)number * (v2 ? NS_PER_US : 1);
    }
    return NAN;
}

/* A limit above us holds for us, too, but its account has others in it: the largest is told. */
static double throttled_above(const struct host *host, const char *mount, struct str path)
{
    double most = NAN;
    for (int i = 0; i < LEVELS_MAX; i++) {
        struct str text;
        const char *file = arena_printf(host->arena, "%s%.*s/cpu.stat", mount, STR_FMT(path));
        if (host_read(host, file, &text, NULL) == 0)
            most = fmax(most, throttled_parse(text));
        if (path.len == 0)
            return most;
        while (path.len > 0 && path.data[path.len - 1] != '/')
            path.len--;
        path.len -= path.len > 0; /* the slash */
    }
    return most;
}

static double throttled_read(const struct host *host)
{
    struct str text;
    double most = NAN;
    if (host_read(host, "/proc/self/cgroup", &text, NULL) < 0)
        return NAN;
    while (text.len > 0) { /* "0::/a/b" or "4:cpu,cpuacct:/a/b" */
        struct str path = str_cut(&text, '\n');
        str_cut(&path, ':');
        struct str controllers = str_cut(&path, ':');
        bool cpu = false;
        for (struct str rest = controllers; rest.len > 0;)
            cpu |= str_is(str_cut(&rest, ','), "cpu");
        if (path.len == 1)
            path.len = 0; /* "/" is the mount itself */
        if (cpu)
            most = fmax(most, throttled_above(host, "/sys/fs/cgroup/cpu", path));
        else if (controllers.len == 0)
            most = fmax(most, throttled_above(host, "/sys/fs/cgroup", path));
    }
    return most;
}

/* "cpu  user nice system idle iowait irq softirq steal …", in ticks. */
static void cpus_read(const struct host *host, struct taken *ret)
{
    struct str text;
    uint64_t ticks[STEAL_FIELD + 1] = {0};
    ret->steal_ns = ret->busy_ns = NAN;
    if (host_read(host, "/proc/stat", &text, NULL) < 0)
        return;
    struct str line = str_cut(&text, '\n');
    str_word(&line);
    for (int i = 1; i <= STEAL_FIELD; i++)
        if (str_to_u64(str_word(&line), 10, &ticks[i]) < 0)
            return;
    double tick_ns = 1e9 / (double)sysconf(_SC_CLK_TCK);
    ret->steal_ns = (double)ticks[STEAL_FIELD] * tick_ns;
    ret->busy_ns = (double)(ticks[1] + ticks[2] + ticks[3] + ticks[6] + ticks[7]) * tick_ns;
}

void taken_read(const struct host *host, struct taken *ret)
{
    *ret = (struct taken){.throttled_ns = throttled_read(host)};
    cpus_read(host, ret);
}

/* Accounts only grow; one that went back is another's. */
static double grown(double before, double after)
{
    return isnan(before) || isnan(after) ? NAN : fmax(0, after - before);
}

struct taken taken_since(const struct taken *before, const struct taken *after)
{
    return (struct taken){grown(before->throttled_ns, after->throttled_ns),
                          grown(before->steal_ns, after->steal_ns),
                          grown(before->busy_ns, after->busy_ns)};
}
