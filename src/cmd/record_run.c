/* Start held, open the events, let go, drain until the end, say what it was. */
#include "cmd/record_run.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/progress.h"
#include "cmd/run_artifacts.h"
#include "collect/locks_user.h"
#include "host/fingerprint.h"
#include "host/probe.h"
#include "store/identify.h"
#include "store/writer.h"
#include "target/interrupt.h"
#include "target/preload.h"
#include "target/preload_heap.h"
#include "target/proc.h"
#include "target/spawn.h"
#include "version.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* TARGET_FDS: what it prints to either stream, and what becomes of it. */
enum {
    TARGET_FDS = 3,
    NAMES_MAX = 10000,
    POLL_MS = 100,
    CPUS_POLLED_MAX = 4096,
    PART_FDS_MAX = 16
};

/* A collector beside the cpu collector. */
struct record_part {
    const struct collector_ops *ops;
    struct collector *collector;
};
enum { RECORD_PARTS_MAX = 4 };

/* The recording that has to step back, and the one that did so before: it is kept until the new one
 * has begun. Empty: there is none. */
struct aside {
    char old[PATH_MAX];
    char older[PATH_MAX];
};

/* What the steps of one recording share. */
struct record {
    const struct record_run_opts *opts;
    struct recording_writer *writer;
    struct aside aside;
    bool begun;            /* the target runs, and is looked at */
    struct collector *cpu; /* the others follow it */
    struct record_part parts[RECORD_PARTS_MAX];
    size_t part_count;
    struct collector *offcpu;          /* one of the parts, or NULL */
    struct collector *locks;           /* the same */
    struct collector *io;              /* the same */
    struct collector *heap;            /* the same */
    struct preload_heap *preload_heap; /* the library in the target, for `heap` */
    char heap_user_na[512]; /* why the kernel tells of the heap, not the library; empty */
    unsigned snapshots;     /* asked for so far */
    bool snapshots_watched;
    struct preload *preload; /* the library in the target, for `locks` and `io` */
    char library_na[512];    /* why there is none although it would help; empty */
    char locks_na[512];      /* what that means for locks; empty */
    struct spawn *spawn;     /* NULL unless the target is ours */
    int pidfd;               /* of a process that is not; -1 without one */
    struct pollfd *fds;      /* the rings, then the target */
    size_t fd_count;
    struct progress progress;
    void (*old_xfsz)(int);
    uint64_t start_ns, end_ns; /* of collecting; no end: it goes on */
    bool collecting;           /* false: stopped or failed, the target runs on */
    bool left;                 /* the target was interrupted and did not end */
    int failed;                /* the first failure of ours; it must not end the target */
    struct why why;            /* its words */
    struct spawn_result spawned;
};

/* As perf does: the recording of before stays, one step back. What is no recording of ours, or one
 * that somebody still writes, is left for recording_create() to refuse. */
static int output_set_aside(const char *path, struct aside *aside, struct why *why)
{
    struct identity identity;
    char old[PATH_MAX], older[PATH_MAX];
    if (identify_recording(path, &identity, NULL) < 0 || recording_fold(path) < 0)
        return 0;
    if (snprintf(old, sizeof(old), "%s.old", path) >= PATH_MAX ||
        snprintf(older, sizeof(older), "%s.XXXXXX", old) >= PATH_MAX)
        return why_set(why, WHY_USAGE, ENAMETOOLONG, NULL, "the path of -o is too long");
    bool has_old = access(old, F_OK) == 0;
    if (has_old && (identify_recording(old, &identity, NULL) < 0 || identity.has_wal))
        return why_set(why, WHY_USAGE, EEXIST, "choose another name with -o, or move it away",
                       "'%s' exists already, and '%s' is in the way of keeping it", path, old);
    AUTO(fd_close) int place = has_old ? mkostemp(older, O_CLOEXEC) : -1;
    if (has_old && (place < 0 || rename(old, older) < 0)) {
        int error = errno;
        if (place >= 0)
            unlink(older);
        return why_errno(why, error, "choose another name with -o", "cannot rename '%s'", old);
    }
    memcpy(aside->older, older, has_old ? sizeof(older) : 0);
    memcpy(aside->old, old, sizeof(old));
    if (rename(path, old) < 0)
        return why_errno(why, errno, "choose another name with -o", "cannot rename '%s' to '%s'",
                         path, old);
    return 0;
}

