/* From what the program adds up to rows, events and samples of the sink. */
#include "base/clock.h"
#include "collect/offcpu_kernel_parts.h"
#include "model/wait_book.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

/* ---- who ---- */

int offcpu_seen_get(struct collector *c, uint32_t tid, uint32_t tgid, uint32_t exec,
                    uint64_t time_ns, struct offcpu_seen **ret)
{
    bool fresh;
    if (c->seen.len >= OFFCPU_THREADS_SEEN_MAX)
        return -E2BIG;
    uint64_t *at = map_u64_at(&c->seen_at, (uint64_t)tid << 32 | exec, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh || *at == 0) {
        struct offcpu_seen none = {0};
        if (VEC_PUSH(&c->seen, none) < 0)
            return -ENOMEM;
        *at = c->seen.len;
    }
    struct offcpu_seen *seen = &c->seen.data[*at - 1];
    uint64_t *last = map_u64_at(&c->exec_of, tid, NULL);
    if (!last)
        return -ENOMEM;
    *ret = seen;
    if (seen->ended)
        return 0;
    if (*last > exec) { /* it has become another program: what it was can no longer be asked */
        const uint64_t *now = map_u64_find(&c->seen_at, (uint64_t)tid << 32 | *last);
        if (seen->thread == 0 && now && c->seen.data[*now - 1].thread != 0) {
            seen->thread = c->seen.data[*now - 1].thread;
            seen->process = c->seen.data[*now - 1].process;
        }
        seen->ended = seen->thread != 0;
        if (seen->ended)
            return 0;
    }
    *last = exec;
    const uint64_t *gone = map_u64_find(&c->gone, tid);
    if (gone && *gone != 0) {
        seen->thread = (uint32_t)*gone;
        seen->process = (uint32_t)(*gone >> 32);
        seen->ended = true;
        return 0;
    }
    /* Asked anew each time: a thread that changes its name is another one for the sink. */
    int r = stacks_thread(c->stacks, time_ns, (int)tgid, (int)tid, &seen->thread);
    if (r == 0)
        r = stacks_process(c->stacks, time_ns, (int)tgid, &seen->process);
    return r;
}

/* What the ring says of its end may come a little late: its ids are kept from here. */
static int gone_note(struct collector *c, uint64_t time_ns, int pid, int tid)
{
    uint32_t thread, process;
    uint64_t *gone = map_u64_at(&c->gone, (uint64_t)tid, NULL);
    if (!gone)
        return -ENOMEM;
    int r = stacks_thread(c->stacks, time_ns, pid, tid, &thread);
    if (r == 0)
        r = stacks_process(c->stacks, time_ns, pid, &process);
    if (r == 0)
        *gone = (uint64_t)process << 32 | thread;
    return r;
}

int offcpu_seen_task(struct collector *c, uint64_t time_ns, enum cpu_task task, int pid, int tid)
{
    const uint64_t *exec = map_u64_find(&c->exec_of, (uint64_t)tid);
    const uint64_t *at = exec ? map_u64_find(&c->seen_at, (uint64_t)tid << 32 | *exec) : NULL;
    struct offcpu_seen *seen = at ? &c->seen.data[*at - 1] : NULL;
    if (task == CPU_TASK_FORK) { /* the id was another thread's, which is gone */
        uint64_t *gone = map_u64_find(&c->gone, (uint64_t)tid);
        if (gone)
            *gone = 0;
        if (seen && seen->ended)
            *seen = (struct offcpu_seen){0};
        return 0;
    }
    int r = 0;
    if (seen)
        r = offcpu_seen_get(c, (uint32_t)tid, (uint32_t)pid, (uint32_t)*exec, time_ns, &seen);
    if (seen && r == 0)
        seen->ended = true;
    if (r == 0 && task == CPU_TASK_EXIT)
        r = gone_note(c, time_ns, pid, tid);
    return r;
}

/* ---- where ---- */

/* A stack by its ref, as of the moment when it was seen. */
static uint32_t user_part(struct collector *c, uint64_t ref, uint64_t time_ns)
{
    const uint64_t *at = ref ? map_u64_find(&c->ref_at, ref) : NULL;
    if (!at) {
        c->stray += ref != 0;
        return 0;
    }
    const struct offcpu_ref *entry = &c->refs.data[*at - 1];
    if (time_ns < entry->until_ns)
        return entry->stack;
    c->stale++;
    return 0;
}

/* ---- on what ---- */

/* Its name is asked for once, while the process is there. */
int offcpu_futex_see(struct collector *c, uint32_t process, uint32_t tgid, uint64_t address,
                     uint32_t *ret_object)
{
    struct object_info info = {.kind = OBJECT_FUTEX, .process = process, .key = address};
    bool fresh;
    int r = sink_object(c->sink, &info, ret_object);
    if (r < 0)
        return r;
    uint64_t *asked = map_u64_at(&c->futexes, *ret_object, &fresh);
    if (!asked)
        return -ENOMEM;
    if (!fresh)
        return 0;
    return lock_names_see(c->lock_names, c->stacks, (int)tgid, address, *ret_object);
}

