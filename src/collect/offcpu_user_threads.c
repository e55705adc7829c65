/* Switches on and off the CPU become waits: exact in their times, with causes as far as somebody
 * looked. Announcements of processes come in between, in the order of time. */
#include "base/clock.h"
#include "collect/offcpu_user_parts.h"
#include "model/wait_book.h"
#include "target/proc.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

enum {
    GONE_KEPT = 256,  /* ended threads that are remembered: a record may come late */
    SAME_NS = 100000, /* two events of one thread tell the same thing this close to each other */
};
#define FLUSH_NS           (100 * NS_PER_MS)
#define LIMIT_EARLY_PART   20
#define LIMIT_EARLY_NS_MIN (50 * NS_PER_MS / 1000)
#define LIMIT_EARLY_NS_MAX (5 * NS_PER_MS)
#define DELAY_AGE_NS       (200 * NS_PER_MS)

void user_threads_deinit(struct user_threads *t)
{
    VEC_FREE(&t->threads);
    VEC_FREE(&t->wanted);
    VEC_FREE(&t->gone);
    map_u64_deinit(&t->tids);
}

static uint32_t index_of(const struct user_threads *t, const struct user_thread *thread)
{
    return (uint32_t)(thread - t->threads.data);
}

struct user_thread *user_threads_find(struct user_threads *t, int tid)
{
    const uint64_t *slot = map_u64_find(&t->tids, (uint64_t)(uint32_t)tid);
    return slot && *slot ? &t->threads.data[*slot - 1] : NULL;
}

/* The first of the queue leaves it. */
static void gone_shift(struct user_threads *t)
{
    if (++t->gone_first * 2 <= t->gone.len)
        return;
    memmove(t->gone.data, t->gone.data + t->gone_first,
            (t->gone.len - t->gone_first) * sizeof(t->gone.data[0]));
    t->gone.len -= t->gone_first;
    t->gone_first = 0;
}

/* A free slot, or that of the thread that is gone longest. */
static int slot_take(struct user_threads *t, uint32_t *ret)
{
    bool full = t->threads.len >= USER_THREADS_MAX;
    size_t waiting = t->gone.len - t->gone_first;
    if (t->gone.data && t->threads.data && (waiting > GONE_KEPT || (full && waiting > 0))) {
        uint32_t index = t->gone.data[t->gone_first];
        gone_shift(t);
        uint64_t *slot = map_u64_find(&t->tids, (uint64_t)(uint32_t)t->threads.data[index].tid);
        if (slot && *slot == index + 1)
            *slot = 0;
        *ret = index;
        return 0;
    }
    if (full) {
        t->too_many++;
        return -E2BIG;
    }
    struct user_thread fresh = {0};
    if (VEC_RESERVE(&t->wanted, t->wanted.len + 1) < 0 || VEC_PUSH(&t->threads, fresh) < 0)
        return -ENOMEM;
    t->wanted.data[t->wanted.len++] = 0;
    *ret = (uint32_t)t->threads.len - 1;
    return 0;
}

static int thread_make(struct user_threads *t, uint64_t time_ns, int pid, int tid,
                       enum user_where where, struct user_thread **ret)
{
    struct user_thread *thread = user_threads_find(t, tid);
    if (!thread) {
        uint32_t index;
        int r = slot_take(t, &index);
        if (r < 0)
            return r;
        uint64_t *slot = map_u64_at(&t->tids, (uint64_t)(uint32_t)tid, NULL);
        if (!slot)
            return -ENOMEM;
        *slot = index + 1;
        thread = &t->threads.data[index];
    } else if (thread->where == USER_GONE) {
        /* The tid came back while its last one was remembered: that one's turn to be forgotten
         * never comes. */
        for (size_t i = t->gone_first; i < t->gone.len; i++)
            if (t->gone.data[i] == index_of(t, thread)) {
                t->gone.data[i] = t->gone.data[t->gone_first];
                gone_shift(t);
                break;
            }
    }
    *thread = (struct user_thread){
        .pid = pid,
        .tid = tid,
        .where = where,
        .since_ns = time_ns,
        .born_ns = time_ns,
        .slice_bytes = USER_SLICE_BYTES,
        .cause = {.syscall = WAIT_SYSCALL_UNKNOWN},
    };
    t->wanted.data[index_of(t, thread)] = 0;
    *ret = thread;
    return 0;
}

static int thread_id(struct user_threads *t, struct user_thread *thread, uint64_t time_ns,
                     uint32_t *ret)
{
    int r = stacks_thread(t->stacks, time_ns, thread->pid, thread->tid, ret);
    if (r == 0)
        thread->told = true;
    return r;
}

