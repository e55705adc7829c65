/* Opening the events of a recording, and what changes about them while it runs.
 *
 * A CPU has one ring, owned by an event of our own that counts nothing: it outlives every
 * thread of the target. All other events of that CPU write into it.
 *
 * There are three sets of sampling events with periods that lie up to 10% apart. One samples
 * at a time, and every second another takes over, so that code that runs in step with one
 * period is not in step for long. The period of an open event is never changed: the kernel
 * would go on to report the old one in its samples, and would not tell inherited events. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "collect/cpu_parts.h"
#include "target/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    RING_BYTES_MAX = 32 << 20,
    RING_BYTES_MIN_ASKED = 512 << 10,
    RING_BYTES_SWITCHES = 2 << 20, /* 50,000 switches: some 100 ms of a CPU that does little else */
    RINGS_BYTES_MAX = 256 << 20,   /* of all CPUs together */
    RING_MS_MIN = 100,             /* a ring should take the samples of so long */
    RING_SLOTS_MIN = 16,
    TIDS_MAX = 1 << 16,
    ATTACH_ROUNDS_MAX = 8,
    FDS_SPARE = 640, /* for images, the recording and others */
};

static uint64_t random_next(struct collector *c)
{
    /* xorshift64*: a period needs no more than not to be in step. */
    c->random ^= c->random >> 12;
    c->random ^= c->random << 25;
    c->random ^= c->random >> 27;
    return c->random * 2685821657736338717ull;
}

/* One in each band around the period asked for, so that no two are close. */
static uint64_t period_draw(struct collector *c, size_t set)
{
    static const int bands[CPU_SETS][2] = {{-100, -40}, {-30, 30}, {40, 100}}; /* per mille */
    int width = bands[set][1] - bands[set][0];
    int64_t mille = 1000 + bands[set][0] + (int64_t)(random_next(c) % (uint64_t)(width + 1));
    uint64_t base = c->plan.clock == PERF_CYCLES ? c->plan.rate_hz : NS_PER_SEC / c->plan.rate_hz;
    uint64_t period = base * (uint64_t)mille / 1000;
    return period > 0 ? period : 1;
}

static void fds_close(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fd_close(&fds[i]);
}

static uint64_t fds_lost(const struct collector *c, const int *fds, size_t count)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < count; i++)
        lost += perf_event_lost(&c->plan, fds[i]);
    return lost;
}

static void set_close(struct collector *c, struct cpu_set *set)
{
    c->lost_counted += fds_lost(c, set->fds.data, set->fds.len);
    fds_close(set->fds.data, set->fds.len);
    VEC_FREE(&set->fds);
}

static void limit_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static size_t fds_allowed(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1024;
    return limit.rlim_cur > FDS_SPARE ? (size_t)limit.rlim_cur - FDS_SPARE : 0;
}

/* Half a second at the largest slice: we look ten times a second, and on a machine whose CPUs are
 * shared, with programs or with other guests, we are late by more than one such round. */
static size_t ring_bytes(const struct collector *c)
{
    if (c->plan.stacks != PERF_STACKS_SLICE || c->opts.no_samples)
        return c->opts.switches && 2 * RING_BYTES_SWITCHES * c->cpu_count <= RINGS_BYTES_MAX
                   ? RING_BYTES_SWITCHES
                   : RING_BYTES_MIN_ASKED;
    uint64_t need = (uint64_t)c->plan.rate_hz * PERF_SLICE_BYTES_MAX / 2;
    if (c->plan.system)
        need *= 2; /* many programs come at once at the start, and their rows must be read */
    size_t bytes = RING_BYTES_MIN_ASKED;
    while (bytes < need && bytes < RING_BYTES_MAX && 2 * bytes * c->cpu_count <= RINGS_BYTES_MAX)
        bytes *= 2;
    return bytes;
}

/* The kernel sets aside the whole slice in the ring, but copies only what there is of the
 * stack: a large slice costs room, not time. So the largest that leaves the ring enough
 * samples to bridge the time until we look. */
