/* cpu.*: what the processor is and how fast it is allowed to run. */
#include "host/fp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CPU_FOLDER "/sys/devices/system/cpu"

bool fp_cpus_parse(struct str list, struct fp_cpus *ret)
{
    *ret = (struct fp_cpus){0};
    list = str_trim(list);
    while (list.len > 0) {
        struct str part = str_trim(str_cut(&list, ','));
        struct str first = str_cut(&part, '-');
        uint64_t from, to;
        if (str_to_u64(first, 10, &from) < 0)
            return false;
        to = from;
        if (part.len > 0 && str_to_u64(part, 10, &to) < 0)
            return false;
        for (uint64_t cpu = from; cpu <= to && cpu < FP_CPUS_MAX; cpu++) {
            ret->count += !ret->on[cpu];
            ret->on[cpu] = true;
        }
    }
    return true;
}

bool fp_cpus_online(const struct host *host, struct fp_cpus *ret)
{
    struct str list;
    return host_read(host, CPU_FOLDER "/online", &list, NULL) == 0 && fp_cpus_parse(list, ret) &&
           ret->count > 0;
}

static const char *cpu_path(const struct fp *fp, unsigned cpu, const char *file)
{
    return arena_printf(fp->arena, CPU_FOLDER "/cpu%u/%s", cpu, file);
}

static unsigned cpuinfo_processors(const struct fp *fp)
{
    unsigned count = 0;
    struct str rest = fp->cpuinfo;
    while (rest.len > 0)
        count += str_starts(str_cut(&rest, '\n'), "processor\t");
    return count;
}

/* Arm tells numbers, not names. These are the parts that carry servers, and the
 * implementers of the rest. */
