/* Allocations as the kernel tells of them: load, follow, stop. */
#include "collect/heap_kernel.h"

#include "base/clock.h"
#include "collect/cpu.h"
#include "collect/heap_kernel_parts.h"
#include "target/proc.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    RING_BYTES = 64 << 20, /* a million calls */
    ROUND_MS = 100,
    MOMENT_MS = 100,
    PUT_MS = 1000,
    MOMENTS_A_ROUND = 256, /* processes */
};

extern const unsigned char heap_bpf[];
extern const size_t heap_bpf_bytes;

static int config_make(struct collector *c, const struct collector_target *target, struct why *why)
{
    struct bpf_scope scope = {0};
    int r = bpf_scope_find(target, &scope, why);
    if (r < 0)
        return r;
    c->config = (struct heap_kernel_config){
        .cgroup_id = scope.cgroup_id,
        .cgroup_level = scope.cgroup_level,
        .scope = scope.scope,
        .root = scope.root,
        .own = scope.own,
        .pid_ns = scope.pid_ns,
        .ring_bytes = RING_BYTES,
    };
    return 0;
}

static int unit_load(struct collector *c, const char *cache_dir, struct why *why)
{
    const struct bpf_blob blob = {"heap", heap_bpf, heap_bpf_bytes};
    bpf_unit_close(c->unit);
    c->unit = NULL;
    int r = bpf_unit_open(&blob, cache_dir, &c->unit, why);
    if (r == 0)
        r = bpf_unit_config(c->unit, &c->config, sizeof(c->config), why);
    if (r == 0)
        r = bpf_unit_map_size(c->unit, "told", RING_BYTES, why);
    if (r == 0 && bpf_unit_uprobes_multi(c->unit) < 0)
        r = why_set(why, WHY_FAILED, EINVAL, NULL, "libbpf does not take uprobes of a newer kind");
    return r < 0 ? r : bpf_unit_load(c->unit, why);
}

static int fds_find(struct collector *c, struct why *why)
{
    const struct {
        const char *name;
        int *fd;
    } maps[] = {
        {"control", &c->fds.control},    {"deep", &c->fds.deep},
        {"known", &c->fds.known},        {"known_long", &c->fds.known_long},
        {"heap_counts", &c->fds.counts},
    };
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        *maps[i].fd = bpf_unit_map_fd(c->unit, maps[i].name);
        if (*maps[i].fd < 0)
            return why_set(why, WHY_FAILED, ENOENT, NULL, "the BPF program has no map '%s'",
                           maps[i].name);
    }
    return 0;
}

/* One of the cpu collector's followers: in the order of time. */
static int follow_until(void *context, uint64_t time_ns)
{
    struct collector *c = context;
    uint64_t start_ns = own_cpu_ns();
    int r = heap_records_take(c, time_ns);
    c->own_ns += own_cpu_ns() - start_ns;
    return r;
}

static int follow_task(void *context, uint64_t time_ns, enum cpu_task task, int pid, int tid)
{
    struct collector *c = context;
    return told_threads_task(&c->threads, time_ns, task, pid, tid);
}

static void kernel_close(struct collector *c)
{
    if (!c)
        return;
    heap_probes_close(c->probes);
    bpf_ring_deinit(&c->ring);
    bpf_unit_close(c->unit);
    told_stacks_deinit(&c->told);
    told_threads_deinit(&c->threads);
    heap_accounts_close(c);
    free(c);
}

/* What the kernel said to the places; nothing set and nothing refused: it may come later. */
static int probes_judge(const struct collector *c, struct why *why)
{
    struct heap_probes_counts counts = heap_probes_counts(c->probes);
    if (counts.refused == 0 || counts.set > 0)
        return 0;
    if (counts.error == EINVAL || counts.error == EOPNOTSUPP)
        return why_set(why, WHY_DENIED, counts.error, "use Linux 6.6 or newer",
                       "this kernel cannot set a program on many functions of a file");
    return why_errno(why, counts.error, "run as root, or with CAP_BPF and CAP_PERFMON",
                     "the kernel sets no program on malloc()");
}

static int start(struct collector *c, const struct collector_target *target, struct why *why)
{
    int r = config_make(c, target, why);
    if (r < 0)
        return r;
    r = unit_load(c, target->cache_dir, why);
    if (r < 0 && r != -EPERM && r != -EACCES && target->cache_dir)
        r = unit_load(c, NULL, why);
    if (r == 0)
        r = bpf_ring_map(bpf_unit_map_fd(c->unit, "told"), RING_BYTES, &c->ring, why);
    if (r == 0)
        r = fds_find(c, why);
    if (r < 0)
        return r;
    struct told_stacks_fds fds = {c->fds.known, c->fds.known_long, c->fds.deep};
    if (told_stacks_init(&c->told, &fds, c->stacks, &c->threads) < 0)
        return why_nomem(why);
    r = bpf_unit_attach(c->unit, why);
    if (r < 0)
        return r;
    if (heap_looks_begin(c, target) < 0)
        return why_nomem(why);
    return probes_judge(c, why);
}

int heap_kernel_start(const struct heap_opts *opts, const struct collector_target *target,
                      struct sink *sink, struct collector **ret, struct why *why)
{
    if (opts->sample_bytes > 0)
        return why_set(why, WHY_USAGE, ENOTSUP,
                       "leave --sample out, or start the program with whyslow: the library in it "
                       "can sample",
                       "the kernel tells of every allocation: to skip some would cost as much");
    struct collector *c = calloc(1, sizeof(*c));
    if (!c)
        return why_nomem(why);
    c->opts = *opts;
    c->sink = sink;
    c->stacks = c->threads.stacks = cpu_stacks(target->cpu);
    c->ring.wake_fd = -1;
    c->attached = target->scope == TARGET_ATTACHED;
    uint64_t start_ns = own_cpu_ns();
    int r = start(c, target, why);
    if (r < 0) {
        kernel_close(c);
        return r;
    }
    c->own_ns = own_cpu_ns() - start_ns;
    struct cpu_follower follower = {.context = c, .until = follow_until, .on_task = follow_task};
    cpu_follow(target->cpu, &follower);
    *ret = c;
    return 0;
}

