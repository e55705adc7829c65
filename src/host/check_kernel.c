/* Checks of what the kernel lets us see. Where a permission is in question, the
 * answer comes from trying (host/probe.h), not from reading a knob. */
#include "host/check_internal.h"

#include "host/probe.h"

#include <inttypes.h>
#include <unistd.h>

static void check_probe(const struct check_input *input, void (*probe)(struct probe *),
                        enum check_verdict verdict, const char *spoils, struct check_result *ret)
{
    struct arena *arena = input->host->arena;
    if (!host_is_live(input->host))
        return check_na(ret, "a recorded machine: permissions can only be tried on a live one");
    struct probe result = {0};
    probe(&result);
    const char *detail = arena_dup(arena, result.detail);
    if (result.ok)
        return check_ok(ret, detail);
    check_set(ret, verdict, detail, spoils,
              result.remedy[0] ? arena_dup(arena, result.remedy) : NULL);
}

void check_perf_permission(const struct check_input *input, struct check_result *ret)
{
    check_probe(input, probe_perf_own, CHECK_FAIL,
                "no perf sampling: CPU time comes from a coarse timer in the target", ret);
}

void check_perf_system(const struct check_input *input, struct check_result *ret)
{
    check_probe(input, probe_perf_system, CHECK_WARN,
                "only processes of this user can be profiled, not the machine (-a)", ret);
}

void check_kernel_stacks(const struct check_input *input, struct check_result *ret)
{
    check_probe(input, probe_perf_kernel, CHECK_WARN,
                "time in the kernel has no names: it shows as one frame", ret);
}

void check_bpf_permission(const struct check_input *input, struct check_result *ret)
{
    check_probe(input, probe_bpf_tracing, CHECK_WARN,
                "waits, locks and I/O are measured without their stacks, or not at all", ret);
}

void check_pmu(const struct check_input *input, struct check_result *ret)
{
    check_probe(input, probe_perf_pmu, CHECK_WARN,
                "no cycles, cache misses or branches: samples come from a clock, and counters are "
                "simulated",
                ret);
}

void check_kptr_restrict(const struct check_input *input, struct check_result *ret)
{
    uint64_t level;
    struct arena *arena = input->host->arena;
    if (host_read_u64(input->host, "/proc/sys/kernel/kptr_restrict", &level) < 0)
        return check_na(ret, "/proc/sys/kernel/kptr_restrict cannot be read");
    const char *detail = arena_printf(arena, "kernel.kptr_restrict is %" PRIu64, level);
    bool root = host_is_live(input->host) && geteuid() == 0;
    if (level == 0 || (level == 1 && root))
        return check_ok(ret, detail);
    check_set(ret, CHECK_WARN, detail, "kernel functions have no names",
              check_as_root(input, "sysctl -w kernel.kptr_restrict=0"));
}

void check_nmi_watchdog(const struct check_input *input, struct check_result *ret)
{
    uint64_t on;
    if (host_read_u64(input->host, "/proc/sys/kernel/nmi_watchdog", &on) < 0)
        return check_na(ret, "this kernel has no NMI watchdog");
    if (on == 0)
        return check_ok(ret, "kernel.nmi_watchdog is 0");
    check_set(ret, CHECK_WARN,
              arena_printf(input->host->arena, "kernel.nmi_watchdog is %" PRIu64, on),
              "it holds one hardware counter, so that others are multiplexed",
              check_as_root(input, "sysctl -w kernel.nmi_watchdog=0"));
}

void check_ptrace_scope(const struct check_input *input, struct check_result *ret)
{
    uint64_t scope;
    struct arena *arena = input->host->arena;
    if (host_read_u64(input->host, "/proc/sys/kernel/yama/ptrace_scope", &scope) < 0)
        return check_ok(ret, "this kernel has no Yama: the usual permissions apply");
    const char *detail = arena_printf(arena, "kernel.yama.ptrace_scope is %" PRIu64, scope);
    bool root = host_is_live(input->host) && geteuid() == 0;
    if (scope == 0 || (root && scope < 3))
        return check_ok(ret, detail);
    if (input->pid == 0 && scope < 3)
        return check_ok(
            ret, arena_printf(arena, "%s: programs that whyslow starts can be read", detail));
    if (scope >= 3)
        return check_set(ret, CHECK_FAIL,
                         arena_printf(arena, "%s, and stays so until the next boot", detail),
                         "the memory of other processes cannot be read: no waits by kind", NULL);
    check_set(ret, CHECK_FAIL, detail, "a running process cannot be attached to",
              check_as_root(input, "sysctl -w kernel.yama.ptrace_scope=0"));
}