static uint32_t slice_fitting(const struct collector *c)
{
    uint64_t ms = c->plan.system ? 2 * RING_MS_MIN : RING_MS_MIN;
    uint64_t slots = MAX(c->plan.rate_hz * ms / 1000, (uint64_t)RING_SLOTS_MIN);
    if (c->rings.data_bytes / PERF_SLICE_BYTES_MAX >= slots)
        return PERF_SLICE_BYTES_MAX;
    return c->rings.data_bytes / (2 * CPU_SLICE_BYTES_MIN) >= slots ? 2 * CPU_SLICE_BYTES_MIN
                                                                    : CPU_SLICE_BYTES_MIN;
}

static int rings_open(struct collector *c, struct why *why)
{
    struct perf_event_attr attr = perf_attr_ring(0); /* wakes when half full */
    size_t count = 0;
    c->ring_fds = malloc(c->cpu_count * sizeof(*c->ring_fds));
    if (!c->ring_fds)
        return why_nomem(why);
    for (size_t i = 0; i < c->cpu_count; i++) {
        int fd = perf_event_open(&attr, 0, c->cpus[i], 0);
        if (fd == -ENODEV)
            continue; /* went off just now */
        if (fd < 0) {
            fds_close(c->ring_fds, count);
            c->cpu_count = 0;
            return perf_event_why(-fd, "cannot open a ring for samples", why);
        }
        c->cpus[count] = c->cpus[i];
        c->ring_fds[count++] = fd;
    }
    c->cpu_count = count;
    c->rings_asked_bytes = ring_bytes(c);
    int r = perf_rings_map(c->ring_fds, count, c->rings_asked_bytes, &c->rings, why);
    if (r == 0 && c->rings.data_bytes < c->rings_asked_bytes)
        log_info("sample rings are %zu KiB a CPU instead of %zu: the limit on locked memory "
                 "(kernel.perf_event_mlock_kb, ulimit -l); more may be lost under load",
                 c->rings.data_bytes >> 10, c->rings_asked_bytes >> 10);
    return r;
}

struct fd_list {
    int **data;
    size_t *len, *cap;
};

/* What the target starts from now on inherits it with the event. */
static void deep_attach(struct collector *c, int fd)
{
    if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, cpu_deep_program_fd(c->deep)) == 0)
        return;
    snprintf(c->deep_na, sizeof(c->deep_na), "a BPF program cannot be put on a perf event: %s",
             strerror(errno));
    cpu_deep_close(c->deep);
    c->deep = NULL;
}

/* One event on one CPU, writing to that CPU's ring. `owner`: generation and tid, 0 for none. */
static int event_add(struct collector *c, struct perf_event_attr *attr, int pid, size_t cpu,
                     uint64_t owner, struct fd_list fds)
{
    unsigned long flags = c->opts.scope == TARGET_CGROUP ? PERF_FLAG_PID_CGROUP : 0;
    AUTO(fd_close) int fd = perf_event_open(attr, pid, c->cpus[cpu], flags);
    if (fd == -ENODEV)
        return 0;
    if (fd < 0)
        return fd;
    if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->ring_fds[cpu]) < 0)
        return -errno;
    if (c->deep && attr->sample_type & PERF_SAMPLE_STACK_USER)
        deep_attach(c, fd);
    uint64_t id;
    if (owner != 0 && ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0) {
        uint64_t *slot = map_u64_at(&c->owners, id, NULL);
        if (!slot)
            return -ENOMEM;
        *slot = owner;
    }
    if (vec_reserve((void **)fds.data, fds.cap, *fds.len + 1, sizeof(int)) < 0)
        return -ENOMEM;
    (*fds.data)[(*fds.len)++] = fd_take(&fd);
    return 0;
}

#define FD_LIST(vec) ((struct fd_list){&(vec)->data, &(vec)->len, &(vec)->cap})