static const char *arm_part(uint64_t implementer, uint64_t part)
{
    static const struct {
        uint64_t implementer, part;
        const char *name;
    } parts[] = {
        {0x41, 0xd03, "Arm Cortex-A53"},       {0x41, 0xd07, "Arm Cortex-A57"},
        {0x41, 0xd08, "Arm Cortex-A72"},       {0x41, 0xd0b, "Arm Cortex-A76"},
        {0x41, 0xd0c, "Arm Neoverse-N1"},      {0x41, 0xd40, "Arm Neoverse-V1"},
        {0x41, 0xd49, "Arm Neoverse-N2"},      {0x41, 0xd4f, "Arm Neoverse-V2"},
        {0x43, 0x0af, "Cavium ThunderX2"},     {0x48, 0xd01, "HiSilicon Kunpeng-920"},
        {0xc0, 0xac3, "Ampere AmpereOne"},     {0x61, 0x022, "Apple M1 (Icestorm)"},
        {0x61, 0x023, "Apple M1 (Firestorm)"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (parts[i].implementer == implementer && parts[i].part == part)
            return parts[i].name;
    return NULL;
}

static bool hex_field(struct str text, const char *key, uint64_t *ret)
{
    struct str field = str_field(text, key);
    if (!str_starts(field, "0x"))
        return false;
    return str_to_u64((struct str){field.data + 2, field.len - 2}, 16, ret) == 0;
}

struct value fp_cpu_model(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (fp->cpuinfo.len == 0)
        return value_na("/proc/cpuinfo cannot be read");
    static const char *const keys[] = {"model name", "cpu model", "cpu", "uarch"};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        struct str name = str_field(fp->cpuinfo, keys[i]);
        if (name.len > 0)
            return value_str(name);
    }
    uint64_t implementer, part;
    if (hex_field(fp->cpuinfo, "CPU implementer", &implementer) &&
        hex_field(fp->cpuinfo, "CPU part", &part)) {
        const char *name = arm_part(implementer, part);
        return value_text(name ? name
                               : arena_printf(fp->arena, "Arm implementer 0x%02llx part 0x%03llx",
                                              (unsigned long long)implementer,
                                              (unsigned long long)part));
    }
    return value_na("/proc/cpuinfo names no model");
}

struct value fp_cpu_vendor(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    struct str vendor = str_field(fp->cpuinfo, "vendor_id");
    if (vendor.len == 0)
        vendor = str_field(fp->cpuinfo, "CPU implementer");
    return vendor.len > 0 ? value_str(vendor) : value_na("/proc/cpuinfo names no vendor");
}

struct value fp_cpu_microcode(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    struct str microcode = str_field(fp->cpuinfo, "microcode");
    return microcode.len > 0 ? value_str(microcode)
                             : value_na("/proc/cpuinfo names no microcode version");
}

/* Counts distinct packages, or distinct cores when `cores`. */
static unsigned count_topology(const struct fp *fp, bool cores)
{
    struct fp_cpus online;
    if (!fp_cpus_online(fp->host, &online))
        return 0;
    uint64_t *seen = arena_alloc(fp->arena, online.count * sizeof(*seen));
    if (!seen)
        return 0;
    unsigned count = 0;
    for (unsigned cpu = 0; cpu < FP_CPUS_MAX; cpu++) {
        uint64_t package, core = 0;
        if (!online.on[cpu])
            continue;
        if (host_read_u64(fp->host, cpu_path(fp, cpu, "topology/physical_package_id"), &package) <
            0)
            return 0;
        if (cores && host_read_u64(fp->host, cpu_path(fp, cpu, "topology/core_id"), &core) < 0)
            return 0;
        uint64_t id = package << 32 | (core & UINT32_MAX);
        bool known = false;
        for (unsigned i = 0; i < count && !known; i++)
            known = seen[i] == id;
        if (!known)
            seen[count++] = id;
    }
    return count;
}

struct value fp_cpu_sockets(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    unsigned count = count_topology(fp, false);
    return count > 0 ? value_uint(count, UNIT_NONE) : value_na("the kernel shows no CPU topology");
}

struct value fp_cpu_cores(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    unsigned count = count_topology(fp, true);
    return count > 0 ? value_uint(count, UNIT_NONE) : value_na("the kernel shows no CPU topology");
}

struct value fp_cpu_threads(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    struct fp_cpus online;
    unsigned count = fp_cpus_online(fp->host, &online) ? online.count : cpuinfo_processors(fp);
    return count > 0 ? value_uint(count, UNIT_NONE)
                     : value_na("neither " CPU_FOLDER "/online nor /proc/cpuinfo lists CPUs");
}

struct value fp_cpu_numa(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    struct str list;
    struct fp_cpus nodes;
    if (host_read(fp->host, "/sys/devices/system/node/online", &list, NULL) < 0 ||
        !fp_cpus_parse(list, &nodes) || nodes.count == 0)
        return value_na("the kernel shows no NUMA nodes");
    return value_uint(nodes.count, UNIT_NONE);
}

struct value fp_cpu_smt(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    struct str control, active;
    if (host_read(fp->host, CPU_FOLDER "/smt/control", &control, NULL) < 0)
        return value_na("the kernel has no " CPU_FOLDER "/smt");
    if (str_is(control, "notsupported") || str_is(control, "notimplemented"))
        return value_text("not supported");
    /* "on" only allows it: a CPU with one thread a core says "on" and is not active. */
    if (str_is(control, "on") && host_read(fp->host, CPU_FOLDER "/smt/active", &active, NULL) == 0)
        return value_text(str_is(active, "1") ? "on" : "allowed, one thread a core");
    return value_str(control);
}

/* One text a CPU, gathered: the text when all agree, else who has what. */
static struct value per_cpu(const struct fp *fp, const char *file, const char *na)
{
    enum { KINDS_MAX = 8 };
    struct {
        struct str text;
        unsigned count;
    } kinds[KINDS_MAX];
    size_t len = 0;
    struct fp_cpus online;
    if (!fp_cpus_online(fp->host, &online))
        return value_na("the kernel does not list its CPUs");
    for (unsigned cpu = 0; cpu < FP_CPUS_MAX; cpu++) {
        struct str text;
        if (!online.on[cpu] || host_read(fp->host, cpu_path(fp, cpu, file), &text, NULL) < 0)
            continue;
        size_t i = 0;
        while (i < len && !str_eq(kinds[i].text, text))
            i++;
        if (i == KINDS_MAX)
            continue;
        if (i == len) {
            kinds[len].text = text;
            kinds[len++].count = 0;
        }
        kinds[i].count++;
    }
    if (len == 0)
        return value_na(na);
    if (len == 1)
        return value_str(kinds[0].text);
    const char *mixed = "mixed:";
    for (size_t i = 0; i < len; i++)
        mixed = arena_printf(fp->arena, "%s%s %u %.*s", mixed, i ? "," : "", kinds[i].count,
                             STR_FMT(kinds[i].text));
    return value_text(mixed);
}

#define NO_CPUFREQ "no cpufreq driver: the clock is set by the hardware, the firmware or the host"

struct value fp_cpu_governor(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    return per_cpu(fp, "cpufreq/scaling_governor", NO_CPUFREQ);
}

struct value fp_cpu_driver(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    return per_cpu(fp, "cpufreq/scaling_driver", NO_CPUFREQ);
}

struct value fp_cpu_preference(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    return per_cpu(fp, "cpufreq/energy_performance_preference",
                   "the cpufreq driver has no energy preference");
}

struct value fp_cpu_turbo(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    struct str text;
    if (host_read(fp->host, CPU_FOLDER "/intel_pstate/no_turbo", &text, NULL) == 0)
        return value_text(str_is(text, "0") ? "on" : "off");
    if (host_read(fp->host, CPU_FOLDER "/cpufreq/boost", &text, NULL) == 0)
        return value_text(str_is(text, "0") ? "off" : "on");
    return value_na(
        "neither intel_pstate/no_turbo nor cpufreq/boost: not under this kernel's control");
}

/* Limits: the least minimum and the greatest maximum of all CPUs. */
struct value fp_cpu_freq(const struct fp *fp, const struct fp_field *field)
{
    bool least = strcmp(field->key, "freq_min_hz") == 0;
    struct fp_cpus online;
    uint64_t best = 0;
    if (!fp_cpus_online(fp->host, &online))
        return value_na("the kernel does not list its CPUs");
    for (unsigned cpu = 0; cpu < FP_CPUS_MAX; cpu++) {
        uint64_t khz;
        if (!online.on[cpu] || host_read_u64(fp->host, cpu_path(fp, cpu, field->arg), &khz) < 0)
            continue;
        if (best == 0 || (least ? khz < best : khz > best))
            best = khz;
    }
    return best > 0 ? value_uint(best * 1000, UNIT_HZ) : value_na(NO_CPUFREQ);
}

struct value fp_cpu_freq_now(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    uint64_t khz;
    if (host_read_u64(fp->host, CPU_FOLDER "/cpu0/cpufreq/scaling_cur_freq", &khz) == 0)
        return value_uint(khz * 1000, UNIT_HZ);
    double mhz;
    if (str_to_f64(str_field(fp->cpuinfo, "cpu MHz"), &mhz) == 0)
        return value_uint((uint64_t)(mhz * 1e6), UNIT_HZ);
    return value_na(NO_CPUFREQ);
}

/* arg: level and type, "1Data", "2Unified". The size of one such cache of CPU 0. */
struct value fp_cpu_cache(const struct fp *fp, const struct fp_field *field)
{
    for (unsigned i = 0; i < 10; i++) {
        struct str level, type, size;
        const char *folder = arena_printf(fp->arena, CPU_FOLDER "/cpu0/cache/index%u", i);
        if (host_read(fp->host, arena_printf(fp->arena, "%s/level", folder), &level, NULL) < 0 ||
            host_read(fp->host, arena_printf(fp->arena, "%s/type", folder), &type, NULL) < 0 ||
            host_read(fp->host, arena_printf(fp->arena, "%s/size", folder), &size, NULL) < 0)
            break;
        const char *name = arena_printf(fp->arena, "%.*s%.*s", STR_FMT(level), STR_FMT(type));
        uint64_t bytes;
        if (strcmp(name, field->arg) == 0 && units_parse_size(size, &bytes) == 0)
            return value_uint(bytes, UNIT_BYTES);
    }
    return value_na("the kernel shows no cache of this kind");
}

static bool has_word(struct str text, const char *wanted)
{
    while (text.len > 0) {
        struct str word = str_word(&text);
        if (word.len == 0)
            return false;
        if (str_is(word, wanted))
            return true;
    }
    return false;
}

/* Those that change which code a library picks, or what can be measured. */
struct value fp_cpu_flags(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    static const char *const notable[] = {
        "sse4_2",   "avx",          "avx2",     "fma",           "bmi2",         "avx512f",
        "avx512bw", "avx512_vnni",  "avx_vnni", "amx_tile",      "aes",          "sha_ni",
        "erms",     "fsrm",         "pdpe1gb",  "invariant_tsc", "constant_tsc", "nonstop_tsc",
        "rdtscp",   "arch_perfmon", "pebs",     "ibs",           "asimd",        "sve",
        "sve2",     "atomics",      "crc32",    "pmull",         "hypervisor",
    };
    struct str flags = str_field(fp->cpuinfo, "flags");
    if (flags.len == 0)
        flags = str_field(fp->cpuinfo, "Features");
    if (flags.len == 0)
        return value_na("/proc/cpuinfo lists no flags");
    const char *found = "";
    for (size_t i = 0; i < ARRAY_SIZE(notable); i++)
        if (has_word(flags, notable[i]))
            found = arena_printf(fp->arena, "%s%s%s", found, *found ? " " : "", notable[i]);
    return value_text(*found ? found : "none of note");
}

static void note(const struct fp *fp, const char **list, const char *name)
{
    *list = arena_printf(fp->arena, "%s%s%s", *list, **list ? ", " : "", name);
}

/* The names are the kernel's; a list by name keeps the order stable across machines. */
struct value fp_cpu_mitigations(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    static const char *const names[] = {
        "gather_data_sampling",
        "ghostwrite",
        "indirect_target_selection",
        "itlb_multihit",
        "l1tf",
        "mds",
        "meltdown",
        "mmio_stale_data",
        "old_microcode",
        "reg_file_data_sampling",
        "retbleed",
        "spec_rstack_overflow",
        "spec_store_bypass",
        "spectre_v1",
        "spectre_v2",
        "srbds",
        "tsa",
        "tsx_async_abort",
        "vmscape",
    };
    const char *mitigated = "", *open = "";
    unsigned seen = 0, unaffected = 0;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct str text;
        const char *path = arena_printf(fp->arena, CPU_FOLDER "/vulnerabilities/%s", names[i]);
        if (host_read(fp->host, path, &text, NULL) < 0)
            continue;
        seen++;
        if (str_starts(text, "Not affected"))
            unaffected++;
        else if (str_contains(text, "Mitigation"))
            note(fp, &mitigated, names[i]);
        else
            note(fp, &open, names[i]);
    }
    if (seen == 0)
        return value_na("the kernel has no " CPU_FOLDER "/vulnerabilities");
    return value_text(
        arena_printf(fp->arena, "mitigated: %s; vulnerable or unknown: %s; not affected: %u",
                     *mitigated ? mitigated : "none", *open ? open : "none", unaffected));
}