static void aside_keep(struct aside *aside, const char *path)
{
    if (aside->older[0])
        unlink(aside->older);
    aside->older[0] = '\0';
    if (aside->old[0])
        log_info("the recording that was '%s' is '%s' now", path, aside->old);
}

/* Where something has come in its place it stays, or that would be lost. */
static void aside_back(const char *from, const char *to)
{
    int error = access(to, F_OK) == 0 ? EEXIST : rename(from, to) < 0 ? errno : 0;
    if (error)
        log_warning("the recording that was '%s' is left as '%s': %s", to, from, strerror(error));
}

/* As it was. */
static void aside_undo(const struct aside *aside, const char *path)
{
    if (aside->old[0] && access(aside->old, F_OK) == 0)
        aside_back(aside->old, path);
    if (aside->older[0])
        aside_back(aside->older, aside->old);
}

static int output_create(const struct record_run_opts *opts, struct aside *aside,
                         struct recording_writer **ret, char path[PATH_MAX], struct why *why)
{
    struct recording_opts recording = {.version = WHYSLOW_VERSION};
    if (opts->output) {
        if (snprintf(path, PATH_MAX, "%s", opts->output) >= PATH_MAX)
            return why_set(why, WHY_USAGE, ENAMETOOLONG, NULL, "the path of -o is too long");
        int done = output_set_aside(path, aside, why);
        if (done == 0)
            done = recording_create(path, &recording, ret, why);
        if (done < 0)
            aside_undo(aside, path);
        return done;
    }
    int r = -EEXIST;
    for (int i = 1; i <= NAMES_MAX && r == -EEXIST; i++) {
        snprintf(path, PATH_MAX, i == 1 ? "recording.whyslow" : "recording-%d.whyslow", i);
        r = recording_create(path, &recording, ret, why);
    }
    return r;
}

/* Nothing was recorded: no file is better than an empty one. */
static void output_remove(const char *path)
{
    char beside[PATH_MAX + 8];
    unlink(path);
    snprintf(beside, sizeof(beside), "%s-wal", path);
    unlink(beside);
    snprintf(beside, sizeof(beside), "%s-shm", path);
    unlink(beside);
}

static bool locks_want_library(const struct record *record)
{
    const struct offcpu_opts *offcpu = &record->opts->offcpu;
    return offcpu->locks && offcpu_plan(offcpu) != TIER_KERNEL;
}

/* Without the kernel's help only the program itself can tell who holds its locks, and what it
 * asks of the kernel. Not having the library is no failure yet: waits are seen from outside then,
 * and the recording says so. */
static void library_prepare(struct record *record)
{
    const struct io_opts *io = &record->opts->io;
    struct why why = {0};
    struct probe probe = {0};
    bool locks = locks_want_library(record);
    if (!locks && (!io->calls || io_plan(io) == TIER_KERNEL))
        return;
    probe_preload(&probe);
    if (record->opts->cpu.scope != TARGET_SPAWNED)
        snprintf(record->library_na, sizeof(record->library_na),
                 "the library for %s cannot be put into a program that runs already",
                 locks ? "locks" : "calls");
    else if (!probe.ok)
        snprintf(record->library_na, sizeof(record->library_na), "%.200s; %.200s", probe.detail,
                 probe.remedy);
    else if (preload_open(&record->preload, &why) < 0)
        snprintf(record->library_na, sizeof(record->library_na), "%.300s%s%.200s", why.what,
                 why.remedy[0] ? "; " : "", why.remedy);
    if (locks)
        memcpy(record->locks_na, record->library_na, sizeof(record->locks_na));
}