static int set_add(struct collector *c, struct cpu_set *set, int pid, bool on_exec)
{
    struct perf_event_attr attr = perf_attr_sampling(&c->plan, set->period, set->slice_bytes);
    attr.enable_on_exec = on_exec && !c->opts.no_samples;
    bool task = !c->plan.system;
    uint64_t owner = task ? (uint64_t)set->generation << 32 | (uint32_t)pid : 0;
    for (size_t i = 0; i < c->cpu_count; i++) {
        int r = event_add(c, &attr, pid, i, owner, FD_LIST(&set->fds));
        if (r < 0)
            return r;
    }
    uint64_t *slot = task ? map_u64_at(&c->covered, owner, NULL) : NULL;
    if (slot)
        *slot = 1;
    return task && !slot ? -ENOMEM : 0;
}

static int sideband_add(struct collector *c, int pid)
{
    struct perf_event_attr attr = perf_attr_sideband(&c->plan, c->opts.switches);
    attr.disabled = 0;
    attr.inherit = attr.inherit && pid > 0;
    for (size_t i = 0; i < c->cpu_count; i++) {
        int r = event_add(c, &attr, pid, i, 0, FD_LIST(&c->sideband_fds));
        if (r < 0)
            return r;
    }
    return 0;
}

void cpu_source_forget(struct collector *c, int tid)
{
    for (size_t i = 0; i < c->set_count && c->may_double; i++) {
        uint64_t key = (uint64_t)c->sets[i].generation << 32 | (uint32_t)tid;
        uint64_t *source = map_u64_find(&c->sources, key);
        uint64_t *covered = map_u64_find(&c->covered, key);
        if (source)
            *source = 0;
        if (covered)
            *covered = 0;
    }
}

bool cpu_is_doubled(struct collector *c, uint64_t id, int tid)
{
    const uint64_t *owner = c->may_double ? map_u64_find(&c->owners, id) : NULL;
    if (!owner)
        return false;
    uint64_t *source = map_u64_at(&c->sources, (*owner >> 32) << 32 | (uint32_t)tid, NULL);
    if (!source)
        return false; /* out of memory: counted twice is better than not at all */
    if (*source == 0)
        *source = *owner;
    return *source != *owner;
}

/* A target of one pid: the task itself, every CPU, or a cgroup. */
static int target_add(struct collector *c, int pid, bool on_exec)
{
    for (size_t i = 0; i < c->set_count; i++) {
        int r = set_add(c, &c->sets[i], pid, on_exec && i == c->active);
        if (r < 0)
            return r;
    }
    /* After the samplers: a fork that is announced has inherited those, too. */
    return sideband_add(c, pid);
}

static bool is_covered(const struct collector *c, const struct cpu_set *set, int tid)
{
    const uint64_t *slot = map_u64_find(&c->covered,
                                        (uint64_t)set->generation << 32 | (uint32_t)tid);
    return slot && *slot;
}

/* Threads that were made while we opened events of others, and may not have inherited them. */
static int attach_round(struct collector *c, int *tids, size_t *ret_new)
{
    size_t count = 0, left = 0, fresh = 0;
    int r = proc_threads_read(c->opts.pid, tids, TIDS_MAX, &count, &left);
    for (size_t i = 0; i < count && r == 0; i++) {
        if (is_covered(c, &c->sets[0], tids[i]))
            continue;
        r = target_add(c, tids[i], false);
        if (r == 0)
            fresh++;
        if (r == -ESRCH)
            r = 0; /* ended meanwhile */
    }
    *ret_new = fresh;
    return r == -ENOENT ? -ESRCH : r;
}

static int attach(struct collector *c)
{
    int *tids = malloc(TIDS_MAX * sizeof(*tids));
    if (!tids)
        return -ENOMEM;
    size_t fresh = 1;
    int r = 0;
    c->may_double = true;
    for (int i = 0; i < ATTACH_ROUNDS_MAX && fresh > 0 && r == 0; i++)
        r = attach_round(c, tids, &fresh);
    free(tids);
    return r < 0 ? r : c->sideband_fds.len == 0 ? -ESRCH : 0;
}

