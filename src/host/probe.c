/* Each probe does the real thing once, against our own process or a child, and
 * undoes it. What the kernel said becomes words here, with the setting that
 * would change its mind. */
#include "host/probe.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAP_SYS_ADMIN_BIT = 21, CAP_PERFMON_BIT = 38, CAP_BPF_BIT = 39 };

static void succeed(struct probe *ret, const char *detail)
{
    *ret = (struct probe){.ok = true};
    snprintf(ret->detail, sizeof(ret->detail), "%s", detail);
}

static void fail(struct probe *ret, int error, const char *what, const char *remedy)
{
    *ret = (struct probe){.error = error};
    snprintf(ret->detail, sizeof(ret->detail), "%s: %s", what, strerror(error));
    snprintf(ret->remedy, sizeof(ret->remedy), "%s", remedy ? remedy : "");
}

/* Up to size - 1 bytes, with a NUL; "" when it cannot be read. */
static void read_small(const char *path, char *text, size_t size)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
}

static bool have_capability(unsigned bit)
{
    char status[4096];
    read_small("/proc/self/status", status, sizeof(status));
    uint64_t mask = 0;
    return str_to_u64(str_field(str_from(status), "CapEff"), 16, &mask) == 0 && (mask >> bit & 1);
}

bool probe_seccomp(void)
{
    char status[4096];
    read_small("/proc/self/status", status, sizeof(status));
    return str_is(str_field(str_from(status), "Seccomp"), "2");
}

static bool locked_down(void)
{
    char text[128];
    read_small("/sys/kernel/security/lockdown", text, sizeof(text));
    return strstr(text, "[confidentiality]") != NULL;
}

static int64_t paranoid(void)
{
    char text[32];
    int64_t value;
    read_small("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text));
    return str_to_i64(str_trim(str_from(text)), &value) == 0 ? value : INT64_MIN;
}

static int perf_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
    attr->size = sizeof(*attr);
    attr->disabled = 1;
    int fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* `paranoid_max`: the highest perf_event_paranoid at which an ordinary user may do this. */
static void perf_fail(struct probe *ret, int error, const char *what, int paranoid_max)
{
    char words[128], remedy[200] = "";
    int64_t level = paranoid();
    if (error != EACCES && error != EPERM) {
        fail(ret, error, what,
             error == ENOSYS ? "use a kernel built with CONFIG_PERF_EVENTS, and a container whose "
                               "seccomp profile allows perf_event_open"
                             : NULL);
        return;
    }
    if (level == INT64_MIN) {
        snprintf(words, sizeof(words), "%s (no kernel.perf_event_paranoid to read)", what);
    } else {
        snprintf(words, sizeof(words), "%s (kernel.perf_event_paranoid is %lld)", what,
                 (long long)level);
    }
    if (level > paranoid_max)
        snprintf(remedy, sizeof(remedy),
                 "sudo sysctl kernel.perf_event_paranoid=%d, or run as root or with CAP_PERFMON",
                 paranoid_max);
    else if (probe_seccomp())
        snprintf(remedy, sizeof(remedy),
                 "a seccomp filter is active: let the container call perf_event_open "
                 "(docker: --cap-add PERFMON)");
    else
        snprintf(remedy, sizeof(remedy),
                 "ask which security module (LSM) denies "
                 "perf_event_open, or run as root");
    fail(ret, error, words, remedy);
}

static struct perf_event_attr sampling_attr(bool kernel)
{
    return (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .freq = 1,
        .sample_freq = 999,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
        .exclude_kernel = !kernel,
        .exclude_hv = 1,
        .wakeup_events = 1,
    };
}

void probe_perf_own(struct probe *ret)
{
    struct perf_event_attr attr = sampling_attr(false);
    AUTO(fd_close) int fd = perf_open(&attr, 0, -1, -1);
    if (fd < 0) {
        perf_fail(ret, -fd, "perf_event_open of our own process", 2);
        return;
    }
    /* Without its ring an event is no use; rings count against a limit per user. */
    size_t len = 2 * (size_t)sysconf(_SC_PAGESIZE);
    void *ring = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED) {
        fail(ret, errno, "a ring for perf samples could not be mapped",
             "raise 'ulimit -l', or sudo sysctl kernel.perf_event_mlock_kb=2048");
        return;
    }
    munmap(ring, len);
    succeed(ret, "cpu-clock:u at 999 Hz, with a ring");
}