static int sample_put(struct user_threads *t, uint32_t series, uint32_t thread, uint32_t stack,
                      uint64_t time_ns, uint64_t ns)
{
    struct sample sample = {
        .series = series, .thread = thread, .stack = stack, .time_ns = time_ns, .weight = ns};
    return ns > 0 ? sink_sample(t->sink, &sample) : 0;
}

static bool is_left_out(const struct user_threads *t, const struct user_thread *thread,
                        const struct user_cause *cause)
{
    bool futex = cause->syscall == SYS_futex;
    if (t->futexes_only && !futex)
        return true;
    return futex && t->covered && t->covered(t->covered_context, thread->pid, thread->tid);
}

/* Waits of a thread that are alike; a single long one with its times. */
static int waits_put(struct user_threads *t, struct user_thread *thread,
                     const struct user_cause *cause, const struct wait_tally *tally, bool one,
                     uint32_t flags)
{
    if (tally->count == 0 || is_left_out(t, thread, cause))
        return 0;
    struct wait_info info = {
        .kind = WAIT_BLOCKED,
        .stack = cause->stack,
        .waker_thread = cause->waker_thread,
        .waker_stack = cause->waker_stack,
        .object = cause->object,
        .syscall = cause->syscall,
        .flags = cause->flags | WAIT_SAMPLED | flags,
        .detail = cause->detail,
    };
    uint32_t row = 0;
    int r = thread_id(t, thread, tally->last_ns, &info.thread);
    if (r == 0)
        r = sink_wait(t->sink, &info, &row);
    if (r == -E2BIG) {
        t->refused += tally->count;
        return 0;
    }
    if (r == 0)
        r = sink_wait_add(t->sink, row, tally);
    if (r == 0 && one && tally->total_ns >= USER_LONG_NS) {
        struct wait_event event = {row, tally->first_ns, tally->last_ns, tally->last_ns};
        r = sink_wait_event(t->sink, &event);
        r = r == -E2BIG ? 0 : r; /* the sink counts those itself */
    }
    if (r == 0)
        r = sample_put(t, t->offcpu, info.thread, cause->stack, tally->last_ns, tally->total_ns);
    return r;
}

static int ready_put(struct user_threads *t, struct user_thread *thread)
{
    struct wait_info info = {
        .kind = WAIT_RUNQ, .syscall = WAIT_SYSCALL_UNKNOWN, .flags = WAIT_SAMPLED};
    uint32_t row = 0;
    if (thread->ready.count == 0 || t->futexes_only)
        return 0;
    int r = thread_id(t, thread, thread->ready.last_ns, &info.thread);
    if (r == 0)
        r = sink_wait(t->sink, &info, &row);
    if (r == -E2BIG)
        t->refused += thread->ready.count;
    else if (r == 0)
        r = sink_wait_add(t->sink, row, &thread->ready);
    thread->ready = (struct wait_tally){0};
    return r == -E2BIG ? 0 : r;
}

static int running_put(struct user_threads *t, struct user_thread *thread, uint64_t time_ns)
{
    uint32_t id;
    if (thread->running_ns == 0)
        return 0;
    int r = thread_id(t, thread, time_ns, &id);
    if (r == 0)
        r = sample_put(t, t->running, id, 0, time_ns, thread->running_ns);
    thread->running_ns = 0;
    return r;
}

static const struct user_cause no_cause = {.syscall = WAIT_SYSCALL_UNKNOWN};

static int shorts_put(struct user_threads *t, struct user_thread *thread)
{
    if (thread->shorts.count == 0)
        return 0;
    uint64_t *count = thread->cause_known ? &t->alike : &t->unknown;
    *count += thread->shorts.count;
    if (thread->cause_known)
        t->alike_ns += thread->shorts.total_ns;
    int r = waits_put(t, thread, thread->cause_known ? &thread->cause : &no_cause, &thread->shorts,
                      false, 0);
    thread->shorts = (struct wait_tally){0};
    return r;
}

static int thread_put(struct user_threads *t, struct user_thread *thread, uint64_t time_ns)
{
    int r = running_put(t, thread, time_ns);
    if (r == 0)
        r = ready_put(t, thread);
    return r < 0 ? r : shorts_put(t, thread);
}

/* How long a thread has been off the CPU in all. */
static uint64_t off_until(const struct user_thread *thread, uint64_t time_ns)
{
    bool off = thread->where == USER_BLOCKED || thread->where == USER_READY;
    return thread->off_ns + (off && time_ns > thread->since_ns ? time_ns - thread->since_ns : 0);
}