static int events_add(struct collector *c)
{
    switch (c->opts.scope) {
    case TARGET_SPAWNED:
        return target_add(c, c->opts.pid, true);
    case TARGET_ATTACHED:
        return attach(c);
    case TARGET_SYSTEM:
        return target_add(c, -1, false);
    case TARGET_CGROUP:
        return target_add(c, c->cgroup_fd, false);
    }
    return -EINVAL;
}

static void events_remove(struct collector *c)
{
    for (size_t i = 0; i < CPU_SETS; i++)
        set_close(c, &c->sets[i]);
    fds_close(c->sideband_fds.data, c->sideband_fds.len);
    VEC_FREE(&c->sideband_fds);
    map_u64_clear(&c->owners);
    map_u64_clear(&c->covered);
}

static void sets_plan(struct collector *c, size_t count)
{
    c->set_count = count;
    c->active = count == CPU_SETS ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        c->sets[i].period = period_draw(c, count == CPU_SETS ? i : 1);
        c->sets[i].slice_bytes = c->slice_bytes;
        c->sets[i].generation = ++c->generations;
    }
}

static size_t threads_count(const struct collector *c)
{
    struct proc_stat stat;
    if (c->opts.scope != TARGET_ATTACHED || proc_stat_read(c->opts.pid, 0, &stat) < 0)
        return 1;
    return stat.threads > 0 ? stat.threads : 1;
}

static bool is_pmu_gap(int r)
{
    return r == -ENOENT || r == -EOPNOTSUPP || r == -EINVAL;
}

static int scope_why(const struct collector *c, int r, struct why *why)
{
    char what[256];
    switch (c->opts.scope) {
    case TARGET_SPAWNED:
        snprintf(what, sizeof(what), "cannot sample the command");
        break;
    case TARGET_ATTACHED:
        snprintf(what, sizeof(what), "cannot sample process %d", c->opts.pid);
        if (r == -EACCES || r == -EPERM)
            return why_set(why, WHY_DENIED, -r,
                           "run as the user it belongs to, as root, or with CAP_PERFMON and "
                           "CAP_SYS_PTRACE",
                           "%s: it belongs to another user, or guards itself", what);
        break;
    case TARGET_SYSTEM:
        snprintf(what, sizeof(what), "cannot sample the whole machine");
        break;
    case TARGET_CGROUP:
        snprintf(what, sizeof(what), "cannot sample the cgroup '%.160s'", c->opts.cgroup);
        break;
    }
    return perf_event_why(-r, what, why);
}

static int cgroup_open(struct collector *c, struct why *why)
{
    c->cgroup_fd = -1;
    if (c->opts.scope != TARGET_CGROUP)
        return 0;
    char path[4096];
    snprintf(path, sizeof(path), "%s%s",
             strncmp(c->opts.cgroup, "/sys/fs/cgroup", 14) == 0 ? "" : "/sys/fs/cgroup/",
             c->opts.cgroup);
    c->cgroup_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return c->cgroup_fd < 0 ? why_errno(why, errno,
                                        "'systemd-cgls' lists cgroups; give one's path below "
                                        "/sys/fs/cgroup",
                                        "cannot open the cgroup '%s'", path)
                            : 0;
}

/* Events of a task cost each of its switches some 0.5 us, which is what waits are made of.
 * Where only announcements are wanted, those of the whole machine are heard instead, if that
 * is allowed. */
static bool wide_open(struct collector *c)
{
    bool task = c->opts.scope == TARGET_SPAWNED || c->opts.scope == TARGET_ATTACHED;
    if (!c->opts.no_samples || c->opts.switches || !task)
        return false;
    sets_plan(c, 0);
    c->wide = true;
    if (cpu_tree_begin(c) == 0 && sideband_add(c, -1) == 0)
        return true;
    c->wide = false;
    events_remove(c);
    return false;
}

