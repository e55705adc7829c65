/* Checks of what else moves the numbers: other load, clocks that change, limits
 * and shortages. All from files, so that a recorded machine can be judged, too. */
#include "base/clock.h"
#include "host/check_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { CPUS_MAX = 8192, CGROUP_DEPTH_MAX = 64, BUSY_WINDOW_MS = 100 };

/* Calls `look` for each CPU of a list such as "0-3,8"; returns how many there are. */
static unsigned cpus_each(const struct check_input *input, const char *list,
                          void (*look)(const struct check_input *input, unsigned cpu, void *state),
                          void *state)
{
    struct str rest;
    unsigned count = 0;
    if (host_read(input->host, list, &rest, NULL) < 0)
        return 0;
    while (rest.len > 0 && count < CPUS_MAX) {
        struct str range = str_cut(&rest, ',');
        struct str first_text = str_trim(str_cut(&range, '-'));
        uint64_t first;
        uint64_t last;
        if (str_to_u64(first_text, 10, &first) < 0)
            continue;
        if (range.len == 0 || str_to_u64(str_trim(range), 10, &last) < 0)
            last = first;
        for (uint64_t cpu = first; cpu <= last && count < CPUS_MAX; cpu++, count++)
            if (look)
                look(input, (unsigned)cpu, state);
    }
    return count;
}

static const char cpus_online[] = "/sys/devices/system/cpu/online";

/* Jiffies of all CPUs so far: those spent on work, and all. */
static bool cpu_jiffies(const struct check_input *input, uint64_t *ret_busy, uint64_t *ret_all)
{
    struct str text;
    if (host_read(input->host, "/proc/stat", &text, NULL) < 0)
        return false;
    struct str line = str_cut(&text, '\n');
    if (!str_is(str_word(&line), "cpu"))
        return false;
    uint64_t fields[8] = {0}; /* user nice system idle iowait irq softirq steal */
    *ret_all = 0;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        if (str_to_u64(str_word(&line), 10, &fields[i]) < 0)
            return false;
        *ret_all += fields[i];
    }
    *ret_busy = *ret_all - fields[3] - fields[4];
    return true;
}

/* How many CPUs others keep busy, over a moment in which we sleep. The load average remembers a
 * minute and would blame the machine for our own last runs. Negative when it cannot be told. */
static double cpus_busy_now(const struct check_input *input, unsigned cpus)
{
    uint64_t busy_before, all_before, busy, all;
    if (!host_is_live(input->host) || !cpu_jiffies(input, &busy_before, &all_before))
        return -1;
    clock_sleep_ns(BUSY_WINDOW_MS * NS_PER_MS);
    if (!cpu_jiffies(input, &busy, &all) || all <= all_before || busy < busy_before)
        return -1;
    return (double)(busy - busy_before) / (double)(all - all_before) * cpus;
}

static bool load_read(const struct check_input *input, double *ret_load)
{
    struct str text;
    return host_read(input->host, "/proc/loadavg", &text, NULL) == 0 &&
           str_to_f64(str_word(&text), ret_load) == 0;
}

void check_load(const struct check_input *input, struct check_result *ret)
{
    unsigned cpus = cpus_each(input, cpus_online, NULL, NULL);
    double load = 0;
    if (!load_read(input, &load) || cpus == 0)
        return check_na(ret, "/proc/loadavg or the list of CPUs cannot be read");
    double busy = cpus_busy_now(input, cpus);
    struct arena *arena = input->host->arena;
    const char *minute = arena_printf(arena, "load of the last minute %.2f on %u CPUs", load, cpus);
    const char *detail = busy < 0 ? minute
                                  : arena_printf(arena, "others keep %.1f CPUs busy now; %s", busy,
                                                 minute);
    const char
        *mend = "ps -eo pid,pcpu,user,args --sort=-pcpu | head # and stop what is not needed";
    if (busy < 0 ? load >= cpus : busy >= 0.9 * cpus)
        check_set(ret, CHECK_FAIL, detail,
                  "the target waits for a CPU: times measure the other load", mend);
    else if (busy < 0 ? load >= 0.25 * cpus : busy >= 0.25 * cpus)
        check_set(ret, CHECK_WARN, detail, "times vary with what else runs", mend);
    else
        check_ok(ret, detail);
}

