/* Places of the shared memory, whatever is told there. */
#include "collect/preload_places.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SWEEP_NS (200 * NS_PER_MS) /* how often places of dead threads are looked for */
#define SUMS_NS  (5 * NS_PER_MS)   /* how often sums are read at most */

int preload_places_init(struct preload_places *places, struct preload *preload,
                        struct stacks *stacks, enum preload_family_name family,
                        const struct preload_places_ops *ops, void *context)
{
    places->preload = preload;
    places->from = stacks;
    places->family = family;
    places->ops = ops;
    places->context = context;
    places->places = calloc(PRELOAD_THREADS_MAX, sizeof(*places->places));
    if (!places->places)
        return -ENOMEM;
    places->hurry = true;
    __atomic_store_n(&preload_header(preload)->families[family].on, 1, __ATOMIC_RELEASE);
    return 0;
}

void preload_places_deinit(struct preload_places *places)
{
    for (size_t i = 0; places->places && i < PRELOAD_THREADS_MAX; i++)
        preload_stacks_deinit(places, &places->places[i]);
    free(places->places);
    map_u64_deinit(&places->newest);
}

bool preload_place_is_gone(const struct preload_place *place)
{
    return syscall(SYS_tgkill, (int)place->pid, (int)place->tid, 0) < 0 && errno == ESRCH;
}

/* What is counted there goes on from life to life, and so does what was read of it. */
static void place_move_in(struct preload_place *place, struct preload_thread *shared, uint32_t pid)
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
static void place_count(struct preload_places *places, struct preload_place *place)
{
    const struct preload_thread *shared = place->ring.shared;
    places->dropped += shared->dropped - place->dropped;
    places->dropped_ns += shared->dropped_ns - place->dropped_ns;
    places->skipped += shared->stacks_skipped - place->skipped;
    places->recognised += shared->recognised - place->recognised;
    place->dropped = shared->dropped;
    place->dropped_ns = shared->dropped_ns;
    place->skipped = shared->stacks_skipped;
    place->recognised = shared->recognised;
}

static void place_move_out(struct preload_places *places, struct preload_place *place)
{
    struct preload_thread *shared = place->ring.shared;
    place_count(places, place);
    preload_stacks_deinit(places, place);
    place->lived = false;
    /* Whoever comes next must not be taken for the last one. */
    memset(shared->known_tags, 0, sizeof(shared->known_tags));
    for (size_t i = 0; i < PRELOAD_KNOWN; i++)
        if (shared->known[i].number != 0)
            memset(&shared->known[i], 0, sizeof(shared->known[i]));
    places->ops->moved_out(places->context, place);
    place->added = __atomic_load_n(&shared->added, __ATOMIC_ACQUIRE);
    __atomic_store_n(&shared->tail, __atomic_load_n(&shared->head, __ATOMIC_ACQUIRE),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&shared->state, PRELOAD_FREE, __ATOMIC_RELEASE);
}

enum { RELEASE_EVERY = 64 };

static int record_take(struct preload_places *places, struct preload_place *place)
{
    if (places->taken.record.kind == PRELOAD_STACK)
        return preload_stack_take(places, place, &places->taken);
    return places->ops->record(places->context, place, &places->taken);
}

int preload_places_outcome(struct preload_places *places, int r)
{
    if (r == -EBADMSG)
        places->broken++;
    else if (r == -EINVAL || r == -E2BIG || r == -ESRCH || r == -ENOENT)
        places->refused++; /* beyond a bound, or of a process that is nobody's */
    else
        return r;
    return 0;
}

/* Everything of before `until_ns` in one place; the first failure of the sink. */
static int place_take(struct preload_places *places, struct preload_place *place, uint64_t until_ns)
{
    int failed = 0;
    if (preload_ring_used(&place->ring) > place->ring.shared->ring_limit / 4)
        places->hurry = true;
    for (size_t i = 0; i < PRELOAD_RING_BYTES / sizeof(struct preload_record); i++) {
        int r = preload_ring_next(&place->ring, until_ns, &places->taken, &place->next_ns);
        if (r == 0)
            break;
        if (r < 0) {
            places->broken++;
            break;
        }
        r = preload_places_outcome(places, record_take(places, place));
        if (failed == 0)
            failed = r;
        /* The thread goes on writing while we read. */
        if (i % RELEASE_EVERY == RELEASE_EVERY - 1)
            preload_ring_release(&place->ring);
    }
    preload_ring_release(&place->ring);
    return failed;
}

static int sums_take(struct preload_places *places, struct preload_place *place)
{
    if (place->added == __atomic_load_n(&place->ring.shared->added, __ATOMIC_RELAXED))
        return 0;
    return preload_places_outcome(places, places->ops->sums(places->context, place));
}

int preload_place_ids(struct preload_places *places, struct preload_place *place, uint64_t time_ns)
{
    if (place->thread)
        return 0;
    int r = stacks_process(places->from, time_ns, (int)place->pid, &place->process);
    return r < 0 ? r
                 : stacks_thread(places->from, time_ns, (int)place->pid, (int)place->tid,
                                 &place->thread);
}

/* Who lives there now: 1 when somebody does. Its ids are asked for at once, since what it tells
 * may be read when the thread is gone; but not too early, when its process is still to come. */
