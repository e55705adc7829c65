/* Places of the shared memory: who lives there, what they tell, and when they are gone. */
#include "collect/locks_user.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/jsonw.h"
#include "collect/locks_user_parts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SWEEP_NS (200 * NS_PER_MS) /* how often places of dead threads are looked for */
#define SUMS_NS  (5 * NS_PER_MS)   /* how often sums are read at most */
#define TICK_NS  (20 * NS_PER_MS)
#define HURRY_NS (2 * NS_PER_MS)

static bool is_gone(const struct lock_place *place)
{
    return syscall(SYS_tgkill, (int)place->pid, (int)place->tid, 0) < 0 && errno == ESRCH;
}

/* What is counted there goes on from life to life, and so does what was read of it. */
static void place_move_in(struct lock_place *place, struct preload_thread *shared, uint32_t pid)
{
    place->lived = true;
    place->pid = pid;
    place->tid = shared->tid;
    place->serial = shared->serial;
    place->ring = (struct preload_ring){.shared = shared,
                                        .tail = __atomic_load_n(&shared->tail, __ATOMIC_RELAXED)};
    place->process = place->thread = 0;
    place->next_ns = place->sums_ns = 0;
}

/* The thread's own counts go on for ever: what is new of them is ours. */
static void place_count(struct collector *c, struct lock_place *place)
{
    const struct preload_thread *shared = place->ring.shared;
    c->dropped += shared->dropped - place->dropped;
    c->dropped_ns += shared->dropped_ns - place->dropped_ns;
    c->skipped += shared->stacks_skipped - place->skipped;
    c->recognised += shared->recognised - place->recognised;
    place->dropped = shared->dropped;
    place->dropped_ns = shared->dropped_ns;
    place->skipped = shared->stacks_skipped;
    place->recognised = shared->recognised;
}

static void place_move_out(struct collector *c, struct lock_place *place)
{
    struct preload_thread *shared = place->ring.shared;
    place_count(c, place);
    lock_stacks_deinit(c, place);
    place->lived = false;
    /* Whoever comes next must not be taken for the last one. */
    memset(shared->known_tags, 0, sizeof(shared->known_tags));
    for (size_t i = 0; i < PRELOAD_KNOWN; i++)
        if (shared->known[i].number != 0)
            memset(&shared->known[i], 0, sizeof(shared->known[i]));
    memset(shared->rows, 0, sizeof(shared->rows));
    if (place->sums)
        memset(place->sums, 0, ARRAY_SIZE(shared->rows) * sizeof(*place->sums));
    place->added = __atomic_load_n(&shared->added, __ATOMIC_ACQUIRE);
    __atomic_store_n(&shared->tail, __atomic_load_n(&shared->head, __ATOMIC_ACQUIRE),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&shared->state, PRELOAD_FREE, __ATOMIC_RELEASE);
}

static int record_take(struct collector *c, struct lock_place *place)
{
    const struct preload_taken *taken = &c->taken;
    if (taken->record.kind == PRELOAD_STACK)
        return lock_stack_take(c, place, taken);
    return lock_wait_take(c, place, &taken->wait, false);
}

/* What cannot be had of one record is counted; what remains is a failure of the sink. */
static int outcome(struct collector *c, int r)
{
    if (r == -EBADMSG)
        c->broken++;
    else if (r == -EINVAL || r == -E2BIG || r == -ESRCH || r == -ENOENT)
        c->refused++; /* beyond a bound, or of a process that is nobody's */
    else
        return r;
    return 0;
}

/* Everything of before `until_ns` in one place; the first failure of the sink. */
static int place_take(struct collector *c, struct lock_place *place, uint64_t until_ns)
{
    int failed = 0;
    if (preload_ring_used(&place->ring) > PRELOAD_RING_BYTES / 4)
        c->hurry = true;
    for (size_t i = 0; i < PRELOAD_RING_BYTES / sizeof(struct preload_record); i++) {
        int r = preload_ring_next(&place->ring, until_ns, &c->taken, &place->next_ns);
        if (r == 0)
            break;
        if (r < 0) {
            c->broken++;
            break;
        }
        r = outcome(c, record_take(c, place));
        if (failed == 0)
            failed = r;
    }
    preload_ring_release(&place->ring);
    return failed;
}

static int sums_take(struct collector *c, struct lock_place *place)
{
    if (place->added == __atomic_load_n(&place->ring.shared->added, __ATOMIC_RELAXED))
        return 0;
    return outcome(c, lock_sums_take(c, place));
}

/* Who lives there now: 1 when somebody does. Its ids are asked for at once, since what it tells
 * may be read when the thread is gone; but not too early, when its process is still to come. */
