/* The figures every process has, read from /proc some 20 times a second: memory,
 * CPU time, I/O, context switches, threads. Needs no rights beyond the user's own.
 *
 * It reads less often when reading gets dear (many threads): it never takes more
 * than about 1% of a core. What ends between two readings loses its last part;
 * the loss is counted, not guessed. */
#include "collect/usage.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/macros.h"
#include "target/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    PERIOD_MS = 50,
    COST_RATIO = 100, /* a reading that took t is followed by at least 100 t of rest */
    PROCESSES_MAX = 1024,
    THREADS_MAX = 8192, /* in all processes together */
    THREADS_PER_PROCESS_MAX = 1024,
    CHILDREN_MAX = 512, /* of one thread */
};

enum usage_series {
    RSS,
    PSS,
    THREADS,
    CPU_USER,
    CPU_SYSTEM,
    ON_CPU,
    RUN_QUEUE,
    READ,
    WRITE,
    READ_STORAGE,
    WRITE_STORAGE,
    SWITCHES_VOLUNTARY,
    SWITCHES_INVOLUNTARY,
    SERIES_COUNT,
};

static const struct series_info series_table[SERIES_COUNT] = {
    [RSS] = {"rss", SERIES_LEVEL, UNIT_BYTES, "memory of the process that is in RAM"},
    [PSS] = {"pss", SERIES_LEVEL, UNIT_BYTES, "the same, pages shared with others divided by all"},
    [THREADS] = {"threads", SERIES_LEVEL, UNIT_COUNT, "threads of the process"},
    [CPU_USER] = {"cpu_user", SERIES_SUM, UNIT_NS,
                  "CPU time of the process in user space since the last reading, in clock ticks"},
    [CPU_SYSTEM] = {"cpu_system", SERIES_SUM, UNIT_NS,
                    "CPU time of the process in the kernel since the last reading, in clock ticks"},
    [ON_CPU] = {"on_cpu", SERIES_SUM, UNIT_NS, "time the thread ran since the last reading, exact"},
    [RUN_QUEUE] = {"run_queue", SERIES_SUM, UNIT_NS,
                   "time the thread was ready and waited for a CPU since the last reading"},
    [READ] = {"read", SERIES_SUM, UNIT_BYTES, "bytes read through system calls, from any source"},
    [WRITE] = {"write", SERIES_SUM, UNIT_BYTES, "bytes written through system calls"},
    [READ_STORAGE] = {"read_storage", SERIES_SUM, UNIT_BYTES, "bytes fetched from storage"},
    [WRITE_STORAGE] = {"write_storage", SERIES_SUM, UNIT_BYTES, "bytes to be sent to storage"},
    [SWITCHES_VOLUNTARY] = {"switches_voluntary", SERIES_SUM, UNIT_COUNT,
                            "times the thread gave up its CPU to wait"},
    [SWITCHES_INVOLUNTARY] = {"switches_involuntary", SERIES_SUM, UNIT_COUNT,
                              "times the thread had its CPU taken away"},
};

struct usage_thread {
    int tid;
    uint32_t process; /* index */
    uint32_t id;      /* in the sink */
    bool alive;
    bool seen; /* in this reading */
    uint64_t run_ns, wait_ns, voluntary, involuntary;
};

struct usage_process {
    int pid;
    uint64_t start_ns; /* with the pid it names a process: pids are used again */
    uint32_t id;
    uint32_t main_thread; /* id of the thread that carries the figures of the whole process */
    bool alive;
    uint64_t user_ns, system_ns;
    struct proc_io io;
    uint64_t pss_next_ns; /* not before: it costs in proportion to the mapped memory */
};

struct collector {
    struct sink *sink;
    int root_pid;
    uint64_t root_start_ns;
    const char *command;
    int root_io_fd; /* open from the start: the zombie's could not be */
    uint32_t series[SERIES_COUNT];
    struct usage_process *processes; /* PROCESSES_MAX; the first is the root */
    size_t process_count;
    struct usage_thread *threads; /* THREADS_MAX */
    size_t thread_count;
    uint64_t next_ns;
    uint64_t last_ns; /* of the last reading, 0 before the first */
    uint64_t readings;
    uint64_t late;          /* readings that should have been and were not */
    uint64_t missed;        /* files that could not be read though the process was there */
    uint64_t ended_between; /* processes that ended since their last reading */
    uint64_t over_limit;    /* processes and threads beyond the bounds above */
    uint64_t own_cpu_ns;
    bool stopped;
};