static void owner_account(struct user_threads *t, struct user_thread *thread, uint64_t time_ns,
                          struct wait_tally *tally)
{
    if (!thread->observed || thread->owner_tid == 0 || time_ns <= thread->owner_since_ns)
        return;
    /* It may have ended since: what it had is remembered for a while. */
    const struct user_thread *owner = user_threads_find(t, thread->owner_tid);
    if (!owner || owner->born_ns > thread->owner_since_ns)
        return;
    uint64_t owned_ns = time_ns - thread->owner_since_ns;
    uint64_t off_ns = off_until(owner, time_ns);
    off_ns = off_ns > thread->owner_off_ns ? off_ns - thread->owner_off_ns : 0;
    tally->owned_ns = MIN(owned_ns, tally->total_ns);
    tally->owner_off_ns = MIN(off_ns, tally->owned_ns);
    /* Where it was seen meanwhile, that is where it held the lock. */
    if (owner->cause_known && owner->cause_ns >= thread->since_ns)
        thread->cause.waker_stack = owner->cause.stack;
}

/* It lasted as long as it was allowed to: whatever ended it, its time was up. Between the call's
 * beginning and the switch that we are told of there are moments; on the floor looks are apart. */
static bool is_by_limit(const struct user_threads *t, const struct user_thread *thread,
                        uint64_t time_ns)
{
    const struct user_cause *cause = &thread->cause;
    uint64_t ns = time_ns - thread->since_ns;
    uint64_t early_ns = MIN(MAX(ns / LIMIT_EARLY_PART, LIMIT_EARLY_NS_MIN), LIMIT_EARLY_NS_MAX);
    early_ns += t->floor ? USER_PERIOD_NS : 0;
    if (cause->limit_ns > 0)
        return ns + early_ns >= cause->limit_ns;
    return thread->observed && cause->until_ns > 0 && time_ns + early_ns >= cause->until_ns;
}

static int wait_end(struct user_threads *t, struct user_thread *thread, uint64_t time_ns,
                    uint32_t flags)
{
    uint64_t ns = time_ns - thread->since_ns;
    t->seen++;
    t->blocked_ns += ns;
    thread->off_ns += ns;
    if (!thread->observed && ns < USER_LONG_NS && flags == 0) {
        wait_tally_one(&thread->shorts, thread->since_ns, ns);
        return 0;
    }
    struct wait_tally tally = {0};
    wait_tally_one(&tally, thread->since_ns, ns);
    owner_account(t, thread, time_ns, &tally);
    bool alike = !thread->observed && thread->cause_known && ns <= USER_ALIKE_NS;
    if (thread->observed) {
        t->observed++;
        t->observed_ns += ns;
    } else if (alike) {
        t->alike++;
        t->alike_ns += ns;
    } else {
        t->unknown++;
    }
    bool known = thread->observed || alike;
    if (known && flags == 0 && is_by_limit(t, thread, time_ns))
        flags = WAIT_BY_INTERRUPT;
    return waits_put(t, thread, known ? &thread->cause : &no_cause, &tally, true, flags);
}

static void run_begin(struct user_threads *t, struct user_thread *thread, uint64_t time_ns)
{
    /* What is told is some milliseconds old: who waited for a moment may well do so now. */
    if (thread->where == USER_BLOCKED)
        t->wanted.data[index_of(t, thread)] = !thread->observed &&
                                              thread->looked_ns < thread->since_ns;
    thread->where = USER_ON;
    thread->since_ns = time_ns;
    thread->observed = thread->assumed = false;
}

static void run_end(struct user_threads *t, struct user_thread *thread, uint64_t time_ns)
{
    thread->running_ns += time_ns - thread->since_ns;
    t->running_ns += time_ns - thread->since_ns;
}

static void ready_end(struct user_threads *t, struct user_thread *thread, uint64_t time_ns)
{
    uint64_t ns = time_ns - thread->since_ns;
    wait_tally_one(&thread->ready, thread->since_ns, ns);
    thread->off_ns += ns;
    t->preempted++;
    t->ready_ns += ns;
}

static int switch_in(struct user_threads *t, struct user_thread *thread, uint64_t time_ns)
{
    int r = 0;
    switch (thread->where) {
    case USER_BLOCKED:
        r = wait_end(t, thread, time_ns, 0);
        break;
    case USER_READY:
        ready_end(t, thread, time_ns);
        break;
    case USER_ON:
        if (thread->assumed) {
            ready_end(t, thread, time_ns); /* it was about to run */
            break;
        }
        if (time_ns - thread->since_ns < SAME_NS)
            return 0;
        t->broken++; /* its leaving was lost: how long it ran nobody knows */
        break;
    default:
        break;
    }
    run_begin(t, thread, time_ns);
    return r;
}

