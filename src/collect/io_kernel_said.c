/* What is said on sockets and in libraries, in the kernel tier: who takes the records of the ring
 * that are about it, whom they ask for threads, stacks and objects, and which processes are looked
 * through for libraries that know more than the kernel does. */
#include "base/clock.h"
#include "collect/io_heads.h"
#include "collect/io_kernel_parts.h"
#include "collect/sqlite_calls.h"
#include "collect/tls.h"
#include "collect/uprobes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PROCESSES_MAX = 1024,
    LOOKS_A_ROUND = 16,
    LOOK_FIRST_MS = 50, /* then twice as long, again and again, up to: */
    LOOK_LAST_MS = 60000,
};

/* A process that is looked through now and then: libraries come with exec and dlopen(). */
struct looked {
    int pid;
    uint32_t pause_ms;
    uint64_t next_ns;
};

struct io_kernel_said {
    struct io_requests *requests;
    struct io_heads *heads;
    struct uprobes *uprobes; /* NULL: */
    char uprobes_na[512];    /* why not */
    struct tls *tls;
    struct sqlite_calls *sqlite;
    struct uprobes_counts probes; /* as of the end */
    VEC(struct looked) processes;
    uint64_t processes_beyond;
};

/* ---- ids ---- */

static int thread_of(void *context, uint32_t tid, uint32_t tgid, uint32_t exec, uint64_t time_ns,
                     uint32_t *ret_process, uint32_t *ret_thread)
{
    struct collector *c = context;
    struct told_thread *seen;
    int r = told_threads_get(&c->threads, tid, tgid, exec, time_ns, &seen);
    if (r < 0)
        return r;
    *ret_process = seen->process;
    *ret_thread = seen->thread;
    return 0;
}

static int stack_of(void *context, uint64_t ref, uint64_t time_ns, uint32_t *ret)
{
    struct collector *c = context;
    *ret = told_stacks_find(&c->told, ref, time_ns);
    return 0;
}

static int object_of(void *context, const struct object_record *record, uint32_t *ret)
{
    struct collector *c = context;
    int r = objects_take(c->objects, record, sizeof(*record));
    return r < 0 ? r : objects_find(c->objects, &record->id, ret);
}

/* ---- libraries ---- */

static int tls_start(struct collector *c, const struct collector_target *target, struct why *why)
{
    const struct tls_opts opts = {
        .cache_dir = target->cache_dir,
        .told_fd = bpf_unit_map_fd(c->unit, "told"),
        .threads_fd = c->fds.threads,
        .now_fd = bpf_unit_map_fd(c->unit, "tls_now"),
        .begun_fd = bpf_unit_map_fd(c->unit, "begun"),
        .ring_bytes = c->ring_bytes,
    };
    return tls_open(&opts, c->said->uprobes, &c->said->tls, why);
}

static int sqlite_start(struct collector *c, const struct collector_target *target, struct why *why)
{
    const struct sqlite_calls_opts opts = {
        .cache_dir = target->cache_dir,
        .stacks = c->opts.stacks,
        .ring_bytes = c->ring_bytes,
        .told_fd = bpf_unit_map_fd(c->unit, "told"),
        .threads_fd = c->fds.threads,
        .control_fd = c->fds.control,
        .deep_fd = c->fds.deep,
        .known_fd = c->fds.known,
        .known_long_fd = c->fds.known_long,
        .begun_fd = bpf_unit_map_fd(c->unit, "begun"),
        .requests = c->said->requests,
        .context = c,
        .thread = thread_of,
        .stack = stack_of,
    };
    return sqlite_calls_open(&opts, c->said->uprobes, &c->said->sqlite, why);
}

static int process_add(struct io_kernel_said *said, int pid, uint64_t now_ns)
{
    struct looked looked = {pid, LOOK_FIRST_MS, now_ns + LOOK_FIRST_MS * NS_PER_MS};
    for (size_t i = 0; i < said->processes.len; i++)
        if (said->processes.data[i].pid == pid) {
            said->processes.data[i] = looked;
            return 0;
        }
    if (said->processes.len >= PROCESSES_MAX) {
        said->processes_beyond++;
        return 0;
    }
    return VEC_PUSH(&said->processes, looked);
}

/* Not having them is no failure: the recording says why. */
static int libraries_start(struct collector *c, const struct collector_target *target)
{
    struct io_kernel_said *said = c->said;
    struct why why = {0};
    bool held = target->scope == TARGET_SPAWNED;
    int r = uprobes_open(&said->uprobes, &why);
    if (r == 0)
        r = tls_start(c, target, &why);
    if (r == 0)
        r = sqlite_start(c, target, &why);
    if (r < 0) {
        snprintf(said->uprobes_na, sizeof(said->uprobes_na), "%.300s%s%.200s", why.what,
                 why.remedy[0] ? "; " : "", why.remedy);
        uprobes_close(said->uprobes);
        said->uprobes = NULL;
        return r == -ENOMEM ? r : 0;
    }
    r = uprobes_usual(said->uprobes);
    if (r == 0 && (held || target->scope == TARGET_ATTACHED)) {
        if (!held)
            r = uprobes_process(said->uprobes, target->pid, true);
        if (r == 0)
            r = process_add(said, target->pid, clock_mono_ns());
    }
    return r;
}