/* The heap can be seen in two ways, or not at all: then there is nothing to record. */
static int heap_prepare(struct record *record, struct why *why)
{
    const struct heap_opts *heap = &record->opts->heap;
    enum target_scope scope = record->opts->cpu.scope;
    if (!heap->on)
        return 0;
    enum tier tier = heap_plan(heap, scope == TARGET_SPAWNED ? record->opts->program : NULL, why);
    if (tier == TIER_NONE)
        return -why->error;
    struct preload_heap_opts opts = {
        .cache_dir = record->opts->cpu.cache_dir,
        .sample_bytes = heap->sample_bytes,
        .temporary_within = MAX(heap->temporary_within, 1u),
        .log = heap->log,
    };
    if (tier == TIER_USER)
        return preload_heap_open(&opts, &record->preload_heap, why);
    if (scope == TARGET_SPAWNED && heap->tier != TIER_KERNEL &&
        preload_heap_fits(record->opts->program, record->heap_user_na,
                          sizeof(record->heap_user_na)))
        record->heap_user_na[0] = '\0';
    return 0;
}

static const char *const *target_environment(const struct record *record)
{
    const char *const *others = record->preload ? preload_environment(record->preload) : NULL;
    return record->preload_heap ? preload_heap_environment(record->preload_heap, others) : others;
}

/* The target has our signals as they were given to us; from here on this one is ours. */
static void snapshots_watch(struct record *record)
{
    if (!record->opts->heap.on)
        return;
    interrupt_snapshot_watch(true);
    record->snapshots_watched = true;
}

static int target_start(struct record *record, struct why *why)
{
    library_prepare(record);
    int r = heap_prepare(record, why);
    if (r < 0)
        return r;
    if (record->opts->cpu.scope != TARGET_SPAWNED) {
        interrupt_target_set(record, INTERRUPT_OTHERS, 0);
        snapshots_watch(record);
        return 0;
    }
    struct spawn_opts spawn = {
        .argv = record->opts->argv,
        .path = record->opts->program,
        .input = SPAWN_INHERIT,
        .output = record->opts->output_to_stderr ? SPAWN_STDERR : SPAWN_INHERIT,
        .error = SPAWN_INHERIT,
        .foreground = true,
        .hold = true,
        .environment = target_environment(record),
    };
    if (record->opts->apart) {
        spawn.input = record->opts->input_path ? SPAWN_FILE : SPAWN_NULL;
        spawn.input_path = record->opts->input_path;
        spawn.output = spawn.error = SPAWN_CAPTURE;
        spawn.foreground = false;
        spawn.timeout_ns = record->opts->timeout_ns;
        spawn.end_group = true;
    }
    /* The target is given what we were given. */
    signal(SIGXFSZ, record->old_xfsz);
    r = spawn_start(&spawn, &record->spawn, why);
    signal(SIGXFSZ, SIG_IGN);
    snapshots_watch(record);
    if (r == 0 && record->preload)
        preload_share(record->preload, spawn_pid(record->spawn));
    if (r == 0 && record->preload_heap)
        preload_heap_share(record->preload_heap, spawn_pid(record->spawn));
    return r;
}

static int part_add(struct record *record, const struct collector_ops *ops,
                    struct collector *collector)
{
    record->parts[record->part_count++] = (struct record_part){ops, collector};
    return 0;
}

static int locks_part(struct record *record, struct collector_target *target, struct why *why)
{
    struct sink *sink = recording_writer_sink(record->writer);
    if (record->preload && locks_want_library(record)) {
        /* First, so that the other one knows which waits are told already. */
        int r = locks_user_start(record->preload, target, sink, &record->locks, why);
        if (r < 0)
            return r;
        target->locks = record->locks;
        return part_add(record, &locks_user_ops, record->locks);
    }
    if (record->locks_na[0] && locks_user_document(sink, record->locks_na) < 0)
        return why_nomem(why);
    return 0;
}

static int io_part(struct record *record, const struct collector_target *target, struct why *why)
{
    const struct io_opts *opts = &record->opts->io;
    int r = io_start(opts, target, recording_writer_sink(record->writer), &record->io, why);
    if (r == -ENOTSUP && record->library_na[0] && opts->tier == TIER_USER)
        return why_set(why, WHY_DENIED, -r,
                       "record as root, or with CAP_BPF and CAP_PERFMON: the kernel tells then",
                       "calls cannot be seen: %.400s", record->library_na);
    return r < 0 ? r : part_add(record, &collector_io, record->io);
}