static int place_look(struct collector *c, size_t index, uint64_t time_ns, bool *ret_later)
{
    struct lock_place *place = &c->places[index];
    struct preload_thread *shared = preload_place(c->preload, index);
    if (place->lived)
        return 1;
    if (__atomic_load_n(&shared->state, __ATOMIC_ACQUIRE) != PRELOAD_LIVED)
        return 0;
    uint64_t since_ns = shared->since_ns;
    uint32_t pid = shared->pid;
    /* Only processes that are recorded: in another PID namespace the same number is another's. */
    bool known = pid <= INT32_MAX && stacks_generation(c->stacks, (int)pid) != 0;
    if (since_ns >= time_ns || !known) {
        *ret_later = time_ns != UINT64_MAX;
        c->refused += time_ns == UINT64_MAX;
        return 0;
    }
    place_move_in(place, shared, pid);
    uint64_t *home = map_u64_at(&c->homes, (uint64_t)place->pid << 32 | place->tid, NULL);
    if (!home)
        return -ENOMEM;
    *home = 1;
    home = map_u64_at(&c->pids, place->pid, NULL);
    if (!home)
        return -ENOMEM;
    *home = 1;
    int r = outcome(c, lock_place_ids(c, place, since_ns));
    return r < 0 ? r : 1;
}

/* What is new in one place. *ret_left: something is, but of later. */
static int place_read(struct collector *c, size_t index, uint64_t time_ns, bool *ret_left)
{
    struct lock_place *place = &c->places[index];
    *ret_left = false;
    int r = place_look(c, index, time_ns, ret_left);
    if (r <= 0 || place->ring.broken)
        return r;
    r = 0;
    if (time_ns > place->next_ns)
        r = place_take(c, place, time_ns);
    /* Sums have no times of their own, but cost the more the more often they are read. */
    if (r == 0 && time_ns - place->sums_ns >= SUMS_NS) {
        place->sums_ns = time_ns;
        r = sums_take(c, place);
    }
    *ret_left = place->next_ns != UINT64_MAX ||
                place->added != __atomic_load_n(&place->ring.shared->added, __ATOMIC_RELAXED);
    if (place->next_ns == UINT64_MAX)
        place->next_ns = 0; /* whatever comes next */
    return r;
}

/* Places beyond have never been taken: not even a look makes memory of them. */
static size_t places_used(const struct collector *c)
{
    uint32_t serial = __atomic_load_n(&preload_header(c->preload)->serial, __ATOMIC_RELAXED);
    return serial < PRELOAD_THREADS_MAX ? serial + 1 : PRELOAD_THREADS_MAX;
}

static int locks_until(void *context, uint64_t time_ns)
{
    struct collector *c = context;
    struct preload_header *header = preload_header(c->preload);
    size_t all = time_ns == UINT64_MAX ? places_used(c) : 0;
    int failed = 0;
    for (size_t i = 0; i < all; i++)
        c->fresh[i / 64] |= UINT64_C(1) << i % 64;
    for (size_t word = 0; word < ARRAY_SIZE(c->fresh); word++) {
        if (__atomic_load_n(&header->fresh[word], __ATOMIC_RELAXED))
            c->fresh[word] |= __atomic_exchange_n(&header->fresh[word], 0, __ATOMIC_SEQ_CST);
        for (uint64_t bits = c->fresh[word]; bits; bits &= bits - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(bits);
            bool left;
            int r = place_read(c, word * 64 + bit, time_ns, &left);
            if (failed == 0)
                failed = r;
            if (!left)
                c->fresh[word] &= ~(UINT64_C(1) << bit);
        }
    }
    return failed;
}

static int on_switch(void *context, uint64_t time_ns, int pid, int tid, bool out, bool preempted)
{
    struct collector *c = context;
    (void)pid, (void)preempted; /* a holder that waits for a CPU holds the lock, too */
    return lock_offs_switch(&c->offs, time_ns, tid, out);
}

/* A wait mostly ends after the owner of the lock has gone on, and perhaps has ended. */
static int on_task(void *context, uint64_t time_ns, enum cpu_task task, int pid, int tid)
{
    struct collector *c = context;
    if (task != CPU_TASK_EXIT || !map_u64_find(&c->pids, (uint32_t)pid))
        return 0;
    return outcome(c, lock_thread_note(c, (uint32_t)pid, (uint32_t)tid, time_ns));
}

/* A place is old when its thread has a newer one: it is of before an exec, or of a thread whose
 * number was given out again. */
static uint64_t *newest_of(struct collector *c, const struct lock_place *place)
{
    return map_u64_at(&c->newest, (uint64_t)place->pid << 32 | place->tid, NULL);
}

