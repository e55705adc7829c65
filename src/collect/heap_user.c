/* The collector's life: windows are read now and then, and to the end when their processes are. */
#include "collect/heap_user.h"

#include "base/clock.h"
#include "collect/heap_user_parts.h"

#include <errno.h>
#include <stdlib.h>

#define TICK_NS (100 * NS_PER_MS)
#define READ_NS (500 * NS_PER_MS)
enum { COST_FACTOR = 20 }; /* reading may take a twentieth of the time */

static int heap_until(void *context, uint64_t time_ns)
{
    struct collector *c = context;
    if (c->over)
        return 0;
    int r = heap_windows_look(c, time_ns);
    if (r < 0 || time_ns != UINT64_MAX)
        return r;
    /* The cpu collector has stopped: what lives on is taken as it stands. */
    c->over = true;
    return heap_windows_end_all(c);
}

static int threads_note(struct collector *c, uint64_t time_ns, int pid, int tid)
{
    int r = 0;
    for (size_t i = 0; i < c->windows.len && r == 0; i++)
        if (c->windows.data[i].it->pid == (uint32_t)pid)
            r = heap_thread_note(c, c->windows.data[i].it, time_ns, (uint32_t)tid);
    return r;
}

static int on_task(void *context, uint64_t time_ns, enum cpu_task task, int pid, int tid)
{
    struct collector *c = context;
    int r = 0;
    if (task == CPU_TASK_FORK)
        return 0;
    /* Where nobody announces them, windows of what has begun and ended since the last look are
     * still to be found. Those of a new program are not: what is known here is what it was before.
     */
    if (task == CPU_TASK_EXIT && c->blind)
        r = heap_windows_look(c, time_ns);
    if (task == CPU_TASK_EXIT && r == 0)
        r = threads_note(c, time_ns, pid, tid);
    if (task == CPU_TASK_EXIT && !stacks_is_last_thread(c->stacks, pid, tid))
        return r;
    if (r == 0)
        r = heap_windows_end(c, pid, time_ns);
    heap_program_ends(c, pid);
    if (task == CPU_TASK_EXEC)
        heap_program_begins(c, pid);
    return r;
}

/* Everything that has changed, of every window. */
static int windows_read(struct collector *c)
{
    int r = 0;
    for (size_t i = 0; i < c->windows.len && r == 0; i++) {
        r = heap_cells_read(c, c->windows.data[i].it);
        if (r == 0)
            r = heap_process_read(c, c->windows.data[i].it, false);
    }
    return r;
}

static int snapshots_read(struct collector *c, uint64_t now_ns, enum heap_snapshot_why why)
{
    int r = windows_read(c);
    for (size_t i = 0; i < c->windows.len && r == 0; i++)
        r = heap_snapshot_read(c, c->windows.data[i].it, now_ns, why);
    return r;
}

static int snapshots_look(struct collector *c, uint64_t now_ns)
{
    int r = 0;
    if (c->snapshot_wanted) {
        c->snapshot_wanted = false;
        r = snapshots_read(c, now_ns, HEAP_SNAPSHOT_SIGNAL);
    }
    if (r == 0 && c->opts.snapshot_ns > 0 && now_ns >= c->snapshot_ns) {
        c->snapshot_ns = MAX(c->snapshot_ns + c->opts.snapshot_ns, now_ns);
        r = snapshots_read(c, now_ns, HEAP_SNAPSHOT_TIMER);
    }
    return r;
}

static int tick(struct collector *c, uint64_t now_ns)
{
    int r = heap_windows_sweep(c);
    for (size_t i = 0; i < c->windows.len && r == 0; i++) {
        r = heap_images_read(c, c->windows.data[i].it);
        if (r == 0)
            r = heap_moment_read(c, c->windows.data[i].it, now_ns, false);
    }
    if (r == 0 && now_ns >= c->read_ns) {
        r = windows_read(c);
        uint64_t took_ns = clock_mono_ns() - now_ns;
        c->read_ns = now_ns + MAX(READ_NS, took_ns * COST_FACTOR);
    }
    return r;
}

