/* Who a thread of the program's is in the sink, also when that is asked late. */
#include "collect/told_threads.h"

#include <errno.h>

void told_threads_deinit(struct told_threads *threads)
{
    map_u64_deinit(&threads->at);
    map_u64_deinit(&threads->gone);
    map_u64_deinit(&threads->exec_of);
    VEC_FREE(&threads->seen);
}

static int thread_ask(struct told_threads *threads, uint32_t tid, uint32_t tgid, uint32_t exec,
                      uint64_t time_ns, struct told_thread **ret)
{
    bool fresh;
    if (threads->seen.len >= TOLD_THREADS_MAX)
        return -E2BIG;
    uint64_t *at = map_u64_at(&threads->at, (uint64_t)tid << 32 | exec, &fresh);
    if (!at)
        return -ENOMEM;
    if (fresh || *at == 0) {
        struct told_thread none = {0};
        if (VEC_PUSH(&threads->seen, none) < 0)
            return -ENOMEM;
        *at = threads->seen.len;
    }
    struct told_thread *seen = &threads->seen.data[*at - 1];
    uint64_t *last = map_u64_at(&threads->exec_of, tid, NULL);
    if (!last)
        return -ENOMEM;
    *ret = seen;
    if (seen->ended)
        return 0;
    if (*last > exec) { /* it has become another program: what it was can no longer be asked */
        const uint64_t *now = map_u64_find(&threads->at, (uint64_t)tid << 32 | *last);
        if (seen->thread == 0 && now && threads->seen.data[*now - 1].thread != 0) {
            seen->thread = threads->seen.data[*now - 1].thread;
            seen->process = threads->seen.data[*now - 1].process;
        }
        seen->ended = seen->thread != 0;
        if (seen->ended)
            return 0;
    }
    *last = exec;
    const uint64_t *gone = map_u64_find(&threads->gone, tid);
    if (gone && *gone != 0) {
        seen->thread = (uint32_t)*gone;
        seen->process = (uint32_t)(*gone >> 32);
        seen->ended = true;
        return 0;
    }
    /* Asked anew each time: a thread that changes its name is another one for the sink. */
    int r = stacks_thread(threads->stacks, time_ns, (int)tgid, (int)tid, &seen->thread);
    if (r == 0)
        r = stacks_process(threads->stacks, time_ns, (int)tgid, &seen->process);
    return r;
}

int told_threads_get(struct told_threads *threads, uint32_t tid, uint32_t tgid, uint32_t exec,
                     uint64_t time_ns, struct told_thread **ret)
{
    uint64_t moment = time_ns / TOLD_MOMENT_NS;
    if (threads->last.at != 0 && threads->last.tid == tid && threads->last.exec == exec &&
        threads->last.tgid == tgid && threads->last.moment == moment) {
        *ret = &threads->seen.data[threads->last.at - 1];
        return 0;
    }
    int r = thread_ask(threads, tid, tgid, exec, time_ns, ret);
    threads->last.at = 0;
    if (r < 0)
        return r;
    threads->last.moment = moment;
    threads->last.tid = tid;
    threads->last.tgid = tgid;
    threads->last.exec = exec;
    threads->last.at = (uint32_t)(*ret - threads->seen.data) + 1;
    return 0;
}

/* What the ring says of its end may come a little late: its ids are kept from here. */
static int gone_note(struct told_threads *threads, uint64_t time_ns, int pid, int tid)
{
    uint32_t thread, process;
    uint64_t *gone = map_u64_at(&threads->gone, (uint64_t)tid, NULL);
    if (!gone)
        return -ENOMEM;
    int r = stacks_thread(threads->stacks, time_ns, pid, tid, &thread);
    if (r == 0)
        r = stacks_process(threads->stacks, time_ns, pid, &process);
    if (r == 0)
        *gone = (uint64_t)process << 32 | thread;
    return r;
}

int told_threads_task(struct told_threads *threads, uint64_t time_ns, enum cpu_task task, int pid,
                      int tid)
{
    const uint64_t *exec = map_u64_find(&threads->exec_of, (uint64_t)tid);
    const uint64_t *at = exec ? map_u64_find(&threads->at, (uint64_t)tid << 32 | *exec) : NULL;
    struct told_thread *seen = at ? &threads->seen.data[*at - 1] : NULL;
    threads->last.at = 0;
    if (task == CPU_TASK_FORK) { /* the id was another thread's, which is gone */
        uint64_t *gone = map_u64_find(&threads->gone, (uint64_t)tid);
        if (gone)
            *gone = 0;
        if (seen && seen->ended)
            *seen = (struct told_thread){0};
        return 0;
    }
    int r = 0;
    if (seen)
        r = thread_ask(threads, (uint32_t)tid, (uint32_t)pid, (uint32_t)*exec, time_ns, &seen);
    if (seen && r == 0)
        seen->ended = true;
    if (r == 0 && task == CPU_TASK_EXIT)
        r = gone_note(threads, time_ns, pid, tid);
    return r;
}