static void sweep(struct collector *c)
{
    map_u64_clear(&c->newest);
    for (size_t i = 0; i < PRELOAD_THREADS_MAX; i++) {
        uint64_t *newest = c->places[i].lived ? newest_of(c, &c->places[i]) : NULL;
        if (newest)
            *newest = MAX(*newest, c->places[i].serial);
    }
    for (size_t i = 0; i < PRELOAD_THREADS_MAX; i++) {
        struct lock_place *place = &c->places[i];
        const uint64_t *newest = place->lived ? newest_of(c, place) : NULL;
        if (!newest || (*newest == place->serial && !is_gone(place)))
            continue;
        /* Gone: nobody writes any more. What is still there has its time to come. */
        if (place->ring.broken ||
            (preload_ring_used(&place->ring) == 0 && place->added == place->ring.shared->added))
            place_move_out(c, place);
    }
}

static void timer_set(const struct collector *c)
{
    struct itimerspec next = {.it_value.tv_nsec = c->hurry ? HURRY_NS : TICK_NS};
    timerfd_settime(c->timer_fd, 0, &next, NULL);
}

static int locks_drain(struct collector *c, struct why *why)
{
    uint64_t now_ns = clock_mono_ns();
    (void)why; /* rings and sums are read by locks_until(), whose failures the cpu collector has */
    if (c->stopped)
        return 0;
    if (now_ns >= c->sweep_ns) {
        c->sweep_ns = now_ns + SWEEP_NS;
        sweep(c);
    }
    timer_set(c);
    c->hurry = false;
    return 0;
}

/* Waits that are not over: of threads that hang, perhaps for ever. */
static int open_take(struct collector *c, struct lock_place *place, uint64_t now_ns)
{
    const struct preload_thread *shared = place->ring.shared;
    struct preload_wait wait = {
        .record = {.kind = PRELOAD_WAIT, .lock = (uint8_t)shared->open_lock},
        .object = shared->open_object,
        .start_ns = __atomic_load_n(&shared->open_start_ns, __ATOMIC_ACQUIRE),
        .end_ns = now_ns,
        .other = shared->open_other,
        .stack = shared->open_stack,
    };
    if (wait.start_ns == 0 || wait.start_ns > now_ns || wait.record.lock >= PRELOAD_LOCKS ||
        is_gone(place))
        return 0;
    c->open++;
    return outcome(c, lock_wait_take(c, place, &wait, true));
}

static int locks_stop(struct collector *c, struct why *why)
{
    uint64_t now_ns = clock_mono_ns();
    if (c->stopped)
        return 0;
    c->stopped = true;
    /* The rings are read to their end when the cpu collector stops, after us. */
    __atomic_store_n(&preload_header(c->preload)->over, 1, __ATOMIC_RELEASE);
    int r = locks_until(c, now_ns);
    for (size_t i = 0; i < PRELOAD_THREADS_MAX && r == 0; i++)
        if (c->places[i].lived)
            r = open_take(c, &c->places[i], now_ns);
    c->homeless = preload_header(c->preload)->homeless;
    if (preload_header(c->preload)->processes == 0)
        snprintf(c->na, sizeof(c->na),
                 "the library was not loaded by any process: the program is static, set-user-ID, "
                 "or of another libc than whyslow's");
    return r < 0 ? why_errno(why, -r, NULL, "the waits for locks could not be recorded") : 0;
}

static int counters_put(struct collector *c)
{
    const struct {
        const char *name;
        enum unit unit;
        uint64_t value;
    } counters[] = {
        {"waits.seen", UNIT_COUNT, c->waits}, /* counters add up: others see waits, too */
        {"waits.complete", UNIT_COUNT, c->complete},
        {"waits.truncated", UNIT_COUNT, c->stacks_walked - c->complete},
        {"locks.processes", UNIT_COUNT, preload_header(c->preload)->processes},
        {"locks.waits", UNIT_COUNT, c->waits},
        {"locks.wait_ns", UNIT_NS, c->wait_ns},
        {"locks.holds", UNIT_COUNT, c->holds},
        {"locks.open", UNIT_COUNT, c->open},
        {"locks.stacks_walked", UNIT_COUNT, c->stacks_walked},
        {"locks.stacks_complete", UNIT_COUNT, c->complete},
        {"locks.stacks_recognised", UNIT_COUNT, c->recognised},
        {"locks.stacks_walked_again", UNIT_COUNT, c->walked_again},
        {"locks.stacks_skipped", UNIT_COUNT, c->skipped},
        {"loss.wait_locks_ring_full", UNIT_COUNT, c->dropped},
        {"locks.lost_ns", UNIT_NS, c->dropped_ns},
        {"loss.wait_locks_no_place", UNIT_COUNT, c->homeless},
        {"loss.wait_locks_refused", UNIT_COUNT, c->refused},
        {"loss.wait_locks_malformed", UNIT_COUNT, c->broken},
    };
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        r = sink_counter(c->sink, counters[i].name, counters[i].unit, counters[i].value);
    return r;
}