static void switch_out(struct user_threads *t, struct user_thread *thread, uint64_t time_ns,
                       bool preempted)
{
    bool off = thread->where == USER_BLOCKED || thread->where == USER_READY;
    if (thread->where == USER_ON || (off && thread->assumed))
        run_end(t, thread, time_ns);
    else if (off && time_ns - thread->since_ns < SAME_NS)
        return;
    else if (off)
        t->broken++;
    thread->where = preempted ? USER_READY : USER_BLOCKED;
    thread->since_ns = time_ns;
    thread->observed = thread->assumed = false;
    /* Looks are ahead of what we are told: this one may have been seen already. */
    if (!preempted)
        t->wanted.data[index_of(t, thread)] = thread->looked_ns < time_ns;
}

int user_threads_switch(struct user_threads *t, uint64_t time_ns, int pid, int tid, bool out,
                        bool preempted)
{
    if (pid <= 0 || tid <= 0 || pid == t->root_pid)
        return 0; /* idle, or not the target yet */
    struct user_thread *thread = user_threads_find(t, tid);
    if (thread && thread->where == USER_GONE)
        return 0;
    if (!thread) {
        int r = thread_make(t, time_ns, pid, tid, USER_UNSEEN, &thread);
        if (r < 0)
            return r == -E2BIG ? 0 : r;
    }
    time_ns = MAX(time_ns, thread->since_ns);
    if (!out)
        return switch_in(t, thread, time_ns);
    switch_out(t, thread, time_ns, preempted);
    return 0;
}

int user_threads_present(struct user_threads *t, uint64_t time_ns, int pid, int tid, bool runs)
{
    struct user_thread *thread;
    if (user_threads_find(t, tid))
        return 0;
    int r = thread_make(t, time_ns, pid, tid, runs ? USER_ON : USER_BLOCKED, &thread);
    if (r < 0)
        return r == -E2BIG ? 0 : r;
    thread->assumed = true;
    t->wanted.data[index_of(t, thread)] = !runs;
    return 0;
}

int user_threads_exec(struct user_threads *t, uint64_t time_ns, int pid)
{
    struct user_thread *thread = user_threads_find(t, pid);
    if (pid == t->root_pid) {
        t->root_pid = 0;
        return thread_make(t, time_ns, pid, pid, USER_ON, &thread);
    }
    if (!thread || thread->where == USER_GONE)
        return 0;
    time_ns = MAX(time_ns, thread->since_ns);
    /* What a fork did before its exec is the new program's, unless somebody heard of it. */
    int r = 0;
    if (thread->told) {
        if (thread->where == USER_ON)
            run_end(t, thread, time_ns);
        r = thread_put(t, thread, time_ns);
        if (thread->where == USER_ON)
            thread->since_ns = time_ns;
    }
    thread->told = thread->cause_known = thread->observed = false;
    return r;
}

int user_threads_exit(struct user_threads *t, uint64_t time_ns, int tid)
{
    struct user_thread *thread = user_threads_find(t, tid);
    if (!thread || thread->where == USER_GONE)
        return 0;
    time_ns = MAX(time_ns, thread->since_ns);
    int r = 0;
    if (thread->where == USER_ON)
        run_end(t, thread, time_ns);
    else if (thread->where == USER_READY)
        ready_end(t, thread, time_ns);
    else if (thread->where == USER_BLOCKED)
        r = wait_end(t, thread, time_ns, 0);
    if (r == 0)
        r = thread_put(t, thread, time_ns);
    thread->where = USER_GONE;
    t->delay_ns += thread->delay_ns;
    t->wanted.data[index_of(t, thread)] = 0;
    if (VEC_PUSH(&t->gone, index_of(t, thread)) < 0)
        return -ENOMEM;
    return r;
}

int user_threads_fork(struct user_threads *t, uint64_t time_ns, int pid, int tid)
{
    struct user_thread *thread = user_threads_find(t, tid);
    int r = 0;
    if (pid == t->root_pid)
        return 0;
    if (thread && thread->where != USER_GONE) {
        if (thread->where == USER_READY && time_ns - thread->since_ns < SAME_NS)
            return 0; /* told by another event as well */
        r = user_threads_exit(t, time_ns, tid);
    }
    if (r == 0)
        r = thread_make(t, time_ns, pid, tid, t->floor ? USER_ON : USER_READY, &thread);
    return r == -E2BIG ? 0 : r;
}