static int object_of(struct collector *c, const struct offcpu_key *key, uint32_t process,
                     uint32_t *ret)
{
    struct object_id id = {
        .ino = key->object,
        .dev = key->object_device,
        .kind = key->object_kind,
        .flags = key->object_flags,
    };
    *ret = 0;
    switch (key->object_kind) {
    case OBJECT_NONE:
        return 0;
    case OBJECT_FUTEX:
        return offcpu_futex_see(c, process, key->tgid, key->object, ret);
    case OFFCPU_OBJECT_OURS:
        *ret = (uint32_t)key->object;
        return 0;
    case OBJECT_PROCESS:
        return objects_of_child(c->objects, process, (uint32_t)key->object, ret);
    default:
        return objects_find(c->objects, &id, ret);
    }
}

int offcpu_row(struct collector *c, const struct offcpu_key *key, uint64_t last_ns,
               struct wait_info *ret_info, uint32_t *ret_row)
{
    struct offcpu_seen *seen;
    struct wait_info info = {
        .kind = (enum wait_kind)key->kind,
        .syscall = key->syscall,
        .flags = key->flags,
        .detail = key->detail,
    };
    uint64_t now_ns = MIN(last_ns, c->until_ns ? c->until_ns : last_ns);
    int r = offcpu_seen_get(c, key->tid, key->tgid, key->exec, now_ns, &seen);
    if (r < 0)
        return r;
    info.thread = seen->thread;
    r = object_of(c, key, seen->process, &info.object);
    if (r == 0 && key->waker_tid != 0) {
        r = offcpu_seen_get(c, key->waker_tid, key->waker_tgid, key->waker_exec, now_ns, &seen);
        info.waker_thread = r == 0 ? seen->thread : 0;
    }
    if (r < 0)
        return r;
    info.waker_stack = user_part(c, key->waker_stack, last_ns);
    r = offcpu_kernel_part(c, user_part(c, key->stack, last_ns), key->kernel_stack, &info.stack);
    if (r == 0)
        r = sink_wait(c->sink, &info, ret_row);
    if (r == 0)
        *ret_info = info;
    return r;
}

/* ---- how long ---- */

static int offcpu_sample(struct collector *c, const struct wait_info *info, uint64_t end_ns,
                         uint64_t ns)
{
    if (info->kind != WAIT_BLOCKED || ns == 0)
        return 0;
    struct sample sample = {
        .series = c->series_offcpu,
        .thread = info->thread,
        .stack = info->stack,
        .time_ns = end_ns,
        .weight = ns,
    };
    return sink_sample(c->sink, &sample);
}

int offcpu_event_put(struct collector *c, const struct offcpu_key *key,
                     const struct offcpu_span *span, uint64_t owned_ns, uint64_t owner_off_ns)
{
    struct wait_info info = {0};
    struct wait_tally tally = {0};
    uint32_t row = 0;
    int r = offcpu_row(c, key, span->start_ns, &info, &row);
    if (r < 0)
        return r;
    uint64_t ns = (info.kind == WAIT_RUNQ ? span->end_ns : span->wake_ns) - span->start_ns;
    wait_tally_one(&tally, span->start_ns, ns);
    tally.owned_ns = owned_ns;
    tally.owner_off_ns = owner_off_ns;
    r = sink_wait_add(c->sink, row, &tally);
    struct wait_event event = {row, span->start_ns, span->wake_ns, span->end_ns};
    if (r == 0)
        r = sink_wait_event(c->sink, &event);
    if (r == 0)
        r = offcpu_sample(c, &info, span->start_ns + ns, ns);
    if (r < 0 || info.kind != WAIT_BLOCKED || span->end_ns == span->wake_ns || !c->opts.waits)
        return r;
    /* Woken, but not on a CPU yet: that part is of the run queue. */
    struct wait_info runq = {
        .kind = WAIT_RUNQ, .thread = info.thread, .syscall = WAIT_SYSCALL_NONE};
    struct wait_tally ready = {0};
    wait_tally_one(&ready, span->wake_ns, span->end_ns - span->wake_ns);
    r = sink_wait(c->sink, &runq, &row);
    return r < 0 ? r : sink_wait_add(c->sink, row, &ready);
}

static int running_put(struct collector *c, struct offcpu_seen *seen, uint64_t time_ns,
                       uint64_t running_ns)
{
    if (running_ns <= seen->running_ns)
        return 0;
    struct sample sample = {
        .series = c->series_running,
        .thread = seen->thread,
        .time_ns = time_ns,
        .weight = running_ns - seen->running_ns,
    };
    seen->running_ns = running_ns;
    return sink_sample(c->sink, &sample);
}

