/* Waits without privileges: the collector's life. */
#include "collect/offcpu_user.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "collect/cpu.h"
#include "collect/offcpu_user_parts.h"
#include "host/probe.h"
#include "target/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct collector {
    struct sink *sink;
    struct stacks *stacks;
    struct collector *cpu;
    struct user_threads threads;
    struct user_reader reader;
    enum tier tier;
    int timer_fd;
    bool stopped;
    bool attached;
    int pid;
    uint64_t start_ns, end_ns;
    char not_kernel[512];
    char not_higher[1024]; /* what stands in the way of the next tier */
};

static int on_until(void *context, uint64_t time_ns)
{
    struct collector *c = context;
    int r = user_reader_until(&c->reader, time_ns);
    return r < 0 ? r : user_threads_until(&c->threads, time_ns);
}

static int on_switch(void *context, uint64_t time_ns, int pid, int tid, bool out, bool preempted)
{
    struct collector *c = context;
    /* Looks that ended before this find the thread as it was then. */
    int r = c->reader.count > 0 ? user_reader_until(&c->reader, time_ns) : 0;
    if (r == 0 && time_ns < c->start_ns)
        return 0; /* what there was then was looked at */
    return r < 0 ? r : user_threads_switch(&c->threads, time_ns, pid, tid, out, preempted);
}

static int on_task(void *context, uint64_t time_ns, enum cpu_task task, int pid, int tid)
{
    struct collector *c = context;
    time_ns = MAX(time_ns, c->start_ns);
    switch (task) {
    case CPU_TASK_FORK:
        return user_threads_fork(&c->threads, time_ns, pid, tid);
    case CPU_TASK_EXEC:
        return user_threads_exec(&c->threads, time_ns, pid);
    case CPU_TASK_EXIT:
        return user_threads_exit(&c->threads, time_ns, tid);
    }
    return 0;
}

static void user_close(struct collector *c)
{
    if (!c)
        return;
    fd_close(&c->timer_fd);
    user_reader_deinit(&c->reader);
    user_threads_deinit(&c->threads);
    free(c);
}

static int timer_open(struct collector *c, struct why *why)
{
    struct itimerspec every = {
        .it_interval = {.tv_nsec = (long)USER_PERIOD_NS},
        .it_value = {.tv_nsec = (long)USER_PERIOD_NS},
    };
    c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (c->timer_fd < 0 || timerfd_settime(c->timer_fd, 0, &every, NULL) < 0)
        return why_errno(why, errno, NULL, "cannot make a timer");
    return 0;
}

static int series_add(struct collector *c)
{
    struct series_info offcpu = {
        .name = "offcpu",
        .kind = SERIES_SUM,
        .unit = UNIT_NS,
        .about = c->tier == TIER_USER
                     ? "time blocked off the CPU, from switch records; stacks as looked at"
                     : "time blocked off the CPU, as threads were looked at"};
    struct series_info running = {
        .name = "running",
        .kind = SERIES_SUM,
        .unit = UNIT_NS,
        .about = c->tier == TIER_USER ? "time on a CPU, from switch records"
                                      : "time not seen blocked, as threads were looked at"};
    int r = sink_series(c->sink, &offcpu, &c->threads.offcpu);
    return r < 0 ? r : sink_series(c->sink, &running, &c->threads.running);
}

/* Threads that were here before us: nothing will be told of those that go on waiting. */
static int present_read(struct collector *c)
{
    enum { TIDS_MAX = 1 << 16 };
    if (!c->attached)
        return 0;
    int *tids = malloc(TIDS_MAX * sizeof(*tids));
    size_t count = 0, left = 0;
    if (!tids)
        return -ENOMEM;
    int r = proc_threads_read(c->pid, tids, TIDS_MAX, &count, &left);
    c->threads.too_many += left;
    for (size_t i = 0; i < count && r == 0; i++) {
        struct proc_stat stat;
        if (proc_stat_read(c->pid, tids[i], &stat) == 0)
            r = user_threads_present(&c->threads, c->start_ns, c->pid, tids[i], stat.state == 'R');
    }
    free(tids);
    return r == -ENOENT || r == -ESRCH ? 0 : r;
}

static const char *not_user(const struct collector *c)
{
    const char *na = cpu_events_na(c->cpu);
    return na ? na : "switch records were not asked for";
}

void offcpu_user_why_not(struct collector *c, const char *text)
{
    snprintf(c->not_kernel, sizeof(c->not_kernel), "%s", text);
    if (c->tier == TIER_FLOOR)
        snprintf(c->not_higher, sizeof(c->not_higher), "user tier: %s; kernel tier: %s",
                 not_user(c), text);
    else
        snprintf(c->not_higher, sizeof(c->not_higher), "%s", text);
}

