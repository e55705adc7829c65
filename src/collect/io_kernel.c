/* Calls as the kernel sees them: load, follow, take turns with the program, stop. */
#include "collect/io_kernel.h"

#include "base/clock.h"
#include "collect/io_kernel_parts.h"
#include "format/io_faults.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    /* Programs that walk folders ask for another file with every few calls: some 200,000 rows of
     * 180 bytes within half a second, which must not be lost when we get no CPU meanwhile. */
    RING_BYTES = 64 << 20,
    RING_BYTES_SMALL = 16 << 20, /* where that cannot be had */
    CELLS_TOGETHER = 16384,      /* of all CPUs in one table, as long as each has enough */
};

extern const unsigned char io_bpf[];
extern const size_t io_bpf_bytes;

static uint32_t cells_of(uint32_t cpus)
{
    uint32_t cells = IO_CELLS_MAX;
    while (cells > IO_CELLS_MIN && cells * cpus > CELLS_TOGETHER)
        cells /= 2;
    return cells;
}

static int config_make(struct collector *c, const struct collector_target *target, struct why *why)
{
    struct bpf_scope scope = {0};
    int r = bpf_scope_find(target, &scope, why), cpus = libbpf_num_possible_cpus();
    if (r == 0 && cpus <= 0)
        r = why_errno(why, -cpus, NULL, "cannot tell how many CPUs there are");
    if (r < 0)
        return r;
    c->ring_bytes = c->opts.ring_bytes ? c->opts.ring_bytes
                                       : bpf_ring_bytes_here(RING_BYTES, RING_BYTES_SMALL);
    c->config = (struct io_config){
        .cgroup_id = scope.cgroup_id,
        .cgroup_level = scope.cgroup_level,
        .scope = scope.scope,
        .root = scope.root,
        .own = scope.own,
        .pid_ns = scope.pid_ns,
        .ring_bytes = c->ring_bytes,
        .stacks = c->opts.stacks,
        .requests = c->opts.requests,
        .cells = c->opts.ring_bytes ? (uint32_t)IO_CELLS_MIN : cells_of((uint32_t)cpus),
        .cpus = (uint32_t)cpus,
        .o_direct = O_DIRECT,
        .o_tmpfile = O_TMPFILE & ~O_DIRECTORY,
    };
    io_calls_fill(c->config.calls);
    return 0;
}

static uint32_t cells_all(const struct collector *c)
{
    return 2 * c->config.cpus * c->config.cells;
}

static const char *const fault_programs[] = {"io_fault", "io_fault_around"};

static int unit_load(struct collector *c, const char *cache_dir, struct why *why)
{
    struct bpf_blob blob = {"io", io_bpf, io_bpf_bytes};
    bpf_unit_close(c->unit);
    c->unit = NULL;
    int r = bpf_unit_open(&blob, cache_dir, &c->unit, why);
    if (r == 0)
        r = bpf_unit_config(c->unit, &c->config, sizeof(c->config), why);
    if (r == 0)
        r = bpf_unit_map_size(c->unit, "told", c->ring_bytes, why);
    if (r == 0)
        r = bpf_unit_map_size(c->unit, "cells", cells_all(c), why);
    if (r == 0)
        r = bpf_unit_map_size(c->unit, "used", cells_all(c) / 64, why);
    if (r == 0)
        r = bpf_unit_map_size(c->unit, "cpus", c->config.cpus, why);
    if (r == 0)
        r = bpf_unit_map_size(c->unit, "io_heads_room", c->config.cpus, why);
    for (size_t i = 0; i < ARRAY_SIZE(fault_programs) && r == 0 && c->faults_na; i++)
        if (bpf_unit_leave_out(c->unit, fault_programs[i]) < 0)
            r = why_set(why, WHY_FAILED, ENOENT, NULL, "the BPF program has lost a part");
    if (r == 0 && c->cache_na && bpf_unit_leave_out(c->unit, "io_cache_add") < 0)
        r = why_set(why, WHY_FAILED, ENOENT, NULL, "the BPF program has lost a part");
    return r < 0 ? r : bpf_unit_load(c->unit, why);
}

/* What is in the cache may be wrong, and the kernel too old for a part that we can do without. */
static int unit_start(struct collector *c, const char *cache_dir, struct why *why)
{
    c->faults_na = !io_faults_here();
    int r = unit_load(c, cache_dir, why);
    if (bpf_unit_is_disliked(r) && cache_dir)
        r = unit_load(c, NULL, why);
    if (bpf_unit_is_disliked(r)) {
        struct why second = {0};
        c->cache_na = c->faults_na = true;
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
                 "there is no memory for a larger buffer (%.300s): where very many different calls "
                 "are made at a time, some lose their stack or object",
                 large.what);
    return r;
}

