/* isolation.*: who else shares the machine, and what stands between it and the target. */
#include "host/fp.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

struct fp_container {
    const char *container, *container_evidence; /* NULL: none found */
    const char *container_na;                   /* why a mark was not believed, or NULL */
    const char *vm, *vm_evidence;               /* NULL: none found */
    const char *vm_na;                          /* nothing here would show one */
};

struct value fp_isolation_affinity(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    struct str status;
    if (host_read(fp->host, arena_printf(fp->arena, "%s/status", fp->proc), &status, NULL) < 0)
        return value_na_printf(fp->arena, "%s/status cannot be read", fp->proc);
    struct str list = str_field(status, "Cpus_allowed_list");
    return list.len > 0 ? value_str(list) : value_na("the kernel tells no Cpus_allowed_list");
}

/* Field numbers of proc(5); the name in parentheses may hold anything, so count behind it. */
static bool stat_field(struct str stat, unsigned number, int64_t *ret)
{
    const char *end = memrchr(stat.data, ')', stat.len);
    if (!end)
        return false;
    struct str rest = {end + 1, stat.len - (size_t)(end + 1 - stat.data)};
    struct str word = {"", 0};
    for (unsigned i = 3; i <= number; i++)
        word = str_word(&rest);
    return str_to_i64(word, ret) == 0;
}

struct value fp_isolation_scheduling(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    static const char *const policies[] = {"other", "fifo", "rr", "batch", "?", "idle", "deadline"};
    struct str stat;
    int64_t nice, policy;
    if (host_read(fp->host, arena_printf(fp->arena, "%s/stat", fp->proc), &stat, NULL) < 0 ||
        !stat_field(stat, 19, &nice) || !stat_field(stat, 41, &policy))
        return value_na_printf(fp->arena, "%s/stat cannot be read", fp->proc);
    const char *name = policy >= 0 && policy < (int64_t)ARRAY_SIZE(policies) ? policies[policy]
                                                                             : "?";
    return value_text(arena_printf(fp->arena, "%s, nice %lld", name, (long long)nice));
}

static bool namespace_read(const struct fp *fp, const char *proc, const char *kind, uint64_t *ret)
{
    char link[64];
    const char *path = host_path(fp->host, arena_printf(fp->arena, "%s/ns/%s", proc, kind));
    ssize_t len = readlink(path, link, sizeof(link));
    if (len <= 0 || (size_t)len == sizeof(link))
        return false;
    struct str text = {link, (size_t)len};
    str_cut(&text, '[');
    return str_to_u64(str_cut(&text, ']'), 10, ret) == 0;
}

/* The first namespaces of a kernel have fixed numbers; mnt and net only since Linux 6.18. */
static const struct {
    const char *kind;
    uint64_t first;
    bool always; /* on every kernel */
} namespaces[] = {
    {"cgroup", 4026531835, true}, {"ipc", 4026531839, true}, {"mnt", 4026531832, false},
    {"net", 4026531833, false},   {"pid", 4026531836, true}, {"user", 4026531837, true},
    {"uts", 4026531838, true},
};

/* An image that was booted as a machine still carries its .dockerenv. A process in the first
 * namespaces of its kernel is in no container. */
static bool is_outside(const struct fp *fp)
{
    for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
        uint64_t mine;
        if (namespaces[i].always && (!namespace_read(fp, fp->proc, namespaces[i].kind, &mine) ||
                                     mine != namespaces[i].first))
            return false;
    }
    return true;
}

static bool found(struct fp_container *ret, const char *container, const char *evidence)
{
    ret->container = container;
    ret->container_evidence = evidence;
    return true;
}

/* `container=NAME` is what container managers tell the first process. */
static bool container_from_init(const struct fp *fp, struct fp_container *ret)
{
    struct str text;
    if (host_read(fp->host, "/run/systemd/container", &text, NULL) == 0 && text.len > 0)
        return found(ret, arena_dup_len(fp->arena, text.data, text.len), "/run/systemd/container");
    if (host_read(fp->host, "/proc/1/environ", &text, NULL) < 0)
        return false;
    while (text.len > 0) {
        struct str entry = str_cut(&text, '\0');
        if (str_starts(entry, "container=") && entry.len > 10)
            return found(ret, arena_dup_len(fp->arena, entry.data + 10, entry.len - 10),
                         "container= in /proc/1/environ");
    }
    return false;
}

