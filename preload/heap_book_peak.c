/* The exact peak of live bytes, without a line that all threads write at each call.
 *
 *     peak_bytes - live bytes == spare + the credits of all places          (1)
 *
 * Every call moves its bytes by one atomic addition, to `spare` or to its own credit, and counts
 * as having happened then; moving room between them keeps the sum, and only the holder of the
 * lock moves peak_bytes, together with spare. So (1) holds whenever nobody is amid one of these.
 *
 * Far below the peak, threads borrow room and touch only their own credit (LENT). When room is
 * short it is collected, and all share `spare` (COMMON). When that falls below 0, live bytes have
 * passed the peak: from then on (HEAP_AT_PEAK) they only rise, since whoever frees first raises
 * peak_bytes to what lives at that moment (heap_room_left_peak()) and so ends it. Nothing is
 * missed: between two such moments live bytes rise only, so their maximum is at the later one.
 * A climb that goes on is made in the threads' own credits (CLIMB), below 0; the first free
 * collects them all.
 *
 * A free that has looked for HEAP_AT_PEAK and has yet to add its bytes may be overtaken by an
 * allocation. It then counts as if it had been before that one, or, if another thread ends the
 * climb meanwhile, after it: in either case there is an order of the calls for which the peak is
 * exact, and calls that are ordered by the program are counted in that order. Who adds to its own
 * credit looks once more afterwards whether the way has changed, and if so gives it to all: the
 * one who collects sees either the credit or is seen by its owner. */
#include "heap_book.h"

#include <sys/syscall.h>

enum {
    SPINS = 64,
    LEND_FROM = 16 << 10, /* bytes of room for each thread, from which on it is lent */
    LEND_PART = 4,        /* so many times as many parts as there are threads */
    CLIMB_FROM = 64 << 10 /* bytes of a climb, from which on everyone climbs alone */
};

struct heap_room heap_room;