static int heap_drain(struct collector *c, struct why *why)
{
    uint64_t now_ns = clock_mono_ns();
    if (c->stopped)
        return 0;
    int r = snapshots_look(c, now_ns);
    if (r == 0)
        r = heap_log_take(c);
    if (r == 0 && now_ns >= c->tick_ns) {
        c->tick_ns = now_ns + TICK_NS;
        r = tick(c, now_ns);
    }
    return r < 0 ? why_errno(why, -r, NULL, "the allocations could not be recorded") : 0;
}

/* What is left is read when the cpu collector stops, after us. */
static int heap_stop(struct collector *c, struct why *why)
{
    if (c->stopped)
        return 0;
    int r = snapshots_look(c, clock_mono_ns());
    c->stopped = true;
    __atomic_store_n(&preload_heap_header(c->preload)->over, 1, __ATOMIC_RELEASE);
    heap_ticker_stop(&c->ticker);
    heap_log_stop(c);
    return r < 0 ? why_errno(why, -r, NULL, "the allocations could not be recorded") : 0;
}

static int heap_finish(struct collector *c, struct why *why)
{
    heap_na_find(c);
    int r = heap_facts_put(c, true);
    return r < 0 ? why_errno(why, -r, NULL, "the allocations could not be recorded") : 0;
}

static void heap_close(struct collector *c)
{
    if (!c)
        return;
    heap_ticker_stop(&c->ticker);
    heap_log_free(c);
    heap_windows_deinit(c);
    map_u64_deinit(&c->programs);
    VEC_FREE(&c->dirty);
    free(c);
}

static int parts_start(struct collector *c, struct why *why)
{
    int r = heap_ticker_start(&c->ticker, preload_heap_header(c->preload));
    if (r < 0)
        return why_errno(why, -r, NULL, "cannot start a thread");
    r = heap_facts_put(c, false);
    if (r < 0)
        return why_errno(why, -r, NULL, "cannot write to the recording");
    return heap_log_start(c, why);
}

int heap_user_start(const struct heap_opts *opts, struct preload_heap *preload,
                    const struct collector_target *target, struct sink *sink,
                    struct collector **ret, struct why *why)
{
    if (target->scope != TARGET_SPAWNED)
        return why_set(why, WHY_DENIED, ENOTSUP, "let whyslow start the program",
                       "the library for the heap cannot be put into a program that runs already");
    struct collector *c = calloc(1, sizeof(*c));
    if (!c)
        return why_nomem(why);
    uint64_t now_ns = clock_mono_ns();
    c->opts = *opts;
    c->opts.temporary_within = MAX(opts->temporary_within, 1u);
    c->preload = preload;
    c->sink = sink;
    c->stacks = cpu_stacks(target->cpu);
    c->blind = cpu_events_na(target->cpu) != NULL;
    c->root_pid = target->pid;
    c->root_command = target->command ? target->command : "";
    c->snapshot_ns = now_ns + opts->snapshot_ns;
    c->read_ns = now_ns + TICK_NS;
    c->own_start_ns = heap_own_cpu_ns();
    c->log_waiting_end = &c->log_waiting;
    int r = parts_start(c, why);
    if (r < 0) {
        heap_close(c);
        return r;
    }
    struct cpu_follower follower = {.context = c, .until = heap_until, .on_task = on_task};
    cpu_follow(target->cpu, &follower);
    *ret = c;
    return 0;
}

size_t heap_user_poll_fds(const struct collector *c, struct pollfd *fds, size_t max)
{
    (void)c, (void)fds, (void)max; /* nothing hurries: the target waits for nobody */
    return 0;
}

void heap_user_snapshot(struct collector *c)
{
    c->snapshot_wanted = true;
}

const char *heap_user_na(const struct collector *c)
{
    return c->na[0] ? c->na : NULL;
}

const struct collector_ops heap_user_ops = {
    .name = "heap",
    .summary = "allocations, told by a library in the target",
    .built = true,
    .drain = heap_drain,
    .stop = heap_stop,
    .finish = heap_finish,
    .close = heap_close,
};