int cpu_events_open(struct collector *c, struct why *why)
{
    limit_raise();
    if (getrandom(&c->random, sizeof(c->random), GRND_NONBLOCK) != sizeof(c->random))
        c->random = clock_mono_ns();
    c->random |= 1;
    int r = cgroup_open(c, why);
    if (r == 0)
        r = perf_cpus_read(&c->cpus, &c->cpu_count, why);
    if (r == 0)
        r = rings_open(c, why);
    if (r < 0)
        return r;
    c->slice_bytes = slice_fitting(c);
    if (!c->opts.no_samples)
        cpu_calibrate(c);
    if (wide_open(c))
        return 0;
    size_t sets = CPU_SETS;
    if (c->opts.no_samples || (CPU_SETS + 1) * c->cpu_count * threads_count(c) > fds_allowed())
        sets = 1;
    for (;;) {
        sets_plan(c, sets);
        r = events_add(c);
        if (r == 0)
            break;
        events_remove(c);
        if ((r == -EMFILE || r == -ENFILE) && sets > 1)
            sets = 1;
        else if (is_pmu_gap(r) && c->plan.clock == PERF_CYCLES)
            c->plan.clock = PERF_CPU_CLOCK; /* some CPUs of this machine have no such counter */
        else
            return scope_why(c, r, why);
        c->plan.precise = c->plan.clock == PERF_CYCLES ? c->plan.precise : 0;
    }
    if (sets == 1 && !c->opts.no_samples)
        c->sets_na = "too few file descriptors for more than one set of events";
    return 0;
}

static void set_switch(const struct cpu_set *set, unsigned long what)
{
    for (size_t i = 0; i < set->fds.len; i++)
        ioctl(set->fds.data[i], what, 0);
}

int cpu_events_enable(struct collector *c, struct why *why)
{
    if (c->opts.scope == TARGET_SPAWNED || c->opts.no_samples)
        return 0; /* its exec does; or they only mark which threads are covered */
    const struct cpu_set *set = &c->sets[c->active];
    for (size_t i = 0; i < set->fds.len; i++)
        if (ioctl(set->fds.data[i], PERF_EVENT_IOC_ENABLE, 0) < 0)
            return why_errno(why, errno, NULL, "cannot switch sampling on");
    c->begun = true;
    return 0;
}

void cpu_samples_disable(struct collector *c)
{
    for (size_t i = 0; i < c->set_count; i++)
        set_switch(&c->sets[i], PERF_EVENT_IOC_DISABLE);
}

void cpu_events_disable(struct collector *c)
{
    cpu_samples_disable(c);
    for (size_t i = 0; i < c->sideband_fds.len; i++)
        ioctl(c->sideband_fds.data[i], PERF_EVENT_IOC_DISABLE, 0);
}

/* A record of a loss comes with the next one that finds room: of what is lost at the end there is
 * none, but the events have counted it, where the kernel can. */
uint64_t cpu_events_lost(const struct collector *c)
{
    uint64_t counted = c->lost_counted + fds_lost(c, c->sideband_fds.data, c->sideband_fds.len);
    for (size_t i = 0; i < c->set_count; i++)
        counted += fds_lost(c, c->sets[i].fds.data, c->sets[i].fds.len);
    return MAX(counted, MAX(c->lost, c->lost_samples));
}

void cpu_events_close(struct collector *c)
{
    events_remove(c);
    perf_rings_deinit(&c->rings);
    if (c->ring_fds)
        fds_close(c->ring_fds, c->cpu_count);
    free(c->ring_fds);
    free(c->cpus);
    fd_close(&c->cgroup_fd);
    map_u64_deinit(&c->owners);
    map_u64_deinit(&c->covered);
    map_u64_deinit(&c->tree);
    map_u64_deinit(&c->sources);
}

static void set_use(struct collector *c, size_t next)
{
    set_switch(&c->sets[c->active], PERF_EVENT_IOC_DISABLE);
    set_switch(&c->sets[next], PERF_EVENT_IOC_ENABLE);
    c->active = next;
}

