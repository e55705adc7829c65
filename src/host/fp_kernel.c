/* kernel.*: which kernel, and the settings of it that change results. */
#include "host/fp.h"

#include <stdio.h>
#include <sys/utsname.h>

struct value fp_kernel_arch(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    struct str arch; /* since Linux 6.1 */
    if (host_read(fp->host, "/proc/sys/kernel/arch", &arch, NULL) == 0)
        return value_str(arch);
    struct utsname name;
    if (host_is_live(fp->host) && uname(&name) == 0)
        return value_text(arena_dup(fp->arena, name.machine));
    return value_na("no /proc/sys/kernel/arch, and uname() tells only of the live machine");
}

/* Flags that change speed or what can be measured; the rest of the line is left out,
 * since it may hold things that are nobody's business. */
static bool is_notable(struct str word)
{
    static const char *const notable[] = {
        "mitigations=",
        "nopti",
        "pti=",
        "spectre_v2=",
        "nospectre",
        "spec_store_bypass_disable=",
        "mds=",
        "retbleed=",
        "isolcpus=",
        "nohz_full=",
        "nohz=",
        "rcu_nocbs=",
        "irqaffinity=",
        "intel_pstate=",
        "amd_pstate=",
        "cpufreq.",
        "intel_idle.max_cstate=",
        "processor.max_cstate=",
        "idle=",
        "cpuidle.",
        "nosmt",
        "maxcpus=",
        "nr_cpus=",
        "transparent_hugepage=",
        "hugepages",
        "default_hugepagesz=",
        "clocksource=",
        "tsc=",
        "notsc",
        "preempt=",
        "threadirqs",
        "nmi_watchdog=",
        "nowatchdog",
        "nokaslr",
        "audit=",
        "skew_tick=",
        "numa_balancing=",
        "cgroup_",
        "systemd.unified_cgroup_hierarchy=",
        "lockdown=",
        "mem=",
        "debug_pagealloc=",
        "slub_debug",
        "slab_debug",
        "kasan",
        "page_poison=",
        "init_on_alloc=",
        "init_on_free=",
        "vsyscall=",
    };
    for (size_t i = 0; i < ARRAY_SIZE(notable); i++)
        if (str_starts(word, notable[i]))
            return true;
    return false;
}

struct value fp_kernel_flags(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    struct str line;
    if (host_read(fp->host, "/proc/cmdline", &line, NULL) < 0)
        return value_na("/proc/cmdline cannot be read");
    const char *flags = "";
    while (line.len > 0) {
        struct str word = str_word(&line);
        if (is_notable(word))
            flags = arena_printf(fp->arena, "%s%s%.*s", flags, *flags ? " " : "", STR_FMT(word));
    }
    return value_text(*flags ? flags : "none");
}

/* The mode in parentheses of "none voluntary (full)". */
static struct str preempt_now(const struct fp *fp)
{
    struct str text;
    if (host_read(fp->host, "/sys/kernel/debug/sched/preempt", &text, NULL) < 0)
        return (struct str){"", 0};
    str_cut(&text, '(');
    return str_cut(&text, ')');
}

static const char *preempt_config(const struct fp *fp)
{
    static const struct {
        const char *line, *mode;
    } modes[] = {
        {"CONFIG_PREEMPT_RT=y", "rt"},
        {"CONFIG_PREEMPT_NONE=y", "none"},
        {"CONFIG_PREEMPT_VOLUNTARY=y", "voluntary"},
        {"CONFIG_PREEMPT_LAZY=y", "lazy"},
        {"CONFIG_PREEMPT=y", "full"},
    };
    struct str release, config;
    if (host_read(fp->host, "/proc/sys/kernel/osrelease", &release, NULL) < 0 ||
        host_read(fp->host, arena_printf(fp->arena, "/boot/config-%.*s", STR_FMT(release)), &config,
                  NULL) < 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        struct str rest = config;
        while (rest.len > 0)
            if (str_is(str_cut(&rest, '\n'), modes[i].line))
                return modes[i].mode;
    }
    return NULL;
}

struct value fp_kernel_preemption(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    struct str version, now = preempt_now(fp);
    if (now.len > 0)
        return value_str(now);
    if (host_read(fp->host, "/proc/sys/kernel/version", &version, NULL) < 0)
        return value_na("neither /sys/kernel/debug/sched/preempt nor /proc/sys/kernel/version");
    const char *config = preempt_config(fp);
    if (str_contains(version, "PREEMPT_RT"))
        return value_text("rt");
    if (str_contains(version, "PREEMPT_DYNAMIC"))
        return value_text(config ? arena_printf(fp->arena, "dynamic, built as %s", config)
                                 : "dynamic, mode not readable");
    if (config)
        return value_text(config);
    return str_contains(version, "PREEMPT") ? value_text("full") : value_text("none or voluntary");
}

struct value fp_kernel_distribution(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    struct str text;
    if (host_read(fp->host, "/etc/os-release", &text, NULL) < 0)
        return value_na("/etc/os-release cannot be read");
    while (text.len > 0) {
        struct str line = str_cut(&text, '\n');
        if (!str_starts(line, "PRETTY_NAME="))
            continue;
        struct str name = {line.data + 12, line.len - 12};
        if (name.len >= 2 && name.data[0] == '"' && name.data[name.len - 1] == '"')
            name = (struct str){name.data + 1, name.len - 2};
        return value_str(name);
    }
    return value_na("/etc/os-release has no PRETTY_NAME");
}