static void reason_find(struct collector *c, const struct offcpu_opts *opts)
{
    struct probe bpf = {0};
    char text[512];
    if (opts->tier == TIER_USER) {
        offcpu_user_why_not(c, "the user tier was asked for");
        return;
    }
    probe_bpf_tracing(&bpf);
    snprintf(text, sizeof(text), "%s%s%s",
             bpf.ok ? "the kernel tier could not be started" : bpf.detail,
             bpf.remedy[0] ? "; " : "", bpf.remedy);
    offcpu_user_why_not(c, text);
}

static int start(struct collector *c, const struct offcpu_opts *opts,
                 const struct collector_target *target, struct why *why)
{
    c->threads.sink = c->sink;
    c->threads.stacks = c->reader.stacks = c->stacks = cpu_stacks(c->cpu);
    c->reader.threads = &c->threads;
    c->threads.futexes_only = opts->locks && !opts->waits;
    c->threads.root_pid = target->scope == TARGET_SPAWNED ? target->pid : 0;
    c->attached = target->scope == TARGET_ATTACHED;
    c->pid = target->pid;
    c->tier = cpu_has_switches(c->cpu) ? TIER_USER : TIER_FLOOR;
    c->threads.floor = c->tier == TIER_FLOOR;
    reason_find(c, opts);
    int r = timer_open(c, why);
    if (r < 0)
        return r;
    r = user_reader_init(&c->reader, c->sink);
    if (r == 0)
        r = series_add(c);
    if (r < 0)
        return why_errno(why, -r, NULL, "waits could not be recorded");
    struct cpu_follower follower = {
        .context = c, .until = on_until, .on_switch = on_switch, .on_task = on_task};
    cpu_follow(c->cpu, &follower);
    return 0;
}

static int user_begin(struct collector *c, uint64_t start_ns, struct why *why)
{
    c->start_ns = start_ns;
    int r = present_read(c);
    return r < 0 ? why_errno(why, -r, NULL, "waits could not be recorded") : 0;
}

int offcpu_user_start(const struct offcpu_opts *opts, const struct collector_target *target,
                      struct sink *sink, struct collector **ret, struct why *why)
{
    if (!target->cpu)
        return why_set(why, WHY_FAILED, EINVAL, NULL,
                       "waits are recorded beside the cpu collector");
    struct collector *c = calloc(1, sizeof(*c));
    if (!c)
        return why_nomem(why);
    c->sink = sink;
    c->cpu = target->cpu;
    c->timer_fd = -1;
    int r = start(c, opts, target, why);
    if (r < 0) {
        user_close(c);
        return r;
    }
    *ret = c;
    return 0;
}

static int user_drain(struct collector *c, struct why *why)
{
    uint64_t rounds;
    if (c->stopped || read(c->timer_fd, &rounds, sizeof(rounds)) != (ssize_t)sizeof(rounds))
        return 0;
    int r = user_reader_round(&c->reader, clock_mono_ns());
    return r < 0 ? why_errno(why, -r, "is there room where the recording is? -o puts it elsewhere",
                             "the waits could not be recorded")
                 : 0;
}

static int user_stop(struct collector *c, struct why *why)
{
    (void)why;
    if (c->stopped)
        return 0;
    c->stopped = true;
    c->end_ns = clock_mono_ns();
    /* It stays open: somebody may still poll it. */
    struct itimerspec never = {0};
    (void)timerfd_settime(c->timer_fd, 0, &never, NULL);
    for (size_t i = 0; i < c->threads.threads.len; i++)
        user_threads_delay_read(&c->threads, &c->threads.threads.data[i], c->end_ns);
    return 0;
}

static int counters_put(struct collector *c)
{
    const struct user_threads *t = &c->threads;
    const struct user_reader *reader = &c->reader;
    struct cpu_counts cpu;
    cpu_counts(c->cpu, &cpu);
    const struct {
        const char *name;
        enum unit unit;
        uint64_t value;
        bool given;
    } counters[] = {
        {"waits.seen", UNIT_COUNT, t->seen, true},
        {"waits.observed", UNIT_COUNT, t->observed, true},
        {"waits.alike", UNIT_COUNT, t->alike, true},
        {"waits.unknown", UNIT_COUNT, t->unknown, true},
        {"waits.blocked_ns", UNIT_NS, t->blocked_ns, true},
        {"waits.observed_ns", UNIT_NS, t->observed_ns, true},
        {"waits.alike_ns", UNIT_NS, t->alike_ns, true},
        {"waits.preempted", UNIT_COUNT, t->preempted, true},
        {"waits.copied", UNIT_COUNT, reader->used, true},
        {"waits.complete", UNIT_COUNT, reader->complete, true},
        {"waits.truncated", UNIT_COUNT, reader->truncated, true},
        {"waits.frame_pointers_found", UNIT_COUNT, reader->pointers, reader->pointers > 0},
        {"waits.looks", UNIT_COUNT, reader->looked, true},
        {"waits.looks_nearby", UNIT_COUNT, reader->nearby, true},
        {"waits.looks_stale", UNIT_COUNT, reader->stale + reader->ran, true},
        {"waits.looks_left_out", UNIT_COUNT, reader->left_out, true},
        {"waits.looks_denied", UNIT_COUNT, reader->denied, reader->denied > 0},
        {"waits.own_ns", UNIT_NS, reader->own_ns, true},
        {"waits.broken", UNIT_COUNT, t->broken, t->broken > 0},
        {"waits.lost.objects", UNIT_COUNT, objects_counts(reader->objects).beyond, true},
        {"loss.wait_ring_full", UNIT_COUNT, cpu.lost, true},
        {"loss.wait_map_full", UNIT_COUNT, t->refused, true},
        {"loss.wait_threads_full", UNIT_COUNT, t->too_many, true},
    };
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        if (counters[i].given)
            r = sink_counter(c->sink, counters[i].name, counters[i].unit, counters[i].value);
    return r < 0 ? r : stacks_ends_put(c->sink, "waits", reader->ends);
}