static int parts_start(struct record *record, int pid, struct why *why)
{
    const struct record_run_opts *opts = record->opts;
    struct collector_target target = {
        .pid = pid,
        .start_ns = clock_mono_ns(),
        .command = opts->cpu.command,
        .program = opts->program,
        .scope = opts->cpu.scope,
        .cgroup = opts->cpu.cgroup,
        .cache_dir = opts->cpu.cache_dir,
        .cpu = record->cpu,
        .preload = record->preload,
    };
    int r = locks_part(record, &target, why);
    if (r == 0 && (opts->offcpu.waits || opts->offcpu.locks)) {
        r = offcpu_start(&opts->offcpu, &target, recording_writer_sink(record->writer),
                         &record->offcpu, why);
        if (r == 0)
            r = part_add(record, &collector_offcpu, record->offcpu);
    }
    if (r == 0 && opts->io.calls)
        r = io_part(record, &target, why);
    if (r == 0 && opts->heap.on) {
        r = heap_start(&opts->heap, record->preload_heap, &target,
                       recording_writer_sink(record->writer), &record->heap, why);
        if (r == 0)
            r = part_add(record, &collector_heap, record->heap);
    }
    return r;
}

static int collector_start(struct record *record, struct why *why)
{
    const struct offcpu_opts *offcpu = &record->opts->offcpu;
    struct cpu_opts cpu = record->opts->cpu;
    cpu.switches |= (offcpu->waits || offcpu->locks) && offcpu_plan(offcpu) != TIER_KERNEL;
    if (record->spawn)
        cpu.pid = spawn_pid(record->spawn);
    int r = cpu_start(&cpu, recording_writer_sink(record->writer), &record->cpu, why);
    if (r == 0)
        r = parts_start(record, cpu.pid, why);
    if (r < 0)
        return r;
    record->fds = calloc(CPUS_POLLED_MAX + 3 * PART_FDS_MAX + 2 + TARGET_FDS, sizeof(*record->fds));
    if (!record->fds)
        return why_nomem(why);
    record->fd_count = cpu_poll_fds(record->cpu, record->fds, CPUS_POLLED_MAX);
    if (record->offcpu)
        record->fd_count += offcpu_poll_fds(record->offcpu, record->fds + record->fd_count,
                                            PART_FDS_MAX);
    if (record->io)
        record->fd_count += io_poll_fds(record->io, record->fds + record->fd_count, PART_FDS_MAX);
    if (record->heap)
        record->fd_count += heap_poll_fds(record->heap, record->fds + record->fd_count,
                                          PART_FDS_MAX);
    if (record->locks)
        record->fd_count += locks_user_poll_fds(record->locks, record->fds + record->fd_count, 1);
    if (record->spawn) {
        for (int i = 0; i < TARGET_FDS; i++)
            record->fds[record->fd_count++] = (struct pollfd){.fd = -1, .events = POLLIN};
        record->fds[record->fd_count - 1].fd = spawn_event_fd(record->spawn);
    }
    return 0;
}

/* One moment for all, when everything is there; only then may the target run. */
static int collectors_begin(struct record *record, struct why *why)
{
    record->start_ns = clock_mono_ns();
    int r = collector_cpu.begin(record->cpu, record->start_ns, why);
    for (size_t i = 0; i < record->part_count && r == 0; i++)
        if (record->parts[i].ops->begin)
            r = record->parts[i].ops->begin(record->parts[i].collector, record->start_ns, why);
    record->collecting = r == 0;
    return r;
}

/* Ours to fail, not the target's: it runs on, and the first reason is kept. */
static void fail(struct record *record, int r, const struct why *why)
{
    record->collecting = false;
    if (record->failed == 0) {
        record->failed = r;
        record->why = *why;
    }
}

static void snapshot_look(struct record *record)
{
    if (!record->snapshots_watched || record->snapshots == interrupt_snapshot_count())
        return;
    record->snapshots = interrupt_snapshot_count();
    heap_snapshot(record->heap);
}

static void collect(struct record *record)
{
    struct why why = {0};
    if (!record->collecting)
        return;
    snapshot_look(record);
    int r = collector_cpu.drain(record->cpu, &why);
    for (size_t i = 0; i < record->part_count && r == 0; i++)
        r = record->parts[i].ops->drain(record->parts[i].collector, &why);
    if (recording_writer_tick(record->writer) < 0) {
        why = *recording_writer_why(record->writer);
        r = -why.error;
    }
    if (r < 0)
        fail(record, r, &why);
}