int io_said_task(struct collector *c, enum cpu_task task, int pid, int tid)
{
    struct io_kernel_said *said = c->said;
    if (!said || !said->uprobes || pid != tid)
        return 0;
    if (task != CPU_TASK_EXIT)
        return process_add(said, pid, clock_mono_ns());
    for (size_t i = 0; i < said->processes.len; i++)
        if (said->processes.data[i].pid == pid) {
            said->processes.data[i] = said->processes.data[--said->processes.len];
            break;
        }
    return 0;
}

int io_said_drain(struct collector *c, uint64_t now_ns)
{
    struct io_kernel_said *said = c->said;
    int r = said ? io_requests_drain(said->requests, now_ns) : 0, looks = 0;
    if (r < 0 || !said || !said->uprobes)
        return r;
    for (size_t i = 0; i < said->processes.len && looks < LOOKS_A_ROUND && r == 0; i++) {
        struct looked *looked = &said->processes.data[i];
        if (looked->next_ns > now_ns)
            continue;
        r = uprobes_process(said->uprobes, looked->pid, true);
        looked->pause_ms = MIN(2 * looked->pause_ms, (uint32_t)LOOK_LAST_MS);
        looked->next_ns = now_ns + looked->pause_ms * NS_PER_MS;
        looks++;
    }
    return r;
}

/* ---- life ---- */

int io_said_start(struct collector *c, const struct collector_target *target, struct why *why)
{
    if (!c->opts.requests)
        return 0;
    const struct io_requests_opts opts = {.payloads = c->opts.payloads};
    struct io_heads_opts heads = {
        .conns_fd = bpf_unit_map_fd(c->unit, "io_conns"),
        .counts_fd = bpf_unit_map_fd(c->unit, "io_heads_counts"),
        .context = c,
        .thread = thread_of,
        .stack = stack_of,
        .object = object_of,
    };
    c->said = calloc(1, sizeof(*c->said));
    if (!c->said || io_requests_open(&opts, c->sink, &c->said->requests) < 0)
        return why_nomem(why);
    heads.requests = c->said->requests;
    if (io_heads_open(&heads, &c->said->heads) < 0 || libraries_start(c, target) < 0)
        return why_nomem(why);
    return 0;
}

int io_said_take(struct collector *c, const struct offcpu_head *head, size_t bytes)
{
    int r = c->said ? io_heads_take(c->said->heads, head, bytes) : 0;
    if (r == 0 && c->said && c->said->sqlite)
        r = sqlite_calls_take(c->said->sqlite, head, bytes);
    if (r == 0)
        c->malformed++;
    return r < 0 ? r : 0;
}

void io_said_stop(struct collector *c)
{
    if (!c->said || !c->said->uprobes)
        return;
    c->said->probes = uprobes_counts(c->said->uprobes);
    uprobes_close(c->said->uprobes);
    c->said->uprobes = NULL;
}

const char *io_said_na(const struct collector *c)
{
    return c->said && c->said->uprobes_na[0] ? c->said->uprobes_na : NULL;
}

bool io_said_hides_callers(const struct collector *c)
{
    return c->said && c->said->probes.trampolines > 0;
}

uint64_t io_said_encrypted(const struct collector *c)
{
    return c->said ? io_requests_encrypted(c->said->requests) : 0;
}

int io_said_finish(struct collector *c)
{
    struct io_kernel_said *said = c->said;
    if (!said)
        return 0;
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        {"io.libraries", said->probes.files},
        {"io.libraries.refused", said->probes.refused},
        {"io.libraries.beyond", said->probes.beyond + said->processes_beyond},
        {"io.libraries.trampolines", said->probes.trampolines},
    };
    int r = io_requests_finish(said->requests, c->stop_ns);
    if (r == 0)
        r = io_heads_finish(said->heads, c->sink);
    if (r == 0 && said->tls)
        r = tls_finish(said->tls, c->sink);
    if (r == 0 && said->sqlite)
        r = sqlite_calls_finish(said->sqlite, c->sink);
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        r = sink_counter(c->sink, counters[i].name, UNIT_COUNT, counters[i].value);
    return r;
}

void io_said_close(struct collector *c)
{
    struct io_kernel_said *said = c->said;
    if (!said)
        return;
    uprobes_close(said->uprobes);
    tls_close(said->tls);
    sqlite_calls_close(said->sqlite);
    io_heads_close(said->heads);
    io_requests_close(said->requests);
    VEC_FREE(&said->processes);
    free(said);
    c->said = NULL;
}