static int tally_put(struct collector *c, const struct offcpu_key *key,
                     const struct offcpu_tally *tally)
{
    struct wait_info info = {0};
    uint32_t row = 0;
    if (key->kind == OFFCPU_KIND_RUNNING) {
        struct offcpu_seen *seen;
        int r = offcpu_seen_get(c, key->tid, key->tgid, key->exec, tally->last_ns, &seen);
        return r < 0 ? r : running_put(c, seen, tally->last_ns, tally->total_ns);
    }
    int r = offcpu_row(c, key, tally->last_ns, &info, &row);
    if (r < 0)
        return r;
    struct wait_tally sum = {
        .count = tally->count,
        .total_ns = tally->total_ns,
        .max_ns = tally->max_ns,
        .first_ns = tally->first_ns,
        .last_ns = tally->last_ns,
        .owned_ns = tally->owned_ns,
        .owner_off_ns = tally->owner_off_ns,
    };
    _Static_assert(sizeof(sum.buckets) == sizeof(tally->buckets), "the same buckets");
    memcpy(sum.buckets, tally->buckets, sizeof(sum.buckets));
    r = sink_wait_add(c->sink, row, &sum);
    return r < 0 ? r : offcpu_sample(c, &info, tally->last_ns, tally->total_ns);
}

int offcpu_tallies_take(struct collector *c, unsigned which)
{
    uint32_t at = 0;
    void *in = NULL;
    int failed = 0;
    /* Each round takes at least one bucket of the map: bounded by its size. */
    for (uint32_t i = 0; i < 2 * OFFCPU_TALLIES_MAX; i++) {
        uint32_t count = OFFCPU_BATCH;
        int r = bpf_map_lookup_and_delete_batch(c->fds.tallies[which], in, &at, c->batch_keys,
                                                c->batch_tallies, &count, NULL);
        int error = r < 0 ? errno : 0;
        if (error != 0 && error != ENOENT)
            return failed ? failed : -error;
        for (uint32_t k = 0; k < count; k++) {
            r = tally_put(c, &c->batch_keys[k], &c->batch_tallies[k]);
            if (r == -E2BIG || r == -EINVAL)
                c->refused++;
            else if (r < 0 && failed == 0)
                failed = r;
        }
        if (error == ENOENT)
            break;
        in = &at;
    }
    return failed;
}

static int open_put(struct collector *c, const struct offcpu_thread *thread, uint64_t now_ns)
{
    struct offcpu_key key = thread->key;
    struct wait_info info = {0};
    struct wait_tally tally = {0};
    uint32_t row = 0;
    if (thread->off_ns == 0 || thread->off_ns >= now_ns)
        return 0;
    if (thread->flags & OFFCPU_THREAD_READY)
        key = (struct offcpu_key){
            .tid = thread->tid,
            .tgid = thread->tgid,
            .exec = (uint16_t)thread->exec,
            .kind = WAIT_RUNQ,
            .kernel_stack = -1,
            .syscall = WAIT_SYSCALL_NONE,
        };
    key.flags |= WAIT_OPEN;
    int r = offcpu_row(c, &key, thread->off_ns, &info, &row);
    if (r < 0)
        return r;
    wait_tally_one(&tally, thread->off_ns, now_ns - thread->off_ns);
    c->open_waits++;
    r = sink_wait_add(c->sink, row, &tally);
    struct wait_event event = {row, thread->off_ns, now_ns, now_ns};
    if (r == 0 && now_ns - thread->off_ns >= c->config.long_ns)
        r = sink_wait_event(c->sink, &event);
    return r < 0 ? r : offcpu_sample(c, &info, now_ns, now_ns - thread->off_ns);
}

int offcpu_threads_take(struct collector *c, uint64_t now_ns, bool end)
{
    uint32_t key, *previous = NULL;
    /* A map that changes while it is looked through may begin anew: hence a bound. */
    for (uint32_t i = 0; i < 2 * OFFCPU_THREADS_MAX; i++) {
        struct offcpu_thread thread;
        struct offcpu_seen *seen;
        uint32_t next;
        if (bpf_map_get_next_key(c->fds.threads, previous, &next) < 0)
            break;
        key = next;
        previous = &key;
        /* One that began after `now_ns` is not announced yet: nobody can say who it is. One that
         * has exited has told all, and is there for those who wait for its end. */
        if (bpf_map_lookup_elem(c->fds.threads, &key, &thread) < 0 || thread.since_ns > now_ns ||
            (thread.flags & OFFCPU_THREAD_EXITED))
            continue;
        int r = offcpu_seen_get(c, thread.tid, thread.tgid, thread.exec, now_ns, &seen);
        uint64_t running_ns = thread.running_ns;
        if (thread.on_ns > 0 && thread.on_ns < now_ns)
            running_ns += now_ns - thread.on_ns;
        if (r == 0)
            r = running_put(c, seen, now_ns, running_ns);
        if (r == 0 && end && c->opts.waits)
            r = open_put(c, &thread, now_ns);
        if (r == -E2BIG || r == -EINVAL)
            c->refused++;
        else if (r < 0)
            return r;
    }
    return 0;
}
