/* Every event as one or two words in a ring of the thread's own; whyslow keeps them.
 *
 * This is the only part that may wait for whyslow: a log that lost something would be none. The
 * wait is bounded by whyslow's progress: while it reads, there will be room; when it has read
 * nothing for a while, it is gone or stuck, and the target goes on without a log. */
#include "heap.h"

#include <sys/syscall.h>
#include <time.h>

enum {
    WAIT_STEP_NS = 100000,
    WAIT_STEPS_MAX = 20000, /* without anything read: some two seconds */
    WORDS_MAX = 3,          /* of one event: a tick and two more */
};

static uint64_t *log_take(struct heap_thread *thread)
{
    struct heap_process *process = heap_process;
    if (thread->place->log == 0) {
        if (process->logs_at == 0)
            return NULL;
        uint32_t index = __atomic_fetch_add(&process->logs, 1, __ATOMIC_RELAXED);
        if (index >= process->logs_max)
            return NULL;
        __atomic_store_n(&thread->place->log, index + 1, __ATOMIC_RELEASE);
    }
    /* Somebody who lived here before may have left one: it goes on. */
    return (uint64_t *)(void *)((char *)process + process->logs_at +
                                (uint64_t)(thread->place->log - 1) * HEAP_LOG_BYTES);
}

static bool log_wait(const struct heap_thread_place *place)
{
    uint64_t read = __atomic_load_n(&place->log_read, __ATOMIC_ACQUIRE);
    for (unsigned steps = 0; steps < WAIT_STEPS_MAX; steps++) {
        if (place->log_written - read <= HEAP_LOG_WORDS - WORDS_MAX)
            return true;
        if (__atomic_load_n(&heap_header->over, __ATOMIC_RELAXED))
            return false;
        struct timespec step = {.tv_nsec = WAIT_STEP_NS};
        heap_raw6(SYS_nanosleep, (long)&step, 0, 0, 0, 0, 0);
        uint64_t now = __atomic_load_n(&place->log_read, __ATOMIC_ACQUIRE);
        if (now != read)
            steps = 0;
        read = now;
    }
    return false;
}

/* Room for an event; NULL: there is no log, or no longer. */
static uint64_t *log_room(struct heap_thread *thread)
{
    struct heap_thread_place *place = thread->place;
    if (UNLIKELY(!thread->log && !thread->log_over))
        thread->log = log_take(thread);
    if (UNLIKELY(!thread->log || thread->log_over)) {
        thread->log_over = true;
        place->log_lost++;
        return NULL;
    }
    uint64_t waiting = place->log_written - __atomic_load_n(&place->log_read, __ATOMIC_ACQUIRE);
    if (UNLIKELY(waiting > HEAP_LOG_WORDS - WORDS_MAX) && !log_wait(place)) {
        thread->log_over = true;
        place->log_lost++;
        return NULL;
    }
    return thread->log;
}

static uint64_t word(enum heap_log_word kind, uint64_t value)
{
    return (uint64_t)kind << HEAP_LOG_SHIFT | (value & ((UINT64_C(1) << HEAP_LOG_SHIFT) - 1));
}

static uint64_t put_tick(struct heap_thread *thread, uint64_t *log, uint64_t at)
{
    uint32_t tick = __atomic_load_n(&heap_header->tick, __ATOMIC_RELAXED);
    if (tick == thread->log_tick && at > 0)
        return at;
    thread->log_tick = tick;
    log[at % HEAP_LOG_WORDS] = word(HEAP_LOG_TICK, tick);
    return at + 1;
}

void heap_log_allocated(struct heap_thread *thread, const void *memory, uint64_t size,
                        uint32_t node)
{
    uint64_t *log = log_room(thread);
    if (!log)
        return;
    uint64_t at = put_tick(thread, log, thread->place->log_written);
    log[at++ % HEAP_LOG_WORDS] = word(HEAP_LOG_ALLOCATED, (uint64_t)memory);
    log[at++ % HEAP_LOG_WORDS] = (uint64_t)node << 40 | (size & ((UINT64_C(1) << 40) - 1));
    __atomic_store_n(&thread->place->log_written, at, __ATOMIC_RELEASE);
}

void heap_log_freed(struct heap_thread *thread, const void *memory)
{
    uint64_t *log = log_room(thread);
    if (!log)
        return;
    uint64_t at = put_tick(thread, log, thread->place->log_written);
    log[at++ % HEAP_LOG_WORDS] = word(HEAP_LOG_FREED, (uint64_t)memory);
    __atomic_store_n(&thread->place->log_written, at, __ATOMIC_RELEASE);
}