void probe_perf_kernel(struct probe *ret)
{
    struct perf_event_attr attr = sampling_attr(true);
    attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
    AUTO(fd_close) int fd = perf_open(&attr, 0, -1, -1);
    if (fd < 0)
        perf_fail(ret, -fd, "perf_event_open with kernel stacks", 1);
    else
        succeed(ret, "cpu-clock with kernel stacks");
}

void probe_perf_system(struct probe *ret)
{
    struct perf_event_attr attr = sampling_attr(true);
    AUTO(fd_close) int fd = perf_open(&attr, -1, 0, -1);
    if (fd < 0)
        perf_fail(ret, -fd, "perf_event_open of every process on CPU 0", 0);
    else
        succeed(ret, "cpu-clock of every process on a CPU");
}

void probe_perf_switch(struct probe *ret)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_period = 1,
        .sample_id_all = 1,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
        .context_switch = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    AUTO(fd_close) int fd = perf_open(&attr, 0, -1, -1);
    if (fd < 0)
        perf_fail(ret, -fd, "perf_event_open with context switches", 2);
    else
        succeed(ret, "PERF_RECORD_SWITCH of our own threads");
}

static void pmu_fail(struct probe *ret, int error)
{
    if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV || error == ENXIO) {
        char cpuinfo[4096];
        read_small("/proc/cpuinfo", cpuinfo, sizeof(cpuinfo));
        bool guest = strstr(cpuinfo, " hypervisor") != NULL;
        /* The errno ("No such file") would only confuse here. */
        *ret = (struct probe){.error = error};
        snprintf(ret->detail, sizeof(ret->detail), "no hardware counters: %s",
                 guest ? "this virtual machine has no PMU" : "the kernel knows no PMU here");
        if (guest)
            snprintf(ret->remedy, sizeof(ret->remedy),
                     "give the machine a virtual PMU (e.g. QEMU: -cpu host,pmu=on), or measure on "
                     "bare metal");
        return;
    }
    perf_fail(ret, error, "perf_event_open of hardware counters", 2);
}

void probe_perf_pmu(struct probe *ret)
{
    struct perf_event_attr cycles = {.type = PERF_TYPE_HARDWARE,
                                     .config = PERF_COUNT_HW_CPU_CYCLES,
                                     .exclude_kernel = 1,
                                     .exclude_hv = 1};
    struct perf_event_attr instructions = cycles;
    instructions.config = PERF_COUNT_HW_INSTRUCTIONS;
    AUTO(fd_close) int leader = perf_open(&cycles, 0, -1, -1);
    AUTO(fd_close) int member = leader < 0 ? leader : perf_open(&instructions, 0, -1, leader);
    if (leader < 0 || member < 0) {
        pmu_fail(ret, leader < 0 ? -leader : -member);
        return;
    }
    ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
    for (volatile int i = 0; i < 100000; i++)
        ;
    ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
    uint64_t counted = 0;
    /* Some hypervisors let the counters be opened and never count. */
    if (read(member, &counted, sizeof(counted)) != (ssize_t)sizeof(counted) || counted == 0)
        fail(ret, ENODATA, "hardware counters open but do not count",
             "is another profiler holding them? is the virtual PMU a dummy?");
    else
        succeed(ret, "cycles:u and instructions:u");
}

void probe_bpf_refused(struct probe *ret, int error, const char *what)
{
    if (error != EPERM && error != EACCES) {
        fail(ret, error, what,
             error == ENOSYS || error == EINVAL
                 ? "use a kernel (5.5 or newer) built with CONFIG_BPF_SYSCALL and "
                   "CONFIG_BPF_EVENTS"
                 : NULL);
        return;
    }
    bool bpf = have_capability(CAP_BPF_BIT) || have_capability(CAP_SYS_ADMIN_BIT);
    bool perfmon = have_capability(CAP_PERFMON_BIT) || have_capability(CAP_SYS_ADMIN_BIT);
    char words[128];
    snprintf(words, sizeof(words), "%s (%s)", what,
             !bpf && !perfmon ? "CAP_BPF and CAP_PERFMON are missing"
             : !bpf           ? "CAP_BPF is missing"
             : !perfmon       ? "CAP_PERFMON is missing"
             : locked_down()  ? "kernel lockdown is at confidentiality"
                              : "although the capabilities are there");
    struct rlimit limit = {0};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    const char *remedy = "run as root, or: sudo setcap cap_bpf,cap_perfmon+ep \"$(command -v "
                         "whyslow)\"";
    if (bpf && perfmon)
        remedy = locked_down()     ? "boot without lockdown=confidentiality"
                 : probe_seccomp() ? "a seccomp filter is active: let the container call bpf()"
                 : limit.rlim_cur != RLIM_INFINITY
                     ? "on kernels before 5.11 raise 'ulimit -l'; else ask which security module "
                       "(LSM) denies bpf()"
                     : "ask which security module (LSM) denies bpf()";
    fail(ret, error, words, remedy);
}

