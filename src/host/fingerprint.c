/* The table of facts, and the loop that reads them. Readers are in fp_*.c. */
#include "host/fingerprint.h"

#include "base/clock.h"
#include "host/fp.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define CPUFREQ "cpufreq/"

/* What one machine cannot tell another: order here is the order of the output. */
const struct fp_field fp_fields[] = {
    {"cpu", "model", "model", FP_MUST, fp_cpu_model, NULL,
     "another CPU runs the same code at another speed"},
    {"cpu", "vendor", "vendor", FP_SHOULD, fp_cpu_vendor, NULL, "libraries pick code by vendor"},
    {"cpu", "microcode", "microcode", FP_SHOULD, fp_cpu_microcode, NULL,
     "microcode changes the cost of instructions and mitigations"},
    {"cpu", "sockets", "sockets", FP_MUST, fp_cpu_sockets, NULL,
     "memory and locks cost more across sockets"},
    {"cpu", "cores", "cores", FP_MUST, fp_cpu_cores, NULL, "another number of cores"},
    {"cpu", "threads", "threads online", FP_MUST, fp_cpu_threads, NULL,
     "another number of hardware threads"},
    {"cpu", "numa_nodes", "NUMA nodes", FP_SHOULD, fp_cpu_numa, NULL,
     "memory is nearer or farther away"},
    {"cpu", "smt", "SMT", FP_MUST, fp_cpu_smt, NULL,
     "two threads on one core share its units and its caches"},
    {"cpu", "governor", "governor", FP_MUST, fp_cpu_governor, NULL,
     "the clock follows the load in another way"},
    {"cpu", "scaling_driver", "scaling driver", FP_SHOULD, fp_cpu_driver, NULL,
     "the clock is steered by another driver"},
    {"cpu", "energy_preference", "energy preference", FP_SHOULD, fp_cpu_preference, NULL,
     "the hardware ramps its clock up sooner or later"},
    {"cpu", "turbo", "turbo", FP_MUST, fp_cpu_turbo, NULL,
     "turbo changes the clock with heat and neighbours"},
    {"cpu", "freq_min_hz", "least clock", FP_SHOULD, fp_cpu_freq, CPUFREQ "scaling_min_freq",
     "the idle clock differs"},
    {"cpu", "freq_max_hz", "greatest clock", FP_MUST, fp_cpu_freq, CPUFREQ "scaling_max_freq",
     "the clock is capped elsewhere"},
    {"cpu", "freq_now_hz", "clock now (CPU 0)", FP_INFO, fp_cpu_freq_now},
    {"cpu", "l1d_bytes", "L1 data cache", FP_SHOULD, fp_cpu_cache, "1Data", "caches differ"},
    {"cpu", "l1i_bytes", "L1 code cache", FP_SHOULD, fp_cpu_cache, "1Instruction", "caches differ"},
    {"cpu", "l2_bytes", "L2 cache", FP_SHOULD, fp_cpu_cache, "2Unified", "caches differ"},
    {"cpu", "l3_bytes", "L3 cache", FP_MUST, fp_cpu_cache, "3Unified",
     "what fits into the last cache differs"},
    {"cpu", "flags", "flags of note", FP_SHOULD, fp_cpu_flags, NULL,
     "libraries pick other code for other instruction sets"},
    {"cpu", "mitigations", "mitigations", FP_SHOULD, fp_cpu_mitigations, NULL,
     "mitigations make system calls and branches dearer"},

    {"memory", "total_bytes", "total", FP_MUST, fp_read_meminfo, "MemTotal",
     "less memory means less page cache, or swapping", .tolerance = 0.05},
    {"memory", "available_bytes", "available", FP_INFO, fp_read_meminfo, "MemAvailable"},
    {"memory", "swap_total_bytes", "swap", FP_SHOULD, fp_read_meminfo, "SwapTotal",
     "one of them can swap", .tolerance = 0.05},
    {"memory", "swap_used_bytes", "swap used", FP_INFO, fp_memory_swap_used},
    {"memory", "huge_pages", "huge pages reserved", FP_SHOULD, fp_read_meminfo, "HugePages_Total",
     "huge pages spare TLB misses"},
    {"memory", "huge_page_bytes", "huge page size", FP_SHOULD, fp_read_meminfo, "Hugepagesize",
     "huge pages spare TLB misses"},
    {"memory", "thp", "transparent huge pages", FP_SHOULD, fp_memory_thp,
     "/sys/kernel/mm/transparent_hugepage/enabled", "huge pages spare TLB misses"},
    {"memory", "thp_defrag", "THP defragmentation", FP_SHOULD, fp_memory_thp,
     "/sys/kernel/mm/transparent_hugepage/defrag", "page faults may stall for compaction"},
    {"memory", "swappiness", "swappiness", FP_SHOULD, fp_read_int, "/proc/sys/vm/swappiness",
     "memory is swapped out sooner or later"},
    {"memory", "page_bytes", "page size", FP_MUST, fp_memory_page_size, NULL,
     "another page size changes faults and TLB misses"},

    {"storage", "folder", "folder", FP_INFO, fp_storage_folder},
    {"storage", "mount_point", "mounted at", FP_INFO, fp_storage_mount},
    {"storage", "device", "device", FP_INFO, fp_storage_device},
    {"storage", "kind", "kind of device", FP_MUST, fp_storage_kind, NULL,
     "another kind of device has other latencies"},
    {"storage", "model", "model", FP_SHOULD, fp_storage_model, NULL, "another device"},
    {"storage", "scheduler", "I/O scheduler", FP_SHOULD, fp_storage_scheduler, NULL,
     "requests are ordered in another way"},
    {"storage", "filesystem", "filesystem", FP_MUST, fp_storage_fs, NULL,
     "fsync and metadata cost something else"},
    {"storage", "options", "mount options", FP_SHOULD, fp_storage_options, NULL,
     "options such as noatime, barrier or data= change the cost of I/O"},
    {"storage", "size_bytes", "size", FP_INFO, fp_storage_space, "size"},
    {"storage", "free_bytes", "free", FP_INFO, fp_storage_space, "free"},

    {"kernel", "release", "release", FP_MUST, fp_read_text, "/proc/sys/kernel/osrelease",
     "another kernel: scheduler, page cache and system calls differ"},
    {"kernel", "version", "version", FP_SHOULD, fp_read_text, "/proc/sys/kernel/version",
     "another build of the kernel"},
    {"kernel", "arch", "architecture", FP_MUST, fp_kernel_arch, NULL, "another architecture"},
    {"kernel", "distribution", "distribution", FP_SHOULD, fp_kernel_distribution, NULL,
     "other libraries"},
    {"kernel", "flags", "command line of note", FP_SHOULD, fp_kernel_flags, NULL,
     "the kernel was started with other settings"},
    {"kernel", "preemption", "preemption", FP_SHOULD, fp_kernel_preemption, NULL,
     "latencies differ by preemption model"},
    {"kernel", "clocksource", "clock source", FP_MUST, fp_read_text,
     "/sys/devices/system/clocksource/clocksource0/current_clocksource",
     "reading the time costs up to 100 times more without the TSC"},
    {"kernel", "aslr", "ASLR", FP_SHOULD, fp_read_int, "/proc/sys/kernel/randomize_va_space",
     "addresses vary from run to run in one of them only"},
    {"kernel", "perf_event_paranoid", "perf_event_paranoid", FP_SHOULD, fp_read_int,
     "/proc/sys/kernel/perf_event_paranoid", "a profile may see less on one of them"},
    {"kernel", "kptr_restrict", "kptr_restrict", FP_INFO, fp_read_int,
     "/proc/sys/kernel/kptr_restrict"},
    {"kernel", "nmi_watchdog", "NMI watchdog", FP_SHOULD, fp_read_int,
     "/proc/sys/kernel/nmi_watchdog", "the watchdog takes one hardware counter"},
    {"kernel", "perf_max_sample_rate", "perf sample rate cap", FP_INFO, fp_read_int,
     "/proc/sys/kernel/perf_event_max_sample_rate"},

    {"toolchain", "cc", "cc", FP_SHOULD, fp_tool_version, "cc", "other code from the compiler"},
    {"toolchain", "gcc", "gcc", FP_SHOULD, fp_tool_version, "gcc", "other code from the compiler"},
    {"toolchain", "clang", "clang", FP_SHOULD, fp_tool_version, "clang",
     "other code from the compiler"},
    {"toolchain", "ld", "ld", FP_SHOULD, fp_tool_version, "ld", "another layout of the binary"},
    {"toolchain", "rustc", "rustc", FP_SHOULD, fp_tool_version, "rustc",
     "other code from the compiler"},
    {"toolchain", "go", "go", FP_SHOULD, fp_tool_version, "go", "other code and runtime"},
    {"toolchain", "python3", "python3", FP_SHOULD, fp_tool_version, "python3",
     "another interpreter"},
    {"toolchain", "node", "node", FP_SHOULD, fp_tool_version, "node", "another runtime"},
    {"toolchain", "java", "java", FP_SHOULD, fp_tool_version, "java", "another runtime"},
    {"toolchain", "libc", "C library", FP_SHOULD, fp_libc_version, NULL,
     "malloc, memcpy and locks are the C library's"},
    {"toolchain", "whyslow", "whyslow", FP_SHOULD, fp_own_version, NULL,
     "measured by different versions of whyslow"},

    {"build", "path", "binary", FP_INFO, fp_build_na},
    {"build", "machine", "machine", FP_MUST, fp_build_na, NULL, "built for another machine"},
    {"build", "kind", "kind", FP_SHOULD, fp_build_na, NULL, "position-independent or not"},
    {"build", "build_id", "build id", FP_INFO, fp_build_na},
    {"build", "language", "language", FP_SHOULD, fp_build_na, NULL, "another language"},
    {"build", "compiler", "compiler", FP_SHOULD, fp_build_na, NULL, "another compiler"},
    {"build", "optimization", "optimization", FP_MUST, fp_build_na, NULL,
     "the optimizer was given other orders"},
    {"build", "lto", "link-time optimization", FP_SHOULD, fp_build_na, NULL,
     "the optimizer saw another part of the program"},
    {"build", "frame_pointers", "frame pointers", FP_SHOULD, fp_build_na, NULL,
     "frame pointers cost a register"},
    {"build", "unwind_tables", "unwind tables", FP_INFO, fp_build_na},
    {"build", "symbols", "symbols", FP_INFO, fp_build_na},
    {"build", "debug_info", "debug info", FP_INFO, fp_build_na},
    {"build", "split_debug", "split debug info", FP_INFO, fp_build_na},
    {"build", "stripped", "stripped", FP_INFO, fp_build_na},
    {"build", "sanitizers", "sanitizers", FP_MUST, fp_build_na, NULL,
     "a sanitizer makes a program several times slower"},
    {"build", "instrumented", "instrumentation", FP_MUST, fp_build_na, NULL,
     "instrumentation runs with every call"},

    {"isolation", "affinity", "CPUs allowed", FP_MUST, fp_isolation_affinity, NULL,
     "the target may run on other CPUs"},
    {"isolation", "scheduling", "scheduling", FP_MUST, fp_isolation_scheduling, NULL,
     "another priority against everything else"},
    {"isolation", "cgroup_version", "cgroups", FP_SHOULD, fp_cgroup_version, NULL,
     "limits work in another way"},
    {"isolation", "cgroup", "cgroup", FP_INFO, fp_cgroup_path},
    {"isolation", "cpu_limit", "CPU limit (CPUs)", FP_MUST, fp_cgroup_cpu_limit, NULL,
     "the cgroup is throttled at another point"},
    {"isolation", "memory_limit_bytes", "memory limit", FP_MUST, fp_cgroup_memory_limit, NULL,
     "page cache and heap have other room"},
    {"isolation", "cpuset", "cpuset", FP_MUST, fp_cgroup_cpuset, NULL,
     "the cgroup may run on other CPUs"},
    {"isolation", "throttled", "times throttled", FP_INFO, fp_cgroup_throttled},
    {"isolation", "container", "container", FP_MUST, fp_isolation_container, NULL,
     "containers add seccomp, overlay files and network layers"},
    {"isolation", "container_evidence", "seen from", FP_INFO, fp_isolation_container_evidence},
    {"isolation", "vm", "virtual machine", FP_MUST, fp_isolation_vm, NULL,
     "a hypervisor changes the cost of faults, timers and I/O"},
    {"isolation", "vm_evidence", "seen from", FP_INFO, fp_isolation_vm_evidence},
    {"isolation", "steal_boot_percent", "steal since boot", FP_INFO, fp_isolation_steal},
    {"isolation", "load_1m", "load, 1 min", FP_INFO, fp_isolation_load, "0"},
    {"isolation", "load_5m", "load, 5 min", FP_INFO, fp_isolation_load, "1"},
    {"isolation", "load_15m", "load, 15 min", FP_INFO, fp_isolation_load, "2"},
    {"isolation", "tasks_running", "tasks running", FP_INFO, fp_isolation_tasks, "running"},
    {"isolation", "tasks", "tasks", FP_INFO, fp_isolation_tasks, "all"},
    {"isolation", "isolated_cpus", "isolated CPUs", FP_SHOULD, fp_isolation_cpu_list,
     "/sys/devices/system/cpu/isolated", "other tasks are kept off other CPUs"},
    {"isolation", "nohz_full", "tickless CPUs", FP_SHOULD, fp_isolation_cpu_list,
     "/sys/devices/system/cpu/nohz_full", "timer ticks interrupt one of them only"},
    {"isolation", "namespaces", "namespaces", FP_SHOULD, fp_isolation_namespaces, NULL,
     "network and file namespaces add layers"},
    /* Last of its group: by then its window has mostly passed. */
    {"isolation", "steal_now_percent", "steal now", FP_INFO, fp_isolation_steal_now},

    {"cache", "state", "binary in the page cache", FP_MUST, fp_cache_state, NULL,
     "a cold start reads the disk"},
    {"cache", "binary_percent", "share of it", FP_INFO, fp_cache_share},
    {"cache", "page_cache_bytes", "page cache", FP_INFO, fp_read_meminfo, "Cached"},
    {"cache", "dirty_bytes", "not yet written", FP_INFO, fp_read_meminfo, "Dirty"},

    {"run", "id", "run", FP_INFO, fp_run_id},
    {"run", "git_revision", "git revision", FP_INFO, fp_run_git_revision},
    {"run", "git_branch", "git branch", FP_INFO, fp_run_git_branch},
    {"run", "time", "time (UTC)", FP_INFO, fp_run_time},
    {"run", "hostname", "host", FP_SHOULD, fp_read_text, "/proc/sys/kernel/hostname",
     "measured on different machines"},
    {"run", "user_id", "user id", FP_INFO, fp_run_user},
    {"run", "cwd", "working folder", FP_INFO, fp_run_cwd},
    {"run", "environment_bytes", "size of the environment", FP_SHOULD, fp_run_environment, NULL,
     "its size shifts the stack, which can change times by some percent"},
    {"run", "uptime_s", "uptime (s)", FP_INFO, fp_run_uptime},
    {0},
};

