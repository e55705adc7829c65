/* Attributes of our events, and what the kernel says about them. */
#include "collect/perf_event.h"

#include "base/fd.h"
#include "base/str.h"
#include "base/vec.h"
#include "host/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <asm/perf_regs.h>
#elif defined(__aarch64__)
#include <asm/perf_regs.h>
#endif

enum {
    CPUS_MAX = 8192,
    FORMAT_LOST = 1 << 4, /* PERF_FORMAT_LOST, which headers before Linux 6.0 do not have */
};

uint64_t perf_registers_mask(void)
{
#if defined(__x86_64__)
    uint64_t mask = 0;
    for (unsigned i = PERF_REG_X86_AX; i <= PERF_REG_X86_IP; i++)
        mask |= 1ull << i;
    for (unsigned i = PERF_REG_X86_R8; i <= PERF_REG_X86_R15; i++)
        mask |= 1ull << i;
    return mask;
#elif defined(__aarch64__)
    return (1ull << (PERF_REG_ARM64_PC + 1)) - 1;
#else
    return 0;
#endif
}

/* Every event has these, so that the times of all records stand at known places. */
static struct perf_event_attr attr_common(void)
{
    return (struct perf_event_attr){
        .size = sizeof(struct perf_event_attr),
        .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .exclude_guest = 1,
        .exclude_hv = 1,
        .watermark = 1,
        .disabled = 1,
    };
}

struct perf_event_attr perf_attr_ring(uint32_t watermark_bytes)
{
    struct perf_event_attr attr = attr_common();
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.exclude_kernel = 1;
    attr.wakeup_watermark = watermark_bytes;
    return attr;
}

struct perf_event_attr perf_attr_sideband(const struct perf_plan *plan, bool switches)
{
    struct perf_event_attr attr = attr_common();
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.exclude_kernel = 1;
    attr.inherit = !plan->system;
    attr.mmap = 1;
    attr.mmap2 = 1;
    attr.comm = 1;
    attr.comm_exec = 1;
    attr.task = 1;
    attr.context_switch = switches;
    attr.build_id = plan->build_ids;
    attr.read_format = plan->losses ? FORMAT_LOST : 0;
    return attr;
}

struct perf_event_attr perf_attr_sampling(const struct perf_plan *plan, uint64_t period,
                                          uint32_t slice_bytes)
{
    struct perf_event_attr attr = attr_common();
    attr.type = plan->clock == PERF_CYCLES ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
    attr.config = plan->clock == PERF_CYCLES ? (uint64_t)PERF_COUNT_HW_CPU_CYCLES
                                             : (uint64_t)PERF_COUNT_SW_CPU_CLOCK;
    attr.freq = plan->clock == PERF_CYCLES;
    attr.sample_period = period; /* or sample_freq: they share their place */
    attr.precise_ip = plan->precise & 3;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING; /* cpu_cycles.c reads them */
    attr.read_format |= plan->losses ? FORMAT_LOST : 0;
    attr.exclude_kernel = !plan->kernel;
    attr.inherit = !plan->system;
    attr.exclude_idle = plan->system;
    attr.sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
    attr.exclude_callchain_kernel = !plan->kernel;
    attr.exclude_callchain_user = plan->stacks != PERF_STACKS_FP;
    if (plan->stacks == PERF_STACKS_FP || (plan->stacks == PERF_STACKS_SLICE && plan->kernel))
        attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
    if (plan->stacks == PERF_STACKS_SLICE) {
        attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr.sample_regs_user = perf_registers_mask();
        attr.sample_stack_user = slice_bytes & ~7u;
    }
    return attr;
}