static bool container_from_cgroup(const struct fp *fp, const char *path, struct fp_container *ret)
{
    static const struct {
        const char *needle, *name;
    } marks[] = {
        {"/kubepods", "kubernetes"}, {"kubepods.slice", "kubernetes"},
        {"/docker/", "docker"},      {"/docker-", "docker"},
        {"/libpod", "podman"},       {"/lxc/", "lxc"},
        {"/lxc.payload", "lxc"},     {"/machine.slice/systemd-nspawn", "systemd-nspawn"},
    };
    struct str text;
    if (host_read(fp->host, path, &text, NULL) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
        if (str_contains(text, marks[i].needle))
            return found(ret, marks[i].name,
                         arena_printf(fp->arena, "'%s' in %s", marks[i].needle, path));
    return false;
}

static bool container_find(const struct fp *fp, struct fp_container *ret)
{
    struct str release;
    const struct host *host = fp->host;
    const char *cgroup = arena_printf(fp->arena, "%s/cgroup", fp->proc);
    if ((host_is_live(host) && getenv("KUBERNETES_SERVICE_HOST")) ||
        host_exists(host, "/run/secrets/kubernetes.io"))
        return found(ret, "kubernetes", "KUBERNETES_SERVICE_HOST or /run/secrets/kubernetes.io");
    if (container_from_cgroup(fp, cgroup, ret) && strcmp(ret->container, "kubernetes") == 0)
        return true;
    const char *mark = host_exists(host, "/.dockerenv")          ? "/.dockerenv"
                       : host_exists(host, "/run/.containerenv") ? "/run/.containerenv"
                                                                 : NULL;
    if (mark && is_outside(fp))
        ret->container_na = arena_printf(
            fp->arena,
            "%s is there, but all namespaces are the kernel's first: an image booted as a machine",
            mark);
    else if (mark)
        return found(ret, mark[1] == '.' ? "docker" : "podman", mark);
    if (container_from_init(fp, ret) || ret->container)
        return true;
    if (host_exists(host, "/proc/vz") && !host_exists(host, "/proc/bc"))
        return found(ret, "openvz", "/proc/vz without /proc/bc");
    if (host_read(host, "/proc/sys/kernel/osrelease", &release, NULL) == 0 &&
        (str_contains(release, "microsoft") || str_contains(release, "Microsoft")))
        return found(ret, "wsl", "/proc/sys/kernel/osrelease");
    return false;
}

static const char *vm_by_words(struct str text)
{
    static const struct {
        const char *word, *name;
    } words[] = {
        {"KVM", "KVM"},
        {"QEMU", "QEMU"},
        {"VMware", "VMware"},
        {"VirtualBox", "VirtualBox"},
        {"innotek", "VirtualBox"},
        {"VBox", "VirtualBox"},
        {"Microsoft Hv", "Hyper-V"},
        {"Virtual Machine", "Hyper-V"},
        {"Xen", "Xen"},
        {"XenVMM", "Xen"},
        {"Amazon EC2", "Amazon EC2"},
        {"Google", "Google Compute Engine"},
        {"Parallels", "Parallels"},
        {"BHYVE", "bhyve"},
        {"bhyve", "bhyve"},
        {"OpenStack", "OpenStack"},
        {"DigitalOcean", "DigitalOcean"},
        {"TCGTCG", "QEMU TCG"},
        {"ACRN", "ACRN"},
        {"Bochs", "Bochs"},
        {"Firecracker", "Firecracker"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_contains(text, words[i].word))
            return words[i].name;
    return NULL;
}

static bool vm_found(struct fp_container *ret, const char *vm, const char *evidence)
{
    ret->vm = vm;
    ret->vm_evidence = evidence;
    return vm != NULL;
}

/* The processor's own answer; only the live machine's can be asked. */
static bool vm_from_cpuid(const struct fp *fp, struct fp_container *ret)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;
    if (!host_is_live(fp->host) || !__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 31))
        return false;
    char name[13] = {0};
    __cpuid(0x40000000, a, b, c, d);
    memcpy(name, &b, 4);
    memcpy(name + 4, &c, 4);
    memcpy(name + 8, &d, 4);
    const char *vm = vm_by_words(str_from(name));
    return vm_found(
        ret, vm ? vm : "unnamed hypervisor",
        arena_printf(fp->arena, "CPUID leaf 0x40000000: '%s'", arena_dup(fp->arena, name)));
#else
    (void)fp;
    (void)ret;
    return false;
#endif
}