static int place_look(struct preload_places *places, size_t index, uint64_t time_ns,
                      bool *ret_later)
{
    struct preload_place *place = &places->places[index];
    struct preload_thread *shared = preload_place(places->preload, places->family, index);
    if (place->lived)
        return 1;
    if (__atomic_load_n(&shared->state, __ATOMIC_ACQUIRE) != PRELOAD_LIVED)
        return 0;
    uint64_t since_ns = shared->since_ns;
    uint32_t pid = shared->pid;
    /* Only processes that are recorded: in another PID namespace the same number is another's. */
    bool known = pid <= INT32_MAX && stacks_generation(places->from, (int)pid) != 0;
    if (since_ns >= time_ns || !known) {
        *ret_later = time_ns != UINT64_MAX;
        places->refused += time_ns == UINT64_MAX;
        return 0;
    }
    place_move_in(place, shared, pid);
    int r = places->ops->moved_in ? places->ops->moved_in(places->context, place) : 0;
    if (r == 0)
        r = preload_places_outcome(places, preload_place_ids(places, place, since_ns));
    return r < 0 ? r : 1;
}

/* What is new in one place. *ret_left: something is, but of later. */
static int place_read(struct preload_places *places, size_t index, uint64_t time_ns, bool *ret_left)
{
    struct preload_place *place = &places->places[index];
    *ret_left = false;
    int r = place_look(places, index, time_ns, ret_left);
    if (r <= 0 || place->ring.broken)
        return r;
    r = 0;
    if (time_ns > place->next_ns)
        r = place_take(places, place, time_ns);
    /* Sums have no times of their own, but cost the more the more often they are read. */
    if (r == 0 && time_ns - place->sums_ns >= SUMS_NS) {
        place->sums_ns = time_ns;
        r = sums_take(places, place);
    }
    *ret_left = place->next_ns != UINT64_MAX ||
                place->added != __atomic_load_n(&place->ring.shared->added, __ATOMIC_RELAXED);
    if (place->next_ns == UINT64_MAX)
        place->next_ns = 0; /* whatever comes next */
    return r;
}

static struct preload_family *family_of(const struct preload_places *places)
{
    return &preload_header(places->preload)->families[places->family];
}

size_t preload_places_used(const struct preload_places *places)
{
    uint32_t serial = __atomic_load_n(&family_of(places)->serial, __ATOMIC_RELAXED);
    return serial < PRELOAD_THREADS_MAX ? serial + 1 : PRELOAD_THREADS_MAX;
}

int preload_places_until(struct preload_places *places, uint64_t time_ns)
{
    struct preload_family *family = family_of(places);
    size_t all = time_ns == UINT64_MAX ? preload_places_used(places) : 0;
    int failed = 0;
    for (size_t i = 0; i < all; i++)
        places->fresh[i / 64] |= UINT64_C(1) << i % 64;
    for (size_t word = 0; word < ARRAY_SIZE(places->fresh); word++) {
        if (__atomic_load_n(&family->fresh[word], __ATOMIC_RELAXED))
            places->fresh[word] |= __atomic_exchange_n(&family->fresh[word], 0, __ATOMIC_SEQ_CST);
        for (uint64_t bits = places->fresh[word]; bits; bits &= bits - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(bits);
            bool left;
            int r = place_read(places, word * 64 + bit, time_ns, &left);
            if (failed == 0)
                failed = r;
            if (!left)
                places->fresh[word] &= ~(UINT64_C(1) << bit);
        }
    }
    return failed;
}

/* A place is old when its thread has a newer one: it is of before an exec, or of a thread whose
 * number was given out again. */
static uint64_t *newest_of(struct preload_places *places, const struct preload_place *place)
{
    return map_u64_at(&places->newest, (uint64_t)place->pid << 32 | place->tid, NULL);
}

static void sweep(struct preload_places *places)
{
    map_u64_clear(&places->newest);
    for (size_t i = 0; i < PRELOAD_THREADS_MAX; i++) {
        uint64_t *newest = places->places[i].lived ? newest_of(places, &places->places[i]) : NULL;
        if (newest)
            *newest = MAX(*newest, places->places[i].serial);
    }
    for (size_t i = 0; i < PRELOAD_THREADS_MAX; i++) {
        struct preload_place *place = &places->places[i];
        const uint64_t *newest = place->lived ? newest_of(places, place) : NULL;
        if (!newest || (*newest == place->serial && !preload_place_is_gone(place)))
            continue;
        /* Gone: nobody writes any more. What is still there has its time to come. */
        if (place->ring.broken ||
            (preload_ring_used(&place->ring) == 0 && place->added == place->ring.shared->added))
            place_move_out(places, place);
    }
}

void preload_places_tick(struct preload_places *places, uint64_t now_ns)
{
    if (now_ns < places->sweep_ns)
        return;
    places->sweep_ns = now_ns + SWEEP_NS;
    sweep(places);
}

void preload_places_count(struct preload_places *places)
{
    for (size_t i = 0; i < PRELOAD_THREADS_MAX; i++)
        if (places->places[i].lived)
            place_count(places, &places->places[i]);
}