static int locks_finish(struct collector *c, struct why *why)
{
    for (size_t i = 0; i < PRELOAD_THREADS_MAX; i++)
        if (c->places[i].lived)
            place_count(c, &c->places[i]);
    int r = counters_put(c);
    if (r == 0)
        r = lock_names_put(c->names, c->stacks, c->sink);
    if (r == 0)
        r = locks_user_document(c->sink, locks_user_na(c));
    return r < 0 ? why_errno(why, -r, NULL, "the waits for locks could not be recorded") : 0;
}

static void locks_close(struct collector *c)
{
    if (!c)
        return;
    for (size_t i = 0; c->places && i < PRELOAD_THREADS_MAX; i++) {
        lock_stacks_deinit(c, &c->places[i]);
        free(c->places[i].sums);
    }
    free(c->places);
    lock_names_close(c->names);
    lock_offs_deinit(&c->offs);
    map_u64_deinit(&c->homes);
    map_u64_deinit(&c->threads);
    map_u64_deinit(&c->pids);
    map_u64_deinit(&c->newest);
    fd_close(&c->timer_fd);
    free(c);
}

int locks_user_document(struct sink *sink, const char *na)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return -ENOMEM;
    struct jsonw json;
    jsonw_init(&json, out, 0);
    jsonw_object_begin(&json);
    jsonw_key(&json, "library");
    jsonw_text(&json, na ? str_from(na) : STR("loaded"));
    jsonw_key(&json, "holds_sampled_every");
    jsonw_u64(&json, na ? 0 : PRELOAD_HOLD_EVERY);
    jsonw_object_end(&json);
    int r = fclose(out) == 0 ? sink_document(sink, "locks", (struct str){text, len}) : -ENOMEM;
    free(text);
    return r;
}

int locks_user_start(struct preload *preload, const struct collector_target *target,
                     struct sink *sink, struct collector **ret, struct why *why)
{
    if (target->scope != TARGET_SPAWNED)
        return why_set(why, WHY_DENIED, ENOTSUP, "let whyslow start the program",
                       "the library for locks cannot be put into a program that runs already");
    struct collector *c = calloc(1, sizeof(*c));
    if (!c)
        return why_nomem(why);
    c->preload = preload;
    c->sink = sink;
    c->stacks = cpu_stacks(target->cpu);
    c->switches = cpu_has_switches(target->cpu);
    c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    c->places = calloc(PRELOAD_THREADS_MAX, sizeof(*c->places));
    if (c->timer_fd < 0 || !c->places || lock_names_open(&c->names) < 0) {
        int r = c->timer_fd < 0 ? why_errno(why, errno, "raise 'ulimit -n'", "cannot make a timer")
                                : why_nomem(why);
        locks_close(c);
        return r;
    }
    struct cpu_follower follower = {
        .context = c, .until = locks_until, .on_task = on_task, .on_switch = on_switch};
    cpu_follow(target->cpu, &follower);
    c->hurry = true;
    timer_set(c);
    *ret = c;
    return 0;
}

size_t locks_user_poll_fds(const struct collector *c, struct pollfd *fds, size_t max)
{
    if (max == 0)
        return 0;
    fds[0] = (struct pollfd){.fd = c->timer_fd, .events = POLLIN};
    return 1;
}

void locks_user_series(struct collector *c, uint32_t series)
{
    c->series = series;
}

bool locks_user_covered(void *collector, int pid, int tid)
{
    const struct collector *c = collector;
    if (map_u64_find(&c->homes, (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid))
        return true;
    /* Or one that has told nothing of before now, but is in its first wait. */
    size_t used = places_used(c);
    for (size_t i = 0; i < used; i++) {
        const struct preload_thread *shared = preload_place(c->preload, i);
        if (!c->places[i].lived && shared->state == PRELOAD_LIVED && shared->pid == (uint32_t)pid &&
            shared->tid == (uint32_t)tid)
            return true;
    }
    return false;
}

const char *locks_user_na(const struct collector *c)
{
    return c->na[0] ? c->na : NULL;
}

const struct collector_ops locks_user_ops = {
    .name = "locks",
    .summary = "pthread locks, told by a library in the target",
    .built = true,
    .drain = locks_drain,
    .stop = locks_stop,
    .finish = locks_finish,
    .close = locks_close,
};