static int bpf_load(enum bpf_prog_type type, int btf_id)
{
    const struct bpf_insn program[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    LIBBPF_OPTS(bpf_prog_load_opts, opts);
    if (btf_id > 0) {
        opts.expected_attach_type = BPF_TRACE_RAW_TP;
        opts.attach_btf_id = (uint32_t)btf_id;
    }
    int fd = bpf_prog_load(type, "whyslow_probe", "Dual BSD/GPL", program, ARRAY_SIZE(program),
                           &opts);
    return fd < 0 ? -errno : fd;
}

static void bpf_tracing(struct probe *ret)
{
    if (access("/sys/kernel/btf/vmlinux", R_OK) < 0) {
        fail(ret, errno, "the kernel's type information (/sys/kernel/btf/vmlinux) is not there",
             "use a kernel built with CONFIG_DEBUG_INFO_BTF");
        return;
    }
    int id = libbpf_find_vmlinux_btf_id("sched_switch", BPF_TRACE_RAW_TP);
    if (id <= 0) {
        fail(ret, id < 0 ? -id : ENOENT, "the tracepoint sched_switch is not in the kernel's BTF",
             "use a kernel built with CONFIG_TRACEPOINTS and CONFIG_DEBUG_INFO_BTF");
        return;
    }
    AUTO(fd_close) int program = bpf_load(BPF_PROG_TYPE_TRACING, id);
    if (program < 0) {
        probe_bpf_refused(ret, -program, "loading a tp_btf program");
        return;
    }
    AUTO(fd_close) int link = bpf_raw_tracepoint_open(NULL, program);
    if (link < 0)
        probe_bpf_refused(ret, errno, "attaching a tp_btf program to sched_switch");
    else
        succeed(ret, "a tp_btf program on sched_switch loads and attaches");
}

void probe_bpf_tracing(struct probe *ret)
{
    libbpf_print_fn_t old = libbpf_set_print(NULL); /* library code never prints */
    bpf_tracing(ret);
    libbpf_set_print(old);
}

struct symbol_place {
    uintptr_t address;
    uint64_t offset; /* in the file; UINT64_MAX until found */
};

static int place_in_object(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct symbol_place *place = data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || place->address < start ||
            place->address >= start + segment->p_filesz)
            continue;
        place->offset = place->address - start + segment->p_offset;
        return 1;
    }
    return 0;
}

/* A function of libc that nobody calls often: for a moment it holds a breakpoint. */
static int uprobe_open(const char *type_text)
{
    Dl_info library;
    struct symbol_place place = {(uintptr_t)&gnu_get_libc_version, UINT64_MAX};
    if (!dladdr((void *)place.address, &library) || !library.dli_fname)
        return -ENOENT;
    dl_iterate_phdr(place_in_object, &place);
    uint64_t type;
    if (place.offset == UINT64_MAX || str_to_u64(str_trim(str_from(type_text)), 10, &type) < 0)
        return -ENOENT;
    struct perf_event_attr attr = {
        .type = (uint32_t)type,
        .sample_period = 1,
        .uprobe_path = (uintptr_t)library.dli_fname,
        .probe_offset = place.offset,
    };
    return perf_open(&attr, 0, -1, -1);
}

static void bpf_uprobe(struct probe *ret)
{
    char type[32];
    read_small("/sys/bus/event_source/devices/uprobe/type", type, sizeof(type));
    if (!*type) {
        fail(ret, ENOENT, "the kernel has no uprobes (no event source 'uprobe' in /sys)",
             "use a kernel built with CONFIG_UPROBES and CONFIG_UPROBE_EVENTS");
        return;
    }
    AUTO(fd_close) int event = uprobe_open(type);
    if (event < 0) {
        /* The capability decides, whatever perf_event_paranoid says. */
        probe_bpf_refused(ret, -event, "a uprobe on a function of libc");
        return;
    }
    AUTO(fd_close) int program = bpf_load(BPF_PROG_TYPE_KPROBE, 0);
    if (program < 0)
        probe_bpf_refused(ret, -program, "loading a BPF program for a uprobe");
    else if (ioctl(event, PERF_EVENT_IOC_SET_BPF, program) < 0 ||
             ioctl(event, PERF_EVENT_IOC_ENABLE, 0) < 0)
        probe_bpf_refused(ret, errno, "attaching a BPF program to a uprobe");
    else
        succeed(ret, "a BPF program on a function of libc attaches");
}