struct governors {
    unsigned known;
    unsigned other; /* than "performance" */
    struct str example;
};

static void governor_look(const struct check_input *input, unsigned cpu, void *state)
{
    struct governors *governors = state;
    struct str name;
    const char *path = arena_printf(input->host->arena,
                                    "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor", cpu);
    if (host_read(input->host, path, &name, NULL) < 0)
        return;
    governors->known++;
    if (!str_is(name, "performance")) {
        governors->other++;
        governors->example = name;
    }
}

void check_governor(const struct check_input *input, struct check_result *ret)
{
    struct governors found = {0};
    (void)cpus_each(input, cpus_online, governor_look, &found);
    if (found.known == 0)
        return check_na(ret, "no frequency control here: a virtual machine, or fixed clocks");
    if (found.other == 0)
        return check_ok(
            ret, arena_printf(input->host->arena, "performance on all %u CPUs", found.known));
    check_set(
        ret, CHECK_WARN,
        arena_printf(input->host->arena, "%.*s on %u of %u CPUs", STR_FMT(found.example),
                     found.other, found.known),
        "the clock follows the load: short runs look slower, and runs differ",
        check_as_root(
            input, "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"));
}

void check_turbo(const struct check_input *input, struct check_result *ret)
{
    static const struct {
        const char *path;
        uint64_t on; /* what it reads while turbo is on */
        const char *mend;
    } switches[] = {
        {"/sys/devices/system/cpu/intel_pstate/no_turbo", 0,
         "echo 1 | tee /sys/devices/system/cpu/intel_pstate/no_turbo"},
        {"/sys/devices/system/cpu/cpufreq/boost", 1,
         "echo 0 | tee /sys/devices/system/cpu/cpufreq/boost"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
        uint64_t value;
        if (host_read_u64(input->host, switches[i].path, &value) < 0)
            continue;
        const char *detail = arena_printf(input->host->arena, "%s is %" PRIu64, switches[i].path,
                                          value);
        if (value != switches[i].on)
            return check_ok(ret, detail);
        return check_set(ret, CHECK_WARN, detail,
                         "the clock depends on heat and on how many cores work: runs differ",
                         check_as_root(input, switches[i].mend));
    }
    check_na(ret, "no turbo switch here: a virtual machine, or a CPU without");
}

struct throttles {
    unsigned known;
    uint64_t core;
    uint64_t package; /* the largest: CPUs of a package report the same */
};

static void throttle_look(const struct check_input *input, unsigned cpu, void *state)
{
    struct throttles *throttles = state;
    uint64_t count;
    const char *folder = arena_printf(input->host->arena,
                                      "/sys/devices/system/cpu/cpu%u/thermal_throttle", cpu);
    if (host_read_u64(input->host,
                      arena_printf(input->host->arena, "%s/core_throttle_count", folder),
                      &count) == 0) {
        throttles->known++;
        throttles->core += count;
    }
    if (host_read_u64(input->host,
                      arena_printf(input->host->arena, "%s/package_throttle_count", folder),
                      &count) == 0)
        throttles->package = MAX(throttles->package, count);
}

void check_throttling(const struct check_input *input, struct check_result *ret)
{
    struct throttles found = {0};
    (void)cpus_each(input, cpus_online, throttle_look, &found);
    if (found.known == 0)
        return check_na(ret, "this machine does not count thermal throttling");
    const char *detail = arena_printf(
        input->host->arena, "since boot %" PRIu64 " times by cores, %" PRIu64 " by the package",
        found.core, found.package);
    if (found.core == 0 && found.package == 0)
        return check_ok(ret, detail);
    check_set(ret, CHECK_WARN, detail,
              "a hot CPU slows down: later runs look worse than earlier ones",
              "grep . /sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count # cool it, "
              "and see that the counts stay");
}

/* One cgroup's CPU limit and what it did. */
struct cpu_limit {
    const char *folder;
    double cpus; /* NaN: no limit */
    uint64_t periods;
    uint64_t throttled;
};

static void limit_read(const struct check_input *input, const char *folder, bool v1,
                       struct cpu_limit *ret)
{
    struct arena *arena = input->host->arena;
    struct str text;
    uint64_t quota;
    uint64_t period = 100000;
    *ret = (struct cpu_limit){.folder = folder, .cpus = NAN};
    if (v1) {
        if (host_read_u64(input->host, arena_printf(arena, "%s/cpu.cfs_quota_us", folder), &quota) <
            0) /* -1, no limit, is no u64 */
            return;
        if (host_read_u64(input->host, arena_printf(arena, "%s/cpu.cfs_period_us", folder),
                          &period) < 0)
            return;
    } else {
        if (host_read(input->host, arena_printf(arena, "%s/cpu.max", folder), &text, NULL) < 0)
            return;
        if (str_to_u64(str_word(&text), 10, &quota) < 0 ||
            str_to_u64(str_word(&text), 10, &period) < 0)
            return;
    }
    if (period == 0)
        return;
    ret->cpus = (double)quota / (double)period;
    if (host_read(input->host, arena_printf(arena, "%s/cpu.stat", folder), &text, NULL) < 0)
        return;
    if (str_to_u64(str_field(text, "nr_periods"), 10, &ret->periods) < 0 ||
        str_to_u64(str_field(text, "nr_throttled"), 10, &ret->throttled) < 0)
        ret->periods = ret->throttled = 0;
}

/* The target's cgroup in the hierarchy that limits CPU; false when there is none. */
static bool cgroup_find(const struct check_input *input, struct str *ret_path, bool *ret_v1)
{
    struct arena *arena = input->host->arena;
    struct str text;
    const char *file = input->pid ? arena_printf(arena, "/proc/%d/cgroup", input->pid)
                                  : "/proc/self/cgroup";
    bool found = false;
    if (host_read(input->host, file, &text, NULL) < 0)
        return false;
    while (text.len > 0) { /* "0::/a/b" or "4:cpu,cpuacct:/a/b" */
        struct str path = str_cut(&text, '\n');
        struct str number = str_cut(&path, ':');
        struct str controllers = str_cut(&path, ':');
        bool v1 = false;
        for (struct str rest = controllers; rest.len > 0;)
            v1 |= str_is(str_cut(&rest, ','), "cpu");
        if (v1 || (str_is(number, "0") && controllers.len == 0 && !found)) {
            *ret_path = path;
            *ret_v1 = v1;
            found = true;
        }
        if (v1)
            break;
    }
    return found;
}

/* The tightest limit from the target's cgroup up to the root: all of them count. */
static bool limit_tightest(const struct check_input *input, struct cpu_limit *ret)
{
    struct str path;
    bool v1;
    if (!cgroup_find(input, &path, &v1))
        return false;
    *ret = (struct cpu_limit){.cpus = NAN};
    for (unsigned depth = 0; depth < CGROUP_DEPTH_MAX; depth++) {
        struct cpu_limit limit;
        struct str shown = str_is(path, "/") ? (struct str){"", 0} : path;
        limit_read(input,
                   arena_printf(input->host->arena, "/sys/fs/cgroup%s%.*s", v1 ? "/cpu" : "",
                                STR_FMT(shown)),
                   v1, &limit);
        if (!isnan(limit.cpus) && (isnan(ret->cpus) || limit.cpus < ret->cpus))
            *ret = limit;
        if (shown.len == 0)
            return true;
        while (path.len > 0 && path.data[path.len - 1] != '/')
            path.len--;
        if (path.len > 0)
            path.len--; /* the slash */
    }
    return true;
}

void check_cpu_limit(const struct check_input *input, struct check_result *ret)
{
    struct arena *arena = input->host->arena;
    struct cpu_limit limit;
    if (!limit_tightest(input, &limit))
        return check_na(ret, "the cgroup of the target cannot be read");
    if (!limit.folder || isnan(limit.cpus))
        return check_ok(ret, "no limit in its cgroup or those above");
    const char *detail = arena_printf(
        arena, "limited to %.2f CPUs, throttled in %" PRIu64 " of %" PRIu64 " periods", limit.cpus,
        limit.throttled, limit.periods);
    bool v1 = strncmp(limit.folder, "/sys/fs/cgroup/cpu", 18) == 0 &&
              host_exists(input->host, arena_printf(arena, "%s/cpu.cfs_quota_us", limit.folder));
    const char *mend = check_as_root(
        input,
        arena_printf(arena, "echo %s | tee %s", v1 ? "-1" : "max",
                     check_quoted(input, arena_printf(arena, "%s/%s", limit.folder,
                                                      v1 ? "cpu.cfs_quota_us" : "cpu.max"))));
    check_set(ret, limit.throttled * 100 > limit.periods ? CHECK_FAIL : CHECK_WARN, detail,
              "the target is stopped when its quota is used up: wall time grows in jumps of 100 ms",
              mend);
}

void check_steal(const struct check_input *input, struct check_result *ret)
{
    enum { FIELD_STEAL = 7, FIELDS = 8 };
    struct str text;
    if (host_read(input->host, "/proc/stat", &text, NULL) < 0)
        return check_na(ret, "/proc/stat cannot be read");
    struct str line = str_cut(&text, '\n');
    uint64_t sum = 0;
    uint64_t steal = 0;
    if (!str_is(str_word(&line), "cpu"))
        return check_na(ret, "/proc/stat is in no known form");
    for (unsigned i = 0; i < FIELDS; i++) {
        uint64_t ticks;
        if (str_to_u64(str_word(&line), 10, &ticks) < 0)
            return check_na(ret, "/proc/stat does not tell stolen time");
        sum += ticks;
        steal = i == FIELD_STEAL ? ticks : 0;
    }
    double share = sum ? (double)steal * 100 / (double)sum : 0;
    const char *detail = arena_printf(input->host->arena,
                                      "%.2f%% of CPU time since boot went to other guests", share);
    if (share < 1)
        return check_ok(ret, detail);
    check_set(ret, share >= 10 ? CHECK_FAIL : CHECK_WARN, detail,
              "the host runs other machines on this CPU: wall times vary", NULL);
}

static bool meminfo(const struct check_input *input, const char *key, uint64_t *ret_kib)
{
    struct str text;
    if (host_read(input->host, "/proc/meminfo", &text, NULL) < 0)
        return false;
    struct str value = str_field(text, key);
    return str_to_u64(str_word(&value), 10, ret_kib) == 0;
}

void check_memory(const struct check_input *input, struct check_result *ret)
{
    uint64_t total;
    uint64_t free_kib;
    if (!meminfo(input, "MemTotal", &total) || !meminfo(input, "MemAvailable", &free_kib) ||
        total == 0)
        return check_na(ret, "/proc/meminfo does not tell available memory");
    double share = (double)free_kib * 100 / (double)total;
    char text[48];
    const char *detail = arena_printf(
        input->host->arena, "%s available, %.0f%% of all",
        units_format((double)free_kib * 1024, UNIT_BYTES, text, sizeof(text)), share);
    if (share >= 10)
        return check_ok(ret, detail);
    check_set(ret, share < 3 ? CHECK_FAIL : CHECK_WARN, detail,
              "the kernel drops caches and may kill the target: I/O looks worse than it is",
              "ps -eo pid,rss,user,args --sort=-rss | head # and stop what is not needed");
}

/* "some avg10=1.50 …": share of time in which some task waited for memory. */
static double memory_pressure(const struct check_input *input)
{
    struct str text;
    double share;
    if (host_read(input->host, "/proc/pressure/memory", &text, NULL) < 0)
        return NAN;
    struct str line = str_cut(&text, '\n');
    (void)str_word(&line);
    struct str word = str_word(&line);
    (void)str_cut(&word, '=');
    return str_to_f64(word, &share) == 0 ? share : NAN;
}

void check_swap(const struct check_input *input, struct check_result *ret)
{
    struct arena *arena = input->host->arena;
    uint64_t total;
    uint64_t free_kib;
    if (!meminfo(input, "SwapTotal", &total) || !meminfo(input, "SwapFree", &free_kib))
        return check_na(ret, "/proc/meminfo does not tell swap");
    if (total == 0)
        return check_ok(ret, "there is no swap");
    uint64_t used = total - MIN(free_kib, total);
    double pressure = memory_pressure(input);
    char text[48];
    const char *size = units_format((double)used * 1024, UNIT_BYTES, text, sizeof(text));
    const char *detail = isnan(pressure)
                             ? arena_printf(arena, "%s swapped out; pressure is not told", size)
                             : arena_printf(arena, "%s swapped out, %.1f%% of time lost to memory",
                                            size, pressure);
    bool pressing = isnan(pressure) ? used * 20 > total : pressure >= 1;
    if (!pressing)
        return check_ok(ret, detail);
    check_set(ret, pressure >= 10 ? CHECK_FAIL : CHECK_WARN, detail,
              "page faults wait for the disk: times measure swapping",
              check_as_root(input, "swapoff -a && swapon -a"));
}

void check_clocksource(const struct check_input *input, struct check_result *ret)
{
    static const char *const fast[] = {"tsc", "kvm-clock", "arch_sys_counter",
                                       "hyperv_clocksource_tsc_page"};
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    struct str name;
    if (host_read(input->host, path, &name, NULL) < 0)
        return check_na(ret, "this machine does not tell its clock source");
    const char *detail = arena_printf(input->host->arena, "clock source %.*s", STR_FMT(name));
    for (size_t i = 0; i < ARRAY_SIZE(fast); i++)
        if (str_is(name, fast[i]))
            return check_ok(ret, detail);
    check_set(ret, CHECK_WARN, detail,
              "each reading of the clock is a system call, in the target and in whyslow",
              check_as_root(input, arena_printf(input->host->arena, "echo tsc | tee %s", path)));
}

/* The nearest folder that exists: results make their own below it. */
static const char *folder_existing(const struct check_input *input)
{
    struct str path = str_from(input->output_folder && *input->output_folder ? input->output_folder
                                                                             : ".");
    for (;;) {
        const char *text = arena_dup_len(input->host->arena, path.data, path.len);
        if (access(text, F_OK) == 0)
            return text;
        while (path.len > 0 && path.data[path.len - 1] != '/')
            path.len--;
        if (path.len == 0)
            return ".";
        if (path.len == 1)
            return "/";
        path.len--; /* the slash */
    }
}

void check_disk(const struct check_input *input, struct check_result *ret)
{
    struct arena *arena = input->host->arena;
    const char *folder = folder_existing(input);
    const char *quoted = check_quoted(input, folder);
    struct statvfs room;
    if (access(folder, W_OK) != 0)
        return check_set(
            ret, CHECK_FAIL,
            arena_printf(arena, "%s cannot be written to: %s", quoted, strerror(errno)),
            "results cannot be kept",
            check_as_root(input, arena_printf(arena, "chown %u %s", geteuid(), quoted)));
    if (statvfs(folder, &room) < 0)
        return check_na(ret, arena_printf(arena, "cannot look at %s: %s", quoted, strerror(errno)));
    if (room.f_blocks == 0)
        return check_na(ret, arena_printf(arena, "%s is on a file system without a size", quoted));
    double free_bytes = (double)room.f_bavail * (double)room.f_frsize;
    char text[48];
    const char *detail = arena_printf(
        arena, "%s free in %s%s", units_format(free_bytes, UNIT_BYTES, text, sizeof(text)), quoted,
        room.f_files > 0 && room.f_favail == 0 ? ", but no file can be made: out of inodes" : "");
    bool full = free_bytes < 100.0 * (1 << 20) || (room.f_files > 0 && room.f_favail == 0);
    if (!full && free_bytes >= 1024.0 * (1 << 20))
        return check_ok(ret, detail);
    check_set(
        ret, full ? CHECK_FAIL : CHECK_WARN, detail,
        "a recording may be cut off, and the target's own writes may fail",
        arena_printf(arena, "du -xh %s | sort -h | tail # and remove what is not needed", quoted));
}
