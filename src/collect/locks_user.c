/* The collector's life, and its last words. */
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

/* A ring of 4 MiB is full of waits of a microsecond after 20 ms, half of it being for stacks. */
#define TICK_NS  (5 * NS_PER_MS)
#define HURRY_NS (2 * NS_PER_MS)

static int record_take(void *context, struct preload_place *place,
                       const struct preload_taken *taken)
{
    if (taken->record.kind != PRELOAD_WAIT && taken->record.kind != PRELOAD_HOLD)
        return -EBADMSG;
    return lock_wait_take(context, place, &taken->wait, false);
}

static int sums_take(void *context, struct preload_place *place)
{
    return lock_sums_take(context, place);
}

static int moved_in(void *context, struct preload_place *place)
{
    struct collector *c = context;
    uint64_t *home = map_u64_at(&c->homes, (uint64_t)place->pid << 32 | place->tid, NULL);
    if (!home)
        return -ENOMEM;
    *home = 1;
    home = map_u64_at(&c->pids, place->pid, NULL);
    if (!home)
        return -ENOMEM;
    *home = 1;
    return 0;
}

static void moved_out(void *context, struct preload_place *place)
{
    lock_sums_clear(context, place);
}

static const struct preload_places_ops places_ops = {
    .record = record_take,
    .sums = sums_take,
    .moved_in = moved_in,
    .moved_out = moved_out,
};

static int locks_until(void *context, uint64_t time_ns)
{
    struct collector *c = context;
    return preload_places_until(&c->places, time_ns);
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
    return preload_places_outcome(&c->places,
                                  lock_thread_note(c, (uint32_t)pid, (uint32_t)tid, time_ns));
}

static void timer_set(const struct collector *c)
{
    struct itimerspec next = {.it_value.tv_nsec = c->places.hurry ? HURRY_NS : TICK_NS};
    timerfd_settime(c->timer_fd, 0, &next, NULL);
}

static int locks_drain(struct collector *c, struct why *why)
{
    uint64_t now_ns = clock_mono_ns();
    (void)why; /* rings and sums are read by locks_until(), whose failures the cpu collector has */
    if (c->stopped)
        return 0;
    preload_places_tick(&c->places, now_ns);
    timer_set(c);
    c->places.hurry = false;
    return 0;
}

/* Waits that are not over: of threads that hang, perhaps for ever. */
static int open_take(struct collector *c, struct preload_place *place, uint64_t now_ns)
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
        preload_place_is_gone(place))
        return 0;
    c->open++;
    return preload_places_outcome(&c->places, lock_wait_take(c, place, &wait, true));
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
        if (c->places.places[i].lived)
            r = open_take(c, &c->places.places[i], now_ns);
    c->homeless = preload_header(c->preload)->families[PRELOAD_LOCK_HOOKS].homeless;
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
        {"waits.complete", UNIT_COUNT, c->places.complete},
        {"waits.truncated", UNIT_COUNT, c->places.stacks_walked - c->places.complete},
        {"locks.processes", UNIT_COUNT, preload_header(c->preload)->processes},
        {"locks.waits", UNIT_COUNT, c->waits},
        {"locks.wait_ns", UNIT_NS, c->wait_ns},
        {"locks.holds", UNIT_COUNT, c->holds},
        {"locks.open", UNIT_COUNT, c->open},
        {"locks.stacks_walked", UNIT_COUNT, c->places.stacks_walked},
        {"locks.stacks_complete", UNIT_COUNT, c->places.complete},
        {"locks.stacks_recognised", UNIT_COUNT, c->places.recognised},
        {"locks.stacks_walked_again", UNIT_COUNT, c->places.walked_again},
        {"locks.stacks_skipped", UNIT_COUNT, c->places.skipped},
        {"loss.wait_locks_ring_full", UNIT_COUNT, c->places.dropped},
        {"locks.lost_ns", UNIT_NS, c->places.dropped_ns},
        {"loss.wait_locks_no_place", UNIT_COUNT, c->homeless},
        {"loss.wait_locks_refused", UNIT_COUNT, c->places.refused},
        {"loss.wait_locks_malformed", UNIT_COUNT, c->places.broken},
    };
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(counters) && r == 0; i++)
        r = sink_counter(c->sink, counters[i].name, counters[i].unit, counters[i].value);
    return r;
}

static int locks_finish(struct collector *c, struct why *why)
{
    preload_places_count(&c->places);
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
    for (size_t i = 0; c->sums && i < PRELOAD_THREADS_MAX; i++)
        free(c->sums[i]);
    free(c->sums);
    preload_places_deinit(&c->places);
    lock_names_close(c->names);
    lock_offs_deinit(&c->offs);
    map_u64_deinit(&c->homes);
    map_u64_deinit(&c->threads);
    map_u64_deinit(&c->pids);
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
    c->sums = calloc(PRELOAD_THREADS_MAX, sizeof(struct lock_sum *));
    if (c->timer_fd < 0 || !c->sums || lock_names_open(&c->names) < 0 ||
        preload_places_init(&c->places, preload, c->stacks, PRELOAD_LOCK_HOOKS, &places_ops, c) <
            0) {
        int r = c->timer_fd < 0 ? why_errno(why, errno, "raise 'ulimit -n'", "cannot make a timer")
                                : why_nomem(why);
        locks_close(c);
        return r;
    }
    struct cpu_follower follower = {
        .context = c, .until = locks_until, .on_task = on_task, .on_switch = on_switch};
    cpu_follow(target->cpu, &follower);
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
    size_t used = preload_places_used(&c->places);
    for (size_t i = 0; i < used; i++) {
        const struct preload_thread *shared = preload_place(c->preload, PRELOAD_LOCK_HOOKS, i);
        if (!c->places.places[i].lived && shared->state == PRELOAD_LIVED &&
            shared->pid == (uint32_t)pid && shared->tid == (uint32_t)tid)
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