static int kernel_begin(struct collector *c, uint64_t start_ns, struct why *why)
{
    c->moment_ns = start_ns;
    c->put_ns = start_ns + PUT_MS * NS_PER_MS;
    c->snapshot_ns = c->opts.snapshot_ns ? start_ns + c->opts.snapshot_ns : UINT64_MAX;
    return bpf_unit_begin(c->unit, start_ns, why);
}

/* ---- now and then ---- */

static int moments_put(struct collector *c, uint64_t now_ns)
{
    int r = 0, left = MOMENTS_A_ROUND;
    for (size_t i = 0; i < c->accounts.len && r == 0 && left > 0; i++) {
        const struct heap_account *account = c->accounts.data[i].account;
        struct proc_stat stat = {0};
        if (account->over || account->count.process == 0)
            continue;
        if (proc_stat_read(account->pid, 0, &stat) < 0)
            stat.rss_bytes = 0;
        const struct heap_moment moment = {
            .process = account->count.process,
            .time_ns = now_ns,
            .live_bytes = account->count.live_bytes,
            .rss_bytes = stat.rss_bytes,
        };
        r = sink_heap_moment(c->sink, &moment);
        left--;
    }
    c->moment_ns = now_ns + MOMENT_MS * NS_PER_MS;
    return r;
}

static int accounts_put(struct collector *c, bool all)
{
    int r = 0;
    for (size_t i = 0; i < c->accounts.len && r == 0; i++)
        if (!c->accounts.data[i].account->over)
            r = heap_count_put(&c->accounts.data[i].account->count, c->sink, all);
    return r;
}

static int snapshot_put(struct collector *c, uint64_t now_ns, enum heap_snapshot_why why)
{
    int r = 0;
    for (size_t i = 0; i < c->accounts.len && r == 0; i++)
        if (!c->accounts.data[i].account->over)
            r = heap_count_snapshot(&c->accounts.data[i].account->count, c->sink, now_ns, why);
    return r;
}

static int round_turn(struct collector *c, uint64_t now_ns)
{
    uint32_t zero = 0;
    struct offcpu_control control = {.round = c->round + 1, .woken_ns = now_ns};
    if (bpf_map_update_elem(c->fds.control, &zero, &control, BPF_ANY) < 0)
        return -errno;
    c->round++;
    c->round_ns = now_ns;
    return 0;
}

static int drain(struct collector *c, uint64_t now_ns)
{
    int r = heap_looks_drain(c, now_ns);
    if (r == 0 && now_ns - c->round_ns >= ROUND_MS * NS_PER_MS)
        r = round_turn(c, now_ns);
    if (r == 0 && now_ns >= c->moment_ns)
        r = moments_put(c, now_ns);
    if (r == 0 && c->wants_snapshot)
        r = snapshot_put(c, now_ns, HEAP_SNAPSHOT_SIGNAL);
    c->wants_snapshot = false;
    if (r == 0 && now_ns >= c->snapshot_ns) {
        r = snapshot_put(c, now_ns, HEAP_SNAPSHOT_TIMER);
        c->snapshot_ns += c->opts.snapshot_ns;
    }
    if (r == 0 && now_ns >= c->put_ns) {
        r = accounts_put(c, false);
        c->put_ns = now_ns + PUT_MS * NS_PER_MS;
    }
    return r;
}

static int failed(int r, struct why *why)
{
    return r < 0 ? why_errno(why, -r, "is there room where the recording is? -o puts it elsewhere",
                             "the allocations could not be recorded")
                 : 0;
}

static int kernel_drain(struct collector *c, struct why *why)
{
    if (c->stopped)
        return 0;
    uint64_t start_ns = own_cpu_ns();
    int r = drain(c, clock_mono_ns());
    c->own_ns += own_cpu_ns() - start_ns;
    return failed(r, why);
}

/* Before the cpu collector's: its last round brings us what the ring still has. */
static int kernel_stop(struct collector *c, struct why *why)
{
    (void)why;
    if (c->stopped)
        return 0;
    heap_looks_stop(c);
    bpf_unit_detach(c->unit);
    /* Waits for programs that are still at work on other CPUs. */
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
    c->stopped = true;
    return 0;
}

static int kernel_finish(struct collector *c, struct why *why)
{
    uint64_t start_ns = own_cpu_ns();
    int r = moments_put(c, clock_mono_ns());
    if (r == 0)
        r = accounts_put(c, true);
    c->own_ns += own_cpu_ns() - start_ns;
    if (r == 0)
        r = heap_finish_put(c);
    return failed(r, why);
}

void heap_kernel_snapshot(struct collector *c)
{
    c->wants_snapshot = true;
}

size_t heap_kernel_poll_fds(const struct collector *c, struct pollfd *fds, size_t max)
{
    if (max == 0)
        return 0;
    fds[0] = (struct pollfd){.fd = c->ring.wake_fd, .events = POLLIN};
    return 1;
}

const struct collector_ops heap_kernel_ops = {
    .name = "heap",
    .summary = "allocations, peak and leaks, by call stack",
    .built = true,
    .begin = kernel_begin,
    .drain = kernel_drain,
    .stop = kernel_stop,
    .finish = kernel_finish,
    .close = kernel_close,
};