void probe_bpf_uprobe(struct probe *ret)
{
    libbpf_print_fn_t old = libbpf_set_print(NULL);
    bpf_uprobe(ret);
    libbpf_set_print(old);
}

static void reap(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* The loader complains about a library it cannot preload, so a name that does not exist shows
 * whether it looked. What it said on stderr, or -errno. */
static int preload_try(char *text, size_t size)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    AUTO(fd_close) int ours = ends[0];
    AUTO(fd_close) int theirs = ends[1];
    char name[] = "true", variable[] = "LD_PRELOAD=/whyslow/probe.so";
    char *argv[] = {name, NULL}, *env[] = {variable, NULL};
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -ENOMEM;
    pid_t pid = 0;
    int r = posix_spawn_file_actions_adddup2(&actions, theirs, 2);
    if (r == 0)
        r = posix_spawn_file_actions_addchdir_np(&actions, "/");
    if (r == 0)
        r = posix_spawn(&pid, "/bin/true", &actions, NULL, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        return -r;
    fd_close(&theirs);
    struct pollfd wait = {.fd = ours, .events = POLLIN};
    ssize_t n = poll(&wait, 1, 1000) > 0 ? read(ours, text, size - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    reap(pid);
    return 0;
}

void probe_preload(struct probe *ret)
{
    if (getauxval(AT_SECURE)) {
        fail(ret, EPERM, "whyslow runs with raised privileges (AT_SECURE): LD_PRELOAD is dropped",
             "use root, or capabilities given at start, instead of setcap or set-user-ID on the "
             "whyslow file");
        return;
    }
    char text[512] = "";
    int r = preload_try(text, sizeof(text));
    if (r < 0)
        fail(ret, -r, "could not start /bin/true to try LD_PRELOAD", NULL);
    else if (!strstr(text, "probe.so"))
        fail(ret, ENOTSUP, "the loader of /bin/true does not look at LD_PRELOAD",
             "is /bin/true static here, or a loader in use that ignores LD_PRELOAD?");
    else
        succeed(ret, "honoured; static, set-user-ID and most Go programs ignore it");
}

static void remote_fail(struct probe *ret, int error, const char *what)
{
    char text[32], words[128];
    read_small("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text));
    struct str scope = str_trim(str_from(text));
    if (scope.len > 0)
        snprintf(words, sizeof(words), "%s (kernel.yama.ptrace_scope is %.*s)", what,
                 STR_FMT(scope));
    else
        snprintf(words, sizeof(words), "%s", what);
    fail(ret, error, words,
         error == ENOSYS       ? "use a kernel built with CONFIG_CROSS_MEMORY_ATTACH"
         : probe_seccomp()     ? "a seccomp filter is active: let the container call "
                                 "process_vm_readv (docker: --cap-add SYS_PTRACE)"
         : !str_is(scope, "0") ? "sudo sysctl kernel.yama.ptrace_scope=0"
                               : NULL);
}

/* "running" until the child has blocked; then the number of the system call it sits in. */
static int syscall_read(pid_t pid, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
    for (int i = 0; i < 20; i++) {
        AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
        if (n < 0)
            return -errno;
        text[n] = '\0';
        if (strncmp(text, "running", 7) != 0)
            return 0;
        clock_sleep_ns(NS_PER_MS);
    }
    return -ETIMEDOUT;
}

void probe_remote_read(struct probe *ret)
{
    volatile uint64_t secret = 0x5eed5eed5eed5eedu;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0) {
        fail(ret, errno, "could not start a child to look at", NULL);
        return;
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            pause();
        _exit(0);
    }
    uint64_t copy = 0;
    struct iovec to = {&copy, sizeof(copy)}, from = {(void *)&secret, sizeof(secret)};
    char text[256] = "";
    if (process_vm_readv(pid, &to, 1, &from, 1, 0) != (ssize_t)sizeof(copy)) {
        remote_fail(ret, errno, "process_vm_readv of a child");
    } else if (copy != secret) {
        fail(ret, EIO, "process_vm_readv brought other bytes than the child has", NULL);
    } else {
        int r = syscall_read(pid, text, sizeof(text));
        if (r < 0)
            remote_fail(ret, -r, "/proc/PID/syscall of a child");
        else
            succeed(ret, "process_vm_readv and /proc/PID/syscall of a child");
    }
    reap(pid);
}