/* Returns whether the machine has DMI at all. */
static bool vm_from_dmi(const struct fp *fp, struct fp_container *ret)
{
    static const char *const files[] = {
        "/sys/class/dmi/id/product_name",
        "/sys/class/dmi/id/sys_vendor",
        "/sys/class/dmi/id/board_vendor",
        "/sys/class/dmi/id/bios_vendor",
    };
    bool any = false;
    for (size_t i = 0; i < ARRAY_SIZE(files) && !ret->vm; i++) {
        struct str text;
        if (host_read(fp->host, files[i], &text, NULL) < 0)
            continue;
        any = true;
        /* The clouds' bare-metal machines carry their vendor's name too. */
        if (str_contains(text, ".metal"))
            return true;
        vm_found(ret, vm_by_words(text),
                 arena_printf(fp->arena, "'%.*s' in %s", STR_FMT(text), files[i]));
    }
    return any;
}

static void vm_find(const struct fp *fp, struct fp_container *ret)
{
    struct str text;
    if (vm_from_cpuid(fp, ret))
        return;
    if (host_read(fp->host, "/sys/hypervisor/type", &text, NULL) == 0 && text.len > 0) {
        vm_found(ret, arena_dup_len(fp->arena, text.data, text.len), "/sys/hypervisor/type");
        return;
    }
    struct str flags = str_field(fp->cpuinfo, "flags");
    bool flagged = str_contains(flags, " hypervisor");
    bool dmi = false;
    /* On x86 the flag decides; vendors' names then only say which one it is. */
    if (flags.len == 0 || flagged)
        dmi = vm_from_dmi(fp, ret);
    if (ret->vm)
        return;
    if (host_read(fp->host, "/proc/device-tree/hypervisor/compatible", &text, NULL) == 0)
        vm_found(ret, arena_dup_len(fp->arena, text.data, text.len),
                 "/proc/device-tree/hypervisor/compatible");
    else if (flagged)
        vm_found(ret, "unnamed hypervisor", "'hypervisor' flag in /proc/cpuinfo");
    else if (flags.len == 0 && !dmi)
        ret->vm_na = "no CPU flag, DMI or device tree here that would show a hypervisor";
}

const struct fp_container *fp_container_find(const struct fp *fp)
{
    static const struct fp_container none = {.vm_na = "out of memory"};
    struct fp_container *inside = ARENA_NEW(fp->arena, struct fp_container);
    if (!inside)
        return &none;
    container_find(fp, inside);
    vm_find(fp, inside);
    return inside;
}

struct value fp_isolation_container(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    /* Nothing found means nothing only where there was a place to look. */
    if (!fp->inside->container &&
        !host_exists(fp->host, arena_printf(fp->arena, "%s/cgroup", fp->proc)))
        return value_na_printf(fp->arena, "%s/cgroup cannot be read", fp->proc);
    return value_text(fp->inside->container ? fp->inside->container : "none");
}

struct value fp_isolation_container_evidence(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    return fp->inside->container ? value_text(fp->inside->container_evidence)
                                 : value_na(fp->inside->container_na ? fp->inside->container_na
                                                                     : "no container was found");
}

struct value fp_isolation_vm(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    if (fp->inside->vm)
        return value_text(fp->inside->vm);
    return fp->inside->vm_na ? value_na(fp->inside->vm_na) : value_text("none");
}

struct value fp_isolation_vm_evidence(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    return fp->inside->vm ? value_text(fp->inside->vm_evidence)
                          : value_na("no hypervisor was found");
}

