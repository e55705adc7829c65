/* From what the program adds up to rows, events and samples of the sink. */
#include "base/clock.h"
#include "collect/offcpu_kernel_parts.h"
#include "model/wait_book.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

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
    struct told_thread *seen;
    struct wait_info info = {
        .kind = (enum wait_kind)key->kind,
        .syscall = key->syscall,
        .flags = key->flags,
        .detail = key->detail,
    };
    uint64_t now_ns = MIN(last_ns, c->until_ns ? c->until_ns : last_ns);
    int r = told_threads_get(&c->threads, key->tid, key->tgid, key->exec, now_ns, &seen);
    if (r < 0)
        return r;
    info.thread = seen->thread;
    r = object_of(c, key, seen->process, &info.object);
    if (r == 0 && key->waker_tid != 0) {
        r = told_threads_get(&c->threads, key->waker_tid, key->waker_tgid, key->waker_exec, now_ns,
                             &seen);
        info.waker_thread = r == 0 ? seen->thread : 0;
    }
    if (r < 0)
        return r;
    info.waker_stack = told_stacks_find(&c->told, key->waker_stack, last_ns);
    r = offcpu_kernel_part(c, told_stacks_find(&c->told, key->stack, last_ns), key->kernel_stack,
                           &info.stack);
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

static int running_put(struct collector *c, struct told_thread *seen, uint64_t time_ns,
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
        struct told_thread *seen;
        int r = told_threads_get(&c->threads, key->tid, key->tgid, key->exec, tally->last_ns,
                                 &seen);
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
    uint64_t off_ns = MAX(thread->off_ns, c->start_ns);
    if (thread->off_ns == 0 || off_ns >= now_ns)
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
    else if (thread->by_interrupt)
        key.flags |= WAIT_BY_INTERRUPT;
    key.flags |= WAIT_OPEN;
    int r = offcpu_row(c, &key, off_ns, &info, &row);
    if (r < 0)
        return r;
    wait_tally_one(&tally, off_ns, now_ns - off_ns);
    c->open_waits++;
    r = sink_wait_add(c->sink, row, &tally);
    struct wait_event event = {row, off_ns, now_ns, now_ns};
    if (r == 0 && now_ns - off_ns >= c->config.long_ns)
        r = sink_wait_event(c->sink, &event);
    return r < 0 ? r : offcpu_sample(c, &info, now_ns, now_ns - off_ns);
}

int offcpu_threads_take(struct collector *c, uint64_t now_ns, bool end)
{
    uint32_t key, *previous = NULL;
    /* A map that changes while it is looked through may begin anew: hence a bound. */
    for (uint32_t i = 0; i < 2 * OFFCPU_THREADS_MAX; i++) {
        struct offcpu_thread thread;
        struct told_thread *seen;
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
        int r = told_threads_get(&c->threads, thread.tid, thread.tgid, thread.exec, now_ns, &seen);
        uint64_t running_ns = thread.running_ns;
        uint64_t on_ns = MAX(thread.on_ns, c->start_ns);
        if (thread.on_ns > 0 && on_ns < now_ns)
            running_ns += now_ns - on_ns;
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