static void pause_a_little(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

/* Held for some loads and stores only. Its holder may be off the CPU, though. */
static void room_lock(void)
{
    for (unsigned spins = 1; __atomic_exchange_n(&heap_room.lock, 1, __ATOMIC_ACQUIRE); spins++) {
        if (spins % SPINS == 0)
            heap_raw6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        else
            pause_a_little();
    }
}

static void room_unlock(void)
{
    __atomic_store_n(&heap_room.lock, 0, __ATOMIC_RELEASE);
}

static enum heap_room_way way_of(uint32_t way)
{
    return (enum heap_room_way)(way % HEAP_ROOM_WAYS);
}

static void change_way(enum heap_room_way to)
{
    uint32_t count = heap_room.way / HEAP_ROOM_WAYS + 1;
    __atomic_store_n(&heap_room.way, count * HEAP_ROOM_WAYS + to, __ATOMIC_SEQ_CST);
}

static struct heap_thread_place *places(void)
{
    return (void *)((char *)heap_process + heap_process->threads_at);
}

static uint32_t places_count(void)
{
    uint32_t count = __atomic_load_n(&heap_process->threads, __ATOMIC_RELAXED);
    uint32_t max = heap_process->threads_max;
    return count < max ? count : max;
}

static int64_t spare_add(int64_t bytes)
{
    return __atomic_add_fetch(&heap_process->spare, bytes, __ATOMIC_SEQ_CST);
}

/* All credits become common; with the lock held. */
static int64_t collect(void)
{
    change_way(HEAP_ROOM_COMMON);
    struct heap_thread_place *all = places();
    uint32_t count = places_count();
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        if (__atomic_load_n(&all[i].credit, __ATOMIC_SEQ_CST) != 0)
            sum += __atomic_exchange_n(&all[i].credit, 0, __ATOMIC_SEQ_CST);
    return spare_add(sum);
}

static bool at_peak(void)
{
    return __atomic_load_n(&heap_process->peak_epoch, __ATOMIC_SEQ_CST) == HEAP_AT_PEAK;
}

/* Puts things right when the room is short, plentiful, or no longer where the thread took it. */
void heap_room_settle(struct heap_thread *thread)
{
    struct heap_process *process = heap_process;
    room_lock();
    int64_t own = __atomic_exchange_n(&thread->place->credit, 0, __ATOMIC_SEQ_CST);
    int64_t spare = spare_add(own);
    if (spare < 0 && way_of(heap_room.way) == HEAP_ROOM_LENT)
        spare = collect();
    int64_t lend_from = (int64_t)places_count() * LEND_FROM;
    if (spare < 0 && !at_peak()) {
        __atomic_store_n(&process->peak_epoch, HEAP_AT_PEAK, __ATOMIC_SEQ_CST);
    } else if (spare < -CLIMB_FROM && way_of(heap_room.way) == HEAP_ROOM_COMMON) {
        change_way(HEAP_ROOM_CLIMB);
    } else if (spare >= lend_from && !at_peak()) {
        int64_t part = spare / ((int64_t)places_count() * LEND_PART);
        spare_add(-part);
        __atomic_fetch_add(&thread->place->credit, part, __ATOMIC_SEQ_CST);
        if (way_of(heap_room.way) != HEAP_ROOM_LENT)
            change_way(HEAP_ROOM_LENT);
    }
    room_unlock();
}

/* Of all who free at the peak the first sets it down. A new epoch begins: who changes a cell in it
 * keeps what stood there. */
void heap_room_left_peak(void)
{
    struct heap_process *process = heap_process;
    room_lock();
    if (at_peak()) {
        if (way_of(heap_room.way) != HEAP_ROOM_COMMON)
            collect();
        int64_t spare = __atomic_load_n(&process->spare, __ATOMIC_SEQ_CST);
        if (spare < 0) {
            process->peak_bytes += -(uint64_t)spare;
            spare_add(-spare);
        }
        uint32_t epoch = process->peaks + 1;
        process->peaks = epoch == HEAP_AT_PEAK ? 1 : epoch;
        __atomic_store_n(&process->peak_epoch, process->peaks, __ATOMIC_SEQ_CST);
    }
    room_unlock();
}

/* To the thread's own credit; false: somebody has collected it meanwhile, or is about to. */
static bool own_add(struct heap_thread *thread, uint32_t way, int64_t bytes)
{
    int64_t now = __atomic_add_fetch(&thread->place->credit, bytes, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&heap_room.way, __ATOMIC_SEQ_CST) == way &&
           (now >= 0 || way_of(way) == HEAP_ROOM_CLIMB);
}

static void at_tick(uint32_t tick)
{
    if (__atomic_load_n(&heap_process->peak_tick, __ATOMIC_RELAXED) != tick)
        __atomic_store_n(&heap_process->peak_tick, tick, __ATOMIC_RELAXED);
}

static void common_take(struct heap_thread *thread, int64_t bytes, uint32_t tick)
{
    int64_t spare = spare_add(-bytes);
    if (spare >= 0) {
        if (spare >= (int64_t)places_count() * LEND_FROM)
            heap_room_settle(thread);
        return;
    }
    if (!at_peak() || spare < -CLIMB_FROM)
        heap_room_settle(thread);
    at_tick(tick);
}

void heap_room_take(struct heap_thread *thread, uint64_t bytes, uint32_t tick)
{
    uint32_t way = __atomic_load_n(&heap_room.way, __ATOMIC_SEQ_CST);
    bool climbs = way_of(way) == HEAP_ROOM_CLIMB;
    if (climbs || (way_of(way) == HEAP_ROOM_LENT &&
                   __atomic_load_n(&thread->place->credit, __ATOMIC_RELAXED) >= (int64_t)bytes)) {
        if (!own_add(thread, way, -(int64_t)bytes))
            heap_room_settle(thread);
        if (climbs)
            at_tick(tick);
        return;
    }
    common_take(thread, (int64_t)bytes, tick);
}

void heap_room_give(struct heap_thread *thread, uint64_t bytes)
{
    if (UNLIKELY(at_peak()))
        heap_room_left_peak();
    uint32_t way = __atomic_load_n(&heap_room.way, __ATOMIC_SEQ_CST);
    if (way_of(way) == HEAP_ROOM_LENT) {
        if (!own_add(thread, way, (int64_t)bytes))
            heap_room_settle(thread);
        return;
    }
    spare_add((int64_t)bytes);
}