static void collect_stop(struct record *record)
{
    struct why why = {0};
    if (!record->collecting)
        return;
    record->collecting = false;
    cpu_halt(record->cpu); /* to stop the others takes a while, too */
    record->end_ns = clock_mono_ns();
    /* The others first: what they have seen until now is taken with the last announcements. */
    int r = 0;
    for (size_t i = 0; i < record->part_count && r == 0; i++)
        r = record->parts[i].ops->stop(record->parts[i].collector, &why);
    if (r < 0)
        fail(record, r, &why);
    r = collector_cpu.stop(record->cpu, &why);
    if (r < 0)
        fail(record, r, &why);
}

/* A zombie has ended, too: nobody may ever wait for it. */
static bool target_gone(const struct record *record, bool ready)
{
    struct proc_stat stat;
    if (record->pidfd >= 0)
        return ready;
    return proc_stat_read(record->opts->cpu.pid, 0, &stat) < 0 || stat.state == 'Z' ||
           stat.state == 'X';
}

/* 1 when the target has ended, or is left to itself. */
static int target_look(struct record *record, struct why *why)
{
    const struct pollfd *own = &record->fds[record->fd_count - 1];
    bool ready = own->revents != 0;
    if (!record->spawn)
        return record->opts->cpu.scope == TARGET_ATTACHED && target_gone(record, ready);
    ready = ready || own[-1].revents || own[-2].revents;
    int r = spawn_wait(record->spawn, clock_mono_ns() + (ready ? NS_PER_MS : 0), why);
    record->left = r == SPAWN_UNMOVED;
    return r > 0 ? 1 : r;
}

static void progress_show(struct record *record)
{
    struct cpu_counts counts;
    if (record->spawn && !record->opts->apart)
        return; /* the terminal is the target's */
    cpu_counts(record->cpu, &counts);
    progress_update(&record->progress, counts.samples,
                    record->spawn ? "samples" : "samples; Ctrl-C ends the recording");
}

static int pump(struct record *record, struct why *why)
{
    const struct record_run_opts *opts = record->opts;
    for (;;) {
        if (record->spawn) { /* a stream that has ended would wake us for ever */
            record->fds[record->fd_count - 3].fd = spawn_output_fd(record->spawn);
            record->fds[record->fd_count - 2].fd = spawn_error_fd(record->spawn);
        }
        poll(record->fds, record->fd_count, POLL_MS);
        int r = target_look(record, why);
        if (r < 0)
            return r;
        collect(record);
        if (r > 0)
            return 0;
        bool over = opts->duration_ns > 0 &&
                    clock_mono_ns() - record->start_ns >= opts->duration_ns;
        if (!record->spawn && (over || interrupt_count() > 0 || record->failed))
            return 0;
        if (over)
            collect_stop(record); /* the rings no longer fill: only the target is waited for */
        progress_show(record);
    }
}

static int rusage_put(struct record *record)
{
    if (!record->spawn || record->left)
        return 0;
    struct sink *sink = recording_writer_sink(record->writer);
    uint64_t cpu_ns = record->spawned.user_ns + record->spawned.system_ns;
    /* With -d the account goes on after the samples: the two cannot be compared. */
    if (record->opts->duration_ns > 0 && record->spawned.wall_ns > record->opts->duration_ns)
        return 0;
    return sink_counter(sink, "cpu.rusage_ns", UNIT_NS, cpu_ns);
}

/* What is recorded, and when: at the start, so that it is there after a kill, and once more when
 * the end is known. */
static int target_put(struct record *record)
{
    static const char *const scopes[] = {
        [TARGET_SPAWNED] = "command",
        [TARGET_ATTACHED] = "process",
        [TARGET_SYSTEM] = "system",
        [TARGET_CGROUP] = "cgroup",
    };
    const struct cpu_opts *cpu = &record->opts->cpu;
    int pid = record->spawn ? spawn_pid(record->spawn) : cpu->pid;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return -ENOMEM;
    struct jsonw json;
    jsonw_init(&json, out, 0);
    jsonw_object_begin(&json);
    jsonw_key(&json, "scope");
    jsonw_text(&json, str_from(scopes[cpu->scope]));
    jsonw_key(&json, "pid");
    jsonw_i64(&json, pid);
    jsonw_key(&json, "start_ns");
    jsonw_u64(&json, record->start_ns);
    if (record->end_ns > 0) {
        jsonw_key(&json, "end_ns");
        jsonw_u64(&json, record->end_ns);
    }
    /* What was asked for: the first program that is seen may be one that it became. */
    if (record->spawn && cpu->command) {
        jsonw_key(&json, "command");
        jsonw_text(&json, str_from(cpu->command));
    }
    jsonw_object_end(&json);
    int r = fclose(out) == 0 ? 0 : -ENOMEM;
    if (r == 0)
        r = sink_document(recording_writer_sink(record->writer), "target", (struct str){text, len});
    free(text);
    return r;
}