/* user nice system idle iowait irq softirq steal: guest times are inside user's. */
static bool steal_parse(struct str stat, uint64_t *ret_steal, uint64_t *ret_total)
{
    struct str line = str_field(stat, "cpu");
    uint64_t total = 0, ticks = 0;
    for (int i = 0; i < 8; i++) {
        if (str_to_u64(str_word(&line), 10, &ticks) < 0)
            return false;
        total += ticks;
    }
    *ret_steal = ticks;
    *ret_total = total;
    return total > 0;
}

struct value fp_isolation_steal(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    uint64_t steal, total;
    if (!steal_parse(fp->stat, &steal, &total))
        return value_na("/proc/stat tells no steal time");
    return value_real(100.0 * (double)steal / (double)total, UNIT_PERCENT);
}

struct value fp_isolation_steal_now(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    enum { WINDOW_MS = 100 };
    uint64_t steal[2], total[2], elapsed = clock_mono_ns() - fp->stat_ns;
    if (!host_is_live(fp->host))
        return fp_not_live();
    if (elapsed < WINDOW_MS * NS_PER_MS)
        clock_sleep_ns(WINDOW_MS * NS_PER_MS - elapsed);
    struct str later;
    if (!steal_parse(fp->stat, &steal[0], &total[0]) ||
        host_read(fp->host, "/proc/stat", &later, NULL) < 0 ||
        !steal_parse(later, &steal[1], &total[1]))
        return value_na("/proc/stat tells no steal time");
    if (total[1] <= total[0] || steal[1] < steal[0])
        return value_na("the window was too short for the kernel's clock ticks");
    return value_real(100.0 * (double)(steal[1] - steal[0]) / (double)(total[1] - total[0]),
                      UNIT_PERCENT);
}

static struct str loadavg_word(const struct fp *fp, unsigned index)
{
    struct str text, word = {"", 0};
    if (host_read(fp->host, "/proc/loadavg", &text, NULL) < 0)
        return word;
    for (unsigned i = 0; i <= index; i++)
        word = str_word(&text);
    return word;
}

/* arg: "0", "1" or "2" for 1, 5 and 15 minutes. */
struct value fp_isolation_load(const struct fp *fp, const struct fp_field *field)
{
    double load;
    if (str_to_f64(loadavg_word(fp, (unsigned)(field->arg[0] - '0')), &load) < 0)
        return value_na("/proc/loadavg cannot be read");
    return value_real(load, UNIT_NONE);
}

/* arg: "running" or "all". */
struct value fp_isolation_tasks(const struct fp *fp, const struct fp_field *field)
{
    struct str all = loadavg_word(fp, 3);
    struct str running = str_cut(&all, '/');
    uint64_t count;
    if (str_to_u64(strcmp(field->arg, "running") == 0 ? running : all, 10, &count) < 0)
        return value_na("/proc/loadavg cannot be read");
    return value_uint(count, UNIT_COUNT);
}

/* arg: path of a CPU list that is empty when there are none. */
struct value fp_isolation_cpu_list(const struct fp *fp, const struct fp_field *field)
{
    struct str list;
    if (host_read(fp->host, field->arg, &list, NULL) < 0)
        return value_na_printf(fp->arena, "%s is not there: the kernel was built without it",
                               field->arg);
    return list.len == 0 || str_is(list, "(null)") ? value_text("none") : value_str(list);
}

/* Where the fixed number does not match, an older kernel's mnt and net are compared with
 * those of process 1, which only root may see. */
struct value fp_isolation_namespaces(const struct fp *fp, const struct fp_field *field)
{
    (void)field;
    const char *own = "", *unknown = "";
    unsigned seen = 0;
    for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
        uint64_t mine, first = namespaces[i].first;
        bool known = namespace_read(fp, fp->proc, namespaces[i].kind, &mine);
        seen += known;
        if (known && mine != first && !namespaces[i].always)
            known = namespace_read(fp, "/proc/1", namespaces[i].kind, &first);
        if (known && mine == first)
            continue;
        const char **list = known ? &own : &unknown;
        *list = arena_printf(fp->arena, "%s%s%s", *list, **list ? ", " : "", namespaces[i].kind);
    }
    if (seen == 0)
        return value_na_printf(fp->arena, "%s/ns cannot be read", fp->proc);
    return value_text(arena_printf(fp->arena, "of its own: %s%s%s", *own ? own : "none",
                                   *unknown ? "; not to be told: " : "", unknown));
}
