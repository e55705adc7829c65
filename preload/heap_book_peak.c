/* The exact peak of live bytes, without a line that all threads write at each call.
 *
 *     peak_bytes - live bytes == spare + the credits of all places          (1)
 *
 * A call moves its bytes by one atomic operation, to `spare` or to its own credit, and counts as
 * having happened then. Moving room between them keeps the sum, and peak_bytes grows by what the
 * same operation adds to spare. So (1) holds whenever nobody is amid one of these.
 *
 * Far below the peak, threads borrow room and touch only their own credit (LENT). When room is
 * short it is collected, and all share `spare` (COMMON). When that falls below 0, live bytes have
 * passed the peak. From then on they only rise, since whoever frees first raises peak_bytes to what
 * lives at that moment and so begins a new epoch (turn()). Nothing is missed: between two turns
 * live bytes have their maximum at the later one. A climb that goes on is made in the threads' own
 * credits (CLIMB), below 0; the first free collects them all.
 *
 * A free that has seen spare at 0 or more and has yet to add its bytes may be overtaken by an
 * allocation. It then counts as if it had been before that one, or, if another thread turns
 * meanwhile, after it: in either case there is an order of the calls for which the peak is exact,
 * and calls that the program orders are counted in that order. Who adds to its own credit looks
 * once more afterwards whether the way has changed, and if so gives it to all: either the one who
 * collects sees the credit, or its owner sees that it was to be collected. */
#include "heap_book.h"

#include <sys/syscall.h>

enum {
    SPINS = 64,
    LEND_FROM = 1 << 10,  /* bytes of room for each thread, from which on it is lent */
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

/* One for each thread. */
static uint32_t own_mark(void)
{
    return (uint32_t)((uint64_t)&heap_self >> 3) | 1;
}

/* Held for some loads and stores only. Its holder may be off the CPU, though. */
static void room_lock(void)
{
    uint32_t none = 0;
    for (unsigned spins = 1; !__atomic_compare_exchange_n(&heap_room.lock, &none, own_mark(), false,
                                                          __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
         spins++) {
        none = 0;
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

void heap_book_left(void)
{
    if (__atomic_load_n(&heap_room.lock, __ATOMIC_RELAXED) == own_mark())
        room_unlock();
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
    change_way(HEAP_ROOM_COLLECTED); /* until it is all there, spare says nothing */
    struct heap_thread_place *all = places();
    uint32_t count = places_count();
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        if (__atomic_load_n(&all[i].credit, __ATOMIC_SEQ_CST) != 0)
            sum += __atomic_exchange_n(&all[i].credit, 0, __ATOMIC_SEQ_CST);
    int64_t spare = spare_add(sum);
    change_way(HEAP_ROOM_COMMON);
    return spare;
}

static bool climbs_below_peak(int64_t spare)
{
    return spare >= 0 &&
           way_of(__atomic_load_n(&heap_room.way, __ATOMIC_SEQ_CST)) == HEAP_ROOM_CLIMB;
}

/* Puts things right when the room is short, plentiful, or no longer where the thread took it. */
static NOINLINE void settle(struct heap_thread *thread)
{
    room_lock();
    int64_t own = __atomic_exchange_n(&thread->place->credit, 0, __ATOMIC_SEQ_CST);
    int64_t spare = spare_add(own);
    if ((spare < 0 && way_of(heap_room.way) == HEAP_ROOM_LENT) || climbs_below_peak(spare))
        spare = collect();
    int64_t threads = (int64_t)places_count();
    if (spare < -CLIMB_FROM && way_of(heap_room.way) == HEAP_ROOM_COMMON) {
        change_way(HEAP_ROOM_CLIMB);
        if (climbs_below_peak(spare_add(0))) /* somebody has turned meanwhile */
            collect();
    } else if (spare >= threads * LEND_FROM && way_of(heap_room.way) != HEAP_ROOM_CLIMB) {
        int64_t part = spare / (threads * LEND_PART);
        spare_add(-part);
        __atomic_fetch_add(&thread->place->credit, part, __ATOMIC_SEQ_CST);
        if (way_of(heap_room.way) != HEAP_ROOM_LENT)
            change_way(HEAP_ROOM_LENT);
    }
    room_unlock();
}

static void to_common(void)
{
    room_lock();
    if (way_of(heap_room.way) != HEAP_ROOM_COMMON)
        collect();
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

static void common_take(struct heap_thread *thread, uint32_t way, int64_t bytes, uint32_t tick)
{
    int64_t spare = spare_add(-bytes);
    if (spare >= 0) {
        if (spare >= (int64_t)places_count() * LEND_FROM)
            settle(thread);
        return;
    }
    if (way_of(way) != HEAP_ROOM_COMMON || spare < -CLIMB_FROM)
        settle(thread);
    at_tick(tick);
}

/* Nobody else is there to share with, any more or as yet. */
static void be_alone(void)
{
    if (way_of(heap_room.way) != HEAP_ROOM_COMMON)
        to_common();
}

void heap_room_take(struct heap_thread *thread, uint64_t bytes, uint32_t tick)
{
    if (thread->alone) {
        be_alone();
        heap_room_taken_alone(bytes, tick);
        return;
    }
    uint32_t way = __atomic_load_n(&heap_room.way, __ATOMIC_SEQ_CST);
    bool climbs = way_of(way) == HEAP_ROOM_CLIMB;
    if (climbs || (way_of(way) == HEAP_ROOM_LENT &&
                   __atomic_load_n(&thread->place->credit, __ATOMIC_RELAXED) >= (int64_t)bytes)) {
        if (!own_add(thread, way, -(int64_t)bytes))
            settle(thread);
        if (climbs)
            at_tick(tick);
        return;
    }
    common_take(thread, way, (int64_t)bytes, tick);
}

/* The first free past the peak: what lives is the peak, and what it is made of is what the cells
 * say. In the new epoch, who changes a cell keeps what stood there. False: not past it any more. */
static bool turn(struct heap_thread *thread, int64_t bytes)
{
    struct heap_process *process = heap_process;
    int64_t spare = __atomic_load_n(&process->spare, __ATOMIC_SEQ_CST);
    while (spare < 0) {
        uint32_t way = __atomic_load_n(&heap_room.way, __ATOMIC_SEQ_CST);
        if (way_of(way) != HEAP_ROOM_COMMON) {
            to_common();
            spare = __atomic_load_n(&process->spare, __ATOMIC_SEQ_CST);
            continue;
        }
        if (!__atomic_compare_exchange_n(&process->spare, &spare, bytes, false, __ATOMIC_SEQ_CST,
                                         __ATOMIC_SEQ_CST))
            continue;
        __atomic_fetch_add(&process->peak_epoch, 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_add(&process->peak_bytes, -(uint64_t)spare, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&heap_room.way, __ATOMIC_SEQ_CST) != way)
            settle(thread);
        return true;
    }
    return false;
}

void heap_room_give(struct heap_thread *thread, uint64_t bytes)
{
    if (thread->alone) {
        be_alone();
        heap_room_given_alone(bytes);
        return;
    }
    if (turn(thread, (int64_t)bytes))
        return;
    uint32_t way = __atomic_load_n(&heap_room.way, __ATOMIC_SEQ_CST);
    if (way_of(way) == HEAP_ROOM_LENT) {
        if (!own_add(thread, way, (int64_t)bytes))
            settle(thread);
        return;
    }
    /* In a climb frees look at spare alone, so it has to stay below 0 until one of them turns. */
    if (climbs_below_peak(spare_add((int64_t)bytes)))
        to_common();
}