/* Events of a new kind for whatever runs now; what it starts inherits them. */
static int set_cover(struct collector *c, struct cpu_set *set)
{
    if (c->plan.system)
        return set_add(c, set, c->opts.scope == TARGET_CGROUP ? c->cgroup_fd : -1, false);
    int *tids = malloc(TIDS_MAX * sizeof(*tids));
    if (!tids)
        return -ENOMEM;
    size_t fresh = 1;
    int r = 0;
    for (int round = 0; round < ATTACH_ROUNDS_MAX && fresh > 0 && r == 0; round++) {
        fresh = 0;
        size_t count = stacks_live_tids(c->stacks, tids, TIDS_MAX);
        for (size_t i = 0; i < count && r == 0; i++) {
            if (is_covered(c, set, tids[i]))
                continue;
            r = set_add(c, set, tids[i], false);
            fresh += r == 0;
            if (r == -ESRCH)
                r = 0; /* ended, and we have not read of it yet */
        }
        if (fresh > 0 && r == 0)
            r = cpu_records_take(c, false);
    }
    free(tids);
    return r;
}

static int set_reopen(struct collector *c, size_t index)
{
    struct cpu_set *set = &c->sets[index];
    set_close(c, set);
    set->slice_bytes = c->slice_bytes;
    set->generation = ++c->generations;
    int r = set_cover(c, set);
    if (r < 0)
        set_close(c, set);
    return r;
}

/* The other sets could not be had, or not whole: the active one stays alone. */
static void sets_keep_one(struct collector *c)
{
    struct cpu_set kept = c->sets[c->active];
    c->sets[c->active] = (struct cpu_set){0};
    for (size_t i = 0; i < CPU_SETS; i++)
        set_close(c, &c->sets[i]);
    c->sets[0] = kept;
    c->active = 0;
    c->set_count = 1;
}

/* Stacks are cut off too often: all sets are opened anew with a larger slice. When that fails
 * (too few fds), the old slice stays, and the honesty line says how many were cut off. */
static void slice_grow(struct collector *c)
{
    uint32_t old_bytes = c->slice_bytes;
    size_t next = (c->active + 1) % CPU_SETS;
    bool alone = c->set_count == 1;
    c->slice_bytes = MIN(old_bytes * 2, (uint32_t)PERF_SLICE_BYTES_MAX);
    c->may_double = true;
    if (alone)
        c->sets[next].period = period_draw(c, 1);
    if (set_reopen(c, next) < 0) {
        c->slice_bytes = old_bytes;
        c->slice_stays = true;
        sets_keep_one(c);
        return;
    }
    set_use(c, next);
    log_debug("the stack slice is %u KiB now", c->slice_bytes >> 10);
    bool whole = !alone;
    for (size_t i = 0; i < CPU_SETS && whole; i++)
        whole = i == next || set_reopen(c, i) == 0;
    if (!whole)
        sets_keep_one(c);
}

void cpu_turn(struct collector *c, uint64_t now_ns)
{
    if (!c->begun || c->stopped)
        return;
    bool cut_off = c->turn_samples >= CPU_TURN_SAMPLES_MIN &&
                   c->turn_truncated * 100 > c->turn_samples;
    /* A lost sample is worse than one that is cut off: the ring must still take enough. */
    bool room = c->rings.data_bytes / RING_SLOTS_MIN >= MIN(2 * c->slice_bytes, 1u << 16);
    if (cut_off && room && c->slice_bytes < PERF_SLICE_BYTES_MAX && !c->slice_stays) {
        slice_grow(c);
        c->turn_samples = c->turn_truncated = 0;
    }
    if (c->turn_ns == 0)
        c->turn_ns = now_ns + NS_PER_SEC;
    if (now_ns < c->turn_ns)
        return;
    c->turn_ns = now_ns + NS_PER_SEC;
    c->turn_samples = c->turn_truncated = 0;
    cpu_cycles_look(c);
    if (c->set_count > 1)
        set_use(c, (c->active + 1 + random_next(c) % (c->set_count - 1)) % c->set_count);
}