static int finish(struct record *record, struct why *why)
{
    collect_stop(record);
    if (record->left) {
        spawn_leave(record->spawn);
        log_warning("the program (pid %d) runs on: it did not end within 5 s of the signal; what "
                    "it did until then "
                    "is recorded",
                    spawn_pid(record->spawn));
    } else if (record->spawn) {
        int r = spawn_finish(record->spawn, &record->spawned, why);
        if (r < 0)
            return r;
    }
    if (record->failed) {
        *why = record->why;
        return record->failed;
    }
    int r = rusage_put(record);
    if (r == 0)
        r = target_put(record);
    if (r < 0)
        return why_errno(why, -r, NULL, "cannot write to the recording");
    for (size_t i = 0; i < record->part_count && r == 0; i++)
        r = record->parts[i].ops->finish(record->parts[i].collector, why);
    if (r == 0)
        r = collector_cpu.finish(record->cpu, why); /* last: it names what all of them saw */
    return r < 0 ? r : recording_writer_finish(record->writer, why);
}

static int fingerprint_put(struct record *record, struct why *why)
{
    AUTO(arena_deinit) struct arena arena = ARENA_INIT;
    struct host host = {.root = "", .arena = &arena};
    struct fingerprint_input input = {
        .host = &host, .binary_na = "not read while recording", .folder = "."};
    struct value fingerprint = fingerprint_read(&input);
    char *json = NULL;
    size_t len = 0;
    int r = json_text_make("whyslow.fingerprint/1", &fingerprint, &json, &len, why);
    if (r < 0)
        return r;
    r = sink_document(recording_writer_sink(record->writer), "fingerprint",
                      (struct str){json, len});
    free(json);
    return r < 0 ? why_errno(why, -r, NULL, "cannot write to the recording") : 0;
}

/* Nobody else writes to the terminal. */
static bool is_alone(const struct record_run_opts *opts)
{
    return opts->cpu.scope != TARGET_SPAWNED || opts->apart;
}

static int record_steps(struct record *record, const char *path, struct why *why)
{
    int r = fingerprint_put(record, why);
    if (r == 0)
        r = target_start(record, why);
    if (r == 0)
        r = collector_start(record, why);
    if (r == 0)
        r = collectors_begin(record, why);
    if (r == 0) {
        r = target_put(record);
        if (r < 0)
            return why_errno(why, -r, NULL, "cannot write to the recording");
    }
    if (r == 0 && record->spawn)
        r = spawn_release(record->spawn, why);
    if (r < 0)
        return r;
    if (is_alone(record->opts)) { /* from now on it counts, and the clock of -d runs */
        progress_end(&record->progress);
        progress_begin(&record->progress, record->opts->progress, "recording", 0);
    }
    record->begun = true;
    aside_keep(&record->aside, path);
    r = pump(record, why);
    if (r == 0)
        r = finish(record, why);
    return r;
}