const struct fp_field *fp_field_find(struct str group, struct str key)
{
    for (const struct fp_field *field = fp_fields; field->group; field++)
        if (str_is(group, field->group) && str_is(key, field->key))
            return field;
    return NULL;
}

struct value fp_not_live(void)
{
    return value_na("known only on the machine itself, not from its files");
}

struct value fp_file_text(const struct fp *fp, const char *path)
{
    struct str text;
    int r = host_read(fp->host, path, &text, NULL);
    if (r < 0)
        return value_na_printf(fp->arena, "%s: %s", path, strerror(-r));
    return text.len > 0 ? value_str(text) : value_na_printf(fp->arena, "%s is empty", path);
}

struct value fp_read_text(const struct fp *fp, const struct fp_field *field)
{
    return fp_file_text(fp, field->arg);
}

struct value fp_read_int(const struct fp *fp, const struct fp_field *field)
{
    struct value text = fp_file_text(fp, field->arg);
    int64_t number;
    if (text.kind == VALUE_TEXT && str_to_i64(text.text, &number) == 0)
        return value_int(number, UNIT_NONE);
    return text;
}

struct value fp_build_na(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (fp->input->binary)
        return value_na("the binary's reader did not tell");
    return value_na(fp->input->binary_na ? fp->input->binary_na : "no program was named");
}

