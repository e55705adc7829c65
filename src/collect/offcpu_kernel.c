/* Waits as the kernel sees them: load, follow, take turns with the program, stop. */
#include "collect/offcpu_kernel.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "collect/offcpu_kernel_parts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    KALLSYMS_BYTES_MAX = 1 << 28,
    /* Of 3,000 threads that begin at once each has a stack that is not known: 16 MiB were full. */
    RING_BYTES = 32 << 20,
    RING_BYTES_SMALL = 16 << 20,
    LONG_NS = 1000000,
    KERNEL_STACK_BYTES = 16 << 10, /* x86_64 and aarch64 with pages of 4 KiB */
};

extern const unsigned char offcpu_bpf[];
extern const size_t offcpu_bpf_bytes;

static int config_make(struct collector *c, const struct collector_target *target, struct why *why)
{
    struct bpf_scope scope = {0};
    int r = bpf_scope_find(target, &scope, why);
    if (r < 0)
        return r;
    c->ring_bytes = bpf_ring_bytes_here(RING_BYTES, RING_BYTES_SMALL);
    c->config = (struct offcpu_config){
        .long_ns = LONG_NS,
        .cgroup_id = scope.cgroup_id,
        .cgroup_level = scope.cgroup_level,
        .scope = scope.scope,
        .root = scope.root,
        .own = scope.own,
        .pid_ns = scope.pid_ns,
        .ring_bytes = c->ring_bytes,
        .kernel_stack_bytes = KERNEL_STACK_BYTES,
        .waits = c->opts.waits,
        .locks = c->opts.locks,
        .kernel_recognise = unwind_machine_here() == UNWIND_X86_64,
    };
    offcpu_calls_fill(c->config.calls);
    return 0;
}

static int unit_load(struct collector *c, const char *cache_dir, struct why *why)
{
    struct bpf_blob blob = {"offcpu", offcpu_bpf, offcpu_bpf_bytes};
    bpf_unit_close(c->unit);
    c->unit = NULL;
    int r = bpf_unit_open(&blob, cache_dir, &c->unit, why);
    if (r == 0)
        r = bpf_unit_config(c->unit, &c->config, sizeof(c->config), why);
    if (r == 0)
        r = bpf_unit_map_size(c->unit, "told", c->ring_bytes, why);
    if (r == 0 && c->asked_na &&
        (bpf_unit_leave_out(c->unit, "offcpu_send") < 0 ||
         bpf_unit_leave_out(c->unit, "offcpu_recv") < 0))
        r = why_set(why, WHY_FAILED, ENOENT, NULL, "the BPF program has lost a part");
    return r < 0 ? r : bpf_unit_load(c->unit, why);
}

/* What is in the cache may be wrong, and the kernel too old for a part that we can do without. */
static int unit_start(struct collector *c, const char *cache_dir, struct why *why)
{
    int r = unit_load(c, cache_dir, why);
    if (bpf_unit_is_disliked(r) && cache_dir)
        r = unit_load(c, NULL, why);
    if (bpf_unit_is_disliked(r)) {
        struct why second = {0};
        c->asked_na = true;
        r = unit_load(c, NULL, &second);
    }
    return r;
}

static int ring_try(struct collector *c, const char *cache_dir, uint32_t ring_bytes,
                    struct why *why)
{
    c->ring_bytes = c->config.ring_bytes = ring_bytes;
    int r = unit_start(c, cache_dir, why);
    if (r == 0)
        r = bpf_ring_map(bpf_unit_map_fd(c->unit, "told"), c->ring_bytes, &c->ring, why);
    return r;
}

static int ring_start(struct collector *c, const char *cache_dir, struct why *why)
{
    struct why large = {0};
    int r = bpf_ring_fit(c, ring_try, cache_dir, c->ring_bytes, RING_BYTES_SMALL, &large, why);
    if (large.what[0])
        snprintf(c->ring_na, sizeof(c->ring_na),
                 "some stacks, where very many threads begin at once: there is no memory for a "
                 "larger buffer (%.300s)",
                 large.what);
    return r;
}

/* Memory of the program's maps, as they are asked for. */
static uint64_t maps_bytes(const struct collector *c)
{
    enum { ELEMENT = 48 }; /* the kernel's own part of an element of a hash */
    return c->ring_bytes +
           (uint64_t)OFFCPU_THREADS_MAX * (sizeof(struct offcpu_thread) + 8 + ELEMENT) +
           (uint64_t)OFFCPU_THREADS_MAX * (16 + ELEMENT) +
           2 * (uint64_t)OFFCPU_TALLIES_MAX *
               (sizeof(struct offcpu_key) + sizeof(struct offcpu_tally) + ELEMENT) +
           (uint64_t)OFFCPU_KERNEL_STACKS_MAX * (8 * OFFCPU_KERNEL_FRAMES + 24) +
           (uint64_t)OFFCPU_KERNEL_KNOWN_MAX * (10 * OFFCPU_KERNEL_SLOTS + 24 + ELEMENT) +
           (uint64_t)OBJECTS_SEEN_MAX * (24 + ELEMENT) +
           2 * (uint64_t)OFFCPU_ASKED_MAX * (24 + ELEMENT) +
           (uint64_t)OFFCPU_KNOWN_MAX *
               (sizeof(struct offcpu_known_key) + sizeof(struct offcpu_known) + ELEMENT) +
           (uint64_t)OFFCPU_KNOWN_LONG_MAX * (8 + sizeof(struct offcpu_known_long) + ELEMENT);
}