static int shell_status(const struct record *record)
{
    int status = record->spawned.status;
    if (!record->spawn)
        return 0;
    if (record->left)
        return 128 + interrupt_signal();
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void result_fill(struct record *record, struct record_run_result *result)
{
    struct cpu_counts counts = {0};
    if (record->cpu) {
        const struct perf_plan *plan = cpu_plan(record->cpu);
        cpu_counts(record->cpu, &counts);
        perf_plan_event(plan, result->event, sizeof(result->event));
        if (!plan->kernel)
            snprintf(result->kernel_na, sizeof(result->kernel_na), "%s", plan->kernel_na);
        const char *deep_na = cpu_deep_na(record->cpu);
        if (deep_na && counts.truncated > 0)
            snprintf(result->deep_na, sizeof(result->deep_na), "%s", deep_na);
    }
    if (record->offcpu) {
        const char *na = offcpu_not_higher(record->offcpu);
        snprintf(result->waits_tier, sizeof(result->waits_tier), "%s",
                 tier_name(offcpu_tier(record->offcpu)));
        snprintf(result->waits_na, sizeof(result->waits_na), "%s", na ? na : "");
    }
    if (record->io) {
        const char *na = io_not_higher(record->io);
        snprintf(result->io_tier, sizeof(result->io_tier), "%s", tier_name(io_tier(record->io)));
        snprintf(result->io_na, sizeof(result->io_na), "%s", na ? na : "");
    }
    if (record->heap) {
        const char *na = heap_na(record->heap);
        snprintf(result->heap_tier, sizeof(result->heap_tier), "%s", heap_tier(record->heap));
        snprintf(result->heap_na, sizeof(result->heap_na), "%.400s%s%.300s", na ? na : "",
                 na && record->heap_user_na[0] ? "; the library was of no use, since " : "",
                 na ? record->heap_user_na : "");
    }
    if (record->locks && locks_user_na(record->locks))
        snprintf(record->locks_na, sizeof(record->locks_na), "%s", locks_user_na(record->locks));
    snprintf(result->locks_na, sizeof(result->locks_na), "%s", record->locks_na);
    result->samples = counts.samples;
    result->status = shell_status(record);
    result->spawned = record->spawned;
}

/* An empty answer is none. */
static int heap_check(const struct record_run_opts *opts, const struct record_run_result *result,
                      struct why *why)
{
    bool is_alone = opts->cpu.no_samples && !opts->offcpu.waits && !opts->offcpu.locks &&
                    !opts->io.calls;
    if (!result->heap_na[0] || !is_alone)
        return 0;
    return record_heap_unseen(result, why);
}

int record_heap_unseen(const struct record_run_result *result, struct why *why)
{
    bool is_user = strcmp(result->heap_tier, "user") == 0;
    return why_set(why, WHY_NOTHING, ENODATA,
                   is_user ? "as root '--tier kernel' sees programs that do not take the library"
                           : "does it allocate through malloc()? 'whyslow doctor' tells what it is",
                   "no allocation was seen: %.600s", result->heap_na);
}

int record_into_file(const struct record_run_opts *opts, struct record_run_result *ret,
                     struct why *why)
{
    /* A file that may not grow is an error we can name, at every write of ours. */
    struct record record = {.opts = opts, .pidfd = -1, .old_xfsz = signal(SIGXFSZ, SIG_IGN)};
    struct record_run_result result = {0};
    int r = output_create(opts, &record.aside, &record.writer, result.path, why);
    if (r < 0) {
        signal(SIGXFSZ, record.old_xfsz);
        return r;
    }
    if (is_alone(opts))
        progress_prepare(&record.progress, opts->progress,
                         opts->cpu.scope == TARGET_SPAWNED ? "starting" : "attaching");
    r = record_steps(&record, result.path, why);
    if (is_alone(opts))
        progress_end(&record.progress);
    result_fill(&record, &result);
    if (r == 0)
        r = heap_check(opts, &result, why);
    if (record.snapshots_watched)
        interrupt_snapshot_watch(false);
    for (size_t i = record.part_count; i-- > 0;)
        record.parts[i].ops->close(record.parts[i].collector);
    if (record.cpu)
        collector_cpu.close(record.cpu);
    spawn_close(record.spawn);
    interrupt_target_set(&record, INTERRUPT_NONE, 0);
    preload_close(record.preload);
    preload_heap_close(record.preload_heap);
    fd_close(&record.pidfd);
    free(record.fds);
    recording_writer_close(record.writer);
    signal(SIGXFSZ, record.old_xfsz);
    bool is_heap = record.heap && !result.heap_na[0];
    bool empty = result.samples == 0 && !record.offcpu && !record.io && !is_heap;
    if (r < 0 && (empty || !record.begun)) {
        output_remove(result.path);
        aside_undo(&record.aside, result.path);
    }
    if (r == 0)
        *ret = result;
    return r;
}