static void text_put(struct jsonw *json, const char *key, const char *text)
{
    jsonw_key(json, key);
    jsonw_text(json, str_from(text));
}

static void document_fill(const struct collector *c, struct jsonw *json)
{
    text_put(json, "tier", tier_name(c->tier));
    text_put(json, "why_not_kernel", c->not_kernel);
    if (c->tier == TIER_FLOOR)
        text_put(json, "why_not_user", not_user(c));
    jsonw_key(json, "reader_hz");
    jsonw_u64(json, USER_READER_HZ);
    if (c->reader.denied > 0) {
        char words[512];
        user_look_denied(c->reader.denied_error, c->reader.denied_pid, words, sizeof(words));
        text_put(json, "looks_na", words);
    }
    jsonw_key(json, "run_delay_ms");
    if (c->threads.delay_known)
        jsonw_f64(json, (double)c->threads.delay_ns / 1e6);
    else
        jsonw_text(json, STR("n/a: the kernel keeps no books of it (CONFIG_SCHED_INFO), or no "
                             "thread was looked at"));
    jsonw_key(json, "not_known");
    jsonw_array_begin(json);
    if (c->tier == TIER_FLOOR)
        jsonw_text(json,
                   STR("how many waits there were and how long each was: a thread is taken to "
                       "sit where it was seen until it is seen elsewhere"));
    jsonw_text(json,
               STR("who ended a wait, but for mutexes: their owner as last looked at; that a time "
                   "limit did is taken from how long it was"));
    jsonw_text(json, STR("run queue: only preemptions; time between being woken and running is in "
                         "the wait"));
    jsonw_text(json, STR("stack and cause of a wait that nobody looked at: taken from the look "
                         "before, if it was short"));
    jsonw_text(json, STR("whether an answer was awaited (epoll, poll)"));
    jsonw_text(json, STR("kernel stacks, kernel locks, hold times"));
    jsonw_array_end(json);
}

static int document_put(struct collector *c)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return -ENOMEM;
    struct jsonw json;
    jsonw_init(&json, out, 0);
    jsonw_object_begin(&json);
    document_fill(c, &json);
    jsonw_object_end(&json);
    int r = fclose(out) == 0 ? 0 : -errno;
    if (r == 0)
        r = sink_document(c->sink, "waits", (struct str){text, len});
    free(text);
    return r;
}

static int user_finish(struct collector *c, struct why *why)
{
    int r = user_reader_until(&c->reader, UINT64_MAX);
    if (r == 0)
        r = user_threads_end(&c->threads, c->end_ns);
    if (r == 0)
        r = lock_names_put(c->reader.names, c->stacks, c->sink);
    if (r == 0)
        r = counters_put(c);
    if (r == 0)
        r = document_put(c);
    return r < 0 ? why_errno(why, -r, "is there room where the recording is? -o puts it elsewhere",
                             "the waits could not be recorded")
                 : 0;
}

size_t offcpu_user_poll_fds(const struct collector *c, struct pollfd *fds, size_t max)
{
    if (max == 0)
        return 0;
    fds[0] = (struct pollfd){.fd = c->timer_fd, .events = POLLIN};
    return 1;
}

enum tier offcpu_user_tier(const struct collector *c)
{
    return c->tier;
}

const char *offcpu_user_not_higher(const struct collector *c)
{
    return c->not_higher;
}

void offcpu_user_leave_out(struct collector *c, bool (*covered)(void *context, int pid, int tid),
                           void *context)
{
    c->threads.covered = covered;
    c->threads.covered_context = context;
}

uint32_t offcpu_user_series(const struct collector *c)
{
    return c->threads.offcpu;
}

const struct collector_ops offcpu_user_ops = {
    .name = "offcpu",
    .begin = user_begin,
    .drain = user_drain,
    .stop = user_stop,
    .finish = user_finish,
    .close = user_close,
};