static int fds_find(struct collector *c, struct why *why)
{
    const struct {
        const char *name;
        int *fd;
    } maps[] = {
        {"control", &c->fds.control},
        {"threads", &c->fds.threads},
        {"deep", &c->fds.deep},
        {"tallies_0", &c->fds.tallies[0]},
        {"tallies_1", &c->fds.tallies[1]},
        {"kernel_stacks", &c->fds.kernel_stacks},
        {"counts", &c->fds.counts},
        {"known", &c->fds.known},
        {"known_long", &c->fds.known_long},
        {"kernel_known", &c->fds.kernel_known},
    };
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        *maps[i].fd = bpf_unit_map_fd(c->unit, maps[i].name);
        if (*maps[i].fd < 0)
            return why_set(why, WHY_FAILED, ENOENT, NULL, "the BPF program has no map '%s'",
                           maps[i].name);
    }
    return 0;
}

static int memory_make(struct collector *c, struct why *why)
{
    c->batch_keys = calloc(OFFCPU_BATCH, sizeof(*c->batch_keys));
    c->batch_tallies = calloc(OFFCPU_BATCH, sizeof(*c->batch_tallies));
    struct told_stacks_fds fds = {c->fds.known, c->fds.known_long, c->fds.deep};
    if (!c->batch_keys || !c->batch_tallies ||
        told_stacks_init(&c->told, &fds, c->stacks, &c->threads) < 0 ||
        objects_open(c->sink, &c->objects) < 0 || lock_names_open(&c->lock_names) < 0)
        return why_nomem(why);
    return 0;
}

/* What stands between __schedule() and our program is left out of kernel stacks. Where it is not
 * known, nothing is. */
static void schedule_find(struct collector *c)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct str text;
    if (file_read(&arena, "/proc/kallsyms", KALLSYMS_BYTES_MAX, &text, NULL) == 0)
        offcpu_schedule_find(text, &c->schedule_start, &c->schedule_end);
}

/* Its keys are those of contended locks: a thread's latest program is meant. */
static int lock_thread(void *context, uint64_t time_ns, int pid, int tid, uint32_t *ret_thread)
{
    struct collector *c = context;
    struct told_thread *seen;
    const uint64_t *exec = map_u64_find(&c->threads.exec_of, (uint64_t)tid);
    *ret_thread = 0;
    if (!exec)
        return 0;
    int r = told_threads_get(&c->threads, (uint32_t)tid, (uint32_t)pid, (uint32_t)*exec, time_ns,
                             &seen);
    if (r == 0)
        *ret_thread = seen->thread;
    return r;
}

/* Not having them is no failure: the recording says why. */
static void kernel_locks_start(struct collector *c, const char *cache_dir)
{
    struct why why = {0};
    struct kernel_locks_opts opts = {
        .threads_fd = c->fds.threads,
        .pid_ns = c->config.pid_ns,
        .cache_dir = cache_dir,
        .stacks = c->stacks,
        .objects = c->objects,
        .sink = c->sink,
        .thread = lock_thread,
        .context = c,
    };
    if (c->opts.locks && kernel_locks_open(&opts, &c->kernel_locks, &why) < 0)
        snprintf(c->kernel_locks_na, sizeof(c->kernel_locks_na), "%.300s%s%.200s", why.what,
                 why.remedy[0] ? "; " : "", why.remedy);
}

static int series_make(struct collector *c, struct why *why)
{
    struct series_info offcpu = {.name = "offcpu",
                                 .kind = SERIES_SUM,
                                 .unit = UNIT_NS,
                                 .about = "time blocked, up to being woken, by where"};
    struct series_info running = {.name = "running",
                                  .kind = SERIES_SUM,
                                  .unit = UNIT_NS,
                                  .about = "time on a CPU, by the scheduler's switches"};
    int r = sink_series(c->sink, &offcpu, &c->series_offcpu);
    if (r == 0)
        r = sink_series(c->sink, &running, &c->series_running);
    return r < 0 ? why_errno(why, -r, NULL, "the series of waits could not be recorded") : 0;
}