/* Memory of the program's maps, as they are asked for. */
static uint64_t maps_bytes(const struct collector *c)
{
    enum { ELEMENT = 48 }; /* the kernel's own part of an element of a hash */
    return c->ring_bytes + (uint64_t)cells_all(c) * sizeof(struct io_cell) + cells_all(c) / 8 +
           c->config.cpus * sizeof(struct io_cpu) +
           (uint64_t)(IO_CALLS_MAX + 1) * sizeof(struct io_folded) +
           (uint64_t)IO_THREADS_MAX * (sizeof(struct io_thread) + 8 + ELEMENT) +
           (uint64_t)IO_THREADS_MAX * (sizeof(struct io_fault) + 8 + ELEMENT) +
           (uint64_t)IO_THREADS_MAX * (16 + ELEMENT) + (uint64_t)IO_PATHS_SEEN * 8 +
           (uint64_t)OBJECTS_SEEN_MAX * (24 + ELEMENT) +
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
        {"control", &c->fds.control},     {"threads", &c->fds.threads},
        {"deep", &c->fds.deep},           {"cells", &c->fds.cells},
        {"used", &c->fds.used},           {"cpus", &c->fds.cpus},
        {"known", &c->fds.known},         {"known_long", &c->fds.known_long},
        {"folded_calls", &c->fds.folded}, {"faults", &c->fds.faults},
    };
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        *maps[i].fd = bpf_unit_map_fd(c->unit, maps[i].name);
        if (*maps[i].fd < 0)
            return why_set(why, WHY_FAILED, ENOENT, NULL, "the BPF program has no map '%s'",
                           maps[i].name);
    }
    return 0;
}

/* NULL and *why. */
static void *array_map(int fd, size_t bytes, struct why *why)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED)
        return at;
    (void)why_errno(why, errno, NULL, "cannot map what a BPF program adds up");
    return NULL;
}

static size_t cells_bytes(const struct collector *c)
{
    return (size_t)cells_all(c) * sizeof(struct io_cell);
}

static size_t cpus_bytes(const struct collector *c)
{
    return c->config.cpus * sizeof(struct io_cpu);
}

static int arrays_map(struct collector *c, struct why *why)
{
    c->cells = array_map(c->fds.cells, cells_bytes(c), why);
    if (c->cells)
        c->used = array_map(c->fds.used, cells_all(c) / 8, why);
    if (c->used)
        c->cpus = array_map(c->fds.cpus, cpus_bytes(c), why);
    return c->cpus ? 0 : -EIO;
}

static void arrays_unmap(struct collector *c)
{
    if (c->cells)
        munmap(c->cells, cells_bytes(c));
    if (c->used)
        munmap(c->used, cells_all(c) / 8);
    if (c->cpus)
        munmap((void *)(uintptr_t)c->cpus, cpus_bytes(c));
}

static int memory_make(struct collector *c, struct why *why)
{
    struct told_stacks_fds fds = {c->fds.known, c->fds.known_long, c->fds.deep};
    if (told_stacks_init(&c->told, &fds, c->stacks, &c->threads) < 0 ||
        objects_open(c->sink, &c->objects) < 0 || files_look_open(&c->look) < 0)
        return why_nomem(why);
    return 0;
}

static int series_make(struct collector *c, struct why *why)
{
    struct series_info info = {.name = "io",
                               .kind = SERIES_SUM,
                               .unit = UNIT_NS,
                               .about = "time in system calls, by where they were made"};
    int r = sink_series(c->sink, &info, &c->series);
    return r < 0 ? why_errno(why, -r, NULL, "the series of calls could not be recorded") : 0;
}

/* Not having them is no failure: the recording says why. */
static void devices_start(struct collector *c, const char *cache_dir)
{
    struct why why = {0};
    if (devices_open(cache_dir, c->sink, &c->devices, &why) < 0)
        snprintf(c->devices_na, sizeof(c->devices_na), "%.300s%s%.200s", why.what,
                 why.remedy[0] ? "; " : "", why.remedy);
}

/* One of the cpu collector's followers: in the order of time. */
static int follow_until(void *context, uint64_t time_ns)
{
    struct collector *c = context;
    uint64_t start_ns = own_cpu_ns();
    int r = io_records_take(c, time_ns);
    c->own_ns += own_cpu_ns() - start_ns;
    return r;
}