int fingerprint_resident_share(const char *path, double *ret)
{
    const char *na;
    return fp_resident_share(path, ret, &na);
}

static void resident_find(struct fp *fp)
{
    const struct fingerprint_input *input = fp->input;
    fp->resident_share = NAN;
    if (!input->binary)
        fp->resident_na = input->binary_na ? input->binary_na : "no program was named";
    else if (input->resident_share)
        fp->resident_share = *input->resident_share;
    else if (fp_resident_share(input->binary->path, &fp->resident_share, &fp->resident_na) < 0)
        fp->resident_share = NAN;
    if (!fp->resident_na)
        fp->resident_na = "the kernel tells only the owner of a file, or who may write it";
}

static struct str read_or_empty(const struct fp *fp, const char *path)
{
    struct str text;
    return host_read(fp->host, path, &text, NULL) < 0 ? (struct str){"", 0} : text;
}

static void group_read(const struct fp *fp, const char *group, struct value *map)
{
    for (const struct fp_field *field = fp_fields; field->group; field++)
        if (strcmp(field->group, group) == 0 && !value_get(map, field->key))
            value_put(map, field->key, field->title, field->read(fp, field));
}

struct value fingerprint_read(const struct fingerprint_input *input)
{
    static const struct {
        const char *key, *title;
    } groups[] = {
        {"cpu", "CPU"},          {"memory", "Memory"},       {"storage", "Storage"},
        {"kernel", "Kernel"},    {"build", "Build"},         {"isolation", "Isolation"},
        {"cache", "Page cache"}, {"toolchain", "Toolchain"}, {"run", "Run"},
    };
    struct arena *arena = input->host->arena;
    struct fp fp = {.input = input, .host = input->host, .arena = arena, .proc = "/proc/self"};
    if (input->pid > 0)
        fp.proc = arena_printf(arena, "/proc/%d", input->pid);
    fp.stat_ns = clock_mono_ns();
    fp.stat = read_or_empty(&fp, "/proc/stat");
    fp.cpuinfo = read_or_empty(&fp, "/proc/cpuinfo");
    fp.meminfo = read_or_empty(&fp, "/proc/meminfo");
    fp.cgroups = fp_cgroups_find(&fp);
    fp.inside = fp_container_find(&fp);
    fp_mount_find(&fp);
    resident_find(&fp);

    struct value all = value_map(arena);
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        struct value map = value_map(arena);
        if (strcmp(groups[i].key, "build") == 0 && input->binary)
            map = build_info_value(arena, input->binary);
        group_read(&fp, groups[i].key, &map);
        value_put(&all, groups[i].key, groups[i].title, map);
    }
    return all;
}