/* One of the cpu collector's followers: in the order of time. */
static int follow_until(void *context, uint64_t time_ns)
{
    struct collector *c = context;
    uint64_t start_ns = own_cpu_ns();
    int r = offcpu_records_take(c, time_ns);
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
    bpf_ring_deinit(&c->ring);
    bpf_unit_close(c->unit);
    kernel_locks_close(c->kernel_locks);
    told_stacks_deinit(&c->told);
    told_threads_deinit(&c->threads);
    objects_close(c->objects);
    lock_names_close(c->lock_names);
    map_u64_deinit(&c->futexes);
    map_u64_deinit(&c->tops);
    map_u64_deinit(&c->kernel_places);
    VEC_FREE(&c->kernel_learnt);
    free(c->batch_keys);
    free(c->batch_tallies);
    free(c);
}

static int start(struct collector *c, const struct collector_target *target, struct why *why)
{
    int r = config_make(c, target, why);
    if (r < 0)
        return r;
    r = ring_start(c, target->cache_dir, why);
    if (r == 0)
        r = fds_find(c, why);
    if (r == 0)
        r = memory_make(c, why);
    if (r == 0)
        r = series_make(c, why);
    if (r < 0)
        return r;
    c->map_bytes = maps_bytes(c);
    schedule_find(c);
    kernel_locks_start(c, target->cache_dir);
    r = bpf_unit_attach(c->unit, why);
    c->start_ns = c->round_ns = clock_mono_ns();
    /* Ids of threads are those of the program only in the first namespace. */
    if (r == 0 && target->scope == TARGET_ATTACHED && c->config.pid_ns == 0 &&
        offcpu_attach_fill(c, target->pid) < 0)
        r = why_nomem(why);
    return r;
}

int offcpu_kernel_start(const struct offcpu_opts *opts, const struct collector_target *target,
                        struct sink *sink, struct collector **ret, struct why *why)
{
    struct collector *c = calloc(1, sizeof(*c));
    if (!c)
        return why_nomem(why);
    c->opts = *opts;
    c->sink = sink;
    c->stacks = c->threads.stacks = cpu_stacks(target->cpu);
    c->ring.wake_fd = -1;
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
    c->start_ns = start_ns;
    int r = bpf_unit_begin(c->unit, start_ns, why);
    return r == 0 && c->kernel_locks ? kernel_locks_begin(c->kernel_locks, start_ns, why) : r;
}

/* The other map is written to from now on; programs that are just at work end within
 * microseconds, and this one is read after a whole round. */
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
    /* Stacks of the quiet map were copied before the turn: they must have been walked. */
    if (now_ns - c->round_ns < OFFCPU_ROUND_MS * NS_PER_MS || c->until_ns < c->round_ns)
        return 0;
    int r = offcpu_tallies_take(c, (unsigned)(c->round + 1) & 1);
    if (r == 0)
        r = offcpu_threads_take(c, c->until_ns, false);
    if (r == 0 && c->kernel_locks)
        r = kernel_locks_drain(c->kernel_locks);
    return r < 0 ? r : round_turn(c, now_ns);
}

static int kernel_drain(struct collector *c, struct why *why)
{
    if (c->stopped)
        return 0;
    uint64_t start_ns = own_cpu_ns();
    int r = drain(c, clock_mono_ns());
    c->own_ns += own_cpu_ns() - start_ns;
    return r < 0 ? why_errno(why, -r, "is there room where the recording is? -o puts it elsewhere",
                             "the waits could not be recorded")
                 : 0;
}

/* Before the cpu collector's: its last round brings us what the ring still has. */
static int kernel_stop(struct collector *c, struct why *why)
{
    (void)why;
    if (c->stopped)
        return 0;
    bpf_unit_detach(c->unit);
    /* Waits for programs that are still at work on other CPUs. */
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
    c->stop_ns = clock_mono_ns();
    c->stopped = true;
    return 0;
}

static int kernel_finish(struct collector *c, struct why *why)
{
    uint64_t start_ns = own_cpu_ns();
    int r = offcpu_tallies_take(c, (unsigned)(c->round + 1) & 1);
    if (r == 0)
        r = offcpu_tallies_take(c, (unsigned)c->round & 1);
    if (r == 0)
        r = offcpu_threads_take(c, c->stop_ns, true);
    if (r == 0 && c->kernel_locks)
        r = kernel_locks_finish(c->kernel_locks);
    if (r == 0)
        r = lock_names_put(c->lock_names, c->stacks, c->sink);
    c->own_ns += own_cpu_ns() - start_ns;
    if (r == 0)
        r = offcpu_finish_put(c);
    return r < 0 ? why_errno(why, -r, "is there room where the recording is? -o puts it elsewhere",
                             "the waits could not be recorded")
                 : 0;
}

size_t offcpu_kernel_poll_fds(const struct collector *c, struct pollfd *fds, size_t max)
{
    if (max == 0)
        return 0;
    fds[0] = (struct pollfd){.fd = c->ring.wake_fd, .events = POLLIN};
    return 1;
}

const struct collector_ops offcpu_kernel_ops = {
    .name = "offcpu",
    .summary = "where threads wait, and for what",
    .built = true,
    .begin = kernel_begin,
    .drain = kernel_drain,
    .stop = kernel_stop,
    .finish = kernel_finish,
    .close = kernel_close,
};