static uint64_t thread_cpu_ns(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int put(struct collector *c, enum usage_series series, uint32_t thread, uint64_t time_ns,
               uint64_t weight)
{
    struct sample sample = {
        .series = c->series[series], .thread = thread, .time_ns = time_ns, .weight = weight};
    return sink_sample(c->sink, &sample);
}

/* The growth of a running total; a sum without growth is no sample. */
static int put_growth(struct collector *c, enum usage_series series, uint32_t thread,
                      uint64_t time_ns, uint64_t *total, uint64_t now)
{
    if (now <= *total)
        return 0;
    uint64_t grown = now - *total;
    *total = now;
    return put(c, series, thread, time_ns, grown);
}

static bool is_gone(int error)
{
    return error == -ENOENT || error == -ESRCH;
}

/* A failed reading of something that is still there is a loss worth a count. */
static int note_miss(struct collector *c, int error)
{
    if (!is_gone(error))
        c->missed++;
    return 0;
}

static int thread_add(struct collector *c, uint32_t process, int tid, const char *name,
                      uint64_t start_ns, uint32_t *ret_index)
{
    uint32_t index = (uint32_t)c->thread_count;
    for (uint32_t i = 0; index == THREADS_MAX && i < THREADS_MAX; i++)
        if (!c->threads[i].alive)
            index = i; /* full: the place of an ended one will do */
    if (index == THREADS_MAX) {
        c->over_limit++;
        return -ENOSPC;
    }
    struct thread_info info = {.process = c->processes[process].id,
                               .tid = (uint32_t)tid,
                               .start_ns = start_ns,
                               .name = str_from(name)};
    uint32_t id;
    int r = sink_thread(c->sink, &info, &id);
    if (r < 0)
        return r;
    if (index == c->thread_count)
        c->thread_count++;
    c->threads[index] = (struct usage_thread){
        .tid = tid, .process = process, .id = id, .alive = true};
    *ret_index = index;
    return 0;
}

static int process_add(struct collector *c, int pid, uint32_t parent, const struct proc_stat *stat)
{
    if (c->process_count == PROCESSES_MAX) {
        c->over_limit++;
        return 0;
    }
    char exe[4096], command[4096];
    proc_exe_read(pid, exe, sizeof(exe));
    proc_command_read(pid, command, sizeof(command));
    struct usage_process *process = &c->processes[c->process_count];
    *process = (struct usage_process){.pid = pid, .start_ns = stat->start_ns, .alive = true};
    bool root = c->process_count == 0;
    struct process_info info = {
        .pid = (uint32_t)pid,
        .parent = parent,
        .start_ns = root ? c->root_start_ns : stat->start_ns,
        .exe = str_from(exe),
        .command = str_from(root && c->command ? c->command : command),
    };
    int r = sink_process(c->sink, &info, &process->id);
    if (r < 0)
        return r;
    uint32_t index, at = (uint32_t)c->process_count++;
    r = thread_add(c, at, pid, stat->name, info.start_ns, &index);
    if (r < 0) {
        process->alive = false;
        return r == -ENOSPC ? 0 : r;
    }
    process->main_thread = c->threads[index].id;
    return 0;
}

static struct usage_thread *thread_find(struct collector *c, uint32_t process, int tid)
{
    for (size_t i = 0; i < c->thread_count; i++)
        if (c->threads[i].alive && c->threads[i].process == process && c->threads[i].tid == tid)
            return &c->threads[i];
    return NULL;
}

static int thread_read(struct collector *c, struct usage_thread *thread, uint64_t now_ns)
{
    int pid = c->processes[thread->process].pid;
    uint64_t run_ns, wait_ns, voluntary, involuntary;
    int r = proc_schedstat_read(pid, thread->tid, &run_ns, &wait_ns);
    if (r < 0) {
        note_miss(c, r);
    } else {
        r = put_growth(c, ON_CPU, thread->id, now_ns, &thread->run_ns, run_ns);
        if (r == 0)
            r = put_growth(c, RUN_QUEUE, thread->id, now_ns, &thread->wait_ns, wait_ns);
        if (r < 0)
            return r;
    }
    r = proc_switches_read(pid, thread->tid, &voluntary, &involuntary);
    if (r < 0)
        return note_miss(c, r);
    r = put_growth(c, SWITCHES_VOLUNTARY, thread->id, now_ns, &thread->voluntary, voluntary);
    if (r < 0)
        return r;
    return put_growth(c, SWITCHES_INVOLUNTARY, thread->id, now_ns, &thread->involuntary,
                      involuntary);
}

static bool process_known(const struct collector *c, int pid, uint64_t start_ns)
{
    for (size_t i = 0; i < c->process_count; i++) {
        const struct usage_process *process = &c->processes[i];
        /* Two readings of one start differ by rounding; another process started later. */
        if (process->pid == pid && start_ns < process->start_ns + 50 * NS_PER_MS)
            return true;
    }
    return false;
}

static int children_find(struct collector *c, uint32_t process, int tid)
{
    int pids[CHILDREN_MAX];
    size_t count = 0, left = 0;
    int r = proc_children_read(c->processes[process].pid, tid, pids, CHILDREN_MAX, &count, &left);
    if (r < 0)
        return r == -ENOSYS ? 0 : note_miss(c, r);
    c->over_limit += left;
    for (size_t i = 0; i < count; i++) {
        struct proc_stat stat;
        if (proc_stat_read(pids[i], 0, &stat) < 0 || stat.state == 'Z' ||
            process_known(c, pids[i], stat.start_ns))
            continue;
        r = process_add(c, pids[i], c->processes[process].id, &stat);
        if (r < 0)
            return r;
    }
    return 0;
}

static int threads_read(struct collector *c, uint32_t process, uint64_t now_ns)
{
    int tids[THREADS_PER_PROCESS_MAX];
    size_t count = 0, left = 0;
    int pid = c->processes[process].pid;
    int r = proc_threads_read(pid, tids, THREADS_PER_PROCESS_MAX, &count, &left);
    if (r < 0)
        return note_miss(c, r);
    c->over_limit += left;
    for (size_t i = 0; i < count; i++) {
        struct usage_thread *thread = thread_find(c, process, tids[i]);
        if (!thread) {
            struct proc_stat stat;
            uint32_t index;
            if (proc_stat_read(pid, tids[i], &stat) < 0)
                continue;
            r = thread_add(c, process, tids[i], stat.name, stat.start_ns, &index);
            if (r == -ENOSPC)
                continue;
            if (r < 0)
                return r;
            thread = &c->threads[index];
        }
        thread->seen = true;
        r = thread_read(c, thread, now_ns);
        if (r == 0)
            r = children_find(c, process, tids[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static int pss_read(struct collector *c, struct usage_process *process, uint64_t now_ns)
{
    if (now_ns < process->pss_next_ns)
        return 0;
    uint64_t bytes, start_ns = clock_mono_ns();
    int r = proc_pss_read(process->pid, &bytes);
    process->pss_next_ns = now_ns + (clock_mono_ns() - start_ns) * COST_RATIO;
    if (r < 0) {
        process->pss_next_ns = now_ns + NS_PER_SEC;
        return note_miss(c, r);
    }
    return put(c, PSS, process->main_thread, now_ns, bytes);
}

static int io_read(struct collector *c, struct usage_process *process, uint64_t now_ns)
{
    struct proc_io io;
    int r = process == c->processes && c->root_io_fd >= 0 ? proc_io_read_fd(c->root_io_fd, &io)
                                                          : proc_io_read(process->pid, &io);
    if (r < 0)
        return note_miss(c, r);
    uint32_t thread = process->main_thread;
    r = put_growth(c, READ, thread, now_ns, &process->io.read_bytes, io.read_bytes);
    if (r == 0)
        r = put_growth(c, WRITE, thread, now_ns, &process->io.write_bytes, io.write_bytes);
    if (r == 0)
        r = put_growth(c, READ_STORAGE, thread, now_ns, &process->io.storage_read_bytes,
                       io.storage_read_bytes);
    if (r == 0)
        r = put_growth(c, WRITE_STORAGE, thread, now_ns, &process->io.storage_write_bytes,
                       io.storage_write_bytes);
    return r;
}

static int cpu_put(struct collector *c, struct usage_process *process, const struct proc_stat *stat,
                   uint64_t now_ns)
{
    int r = put_growth(c, CPU_USER, process->main_thread, now_ns, &process->user_ns, stat->user_ns);
    if (r == 0)
        r = put_growth(c, CPU_SYSTEM, process->main_thread, now_ns, &process->system_ns,
                       stat->system_ns);
    return r;
}

static int process_end(struct collector *c, uint32_t index, uint64_t now_ns, int status)
{
    struct usage_process *process = &c->processes[index];
    process->alive = false;
    for (size_t i = 0; i < c->thread_count; i++) {
        if (!c->threads[i].alive || c->threads[i].process != index)
            continue;
        c->threads[i].alive = false;
        int r = sink_thread_end(c->sink, c->threads[i].id, now_ns);
        if (r < 0)
            return r;
    }
    return sink_process_end(c->sink, process->id, now_ns, status);
}

static int process_read(struct collector *c, uint32_t index, uint64_t now_ns)
{
    struct usage_process *process = &c->processes[index];
    struct proc_stat stat;
    int r = proc_stat_read(process->pid, 0, &stat);
    if (r < 0 || stat.start_ns > process->start_ns + 50 * NS_PER_MS) {
        c->ended_between++;
        return process_end(c, index, now_ns, -1);
    }
    r = cpu_put(c, process, &stat, now_ns);
    if (r < 0)
        return r;
    if (stat.state == 'Z' || stat.state == 'X') {
        r = io_read(c, process, now_ns);
        struct usage_thread *main_thread = thread_find(c, index, process->pid);
        if (r == 0 && main_thread)
            r = thread_read(c, main_thread, now_ns);
        /* To those who may not look the kernel shows 0, as if it had ended well. */
        int status = stat.exit_status != 0 || geteuid() == 0 ? stat.exit_status : -1;
        return r < 0 ? r : process_end(c, index, now_ns, status);
    }
    r = put(c, RSS, process->main_thread, now_ns, stat.rss_bytes);
    if (r == 0)
        r = put(c, THREADS, process->main_thread, now_ns, stat.threads);
    if (r == 0)
        r = io_read(c, process, now_ns);
    if (r == 0)
        r = pss_read(c, process, now_ns);
    return r < 0 ? r : threads_read(c, index, now_ns);
}

static int threads_end(struct collector *c, uint64_t now_ns)
{
    for (size_t i = 0; i < c->thread_count; i++) {
        struct usage_thread *thread = &c->threads[i];
        if (!thread->alive || thread->seen || !c->processes[thread->process].alive)
            continue;
        thread->alive = false;
        int r = sink_thread_end(c->sink, thread->id, now_ns);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The root is not the target before exec: until then its file is still the launcher's. */
static int root_find(struct collector *c)
{
    char exe[64];
    struct proc_stat stat;
    proc_exe_read(c->root_pid, exe, sizeof(exe));
    if (str_starts(str_from(exe), "/memfd:whyslow-launcher"))
        return 0;
    if (proc_stat_read(c->root_pid, 0, &stat) < 0)
        return 0;
    return process_add(c, c->root_pid, 0, &stat);
}

static int reading(struct collector *c, uint64_t now_ns)
{
    if (c->process_count == 0) {
        int r = root_find(c);
        if (r < 0 || c->process_count == 0)
            return r;
    }
    for (size_t i = 0; i < c->thread_count; i++)
        c->threads[i].seen = false;
    /* Children found on the way are appended, and read in the same round. */
    for (size_t i = 0; i < c->process_count; i++) {
        if (!c->processes[i].alive)
            continue;
        int r = process_read(c, (uint32_t)i, now_ns);
        if (r < 0)
            return r;
    }
    c->readings++;
    c->last_ns = now_ns;
    return threads_end(c, now_ns);
}

static int reading_paid(struct collector *c, struct why *why)
{
    uint64_t cpu_ns = thread_cpu_ns(), now_ns = clock_mono_ns();
    int r = reading(c, now_ns);
    cpu_ns = thread_cpu_ns() - cpu_ns;
    c->own_cpu_ns += cpu_ns;
    uint64_t period_ns = MAX(PERIOD_MS * NS_PER_MS, cpu_ns * COST_RATIO);
    if (c->process_count == 0)
        period_ns = NS_PER_MS; /* the target is about to begin */
    /* Keeps the beat where it can; where it is behind, it starts anew from here. */
    c->next_ns = c->next_ns + period_ns > now_ns ? c->next_ns + period_ns : now_ns + period_ns;
    if (r < 0)
        return why_errno(why, -r, NULL, "the usage figures could not be recorded");
    return 0;
}

static int usage_start(const struct collector_target *target, struct sink *sink,
                       struct collector **ret, struct why *why)
{
    struct collector *c = calloc(1, sizeof(*c));
    if (!c)
        return why_nomem(why);
    *c = (struct collector){.sink = sink,
                            .root_pid = target->pid,
                            .root_start_ns = target->start_ns,
                            .command = target->command,
                            .root_io_fd = proc_io_open(target->pid)};
    c->processes = calloc(PROCESSES_MAX, sizeof(*c->processes));
    c->threads = calloc(THREADS_MAX, sizeof(*c->threads));
    int r = c->processes && c->threads ? 0 : why_nomem(why);
    for (size_t i = 0; i < SERIES_COUNT && r == 0; i++) {
        r = sink_series(sink, &series_table[i], &c->series[i]);
        if (r < 0)
            why_errno(why, -r, NULL, "the series '%s' could not be recorded", series_table[i].name);
    }
    c->next_ns = clock_mono_ns();
    if (r < 0) {
        collector_usage.close(c);
        return r;
    }
    *ret = c;
    return 0;
}

static int usage_drain(struct collector *c, struct why *why)
{
    uint64_t now_ns = clock_mono_ns();
    if (now_ns < c->next_ns || c->stopped)
        return 0;
    if (c->last_ns > 0 && now_ns - c->next_ns >= PERIOD_MS * NS_PER_MS)
        c->late += (now_ns - c->next_ns) / (PERIOD_MS * NS_PER_MS);
    return reading_paid(c, why);
}

/* While the root is still a zombie its totals can be read to the end. */
static int usage_stop(struct collector *c, struct why *why)
{
    if (c->stopped)
        return 0;
    int r = reading_paid(c, why);
    c->stopped = true;
    return r;
}

static int usage_finish(struct collector *c, struct why *why)
{
    uint64_t now_ns = c->last_ns ? c->last_ns : clock_mono_ns();
    int r = 0;
    for (size_t i = 0; i < c->process_count && r == 0; i++)
        if (c->processes[i].alive)
            r = process_end(c, (uint32_t)i, now_ns, -1);
    const struct {
        const char *name;
        enum unit unit;
        uint64_t value;
    } counters[] = {
        {"usage.readings", UNIT_COUNT, c->readings},
        {"loss.usage_readings_late", UNIT_COUNT, c->late},
        {"loss.usage_reads_failed", UNIT_COUNT, c->missed},
        {"loss.usage_ended_between_readings", UNIT_COUNT, c->ended_between},
        {"loss.usage_over_limit", UNIT_COUNT, c->over_limit},
        {"own.usage_cpu_ns", UNIT_NS, c->own_cpu_ns},
    };
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        r = sink_counter(c->sink, counters[i].name, counters[i].unit, counters[i].value);
    if (r < 0)
        return why_errno(why, -r, NULL, "the usage figures could not be recorded");
    return 0;
}

static void usage_close(struct collector *c)
{
    if (!c)
        return;
    fd_close(&c->root_io_fd);
    free(c->processes);
    free(c->threads);
    free(c);
}

static void usage_probe(struct arena *arena, struct collector_probe *ret)
{
    (void)arena;
    *ret = (struct collector_probe){
        .tier = TIER_FLOOR,
        .gives = "memory, CPU time, I/O bytes, switches and threads of each process, 20 times a "
                 "second",
        .not_higher = NULL, /* there is no more to it at any tier */
    };
}

void usage_counts(const struct collector *c, struct usage_counts *ret)
{
    *ret = (struct usage_counts){
        .readings = c->readings,
        .late = c->late,
        .missed = c->missed,
        .ended_between = c->ended_between,
        .own_cpu_ns = c->own_cpu_ns,
    };
}

const struct collector_ops collector_usage = {
    .name = "usage",
    .summary = "what /proc says about each process, over time",
    .built = true,
    .probe = usage_probe,
    .start = usage_start,
    .drain = usage_drain,
    .stop = usage_stop,
    .finish = usage_finish,
    .close = usage_close,
};