static int follow_task(void *context, uint64_t time_ns, enum cpu_task task, int pid, int tid)
{
    struct collector *c = context;
    int r = io_said_task(c, task, pid, tid);
    return r < 0 ? r : told_threads_task(&c->threads, time_ns, task, pid, tid);
}

static void kernel_close(struct collector *c)
{
    if (!c)
        return;
    devices_close(c->devices);
    io_said_close(c);
    arrays_unmap(c);
    bpf_ring_deinit(&c->ring);
    bpf_unit_close(c->unit);
    told_stacks_deinit(&c->told);
    told_threads_deinit(&c->threads);
    objects_close(c->objects);
    files_look_close(c->look);
    intern_deinit(&c->mapped);
    free(c);
}

static int start(struct collector *c, const struct collector_target *target, struct why *why)
{
    int r = config_make(c, target, why);
    if (r == 0)
        r = ring_start(c, target->cache_dir, why);
    if (r == 0)
        r = fds_find(c, why);
    if (r == 0)
        r = arrays_map(c, why);
    if (r == 0)
        r = memory_make(c, why);
    if (r == 0)
        r = series_make(c, why);
    if (r == 0)
        r = io_said_start(c, target, why);
    if (r < 0)
        return r;
    c->map_bytes = maps_bytes(c);
    devices_start(c, target->cache_dir);
    r = bpf_unit_attach(c->unit, why);
    c->start_ns = c->round_ns = clock_mono_ns();
    return r;
}

int io_kernel_start(const struct io_opts *opts, const struct collector_target *target,
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
    return r == 0 && c->devices ? devices_begin(c->devices, start_ns, why) : r;
}

/* The other table is written to from now on. */
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
    /* Stacks of the quiet table were copied before the turn: they must have been walked. */
    if (now_ns - c->round_ns < IO_ROUND_MS * NS_PER_MS || c->until_ns < c->round_ns)
        return 0;
    /* A CPU of a virtual machine can stand still in the middle of a program. */
    if (!io_table_is_quiet(c)) {
        c->rounds_held++;
        return 0;
    }
    int r = io_table_take(c, (unsigned)(c->round + 1) & 1);
    if (r == 0 && c->devices)
        r = devices_drain(c->devices);
    return r < 0 ? r : round_turn(c, now_ns);
}

static int kernel_drain(struct collector *c, struct why *why)
{
    if (c->stopped)
        return 0;
    uint64_t start_ns = own_cpu_ns();
    uint64_t now_ns = clock_mono_ns();
    int r = io_said_drain(c, now_ns);
    if (r == 0)
        r = drain(c, now_ns);
    c->own_ns += own_cpu_ns() - start_ns;
    return r < 0 ? why_errno(why, -r, "is there room where the recording is? -o puts it elsewhere",
                             "the calls could not be recorded")
                 : 0;
}

/* Before the cpu collector's: its last round brings us what the ring still has. */
static int kernel_stop(struct collector *c, struct why *why)
{
    (void)why;
    if (c->stopped)
        return 0;
    io_said_stop(c);
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
    int r = io_table_take(c, (unsigned)(c->round + 1) & 1);
    if (r == 0)
        r = io_table_take(c, (unsigned)c->round & 1);
    if (r == 0)
        r = io_open_take(c, c->stop_ns);
    if (r == 0)
        r = io_folded_take(c);
    if (r == 0)
        r = io_faults_take(c);
    if (r == 0)
        r = files_look_finish(c->look, FILES_LOOK_NS, c->sink);
    if (r == 0 && c->devices)
        r = devices_finish(c->devices);
    if (r == 0)
        r = io_said_finish(c);
    c->own_ns += own_cpu_ns() - start_ns;
    if (r == 0)
        r = io_finish_put(c);
    return r < 0 ? why_errno(why, -r, "is there room where the recording is? -o puts it elsewhere",
                             "the calls could not be recorded")
                 : 0;
}

size_t io_kernel_poll_fds(const struct collector *c, struct pollfd *fds, size_t max)
{
    if (max == 0)
        return 0;
    fds[0] = (struct pollfd){.fd = c->ring.wake_fd, .events = POLLIN};
    return 1;
}

const struct collector_ops io_kernel_ops = {
    .name = "io",
    .summary = "bytes, calls and latency, by file and stack",
    .built = true,
    .begin = kernel_begin,
    .drain = kernel_drain,
    .stop = kernel_stop,
    .finish = kernel_finish,
    .close = kernel_close,
};