int perf_event_open(struct perf_event_attr *attr, int pid, int cpu, unsigned long flags)
{
    int fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

uint64_t perf_event_lost(const struct perf_plan *plan, int fd)
{
    uint64_t words[3]; /* the last one: what else is asked for comes before */
    ssize_t n = plan->losses ? read(fd, words, sizeof(words)) : 0;
    return n >= (ssize_t)sizeof(words[0]) ? words[(size_t)n / sizeof(words[0]) - 1] : 0;
}

int perf_event_paranoid(void)
{
    char text[32] = "";
    AUTO(fd_close) int fd = open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    int64_t value;
    if (n <= 0 || str_to_i64(str_trim((struct str){text, (size_t)n}), &value) < 0)
        return -1000;
    return (int)value;
}

int perf_event_why(int error, const char *what, struct why *why)
{
    int paranoid = perf_event_paranoid();
    switch (error) {
    case EACCES:
    case EPERM:
        if (paranoid > 2)
            return why_set(why, WHY_DENIED, error,
                           "sudo sysctl kernel.perf_event_paranoid=2, or run as root or with "
                           "CAP_PERFMON",
                           "%s: not permitted (kernel.perf_event_paranoid is %d)", what, paranoid);
        if (probe_seccomp())
            return why_set(why, WHY_DENIED, error,
                           "let the container call perf_event_open (docker: --cap-add PERFMON), "
                           "or run as root or with CAP_PERFMON",
                           "%s: not permitted (kernel.perf_event_paranoid is %d, and a seccomp "
                           "filter is active)",
                           what, paranoid);
        return why_set(why, WHY_DENIED, error,
                       "run as root or with CAP_PERFMON; in a container: --cap-add PERFMON",
                       "%s: not permitted (kernel.perf_event_paranoid is %d)", what, paranoid);
    case EMFILE:
    case ENFILE:
        return why_set(why, WHY_FAILED, error, "raise 'ulimit -n' (its hard limit: 'ulimit -Hn')",
                       "%s: too many open files", what);
    case ESRCH:
        return why_set(why, WHY_USAGE, error, "'ps -e' lists the processes", "%s: no such process",
                       what);
    case ENOSYS:
        return why_set(why, WHY_DENIED, error,
                       "use a kernel built with CONFIG_PERF_EVENTS, and a container whose seccomp "
                       "profile allows perf_event_open",
                       "%s: this kernel has no perf_event_open", what);
    default:
        return why_errno(why, error, "run 'whyslow doctor'", "%s", what);
    }
}

/* Tries the sampling event of a plan on ourselves (or on the first CPU). */
static int plan_try(const struct perf_plan *plan)
{
    struct perf_event_attr attr = perf_attr_sampling(
        plan, plan->clock == PERF_CYCLES ? plan->rate_hz : 1000000, 16384);
    AUTO(fd_close) int fd = perf_event_open(&attr, plan->system ? -1 : 0, plan->system ? 0 : -1, 0);
    return fd < 0 ? fd : 0;
}

static bool is_refused(int r)
{
    return r == -EACCES || r == -EPERM;
}

static int plan_clock(struct perf_plan *plan)
{
    plan->clock = PERF_CYCLES;
    for (int precise = 3; precise >= 0; precise--) {
        plan->precise = (unsigned)precise;
        int r = plan_try(plan);
        if (r == 0 || is_refused(r))
            return r;
    }
    plan->clock = PERF_CPU_CLOCK;
    plan->precise = 0;
    return plan_try(plan);
}

int perf_plan_make(enum perf_stacks stacks, bool system, uint32_t rate_hz, struct perf_plan *ret,
                   struct why *why)
{
    struct perf_plan plan = {
        .stacks = stacks, .system = system, .rate_hz = rate_hz, .kernel = true};
    int r = plan_clock(&plan);
    if (is_refused(r)) {
        plan.kernel = false;
        int paranoid = perf_event_paranoid();
        snprintf(plan.kernel_na, sizeof(plan.kernel_na),
                 paranoid > 1 ? "kernel.perf_event_paranoid is %d; 1 or CAP_PERFMON allows them"
                              : "not permitted (kernel.perf_event_paranoid is %d)",
                 paranoid);
        r = plan_clock(&plan);
    }
    if (r < 0)
        return perf_event_why(
            -r, system ? "cannot sample every process" : "cannot sample a process", why);
    plan.build_ids = true;
    struct perf_event_attr attr = perf_attr_sideband(&plan, false);
    AUTO(fd_close) int fd = perf_event_open(&attr, system ? -1 : 0, system ? 0 : -1, 0);
    plan.build_ids = fd >= 0;
    plan.losses = true;
    attr = perf_attr_sideband(&plan, false);
    AUTO(fd_close) int counts = perf_event_open(&attr, system ? -1 : 0, system ? 0 : -1, 0);
    plan.losses = counts >= 0;
    *ret = plan;
    return 0;
}

const char *perf_plan_event(const struct perf_plan *plan, char *text, size_t size)
{
    snprintf(text, size, "%s%s%.*s%s", plan->clock == PERF_CYCLES ? "cycles" : "cpu-clock",
             plan->precise > 0 || !plan->kernel ? ":" : "", (int)plan->precise, "ppp",
             plan->kernel ? "" : "u");
    return text;
}

/* "0-3,5,7-8" */
static int cpus_parse(struct str text, int **ret, size_t *ret_count)
{
    VEC(int) cpus = {0};
    text = str_trim(text);
    while (text.len > 0) {
        struct str range = str_cut(&text, ',');
        struct str first_text = str_cut(&range, '-');
        uint64_t first, last;
        int r = str_to_u64(first_text, 10, &first);
        if (r == 0 && range.len > 0)
            r = str_to_u64(range, 10, &last);
        else
            last = first;
        if (r < 0 || last < first || last >= CPUS_MAX) {
            VEC_FREE(&cpus);
            return -EBADMSG;
        }
        for (uint64_t cpu = first; cpu <= last; cpu++)
            if (VEC_PUSH(&cpus, (int)cpu) < 0) {
                VEC_FREE(&cpus);
                return -ENOMEM;
            }
    }
    *ret = cpus.data;
    *ret_count = cpus.len;
    return cpus.len > 0 ? 0 : -EBADMSG;
}

int perf_cpus_read(int **ret, size_t *ret_count, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct str text = STR("0");
    if (file_read(&arena, "/sys/devices/system/cpu/online", 65536, &text, NULL) < 0) {
        /* Without /sys: the count is all we know. */
        long count = sysconf(_SC_NPROCESSORS_ONLN);
        text = str_from(arena_printf(&arena, "0-%ld", count > 0 ? count - 1 : 0));
    }
    int r = cpus_parse(text, ret, ret_count);
    return r < 0 ? why_errno(why, -r, NULL, "cannot read the list of CPUs") : 0;
}