bool user_threads_waits(const struct user_threads *t, int tid, uint64_t begin_ns)
{
    const uint64_t *slot = map_u64_find(&t->tids, (uint64_t)(uint32_t)tid);
    const struct user_thread *thread = slot && *slot ? &t->threads.data[*slot - 1] : NULL;
    return thread && thread->where == USER_BLOCKED && thread->since_ns <= begin_ns;
}

int user_threads_observe(struct user_threads *t, uint64_t end_ns, int tid,
                         const struct user_cause *cause, int owner_tid)
{
    struct user_thread *thread = user_threads_find(t, tid);
    /* What nobody looked at before the first look is taken for what it shows. */
    int r = thread->cause_known ? shorts_put(t, thread) : 0;
    thread->cause = *cause;
    thread->cause_ns = end_ns;
    thread->cause_known = thread->observed = true;
    thread->owner_tid = 0;
    struct user_thread *owner = owner_tid > 0 ? user_threads_find(t, owner_tid) : NULL;
    if (!owner || owner->pid != thread->pid || owner == thread || owner->where == USER_GONE)
        return r;
    thread->owner_tid = owner_tid;
    thread->owner_since_ns = end_ns;
    thread->owner_off_ns = off_until(owner, end_ns);
    if (r == 0)
        r = thread_id(t, owner, end_ns, &thread->cause.waker_thread);
    if (owner->observed)
        thread->cause.waker_stack = owner->cause.stack;
    return r;
}

int user_threads_suppose(struct user_threads *t, int tid, const struct user_cause *cause)
{
    struct user_thread *thread = user_threads_find(t, tid);
    int r = thread->cause_known ? shorts_put(t, thread) : 0;
    thread->cause = *cause;
    thread->cause_ns = 0; /* in which wait is not known */
    thread->cause_known = true;
    thread->owner_tid = 0;
    return r;
}

void user_threads_delay_read(struct user_threads *t, struct user_thread *thread, uint64_t now_ns)
{
    uint64_t run_ns, wait_ns;
    if (thread->where == USER_GONE ||
        (thread->delay_read_ns > 0 && now_ns - thread->delay_read_ns < DELAY_AGE_NS) ||
        proc_schedstat_read(thread->pid, thread->tid, &run_ns, &wait_ns) < 0)
        return;
    thread->delay_read_ns = now_ns;
    thread->delay_ns = wait_ns;
    t->delay_known |= run_ns > 0; /* a kernel that keeps no such books shows zeros */
}

int user_threads_until(struct user_threads *t, uint64_t time_ns)
{
    if (time_ns == UINT64_MAX || time_ns < t->flush_ns)
        return 0;
    t->flush_ns = time_ns + FLUSH_NS;
    int r = 0;
    for (size_t i = 0; i < t->threads.len && r == 0; i++) {
        struct user_thread *thread = &t->threads.data[i];
        if (thread->where == USER_GONE || thread->where == USER_UNSEEN)
            continue;
        /* It may be about to become another program: then that is worth a row, not this. */
        if (thread->tid == thread->pid && !thread->told && time_ns - thread->born_ns < FLUSH_NS)
            continue;
        if (thread->where == USER_ON && !thread->assumed && time_ns > thread->since_ns) {
            run_end(t, thread, time_ns);
            thread->since_ns = time_ns;
        }
        r = running_put(t, thread, time_ns);
        if (r == 0)
            r = ready_put(t, thread);
        if (r == 0 && thread->cause_known)
            r = shorts_put(t, thread);
    }
    return r;
}

int user_threads_end(struct user_threads *t, uint64_t time_ns)
{
    int r = 0;
    for (size_t i = 0; i < t->threads.len && r == 0; i++) {
        struct user_thread *thread = &t->threads.data[i];
        if (thread->where == USER_GONE)
            continue;
        uint64_t end_ns = MAX(time_ns, thread->since_ns);
        if (thread->where == USER_ON)
            run_end(t, thread, end_ns);
        else if (thread->where == USER_READY)
            ready_end(t, thread, end_ns);
        else if (thread->where == USER_BLOCKED)
            r = wait_end(t, thread, end_ns, WAIT_OPEN);
        if (r == 0)
            r = thread_put(t, thread, end_ns);
        thread->where = USER_GONE;
        t->delay_ns += thread->delay_ns;
    }
    return r;
}
